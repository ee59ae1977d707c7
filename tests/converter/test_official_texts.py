"""MLIR text in the forms that TensorFlow's converter prints between its passes: the file computes the same."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.flat_settings import converted
from tests.support.litert import RunTFLite
from tfconvert.converter.pipeline.pass_registry import pass_class, pass_names
from tfconvert.importers.mlir import import_mlir
from tfconvert.importers.source import Source
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError

Array = np.ndarray[Any, np.dtype[Any]]

X = np.array([1.0, -2.0], np.float32)
TWO = "(%a: tensor<2xf32>) -> tensor<2xf32>"


def convert(folder: Path, body: str, signature: str = TWO, others: str = "", **options: Any) -> bytes:
    """Returns the file of a function's body, which computes `%r`."""
    result = signature.rpartition("-> ")[2]
    path = folder / "text.mlir"
    path.write_text(f"func.func @main{signature} {{ {body} func.return %r : {result} }} {others}", encoding="utf-8")
    return bytes(converted(path, **options))


UNARY = "(tensor<2xf32>) -> tensor<2xf32>"
BINARY = "(tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>"

BODIES: list[tuple[str, Any]] = [
    (f'%0 = arith.constant dense<[3.0, 4.0]> : tensor<2xf32> %r = "tf.Mul"(%a, %0) : {BINARY}', X * [3, 4]),
    (
        f'%0 = "arith.constant"() {{value = dense<3.0> : tensor<2xf32>}} : () -> tensor<2xf32> %r = "tf.Mul"(%a, %0) '
        f": {BINARY}",
        X * 3,
    ),
    ("%0 = stablehlo.constant dense<3.0> : tensor<2xf32> %r = arith.mulf %a, %0 : tensor<2xf32>", X * 3),
    ("%0 = mhlo.constant dense<3.0> : tensor<2xf32> %r = arith.maximumf %a, %0 : tensor<2xf32>", np.maximum(X, 3)),
    (
        '%0 = "vhlo.constant_v1"() <{value = #vhlo.tensor_v1<dense<3.0> : tensor<2xf32>>}> : () -> '
        "!vhlo.tensor_v1<2x!vhlo.f32_v1> %r = arith.subf %a, %0 : tensor<2xf32>",
        X - 3,
    ),
    ("%0 = arith.addf %a, %a : tensor<2xf32> %r = arith.divf %0, %a : tensor<2xf32>", [2, 2]),
    (
        '%0 = arith.constant dense<0.5> : tensor<2xf32> %r = tfl.add %a, %0 {fused_activation_function = "RELU"} '
        ": tensor<2xf32>",
        [1.5, 0],
    ),
    (
        f'%r = "tfl.custom_tf"(%a) ({{ ^bb0(%x: tensor<2xf32>): %0 = "tf.Abs"(%x) : {UNARY} "tfl.yield"(%0) : '
        f'(tensor<2xf32>) -> () }}) {{device = ""}} : {UNARY}',
        np.abs(X),
    ),
    (
        '%0 = tensor.cast %a : tensor<2xf32> to tensor<*xf32> %1 = "tf.Neg"(%0) : (tensor<*xf32>) -> tensor<*xf32> '
        "%r = tensor.cast %1 : tensor<*xf32> to tensor<2xf32>",
        -X,
    ),
    (
        '%0 = "quantfork.qcast"(%a) : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 0.5>> '
        '%r = "quantfork.dcast"(%0) '
        ": (tensor<2x!quant.uniform<i8:f32, 0.5>>) -> tensor<2xf32>",
        X,
    ),
    (
        f'%0, %c = tfl.control_node controls "tfl.abs"(%a) : {UNARY} %r, %d = tfl.control_node(%c) controls '
        f'"tf.Neg"(%0) : {UNARY}',
        -np.abs(X),
    ),
]


@pytest.mark.parametrize(("body", "expected"), BODIES)
def test_results_of_ops_of_other_dialects(
    tmp_path: Path, run_tflite: RunTFLite, body: str, expected: Sequence[float]
) -> None:
    (got,) = run_tflite(convert(tmp_path, body), [X])
    np.testing.assert_allclose(got, np.asarray(expected, np.float32), rtol=1e-6)


