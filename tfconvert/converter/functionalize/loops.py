"""Loops of executor graphs, frame by frame, as `tf.While`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tfconvert.converter.functionalize.conditions import root_of
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
    replace_inputs,
    slice_back,
    users_of,
    wrap,
)
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.tf_executor import (
    CONTROL,
    EnterOp,
    ExitOp,
    FetchOp,
    IslandOp,
    LoopCondOp,
    MergeOp,
    NextIterationSinkOp,
    NextIterationSourceOp,
    SwitchOp,
)
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Use, Value


@dataclass(eq=False, slots=True)
class LoopFrame:
    """A loop.

    Attributes:
        name: The frame's name, from its Enters.
        parent: The frame around it; `None` if it is not in another loop.
        depth: How many frames are around it.
        ops: Its ops, Enters and Exits included, in the graph's order.
    """

    name: str
    parent: LoopFrame | None
    depth: int
    ops: dict[Operation, None] = field(default_factory=dict)


@dataclass(slots=True)
class LoopFrames:
    """All loops of a graph.

    Attributes:
        of: The frame of each op, or `None`. An Enter is in the frame that it opens, an Exit in the one that it leaves.
        innermost_first: Every frame, each before the one around it.
    """

    of: dict[Operation, LoopFrame | None] = field(default_factory=dict)
    innermost_first: list[LoopFrame] = field(default_factory=list)

    def put(self, op: Operation, frame: LoopFrame | None) -> None:
        """Puts an op into a frame."""
        self.of[op] = frame
        if frame is not None:
            frame.ops[op] = None


def find_frames(block: Block) -> LoopFrames:
    """Returns the frames of a graph's block.

    Raises:
        ConversionError: An op has inputs from different frames, or is outside of its loop (`mismatched-frames`),
            or a value inside of a loop is fetched (`fetch-in-loop`).
    """
    frames = LoopFrames()
    made: dict[tuple[LoopFrame | None, str], LoopFrame] = {}
    for op in block.ops:
        if isinstance(op, NextIterationSourceOp):
            continue  # determined by its users, which come later
        if isinstance(op, FetchOp):
            _check_fetch(frames, op)
            continue
        around = _common_frame(frames, op)
        if isinstance(op, EnterOp):
            key = (around, op.frame_name)
            if key not in made:
                made[key] = LoopFrame(op.frame_name, around, 0 if around is None else around.depth + 1)
            around = made[key]
        frames.put(op, around)
        if isinstance(op, MergeOp):
            for value in op.data_operands:
                if isinstance(value.owner, NextIterationSourceOp):
                    _loop_back(frames, op, value.owner, around)
        elif isinstance(op, ExitOp | LoopCondOp) and around is None:
            raise problem(
                "mismatched-frames", "it stands outside of any loop", [op], "a loop's values come in through Enter"
            )
    _check_sinks(frames, block.ops)
    frames.innermost_first = sorted(made.values(), key=lambda frame: -frame.depth)
    return frames


def _common_frame(frames: LoopFrames, op: Operation) -> LoopFrame | None:
    """Returns the common frame of an op's inputs."""
    found: dict[LoopFrame | None, Operation] = {}
    for value in inputs_of(op):
        owner = value.owner if isinstance(value.owner, Operation) else None
        if not isinstance(owner, NextIterationSourceOp):
            frame = None if owner is None else frames.of.get(owner)
            found.setdefault(frame.parent if frame is not None and isinstance(owner, ExitOp) else frame, owner or op)
    if len(found) > 1:
        names = " and ".join(sorted("none" if frame is None else repr(frame.name) for frame in found))
        raise problem(
            "mismatched-frames",
            f"the node has inputs from different loops, {names}",
            [op, *found.values()],
            "a value comes into a loop through Enter and out of it through Exit",
        )
    return next(iter(found), None)


def _check_fetch(frames: LoopFrames, fetch: FetchOp) -> None:
    for value in fetch.data_operands:
        frame = frames.of.get(value.owner) if isinstance(value.owner, Operation) else None
        inside = frame.parent if frame is not None and isinstance(value.owner, ExitOp) else frame
        if inside is not None:
            assert isinstance(value.owner, Operation)
            raise problem(
                "fetch-in-loop",
                f"the tensor is inside of the loop {inside.name!r} and has many values",
                [value.owner],
                "choose a tensor behind the loop's Exit",
            )


