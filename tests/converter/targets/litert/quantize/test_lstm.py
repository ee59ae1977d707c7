"""Integer LSTMs: conditions, operators and results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import OpResolverType

import tfconvert
from benchmarks.kernel_probe import child
from benchmarks.kernel_probe.child import Job
from tests.converter.pass_texts import FileCheck
from tests.converter.targets.litert.layers import run_all, zeros
from tests.converter.targets.litert.optimize.graph import Graph, random
from tfconvert.converter.targets.litert.passes.quantize import QuantizeOps
from tfconvert.converter.targets.litert.passes.separate_state import SeparateState
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.ir.values import Value

FEATURES, UNITS, TIME = 5, 8, 6

LAYER = """
    func.func @main(%x: tensor<1x3x2xf32>) -> tensor<1x3x4xf32> attributes {tfl.ranges = array<f32: -1.0, 1.0>} {
      %w = "tfl.pseudo_const"() <{value = dense<1.27> : tensor<4x2xf32>}> : () -> tensor<4x2xf32>
      %r = "tfl.pseudo_const"() <{value = dense<0.127> : tensor<4x4xf32>}> : () -> tensor<4x4xf32>
      %b = "tfl.pseudo_const"() <{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<4xf32>
      %n = "tfl.no_value"() : () -> none
      %z = "tfl.pseudo_const"() <{value = dense<ZERO> : tensor<2x1x4xf32>}> : () -> tensor<2x1x4xf32>
      %s:2 = "tfl.unpack"(%z) <{num = 2 : i32, axis = 0 : i32}> {tfl.ranges = array<f32: -1.0, 1.0, CELL>}
          : (tensor<2x1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
      %y = "tfl.unidirectional_sequence_lstm"(%x, %w, %w, %w, %w, %r, %r, %r, %r, %n, %n, %n, %b, %b, %b, %b, %n, %n,
          %s#0, %s#1, %n, %n, %n, %n)
          <{fused_activation_function = "TANH", cell_clip = 0.0 : f32, proj_clip = 0.0 : f32, time_major = false}>
          {tfl.ranges = array<f32: -0.9, 0.95>}
          : (tensor<1x3x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x4xf32>,
             tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, none, none, none, tensor<4xf32>, tensor<4xf32>,
             tensor<4xf32>, tensor<4xf32>, none, none, tensor<1x4xf32>, tensor<1x4xf32>, none, none, none, none)
          -> tensor<1x3x4xf32>
      func.return %y : tensor<1x3x4xf32>
    }
"""

FLOAT = """
    // CHECK: tfl.unidirectional_sequence_lstm
    // CHECK-NOT: quant.uniform
"""


def _layer(cell: str = "-3.0, 2.0", zero: str = "0.0") -> str:
    return LAYER.replace("CELL", cell).replace("ZERO", zero)


def test_weights_and_states_become_integers(filecheck: FileCheck) -> None:
    output, cell = "!quant.uniform<i8:f32, 0.007254902:-4>", "!quant.uniform<i16:f32, 0.00048828125>"
    gates = ", ".join(["{tensor = tensor<0xf32>}"] * 4)
    text = f"""
    // CHECK: "tfl.quantize"(%x)
    // CHECK-NOT: tfl.unpack
    // CHECK: tfl.pseudo_qconst{{{{.*}}}}tensor<4x2x!quant.uniform<i8:f32, 0.01>>
    // CHECK: tfl.pseudo_qconst{{{{.*}}}}!quant.uniform<i32:f32, 7.8431374e-05>
    // CHECK: [[H:%[0-9a-z_]+]] = "tfl.pseudo_qconst"() <{{{{.*}}}}dense<-4>{{{{.*}}}} -> tensor<1x4x{output}>
    // CHECK: [[C:%[0-9a-z_]+]] = "tfl.pseudo_qconst"() <{{{{.*}}}}dense<0>{{{{.*}}}} -> tensor<1x4x{cell}>
    // CHECK: "tfl.unidirectional_sequence_lstm"({{{{.*}}}}[[H]], [[C]],
    // CHECK-SAME: tfl.intermediates = [{gates}, {{tensor = tensor<0x{output}>}}]
    // CHECK: "tfl.dequantize"
    """
    filecheck(QuantizeOps(), _layer() + text)


@pytest.mark.parametrize(
    ("cell", "scale"), [("-0.1, 0.1", "0.00048828125"), ("-16.5, 1.0", "0.0009765625"), ("0.0, 63.9", "0.001953125")]
)
def test_the_scale_of_the_cell_state_is_a_power_of_two(filecheck: FileCheck, cell: str, scale: str) -> None:
    filecheck(QuantizeOps(), _layer(cell) + f"// CHECK: tensor<1x4x!quant.uniform<i16:f32, {scale}>>")


def test_a_cell_state_that_was_not_seen_or_is_too_large_stays_float(filecheck: FileCheck) -> None:
    filecheck(QuantizeOps(), _layer("-65.0, 1.0") + FLOAT)
    filecheck(QuantizeOps(), _layer("nan, nan").replace("nan", "0x7FC00000") + FLOAT)


def test_a_state_that_does_not_begin_with_zeros_stays_float(filecheck: FileCheck) -> None:
    filecheck(QuantizeOps(), _layer(zero="0.5") + FLOAT)


def test_one_operator_creates_equal_states_of_integers(filecheck: FileCheck) -> None:
    state = "tensor<1x4x!quant.uniform<i8:f32, 0.5:-4>>"
    layer = f"""
      %y = "tfl.unidirectional_sequence_rnn"(%x, %w, %r, %b, %h) : (tensor<1x3x2xf32>, tensor<4x2xf32>,
          tensor<4x4xf32>, tensor<4xf32>, {state}) -> tensor<1x3x4xf32>"""
    text = f"""
    func.func @main(%x: tensor<1x3x2xf32>, %w: tensor<4x2xf32>, %r: tensor<4x4xf32>, %b: tensor<4xf32>)
        -> (tensor<1x3x4xf32>, tensor<1x3x4xf32>) {{
      %h = "tfl.pseudo_qconst"() <{{qtype = {state}, value = dense<-4> : tensor<1x4xi8>}}> : () -> {state}
      %g = "tfl.pseudo_qconst"() <{{qtype = {state}, value = dense<-4> : tensor<1x4xi8>}}> : () -> {state}
      {layer}{layer.replace("%y", "%z").replace("%h", "%g")}
      func.return %y, %z : tensor<1x3x4xf32>, tensor<1x3x4xf32>
    }}
    // CHECK: [[BOTH:%[0-9a-z_]+]] = "tfl.pseudo_qconst"() <{{{{.*}}}} tensor<2x1x4x!quant.uniform<i8:f32, 0.5:-4>>
    // CHECK-NEXT: [[H:%[0-9a-z_]+]], [[G:%[0-9a-z_]+]] = "tfl.unpack"([[BOTH]])
    // CHECK: "tfl.unidirectional_sequence_rnn"(%x, %w, %r, %b, [[H]])
    // CHECK: "tfl.unidirectional_sequence_rnn"(%x, %w, %r, %b, [[G]])
    """
    filecheck(SeparateState(), text)


def _lstm(
    graph: Graph,
    x: Value,
    *states: Value | float,
    seed: int = 0,
    absent: tuple[int, ...] = (),
    peepholes: bool = False,
    projection: int = 0,
    time_major: bool = False,
    activation: str = "TANH",
    clip: float = 0.0,
    zero_biases: tuple[int, ...] = (),
) -> Value:
    """Adds a layer; `absent` are operands without which it has no input gate of its own.

    The biases of the gates `zero_biases` (input, forget, cell, output) are zeros.
    """
    first, second, features = x.shape or ()
    batch = second if time_major else first
    begin = [] if states else [np.zeros((batch, units), np.float32) for units in (projection or UNITS, UNITS)]
    operands: list[Any] = [random(UNITS, features, seed=seed + k, scale=0.5) for k in range(4)]
    operands += [random(UNITS, projection or UNITS, seed=seed + 4 + k, scale=0.4) for k in range(4)]
    operands += [random(UNITS, seed=seed + 8 + k, scale=0.4) if peepholes else None for k in range(3)]
    operands += [random(UNITS, seed=seed + 11 + k, scale=0.0 if k in zero_biases else 0.3) for k in range(4)]
    operands += [random(projection, UNITS, seed=seed + 15, scale=0.4) if projection else None, None]
    operands = [None if index + 1 in absent else value for index, value in enumerate(operands)]
    return graph.op(
        "unidirectional_sequence_lstm",
        x,
        *operands,
        *(states or begin),
        *[None] * 4,
        shape=(first, second, projection or UNITS),
        fused_activation_function=activation,
        cell_clip=clip,
        proj_clip=0.0,
        time_major=time_major,
    )


Samples = list[list[np.ndarray]]


def _quantized(content: bytes, path: Path, samples: Samples, **settings: Any) -> tfconvert.Model:
    """Quantizes a file; leaves the result at a path."""
    source = path.with_name(f"source_{path.name}")
    source.write_bytes(content)
    model = tfconvert.convert(source, quantize=tfconvert.Quantize("int8", samples=samples, **settings))
    model.save(path)
    return model


RESOLVERS = [{}, {"experimental_op_resolver_type": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES}]


def _compare(graph: Graph, path: Path, inputs: list[np.ndarray], limit: float = 0.03) -> None:
    """Quantizes on inputs, runs each three times, with XNNPACK and without, and compares with floats."""
    samples = [[each] for each in inputs]
    _quantized(graph.content, path, samples, strict=True)
    content = path.read_bytes()
    for options in RESOLVERS:
        wanted = run_all(graph.content, samples, **options)
        for runs, expected in zip(run_all(content, samples, **options), wanted, strict=True):
            for run in runs:
                for result, float_result in zip(run, expected[0], strict=True):
                    assert np.abs(result - float_result).max() <= limit
                np.testing.assert_array_equal(run[0], runs[0][0])


def _inputs(*shape: int, count: int = 4) -> list[np.ndarray]:
    return [random(*shape, seed=seed) for seed in range(count)]


FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "clipped": {"clip": 0.4},
    "no input gate": {"absent": (1, 5, 12)},
    "peepholes": {"peepholes": True},
    "no input gate, peepholes": {"absent": (1, 5, 9, 12), "peepholes": True},
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_the_layer(form: str, tmp_path: Path) -> None:
    graph = Graph((2, TIME, FEATURES))
    graph.returns(_lstm(graph, graph.inputs[0], **FORMS[form]))
    _compare(graph, tmp_path / "m.tflite", _inputs(2, TIME, FEATURES))


@pytest.mark.parametrize("form", [{}, {"absent": (1, 5, 12)}], ids=["four gates", "three"])
@pytest.mark.parametrize("zero_biases", [(0, 1, 2, 3), (0, 2, 3), (1,)])
def test_biases_of_zeros_stay(zero_biases: tuple[int, ...], form: dict[str, Any], tmp_path: Path) -> None:
    """Without the bias of the input gate, LiteRT's process ends; without another, LiteRT refuses the file."""
    graph = Graph((2, TIME, FEATURES))
    graph.returns(_lstm(graph, graph.inputs[0], zero_biases=zero_biases, **form))
    inputs = _inputs(2, TIME, FEATURES)
    path = tmp_path / "m.tflite"
    _quantized(graph.content, path, [[each] for each in inputs], strict=True)
    for has_delegates in (False, True):
        jobs = [Job(content, inputs[:1], has_delegates) for content in (path.read_bytes(), graph.content)]
        answer, expected = child.run(jobs)
        assert answer.problem == expected.problem == ""
        np.testing.assert_allclose(answer.results[0], expected.results[0], atol=0.03)


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("shape", [(1, TIME, FEATURES), (3, 1, FEATURES), (4, 20, FEATURES)])
def test_two_layers(shape: tuple[int, int, int], time_major: bool, tmp_path: Path) -> None:
    batch, time, features = shape
    graph = Graph((time, batch, features) if time_major else shape)
    state = graph.constant(np.zeros((batch, UNITS), np.float32))
    value = graph.inputs[0]
    for seed in (0, 100):
        value = _lstm(graph, value, state, state, seed=seed, time_major=time_major)
    graph.returns(value)
    _compare(graph, tmp_path / "m.tflite", _inputs(*graph.inputs[0].shape or ()))


@pytest.mark.parametrize("time_major", [False, True])
def test_a_batch_of_any_size(time_major: bool, tmp_path: Path) -> None:
    graph = Graph((TIME, -1, FEATURES) if time_major else (-1, TIME, FEATURES))
    x = graph.inputs[0]
    graph.returns(_lstm(graph, x, *[zeros(graph, x, time_major=time_major, units=UNITS)] * 2, time_major=time_major))
    shapes = [(TIME, batch, FEATURES) if time_major else (batch, TIME, FEATURES) for batch in (1, 3, 70, 2)]
    _compare(graph, tmp_path / "m.tflite", [random(*shape) for shape in shapes])


def test_a_state_that_lasts_from_run_to_run_goes_on_lasting(tmp_path: Path) -> None:
    """The runtime begins with the zero point, whatever that is."""
    graph = Graph((1, TIME, FEATURES))
    graph.returns(_lstm(graph, graph.inputs[0]))
    content = _with_variables(graph.content)
    path = tmp_path / "m.tflite"
    # The ranges must include the results of a kept state.
    samples = [[2 * each] for each in _inputs(1, TIME, FEATURES)]
    _quantized(content, path, samples, strict=True)
    samples = [[each / 2] for (each,) in samples]
    runs, expected = (run_all(each, samples[:1])[0] for each in (path.read_bytes(), content))
    assert np.abs(expected[0][0] - expected[1][0]).max() > 0.1
    for run, wanted in zip(runs, expected, strict=True):
        assert np.abs(run[0] - wanted[0]).max() <= 0.03


@pytest.mark.parametrize("layers", [1, 2])
def test_states_can_be_kept(layers: int, tmp_path: Path) -> None:
    graph = Graph((1, TIME, FEATURES))
    state, value = graph.constant(np.zeros((1, UNITS), np.float32)), graph.inputs[0]
    for seed in range(layers):
        value = _lstm(graph, value, state, state, seed=100 * seed)
    graph.returns(value)
    samples = [[2 * each] for each in _inputs(1, TIME, FEATURES)]
    path = tmp_path / "m.tflite"
    model = _quantized(graph.content, path, samples, strict=True, recurrent_state="kept")
    # Nothing creates a state at each run, which compilers for NPUs would leave to the processor.
    assert not {"CAST", "UNPACK"} & model.report.operators.keys()
    first, second, _ = run_all(path.read_bytes(), [[0.5 * samples[0][0]]])[0]
    assert np.abs(first[0] - second[0]).max() > 0.05
    expected = run_all(graph.content, [[0.5 * samples[0][0]]])[0][0]
    assert np.abs(first[0] - expected[0]).max() <= 0.03
    twice = np.concatenate([0.5 * samples[0][0]] * 2, 1)
    longer = Graph((1, 2 * TIME, FEATURES))
    state, value = longer.constant(np.zeros((1, UNITS), np.float32)), longer.inputs[0]
    for seed in range(layers):
        value = _lstm(longer, value, state, state, seed=100 * seed)
    longer.returns(value)
    # Two runs go on as one sequence does.
    assert np.abs(second[0] - run_all(longer.content, [[twice]])[0][0][0][:, TIME:]).max() <= 0.04


def test_a_state_of_an_open_batch_cannot_be_kept(tmp_path: Path) -> None:
    graph = Graph((-1, TIME, FEATURES))
    x = graph.inputs[0]
    graph.returns(_lstm(graph, x, *[zeros(graph, x, units=UNITS)] * 2))
    samples = [[each] for each in _inputs(1, TIME, FEATURES)]
    with pytest.raises(ConversionError, match="its batch is open") as caught:
        _quantized(graph.content, tmp_path / "m.tflite", samples, recurrent_state="kept")
    assert caught.value.code == "variable-shape"


def _with_variables(content: bytes) -> bytes:
    """Returns a model whose states are the runtime's own tensors."""
    from ai_edge_litert import schema_py_generated as schema
    from flatbuffers import Builder

    model = schema.ModelT.InitFromPackedBuf(content, 0)
    graph = model.subgraphs[0]
    graph.operators = [op for op in graph.operators if len(op.inputs) > 20]
    builder = Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "projection": ({"projection": 3}, "is projected"),
    "activation": ({"activation": "RELU"}, "no other activation"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_the_kernel_computes_wrong_stays_float(form: str, tmp_path: Path) -> None:
    options, reason = REFUSED[form]
    graph = Graph((1, TIME, FEATURES))
    graph.returns(_lstm(graph, graph.inputs[0], **options))
    samples = [[each] for each in _inputs(1, TIME, FEATURES)]
    with pytest.raises(ConversionError, match=reason):
        _quantized(graph.content, tmp_path / "m.tflite", samples, strict=True)
    assert "QUANTIZE" not in _quantized(graph.content, tmp_path / "m.tflite", samples).report.operators


def test_a_computed_state_stays_float(tmp_path: Path) -> None:
    graph = Graph((1, TIME, FEATURES), (1, UNITS))
    x, state = graph.inputs
    graph.returns(_lstm(graph, x, state, state))
    samples = [[random(1, TIME, FEATURES), random(1, UNITS)]]
    with pytest.raises(ConversionError, match="does not begin with zeros"):
        _quantized(graph.content, tmp_path / "m.tflite", samples, strict=True)


def test_a_file_with_states_of_its_own_is_read_and_written_again(tmp_path: Path) -> None:
    """The operators that create the states are folded when they are read, and created again."""
    graph = Graph((1, TIME, FEATURES))
    graph.returns(_lstm(graph, graph.inputs[0], projection=3))
    path, samples = tmp_path / "m.tflite", [[random(1, TIME, FEATURES)]]
    (tmp_path / "source.tflite").write_bytes(graph.content)
    tfconvert.convert(tmp_path / "source.tflite").save(path)
    np.testing.assert_array_equal(run_all(path.read_bytes(), samples)[0][2], run_all(graph.content, samples)[0][0])


def test_a_layer_that_stays_float_keeps_its_state(tmp_path: Path) -> None:
    """One operator creates the states of both layers at first."""
    graph = Graph((1, TIME, FEATURES))
    state = graph.constant(np.zeros((1, UNITS), np.float32))
    first = _lstm(graph, graph.inputs[0], state, state)
    graph.returns(_lstm(graph, first, state, state, seed=100, activation="RELU6"))
    samples = [[each] for each in _inputs(1, TIME, FEATURES)]
    (tmp_path / "m.tflite").write_bytes(graph.content)
    quantize = tfconvert.Quantize("int8", samples=samples)
    # The first layer would stay float, too, if only processors were to run it.
    model = tfconvert.convert(tmp_path / "m.tflite", quantize=quantize, target=tfconvert.LiteRT(accelerator=["micro"]))
    assert model.report.operators["DEQUANTIZE"] == 1
    for runs, expected in zip(run_all(bytes(model), samples), run_all(graph.content, samples), strict=True):
        for run in runs:
            assert np.abs(run[0] - expected[0][0]).max() <= 0.03