@pytest.mark.parametrize("kind", ["i1", "i32"])
@pytest.mark.parametrize(("name", "function"), [("andi", np.bitwise_and), ("xori", np.bitwise_xor)])
def test_logic(tmp_path: Path, run_tflite: RunTFLite, kind: str, name: str, function: Any) -> None:
    tensor = f"tensor<4x{kind}>"
    try:
        content = convert(tmp_path, f"%r = arith.{name} %a, %b : {tensor}", f"(%a: {tensor}, %b: {tensor}) -> {tensor}")
    except ConversionError as problem:
        assert (kind, name) == ("i32", "andi"), "LiteRT has all but the AND of integers"
        assert "LiteRT has no such operator" in str(problem)  # noqa: PT017
        return
    inputs = [np.array(each, bool if kind == "i1" else np.int32) for each in ([0, 0, 1, 1], [0, 1, 0, 1])]
    (got,) = run_tflite(content, inputs)
    np.testing.assert_array_equal(got, function(*inputs))


# A loop that adds its input thrice, and a conditional that makes the sum positive.
LOOP = """
  %n = arith.constant dense<3> : tensor<i32>
  %z = arith.constant dense<0> : tensor<i32>
  %0:3 = "tfl.while"(%z, %a, %a) <{is_stateless = true}> ({
  ^bb0(%i: tensor<i32>, %x: tensor<2xf32>REST):
    %1 = tfl.less(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "tfl.yield"(%1) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %x: tensor<2xf32>REST):
    %c = arith.constant dense<1> : tensor<i32>
    %1 = tfl.add %i, %c {fused_activation_function = "NONE"} : tensor<i32>
    %2 = tfl.add %x, %LAST {fused_activation_function = "NONE"} : tensor<2xf32>
    "tfl.yield"(%1, %2, %LAST) : (tensor<i32>, tensor<2xf32>, tensor<2xf32>) -> ()
  }) : (tensor<i32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>, tensor<2xf32>)
  %3 = arith.constant dense<0.0> : tensor<2xf32>
  %4 = arith.constant dense<0> : tensor<1xi32>
  %5 = "tfl.sum"(%0#1, %4) <{keep_dims = false}> : (tensor<2xf32>, tensor<1xi32>) -> tensor<f32>
  %6 = arith.constant dense<0.0> : tensor<f32>
  %7 = tfl.greater(%5, %6) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %r = "tfl.if"(%7) ({
    "tfl.yield"(%0#1) : (tensor<2xf32>) -> ()
  }, {
    %8 = tfl.sub %3, %0#1 {fused_activation_function = "NONE"} : tensor<2xf32>
    "tfl.yield"(%8) : (tensor<2xf32>) -> ()
  }) : (tensor<i1>) -> tensor<2xf32>
"""


@pytest.mark.parametrize(("rest", "last"), [(", %y: tensor<2xf32>", "y"), ("", "a")], ids=["inside", "outlined"])
def test_regions_of_loops_and_conditionals(tmp_path: Path, run_tflite: RunTFLite, rest: str, last: str) -> None:
    content = convert(tmp_path, LOOP.replace("REST", rest).replace("LAST", last), check_passes=not rest)
    for x in (X, -X):
        (got,) = run_tflite(content, [x])
        np.testing.assert_allclose(got, 4 * x * np.sign(x.sum()))


def test_measured_ranges_quantize_a_model(tmp_path: Path, run_tflite: RunTFLite) -> None:
    stats = '"quantfork.stats"({}) <{{layerStats = dense<[{}, {}]> : tensor<2xf32>}}> : ' + UNARY
    body = f'%0 = {stats.format("%a", -2, 2)} %1 = "tfl.logistic"(%0) : {UNARY} %r = {stats.format("%1", 0.1, 1)}'
    quantize = tfconvert.Quantize("int8", io="int8")
    content = convert(tmp_path, body, quantize=quantize)
    (got,) = run_tflite(content, [np.array([64, -128], np.int8)])
    assert got.dtype == np.int8
    np.testing.assert_allclose((got.astype(np.int32) + 128) / 255, 1 / (1 + np.exp([-1.0, 2.0])), atol=0.02)


