"""Derivatives, as graphs that train hold them: of activations, biases, normalizations, slices, pads and resizing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

from tfconvert.ops.call import Array, Call, ints
from tfconvert.ops.declaration import Decomposition, op, ops_like
from tfconvert.ops.formula import Tensor, in_turn, moved, sizes_of
from tfconvert.ops.operands import Operands
from tfconvert.ops.requirements import all_of, rank_is_known
from tfconvert.ops.resampling import KERNELS, Axis, bicubic, bilinear, nearest, resized, scaled_weights
from tfconvert.ops.shape_functions import Shapes, all_equal, same
from tfconvert.ops.slicing import Selector, check_strides, selectors
from tfconvert.ops.windows import channels_first
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.dims import dim_of_element, with_rank, with_rank_at_least
from tfconvert.schema.dialects.relations.rules import is_vector, rank, rank_at_least
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


def sigmoid_grad(y: Tensor, gradient: Tensor) -> Tensor:
    return gradient * y * (1 - y)


def tanh_grad(y: Tensor, gradient: Tensor) -> Tensor:
    return gradient * (1 - y.square())


def _where_sloped(gradient: Tensor, result: Tensor) -> Tensor:
    """Returns zero where the gradient is zero, however steep the function is there, as TensorFlow does."""
    return gradient.equal(0).where(0, result)


def rsqrt_grad(y: Tensor, gradient: Tensor) -> Tensor:
    y = y.conj()
    return _where_sloped(gradient, gradient * (y.square() * y) * -0.5)


def sqrt_grad(y: Tensor, gradient: Tensor) -> Tensor:
    return _where_sloped(gradient, gradient * 0.5 / y.conj())


def reciprocal_grad(y: Tensor, gradient: Tensor) -> Tensor:
    return _where_sloped(gradient, -(gradient * y.conj().square()))


def relu_grad(gradient: Tensor, x: Tensor) -> Tensor:
    return (x > 0).where(gradient, 0)


def relu6_grad(gradient: Tensor, x: Tensor) -> Tensor:
    return ((x > 0) & (x < 6)).where(gradient, 0)


def leaky_relu_grad(gradient: Tensor, x: Tensor, *, alpha: float = 0.2) -> Tensor:
    slope = gradient * alpha
    return (x > 0).where(gradient, slope)


def elu_grad(gradient: Tensor, y: Tensor) -> Tensor:
    """Below zero the derivative is `exp(x)`, which is one more than the result."""
    slope = (y + 1) * gradient
    return (y < 0).where(slope, gradient)


def selu_grad(gradient: Tensor, y: Tensor) -> Tensor:
    slope = (y + _SELU_SCALE_ALPHA) * gradient
    return (y < 0).where(slope, gradient * _SELU_SCALE)


def softplus_grad(gradient: Tensor, x: Tensor) -> Tensor:
    return gradient * x.sigmoid()


def softsign_grad(gradient: Tensor, x: Tensor) -> Tensor:
    return gradient / (abs(x) + 1).square()


def bias_add_grad(gradient: Tensor, *, data_format: str = "NHWC") -> Tensor:
    channel = 1 if data_format == "NCHW" else gradient.rank - 1
    return gradient.sum([axis for axis in range(gradient.rank) if axis != channel])


def _bias_gradient_shape(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 2)
    if shape is None:
        return ((-1,),)
    return ((shape[1 if operands.text("data_format") == "NCHW" else -1],),)


def _image_rank(view: View) -> None:
    rank_at_least("out_backprop", 3 if view.string("data_format") == "NCHW" else 2)(view)


def _image_gradient_shape(operands: Operands) -> Shapes:
    """The gradient has the shape of the image that was resized."""
    with_rank(operands.shape(0), 4, "the gradient")
    return (operands.shape(1),)


# Returns the matrix that an axis was resized by, of its sizes before and after.
_Matrix = Callable[[int, int, Call], Array]


def _bicubic(inputs: int, outputs: int, call: Call) -> Array:
    align, half = call.flag("align_corners"), call.flag("half_pixel_centers")
    return bicubic(inputs, outputs, align_corners=align, half_pixel_centers=half)


def resize_gradient(
    matrix: _Matrix, gradient: Tensor, of: Tensor, *, attributes: Mapping[str, object] = MappingProxyType({})
) -> Tensor:
    """Multiplies rows and columns by the matrices that the image was multiplied by, transposed.

    Args:
        matrix: Returns the matrix of an axis.
        gradient: The gradient.
        of: The image, or the vector of its height and width.
        attributes: The op's attributes.
    """
    sizes = (of.shape or ())[1:3] if of.rank == 4 else ints(np.asarray(of.constant))
    call = Call("ResizeBilinear", (), attributes)
    return _undone(gradient, [matrix(*each, call) for each in zip(sizes, (gradient.shape or ())[1:3], strict=True)])


def _undone(gradient: Tensor, matrices: Sequence[Array | Tensor]) -> Tensor:
    """Multiplies the rows and the columns of images by the matrices [outputs, inputs] of their two axes."""
    value = gradient
    for weights, order in zip(matrices, ((0, 3, 2, 1), (0, 1, 3, 2)), strict=True):
        factors = weights if isinstance(weights, Tensor) else gradient.of(weights.astype(gradient.dtype))
        value = gradient.op("BatchMatMulV2", value.transpose(order), factors).transpose(order)
    return value


def scaled_gradient(
    gradient: Tensor,
    of: Tensor,
    scale: Tensor,
    translation: Tensor,
    *,
    kernel_type: str = "lanczos3",
    antialias: bool = True,
) -> Tensor:
    """The same for `ScaleAndTranslate`, whose matrices follow from operands."""
    matrices = []
    for at, (inputs, outputs) in enumerate(zip((of.shape or ())[1:3], (gradient.shape or ())[1:3], strict=True)):
        pixels, places = (gradient.of(np.arange(size, dtype=np.float32)) for size in (inputs, outputs))
        axis = Axis(gradient.of(np.array(inputs, np.float32)), pixels.reshape((1, -1)), places.reshape((-1, 1)))
        numbers = (
            each.op("StridedSlice", each, [at], [at + 1], [1], shrink_axis_mask=1) for each in (scale, translation)
        )
        weights = scaled_weights(axis, kernel_type, *numbers, antialias=antialias)
        assert isinstance(weights, Tensor)
        matrices.append(weights)
    return _undone(gradient, matrices)


def _resized_by(matrix: _Matrix, of: Shape | Array) -> tuple[Decomposition, ...]:
    formula = partial(resize_gradient, matrix)
    return (Decomposition(formula, requires=_image_is_known, example=((2, 8, 8, 3), of)),)


def _image_is_known(op: Operation) -> str | None:
    shapes = [value.shape for value in (op.operands[0], op.results[0])]
    is_known = all(shape is not None and min(shape[1:3]) > 0 for shape in shapes)
    return None if is_known else "the height or the width is not known"


def _kernel_is_known(op: Operation) -> str | None:
    return None if tf.get(op, "kernel_type", "lanczos3") in KERNELS else "its kernel is not known"


def batch_norm_gradient(
    gradient: Tensor,
    x: Tensor,
    scale: Tensor,
    mean: Tensor,
    variance: Tensor,
    *_: Tensor,
    epsilon: float = 1e-4,
    data_format: str = "NHWC",
    is_training: bool = True,
) -> Sequence[Tensor]:
    """Returns the gradients of the images, the scale and the offset, and reserved spaces, which are a GPU's.

    In training the mean and the variance are the batch's, which depend on the images as well.
    """
    channel = 1 if channels_first(data_format) else x.rank - 1
    axes = [axis for axis in range(x.rank) if axis != channel]
    over = [1] * x.rank
    over[channel] = -1
    slopes, images, reserved = gradient.wide(), x.wide(), scale.of(np.zeros(0, scale.dtype))
    inverse = (variance + epsilon).rsqrt()
    centred = images - mean.reshape(over)
    by_offset, by_scale = slopes.sum(axes), (slopes * centred).sum(axes) * inverse
    if is_training:
        share = (slopes * centred).mean(axes) * inverse.square()
        slopes = slopes - slopes.mean(axes, keep_dims=True) - centred * share.reshape(over)
    by_image = slopes * (scale * inverse).reshape(over)
    return by_image.cast(gradient.dtype), by_scale, by_offset, reserved, reserved


def _batch_norm_gradient_shape(operands: Operands) -> Shapes:
    image, channels = operands.shape(1), operands.shape(2)
    return (image, channels, channels, (0,), (0,))


def local_response_gradient(
    gradient: Tensor,
    x: Tensor,
    y: Tensor,
    *,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
) -> Tensor:
    """Sums over neighbouring channels are products with a matrix."""
    depth = (x.shape or ())[-1]
    places = np.arange(depth)
    near = x.of((abs(places[:, None] - places) <= depth_radius).astype(x.dtype))
    norm: Tensor = x.op("BatchMatMulV2", x.square(), near) * alpha + bias
    shared: Tensor = x.op("BatchMatMulV2", gradient * y / norm, near)
    return gradient * norm.power(-beta) - x * shared * (2 * alpha * beta)


def _depth_is_known(op: Operation) -> str | None:
    shape = op.operands[1].shape
    return "the number of channels is not known" if shape is None or shape[-1] < 0 else None


def mirror_pad_gradient(gradient: Tensor, paddings: Tensor, *, mode: str = "REFLECT") -> Tensor:
    """Adds what was padded to the elements that it mirrors, along each axis in turn."""
    edge = 1 if mode == "REFLECT" else 0
    value = gradient
    for axis, (before, behind) in enumerate(np.asarray(paddings.constant).tolist()):
        if not before and not behind:
            continue
        padded = (value.shape or ())[axis]
        dim = padded - before - behind
        first = moved(value, axis, 0, before)
        last = moved(value, axis, behind - padded, behind)
        value = moved(value, axis, -before, dim)
        if before:
            value = value + moved(first.op("ReverseV2", first, [axis]), axis, edge, dim)
        if behind:
            value = value + moved(last.op("ReverseV2", last, [axis]), axis, dim - behind - edge, dim)
    return value


def _mirrored_is_known(op: Operation) -> str | None:
    constant, shape = tensor_data.constant_of(op.operands[1]), op.operands[0].shape
    if constant is None or shape is None:
        return "the paddings or the rank are not known"
    pads = tensor_data.to_array(constant)
    is_known = all(dim >= 0 or not pad.any() for dim, pad in zip(shape, pads, strict=True))
    return None if is_known else "a dimension of unknown size is padded"


def _mirror_pad_gradient_shape(operands: Operands) -> Shapes:
    shape, pads = operands.shape(0), operands.value(1)
    if shape is None or pads is None:
        return (None if shape is None else (-1,) * len(shape),)
    amounts = pads.sum(1).tolist()
    return (
        tuple(
            dim - amount if dim >= 0 else dim if not amount else -1 for dim, amount in zip(shape, amounts, strict=True)
        ),
    )


def _slice_gradient_shape(operands: Operands) -> Shapes:
    """The gradient has the shape of what was sliced."""
    vector, sizes = operands.shape(0), operands.elements(0)
    if sizes is None:
        return (None if vector is None or vector[0] < 0 else (-1,) * vector[0],)
    return (tuple(map(dim_of_element, sizes)),)


def slice_gradient(
    shape: Tensor,
    begin: Tensor,
    end: Tensor,
    strides: Tensor,
    gradient: Tensor,
    *,
    attributes: Mapping[str, object] = MappingProxyType({}),
    result_shape: Shape | None = None,
) -> Tensor:
    """Returns zeros that have the gradient where the slice was taken from."""
    (rank,) = shape.shape or ()
    dims = sizes_of(shape, result_shape or (-1,) * rank)
    bounds, steps = (begin.constant, end.constant), ints(np.asarray(strides.constant))
    found = list(selectors(Call("StridedSlice", (), attributes).integer, len(steps), rank))
    new = [at for at, each in enumerate(each for each in found if not each.shrinks) if each.axis < 0]
    if new:
        gradient = gradient.op("Squeeze", gradient, squeeze_dims=new)
    starts, sizes = [0] * rank, [-1] * rank
    amounts: list[Tensor | int] = [0] * (2 * rank)
    for each in (each for each in found if each.axis >= 0):
        axis, step = each.axis, _step(each, steps)
        if each.shrinks:
            gradient = gradient.expand_dims(axis)
        if step < 0:
            gradient = gradient.op("ReverseV2", gradient, [axis])
        if _is_complete(each, step):
            continue
        taken = _taken_indices(each, step, bounds, dims[axis])
        if taken is None:
            amounts[2 * axis : 2 * axis + 2] = _around(each, shape, begin, gradient)
        else:
            gradient = in_turn([gradient], axis, abs(step))
            starts[axis], sizes[axis] = min(taken, default=0), dims[axis]
    gradient = gradient.placed(starts, sizes)
    if all(isinstance(amount, int) for amount in amounts):
        return gradient
    pads = gradient.op("Pack", *amounts, axis=0, N=len(amounts)).reshape([rank, 2])
    return gradient.op("Pad", gradient, pads)  # type: ignore[no-any-return]


def _step(each: Selector, steps: Sequence[int]) -> int:
    return 1 if each.is_whole or each.shrinks else steps[each.position]


def _is_complete(each: Selector, step: int) -> bool:
    """Returns whether all indices of a dimension are taken."""
    return abs(step) == 1 and not each.has_begin and not each.has_end


def _taken_indices(each: Selector, step: int, bounds: tuple[Array | None, Array | None], dim: int) -> range | None:
    """Returns the indices of a dimension that are taken, `None` if they are computed."""
    begin, end = (None if vector is None else int(vector[each.position % len(vector)]) for vector in bounds)
    if dim < 0 or (each.has_begin and begin is None) or (each.has_end and end is None and not each.shrinks):
        return None
    if each.shrinks:
        return range(dim)[begin : None if begin == -1 or begin is None else begin + 1]
    return range(dim)[begin if each.has_begin else None : end if each.has_end else None : step]


def _around(each: Selector, shape: Tensor, begin: Tensor, gradient: Tensor) -> tuple[Tensor | int, Tensor | int]:
    """Returns how many elements of a dimension are before and behind those that are taken, all in a row."""
    axis, dim = each.axis, _picked(shape, each.axis)
    before: Tensor | int = 0
    if each.has_begin:
        first = _picked(begin, each.position)
        before = (first < 0).where(first + dim, first).maximum(0).minimum(dim)
    return before, dim - before - gradient.size(axis)


def _picked(vector: Tensor, index: int) -> Tensor:
    """Returns an element of a vector, as `i32`."""
    element = vector.op("StridedSlice", vector, [index], [index + 1], [1], shrink_axis_mask=1)
    return element.cast(np.int32)  # type: ignore[no-any-return]


def _is_followed(op: Operation) -> str | None:
    """Slices in steps need sizes that are known; others may be computed."""
    shape, *bounds, gradient = (operand for operand in op.operands)
    steps, vector, dims = tensor_data.constant_of(bounds[2]), shape.shape, gradient.shape
    if steps is None or not types.is_static(vector) or dims is None:
        return "the rank or the steps are not known"
    (rank,) = vector or ()
    strides = ints(tensor_data.to_array(steps))
    found = selectors(partial(tf.get, op, default=0), len(strides), rank)
    arrays = [tensor_data.constant_of(bound) for bound in bounds[:2]]
    known = tuple(None if each is None else tensor_data.to_array(each) for each in arrays)
    sizes = op.results[0].shape or (-1,) * rank
    for each in (each for each in found if each.axis >= 0):
        step = _step(each, strides)
        if step == 1 or _is_complete(each, step):
            continue
        if _taken_indices(each, step, (known[0], known[1]), sizes[each.axis]) is None or dims.count(-1) > 1:
            return "it is taken in steps from a tensor of unknown size"
    return None


_IMAGE, _PAIR = (2, 4, 4, 3), np.array([4, 4], np.int32)

# Derivatives of activations take the gradient first and then the operand (elu and selu: the result), all others the
# result first.
OPS = (
    op(
        "BiasAddGrad",
        shape=_bias_gradient_shape,
        decompose=(Decomposition(bias_add_grad, "number", rank_is_known),),
        relations=(_image_rank,),
    ),
    op("InvGrad", shape=all_equal, decompose=reciprocal_grad, verified=True),
    op("EluGrad", shape=all_equal, decompose=elu_grad, verified=True),
    op("LeakyReluGrad", shape=all_equal, decompose=leaky_relu_grad, verified=True),
    op("ReciprocalGrad", shape=all_equal, decompose=reciprocal_grad, verified=True),
    op("Relu6Grad", shape=all_equal, decompose=relu6_grad, verified=True),
    op("ReluGrad", shape=all_equal, decompose=relu_grad, verified=True),
    op("RsqrtGrad", shape=all_equal, decompose=rsqrt_grad, verified=True),
    op("SeluGrad", shape=all_equal, decompose=selu_grad, verified=True),
    op("SigmoidGrad", shape=all_equal, decompose=sigmoid_grad, verified=True),
    op("SoftplusGrad", shape=all_equal, decompose=softplus_grad, verified=True),
    op("SoftsignGrad", shape=all_equal, decompose=softsign_grad, verified=True),
    op("SqrtGrad", shape=all_equal, decompose=sqrt_grad, verified=True),
    op("TanhGrad", shape=all_equal, decompose=tanh_grad, verified=True),
    *ops_like(
        "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3",
        shape=_batch_norm_gradient_shape,
        decompose=(Decomposition(batch_norm_gradient, requires=rank_is_known, example=(_IMAGE, _IMAGE, *[(3,)] * 4)),),
    ),
    op("LRNGrad", shape=same, decompose=(Decomposition(local_response_gradient, requires=_depth_is_known),)),
    op(
        "MirrorPadGrad",
        shape=_mirror_pad_gradient_shape,
        decompose=(
            Decomposition(
                mirror_pad_gradient,
                "",
                _mirrored_is_known,
                example=((2, 6, 6, 3), np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32)),
            ),
        ),
        relations=(rank("paddings", 2),),
    ),
    op("ResizeBicubicGrad", shape=_image_gradient_shape, decompose=_resized_by(_bicubic, _IMAGE)),
    op("ResizeBilinearGrad", shape=_image_gradient_shape, decompose=_resized_by(bilinear, _IMAGE)),
    op("ResizeNearestNeighborGrad", shape=resized, decompose=_resized_by(nearest, _PAIR)),
    op(
        "ScaleAndTranslateGrad",
        shape=_image_gradient_shape,
        decompose=(
            Decomposition(
                scaled_gradient,
                requires=all_of(_image_is_known, _kernel_is_known),
                example=((2, 8, 8, 3), _IMAGE, (2,), (2,)),
            ),
        ),
    ),
    op(
        "StridedSliceGrad",
        shape=_slice_gradient_shape,
        decompose=(
            Decomposition(
                slice_gradient,
                "",
                _is_followed,
                example=(np.array([4, 3], np.int32), *(np.array([number], np.int32) for number in (1, 3, 1)), (2, 3)),
            ),
        ),
        relations=(is_vector("shape"), check_strides),
    ),
)
