"""Exported models, run in LiteRT and compared with numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from tfconvert.exporters.tflite.model import export
from tfconvert.exporters.tflite.subgraph import Naming
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.attributes import UnitAttr
from tfconvert.schema.ir.builtin import ModuleOp

F32 = types.F32
UNCHANGED = {"in_data_type": "FLOAT32", "out_data_type": "FLOAT32"}
RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def tensor(*shape: int, element: Any = F32) -> Any:
    return types.tensor(element, shape)


def test_convolution_with_bias_and_activation(modules: Any, run_tflite: Any) -> None:
    filters, bias = floats(4, 1, 1, 3), floats(4)
    options = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "fused_activation_function": "RELU"}

    def body(f: Any) -> Any:
        return [f.op("conv_2d", [f.args[0], f.constant(filters), f.constant(bias)], (1, 5, 5, 4), options)]

    content = export(modules().function("main", [tensor(1, 5, 5, 3)], body).module).to_bytes()
    image = floats(1, 5, 5, 3)
    (result,) = run_tflite(content, [image])
    np.testing.assert_allclose(result, np.maximum(image @ filters[:, 0, 0].T + bias, 0), rtol=1e-5, atol=1e-5)


def test_dynamic_batch_is_resized_to(modules: Any, run_tflite: Any) -> None:
    weights, bias = floats(2, 600), floats(2)

    def body(f: Any) -> Any:
        return [f.op("fully_connected", [f.args[0], f.constant(weights), f.constant(bias)], (-1, 2))]

    content = export(modules().function("f", [tensor(-1, 600)], body).module).to_bytes()
    (details,) = Interpreter(model_content=content).get_input_details()
    assert list(details["shape"]) == [1, 600]
    assert list(details["shape_signature"]) == [-1, 600]
    values = floats(7, 600)
    (result,) = run_tflite(content, [values])
    np.testing.assert_allclose(result, values @ weights.T + bias, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("large", [2**31, 1])
def test_both_forms_of_file_run(modules: Any, run_tflite: Any, large: int) -> None:
    matrix, vector = floats(300, 4), np.float32(2)

    def body(f: Any) -> Any:
        product = f.op("mul", [f.args[0], f.constant(matrix)], (300, 4))
        scaled = f.op("mul", [product, f.constant(vector)], (300, 4))
        return [f.op("sum", [scaled, f.constant(np.array([0], np.int32))], (4,))]

    file = export(modules().function("f", [tensor(300, 4)], body).module, large=large)
    content = file.to_bytes()
    assert len(content) == file.size
    values = floats(300, 4)
    (result,) = run_tflite(content, [values])
    np.testing.assert_allclose(result, (values * matrix * vector).sum(0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("large", [2**31, 1])
def test_constants_of_no_and_of_one_byte(modules: Any, run_tflite: Any, large: int) -> None:
    def body(f: Any) -> Any:
        scalar = f.op("reshape", [f.args[0], f.constant(np.zeros(0, np.int32))], (), {"new_shape": ()})
        chosen = f.op("select_v2", [f.constant(np.bool_(True)), scalar, f.constant(np.float32(5))], ())
        return [chosen]

    content = export(modules().function("f", [tensor(1)], body).module, large=large).to_bytes()
    (result,) = run_tflite(content, [np.array([3], np.float32)])
    assert result.shape == ()
    assert result == 3


@pytest.mark.parametrize("is_official", [False, True])
def test_two_signatures_share_a_subgraph(is_official: bool, modules: Any, run_tflite: Any) -> None:
    def body(f: Any) -> Any:
        return [
            f.op("sub", [f.args[1], f.args[0]], (2,), {"fused_activation_function": "NONE"}),
            f.op("neg", [f.args[0]], (2,)),
        ]

    builder = modules().function(
        "__inference_f",
        [tensor(2), tensor(2)],
        body,
        signatures=["serving_default", "serve"],
        names=("serving_x:0,serving_y:0", "out:0,out:1"),
        paths=(["x", "y"], ["difference", "negative"]),
    )
    file = export(builder.module, naming=Naming(is_official))
    assert file.signatures == ("serving_default", "serve")
    content = file.to_bytes()
    interpreter = Interpreter(model_content=content)
    assert interpreter.get_signature_list() == {
        key: {"inputs": ["x", "y"], "outputs": ["difference", "negative"]} for key in file.signatures
    }
    found = [
        [item["name"] for item in each] for each in (interpreter.get_input_details(), interpreter.get_output_details())
    ]
    official, own = [["serving_x:0", "serving_y:0"], ["out:0", "out:1"]], [["x", "y"], ["difference", "negative"]]
    assert found == (official if is_official else own)
    for key in file.signatures:
        difference, negative = run_tflite(
            content, {"x": np.array([1, 2], np.float32), "y": np.array([5, 7], np.float32)}, signature=key
        )
        np.testing.assert_array_equal(difference, [4, 5])
        np.testing.assert_array_equal(negative, [-1, -2])


def test_two_entry_functions_share_weights(modules: Any, run_tflite: Any) -> None:
    weights = floats(512)
    builder = modules()
    for name in ("add", "mul"):
        builder.function(
            name,
            [tensor(512)],
            lambda f, name=name: [f.op(name, [f.args[0], f.constant(weights.copy())], (512,))],
            signatures=[name],
            paths=(["x"], ["y"]),
        )
    file = export(builder.module)
    assert weights.nbytes < file.size < 2 * weights.nbytes
    values = floats(512)
    for name, expected in (("add", values + weights), ("mul", values * weights)):
        (result,) = run_tflite(file.to_bytes(), {"x": values}, signature=name)
        np.testing.assert_array_equal(result, expected)


def test_strings(modules: Any, run_tflite: Any) -> None:
    words = np.array([b"", b"a", "ü".encode(), b"\xff\0x"], object)

    def body(f: Any) -> Any:
        return [f.op("gather", [f.constant(words), f.args[0]], (2,), {"axis": 0}, element=types.STRING)]

    content = export(modules().function("f", [tensor(2, element=types.I32)], body).module).to_bytes()
    (result,) = run_tflite(content, [np.array([3, 2], np.int32)])
    assert result.tolist() == [words[3], words[2]]


def test_while_and_if_call_subgraphs(modules: Any, run_tflite: Any) -> None:
    counter, value = tensor(element=types.I32), tensor(2)

    def main(f: Any) -> Any:
        start = f.constant(np.int32(0))
        calls = {"cond": attrs.symbol("more"), "body": attrs.symbol("step")}
        loop = f.add(tfl.build("while", [start, f.args[0]], [counter, value], calls))
        big = f.op("less", [f.constant(np.int32(2)), loop.results[0]], (), element=types.I1)
        calls = {"then_branch": attrs.symbol("negate"), "else_branch": attrs.symbol("keep")}
        return [f.op("if", [big, loop.results[1]], (2,), calls)]

    def step(f: Any) -> Any:
        one = f.constant(np.int32(1))
        doubled = f.op("add", [f.args[1], f.args[1]], (2,))
        return [f.op("add", [f.args[0], one], (), element=types.I32), doubled]

    builder = modules().function("main", [value], main)
    builder.function("unused", [value], lambda f: [f.args[0]])
    builder.function("step", [counter, value], step)
    builder.function(
        "more", [counter, value], lambda f: [f.op("less", [f.args[0], f.constant(np.int32(3))], (), element=types.I1)]
    )
    builder.function("keep", [value], lambda f: [f.args[0]])
    builder.function("negate", [value], lambda f: [f.op("neg", [f.args[0]], (2,))])
    content = export(builder.module).to_bytes()
    (result,) = run_tflite(content, [np.array([1, -2], np.float32)])
    np.testing.assert_array_equal(result, [-8, 16])


def test_variables_are_initialised_once(modules: Any) -> None:
    handle = {"container": "", "shared_name": "counter"}

    def initialise(f: Any) -> Any:
        variable = f.op("var_handle", [], (), handle, element=types.RESOURCE)
        f.add(tfl.build("assign_variable", [variable, f.constant(np.array([10], np.float32))], []))
        return []

    def main(f: Any) -> Any:
        f.add(tfl.build("call_once", [], [], {"session_init_function": attrs.symbol("init")}))
        variable = f.op("var_handle", [], (), handle, element=types.RESOURCE)
        result = f.op("add", [f.op("read_variable", [variable], (1,)), f.args[0]], (1,))
        f.add(tfl.build("assign_variable", [variable, result], []))
        return [result]

    builder = modules().function("main", [tensor(1)], main).function("init", [], initialise)
    interpreter = Interpreter(model_content=export(builder.module).to_bytes())
    interpreter.allocate_tensors()
    seen = []
    for _ in range(3):
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([1], np.float32))
        interpreter.invoke()
        seen.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).item())
    assert seen == [11, 12, 13]


def test_absent_operands_and_state(modules: Any, run_tflite: Any) -> None:
    units, features = 3, 2
    feature, recurrent, biases = floats(4, units, features), floats(4, units, units), floats(4, units)

    def body(f: Any) -> Any:
        none = f.add(tfl.build("no_value", (), (tfl.NONE_TYPE,), {"value": UnitAttr.intern()})).results[0]
        zeros = [f.op("cast", [f.constant(np.zeros((1, units), np.float32))], (1, units), UNCHANGED) for _ in range(2)]
        operands = [f.args[0], *map(f.constant, feature), *map(f.constant, recurrent), none, none, none]
        operands += [*map(f.constant, biases), none, none, *zeros, none, none, none, none]
        options = {"fused_activation_function": "TANH", "time_major": False}
        return [f.op("unidirectional_sequence_lstm", operands, (1, 4, units), options)]

    content = export(modules().function("f", [tensor(1, 4, features)], body).module).to_bytes()
    steps = floats(1, 4, features)
    (result,) = run_tflite(content, [steps])
    hidden, cell = np.zeros(units), np.zeros(units)
    for position, step in enumerate(steps[0]):
        enter, forget, new, leave = feature @ step + recurrent @ hidden + biases
        enter, forget, leave = (1 / (1 + np.exp(-gate)) for gate in (enter, forget, leave))
        cell = forget * cell + enter * np.tanh(new)
        hidden = leave * np.tanh(cell)
        np.testing.assert_allclose(result[0, position], hidden, rtol=1e-4, atol=1e-5)


def test_a_constant_and_an_input_may_be_outputs(modules: Any, run_tflite: Any) -> None:
    ones = np.ones(3, np.float32)

    def body(f: Any) -> Any:
        constant = f.constant(ones)
        return [f.args[0], constant, f.op("add", [f.args[0], constant], (3,)), constant]

    builder = modules().function("f", [tensor(3)], body, names=("x", "same,ones,sum,again"))
    content = export(builder.module).to_bytes()
    values = floats(3)
    for result, expected in zip(run_tflite(content, [values]), [values, ones, values + 1, ones], strict=True):
        np.testing.assert_array_equal(result, expected)
    details = Interpreter(model_content=content).get_output_details()
    assert [item["name"] for item in details] == ["x", "ones", "sum", "again"]


def test_bfloat16_and_half_byte_types_are_stored(modules: Any, run_tflite: Any) -> None:
    import ml_dtypes

    numbers = np.array([-8, 7, 3], ml_dtypes.int4)

    def body(f: Any) -> Any:
        options = {"in_data_type": "INT4", "out_data_type": "FLOAT32"}
        return [f.op("cast", [f.constant(numbers)], (3,), options), f.args[0]]

    content = export(modules().function("f", [tensor(1)], body).module).to_bytes()
    np.testing.assert_array_equal(run_tflite(content, [floats(1)])[0], [-8, 7, 3])


LOOPS_OF_ONE_BODY = """
    func.func @main(%n: tensor<i32>, %x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
      %0:2 = "tfl.while"(%n, %x) <{cond = @left, body = @double}>
          : (tensor<i32>, tensor<?xf32>) -> (tensor<i32>, tensor<?xf32>)
      %1:2 = "tfl.while"(%n, %y) <{cond = @left, body = @double}>
          : (tensor<i32>, tensor<?xf32>) -> (tensor<i32>, tensor<?xf32>)
      func.return %0#1, %1#1 : tensor<?xf32>, tensor<?xf32>
    }
    func.func private @left(%n: tensor<i32>, %x: tensor<?xf32>) -> tensor<i1> {
      %0 = "tfl.pseudo_const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tfl.greater"(%n, %0) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %1 : tensor<i1>
    }
    func.func private @double(%n: tensor<i32>, %x: tensor<?xf32>) -> (tensor<i32>, tensor<?xf32>) {
      %0 = "tfl.pseudo_const"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tfl.add"(%n, %0) <{fused_activation_function = "NONE"}> : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %2 = "tfl.add"(%x, %x) <{fused_activation_function = "NONE"}> : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      func.return %1, %2 : tensor<i32>, tensor<?xf32>
    }
