"""Conditions under which the ops of a graph run, and the groups of ops that become one conditional."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tfconvert.converter.functionalize.slices import control_result, controls_of, inputs_of, problem
from tfconvert.schema.dialects import tensor_data, tf
from tfconvert.schema.dialects.tf_executor import (
    CONTROL,
    ControlTriggerOp,
    EnterOp,
    FetchOp,
    IslandOp,
    MergeOp,
    SwitchNOp,
    SwitchOp,
)
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def root_of(value: Value) -> Value:
    """Returns a value's source, looking through `Identity`, `Switch` and `Enter`."""
    while True:
        owner = value.owner
        if not isinstance(owner, Operation) or value is owner.results[-1]:
            return value
        if isinstance(owner, IslandOp):
            wrapped = owner.wrapped
            if wrapped is None or wrapped.name != "tf.Identity":
                return value
            value = wrapped.operands[0]
        elif isinstance(owner, SwitchOp | EnterOp):
            value = owner.data
        else:
            return value


@dataclass(eq=False, slots=True)
class Predicate:
    """The predicate of `Switch`es.

    Attributes:
        value: The value; updated when an op replaces it.
        outputs: Number of outputs of the Switches. `_SwitchN`s with other numbers map the value differently.
    """

    value: Value
    outputs: int


Condition = Mapping[Predicate, int]
"""Predicate -> branch, for all predicates that decide whether an op runs."""

ALWAYS: Condition = {}

SWITCHES = (SwitchOp, SwitchNOp)
"""The ops that begin branches."""


@dataclass(frozen=True, slots=True)
class _Taken:
    """A `Merge`'s operand under a condition: the value, and its index or the inner Merge that yields it."""

    value: Value
    index: int | MergeOp


@dataclass(eq=False, slots=True)
class Join:
    """A `Merge` whose inputs are the branches of one predicate.

    Attributes:
        merge: The op; its operands are in the order of branches.
        predicate: The predicate.
        condition: The condition under which its value is alive.
        indices: By branch, the operand's index among the original inputs of the Merge, or the inner Merge that yields
            it.
    """

    merge: MergeOp
    predicate: Predicate
    condition: Condition
    indices: Sequence[int | MergeOp]


@dataclass(slots=True)
class Conditions:
    """The conditions of a graph.

    Attributes:
        of: Each op's condition, `None` if it never runs.
        joins: The Merges, in the graph's order.
        predicates: All of them, by value and number of outputs.
        by: The predicate of each Switch with an unknown predicate.
    """

    of: dict[Operation, Condition | None] = field(default_factory=dict)
    joins: list[Join] = field(default_factory=list)
    predicates: dict[tuple[Value, int], Predicate] = field(default_factory=dict)
    by: dict[Operation, Predicate] = field(default_factory=dict)
    _branches: dict[Value, Condition] = field(default_factory=dict)

    def of_value(self, value: Value) -> Condition | None:
        """Returns the condition under which a value is alive, `None` if it never is."""
        owner = value.owner
        if not isinstance(owner, Operation):
            return ALWAYS
        if isinstance(owner, SWITCHES) and value.type != CONTROL:
            return self._branches.get(value)
        return self.of.get(owner, ALWAYS)

    def of_inputs(self, op: Operation) -> Condition | None:
        """Returns the condition under which all inputs of an op are alive, `None` if they never are."""
        condition: Condition | None = ALWAYS
        for value in inputs_of(op):
            condition = both(condition, self.of_value(value))
        return condition

    def note_switch(self, switch: SwitchOp | SwitchNOp, condition: Condition) -> None:
        """Records the conditions of a Switch's outputs; if its predicate is known, its data replaces them."""
        outputs = switch.results[:-1]
        root = root_of(switch.operands[1])
        predicate = self.predicates.setdefault((root, len(outputs)), Predicate(root, len(outputs)))
        known = condition.get(predicate, _constant(predicate))
        if known is None:
            self.by[switch] = predicate
            self._branches.update((output, {**condition, predicate: at}) for at, output in enumerate(outputs))
        elif outputs[known].first_use is not None:
            outputs[known].replace_all_uses_with(self._data_of(switch, condition))

    def _data_of(self, switch: SwitchOp | SwitchNOp, condition: Condition) -> Value:
        """Returns a Switch's data, as alive as the Switch is."""
        data, controls = switch.data, controls_of(switch)
        if not controls and self.of_value(data) == condition:
            return data
        follow = IslandOp.wrap(
            tf.build("Identity", [data], [data.type], location=switch.location), controls, switch.location
        )
        _insert(self, follow, switch, condition)
        return follow.results[0]


