"""Which `Merge`s become results of one `tf.If`.

Merges that end the same branches under the same condition can belong together, unless one needs the other: those are
different conditionals by one predicate. Merges whose branches share ops must, for an op with an effect runs once. So
Merges that share ops are a cluster, and clusters of the same level, the number of clusters by that predicate
that each is behind, are a group.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tfconvert.converter.functionalize.conditions import Condition, Conditions, Join, Predicate
from tfconvert.converter.functionalize.slices import inputs_of
from tfconvert.schema.dialects.tf_executor import MergeOp
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation

_Key = tuple[Predicate, frozenset[tuple[Predicate, int]]]
# An op, or the representative of several Merges.
_Node = Hashable

_NOTHING: Mapping[_Key, int] = {}


def key_of(predicate: Predicate, condition: Condition) -> _Key:
    """Returns what the Merges of one conditional have in common."""
    return predicate, frozenset(condition.items())


@dataclass(eq=False, slots=True)
class Group:
    """The Merges, and the effects that no Merge needs, of one conditional.

    Attributes:
        predicate: What decides.
        condition: Under which condition the conditional itself runs.
        joins: The Merges.
        loose: Those effects, by branch.
    """

    predicate: Predicate
    condition: Condition
    joins: list[Join] = field(default_factory=list)
    loose: dict[int, list[Operation]] = field(default_factory=dict)


@dataclass(slots=True)
class Groups:
    """All conditionals of a graph.

    Attributes:
        by_depth: The groups by the number of predicates around them.
        levels: Of each op, how many conditionals by a predicate it is behind, for those predicates that have several.
        _groups: The groups by predicate and condition, and level or cluster.
    """

    by_depth: dict[int, list[Group]] = field(default_factory=dict)
    levels: dict[Operation, Mapping[_Key, int]] = field(default_factory=dict)
    _groups: dict[Hashable, Group] = field(default_factory=dict)

    def group(self, predicate: Predicate, condition: Condition, op: Operation) -> Group:
        """Returns an op's group for a predicate and condition, by its level; creates it if needed."""
        common = key_of(predicate, condition)
        return self._get((common, self.levels.get(op, _NOTHING).get(common, 0)), predicate, condition)

    def has(self, predicate: Predicate, condition: Condition, op: Operation) -> bool:
        """Returns whether `group` would return one that there is."""
        common = key_of(predicate, condition)
        return (common, self.levels.get(op, _NOTHING).get(common, 0)) in self._groups

    def _get(self, key: Hashable, predicate: Predicate, condition: Condition) -> Group:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(predicate, condition)
            self.by_depth.setdefault(len(condition), []).append(group)
        return group

    def add(self, join: Join, key: Hashable) -> None:
        """Puts a join into the group of a key."""
        self._get(key, join.predicate, join.condition).joins.append(join)


def find_groups(block: Block, conditions: Conditions) -> Groups:
    """Returns the conditionals of a graph."""
    joins: dict[Operation, Join] = {join.merge: join for join in conditions.joins}
    keys = {merge: key_of(join.predicate, join.condition) for merge, join in joins.items()}
    count = Counter(keys.values())
    shared = {merge: key for merge, key in keys.items() if count[key] > 1}
    groups = Groups()
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
    """Returns one of the Merges for all those that share ops of their branches, and the clusters around each Merge.

    Inner Merges in different clusters must not become one op, which those clusters would then share.
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
    """Yields the ops of a Merge's branches; what precedes a visited op is not visited again."""
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
    """Returns how many clusters of each key precede each op; clusters don't depend on each other in a cycle."""
    edges = _Edges.of(ops, nodes)
    levels: dict[Operation, Mapping[_Key, int]] = {}
    behind: dict[_Node, Mapping[_Key, int]] = {}
    # A key is of no interest behind the last of its clusters; keeping it would make long graphs slow.
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
    """Splits those nodes that depend on each other in a cycle: one of two Merges, which the other needs.

    Args:
        ops: The graph's ops.
        nodes: What each Merge belongs to.
        finer: What each belongs to if those form a cycle; itself if absent.
    """
    circles = _Edges.of(ops, nodes).circles()
    for merge, node in nodes.items():
        if node in circles:
            nodes[merge] = finer.get(merge, merge)


@dataclass(frozen=True, slots=True)
class _Edges:
    """A graph of which some ops have become one node.

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
        """Returns the graph of some ops, where those that `nodes` names are part of a node."""
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
        """Returns the nodes, each after what it needs; those behind a cycle are left out."""
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
    """Returns those of some nodes that can come after what they need of the others, in such an order."""
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
