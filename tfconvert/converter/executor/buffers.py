"""Runs programs on buffers, and watches over their memory: what lives when, and who uses what was freed.

Kernels compute what their ops compute, by the kernels of the executor; buffers are arrays that are counted. What nobody
wrote yet is not zero, so that a result shows it. The routines of libraries are in numpy, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.executor.tasks import bad
from tfconvert.ops.call import Array
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.arith import operation_of, wrapped
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.stablehlo_properties import text
from tfconvert.schema.ir.attributes import DenseArrayAttr, IntegerAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.dim import DIVISIONS, OPERATIONS
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import MemRefType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.limits import Deadline


def _gemm(a: Array, b: Array, out: Array) -> None:
    np.matmul(a, b, out=out)


def _gemm_nt(a: Array, b: Array, out: Array) -> None:
    np.matmul(a, np.swapaxes(b, -1, -2), out=out)


def _gemm_tn(a: Array, b: Array, out: Array) -> None:
    np.matmul(np.swapaxes(a, -1, -2), b, out=out)


def _patches(x: Array, kernel: tuple[int, int], options: tuple[int, ...]) -> Array:
    """Returns the windows of images: `[batch, rows, columns, channels, kernel rows, kernel columns]`."""
    row_stride, column_stride, top, bottom, left, right, row_step, column_step = options
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    extent = ((kernel[0] - 1) * row_step + 1, (kernel[1] - 1) * column_step + 1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, extent, (1, 2))
    return np.asarray(windows[:, ::row_stride, ::column_stride, :, ::row_step, ::column_step])


def _conv2d(x: Array, kernel: Array, out: Array, *options: int) -> None:
    windows = _patches(x, kernel.shape[:2], options)
    out[...] = np.einsum("bijchw,hwco->bijo", windows, kernel, optimize=True)


def _depthwise(x: Array, kernel: Array, out: Array, *options: int) -> None:
    channels = x.shape[-1]
    split = kernel.reshape(*kernel.shape[:2], channels, -1)
    windows = _patches(x, kernel.shape[:2], options)
    out[...] = np.einsum("bijchw,hwcm->bijcm", windows, split, optimize=True).reshape(out.shape)


_ROUTINES: Mapping[str, Callable[..., Any]] = {
    "lib_batch_gemm": _gemm,
    "lib_batch_gemm_nt": _gemm_nt,
    "lib_batch_gemm_tn": _gemm_tn,
    "lib_conv2d_nhwc": _conv2d,
    "lib_depthwise_conv2d_nhwc": _depthwise,
    "lib_gemm": _gemm,
    "lib_gemm_nt": _gemm_nt,
    "lib_gemm_tn": _gemm_tn,
}

LIBRARY: Mapping[str, Callable[..., Any]] = {
    f"{name}_{element}": routine for name, routine in _ROUTINES.items() for element in ("f32", "f64")
}
"""Symbol -> routine."""


# The bytes of a buffer before the first write.
_UNWRITTEN = 0xA5


class MemoryBuffer:
    """A buffer.

    Attributes:
        array: What is in it.
        is_allocated: Whether the program allocated it, so that it must free it or hand it out.
        is_freed: Whether it was freed.
    """

    __slots__ = ("array", "is_allocated", "is_freed")

    def __init__(self, array: Array, *, is_allocated: bool = False) -> None:
        self.array = array
        self.is_allocated = is_allocated
        self.is_freed = False


Item = MemoryBuffer | Array | int
"""A value: a buffer, a tensor inside a kernel, or a number of the host."""

Values = dict[Value, Item]


class BufferRun(NamedTuple):
    """The outcome of a run."""

    results: list[Array]  # The function's results.
    peak: int  # The most bytes that were allocated at a time.
    allocations: int  # How many buffers were allocated.


def run(module: ModuleOp, function_name: str, inputs: Sequence[Array]) -> BufferRun:
    """Runs a function of a module on buffers.

    Args:
        module: The module, as `legalize-to-buffers` leaves it.
        function_name: The function's symbol.
        inputs: A value for each argument.
    """
    return _Machine(module).run(function_name, inputs)


class _Machine:
    """Runs one function; nested blocks are nested calls, as deep as the text."""

    def __init__(self, module: ModuleOp) -> None:
        self._functions = functions_of(module)
        self._globals = {text(op, "sym_name"): op for op in module.ops if op.name == "memref.global"}
        self._memory: dict[str, MemoryBuffer] = {}
        self._executor = Executor(module)
        self._deadline = Deadline()
        self._live: set[MemoryBuffer] = set()
        self._bytes = self._peak = self._allocations = 0

    def run(self, name: str, inputs: Sequence[Array]) -> BufferRun:
        function = self._functions.get(name)
        if function is None or function.is_declaration:
            raise error("unknown-function", f"there is no function {name!r} in the module")
        if len(inputs) != len(function.args):
            raise error("bad-operand", f"function {name!r} has {len(function.args)} arguments, not {len(inputs)}")
        results = self._call(function, [MemoryBuffer(np.asarray(each)) for each in inputs])
        buffers = [each for each in results if isinstance(each, MemoryBuffer)]
        left = self._live.difference(buffers)
        if left:
            raise error(
                "memory-leak", f"{len(left)} buffers of {sum(b.array.nbytes for b in left)} bytes are not freed"
            )
        return BufferRun([each.array for each in buffers], self._peak, self._allocations)

    def _call(self, function: FuncOp, inputs: Sequence[Item]) -> Sequence[Item]:
        return self._block(function.body.block, dict(zip(function.args, inputs, strict=True)))

    def _block(self, block: Block, values: Values) -> Sequence[Item]:
        """Runs a block; returns the operands of its terminator."""
        for op in block.ops:
            self._deadline.check_time()
            operands = [values[operand] for operand in op.operands]
            for each in operands:
                if isinstance(each, MemoryBuffer) and each.is_freed:
                    is_again = op.name == "memref.dealloc"
                    raise bad(
                        op, f"the buffer was freed before {op.name}", "double-free" if is_again else "use-after-free"
                    )
            if op is block.last_op and op.name in _TERMINATORS:
                return operands
            results = self._op(op, operands, values)
            values.update(zip(op.results, results, strict=True))
        return ()

    def _op(self, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
        handler = _HANDLERS.get(op.name)
        if handler is not None:
            return handler(self, op, operands, values)
        operation = operation_of(op)
        if operation is not None:
            x, y = map(_index, operands)
            if y == 0 and operation in DIVISIONS:
                raise bad(op, "a size is divided by zero")
            return (wrapped(int(OPERATIONS[operation](x, y)), op.results[0].type),)
        if op.dialect not in ("stablehlo", "chlo", "cf"):
            raise bad(op, "the op has no reference kernel", "no-reference-kernel")
        return self._executor.execute(op, tuple(np.asarray(each) for each in operands))

    # Memory.

    def alloc(self, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
        kind = op.results[0].type
        assert isinstance(kind, MemRefType)
        given = iter(operands)
        shape = [_index(next(given)) if dim < 0 else dim for dim in kind.shape]
        if min(shape, default=0) < 0:
            raise bad(op, f"a buffer can't have the sizes {shape}")
        try:
            array = np.empty(shape, types.numpy_dtype(kind.element_type))
        except (ValueError, MemoryError) as problem:
            raise bad(op, f"there is no memory for the sizes {shape}") from problem
        if array.dtype.kind != "b":
            array.reshape(-1).view(np.uint8)[...] = _UNWRITTEN
        held = MemoryBuffer(array, is_allocated=True)
        self._live.add(held)
        self._bytes += array.nbytes
        self._peak = max(self._peak, self._bytes)
        self._allocations += 1
        return (held,)

    def dealloc(self, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
        (held,) = operands
        if not isinstance(held, MemoryBuffer) or held not in self._live:
            raise bad(op, "what is freed was not allocated", "double-free")
        self._live.remove(held)
        self._bytes -= held.array.nbytes
        held.is_freed = True
        return ()

    def get_global(self, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
        name = text(op, "name")
        if name not in self._memory:
            declared = self._globals[name]
            value = declared.properties.get("initial_value")
            if not tensor_data.is_constant(value):
                raise bad(op, f"the global {name!r} has no value", "missing-value")
            array = tensor_data.to_array(value)
            self._memory[name] = MemoryBuffer(array if "constant" in declared.properties else array.copy())
        return (self._memory[name],)

    # Calls and control flow.

    def call(self, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
        name = text(op, "callee")
        function = self._functions[name]
        if not function.is_declaration:
            return self._call(function, operands)
        routine = LIBRARY.get(name)
        if routine is None:
            raise bad(op, f"there is no library routine {name!r}", "no-reference-kernel")
        arrays = [each.array if isinstance(each, MemoryBuffer) else each for each in operands]
        try:
            routine(*arrays)
        except (ValueError, IndexError) as problem:
            raise bad(op, f"the operands don't fit: {problem}") from problem
        return ()

    def branch(self, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
        if op.name == "scf.if":
            number = 0 if operands[0] else 1
        else:
            cases = op.properties["cases"]
            assert isinstance(cases, DenseArrayAttr)
            chosen, numbers = _index(operands[0]), list(cases.values)
            number = 1 + numbers.index(chosen) if chosen in numbers else 0
        return self._block(op.regions[number].block, dict(values))

    def loop(self, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
        carried = list(operands)
        before, after = (region.block for region in op.regions)
        while True:
            holds, *carried = self._block(before, {**values, **dict(zip(before.args, carried, strict=True))})
            if not holds:
                return carried
            carried = list(self._block(after, {**values, **dict(zip(after.args, carried, strict=True))}))


_TERMINATORS = frozenset({"func.return", "scf.condition", "scf.yield"})


def _array(item: Item) -> Array:
    assert isinstance(item, MemoryBuffer)
    return item.array


def _index(item: Item) -> int:
    assert isinstance(item, int)
    return item


def _dim(machine: _Machine, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
    return (int(_array(operands[0]).shape[_index(operands[1])]),)


def _load(machine: _Machine, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
    return (int(_array(operands[0])[tuple(map(_index, operands[1:]))]),)


def _store(machine: _Machine, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
    _array(operands[1])[tuple(map(_index, operands[2:]))] = _index(operands[0])
    return ()


def _write(op: Operation, source: Array, target: Array) -> Sequence[Item]:
    if source.shape != target.shape:
        raise bad(
            op, f"the sizes {list(source.shape)} are not those of the buffer, {list(target.shape)}", "unequal-sizes"
        )
    target[...] = source
    return ()


def _copy(machine: _Machine, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
    return _write(op, _array(operands[0]), _array(operands[1]))


def _materialize(machine: _Machine, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
    return _write(op, np.asarray(operands[0]), _array(operands[1]))


def _same(machine: _Machine, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
    return operands


def _to_tensor(machine: _Machine, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
    return (_array(operands[0]),)


def _from_elements(machine: _Machine, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
    kind = op.results[0].type
    dtype = types.numpy_dtype(types.element_of(kind))
    return (np.array([_index(each) for each in operands]).astype(dtype).reshape(types.shape_of(kind) or ()),)


def _constant(machine: _Machine, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
    value = op.properties["value"]
    assert isinstance(value, IntegerAttr)
    return (int(value.value),)


def _select(machine: _Machine, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
    return (operands[1] if operands[0] else operands[2],)


def _cast(machine: _Machine, op: Operation, operands: Sequence[Item], values: Values) -> Sequence[Item]:
    number = _index(operands[0])
    if op.operands[0].type is types.I1:
        return (number & 1,)
    return (wrapped(number, op.results[0].type),)


_Handler = Callable[[_Machine, Operation, Sequence[Item], Values], Sequence[Item]]

# Op -> its handler; all others are computed by the executor.
_HANDLERS: Mapping[str, _Handler] = {
    "arith.constant": _constant,
    "arith.extsi": _cast,
    "arith.extui": _cast,
    "arith.index_cast": _cast,
    "arith.select": _select,
    "arith.trunci": _cast,
    "bufferization.materialize_in_destination": _materialize,
    "bufferization.to_tensor": _to_tensor,
    "func.call": _Machine.call,
    "memref.alloc": _Machine.alloc,
    "memref.cast": _same,
    "memref.copy": _copy,
    "memref.dealloc": _Machine.dealloc,
    "memref.dim": _dim,
    "memref.get_global": _Machine.get_global,
    "memref.load": _load,
    "memref.store": _store,
    "scf.if": _Machine.branch,
    "scf.index_switch": _Machine.branch,
    "scf.while": _Machine.loop,
    "tensor.from_elements": _from_elements,
}
