"""Sizes of a function's values as formulas of the sizes of its arguments, and functions that compute them.

`@f__shape` takes the dynamic sizes and the small integer arguments of `@f`, as `index`. Calls are followed. Sizes that
a loop changes are unknown, and so are sizes that depend on data, such as the number of elements that a mask selects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tfconvert.converter.executor.stablehlo import elementwise
from tfconvert.converter.targets.stablehlo import size_rules
from tfconvert.converter.targets.stablehlo.buffers.host import Scalars
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import CallOp, FuncOp, ReturnOp
from tfconvert.schema.dialects.stablehlo_inference import infer
from tfconvert.schema.ir import dim
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.dim import Dim, Symbol, unknown
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX, FunctionType, IntegerType
from tfconvert.schema.ir.values import Value

SUFFIX = "__shape"
"""The suffix of the function that computes a function's sizes."""

# Maximum number of elements that are followed.
_MAX_ELEMENTS = 32

Dims = Sequence[Dim]
Elements = Sequence[Dim]


def is_small(kind: Attribute, allow_two: bool = False) -> bool:
    """Returns whether values of a type are a few integers, with static sizes.

    Args:
        kind: The type.
        allow_two: Whether two dimensions are allowed instead of one.
    """
    shape = types.shape_of(kind)
    if shape is None or not isinstance(types.element_of(kind), IntegerType) or len(shape) > 1 + allow_two:
        return False
    return all(0 <= size <= _MAX_ELEMENTS for size in shape)


def size_of_argument(number: int, axis: int) -> Symbol:
    """Returns the symbol of the size of an argument."""
    return Symbol(("size", number, axis))


def element_of_argument(number: int, at: int) -> Symbol:
    """Returns the symbol of an element of a small integer argument."""
    return Symbol(("element", number, at), is_natural=False)


class _Formal:
    """Arithmetic on formulas."""

    __slots__ = ()

    def compute(self, name: str, *operands: Dim, kind: Attribute = INDEX) -> Dim:
        return dim.apply(name, *operands)

    def cast(self, number: Dim, source: Attribute, target: Attribute) -> Dim:
        if source is types.I1 and target is not types.I1:
            return dim.apply("select", number, 1, 0)
        return dim.apply("NE", number, 0) if target is types.I1 and source is not types.I1 else number


# Ops whose rules for elements don't depend on dimensions, so that two are allowed.
_SHAPED_TWICE = frozenset({"stablehlo.constant", "stablehlo.reshape", "stablehlo.convert"})

# Ops whose results shape functions can't compute.
_NOT_FOLLOWED = frozenset({"stablehlo.not", "stablehlo.xor"})


