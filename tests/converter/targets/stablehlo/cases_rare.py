"""Cases of rare ops: special functions, older versions of ops, and ops that only `tf.raw_ops` makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from tests.converter.targets.stablehlo.group import Case, Group, Input, Tensor


def _special_functions(tf: ModuleType) -> Group:
    math = tf.math
    return Group(
        [Input("float32", ("n", 4), 0.1, 0.9), Input("float32", ("n", 4), 1.5, 4)],
        {
            **{
                name: _of_first(getattr(math, name))
                for name in (
                    "acos",
                    "asin",
                    "asinh",
                    "atan",
                    "atanh",
                    "cosh",
                    "digamma",
                    "erf",
                    "erfc",
                    "erfinv",
                    "lgamma",
                    "ndtri",
                    "sinh",
                    "bessel_i1e",
                )
            },
            "acosh": lambda x, y: math.acosh(y),
            "zeta": lambda x, y: math.zeta(y, x),
            "polygamma": lambda x, y: math.polygamma(math.round(y), x),
            "next_after": math.nextafter,
            "xlog1py": lambda x, y: math.xlog1py(y, x),
            "negative": lambda x, y: tf.stack([math.lgamma(-y), math.erfc(-y), math.sinh(-y)]),
            "negative_digamma": lambda x, y: math.digamma(-y),
        },
        in_xla=False,
    )


def _raw_numbers(tf: ModuleType) -> Group:
    raw, math = tf.raw_ops, tf.math
    return Group(
        [
            Input("float32", ("n", 4)),
            Input("float32", ("n", 4), 0.5, 3),
            Input("int32", ("n", 4), -9, 9),
            Input("int32", ("n", 4), 1, 5),
        ],
        {
            "AccumulateNV2_sum": lambda x, y, i, k: raw.AccumulateNV2(inputs=[x, y, x], shape=x.shape),
            "add": lambda x, y, i, k: raw.Add(x=x, y=y),
            "div": lambda x, y, i, k: raw.Div(x=x, y=y),
            "div_whole": lambda x, y, i, k: raw.Div(x=i, y=k),
            "inv": lambda x, y, i, k: raw.Inv(x=y),
            "mod": lambda x, y, i, k: raw.Mod(x=i, y=-k),
            "mod_floats": lambda x, y, i, k: raw.Mod(x=x, y=y),
            "ApproximateEqual_nearly": lambda x, y, i, k: raw.ApproximateEqual(x=x, y=x + 0.01 * y, tolerance=0.02),
            "ApproximateEqual_nearest": lambda x, y, i, k: raw.ApproximateEqual(x=x, y=x + 1e-6),
            "clip": lambda x, y, i, k: raw.ClipByValue(t=x, clip_value_min=-0.5, clip_value_max=1.0),
            "ClipByValue_clip_each": lambda x, y, i, k: raw.ClipByValue(t=2 * x, clip_value_min=-y, clip_value_max=y),
            "ClipByValue_clip_whole": lambda x, y, i, k: raw.ClipByValue(t=i, clip_value_min=-k, clip_value_max=k),
            "ClipByValue_clip_swapped": lambda x, y, i, k: raw.ClipByValue(
                t=x, clip_value_min=1.0, clip_value_max=-0.5
            ),
            "ClipByValue_clip_swapped_later": lambda x, y, i, k: raw.ClipByValue(
                t=x, clip_value_min=y[0, 0], clip_value_max=-y[0, 0]
            ),
            "norm": lambda x, y, i, k: tf.norm(x, axis=1),
            "EuclideanNorm_norms": lambda x, y, i, k: raw.EuclideanNorm(input=x, axis=[0], keep_dims=True),
            "EuclideanNorm_norm_of_all": lambda x, y, i, k: math.reduce_euclidean_norm(x),
            "EuclideanNorm_whole_norm": lambda x, y, i, k: math.reduce_euclidean_norm(i, 1),
            "ComplexAbs_complex_norm": lambda x, y, i, k: math.abs(math.reduce_euclidean_norm(tf.complex(x, y), 1)),
            "gather": lambda x, y, i, k: raw.Gather(params=tf.transpose(x), indices=k[0, :2] - 1),
            "ScatterNdNonAliasingAdd_added": lambda x, y, i, k: raw.ScatterNdNonAliasingAdd(
                input=x * 1.5, indices=[[0], [0]], updates=[[1.0] * 4, [2.0] * 4]
            ),
            "stitch": lambda x, y, i, k: raw.ParallelDynamicStitch(indices=[[0, 2], [1, 3]], data=[x[0, :2], x[0, 2:]]),
            "in_top": lambda x, y, i, k: raw.InTopK(predictions=x, targets=k[:, 0] - 1, k=2),
            "BatchMatMul_batches": lambda x, y, i, k: raw.BatchMatMul(x=x[:, tf.newaxis], y=y[:, :, tf.newaxis]),
            "BatchMatMulV3_batches_of": lambda x, y, i, k: raw.BatchMatMulV3(
                x=x[:, tf.newaxis], y=y[:, :, tf.newaxis], Tout=tf.float32
            ),
            "XlaDynamicUpdateSlice_written": lambda x, y, i, k: _updated(x, y[:1, :2], tf.stack([0, k[0, 0]])),
        },
    )


def _raw_arrays(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("float32", ("n", 4, 3)), Input("int32", ("m",), 0, 3), Input("float32", (6, "n"))],
        {
            "diag": lambda x, i, y: raw.MatrixDiagV2(
                diagonal=x[:, :, 0], k=1, num_rows=-1, num_cols=-1, padding_value=2.0
            ),
            "part": lambda x, i, y: raw.MatrixDiagPartV2(input=x, k=[-1, 1], padding_value=3.0),
            "set": lambda x, i, y: raw.MatrixSetDiagV2(input=x, diagonal=x[:, 1:, 0], k=-1),
            "UniqueWithCountsV2_counted": lambda x, i, y: (
                raw.UniqueWithCountsV2(x=i, axis=tf.constant([], tf.int64)).count
            ),
            "UniqueWithCountsV2_counts_along": lambda x, i, y: raw.UniqueWithCountsV2(x=i, axis=[0]).count,
            **{
                f"UnsortedSegment_segments_{name}": _segments(tf, getattr(raw, f"Segment{name}V2"))
                for name in ("Sum", "Prod", "Max", "Min")
            },
            **{
                f"SparseSegment_{name}": _sparse_segments(getattr(raw, f"SparseSegment{name}WithNumSegments"))
                for name in ("Sum", "Mean", "SqrtN")
            },
            "norm": lambda x, i, y: (
                raw.FusedBatchNorm(
                    x=x[:, tf.newaxis],
                    scale=[1.0, 2.0, 3.0],
                    offset=[0.0, 1.0, 0.0],
                    mean=[0.1, 0.2, 0.3],
                    variance=[1.0, 2.0, 3.0],
                    is_training=False,
                ).y
            ),
            "FusedBatchNormV2_norm_v2": lambda x, i, y: (
                raw.FusedBatchNormV2(
                    x=x[:, tf.newaxis],
                    scale=[1.0, 2.0, 3.0],
                    offset=[0.0, 1.0, 0.0],
                    mean=[0.1, 0.2, 0.3],
                    variance=[1.0, 2.0, 3.0],
                    is_training=False,
                ).y
            ),
            "StatelessRandomUniformInt_whole": lambda x, i, y: raw.StatelessRandomUniformInt(
                shape=tf.shape(x)[:2], seed=[3, 5], minval=-3, maxval=9
            ),
            "StatelessRandomGetAlg_algorithm": lambda x, i, y: raw.StatelessRandomGetAlg() + i,
        },
        in_xla=False,
    )


def _numbers_between_limits(tf: ModuleType) -> Group:
    return Group(
        [Input("float32", ("n", 3, "m"))],
        {
            "ParameterizedTruncatedNormal_of_all": lambda x: _limited(tf, tf.shape(x), [1.0], [0.5], [0.5], [2.0]),
            "ParameterizedTruncatedNormal_of_rows": lambda x: _limited(
                tf,
                tf.stack([3, tf.shape(x)[2]]),
                [0.0, 9.0, -9.0],
                [1.0, 2.0, 0.1],
                [-1.0, 8.0, -9.5],
                [3.0, 9.5, -9.0],
            ),
        },
        in_xla=False,
        in_executor=False,
    )


def _volumes_of_waves(tf: ModuleType) -> Group:
    return Group(
        [Input("float32", ("n", 24)), Input("float32", ("n", 24))],
        {
            "fft": lambda x, y: tf.signal.fft3d(_volume(tf, x, y)),
            "ifft": lambda x, y: tf.signal.ifft3d(_volume(tf, x, y)),
            "ifft2": lambda x, y: tf.signal.ifft2d(_volume(tf, x, y)),
            "rfft": lambda x, y: tf.signal.rfft3d(tf.reshape(x, (-1, 2, 3, 4))),
            "irfft": lambda x, y: tf.signal.irfft3d(tf.signal.rfft3d(tf.reshape(x, (-1, 2, 3, 4)))),
        },
    )


def _of_first(run: Case) -> Case:
    return lambda x, y: run(x)


def _volume(tf: ModuleType, x: Tensor, y: Tensor) -> Tensor:
    return tf.reshape(tf.complex(x, y), (-1, 2, 3, 4))


def _limited(tf: ModuleType, shape: Tensor, *numbers: list[float]) -> Tensor:
    """Returns where random numbers are between their limits: everywhere; means, deviations and limits are of rows."""
    found = tf.raw_ops.ParameterizedTruncatedNormal(
        shape=shape, means=numbers[0], stdevs=numbers[1], minvals=numbers[2], maxvals=numbers[3]
    )
    low, high = (tf.reshape(each, [-1] + [1] * (shape.shape[0] - 1)) for each in numbers[2:])
    return tf.logical_and(found >= low, found <= high)


def _updated(value: Tensor, update: Tensor, at: Tensor) -> Tensor:
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    return gen_xla_ops.xla_dynamic_update_slice(value, update, at)


def _segments(tf: ModuleType, run: Case) -> Case:
    """Returns a case of an op that only XLA runs."""
    compiled = tf.function(lambda y: run(data=y, segment_ids=[0, 0, 1, 3, 3, 3], num_segments=5), jit_compile=True)
    return lambda x, i, y: compiled(y)


def _sparse_segments(run: Case) -> Case:
    return lambda x, i, y: run(data=y, indices=[5, 1, 1, 0], segment_ids=[0, 0, 2, 2], num_segments=4)


def _gradients(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    cubes: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 2, 2, 1], "padding": "SAME"}
    picked = {"indices": [4, 0, 0, 7], "segment_ids": [0, 0, 1, 2], "dense_output_dim0": 9}
    return Group(
        [
            Input("float32", ("n", 3, "w", 2)),
            Input("float32", ("n", 4), -0.1, 1.1),
            Input("float32", (2, 7, 8, 2)),
            Input("int32", ("n",), 0, 2),
        ],
        {
            "CropAndResizeGradImage_bilinear": lambda g, b, x, i: raw.CropAndResizeGradImage(
                grads=g, boxes=b, box_ind=i, image_size=[2, 7, 8, 2], T=tf.float32
            ),
            "CropAndResizeGradImage_nearest": lambda g, b, x, i: raw.CropAndResizeGradImage(
                grads=g, boxes=b, box_ind=i, image_size=tf.shape(x), T=tf.float32, method="nearest"
            ),
            "CropAndResizeGradBoxes_of_floats": lambda g, b, x, i: raw.CropAndResizeGradBoxes(
                grads=g, image=x, boxes=b, box_ind=i
            ),
            "ScaleAndTranslateGrad_computed": lambda g, b, x, i: raw.ScaleAndTranslateGrad(
                grads=x, original_image=x[:, :5, :6], scale=b[0, :2] + 0.5, translation=b[0, 2:]
            ),
            "MaxPool3DGradGrad_whole": lambda g, b, x, i: raw.MaxPool3DGradGrad(
                orig_input=tf.round(x[None]),
                orig_output=tf.nn.max_pool3d(tf.round(x[None]), **cubes),
                grad=x[None],
                **cubes,
            ),
            **{
                f"SparseSegment{how}GradV2_rows": lambda g, b, x, i, how=how: getattr(raw, f"SparseSegment{how}GradV2")(
                    grad=x[0, :3], **picked
                )[0]
                for how in ("Mean", "SqrtN", "Sum")
            },
            "SparseSegmentSumGradV2_indices": lambda g, b, x, i: raw.SparseSegmentSumGradV2(
                grad=b, indices=i, segment_ids=tf.range(tf.size(i)), dense_output_dim0=4
            )[1],
        },
        in_xla=False,
    )


GROUPS: Mapping[str, Callable[[ModuleType], Group]] = {
    "gradients": _gradients,
    "special functions": _special_functions,
    "raw numbers": _raw_numbers,
    "raw arrays": _raw_arrays,
    "numbers between limits": _numbers_between_limits,
    "volumes of waves": _volumes_of_waves,
}
"""The groups by their names."""
