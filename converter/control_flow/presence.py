"""Whether a module has control flow at all: most networks have none, and need not even load what treats it."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

_NAMES = frozenset({
    "tf.If", "tf.While", "tf.Case", "tf.StatelessIf", "tf.StatelessWhile", "tf.StatelessCase", "tf.IfRegion",
    "tf.WhileRegion", "tf.CaseRegion", "tf.EmptyTensorList", "tf_executor.Switch", "tf_executor._SwitchN",
    "tf_executor.Merge", "tf_executor.Enter", "tf_executor.ControlTrigger", "tfl.if", "tfl.while",
})  # fmt: skip
_FAMILIES = ("tf.TensorList", "tf.TensorArray", "tf.Stack")


def has_control_flow(module: ModuleOp) -> bool:
    """Tells whether a module has conditionals, loops, tensor lists, tensor arrays or stacks, of whatever kind."""
    pending: list[Operation] = [module]
    while pending:
        for region in pending.pop().regions:
            for block in region.blocks:
                for op in block.ops:  # `walk` takes several times as long, which the models without any would pay
                    name = op.name
                    if name in _NAMES or name.startswith(_FAMILIES):
                        return True
                    if op.regions:
                        pending.append(op)
    return False
