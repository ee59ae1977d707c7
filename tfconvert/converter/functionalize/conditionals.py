"""A group of `Merge`s becomes a `tf.If`, or a `tf.Case` where the predicate has more than two branches.

A branch is what its Merges' inputs need and what runs only where the predicate takes it; `Switch`es by the predicate
only forward values there. Inner conditionals come first, so that a branch holds none by the time it becomes a function.
Constants come into the functions as copies: as arguments of nested branches, all of them would go through all branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tfconvert.converter.functionalize.conditions import (
    ALWAYS,
    SWITCHES,
    Condition,
    ConditionalGroup,
    ConditionalGroups,
    Conditions,
    Join,
    Predicate,
    find_conditions,
    find_groups,
    implies,
    index_constant,
    without,
)
from tfconvert.converter.functionalize.slices import (
    OutlinedBody,
    Outliner,
    Slice,
    control_result,
    controls_of,
    has_effects,
    in_order,
    inputs_of,
    is_constant,
    is_pure,
    is_repeatable,
    problem,
    slice_back,
    users_of,
    wrap,
)
from tfconvert.converter.ir.edit import erase
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.dialects.tf_executor import (
    CONTROL,
    ControlTriggerOp,
    ExecutorOp,
    FetchOp,
    IslandOp,
    MergeOp,
    SwitchNOp,
    SwitchOp,
)
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


@dataclass(slots=True)
class ConditionalGraph:
    """A graph whose Switches and Merges are being replaced.

    Attributes:
        block: Its block; the order of ops becomes invalid.
        outliner: Creates the functions.
        position: Each op's former position, or a new op's preferred one.
        conditions: When each op runs.
        groups: The conditionals.
        speculated: Number of ops that run for every predicate in the result, because they are used although they may be
            dead.
    """

    block: Block
    outliner: Outliner
    position: dict[Operation, int] = field(init=False)
    conditions: Conditions = field(init=False)
    groups: ConditionalGroups = field(init=False)
    speculated: int = field(init=False, default=0)
    _indices: dict[MergeOp, Value] = field(init=False, default_factory=dict)
    _inner: set[MergeOp] = field(init=False, default_factory=set)
    _predicates: dict[Value, list[Predicate]] = field(init=False, default_factory=dict)

    def functionalize(self) -> None:
        """Replaces every Switch, Merge and ControlTrigger."""
        _drop_switch_controls(self.block)
        self.conditions = find_conditions(self.block)
        _erase_dead_ops(self.block, self.conditions)
        self.position = {op: index for index, op in enumerate(self.block.ops)}
        self.groups = find_groups(self.block, self.conditions)
        for predicate in self.conditions.predicates.values():
            self._predicates.setdefault(predicate.value, []).append(predicate)
        for join in reversed(self.conditions.joins):  # inner Merges come before the one that was split
            if self._uses_index(join):
                self._inner.update(index for index in join.indices if isinstance(index, MergeOp))
        effects = self._conditional_effects()
        deepest = max([*self.groups.by_depth, *(depth - 1 for depth in effects)], default=-1)
        for depth in range(deepest, -1, -1):
            self._assign_effects(depth, effects.get(depth + 1, []))
            for group in self.groups.by_depth.get(depth, []):
                island = self._build(group)
                if depth and self._must_run(island):
                    effects.setdefault(depth, []).append(island)
        self._finish()

    def _uses_index(self, join: Join) -> bool:
        """Returns whether the index of a Merge's live input is used."""
        return join.merge in self._inner or join.merge.value_index.first_use is not None

    def _conditional_effects(self) -> dict[int, list[Operation]]:
        """Returns the ops that must run under their condition, sorted by the number of their predicates."""
        effects: dict[int, list[Operation]] = {}
        for op in self.block.ops:
            condition = self.conditions.of[op]
            if condition and self._must_run(op):
                effects.setdefault(len(condition), []).append(op)
        return effects

    def _must_run(self, op: Operation) -> bool:
        """Returns whether an op has an effect, or an op waits for it that may also run without it."""
        if not isinstance(op, IslandOp):
            return False
        return has_effects(op) or any(self._is_weak(op, user) for user in users_of(op.control, self.block))

    def _is_weak(self, op: Operation, user: Operation) -> bool:
        """Returns whether a user of an op's control also runs when the control is dead."""
        of = self.conditions.of
        return not implies(of.get(user) or ALWAYS, of.get(op) or ALWAYS)

    def _assign_effects(self, depth: int, effects: Sequence[Operation]) -> None:
        """Adds effects that no Merge needs to their conditionals."""
        taken: set[Operation] = set()
        for group in self.groups.by_depth.get(depth, []) if effects else []:
            for branch in range(group.predicate.outputs):
                taken.update(self._slice(group, branch).ops)
        for op in effects:
            condition = self.conditions.of[op]
            if op in taken or op.parent is not self.block:
                continue
            assert condition, "only conditional effects are passed in"
            predicate = self._innermost(op, condition)
            group = self.groups.group(predicate, without(condition, predicate), op)
            group.loose.setdefault(condition[predicate], []).append(op)

    def _innermost(self, op: Operation, condition: Condition) -> Predicate:
        """Returns the innermost predicate of an effect: the one whose conditional the effect is added to first."""
        for predicate in reversed(list(condition)):
            if self.groups.has(predicate, without(condition, predicate), op):
                return predicate
        # A predicate that is computed in another one's branch is inside of it.
        return max(reversed(list(condition)), key=lambda each: len(self.conditions.of_value(each.value) or ALWAYS))

    def _slice(self, group: ConditionalGroup, branch: int) -> Slice:
        """Returns the ops that run in one branch of a conditional."""
        predicate, of = group.predicate, self.conditions.of

        def inside(op: Operation) -> bool:
            condition = of.get(op)
            return condition is not None and (condition.get(predicate) == branch or is_constant(op))

        def through(value: Value) -> tuple[Value, list[Value]]:
            switch = self._switch(value, predicate)
            return (value, []) if switch is None else (switch.data, controls_of(switch))

        roots: list[Value] = []
        for join in group.joins:
            roots.append(join.merge.operands[branch])
            index = join.indices[branch]
            if isinstance(index, MergeOp) and self._uses_index(join):
                roots.append(self._indices[index])
        return slice_back([*roots, *_controls(group, branch)], inside, through)

    def _switch(self, value: Value, predicate: Predicate) -> SwitchOp | SwitchNOp | None:
        """Returns the Switch by a predicate that has this value as an output, or `None`."""
        owner = value.owner
        if not isinstance(owner, SwitchOp | SwitchNOp) or value.type == CONTROL:
            return None
        return owner if self.conditions.by.get(owner) is predicate else None

    def _build(self, group: ConditionalGroup) -> IslandOp:
        """Replaces a group's Merges by an island with a conditional."""
        outputs = group.predicate.outputs
        slices = [self._slice(group, branch) for branch in range(outputs)]
        own = {op for each in slices for op in each.ops}
        needed = [value.owner for op in (*own, *(join.merge for join in group.joins)) for value in inputs_of(op)]
        arguments: dict[Value, Attribute] = {}
        for found in slices:
            arguments |= {value: value.type for value in found.inputs}
        indexed = [join for join in group.joins if self._uses_index(join)]
        origin = group.joins[0].merge if group.joins else next(iter(group.loose.values()))[0]
        functions = [
            self._branch(group, branch, slices[branch], arguments, indexed, origin) for branch in range(outputs)
        ]
        results = [join.merge.output.type for join in group.joins]
        results += [join.merge.value_index.type for join in indexed]
        properties = {"is_stateless": attrs.boolean(all(map(is_pure, own)))}
        if outputs == 2:
            names = {"else_branch": functions[0], "then_branch": functions[1]}
            properties |= {key: attrs.symbol(name) for key, name in names.items()}
        else:
            properties["branches"] = attrs.of([attrs.symbol(name) for name in functions])
        operands = [group.predicate.value, *arguments]
        conditional = tf.build("If" if outputs == 2 else "Case", operands, results, properties, origin.location)
        controls = [value for each in slices for value in each.controls]
        controls += [value for join in group.joins for value in controls_of(join.merge) if value.owner not in own]
        island = wrap(conditional, controls)
        self.block.add_op(island)
        self.position[island] = max([self.position[join.merge] for join in group.joins] or [self.position[origin]])
        self.conditions.of[island] = group.condition
        self.groups.levels[island] = self.groups.levels.get(origin, {})
        self._replace(group, indexed, island, slices)
        _erase_unused(needed)
        return island

    def _branch(
        self,
        group: ConditionalGroup,
        branch: int,
        found: Slice,
        arguments: dict[Value, Attribute],
        indexed: Sequence[Join],
        origin: Operation,
    ) -> str:
        """Creates a branch's function; returns its name."""
        exclusive = self._exclusive(group, found)
        kept = [op for op in found.ops if op not in exclusive]
        repeated = [op for op in kept if not is_repeatable(op)]
        if repeated:
            raise problem(
                "effect-in-branch",
                "an op with an effect runs in a branch of a conditional, and something outside of the branch needs it",
                repeated,
                "let every use of it be in the branch",
            )
        results = [join.merge.operands[branch] for join in group.joins]
        ops = in_order(found.ops, self.position)
        for join in indexed:
            index = join.indices[branch]
            if isinstance(index, MergeOp):
                results.append(self._indices[index])
            else:
                ops.append(index_constant(index, join.merge, []))
                self.block.add_op(ops[-1])
                results.append(ops[-1].results[0])
        suffix = ("else", "then")[branch] if group.predicate.outputs == 2 else f"branch{branch}"
        name = node_of(origin.location).rpartition("/")[0] or node_of(origin.location) or "cond"
        body = OutlinedBody(
            f"{name}_{suffix}",
            arguments,
            ops,
            results,
            _controls(group, branch),
            lambda value: self._forwarded(value, group.predicate),
            origin.location,
        )
        return self.outliner.outline(body, set(kept).__contains__).sym_name

    def _forwarded(self, value: Value, predicate: Predicate) -> Value:
        switch = self._switch(value, predicate)
        return value if switch is None else switch.data

    def _exclusive(self, group: ConditionalGroup, found: Slice) -> set[Operation]:
        """Returns the ops of a slice that nothing outside of the branch needs."""
        merges: set[Operation] = {join.merge for join in group.joins}
        exclusive: set[Operation] = set()
        for op in reversed(in_order(found.ops, self.position)):
            if all(
                user in exclusive or user in merges or (value.type == CONTROL and self._is_weak(op, user))
                for value in op.results
                for user in users_of(value, self.block)
            ):
                exclusive.add(op)
        return exclusive

    def _replace(
        self, group: ConditionalGroup, indexed: Sequence[Join], island: IslandOp, slices: Iterable[Slice]
    ) -> None:
        """Replaces the Merges, and controls of the branches, by the conditional's results."""
        values = zip([join.merge.output for join in group.joins], island.results, strict=False)
        indices = zip([join.merge.value_index for join in indexed], island.results[len(group.joins) :], strict=False)
        self._indices.update(
            (join.merge, result) for join, result in zip(indexed, island.results[len(group.joins) :], strict=False)
        )
        for old, new in (*values, *indices):
            old.replace_all_uses_with(new)
            for predicate in self._predicates.get(old, ()):
                predicate.value = new
                self._predicates.setdefault(new, []).append(predicate)
        for join in group.joins:
            join.merge.control.replace_all_uses_with(island.control)
            erase(join.merge)
        moved = [op for found in slices for op in found.ops if op.parent is not self.block]
        for control in filter(None, map(control_result, moved)):
            for use in tuple(control.uses):
                if use.operation.parent is self.block:
                    use.operation.set_operand(use.index, island.control)

    def _finish(self) -> None:
        """Erases dead ops; the remaining Switches only forward values."""
        for trigger in [op for op in self.block.ops if isinstance(op, ControlTriggerOp)]:
            waiting = wrap(tf.build("NoOp", [], [], location=trigger.location), trigger.operands)
            self.block.insert_op_before(waiting, trigger)
            self.position[waiting] = self.position[trigger]
            trigger.control.replace_all_uses_with(waiting.control)
            erase(trigger)
        for op in reversed(in_order(self.block.ops, self.position)):
            unused = all(result.first_use is None for result in op.results)
            if unused and self.conditions.of.get(op, ALWAYS) and not has_effects(op):
                erase(op)
            elif isinstance(op, SWITCHES):
                if not unused:
                    self.speculated += 1
                for result in op.results[:-1]:
                    result.replace_all_uses_with(op.operands[0])
                erase(op)


