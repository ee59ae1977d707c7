"""Tables made by hand: valid ones that TensorFlow doesn't happen to write, and hostile ones with right checksums."""

from __future__ import annotations

import itertools
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.sstable_writer import MAGIC, block, literal, masked, table, varint
from tfconvert.importers.checkpoint.bundle import Checkpoint, slice_key
from tfconvert.importers.checkpoint.sstable import MalformedError, decompress, read_table, read_varint, unmask
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import types
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

ENTRIES = [(b"", b"header"), (b"abc", b"1"), (b"abcd", b""), (b"b" * 300, b"3" * 1000), (b"\xff", b"4")]


@pytest.mark.parametrize("compressed", [False, True])
def test_table(compressed: bool) -> None:
    assert list(read_table(table(block(ENTRIES), compressed=compressed))) == ENTRIES


def test_table_of_several_blocks() -> None:
    assert list(read_table(table(block(ENTRIES[:2]), block(ENTRIES[2:])))) == ENTRIES


@given(st.dictionaries(st.binary(max_size=20), st.binary(max_size=20), max_size=30), st.booleans())
def test_any_table(entries: dict[bytes, bytes], compressed: bool) -> None:
    ordered = sorted(entries.items())
    assert list(read_table(table(block(ordered), compressed=compressed))) == ordered


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "too short"),
        (bytes(100), "doesn't end"),
        (table(block([(b"b", b""), (b"a", b"")])), "order"),
        (table(block([(b"a", b""), (b"a", b"")])), "order"),
        (table(block(ENTRIES), block(ENTRIES)), "order"),
        (table(b"\x00\x01\x00"), "shorter"),
        (table(b"\xff\xff\xff\x7f"), "shorter"),
        (table(b"\x01\x01\x00a" + bytes(4)), "beyond its block"),
        (table(b"\x00\x7f\x00a" + bytes(4)), "beyond its block"),
        (table(b"\x80\x80\x80" + bytes(4)), "beyond its block"),
        (table(b"\xff" * 12 + bytes(4)), "no end"),
        (table(block([(b"k" * 70_000, b"")])), "too long"),
        (varint(1 << 40) * 4 + bytes(40 - 24) + MAGIC, "beyond the end"),
        (b"\xff" * 40 + MAGIC, "no end"),
    ],
)
def test_malformed_table(data: bytes, message: str) -> None:
    with pytest.raises(MalformedError, match=message):
        list(read_table(data))


def test_keys_that_expand_too_much_are_rejected() -> None:
    """Few bytes an entry could repeat a long key without end."""
    size = 60_000
    first = varint(0) + varint(size) + varint(0) + b"k" * size
    others = (varint(size) + varint(2) + varint(0) + number.to_bytes(2, "big") for number in range(10_000))
    data = table(first + b"".join(others) + bytes(4))
    assert len(data) < 200_000
    with pytest.raises(MalformedError, match="impossible size"):
        for _ in read_table(data):
            pass


def test_unknown_compression() -> None:
    stored = block(ENTRIES) + b"\x07"
    data = stored + masked(stored).to_bytes(4, "little")
    index = block([(b"a", varint(0) + varint(len(stored) - 1))]) + b"\0"
    handle = varint(len(data)) + varint(len(index) - 1)
    data += index + masked(index).to_bytes(4, "little") + (handle + handle).ljust(40, b"\0") + MAGIC
    with pytest.raises(MalformedError, match="unknown compression 7"):
        list(read_table(data))


def test_varint_limits() -> None:
    assert read_varint(varint(2**64 - 1), 0) == (2**64 - 1, 10)
    assert read_varint(memoryview(b"\0" + varint(300)), 1) == (300, 3)
    for data in (b"", b"\x80", b"\x80" * 11, varint(2**64)):
        with pytest.raises(MalformedError):
            read_varint(data, 0)


