"""Graphs of `tf_executor`: the run-time state of frames and their iterations, and the run of a graph."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tfconvert.converter.executor import control_flow
from tfconvert.converter.executor.tasks import Machine, MaybeDead, Task, Values, bad, is_true
from tfconvert.ops.call import Array, Results
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import tf, tf_executor
from tfconvert.schema.dialects.tf_executor import CONTROL, TOKEN
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


@dataclass(slots=True, eq=False)
class Iteration:
    """One iteration of a frame."""

    frame: Frame  # The frame.
    number: int  # Its number, from 0.
    # Number of edges that a node still waits for (of a Merge: controls); all if absent.
    pending: dict[int, int] = field(default_factory=dict)
    # The values that have arrived, by node and slot.
    inputs: dict[int, dict[int, MaybeDead]] = field(default_factory=dict)
    dead: Counter[int] = field(default_factory=Counter)  # Number of dead values that have arrived at a node.
    merged: set[int] = field(default_factory=set)  # The Merges that have a live value, or can't get one any more.
    outstanding: int = 0  # Number of ready nodes and opened frames that have not finished.
    # Frames that were entered from here and have not finished, by name.
    children: dict[str, Frame] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether it is idle, and no more values can arrive from the previous iteration or from outside."""
        if self.outstanding:
            return False
        return self.number - 1 not in self.frame.iterations if self.number else not self.frame.awaited


@dataclass(slots=True, eq=False)
class Frame:
    """A running loop, or the graph itself."""

    name: str  # The frame's name, empty for the graph itself.
    parent: Iteration | None  # The iteration that contains it; `None` for the graph itself.
    awaited: int  # Number of Enters that have not run yet.
    parallel: int = 1  # Maximum number of active iterations.
    iterations: dict[int, Iteration] = field(default_factory=dict)  # Those that have not finished, by number.
    newest: int = -1  # The number of the newest iteration.
    invariants: list[tuple[int, MaybeDead]] = field(default_factory=list)  # Constant Enters with their values.
    # Sources and their values for the next iteration, until it begins.
    next_values: list[tuple[int, MaybeDead]] = field(default_factory=list)
    dead_exits: list[int] = field(default_factory=list)  # Exits without a live value in the newest iteration.

    @property
    def is_done(self) -> bool:
        """Whether no iteration is active and none can begin."""
        return not (self.iterations or self.awaited or self.next_values)

    @property
    def may_begin(self) -> bool:
        """Whether the next iteration has values and is within the limit."""
        return bool(self.next_values) and len(self.iterations) < self.parallel

    def begin(self) -> Iteration:
        """Returns a new iteration, which becomes the newest."""
        self.newest += 1
        self.dead_exits = []
        self.iterations[self.newest] = Iteration(self, self.newest)
        return self.iterations[self.newest]


def frames_in(iteration: Iteration) -> Iterator[Frame]:
    """Yields the unfinished frames inside an iteration, outer ones first."""
    waiting = list(iteration.children.values())
    for frame in waiting:
        yield frame
        for each in frame.iterations.values():
            waiting += each.children.values()


# Default of the maximum number of active iterations.
_PARALLEL = 10


