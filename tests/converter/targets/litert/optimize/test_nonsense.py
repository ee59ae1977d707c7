"""Text whose ranks and constants contradict each other: patterns decline it, and none fails on it."""

from __future__ import annotations

import re

import pytest

from tests.support.run_text import parse
from tfconvert.converter.targets.litert.passes.optimize import Optimize
from tfconvert.ops.verification import verify

_CONV = '"tfl.conv_2d"({}) <{{padding = "{}", stride_h = {} : i32, stride_w = 1 : i32}}>'
_FILTER = "dense<1.0> : tensor<4x1x1x3xf32>"

NONSENSE = {
    "paddings of another rank": [
        ("%p", "dense<0> : tensor<4x2xi32>"),
        ("%f", _FILTER),
        ("%b", "dense<0.0> : tensor<4xf32>"),
        ("%0 : 6", '"tfl.relu"(%x)'),
        ("%1 : 1x8x8x3", '"tfl.pad"(%0, %p)'),
        ("%2 : 1x8x8x4", _CONV.format("%1, %f, %b", "VALID", 1)),
    ],
    "an odd number of paddings": [
        ("%p", "dense<1> : tensor<5xi32>"),
        ("%f", _FILTER),
        ("%b", "dense<0.0> : tensor<4xf32>"),
        ("%0 : 1x8x8x3", '"tfl.pad"(%x, %p)'),
        ("%1 : 1x8x8x4", _CONV.format("%0, %f, %b", "VALID", 1)),
    ],
    "no stride": [
        ("%p", "dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi32>"),
        ("%0 : 1x8x8x3", '"tfl.pad"(%x, %p)'),
        ("%f", _FILTER),
        ("%b", "dense<0.0> : tensor<4xf32>"),
        ("%1 : 1x8x8x4", _CONV.format("%0, %f, %b", "VALID", 0)),
    ],
    "a filter of two dimensions": [
        ("%f", "dense<1.0> : tensor<4x3xf32>"),
        ("%b", "dense<0.0> : tensor<4xf32>"),
        ("%c", "dense<2.0> : tensor<3xf32>"),
        ("%0 : 1x6x6x3", '"tfl.mul"(%x, %c)'),
        ("%1 : 1x6x6x4", _CONV.format("%0, %f, %b", "SAME", 1)),
    ],
    "a bias of another length": [
        ("%f", _FILTER),
        ("%b", "dense<[1.0, 2.0]> : tensor<2xf32>"),
        ("%c", "dense<2.0> : tensor<4xf32>"),
        ("%0 : 1x6x6x4", _CONV.format("%x, %f, %b", "SAME", 1)),
        ("%1 : 1x6x6x4", '"tfl.mul"(%0, %c)'),
    ],
    "a scaled scalar": [
        ("%f", _FILTER),
        ("%b", "dense<0.0> : tensor<4xf32>"),
        ("%c", "dense<2.0> : tensor<4xf32>"),
        ("%0 : ", _CONV.format("%x, %f, %b", "SAME", 1)),
        ("%1 : ", '"tfl.mul"(%0, %c)'),
    ],
    "a permutation of another rank": [
        ("%p", "dense<[1, 0, 2]> : tensor<3xi32>"),
        ("%0 : 6x6", '"tfl.relu"(%x)'),
        ("%1 : 6x6x1", '"tfl.transpose"(%0, %p)'),
    ],
    "no permutation": [
        ("%p", "dense<[0, 1, 1, 9]> : tensor<4xi32>"),
        ("%q", "dense<[0, 1, 2, 3]> : tensor<4xi32>"),
        ("%0 : 1x6x6x3", '"tfl.transpose"(%x, %p)'),
        ("%1 : 1x6x6x3", '"tfl.transpose"(%0, %q)'),
    ],
    "a padding that adds a dimension": [
        ("%p", "dense<[0, 3, 1, 2]> : tensor<4xi32>"),
        ("%q", "dense<1> : tensor<4x2xi32>"),
        ("%0 : 1x3x6x6", '"tfl.transpose"(%x, %p)'),
        ("%1 : 3x5x8x8x1", '"tfl.pad"(%0, %q)'),
    ],
    "constants that don't broadcast": [
        ("%b", "dense<1.0> : tensor<2xf32>"),
        ("%c", "dense<1.0> : tensor<3xf32>"),
        ("%0 : ?", '"tfl.add"(%b, %c)'),
        ("%1 : ?", '"tfl.add"(%x, %b)'),
        ("%2 : ?", '"tfl.add"(%1, %c)'),
    ],
    "axes beyond the rank": [
        ("%a", "dense<[7]> : tensor<1xi32>"),
        ("%c", "dense<0.5> : tensor<f32>"),
        ("%0 : 1x6x6", '"tfl.sum"(%x, %a)'),
        ("%1 : 1x6x6", '"tfl.mul"(%0, %c)'),
    ],
    "axes of a scalar": [
        ("%a", "dense<0> : tensor<i32>"),
        ("%0 : ", '"tfl.relu"(%x)'),
        ("%1 : ", '"tfl.sum"(%0, %a)'),
        ("%2 : ", '"tfl.sum"(%1, %a)'),
    ],
    "a slice of another rank": [
        ("%b", "dense<0> : tensor<2xi32>"),
        ("%s", "dense<-1> : tensor<3xi32>"),
        ("%0 : 1x6x6x3", '"tfl.slice"(%x, %b, %s)'),
    ],
    "a strided slice of several lengths": [
        ("%b", "dense<0> : tensor<2xi32>"),
        ("%e", "dense<9> : tensor<3xi32>"),
        ("%s", "dense<1> : tensor<2xi32>"),
        ("%0 : 1x6x6x3", '"tfl.strided_slice"(%x, %b, %e, %s)'),
    ],
    "a broadcast to a lower rank": [
        ("%s", "dense<3> : tensor<1xi32>"),
        ("%0 : 3", '"tfl.broadcast_to"(%x, %s)'),
        ("%1 : 3", '"tfl.add"(%0, %0)'),
    ],
    "a reshape of another size": [
        ("%c", "dense<1.0> : tensor<3x5xf32>"),
        ("%s", "dense<[2, 6]> : tensor<2xi32>"),
        ("%0 : 2x6", '"tfl.reshape"(%c, %s)'),
    ],
    "a sum of another shape": [("%c", "dense<1.0> : tensor<2xf32>"), ("%0 : 5", '"tfl.add"(%c, %c)')],
    "a concatenation that changes the type": [("%0 : ?x6x6x3", '"tfl.concatenation"(%x) <{axis = 0 : i32}>')],
}


