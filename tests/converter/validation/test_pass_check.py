"""Translation validation: what a pass may change and what it may not, and the report when nothing could be run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.run_text import parse
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.passes.initialize_state import InitializeState
from tfconvert.converter.targets.litert.recurrent.operators import Operators
from tfconvert.converter.validation.pass_check import check
from tfconvert.schema.diagnostics import ConversionError

HANDLE = "tensor<!tf_type.resource<tensor<2xf32>>>"


def binary(op: str, kind: str = "tensor<?x3xf32>") -> str:
    return f"""
    func.func @main(%x: {kind}, %y: {kind}) -> {kind} {{
      %0 = "tf.{op}"(%x, %y) : ({kind}, {kind}) -> {kind}
      func.return %0 : {kind}
    }}
    """


def variable(amount: str) -> str:
    """A function that adds to a variable and returns nothing of it."""
    return f"""
    "tf_saved_model.global_tensor"() <{{sym_name = "v", type = tensor<2xf32>, is_mutable,
      value = dense<[1.0, 2.0]> : tensor<2xf32>}}> : () -> ()
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %v = "tf.VarHandleOp"() <{{container = "", shared_name = "v"}}> : () -> {HANDLE}
      "tf.AssignAddVariableOp"(%v, {amount}) : ({HANDLE}, tensor<2xf32>) -> ()
      func.return %x : tensor<2xf32>
    }}
    """


PASSED_ON = f"func.func @main(%x: {HANDLE}) -> {HANDLE} {{ func.return %x : {HANDLE} }}"


def changed(before: str, after: str) -> str:
    """Returns what is said of a pass that changes results."""
    with pytest.raises(ConversionError) as caught:
        check(parse(before), parse(after), "some-pass")
    assert caught.value.code == "pass-changed-results"
    message = caught.value.diagnostics[0].message
    assert message.startswith("pass some-pass has changed what function 'main' computes: ")
    return message


def notes(before: str, after: str) -> list[str]:
    found = check(parse(before), parse(after), "some-pass")
    assert {(one.code, one.severity) for one in found} <= {("function-not-checked", "note")}
    return [one.message for one in found]


def test_a_pass_that_keeps_results_is_fine() -> None:
    before = binary("AddV2")
    after = before.replace("(%x, %y)", "(%y, %x)")
    assert after != before
    assert notes(before, after) == []


@pytest.mark.parametrize("kind", ["tensor<?x3xf32>", "tensor<4xi32>", "tensor<?xbf16>", "tensor<3xui8>"])
def test_a_pass_that_changes_results_is_named(kind: str) -> None:
    message = changed(binary("Maximum", kind), binary("Minimum", kind))
    assert "result 0 differs" in message


def test_text_and_truth_are_compared() -> None:
    text = """
    func.func @main(%x: tensor<?x!tf_type.string>, %y: tensor<?x!tf_type.string>) -> tensor<?xi1> {
      %0 = "tf.Equal"(%x, %y) <{incompatible_shape_error = true}>
        : (tensor<?x!tf_type.string>, tensor<?x!tf_type.string>) -> tensor<?xi1>
      func.return %0 : tensor<?xi1>
    }
    """
    assert notes(text, text) == []
    changed(text, text.replace("(%x, %y)", "(%x, %x)"))


def test_effects_are_compared() -> None:
    assert notes(variable("%x"), variable("%x")) == []
    text = variable("%x")
    lost = text.replace(text[text.index('"tf.AssignAdd') : text.index("func.return")], "")
    assert "variable 'v' is no longer assigned" in changed(text, lost)
    twice = '"tf.AssignAddVariableOp"(%v, %x)'
    line = f"{twice} : ({HANDLE}, tensor<2xf32>) -> ()\n"
    assert "variable 'v' differs" in changed(text, text.replace("func.return", line + "func.return"))


def test_a_function_that_no_longer_runs_is_an_error() -> None:
    kind = "tensor<2x3xf32>"
    broken = binary("AddV2", kind).replace(
        "func.return", f'%1 = "tf.MatMul"(%x, %y) : ({kind}, {kind}) -> {kind}\n func.return'
    )
    assert "it no longer runs" in changed(binary("AddV2", kind), broken)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (binary("Frobnicate"), binary("Frobnicate"), "tf.Frobnicate: the op has no reference kernel"),
        (binary("AddV2"), "func.func private @main()", "the pass has removed or renamed it"),
        (binary("MatMul", "tensor<2x?xf32>"), binary("MatMul", "tensor<2x?xf32>"), "random inputs don't suit it"),
        (PASSED_ON, PASSED_ON, "no random value exists for a handle"),
    ],
)
def test_programs_that_cannot_run_are_reported(before: str, after: str, reason: str) -> None:
    (message,) = notes(before, after)
    assert reason in message


TFL = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "tfl.neg"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}
"""
TF = TFL.replace("tfl.neg", "tf.Neg")