def both(one: Condition | None, other: Condition | None) -> Condition | None:
    """Returns the conjunction of two conditions, or `None` if they contradict each other."""
    if one is None or other is None:
        return None
    if one is other or not other:
        return one
    if not one:
        return other
    if any(one.get(predicate, branch) != branch for predicate, branch in other.items()):
        return None
    return one if other.keys() <= one.keys() else {**one, **other}


def implies(one: Condition, other: Condition) -> bool:
    """Returns whether a condition implies another one."""
    return other.items() <= one.items()


def without(condition: Condition, predicate: Predicate) -> Condition:
    """Returns a condition without one of its predicates."""
    rest = {key: branch for key, branch in condition.items() if key is not predicate}
    return rest or ALWAYS


def find_conditions(block: Block) -> Conditions:
    """Returns the conditions of a graph's ops.

    Merges of more than two alternatives are split into nested ones. Merges with one live input are replaced by it, and
    Switches with a known predicate by their data.
    """
    conditions = Conditions()
    for op in list(block.ops):
        if isinstance(op, MergeOp):
            _merge(conditions, op)
        elif isinstance(op, ControlTriggerOp | FetchOp):
            conditions.of[op] = ALWAYS
        else:
            condition = conditions.of[op] = conditions.of_inputs(op)
            if isinstance(op, SWITCHES) and condition is not None:
                conditions.note_switch(op, condition)
    return conditions


def _insert(conditions: Conditions, op: Operation, before: Operation, condition: Condition | None) -> None:
    """Inserts a new op before another one."""
    assert before.parent is not None
    before.parent.insert_op_before(op, before)
    conditions.of[op] = condition


def _merge(conditions: Conditions, merge: MergeOp) -> None:
    alive = []
    for index, value in enumerate(merge.data_operands):
        condition = conditions.of_value(value)
        if condition is not None:
            alive.append((_Taken(value, index), condition))
    if not alive:
        conditions.of[merge] = None
    elif len(alive) == 1:
        conditions.of[merge] = alive[0][1]
        _forward(conditions, merge, alive[0][0])
    else:
        _decide(conditions, merge, alive)


# A Merge's operands with their conditions.
_Alternatives = dict[frozenset[tuple[Predicate, int]], tuple[_Taken, Condition]]


def _decide(conditions: Conditions, merge: MergeOp, alive: Sequence[tuple[_Taken, Condition]]) -> None:
    """Creates the joins of a Merge's operands, innermost first; the last is the Merge itself."""
    left: _Alternatives = {frozenset(condition.items()): (taken, condition) for taken, condition in alive}
    if len(left) < len(alive):
        raise _unstructured(merge, "several of its inputs are alive at once")
    while len(left) > 1:
        _, longest = max(left.values(), key=lambda alternative: len(alternative[1]))
        predicate, keys = _siblings(merge, left, longest)
        branches = [left.pop(key)[0] for key in keys]
        condition = without(longest, predicate)
        key = frozenset(condition.items())
        if key in left:
            raise _unstructured(merge, "several of its inputs are alive at once")
        joined = _joined(conditions, merge, branches, condition, is_last=not left)
        conditions.joins.append(Join(joined, predicate, condition, [taken.index for taken in branches]))
        left[key] = _Taken(joined.output, joined), condition


def _siblings(
    merge: MergeOp, left: _Alternatives, condition: Condition
) -> tuple[Predicate, list[frozenset[tuple[Predicate, int]]]]:
    """Returns a predicate with all of its branches, the innermost if possible, and their conditions."""
    key = frozenset(condition.items())
    for predicate in reversed(list(condition)):
        rest = key - {(predicate, condition[predicate])}
        keys = [rest | {(predicate, branch)} for branch in range(predicate.outputs)]
        if all(each in left for each in keys):
            return predicate, keys
    raise _unstructured(merge, "its inputs are not the branches of one predicate, all of them and nothing else")


