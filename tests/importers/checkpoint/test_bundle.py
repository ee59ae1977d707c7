"""The checkpoint reader on what TensorFlow writes, whole and damaged."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfconvert.importers.checkpoint.bundle import OBJECT_GRAPH_KEY, Checkpoint
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.sources import FileSlice

Array = np.ndarray[Any, np.dtype[Any]]

# Tensors of every kind, by checkpoint key.
VALUES: dict[str, Array] = {
    "matrix": np.arange(12_000, dtype=np.float32).reshape(300, 40),
    "double": np.array([1.5, -2.5]),
    "half": np.array(3.5, np.float16),
    "bfloat16": np.array([1, 2, 3], ml_dtypes.bfloat16),
    "bool": np.array([[True], [False]]),
    "int8": np.array([-128, 127], np.int8),
    "int64": np.array(-(2**40)),
    "uint8": np.array([0, 255], np.uint8),
    "complex": np.array([1 + 2j], np.complex64),
    "empty": np.zeros((0, 7), np.float32),
    "string": np.array(b"hello", object),
    "strings": np.array([[b"x", b""], [b"hello" * 100, b"\xff\x00"]], object),
    "no_strings": np.zeros((0,), object),
}

WHOLE = np.arange(60, dtype=np.float32).reshape(10, 6)


def _value(checkpoint: Checkpoint, key: str) -> Array:
    entry = checkpoint.entries()[key]
    row = types.from_number(entry.dtype)
    assert row is not None
    return checkpoint.read(key).array(row.dtype, entry.shape)


def _copy(prefix: Path, folder: Path) -> Path:
    for file in prefix.parent.glob(f"{prefix.name}.*"):
        shutil.copy(file, folder / file.name)
    return folder / prefix.name


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of `VALUES`."""
    import tensorflow as tf

    prefix = tmp_path_factory.mktemp("plain") / "variables"
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(VALUES),
        shape_and_slices=[""] * len(VALUES),
        tensors=[
            tf.constant(value) if value.size else tf.zeros(value.shape, _tf_type(value)) for value in VALUES.values()
        ],
    )
    return prefix


def _tf_type(value: Array) -> str:
    return "string" if value.dtype.kind == "O" else value.dtype.name


