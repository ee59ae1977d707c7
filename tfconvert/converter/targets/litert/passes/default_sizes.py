"""Pass `default-sizes`: sizes of dynamic inputs that the runtime allocates until they are resized.

By default the runtime uses 1 for each dynamic dimension, and fails if an image or a sequence must be larger. The first
dimension stays 1 if possible. Functions whose first dimensions only are dynamic don't change.

Before:

    func.func @main(%x: tensor<?x?x3xf32>) -> tensor<?x1x?x4xf32> {
      %axis = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %f = "tf.Const"() <{value = dense<1.0> : tensor<1x5x3x4xf32>}> : () -> tensor<1x5x3x4xf32>
      %0 = "tf.ExpandDims"(%x, %axis) : (tensor<?x?x3xf32>, tensor<i32>) -> tensor<?x1x?x3xf32>
      %1 = "tf.Conv2D"(%0, %f) <{strides = [1, 1, 1, 1], padding = "VALID"}>
        : (tensor<?x1x?x3xf32>, tensor<1x5x3x4xf32>) -> tensor<?x1x?x4xf32>
      func.return %1 : tensor<?x1x?x4xf32>
    }

After:

    func.func @main(%x: tensor<?x?x3xf32> {tfl.tensor = {shape = array<i32: 1, 8, 3>}}) -> tensor<?x1x?x4xf32> {
      %axis = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %f = "tf.Const"() <{value = dense<1.0> : tensor<1x5x3x4xf32>}> : () -> tensor<1x5x3x4xf32>
      %0 = "tf.ExpandDims"(%x, %axis) : (tensor<?x?x3xf32>, tensor<i32>) -> tensor<?x1x?x3xf32>
      %1 = "tf.Conv2D"(%0, %f) <{strides = [1, 1, 1, 1], padding = "VALID"}>
        : (tensor<?x1x?x3xf32>, tensor<1x5x3x4xf32>) -> tensor<?x1x?x4xf32>
      func.return %1 : tensor<?x1x?x4xf32>
    }
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from tfconvert.converter.ir.interface import entry_functions, is_open_inside
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.shapes.trial import fits
from tfconvert.schema.dialects import tfl_file, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.values import Value

# The sizes to try, in ascending order. Sizes that are too small fail early, at little cost.
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 224, 256, 512, 1024, 4096, 16384, 65536)


class DefaultSizes:
    """Records the minimum sizes of dynamic inputs that the model works with."""

    __slots__ = ()

    name: ClassVar[str] = "default-sizes"

    def apply(self, module: ModuleOp) -> PassResult:
        """Annotates the arguments of exported functions."""
        for function in entry_functions(module):
            if function.is_declaration:
                continue
            open_ones: dict[Value, Shape] = {
                argument: shape for argument in function.body.block.args if (shape := _dynamic_shape(argument))
            }
            if any(is_open_inside(shape) for shape in open_ones.values()):
                for shapes in _candidates(open_ones):
                    if fits(function, shapes):
                        _note(function, shapes)
                        break
        return NOTHING_DONE


def _dynamic_shape(argument: Value) -> Shape:
    """Returns the shape of an argument with dynamic dimensions, else an empty one."""
    shape = argument.shape
    return shape if shape is not None and not types.is_static(shape) else ()


def _candidates(shapes: dict[Value, Shape]) -> Iterator[dict[Value, Shape]]:
    """Yields shapes to try: with a batch of 1, then with batches as large as the rest."""
    for has_batch in (True, False):
        for size in _SIZES:
            yield {value: _filled(shape, size, has_batch) for value, shape in shapes.items()}


def _filled(shape: Shape, size: int, has_batch: bool) -> Shape:
    batch = 1 if has_batch and len(shape) > 1 else size
    return tuple(dim if dim >= 0 else size if axis else batch for axis, dim in enumerate(shape))


def _note(function: FuncOp, shapes: dict[Value, Shape]) -> None:
    """Records the shapes of arguments as fields of their tensors, unless all dynamic dimensions are 1."""
    known = tfl_file.dictionaries(function.arg_attrs)
    items: list[Attribute] = []
    for argument in function.body.block.args:
        own = known[argument.index] if argument.index < len(known) else None
        entries = dict(own.data) if isinstance(own, DictionaryAttr) else {}
        shape = shapes.get(argument)
        if shape is not None and shape != tuple(1 if dim < 0 else dim for dim in _dynamic_shape(argument)):
            entries[tfl_file.TENSOR] = tfl_file.to_dictionary("Tensor", {"shape": shape})
        items.append(DictionaryAttr.get(entries))
    if any(isinstance(each, DictionaryAttr) and tfl_file.TENSOR in each.data for each in items):
        function.properties["arg_attrs"] = ArrayAttr.get(items)
