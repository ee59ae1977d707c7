"""Symbolic shapes through calls, branches and loops: which unknown dimensions are equal.

An unknown dimension is a symbol (`tfconvert.schema.dialects.dims`). A function's arguments have the symbols of its
operands. A loop's variables have the symbols of their initial values if the body returns them unchanged. Thus the batch
of an element that is written inside nested loops is recognized as the batch of an input.

A list has the shape of the tensor that it becomes. Elements of a new list have new symbols, which become equal to those
of the elements that are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfconvert.converter.control_flow.calls import Calls, FunctionCall
from tfconvert.converter.ir.constants import constant_int
from tfconvert.converter.ir.tasks import Task, drive
from tfconvert.converter.shapes.list_ops import FORWARDING, OPS, ListClass, changes_length
from tfconvert.ops.operands import Known, Operands
from tfconvert.ops.registry import infer_shapes, infer_values, shape_function
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.dims import UNKNOWN, dim_of_element
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# Loops that are nested more deeply are swept once, and every dimension that may change is widened.
_DEPTH = 4

_BROADCASTING = tuple(map(shape_function, ("AddV2", "SelectV2")))


@dataclass(frozen=True, slots=True)
class SymbolSource:
    """A value that has a dimension.

    Attributes:
        value: The value that has it.
        axis: Its axis; `None` for a scalar that is the number itself.
    """

    value: Value
    axis: int | None


class Symbols:
    """The symbolic shapes of a module's values.

    Args:
        calls: The module's calls.
        lists: The classes of its lists.
        supposes: Whether dimensions that a loop requires to be equal are assumed equal, even if it may never run.

    Attributes:
        known: The facts of each value.
        broadcasts: The dimensions that are broadcast to one, by its symbol.
    """

    __slots__ = (
        "_branches",
        "_calls",
        "_depth",
        "_equal",
        "_lists",
        "_met",
        "_sources",
        "_supposes",
        "broadcasts",
        "known",
    )

    def __init__(self, calls: Calls, lists: Mapping[Value, ListClass], *, supposes: bool = True) -> None:
        self.known = Known()
        self._calls = calls
        self._lists = lists
        self._equal: dict[int, int] = {}
        self._depth = 0
        self._supposes = supposes
        self._branches = 0
        self.broadcasts: dict[int, frozenset[int]] = {}
        self._met: dict[frozenset[int], int] = {}
        self._sources: dict[int, list[SymbolSource]] | None = None
        for function in calls.functions.values():
            block = function.body.block
            if block not in calls.to:
                for argument in block.args:
                    self._note(argument, argument.shape)
                drive(self._sweep(block))

    def find(self, dim: int) -> int:
        """Returns the known size of a dimension, or the symbol that represents all equal dimensions."""
        while (other := self._equal.get(dim)) is not None:
            dim = other
        return dim

    def equate(self, one: int, other: int) -> None:
        """Records that two dimensions are equal; a symbol is represented by the second one if possible."""
        one, other = self.find(one), self.find(other)
        if one != other and one < UNKNOWN:
            self._equal[one] = other
        elif one != other and other < UNKNOWN:
            self._equal[other] = one

    def shape(self, value: Value) -> Shape | None:
        """Returns a value's shape with symbols; a list has the shape of the tensor that it becomes."""
        shape = self.known.shapes.get(value)
        return None if shape is None else tuple(map(self.find, shape))

    def sources(self, symbol: int) -> Sequence[SymbolSource]:
        """Returns the values that have a symbol, in the module's order."""
        if self._sources is None:
            self._sources = {}
            for value, shape in self.known.shapes.items():
                for axis, dim in enumerate(shape or ()):
                    self._add(dim, SymbolSource(value, axis))
            for value, elements in self.known.partials.items():
                if len(elements) == 1 and self.known.shapes.get(value) == ():
                    self._add(elements[0], SymbolSource(value, None))
        return self._sources.get(symbol, ())

    def _add(self, dim: int, source: SymbolSource) -> None:
        found = self.find(dim)
        if found < UNKNOWN and self._sources is not None:
            self._sources.setdefault(found, []).append(source)

    def _note(self, value: Value, shape: Shape | None) -> None:
        """Records the known shape of a value; that of a list is merged with the shape of its class."""
        listed = self._lists.get(value)
        if listed is not None and listed.shape is not None:
            own = (listed.length, *listed.shape)
            if shape is None or len(shape) != len(own):
                shape = own
            shape = tuple(there if here < 0 else here for here, there in zip(own, shape, strict=True))
        self.known.note(value, shape)

    def _equate(self, one: Shape | None, other: Shape | None) -> None:
        for first, second in zip(one or (), other or (), strict=False):
            self.equate(first, second)

    def _join(self, values: Sequence[Value], declared: Shape | None) -> Shape | None:
        """Returns the shape of a value that is one of several and has a declared shape."""
        return self._joined([self.known.shapes.get(value) for value in values], declared)

    def _joined(self, shapes: Sequence[Shape | None], declared: Shape | None) -> Shape | None:
        """Returns the join of several shapes; dimensions keep the symbol that the first has for them."""
        ranked = [shape for shape in shapes if shape is not None]
        if len(ranked) < len(shapes) or len({len(shape) for shape in ranked}) != 1:
            return declared
        joined = [dims[0] if len(set(map(self.find, dims))) == 1 else -1 for dims in zip(*ranked, strict=True)]
        if declared is not None and len(declared) == len(joined):
            joined = [dim if own < 0 else own for dim, own in zip(joined, declared, strict=True)]
        return tuple(joined)

    def _sweep(self, block: Block) -> Task[Any]:
        for op in block.ops:
            if op.name == "tf.Const":
                constant = tensor_data.constant_of(op.results[0])
                if constant is not None:
                    self.known.constants[op.results[0]] = constant
                    self.known.shapes[op.results[0]] = constant.shape
            elif op.name in OPS:
                self._list_op(op)
            elif op.results and op.results[0] in self._lists and op.name in FORWARDING:
                self._note(op.results[0], self.known.shapes.get(op.operands[0]))
            elif self._calls.of.get(op):
                yield self._call(op, self._calls.of[op])
            elif op.results:
                self._plain(op)

    def _plain(self, op: Operation) -> None:
        for value in op.operands:
            self._settle(value)
        if op.name == "tf.ConcatV2" and self._supposes and not self._branches:
            self._agree(op)
        operands = Operands(op, self.known)
        shapes = infer_shapes(operands, operands.results)
        if shape_function(op.name[3:]) in _BROADCASTING and shapes[0] is not None and -1 in shapes[0]:
            shapes[0] = self._broadcast(shapes[0], operands.shapes())
        for result, shape in zip(op.results, shapes, strict=True):
            self._note(result, shape)
        for result, partial in zip(op.results, infer_values(operands, shapes), strict=True):
            if partial is not None:
                self.known.partials[result] = partial
            else:
                self.known.partials.pop(result, None)  # It may hold in a loop's first iteration only.

    def _settle(self, value: Value) -> None:
        """Updates a value's shape with the dimensions that are known to be equal."""
        shape = self.known.shapes.get(value)
        if shape is not None and not self._equal.keys().isdisjoint(shape):
            self.known.shapes[value] = tuple(map(self.find, shape))

    def _agree(self, op: Operation) -> None:
        """Records that concatenated values have equal dimensions along the other axes."""
        *joined, last = op.operands
        axis = constant_int(last)
        shapes = [self.known.shapes.get(value) for value in joined]
        first = shapes[0]
        if axis is None or not first or not -len(first) <= axis < len(first):
            return
        for shape in shapes[1:]:
            if shape is not None and len(shape) == len(first) > 1:
                # A broadcast dimension has to be computed, so the other one is kept if possible.
                pairs = [sorted(pair, key=self._is_plain) for pair in zip(first, shape, strict=True)]
                del pairs[axis]
                self._equate(*zip(*pairs, strict=True))
        for value in joined:
            self._settle(value)

    def _is_plain(self, dim: int) -> bool:
        return self.find(dim) not in self.broadcasts

    def _broadcast(self, result: Shape, operands: Sequence[Shape | None]) -> Shape:
        """Returns the shape of an elementwise result, with a symbol for each set of dimensions that are broadcast."""
        if None in operands:
            return result
        shapes = [tuple(map(self.find, shape)) for shape in operands if shape is not None]
        dims = list(result)
        for axis in range(-len(result), 0):
            if dims[axis] == -1:
                met = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
                dims[axis] = self._meet(met)
        return tuple(dims)

    def _meet(self, dims: set[int]) -> int:
        """Returns the symbol of the dimension that several unknown ones are broadcast to."""
        if not dims or any(dim >= UNKNOWN for dim in dims):
            return -1
        whole = frozenset(part for dim in dims for part in self.broadcasts.get(dim, (dim,)))
        if len(whole) == 1:
            return next(iter(whole))
        if whole not in self._met:
            self._met[whole] = self.known.fresh()
            self.broadcasts[self._met[whole]] = whole
        return self._met[whole]

    def _list_op(self, op: Operation) -> None:
        entry, known = OPS[op.name], self.known.shapes
        shape = known.get(op.operands[entry.lists[0]]) if entry.lists else None
        if entry.stack is not None and not entry.lists:
            shape = known.get(op.operands[entry.stack])
        if entry.creates and shape is not None and changes_length(op):
            shape = (-1, *shape[1:])
        if op.name == "tf.TensorListReserve":
            shape = self._reserved(op)
        if entry.creates:
            self._note(op.results[0], shape)
            shape = known.get(op.results[0])
        elements = None if shape is None else shape[1:]
        if entry.item is not None:
            self._equate(elements, known.get(op.operands[entry.item]))
        if entry.stack is not None:
            stacked = known.get(op.operands[entry.stack])
            self._equate(elements, None if stacked is None else stacked[1:])
        for result, kind in zip(op.results, entry.results, strict=False):
            self._result(op, result, kind, shape)
        for result in op.results:
            if result not in known:
                self._note(result, result.shape)

    def _reserved(self, op: Operation) -> Shape | None:
        """Returns the known shape of a new list from its length operand."""
        listed, length = self._lists.get(op.results[0]), self.known.partials.get(op.operands[1])
        if listed is None or listed.shape is None or length is None or len(length) != 1:
            return None
        return (dim_of_element(length[0]), *(-1 for _ in listed.shape))

    def _result(self, op: Operation, result: Value, kind: str, shape: Shape | None) -> None:
        """Records the elements that an op reads from a list of a given shape."""
        if shape is None or not kind:
            return
        if kind == "item":
            self._note(result, shape[1:])
        elif kind == "stack" and op.name == "tf.TensorListGather":
            self._note(result, (*(self.known.shapes.get(op.operands[1]) or (-1,)), *shape[1:]))
        elif kind == "stack":
            self._note(result, shape)
        else:
            self._note(result, (-1, *shape[2:]))

    def _call(self, op: Operation, calls: tuple[FunctionCall, ...]) -> Task[Any]:
        if calls[0].is_loop:
            yield self._loop(op, calls)
            return
        # Dimensions that a branch requires to be equal may differ if another branch runs.
        self._branches += len(calls) > 1
        try:
            for call in calls:
                for argument, operand in zip(call.block.args, op.operands[call.first :], strict=False):
                    self._pass(argument, operand)
                yield self._sweep(call.block)
        finally:
            self._branches -= len(calls) > 1
        for index, result in enumerate(op.results):
            self._note(result, self._join([call.returned[index] for call in calls], result.shape))

    def _pass(self, argument: Value, operand: Value) -> None:
        """Updates an argument's facts from an operand's."""
        self._note(argument, self._join([operand], argument.shape))
        self.known.constants.pop(argument, None)
        self.known.partials.pop(argument, None)
        if operand in self.known.constants:
            self.known.constants[argument] = self.known.constants[operand]
        if operand in self.known.partials:
            self.known.partials[argument] = self.known.partials[operand]

    def _loop(self, op: Operation, calls: tuple[FunctionCall, ...]) -> Task[Any]:
        """Sweeps a loop until the shapes of its variables are the same before and after the body.

        The first sweep has the initial shapes. Dimensions that the body broadcasts stay so afterwards; dimensions that
        it changes in another way are widened.
        """
        *_conditions, body = calls
        arguments, returned = body.block.args, body.returned
        fixed = [argument is value for argument, value in zip(arguments, returned, strict=False)]
        shapes = [self.known.shapes.get(operand) for operand in op.operands]
        before = dict(self._equal)
        for _ in range(2 if self._depth < _DEPTH else 0):
            self._depth += 1
            self._enter(op, calls, fixed, shapes)
            failed: list[bool] = []
            yield self._attempt(calls, failed)
            self._depth -= 1
            changed = [self._next(*pair) for pair in zip(shapes, returned, strict=False)]
            if failed or None in changed:
                break
            if changed == shapes:
                self._leave(op, shapes)
                return
            shapes = changed
        shapes = [self.known.shapes.get(operand) for operand in op.operands]
        varying = [
            self._joined([shape, self.known.shapes.get(value)], None) if self._depth < _DEPTH else None
            for shape, value in zip(shapes, returned, strict=False)
        ]
        shapes = [shape if is_fixed else other for shape, other, is_fixed in zip(shapes, varying, fixed, strict=False)]
        # Equalities found so far hold in the first iteration only.
        self._equal = before
        self._enter(op, calls, fixed, shapes)
        for call in calls:
            yield self._sweep(call.block)
        self._leave(op, shapes)

    def _next(self, shape: Shape | None, returned: Value) -> Shape | None:
        """Returns the shape of a loop's variable in the next iteration, or `None` if it is widened."""
        other = self.known.shapes.get(returned)
        if shape is None or other is None or len(shape) != len(other):
            return None if shape != other else shape
        dims = []
        for one, two in zip(shape, other, strict=True):
            is_same = self.find(one) == self.find(two)
            if not is_same and self.find(one) not in self.broadcasts.get(self.find(two), ()):
                return None
            dims.append(one if is_same else two)
        return tuple(dims)

    def _attempt(self, calls: tuple[FunctionCall, ...], failed: list[bool]) -> Task[Any]:
        for call in calls:
            try:
                yield self._sweep(call.block)
            except ConversionError:
                failed.append(True)
                return

    def _enter(
        self, op: Operation, calls: tuple[FunctionCall, ...], fixed: list[bool], shapes: list[Shape | None]
    ) -> None:
        for call in calls:
            for index, argument in enumerate(call.block.args):
                if index < min(len(fixed), len(op.operands)) and fixed[index]:
                    self._pass(argument, op.operands[index])
                else:
                    self._note(argument, self._joined([shapes[index]], argument.shape))

    def _leave(self, op: Operation, shapes: list[Shape | None]) -> None:
        for result, shape in zip(op.results, shapes, strict=False):
            self._note(result, self._joined([shape], result.shape))