@dataclass(slots=True)
class _Node:
    """An op of a graph, and its consumers."""

    op: Operation  # The op.
    inputs: tuple[Value, ...]  # The value of each slot: data operands, or values that an island's body uses.
    edges: int = 0  # Number of slots and controls that come from the graph itself.
    controls: int = 0  # Number of them that are controls.
    # For each result, the nodes and slots that use it.
    consumers: list[list[tuple[int, int]]] = field(default_factory=list)
    controlled: list[int] = field(default_factory=list)  # The nodes that its control leads to.
    target: int = -1  # The Source to which a Sink forwards its value.


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph, prepared for any number of runs."""

    op: tf_executor.GraphOp  # The graph.
    nodes: Sequence[_Node]  # Its ops in program order, the fetch last.
    enters: Counter[str]  # Number of Enters of each frame.
    outer: Sequence[tuple[int, int]]  # Slots of Merges and of the fetch with values from outside the graph.

    @classmethod
    def of(cls, op: tf_executor.GraphOp, captures: control_flow.Captures) -> Graph:
        """Returns the graph of an op.

        Args:
            op: The op.
            captures: The known captures of islands; updated.
        """
        nodes = [_Node(inner, _inputs(inner, captures)) for inner in op.body.ops]
        places: dict[Value, tuple[int, int]] = {}
        for index, node in enumerate(nodes):
            results = _data(node.op.results)
            node.consumers = [[] for _ in results]
            places.update((result, (index, at)) for at, result in enumerate(node.op.results))
        outer = []
        for index, node in enumerate(nodes):
            for slot, value in enumerate(node.inputs):
                if (place := places.get(value)) is not None:
                    nodes[place[0]].consumers[place[1]].append((index, slot))
                    node.edges += 1
                elif isinstance(node.op, tf_executor.MergeOp | tf_executor.FetchOp):
                    outer.append((index, slot))
            for operand in node.op.operands:
                if operand.type == CONTROL:
                    nodes[places[operand][0]].controlled.append(index)
                    node.edges += 1
                    node.controls += 1
                elif operand.type == TOKEN:
                    node.target = places[operand][0]
        _tie_transfers(nodes)
        enters = Counter(_frame_name(node.op) for node in nodes if isinstance(node.op, tf_executor.EnterOp))
        return cls(op, nodes, enters, outer)


class GraphRun:
    """One run of a graph.

    Args:
        graph: The graph.
        machine: Runs the bodies of its islands.
        values: The values from outside that are visible to the graph.
    """

    def __init__(self, graph: Graph, machine: Machine, values: Values) -> None:
        self._nodes = graph.nodes
        self._graph = graph
        self._machine = machine
        self._values = values
        self._ready: list[tuple[int, int, Iteration, bool]] = []
        self._turn = 0

    def run(self) -> Task:
        """Returns the task that runs the graph and returns the fetched values."""
        root = Frame("", None, 0).begin()
        for index, node in enumerate(self._nodes[:-1]):
            if not node.edges and not isinstance(node.op, tf_executor.NextIterationSourceOp | tf_executor.MergeOp):
                self._make_ready(root, index, dead=False)
        for index, slot in self._graph.outer:
            self._deliver(root, index, slot, self._values[self._nodes[index].inputs[slot]])
        while self._ready or self._overtake(root):
            index, _, now, dead = heapq.heappop(self._ready)
            arrived = now.inputs.pop(index, {})
            node = self._nodes[index]
            outputs: Sequence[MaybeDead]
            if dead:
                outputs = (None,) * len(node.consumers)
            elif isinstance(node.op, tf_executor.IslandOp):
                outputs = yield self._machine.run_block(node.op.body, self._seen(node, arrived))
            else:
                seen = self._seen(node, arrived)
                outputs = _compute(node.op, [seen[value] for value in node.inputs if value in seen], arrived)
            if self._machine.observer is not None:
                self._machine.observer(node.op, None if dead else outputs[: len(node.op.results)])
            self._propagate(now, index, outputs, dead)
            now.outstanding -= 1
            self._settle(now)
        return self._fetched(root)

    def _seen(self, node: _Node, arrived: dict[int, MaybeDead]) -> Values:
        """Returns the values of a node's slots: those that have arrived, and those from outside the graph."""
        seen: Values = {}
        for slot, value in enumerate(node.inputs):
            known = arrived[slot] if slot in arrived else self._values.get(value)
            if known is not None:
                seen[value] = known
        return seen

    def _propagate(self, now: Iteration, index: int, outputs: Sequence[MaybeDead], dead: bool) -> None:
        """Forwards a node's results to the iteration of its consumers."""
        op = self._nodes[index].op
        if isinstance(op, tf_executor.EnterOp):
            child = self._child(now, op)
            child.awaited -= 1
            entered = list(child.iterations.values())
            if _is_constant(op):
                child.invariants.append((index, outputs[0]))
            for each in entered if _is_constant(op) else entered[:1]:
                self._spread(each, index, outputs, dead)
            self._settle(entered[0])
        elif isinstance(op, tf_executor.ExitOp):
            if not dead:
                self._spread(_outside(now, op), index, outputs, dead)
            elif now.number == now.frame.newest:
                now.frame.dead_exits.append(index)
        elif isinstance(op, tf_executor.NextIterationSinkOp):
            _outside(now, op)
            if not dead:
                self._forward(now, self._nodes[index].target, outputs[0])
        else:
            self._spread(now, index, outputs, dead)

    def _forward(self, now: Iteration, source: int, value: MaybeDead) -> None:
        """Forwards a Sink's value to its Source, in the next iteration."""
        following = now.frame.iterations.get(now.number + 1)
        if following is None:
            now.frame.next_values.append((source, value))
        else:
            self._arrive_again(following, source, value)

    def _arrive_again(self, now: Iteration, source: int, value: MaybeDead) -> None:
        if self._machine.observer is not None:
            self._machine.observer(self._nodes[source].op, (value,))
        self._spread(now, source, (value,), dead=False)

    def _spread(self, now: Iteration, index: int, outputs: Sequence[MaybeDead], dead: bool) -> None:
        node = self._nodes[index]
        entering = isinstance(node.op, tf_executor.EnterOp)
        for consumers, value in zip(node.consumers, outputs, strict=False):
            for target, slot in consumers:
                self._deliver(now, target, slot, value, entering)
        for target in node.controlled:
            self._deliver_control(now, target, dead)

    def _deliver(self, now: Iteration, index: int, slot: int, value: MaybeDead, entering: bool = False) -> None:
        """Forwards a value to a slot of a node, which may become ready."""
        node = self._nodes[index]
        if not isinstance(node.op, tf_executor.MergeOp):
            if value is not None:
                now.inputs.setdefault(index, {})[slot] = value
            self._arrive(now, index, value is None)
            return
        if index in now.merged:
            return  # Its results have been forwarded.
        if value is not None:
            now.merged.add(index)
            now.inputs[index] = {slot: value}
        else:
            now.dead[index] += 1
            # A dead value that enters a loop ends it: there is no value for a next iteration.
            ends_loop = entering and not now.pending.get(index, node.controls)
            if now.dead[index] < len(node.inputs) and not ends_loop:
                return
            now.merged.add(index)
        if not now.pending.get(index, node.controls):
            self._make_ready(now, index, dead=value is None)

    def _deliver_control(self, now: Iteration, index: int, dead: bool) -> None:
        """Notifies a node that a predecessor has run or will not run."""
        node = self._nodes[index]
        if not isinstance(node.op, tf_executor.MergeOp):
            self._arrive(now, index, dead)
            return
        now.pending[index] = now.pending.get(index, node.controls) - 1
        if not now.pending[index] and index in now.merged:
            self._make_ready(now, index, dead=index not in now.inputs)

    def _arrive(self, now: Iteration, index: int, dead: bool) -> None:
        if dead:
            now.dead[index] += 1
        left = now.pending[index] = now.pending.get(index, self._nodes[index].edges) - 1
        if not left and not isinstance(self._nodes[index].op, tf_executor.FetchOp):
            self._make_ready(now, index, bool(now.dead[index]))

    def _make_ready(self, now: Iteration, index: int, dead: bool) -> None:
        now.outstanding += 1
        self._turn += 1
        fires = isinstance(self._nodes[index].op, tf_executor.ControlTriggerOp)
        heapq.heappush(self._ready, (index, self._turn, now, dead and not fires))

    def _child(self, now: Iteration, op: Operation) -> Frame:
        """Returns the frame of an Enter; the first Enter opens it."""
        name = _frame_name(op)
        child = now.children.get(name)
        if child is None:
            parallel = _attribute(op, "parallel_iterations")
            child = now.children[name] = Frame(name, now, self._graph.enters[name])
            child.parallel = _PARALLEL if parallel is None else max(int(tf.python_value(parallel)), 1)
            child.begin()
            now.outstanding += 1
        return child

    def _settle(self, now: Iteration) -> None:
        """Ends a finished iteration, and begins the next one or ends the frame; then checks the outer ones."""
        while now.is_done:
            frame = now.frame
            del frame.iterations[now.number]
            following = frame.iterations.get(now.number + 1)
            if following is None and frame.may_begin:
                following = self._begin(frame)
            if following is not None:
                now = following
                continue
            if frame.parent is None or not frame.is_done:
                return
            for index in frame.dead_exits:
                self._spread(frame.parent, index, (None,), dead=True)
            del frame.parent.children[frame.name]
            frame.parent.outstanding -= 1
            now = frame.parent

    def _overtake(self, root: Iteration) -> bool:
        """Begins an iteration before the previous one has finished; returns whether there was one to begin.

        Called when no node is ready. The older iteration may wait indefinitely; if its values come, it continues.
        """
        for frame in frames_in(root):
            if frame.may_begin:
                self._settle(self._begin(frame))
                return True
        return False

    def _begin(self, frame: Frame) -> Iteration:
        next_values, frame.next_values = frame.next_values, []
        now = frame.begin()
        self._machine.deadline.iterate()
        limit = self._machine.max_iterations
        if limit is not None and now.number > limit:
            raise control_flow.endless(self._nodes[next_values[0][0]].op, limit)
        for source, value in next_values:
            self._arrive_again(now, source, value)
        for index, value in frame.invariants:
            self._spread(now, index, (value,), dead=value is None)
        return now

    def _fetched(self, root: Iteration) -> Results:
        """Returns the operands of the fetch."""
        fetch = self._nodes[-1]
        arrived = root.inputs.get(len(self._nodes) - 1, {})
        missing = [slot for slot in range(len(fetch.inputs)) if slot not in arrived]
        if missing:
            problems: list[Diagnostic] = []
            for slot in missing:
                owner = fetch.inputs[slot].owner
                what = f"result {slot} of the graph is dead: the node that computes it does not run for these inputs"
                problems += bad(owner if isinstance(owner, Operation) else fetch.op, what, "dead-fetch").diagnostics
            raise ConversionError(problems)
        return tuple(value for _, value in sorted(arrived.items()) if value is not None)


