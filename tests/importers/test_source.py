"""Models in memory are converted as those on the disk are; options of one kind are rejected by the others."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support import sample_models
from tests.support.sample_models import traced
from tfconvert.importers.source import Source
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


@pytest.fixture
def graph() -> pb.GraphDef:
    """Returns a GraphDef that computes y = -x."""
    graph = pb.GraphDef(versions=pb.VersionDef(producer=1882))
    x = graph.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = pb.DT_FLOAT
    x.attr["shape"].shape.dim.add(size=2)
    graph.node.add(name="y", op="Neg", input=["x"]).attr["T"].type = pb.DT_FLOAT
    return graph


@pytest.fixture
def message(digits_model: Path) -> pb.SavedModel:
    """Returns the example's SavedModel in memory."""
    return pb.SavedModel.FromString((digits_model / "saved_model.pb").read_bytes())


def _checkpoint(folder: Path) -> Path:
    return folder / "variables" / "variables"


def _code(source: Source) -> str:
    with pytest.raises(ConversionError) as caught:
        source.open()
    return caught.value.code


def test_a_graph_in_memory_is_that_on_the_disk(graph: pb.GraphDef, tmp_path: Path) -> None:
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.SerializeToString())
    before = graph.SerializeToString(deterministic=True)
    model = tfconvert.convert(graph, inputs=["x"], outputs=["y"])
    assert bytes(model) == bytes(tfconvert.convert(path, inputs=["x"], outputs=["y"]))
    assert model.report.source == "a GraphDef message"
    assert graph.SerializeToString(deterministic=True) == before


def test_a_saved_model_in_memory_is_that_on_the_disk(message: pb.SavedModel, digits_model: Path) -> None:
    before = message.SerializeToString(deterministic=True)
    model = tfconvert.convert(tfconvert.Source(message, checkpoint=_checkpoint(digits_model)))
    assert bytes(model) == bytes(tfconvert.convert(digits_model))
    assert repr(model).startswith("<tfconvert.Model of a SavedModel message: ")
    assert message.SerializeToString(deterministic=True) == before


def test_a_result_of_a_message_can_be_verified(message: pb.SavedModel, digits_model: Path) -> None:
    model = tfconvert.convert(
        tfconvert.Source(message, checkpoint=_checkpoint(digits_model)), signatures=["serve"], verify=True
    )
    assert model.report.verification


def test_nothing_is_read_for_a_model_without_variables(tf: ModuleType, tmp_path: Path) -> None:
    folder = sample_models.save(tf, sample_models.passes_through, tmp_path / "model")
    message = pb.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    wanted = bytes(tfconvert.convert(folder))
    for file in [path for path in folder.rglob("*") if path.is_file()]:
        file.unlink()
    assert bytes(tfconvert.convert(message)) == wanted


def test_variables_without_a_checkpoint_are_named(message: pb.SavedModel) -> None:
    with pytest.raises(ConversionError) as caught:
        Source(message).open()
    assert {one.code for one in caught.value.diagnostics} == {"no-checkpoint"}
    for one in caught.value.diagnostics:
        assert one.op == "tf.VarHandleOp"
        assert one.node
        assert "checkpoint=" in one.hint
    assert len(caught.value.diagnostics) > 1


def test_a_checkpoint_that_is_not_there_is_reported(message: pb.SavedModel, tmp_path: Path) -> None:
    assert _code(Source(message, checkpoint=tmp_path / "nowhere")) != "no-checkpoint"


def test_messages_of_tensorflow_are_taken_too(tf: ModuleType, digits_model: Path, graph: pb.GraphDef) -> None:
    theirs = tf.compat.v1.GraphDef.FromString(graph.SerializeToString())
    assert bytes(tfconvert.convert(theirs)) == bytes(tfconvert.convert(graph))


def test_files_that_fill_tables_are_missed(tf: ModuleType, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("a\nb\n")

    def build(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
        module = tf.Module()
        fill = tf.lookup.TextFileInitializer(
            str(words), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        )
        module.table = tf.lookup.StaticHashTable(fill, -1)

        @traced(tf, tf.TensorSpec([2], tf.string, name="x"))
        def call(x: Any) -> Any:
            return module.table.lookup(x)

        module.call = call
        return module, {"serving_default": call}

    folder = sample_models.save(tf, build, tmp_path / "model")
    message = pb.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    assert _code(Source(message)) == "missing-asset"
    verify(Source(folder).open())


@pytest.mark.parametrize("settings", [{"signatures": ["a"]}, {"tags": ["serve"]}, {"checkpoint": "a"}])
def test_a_graph_takes_no_settings_of_saved_models(graph: pb.GraphDef, settings: dict[str, Any]) -> None:
    assert _code(Source(graph, **settings)) == "wrong-option"


def test_a_folder_has_its_own_checkpoint(digits_model: Path) -> None:
    assert _code(Source(digits_model, checkpoint="a")) == "wrong-option"


@pytest.mark.parametrize("model", [None, 7, b"model.pb", np.zeros(3), pb.NodeDef(name="x")])
def test_invalid_model_arguments_are_reported(model: Any) -> None:
    assert _code(Source(model)) == "unknown-format"


@pytest.mark.parametrize(("model", "code"), [(pb.GraphDef(), "not-a-graph-def"), (pb.SavedModel(), "unknown-tags")])
def test_empty_messages_are_reported(model: pb.GraphDef | pb.SavedModel, code: str) -> None:
    assert _code(Source(model)) == code


def test_bytes_of_a_file_are_told_how_to_run() -> None:
    with pytest.raises(ConversionError, match=r"tfconvert\.load") as caught:
        tfconvert.convert(b"\x1c\0\0\0TFL3")
    assert caught.value.code == "unknown-format"
