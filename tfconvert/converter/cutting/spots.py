"""Names of tensors as users write them, and the tensors that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfconvert.converter.ir.interface import interface_of
from tfconvert.converter.ir.symbol_table import names
from tfconvert.importers.graph.entry_points import cut_name, tensor_hint
from tfconvert.importers.graph.node_graph import parse_graph_input
from tfconvert.schema.diagnostics import ConversionError, Diagnostic, error
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.call_interfaces import CALLS, callees
from tfconvert.schema.dialects.cut import Cut, End
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.dialects.tf_saved_model import EXPORTED_NAMES, port_names
from tfconvert.schema.ir.attributes import ArrayAttr
from tfconvert.schema.ir.operation import Operation

# Maximum number of nodes to find for one name; it is ambiguous then.
_MAX_FOUND = 8


@dataclass(frozen=True, slots=True)
class FoundTensor:
    """A node in a function, or in one that the function calls.

    Attributes:
        place: Indices of ops in their blocks: of the calls that lead to the node, outermost first, and of its op.
        nodes: The names of these calls, and of the node.
        op: The node's op.
    """

    place: tuple[int, ...]
    nodes: tuple[str, ...]
    op: Operation

    @property
    def path(self) -> str:
        return "/".join(self.nodes)


class _Body:
    """The ops of a function that have names.

    Attributes:
        ops: The number and op of each node.
        calls: Number, node and callee of each call.
        others: Other ops that run functions.
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

    def find(self, function: str, name: str) -> list[FoundTensor]:
        """Returns the nodes with a name; a node whose full name matches is the only result.

        Args:
            function: The function to search, with its callees.
            name: The node's name, with any number of the innermost calls that lead to it.
        """
        found: dict[str, list[FoundTensor]] = {}
        for each in self._called(function):
            own = list(self._from(each, name))
            if each == function and own:
                return own
            for number, node, callee in self._body(each).calls:
                own += [FoundTensor((number, *one.place), (node, *one.nodes), one.op) for one in found.get(callee, ())]
            found[each] = own[:_MAX_FOUND]
        return found[function]

    def shortest(self, function: str, nodes: tuple[str, ...]) -> str:
        """Returns the shortest unique name of a node.

        Args:
            function: The function from which the node is reached.
            nodes: The names of the known calls that lead to it, and of the node.
        """
        for count in range(1, len(nodes)):
            name = "/".join(nodes[-count:])
            found = self.find(function, name)
            if len(found) == 1 and found[0].nodes[-count:] == nodes[-count:]:
                return name
        return "/".join(nodes)

    def all(self, function: str) -> list[str]:
        """Returns the names, without calls, of all tensors of a function and its callees."""
        return list(
            dict.fromkeys(
                node
                for each in self._called(function)
                for node, (_, op) in self._body(each).ops.items()
                if not isinstance(op.results[0].element, types.ResourceType)
            )
        )

    def around(self, function: str, name: str) -> Operation | None:
        """Returns the loop or conditional with a node of this name in one of its functions, or `None`."""
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

    def _from(self, function: str, name: str) -> Iterator[FoundTensor]:
        """Yields the node whose name begins with a node or call of a function."""
        pending: list[tuple[str, str, tuple[int, ...], tuple[str, ...]]] = [(function, name, (), ())]
        while pending:
            current, rest, place, nodes = pending.pop()
            body = self._body(current)
            if rest in body.ops:
                number, op = body.ops[rest]
                yield FoundTensor((*place, number), (*nodes, rest), op)
            for number, node, callee in body.calls:
                if node and rest.startswith(f"{node}/") and callee in self._functions:
                    pending.append((callee, rest[len(node) + 1 :], (*place, number), (*nodes, node)))

    def _body(self, name: str) -> _Body:
        if name not in self._bodies:
            self._bodies[name] = _Body(self._functions[name])
        return self._bodies[name]

    def _called(self, function: str) -> list[str]:
        """Returns a function and its transitive callees, callees first."""
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


# Maximum number of nodes that the error of an ambiguous name shows.
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Spot:
    """The position of a tensor: an argument or a result of a function, or the result of an op.

    Attributes:
        port: The index of the argument or result, or -1.
        is_output: Whether the port is a result.
        place: Indices of ops in their blocks: of the calls that lead to the op, outermost first, and of the op.
        result: The index of the op's result.
    """

    port: int = -1
    is_output: bool = False
    place: tuple[int, ...] = ()
    result: int = 0


@dataclass(frozen=True, slots=True)
class Spots:
    """The function with all tensors, and their positions.

    Attributes:
        function: Its symbol.
        inputs: The positions of the new inputs.
        outputs: The positions of the new outputs.
        others: The symbols of the other marked functions.
    """

    function: str
    inputs: Sequence[Spot]
    outputs: Sequence[Spot]
    others: Sequence[str]


