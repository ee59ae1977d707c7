"""The pass `unroll-loops`: recurrent layers as their steps, in both of LiteRT's interfaces, and what stays a loop."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tests.converter.targets.litert.recurrent.loops import (
    FEATURES,
    UNITS,
    Block,
    joined,
    loop,
    lstm_loop,
    rnn,
    rnn_loop,
    separate,
    stacked,
)
from tests.support.litert import RunTFLite, run_compiled
from tests.support.run_text import run_text
from tfconvert.cli.main import main
from tfconvert.converter.targets.litert.passes import unroll_loops
from tfconvert.converter.targets.litert.recurrent.replacement import KEPT

Array = np.ndarray[Any, np.dtype[Any]]

_RNG = np.random.default_rng(3)


def _convert(folder: Path, source: str, **settings: Any) -> tfconvert.Model:
    path = folder / "model.mlir"
    path.write_text(source)
    return tfconvert.convert(path, **settings, target=tfconvert.LiteRT(recurrent="unrolled"))


def _inputs(*shapes: tuple[int, ...]) -> list[Array]:
    return [_RNG.normal(size=shape).astype(np.float32) for shape in shapes]


def _masked(block: Block, x: str, states: list[str]) -> list[str]:
    """A simple RNN that keeps its state where a step's first feature is negative, and collects zeros there."""
    new = rnn(block, x, states[0])
    first = block.op("Slice", (x, block.constant([0, 0], "i32"), block.constant([-1, 1], "i32")), "tensor<2x1xf32>")
    is_step = block.op("GreaterEqual", (first, block.constant(0.0)), "tensor<2x1xi1>")
    kept = block.op("SelectV2", (is_step, new, states[0]), block.kinds[new])
    return [kept, block.op("SelectV2", (is_step, new, block.constant(0.0)), block.kinds[new])]


SIZES = {0: (4, 2, FEATURES), 1: (2, 4, FEATURES)}
STATE = (2, UNITS)
LAYERS = {
    "lstm": (lstm_loop(results=(0, 1, 2)), 2),
    "lstm, batch first": (lstm_loop(axis=1, results=(0, 1)), 2),
    "lstm of joined weights": (lstm_loop(sums=joined), 2),
    "lstm of separate weights": (lstm_loop(sums=separate, results=(2,)), 2),
    "lstm with peepholes and a projection": (lstm_loop(looks=True, projects=True), 2),
    "simple rnn": (rnn_loop(results=(1, 0)), 1),
    "stacked": (loop(stacked, 3), 3),
    "masked": (loop(_masked, 1, results=(0, 1)), 1),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_become_their_steps(name: str, run_tflite: RunTFLite, tmp_path: Path) -> None:
    source, states = LAYERS[name]
    model = _convert(tmp_path, source)
    assert not model.report.notes
    assert not {"WHILE", "DYNAMIC_UPDATE_SLICE", "GATHER", "STRIDED_SLICE"} & model.report.operators.keys()
    inputs = _inputs(SIZES[int("batch first" in name)], *[STATE] * states)
    wanted = run_text(source, inputs)
    for found in (run_tflite(bytes(model), inputs), run_compiled(bytes(model), inputs, wanted)):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_the_products_with_the_inputs_are_one(tmp_path: Path) -> None:
    operators = _convert(tmp_path, rnn_loop(time=8)).report.operators
    assert operators["FULLY_CONNECTED"] == 1 + 8
    assert operators["UNPACK"] == 1
    assert operators["ADD"] == 8, "the bias is in the product, too"
    gates = _convert(tmp_path, lstm_loop(sums=separate, time=8)).report.operators
    assert gates["FULLY_CONNECTED"] == 4 + 4 * 8


def test_an_open_batch_stays_open(run_tflite: RunTFLite, tmp_path: Path) -> None:
    source = lstm_loop(batch=-1, results=(0, 2))
    model = _convert(tmp_path, source)
    assert "WHILE" not in model.report.operators
    for batch in (1, 3):
        inputs = _inputs((4, batch, FEATURES), (batch, UNITS), (batch, UNITS))
        wanted = run_text(source, inputs)
        for found in (run_tflite(bytes(model), inputs), run_compiled(bytes(model), inputs, wanted)):
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("time", "settings", "reason"),
    [
        (65, {}, "it has 65 steps, more than 64"),
        (-1, {}, "its number of steps isn't known"),
        (64, {"limits": tfconvert.Limits(operations=500)}, "its 64 steps would be more operations than the limit"),
    ],
    ids=["long", "open", "limited"],
)
def test_a_loop_that_stays_is_reported(
    time: int, settings: dict[str, Any], reason: str, run_tflite: RunTFLite, tmp_path: Path
) -> None:
    source = rnn_loop(time=time)
    model = _convert(tmp_path, source, **settings)
    assert model.report.operators["WHILE"] == 1
    (note,) = [each for each in model.report.notes if each.code == KEPT]
    assert reason in note.message
    assert ("--input-shape" in note.hint) is (time < 0)
    inputs = _inputs((7 if time < 0 else time, 2, FEATURES), STATE)
    np.testing.assert_allclose(run_tflite(bytes(model), inputs)[0], run_text(source, inputs)[0], rtol=1e-5, atol=1e-6)