class Formulas:
    """The formulas of a function's values.

    Args:
        functions: The module's functions by name, for calls.
    """

    __slots__ = ("_functions", "dims", "elements")

    scalars = _Formal()

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
        """Adds an argument: its dynamic sizes, and its elements if it is a few integers, become symbols."""
        shape = arg.shape or ()
        self.dims[arg] = [size_of_argument(number, axis) if size < 0 else size for axis, size in enumerate(shape)]
        if is_small(arg.type) and arg.element is not types.I1:
            count = shape[0] if shape else 1
            self.elements[arg] = [element_of_argument(number, at) for at in range(count)]

    def sizes(self, value: Value) -> Dims:
        """Returns the sizes of a value."""
        return self.dims.get(value, ())

    def numbers(self, value: Value) -> Elements:
        """Returns the elements of a small value."""
        count = (value.shape or (1,))[0]
        return self.elements.get(value) or [unknown(is_natural=False) for _ in range(count)]

    indices = numbers

    def follow(self, block: Block) -> None:
        """Adds the values of a block, after its arguments."""
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
        """Adds a value; static sizes of its type are numbers, and those without a formula are unknown."""
        shape = value.shape or ()
        given = dims if dims is not None and len(dims) == len(shape) else [unknown() for _ in shape]
        self.dims[value] = [size if size >= 0 else term for size, term in zip(shape, given, strict=True)]
        if elements is not None:
            self.elements[value] = elements

    def _plain(self, op: Operation) -> None:
        if not op.results:
            return
        dims: Dims | None = None
        if any(not types.is_static(each.shape or ()) for each in op.results):
            dims = self._elementwise(op) if op.name in elementwise.KERNELS else infer(self, op)
        for result in op.results:
            self._note(result, dims)
        elements = self._elements_of(op)
        if elements is not None:
            self.elements[op.results[0]] = elements

    def _elementwise(self, op: Operation) -> Dims:
        """Returns the sizes of operands with equal sizes: the simplest formula of each."""
        ranks = [self.sizes(operand) for operand in op.operands]
        ranked = [dims for dims in ranks if len(dims) == max(map(len, ranks))]
        return [min(each, key=dim.rank) for each in zip(*ranked, strict=True)]

    def _elements_of(self, op: Operation) -> Elements | None:
        result, rule = op.results[0], size_rules.NUMBERS.get(op.name)
        allow_two = op.name in _SHAPED_TWICE
        if rule is None or op.name in _NOT_FOLLOWED or len(op.results) != 1 or not is_small(result.type, allow_two):
            return None
        if op.name != "stablehlo.get_dimension_size":
            ranks = {len(each.shape or ()) for each in op.operands}
            if any(each not in self.elements for each in op.operands) or (2 in ranks and not allow_two):
                return None
        found = rule(self, op)
        return found if len(found) == math.prod(result.shape or ()) else None

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
            sizes = [self.sizes(value) for value in values]
            pairs = zip(*sizes, strict=True)
            self._note(result, [each[0] if len(set(each)) == 1 else unknown() for each in pairs])

    def _loop(self, op: Operation) -> None:
        """Notes a loop: sizes that its body keeps are those that it begins with, others are unknown."""
        carried = [self.sizes(value) for value in op.operands]
        body = op.regions[1].block
        while True:
            for region in op.regions:
                for arg, dims in zip(region.block.args, carried, strict=True):
                    self._note(arg, dims)
                self.follow(region.block)
            last = body.last_op
            after = [self.sizes(value) for value in (() if last is None else last.operands)]
            kept: list[Dims] = [
                [size if size == new or _is_own(size) else unknown() for size, new in zip(dims, now, strict=True)]
                for dims, now in zip(carried, after, strict=True)
            ]
            if kept == carried:
                break
            carried = kept
        for result, dims in zip(op.results, carried, strict=True):
            self._note(result, dims)


def _is_own(size: Dim) -> bool:
    return isinstance(size, Symbol) and not size.is_known


def arguments(function: FuncOp, sizes: Sequence[Dim]) -> list[Symbol]:
    """Returns what a function of sizes takes: all open sizes, in order, and those elements that sizes depend on."""
    used = frozenset[Symbol]().union(*(size.symbols for size in sizes if not isinstance(size, int)))
    found: list[Symbol] = []
    for number, arg in enumerate(function.body.block.args):
        shape = arg.shape or ()
        found += [size_of_argument(number, axis) for axis, size in enumerate(shape) if size < 0]
        count = shape[0] if shape else 1
        found += [symbol for at in range(count) if (symbol := element_of_argument(number, at)) in used]
    return found


def results(function: FuncOp, formulas: Formulas) -> list[Dim]:
    """Returns the open sizes of a function's results, in order."""
    last = function.body.block.last_op
    values = () if last is None else last.operands
    return [
        term for value in values for size, term in zip(value.shape or (), formulas.dims[value], strict=True) if size < 0
    ]


def shape_function(function: FuncOp, formulas: Formulas) -> FuncOp | None:
    """Returns the function that computes the sizes of a function's results; `None` if only running it tells them."""
    sizes = results(function, formulas)
    if not all(map(dim.is_known, sizes)):
        return None
    taken = arguments(function, sizes)
    block = Block(arg_types=[INDEX] * len(taken))
    given = dict(zip(taken, block.args, strict=True))
    scalars, emitted = Scalars(block), dict[dim.Expression, Value | int]()

    def compute(name: str, *operands: Value | int) -> Value | int:
        kinds = [each.type for each in operands[-2:] if isinstance(each, Value)]
        return scalars.compute(name, *operands, kind=kinds[0] if kinds else INDEX)

    values = [scalars.value(dim.emit(size, given.__getitem__, compute, emitted)) for size in sizes]
    block.add_op(ReturnOp.create(operands=values, result_types=()))
    kind = FunctionType.get([INDEX] * len(taken), [INDEX] * len(values))
    return FuncOp.of(f"{function.sym_name}{SUFFIX}", kind, Region([block]), function.sym_visibility)
