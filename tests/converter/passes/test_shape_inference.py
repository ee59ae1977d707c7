"""The pass `shape-inference`."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.executor.executor import run
from tfconvert.converter.passes import shape_inference
from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType, TensorType


def _apply(text: str) -> ModuleOp:
    module = IRParser(text).parse_module()
    ShapeInference().apply(module)
    verify(module)
    return module


def _names(module: ModuleOp) -> list[str]:
    return [op.name.removeprefix("tf.") for op in module.walk() if op.name.startswith("tf.")]


def test_the_docstrings_example(filecheck: FileCheck) -> None:
    documentation = shape_inference.__doc__
    assert documentation is not None
    before, after = documentation.split("Before:")[1].split("After:")
    lines = [line for line in textwrap.dedent(after).strip().splitlines() if line != "}"]
    checks = "\n".join(f"// CHECK{'-NEXT' if index else ''}: {line.strip()}" for index, line in enumerate(lines))
    filecheck(ShapeInference(), f"{checks}\n{before}")


def test_two_unknown_dimensions_are_told_apart(filecheck: FileCheck) -> None:
    """A target with two unknown elements stays computed, but its dimensions and rank are known."""
    filecheck(
        ShapeInference(),
        """
    // CHECK: "tf.Reshape"(%x, %{{[0-9a-z_]+}}) : (tensor<?x?x4xf32>, tensor<4xi32>) -> tensor<?x?x2x2xf32>
    // CHECK-NEXT: "tf.Const"() <{value = dense<[-1, 4]> : tensor<2xi32>}>
    // CHECK-NEXT: -> tensor<?x4xf32>
    func.func @main(%x: tensor<?x?x4xf32>) -> tensor<*xf32> {
      %two = "tf.Const"() <{value = dense<2> : tensor<2xi32>}> : () -> tensor<2xi32>
      %axis = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %from = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %size = "tf.Const"() <{value = dense<2> : tensor<1xi32>}> : () -> tensor<1xi32>
      %s = "tf.Shape"(%x) : (tensor<?x?x4xf32>) -> tensor<3xi32>
      %b = "tf.Slice"(%s, %from, %size) : (tensor<3xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xi32>
      %t = "tf.ConcatV2"(%b, %two, %axis) : (tensor<*xi32>, tensor<2xi32>, tensor<i32>) -> tensor<*xi32>
      %r = "tf.Reshape"(%x, %t) : (tensor<?x?x4xf32>, tensor<*xi32>) -> tensor<*xf32>
      %four = "tf.Const"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
      %n = "tf.Prod"(%b, %from) <{keep_dims = false}> : (tensor<*xi32>, tensor<1xi32>) -> tensor<*xi32>
      %p = "tf.Pack"(%n, %four) <{axis = 0 : i64}> : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
      %q = "tf.Reshape"(%r, %p) : (tensor<*xf32>, tensor<*xi32>) -> tensor<*xf32>
      func.return %q : tensor<*xf32>
    }
    """,
    )


def test_the_shape_of_a_static_value_is_a_constant(filecheck: FileCheck) -> None:
    filecheck(
        ShapeInference(),
        """
    // CHECK: func.func @main(%x: tensor<2x3xf32>) -> (tensor<2xi64>, tensor<i32>) {
    // CHECK-NEXT: "tf.Const"() <{value = dense<[2, 3]> : tensor<2xi64>}>
    // CHECK-NEXT: "tf.Const"() <{value = dense<6> : tensor<i32>}>
    // CHECK-NEXT: func.return
    func.func @main(%x: tensor<2x3xf32>) -> (tensor<2xi64>, tensor<i32>) {
      %0 = "tf.Shape"(%x) : (tensor<2x3xf32>) -> tensor<2xi64>
      %1 = "tf.Size"(%x) : (tensor<2x3xf32>) -> tensor<i32>
      func.return %0, %1 : tensor<2xi64>, tensor<i32>
    }
    """,
    )


def test_constants_are_computed(filecheck: FileCheck) -> None:
    filecheck(
        ShapeInference(),
        """
    // CHECK: func.func @main() -> tensor<2xf32> {
    // CHECK-NEXT: "tf.Const"() <{value = dense<[4.000000e+00, 5.000000e+00]> : tensor<2xf32>}>
    // CHECK-NEXT: func.return
    func.func @main() -> tensor<*xf32> {
      %0 = "tf.Const"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
      %1 = "tf.Const"() <{value = dense<3.0> : tensor<f32>}> : () -> tensor<f32>
      %2 = "tf.AddV2"(%0, %1) : (tensor<2xf32>, tensor<f32>) -> tensor<*xf32>
      %3 = "tf.Sub"(%2, %0) : (tensor<*xf32>, tensor<2xf32>) -> tensor<*xf32>
      %4 = "tf.AddV2"(%0, %3) : (tensor<2xf32>, tensor<*xf32>) -> tensor<*xf32>
      func.return %4 : tensor<*xf32>
    }
    """,
    )


@pytest.mark.parametrize(
    "kept",
    [
        '"tf.RandomUniform"(%s) : (tensor<1xi32>) -> tensor<*xf32>',
        '"tf.FakeQuantWithMinMaxArgs"(%f) <{min = -1.0 : f32, max = 1.0 : f32}> : (tensor<2xf32>) -> tensor<*xf32>',
        '"tf.Fill"(%big, %one) : (tensor<1xi32>, tensor<f32>) -> tensor<*xf32>',
    ],
)
def test_what_is_better_left_is_left(kept: str) -> None:
    module = _apply(f"""
    func.func @main() -> tensor<*xf32> {{
      %s = "tf.Const"() <{{value = dense<5> : tensor<1xi32>}}> : () -> tensor<1xi32>
      %big = "tf.Const"() <{{value = dense<1000000> : tensor<1xi32>}}> : () -> tensor<1xi32>
      %f = "tf.Const"() <{{value = dense<[0.1, 0.2]> : tensor<2xf32>}}> : () -> tensor<2xf32>
      %one = "tf.Const"() <{{value = dense<1.0> : tensor<f32>}}> : () -> tensor<f32>
      %0 = {kept}
      func.return %0 : tensor<*xf32>
    }}
    """)
    assert kept.split('"')[1].removeprefix("tf.") in _names(module)
    (main,) = module.ops
    assert isinstance(main, FuncOp)
    assert isinstance(main.function_type.results[0], TensorType)


def test_what_would_fail_is_left_to_fail() -> None:
    """The division may stand in a branch that is never taken."""
    module = _apply("""
    func.func @main() -> tensor<i32> {
      %0 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.FloorDiv"(%0, %0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      func.return %1 : tensor<i32>
    }
    """)
    assert _names(module) == ["Const", "FloorDiv"]


def _function(ops: list[Operation]) -> ModuleOp:
    result = ops[-1].results[0]
    block = Block([*ops, ReturnOp.of([result])])
    return ModuleOp.of([FuncOp.of("main", FunctionType.get([], [result.type]), Region(block))])


def test_large_constants_are_not_read() -> None:
    weights = np.arange(200_000, dtype=np.int32).reshape(400, 500)
    order, size, three = np.array([1, 0], np.int32), np.array([250, -1], np.int32), np.array(3, np.float32)
    constants = [tf.constant(tensor_data.of_array(value)) for value in (weights, order, size, three)]
    unranked, whole = types.tensor(types.F32, None), types.tensor(types.I32, None)
    given = [op.results[0] for op in constants]
    turned = tf.build("Transpose", given[:2], [whole])
    flat = tf.build("Reshape", [turned.results[0], given[2]], [whole])
    real = tf.build("Cast", flat.results, [unranked], {"Truncate": False})
    scaled = tf.build("Mul", [real.results[0], given[3]], [unranked])
    module = _function([*constants, turned, flat, real, scaled])
    ShapeInference().apply(module)
    (constant,) = [op for op in module.walk() if op.name == "tf.Const"]
    value = constant.properties["value"]
    assert isinstance(value, tensor_data.TensorData)
    assert isinstance(value.source, tensor_data.Deferred)
    np.testing.assert_array_equal(value.array(), weights.T.reshape(250, 800).astype(np.float32) * 3)


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ('"tf.MatMul"(%a, %b) <{transpose_a = false, transpose_b = false}>', "inner dimensions"),
        ('"tf.AddV2"(%a, %b)', "can't be broadcast"),
        ('"tf.ConcatV2"(%a, %b, %axis)', "can't be concatenated"),
        ('"tf.Conv2D"(%a, %b) <{strides = [1, 1, 1, 1], padding = "SAME"}>', "should have rank 4"),
        ('"tf.Transpose"(%a, %axis)', "rank"),
        ('"tf.Relu"()', "too few"),
    ],
)
def test_contradictions_are_errors(op: str, message: str) -> None:
    operands = {"%a": "tensor<2x3xf32>", "%b": "tensor<4x5xf32>", "%axis": "tensor<i32>"}
    names = op.partition("(")[2].partition(")")[0].split(", ") if "%" in op else []
    with pytest.raises(ConversionError, match=message) as caught:
        _apply(f"""
        func.func @main(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) -> tensor<*xf32> {{
          %axis = "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
          %0 = {op} : ({", ".join(operands[name] for name in names)}) -> tensor<*xf32> loc("here")
          func.return %0 : tensor<*xf32>
        }}
        """)
    assert caught.value.code == "shape-mismatch"
    assert caught.value.diagnostics[0].op == op.split('"')[1]


def test_a_noted_shape_that_contradicts_the_op_is_an_error() -> None:
    with pytest.raises(ConversionError, match="should be equal"):
        _apply("""
        // TensorFlow refuses: it says so too
        func.func @main(%a: tensor<2x3xf32>) -> tensor<2x4xf32> {
          %0 = "tf.Relu"(%a) : (tensor<2x3xf32>) -> tensor<2x4xf32>
          func.return %0 : tensor<2x4xf32>
        }
        """)


def test_unknown_ops_and_attributes_of_the_wrong_kind_are_no_surprise() -> None:
    module = _apply("""
    func.func @main(%a: tensor<2x3xf32>) -> tensor<*xf32> {
      %0 = "tf.NobodyKnows"(%a) : (tensor<2x3xf32>) -> tensor<*xf32>
      func.return %0 : tensor<*xf32>
    }
    """)
    assert _names(module) == ["NobodyKnows"]
    op = tf.build(
        "Squeeze",
        [tf.constant(tensor_data.of_array(np.ones((1, 2), np.float32))).results[0]],
        [types.tensor(types.F32, None)],
        {"squeeze_dims": attrs.string("x")},
    )
    constant = op.operands[0].owner
    assert isinstance(constant, Operation)
    with pytest.raises(ConversionError, match="not a list of integers"):
        ShapeInference().apply(_function([constant, op]))


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_a_settled_reshape_means_the_same_for_every_batch(batch: int) -> None:
    before = shape_inference.__doc__ or ""
    text = before.split("Before:")[1].split("After:")[0]
    x = np.random.default_rng(0).normal(size=(batch, 7, 7, 160)).astype(np.float32)
    (actual,) = run(_apply(text), "main", [x])
    np.testing.assert_array_equal(actual, np.maximum(x, 0).reshape(batch, 7840))


def test_regions_are_swept_with_what_stands_before_them(filecheck: FileCheck) -> None:
    filecheck(
        ShapeInference(),
        """
    // CHECK: "tf.IfRegion"
    // CHECK: "tf.Const"() <{{{?}}value = dense<3> : tensor<i32>
    // CHECK-NOT: "tf.AddV2"
    // CHECK: "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> (tensor<i32>, tensor<*xf32>) {
      %0 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %1:2 = "tf.IfRegion"(%p) <{is_stateless = true}> ({
        %2 = "tf.Const"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
        %3 = "tf.AddV2"(%0, %2) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %4 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<*xf32>
        "tf.Yield"(%3, %4) : (tensor<i32>, tensor<*xf32>) -> ()
      }, {
        "tf.Yield"(%0, %x) : (tensor<i32>, tensor<2xf32>) -> ()
      }) : (tensor<i1>) -> (tensor<i32>, tensor<*xf32>)
      func.return %1#0, %1#1 : tensor<i32>, tensor<*xf32>
    }
    """,
    )


def test_calls_say_what_their_callees_return(filecheck: FileCheck) -> None:
    filecheck(
        ShapeInference(),
        """
    // CHECK: func.func @main(%x: tensor<2xf32>) -> tensor<2xf32>
    // CHECK: func.func private @outer(%x: tensor<2xf32>) -> tensor<2xf32>
    // CHECK: func.func private @inner(%x: tensor<2xf32>) -> tensor<2xf32>
    // CHECK: func.func private @declared(tensor<2xf32>) -> tensor<*xf32>
    func.func @main(%x: tensor<2xf32>) -> tensor<*xf32> {
      %0 = func.call @outer(%x) : (tensor<2xf32>) -> tensor<*xf32>
      func.return %0 : tensor<*xf32>
    }
    func.func private @outer(%x: tensor<2xf32>) -> tensor<*xf32> {
      %0 = func.call @inner(%x) : (tensor<2xf32>) -> tensor<*xf32>
      func.return %0 : tensor<*xf32>
    }
    func.func private @inner(%x: tensor<2xf32>) -> tensor<*xf32> {
      %0 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<*xf32>
      func.return %0 : tensor<*xf32>
    }
    func.func private @declared(tensor<2xf32>) -> tensor<*xf32>
    """,
    )


def test_what_has_no_elements_is_a_constant(filecheck: FileCheck) -> None:
    """LiteRT's fast kernels take a slice of nothing for a slice of all."""
    filecheck(
        ShapeInference(),
        """
    // CHECK: "tf.Const"() <{{{?}}value = dense<> : tensor<0x4xf32>
    // CHECK-NOT: "tf.StridedSlice"
    // CHECK: "tf.Neg"
    func.func @main(%x: tensor<2x4xf32>, %y: tensor<?x0xf32>) -> (tensor<*xf32>, tensor<?x0xf32>) {
      %0 = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tf.Const"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
      %2 = "tf.StridedSlice"(%x, %0, %0, %1) <{begin_mask = 1 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64,
          new_axis_mask = 0 : i64, shrink_axis_mask = 0 : i64}>
          : (tensor<2x4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
      %3 = "tf.Neg"(%y) : (tensor<?x0xf32>) -> tensor<?x0xf32>
      func.return %2, %3 : tensor<*xf32>, tensor<?x0xf32>
    }
    """,
    )