def test_unmask() -> None:
    assert unmask(masked(b"some bytes")) == google_crc32c.value(b"some bytes")


def _snappy_copy(length: int, offset: int) -> bytes:
    if 4 <= length <= 11 and offset < 2048:
        return bytes([1 | length - 4 << 2 | offset >> 8 << 5, offset & 0xFF])
    if offset < 1 << 16:
        return bytes([2 | length - 1 << 2]) + offset.to_bytes(2, "little")
    return bytes([3 | length - 1 << 2]) + offset.to_bytes(4, "little")


@given(st.data())
def test_snappy(data: st.DataObject) -> None:
    expected = bytearray(data.draw(st.binary(min_size=1, max_size=100)))
    elements = literal(bytes(expected))
    for _ in range(data.draw(st.integers(0, 10))):
        if data.draw(st.booleans()):
            text = data.draw(st.binary(min_size=1, max_size=100))
            elements += literal(text)
            expected += text
        else:
            length, offset = data.draw(st.integers(1, 64)), data.draw(st.integers(1, len(expected)))
            elements += _snappy_copy(length, offset)
            for _ in range(length):
                expected.append(expected[-offset])
    assert decompress(varint(len(expected)) + elements) == expected


def test_snappy_far_copy() -> None:
    text = bytes(range(256)) * 280
    elements = b"".join(literal(text[at : at + 60_000]) for at in range(0, len(text), 60_000))
    packed = varint(len(text) + 5) + elements + _snappy_copy(5, 70_000)
    assert decompress(packed) == text + text[-70_000:][:5]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (varint(1 << 40) + literal(b"a"), "impossible size"),
        (varint(3) + literal(b"ab"), "does not have the size"),
        (varint(1) + literal(b"ab"), "does not have the size"),
        (varint(60) + bytes([59 << 2]) + b"short", "too early"),
        (varint(60) + bytes([60 << 2]), "too early"),
        (varint(8) + literal(b"abcd") + b"\x01", "too early"),
        (varint(8) + literal(b"abcd") + _snappy_copy(4, 5), "before its start"),
        (varint(8) + literal(b"abcd") + _snappy_copy(4, 0), "before its start"),
    ],
)
def test_malformed_snappy(data: bytes, message: str) -> None:
    with pytest.raises(MalformedError, match=message):
        decompress(data)


@given(st.binary(max_size=200))
def test_random_snappy(data: bytes) -> None:
    try:
        assert len(decompress(data)) == read_varint(data, 0)[0]
    except MalformedError:
        return


# Checkpoints with an index made by hand.

DATA = bytes(range(64))
HEADER = pb.BundleHeaderProto(num_shards=1, version=pb.VersionDef(producer=1)).SerializeToString()


def shape(*dims: int) -> pb.TensorShapeProto:
    return pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=dim) for dim in dims])


def place(*extents: tuple[int, int]) -> pb.TensorSliceProto:
    return pb.TensorSliceProto(extent=[pb.TensorSliceProto.Extent(start=s, length=n) for s, n in extents])


def entry(*dims: int, dtype: int = pb.DT_UINT8, offset: int = 0, size: int = 4, shard: int = 0) -> pb.BundleEntryProto:
    crc = masked(DATA[offset : offset + size]) if 0 <= offset < len(DATA) and size >= 0 else 0
    proto = pb.BundleEntryProto(shape=shape(*dims), offset=offset, size=size, shard_id=shard, crc32c=crc)
    proto.dtype = dtype  # type: ignore[assignment]
    return proto


def checkpoint(folder: Path, entries: dict[bytes, pb.BundleEntryProto], header: bytes = HEADER) -> Checkpoint:
    rows = sorted((key, value.SerializeToString()) for key, value in entries.items())
    (folder / "x.index").write_bytes(table(block([(b"", header), *rows])))
    (folder / "x.data-00000-of-00001").write_bytes(DATA)
    return Checkpoint(folder / "x")


