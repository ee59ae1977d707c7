"""Pass `break-up-islands`: an island of several ops becomes islands of one op each.

Ops in an island run in program order; islands are ordered only by values and controls. So an op that reads or writes a
state waits for the control of the op that last wrote or read it. All others may run as soon as their operands arrive.

The ops of an island are all run or all dead. So if operands may be dead, every new island waits for all operands of the
old one (gathered by `tf.IdentityN`). If effects would come after a result, the result waits for them.

Before:

    func.func @main(%x: tensor<f32>, %v: tensor<!tf_type.resource<tensor<f32>>>) -> tensor<f32> {
      %0 = tf_executor.graph {
        %start = tf_executor.island wraps "tf.NoOp"() : () -> ()
        %read, %1 = tf_executor.island(%start) {
          %2 = "tf.Neg"(%x) : (tensor<f32>) -> tensor<f32>
          "tf.AssignVariableOp"(%v, %2) <{validate_shape = false}>
            : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()
          %3 = "tf.ReadVariableOp"(%v) : (tensor<!tf_type.resource<tensor<f32>>>) -> tensor<f32>
          tf_executor.yield %3 : tensor<f32>
        }
        tf_executor.fetch %read : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }

After:

    func.func @main(%x: tensor<f32>, %v: tensor<!tf_type.resource<tensor<f32>>>) -> tensor<f32> {
      %0 = tf_executor.graph {
        %start = tf_executor.island wraps "tf.NoOp"() : () -> ()
        %neg, %1 = tf_executor.island(%start) wraps "tf.Neg"(%x) : (tensor<f32>) -> tensor<f32>
        %assigned = tf_executor.island wraps "tf.AssignVariableOp"(%v, %neg) <{validate_shape = false}>
          : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()
        %read, %2 = tf_executor.island(%assigned) wraps "tf.ReadVariableOp"(%v)
          : (tensor<!tf_type.resource<tensor<f32>>>) -> tensor<f32>
        tf_executor.fetch %read : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from tfconvert.converter.ir.edit import erase
from tfconvert.converter.ir.effect_order import EffectOrder
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.dialects import tf, tf_effects
from tfconvert.schema.dialects.tf_executor import ControlTriggerOp, FetchOp, GraphOp, IslandOp
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_APPLIED = "broken-up"


class BreakUpIslands:
    """Wraps every op in an island of its own."""

    __slots__ = ()

    name: ClassVar[str] = "break-up-islands"

    def apply(self, module: ModuleOp) -> PassResult:
        broken = 0
        effects = tf_effects.ModuleEffects(module).effects
        for graph in [op for op in module.walk() if isinstance(op, GraphOp)]:
            has_dead = any(not isinstance(op, IslandOp | FetchOp | ControlTriggerOp) for op in graph.body.ops)
            for op in list(graph.body.ops):
                if isinstance(op, IslandOp) and op.wrapped is None:
                    _Break(op, graph.body, has_dead).run(EffectOrder(effects))
                    broken += 1
        return PassResult.of({_APPLIED: broken})


@dataclass(eq=False, slots=True)
class _Break:
    """The replacement of one island by several.

    Attributes:
        island: The island.
        block: The graph's block, where new islands go before the old one.
        has_dead: Whether values of the graph may be dead.
        made: The new island of each op of the old one.
        islands: The same islands.
        followed: Those that others wait for.
    """

    island: IslandOp
    block: Block
    has_dead: bool
    made: dict[Operation, IslandOp] = field(default_factory=dict)
    islands: set[Operation] = field(default_factory=set)
    followed: set[Operation] = field(default_factory=set)

    def run(self, order: EffectOrder) -> None:
        """Replaces the old island by the new ones, in the order of its effects."""
        body, terminator = self.island.body, self.island.terminator
        ops = [op for op in body.ops if op is not terminator]
        entry = self._entry(ops, list(terminator.operands))
        for op in ops:
            controls = [self.made[earlier].control for earlier in order.before(op)]
            self._move(op, body, controls, entry)
        self._replace(list(terminator.operands), entry)
        erase(self.island)

    def _entry(self, ops: Sequence[Operation], yielded: Sequence[Value]) -> list[Value]:
        """Returns the controls that the first islands have to wait for."""
        controls = list(self.island.operands)
        used = [value for op in ops for value in _operands(op)] + [*yielded]
        taken = list(dict.fromkeys(value for value in used if self._is_outer(value)))
        inside = set(ops)
        starts = [op for op in ops if not any(operand.owner in inside for operand in _operands(op))]
        if not self.has_dead or all(set(_operands(op)).issuperset(taken) for op in starts):
            return controls
        return [self._insert(self._gather(taken), controls).control]

    def _is_outer(self, value: Value) -> bool:
        return isinstance(value.owner, Operation) and value.owner.parent is self.block

    def _move(self, op: Operation, body: Block, controls: Sequence[Value], entry: Sequence[Value]) -> None:
        """Wraps an op in an island; without operands from outside, it gets the controls of the old one."""
        sources = {owner for operand in _operands(op) if isinstance(owner := operand.owner, IslandOp)} & self.islands
        controls = [control for control in controls if control.owner not in sources]
        waits_for = [*sources, *(owner for control in controls if isinstance(owner := control.owner, IslandOp))]
        self.followed.update(waits_for)
        body.detach_op(op)
        made = self.made[op] = self._insert(op, controls if waits_for else entry)
        self.islands.add(made)
        for old, new in zip(op.results, made.results, strict=False):
            old.replace_all_uses_with(new)
        for index, result in enumerate(op.results):
            made.terminator.set_operand(index, result)

    def _insert(self, op: Operation, controls: Iterable[Value]) -> IslandOp:
        island = IslandOp.wrap(op, list(controls), op.location)
        self.block.insert_op_before(island, self.island)
        return island

    def _replace(self, values: Sequence[Value], entry: Sequence[Value]) -> None:
        """Replaces the old island's results by those of the new ones, or of an exit that waits for the effects."""
        ends = [island for island in self.made.values() if island not in self.followed]
        effects = [island for island in ends if _has_effect(island)]
        last = effects or ends[:1]
        own = set(last) if effects else self.islands
        if len(last) == 1 and all(value.owner in own for value in values):
            results, control = values, last[0].control
        else:
            exit_op = self._insert(self._gather(values), [end.control for end in last] or entry)
            *results, control = exit_op.results
        for old, new in zip(self.island.results, (*results, control), strict=True):
            old.replace_all_uses_with(new)

    def _gather(self, values: Sequence[Value]) -> Operation:
        """Returns an op whose results are the values, all of them dead if one is."""
        op_name = {0: "NoOp", 1: "Identity"}.get(len(values), "IdentityN")
        return tf.build(op_name, values, [value.type for value in values], location=self.island.location)


def _operands(op: Operation) -> list[Value]:
    """Returns the operands of an op and of the ops in its regions."""
    return [operand for inner in op.walk() for operand in inner.operands] if op.regions else list(op.operands)


def _has_effect(island: IslandOp) -> bool:
    return any(tf_effects.has_side_effects(op) for op in island.body.ops if op is not island.terminator)