def _loop_back(frames: LoopFrames, merge: MergeOp, source: Operation, frame: LoopFrame | None) -> None:
    if frame is None:
        raise problem(
            "mismatched-frames",
            "NextIteration stands outside of any loop",
            [merge, source],
            "a loop's values come in through Enter",
        )
    frames.put(source, frame)


def _check_sinks(frames: LoopFrames, ops: Iterable[Operation]) -> None:
    for op in ops:
        if isinstance(op, NextIterationSinkOp):
            source = op.token.owner
            assert isinstance(source, Operation)
            if source not in frames.of:
                raise problem(
                    "mismatched-frames",
                    "NextIteration forwards its value to no Merge",
                    [op],
                    "a loop variable is a Merge of an Enter and a NextIteration",
                )
            if frames.of[source] is not frames.of[op]:
                raise problem(
                    "mismatched-frames",
                    "NextIteration leads into another loop",
                    [op],
                    "a loop's values leave it through Exit",
                )


_GLUE = (EnterOp, ExitOp, LoopCondOp, NextIterationSinkOp, NextIterationSourceOp)
# TensorFlow's default.
_PARALLEL_ITERATIONS = attrs.integer(10)


@dataclass(frozen=True, slots=True)
class LoopVariable:
    """A loop variable: its value before the loop, in an iteration, and for the next one."""

    enter: EnterOp
    merge: MergeOp
    sink: NextIterationSinkOp

    @property
    def value(self) -> Value:
        """The value at the beginning of an iteration."""
        return self.merge.output


@dataclass(slots=True)
class Loop:
    """A frame's predicate and variables.

    Attributes:
        frame: The frame.
        frames: All frames of the graph.
        condition: Its LoopCond.
        variables: The loop variables, in the order of their Merges.
        headers: Their Merges.
    """

    frame: LoopFrame
    frames: LoopFrames
    condition: LoopCondOp
    variables: Sequence[LoopVariable]
    headers: frozenset[Operation]

    def slice(self, roots: Iterable[Value]) -> Slice:
        """Returns the slice of some values of the frame in one iteration."""
        return slice_back(roots, self._is_inside, self._through)

    def is_switch(self, op: object) -> bool:
        """Returns whether an op is a Switch by the loop's predicate."""
        return isinstance(op, SwitchOp) and root_of(op.operands[1]).owner is self.condition

    def stands_for(self, value: Value) -> Value:
        """Returns the source of a value, looking through the loop's switches."""
        return self._through(value)[0]

    def _through(self, value: Value) -> tuple[Value, list[Value]]:
        controls: list[Value] = []
        while value.type != CONTROL and (self.is_switch(value.owner) or value.owner is self.condition):
            assert isinstance(value.owner, SwitchOp | LoopCondOp)
            controls += value.owner.control_operands
            value = value.owner.data
        return _constant_behind(value) or value, controls

    def _is_inside(self, op: Operation) -> bool:
        if is_constant(op):
            return True
        if self.frames.of.get(op) is not self.frame or isinstance(op, _GLUE) or op in self.headers:
            return False
        return not self.is_switch(op)


def _constant_behind(value: Value) -> Value | None:
    """Returns the constant that enters a loop as a value, or `None`."""
    while isinstance(value.owner, EnterOp) and value.owner.is_constant and value.type != CONTROL:
        value = value.owner.data
    return value if value.type != CONTROL and is_constant(value.owner) else None


def find_loop(frame: LoopFrame, frames: LoopFrames) -> Loop:
    """Returns a frame's predicate and variables.

    Raises:
        ConversionError: There is not exactly one LoopCond (`loop-condition`), or a value that enters is neither a loop
            variable nor a constant (`loop-variable`).
    """
    conditions = [op for op in frame.ops if isinstance(op, LoopCondOp)]
    if len(conditions) != 1:
        raise problem(
            "loop-condition",
            f"the loop {frame.name!r} has {len(conditions)} LoopConds instead of one",
            conditions or list(frame.ops),
        )
    sinks = {op.token.owner: op for op in frame.ops if isinstance(op, NextIterationSinkOp)}
    variables = []
    for merge in frame.ops:
        if isinstance(merge, MergeOp):
            owners = [value.owner for value in merge.data_operands]
            if any(isinstance(owner, NextIterationSourceOp) for owner in owners):
                variables.append(_variable(merge, sinks))
    return Loop(frame, frames, conditions[0], variables, frozenset(variable.merge for variable in variables))


