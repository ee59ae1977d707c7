"""How many ops of each kind a module has."""

from __future__ import annotations

from collections import Counter

from tfconvert.schema.ir.builtin import ModuleOp

_STRUCTURE = ("func.", "builtin.", "tf_saved_model.")
_NO_WORK = frozenset(
    {
        "stablehlo.constant",
        "stablehlo.return",
        "tf.Const",
        "tf.NoOp",
        "tf.ReadVariableOp",
        "tf.VarHandleOp",
        "tfl.no_value",
        "tfl.pseudo_const",
        "tfl.pseudo_qconst",
    }
)
_KINDS = {"tf": "TensorFlow op", "tfl": "LiteRT operator", "stablehlo": "StableHLO op"}


def kind_of_operations(module: ModuleOp) -> str:
    """Returns what the ops of an imported module are called, in the singular."""
    dialects = (op.name.partition(".")[0] for op in module.walk())
    return next((_KINDS[each] for each in dialects if each in _KINDS), _KINDS["tf"])


def count_operations(module: ModuleOp) -> Counter[str]:
    """Returns how many ops of each name compute something, without their dialect's prefix."""
    names = Counter([op.name for op in module.walk()])
    return Counter(
        {
            name.partition(".")[2]: count
            for name, count in names.items()
            if name not in _NO_WORK and not name.startswith(_STRUCTURE)
        }
    )
