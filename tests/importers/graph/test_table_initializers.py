"""Table initializers: which of an init op's nodes are imported, and which files are an asset."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tfconvert.importers.saved_model import import_saved_model
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_saved_model import SessionInitializerOp
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.selection import Selection


@pytest.fixture
def model(tf: ModuleType, tmp_path: Path) -> Path:
    """Returns the folder of a SavedModel with two tables, one for each signature; the first is of a file."""
    words = tmp_path / "words.txt"
    words.write_text("a\nb\n")
    index = tf.lookup.TextFileIndex
    initializers = (
        tf.lookup.TextFileInitializer(str(words), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER),
        tf.lookup.KeyValueTensorInitializer(["c"], tf.constant([1], tf.int64)),
    )
    module = tf.Module()
    module.tables = [tf.lookup.StaticHashTable(each, -1) for each in initializers]

    def finder(number: int) -> Any:
        find = tf.function(lambda x: {"y": module.tables[number].lookup(x)})
        return find.get_concrete_function(tf.TensorSpec([None], tf.string, "x"))

    folder = tmp_path / "model"
    tf.saved_model.save(module, str(folder), signatures={"of_file": finder(0), "of_constants": finder(1)})
    return folder


@pytest.mark.parametrize("signature", ["of_file", "of_constants"])
def test_only_tables_that_a_signature_uses_are_filled(model: Path, signature: str) -> None:
    ops = list(import_saved_model(model, Selection(signatures=[signature])).ops)
    assert sum(isinstance(op, SessionInitializerOp) for op in ops) == 1
    (initializer,) = (op for op in ops if isinstance(op, FuncOp) and op.sym_name == "__saved_model_init_op")
    assert sum(op.name == "tf.StatefulPartitionedCall" for op in initializer.walk()) == 1


@pytest.mark.parametrize("name", ["../../words.txt", "/etc/passwd", "a\0b", ""])
def test_no_file_outside_of_the_assets_is_read(model: Path, name: str) -> None:
    file = model / "saved_model.pb"
    saved = pb.SavedModel.FromString(file.read_bytes())
    saved.meta_graphs[0].asset_file_def[0].filename = name
    file.write_bytes(saved.SerializeToString())
    with pytest.raises(ConversionError) as caught:
        import_saved_model(model)
    assert caught.value.code == "bad-asset"


def test_a_folder_of_assets_is_not_a_link_out_of_the_model(model: Path) -> None:
    outside = model.with_name("outside")
    (model / "assets").rename(outside)
    (model / "assets").symlink_to(outside)
    with pytest.raises(ConversionError, match="leads out of the model's directory") as caught:
        import_saved_model(model)
    assert caught.value.code == "bad-asset"
    (model / "assets").unlink()
    outside.rename(model / "inside")
    (model / "assets").symlink_to("inside")
    import_saved_model(model)


def test_a_circle_of_links_is_not_an_asset(model: Path) -> None:
    (asset,) = (model / "assets").iterdir()
    asset.unlink()
    asset.symlink_to(asset.name)
    with pytest.raises(ConversionError) as caught:
        import_saved_model(model)
    assert caught.value.code == "bad-asset"
