"""The stages of the compiler for dynamic sizes: placement, fusion, and the sizes of results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.converter.targets.stablehlo.engine import Program
from tests.converter.targets.stablehlo.stage_checks import check_sizes, count_launches, stablehlo_of, staged
from tfconvert.converter.executor.executor import run
from tfconvert.converter.targets.stablehlo.buffers.host import FUSION
from tfconvert.converter.targets.stablehlo.places import READ_BACK, violations
from tfconvert.converter.targets.stablehlo.shape_functions import Formulas, size_of_argument
from tfconvert.schema.dialects.func import defined_functions
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.dim import Symbol

X = "tensor<?x?x4xf32>"
SOFTMAX = f"""func.func @main(%x: {X}) -> {X} {{
  %0 = "tf.Tanh"(%x) : ({X}) -> {X}
  %1 = "tf.Softmax"(%0) : ({X}) -> {X}
  func.return %1 : {X}
}}"""
NORMALIZED = f"""func.func @main(%x: {X}, %g: tensor<4xf32>) -> {X} {{
  %axis = "tf.Const"() <{{value = dense<-1> : tensor<1xi32>}}> : () -> tensor<1xi32>
  %e = "tf.Const"() <{{value = dense<1.0e-3> : tensor<f32>}}> : () -> tensor<f32>
  %m = "tf.Mean"(%x, %axis) <{{keep_dims = true}}> : ({X}, tensor<1xi32>) -> tensor<?x?x1xf32>
  %d = "tf.Sub"(%x, %m) : ({X}, tensor<?x?x1xf32>) -> {X}
  %s = "tf.Square"(%d) : ({X}) -> {X}
  %v = "tf.Mean"(%s, %axis) <{{keep_dims = true}}> : ({X}, tensor<1xi32>) -> tensor<?x?x1xf32>
  %w = "tf.AddV2"(%v, %e) : (tensor<?x?x1xf32>, tensor<f32>) -> tensor<?x?x1xf32>
  %r = "tf.Rsqrt"(%w) : (tensor<?x?x1xf32>) -> tensor<?x?x1xf32>
  %n = "tf.Mul"(%d, %r) : ({X}, tensor<?x?x1xf32>) -> {X}
  %o = "tf.Mul"(%n, %g) : ({X}, tensor<4xf32>) -> {X}
  func.return %o : {X}
}}"""
JOINED = f"""func.func @main(%x: {X}, %y: {X}) -> tensor<?x?x?xf32> {{
  %axis = "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
  %p = "tf.Const"() <{{value = dense<[[0, 1], [2, 0], [1, 1]]> : tensor<3x2xi32>}}> : () -> tensor<3x2xi32>
  %order = "tf.Const"() <{{value = dense<[2, 1, 0]> : tensor<3xi32>}}> : () -> tensor<3xi32>
  %flat = "tf.Const"() <{{value = dense<[3, 2, -1]> : tensor<3xi32>}}> : () -> tensor<3xi32>
  %0 = "tf.ConcatV2"(%x, %y, %axis) : ({X}, {X}, tensor<i32>) -> {X}
  %1 = "tf.Pad"(%0, %p) : ({X}, tensor<3x2xi32>) -> tensor<?x?x6xf32>
  %2 = "tf.Transpose"(%1, %order) : (tensor<?x?x6xf32>, tensor<3xi32>) -> tensor<6x?x?xf32>
  %3 = "tf.Neg"(%2) : (tensor<6x?x?xf32>) -> tensor<6x?x?xf32>
  %4 = "tf.Reshape"(%3, %flat) : (tensor<6x?x?xf32>, tensor<3xi32>) -> tensor<?x?x?xf32>
  func.return %4 : tensor<?x?x?xf32>
}}"""
TEXTS = {"softmax": SOFTMAX, "normalized": NORMALIZED, "joined": JOINED}
ALL = ("place-shape-values", "fuse-instructions", "add-shape-functions")


def _inputs(name: str, n: int, m: int) -> list[np.ndarray]:
    draw = np.random.default_rng(n + 7 * m)
    x = draw.normal(size=(n, m, 4)).astype(np.float32)
    return {"softmax": [x], "normalized": [x, draw.normal(size=4).astype(np.float32)], "joined": [x, x[:, ::-1]]}[name]


@pytest.mark.parametrize(("name", "before", "after"), [("softmax", 8, 5), ("normalized", 18, 5), ("joined", 5, 1)])
def test_fusion_saves_launches_and_changes_no_result(name: str, before: int, after: int) -> None:
    module = stablehlo_of(TEXTS[name])
    fused = staged(module, *ALL)
    assert (count_launches(module), count_launches(fused)) == (before, after)
    for n, m in ((1, 1), (3, 5), (2, 8)):
        inputs = _inputs(name, n, m)
        for one, other in zip(run(module, "main", inputs), run(fused, "main", inputs), strict=True):
            assert one.shape == other.shape
            assert np.array_equal(one, other)


@pytest.mark.parametrize("name", TEXTS)
def test_xla_runs_the_outlined_text(name: str) -> None:
    import tensorflow as tf

    module = stablehlo_of(TEXTS[name])
    inputs = _inputs(name, 3, 5)
    (expected,) = run(module, "main", inputs)
    text = str(staged(module, "place-shape-values", "fuse-instructions"))
    (found,) = Program(text, [(tf.float32, [None] * expected.ndim)]).run(inputs)
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", TEXTS)
def test_shape_functions_tell_the_sizes_of_every_fusion(name: str) -> None:
    module = staged(stablehlo_of(TEXTS[name]), *ALL)
    fusions = [each for each in defined_functions(module).values() if FUSION in each.attributes]

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(st.integers(1, 9), st.integers(1, 9))
    def compared(n: int, m: int) -> None:
        assert check_sizes(module, _inputs(name, n, m)) == len(fusions) + 1

    compared()


@pytest.mark.parametrize("name", TEXTS)
def test_the_host_reads_no_data(name: str) -> None:
    module = staged(stablehlo_of(TEXTS[name]), "place-shape-values")
    assert all(READ_BACK not in op.attributes for op in module.walk())
    assert [violations(each) for each in defined_functions(module).values()] == [[]]


COUNTED = """func.func @main(%x: tensor<?xf32>, %z: tensor<i32>) -> tensor<?xf32> {
  %0 = "stablehlo.convert"(%x) : (tensor<?xf32>) -> tensor<?xi32>
  %1 = "stablehlo.reduce"(%0, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%l: tensor<i32>, %r: tensor<i32>):
    %2 = "stablehlo.add"(%l, %r) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "stablehlo.return"(%2) : (tensor<i32>) -> ()
  }) : (tensor<?xi32>, tensor<i32>) -> tensor<i32>
  %3 = "stablehlo.reshape"(%1) : (tensor<i32>) -> tensor<1xi32>
  %4 = stablehlo.constant dense<0> : tensor<1xi32>
  %5 = stablehlo.constant dense<1> : tensor<1xi32>
  %6 = "stablehlo.real_dynamic_slice"(%x, %4, %3, %5)
    : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  func.return %6 : tensor<?xf32>
}"""


def test_a_size_that_depends_on_data_is_read_back_and_has_no_shape_function() -> None:
    module = staged(IRParser(COUNTED).parse_module(), "place-shape-values", "add-shape-functions")
    (function,) = defined_functions(module).values()
    assert [op.name for op in module.walk() if READ_BACK in op.attributes] == ["stablehlo.reduce"]
    assert violations(function) == []
    (read,) = (op for op in module.walk() if READ_BACK in op.attributes)
    del read.attributes[READ_BACK]
    assert [op.name for op in violations(function)] == ["stablehlo.reshape"]


LOOPS = """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %c: tensor<i1>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0:2 = "stablehlo.while"(%x, %y) ({
  ^bb0(%a: tensor<?xf32>, %b: tensor<?xf32>):
    "stablehlo.return"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<?xf32>, %b: tensor<?xf32>):
    %1 = "stablehlo.negate"(%a) : (tensor<?xf32>) -> tensor<?xf32>
    %2 = "stablehlo.concatenate"(%b, %a) <{dimension = 0 : i64}> : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    "stablehlo.return"(%1, %2) : (tensor<?xf32>, tensor<?xf32>) -> ()
  }) : (tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  %3 = "stablehlo.if"(%c) ({
    "stablehlo.return"(%x) : (tensor<?xf32>) -> ()
  }, {
    %4 = "stablehlo.abs"(%0#0) : (tensor<?xf32>) -> tensor<?xf32>
    "stablehlo.return"(%4) : (tensor<?xf32>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32>
  func.return %3, %0#1 : tensor<?xf32>, tensor<?xf32>
}"""


def test_what_a_loop_keeps_is_known_and_what_it_changes_is_not() -> None:
    module = IRParser(LOOPS).parse_module()
    (function,) = defined_functions(module).values()
    formulas = Formulas.of(function, {})
    last = function.body.block.last_op
    assert last is not None
    (kept,), (grown,) = (formulas.dims[value] for value in last.operands)
    assert kept == size_of_argument(0, 0)
    assert isinstance(grown, Symbol)
    assert not grown.is_known