def test_numeric_verify_is_the_runtimes_custom_op(tmp_path: Path) -> None:
    kind = "tensor<2x!quant.uniform<i8:f32, 0.5>>"
    body = (
        f'%0 = "tfl.quantize"(%a) <{{qtype = {kind}}}> : (tensor<2xf32>) -> {kind} '
        f'%r = "tfl.NumericVerify"(%0, %a) <{{log_if_failed = true, tolerance = 1.5 : f32}}> : '
        f"({kind}, tensor<2xf32>) -> tensor<2xf32>"
    )
    content = convert(tmp_path, body)
    assert b"NumericVerify" in content
    assert b"log_if_failed" in content


@pytest.mark.parametrize("op", ["tfl.pseudo_const", "tf.Const", "arith.constant"])
def test_a_constant_of_an_open_type_has_the_type_of_its_value(tmp_path: Path, run_tflite: RunTFLite, op: str) -> None:
    value = f'%c = "{op}"() <{{value = dense<[1, 2]> : tensor<2xi32>}}> : () -> tensor<?xi32>'
    if op == "arith.constant":
        value = "%c = arith.constant dense<[1, 2]> : tensor<2xi32>"
    add = f"(tensor<?xi32>, tensor<{2 if op == 'arith.constant' else '?'}xi32>) -> tensor<?xi32>"
    body = f'{value} %r = "tfl.add"(%a, %c) <{{fused_activation_function = "NONE"}}> : {add}'
    content = convert(tmp_path, body, "(%a: tensor<?xi32>) -> tensor<?xi32>")
    (got,) = run_tflite(content, [np.array([5, 6], np.int32)])
    assert got.tolist() == [6, 8]
    (tmp_path / "model.tflite").write_bytes(content)
    assert "tfl.add" in str(Source(tmp_path / "model.tflite").open())


def test_a_folded_constant_gives_the_function_its_type() -> None:
    module = import_mlir("""
      func.func @main() -> tensor<?x?xi32> {
        %c = "tfl.pseudo_const"() <{value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>}> : () -> tensor<?x?xi32>
        %p = arith.constant dense<[1, 0]> : tensor<2xi32>
        %r = "tfl.transpose"(%c, %p) : (tensor<?x?xi32>, tensor<2xi32>) -> tensor<?x?xi32>
        return %r : tensor<?x?xi32>
      }
    """)
    pass_class("optimize")().apply(module)
    assert "tfl.transpose" not in str(module)
    verify(module)


STATE = """
module attributes {tf_saved_model.semantics} {
  "tf_saved_model.session_initializer"() <{initializers = [@init]}> : () -> ()
  func.func @init() attributes {tf_saved_model.exported_names = ["__tf_saved_model_session_initializer_init"]} {
    %v = VAR : () -> tensor<!tf_type.resource<tensor<f32>>>
    %c = arith.constant dense<5.0> : tensor<f32>
    ASSIGN(%v, %c) : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()
    return
  }
  func.func @main(%a: tensor<f32>) -> tensor<f32>
      attributes {tf.entry_function = {inputs = "a:0", outputs = "r:0"}, tf_saved_model.exported_names = ["main"]} {
    CALL
    %v = VAR : () -> tensor<!tf_type.resource<tensor<f32>>>
    %0 = READ(%v) : (tensor<!tf_type.resource<tensor<f32>>>) -> tensor<f32>
    %1 = tfl.add %0, %a {fused_activation_function = "NONE"} : tensor<f32>
    ASSIGN(%v, %1) : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()
    return %1 : tensor<f32>
  }
}
"""
_TF = ('"tf.VarHandleOp"() <{container = "", shared_name = "v"}>', '"tf.AssignVariableOp"', '"tf.ReadVariableOp"')
_TFL = ('"tfl.var_handle"() <{container = "", shared_name = "v"}>', '"tfl.assign_variable"', '"tfl.read_variable"')
_CALL = '"tfl.call_once"() <{session_init_function = "init"}> : () -> ()'