def _variable(merge: MergeOp, sinks: dict[Operation | Block, NextIterationSinkOp]) -> LoopVariable:
    owners = [value.owner for value in merge.data_operands]
    enters = [owner for owner in owners if isinstance(owner, EnterOp)]
    sources = [owner for owner in owners if isinstance(owner, NextIterationSourceOp)]
    if len(owners) != 2 or len(enters) != 1 or sources[0] not in sinks:
        raise problem("loop-variable", "a loop variable must be a Merge of one Enter and one NextIteration", [merge])
    if merge.value_index.first_use is not None:
        raise problem(
            "loop-variable",
            "the index of a loop variable's Merge, which marks the first iteration, is used",
            [merge],
            "count the iterations in a loop variable instead",
        )
    return LoopVariable(enters[0], merge, sinks[sources[0]])


@dataclass(slots=True)
class _Parts:
    """A loop's slices, and the control results of their unobserved effects."""

    ahead: Slice
    again: Slice
    after: Slice
    loose_ahead: list[Value]
    loose_again: list[Value]


def functionalize(loop: Loop, block: Block, position: dict[Operation, int], outliner: Outliner) -> None:
    """Replaces a frame's ops by an island with a `tf.While` in the frame around it.

    Args:
        loop: The loop, whose inner frames have been replaced.
        block: The graph's block; its order is not kept up.
        position: The former position of each op of the block, and the preferred one of new ops.
        outliner: Creates the functions.
    """
    parts = _parts(loop, block)
    invariants = _invariants(loop, parts)
    _refuse_repeated_effects(parts)
    arguments: dict[Value, Attribute] = {variable.value: variable.value.type for variable in loop.variables}
    arguments |= {value: types.most_specific(value.type, _outside(value).type) for value in invariants}
    name = loop.frame.name.removesuffix("_context").rstrip("/") or "while"
    location = loop.condition.location
    ahead, again, after = parts.ahead.ops, parts.again.ops, parts.after.ops
    condition = outliner.outline(
        OutlinedBody(
            f"{name}_cond",
            arguments,
            in_order(ahead, position),
            [loop.condition.data],
            _ends(parts.loose_ahead, ahead, loop),
            loop.stands_for,
            location,
        ),
        lambda op: op in again or op in after or is_constant(op),
    )
    following = [variable.sink.input for variable in loop.variables]
    body = outliner.outline(
        OutlinedBody(
            f"{name}_body",
            arguments,
            in_order(again, position),
            following + invariants,
            _ends(parts.loose_again, again, loop),
            loop.stands_for,
            location,
        ),
        lambda op: op in after or is_constant(op),
    )
    properties = {
        "cond": attrs.symbol(condition.sym_name),
        "body": attrs.symbol(body.sym_name),
        "is_stateless": attrs.boolean(all(map(is_pure, (*ahead, *again)))),
        "parallel_iterations": loop.variables[0].enter.properties.get("parallel_iterations", _PARALLEL_ITERATIONS)
        if loop.variables
        else _PARALLEL_ITERATIONS,
    }
    entering = [variable.enter for variable in loop.variables] + [value.owner for value in invariants]
    controls = [value for enter in entering if isinstance(enter, Operation) for value in controls_of(enter)]
    operands = [variable.enter.data for variable in loop.variables] + [_outside(value) for value in invariants]
    island = wrap(tf.build("While", operands, list(arguments.values()), properties, location), controls)
    block.add_op(island)
    position[island] = position[loop.condition]
    _replace(loop, parts, island, block)


def _parts(loop: Loop, block: Block) -> _Parts:
    sinks = [variable.sink for variable in loop.variables]
    exits = [op for op in loop.frame.ops if isinstance(op, ExitOp)]
    ahead_roots = list(loop.condition.operands)
    again_roots = [value for sink in sinks for value in sink.operands[1:]]
    after_roots = [value for op in exits for value in op.operands]
    ahead, again, after = map(loop.slice, (ahead_roots, again_roots, after_roots))
    taken = {*ahead.ops, *again.ops, *after.ops}
    loose = [op for op in loop.frame.ops if op not in taken and has_effects(op) and not isinstance(op, _GLUE)]
    loose_ahead = [value for value in ahead_roots if value.type == CONTROL]
    loose_again = [value for value in again_roots if value.type == CONTROL]
    loose_after = [value for value in after_roots if value.type == CONTROL]
    if loose:
        in_body, behind = (_reached(loop, block, index) for index in (1, 0))
        for op in loose:
            control = control_result(op)
            assert control is not None, "an island has one"
            (loose_again if op in in_body else loose_after if op in behind else loose_ahead).append(control)
        ahead, again, after = (
            loop.slice([*roots, *ends])
            for roots, ends in ((ahead_roots, loose_ahead), (again_roots, loose_again), (after_roots, loose_after))
        )
    after.ops = {op: None for op in after.ops if not is_constant(op)}  # constants are moved out of the loop
    return _Parts(ahead, again, after, loose_ahead, loose_again)


