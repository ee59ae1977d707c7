"""Cases of windows and images for the legalizations to StableHLO."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from tests.converter.targets.stablehlo.group import Case, Group, Input, Tensor


def _strided_windows(tf: ModuleType) -> Group:
    raw, nn = tf.raw_ops, tf.nn
    return Group(
        [Input("float32", ("n", "h", "w", 4))],
        {
            "Conv2D_same": lambda x: nn.conv2d(x, kernel(tf, 3, 3, 4, 5), 2, "SAME"),
            "Conv2D_same_even": lambda x: nn.conv2d(x, kernel(tf, 2, 4, 4, 3), (3, 2), "SAME"),
            "Conv2D_pointwise": lambda x: nn.conv2d(x, kernel(tf, 1, 1, 4, 3), 2, "SAME"),
            "residual": lambda x: (
                nn.conv2d(x, kernel(tf, 1, 1, 4, 3), 2, "VALID")
                + nn.conv2d(x, kernel(tf, 3, 3, 4, 3), 2, "SAME")
                + nn.conv2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), kernel(tf, 3, 3, 4, 3), 2, "VALID")
            ),
            "Conv2D_dilated": lambda x: nn.conv2d(x, kernel(tf, 2, 2, 4, 5), 1, "VALID", dilations=(2, 3)),
            "Conv2D_grouped": lambda x: nn.conv2d(x, kernel(tf, 3, 3, 2, 6), 2, "SAME"),
            "depthwise": lambda x: nn.depthwise_conv2d(x, kernel(tf, 3, 3, 4, 2), (1, 2, 2, 1), "SAME"),
            "dilated_depthwise": lambda x: nn.depthwise_conv2d(
                x, kernel(tf, 2, 2, 4, 1), (1, 1, 1, 1), "SAME", dilations=(2, 2)
            ),
            "DepthwiseConv2dNative_separable": lambda x: nn.separable_conv2d(
                x, kernel(tf, 2, 2, 4, 1), kernel(tf, 1, 1, 4, 3), (1, 2, 2, 1), "SAME"
            ),
            "line": lambda x: nn.conv1d(x[:, 0], kernel(tf, 3, 4, 5), 2, "SAME"),
            "max": lambda x: nn.max_pool2d(x, 3, 2, "SAME"),
            "MaxPoolV2_max_v2": lambda x: raw.MaxPoolV2(
                input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 1, 1], padding="SAME", data_format="NHWC"
            ),
            "MaxPool_max_explicit": lambda x: nn.max_pool2d(x, 3, 2, [[0, 0], [1, 0], [1, 1], [0, 0]]),
            "MaxPool_max_depth": lambda x: raw.MaxPool(
                input=x, ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2], padding="VALID"
            ),
            "AvgPool_mean": lambda x: nn.avg_pool2d(x, 3, 2, "SAME"),
            "AvgPool_mean_valid": lambda x: nn.avg_pool2d(x, (2, 3), (1, 2), "VALID"),
            "dilation2d": lambda x: nn.max_pool1d(x[:, 1], 2, 2, "SAME"),
        },
    )


def _argmax_of_windows(tf: ModuleType) -> Group:
    raw, nn = tf.raw_ops, tf.nn
    numbers = {"scale": [1.0, 2.0, 3.0, 4.0], "offset": [0.0, 1.0, 0.0, 1.0]}
    return Group(
        [Input("float32", ("n", "h", "w", 3))],
        {
            **{
                f"MaxPoolWithArgmax_argmax_{padding}_{batch}": _argmax(tf, padding, batch)
                for padding in ("SAME", "VALID")
                for batch in (False, True)
            },
            "lrn": lambda x: nn.local_response_normalization(x, 1, 1.0, 0.3, 0.7),
            "lrn_wide": nn.lrn,
            "norm": lambda x: (
                raw.FusedBatchNormV3(
                    x=x,
                    scale=numbers["scale"][:3],
                    offset=numbers["offset"][:3],
                    mean=[0.1, 0.2, 0.3],
                    variance=[1.0, 2.0, 3.0],
                    is_training=False,
                ).y
            ),
            **{f"FusedBatchNormV3_training_{index}": _trained(tf, index) for index in range(3)},
        },
    )


def _channels_first(tf: ModuleType) -> Group:
    raw, nn = tf.raw_ops, tf.nn
    numbers = {"scale": [1.0, 2.0, 3.0, 4.0], "offset": [0.0, 1.0, 0.0, 1.0]}
    return Group(
        [Input("float32", ("n", 4, "h", "w"))],
        {
            "Conv2D_same": _compiled(tf, lambda x: nn.conv2d(x, kernel(tf, 3, 3, 4, 5), 2, "SAME", "NCHW")),
            "Conv2D_explicit": _compiled(
                tf, lambda x: nn.conv2d(x, kernel(tf, 3, 3, 4, 2), 2, [[0, 0], [0, 0], [1, 2], [0, 1]], "NCHW")
            ),
            "DepthwiseConv2dNative_depthwise": _compiled(
                tf, lambda x: nn.depthwise_conv2d(x, kernel(tf, 3, 3, 4, 2), (1, 1, 2, 2), "SAME", "NCHW")
            ),
            "MaxPool_max": _compiled(tf, lambda x: nn.max_pool2d(x, 3, 2, "SAME", "NCHW")),
            "AvgPool_mean": _compiled(tf, lambda x: nn.avg_pool2d(x, 3, 2, "SAME", "NCHW")),
            "FusedBatchNorm_norm": _compiled(
                tf,
                lambda x: (
                    raw.FusedBatchNormV3(
                        x=x,
                        **numbers,
                        mean=[0.1, 0.2, 0.3, 0.4],
                        variance=[1.0, 2.0, 3.0, 4.0],
                        is_training=False,
                        data_format="NCHW",
                    ).y
                ),
            ),
            "bias": lambda x: nn.bias_add(x, tf.constant([1.0, 2.0, 3.0, 4.0]), "NCHW"),
        },
    )


def _volumes(tf: ModuleType) -> Group:
    nn = tf.nn
    return Group(
        [Input("float32", ("n", "d", "h", "w", 2))],
        {
            "Conv3D_same": lambda x: nn.conv3d(x, kernel(tf, 2, 3, 2, 2, 3), (1, 2, 2, 2, 1), "SAME"),
            "Conv3D_valid": lambda x: nn.conv3d(x, kernel(tf, 2, 2, 1, 2, 3), (1, 1, 1, 1, 1), "VALID"),
            "max": lambda x: nn.max_pool3d(x, 2, 2, "SAME"),
            "AvgPool3D_mean": lambda x: nn.avg_pool3d(x, 2, 2, "SAME"),
            "Conv3DBackpropInputV2_transposed": lambda x: nn.conv3d_transpose(
                x, kernel(tf, 2, 2, 2, 3, 2), tf.shape(x) * [1, 2, 2, 2, 1] + [0, 0, 0, 0, 1], 2, "SAME"
            ),
        },
    )


def _gradients_of_windows(tf: ModuleType) -> Group:
    raw, nn = tf.raw_ops, tf.nn
    return Group(
        [Input("float32", ("n", "h", "w", 4))],
        {
            "Conv2DBackpropInput_same": _transposed(tf, 3, 2, "SAME"),
            "Conv2DBackpropInput_same_wide": _transposed(tf, 5, 2, "SAME"),
            "Conv2DBackpropInput_small": _transposed(tf, 2, 3, "SAME"),
            "Conv2DBackpropInput_valid": _transposed(tf, 3, 2, "VALID"),
            "Conv2DBackpropInput_small_valid": _transposed(tf, 2, 3, "VALID"),
            "Conv2DBackpropInput_plain": _transposed(tf, 3, 1, "SAME"),
            "Conv2DBackpropInput_explicit": lambda x: raw.Conv2DBackpropInput(
                input_sizes=tf.shape(x) * [1, 2, 2, 1] + [0, -1, 0, 1],
                filter=kernel(tf, 3, 3, 5, 4),
                out_backprop=x,
                strides=[1, 2, 2, 1],
                padding="EXPLICIT",
                explicit_paddings=[0, 0, 1, 1, 0, 1, 0, 0],
            ),
            "Conv2DBackpropInput_rows_and_columns": lambda x: raw.Conv2DBackpropInput(
                input_sizes=tf.shape(x)[1:3] * 2 - 1,
                filter=kernel(tf, 3, 2, 5, 4),
                out_backprop=x,
                strides=[1, 2, 2, 1],
                padding="SAME",
            ),
            "Conv2DBackpropInput_odd": lambda x: nn.conv2d_transpose(
                x, kernel(tf, 3, 3, 5, 4), tf.concat([tf.shape(x)[:1], tf.shape(x)[1:3] * 2 - 1, [5]], 0), 2, "SAME"
            ),
        },
    )


def _blocks(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("float32", ("n", 6, "h", 4)), Input("float32", ("n", "h", 8, "d", 2))],
        {
            "to_batch": lambda x, v: tf.space_to_batch(x, [2, 1], [[1, 1], [0, 0]]),
            "SpaceToBatchND_to_batch_3d": lambda x, v: tf.space_to_batch(v, [1, 2], [[0, 0], [1, 3]]),
            "BatchToSpaceND_from_batch": lambda x, v: tf.batch_to_space(
                tf.tile(x, [4, 1, 1, 1]), [2, 2], [[1, 2], [0, 1]]
            ),
            "SpaceToBatch_old_to_batch": lambda x, v: raw.SpaceToBatch(
                input=x[:, :, :6], paddings=[[1, 1], [0, 0]], block_size=2
            ),
            "BatchToSpace_old_from_batch": lambda x, v: raw.BatchToSpace(
                input=tf.tile(x, [4, 1, 1, 1]), crops=[[1, 1], [0, 0]], block_size=2
            ),
            "to_depth": lambda x, v: tf.nn.space_to_depth(tf.tile(x, [1, 1, 2, 1]), 2),
            "DepthToSpace_from_depth": lambda x, v: tf.nn.depth_to_space(x, 2),
            "SpaceToDepth_to_depth_first": _compiled(
                tf, lambda x, v: tf.nn.space_to_depth(tf.transpose(tf.tile(x, [1, 1, 2, 1]), [0, 3, 1, 2]), 2, "NCHW")
            ),
            "DepthToSpace_from_depth_first": _compiled(
                tf, lambda x, v: tf.nn.depth_to_space(tf.transpose(x, [0, 3, 1, 2]), 2, "NCHW")
            ),
            "patches": lambda x, v: tf.image.extract_patches(x, [1, 3, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
            "ExtractImagePatches_patches_valid": lambda x, v: tf.image.extract_patches(
                x, [1, 2, 3, 1], [1, 1, 2, 1], [1, 2, 1, 1], "VALID"
            ),
            "volume_patches": lambda x, v: tf.extract_volume_patches(v, [1, 2, 2, 1, 1], [1, 2, 3, 1, 1], "SAME"),
            "pad": lambda x, v: tf.pad(x, [[0, 0], [1, tf.shape(x)[0]], [1, 0], [0, 0]], constant_values=2.0),
            "pad_to": lambda x, v: tf.pad(x, [[0, 0], [0, 0], [0, 10 - tf.shape(x)[2]], [0, 0]]),
            "MirrorPad_reflect": lambda x, v: tf.pad(x, [[0, 0], [2, 1], [1, 2], [0, 0]], "REFLECT"),
            "MirrorPad_symmetric": lambda x, v: tf.pad(x, [[0, 0], [0, 0], [2, 3], [0, 1]], "SYMMETRIC"),
            "MirrorPad_symmetric_by": lambda x, v: tf.pad(
                x, [[0, 0], [1, tf.shape(x)[2] // 3], [2, 0], [0, 0]], "SYMMETRIC"
            ),
        },
    )


def _resized_images(tf: ModuleType) -> Group:
    return Group(
        [Input("float32", ("n", "h", "w", 3)), Input("uint8", ("n", 5, "h", 2), 0, 200)],
        {
            **{
                f"{kind}_{align}_{half}_{index}": _resized(tf, kind, (align, half), size)
                for kind in ("ResizeNearestNeighbor", "ResizeBilinear", "ResizeBicubic")
                for align, half in ((False, False), (False, True), (True, False))
                for index, size in enumerate((lambda x: [9, 4], lambda x: tf.shape(x)[1:3] * 2 - 3))
            },
            "area": _resized(tf, "ResizeArea", (False, None), lambda x: [3, 11]),
            "ResizeArea_area_by": _resized(tf, "ResizeArea", (False, None), lambda x: tf.shape(x)[1:3] * 2 - 3),
            "ResizeBilinear_bytes": lambda x, y: tf.image.resize(y, [8, 3]),
            "ResizeNearestNeighbor_near_bytes": lambda x, y: tf.image.resize(y, tf.shape(y)[1:3] * 2, "nearest"),
            "ResizeBilinear_as_another": lambda x, y: tf.image.resize(tf.cast(y, tf.float32), tf.shape(x)[1:3]),
        },
        on_buffers=False,
    )


def _colours(tf: ModuleType) -> Group:
    return Group(
        [Input("float32", ("n", "h", "w", 3), 0, 1)],
        {
            "contrast": lambda x: tf.image.adjust_contrast(x, 1.7),
            "to_hsv": tf.image.rgb_to_hsv,
            "to_rgb": tf.image.hsv_to_rgb,
            "hue": lambda x: tf.image.adjust_hue(x, 0.3),
            "saturation": lambda x: tf.image.adjust_saturation(x, 1.8),
        },
    )


def _fake_quantization(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("float32", ("n", "h", 3), -4, 4)],
        {
            "args": lambda x: tf.quantization.fake_quant_with_min_max_args(x, -1.3, 2.9, 6),
            "vars": lambda x: tf.quantization.fake_quant_with_min_max_vars(x, -3.1, 2.2, narrow_range=True),
            "FakeQuantWithMinMaxVars_empty": lambda x: tf.quantization.fake_quant_with_min_max_vars(x, 0.0, 0.0),
            "FakeQuantWithMinMaxVarsPerChannel_channels": lambda x: (
                tf.quantization.fake_quant_with_min_max_vars_per_channel(x, [-1.0, 0.0, -2.5], [1.5, 3.0, 2.0], 5)
            ),
            "QuantizeAndDequantizeV4_given": lambda x: tf.quantization.quantize_and_dequantize_v2(
                x, -2.5, 3.0, num_bits=6, range_given=True
            ),
            "QuantizeAndDequantizeV2_own_of_each": lambda x: raw.QuantizeAndDequantizeV2(
                input=x, input_min=[0.0] * 3, input_max=[0.0] * 3, range_given=False, axis=2
            ),
            "QuantizeAndDequantizeV4_own": lambda x: tf.quantization.quantize_and_dequantize_v2(
                x, 0.0, 0.0, num_bits=5, round_mode="HALF_UP"
            ),
            "QuantizeAndDequantizeV3_unsigned": lambda x: raw.QuantizeAndDequantizeV3(
                input=x, input_min=0.0, input_max=3.5, num_bits=4, signed_input=False, range_given=True
            ),
        },
    )


def _ties_of_fake_quantization(tf: ModuleType) -> Group:
    """Numbers halfway between those of the range, as exactly as floats are; XLA divides by constants otherwise."""
    between = ((np.arange(255) - 149.5) * np.float32(5.3 / 255)).astype(np.float32)
    return Group(
        [Input("float32", ("n",))],
        {
            f"FakeQuantWithMinMax{kind}_between": lambda x, run=run: run(0 * x[0] + between, -3.1, 2.2)
            for kind, run in {
                "Vars": tf.quantization.fake_quant_with_min_max_vars,
                "Args": tf.quantization.fake_quant_with_min_max_args,
            }.items()
        },
        in_xla=False,
    )


def _narrow_images(tf: ModuleType) -> Group:
    raw, nn = tf.raw_ops, tf.nn
    numbers = {"scale": [1.0, 2.0, 3.0, 4.0], "offset": [0.0, 1.0, 0.0, 1.0]}
    return Group(
        [
            Input("float16", ("n", "h", "w", 4)),
            Input("bfloat16", ("n", "h", "w", 4)),
            Input("float64", ("n", "h", "w", 4)),
        ],
        {
            **{
                f"Conv2D_conv_{index}": _of(
                    index, lambda x: nn.conv2d(x, tf.cast(kernel(tf, 3, 3, 4, 5), x.dtype), 2, "SAME")
                )
                for index in range(3)
            },
            **{f"AvgPool_mean_{index}": _of(index, lambda x: nn.avg_pool2d(x, 3, 2, "SAME")) for index in range(3)},
            **{f"MaxPool_max_{index}": _of(index, lambda x: nn.max_pool2d(x, 3, 2, "SAME")) for index in range(3)},
            "norm": lambda x, y, z: (
                raw.FusedBatchNormV3(
                    x=x, **numbers, mean=[0.1, 0.2, 0.3, 0.4], variance=[1.0, 2.0, 3.0, 4.0], is_training=False
                ).y
            ),
        },
    )


def _training_gradients(tf: ModuleType) -> Group:
    raw, nn = tf.raw_ops, tf.nn
    pooled = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}

    def filtered(name: str, x: Tensor, depth: int, channels: int, **how: object) -> Tensor:
        sizes = [3, 2, 4, depth]
        gradient = tf.tile(tf.sin(x[:, ::2, ::2, :1]), [1, 1, 1, channels])
        return getattr(raw, name)(
            input=x, filter_sizes=sizes, out_backprop=gradient, strides=[1, 2, 2, 1], padding="SAME", **how
        )

    def back_from_slice(x: Tensor, *index: Any) -> Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.sin(x[index]))
        return tape.gradient(loss, x)

    return Group(
        [Input("float32", ("n", 6, 8, 4))],
        {
            # Its convolution has the batch as channels, whose number has to be known.
            "Conv2DBackpropFilter": lambda x: filtered("Conv2DBackpropFilter", x[0][None], 3, 3),
            "DepthwiseConv2dNativeBackpropFilter": lambda x: filtered("DepthwiseConv2dNativeBackpropFilter", x, 2, 8),
            "DepthwiseConv2dNativeBackpropInput": lambda x: raw.DepthwiseConv2dNativeBackpropInput(
                input_sizes=tf.stack([tf.shape(x)[0], 12, 16, 4]),
                filter=kernel(tf, 3, 3, 4, 1),
                out_backprop=x,
                strides=[1, 2, 2, 1],
                padding="SAME",
            ),
            "MaxPoolGrad": lambda x: raw.MaxPoolGrad(
                orig_input=x, orig_output=nn.max_pool2d(x, (3, 2), 2, "SAME"), grad=x[:, ::2, ::2] + 1, **pooled
            ),
            "AvgPoolGrad": lambda x: raw.AvgPoolGrad(orig_input_shape=tf.shape(x), grad=x[:, ::2, ::2], **pooled),
            "StridedSliceGrad": lambda x: back_from_slice(x, slice(None), slice(1, -1), slice(None, None, 3), -1),
            "StridedSliceGrad_batch": lambda x: back_from_slice(x, -1, slice(None), None),
            "MirrorPadGrad": lambda x: raw.MirrorPadGrad(
                input=x, paddings=[[0, 0], [1, 2], [0, 1], [0, 0]], mode="REFLECT"
            ),
            "ResizeBilinearGrad": lambda x: raw.ResizeBilinearGrad(
                grads=x, original_image=x[:, :4, :5], half_pixel_centers=True
            ),
            "LRNGrad": lambda x: raw.LRNGrad(
                input_grads=x, input_image=x, output_image=nn.local_response_normalization(x, 1), depth_radius=1
            ),
            "FusedBatchNormGradV3": lambda x: (
                raw.FusedBatchNormGradV3(
                    y_backprop=tf.sin(x),
                    x=x,
                    scale=[1.0, 2.0, 3.0, 4.0],
                    reserve_space_1=tf.reduce_mean(x, [0, 1, 2]),
                    reserve_space_2=tf.math.reduce_variance(x, [0, 1, 2]),
                    reserve_space_3=[],
                ).x_backprop
            ),
        },
    )


def kernel(tf: ModuleType, *shape: int) -> Tensor:
    """Returns a constant of different numbers."""
    count = 1
    for size in shape:
        count *= size
    return tf.constant([((7 * index) % 11 - 5) / 10 for index in range(count)], tf.float32, shape)


def _compiled(tf: ModuleType, run: Case) -> Case:
    """Returns a case that TensorFlow runs in XLA, as its own kernels don't have it."""
    compiled: Case = tf.function(run, jit_compile=True, autograph=False)
    return compiled


