"""Pass `fold-dequantize`: weights that a file stores in a smaller form become 32-bit floats, to be quantized again.

Files with 16-bit floats, with integers that no kernel multiplies, or with sparse weights turn them into dense floats
each time they run. Quantization finds only weights that are constants.

Before:

    func.func @main(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<[0.5, 3.0]> : tensor<2xf16>}> : () -> tensor<2xf16>
      %1 = "tfl.dequantize"(%0) : (tensor<2xf16>) -> tensor<2xf32>
      %2 = "tfl.mul"(%x, %1) <{fused_activation_function = "NONE"}>
          : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
      func.return %2 : tensor<1x2xf32>
    }

After:

    func.func @main(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<[0.5, 3.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
      %1 = "tfl.mul"(%x, %0) <{fused_activation_function = "NONE"}>
          : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
      func.return %1 : tensor<1x2xf32>
    }

In the mode `float16`, integers stay what they are: 16-bit floats would be larger, and no closer to the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.rewrite.rewriter import fuse_origins
from tfconvert.schema.dialects import tensor_data, tfl, tfl_file, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.quant import Uniform, UniformType
from tfconvert.schema.dialects.tensor_data import Array, Constant
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.limits import budget
from tfconvert.settings.quantization import INT8, Quantize

_HALVES = (types.F16, types.BF16)


@dataclass(frozen=True, slots=True)
class FoldDequantize:
    """Computes the floats of stored weights when the file is written."""

    quantize: Quantize = INT8  # How the model is quantized.
    name: ClassVar[str] = "fold-dequantize"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of weights that are computed."""
        counts: Counter[str] = Counter()
        for function in module.ops:
            if isinstance(function, FuncOp):
                for op in list(function.walk()):
                    folded = self._folded(op) if op.name in _FOLDS else None
                    if folded is not None:
                        _replace(op, folded)
                        counts["folded"] += 1
        return PassResult(counts)

    def _folded(self, op: Operation) -> Constant | None:
        """Returns the value of an op on a stored constant, or `None`."""
        (source,) = op.operands
        if op.name == _DENSIFY:
            return _dense(source)
        stored, element = _stored(source), source.element
        if stored is None or op.results[0].element != types.F32:
            return None
        if element in _HALVES:
            return tensor_data.defer("cast", (stored,), stored.type.shape, element=types.F32)
        if op.name == _DEQUANTIZE and isinstance(element, UniformType) and self.quantize.mode != "float16":
            return _dequantized(stored, element.data)
        return None


_DEQUANTIZE, _CAST, _DENSIFY = (f"{tfl.PREFIX}{name}" for name in ("dequantize", "cast", "densify"))
_FOLDS = frozenset((_DEQUANTIZE, _CAST, _DENSIFY))


def _stored(value: Value) -> Constant | None:
    """Returns what a file stores of a dense constant: the integers of a quantized one."""
    owner = value.owner
    if not isinstance(owner, tfl.TFLOp) or owner.op_name not in (tfl.PSEUDO_CONST, tfl.PSEUDO_QCONST):
        return None
    stored = owner.properties.get("value")
    return stored if tensor_data.is_constant(stored) else None


def _replace(op: Operation, value: Constant) -> None:
    element, source, block = op.results[0].element, op.operands[0].owner, op.parent
    is_quantized = isinstance(element, UniformType)
    kind = types.tensor(element, value.type.shape) if is_quantized else None
    constant = tfl.constant(value, fuse_origins([op]), kind)
    assert block is not None
    block.insert_op_before(constant, op)
    replace_op(op, constant.results[0])
    if isinstance(source, Operation) and all(result.is_unused for result in source.results):
        source.erase()


def _dequantized(stored: Constant, uniform: Uniform) -> Constant:
    """Returns the real numbers that integers represent."""
    shape = stored.type.shape
    aligned = [1] * len(shape)
    if uniform.axis is not None:
        aligned[uniform.axis] = -1
    scales, zeros = (
        tensor_data.of_array(np.array(each, np.float32).reshape(aligned))
        for each in (uniform.scales, uniform.zero_points)
    )
    floats = tensor_data.defer("cast", (stored,), shape, element=types.F32)
    if any(uniform.zero_points):
        floats = tensor_data.defer("sub", (floats, zeros), shape)
    return tensor_data.defer("mul", (floats, scales), shape)


def _dense(value: Value) -> Constant | None:
    """Returns a sparse constant with its zeros, or `None` if it isn't one."""
    owner, shape = value.owner, value.shape
    if not isinstance(owner, tfl.TFLOp) or owner.op_name != tfl.PSEUDO_SPARSE_CONST or not types.is_static(shape):
        return None
    stored, tensors = owner.properties.get("value"), owner.attributes.get(tfl_file.TENSORS)
    own = tensors.data[0] if isinstance(tensors, ArrayAttr) else None
    if not tensor_data.is_constant(stored) or not isinstance(own, DictionaryAttr) or shape is None:
        return None
    values = tensor_data.to_array(stored)
    positions = _positions(tfl_file.from_dictionary("Tensor", own).get("sparsity", {}), shape)
    if positions is None or len(positions[0]) != values.size:
        return None
    element = stored.type.element_type
    budget().take_bytes(int(np.prod(shape)) * values.itemsize, "a sparse constant")
    dense = np.zeros(shape, values.dtype)
    dense[positions] = values
    return tensor_data.of_array(dense, element)


def _positions(sparsity: Mapping[str, Any], shape: Sequence[int]) -> tuple[Array, ...] | None:
    """Returns where the stored elements of a sparse tensor are, an array for each dimension; `None` if it is damaged.

    The dimensions are walked in `traversal_order`; those after the tensor's own are the insides of blocks.
    """
    order, blocks = list(sparsity.get("traversal_order", ())), list(sparsity.get("block_map", ()))
    rank, levels = len(shape), sparsity.get("dim_metadata", ())
    if sorted(order) != list(range(rank + len(blocks))) or len(levels) != len(order):
        return None
    if not order or not set(blocks) <= set(range(rank)):
        return None
    found: list[Array] = []
    count, most = 1, int(np.prod(shape))
    sizes = dict.fromkeys(range(rank), 1)
    for dimension, level in zip(order, levels, strict=True):
        if level.get("format", "DENSE") == "DENSE":
            size = level.get("dense_size", 0)
            if not 0 < count * size <= most:
                return None
            parents, inner = np.divmod(np.arange(count * size), size)
            if dimension >= rank:
                sizes[blocks[dimension - rank]] = size
        else:
            segments, inner = (_numbers(level, key) for key in ("array_segments", "array_indices"))
            counts = np.diff(segments)
            if len(counts) != count or (counts < 0).any() or counts.sum() != len(inner):
                return None
            parents = np.repeat(np.arange(count), counts)
        found = [*(each[parents] for each in found), inner]
        count = len(inner)
    result = [np.zeros(count, np.int64) for _ in shape]
    for dimension, places in zip(order, found, strict=True):
        target = dimension if dimension < rank else blocks[dimension - rank]
        result[target] = result[target] + places * (sizes[target] if dimension < rank else 1)
    inside = all(((each >= 0) & (each < size)).all() for each, size in zip(result, shape, strict=True))
    return tuple(result) if inside else None


def _numbers(level: Mapping[str, Any], key: str) -> Array:
    held = level.get(key)
    values = held[1].get("values", ()) if held else ()
    return np.asarray(bytearray(values) if isinstance(values, bytes) else values, np.int64)
