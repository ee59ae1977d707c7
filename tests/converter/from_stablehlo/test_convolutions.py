"""Convolutions of StableHLO: layouts, padding, strides, gaps, groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.converter.from_stablehlo.against_executor import check, numbers
from tests.converter.from_stablehlo.programs import convert, operators, program
from tests.support.litert import run

IMAGES = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
X, KERNEL = (2, 9, 8, 4), (3, 3, 4, 6)


class Conv(NamedTuple):
    """A convolution: shapes, padding, the result's shape, and what isn't as usual."""

    x: tuple[int, ...]
    kernel: tuple[int, ...]
    pads: str
    shape: tuple[int, ...]
    layout: str = IMAGES
    strides: tuple[int, ...] = ()
    gaps: tuple[int, ...] = ()
    rates: tuple[int, ...] = ()
    turned: str = ""
    groups: int = 1
    batches: int = 1
    operators: dict[str, int] | None = None


CONVOLUTIONS = {
    "valid": Conv(X, KERNEL, "[0, 0], [0, 0]", (2, 7, 6, 6)),
    "same": Conv(X, KERNEL, "[1, 1], [1, 1]", (2, 9, 8, 6), operators={"TRANSPOSE": 1, "CONV_2D": 1}),
    "same with strides": Conv(
        X, KERNEL, "[1, 1], [0, 1]", (2, 5, 4, 6), strides=(2, 2), operators={"TRANSPOSE": 1, "CONV_2D": 1}
    ),
    "padded": Conv(X, KERNEL, "[0, 2], [3, 0]", (2, 9, 9, 6)),
    "cropped": Conv(X, KERNEL, "[-1, 2], [0, -2]", (2, 8, 4, 6)),
    "dilated": Conv(X, KERNEL, "[2, 2], [2, 2]", (2, 9, 8, 6), rates=(2, 2)),
    "depthwise": Conv(X, (3, 3, 1, 8), "[1, 1], [1, 1]", (2, 9, 8, 8), groups=4),
    "grouped": Conv(X, (3, 3, 2, 6), "[1, 1], [1, 1]", (2, 9, 8, 6), groups=2),
    "reversed": Conv(X, KERNEL, "[0, 0], [0, 0]", (2, 7, 6, 6), turned="true, false"),
    "groups of the batch": Conv((4, 5, 5, 3), (3, 3, 3, 6), "[0, 0], [0, 0]", (2, 3, 3, 6), batches=2),
    "channels first": Conv(
        (2, 4, 9, 8), (6, 4, 3, 3), "[0, 0], [0, 0]", (2, 6, 7, 6), "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"
    ),
    "gradient of a kernel": Conv(
        (4, 5, 5, 2), (4, 5, 5, 3), "[1, 1], [1, 1]", (3, 3, 4, 3), "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]"
    )._replace(shape=(3, 3, 2, 3)),
    "transposed valid": Conv(X, KERNEL, "[2, 2], [2, 2]", (2, 19, 17, 6), gaps=(2, 2)),
    "transposed same": Conv(X, KERNEL, "[2, 1], [2, 1]", (2, 18, 16, 6), gaps=(2, 2)),
    "transposed and padded": Conv(X, KERNEL, "[1, 3], [0, 1]", (2, 19, 14, 6), gaps=(2, 2)),
    "transposed beyond": Conv(X, KERNEL, "[4, 3], [5, 2]", (2, 22, 20, 6), gaps=(2, 2)),
    "transposed with a small kernel": Conv(X, (1, 2, 4, 6), "[0, 1], [1, 2]", (2, 18, 24, 6), gaps=(2, 3)),
    "transposed and dilated": Conv(X, KERNEL, "[4, 3], [2, 1]", (2, 20, 16, 6), gaps=(2, 2), rates=(2, 1)),
    "transposed by groups": Conv(X, (3, 3, 2, 6), "[1, 1], [2, 1]", (2, 17, 23, 6), gaps=(2, 3), groups=2),
    "transposed with strides": Conv(X, KERNEL, "[1, 1], [2, 1]", (2, 6, 12, 6), gaps=(2, 3), strides=(3, 2)),
    "lines": Conv((2, 9, 4), (3, 4, 6), "[2, 0]", (2, 9, 6), "[b, 0, f]x[0, i, o]->[b, 0, f]"),
    "transposed lines": Conv((2, 9, 4), (3, 4, 6), "[2, 1]", (2, 18, 6), "[b, 0, f]x[0, i, o]->[b, 0, f]", gaps=(2,)),
    "volumes": Conv(
        (2, 4, 5, 6, 3),
        (3, 3, 3, 3, 4),
        "[1, 1], [0, 1], [1, 0]",
        (2, 4, 4, 5, 4),
        "[b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f]",
    ),
    "grouped volumes": Conv(
        (2, 4, 5, 6, 4),
        (3, 3, 3, 2, 6),
        "[0, 0], [0, 0], [0, 0]",
        (2, 2, 3, 4, 6),
        "[b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f]",
        groups=2,
    ),
}


def op_of(conv: Conv) -> str:
    rank = len(conv.x) - 2
    properties = {
        "batch_group_count": f"{conv.batches} : i64",
        "dimension_numbers": f"#stablehlo.conv<{conv.layout}>",
        "feature_group_count": f"{conv.groups} : i64",
        "padding": f"dense<[{conv.pads}]> : tensor<{rank}x2xi64>",
    }
    lists = {"window_strides": conv.strides, "lhs_dilation": conv.gaps, "rhs_dilation": conv.rates}
    properties |= {name: f"array<i64: {', '.join(map(str, values))}>" for name, values in lists.items() if values}
    if conv.turned:
        properties["window_reversal"] = f"array<i1: {conv.turned}>"
    return (
        f'"stablehlo.convolution"(%a, %b) <{{{", ".join(f"{name} = {value}" for name, value in properties.items())}}}>'
    )


def check_conv(name: str, **options: Any) -> None:
    conv = CONVOLUTIONS[name]
    inputs = [numbers(*conv.x), numbers(*conv.kernel, seed=1)]
    check(op_of(conv), inputs, conv.shape, wanted=conv.operators, **options)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    check_conv(name)


OPEN = [name for name, conv in CONVOLUTIONS.items() if conv.layout.startswith("[b") and conv.batches == 1]


@pytest.mark.parametrize("name", OPEN)
def test_convolutions_of_an_open_batch(name: str) -> None:
    check_conv(name, is_open=True)


def test_small_integers() -> None:
    conv = CONVOLUTIONS["same"]
    inputs = [numbers(*conv.x, dtype="int8"), numbers(*conv.kernel, dtype="int8", seed=1)]
    check(op_of(conv), inputs, conv.shape, "int32")


def test_no_spatial_dimensions() -> None:
    op = (
        '"stablehlo.convolution"(%a, %b) <{dimension_numbers = #stablehlo.conv<[b, f]x[o, i]->[b, f]>, '
        "batch_group_count = 1 : i64, feature_group_count = 1 : i64}>"
    )
    check(op, [numbers(2, 4), numbers(5, 4, seed=1)], (2, 5), wanted={"BATCH_MATMUL": 1})


def _padded_by(*computed: str) -> str:
    """Returns a convolution of three elements whose padding, `%low` and `%high`, is computed from the size `%w`."""
    image, letters = "tensor<1x?x1xf32>", "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>"
    constants = [f"%c{each} = stablehlo.constant dense<{each}> : tensor<i32>" for each in (0, 1, 2, 7, 5000)]
    body = [
        "%k = stablehlo.constant dense<[[[1.0]], [[2.0]], [[4.0]]]> : tensor<3x1x1xf32>",
        f"%w = stablehlo.get_dimension_size %a, dim = 1 : ({image}) -> tensor<i32>",
        *constants,
        *(f"{each} : tensor<i32>" for each in computed),
        "%l = stablehlo.reshape %low : (tensor<i32>) -> tensor<1x1xi32>",
        "%h = stablehlo.reshape %high : (tensor<i32>) -> tensor<1x1xi32>",
        "%p = stablehlo.concatenate %l, %h, dim = 1 : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>",
        f'%r = "stablehlo.dynamic_conv"(%a, %k, %p) <{{dimension_numbers = {letters}, batch_group_count = 1 : i64, '
        "feature_group_count = 1 : i64, window_strides = array<i64: 1>}> "
        f": ({image}, tensor<3x1x1xf32>, tensor<1x2xi32>) -> {image}",
        f"return %r : {image}",
    ]
    return program("\n".join(body), [image], [image])


# One element on each side, as `SAME` has it, and from some size on one that goes to the other side.
_BEYOND = (
    "%over = stablehlo.subtract %w, %{limit}",
    "%above = stablehlo.maximum %over, %c0",
    "%s = stablehlo.minimum %above, %c1",
    "%low = stablehlo.add %c1, %s",
    "%high = stablehlo.subtract %c1, %s",
)


@pytest.mark.parametrize(("limit", "sizes"), [("c7", (5, 9)), ("c5000", (10, 6000))])
def test_padding_that_differs_for_large_sizes_is_not_that_of_same(limit: str, sizes: tuple[int, int]) -> None:
    content = convert(_padded_by(*(each.format(limit=limit) for each in _BEYOND)))
    for size, low in zip(sizes, (1, 2), strict=True):
        x = np.arange(size, dtype=np.float32).reshape(1, size, 1)
        wide = np.concatenate([np.zeros(low, np.float32), x.reshape(-1), np.zeros(2 - low, np.float32)])
        (found,) = run(content, [x])
        np.testing.assert_allclose(found.reshape(-1), wide[:-2] + 2 * wide[1:-1] + 4 * wide[2:])


@pytest.mark.parametrize(
    "computed",
    [
        # ((w + 1) - w) and w - (w - 1).
        ("%m = stablehlo.add %w, %c1", "%low = stablehlo.subtract %m, %w", "%high = stablehlo.minimum %low, %c1"),
        # 2 * w - 2 * w / 2 * 2 + 1, max(min(low, 7), 0).
        (
            "%t = stablehlo.multiply %w, %c2",
            "%q = stablehlo.divide %t, %c2",
            "%u = stablehlo.multiply %q, %c2",
            "%d = stablehlo.subtract %t, %u",
            "%low = stablehlo.add %d, %c1",
            "%n = stablehlo.minimum %low, %c7",
            "%high = stablehlo.maximum %n, %c0",
        ),
        # min(w, 7) % 1 + 1, max(low, 1).
        (
            "%n = stablehlo.minimum %w, %c7",
            "%m = stablehlo.remainder %n, %c1",
            "%low = stablehlo.add %m, %c1",
            "%high = stablehlo.maximum %low, %c1",
        ),
    ],
)
def test_padding_that_is_that_of_same_for_all_sizes_is_recognized(computed: tuple[str, ...]) -> None:
    assert operators(convert(_padded_by(*computed))) == {"RESHAPE": 2, "CONV_2D": 1}