def _of(index: int, run: Case) -> Case:
    return lambda *inputs: run(inputs[index])


def _resized(tf: ModuleType, kind: str, options: tuple[bool, bool | None], size: Case) -> Case:
    align, half = options
    more = {} if half is None else {"half_pixel_centers": half}

    def run(x: Tensor, y: Tensor) -> Tensor:
        return getattr(tf.raw_ops, kind)(images=x, size=size(x), align_corners=align, **more)

    return run


def _argmax(tf: ModuleType, padding: str, has_batch: bool) -> Case:
    def run(x: Tensor) -> Tensor:
        found = tf.nn.max_pool_with_argmax(x, 3, 2, padding, "NHWC", tf.int64, has_batch)
        return found[1] + tf.cast(found[0], tf.int64)

    return run


def _trained(tf: ModuleType, index: int) -> Case:
    def run(x: Tensor) -> Tensor:
        return tf.raw_ops.FusedBatchNormV3(
            x=x,
            scale=[1.0, 2.0, 3.0],
            offset=[0.5, 1.0, 2.0],
            mean=[0.1, 0.2, 0.3],
            variance=[1.0, 2.0, 3.0],
            is_training=True,
            exponential_avg_factor=0.7,
        )[index]

    return run


def _transposed(tf: ModuleType, size: int, stride: int, padding: str) -> Case:
    def run(x: Tensor) -> Tensor:
        shape = tf.shape(x)
        more = max(size - stride, 0) if padding == "VALID" else 0
        wanted = tf.stack([shape[0], shape[1] * stride + more, shape[2] * stride + more, 5])
        return tf.nn.conv2d_transpose(x, kernel(tf, size, size, 5, 4), wanted, stride, padding)

    return run


GROUPS: Mapping[str, Callable[[ModuleType], Group]] = {
    "strided windows": _strided_windows,
    "argmax of windows": _argmax_of_windows,
    "channels first": _channels_first,
    "volumes": _volumes,
    "gradients of windows": _gradients_of_windows,
    "training gradients": _training_gradients,
    "blocks": _blocks,
    "resized images": _resized_images,
    "colours": _colours,
    "fake quantization": _fake_quantization,
    "ties of fake quantization": _ties_of_fake_quantization,
    "narrow images": _narrow_images,
}
"""The groups by their names."""
