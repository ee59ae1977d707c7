"""Shape inference of ops that are equal to earlier ones in all that most shape functions read."""

from __future__ import annotations

from tests.support.work import calls
from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.converter.shapes.sweep import Sweep
from tfconvert.ops.operands import Known
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation


def _inferred(text: str) -> ModuleOp:
    module = IRParser(text).parse_module()
    ShapeInference().apply(module)
    verify(module)
    return module


def _ops(module: ModuleOp, name: str) -> list[Operation]:
    return [op for op in module.walk() if op.name == name]


def test_attributes_and_shapes_distinguish_ops() -> None:
    module = _inferred("""
    func.func @main(%x: tensor<2x3xf32>, %y: tensor<4x5xf32>) {
      %0 = "tf.Squeeze"(%x) <{squeeze_dims = []}> : (tensor<2x3xf32>) -> tensor<*xf32>
      %1 = "tf.MatMul"(%x, %x) <{transpose_a = true, transpose_b = false}>
          : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<*xf32>
      %2 = "tf.MatMul"(%x, %x) <{transpose_a = false, transpose_b = true}>
          : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<*xf32>
      %3 = "tf.MatMul"(%x, %x) <{transpose_a = true, transpose_b = false}>
          : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<*xf32>
      %4 = "tf.MatMul"(%y, %y) <{transpose_a = true, transpose_b = false}>
          : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<*xf32>
      "tf.Keep"(%0, %1, %2, %3, %4)
          : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> ()
      func.return
    }
    """)
    shapes = [str(op.results[0].type) for op in _ops(module, "tf.MatMul")]
    assert shapes == ["tensor<3x3xf32>", "tensor<2x2xf32>", "tensor<3x3xf32>", "tensor<5x5xf32>"]


def test_constants_are_folded_after_an_equal_op_was_not() -> None:
    module = _inferred("""
    func.func @main(%x: tensor<2xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
      %c = "tf.Const"() <{value = dense<[4.0, 9.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
      %0 = "tf.Sqrt"(%x) : (tensor<2xf32>) -> tensor<*xf32>
      %1 = "tf.Sqrt"(%c) : (tensor<2xf32>) -> tensor<*xf32>
      func.return %0, %1 : tensor<*xf32>, tensor<*xf32>
    }
    """)
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    returned = function.body.block.last_op
    assert returned is not None
    assert [str(each.owner.name) for each in returned.operands if isinstance(each.owner, Operation)] == [
        "tf.Sqrt",
        "tf.Const",
    ]


def test_values_of_operands_distinguish_ops() -> None:
    module = _inferred("""
    func.func @main(%x: tensor<2x3xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
      %a = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %b = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %0 = "tf.ExpandDims"(%x, %a) : (tensor<2x3xf32>, tensor<i32>) -> tensor<*xf32>
      %1 = "tf.ExpandDims"(%x, %b) : (tensor<2x3xf32>, tensor<i32>) -> tensor<*xf32>
      func.return %0, %1 : tensor<*xf32>, tensor<*xf32>
    }
    """)
    shapes = [str(op.results[0].type) for op in _ops(module, "tf.ExpandDims")]
    assert shapes == ["tensor<1x2x3xf32>", "tensor<2x1x3xf32>"]


def test_unknown_sizes_of_equal_ops_may_differ() -> None:
    module = IRParser("""
    func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<*xi64>, tensor<*xi64>) {
      %0 = "tf.Where"(%x) : (tensor<4xf32>) -> tensor<*xi64>
      %1 = "tf.Where"(%y) : (tensor<4xf32>) -> tensor<*xi64>
      func.return %0, %1 : tensor<*xi64>, tensor<*xi64>
    }
    """).parse_module()
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    known = Known()
    sweep = Sweep(function.body.block, known)
    sweep.enter(None)
    results = [op.results[0] for op in _ops(module, "tf.Where")]
    for result in results:
        sweep.visit(result.op)
    assert [str(result.type) for result in results] == ["tensor<?x1xi64>"] * 2
    one, other = (known.shapes[result] for result in results)
    assert one is not None
    assert other is not None
    assert one[0] != other[0]


def test_equal_ops_are_cheap() -> None:
    def chain(sizes: list[int]) -> ModuleOp:
        lines = [
            f'%r{index} = "tf.Conv2D"(%x{index}, %w) <{{padding = "SAME", strides = [1, 1, 1, 1]}}> : '
            f"(tensor<1x{size}x8x4xf32>, tensor<3x3x4x4xf32>) -> tensor<*xf32>\n"
            f'"tf.Keep"(%r{index}) : (tensor<*xf32>) -> ()'
            for index, size in enumerate(sizes)
        ]
        inputs = ", ".join(f"%x{index}: tensor<1x{size}x8x4xf32>" for index, size in enumerate(sizes))
        text = "\n".join(lines)
        return IRParser(
            f"func.func @main({inputs}, %w: tensor<3x3x4x4xf32>) {{\n{text}\nfunc.return\n}}"
        ).parse_module()

    equal, different = chain([8] * 50), chain(list(range(8, 58)))
    ShapeInference().apply(chain([7]))
    few = calls(lambda: ShapeInference().apply(equal))
    assert few < 0.5 * calls(lambda: ShapeInference().apply(different))