def _joined(
    conditions: Conditions, merge: MergeOp, branches: Sequence[_Taken], condition: Condition, *, is_last: bool
) -> MergeOp:
    """Returns a Merge of some inputs of a Merge: the Merge itself, or a new one before it."""
    operands = [taken.value for taken in branches]
    if is_last:
        merge.set_operands([*operands, *controls_of(merge)])
        conditions.of[merge] = condition
        return merge
    types_ = [result.type for result in merge.results]
    inner = MergeOp.create(operands=operands, result_types=types_, location=merge.location)
    _insert(conditions, inner, merge, condition)
    return inner


def _unstructured(merge: MergeOp, why: str) -> Exception:
    inputs = [value.owner for value in merge.data_operands if isinstance(value.owner, Operation)]
    return problem(
        "unstructured-merge",
        f"the Merge can't become a conditional: {why}",
        [merge, *inputs],
        "every Merge must join the branches of one Switch predicate",
    )


def _forward(conditions: Conditions, merge: MergeOp, taken: _Taken) -> None:
    """Replaces a Merge with only one possible input."""
    value, owner, condition = taken.value, taken.value.owner, conditions.of[merge]
    control = control_result(owner) if isinstance(owner, Operation) else None
    controls = [each for each in controls_of(merge) if conditions.of_value(each) is not None]
    if controls or control is None or isinstance(owner, SWITCHES):
        # A Switch's control is alive on both sides; only ops behind an output are alive with it.
        follow = IslandOp.wrap(
            tf.build("Identity", [value], [value.type], location=merge.location), controls, merge.location
        )
        _insert(conditions, follow, merge, condition)
        value, control = follow.results
    if merge.value_index.first_use is not None:
        assert isinstance(taken.index, int)
        index = index_constant(taken.index, merge, [control])
        _insert(conditions, index, merge, condition)
        merge.value_index.replace_all_uses_with(index.results[0])
    merge.output.replace_all_uses_with(value)
    merge.control.replace_all_uses_with(control)


def index_constant(index: int, merge: MergeOp, controls: Sequence[Value]) -> IslandOp:
    """Returns an island with the index of a Merge's input."""
    value = tensor_data.of_array(np.array(index, np.int32))
    return IslandOp.wrap(tf.constant(value, merge.location), controls, merge.location)


def _constant(predicate: Predicate) -> int | None:
    """Returns the branch of a constant predicate."""
    if predicate.outputs == 1:
        return 0
    owner = predicate.value.owner
    wrapped = owner.wrapped if isinstance(owner, IslandOp) else None
    if wrapped is None or wrapped.name != "tf.Const":
        return None
    value = wrapped.properties["value"]
    if not tensor_data.is_constant(value) or value.shape != ():
        return None
    known = int(tensor_data.to_array(value))
    return known if 0 <= known < predicate.outputs else predicate.outputs - 1


_Key = tuple[Predicate, frozenset[tuple[Predicate, int]]]
# An op, or the representative of several Merges.
_Node = Hashable

_NOTHING: Mapping[_Key, int] = {}


def key_of(predicate: Predicate, condition: Condition) -> _Key:
    """Returns the key that the Merges of one conditional share."""
    return predicate, frozenset(condition.items())


@dataclass(eq=False, slots=True)
class ConditionalGroup:
    """The Merges of one conditional, and its effects that no Merge needs.

    Attributes:
        predicate: The predicate.
        condition: The condition under which the conditional itself runs.
        joins: The Merges.
        loose: Those effects, by branch.
    """

    predicate: Predicate
    condition: Condition
    joins: list[Join] = field(default_factory=list)
    loose: dict[int, list[Operation]] = field(default_factory=dict)


