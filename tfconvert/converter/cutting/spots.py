"""Where in a module the tensors are at which it is to be cut, and which of its exported functions has them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.cutting.names import TensorNames
from tfconvert.converter.ir.interface import interface_of
from tfconvert.importers.graph.entry_points import cut_name, tensor_hint
from tfconvert.importers.graph.node_graph import parse_graph_input
from tfconvert.schema.diagnostics import ConversionError, Diagnostic, error
from tfconvert.schema.dialects.cut import Cut, End
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.dialects.tf_saved_model import EXPORTED_NAMES, port_names
from tfconvert.schema.ir.attributes import ArrayAttr

# How many of the nodes of an ambiguous name the error shows.
_SHOWN = 4


class Spot(NamedTuple):
    """Where a tensor is: an argument or a result of a function, or the result of an op.

    Attributes:
        port: The number of the argument or result; -1 if it is neither.
        is_output: Whether the port is a result.
        place: Numbers of ops in their blocks: of the calls that lead to the op, outermost first, and its own.
        result: Which result of the op.
    """

    port: int = -1
    is_output: bool = False
    place: tuple[int, ...] = ()
    result: int = 0


class Spots(NamedTuple):
    """The function that has all tensors, and where in it.

    Attributes:
        function: Its symbol.
        inputs: Where the new inputs are.
        outputs: Where the new outputs are.
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
    """Returns the marked function that has all the tensors that its mark names, and where they are.

    Args:
        functions: The module's functions by name.
        marked: The marked ones with their marks.
        names: What looks up nodes.
        merged: Returns functions without those that compute the same as another one.

    Raises:
        ConversionError: None of them has all, or several have.
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
    """Returns the error about the tensors that no function has; where each is in one, about the one with most."""
    messages = [{each.message for each in found} for found in problems.values()]
    least = min(problems.values(), key=len)
    nowhere = [each for each in least if all(each.message in found for found in messages)]
    if nowhere or len(problems) == 1:
        return ConversionError(nowhere or least)
    keys = ", ".join(_label(functions[name]) for name in problems)
    return ConversionError(
        [
            Diagnostic(
                "unknown-tensor",
                f"no signature has all of these tensors; the signatures are {keys}",
                hint="a model has one signature once it is cut: name tensors of one of them",
            ),
            *least,
        ]
    )


def _label(function: FuncOp) -> str:
    keys = function.attributes.get(EXPORTED_NAMES)
    found = interface_of(function).keys if isinstance(keys, ArrayAttr) else ()
    return found[0] if found else function.sym_name


class _Lookup:
    """Looks up tensors in one function.

    Attributes:
        problems: Why some are not found.
    """

    def __init__(self, function: FuncOp, names: TensorNames) -> None:
        self._function, self._names = function, names
        self._ports = {side: port_names(function, side) for side in ("inputs", "outputs")}
        self.problems: list[Diagnostic] = []

    def spot(self, end: End, side: str) -> Spot:
        """Returns where a tensor is that is to be an input or an output; notes why it isn't found."""
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