"""


def _parsed(text: str) -> ModuleOp:
    return IRParser(text).parse_module()


def test_loops_have_subgraphs_of_their_own(run_tflite: Any) -> None:
    content = export(_parsed(LOOPS_OF_ONE_BODY)).to_bytes()
    values = [np.int32(3), np.array([1, 2], np.float32), np.array([1, 2, 3], np.float32)]
    x, y = run_tflite(content, values)
    np.testing.assert_array_equal(x, [8, 16])
    np.testing.assert_array_equal(y, [8, 16, 24])


def test_a_loop_in_itself_is_an_error() -> None:
    text = """
    func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = "tfl.while"(%x) <{cond = @cond, body = @main}> : (tensor<f32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    func.func private @cond(%x: tensor<f32>) -> tensor<i1> {
      %0 = "tfl.pseudo_const"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
      func.return %0 : tensor<i1>
    }
    """
    with pytest.raises(ConversionError, match="calls itself"):
        export(_parsed(text))


def _seen_by_another(f: Any, state: Any) -> Any:
    f.op("neg", [state], (1, 4))
    return state


@pytest.mark.parametrize(
    ("shape", "make"),
    [
        # The initial state of a sequence is a constant, an argument, used elsewhere, or in memory that doesn't grow.
        (1, lambda f, zero: f.constant(np.zeros((1, 4), np.float32))),
        (1, lambda f, zero: f.args[1]),
        (1, lambda f, zero: _seen_by_another(f, f.op("cast", [f.args[1]], (1, 4), UNCHANGED))),
        (-1, lambda f, zero: f.op("cast", [f.args[1]], (-1, 4), UNCHANGED)),
        (-1, lambda f, zero: f.op("fill", [f.args[2], zero], (-1, 4))),
    ],
)
def test_a_state_that_is_not_its_operators_own_is_refused(modules: Any, shape: int, make: Any) -> None:
    def body(f: Any) -> Any:
        weights = [f.constant(floats(*dims)) for dims in ((4, 3), (4, 4), (4,))]
        state = make(f, f.constant(np.float32(0)))
        return [f.op("unidirectional_sequence_rnn", [f.args[0], *weights, state], (shape, 2, 4), at="layer")]

    inputs = [tensor(shape, 2, 3), tensor(shape, 4), tensor(2, element=types.I32)]
    with pytest.raises(ConversionError, match=r"layer.*not a tensor of its own"):
        export(modules().function("main", inputs, body).module)