@dataclass(slots=True)
class ConditionalGroups:
    """All conditionals of a graph.

    Attributes:
        by_depth: The groups by the number of predicates around them.
        levels: For each op, the number of conditionals that precede it, by predicate with several conditionals.
        _groups: The groups by predicate and condition, and level or cluster.
    """

    by_depth: dict[int, list[ConditionalGroup]] = field(default_factory=dict)
    levels: dict[Operation, Mapping[_Key, int]] = field(default_factory=dict)
    _groups: dict[Hashable, ConditionalGroup] = field(default_factory=dict)

    def group(self, predicate: Predicate, condition: Condition, op: Operation) -> ConditionalGroup:
        """Returns an op's group for a predicate and condition, by its level; creates it if needed."""
        common = key_of(predicate, condition)
        return self._get((common, self.levels.get(op, _NOTHING).get(common, 0)), predicate, condition)

    def has(self, predicate: Predicate, condition: Condition, op: Operation) -> bool:
        """Returns whether the group that `group` returns exists already."""
        common = key_of(predicate, condition)
        return (common, self.levels.get(op, _NOTHING).get(common, 0)) in self._groups

    def _get(self, key: Hashable, predicate: Predicate, condition: Condition) -> ConditionalGroup:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = ConditionalGroup(predicate, condition)
            self.by_depth.setdefault(len(condition), []).append(group)
        return group

    def add(self, join: Join, key: Hashable) -> None:
        """Puts a join into the group of a key."""
        self._get(key, join.predicate, join.condition).joins.append(join)


def find_groups(block: Block, conditions: Conditions) -> ConditionalGroups:
    """Returns the conditionals of a graph."""
    joins: dict[Operation, Join] = {join.merge: join for join in conditions.joins}
    keys = {merge: key_of(join.predicate, join.condition) for merge, join in joins.items()}
    count = Counter(keys.values())
    shared = {merge: key for merge, key in keys.items() if count[key] > 1}
    groups = ConditionalGroups()
    nodes: dict[Operation, _Node] = {}
    if shared:
        ops = list(block.ops)
        clusters, outer = _clusters([joins[merge] for merge in shared], conditions)
        _split_circles(ops, clusters, {})
        groups.levels = _levels(ops, clusters, shared)
        first: dict[_Node, frozenset[Operation]] = {}
        for merge, key in shared.items():
            place = (key, groups.levels[merge].get(key, 0))
            within = outer.get(merge, frozenset())
            nodes[merge] = place if first.setdefault(place, within) == within else (place, within)
        _split_circles(ops, nodes, clusters)
    for merge, join in joins.items():
        groups.add(join, nodes.get(merge, (keys[merge], 0)))
    return groups


def _clusters(
    joins: Collection[Join], conditions: Conditions
) -> tuple[dict[Operation, _Node], dict[Operation, frozenset[Operation]]]:
    """Returns a representative of the Merges that share ops of their branches, and the clusters around each Merge.

    Inner Merges in different clusters must not become one op that both clusters share.
    """
    first: dict[Operation, Operation] = {}

    def root(merge: Operation) -> Operation:
        while merge in first:
            merge = first[merge]
        return merge

    seen: dict[_Key, dict[Operation, Operation]] = {}
    for join in joins:
        owner = seen.setdefault(key_of(join.predicate, join.condition), {})
        for op in _ops_of_branches(join, conditions, owner):
            one, other = root(owner.setdefault(op, join.merge)), root(join.merge)
            if one is not other:
                first[other] = one
    outer: dict[Operation, frozenset[Operation]] = {}
    for owner in seen.values():
        for op, merge in owner.items():
            if isinstance(op, MergeOp):
                outer[op] = outer.get(op, frozenset()) | {root(merge)}
    return {join.merge: root(join.merge) for join in joins}, outer


def _ops_of_branches(join: Join, conditions: Conditions, seen: Mapping[Operation, Operation]) -> Iterator[Operation]:
    """Yields the ops of a Merge's branches; predecessors of a visited op are not visited again."""
    pending: list[tuple[Operation, int]] = []
    for branch, value in enumerate(join.merge.operands[: join.predicate.outputs]):
        if isinstance(value.owner, Operation):
            pending.append((value.owner, branch))
    while pending:
        op, branch = pending.pop()
        condition = conditions.of.get(op)
        if condition is not None and condition.get(join.predicate) == branch:
            is_known = op in seen
            yield op
            if not is_known:
                pending += [(each.owner, branch) for each in inputs_of(op) if isinstance(each.owner, Operation)]