def test_crafted_checkpoint(tmp_path: Path) -> None:
    opened = checkpoint(tmp_path, {b"a": entry(2, 2, offset=8), b"b": entry(1, dtype=pb.DT_FLOAT)})
    assert opened.read("a").array(np.dtype(np.uint8), (2, 2)).tolist() == [[8, 9], [10, 11]]
    assert opened.read("b").array(np.dtype(np.float32), (1,)).tobytes() == DATA[:4]


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (entry(5), "bad-index"),
        (entry(-1), "bad-index"),
        (entry(1 << 62, dtype=pb.DT_STRING), "bad-index"),
        (entry(0, 1 << 62, size=0), "bad-index"),
        (entry(*[1 << 40] * 30), "bad-index"),
        (entry(*[1] * 300, size=1), "bad-index"),
        (entry(4, offset=-4), "bad-index"),
        (entry(4, size=-4), "bad-index"),
        (entry(4, shard=1), "bad-index"),
        (entry(4, shard=-1), "bad-index"),
        (entry(4, offset=61), "truncated-shard"),
        (entry(1 << 40, size=1 << 40), "truncated-shard"),
        (entry(4, offset=(1 << 63) - 1), "truncated-shard"),
        (pb.BundleEntryProto(dtype=pb.DT_UINT8, shape=pb.TensorShapeProto(unknown_rank=True)), "bad-index"),
    ],
    ids=str,
)
def test_entry_that_lies(tmp_path: Path, broken: pb.BundleEntryProto, code: str) -> None:
    with pytest.raises(ConversionError) as caught:
        checkpoint(tmp_path, {b"a": broken})
    assert caught.value.code == code


@pytest.mark.parametrize("dtype", [pb.DT_VARIANT, pb.DT_RESOURCE, pb.DT_FLOAT4_E2M1FN, pb.DT_FLOAT_REF, 99])
def test_element_type_that_nothing_reads(tmp_path: Path, dtype: int) -> None:
    opened = checkpoint(tmp_path, {b"a": entry(4, dtype=dtype), b"b": entry(4)})
    assert opened.read("b").array(np.dtype(np.uint8), (4,)).tolist() == [0, 1, 2, 3]
    with pytest.raises(ConversionError) as caught:
        opened.read("a")
    assert caught.value.code == "unsupported-dtype"


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (pb.BundleHeaderProto(num_shards=1, endianness=pb.BundleHeaderProto.BIG).SerializeToString(), "big-endian"),
        (
            pb.BundleHeaderProto(num_shards=1, version=pb.VersionDef(min_consumer=2)).SerializeToString(),
            "unsupported-version",
        ),
        (b"\xff", "bad-index"),
    ],
)
def test_header_that_is_refused(tmp_path: Path, header: bytes, code: str) -> None:
    with pytest.raises(ConversionError) as caught:
        checkpoint(tmp_path, {}, header)
    assert caught.value.code == code


