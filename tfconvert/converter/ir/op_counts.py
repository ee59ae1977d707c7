"""How many ops of each kind a module has."""

from __future__ import annotations

from collections import Counter

from tfconvert.schema.ir.builtin import ModuleOp

_STRUCTURE = ("func.", "builtin.", "tf_saved_model.")
_NO_WORK = frozenset({"tf.Const", "tf.VarHandleOp", "tf.ReadVariableOp", "tf.NoOp"})


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
