"""A tiny case for each legalization to StableHLO, in groups that have their inputs in common.

A group is one model, so that one compilation judges all of its cases; each case is a result of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

import numpy as np

from tests.converter.targets.stablehlo import (
    cases_arrays,
    cases_computed,
    cases_detection,
    cases_images,
    cases_rare,
    cases_sparse,
)
from tests.converter.targets.stablehlo.cases_images import kernel as _kernel
from tests.converter.targets.stablehlo.group import Case, Group, Input

SIZES: Sequence[Mapping[str, int]] = (
    {"n": 3, "m": 5, "h": 7, "w": 8, "d": 4},
    {"n": 1, "m": 2, "h": 9, "w": 6, "d": 5},
)
"""The sizes of groups with dynamic sizes."""


def _unary(tf: ModuleType) -> Group:
    raw, math, nn = tf.raw_ops, tf.math, tf.nn
    return Group(
        [Input("float32", ("n", 4), 0.1, 0.9)],
        {
            **{
                name: getattr(math, name)
                for name in (
                    "abs",
                    "ceil",
                    "cos",
                    "exp",
                    "expm1",
                    "floor",
                    "log",
                    "log1p",
                    "negative",
                    "rint",
                    "round",
                    "rsqrt",
                    "sigmoid",
                    "sign",
                    "sin",
                    "sqrt",
                    "square",
                    "tan",
                    "tanh",
                    "reciprocal",
                    "is_nan",
                    "is_finite",
                    "is_inf",
                )
            },
            "relu": nn.relu,
            "relu6": lambda x: nn.relu6(9 * x - 1),
            "elu": lambda x: nn.elu(x - 0.5),
            "selu": lambda x: nn.selu(x - 0.5),
            "softplus": lambda x: nn.softplus(9 * x - 4),
            "softsign": nn.softsign,
            "leaky": lambda x: nn.leaky_relu(x - 0.5, 0.3),
            "softmax": nn.softmax,
            "log_softmax": nn.log_softmax,
            "clip": lambda x: tf.clip_by_value(x, 0.3, 0.6),
            "cast": lambda x: tf.cast(9 * x, tf.int32),
            "to_bool": lambda x: tf.cast(math.round(x), tf.bool),
            "select": lambda x: tf.where(x > 0.5, x, 0.0),
            "vector_select": lambda x: raw.Select(condition=x[:, 0] > 0.5, x=x, y=-x),
            "bias": lambda x: nn.bias_add(x, tf.constant([1.0, 2.0, 3.0, 4.0])),
            "like": lambda x: tf.ones_like(x) + tf.zeros_like(x),
            "bitcast": lambda x: tf.bitcast(x, tf.int32),
            "logical_not": lambda x: math.logical_not(x > 0.5),
        },
    )


def _bessel_functions(tf: ModuleType) -> Group:
    math = tf.math
    return Group(
        [Input("float32", ("n", 60, "m"), -30, 30)],
        {
            "bessel_i0e": math.bessel_i0e,
            "bessel_i0e_near": lambda x: math.bessel_i0e(x / 30),
            "bessel_i0e_far": lambda x: 1e15 * math.bessel_i0e(x * 1e30),
            "bessel_i0e_zero": lambda x: math.bessel_i0e(tf.minimum(x, 0.0)),
            "bessel_i0e_infinite": lambda x: math.bessel_i0e(x[:1, 0, :1] * [[-np.inf, np.inf]]),
            "bessel_i0e_half": lambda x: math.bessel_i0e(tf.cast(x, tf.float16)),
        },
    )


def _binary(tf: ModuleType) -> Group:
    math = tf.math
    return Group(
        [Input("float32", ("n", 4), 0.5, 3), Input("float32", ("n", 4), -3, -0.5), Input("float32", ("m", 1, 4))],
        {
            **{
                name: _of_two(getattr(math, name))
                for name in (
                    "add",
                    "subtract",
                    "multiply",
                    "divide",
                    "maximum",
                    "minimum",
                    "atan2",
                    "floordiv",
                    "floormod",
                    "squared_difference",
                    "equal",
                    "not_equal",
                    "less",
                    "less_equal",
                    "greater",
                    "greater_equal",
                    "divide_no_nan",
                    "multiply_no_nan",
                    "truediv",
                )
            },
            "pow": lambda x, y, z: math.pow(x, 1.5),
            "xlogy": lambda x, y, z: math.xlogy(y, x),
            "xdivy": lambda x, y, z: math.xdivy(tf.zeros_like(x), y),
            "add_n": lambda x, y, z: math.add_n([x, y, x]),
            "outer": lambda x, y, z: x + z,
            "row": lambda x, y, z: x * y[:1],
            "scalar": lambda x, y, z: 2.0 - x,
            "logic": lambda x, y, z: math.logical_and(x > 1, math.logical_or(y < -1, x > 2)),
        },
    )


def _integers(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("int32", ("n", 4), -9, 9), Input("int32", ("n", 4), 1, 5)],
        {
            "floordiv": lambda x, y: x // y,
            "floormod": lambda x, y: x % -y,
            "truncatediv": lambda x, y: raw.TruncateDiv(x=x, y=y),
            "truncatemod": lambda x, y: raw.TruncateMod(x=x, y=y),
            "left": tf.bitwise.left_shift,
            "right": tf.bitwise.right_shift,
            "and": tf.bitwise.bitwise_and,
            "or": tf.bitwise.bitwise_or,
            "xor": tf.bitwise.bitwise_xor,
            "invert": lambda x, y: tf.bitwise.invert(x),
            "to_float": lambda x, y: tf.cast(x, tf.float32) / 2,
            "sum": lambda x, y: tf.reduce_sum(x, 0),
            "max": lambda x, y: tf.reduce_max(x, 1),
            "one_hot": lambda x, y: tf.one_hot(y, 6, axis=1),
        },
    )


def _reductions(tf: ModuleType) -> Group:
    nn = tf.nn
    return Group(
        [Input("float32", ("n", 3, "m"))],
        {
            **{
                f"{name}_{axis}": _reducing(getattr(tf, f"reduce_{name}"), axis)
                for name in ("sum", "max", "min", "mean", "prod", "logsumexp")
                for axis in (0, 1)
            },
            "all": lambda x: tf.reduce_all(x > 0, (0, 2)),
            "any": lambda x: tf.reduce_any(x > 0),
            "mean_of_all": tf.reduce_mean,
            "l2": nn.l2_loss,
            "argmax": lambda x: tf.argmax(x, 1),
            "argmin": lambda x: tf.argmin(x, -1, tf.int32),
            "variance": lambda x: tf.math.reduce_variance(x, 2, keepdims=True),
        },
    )


def _shapes(tf: ModuleType) -> Group:
    return Group(
        [Input("float32", ("n", 4, "m"))],
        {
            "shape": tf.shape,
            "size": tf.size,
            "rank": tf.rank,
            "flat": lambda x: tf.reshape(x, (-1,)),
            "rows": lambda x: tf.reshape(x, (tf.shape(x)[0], -1)),
            "split": lambda x: tf.reshape(x, (tf.shape(x)[0], 2, 2, tf.shape(x)[2])),
            "expand": lambda x: tf.expand_dims(x, 1),
            "squeeze": lambda x: tf.squeeze(x[:, :1], 1),
            "transpose": lambda x: tf.transpose(x, (2, 0, 1)),
            "concat": lambda x: tf.concat([x, x], 0),
            "concat_last": lambda x: tf.concat([x, 2 * x], -1),
            "stack": lambda x: tf.stack([x, x], 1),
            "unstack": lambda x: tf.unstack(x, axis=1)[2],
            "parts": lambda x: tf.split(x, 2, 1)[1],
            "sizes": lambda x: tf.split(x, [1, -1], 1)[1],
            "pad": lambda x: tf.pad(x, [[1, 0], [0, 2], [0, 0]]),
            "pad_with": lambda x: tf.pad(x, [[0, 0], [1, 1], [2, 0]], constant_values=5.0),
            "tile": lambda x: tf.tile(x, (2, 1, 3)),
            "fill": lambda x: tf.fill(tf.shape(x)[:2], 3.0),
            "broadcast": lambda x: tf.broadcast_to(x[:1], tf.shape(x)),
            "range": lambda x: tf.range(tf.shape(x)[0]),
            "mirror": lambda x: tf.pad(x, [[0, 0], [1, 2], [0, 0]], "REFLECT"),
            "symmetric": lambda x: tf.pad(x, [[0, 0], [2, 0], [0, 0]], "SYMMETRIC"),
            "reverse": lambda x: tf.reverse(x, (1, 2)),
            "ensure": lambda x: tf.identity(tf.stop_gradient(x)),
        },
    )


def _slices(tf: ModuleType) -> Group:
    return Group(
        [Input("float32", ("n", 6, "m"))],
        {
            "first": lambda x: x[0],
            "last": lambda x: x[:, -1],
            "middle": lambda x: x[:, 1:-1],
            "step": lambda x: x[:, ::2],
            "back": lambda x: x[:, ::-1],
            "back_step": lambda x: x[:, 4:0:-2],
            "new": lambda x: x[:, tf.newaxis, ..., 0],
            "ellipsis": lambda x: x[..., 1:],
            "head": lambda x: x[:2],
            "tail": lambda x: x[-2:],
            "slice": lambda x: tf.slice(x, (0, 1, 0), (-1, 3, 1)),
            "half": lambda x: x[:, :, : tf.shape(x)[2] // 2],
            "open_step": lambda x: x[::2],
        },
    )


def _products(tf: ModuleType) -> Group:
    return Group(
        [Input("float32", ("n", "m", 4)), Input("float32", ("n", 4, 5)), Input("float32", ("m", 4))],
        {
            "matmul": lambda a, b, c: tf.matmul(c, tf.ones((4, 3))),
            "transposed": lambda a, b, c: tf.matmul(c, c, transpose_b=True),
            "first_transposed": lambda a, b, c: tf.matmul(c, c, transpose_a=True),
            "batch": lambda a, b, c: tf.matmul(a, b),
            "adjoint": lambda a, b, c: tf.matmul(b, a, transpose_a=True, transpose_b=True),
            "wide": lambda a, b, c: tf.matmul(a, tf.ones((4, 2))),
            "spread": lambda a, b, c: tf.matmul(a[:, tf.newaxis], tf.ones((3, 4, 2))),
            "einsum": lambda a, b, c: tf.einsum("nmk,nkj->njm", a, b),
            "einsum_head": lambda a, b, c: tf.einsum("abc,cde->abde", a, tf.ones((4, 2, 3))),
            "einsum_sum": lambda a, b, c: tf.einsum("nmk,mk->n", a, c),
            "einsum_rest": lambda a, b, c: tf.einsum("...k,kj->...j", a, tf.ones((4, 2))),
            "einsum_one": lambda a, b, c: tf.einsum("nmk->kn", a),
        },
    )


def _images(tf: ModuleType) -> Group:
    raw, nn = tf.raw_ops, tf.nn
    return Group(
        [Input("float32", ("n", "h", "h", 4))],
        {
            "same": lambda x: nn.conv2d(x, _kernel(tf, 3, 3, 4, 5), 1, "SAME"),
            "valid": lambda x: nn.conv2d(x, _kernel(tf, 3, 2, 4, 5), 2, "VALID"),
            "dilated": lambda x: nn.conv2d(x, _kernel(tf, 2, 2, 4, 5), 1, "SAME", dilations=2),
            "grouped": lambda x: nn.conv2d(x, _kernel(tf, 3, 3, 2, 6), 1, "SAME"),
            "explicit": lambda x: nn.conv2d(x, _kernel(tf, 3, 3, 4, 2), 2, [[0, 0], [1, 2], [0, 1], [0, 0]]),
            "depthwise": lambda x: nn.depthwise_conv2d(x, _kernel(tf, 3, 3, 4, 2), (1, 1, 1, 1), "SAME"),
            "max_pool": lambda x: nn.max_pool2d(x, 2, 2, "VALID"),
            "avg_pool": lambda x: nn.avg_pool2d(x, 3, 2, "VALID"),
            "max_same": lambda x: nn.max_pool2d(x, 3, 1, "SAME"),
            "avg_same": lambda x: nn.avg_pool2d(x, 3, 1, "SAME"),
            "norm": lambda x: (
                raw.FusedBatchNormV3(
                    x=x,
                    scale=[1.0, 2.0, 3.0, 4.0],
                    offset=[0.0, 1.0, 0.0, 1.0],
                    mean=[0.1, 0.2, 0.3, 0.4],
                    variance=[1.0, 2.0, 3.0, 4.0],
                    is_training=False,
                ).y
            ),
        },
    )


def _fixed_images(tf: ModuleType) -> Group:
    nn = tf.nn
    return Group(
        [Input("float32", ("n", 8, 7, 4))],
        {
            "same": lambda x: nn.conv2d(x, _kernel(tf, 3, 3, 4, 5), 2, "SAME"),
            "max_same": lambda x: nn.max_pool2d(x, 3, 2, "SAME"),
            "avg_same": lambda x: nn.avg_pool2d(x, 3, 2, "SAME"),
            "depthwise": lambda x: nn.depthwise_conv2d(x, _kernel(tf, 3, 3, 4, 1), (1, 2, 2, 1), "SAME"),
            "transposed": lambda x: nn.conv2d_transpose(
                x, _kernel(tf, 3, 3, 5, 4), (tf.shape(x)[0], 16, 14, 5), 2, "SAME"
            ),
            "transposed_valid": lambda x: nn.conv2d_transpose(
                x, _kernel(tf, 2, 3, 5, 4), (tf.shape(x)[0], 16, 15, 5), 2, "VALID"
            ),
        },
    )


def _lookups(tf: ModuleType) -> Group:
    return Group(
        [Input("float32", ("n", 6, 3)), Input("int32", ("m",), 0, 5), Input("int32", ("n", 2), 0, 5)],
        {
            "middle": lambda t, i, j: tf.gather(t, i, axis=1),
            "rows": lambda t, i, j: tf.gather(t[0], i),
            "batched": lambda t, i, j: tf.gather(t, j, axis=1, batch_dims=1),
            "nd": lambda t, i, j: tf.gather_nd(t[0], i[:, tf.newaxis]),
            "one_hot": lambda t, i, j: tf.one_hot(i, 4, 2.0, -1.0),
            "constant": lambda t, i, j: tf.gather(tf.constant([[1.0, 2.0]] * 6), j),
            "scatter": lambda t, i, j: tf.scatter_nd(i[:, tf.newaxis], tf.ones_like(i, tf.float32), [6]),
            "update": lambda t, i, j: tf.tensor_scatter_nd_add(
                t[0], i[:, tf.newaxis], tf.ones_like(tf.gather(t[0], i))
            ),
        },
    )


def _control_flow(tf: ModuleType) -> Group:
    return Group(
        [Input("float32", ("n", 4)), Input("int32", (), 2, 5)],
        {
            "while": lambda x, k: tf.while_loop(lambda i, a: i < k, lambda i, a: (i + 1, a * 1.5 + x), (0, x))[1],
            "if": lambda x, k: tf.cond(k > 3, lambda: x + 1.0, lambda: -x),
            "case": lambda x, k: tf.switch_case(k - 2, [lambda: x + 1.0, lambda: -x, lambda: 2 * x]),
            "steps": lambda x, k: tf.while_loop(
                lambda i, a: i < 4,
                lambda i, a: (i + 1, a.write(i, x * tf.cast(i, tf.float32))),
                (0, tf.TensorArray(tf.float32, 4, element_shape=x.shape)),
            )[1].stack(),
            "nested": lambda x, k: tf.while_loop(
                lambda i, a: i < k, lambda i, a: (i + 1, tf.cond(i > 1, lambda: a + x, lambda: a * 2)), (0, x)
            )[1],
        },
    )


def _of_two(run: Case) -> Case:
    return lambda x, y, z: run(x, y)


def _reducing(run: Case, axis: int) -> Case:
    return lambda x: run(x, axis, keepdims=axis == 1)


GROUPS: Mapping[str, Callable[[ModuleType], Group]] = {
    **cases_arrays.GROUPS,
    **cases_computed.GROUPS,
    **cases_detection.GROUPS,
    **cases_images.GROUPS,
    **cases_rare.GROUPS,
    **cases_sparse.GROUPS,
    "unary": _unary,
    "Bessel functions": _bessel_functions,
    "binary": _binary,
    "integers": _integers,
    "reductions": _reductions,
    "shapes": _shapes,
    "slices": _slices,
    "products": _products,
    "images": _images,
    "fixed images": _fixed_images,
    "lookups": _lookups,
    "control flow": _control_flow,
}
"""The groups by their names; each is made of a TensorFlow that is loaded."""
