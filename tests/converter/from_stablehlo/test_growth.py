"""The work of raising grows no faster than a program, however its numbers are shared and chained."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.support.work import calls
from tfconvert.converter.passes.stablehlo_to_tf import StablehloToTf
from tfconvert.importers.mlir import import_mlir

# How much more than twice as much the work may grow for twice the program.
_SLACK = 1.1

_SIZE = "%d0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>"
_VECTOR = "%v = stablehlo.reshape %d0 : (tensor<i32>) -> tensor<1xi32>"
_ONE = "%one = stablehlo.constant dense<1> : tensor<1xi32>"


def _program(arguments: str, body: Sequence[str], result: str, kind: str) -> str:
    lines = "\n".join([*body, f"return {result} : {kind}"])
    return f"module {{\nfunc.func @main({arguments}) -> {kind} {{\n{lines}\n}}\n}}"


def _doubled(name: str, count: int, kind: str = "tensor<i32>") -> list[str]:
    return [f"%d{k + 1} = stablehlo.{name} %d{k}, %d{k} : {kind}" for k in range(count)]


def _extremes_of_differences(count: int) -> list[str]:
    names = ("subtract", "maximum")
    return [f"%d{k + 1} = stablehlo.{names[k % 2]} %d{k}, %d{k} : tensor<i32>" for k in range(count)]


def _slices(count: int) -> str:
    """Slices that begin at a size doubled again and again."""
    kinds = "(tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>"
    body = [_SIZE, _VECTOR, _ONE, *_doubled("add", count), "%a0 = stablehlo.abs %x : tensor<?xf32>"]
    for k in range(count):
        body += [
            f"%s{k} = stablehlo.reshape %d{k} : (tensor<i32>) -> tensor<1xi32>",
            f"%a{k + 1} = stablehlo.real_dynamic_slice %a{k}, %s{k}, %v, %one : {kinds}",
        ]
    return _program("%x: tensor<?xf32>", body, f"%a{count}", "tensor<?xf32>")


def _extremes(count: int) -> str:
    """A slice that begins at the larger of numbers, again and again."""
    kinds = "(tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>"
    body = [
        _SIZE,
        _VECTOR,
        _ONE,
        *_extremes_of_differences(count),
        f"%s = stablehlo.reshape %d{count} : (tensor<i32>) -> tensor<1xi32>",
        f"%r = stablehlo.real_dynamic_slice %x, %s, %v, %one : {kinds}",
    ]
    return _program("%x: tensor<?xf32>", body, "%r", "tensor<?xf32>")


def _comparisons(count: int) -> str:
    """Comparisons of integers that are computed one from another."""
    body = ["%d0 = stablehlo.add %x, %x : tensor<i32>", *_doubled("add", count)]
    body.append("%s0 = stablehlo.constant dense<0> : tensor<i32>")
    for k in range(count):
        body += [
            f"%b{k} = stablehlo.compare LT, %d{k}, %x : (tensor<i32>, tensor<i32>) -> tensor<i1>",
            f"%n{k} = stablehlo.convert %b{k} : (tensor<i1>) -> tensor<i32>",
            f"%s{k + 1} = stablehlo.add %s{k}, %n{k} : tensor<i32>",
        ]
    return _program("%x: tensor<i32>", body, f"%s{count}", "tensor<i32>")


def _means(count: int) -> str:
    """Sums that are divided by powers of a size."""
    body = [
        _SIZE,
        "%a0 = stablehlo.constant dense<0.0> : tensor<f32>",
        "%t = stablehlo.reduce(%x init: %a0) applies stablehlo.add across dimensions = [0] : "
        "(tensor<?xf32>, tensor<f32>) -> tensor<f32>",
        *_doubled("multiply", count),
    ]
    for k in range(count):
        body += [
            f"%f{k} = stablehlo.convert %d{k} : (tensor<i32>) -> tensor<f32>",
            f"%q{k} = stablehlo.divide %t, %f{k} : tensor<f32>",
            f"%a{k + 1} = stablehlo.add %a{k}, %q{k} : tensor<f32>",
        ]
    return _program("%x: tensor<?xf32>", body, f"%a{count}", "tensor<f32>")


def _words(count: int) -> str:
    """The lower words of numbers of 64 bits that are computed one from another."""
    kind = "tensor<3xui64>"
    body = [f"%d0 = stablehlo.convert %x : (tensor<3xi32>) -> {kind}", *_doubled("add", count, kind)]
    body.append("%s0 = stablehlo.convert %x : (tensor<3xi32>) -> tensor<3xui32>")
    for k in range(count):
        body += [
            f"%r{k} = stablehlo.convert %d{k} : ({kind}) -> tensor<3xui32>",
            f"%s{k + 1} = stablehlo.add %s{k}, %r{k} : tensor<3xui32>",
        ]
    return _program("%x: tensor<3xi32>", body, f"%s{count}", "tensor<3xui32>")


def _positions(count: int) -> str:
    """The upper words of positions."""
    kind = "tensor<?xui64>"
    body = [
        _SIZE.replace("%d0", "%n"),
        "%v = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>",
        f"%d0 = stablehlo.dynamic_iota %v, dim = 0 : (tensor<1xi32>) -> {kind}",
        *_doubled("add", count, kind),
        "%w = stablehlo.constant dense<32> : tensor<ui64>",
        f"%t = stablehlo.dynamic_broadcast_in_dim %w, %v, dims = [] : (tensor<ui64>, tensor<1xi32>) -> {kind}",
        f"%r = stablehlo.shift_right_logical %d{count}, %t : {kind}",
        f"%q = stablehlo.convert %r : ({kind}) -> tensor<?xui32>",
    ]
    return _program("%x: tensor<?xf32>", body, "%q", "tensor<?xui32>")


_ROW = (
    "#stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
    "slice_sizes = array<i64: 1>, indices_are_sorted = false"
)


def _sequences(count: int) -> str:
    """Gathers at positions, each one further than the one before."""
    body = [
        _SIZE.replace("%d0", "%n"),
        "%v = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>",
        _ONE,
        "%d0 = stablehlo.dynamic_iota %v, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>",
        "%o = stablehlo.constant dense<1> : tensor<i32>",
        "%s = stablehlo.dynamic_broadcast_in_dim %o, %v, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>",
        "%k = stablehlo.concatenate %v, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>",
        "%a0 = stablehlo.abs %x : tensor<?xf32>",
    ]
    for k in range(count):
        body += [
            f"%d{k + 1} = stablehlo.add %d{k}, %s : tensor<?xi32>",
            f"%w{k} = stablehlo.dynamic_reshape %d{k + 1}, %k : (tensor<?xi32>, tensor<2xi32>) -> tensor<?x1xi32>",
            f'%g{k} = "stablehlo.gather"(%x, %w{k}) <{{dimension_numbers = {_ROW}}}> '
            ": (tensor<?xf32>, tensor<?x1xi32>) -> tensor<?xf32>",
            f"%a{k + 1} = stablehlo.add %a{k}, %g{k} : tensor<?xf32>",
        ]
    return _program("%x: tensor<?xf32>", body, f"%a{count}", "tensor<?xf32>")


def _padding(count: int) -> str:
    """A convolution whose padding is the larger of numbers, again and again."""
    image, numbers = "tensor<1x?x1xf32>", "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>"
    body = [
        "%k = stablehlo.constant dense<[[[1.0]], [[2.0]], [[4.0]]]> : tensor<3x1x1xf32>",
        f"%d0 = stablehlo.get_dimension_size %x, dim = 1 : ({image}) -> tensor<i32>",
        *_extremes_of_differences(count),
        f"%l = stablehlo.reshape %d{count} : (tensor<i32>) -> tensor<1x1xi32>",
        "%p = stablehlo.concatenate %l, %l, dim = 1 : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>",
        f'%r = "stablehlo.dynamic_conv"(%x, %k, %p) <{{batch_group_count = 1 : i64, dimension_numbers = {numbers}, '
        "feature_group_count = 1 : i64, window_strides = array<i64: 1>}> "
        f": ({image}, tensor<3x1x1xf32>, tensor<1x2xi32>) -> {image}",
    ]
    return _program(f"%x: {image}", body, "%r", image)


def _carried(count: int) -> str:
    """A recurrent loop that carries many tensors."""
    kind = "tensor<4xf32>"
    names = ", ".join(["%i = %zero", *[f"%i{k} = %x{k}" for k in range(count)]])
    kinds = ", ".join([kind] * count)
    body = [
        "%zero = stablehlo.constant dense<0> : tensor<i32>",
        "%one = stablehlo.constant dense<1> : tensor<i32>",
        f"%w:{count + 1} = stablehlo.while({names}) : tensor<i32>, {kinds}",
        "cond {",
        "%l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "stablehlo.return %l : tensor<i1>",
        "} do {",
        "%j = stablehlo.add %i, %one : tensor<i32>",
        f"%p = stablehlo.dot_general %i0, %m, contracting_dims = [0] x [0] : ({kind}, tensor<4x4xf32>) -> {kind}",
        *[f"%y{k} = stablehlo.add %i{k}, %p : {kind}" for k in range(count)],
        f"stablehlo.return %j, {', '.join(f'%y{k}' for k in range(count))} : tensor<i32>, {kinds}",
        "}",
    ]
    arguments = ", ".join([*[f"%x{k}: {kind}" for k in range(count)], "%m: tensor<4x4xf32>", "%n: tensor<i32>"])
    return _program(arguments, body, "%w#1", kind)


def _kept(count: int) -> str:
    """Reshapes of one reduction."""
    body = [
        "%z = stablehlo.constant dense<0.0> : tensor<f32>",
        "%t = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : "
        "(tensor<4x5xf32>, tensor<f32>) -> tensor<4xf32>",
        "%a0 = stablehlo.abs %x : tensor<4x5xf32>",
    ]
    for k in range(count):
        body += [
            f"%b{k} = stablehlo.reshape %t : (tensor<4xf32>) -> tensor<4x1xf32>",
            f"%c{k} = stablehlo.broadcast_in_dim %b{k}, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x5xf32>",
            f"%a{k + 1} = stablehlo.add %a{k}, %c{k} : tensor<4x5xf32>",
        ]
    return _program("%x: tensor<4x5xf32>", body, f"%a{count}", "tensor<4x5xf32>")


def _assertions(count: int) -> str:
    """Sizes that are asserted to be equal, the last ones first."""
    size = "stablehlo.get_dimension_size"
    body = [f"%d{k} = {size} %x{k}, dim = 0 : (tensor<?xf32>) -> tensor<i32>" for k in range(count)]
    for k in range(count - 1, 0, -1):
        body += [
            f"%c{k} = stablehlo.compare EQ, %d{k}, %d{k - 1} : (tensor<i32>, tensor<i32>) -> tensor<i1>",
            f'stablehlo.custom_call @shape_assertion(%c{k}) {{error_message = "no"}} : (tensor<i1>) -> ()',
        ]
    body.append("%s0 = stablehlo.abs %x0 : tensor<?xf32>")
    body += [f"%s{k} = stablehlo.add %s{k - 1}, %x{k} : tensor<?xf32>" for k in range(1, count)]
    arguments = ", ".join(f"%x{k}: tensor<?xf32>" for k in range(count))
    return _program(arguments, body, f"%s{count - 1}", "tensor<?xf32>")


_FEW, _MANY = 8, 100


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (_assertions, _MANY),
        (_carried, _MANY),
        (_comparisons, _FEW),
        (_extremes, _FEW),
        (_kept, _MANY),
        (_means, _FEW),
        (_padding, _FEW),
        (_positions, _FEW),
        (_sequences, _MANY),
        (_slices, _FEW),
        (_words, _FEW),
    ],
)
def test_the_work_grows_with_the_program(text: Callable[[int], str], count: int) -> None:
    work = StablehloToTf("stablehlo")
    work.apply(import_mlir(text(count)))  # tables are built on first use
    few, many = import_mlir(text(count)), import_mlir(text(2 * count))
    assert calls(lambda: work.apply(many)) < _SLACK * 2 * calls(lambda: work.apply(few))
