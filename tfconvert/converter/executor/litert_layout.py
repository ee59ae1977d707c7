"""From LiteRT's operators to kernel calls of TensorFlow's ops: layouts of filters, and operands that are options there.

Each function returns a call with the operands and attributes as TensorFlow has them. A call of an operator has all its
options as attributes, and the dtype of its first result as `result`.
"""

from __future__ import annotations

import numpy as np

from tfconvert.ops.call import Array, Call, typed

Attributes = dict[str, object]


def convolution(call: Call) -> Call:
    """A filter of outputs, height, width, inputs becomes one of height, width, inputs, outputs."""
    x, weights = call.inputs
    return call._replace(inputs=(x, weights.transpose(1, 2, 3, 0)), attributes=_strided(call))


def depthwise(call: Call) -> Call:
    """A filter of 1, height, width, outputs becomes one of height, width, inputs, outputs for each of them."""
    x, weights = call.inputs
    _, height, width, _ = weights.shape
    return call._replace(inputs=(x, weights.reshape(height, width, x.shape[-1], -1)), attributes=_strided(call))


def transposed_convolution(call: Call) -> Call:
    """A filter of outputs, height, width, inputs becomes one of height, width, outputs, inputs."""
    shape, weights, x = call.inputs
    return call._replace(inputs=(shape, weights.transpose(1, 2, 0, 3), x), attributes=_strided(call))


def convolution_3d(call: Call) -> Call:
    """Only strides and dilations are written differently."""
    strides = (call.integer(f"stride_{letter}", 1) for letter in "dhw")
    dilations = (call.integer(f"dilation_{letter}_factor", 1) for letter in "dhw")
    return _with(call, strides=(1, *strides, 1), dilations=(1, *dilations, 1))


def pool(call: Call) -> Call:
    """The sizes of windows and strides become lists."""
    size = (1, call.integer("filter_height"), call.integer("filter_width"), 1)
    return call._replace(attributes={**_strided(call), "ksize": size})


def fully_connected(call: Call) -> Call:
    """All dimensions but the last are rows, which become one dimension unless the operator keeps them."""
    x, weights = call.inputs
    rows = x if call.flag("keep_num_dims") else x.reshape(-1, weights.shape[-1])
    return call._replace(inputs=(rows, weights), attributes={"adj_y": True})


def softmax(call: Call) -> Call:
    """The logits are multiplied by `beta`."""
    (x,) = call.inputs
    return call._replace(inputs=(x * typed(call.number("beta", 1.0), x.dtype),))


def reshape(call: Call) -> Call:
    """The shape may be an option."""
    if len(call.inputs) == 2:
        return call
    return call._replace(inputs=(*call.inputs, _integers(call.integers("new_shape"))))


def axis_last(call: Call) -> Call:
    """The axis becomes the last operand."""
    return call._replace(inputs=(*call.inputs, _integers(call.integer("axis"))))


def strided_slice(call: Call) -> Call:
    """Ends may count from where the slice begins."""
    x, begin, end, strides = call.inputs
    return call._replace(inputs=(x, begin, begin + end, strides)) if call.flag("offset") else call


def split(call: Call) -> Call:
    """The number of parts has another name."""
    return _with(call, num_split=call.integer("num_splits"))


def cast(call: Call) -> Call:
    """The dtype is that of the result."""
    return _with(call, DstT=call.attributes["result"])


def indices(call: Call) -> Call:
    """The dtype of indices and of shapes is that of the result."""
    dtype = call.attributes["result"]
    return _with(call, output_type=dtype, out_type=dtype)


def unique(call: Call) -> Call:
    """The dtype of the indices is an option."""
    return _with(call, out_idx=np.int64 if call.text("idx_out_type") == "INT64" else np.int32)


def bitcast(call: Call) -> Call:
    """The dtype is that of the result."""
    return _with(call, type=call.attributes["result"])


def local_response(call: Call) -> Call:
    """The radius has another name."""
    return _with(call, depth_radius=call.integer("radius"))


def _with(call: Call, **attributes: object) -> Call:
    return call._replace(attributes={**call.attributes, **attributes})


def _strided(call: Call) -> Attributes:
    """Returns the attributes of an operator over images, with strides and dilations as lists."""
    height, width = call.integer("stride_h", 1), call.integer("stride_w", 1)
    down, across = call.integer("dilation_h_factor", 1), call.integer("dilation_w_factor", 1)
    return {**call.attributes, "strides": (1, height, width, 1), "dilations": (1, down, across, 1)}


def _integers(values: int | tuple[int, ...]) -> Array:
    return np.array(values, np.int32)
