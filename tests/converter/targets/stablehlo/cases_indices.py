"""Computations that read or write at indices: indices that fit, and such that don't."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A computation with indices.

    Attributes:
        kinds: The types of the operands `%x`, the numbers, and `%i`, the indices, and of the result.
        body: The ops; the last one defines `%y`.
        shape: The shape of the numbers.
        good: Indices that are in range.
        bad: Indices that aren't.
        message: A part of the message for these.
    """

    kinds: tuple[str, str, str]
    body: str
    shape: Sequence[int]
    good: Any
    bad: Any
    message: str = "an index is out of range for the s"

    def operands(self, indices: Any) -> list[np.ndarray]:
        """Returns numbers, and indices of the type that is taken."""
        kind = np.int32 if "i32" in self.kinds[0] else np.float32
        numbers = (np.arange(np.prod(self.shape)) / 8).astype(kind).reshape(self.shape)
        return [numbers, np.array(indices, np.int64 if "i64" in self.kinds[1] else np.int32)]

    @property
    def text(self) -> str:
        """The function."""
        x, i, y = (f"tensor<{kind}>" for kind in self.kinds)
        body = re.sub(r"\b[XIY]\b", lambda found: {"X": x, "I": i, "Y": y}[found[0]], self.body)
        return f"func.func @main(%x: {x}, %i: {i}) -> {y} {{\n{body}\n  func.return %y : {y}\n}}"


_ROWS = ("?x3xf32", "?xi32", "?x3xf32")
_AXIS = '  %a = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>\n'
_SHAPE = '  %s = "tf.Const"() <{value = dense<[4, 3]> : tensor<2xi32>}> : () -> tensor<2xi32>\n'
_COUNT = '  %c = "tf.Const"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>\n'
_GATHER = _AXIS + '  %y = "tf.GatherV2"(%x, %i, %a) <{batch_dims = 0 : i64}> : (X, I, tensor<i32>) -> Y'

CASES: Mapping[str, Case] = {
    "gather": Case(_ROWS, _GATHER, [4, 3], [0, 3, 1], [0, 4, 1]),
    "gather, negative": Case(_ROWS, _GATHER, [4, 3], [2, 2], [0, -1]),
    "gather, narrow indices": Case(("?x3xf32", "?xi64", "?x3xf32"), _GATHER, [300, 3], [299], [2**40]),
    "gather at vectors": Case(
        ("?x3xf32", "?x2xi32", "?xf32"),
        '  %y = "tf.GatherNd"(%x, %i) : (X, I) -> Y',
        [4, 3],
        [[3, 2], [0, 0]],
        [[2, 3]],
    ),
    "scatter": Case(
        ("?x3xf32", "?x1xi32", "4x3xf32"),
        _SHAPE + '  %y = "tf.ScatterNd"(%i, %x, %s) : (I, X, tensor<2xi32>) -> Y',
        [2, 3],
        [[3], [0]],
        [[3], [4]],
    ),
    "update": Case(
        ("?x3xf32", "?x1xi32", "?x3xf32"),
        '  %u = "tf.GatherNd"(%x, %i) : (X, I) -> tensor<?x3xf32>\n'
        '  %y = "tf.TensorScatterUpdate"(%x, %i, %u) : (X, I, tensor<?x3xf32>) -> Y',
        [4, 3],
        [[3], [0]],
        [[-2]],
    ),
    "segments": Case(
        ("?x3xf32", "?xi32", "4x3xf32"),
        _COUNT + '  %y = "tf.UnsortedSegmentSum"(%x, %i, %c) : (X, I, tensor<i32>) -> Y',
        [3, 3],
        [3, -1, 3],
        [3, 4, 0],
    ),
    "classes": Case(
        ("?x3xf32", "?xi32", "?xf32"),
        '  %y, %g = "tf.SparseSoftmaxCrossEntropyWithLogits"(%x, %i) : (X, I) -> (Y, X)',
        [2, 3],
        [2, 0],
        [3, 0],
    ),
    "permutation": Case(
        ("?xi32", "?xi32", "?xi32"), '  %y = "tf.InvertPermutation"(%i) : (I) -> Y', [3], [2, 0, 1], [2, 0, 3]
    ),
    "in a branch": Case(
        _ROWS,
        '  %f = "tf.Const"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>\n'
        '  %n = "tf.Const"() <{value = dense<[0, 1]> : tensor<2xi32>}> : () -> tensor<2xi32>\n'
        '  %m = "tf.Sum"(%x, %n) <{keep_dims = false}> : (X, tensor<2xi32>) -> tensor<f32>\n'
        '  %z = "tf.Const"() <{value = dense<-1.0> : tensor<f32>}> : () -> tensor<f32>\n'
        '  %p = "tf.Greater"(%m, %z) : (tensor<f32>, tensor<f32>) -> tensor<i1>\n'
        '  %y = "tf.IfRegion"(%p) <{is_stateless = true}> ({\n'
        + _GATHER.replace("%y", "%r")
        + '\n    "tf.Yield"(%r) : (Y) -> ()\n  }, {\n'
        '    %t = "tf.Tanh"(%x) : (X) -> X\n    "tf.Yield"(%t) : (X) -> ()\n  }) : (tensor<i1>) -> Y',
        [4, 3],
        [1, 3],
        [1, 7],
    ),
    "in a loop": Case(
        ("?x3xf32", "?xi32", "?x3xf32"),
        '  %zero = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>\n'
        '  %k, %y = "tf.WhileRegion"(%zero, %x) <{is_stateless = true}> ({\n'
        "  ^bb0(%n: tensor<i32>, %v: X):\n"
        '    %three = "tf.Const"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>\n'
        '    %more = "tf.Less"(%n, %three) : (tensor<i32>, tensor<i32>) -> tensor<i1>\n'
        '    "tf.Yield"(%more) : (tensor<i1>) -> ()\n  }, {\n'
        "  ^bb0(%n: tensor<i32>, %v: X):\n"
        '    %one = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>\n'
        '    %next = "tf.AddV2"(%n, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>\n'
        + _AXIS
        + '    %t = "tf.Tanh"(%v) : (X) -> X\n'
        '    %r = "tf.GatherV2"(%t, %i, %a) <{batch_dims = 0 : i64}> : (X, I, tensor<i32>) -> X\n'
        '    "tf.Yield"(%next, %r) : (tensor<i32>, X) -> ()\n  }) : (tensor<i32>, X) -> (tensor<i32>, Y)',
        [3, 3],
        [2, 0, 1],
        [0, 1, 3],
    ),
}
