"""The contents of a TensorFlow model, read from the module as it was imported: no pass has run, no weight is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from tfconvert.converter.ir.interface import Interface, interfaces
from tfconvert.schema.dialects import tensor_data, tf
from tfconvert.schema.dialects.tensor_data import TensorData
from tfconvert.schema.dialects.tf_saved_model import AssetOp, GlobalTensorOp
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.builtin import ModuleOp

_CONTROL_FLOW = frozenset(
    {
        "tf.If",
        "tf.StatelessIf",
        "tf.IfRegion",
        "tf.Case",
        "tf.StatelessCase",
        "tf.CaseRegion",
        "tf.While",
        "tf.StatelessWhile",
        "tf.WhileRegion",
        "tf_executor.Switch",
        "tf_executor._SwitchN",
        "tf_executor.Merge",
        "tf_executor.Enter",
        "tf_executor.Exit",
        "tfl.if",
        "tfl.while",
    }
)
_NO_WORK = frozenset({"tf.Const", "tf.NoOp", "tf.VarHandleOp", "tf.ReadVariableOp", "tfl.pseudo_const"})


class Imported(NamedTuple):
    """The contents of a TensorFlow model.

    Attributes:
        tensorflow_version: The version that wrote it; empty if it doesn't say.
        signatures: Its signatures; `main` for a graph without.
        operations: How often each op occurs, but for constants and reads of variables; a function's ops count once,
            however often it is called.
        control_flow: How often each kind of conditional or loop occurs, those of TensorFlow 1 as their parts.
        variables: How many variables are used.
        variable_bytes: The bytes of their values.
        assets: The vocabularies and other files that it reads.
    """

    tensorflow_version: str
    signatures: tuple[Interface, ...]
    operations: Mapping[str, int]
    control_flow: Mapping[str, int]
    variables: int
    variable_bytes: int
    assets: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            "tensorflow_version": self.tensorflow_version,
            "signatures": [interface.to_dict() for interface in self.signatures],
            "operations": dict(self.operations),
            "control_flow": dict(self.control_flow),
            "assets": list(self.assets),
        }


def facts_of(module: ModuleOp) -> Imported:
    """Returns what is in an imported module."""
    names = Counter(op.name for op in module.walk())
    variables = variables_of(module)
    version = module.attributes.get(tf.PRODUCER_VERSION)
    assets = (op.properties.get("filename") for op in module.ops if isinstance(op, AssetOp))
    return Imported(
        version.data if isinstance(version, StringAttr) else "",
        tuple(each._replace(keys=(*each.other_keys, *each.keys)) for each in interfaces(module)),
        _ranked(
            {name: count for name, count in names.items() if name.startswith(("tf.", "tfl.")) and name not in _NO_WORK}
        ),
        _ranked({name: count for name, count in names.items() if name in _CONTROL_FLOW}),
        len(variables),
        sum(map(_nbytes, variables)),
        tuple(sorted(name.data for name in assets if isinstance(name, StringAttr))),
    )


def variables_of(module: ModuleOp) -> list[GlobalTensorOp]:
    """Returns the variables of a module that are not constants yet."""
    return [op for op in module.ops if isinstance(op, GlobalTensorOp)]


def _nbytes(variable: GlobalTensorOp) -> int:
    value = variable.properties.get("value")
    if isinstance(value, TensorData):
        return value.nbytes
    return tensor_data.to_array(value).nbytes if value is not None and tensor_data.is_constant(value) else 0


def _ranked(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns counts without the dialect's prefix, largest first, equal ones by name."""
    ranking = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {name.partition(".")[2]: count for name, count in ranking}