def _reached(loop: Loop, block: Block, side: int) -> set[Operation]:
    """Returns the ops of the frame that run only if the loop continues (1), or only if it ends (0)."""
    pending = [op.results[side] for op in loop.frame.ops if loop.is_switch(op)]
    found: set[Operation] = set()
    while pending:
        for user in users_of(pending.pop(), block):
            if user not in found and loop.frames.of.get(user) is loop.frame:
                found.add(user)
                pending.extend(user.results)
    return found


def _ends(loose: Sequence[Value], ops: dict[Operation, None], loop: Loop) -> list[Value]:
    """Returns the controls of a function's own ops that its fetch waits for."""
    return [value for value in dict.fromkeys(loose) if loop.stands_for(value).owner in ops]


def _outside(value: Value) -> Value:
    """Returns the value of an Enter outside of the loop."""
    assert isinstance(value.owner, EnterOp)
    return value.owner.data


def _invariants(loop: Loop, parts: _Parts) -> list[Value]:
    """Returns the loop-invariant values from outside; refuses other values from outside."""
    variables = {variable.value for variable in loop.variables}
    found: dict[Value, None] = {}
    for inputs in (parts.ahead.inputs, parts.again.inputs, parts.after.inputs):
        for value in inputs:
            if value in variables:
                continue
            owner = value.owner
            if not isinstance(owner, Operation) or not isinstance(owner, EnterOp) or not owner.is_constant:
                raise problem(
                    "loop-variable",
                    f"a value of the loop {loop.frame.name!r} is there in its first iteration only",
                    [owner if isinstance(owner, Operation) else loop.condition, loop.condition],
                    "it must be constant in the loop, or be merged with what NextIteration forwards",
                )
            found[value] = None
    after_only = [value for value in found if value not in parts.ahead.inputs and value not in parts.again.inputs]
    return [value for value in found if value not in after_only]


def _refuse_repeated_effects(parts: _Parts) -> None:
    ahead, again, after = parts.ahead.ops, parts.again.ops, parts.after.ops
    repeated = [op for op in ahead if (op in again or op in after) and not is_repeatable(op)]
    repeated += [op for op in again if op in after and not is_repeatable(op)]
    if repeated:
        raise problem(
            "effect-in-condition",
            "the op's effect would happen twice, since both the loop's predicate and its body need it",
            repeated,
            "move the effect into the loop's body",
        )


def _replace(loop: Loop, parts: _Parts, island: IslandOp, block: Block) -> None:
    """Replaces the loop's exits by the results of the `tf.While`, and erases the frame's ops."""
    results = dict(zip((variable.value for variable in loop.variables), island.results, strict=False))

    def outside(value: Value) -> Value:
        value = loop.stands_for(value)
        if isinstance(value.owner, EnterOp):
            return value.owner.data
        return results.get(value, value)

    def is_fetched(use: Use) -> bool:
        return isinstance(use.operation, FetchOp) and use.operation.parent is block  # shared by bodies

    for op in parts.after.ops:
        kept = [value for value in op.operands if value.type != CONTROL or value.owner in parts.after.ops]
        op.set_operands([*kept, island.control] if len(kept) < len(op.operands) else kept)
        replace_inputs(op, outside)
    for op in loop.frame.ops:
        if isinstance(op, ExitOp):
            op.output.replace_all_uses_with(outside(op.data))
            op.control.replace_all_uses_with(island.control)
    for control in filter(None, map(control_result, loop.frame.ops)):
        control.replace_uses_with_if(island.control, is_fetched)
    moved = [op for op in parts.after.ops if op.parent is block]
    _erase([op for op in loop.frame.ops if op.parent is block and op not in parts.after.ops], loop.frame)
    for op in (island, *moved):
        loop.frames.put(op, loop.frame.parent)


def _erase(ops: Sequence[Operation], frame: LoopFrame) -> None:
    """Erases the remaining ops of a frame, which form a cycle."""
    for op in ops:
        op.detach()
        op.drop_all_references()
    for op in ops:
        if any(result.first_use is not None for result in op.results):
            raise problem(
                "mismatched-frames",
                f"a value of the loop {frame.name!r} is used outside of it",
                [op],
                "a value comes out of a loop through Exit",
            )
        op.erase()