def _text(lines: list[tuple[str, str]]) -> str:
    """Returns a function of a value `%x` that returns the last line's; a line is a value with its shape, and an op."""
    kinds = {"%x": "tensor<1x6x6x3xf32>"}
    body = []
    for left, right in lines:
        name, _, shape = left.partition(" : ")
        if right.startswith("dense"):
            kinds[name] = right.rpartition(" : ")[2]
            body.append(f'{name} = "tfl.pseudo_const"() <{{value = {right}}}> : () -> {kinds[name]}')
            continue
        operands = re.findall(r"%\w", right)
        kinds[name] = f"tensor<{shape}{'x' if shape else ''}f32>"
        body.append(f"{name} = {right} : ({', '.join(kinds[each] for each in operands)}) -> {kinds[name]}")
    inner = "\n".join(body)
    return f"func.func @main(%x: {kinds['%x']}) -> {kinds[name]} {{\n{inner}\nfunc.return {name} : {kinds[name]}\n}}"


@pytest.mark.parametrize("lines", NONSENSE.values(), ids=NONSENSE.keys())
def test_nothing_fails_on_it(lines: list[tuple[str, str]]) -> None:
    module = parse(_text(lines), with_relations=False)
    Optimize().apply(module)
    verify(module, with_relations=False)
