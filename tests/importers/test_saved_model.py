"""SavedModels of both kinds, as TensorFlow writes them, and damaged ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from google.protobuf import text_format

from tfconvert.importers.saved_model import import_saved_model
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.tf_saved_model import GlobalTensorOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.selection import Selection

WEIGHT = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def v2_model(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a model with two signatures, a weight that both read, and two variables of one name."""

    class Net(tf.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf.Variable(WEIGHT, name="v")
            self.bias = tf.Variable(np.ones(4, np.float32), name="v")

        @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])  # type: ignore[untyped-decorator]
        def dense(self, x: object) -> dict[str, object]:
            return {"scores": tf.matmul(x, self.weight) + self.bias}

        @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x"), tf.TensorSpec([], name="a")])  # type: ignore[untyped-decorator]
        def scaled(self, x: object, a: object) -> dict[str, object]:
            return {"scaled": tf.matmul(x, self.weight) * a, "a": a}

    folder = tmp_path_factory.mktemp("v2") / "model"
    net = Net()
    tf.saved_model.save(net, str(folder), signatures={"dense": net.dense, "again": net.dense, "scaled": net.scaled})
    return folder


@pytest.fixture(scope="module")
def v1_model(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a TensorFlow 1 model: no object graph, values found through the restore op; two graphs by tags."""
    folder = tmp_path_factory.mktemp("v1") / "model"
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3], "x")
        weight = v1.get_variable("w", initializer=WEIGHT, use_resource=True)
        y = tf.matmul(x, weight, name="y")
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.builder.SavedModelBuilder(str(folder))
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.add_meta_graph(["serve", "gpu"], {"serving_default": signature})
        builder.save()
    return folder


def functions(module: ModuleOp) -> dict[str, FuncOp]:
    return functions_of(module)


def test_each_signature_is_exported_and_same_ones_share(v2_model: Path) -> None:
    module = import_saved_model(v2_model)
    verify(module)
    public = {name for name, op in functions(module).items() if op.sym_visibility is None}
    assert public == {"again", "scaled"}
    text = str(module)
    assert 'tf_saved_model.exported_names = ["again", "dense"]' in text
    assert 'tf_saved_model.index_path = ["x"]' in text
    assert 'tf_saved_model.index_path = ["scores"]' in text


def test_variables_of_one_name_are_distinguished(v2_model: Path) -> None:
    module = import_saved_model(v2_model, Selection(signatures=["dense"]))
    tensors = [op for op in module.ops if isinstance(op, GlobalTensorOp)]
    values = {op.properties["type"].__str__(): tensor_data.to_array(op.properties["value"]) for op in tensors}
    np.testing.assert_array_equal(values["tensor<3x4xf32>"], WEIGHT)
    np.testing.assert_array_equal(values["tensor<4xf32>"], np.ones(4))
    assert len({op.sym_name for op in tensors}) == 2


def test_only_what_a_signature_needs_is_imported(v2_model: Path) -> None:
    module = import_saved_model(v2_model, Selection(signatures=["scaled"]))
    assert len([op for op in module.ops if isinstance(op, GlobalTensorOp)]) == 1
    assert not any("save" in name or "restore" in name for name in functions(module))


def test_version_1_variables_come_from_the_restore_op(v1_model: Path) -> None:
    module = import_saved_model(v1_model)
    (tensor,) = [op for op in module.ops if isinstance(op, GlobalTensorOp)]
    np.testing.assert_array_equal(tensor_data.to_array(tensor.properties["value"]), WEIGHT)


def test_tags_choose_the_graph(v1_model: Path) -> None:
    assert functions(import_saved_model(v1_model, Selection(tags=["serve", "gpu"])))
    with pytest.raises(ConversionError) as caught:
        import_saved_model(v1_model, Selection(tags=["tpu"]))
    assert caught.value.code == "unknown-tags"
    assert "serve,gpu" in caught.value.diagnostics[0].hint or "gpu,serve" in caught.value.diagnostics[0].hint


def test_input_shapes_pin_unknown_dimensions(v2_model: Path) -> None:
    module = import_saved_model(v2_model, Selection(signatures=["dense"], input_shapes={"x": [5, -1]}))
    assert str(functions(module)["dense"].body.block.args[0].type) == "tensor<5x3xf32>"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"signatures": ["nope"]}, "unknown-signature"),
        ({"input_shapes": {"nope": [1]}}, "unknown-input"),
        ({"input_shapes": {"x": [1, 4]}}, "shape-mismatch"),
        ({"input_shapes": {"x": [1]}}, "shape-mismatch"),
    ],
)
def test_wrong_arguments_are_named(v2_model: Path, arguments: dict[str, object], code: str) -> None:
    with pytest.raises(ConversionError) as caught:
        import_saved_model(v2_model, Selection(**arguments))  # type: ignore[arg-type]
    assert caught.value.code == code
    assert caught.value.diagnostics[0].hint


def test_text_and_binary_are_the_same(v2_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(v2_model, folder)
    binary = folder / "saved_model.pb"
    saved_model = pb.SavedModel.FromString(binary.read_bytes())
    (folder / "saved_model.pbtxt").write_text(text_format.MessageToString(saved_model))
    binary.unlink()
    assert str(import_saved_model(folder)) == str(import_saved_model(v2_model))


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _edit(change: Callable[[pb.MetaGraphDef], None]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        file = folder / "saved_model.pb"
        saved_model = pb.SavedModel.FromString(file.read_bytes())
        change(saved_model.meta_graphs[0])
        file.write_bytes(saved_model.SerializeToString())

    return edit


def _shapes_of_variables(graph: pb.MetaGraphDef) -> None:
    for node in graph.graph_def.node:
        if node.op == "VarHandleOp":
            node.attr["shape"].shape.dim.add().size = 7


def _no_functions(graph: pb.MetaGraphDef) -> None:
    del graph.graph_def.library.function[:]


def _no_nodes(graph: pb.MetaGraphDef) -> None:
    del graph.graph_def.node[:]


def _no_children(graph: pb.MetaGraphDef) -> None:
    for node in graph.object_graph_def.nodes:
        del node.children[:]


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (shutil.rmtree, "model-not-found"),
    "no graph": (lambda folder: (folder / "saved_model.pb").unlink(), "not-a-saved-model"),
    "truncated graph": (lambda folder: _truncate(folder / "saved_model.pb"), "damaged-saved-model"),
    "empty graph": (lambda folder: (folder / "saved_model.pb").write_bytes(b""), "damaged-saved-model"),
    "no index": (lambda folder: (folder / "variables" / "variables.index").unlink(), "missing-index"),
    "truncated index": (lambda folder: _truncate(folder / "variables" / "variables.index"), "bad-index"),
    "no shard": (lambda folder: (folder / "variables" / "variables.data-00000-of-00001").unlink(), "missing-shard"),
    "truncated shard": (
        lambda folder: _truncate(folder / "variables" / "variables.data-00000-of-00001"),
        "truncated-shard",
    ),
    "other shapes": (_edit(_shapes_of_variables), "variable-mismatch"),
    "no functions": (_edit(_no_functions), "missing-function"),
    "no nodes": (_edit(_no_nodes), "bad-signature"),
    "untracked": (_edit(_no_children), "untracked-variable"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_one_clear_error(v2_model: Path, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(v2_model, folder)
    apply, code = DAMAGES[damage]
    apply(folder)
    with pytest.raises(ConversionError) as caught:
        import_saved_model(folder, Selection(signatures=["dense"]))
    assert caught.value.code == code
