"""Models that contradict themselves, as random mutants do, are refused, and never end in an exception or a loop."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import tfconvert
from tests.hardening.bounded import run_bounded
from tests.hardening.models import FLOAT, graph, node, placeholder
from tfconvert.importers.graph.signature_order import call_order
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

X = "tensor<2x2xf32>"
WRAPPER = "__inference_signature_wrapper_1"


def _refused(tmp_path: Path, body: str, rest: str = "", result: str = X) -> ConversionError:
    """Returns the error of a text with one function of two values."""
    path = tmp_path / "model.mlir"
    path.write_text(f"""
    func.func @main(%x: {X}, %n: tensor<2xi32>) -> {result} {{
      {body}
      func.return %0 : {result}
    }}
    {rest}
    """)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(path)
    return caught.value


@pytest.mark.parametrize("op", ["Add", "Max", "Min", "Sub", "Update"])
def test_updates_must_fit_the_indices(op: str, tmp_path: Path) -> None:
    body = f"""
      %i = "tf.Const"() <{{value = dense<[[0], [1]]> : tensor<2x1xi32>}}> : () -> tensor<2x1xi32>
      %u = "tf.Const"() <{{value = dense<1.0> : tensor<3x2xf32>}}> : () -> tensor<3x2xf32>
      %0 = "tf.TensorScatter{op}"(%x, %i, %u) : ({X}, tensor<2x1xi32>, tensor<3x2xf32>) -> {X}
    """
    assert "dimensions 3 and 2 should be equal" in str(_refused(tmp_path, body))


def test_an_index_beyond_the_tensor(tmp_path: Path) -> None:
    body = f"""
      %i = "tf.Const"() <{{value = dense<8> : tensor<1x1xi32>}}> : () -> tensor<1x1xi32>
      %u = "tf.Const"() <{{value = dense<1.0> : tensor<1x2xf32>}}> : () -> tensor<1x2xf32>
      %0 = "tf.TensorScatterUpdate"(%x, %i, %u) : ({X}, tensor<1x1xi32>, tensor<1x2xf32>) -> {X}
    """
    problem = _refused(tmp_path, body)
    assert problem.code == "unsupported-op"
    assert "an index is out of range" in str(problem)


def test_ends_of_a_slice_that_are_more_than_its_beginnings(tmp_path: Path) -> None:
    masks = ", ".join(f"{name}_mask = 0 : i64" for name in ("begin", "ellipsis", "end", "new_axis", "shrink_axis"))
    body = f"""
      %b = "tf.Const"() <{{value = dense<0> : tensor<2xi32>}}> : () -> tensor<2xi32>
      %d = "tf.Const"() <{{value = dense<255> : tensor<1xi32>}}> : () -> tensor<1xi32>
      %t = "tf.Const"() <{{value = dense<2> : tensor<i32>}}> : () -> tensor<i32>
      %e = "tf.Fill"(%d, %t) : (tensor<1xi32>, tensor<i32>) -> tensor<?xi32>
      %s = "tf.Const"() <{{value = dense<1> : tensor<2xi32>}}> : () -> tensor<2xi32>
      %0 = "tf.StridedSlice"(%x, %b, %e, %s) <{{{masks}}}>
        : ({X}, tensor<2xi32>, tensor<?xi32>, tensor<2xi32>) -> {X}
    """
    assert "begin, end and strides should be equally long" in str(_refused(tmp_path, body))


def test_steps_of_a_slice_that_are_a_matrix_of_open_sizes(tmp_path: Path) -> None:
    masks = ", ".join(f"{name}_mask = 0 : i64" for name in ("begin", "ellipsis", "end", "new_axis", "shrink_axis"))
    body = f"""
      %b = "tf.Const"() <{{value = dense<0> : tensor<2xi32>}}> : () -> tensor<2xi32>
      %s = "tf.Reshape"(%n, %n) : (tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xi32>
      %0 = "tf.StridedSlice"(%x, %b, %n, %s) <{{{masks}}}>
        : ({X}, tensor<2xi32>, tensor<2xi32>, tensor<?x?xi32>) -> {X}
    """
    assert "begin, end and strides should have rank 1" in str(_refused(tmp_path, body))


def test_a_step_that_is_not_a_scalar(tmp_path: Path) -> None:
    body = """
      %z = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %t = "tf.Const"() <{value = dense<9> : tensor<i32>}> : () -> tensor<i32>
      %d = "tf.Const"() <{value = dense<2> : tensor<1xi32>}> : () -> tensor<1xi32>
      %r = "tf.Range"(%z, %t, %d) : (tensor<i32>, tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
      %s = "tf.Size"(%r) : (tensor<?xi32>) -> tensor<i32>
      %f = "tf.Cast"(%s) : (tensor<i32>) -> tensor<f32>
      %0 = "tf.AddV2"(%x, %f) : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
    """
    assert "delta should have rank 0" in str(_refused(tmp_path, body))


def test_a_limit_that_is_not_a_scalar(tmp_path: Path) -> None:
    body = """
      %b = "tf.Const"() <{value = dense<1.0> : tensor<3x4xf32>}> : () -> tensor<3x4xf32>
      %s = "tf.Reshape"(%b, %n) : (tensor<3x4xf32>, tensor<2xi32>) -> tensor<?xf32>
      %t = "tf.Const"() <{value = dense<0.5> : tensor<f32>}> : () -> tensor<f32>
      %0 = "tf.NonMaxSuppressionV3"(%b, %s, %n, %t, %t)
          : (tensor<3x4xf32>, tensor<?xf32>, tensor<2xi32>, tensor<f32>, tensor<f32>) -> tensor<?xi32>
    """
    assert _refused(tmp_path, body, result="tensor<?xi32>").code in ("invalid-ir", "shape-mismatch", "unsupported-op")


def test_a_function_called_with_another_shape(tmp_path: Path) -> None:
    body = f'%0 = "tf.PartitionedCall"(%x, %n) <{{f = @f}}> : ({X}, tensor<2xi32>) -> {X}'
    rest = f"func.func private @f(%x: {X}, %n: tensor<i32>) -> {X} {{ func.return %x : {X} }}"
    assert _refused(tmp_path, body, rest).code in ("bad-call", "invalid-ir")


def test_windows_without_strides() -> None:
    transposed = node("y", "Conv2DBackpropInput", ["s", "f", "x"], T=FLOAT)
    transposed.attr["strides"].list.SetInParent()
    transposed.attr["padding"].s = b"SAME"
    model = graph(placeholder("x", (1, 2, 2, 1)), placeholder("f", (1, 1, 1, 1)), _sizes(1, 2, 2, 1), transposed)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(model)
    assert "strides [] are not 4 sizes" in str(caught.value)


def _sizes(*values: int) -> pb.NodeDef:
    result = node("s", "Const", dtype=pb.DT_INT32)
    value = result.attr["value"].tensor
    value.dtype = pb.DT_INT32
    value.tensor_shape.dim.add(size=len(values))
    value.int_val.extend(values)
    return result


def test_sizes_beyond_32_bits_are_no_target_of_a_reshape() -> None:
    assert constant_target((3, 1 << 31)) is None
    assert constant_target((-1, (1 << 31) - 1)) == (-1, (1 << 31) - 1)


@pytest.mark.parametrize("symbol", ["", "sym_name = 3 : i32, "])
def test_global_tensors_have_names(symbol: str, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(f"""
    "tf_saved_model.global_tensor"() <{{{symbol}type = tensor<f32>, value = dense<1.0> : tensor<f32>}}> : () -> ()
    """)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(path)
    assert "needs the property 'sym_name', a string" in str(caught.value)


def _wrapper(*nodes: tuple[str, str, str, str], result: str = "c:output:0") -> pb.FunctionDef:
    function = pb.FunctionDef()
    function.signature.name = WRAPPER
    function.signature.input_arg.add(name="x", type=FLOAT)
    function.signature.output_arg.add(name="y", type=FLOAT)
    for name, op, given, callee in nodes:
        inner = function.node_def.add(name=name, op=op, input=[given])
        if callee:
            inner.attr["f"].func.name = callee
    function.ret["y"] = result
    return function


@pytest.mark.parametrize(
    "function",
    [
        _wrapper(("c", "PartitionedCall", "x", WRAPPER)),
        _wrapper(("i", "Identity", "i:output:0", ""), ("c", "PartitionedCall", "x", "f"), result="i:output:0"),
        _wrapper(
            ("i", "Identity", "j:output:0", ""),
            ("j", "Identity", "i:output:0", ""),
            ("c", "PartitionedCall", "x", "f"),
            result="i:output:0",
        ),
        _wrapper(("c", "PartitionedCall", "x", "f"), result="c:output:first"),
        _wrapper(("c", "PartitionedCall", "x", "f"), result="c:output:7"),
    ],
)
def test_wrappers_that_lead_nowhere(function: pb.FunctionDef) -> None:
    """Functions that call themselves and values that pass themselves on: looking through them ends."""
    call = pb.NodeDef(name="call", op="PartitionedCall", input=["x"])
    call.attr["f"].func.name = WRAPPER
    order = call_order(call, {WRAPPER: function, "f": _wrapper(("c", "PartitionedCall", "x", "g"))})
    assert order is not None
    assert set(order.arguments) == {"x"}


def test_a_variable_whose_shape_is_something_else(digits_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(digits_model, folder)
    message = pb.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    for each in message.meta_graphs[0].graph_def.node:
        if each.op == "VarHandleOp":
            each.attr["shape"].placeholder = "shape"
    (folder / "saved_model.pb").write_bytes(message.SerializeToString())
    with pytest.raises(ConversionError, match="the attribute 'shape' is not a shape") as caught:
        tfconvert.convert(folder)
    assert caught.value.code == "bad-attribute"


def test_sizes_beyond_32_bits_are_refused_for_stablehlo(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text("""
    func.func @main(%x: tensor<4294967296x2xf32>) -> tensor<2xi32> {
      %0 = "tf.Shape"(%x) : (tensor<4294967296x2xf32>) -> tensor<2xi32>
      %1 = "tf.Neg"(%0) : (tensor<2xi32>) -> tensor<2xi32>
      func.return %1 : tensor<2xi32>
    }
    """)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(path, target="stablehlo")
    assert caught.value.code == "absurd-shape"


@pytest.mark.parametrize("op", ['"tf.Exp"(%x)', '"stablehlo.exponential"(%x)'])
def test_functions_of_several_blocks_are_refused(op: str, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(f"""
    func.func @main(%x: {X}) -> {X} {{
      %0 = {op} : ({X}) -> {X}
      func.return %0 : {X}
    ^bb1:
      func.return %x : {X}
    }}
    """)
    with pytest.raises(ConversionError, match="several blocks") as caught:
        tfconvert.convert(path)
    assert caught.value.code == "invalid-ir"


def test_slices_of_huge_dimensions_are_converted_at_once(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text("""
    func.func @main(%x: tensor<2147483647xf32>) -> tensor<2147483646xf32> {
      %b = "tf.Const"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
      %e = "tf.Const"() <{value = dense<2147483647> : tensor<1xi32>}> : () -> tensor<1xi32>
      %0 = "tf.StridedSlice"(%x, %b, %e, %b) <{begin_mask = 0 : i64, end_mask = 0 : i64, ellipsis_mask = 0 : i64,
        new_axis_mask = 0 : i64, shrink_axis_mask = 0 : i64}>
        : (tensor<2147483647xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2147483646xf32>
      func.return %0 : tensor<2147483646xf32>
    }
    """)
    result = tmp_path / "result.mlir"
    assert run_bounded([path, "--target", "stablehlo", "-o", result]).status == 0
    assert "stablehlo.slice" in result.read_text("utf-8")


def test_kernels_of_unknown_channels_are_refused_for_stablehlo(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text("""
    func.func @main(%x: tensor<1x8x8x3xf32>, %w: tensor<3x3x?x4xf32>) -> tensor<1x6x6x4xf32> {
      %0 = "tf.Conv2D"(%x, %w) <{data_format = "NHWC", dilations = [1, 1, 1, 1], explicit_paddings = [],
        padding = "VALID", strides = [1, 1, 1, 1], use_cudnn_on_gpu = true}>
        : (tensor<1x8x8x3xf32>, tensor<3x3x?x4xf32>) -> tensor<1x6x6x4xf32>
      func.return %0 : tensor<1x6x6x4xf32>
    }
    """)
    with pytest.raises(ConversionError, match="kernel's channels is not known"):
        tfconvert.convert(path, target="stablehlo")