def _compute(op: Operation, inputs: Sequence[Array], arrived: Mapping[int, MaybeDead]) -> tuple[MaybeDead, ...]:
    """Returns the results of a live executor op that isn't an island."""
    if isinstance(op, tf_executor.MergeOp):
        ((slot, value),) = arrived.items()
        return value, np.array(slot, np.int32)
    if isinstance(op, tf_executor.SwitchOp):
        return (None, inputs[0]) if is_true(inputs[1]) else (inputs[0], None)
    if isinstance(op, tf_executor.SwitchNOp):
        count = len(_data(op.results))
        index = int(np.reshape(inputs[1], -1)[0])
        taken = index if 0 <= index < count else count - 1
        return tuple(inputs[0] if at == taken else None for at in range(count))
    return () if isinstance(op, tf_executor.ControlTriggerOp) else (inputs[0],)


def _inputs(op: Operation, captures: control_flow.Captures) -> tuple[Value, ...]:
    """Returns the values of an op's slots: its data operands, or the values that its body uses."""
    if isinstance(op, tf_executor.IslandOp):
        return control_flow.captures(op, captures)
    return tuple(_data(op.operands))


def _data(values: Sequence[Value]) -> list[Value]:
    return [value for value in values if value.type not in (CONTROL, TOKEN)]