def _levels(
    ops: Sequence[Operation], nodes: Mapping[Operation, _Node], keys: Mapping[Operation, _Key]
) -> dict[Operation, Mapping[_Key, int]]:
    """Returns the number of clusters of each key that precede each op. Clusters have no cyclic dependencies."""
    edges = _Edges.of(ops, nodes)
    levels: dict[Operation, Mapping[_Key, int]] = {}
    behind: dict[_Node, Mapping[_Key, int]] = {}
    # Drop a key after its last cluster; keeping it would make long graphs slow.
    left = Counter({nodes[merge]: key for merge, key in keys.items()}.values())
    for node in edges.in_order():
        found = _NOTHING
        for needed in edges.needs[node]:
            found = _deepest(found, behind[needed])
        levels.update((op, found) for op in edges.members[node])
        key = keys.get(edges.members[node][0])
        if key is not None:
            left[key] -= 1
            found = {**{each: level for each, level in found.items() if left[each]}, key: found.get(key, 0) + 1}
        behind[node] = found
    return levels


def _deepest(one: Mapping[_Key, int], other: Mapping[_Key, int]) -> Mapping[_Key, int]:
    if one is other or not other:
        return one
    if not one:
        return other
    merged = {**other, **{key: max(level, other.get(key, 0)) for key, level in one.items()}}
    return one if merged == one else merged


def _split_circles(ops: Sequence[Operation], nodes: dict[Operation, _Node], finer: Mapping[Operation, _Node]) -> None:
    """Splits nodes that depend on each other in a cycle, such as a node of two Merges of which one needs the other.

    Args:
        ops: The graph's ops.
        nodes: The node of each Merge.
        finer: The node of each Merge if the nodes form a cycle; the Merge itself if absent.
    """
    circles = _Edges.of(ops, nodes).circles()
    for merge, node in nodes.items():
        if node in circles:
            nodes[merge] = finer.get(merge, merge)


@dataclass(frozen=True, slots=True)
class _Edges:
    """A graph in which some ops form one node.

    Attributes:
        members: The ops of each node.
        needs: The nodes that each node needs.
        users: The nodes that need it.
    """

    members: Mapping[_Node, Sequence[Operation]]
    needs: Mapping[_Node, Iterable[_Node]]
    users: Mapping[_Node, Iterable[_Node]]

    @classmethod
    def of(cls, ops: Sequence[Operation], nodes: Mapping[Operation, _Node]) -> _Edges:
        """Returns the graph of some ops; `nodes` maps ops to their nodes."""
        members: dict[_Node, list[Operation]] = {}
        for op in ops:
            members.setdefault(nodes.get(op, op), []).append(op)
        block = ops[0].parent
        needs: dict[_Node, dict[_Node, None]] = {node: {} for node in members}
        users: dict[_Node, dict[_Node, None]] = {node: {} for node in members}
        for node, parts in members.items():
            for op in parts:
                for value in inputs_of(op):
                    owner = value.owner
                    if isinstance(owner, Operation) and owner.parent is block:
                        needed = nodes.get(owner, owner)
                        needs[node][needed] = None
                        users[needed][node] = None
        return cls(members, needs, users)

    def in_order(self) -> list[_Node]:
        """Returns the nodes in topological order, without those behind a cycle."""
        return _sorted(self.members, self.needs, self.users)

    def circles(self) -> set[_Node]:
        """Returns the nodes in cycles, and between them."""
        stuck = dict.fromkeys(self.members)
        for needs, users in ((self.needs, self.users), (self.users, self.needs)):
            for node in _sorted(stuck, needs, users):
                del stuck[node]
        return set(stuck)


def _sorted(
    nodes: Iterable[_Node], needs: Mapping[_Node, Iterable[_Node]], users: Mapping[_Node, Iterable[_Node]]
) -> list[_Node]:
    """Returns nodes in topological order, without those that depend on a cycle."""
    inside = set(nodes)
    waiting = {node: sum(needed in inside for needed in needs[node]) for node in nodes}
    ready = deque(node for node, count in waiting.items() if not count)
    order = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for user in users[node]:
            if user in inside:
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)
    return order
