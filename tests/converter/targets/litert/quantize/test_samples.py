"""Samples in every valid form, and errors about others."""

from __future__ import annotations

from collections import UserDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfconvert.converter.targets.litert.quantize import samples
from tfconvert.converter.targets.litert.quantize.samples import Entry, Input
from tfconvert.schema.diagnostics import ConversionError

F32, I32, TEXT = np.dtype(np.float32), np.dtype(np.int32), np.dtype(object)

IMAGE = Entry("image", (Input("x", F32, (-1, 2)),))
PAIR = Entry("pair", (Input("a", F32, (2,)), Input("b", I32, None)))
TEXTS = Entry("texts", (Input("t", TEXT, (-1,)),))

ONE = np.ones((1, 2), np.float32)


def _read(given: Any, *entries: Entry) -> list[tuple[int, list[Any]]]:
    return [(each.entry, [value.tolist() for value in each.values]) for each in samples.read(given, entries)]


@pytest.mark.parametrize(
    "given",
    [
        [{"x": ONE}],
        ({"x": [[1, 1]]},),
        [[ONE]],
        [(ONE,)],
        [ONE],
        [ONE.astype(np.float64)],
        [ONE.astype(np.uint8)],
        np.ones((1, 1, 2)),
        lambda: [{"x": ONE}],
        {"image": [ONE]},
        {"image": lambda: iter([ONE])},
        lambda: {"image": [ONE]},
        [UserDict(x=ONE, other=3)],
        iter([ONE]),
        [{"x": ONE, "unknown": None}],
    ],
)
def test_forms_of_one_sample(given: Any) -> None:
    assert _read(given, IMAGE) == [(0, [[[1.0, 1.0]]])]


def test_samples_are_read_as_they_are_wanted() -> None:
    taken = []

    def generate() -> Any:
        for number in range(3):
            taken.append(number)
            yield np.full((number, 2), number)

    each = samples.read(generate, [IMAGE])
    assert not taken
    assert [next(each).values[0].shape for _ in range(2)] == [(0, 2), (1, 2)]
    assert taken == [0, 1]


def test_names_and_positions_go_with_inputs() -> None:
    given = [{"b": 3, "a": [1, 2]}, ([1.5, 2], np.int8(4)), [[0, 0], [[5]]]]
    assert _read(given, PAIR) == [(0, [[1.0, 2.0], 3]), (0, [[1.5, 2.0], 4]), (0, [[0.0, 0.0], [[5]]])]


def test_texts_are_bytes() -> None:
    given = [[["a", b"b"]], [np.array(["ü"])], [np.array([b"c"], object)]]
    assert _read(given, TEXTS) == [(0, [[b"a", b"b"]]), (0, [["ü".encode()]]), (0, [[b"c"]])]


def test_signatures_have_their_own() -> None:
    given = {"pair": [{"a": [1, 2], "b": 3}], "image": iter([ONE, ONE])}
    assert [entry for entry, _ in _read(given, IMAGE, PAIR)] == [1, 0, 0]
    assert [entry for entry, _ in _read({"image": [ONE]}, IMAGE, PAIR)] == [0]