def _tie_transfers(nodes: Sequence[_Node]) -> None:
    """Makes each Send an input of its Recv."""
    sends = {_text(node.op, "tensor_name"): node for node in nodes if isinstance(node.op, tf_executor.SendOp)}
    for index, node in enumerate(nodes):
        if isinstance(node.op, tf_executor.RecvOp):
            send = sends.get(_text(node.op, "tensor_name"))
            if send is None:
                raise bad(node.op, "nothing in the graph sends what the op receives", "missing-send")
            node.edges += 1
            node.inputs = send.inputs[:1]
            send.consumers = [[*(send.consumers[0] if send.consumers else []), (index, 0)]]


def _outside(now: Iteration, op: Operation) -> Iteration:
    """Returns the iteration that contains a frame."""
    if now.frame.parent is None:
        raise bad(op, "the op stands in no loop: its value doesn't come from an Enter", "outside-frame")
    return now.frame.parent


def _attribute(op: Operation, name: str) -> Attribute | None:
    return op.properties.get(name, op.attributes.get(name))


def _text(op: Operation, name: str) -> str:
    attribute = _attribute(op, name)
    return "" if attribute is None else str(tf.python_value(attribute))


def _frame_name(op: Operation) -> str:
    return _text(op, "frame_name")


def _is_constant(op: Operation) -> bool:
    attribute = _attribute(op, "is_constant")
    return attribute is not None and bool(tf.python_value(attribute))
