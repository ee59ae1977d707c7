"""How many operations kernels and routines of libraries are: a multiplication is one, and so is an addition.

An elementwise op is one for each element of its result, a reduction one for each element that it reads; moving elements
around is none. Of fusions the result counts, or what they reduce.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.executor.stablehlo.properties import ints
from tfconvert.converter.targets.stablehlo.size_rules import convolution_layouts, dims_of
from tfconvert.schema.dialects import stablehlo
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.dim import Dim, add, product
from tfconvert.schema.ir.operation import Operation

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
    """Returns how many operations a call is.

    Args:
        function: The kernel, or the declaration of a routine.
        sizes: The sizes of the buffers that it is given, of its results last.
    """
    if function.is_declaration:
        return _of_routine(function.sym_name, sizes)
    total: Dim = 0
    for op in function.body.block.ops:
        if op.dialect in ("stablehlo", "chlo"):
            total = add(total, _of_op(op, sizes))
    return total
