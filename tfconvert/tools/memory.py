"""The cost of running a model, as formulas of the sizes of its inputs: memory, operations, library calls.

The model is converted to StableHLO and to buffers. The figures are those of that program, in which each buffer lives
from right before the op that writes it to right after the last one that reads it, and dying ones are written over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfconvert import conversion
from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.interface import Interface, interface_of
from tfconvert.converter.process.interpreter import with_room
from tfconvert.converter.targets.stablehlo.buffers.cost import Cost, LibraryCall, cost_of
from tfconvert.converter.targets.stablehlo.passes.legalize_to_buffers import LegalizeToBuffers
from tfconvert.converter.targets.stablehlo.passes.lower_to_library_calls import LowerToLibraryCalls
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.func import FuncOp, defined_functions
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.dim import Dim
from tfconvert.settings.options import Options

MAX_ROWS = 8
"""The maximum number of places or library calls that the text lists."""


class Memory(NamedTuple):
    """The cost of a function.

    Attributes:
        function: Its name, that of the signature if there are several.
        inputs: The inputs, with their sizes as they are known.
        cost: The formulas.
    """

    function: str
    inputs: tuple[str, ...]
    cost: Cost

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data, in a stable order: numbers, or formulas as texts."""
        cost = self.cost
        return {
            "function": self.function,
            "inputs": list(self.inputs),
            "peak_bytes": _plain(cost.peak),
            "result_bytes": _plain(cost.results),
            "weight_bytes": cost.weights,
            "operations": _plain(cost.operations),
            "points": [
                {"bytes": _plain(point.bytes), "op": point.op, "location": point.location} for point in cost.points
            ],
            "library_calls": [
                {
                    "routine": call.routine,
                    "sizes": [[_plain(size) for size in each] for each in call.sizes],
                    "operations": _plain(call.operations),
                    "location": call.location,
                }
                for call in cost.library_calls
            ],
        }


def _plain(size: Dim) -> int | str:
    return size if isinstance(size, int) else str(size)


@with_room
def memory_of(source: Source, options: Options, shapes: Mapping[str, Sequence[int]]) -> list[Memory]:
    """Returns the cost of each of a model's functions.

    Args:
        source: The model.
        options: The settings of the conversion, whose target is StableHLO.
        shapes: Shapes of inputs, by their names, for which numbers are wanted; -1 leaves a size as it is.
    """
    modules: list[ModuleOp] = []
    conversion.run(source, conversion.checked(options), on_import=modules.append)
    (module,) = modules
    public = [each for each in defined_functions(module).values() if not symbol_table.is_private(each)]
    interfaces = [_interface(each) for each in public]
    LegalizeToBuffers().apply(module)
    LowerToLibraryCalls().apply(module)
    _check(shapes, interfaces)
    found = []
    for each in interfaces:
        names = [tensor.name for tensor in each.inputs]
        sizes = {
            f"{name}.{axis}": size for name in names for axis, size in enumerate(shapes.get(name, ())) if size >= 0
        }
        cost = cost_of(module, each.function, names).at(sizes)
        inputs = tuple(str(tensor) for tensor in each.inputs)
        found.append(Memory(each.function, inputs, cost))
    return found


def _interface(function: FuncOp) -> Interface:
    """Returns a function's interface; inputs without a name have that of the argument in the text."""
    found = interface_of(function)
    inputs = [
        tensor._replace(name=argument.name_hint or tensor.name) if tensor.name == f"input_{index}" else tensor
        for index, (tensor, argument) in enumerate(zip(found.inputs, function.args, strict=True))
    ]
    return found._replace(inputs=tuple(inputs))


def _check(shapes: Mapping[str, Sequence[int]], interfaces: Sequence[Interface]) -> None:
    known = {tensor.name: tensor.shape for each in interfaces for tensor in each.inputs}
    for name, shape in shapes.items():
        if name not in known:
            raise error("wrong-option", f"the model has no input {name!r}", hint=f"it has {', '.join(known)}")
        own = [-1 if dim is None else dim for dim in known[name] or ()]
        fits = len(own) == len(shape) and all(-1 in pair or pair[0] == pair[1] for pair in zip(own, shape, strict=True))
        if not fits:
            dims = ",".join("?" if dim < 0 else str(dim) for dim in own)
            raise error("wrong-option", f"input {name!r} has the shape {dims}, so it can't have {list(shape)}")


def to_text(source: str, found: Sequence[Memory], *, verbose: bool = False) -> str:
    """Returns the text for a terminal.

    Args:
        source: The model's name.
        found: What its functions take.
        verbose: Whether to list everything instead of the first few.
    """
    lines = []
    for memory in found:
        cost = memory.cost
        lines.append(f"{source}: {memory.function}({', '.join(memory.inputs)})")
        lines.append(f"  weights: {cost.weights} bytes")
        points = sorted(
            cost.points, key=lambda point: (-point.bytes if isinstance(point.bytes, int) else 0, str(point.bytes))
        )
        several = ", the maximum of" if len(points) > 1 else ""
        lines.append(f"  memory in addition to weights and inputs, in bytes{several}:")
        lines += _rows([f"{point.bytes}  at {point.op}{_at(point.location)}" for point in points], verbose)
        lines.append(f"  of which results: {cost.results} bytes")
        lines.append(f"  operations: {cost.operations}")
        if cost.library_calls:
            lines.append("  library calls:")
        lines += _rows([_call(call) for call in cost.library_calls], verbose)
    lines.append("These are the figures of a StableHLO program. For LiteRT, inspect without --memory shows the arena.")
    return "\n".join(lines)


def _at(location: str) -> str:
    return f", {location}" if location else ""


def _call(call: LibraryCall) -> str:
    shapes = ", ".join(f"[{', '.join(map(str, sizes))}]" for sizes in call.sizes)
    return f"{call.routine}({shapes})  {call.operations} operations{_at(call.location)}"


def _rows(rows: Sequence[str], verbose: bool) -> list[str]:
    shown = rows if verbose else rows[:MAX_ROWS]
    more = [f"    and {len(rows) - len(shown)} more (-v lists them)"] if len(shown) < len(rows) else []
    return [*(f"    {row}" for row in shown), *more]
