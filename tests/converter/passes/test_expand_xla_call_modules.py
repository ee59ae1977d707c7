"""The pass `expand-xla-call-modules`: programs become functions of the module, and their ops calls."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.expand_xla_call_modules import ExpandXlaCallModules
from tfconvert.importers.mlir import import_mlir
from tfconvert.schema.diagnostics import ConversionError

TANH = """
func.func @main(%a: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = func.call @inner(%a) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
func.func private @inner(%a: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = stablehlo.tanh %a : tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
"""

PLATFORMS = """
func.func @main(%p: tensor<i32> {jax.global_constant = "_platform_index"}, %a: tensor<2xf32>) -> tensor<2xi32> {
  %0 = stablehlo.broadcast_in_dim %p, dims = [] : (tensor<i32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
"""

COMPOSITE = """
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.composite "my.op" %a {decomposition = @inner} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @inner(%a: tensor<2xf32>) -> tensor<2xf32> {
  return %a : tensor<2xf32>
}
"""

OLD = """
func.func @main(%size: tensor<i32>, %a: tensor<?x2xf32>) -> tensor<i32> {
  return %size : tensor<i32>
}
"""

BACK = """
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @tf.call_tf_function(%a) {api_version = 2 : i32, has_side_effect = true,
    tf.backend_config = {called_index = 0 : i64, has_token_input_output = false}} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""


def escaped(text: str) -> str:
    """Returns the artifact of a text, as a string in MLIR's text."""
    stablehlo = pytest.importorskip("jaxlib.mlir.dialects.stablehlo")
    artifact = stablehlo.serialize_portable_artifact_str(text, stablehlo.get_current_version())
    return "".join([f"\\{byte:02X}" for byte in artifact])


def calling(
    program: str, signature: str = "(tensor<?x2xf32>) -> tensor<?x2xf32>", attributes: str = "", version: int = 10
) -> str:
    """Returns a module with a call of a program, which may be a text or escaped bytes."""
    data = escaped(program) if "func" in program else program
    operand, _, result = signature.partition(" -> ")
    operand = operand.strip("()")
    return f"""
    func.func @main(%x: {operand}) -> {result} {{
      %0 = "tf.XlaCallModule"(%x) <{{
        Sout = [#tf_type.shape<*>], module = "{data}", {attributes} version = {version} : i64
      }}> : ({operand}) -> {result}
      func.return %0 : {result}
    }}
    func.func private @inner(%x: tensor<2xf32>) -> tensor<2xf32> {{
      func.return %x : tensor<2xf32>
    }}
    """


def test_functions_of_a_program_get_names_of_their_own(filecheck: FileCheck) -> None:
    checks = """
    // CHECK: func.call @xla_call_module(
    // CHECK: func.func private @inner(
    // CHECK: func.func private @xla_call_module(
    // CHECK: func.call @inner_1(
    // CHECK: func.func private @inner_1(
    """
    filecheck(ExpandXlaCallModules(), calling(TANH) + checks)


def test_the_same_program_is_added_once(filecheck: FileCheck) -> None:
    text = calling(TANH)
    once = text[text.index('%0 = "tf.') : text.index("func.return %0")]
    twice = once + once.replace("%0 =", "%1 =").replace("(%x)", "(%0)")
    module = filecheck(ExpandXlaCallModules(), text.replace(once, twice) + "// CHECK: func.call @xla_call_module(")
    assert str(module).count("func.call @xla_call_module(") == 2
    assert str(module).count("stablehlo.tanh") == 1


def test_values_of_other_types_are_cast(filecheck: FileCheck) -> None:
    checks = """
    // CHECK: "tf.Cast"({{.*}}tensor<3x2xf64>) -> tensor<?x2xf32>
    // CHECK: func.call
    // CHECK: "tf.Cast"({{.*}}tensor<?x2xf32>) -> tensor<*xf64>
    """
    filecheck(ExpandXlaCallModules(), calling(TANH, "(tensor<3x2xf64>) -> tensor<*xf64>") + checks)


def test_the_platform_is_the_processor(filecheck: FileCheck) -> None:
    text = calling(PLATFORMS, "(tensor<2xf32>) -> tensor<2xi32>", 'platforms = ["TPU", "CPU"],')
    filecheck(ExpandXlaCallModules(), text + "// CHECK: stablehlo.constant dense<1> : tensor<i32>")


def test_decompositions_keep_their_names(filecheck: FileCheck) -> None:
    text = calling(COMPOSITE, "(tensor<2xf32>) -> tensor<2xf32>")
    filecheck(ExpandXlaCallModules(), text + "// CHECK: decomposition = @inner_1")


def test_old_programs_take_sizes(filecheck: FileCheck) -> None:
    text = calling(OLD, "(tensor<?x2xf32>) -> tensor<i32>", 'dim_args_spec = ["0.0"],', version=4)
    checks = """
    // CHECK: [[SHAPE:%.*]] = "tf.Shape"
    // CHECK: [[SIZE:%.*]] = "tf.GatherV2"([[SHAPE]]
    // CHECK: func.call @xla_call_module([[SIZE]], %x)
    """
    filecheck(ExpandXlaCallModules(), text + checks)


def test_functions_of_tensorflow_are_called_back(filecheck: FileCheck) -> None:
    text = calling(BACK, "(tensor<2xf32>) -> tensor<2xf32>", "function_list = [@inner],")
    filecheck(ExpandXlaCallModules(), text + '// CHECK: "tf.StatefulPartitionedCall"({{.*}}f = @inner}')


ONE = "(tensor<2xf32>) -> tensor<2xf32>"


@pytest.mark.parametrize(
    ("program", "signature", "attributes", "version", "code"),
    [
        (TANH, "(tensor<?x2xf32>) -> tensor<?x2xf32>", "", 3, "unsupported-artifact"),
        ("module", ONE, "", 10, "unsupported-artifact"),
        ("ML\\EFRx", ONE, "", 10, "malformed-artifact"),
        (TANH.replace("@main", "@other"), ONE, "", 10, "unsupported-artifact"),
        (OLD, "(tensor<?x2xf32>) -> tensor<i32>", "", 10, "bad-call"),
        (OLD, "(tensor<?x2xf32>) -> tensor<i32>", 'dim_args_spec = ["3.0"],', 4, "bad-attribute"),
        (TANH, "(tensor<3x3xf32>) -> tensor<3x3xf32>", "", 10, "bad-call"),
        (BACK, ONE, "", 10, "missing-function"),
    ],
)
def test_wrong_programs_are_refused(program: str, signature: str, attributes: str, version: int, code: str) -> None:
    module = import_mlir(calling(program, signature, attributes, version))
    with pytest.raises(ConversionError) as caught:
        ExpandXlaCallModules().apply(module)
    assert caught.value.diagnostics[0].code == code
