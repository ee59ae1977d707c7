"""Names of tensors in a module whose functions still stand: nodes, with or without the calls that lead to them.

A node `dense/MatMul` in a function that the node `StatefulPartitionedCall` calls is both `dense/MatMul` and
`StatefulPartitionedCall/dense/MatMul`, as TensorFlow names it in a graph in which all calls are inlined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tfconvert.converter.ir.symbol_table import names
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.call_interfaces import CALLS, callees
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.operation import Operation

# Nodes of one name beyond so many are not looked for: the name is ambiguous anyway.
_MAX_FOUND = 8


class Found(NamedTuple):
    """A node in a function, or in one that the function calls.

    Attributes:
        place: Numbers of ops in their blocks: of the calls that lead to the node, outermost first, and of its op.
        nodes: The names of these calls, and of the node.
        op: The node's op.
    """

    place: tuple[int, ...]
    nodes: tuple[str, ...]
    op: Operation

    @property
    def path(self) -> str:
        """The whole name."""
        return "/".join(self.nodes)


class _Body:
    """The ops of a function that have names.

    Attributes:
        ops: The number and op of each node.
        calls: Number, node and callee of each call.
        others: The ops that run functions otherwise.
    """

    __slots__ = ("calls", "ops", "others")

    def __init__(self, function: FuncOp) -> None:
        self.ops: dict[str, tuple[int, Operation]] = {}
        self.calls: list[tuple[int, str, str]] = []
        self.others: list[Operation] = []
        for number, op in enumerate(function.body.block.ops):
            node = node_of(op.location)
            if node and op.results:
                self.ops[node] = (number, op)
            if op.name in CALLS:
                self.calls += [(number, node, callee) for callee in callees(op)]
            elif names(op):
                self.others.append(op)


class TensorNames:
    """Looks up nodes by name.

    Args:
        functions: The module's functions by name.
    """

    def __init__(self, functions: Mapping[str, FuncOp]) -> None:
        self._functions = functions
        self._bodies: dict[str, _Body] = {}
        self._orders: dict[str, list[str]] = {}

    def find(self, function: str, name: str) -> list[Found]:
        """Returns the nodes of a name; only the one whose whole name it is, if there is such a node.

        Args:
            function: The function in which to look, and in those that it calls.
            name: The node's name, with any number of the innermost calls that lead to it.
        """
        found: dict[str, list[Found]] = {}
        for each in self._called(function):
            own = list(self._from(each, name))
            if each == function and own:
                return own
            for number, node, callee in self._body(each).calls:
                own += [Found((number, *one.place), (node, *one.nodes), one.op) for one in found.get(callee, ())]
            found[each] = own[:_MAX_FOUND]
        return found[function]

    def shortest(self, function: str, nodes: tuple[str, ...]) -> str:
        """Returns the shortest name that means a node and no other.

        Args:
            function: The function from which the node is reached.
            nodes: The names of the calls that lead to it, as far as they are known, and of the node.
        """
        for count in range(1, len(nodes)):
            name = "/".join(nodes[-count:])
            found = self.find(function, name)
            if len(found) == 1 and found[0].nodes[-count:] == nodes[-count:]:
                return name
        return "/".join(nodes)

    def all(self, function: str) -> list[str]:
        """Returns the names of all tensors that can be named from a function, without calls; each once."""
        return list(
            dict.fromkeys(
                node
                for each in self._called(function)
                for node, (_, op) in self._body(each).ops.items()
                if not isinstance(types.element_of(op.results[0].type), types.ResourceType)
            )
        )

    def around(self, function: str, name: str) -> Operation | None:
        """Returns the loop or conditional that has a node of a name in one of its functions; `None` if none has."""
        for each in self._called(function):
            for op in self._body(each).others:
                if self._holds(op, name):
                    return op
        return None

    def _holds(self, op: Operation, name: str) -> bool:
        pending, seen = [callee for callee in names(op) if callee in self._functions], set[str]()
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            body = self._body(current)
            if any(name == node or name.endswith(f"/{node}") or node.endswith(f"/{name}") for node in body.ops):
                return True
            pending += [callee for _, _, callee in body.calls if callee in self._functions]
            pending += [callee for other in body.others for callee in names(other) if callee in self._functions]
        return False

    def _from(self, function: str, name: str) -> Iterator[Found]:
        """Yields the node whose name begins in a function: with a node of its own, or a call of its own."""
        pending: list[tuple[str, str, tuple[int, ...], tuple[str, ...]]] = [(function, name, (), ())]
        while pending:
            current, rest, place, nodes = pending.pop()
            body = self._body(current)
            if rest in body.ops:
                number, op = body.ops[rest]
                yield Found((*place, number), (*nodes, rest), op)
            for number, node, callee in body.calls:
                if node and rest.startswith(f"{node}/") and callee in self._functions:
                    pending.append((callee, rest[len(node) + 1 :], (*place, number), (*nodes, node)))

    def _body(self, name: str) -> _Body:
        if name not in self._bodies:
            self._bodies[name] = _Body(self._functions[name])
        return self._bodies[name]

    def _called(self, function: str) -> list[str]:
        """Returns a function and those that it calls, directly or not, each after those that it calls itself."""
        if function in self._orders:
            return self._orders[function]
        order: dict[str, None] = {}
        entered: set[str] = set()
        stack = [(function, False)]
        while stack:
            name, is_ready = stack.pop()
            if is_ready:
                order[name] = None
            elif name not in entered:
                entered.add(name)
                stack.append((name, True))
                stack += [
                    (callee, False)
                    for _, _, callee in reversed(self._body(name).calls)
                    if callee in self._functions and callee not in entered
                ]
        self._orders[function] = list(order)
        return self._orders[function]
