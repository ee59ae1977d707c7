"""The dialects `stablehlo` and `chlo`, with what stands beside them of `ml_program` and `cf`: one table of ops.

Ops are read and printed in the generic form, `"stablehlo.add"(%a, %b) : (tensor<?xf32>, ...) -> ...`, constants in
their short one. The table, `stablehlo_ops.tsv`, is read when the first op is looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tfconvert.schema.dialects import op_table, tensor_data
from tfconvert.schema.dialects.foreign import StableHLOConstantOp
from tfconvert.schema.dialects.stablehlo_attributes import KINDS, SYNTAX, EnumeratorAttr
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait

TABLE = Path(__file__).parent / "stablehlo_ops.tsv"

RETURN = "stablehlo.return"

_TRAITS: Mapping[str, frozenset[Trait]] = {
    RETURN: frozenset({Trait.TERMINATOR}),
    "ml_program.global": frozenset({Trait.SYMBOL}),
}

EFFECTS = frozenset({"cf.assert", "stablehlo.custom_call", "ml_program.global", "ml_program.global_store"})
"""Ops that stay although nothing uses their results."""


def _enumerator_of(kind: str) -> op_table.Check:
    return lambda value: isinstance(value, EnumeratorAttr) and value.kind == kind


CHECKS: Mapping[str, op_table.Check] = {
    **op_table.CHECKS,
    **{kind: op_table.instance_of(cls) for kind, cls in KINDS.items()},
    **{
        kind: _enumerator_of(kind)
        for kind in (
            "comparison_direction",
            "comparison_type",
            "fft_type",
            "rng_algorithm",
            "rng_distribution",
            "transpose",
        )
    },
}
"""Values that a property of each kind can have."""


class StableHLOOp(op_table.TableOp):
    """An op of the table."""

    __slots__ = ()


_TABLE = op_table.OpTable(TABLE, StableHLOOp, CHECKS, lambda op: (RETURN,), _TRAITS)

definitions = _TABLE.definitions
class_of = _TABLE.class_of
build = _TABLE.build


def constant(value: tensor_data.Constant, location: Location = UNKNOWN_LOC) -> Operation:
    """Returns a `stablehlo.constant` of a value."""
    return StableHLOConstantOp.create(properties={"value": value}, result_types=(value.type,), location=location)


SIZE_OPERANDS: Mapping[str, tuple[int, ...]] = {
    "stablehlo.dynamic_broadcast_in_dim": (1,),
    "stablehlo.dynamic_conv": (2,),
    "stablehlo.dynamic_gather": (2,),
    "stablehlo.dynamic_iota": (0,),
    "stablehlo.dynamic_pad": (2, 3, 4),
    "stablehlo.dynamic_reshape": (1,),
    "stablehlo.real_dynamic_slice": (1, 2, 3),
    "stablehlo.rng": (2,),
    "stablehlo.set_dimension_size": (1,),
}
"""Op -> the operands whose numbers are sizes or places, which the sizes of its results follow from."""


def has_side_effects(op: Operation) -> bool:
    """Returns whether an op must stay although nothing uses its results."""
    return op.name in EFFECTS


DIALECTS = (
    Dialect("stablehlo", (StableHLOConstantOp,), open_ops=class_of, attributes=SYNTAX),
    *(Dialect(name, open_ops=class_of) for name in ("cf", "chlo", "ml_program")),
)
"""The dialects of the ops in the table."""
