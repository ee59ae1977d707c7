"""MetaGraphs beside checkpoints, as TensorFlow 1's Saver leaves them, and damaged ones."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tfconvert
from tests.importers import v1_models
from tests.importers.v1_models import Saved
from tests.support.litert import RunTFLite
from tfconvert.converter.executor import executor
from tfconvert.importers.meta_graph import find_meta_graph, import_meta_graph
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.selection import Selection


@pytest.fixture(scope="module")
def dense(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    return v1_models.save(tf, tmp_path_factory.mktemp("dense"), v1_models.dense)


def meta(saved: Saved) -> Path:
    return saved.prefix.with_name(saved.prefix.name + ".meta")


def argument_count(module: ModuleOp) -> int:
    (main,) = (op for op in module.ops if isinstance(op, FuncOp) and op.sym_name == "main")
    return len(main.body.block.args)


@pytest.mark.parametrize("build", [v1_models.dense, v1_models.choice, v1_models.recurrent])
def test_a_model_gives_what_tensorflow_gives(
    tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite, build: Callable[..., object]
) -> None:
    saved = v1_models.save(tf, tmp_path, build)  # type: ignore[arg-type]
    model = tfconvert.convert(meta(saved), inputs=list(saved.inputs), outputs=list(saved.outputs))
    for got, wanted in zip(run_tflite(bytes(model), list(saved.inputs.values())), saved.outputs.values(), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


@pytest.mark.parametrize("build", [v1_models.counter, v1_models.written_in_a_branch])
def test_variables_that_are_written_are_written_in_order(
    tf: ModuleType, tmp_path: Path, build: Callable[..., object]
) -> None:
    saved = v1_models.save(tf, tmp_path, build)  # type: ignore[arg-type]
    module = import_meta_graph(meta(saved), Selection(inputs=list(saved.inputs), outputs=list(saved.outputs)))
    verify(module)
    got = executor.run(module, "main", list(saved.inputs.values()))
    for result, wanted in zip(got, saved.outputs.values(), strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_only_inputs_that_outputs_need_are_inputs(dense: Saved) -> None:
    assert argument_count(import_meta_graph(meta(dense), Selection(outputs=["scores"]))) == 1
    assert argument_count(import_meta_graph(meta(dense), Selection(outputs=["loss"]))) == 2


def test_a_placeholder_with_a_default_is_fed_if_named(dense: Saved) -> None:
    assert argument_count(import_meta_graph(meta(dense), Selection(inputs=["x", "keep"], outputs=["scores"]))) == 2


def test_a_checkpoint_is_known_by_any_of_its_files(dense: Saved) -> None:
    prefix = str(dense.prefix)
    for name in (prefix, f"{prefix}.meta", f"{prefix}.index", f"{prefix}.data-00000-of-00001", dense.prefix.parent):
        assert find_meta_graph(Path(name)) == meta(dense)
    assert find_meta_graph(dense.prefix.parent / "other") is None


def test_a_graph_by_itself_uses_the_newest_checkpoint(dense: Saved, tmp_path: Path) -> None:
    folder = tmp_path / "moved"
    shutil.copytree(dense.prefix.parent, folder)
    (folder / meta(dense).name).rename(folder / "graph.meta")
    assert "global_tensor" in str(import_meta_graph(folder / "graph.meta", Selection(outputs=["scores"])))


def name_checkpoint(folder: Path, prefix: Path | str) -> None:
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "{prefix}"\n')


@pytest.mark.parametrize("form", ["absolute", "relative", "link"])
def test_no_checkpoint_outside_of_the_folder_is_read(dense: Saved, tmp_path: Path, form: str) -> None:
    theirs = dense.prefix
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link").symlink_to(theirs.parent)
    shutil.copy(meta(dense), folder / "graph.meta")
    named = {"absolute": theirs, "relative": Path(os.path.relpath(theirs, folder)), "link": Path("link", theirs.name)}
    name_checkpoint(folder, named[form])
    with pytest.raises(ConversionError) as caught:
        find_meta_graph(folder)
    assert caught.value.code == "outside-model"
    assert ".meta" in caught.value.diagnostics[0].hint
    with pytest.raises(ConversionError) as caught:
        import_meta_graph(folder / "graph.meta", Selection(outputs=["scores"]))
    assert caught.value.code == "no-checkpoint"


def test_a_checkpoint_that_was_moved_is_read_where_it_is_now(dense: Saved, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(dense.prefix.parent, folder)
    for named in (dense.prefix, Path("/elsewhere", dense.prefix.name), folder / dense.prefix.name):
        name_checkpoint(folder, named)
        assert find_meta_graph(folder) == folder / meta(dense).name
    name_checkpoint(folder, "/")
    assert find_meta_graph(folder) is None


def test_text_is_the_same_as_binary(dense: Saved, tmp_path: Path) -> None:
    graph = pb.MetaGraphDef.FromString(meta(dense).read_bytes())
    folder = tmp_path / "text"
    shutil.copytree(dense.prefix.parent, folder)
    (folder / meta(dense).name).write_text(text_format.MessageToString(graph))
    textual = import_meta_graph(folder / meta(dense).name, Selection(outputs=["scores"]))
    assert str(textual) == str(import_meta_graph(meta(dense), Selection(outputs=["scores"])))


def test_signatures_are_exported(dense: Saved, tmp_path: Path) -> None:
    graph = pb.MetaGraphDef.FromString(meta(dense).read_bytes())
    signature = graph.signature_def["predict"]
    signature.inputs["image"].name, signature.inputs["image"].dtype = "x:0", pb.DT_FLOAT
    signature.inputs["image"].tensor_shape.dim.extend([pb.TensorShapeProto.Dim(size=size) for size in (-1, 4)])
    signature.outputs["scores"].name, signature.outputs["scores"].dtype = "scores:0", pb.DT_FLOAT
    shutil.copytree(dense.prefix.parent, tmp_path / "signed")
    path = tmp_path / "signed" / meta(dense).name
    path.write_bytes(graph.SerializeToString())
    assert 'exported_names = ["predict"]' in str(import_meta_graph(path))
    assert "exported_names" not in str(import_meta_graph(path, Selection(outputs=["loss"])))
    with pytest.raises(ConversionError, match="no signature 'train'"):
        import_meta_graph(path, Selection(signatures=["train"]))


def test_outputs_must_be_named_where_they_are_not_clear(dense: Saved) -> None:
    with pytest.raises(ConversionError) as caught:
        import_meta_graph(meta(dense))
    assert caught.value.code == "no-outputs"
    assert "--output" in caught.value.diagnostics[0].hint


def test_the_output_is_clear_where_nothing_else_is_unused(tf: ModuleType, tmp_path: Path) -> None:
    saved = v1_models.save(tf, tmp_path, v1_models.choice)
    assert 'outputs = "y"' in str(import_meta_graph(meta(saved)))


def test_without_its_checkpoint_a_graph_reports_the_missing_variables(dense: Saved, tmp_path: Path) -> None:
    path = shutil.copy(meta(dense), tmp_path / "alone.meta")
    with pytest.raises(ConversionError) as caught:
        import_meta_graph(path, Selection(outputs=["scores"]))
    assert caught.value.code == "no-checkpoint"
    assert {problem.node for problem in caught.value.diagnostics} == {"b", "w/part_0", "w/part_1"}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 1 << 20), value=st.integers(0, 255))
def test_damaged_bytes_never_crash(dense: Saved, position: int, value: int) -> None:
    data = bytearray(meta(dense).read_bytes())
    data[position % len(data)] = value
    path = dense.prefix.with_name("damaged.meta")
    path.write_bytes(bytes(data))
    with suppress(ConversionError):
        verify(import_meta_graph(path, Selection(outputs=["scores"])))


@pytest.mark.parametrize(
    "content", [b"", b"\0\1\2", b"graph_def {", b"graph_def { node { attr { key: 'a' value { " * 999]
)
def test_invalid_meta_graphs_are_reported(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.meta"
    path.write_bytes(content)
    with pytest.raises(ConversionError) as caught:
        import_meta_graph(path)
    assert caught.value.code == "not-a-meta-graph"
