"""All decompositions: a family is loaded when one of its ops is met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import NamedTuple

from tfconvert.ops.decomposition import Decomposition


class Family(NamedTuple):
    """A file of decompositions.

    Attributes:
        module: The file's name; it has `DECOMPOSITIONS`.
        title: The topic in the tables of support.
        ops: The ops that it decomposes, separated by spaces.
    """

    module: str
    title: str
    ops: str

    def load(self) -> Sequence[Decomposition]:
        """Returns the family's decompositions."""
        found: Sequence[Decomposition] = import_module(f"tfconvert.ops.decompositions.{self.module}").DECOMPOSITIONS
        return found


COMMON = Family(
    "math",
    "composed",
    "Acos Acosh ApproximateEqual Asin Asinh Atan Atanh BesselI0e BiasAddGrad ClipByValue Cosh DivNoNan EluGrad Erf "
    "Erfc Erfinv Expm1 Inv InvGrad IsFinite IsInf IsNan L2Loss LeakyReluGrad Log1p Mod MulNoNan Reciprocal "
    "ReciprocalGrad Relu6Grad ReluGrad RsqrtGrad SeluGrad SigmoidGrad Sinh SoftplusGrad SoftsignGrad SqrtGrad Tan "
    "TanhGrad TruncateDiv TruncateMod Xdivy Xlog1py Xlogy",
)
"""The family that many networks need."""

FAMILIES: Sequence[Family] = (
    COMMON,
    Family("colors", "colours", "AdjustContrastv2 AdjustHue AdjustSaturation HSVToRGB RGBToHSV"),
)

BY_OP: Mapping[str, Family] = {f"tf.{op}": family for family in FAMILIES for op in family.ops.split()}
"""Op with its dialect's prefix -> its family."""


@cache
def decompositions(name: str) -> Sequence[Decomposition]:
    """Returns the decompositions of an op, by its name with the dialect's prefix; those of other types one by one."""
    family = BY_OP.get(name)
    return () if family is None else [each for each in family.load() if f"tf.{each.op}" == name]
