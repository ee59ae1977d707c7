"""The table of library routines, by ops, types and layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.targets.stablehlo.buffers.kernels import KERNEL
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.stablehlo_inference import convolution_layouts, dims_of
from tfconvert.schema.dialects.stablehlo_properties import integer, ints
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import DYNAMIC, INDEX, MemRefType
from tfconvert.schema.ir.values import Value


class Routine(NamedTuple):
    """A library routine that computes the same as a kernel.

    Attributes:
        symbol: Its symbol.
        ranks: The ranks of its buffers; their sizes are dynamic.
        options: The numbers that follow them.
        arguments: The indices of the kernel's arguments that are passed.
    """

    symbol: str
    ranks: tuple[int, ...]
    options: tuple[int, ...]
    arguments: tuple[int, ...] = ()

    def types(self, element: Attribute) -> list[Attribute]:
        """Returns the types of its arguments."""
        buffers = [MemRefType.get(element, (DYNAMIC,) * rank) for rank in self.ranks]
        return [*buffers, *([INDEX] * len(self.options))]


_ELEMENTS: Mapping[Attribute, str] = {types.F32: "f32", types.F64: "f64"}

# The contracted dimensions of both matrices -> the suffix of the routine's name: n for normal, t for transposed.
_FORMS: Mapping[tuple[int, int], str] = {(1, 0): "", (1, 1): "_nt", (0, 0): "_tn"}


def _gemm(op: Operation) -> Routine | None:
    dims = dims_of(op, "dot_dimension_numbers")
    batch = dims.of("lhs_batching_dimensions")
    contracted = (*dims.of("lhs_contracting_dimensions"), *dims.of("rhs_contracting_dimensions"))
    ranks = tuple(len(value.shape or ()) for value in (*op.operands, op.results[0]))
    if len(contracted) != 2 or len(set(ranks)) != 1 or ranks[0] != 2 + len(batch) or len(batch) > 1:
        return None
    if batch != dims.of("rhs_batching_dimensions") or batch not in ((), (0,)):
        return None
    form = _FORMS.get((contracted[0] - len(batch), contracted[1] - len(batch)))
    name = "lib_batch_gemm" if batch else "lib_gemm"
    return None if form is None else Routine(name + form, ranks, ())


# The layouts of images, kernels and results that the routines accept.
_IMAGES = (("b", "0", "1", "f"), ("0", "1", "i", "o"), ("b", "0", "1", "f"))


def _conv2d(op: Operation) -> Routine | None:
    count = integer(op, "feature_group_count")
    *_, inputs, _ = op.operands[1].shape or ()
    channels = (op.operands[0].shape or (0,))[-1]
    layouts = tuple(tuple(each) for each in convolution_layouts(op).layouts)
    if layouts != _IMAGES or integer(op, "batch_group_count") != 1:
        return None
    if any(ints(op, "lhs_dilation", (1, 1))[axis] != 1 or ints(op, "window_reversal", (0, 0))[axis] for axis in (0, 1)):
        return None
    is_depthwise = inputs == 1 and count == channels and count > 1
    if count != 1 and not is_depthwise:
        return None
    padding = op.properties.get("padding")
    amounts: Sequence[int] = (0,) * 4 if padding is None else tensor_data.to_array(padding).reshape(-1).tolist()
    if min(amounts) < 0:
        return None
    options = (*ints(op, "window_strides", (1, 1)), *map(int, amounts), *ints(op, "rhs_dilation", (1, 1)))
    name = "lib_depthwise_conv2d_nhwc" if is_depthwise else "lib_conv2d_nhwc"
    return Routine(name, (4, 4, 4), options)


# Op -> the routine that computes it, or `None`.
_ROWS: Mapping[str, Callable[[Operation], Routine | None]] = {
    "stablehlo.convolution": _conv2d,
    "stablehlo.dot_general": _gemm,
}


def routine_of(kernel: FuncOp) -> Routine | None:
    """Returns the routine that computes the same as a kernel, or `None`."""
    if KERNEL not in kernel.attributes or any(not isinstance(arg.type, MemRefType) for arg in kernel.args):
        return None
    computed = [op for op in kernel.body.block.ops if op.dialect == "stablehlo"]
    row = _ROWS.get(computed[0].name) if len(computed) == 1 else None
    kinds = {value.element for op in computed for value in (*op.operands, *op.results)}
    element = _ELEMENTS.get(*kinds) if len(kinds) == 1 else None
    found = row(computed[0]) if row is not None and element is not None else None
    arguments = [_argument(kernel, value) for op in computed for value in op.operands]
    if found is None or None in arguments:
        return None
    taken = (*(each for each in arguments if each is not None), len(kernel.args) - 1)
    return found._replace(symbol=f"{found.symbol}_{element}", arguments=taken)


def _argument(kernel: FuncOp, value: Value) -> int | None:
    """Returns the index of the argument that a tensor is read from, or `None` if it isn't read from one."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "bufferization.to_tensor":
        return None
    return next(each.index for each in kernel.args if each is owner.operands[0])