@pytest.mark.parametrize("content", [block([]), block([(b"a", b"")])])
def test_index_without_header(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.index").write_bytes(table(content))
    with pytest.raises(ConversionError) as caught:
        Checkpoint(tmp_path / "x")
    assert caught.value.code == "bad-index"


@pytest.mark.parametrize(("key", "value"), [(b"\xff", entry(4).SerializeToString()), (b"a", b"\xff")])
def test_an_invalid_entry(tmp_path: Path, key: bytes, value: bytes) -> None:
    (tmp_path / "x.index").write_bytes(table(block([(b"", HEADER), (key, value)])))
    (tmp_path / "x.data-00000-of-00001").write_bytes(DATA)
    with pytest.raises(ConversionError) as caught:
        Checkpoint(tmp_path / "x")
    assert caught.value.code == "bad-index"


def partitioned(parts: dict[tuple[int, int], pb.BundleEntryProto], size: int = 8) -> dict[bytes, pb.BundleEntryProto]:
    whole = pb.BundleEntryProto(dtype=pb.DT_UINT8, shape=shape(size), slices=[place(extent) for extent in parts])
    return {b"a": whole, **{slice_key("a", [extent]): part for extent, part in parts.items()}}


def test_crafted_partition(tmp_path: Path) -> None:
    opened = checkpoint(tmp_path, partitioned({(4, 4): entry(4, offset=16), (0, 4): entry(4)}))
    assert opened.read("a").array(np.dtype(np.uint8), (8,)).tolist() == [0, 1, 2, 3, 16, 17, 18, 19]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({(0, 4): entry(4), (2, 4): entry(4)}, "overlap"),
        ({(0, 4): entry(4)}, "as many elements"),
        ({(0, 4): entry(4), (6, 4): entry(4)}, "outside"),
        ({(0, 4): entry(4), (-2, 4): entry(4)}, "outside"),
        ({(0, 3): entry(4), (4, 4): entry(4)}, "as long as"),
        ({(0, 4): entry(4), (4, 4): entry(2, 2)}, "another rank"),
        ({(0, 4): entry(4), (4, 4): entry(1, dtype=pb.DT_FLOAT)}, "another element type"),
    ],
)
def test_slices_that_dont_fit(tmp_path: Path, parts: dict[tuple[int, int], pb.BundleEntryProto], message: str) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        checkpoint(tmp_path, partitioned(parts)).read("a")
    assert caught.value.code == "bad-index"


def test_slices_of_more_data_than_there_is(tmp_path: Path) -> None:
    """Small files must not make large tensors."""
    parts = {(number * 64, 64): entry(64, size=64) for number in range(100)}
    with pytest.raises(ConversionError, match="more bytes"):
        checkpoint(tmp_path, partitioned(parts, 6400)).read("a")


def test_missing_slice(tmp_path: Path) -> None:
    entries = partitioned({(0, 4): entry(4), (4, 4): entry(4)})
    del entries[slice_key("a", [(4, 4)])]
    with pytest.raises(ConversionError, match="missing"):
        checkpoint(tmp_path, entries).read("a")


def test_slice_of_slices(tmp_path: Path) -> None:
    entries = partitioned({(0, 8): entry(8, size=8)})
    entries[slice_key("a", [(0, 8)])].slices.add()
    with pytest.raises(ConversionError, match="has slices itself"):
        checkpoint(tmp_path, entries)


def test_slice_keys_sort_as_their_places() -> None:
    places = [-(2**63), -(2**40), -65, -64, -1, 0, 1, 63, 64, 8191, 8192, 2**20, 2**34, 2**55, 2**62, 2**63 - 1]
    keys = [slice_key("a", [extent]) for extent in itertools.product(places, places)]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@settings(max_examples=500)
@given(data=st.data())
def test_damage_under_right_checksums(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """The parser after the checksums rejects invalid data; it never fails otherwise."""
    entries = partitioned({(0, 4): entry(4), (4, 4): entry(4)}) | {
        b"b": entry(2, dtype=pb.DT_STRING, size=16),
        b"c": entry(1, dtype=pb.DT_FLOAT),
    }
    rows = sorted((key, value.SerializeToString()) for key, value in entries.items())
    content = bytearray(block([(b"", HEADER), *rows]))
    for position in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[position] = data.draw(st.integers(0, 255))
    folder = tmp_path_factory.getbasetemp()
    (folder / "x.index").write_bytes(table(bytes(content)))
    (folder / "x.data-00000-of-00001").write_bytes(DATA)
    try:
        opened = Checkpoint(folder / "x")
    except ConversionError:
        return
    for key, found in opened.entries().items():
        row = types.from_number(found.dtype)
        try:
            source = opened.read(key)
            assert row is not None
            value = source.array(row.dtype, found.shape)
        except ConversionError:
            continue
        assert value.shape == found.shape