def test_legalized_modules_run_in_litert() -> None:
    assert notes(TF, TFL) == []
    assert notes(TFL, TFL) == []
    assert "result 0 differs" in changed(TF, TFL.replace("tfl.neg", "tfl.abs"))


TABLE = "tensor<7x3xf32>"
LOOKED_UP = f"""
func.func @main(%table: {TABLE}, %ids: tensor<2xi32>) -> tensor<2x3xf32> {{
  %axis = "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
  %0 = "tf.Neg"(%table) : ({TABLE}) -> {TABLE}
  %1 = "tf.GatherV2"(%0, %ids, %axis) : ({TABLE}, tensor<2xi32>, tensor<i32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}}
"""
OPERATOR = LOOKED_UP.replace('"tf.GatherV2"(%0, %ids, %axis)', '"tfl.embedding_lookup"(%ids, %0)').replace(
    f"({TABLE}, tensor<2xi32>, tensor<i32>)", f"(tensor<2xi32>, {TABLE})"
)


def test_operators_among_tensorflows_ops_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "Interpreter", None)
    assert notes(LOOKED_UP, OPERATOR) == []
    assert notes(OPERATOR, OPERATOR) == []
    assert "result 0 differs" in changed(LOOKED_UP, OPERATOR.replace("%ids, %0", "%ids, %table"))


def test_inputs_that_an_operator_rejects_are_no_error() -> None:
    lookup, rows = OPERATOR.replace("7x3", "1x3"), LOOKED_UP.replace("7x3", "1x3")
    clamped = """%zero = "tf.Sub"(%ids, %ids) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>"""
    before = rows.replace("%axis =", f"{clamped}\n %axis =").replace("%0, %ids", "%0, %zero")
    (message,) = notes(before, lookup)
    assert "an id is not within the table's 1 rows" in message


def test_a_module_with_an_operator_that_has_no_kernel_is_not_run() -> None:
    both = TFL.replace("func.return", '%1 = "tf.Neg"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n func.return')
    assert notes(TF, both) == []
    (message,) = notes(TF, both.replace("tfl.neg", "tfl.densify"))
    assert message.endswith("tfl.densify: the op has no reference kernel")


def test_initialization_is_no_change_of_a_variable() -> None:
    before = variable("%x")
    after = parse(before)
    InitializeState().apply(after)
    assert check(parse(before), after, "initialize-state") == []
    other = str(after).replace("2.000000e+00", "3.000000e+00")
    assert other != str(after)
    assert "variable 'v' differs" in changed(before, other)


def test_a_missing_runtime_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "Interpreter", None)
    with pytest.raises(ConversionError) as caught:
        check(parse(TF), parse(TFL), "some-pass")
    assert caught.value.code == "litert-missing"
    assert "tfconvert[verify]" in caught.value.diagnostics[0].hint


Layer = Callable[[Any], Any]

# Layers of Keras's two generations, and the passes that make operators of them.
LAYERS: Mapping[str, tuple[str, Layer, str]] = {
    "keras lstm": ("keras", lambda layers: layers.LSTM(4), "fuse-recurrent-loops"),
    "keras simple rnn, unrolled": ("keras", lambda layers: layers.SimpleRNN(4, unroll=True), "fuse-unrolled-layers"),
    "tf_keras lstm": ("tf_keras", lambda layers: layers.LSTM(4), "prepare-composite-functions"),
}


@pytest.fixture(scope="module")
def saved(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns a function that saves one of the layers and returns the folder."""
    folder = tmp_path_factory.mktemp("layers")

    @cache
    def save(name: str) -> Path:
        package, make, _ = LAYERS[name]
        holder = tf.Module()
        layer = holder.layer = make(pytest.importorskip(package).layers)
        specs = [tf.TensorSpec([None, 6, 3], tf.float32, "x")]
        concrete = tf.function(lambda x: {"y": layer(x)}, input_signature=specs).get_concrete_function()
        tf.saved_model.save(holder, str(folder / name), signatures=concrete)
        return folder / name

    return save


@pytest.mark.parametrize("name", LAYERS)
def test_recurrent_layers_are_run_before_and_after_all_passes(name: str, saved: Callable[[str], Path]) -> None:
    report = tfconvert.convert(saved(name), check_passes=True).report
    assert report.rewrites[LAYERS[name][2]].total() == 1
    assert not [note for note in report.notes if note.code == "function-not-checked"]


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_that_is_fused_wrongly_is_found(
    name: str, saved: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Operators, "_bias", lambda self, total: self._insert.constant(np.ones(total.width, np.float32)))
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(saved(name), check_passes=True)
    assert caught.value.code == "pass-changed-results"
    assert caught.value.diagnostics[0].message.startswith(f"pass {LAYERS[name][2]} has changed")
