"""The sizes of all values of a function, and the elements of those that are few integers, as formulas.

Calls are followed; what a loop changes is unknown, and what only computing tells: how many elements a mask has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.executor.stablehlo.properties import integer
from tfconvert.converter.targets.stablehlo.formulas import dims as dim_rules
from tfconvert.converter.targets.stablehlo.formulas import elements as element_rules
from tfconvert.converter.targets.stablehlo.formulas.dims import Dims, Operands
from tfconvert.converter.targets.stablehlo.formulas.elements import Elements
from tfconvert.converter.targets.stablehlo.formulas.formula import ELEMENT, SIZE, UNKNOWN, Formula, unknown
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import CallOp, FuncOp
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# Ops whose rules of elements don't look at dimensions, so that there may be two.
_SHAPED_TWICE = frozenset({"stablehlo.constant", "stablehlo.reshape", "stablehlo.convert"})


class Formulas:
    """The formulas of a function's values.

    Args:
        functions: The module's functions by name, for calls.
    """

    __slots__ = ("_functions", "dims", "elements")

    def __init__(self, functions: Mapping[str, FuncOp]) -> None:
        self._functions = functions
        self.dims: dict[Value, Dims] = {}
        self.elements: dict[Value, Elements] = {}

    @classmethod
    def of(cls, function: FuncOp, functions: Mapping[str, FuncOp]) -> Formulas:
        """Returns the formulas of a function, of the sizes and elements of its arguments."""
        found = cls(functions)
        for number, arg in enumerate(function.body.block.args):
            found.enter(arg, number)
        found.follow(function.body.block)
        return found

    def enter(self, arg: Value, number: int) -> None:
        """Notes an argument: its open sizes, and its elements if it is few integers, are leaves."""
        shape = types.shape_of(arg.type) or ()
        self.dims[arg] = tuple(Formula(SIZE, (number, axis)) if size < 0 else size for axis, size in enumerate(shape))
        if element_rules.is_small(arg.type):
            count = shape[0] if shape else 1
            self.elements[arg] = tuple(Formula(ELEMENT, (number, at)) for at in range(count))

    def follow(self, block: Block) -> None:
        """Notes the values of a block whose arguments are noted."""
        for op in block.ops:
            if isinstance(op, CallOp) and op.callee in self._functions:
                self._call(op, self._functions[op.callee].body.block)
            elif op.name in ("stablehlo.if", "stablehlo.case"):
                self._branches(op)
            elif op.name == "stablehlo.while":
                self._loop(op)
            else:
                self._plain(op)

    def _note(self, value: Value, dims: Dims | None, elements: Elements | None = None) -> None:
        """Notes a value; sizes that its type has are numbers, and those without a formula unknown."""
        shape = types.shape_of(value.type) or ()
        given = dims if dims is not None and len(dims) == len(shape) else [unknown() for _ in shape]
        self.dims[value] = tuple(size if size >= 0 else term for size, term in zip(shape, given, strict=True))
        if elements is not None:
            self.elements[value] = elements

    def _plain(self, op: Operation) -> None:
        if not op.results:
            return
        known = Operands(
            [self.dims.get(each, ()) for each in op.operands], [self.elements.get(each) for each in op.operands]
        )
        shapes = [types.shape_of(each.type) for each in op.results]
        dims: Dims | None = None
        rule = dim_rules.RULES.get(op.name)
        if rule is not None and any(shape is not None and not types.is_static(shape) for shape in shapes):
            dims = rule(op, known)
        for result in op.results:
            self._note(result, dims)
        elements = self._elements_of(op, known)
        if elements is not None:
            self.elements[op.results[0]] = elements

    def _elements_of(self, op: Operation, known: Operands) -> Elements | None:
        result = op.results[0]
        if op.name == "stablehlo.get_dimension_size":
            return (known.dims[0][integer(op, "dimension")],)
        rule = element_rules.RULES.get(op.name)
        if rule is None or len(op.results) != 1 or not element_rules.is_small(result.type, op.name in _SHAPED_TWICE):
            return None
        operands = [each for each in known.elements if each is not None]
        if len(operands) < len(known.elements):
            return None
        ranks = {len(types.shape_of(each.type) or ()) for each in op.operands}
        return None if ranks & {2} and op.name not in _SHAPED_TWICE else rule(op, operands)

    def _call(self, op: CallOp, block: Block) -> None:
        for arg, operand in zip(block.args, op.operands, strict=True):
            self._forward(arg, operand)
        self.follow(block)
        last = block.last_op
        for result, value in zip(op.results, () if last is None else last.operands, strict=True):
            self._forward(result, value)

    def _forward(self, value: Value, source: Value) -> None:
        self.elements.pop(value, None)
        self._note(value, self.dims.get(source), self.elements.get(source))

    def _branches(self, op: Operation) -> None:
        ends: list[Sequence[Value]] = []
        for region in op.regions:
            self.follow(region.block)
            last = region.block.last_op
            ends.append(() if last is None else last.operands)
        for result, values in zip(op.results, zip(*ends, strict=True), strict=True):
            sizes = [self.dims.get(value, ()) for value in values]
            pairs = zip(*sizes, strict=True)
            self._note(result, tuple(each[0] if len(set(each)) == 1 else unknown() for each in pairs))

    def _loop(self, op: Operation) -> None:
        """Notes a loop: sizes that its body keeps are those that it begins with, others are unknown."""
        carried = [self.dims.get(value, ()) for value in op.operands]
        body = op.regions[1].block
        while True:
            for region in op.regions:
                for arg, dims in zip(region.block.args, carried, strict=True):
                    self._note(arg, dims)
                self.follow(region.block)
            last = body.last_op
            after = [self.dims.get(value, ()) for value in (() if last is None else last.operands)]
            kept = [
                tuple(size if size == new or _is_own(size) else unknown() for size, new in zip(dims, now, strict=True))
                for dims, now in zip(carried, after, strict=True)
            ]
            if kept == carried:
                break
            carried = kept
        for result, dims in zip(op.results, carried, strict=True):
            self._note(result, dims)


def _is_own(size: object) -> bool:
    return isinstance(size, Formula) and size.kind == UNKNOWN
