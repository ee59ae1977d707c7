"""Models with state as texts of StableHLO: in globals, and with the caller, against TensorFlow."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.stablehlo.engine import Program
from tests.mlir import oracle
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.parsing import IRParser

TABLE = np.arange(6, dtype=np.float32).reshape(3, 2)


def _model(tf: ModuleType) -> Any:
    """Returns a model that changes its variables by themselves, in a loop, in a branch and in part."""

    class Model(tf.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.count = tf.Variable(0.5, name="count")
            self.table = tf.Variable(TABLE, name="table")

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])  # type: ignore[untyped-decorator]
        def add(self, x: Any) -> Any:
            self.count.assign_add(tf.reduce_sum(x))

            def grow(i: Any) -> Any:
                self.table.assign_add(self.table * self.count)
                return i + 1

            tf.while_loop(lambda i: i < 2, grow, (0,))
            if self.count > 3.0:
                self.count.assign(0.25)
            self.table.scatter_add(tf.IndexedSlices(tf.reduce_sum(x, 0)[tf.newaxis], [1]))
            return x + self.count

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="places")])  # type: ignore[untyped-decorator]
        def look(self, places: Any) -> Any:
            return tf.gather(self.table, places)

    return Model()


def test_state_that_the_caller_keeps(tf: ModuleType) -> None:
    model = _model(tf)
    function = model.add.get_concrete_function()
    converted = tfconvert.convert(function, target=tfconvert.StableHLO(state="arguments"))
    (interface,) = converted.report.interfaces
    assert [each.name for each in interface.inputs] == ["x", "count", "table"]
    assert [each.name for each in interface.outputs][1:] == ["count", "table"]
    assert [note.code for note in converted.report.notes if note.code == "state-arguments"]
    program = Program(bytes(converted).decode(), [(tf.float32, (None, 2)), (tf.float32, ()), (tf.float32, (3, 2))])
    state = [np.asarray(0.5, np.float32), TABLE]
    for rows in (2, 3, 1):
        x = np.full((rows, 2), 0.25 * rows, np.float32)
        result, *state = program.run([x, *state])
        np.testing.assert_allclose(result, function(x=tf.constant(x)).numpy(), rtol=1e-5)
        np.testing.assert_allclose(state[0], model.count.numpy(), rtol=1e-5)
        np.testing.assert_allclose(state[1], model.table.numpy(), rtol=1e-5)


def test_signatures_share_globals(tf: ModuleType, tmp_path: Path) -> None:
    model = _model(tf)
    tf.saved_model.save(model, str(tmp_path), signatures={"add": model.add, "look": model.look})
    text = bytes(tfconvert.convert(tmp_path, target="stablehlo")).decode()
    module = IRParser(text).parse_module()
    verify(module)
    names = [op.name for op in module.walk() if op.name.startswith("ml_program.")]
    assert names.count("ml_program.global") == 2
    assert names.count("ml_program.global_load") == 3
    assert names.count("ml_program.global_store") == 2
    assert "func.func @add" in text
    assert "func.func @look" in text
    assert "value = dense<5.000000e-01> : tensor<f32>" in text
    assert oracle.problems({"globals": text}) == {}


def test_only_state_that_a_function_uses_is_its_own(tf: ModuleType, tmp_path: Path) -> None:
    model = _model(tf)
    tf.saved_model.save(model, str(tmp_path), signatures={"add": model.add, "look": model.look})
    converted = tfconvert.convert(tmp_path, target=tfconvert.StableHLO(state="arguments"))
    found = {each.keys: [tensor.name for tensor in each.inputs] for each in converted.report.interfaces}
    assert found == {("add",): ["x", "count", "table"], ("look",): ["places", "table"]}
    look = next(each for each in converted.report.interfaces if each.keys == ("look",))
    assert len(look.outputs) == 1
    assert "ml_program" not in bytes(converted).decode()


VARIABLE = """
%v = "tf.VarHandleOp"() <{container = "", dtype = f32, shape = #tf_type.shape<SHAPE>, shared_name = "v"}>
  : () -> tensor<!tf_type.resource<tensor<HELDf32>>>
"""
INITIALIZED = """
module attributes {tf_saved_model.semantics} {
  "tf_saved_model.session_initializer"() <{initializers = [@first, @second]}> : () -> ()
  func.func @first() attributes {tf_saved_model.exported_names = ["first"]} {
    %n = "tf.Const"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %0 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %1 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %r = "tf.Range"(%0, %n, %1) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3xi32>
    %f = "tf.Cast"(%r) <{Truncate = false}> : (tensor<3xi32>) -> tensor<3xf32>
    HANDLE
    "tf.AssignVariableOp"(%v, %f) : (tensor<!tf_type.resource<tensor<3xf32>>>, tensor<3xf32>) -> ()
    func.return
  }
  func.func @second() attributes {tf_saved_model.exported_names = ["second"]} {
    HANDLE
    %0 = "tf.ReadVariableOp"(%v) : (tensor<!tf_type.resource<tensor<3xf32>>>) -> tensor<3xf32>
    %1 = "tf.Exp"(%0) : (tensor<3xf32>) -> tensor<3xf32>
    "tf.AssignVariableOp"(%v, %1) : (tensor<!tf_type.resource<tensor<3xf32>>>, tensor<3xf32>) -> ()
    func.return
  }
  func.func @serve(%x: tensor<3xf32> {tf_saved_model.index_path = ["x"]})
      -> (tensor<3xf32> {tf_saved_model.index_path = ["y"]})
      attributes {tf_saved_model.exported_names = ["serving_default"]} {
    HANDLE
    %0 = "tf.ReadVariableOp"(%v) : (tensor<!tf_type.resource<tensor<3xf32>>>) -> tensor<3xf32>
    %1 = "tf.AddV2"(%0, %x) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    "tf.AssignVariableOp"(%v, %1) : (tensor<!tf_type.resource<tensor<3xf32>>>, tensor<3xf32>) -> ()
    func.return %1 : tensor<3xf32>
  }
}
""".replace("HANDLE", VARIABLE.replace("SHAPE", "3").replace("HELD", "3x"))


def test_what_initializers_compute_is_a_function(tf: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(INITIALIZED)
    text = bytes(tfconvert.convert(path, target="stablehlo")).decode()
    assert "func.func @initialize() attributes {tfconvert.initializer = true}" in text
    assert "func.func @main(" in text
    assert "@second" not in text
    assert oracle.problems({"globals": text}) == {}
    text = bytes(tfconvert.convert(path, target=tfconvert.StableHLO(state="arguments"))).decode()
    alone = text.replace("@main", "@serve").replace("@initialize", "@main")
    first = np.arange(3, dtype=np.float32)  # the first one assigns a constant
    (state,) = Program(alone, [(tf.float32, (3,))]).run([first])
    np.testing.assert_allclose(state, np.exp(first), rtol=1e-6)


UNKNOWN = """
module attributes {tf_saved_model.semantics} {
  GLOBAL
  func.func @serve(%x: tensor<?xf32>) attributes {tf_saved_model.exported_names = ["serving_default"]} {
    HANDLE
    "tf.AssignVariableOp"(%v, %x) : (tensor<!tf_type.resource<tensor<?xf32>>>, tensor<?xf32>) -> ()
    func.return
  }
}
""".replace("HANDLE", VARIABLE.replace("SHAPE", "?").replace("HELD", "?x"))
OPEN = """"tf_saved_model.global_tensor"() <{
    is_mutable, sym_name = "v", type = tensor<?xf32>, value = dense<0.0> : tensor<3xf32>
  }> : () -> ()"""


@pytest.mark.parametrize(("value", "code"), [("", "unknown-variable"), (OPEN, "variable-shape")])
def test_variables_that_no_text_can_hold_are_told(tmp_path: Path, value: str, code: str) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(UNKNOWN.replace("GLOBAL", value))
    with pytest.raises(tfconvert.ConversionError) as refused:
        tfconvert.convert(path, target="stablehlo")
    assert [each.code for each in refused.value.diagnostics] == [code]


@pytest.mark.parametrize(
    "target", [tfconvert.StableHLO(state="arguments"), tfconvert.StableHLO(weights="arguments"), tfconvert.StableHLO()]
)
def test_verifying_gives_arguments_what_is_beside_the_text(
    tf: ModuleType, tmp_path: Path, target: tfconvert.StableHLO
) -> None:
    model = _model(tf)
    model.weights = tf.Variable(np.arange(512, dtype=np.float32).reshape(2, 256) / 100)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])  # type: ignore[untyped-decorator]
    def run(x: Any) -> Any:
        model.count.assign_add(tf.reduce_sum(x))
        return {"product": tf.matmul(x, model.weights) + model.count, "look": tf.gather(model.table, [2, 0])}

    model.run = run
    tf.saved_model.save(model, str(tmp_path), signatures={"run": run, "look": model.look})
    report = tfconvert.convert(tmp_path, target=target, verify=True).report
    assert {each.signature for each in report.verification} == {"run", "look"}
    assert [each.output for each in report.verification if each.signature == "run"] == ["look", "product"]
    assert max(each.max_absolute for each in report.verification) < 1e-4
