"""The pass `check-gpu`: which operators it notes, and for which files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import tfconvert
from benchmarks.accelerator_probe.__main__ import trials
from tests.converter.targets.litert.optimize.graph import Graph
from tests.support.litert import RunTFLite
from tfconvert.converter.targets.litert.accelerator_check import check
from tfconvert.converter.targets.litert.passes.check_gpu import CODE, CheckGpu
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.dialects import types
from tfconvert.schema.tflite.accelerators.acceptance import CRASHES, WRONG, verdict
from tfconvert.schema.tflite.accelerators.forms import CallForm, conditions

# Operators of each kind: elementwise with a constant, weighted, moved, ranked.
_SAMPLED = ("MUL", "GREATER", "FULLY_CONNECTED", "CONV_2D", "PAD", "PACK", "SOFTMAX", "ARG_MAX", "TRANSPOSE_CONV")


def _classes(*sizes: int, before: Sequence[str] = ()) -> Graph:
    graph = Graph(*((1, size) for size in sizes))
    axis = np.array(1, np.int32)
    found = []
    for x in graph.inputs:
        for name in before:
            x = graph.op(name, x)
        found.append(graph.op("arg_max", x, axis, shape=(1,), element=types.I32, output_type="INT32"))
    graph.returns(*found)
    return graph


def _notes(graph: Graph, accelerators: Sequence[str] = ()) -> list[str]:
    return [note.message for note in CheckGpu(accelerators).apply(graph.module).notes]


def test_what_the_gpu_computes_wrongly_is_noted() -> None:
    (message,) = _notes(_classes(10))
    assert "ARG_MAX at arg_max may be computed wrongly" in message
    assert "no multiple of 4" in message


def test_a_form_that_is_right_is_not() -> None:
    assert not _notes(_classes(8))


def test_a_file_for_accelerators_has_a_verdict_instead() -> None:
    assert not _notes(_classes(10), ["gpu"])


def test_three_operators_are_named() -> None:
    (message,) = _notes(_classes(10, 11, 13, 14, 15))
    assert message.count("ARG_MAX") == 3
    assert message.endswith("; and 2 more")


def test_what_the_cpu_computes_is_right() -> None:
    """The GPU takes one part of a graph, the largest: not the class if an operator before it is refused."""
    assert not _notes(_classes(10, before=["tanh", "tanh", "log_softmax"]))


def test_a_conversion_notes_it(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(
        """
        func.func @main(%x: tensor<1x10xf32>) -> tensor<1xi32> {
          %0 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
          %1 = "tf.ArgMax"(%x, %0) : (tensor<1x10xf32>, tensor<i32>) -> tensor<1xi32>
          func.return %1 : tensor<1xi32>
        }"""
    )
    assert [note.code for note in tfconvert.convert(path).report.notes] == [CODE]
    model = tfconvert.convert(path, target=tfconvert.LiteRT(accelerator=["gpu"]))
    assert not model.report.notes
    assert model.report.acceptances[0].is_whole


def test_no_form_of_the_table_is_silent(tmp_path: Path) -> None:
    """Every form that the probe found wrong is written in another form, noted, or left to the CPU by the GPU."""
    spoilt = [trial for trial in trials() if trial.operator in _SAMPLED]
    seen: set[object] = set()
    for trial in spoilt:
        file, call = trial.build()
        form = CallForm(trial.operator, call)
        key = trial.operator, form.signature, conditions(form)
        if key in seen or verdict("gpu", trial.operator, call).outcome not in (WRONG, CRASHES):
            continue
        seen.add(key)
        path = tmp_path / "form.tflite"
        path.write_bytes(file)
        try:
            model = tfconvert.convert(path)
        except tfconvert.ConversionError:
            continue  # The runtime doesn't accept these operands either.
        module = import_tflite(bytes(model))
        wrong = [each for each in check(module, "gpu").obstacles if each.outcome in (WRONG, CRASHES)]
        noted = CODE in [note.code for note in model.report.notes]
        assert noted == any(not each.is_left for each in wrong), (trial, wrong)
    assert len(seen) > 20


@pytest.mark.parametrize(("axis", "shift"), [(1, 2), (2, 3), (3, 1), (2, -1)])
def test_a_rotation_is_right_on_gpus(axis: int, shift: int, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(
        f"""
        func.func @main(%x: tensor<1x8x8x3xf32>) -> tensor<1x8x8x3xf32> {{
          %s = "tf.Const"() <{{value = dense<{shift}> : tensor<i32>}}> : () -> tensor<i32>
          %a = "tf.Const"() <{{value = dense<{axis}> : tensor<i32>}}> : () -> tensor<i32>
          %0 = "tf.Roll"(%x, %s, %a) : (tensor<1x8x8x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x3xf32>
          func.return %0 : tensor<1x8x8x3xf32>
        }}"""
    )
    for accelerator in ((), ("gpu",)):
        model = tfconvert.convert(path, target=tfconvert.LiteRT(accelerator=accelerator))
        assert not model.report.notes
        assert check(import_tflite(bytes(model)), "gpu").is_whole
        assert "GATHER" not in model.report.operators or not accelerator  # Browsers don't load it.


_TURNED = [*range(19, -1, -1), *range(40), *range(39, 19, -1)]
_APART = [number * 7 % 40 for number in range(40)]


@pytest.mark.parametrize(
    ("axis", "shape", "places", "stays"),
    [
        (1, (1, 40, 6), _TURNED, False),
        (3, (1, 3, 2, 40), _TURNED, False),
        (2, (1, 3, 40, 2), [*_TURNED[:30], 39, 0], False),
        (1, (1, 40, 6), _APART, True),
    ],
)
def test_a_choice_of_places_in_reverse_is_no_gather(
    axis: int, shape: tuple[int, ...], places: list[int], stays: bool, tmp_path: Path, run_tflite: RunTFLite
) -> None:
    """Browsers don't load a GATHER of constant places on GPUs."""
    after = (*shape[:axis], len(places), *shape[axis + 1 :])
    before, result = ("x".join(map(str, each)) for each in (shape, after))
    path = tmp_path / "model.mlir"
    path.write_text(
        f"""
        func.func @main(%x: tensor<{before}xf32>) -> tensor<{result}xf32> {{
          %p = "tf.Const"() <{{value = dense<{places}> : tensor<{len(places)}xi32>}}> : () -> tensor<{len(places)}xi32>
          %a = "tf.Const"() <{{value = dense<{axis}> : tensor<i32>}}> : () -> tensor<i32>
          %0 = "tf.GatherV2"(%x, %p, %a)
            : (tensor<{before}xf32>, tensor<{len(places)}xi32>, tensor<i32>) -> tensor<{result}xf32>
          func.return %0 : tensor<{result}xf32>
        }}"""
    )
    model = tfconvert.convert(path, target=tfconvert.LiteRT(accelerator=["gpu"]))
    assert ("GATHER" in model.report.operators) == stays
    assert model.report.acceptances[0].is_whole
    x = np.random.default_rng(0).random(shape, np.float32)
    np.testing.assert_array_equal(run_tflite(bytes(model), [x])[0], x.take(places, axis))


@pytest.mark.parametrize("mode", ["SYMMETRIC", "REFLECT"])
@pytest.mark.parametrize("border", [1, 7, 19])
def test_a_mirrored_border_is_no_gather(mode: str, border: int, tmp_path: Path, run_tflite: RunTFLite) -> None:
    path, size = tmp_path / "model.mlir", 20 + 2 * border
    path.write_text(
        f"""
        func.func @main(%x: tensor<1x20x20x3xf32>) -> tensor<1x{size}x{size}x3xf32> {{
          %p = "tf.Const"() <{{value = dense<[[0, 0], [{border}, {border}], [{border}, {border}], [0, 0]]>
            : tensor<4x2xi32>}}> : () -> tensor<4x2xi32>
          %0 = "tf.MirrorPad"(%x, %p) <{{mode = "{mode}"}}>
            : (tensor<1x20x20x3xf32>, tensor<4x2xi32>) -> tensor<1x{size}x{size}x3xf32>
          func.return %0 : tensor<1x{size}x{size}x3xf32>
        }}"""
    )
    model = tfconvert.convert(path, target=tfconvert.LiteRT(accelerator=["gpu"]))
    assert "GATHER" not in model.report.operators
    assert model.report.acceptances[0].is_whole
    x = np.random.default_rng(0).random((1, 20, 20, 3), np.float32)
    pads = [(0, 0), (border, border), (border, border), (0, 0)]
    np.testing.assert_array_equal(run_tflite(bytes(model), [x])[0], np.pad(x, pads, mode.lower()))  # type: ignore[call-overload]