def test_64_steps_are_unrolled(run_tflite: RunTFLite, tmp_path: Path) -> None:
    source = rnn_loop(time=64)
    model = _convert(tmp_path, source)
    assert "WHILE" not in model.report.operators
    inputs = _inputs((64, 2, FEATURES), STATE)
    np.testing.assert_allclose(run_tflite(bytes(model), inputs)[0], run_text(source, inputs)[0], rtol=1e-5, atol=1e-6)


def test_a_shape_fixes_the_number_of_steps(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> None:
    weights = _RNG.normal(size=(3, 3)).astype(np.float32)
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 2, 3], "x")
        rows = tf.scan(lambda h, row: tf.tanh(row @ weights + h), x, tf.zeros([2, 3]))
        tf.identity(rows, "y")
        (tmp_path / "model.pb").write_bytes(graph.as_graph_def().SerializeToString())
    target = tmp_path / "model.tflite"
    arguments = [str(tmp_path / "model.pb"), "-o", str(target), "--output", "y", "--recurrent", "unrolled", "--json"]
    report = json.loads(CliRunner().invoke(main, arguments).stdout)
    assert report["operators"]["WHILE"] == 1
    assert [note["hint"] for note in report["notes"] if note["code"] == KEPT]
    fixed = json.loads(CliRunner().invoke(main, [*arguments, "--input-shape", "x=5,2,3"]).stdout)
    assert not {"WHILE", "DYNAMIC_UPDATE_SLICE"} & fixed["operators"].keys()
    assert not fixed["notes"]
    (given,) = _inputs((5, 2, 3))
    h, wanted = np.zeros((2, 3), np.float32), []
    for row in given:
        h = np.tanh(row @ weights + h)
        wanted.append(h)
    for found in (run_tflite(target.read_bytes(), [given]), run_compiled(target.read_bytes(), [given], [given])):
        np.testing.assert_allclose(found[0], np.stack(wanted), rtol=1e-5, atol=1e-6)


def test_unrolled_layers_are_not_fused(tmp_path: Path) -> None:
    after = (unroll_loops.__doc__ or "").rpartition("After:")[2]
    model = _convert(tmp_path, after)
    assert set(model.report.operators) == {"FULLY_CONNECTED", "UNPACK", "ADD", "TANH", "PACK"}


def test_integers(run_tflite: RunTFLite, tmp_path: Path) -> None:
    source = lstm_loop(time=6)
    samples = [_inputs((6, 2, FEATURES), STATE, STATE) for _ in range(8)]
    model = _convert(tmp_path, source, quantize=tfconvert.Quantize("int8", samples=samples))
    assert not {"WHILE", "UNIDIRECTIONAL_SEQUENCE_LSTM"} & model.report.operators.keys()
    wanted = run_text(source, samples[0])
    for found in (run_tflite(bytes(model), samples[0]), run_compiled(bytes(model), samples[0], wanted)):
        error = np.abs(found[0] - wanted[0]).max() / np.abs(wanted[0]).max()
        assert error < 0.06


# The loop writes steps in the order that it reads them; these texts differ in one thing from that.
ROWS = """
func.func @main(%x: tensor<3x2xf32>) -> RESULT {
  %zero = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
  %one = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
  %two = "tf.Const"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
  %out = "tf.Const"() <{value = dense<9.0> : tensor<3x2xf32>}> : () -> tensor<3x2xf32>
  %axes = "tf.Const"() <{value = dense<[1, 0]> : tensor<2xi32>}> : () -> tensor<2xi32>
  %first = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
  %p0 = "tf.Const"() <{value = dense<[0, 0]> : tensor<2xi32>}> : () -> tensor<2xi32>
  %p1 = "tf.Const"() <{value = dense<[1, 0]> : tensor<2xi32>}> : () -> tensor<2xi32>
  %p2 = "tf.Const"() <{value = dense<[2, 0]> : tensor<2xi32>}> : () -> tensor<2xi32>
  %r0 = "tf.GatherV2"(%x, %zero, %zero) : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<2xf32>
  %r1 = "tf.GatherV2"(%x, %one, %zero) : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<2xf32>
  %e0 = "tf.Exp"(%r0) : (tensor<2xf32>) -> tensor<2xf32>
  %e1 = "tf.Neg"(%r1) : (tensor<2xf32>) -> tensor<2xf32>
  %w0 = "tf.ExpandDims"(%e0, %zero) : (tensor<2xf32>, tensor<i32>) -> tensor<1x2xf32>
  %w1 = "tf.ExpandDims"(%e1, %zero) : (tensor<2xf32>, tensor<i32>) -> tensor<1x2xf32>
  %w2 = "tf.Const"() <{value = dense<5.0> : tensor<1x2xf32>}> : () -> tensor<1x2xf32>
  %a = "tf.XlaDynamicUpdateSlice"(%out, %w0, FIRST)
      : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<2xi32>) -> tensor<3x2xf32>
  %b = "tf.XlaDynamicUpdateSlice"(%a, %w1, %p1)
      : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<2xi32>) -> tensor<3x2xf32>
  %c = "tf.XlaDynamicUpdateSlice"(%b, %w2, THIRD)
      : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<2xi32>) -> tensor<3x2xf32>
  RETURN
}
"""
_WHOLE = ("tensor<3x2xf32>", "func.return %c : tensor<3x2xf32>")
_SWAPPED = (
    "tensor<2x3xf32>",
    """
  %t = "tf.Transpose"(%c, %axes) : (tensor<3x2xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  func.return %t : tensor<2x3xf32>
""",
)
_REVERSED = (
    "tensor<3x2xf32>",
    """
  %t = "tf.ReverseV2"(%c, %first) : (tensor<3x2xf32>, tensor<1xi32>) -> tensor<3x2xf32>
  func.return %t : tensor<3x2xf32>
""",
)
_READ_AGAIN = (
    "tensor<2xf32>",
    """
  %t = "tf.ReverseV2"(%c, %first) : (tensor<3x2xf32>, tensor<1xi32>) -> tensor<3x2xf32>
  %u = "tf.GatherV2"(%t, %one, %zero) : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<2xf32>
  func.return %u : tensor<2xf32>
""",
)


