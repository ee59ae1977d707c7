"""The tables of all shape and value functions, and the one way to use them."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.ops.operands import Operands, ShapeFunction, ValueFunction
from tfconvert.ops.shapes import (
    convolution,
    creation,
    elementwise,
    image,
    indexing,
    matmul,
    normalization,
    pooling,
    rearrange,
    reduction,
    sequences,
    sparse,
    values,
)
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import UNKNOWN, MismatchError, Partial, merge, text
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.values import OpResult

SHAPES: Mapping[str, ShapeFunction] = {
    **convolution.SHAPES,
    **creation.SHAPES,
    **elementwise.SHAPES,
    **image.SHAPES,
    **indexing.SHAPES,
    **matmul.SHAPES,
    **normalization.SHAPES,
    **pooling.SHAPES,
    **rearrange.SHAPES,
    **reduction.SHAPES,
    **sparse.SHAPES,
}
"""Op name -> shape function, of every op that has one."""

_FOLLOWED = (types.I32, types.I64)

_SHAPES = {**{f"tf.{name}": function for name, function in SHAPES.items()}, **sequences.SHAPES}
_VALUES: Mapping[str, ValueFunction] = {f"tf.{name}": function for name, function in values.VALUES.items()}


def shape_function(op_name: str) -> ShapeFunction | None:
    """Returns the shape function of an op by its name in TensorFlow's registry, `None` if there is none."""
    return SHAPES.get(op_name)


def infer_shapes(operands: Operands, noted: list[Shape | None]) -> list[Shape | None]:
    """Returns the results' shapes: what the op determines, merged with the results' types.

    Unknown dimensions that come from an operand are symbols; others are -1.

    Args:
        operands: The op.
        noted: The results' shapes as their types have them.

    Raises:
        ConversionError: Operands, attributes and result types contradict each other (`shape-mismatch`).
    """
    function = _SHAPES.get(operands.op.name)
    if function is None:
        return noted
    try:
        return [merge(*pair) for pair in zip(function(operands), noted, strict=True)]
    except MismatchError as mismatch:
        raise _contradiction(operands, str(mismatch)) from None
    except ValueError:
        raise _contradiction(operands, f"it has {len(noted)} results, which is not what it should have") from None


def infer_values(operands: Operands, shapes: list[Shape | None]) -> list[Partial | None]:
    """Returns the elements of results that are integer scalars or vectors, as far as they are known.

    Args:
        operands: The op.
        shapes: The results' shapes as inferred.
    """
    function = _VALUES.get(operands.op.name)
    if function is None or not any(map(_is_followed, operands.op.results, shapes)):
        return [None] * len(shapes)
    try:
        found = function(operands)
    except MismatchError as mismatch:
        raise _contradiction(operands, str(mismatch)) from None
    return [
        partial if _is_followed(result, shape) and _fits(partial, result, shape) else None
        for partial, result, shape in zip(found, operands.op.results, shapes, strict=True)
    ]


def _is_followed(result: OpResult, shape: Shape | None) -> bool:
    return shape is not None and len(shape) <= 1 and types.element_of(result.type) in _FOLLOWED


def _fits(partial: Partial | None, result: OpResult, shape: Shape | None) -> bool:
    """Returns whether there are as many elements as there should be, each within its type: overflow is not followed."""
    if partial is None or shape is None or len(partial) != (shape[0] if shape else 1):
        return False
    limit = 1 << 31 if types.element_of(result.type) == types.I32 else 1 << 63
    return all(element <= UNKNOWN or -limit <= element < limit for element in partial)


def _contradiction(operands: Operands, message: str) -> ConversionError:
    shapes = ", ".join(map(text, operands.shapes()))
    return error_at(
        operands.op,
        "shape-mismatch",
        f"{message} (operands: {shapes or 'none'})",
        "the graph contradicts itself, or an input shape passed for it doesn't fit",
    )