@pytest.fixture(scope="module")
def partitioned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of two shards with `WHOLE` in rows, columns, quarters and strings in two parts, over both shards."""
    import tensorflow as tf

    folder = tmp_path_factory.mktemp("partitioned")
    text = np.array([[b"a", b"bb"], [b"", b"cccc"]], object)
    shards: list[list[tuple[str, str, Array]]] = [
        [
            ("rows", "10 6 0,4:-", WHOLE[:4]),
            ("columns", "10 6 -:0,1", WHOLE[:, :1]),
            ("quarters", "10 6 0,5:0,3", WHOLE[:5, :3]),
            ("quarters", "10 6 5,5:3,3", WHOLE[5:, 3:]),
            ("text", "2 2 0,1:-", text[:1]),
            ("first", "", np.array(1)),
        ],
        [
            ("rows", "10 6 4,6:-", WHOLE[4:]),
            ("columns", "10 6 -:1,5", WHOLE[:, 1:]),
            ("quarters", "10 6 5,5:0,3", WHOLE[5:, :3]),
            ("quarters", "10 6 0,5:3,3", WHOLE[:5, 3:]),
            ("text", "2 2 1,1:-", text[1:]),
            ("second", "", np.array(2)),
        ],
    ]
    parts = []
    for number, shard in enumerate(shards):
        names, places, tensors = zip(*shard, strict=True)
        parts.append(str(folder / f"part{number}"))
        tf.raw_ops.SaveV2(prefix=parts[-1], tensor_names=names, shape_and_slices=places, tensors=tensors)
    prefix = folder / "variables"
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=str(prefix), delete_old_dirs=False)
    return prefix


@pytest.mark.parametrize("key", VALUES)
def test_value(plain: Path, key: str) -> None:
    value = _value(Checkpoint(plain), key)
    assert value.shape == VALUES[key].shape
    assert value.dtype == VALUES[key].dtype
    assert np.array_equal(value, VALUES[key])


def test_entries_are_sorted_and_complete(plain: Path) -> None:
    assert list(Checkpoint(str(plain)).entries()) == sorted(VALUES)


def test_numbers_stay_in_the_file(plain: Path) -> None:
    checkpoint = Checkpoint(plain)
    assert isinstance(checkpoint.read("matrix"), FileSlice)


@pytest.mark.parametrize("key", ["rows", "columns", "quarters"])
def test_partitioned_tensor(partitioned: Path, key: str) -> None:
    checkpoint = Checkpoint(partitioned)
    assert len(checkpoint.entries()[key].slices) > 1
    assert np.array_equal(_value(checkpoint, key), WHOLE)


def test_partitioned_strings(partitioned: Path) -> None:
    assert _value(Checkpoint(partitioned), "text").tolist() == [[b"a", b"bb"], [b"", b"cccc"]]


def test_several_shards(partitioned: Path) -> None:
    checkpoint = Checkpoint(partitioned)
    assert {entry.shard_id for entry in checkpoint.entries().values()} == {0, 1}
    assert [_value(checkpoint, key) for key in ("first", "second")] == [1, 2]
    assert list(checkpoint.entries()) == ["columns", "first", "quarters", "rows", "second", "text"]


def test_partitioned_sources_are_distinguished(partitioned: Path) -> None:
    checkpoint = Checkpoint(partitioned)
    keys = ("rows", "columns", "quarters", "rows")
    fingerprints = [checkpoint.read(key).fingerprint() for key in keys]
    assert fingerprints[0] == fingerprints[3]
    assert len(set(fingerprints)) == 3
    source = checkpoint.read("rows")
    source.release()
    assert np.array_equal(source.array(np.dtype(np.float32), WHOLE.shape), WHOLE)


def test_slice_far_from_the_origin(tmp_path: Path) -> None:
    """Starts and lengths of every size have keys of their own length."""
    import tensorflow as tf

    cuts = [0, 1, 63, 64, 127, 128, 8191, 8192, 8200, 16_384, 1_100_000]
    value = np.arange(cuts[-1]) % 251
    value = value.astype(np.uint8)
    parts = list(itertools.pairwise(cuts))
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "x"),
        tensor_names=["long"] * len(parts),
        shape_and_slices=[f"{cuts[-1]} {start},{end - start}" for start, end in parts],
        tensors=[value[start:end] for start, end in parts],
    )
    assert np.array_equal(_value(Checkpoint(tmp_path / "x"), "long"), value)


def test_object_graph(tmp_path: Path) -> None:
    import tensorflow as tf

    tf.train.Checkpoint(weight=tf.Variable([1.0, 2.0])).write(str(tmp_path / "x"))
    checkpoint = Checkpoint(tmp_path / "x")
    graph = checkpoint.object_graph()
    assert graph is not None
    (child,) = (child for child in graph.nodes[0].children if child.local_name == "weight")
    key = graph.nodes[child.node_id].attributes[0].checkpoint_key
    assert _value(checkpoint, key).tolist() == [1, 2]


def test_no_object_graph(plain: Path) -> None:
    assert Checkpoint(plain).object_graph() is None


def test_an_invalid_object_graph(tmp_path: Path) -> None:
    import tensorflow as tf

    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "x"),
        tensor_names=[OBJECT_GRAPH_KEY],
        shape_and_slices=[""],
        tensors=[tf.constant(b"\xff\xff")],
    )
    with pytest.raises(ConversionError) as caught:
        Checkpoint(tmp_path / "x").object_graph()
    assert caught.value.code == "bad-index"


def test_many_variables(tmp_path: Path) -> None:
    """An index of several blocks."""
    import tensorflow as tf

    names = [f"layer_{number:05d}/with/a/rather/long/name/.ATTRIBUTES/VARIABLE_VALUE" for number in range(5000)]
    tensors = [tf.constant(number) for number in range(len(names))]
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "x"), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors
    )
    checkpoint = Checkpoint(tmp_path / "x")
    assert list(checkpoint.entries()) == names
    assert all(_value(checkpoint, name) == number for number, name in enumerate(names))


def _remove(path: Path) -> None:
    path.unlink()


def _halve(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("ending", "damage", "code"),
    [
        (".index", _remove, "missing-index"),
        (".index", _empty, "truncated-index"),
        (".index", _halve, "bad-index"),
        (".index", _flip, "bad-checksum"),
        (".index", _replace_by_folder, "unreadable-file"),
        (".data-00000-of-00001", _remove, "missing-shard"),
        (".data-00000-of-00001", _halve, "truncated-shard"),
        (".data-00000-of-00001", _replace_by_folder, "unreadable-file"),
    ],
)
def test_damage_shows_when_opened(
    plain: Path, tmp_path: Path, ending: str, damage: Callable[[Path], None], code: str
) -> None:
    prefix = _copy(plain, tmp_path)
    damage(prefix.with_name(prefix.name + ending))
    with pytest.raises(ConversionError) as caught:
        Checkpoint(prefix)
    assert caught.value.code == code
    assert prefix.name in str(caught.value)


@pytest.mark.parametrize("key", ["matrix", "string", "strings"])
def test_damaged_data_shows_when_read(plain: Path, tmp_path: Path, key: str) -> None:
    prefix = _copy(plain, tmp_path)
    entry = Checkpoint(prefix).entries()[key]
    shard = prefix.with_name(f"{prefix.name}.data-00000-of-00001")
    data = bytearray(shard.read_bytes())
    data[entry.offset + entry.size - 1] ^= 0x10
    shard.write_bytes(data)
    checkpoint = Checkpoint(prefix)
    with pytest.raises(ConversionError) as caught:
        _value(checkpoint, key)
    assert caught.value.code == "bad-checksum"
    assert repr(key) in str(caught.value)
    assert _value(checkpoint, "half") == 3.5


def test_missing_tensor(plain: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        Checkpoint(plain).read("nothing")
    assert caught.value.code == "missing-tensor"


def test_checkpoint_of_the_old_format(tmp_path: Path) -> None:
    (tmp_path / "model.ckpt").write_bytes(b"old")
    with pytest.raises(ConversionError) as caught:
        Checkpoint(tmp_path / "model.ckpt")
    assert caught.value.code == "missing-index"
    assert "V1" in caught.value.diagnostics[0].hint


def _read_all(prefix: Path) -> dict[str, list[object]]:
    checkpoint = Checkpoint(prefix)
    return {key: _value(checkpoint, key).tolist() for key in checkpoint.entries()}


@pytest.fixture(scope="module")
def fuzzed(partitioned: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the partitioned checkpoint that tests may damage."""
    return _copy(partitioned, tmp_path_factory.mktemp("fuzzed"))