def _files(folder: Path) -> Path:
    np.save(folder / "1.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    np.savez(folder / "2.npz", x=np.ones((1, 2)), other=np.zeros(5))
    np.savez_compressed(folder / "3.npz", x=np.zeros((2, 1, 2)))
    (folder / "notes.txt").write_text("no samples", encoding="utf-8")
    return folder


def test_a_signature_may_have_several_keys() -> None:
    entry = IMAGE._replace(aliases=("serve",))
    assert _read({"serve": [ONE]}, entry) == _read({"image": [ONE]}, entry) == [(0, [[[1, 1]]])]


def test_files_hold_samples(tmp_path: Path) -> None:
    folder = _files(tmp_path)
    # A sample is a batch of one, unless the arrays have batches.
    expected = [[[0, 1]], [[2, 3]], [[4, 5]], [[1, 1]], [[0, 0]], [[0, 0]]]
    for given in (folder, str(folder), [folder / "1.npy", str(folder / "2.npz"), folder / "3.npz"], {"image": folder}):
        assert [values[0] for _, values in _read(given, IMAGE)] == expected
    np.savez(folder / "pair.npz", a=np.ones((2, 2)), b=np.array([1, 2]))
    assert _read(folder / "pair.npz", PAIR) == [(0, [[1.0, 1.0], [1]]), (0, [[1.0, 1.0], [2]])]


def test_samples_are_counted_where_that_is_known(tmp_path: Path) -> None:
    assert samples.count([ONE, ONE]) == 2
    for given in (iter([ONE]), lambda: [ONE], "folder", tmp_path, ["a.npz"], {"image": [ONE]}):
        assert samples.count(given) is None


@pytest.mark.parametrize(
    ("given", "expected"), [(np.ones(2), [[1, 1]]), (np.ones((1, 1, 2)), [[1, 1]]), (np.ones((3, 1, 2)), [[1, 1]] * 3)]
)
def test_a_dimension_of_one_more_or_less_is_fitted(given: Any, expected: list[Any]) -> None:
    assert _read([[given]], IMAGE) == [(0, [expected])]


WRONG = [
    ([{"y": ONE}], "no value for 'x'"),
    ([{}], "no value for 'x'"),
    ([[]], "has 0 values, and the model expects 1"),
    ([[ONE, ONE]], "has 2 values"),
    ([ONE, np.ones(3)], r"sample 1 of 'x' has the shape \[3\]"),
    ([np.ones((1, 3))], r"has the shape \[1, 3\], and the model expects \[-1, 2\]"),
    ([[[[1, 2], [3]]]], "can't be read"),
    ([None], "is of object"),
    ([np.array([["a", "b"]])], "is of <U1"),
    ([ONE * 1j], "is of complex"),
    ([ONE * np.nan], "that are not finite"),
    ([[[[1, np.inf]]]], "that are not finite"),
    ([ONE.astype(np.float64) * 1e300], "that are not finite"),
    (5, "can't be read"),
    (lambda x: [ONE], "can't be read"),
    (lambda: 5, "can't be read"),
    ({"image": 5}, "can't be read"),
    ({"x": [ONE]}, "the signatures are 'image'"),
    ({}, "the signatures are 'image'"),
    ("none.npz", "can't be read"),
    (["none.npy"], "can't be read"),
    (iter(["a.npz"]), "has 5 values"),
    ([b"ab"], "has 2 values"),
    ([{1, 2}], "is of object"),
    (dict, "signatures are"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_other_samples_are_refused(given: Any, message: str) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        _read(given, IMAGE)
    assert caught.value.code == "wrong-sample"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[[1, 2], 1.5]], "'b' is of float64, and the model expects int32"),
        ([[[1, 2], 2**40]], "too large for int32"),
        ([[[1, 2], np.uint32(2**32 - 1)]], "too large for int32"),
        ([ONE], "has 1 values, and the model expects 2"),
    ],
)
def test_integers_must_fit(given: Any, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        _read(given, PAIR)


def test_texts_must_be_texts() -> None:
    for given in ([[3]], [[None]], [[np.array([b"a", 3], object)]]):
        with pytest.raises(ConversionError, match="and the model expects strings"):
            _read(given, TEXTS)


def test_several_signatures_need_names() -> None:
    for given in ([ONE], "file.npz", ["file.npz"], {"x": [ONE]}, iter([ONE])):
        with pytest.raises(ConversionError, match="'image', 'pair'"):
            _read(given, IMAGE, PAIR)


def test_other_files_are_refused(tmp_path: Path) -> None:
    whole = tmp_path / "whole.npz"
    np.savez(whole, x=np.zeros((3, 2)))
    content = whole.read_bytes()
    damaged = bytearray(content)
    damaged[len(content) // 3] ^= 255
    empty = tmp_path / "folder"
    empty.mkdir()
    files: dict[str, bytes | dict[str, Any]] = {
        "empty.npy": b"",
        "text.npz": b"hello",
        "short.npz": content[: len(content) // 2],
        "damaged.npz": bytes(damaged),
        "zip.npz": b"PK\x03\x04rubbish",
        "objects.npz": {"x": np.array([None], object)},
        "number.npz": {"x": np.float32(3)},
        "names.npz": {"y": ONE},
        "text.npy": b"\x93NUMPYrubbish",
    }
    for name, held in files.items():
        if isinstance(held, bytes):
            (tmp_path / name).write_bytes(held)
        else:
            np.savez(tmp_path / name, **held)
    for name in (*files, "folder", "none.npy"):
        with pytest.raises(ConversionError) as caught:
            _read(tmp_path / name, IMAGE)
        assert caught.value.code == "wrong-sample", name
    for arrays in ({"a": np.ones((2, 2)), "b": np.zeros(3)}, {"a": np.ones((2, 2)), "b": np.int32(3)}):
        np.savez(tmp_path / "pair.npz", **arrays)
        with pytest.raises(ConversionError, match="different numbers of samples"):
            _read(tmp_path / "pair.npz", PAIR)
    np.save(tmp_path / "pair.npy", ONE)
    with pytest.raises(ConversionError, match="has one array, and the model expects 2"):
        _read(tmp_path / "pair.npy", PAIR)


def test_the_users_own_errors_are_theirs() -> None:
    def generate() -> Any:
        yield ONE
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        _read(generate, IMAGE)
