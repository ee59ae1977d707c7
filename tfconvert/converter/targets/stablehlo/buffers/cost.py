"""The cost of a program on buffers: its peak memory in bytes and its operations, as formulas of sizes.

A multiplication or an addition is one operation. An elementwise op has one operation for each element of its result, a
reduction one for each element that it reads; moving elements is free. For fusions, the elements of the result or of the
reduced values count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.targets.stablehlo.buffers.kernels import KERNEL
from tfconvert.schema.dialects import stablehlo, types
from tfconvert.schema.dialects.arith import operation_of
from tfconvert.schema.dialects.func import CallOp, FuncOp, functions_of
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.dialects.stablehlo_inference import convolution_layouts, dims_of
from tfconvert.schema.dialects.stablehlo_properties import ints
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.dim import Dim, Symbol, add, apply, is_at_least, multiply, product, substitute, subtract
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import MemRefType
from tfconvert.schema.ir.values import Value

Sizes = Sequence[Sequence[Dim]]

_MOVING = frozenset({"stablehlo.reverse"})


def _twice(*factors: Dim) -> Dim:
    return product((2, *factors))


def _dot(op: Operation, sizes: Sizes) -> Dim:
    contracted = dims_of(op, "dot_dimension_numbers").of("lhs_contracting_dimensions")
    return _twice(product(sizes[-1]), *(sizes[0][axis] for axis in contracted))


def _convolution(op: Operation, sizes: Sizes) -> Dim:
    kernel = convolution_layouts(op).layouts[1]
    window = [size for size, what in zip(sizes[1], kernel, strict=True) if what != "o"]
    return _twice(product(sizes[-1]), *window)


def _of_op(op: Operation, sizes: Sizes) -> Dim:
    definition = stablehlo.definitions().get(op.name)
    if op.name == "stablehlo.dot_general":
        return _dot(op, sizes)
    if op.name in ("stablehlo.convolution", "stablehlo.dynamic_conv"):
        return _convolution(op, sizes)
    if op.name in ("stablehlo.reduce", "stablehlo.scatter"):
        return product(sizes[0])
    if op.name == "stablehlo.reduce_window":
        return product((*sizes[-1], *ints(op, "window_dimensions")))
    is_elementwise = definition is not None and definition.types in ("same", "compare") and op.name not in _MOVING
    return product(sizes[-1]) if is_elementwise or op.name == "stablehlo.select" else 0


def _of_routine(name: str, sizes: Sizes) -> Dim:
    *_, result = sizes
    if "gemm" in name:
        contracted = sizes[0][-2 if "_tn" in name else -1]
        return _twice(product(result), contracted)
    window = sizes[1][:2] if "depthwise" in name else sizes[1][:3]
    return _twice(product(result), *window)


def operations_of(function: FuncOp, sizes: Sizes) -> Dim:
    """Returns the number of operations of a call.

    Args:
        function: The kernel, or the declaration of a routine.
        sizes: The sizes of its buffers, those of the results last.
    """
    if function.is_declaration:
        return _of_routine(function.sym_name, sizes)
    total: Dim = 0
    for op in function.body.block.ops:
        if op.dialect in ("stablehlo", "chlo"):
            total = add(total, _of_op(op, sizes))
    return total


class Point(NamedTuple):
    """A point with high memory use.

    Attributes:
        bytes: The live bytes.
        op: The op for which the last buffer is allocated.
        location: The location of this op.
    """

    bytes: Dim
    op: str
    location: str


class LibraryCall(NamedTuple):
    """A call of a library.

    Attributes:
        routine: Its symbol.
        sizes: The sizes of its operands, each a list.
        operations: The number of operations.
        location: Its location.
    """

    routine: str
    sizes: tuple[tuple[Dim, ...], ...]
    operations: Dim
    location: str


class Cost(NamedTuple):
    """The cost of a function.

    Attributes:
        points: The points one of which has the peak memory, for any sizes.
        operations: The number of operations.
        library_calls: Its calls of libraries.
        weights: Bytes of the constants.
        results: Bytes of the results, which are included in those of the points.
    """

    points: tuple[Point, ...]
    operations: Dim
    library_calls: tuple[LibraryCall, ...]
    weights: int
    results: Dim

    @property
    def peak(self) -> Dim:
        """The peak memory in bytes."""
        found: Dim = 0
        for point in self.points:
            found = apply("maximum", found, point.bytes)
        return found

    def at(self, sizes: Mapping[str, int]) -> Cost:
        """Returns the cost with numbers for sizes, and only the points that may then have the peak memory."""
        values = {_symbol(name): size for name, size in sizes.items()}
        points: list[Point] = []
        for point in self.points:
            here = point._replace(bytes=substitute(point.bytes, values))
            if any(is_at_least(other.bytes, here.bytes) for other in points):
                continue
            points = [each for each in points if not is_at_least(here.bytes, each.bytes)]
            points.append(here)
        calls = [
            call._replace(
                sizes=tuple(tuple(substitute(size, values) for size in each) for each in call.sizes),
                operations=substitute(call.operations, values),
            )
            for call in self.library_calls
        ]
        return self._replace(
            points=tuple(points),
            operations=substitute(self.operations, values),
            library_calls=tuple(calls),
            results=substitute(self.results, values),
        )


class _Memory(NamedTuple):
    """A buffer: its name, sizes, bytes, and the bytes of an element."""

    name: str
    sizes: tuple[Dim, ...]
    bytes: Dim
    element: int


_Item = Dim | _Memory
_Values = dict[Value, _Item]


def cost_of(module: ModuleOp, function_name: str, names: Sequence[str] = ()) -> Cost:
    """Returns the cost of a function of a module.

    Args:
        module: The module after `legalize-to-buffers`.
        function_name: The function's symbol.
        names: Names of its arguments; by default, those in the text.
    """
    walk = _Walk(module)
    function = walk.functions[function_name]
    values: _Values = {}
    for index, argument in enumerate(function.args):
        name = names[index] if index < len(names) else argument.name_hint or f"arg{index}"
        values[argument] = _memory(name, argument.type, None)
    results = walk.block(function.body.block, values)
    weights = sum(_static_bytes(op) for op in module.ops if op.name == "memref.global")
    held = {id(item): item.bytes for item in results if isinstance(item, _Memory)}
    total: Dim = 0
    for each in held.values():
        total = add(total, each)
    return Cost(tuple(walk.points), walk.operations, tuple(walk.calls), weights, total)


def _symbol(name: str) -> Symbol:
    """Returns the symbol of a size, as in `x.0`, or of a number that is read from a tensor, as in `n[0]`."""
    return Symbol(name, is_natural=not name.endswith("]"))


def _memory(name: str, kind: object, sizes: Sequence[Dim] | None) -> _Memory:
    assert isinstance(kind, MemRefType)
    given = iter(sizes or ())
    found: list[Dim] = []
    for axis, dim in enumerate(kind.shape):
        if dim >= 0:
            found.append(dim)
        else:
            found.append(next(given) if sizes is not None else _symbol(f"{name}.{axis}"))
    element = types.numpy_dtype(kind.element_type).itemsize
    return _Memory(name, tuple(found), product((element, *found)), element)


def _static_bytes(op: Operation) -> int:
    found = _memory("", op.properties["type"], ()).bytes
    return found if isinstance(found, int) else 0


class _Walk:
    """Walks through a function in execution order, each loop once."""

    def __init__(self, module: ModuleOp) -> None:
        self.functions = functions_of(module)
        self.points: list[Point] = []
        self.operations: Dim = 0
        self.calls: list[LibraryCall] = []
        self._live: Dim = 0
        self._times: Dim = 1
        self._fresh = 0
        self._seen: set[Dim] = set()

    def block(self, block: Block, values: _Values) -> list[_Item]:
        """Walks through a block; returns the values that its terminator forwards."""
        for op in block.ops:
            operands = [values[operand] for operand in op.operands]
            if op is block.last_op and op.name in ("func.return", "scf.yield", "scf.condition"):
                return operands
            values.update(zip(op.results, self._op(op, operands, values), strict=True))
        return []

    def _op(self, op: Operation, operands: list[_Item], values: _Values) -> Sequence[_Item]:
        if op.name == "memref.alloc":
            return (self._alloc(op, operands),)
        if op.name == "memref.dealloc":
            (held,) = operands
            assert isinstance(held, _Memory)
            self._live = subtract(self._live, held.bytes)
            return ()
        if isinstance(op, CallOp):
            return self._call(op, operands)
        if op.name == "scf.while":
            return self._while(op, operands, values)
        if op.name in ("scf.if", "scf.index_switch"):
            return self._choice(op, values)
        return self._simple(op, operands)

    def _simple(self, op: Operation, operands: list[_Item]) -> Sequence[_Item]:
        if op.name in ("memref.dim", "memref.load"):
            held, *indices = operands
            assert isinstance(held, _Memory)
            if op.name == "memref.dim" and isinstance(indices[0], int):
                return (held.sizes[indices[0]],)
            return (_symbol(f"{held.name}[{', '.join(map(str, indices))}]"),)
        if op.name == "memref.cast":
            return operands
        if op.name == "memref.get_global":
            return (_memory(str(op.properties["name"]), op.results[0].type, ()),)
        if op.name == "arith.constant":
            value = op.properties["value"]
            assert isinstance(value, IntegerAttr)
            return (int(value.value),)
        if op.name in _CASTS:
            return operands
        operation = operation_of(op)
        return () if operation is None else (apply(operation, *_dims(operands)),)

    def _alloc(self, op: Operation, operands: list[_Item]) -> _Memory:
        held = _memory(_name(op, self._number()), op.results[0].type, _dims(operands))
        self._live = add(self._live, held.bytes)
        self._note(op)
        return held

    def _number(self) -> int:
        self._fresh += 1
        return self._fresh

    def _note(self, op: Operation) -> None:
        """Records the live bytes, unless they are provably less than at another point."""
        here = self._live
        if here in self._seen:
            return
        self._seen.add(here)
        if any(is_at_least(point.bytes, here) for point in self.points):
            return
        writer = op.next_op or op
        while op.results[0] not in writer.operands and writer.next_op is not None:
            writer = writer.next_op
        name = writer.callee if isinstance(writer, CallOp) else writer.name
        kept = [point for point in self.points if not is_at_least(here, point.bytes)]
        self.points = [*kept, Point(here, name, str(place_of(op.location)))]

    def _call(self, op: CallOp, operands: list[_Item]) -> Sequence[_Item]:
        function = self.functions[op.callee]
        if KERNEL not in function.attributes and not function.is_declaration:
            inner: _Values = dict(zip(function.args, operands, strict=True))
            return self.block(function.body.block, inner)
        sizes = tuple(each.sizes for each in operands if isinstance(each, _Memory))
        count = multiply(self._times, operations_of(function, sizes))
        self.operations = add(self.operations, count)
        if function.is_declaration:
            self.calls.append(LibraryCall(op.callee, sizes, count, str(place_of(op.location))))
        return ()

    def _while(self, op: Operation, operands: list[_Item], values: _Values) -> Sequence[_Item]:
        """Walks through a loop once; sizes that it changes become new symbols."""
        before, after = (region.block for region in op.regions)
        number = self._number()
        times, calls, operations = self._times, list(self.calls), self.operations
        carried = _named(operands, number)
        while True:
            live = self._live
            self._times = multiply(times, _symbol(f"iterations{number}"))
            self.block(before, {**values, **dict(zip(before.args, carried, strict=True))})
            found = self.block(after, {**values, **dict(zip(after.args, carried, strict=True))})
            self._times, self._live = times, live
            changed = [_changed(old, new) for old, new in zip(carried, found, strict=True)]
            if not any(changed):
                return carried
            self.calls, self.operations = list(calls), operations
            new = [
                _open(item, f"loop{number}_{at}", axes)
                for at, (item, axes) in enumerate(zip(carried, changed, strict=True))
            ]
            self._swap(carried, new)
            carried = new

    def _swap(self, old: Sequence[_Item], new: Sequence[_Item]) -> None:
        for one, other in zip(old, new, strict=True):
            if isinstance(one, _Memory) and isinstance(other, _Memory):
                self._live = add(subtract(self._live, one.bytes), other.bytes)

    def _choice(self, op: Operation, values: _Values) -> Sequence[_Item]:
        """Walks through all branches, and counts the most expensive one."""
        live, operations = self._live, self.operations
        lives: Dim = 0
        counts: Dim = 0
        results: list[list[_Item]] = []
        for region in op.regions:
            self._live, self.operations = live, 0
            results.append(self.block(region.block, dict(values)))
            lives = apply("maximum", lives, self._live) if results[1:] else self._live
            counts = apply("maximum", counts, self.operations)
        self._live, self.operations = lives, add(operations, counts)
        return [_either(each) for each in zip(*results, strict=True)]


def _dims(items: Sequence[_Item]) -> list[Dim]:
    return [item for item in items if not isinstance(item, _Memory)]


_CASTS = frozenset({"arith.extsi", "arith.extui", "arith.index_cast", "arith.trunci"})


def _named(items: list[_Item], number: int) -> list[_Item]:
    """Returns the values that a loop carries, renamed because their numbers change."""
    return [
        item._replace(name=f"loop{number}_{at}") if isinstance(item, _Memory) else item for at, item in enumerate(items)
    ]


def _name(op: Operation, number: int) -> str:
    place = place_of(op.location)
    return place.node or f"buffer{number}"


def _open(item: _Item, name: str, axes: Sequence[int]) -> _Item:
    assert isinstance(item, _Memory)
    if not axes:
        return item
    sizes = list(item.sizes)
    for axis in axes:
        sizes[axis] = _symbol(f"{name}.{axis}")
    bytes_of = product((item.element, *sizes))
    return _Memory(name, tuple(sizes), bytes_of, item.element)


def _changed(old: _Item, new: _Item) -> list[int]:
    """Returns the axes along which two buffers differ."""
    if not isinstance(old, _Memory) or not isinstance(new, _Memory):
        return []
    return [axis for axis, (one, other) in enumerate(zip(old.sizes, new.sizes, strict=True)) if one != other]


def _either(items: Sequence[_Item]) -> _Item:
    first, *others = items
    assert isinstance(first, _Memory)
    for other in others:
        assert isinstance(other, _Memory)
        sizes = [apply("maximum", x, y) for x, y in zip(first.sizes, other.sizes, strict=True)]
        first = _Memory(first.name, tuple(sizes), apply("maximum", first.bytes, other.bytes), first.element)
    return first