@pytest.mark.parametrize(
    ("places", "ending", "packs", "updates"),
    [
        (("%p0", "%p2"), _WHOLE, 1, 0),
        (("%p2", "%p0"), _WHOLE, 1, 0),
        (("%p0", "%p2"), _SWAPPED, 1, 0),
        (("%p0", "%p2"), _REVERSED, 1, 0),
        (("%p0", "%p2"), _READ_AGAIN, 0, 0),
        (("%p0", "%p1"), _WHOLE, 0, 3),
        (("%p1", "%p2"), _SWAPPED, 0, 3),
    ],
    ids=["all", "backwards", "batch first", "reversed", "read again", "last one missing", "first one missing"],
)
def test_rows_that_are_written_one_by_one(
    places: tuple[str, str], ending: tuple[str, str], packs: int, updates: int, run_tflite: RunTFLite, tmp_path: Path
) -> None:
    kind, returned = ending
    source = ROWS.replace("FIRST", places[0]).replace("THIRD", places[1])
    source = source.replace("RESULT", kind).replace("RETURN", returned)
    model = _convert(tmp_path, source)
    operators = model.report.operators
    assert (operators["PACK"], operators["DYNAMIC_UPDATE_SLICE"]) == (packs, updates)
    assert not {"REVERSE_V2", "GATHER"} & operators.keys() or updates
    inputs = _inputs((3, 2))
    np.testing.assert_allclose(run_tflite(bytes(model), inputs)[0], run_text(source, inputs)[0], rtol=1e-6)


def test_only_equal_products_are_one(run_tflite: RunTFLite, tmp_path: Path) -> None:

    body = Block(x="tensor<3x1x2xf32>", w="tensor<2x2xf32>")
    rows = [
        body.op("GatherV2", ("%x", body.constant(step, "i32"), body.constant(0, "i32")), "tensor<1x2xf32>")
        for step in range(3)
    ]
    same, other = body.weights(2, 2), body.weights(2, 2)
    unequal = [body.product(row, same if step else other, 2) for step, row in enumerate(rows)]
    computed = [body.product(row, "%w", 2) for row in rows]
    results = [*unequal, *computed]
    kinds = ", ".join(body.kinds[value] for value in results)
    lines = "\n".join(body.lines)
    source = f"""func.func @main(%x: tensor<3x1x2xf32>, %w: tensor<2x2xf32>) -> ({kinds}) {{
        {lines}
        func.return {", ".join(results)} : {kinds}
    }}"""
    model = _convert(tmp_path, source)
    assert model.report.operators["FULLY_CONNECTED"] + model.report.operators["BATCH_MATMUL"] == 6
    inputs = _inputs((3, 1, 2), (2, 2))
    for one, wanted in zip(run_tflite(bytes(model), inputs), run_text(source, inputs), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-6)


def test_rows_of_rows(run_tflite: RunTFLite, tmp_path: Path) -> None:
    """A sequence may be a row of another one, which is also split."""
    body = Block(x="tensor<2x3x2xf32>")
    first, results = body.constant(0, "i32"), []
    for index in range(2):
        place = body.constant(index, "i32")
        row = body.op("GatherV2", ("%x", place, first), "tensor<3x2xf32>")
        inner = [body.op("GatherV2", (row, body.constant(step, "i32"), first), "tensor<2xf32>") for step in (2, 0, 1)]
        results += [body.unary("Exp", value) for value in inner]
    kinds = ", ".join(body.kinds[value] for value in results)
    lines = "\n".join(body.lines)
    source = f"""func.func @main(%x: tensor<2x3x2xf32>) -> ({kinds}) {{
        {lines}
        func.return {", ".join(results)} : {kinds}
    }}"""
    model = _convert(tmp_path, source)
    assert dict(model.report.operators) == {"EXP": 6, "UNPACK": 3}
    inputs = _inputs((2, 3, 2))
    for one, wanted in zip(run_tflite(bytes(model), inputs), run_text(source, inputs), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-6)
