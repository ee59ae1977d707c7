"""Cases of computed operands where constants are usual: amounts, axes, strides, sizes of blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

from tests.converter.targets.stablehlo.group import Case, Group, Input, Tensor


def _computed_operands(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("float32", ("n", 6, "m")), Input("int32", (3,), 1, 3), Input("int32", (2,), -5, 2)],
        {
            "tile": lambda x, i, s: tf.tile(x, i),
            "tile_by_size": lambda x, i, s: tf.tile(x[:, :2, 0], (tf.shape(x)[2], 2)),
            "roll": lambda x, i, s: raw.Roll(input=x, shift=s, axis=i[:2] - 2),
            "roll_scalar": lambda x, i, s: raw.Roll(input=x, shift=s[0], axis=-i[0]),
            "expand": lambda x, i, s: tf.reduce_max(raw.ExpandDims(input=x, axis=i[0]), (1, 3)),
            "expand_back": lambda x, i, s: tf.reshape(raw.ExpandDims(input=x, axis=-i[0]), (-1,)),
            "forward": lambda x, i, s: x[i[0] - 1 :: i[1], :: i[2]],
            "backward": lambda x, i, s: x[::-1, i[0] + 2 :: -i[1], s[0] :: -1],
            "downward": lambda x, i, s: x[3::-2, i[0] + 2 : 0 : -2, -2 : s[1] - 9 : -1],
            "nothing": lambda x, i, s: x[:, : i[0] : -1],
            "to_batch": lambda x, i, s: raw.SpaceToBatchND(
                input=tf.reshape(x[:, :, :1], (-1, 6, 1)), block_shape=i[:1], paddings=[[0, 0]]
            )[..., 0],
            **{name: _reducing(tf, getattr(tf, f"reduce_{name}")) for name in ("sum", "max", "min", "prod", "mean")},
            "all": lambda x, i, s: tf.reduce_all(x > 0, i[:1] - 3, keepdims=True),
            "none": lambda x, i, s: tf.reduce_sum(x, i[2:2] - 1, keepdims=True),
            "turned": lambda x, i, s: tf.transpose(x, tf.argsort(tf.stack([i[0] * 2, 3, i[1] * 2]), stable=True)),
            "solved": lambda x, i, s: tf.reshape(x, tf.stack([i[0] - 1 - i[0], i[1]])[:2])[:1, :1],
            "all_asked": lambda x, i, s: tf.reshape(x, tf.stack([tf.shape(x)[2], i[1] + 6 - i[1], -i[0] // i[0]])),
            "asked": lambda x, i, s: tf.reshape(x, (i[0] - i[0] - 1, 2, 3)),
            "whole_line": lambda x, i, s: raw.LinSpace(start=x[0, 0, 0], stop=3.0, num=i[0] + 2),
            "point": lambda x, i, s: raw.LinSpace(start=x[0, 0, 0], stop=3.0, num=i[0] // i[0]),
            "stitched": lambda x, i, s: tf.dynamic_stitch(
                [i - 1, [[3, 4], [6, 5]], i[0] + 6], [x[0, :3, 0], [[7.0, 8.0], [9.0, 1.0]], 0.5]
            ),
            "to_space": lambda x, i, s: raw.BatchToSpaceND(
                input=tf.tile(x, [i[0], 1, 1]), block_shape=i[:1], crops=[[1, 0]]
            ),
        },
        in_xla=False,
        on_buffers=False,
    )


def _further_slices(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("float32", ("n", 6, "m")), Input("int32", (3,), 0, 4), Input("float32", (1, 2, 1))],
        {
            "cut": lambda x, i, y: _sliced(tf, x[:, :, :1], i),
            "written": lambda x, i, y: raw.TensorStridedSliceUpdate(
                input=x, begin=[0, 1, 0], end=[0, 5, 0], strides=[1, 3, 1], value=y, begin_mask=5, end_mask=5
            ),
            "written_back": lambda x, i, y: raw.TensorStridedSliceUpdate(
                input=x,
                begin=[0, 4, 0],
                end=[1, 0, 0],
                strides=[1, -2, 1],
                value=y[0, :, 0],
                begin_mask=0,
                end_mask=0,
                shrink_axis_mask=5,
            ),
            "written_at": lambda x, i, y: raw.TensorStridedSliceUpdate(
                input=x,
                begin=[0, i[0], 0],
                end=[0, i[0] + 1, 0],
                strides=[1, 1, 1],
                value=y[0, 0, 0],
                begin_mask=5,
                end_mask=5,
                shrink_axis_mask=2,
            ),
            "bias": lambda x, i, y: raw.BiasAddV1(value=x[:, 0, :1], bias=y[0, 0]),
            "empty": lambda x, i, y: raw.Empty(shape=tf.shape(x), dtype=tf.float32, init=True),
            "to_bool": lambda x, i, y: raw.ToBool(input=i[0]),
            "has_any": lambda x, i, y: raw.ToBool(input=x),
            "has_none": lambda x, i, y: raw.ToBool(input=i[3:]),
            "wide_bits": lambda x, i, y: tf.bitcast(tf.cast(9 * x[:, :4, 0], tf.int16), tf.int64),
            "float_of_bytes": lambda x, i, y: tf.bitcast(tf.cast(tf.reshape(x, (-1, 3, 2)), tf.bfloat16), tf.int32),
            "narrow_bits": lambda x, i, y: tf.bitcast(x[:, :4, 0], tf.int16),
            "bytes": lambda x, i, y: tf.cast(tf.bitcast(x, tf.uint8), tf.int32),
            "none": lambda x, i, y: x[:, 4:2],
            "no_buckets": lambda x, i, y: raw.Bucketize(input=x, boundaries=[]),
            "open_rest": lambda x, i, y: tf.gather_nd(x, [[0], [0]]),
            "part_of_rest": lambda x, i, y: tf.gather_nd(x, i[tf.newaxis, :1] // 4),
            "between": lambda x, i, y: raw.LinSpace(start=y[0, 0, 0], stop=3.0, num=tf.shape(x)[2]),
            "is_true": lambda x, i, y: raw.ToBool(input=i[0] > 2),
        },
    )


def _open_parts(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("float32", ("n", 6, "m")), Input("float32", (4, "n"))],
        {
            "halves": lambda x, y: tf.split(tf.concat([x, x], 2), 2, 2)[1],
            "thirds": lambda x, y: tf.split(tf.reshape(x, (-1,)), 3)[1],
            "head": lambda x, y: tf.split(x, [1, -1], 2)[0],
            "rest": lambda x, y: tf.split(x, [1, -1], 2)[1],
            "by_sizes": lambda x, y: tf.split(x, tf.stack([1, tf.shape(x)[2] - 1]), 2)[1],
            "by_rest": lambda x, y: tf.split(x, tf.stack([tf.shape(x)[2] - 1, -1]), 2, num=2)[1],
            "line": lambda x, y: tf.linspace(y[0, 0], 3.0, tf.shape(x)[2]),
            "updated": lambda x, y: raw.InplaceUpdate(x=y * 1.5, i=[2, 0], v=2 * y[1:3]),
            "increased": lambda x, y: raw.InplaceAdd(x=y * 2.5, i=[2, 0], v=2 * y[1:3]),
            "decreased": lambda x, y: raw.InplaceSub(x=y * 3.5, i=[2, 0], v=2 * y[1:3]),
            "histogram": lambda x, y: tf.histogram_fixed_width(x, [-1.5, 1.25], 6),
        },
    )


def _axes_of_gradients(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("int32", (3,), 1, 2), Input("int32", (2,), 1, 1), Input("float32", ("n",))],
        {
            "first": lambda i, j, x: raw.BroadcastGradientArgs(s0=i, s1=j)[0],
            "second": lambda i, j, x: raw.BroadcastGradientArgs(s0=i, s1=j)[1],
            "equal": lambda i, j, x: raw.BroadcastGradientArgs(s0=i, s1=i)[0],
            "spread": lambda i, j, x: tf.exp(2 * x + 1),
            "sizes": lambda i, j, x: raw.BroadcastGradientArgs(s0=tf.shape(x[tf.newaxis]), s1=tf.shape(x))[1],
        },
        in_xla=False,
    )


def _shifts(tf: ModuleType) -> Group:
    return Group(
        [Input("int16", ("n", 4), -99, 99), Input("int16", ("n", 4), -20, 20)],
        {
            "left": tf.bitwise.left_shift,
            "right": tf.bitwise.right_shift,
            "left_by_two": lambda x, y: tf.bitwise.left_shift(x, tf.constant(2, tf.int16)),
            "unsigned": lambda x, y: tf.bitwise.right_shift(tf.cast(x, tf.uint8), tf.cast(y, tf.uint8)),
        },
    )


def _spread_letters(tf: ModuleType) -> Group:
    return Group(
        [Input("float32", ("n", 4, 3)), Input("float32", (3, 2, 1))],
        {
            "ellipses": lambda x, y: tf.einsum("...ij,j...->i...", x, y),
            "ones": lambda x, y: tf.einsum("...ij,...kj->...ik", x, y[tf.newaxis, :, 0, 0]),
        },
    )


def _reducing(tf: ModuleType, run: Case) -> Case:
    return lambda x, i, s: run(x, tf.stack([i[0] - 1, i[0] % 3]), keepdims=True)


def _sliced(tf: ModuleType, value: Tensor, begin: Tensor) -> Tensor:
    """Returns a slice, moved back until it is within the value."""
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    return gen_xla_ops.xla_dynamic_slice(value, begin, tf.constant([1, 4, 1]))


def _sizes_of_sizes(tf: ModuleType) -> Group:
    bits = tf.bitwise

    def filled(size: Case) -> Case:
        return lambda x: tf.fill(size(tf.shape(x)), 2.0) * 1.5

    return Group(
        [Input("float32", ("n", 4, "m"))],
        {
            "limited": filled(lambda s: tf.clip_by_value(s[:1], 2, 4)),
            "limited_each": filled(lambda s: tf.clip_by_value(s, [1, 2, 1], [2, 3, 5])),
            "reversed": filled(lambda s: tf.reverse(s, [0])),
            "turned": filled(lambda s: tf.abs(-s[::-1])),
            "inverted": filled(lambda s: bits.invert(bits.invert(s[:2]))),
            "chosen": filled(lambda s: tf.where(tf.logical_not(s > 2), s, 3)),
            "every_other": filled(lambda s: s[::2]),
            "part": filled(lambda s: tf.slice(s, [1], [2])),
            "distance": filled(lambda s: tf.abs(s[2:] - s[:1]) + 1),
            "product": filled(lambda s: tf.reduce_prod(s)[tf.newaxis]),
            "greatest": filled(lambda s: tf.reduce_max(s, keepdims=True)),
            "rounded": filled(lambda s: (s + 3) // 4 * 4 - s % 2),
            "counted": filled(lambda s: tf.range(1, 4) + s),
        },
        in_xla=False,
    )


GROUPS: Mapping[str, Callable[[ModuleType], Group]] = {
    "computed operands": _computed_operands,
    "further slices": _further_slices,
    "open parts": _open_parts,
    "axes of gradients": _axes_of_gradients,
    "shifts": _shifts,
    "spread letters": _spread_letters,
    "sizes of sizes": _sizes_of_sizes,
}
"""The groups by their names."""
