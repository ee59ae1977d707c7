"""What a module has that most networks have not: what treats it is loaded only for those that have it."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, NamedTuple

from tfconvert.converter.composites.marks import has_composites
from tfconvert.converter.options import Options

if TYPE_CHECKING:
    from tfconvert.schema.ir.builtin import ModuleOp
    from tfconvert.schema.ir.operation import Operation

_CONTROL_FLOW = frozenset({
    "tf.If", "tf.While", "tf.Case", "tf.StatelessIf", "tf.StatelessWhile", "tf.StatelessCase", "tf.IfRegion",
    "tf.WhileRegion", "tf.CaseRegion", "tf.EmptyTensorList", "tf_executor.Switch", "tf_executor._SwitchN",
    "tf_executor.Merge", "tf_executor.Enter", "tf_executor.ControlTrigger", "tfl.if", "tfl.while",
})  # fmt: skip
_LISTS = ("tf.TensorList", "tf.TensorArray", "tf.Stack")
_RESOURCE_OPS = ("tf.Resource", "tf.Assign", "tf.DisableCopyOnRead")
_TABLES = ("tf.HashTable",)


class Presence(NamedTuple):
    """What there is, or may be.

    Attributes:
        control_flow: Conditionals, loops, tensor lists, tensor arrays or stacks, of any kind.
        composites: Functions that say what they implement.
        resource_ops: Ops that change a part of a variable, or look one up.
        tables: Tables to look something up in.
        unrolled_layers: Recurrent layers without a loop.
        sequences: Operators that compute sequences.
    """

    control_flow: bool = True
    composites: bool = True
    resource_ops: bool = True
    tables: bool = True
    unrolled_layers: bool = True
    sequences: bool = True


EVERYTHING = Presence()
NOTHING = Presence(*[False] * len(EVERYTHING))


def presence_in(module: ModuleOp, options: Options) -> Presence:
    """Returns what a module has when it is imported, or what the user's patterns and fusions may make of it."""
    names = op_names(module)
    control_flow = bool(names & _CONTROL_FLOW) or _any_of(names, _LISTS)
    composites = bool(options.composites) or has_composites(module)
    # There is hardly a recurrent layer without a hyperbolic tangent.
    unrolled = "tf.MatMul" in names and "tf.Tanh" in names
    return Presence(
        control_flow=control_flow,
        composites=composites,
        resource_ops=_any_of(names, _RESOURCE_OPS),
        tables=_any_of(names, _TABLES) or bool(options.composites) or bool(options.patterns),
        unrolled_layers=unrolled,
        # They are made of the three above; what is imported from TensorFlow never holds LiteRT's operators.
        sequences=control_flow or composites or unrolled or _any_of(names, ("tfl.",)),
    )


def _any_of(names: Set[str], prefixes: tuple[str, ...]) -> bool:
    return any(name.startswith(prefixes) for name in names)


def op_names(module: ModuleOp) -> set[str]:
    """Returns the names of all ops in a module."""
    names: set[str] = set()
    pending: list[Operation] = [module]
    while pending:
        for region in pending.pop().regions:
            for block in region.blocks:
                for op in block.ops:
                    names.add(op.name)
                    if op.regions:
                        pending.append(op)
    return names
