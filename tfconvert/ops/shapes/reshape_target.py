"""The constant that may replace a computed shape operand of a reshape.

Before:

    %1 = "tf.Shape"(%x) : (tensor<?x7x7x160xf32>) -> tensor<4xi32>
    %2 = "tf.StridedSlice"(%1, ...) : (...) -> tensor<i32>
    %3 = "tf.Pack"(%2, %7840) : (tensor<i32>, tensor<i32>) -> tensor<2xi32>
    %4 = "tf.Reshape"(%x, %3) : (tensor<?x7x7x160xf32>, tensor<2xi32>) -> tensor<?x7840xf32>

After:

    %1 = "tf.Const"() <{value = dense<[-1, 7840]> : tensor<2xi32>}> : () -> tensor<2xi32>
    %2 = "tf.Reshape"(%x, %1) : (tensor<?x7x7x160xf32>, tensor<2xi32>) -> tensor<?x7840xf32>

A value's elements determine the one dimension that isn't known as long as all others are known and none is 0: that
holds for an empty batch too, where the missing dimension comes out as 0.
"""

from __future__ import annotations

from tfconvert.schema.dialects.types import Shape


def constant_target(shape: Shape | None) -> tuple[int, ...] | None:
    """Returns the shape operand that gives a result of this shape, `None` if no constant of 32 bits does.

    Args:
        shape: The shape of the reshape's result, unknown dimensions negative.
    """
    if shape is None:
        return None
    unknown = sum(dim < 0 for dim in shape)
    if unknown > 1 or (unknown == 1 and 0 in shape) or max(shape, default=0) >= 1 << 31:
        return None
    return tuple([dim if dim >= 0 else -1 for dim in shape])
