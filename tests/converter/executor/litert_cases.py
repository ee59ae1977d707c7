"""One operator each: what the reference executor and LiteRT are to agree on, with the options that matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tests.support.run_text import Array


class Case(NamedTuple):
    """One operator.

    Attributes:
        name: Its name.
        operands: Inputs of the model as `f32[2,3]`, or with bounds; all else is constants, `None` is absent.
        results: Its results' types, `f32[2,3]`, separated by spaces; -1 where a size is unknown.
        options: Its options.
    """

    name: str
    operands: tuple[Any, ...]
    results: str
    options: Mapping[str, Any]


def _case(name: str, *operands: Any, to: str, **options: Any) -> Case:
    return Case(name, operands, to, options)


def _normal(*shape: int) -> Array:
    return np.random.default_rng(shape).normal(0, 1, shape).astype(np.float32)


def _each(names: str, bounds: str = "") -> tuple[Case, ...]:
    return tuple(_case(name, f"f32[3,5]{bounds}", to="f32[3,5]") for name in names.split())


def _pairs(names: str, to: str, kind: str = "f32", bounds: str = "", **options: Any) -> tuple[Case, ...]:
    operands = f"{kind}[3,5]{bounds}", f"{kind}[3,5]{bounds}"
    return tuple(_case(name, *operands, to=f"{to}[3,5]", **options) for name in names.split())


_IMAGES, _CUBES = "f32[2,6,7,4]", "f32[1,4,5,6,2]"
_SAME: Mapping[str, Any] = {"padding": "SAME", "stride_h": 2, "stride_w": 1}
_VALID: Mapping[str, Any] = {"padding": "VALID", "stride_h": 1, "stride_w": 1}
_WINDOW: Mapping[str, Any] = {"filter_height": 2, "filter_width": 3}
_SOLID: Mapping[str, Any] = {"padding": "SAME", "stride_d": 2, "stride_h": 1, "stride_w": 2}
_NO_MASKS: Mapping[str, Any] = dict.fromkeys(
    (f"{name}_mask" for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")), 0
)
_RELU: Mapping[str, Any] = {"fused_activation_function": "RELU"}

CONVOLUTIONS = (
    _case("conv_2d", _IMAGES, _normal(5, 3, 2, 4), _normal(5), to="f32[2,3,7,5]", **_SAME, **_RELU),
    _case(
        "conv_2d",
        _IMAGES,
        _normal(5, 3, 2, 4),
        _normal(5),
        to="f32[2,2,5,5]",
        dilation_h_factor=2,
        dilation_w_factor=2,
        **_VALID,
    ),
    _case("conv_2d", _IMAGES, _normal(6, 3, 3, 2), _normal(6), to="f32[2,4,5,6]", **_VALID),
    _case(
        "depthwise_conv_2d",
        _IMAGES,
        _normal(1, 3, 2, 8),
        _normal(8),
        to="f32[2,4,6,8]",
        depth_multiplier=2,
        fused_activation_function="RELU6",
        **_VALID,
    ),
    _case(
        "depthwise_conv_2d",
        _IMAGES,
        _normal(1, 3, 3, 4),
        _normal(4),
        to="f32[2,6,7,4]",
        depth_multiplier=1,
        dilation_w_factor=2,
        padding="SAME",
        stride_h=1,
        stride_w=1,
    ),
    _case(
        "transpose_conv", [2, 12, 7, 5], _normal(5, 3, 2, 4), _IMAGES, _normal(5), to="f32[2,12,7,5]", **_SAME, **_RELU
    ),
    _case("transpose_conv", [2, 8, 8, 5], _normal(5, 3, 2, 4), _IMAGES, to="f32[2,8,8,5]", **_VALID),
    _case("conv_3d", _CUBES, _normal(2, 3, 2, 2, 3), _normal(3), to="f32[1,2,5,3,3]", **_SOLID, **_RELU),
    _case(
        "conv_3d_transpose",
        [1, 8, 5, 12, 3],
        _normal(2, 3, 2, 3, 2),
        _CUBES,
        _normal(3),
        to="f32[1,8,5,12,3]",
        **_SOLID,
    ),
    _case("average_pool_2d", _IMAGES, to="f32[2,3,7,4]", **_WINDOW, **_SAME),
    _case("average_pool_2d", _IMAGES, to="f32[2,5,5,4]", **_WINDOW, **_VALID, **_RELU),
    _case("max_pool_2d", _IMAGES, to="f32[2,3,7,4]", **_WINDOW, **_SAME),
    _case("max_pool_2d", _IMAGES, to="f32[2,5,5,4]", fused_activation_function="RELU_N1_TO_1", **_WINDOW, **_VALID),
    _case("l2_pool_2d", _IMAGES, to="f32[2,3,7,4]", **_WINDOW, **_SAME),
    _case("local_response_normalization", "f32[2,3,3,8]", to="f32[2,3,3,8]", radius=2, bias=1.0, alpha=0.5, beta=0.75),
    _case("resize_bilinear", _IMAGES, [9, 5], to="f32[2,9,5,4]"),
    _case("resize_bilinear", _IMAGES, [9, 5], to="f32[2,9,5,4]", half_pixel_centers=True),
    _case("resize_bilinear", _IMAGES, [9, 5], to="f32[2,9,5,4]", align_corners=True),
    _case("resize_nearest_neighbor", _IMAGES, [9, 5], to="f32[2,9,5,4]"),
    _case("resize_nearest_neighbor", _IMAGES, [9, 5], to="f32[2,9,5,4]", half_pixel_centers=True),
    _case("resize_nearest_neighbor", _IMAGES, [9, 5], to="f32[2,9,5,4]", align_corners=True),
    _case("space_to_depth", "f32[2,4,6,3]", to="f32[2,2,3,12]", block_size=2),
    _case("depth_to_space", "f32[2,2,3,12]", to="f32[2,4,6,3]", block_size=2),
    _case("space_to_batch_nd", "f32[1,4,5,2]", [2, 3], np.array([[0, 0], [0, 1]], np.int32), to="f32[6,2,2,2]"),
    _case("batch_to_space_nd", "f32[6,2,2,2]", [2, 3], np.array([[0, 0], [0, 1]], np.int32), to="f32[1,4,5,2]"),
)

PRODUCTS = (
    _case("fully_connected", "f32[3,2,4]", _normal(5, 4), _normal(5), to="f32[6,5]", **_RELU),
    _case("fully_connected", "f32[3,2,4]", _normal(5, 4), None, to="f32[3,2,5]", keep_num_dims=True),
    _case("fully_connected", "f32[3,4]", _normal(5, 4), to="f32[3,5]"),
    _case("batch_matmul", "f32[2,3,4]", "f32[2,4,5]", to="f32[2,3,5]"),
    _case("batch_matmul", "f32[2,4,3]", "f32[2,5,4]", to="f32[2,3,5]", adj_x=True, adj_y=True),
    _case("rfft2d", "f32[2,4,8]", [4, 8], to="c64[2,4,5]"),
)

ELEMENTWISE = (
    *_each("abs ceil cos elu exp floor logistic neg round sign sin square tanh zeros_like"),
    *_each("relu relu6 relu_n1_to_1 relu_0_to_1 hard_swish", "@-8:8"),
    *_each("log rsqrt sqrt", "@0.1:9"),
    _case("leaky_relu", "f32[3,5]", to="f32[3,5]", alpha=0.3),
    _case("prelu", "f32[2,3,4]", _normal(4), to="f32[2,3,4]"),
    _case("softmax", "f32[3,5]", to="f32[3,5]", beta=1.0),
    _case("softmax", "f32[3,5]", to="f32[3,5]", beta=0.5),
    _case("log_softmax", "f32[3,5]", to="f32[3,5]"),
    _case("l2_normalization", "f32[3,5]", to="f32[3,5]"),
    *_pairs("add sub mul div maximum minimum squared_difference floor_div floor_mod atan2", "f32"),
    *_pairs("add sub mul div", "f32", **_RELU),
    *_pairs("div floor_div floor_mod", "i32", "i32", "@1:20"),
    *_pairs("pow", "f32", bounds="@0.1:3"),
    *_pairs("less less_equal greater greater_equal", "i1"),
    *_pairs("equal not_equal", "i1", "i32", "@0:3"),
    *_pairs("logical_and logical_or", "i1", "i1"),
    *_pairs("bitwise_xor right_shift", "i32", "i32", "@0:9"),
    _case("logical_not", "i1[3,5]", to="i1[3,5]"),
    _case("add", "f32[2,1,3]", "f32[4,1]", to="f32[2,4,3]"),
    _case("add_n", "f32[3,5]", "f32[3,5]", "f32[3,5]", to="f32[3,5]"),
    _case("select", "i1[3]", "f32[3,5]", "f32[3,5]", to="f32[3,5]"),
    _case("select_v2", "i1[3,1]", "f32[3,5]", "f32[5]", to="f32[3,5]"),
    _case("cast", "f32[3,5]", to="i32[3,5]", in_data_type="FLOAT32", out_data_type="INT32"),
    _case("cast", "i32[3,5]", to="i1[3,5]", in_data_type="INT32", out_data_type="BOOL"),
    _case("bitcast", "f32[3,5]", to="i32[3,5]"),
    _case("real", "c64[3,5]", to="f32[3,5]"),
    _case("imag", "c64[3,5]", to="f32[3,5]"),
    _case("complex_abs", "c64[3,5]", to="f32[3,5]"),
    _case("fake_quant", "f32[3,5]", to="f32[3,5]", min=-2.1, max=1.0, num_bits=8, narrow_range=False),
    _case("bucketize", "f32[3,5]", to="i32[3,5]", boundaries=[-1.0, 0.0, 2.0]),
)

_REDUCTIONS = "mean sum reduce_max reduce_min reduce_prod"

REDUCTIONS = (
    *(_case(name, "f32[2,3,4]", [0, -1], to="f32[3]") for name in _REDUCTIONS.split()),
    *(_case(name, "f32[2,3,4]", [1], to="f32[2,1,4]", keep_dims=True) for name in _REDUCTIONS.split()),
    _case("reduce_any", "i1[2,3,4]", [1], to="i1[2,4]"),
    _case("reduce_all", "i1[2,3,4]", [1], to="i1[2,1,4]", keep_dims=True),
    _case("arg_max", "f32[2,3,4]", np.int32(1), to="i64[2,4]", output_type="INT64"),
    _case("arg_min", "f32[2,3,4]", np.int32(-1), to="i32[2,3]", output_type="INT32"),
    _case("cumsum", "f32[2,3,4]", np.int32(1), to="f32[2,3,4]"),
    _case("cumsum", "f32[2,3,4]", np.int32(-1), to="f32[2,3,4]", exclusive=True, reverse=True),
    _case("segment_sum", "f32[4,3]", [0, 0, 1, 2], to="f32[3,3]"),
    *(
        _case(f"unsorted_segment_{name}", "f32[4,3]", [2, 0, 2, 1], np.int32(3), to="f32[3,3]")
        for name in ("sum", "prod", "max", "min")
    ),
    _case("topk_v2", "f32[3,5]", np.int32(2), to="f32[3,2] i32[3,2]"),
)

_PADS = np.array([[1, 0], [2, 1]], np.int32)

SHAPES = (
    _case("reshape", "f32[2,6]", [3, -1], to="f32[3,4]", new_shape=[3, -1]),
    _case("reshape", "f32[2,6]", to="f32[3,4]", new_shape=[3, 4]),
    _case("squeeze", "f32[1,3,1,2]", to="f32[1,3,2]", squeeze_dims=[2]),
    _case("squeeze", "f32[1,3,1,2]", to="f32[3,2]"),
    _case("expand_dims", "f32[3,5]", np.int32(-2), to="f32[3,1,5]"),
    _case("transpose", "f32[2,3,4]", [2, 0, 1], to="f32[4,2,3]"),
    _case("pad", "f32[3,5]", _PADS, to="f32[4,8]"),
    _case("padv2", "f32[3,5]", _PADS, np.float32(-7), to="f32[4,8]"),
    _case("mirror_pad", "f32[3,5]", _PADS, to="f32[4,8]", mode="REFLECT"),
    _case("mirror_pad", "f32[3,5]", _PADS, to="f32[4,8]", mode="SYMMETRIC"),
    _case("slice", "f32[3,5]", [1, 2], [2, -1], to="f32[2,3]"),
    _case("strided_slice", "f32[4,6]", [1, 0], [4, -1], [2, 1], to="f32[2,5]", **_NO_MASKS),
    _case("strided_slice", "f32[4,6]", [0, 5], [1, 0], [1, -2], to="f32[3]", **{**_NO_MASKS, "shrink_axis_mask": 1}),
    _case("strided_slice", "f32[4,6]", [1, 2], [2, 3], [1, 1], to="f32[2,3]", **_NO_MASKS, offset=True),
    _case("split", np.int32(1), "f32[3,6]", to="f32[3,3] f32[3,3]", num_splits=2),
    _case("split_v", "f32[3,6]", [2, -1], np.int32(1), to="f32[3,2] f32[3,4]", num_splits=2),
    _case("pack", "f32[3,5]", "f32[3,5]", to="f32[3,2,5]", values_count=2, axis=1),
    _case("unpack", "f32[3,2]", to="f32[3] f32[3]", num=2, axis=-1),
    _case("concatenation", "f32[3,2]", "f32[3,1]", to="f32[3,3]", axis=-1, fused_activation_function="NONE"),
    _case("tile", "f32[2,3]", [2, 2], to="f32[4,6]"),
    _case("reverse_v2", "f32[2,3,4]", [1], to="f32[2,3,4]"),
    _case("reverse_sequence", "f32[2,4,3]", [1, 3], to="f32[2,4,3]", seq_dim=1, batch_dim=0),
    _case("broadcast_to", "f32[3,1]", [2, 3, 4], to="f32[2,3,4]"),
    _case("broadcast_args", "i32[3]@1:2", "i32[2]@3:4", to="i32[3]"),
    _case("fill", "i32[2]@2:3", np.float32(1.5), to="f32[-1,-1]"),
    _case("range", "i32[]@0:1", "i32[]@5:9", np.int32(2), to="i32[-1]"),
    _case("shape", "f32[3,5]", to="i64[2]", out_type="INT64"),
    _case("rank", "f32[3,5]", to="i32[]"),
    _case("dynamic_update_slice", "f32[4,6]", "f32[2,3]", "i32[2]@0:7", to="f32[4,6]"),
    _case("matrix_diag", "f32[2,3]", to="f32[2,3,3]"),
    _case("matrix_set_diag", "f32[2,3,3]", "f32[2,3]", to="f32[2,3,3]"),
)

INDICES = (
    _case("gather", "f32[4,3]", [2, 0, 2], to="f32[3,3]", axis=0),
    _case("gather", "f32[2,5,3]", np.array([[1, 4], [0, 0]], np.int32), to="f32[2,2,3]", axis=1, batch_dims=1),
    _case("gather", "f32[2,5,3]", "i32[2]@0:3", to="f32[2,5,2]", axis=-1),
    _case("gather_nd", "f32[4,3]", np.array([[1, 2], [3, 0]], np.int32), to="f32[2]"),
    _case("scatter_nd", np.array([[1], [3], [1]], np.int32), "f32[3,2]", [5, 2], to="f32[5,2]"),
    _case("one_hot", "i32[3]@0:4", np.int32(4), np.float32(2), np.float32(-1), to="f32[3,4]", axis=-1),
    _case("one_hot", "i32[3]@0:4", np.int32(4), np.float32(2), np.float32(-1), to="f32[4,3]", axis=0),
    _case("where", "i1[3,4]", to="i64[-1,2]"),
    _case("unique", "i32[9]@0:4", to="i32[-1] i64[9]", idx_out_type="INT64"),
    _case("sparse_to_dense", np.array([[0, 1], [2, 0]], np.int32), [3, 2], "f32[2]", np.float32(-1), to="f32[3,2]"),
)

CASES = (*CONVOLUTIONS, *PRODUCTS, *ELEMENTWISE, *REDUCTIONS, *SHAPES, *INDICES)