def chosen(
    functions: Mapping[str, FuncOp],
    marked: Mapping[str, Cut],
    names: TensorNames,
    merged: Callable[[Sequence[str]], Sequence[str]],
) -> Spots:
    """Returns the marked function with all tensors of its mark, and their positions.

    Args:
        functions: The module's functions by name.
        marked: The marked ones with their marks.
        names: The names of nodes.
        merged: Returns functions without duplicates.

    Raises:
        ConversionError: No function has all of them, or several have.
    """
    found: dict[str, tuple[list[Spot], list[Spot]]] = {}
    problems: dict[str, list[Diagnostic]] = {}
    for name, cut in marked.items():
        lookup = _Lookup(functions[name], names)
        sides = (
            [lookup.spot(end, "inputs") for end in cut.inputs or ()],
            [lookup.spot(end, "outputs") for end in cut.outputs or ()],
        )
        if lookup.problems:
            problems[name] = lookup.problems
        else:
            found[name] = sides
    if not found:
        raise _none_has_all(functions, problems)
    left = merged(list(found)) if len(found) > 1 else list(found)
    if len(left) > 1:
        keys = [_label(functions[name]) for name in left]
        raise error(
            "ambiguous-tensor",
            f"several signatures have these tensors: {', '.join(keys)}",
            hint=f'choose one: --signature {keys[0]} (signatures=["{keys[0]}"])',
        )
    (name,) = left
    inputs, outputs = found[name]
    return Spots(name, inputs, outputs, [other for other in marked if other != name])


def _none_has_all(functions: Mapping[str, FuncOp], problems: Mapping[str, Sequence[Diagnostic]]) -> ConversionError:
    """Returns the error about missing tensors, of the function with the fewest."""
    messages = [{each.message for each in found} for found in problems.values()]
    fewest = min(problems.values(), key=len)
    nowhere = [each for each in fewest if all(each.message in found for found in messages)]
    if nowhere or len(problems) == 1:
        return ConversionError(nowhere or fewest)
    keys = ", ".join(_label(functions[name]) for name in problems)
    return ConversionError(
        [
            Diagnostic(
                "unknown-tensor",
                f"no signature has all of these tensors; the signatures are {keys}",
                hint="a cut model has only one signature: name tensors of one of them",
            ),
            *fewest,
        ]
    )


def _label(function: FuncOp) -> str:
    keys = function.attributes.get(EXPORTED_NAMES)
    found = interface_of(function).keys if isinstance(keys, ArrayAttr) else ()
    return found[0] if found else function.sym_name


class _Lookup:
    """Looks up tensors in one function.

    Attributes:
        problems: Why tensors are not found.
    """

    def __init__(self, function: FuncOp, names: TensorNames) -> None:
        self._function, self._names = function, names
        self._ports = {side: port_names(function, side) for side in ("inputs", "outputs")}
        self.problems: list[Diagnostic] = []

    def spot(self, end: End, side: str) -> Spot:
        """Returns the position of a tensor that becomes an input or output; records why it isn't found."""
        tensor = end.tensor
        return self._port(tensor, side) or self._node(tensor) or self._port(cut_name(tensor), side) or self._no(tensor)

    def _port(self, name: str, side: str) -> Spot | None:
        for each in (side, *(other for other in self._ports if other != side)):
            if name in self._ports[each]:
                return Spot(self._ports[each].index(name), is_output=each == "outputs")
        return None

    def _node(self, text: str) -> Spot | None:
        tensor = parse_graph_input(text)
        symbol = self._function.sym_name
        found = self._names.find(symbol, tensor.node)
        if not found:
            return None
        first = found[0]
        if len(found) > 1:
            shown = [self._names.shortest(symbol, each.nodes) for each in found]
            more = ", ..." if len(shown) > _SHOWN else ""
            self._note(
                "ambiguous-tensor",
                f"{len(found)} nodes are called {tensor.node!r}",
                f"say which: {', '.join(shown[:_SHOWN])}{more}",
            )
        elif tensor.position >= len(first.op.results):
            self._note(
                "missing-output",
                f"the node {tensor.node!r} has no output {tensor.position}",
                f"it has {len(first.op.results)}; the first one is {tensor.node}",
            )
        return Spot(place=first.place, result=tensor.position)

    def _no(self, text: str) -> Spot:
        symbol, node = self._function.sym_name, parse_graph_input(text).node
        around = self._names.around(symbol, node)
        if around is not None:
            what = f"{around.name}, node {node_of(around.location)!r}"
            self._note(
                "uncuttable-tensor",
                f"the model can't be cut at {text!r}, which is inside of {what}",
                "cut before or behind it",
            )
        else:
            known = [*self._names.all(symbol), *self._ports["inputs"]]
            self._note(
                "unknown-tensor", f"the model has no tensor {text!r}", tensor_hint(node, known, self._ports["outputs"])
            )
        return Spot()

    def _note(self, code: str, message: str, hint: str) -> None:
        self.problems.append(Diagnostic(code, message, hint=hint))
