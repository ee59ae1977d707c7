"""Pass `sparse-weights`: stores matrices of `FULLY_CONNECTED` without their zeros.

LiteRT has kernels for two forms. In blocks, each row of the matrix lists the blocks of four floats or sixteen 8-bit
integers that have nonzero elements; at least half of the blocks must be zero. Otherwise, for floats, each row lists its
nonzero elements; at least three quarters of them must be zero. Integer matrices that are multiplied by floats stay
dense.

Before:

    func.func @main(%x: tensor<2x8xf32>) -> tensor<2x2xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<[[0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0,
          0.0, 0.0, 0.0]]> : tensor<2x8xf32>}> : () -> tensor<2x8xf32>
      %1 = "tfl.no_value"() <{value}> : () -> none
      %2 = "tfl.fully_connected"(%x, %0, %1) : (tensor<2x8xf32>, tensor<2x8xf32>, none) -> tensor<2x2xf32>
      func.return %2 : tensor<2x2xf32>
    }

After:

    func.func @main(%x: tensor<2x8xf32>) -> tensor<2x2xf32> {
      %0 = "tfl.pseudo_sparse_const"() <{value = dense<[0.0, 5.0, 0.0, 0.0]> : tensor<4xf32>}> {tfl.tensors = [{
          sparsity = {block_map = array<i32: 1>, dim_metadata = [{dense_size = 2 : i32, format = "DENSE"},
          {array_indices = {Uint8Vector = {values = #tfl<const_bytes : "0x01">}}, array_segments = {Uint8Vector =
          {values = #tfl<const_bytes : "0x000101">}}, format = "SPARSE_CSR"}, {dense_size = 4 : i32, format = "DENSE"}],
          traversal_order = array<i32: 0, 1, 2>}}]} : () -> tensor<2x8xf32>
      %1 = "tfl.no_value"() <{value}> : () -> none
      %2 = "tfl.fully_connected"(%x, %0, %1) : (tensor<2x8xf32>, tensor<2x8xf32>, none) -> tensor<2x2xf32>
      func.return %2 : tensor<2x2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.diagnostics import NOTE, Diagnostic
from tfconvert.schema.dialects import tensor_data, tfl, tfl_file, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.quant import UniformType
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.types import I8
from tfconvert.schema.ir.values import OpResult, Use, Value

_USER = "tfl.fully_connected"
# The number of elements of a block, by the kind of numpy's dtype.
_BLOCKS = {"f": 4, "i": 16}

_ZERO_BLOCKS, _ZERO_NUMBERS = 0.5, 0.75
"""The parts of a matrix that have to be zero."""

_INDICES = ((1 << 8, "Uint8Vector"), (1 << 16, "Uint16Vector"), (1 << 31, "Int32Vector"))


_NONE = Diagnostic(
    "no-sparsity",
    "weights are stored densely: no matrix has enough zeros in a form that LiteRT has kernels for",
    severity=NOTE,
)


class SparseWeights:
    """Stores matrices without their zeros."""

    __slots__ = ()

    name: ClassVar[str] = "sparse-weights"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of matrices of each form."""
        counts: Counter[str] = Counter()
        for function in module.ops:
            if isinstance(function, FuncOp):
                for value in dict.fromkeys(op.operands[1] for op in function.walk() if op.name == _USER):
                    form = _rewritten(value)
                    counts.update([form] if form else [])
        return PassResult(counts, () if counts else (_NONE,), "sparse weights")


def _rewritten(value: Value) -> str:
    """Stores a matrix without its zeros if that is worthwhile; returns the form, or an empty string."""
    matrix = _matrix(value)
    if matrix is None:
        return ""
    rows, size = matrix.shape[0], _BLOCKS[matrix.dtype.kind]
    form = "in blocks"
    kept = _kept(matrix, size)
    if kept is None or 1 - kept.mean() < _ZERO_BLOCKS:
        form, size, kept = "by number", 1, matrix != 0
        if matrix.dtype.kind != "f" or 1 - kept.mean() < _ZERO_NUMBERS:
            return ""
    segments, indices = np.concatenate(([0], np.cumsum(kept.sum(1)))), kept.nonzero()[1]
    dimensions: list[dict[str, Any]] = [
        {"format": "DENSE", "dense_size": rows},
        {"format": "SPARSE_CSR", "array_segments": _vector(segments), "array_indices": _vector(indices)},
    ]
    if size > 1:
        dimensions.append({"format": "DENSE", "dense_size": size})
    fields: dict[str, Any] = {
        "traversal_order": list(range(len(dimensions))),
        "dim_metadata": dimensions,
        "block_map": [1] if size > 1 else [],
    }
    stored = matrix.reshape(rows, -1, size)[kept].reshape(-1)
    _replace(value, stored, tfl_file.to_dictionary("SparsityParameters", fields))
    return form


def _matrix(value: Value) -> Array | None:
    """Returns the elements of a matrix with one use, `None` if no kernel accepts it in a sparse form."""
    if type(value) is not OpResult or not all(_takes(use, value) for use in value.uses):
        return None
    op, element = value.op, value.element
    if isinstance(element, UniformType):
        is_plain = element.data.storage == I8 and not any(element.data.zero_points)
        constant = op.properties.get("value") if is_plain and isinstance(op, tfl.TFLOp) else None
    else:
        constant = tensor_data.constant_of(value) if element == types.F32 else None
    if not tensor_data.is_constant(constant) or len(constant.shape or ()) != 2 or 0 in constant.shape:
        return None
    return tensor_data.to_array(constant)


def _takes(use: Use, value: Value) -> bool:
    """Returns whether a kernel accepts a sparse matrix; XNNPACK's for floats and integers reads it as dense."""
    is_matrix = use.operation.name == _USER and use.index == 1
    kinds = [isinstance(each.element, UniformType) for each in (use.operation.operands[0], value)]
    return is_matrix and kinds[0] == kinds[1]


def _kept(matrix: Array, size: int) -> Array | None:
    """Returns a mask of the nonzero blocks of each row; `None` if rows can't be divided into blocks."""
    rows, columns = matrix.shape
    return None if columns % size else np.asarray(matrix.reshape(rows, -1, size).any(2))


def _vector(numbers: Sequence[int] | Array) -> tuple[str, dict[str, Any]]:
    name = next(name for beyond, name in _INDICES if max(numbers, default=0) < beyond)
    return name, {"values": [int(number) for number in numbers]}


def _replace(value: Value, stored: Array, sparsity: DictionaryAttr) -> None:
    assert isinstance(value, OpResult)
    op = value.op
    new = tfl.build(
        tfl.PSEUDO_SPARSE_CONST,
        result_types=(value.type,),
        properties={"value": tensor_data.of_array(stored)},
        location=op.location,
    )
    new.attributes[tfl_file.TENSORS] = ArrayAttr.get([DictionaryAttr.get({"sparsity": sparsity})])
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    replace_op(op, new.results[0])