def _check_intact_or_refused(partitioned: Path, fuzzed: Path) -> None:
    """Damage is found, or it hit bytes without a meaning and every tensor is as before."""
    try:
        values = _read_all(fuzzed)
    except ConversionError:
        return
    assert values == _read_all(partitioned)


@settings(max_examples=300)
@given(data=st.data())
def test_flipped_bits_are_found(partitioned: Path, fuzzed: Path, data: st.DataObject) -> None:
    ending = data.draw(st.sampled_from([".index", ".data-00000-of-00002", ".data-00001-of-00002"]))
    content = bytearray(partitioned.with_name(partitioned.name + ending).read_bytes())
    for position in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[position] ^= data.draw(st.integers(1, 255))
    damaged = fuzzed.with_name(fuzzed.name + ending)
    damaged.write_bytes(content)
    _check_intact_or_refused(partitioned, fuzzed)
    _copy(partitioned, fuzzed.parent)


@settings(max_examples=100)
@given(data=st.data())
def test_cut_off_files_are_found(partitioned: Path, fuzzed: Path, data: st.DataObject) -> None:
    ending = data.draw(st.sampled_from([".index", ".data-00000-of-00002", ".data-00001-of-00002"]))
    content = partitioned.with_name(partitioned.name + ending).read_bytes()
    damaged = fuzzed.with_name(fuzzed.name + ending)
    damaged.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(ConversionError):
        _read_all(fuzzed)
    _copy(partitioned, fuzzed.parent)


@settings(max_examples=100)
@given(content=st.binary(max_size=300))
def test_random_bytes_are_no_index(fuzzed: Path, content: bytes) -> None:
    (fuzzed.parent / "random.index").write_bytes(content)
    with pytest.raises(ConversionError):
        Checkpoint(fuzzed.parent / "random")
