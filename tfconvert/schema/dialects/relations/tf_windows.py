"""Relations of `tf` ops that move windows over pictures, multiply matrices, or treat channels alike."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.relations.rules import (
    Rule,
    at_least,
    attribute_between,
    broadcast,
    contradict,
    every,
    rank,
    rank_at_least,
    same_dims,
    scalar,
    size,
    vector,
)
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.dialects.types import Shape


def _positive_lists(count: int) -> Rule:
    """Returns the rule that strides and dilations are a positive number for each dimension."""

    def rule(view: View) -> None:
        for name in ("strides", "dilations"):
            found = view.list(name)
            if len(found) != count:
                view.fail(f"the attribute {name!r} must have {count} items, found {len(found)}")
            if min(found) <= 0:
                view.fail(f"the attribute {name!r} must be positive, found {found}")

    return rule


def _explicit_padding(count: int) -> Rule:
    def rule(view: View) -> None:
        if view.string("padding") != "EXPLICIT":
            return
        found = view.list("explicit_paddings")
        if len(found) != 2 * count:
            view.fail(f"the attribute 'explicit_paddings' must have {2 * count} items, found {len(found)}")
        if min(found) < 0:
            view.fail(f"the attribute 'explicit_paddings' must not be negative, found {found}")

    return rule


def _convolution(count: int) -> Rule:
    """Returns the rule of convolutions of so many dimensions, the batch and the channels included."""

    def rule(view: View) -> None:
        channels = 1 if view.string("data_format").startswith("NC") else count - 1
        taken, each = view.dim("input", channels), view.dim("filter", count - 2)
        if taken >= 0 and each > 0 and taken % each:
            view.fail(f"the channels of 'input' ({taken}) must be a multiple of those of 'filter' ({each})")
        result = view.shape("output")
        expected = _convolved(view, count, channels)
        if result is not None and contradict(expected, result):
            view.fail(f"'output' must be {_text(view, expected)}, as its operands make it, found {view.type('output')}")

    return every(rank("input", count), rank("filter", count), _explicit_padding(count), _positive_lists(count), rule)


def _text(view: View, shape: Shape) -> str:
    return str(types.tensor(view.element("output") or types.F32, shape))


def _convolved(view: View, count: int, channels: int) -> Shape:
    """Returns the shape of a convolution's result, -1 where it is unknown."""
    result = [-1] * count
    result[0], result[channels] = view.dim("input", 0), view.dim("filter", count - 1)
    first = 2 if channels == 1 else 1
    for number in range(count - 2):
        dim = first + number
        taken, window = view.dim("input", dim), view.dim("filter", number)
        if taken < 0 or window < 0:
            continue
        stride, reach = view.list("strides")[dim], (window - 1) * view.list("dilations")[dim] + 1
        if view.string("padding") == "SAME":
            result[dim] = -(-taken // stride)
            continue
        if view.string("padding") == "EXPLICIT":
            taken += sum(view.list("explicit_paddings")[2 * dim : 2 * dim + 2])
        result[dim] = (taken - reach + stride) // stride
        if result[dim] < 0:
            view.fail(f"the window of 'filter' ({reach}) must fit dimension {dim} of 'input' ({taken})")
    return tuple(result)


def _bias(value: str) -> Rule:
    """Returns the rule that the ranks of a value and a bias fit the data format."""

    def rule(view: View) -> None:
        is_first = view.string("data_format") == "NCHW"
        rank_at_least(value, 3 if is_first else 2)(view)
        if value == "value":
            vector("bias")(view)
            same_dims("value", _channels(view), "bias", 0)(view)

    return rule


def _channels(view: View) -> int:
    shape = view.shape("value")
    if shape is None or view.string("data_format") != "NCHW":
        return -1
    return len(shape) - 3 if len(shape) >= 3 else -1


def _matmul(view: View) -> None:
    left, right, result = view.shape("x"), view.shape("y"), view.shape("output")
    if left is None or right is None:
        return
    both = broadcast(left[:-2], right[:-2])
    if both is None and view.op.name == "tf.BatchMatMulV2":
        view.fail(f"the batch dimensions of 'x' and 'y' must agree, found {view.type('x')} and {view.type('y')}")
    if view.op.name == "tf.BatchMatMul":
        both = left[:-2] if len(left) == len(right) else ()
        pairs = zip(left[:-2], right[:-2], strict=False)
        if any(a != b and a >= 0 and b >= 0 for a, b in pairs):
            view.fail(f"the batch dimensions of 'x' and 'y' must agree, found {view.type('x')} and {view.type('y')}")
    if result is None:
        return
    rank = max(len(left), len(right))
    if len(result) != rank:
        view.fail(f"'output' must have rank {rank}, found {view.type('output')}")
    rows = left[-1] if view.attribute("adj_x") else left[-2]
    columns = right[-2] if view.attribute("adj_y") else right[-1]
    batch = result[:-2] if view.op.name == "tf.BatchMatMul" else both or ()
    if contradict((*batch, rows, columns), result):
        view.fail(f"'output' must be {_text(view, (*batch, rows, columns))}, found {view.type('output')}")


def _batch_to_space(view: View) -> None:
    block = view.integer("block_size", 1)
    source, result, crops = view.shape("input"), view.shape("output"), view.integers("crops")
    if crops is not None and min(crops) < 0:
        view.fail(f"'crops' must not be negative, found {crops}")
    batch = -1 if source is None else source[0]
    if batch >= 0 and batch % (block * block):
        view.fail(f"the batch of 'input' ({batch}) must be a multiple of {block * block}, the square of 'block_size'")
    if source is None or result is None:
        return
    expected = [batch // (block * block) if batch >= 0 else -1, -1, -1, source[3]]
    for index in (1, 2):
        whole = source[index] * block
        if source[index] >= 0 and crops is not None:
            expected[index] = whole - crops[2 * index - 2] - crops[2 * index - 1]
        elif 0 <= whole < result[index]:
            view.fail(f"dimension {index} of 'output' must be at most {whole}, found {result[index]}")
    if contradict(expected, result):
        view.fail(f"'output' must be {_text(view, tuple(expected))}, found {view.type('output')}")


def _batch_to_space_nd(view: View) -> None:
    blocks, crops = view.shape("block_shape"), view.shape("crops")
    if blocks is None or crops is None or -1 in (*blocks, *crops) or not blocks:
        return
    if crops != (blocks[0], 2):
        view.fail(f"'crops' must have the shape [{blocks[0]}, 2], found {view.type('crops')}")


def _space_to_batch_nd(view: View) -> None:
    source, blocks, pads = view.shape("input"), view.integers("block_shape"), view.constant("paddings")
    count = max(view.dim("block_shape", 0), view.dim("paddings", 0))
    if source is None or count < 0:
        return
    if len(source) < count + 1:
        view.fail(f"'input' must have at least rank {count + 1}, found {view.type('input')}")
    if -1 in source or blocks is None or pads is None:
        return
    for index, block in enumerate(blocks):
        padded = source[index + 1] + int(pads[index][0]) + int(pads[index][1])
        if padded % block:
            view.fail(f"dimension {index + 1} of 'input' with its paddings ({padded}) must be a multiple of {block}")


def _range_of(low: str, high: str) -> Rule:
    def rule(view: View) -> None:
        least, most = view.attribute(low), view.attribute(high)
        if isinstance(least, int | float) and isinstance(most, int | float) and least >= most:
            view.fail(f"the attribute {low!r} must be less than {high!r}, found {least} and {most}")

    return rule


_BITS = attribute_between("num_bits", 2, 16)
_NORMALIZED = vector("scale", "offset", "mean", "variance")

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2"), every(rank_at_least("x", 2), rank_at_least("y", 2), _matmul)),
    "BatchToSpace": every(
        rank("input", 4), rank("output", 4), rank("crops", 2), size("crops", 0, 2), size("crops", 1, 2), _batch_to_space
    ),
    "BatchToSpaceND": _batch_to_space_nd,
    "BiasAdd": _bias("value"),
    "BiasAddGrad": _bias("out_backprop"),
    "Conv2D": _convolution(4),
    "Conv2DBackpropInput": every(rank("out_backprop", 4), rank("filter", 4), rank("output", 4), _positive_lists(4)),
    "Conv3D": _convolution(5),
    "FakeQuantWithMinMaxArgs": every(_range_of("min", "max"), _BITS),
    "FakeQuantWithMinMaxVars": every(scalar("min", "max"), _BITS),
    "FakeQuantWithMinMaxVarsPerChannel": every(
        vector("min", "max"),
        rank_at_least("inputs", 1),
        _BITS,
        same_dims("min", 0, "inputs", -1),
        same_dims("max", 0, "inputs", -1),
    ),
    "FusedBatchNorm": every(rank("x", 4), _NORMALIZED),
    "MaxPoolGrad": every(rank("orig_input", 4), rank("orig_output", 4), rank("grad", 4)),
    "SpaceToBatchND": every(
        vector("block_shape"),
        rank("paddings", 2),
        size("paddings", 1, 2),
        same_dims("block_shape", 0, "paddings", 0),
        at_least("block_shape", 1),
        at_least("paddings", 0),
        _space_to_batch_nd,
    ),
}
"""Op -> the rule that its operands, results and attributes keep."""