@pytest.mark.parametrize(("ops", "call"), [(_TF, ""), (_TFL, ""), (_TFL, _CALL)], ids=["tf", "tfl", "called"])
def test_initializers_set_variables(tmp_path: Path, run_tflite: RunTFLite, ops: Sequence[str], call: str) -> None:
    text = STATE
    for word, op in zip(("VAR", "ASSIGN", "READ", "CALL"), (*ops, call), strict=True):
        text = text.replace(word, op)
    (tmp_path / "state.mlir").write_text(text, encoding="utf-8")
    content = bytes(tfconvert.convert(tmp_path / "state.mlir"))
    (got,) = run_tflite(content, [np.array(2, np.float32)])
    assert got == 7


DECLARED = "func.func private @f(tensor<2xf32>) -> tensor<2xf32>"
CALLS = [
    f"%r = func.call @f(%a) : {UNARY}",
    f'%r = "tf.PartitionedCall"(%a) {{f = @f}} : {UNARY}',
    f'%r = "tf.If"(%p, %a) {{then_branch = @f, else_branch = @f, is_stateless = true}} : (tensor<i1>, {UNARY[1:]}',
    f'%r = "tfl.if"(%p, %a) {{then_branch = @f, else_branch = @f}} : (tensor<i1>, {UNARY[1:]}',
    f'%r = "tf.Case"(%i, %a) {{branches = [@f, @f], is_stateless = true}} : (tensor<i32>, {UNARY[1:]}',
    f'%r = "tf.While"(%a) {{cond = @go, body = @f, is_stateless = true, parallel_iterations = 10}} : {UNARY}',
    f'%r = "tfl.while"(%a) {{cond = @go, body = @f}} : {UNARY}',
]


@pytest.mark.parametrize("call", CALLS)
def test_calls_of_declared_functions_are_refused(tmp_path: Path, call: str) -> None:
    goes = (
        'func.func private @go(%a: tensor<2xf32>) -> tensor<i1> { %0 = "tf.Const"() <{value = dense<false> : '
        "tensor<i1>}> : () -> tensor<i1> return %0 : tensor<i1> }"
    )
    signature = "(%a: tensor<2xf32>, %p: tensor<i1>, %i: tensor<i32>) -> tensor<2xf32>"
    with pytest.raises(ConversionError) as caught:
        convert(tmp_path, call, signature, f"{DECLARED} {goes}")
    assert {problem.code for problem in caught.value.diagnostics} == {"missing-function"}
    assert "the function 'f' has no body" in str(caught.value)


@pytest.mark.parametrize("name", ["main", "f"])
def test_a_model_that_is_only_declared_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "declared.mlir"
    path.write_text(f"func.func @{name}(tensor<2xf32>) -> tensor<2xf32>", encoding="utf-8")
    with pytest.raises(ConversionError, match=f"the function '{name}' has no body"):
        tfconvert.convert(path)


def test_a_declared_function_that_nothing_calls_is_left_out(tmp_path: Path, run_tflite: RunTFLite) -> None:
    (got,) = run_tflite(convert(tmp_path, f'%r = "tf.Neg"(%a) : {UNARY}', others=DECLARED), [X])
    assert got.tolist() == [-1, 2]


@pytest.mark.parametrize("name", pass_names())
def test_passes_take_declared_functions(name: str) -> None:
    goes = "func.func private @go(tensor<2xf32>) -> tensor<i1>"
    signature = "(%a: tensor<2xf32>, %p: tensor<i1>, %i: tensor<i32>) -> tensor<2xf32>"
    for call in CALLS:
        module = import_mlir(f"func.func @main{signature} {{ {call} return %r : tensor<2xf32> }} {DECLARED} {goes}")
        with suppress(ConversionError):
            pass_class(name)().apply(module)
        assert str(module)