def _controls(group: ConditionalGroup, branch: int) -> list[Value]:
    """Returns the control results of a branch's effects that no Merge needs."""
    return [value for op in group.loose.get(branch, ()) if (value := control_result(op)) is not None]


def _erase_unused(candidates: Iterable[Operation | Block]) -> None:
    """Erases unused Switches, and ops that only they needed."""
    pending = list(dict.fromkeys(candidates))
    while pending:
        op = pending.pop()
        if not isinstance(op, (*SWITCHES, IslandOp)) or op.parent is None or has_effects(op):
            continue
        if all(result.first_use is None for result in op.results):
            pending += dict.fromkeys(value.owner for value in inputs_of(op))
            erase(op)


def _drop_switch_controls(block: Block) -> None:
    """Replaces the control of a Switch by the controls that the Switch waits for."""
    for op in list(block.ops):
        if isinstance(op, SWITCHES) and op.results[-1].first_use is not None:
            sources = [value.owner for value in op.data_operands if isinstance(value.owner, Operation)]
            controls = [control for source in sources if (control := control_result(source)) is not None]
            waiting = wrap(tf.build("NoOp", [], [], location=op.location), [*controls, *controls_of(op)])
            block.insert_op_before(waiting, op)
            op.results[-1].replace_all_uses_with(waiting.control)


def _erase_dead_ops(block: Block, conditions: Conditions) -> None:
    """Erases ops that never run, such as those of a known predicate, and then dead ops."""
    dead = {op for op in block.ops if conditions.of[op] is None}
    replaced = {op for op in block.ops if isinstance(op, MergeOp)} - {join.merge for join in conditions.joins}
    for op in block.ops:
        if isinstance(op, ControlTriggerOp | FetchOp | MergeOp) and op not in dead:
            op.set_operands([value for value in op.operands if value.type != CONTROL or value.owner not in dead])
    for op in reversed(list(block.ops)):
        unused = all(result.first_use is None for result in op.results)
        if op in dead or op in replaced:
            if not unused:
                users = [user for result in op.results for user in users_of(result, block)]
                raise problem("dead-fetch", "the value is never alive, so that nothing can use it", [op, *users])
            erase(op)
        elif unused and isinstance(op, ExecutorOp) and not isinstance(op, FetchOp) and not has_effects(op):
            erase(op)
    conditions.joins = [join for join in conditions.joins if join.merge.parent is block]
