"""Samples in every valid form, and errors about others."""

from __future__ import annotations

from collections import UserDict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tfconvert.converter.targets.litert.quantize import samples
from tfconvert.converter.targets.litert.quantize.samples import Entry, Input
from tfconvert.schema.diagnostics import ConversionError, Diagnostic

F32, I32, TEXT = np.dtype(np.float32), np.dtype(np.int32), np.dtype(object)

IMAGE = Entry("image", (Input("x", F32, (-1, 2)),))
PAIR = Entry("pair", (Input("a", F32, (2,)), Input("b", I32, None)))
TEXTS = Entry("texts", (Input("t", TEXT, (-1,)),))

ONE = np.ones((1, 2), np.float32)


class Indexed:
    """Samples as data sets of Keras and Torch have them: a length and indices, and no end of them."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, number: int) -> Any:
        return ONE


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
        {"x": ONE},
        {"x": [ONE]},
        {"image": {"x": np.ones((1, 1, 2))}},
        np.ones((1, 2)),
        np.ones(2),
        lambda: np.ones((1, 2)),
        [(ONE, 3)],
        [(ONE, np.zeros(1), np.ones(1))],
        [[ONE, np.zeros(1)]],
        iter([({"x": ONE}, {"y": 3})]),
        [{"anything": ONE}],
        {"anything": ONE},
        Indexed(),
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
    assert samples.count([ONE, ONE]) == samples.count(np.ones((2, 3))) == 2
    for given in (iter([ONE]), lambda: [ONE], "folder", tmp_path, ["a.npz"], {"image": [ONE]}):
        assert samples.count(given) is None


@pytest.mark.parametrize(
    ("given", "expected"), [(np.ones(2), [[1, 1]]), (np.ones((1, 1, 2)), [[1, 1]]), (np.ones((3, 1, 2)), [[1, 1]] * 3)]
)
def test_a_dimension_of_one_more_or_less_is_fitted(given: Any, expected: list[Any]) -> None:
    assert _read([[given]], IMAGE) == [(0, [expected])]


WRONG = [
    ([{"y": ONE, "z": ONE}], "no value for 'x'"),
    ([{}], "no value for 'x'"),
    ([[]], "has 0 values, and the model expects 1"),
    ([[ONE, ONE]], "has 2 values"),
    ([ONE, np.ones(3)], r"sample 1 of 'x' has the shape \[3\]"),
    ([np.ones((1, 3))], r"has the shape \[1, 3\], and the model expects \[\?, 2\]: dimension 1 has to be 2"),
    ([[[[1, 2], [3]]]], "can't be read"),
    ([None], "is of Python objects"),
    ([np.array([["a", "b"]])], "is of strings"),
    ([ONE * 1j], "is of complex"),
    ([ONE * np.nan], "that are NaN"),
    ([ONE.astype(np.float64) * 1e300], "too large for float32"),
    (5, "can't be read"),
    (lambda x: [ONE], "can't be read"),
    (lambda: 5, "can't be read"),
    ({"image": 5}, "can't be read"),
    ({"y": [ONE], "z": [ONE]}, "the inputs are 'x'"),
    ({}, "the inputs are 'x'"),
    (iter(["a.npz"]), "is of strings"),
    ([b"ab"], "is of strings"),
    (np.ones((2, 2, 3, 2)), r"has the shape \[2, 3, 2\]"),
    (np.float32(3), "the first dimension is the batch"),
    ([{1, 2}], "is of Python objects"),
    (dict, "the inputs are 'x'"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_other_samples_are_refused(given: Any, message: str) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        _read(given, IMAGE)
    assert caught.value.code == "wrong-sample"


@pytest.mark.parametrize("given", ["none.npz", ["none.npy"]])
def test_missing_files_are_reported(given: Any) -> None:
    with pytest.raises(ConversionError, match="doesn't exist") as caught:
        _read(given, IMAGE)
    assert caught.value.code == "unreadable-file"


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x93NUMPY\x01\x00", b"PK\x03\x04"])
@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_damaged_files_are_described_in_our_words(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConversionError, match="not a file of arrays of numbers") as caught:
        _read(str(tmp_path / name), IMAGE)
    assert caught.value.code == "wrong-sample"
    assert caught.value.__cause__ is not None


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
        "names.npz": {"y": ONE, "z": ONE},
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
        assert caught.value.code == ("unreadable-file" if name == "none.npy" else "wrong-sample"), name
    for arrays in ({"a": np.ones((2, 2)), "b": np.zeros(3)}, {"a": np.ones((2, 2)), "b": np.int32(3)}):
        np.savez(tmp_path / "pair.npz", **arrays)
        with pytest.raises(ConversionError, match="different numbers of samples"):
            _read(tmp_path / "pair.npz", PAIR)
    np.save(tmp_path / "pair.npy", ONE)
    with pytest.raises(ConversionError, match="is one array, and the model expects 2"):
        _read(tmp_path / "pair.npy", PAIR)


def test_the_users_own_errors_are_theirs() -> None:
    def generate() -> Any:
        yield ONE
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        _read(generate, IMAGE)


PHOTO = Entry("photo", (Input("keras_tensor_7", F32, (-1, 4, 6, 3)),))


def _shapes(given: Any, entry: Entry, notes: list[Diagnostic] | None = None) -> list[list[tuple[int, ...]]]:
    return [[value.shape for value in each.values] for each in samples.read(given, [entry], notes=notes)]


def test_the_first_axis_of_an_array_counts_samples_unless_it_is_one() -> None:
    photos = np.zeros((5, 4, 6, 3), np.uint8)
    one = [[(1, 4, 6, 3)]]
    assert (
        _shapes(photos, PHOTO) == _shapes(list(photos), PHOTO) == _shapes({"keras_tensor_7": photos}, PHOTO) == one * 5
    )
    assert _shapes(photos[0], PHOTO) == one
    assert _shapes(photos[:, None], PHOTO) == one * 5
    assert _shapes([photos[:2], photos[2:]], PHOTO) == [[(2, 4, 6, 3)], [(3, 4, 6, 3)]]


def test_a_channel_may_be_missing() -> None:
    grey = Entry("grey", (Input("x", F32, (-1, 4, 6, 1)),))
    assert _shapes(np.zeros((5, 4, 6)), grey) == [[(1, 4, 6, 1)]] * 5


def test_larger_batches_are_divided_where_the_size_is_fixed() -> None:
    fixed = Entry("fixed", (Input("x", F32, (2, 3)),))
    notes: list[Diagnostic] = []
    assert _shapes(np.zeros((5, 3)), fixed, notes) == _shapes([np.zeros((5, 3))], fixed) == [[(2, 3)]] * 2
    assert [str(note) for note in notes] == ["the last 1 rows are left out: 'x' has batches of 2"]
    with pytest.raises(ConversionError, match="dimension 0 has to be 2"):
        _shapes(np.zeros((1, 3)), fixed)


def test_several_inputs_have_columns() -> None:
    a, b = np.ones((2, 2)), np.array([3, 4])
    expected = [(0, [[1.0, 1.0], [3]]), (0, [[1.0, 1.0], [4]])]
    for given in ({"a": a, "b": b}, (a, b), [a, b], [((a[0], b[:1]), 0), ((a[1], b[1:]), 0)]):
        assert _read(given, PAIR) == expected
    with pytest.raises(ConversionError, match="different numbers of samples: 'a' 2, 'b' 1"):
        _read({"a": a, "b": b[:1]}, PAIR)


def test_samples_of_different_sizes() -> None:
    lines = Entry("lines", (Input("x", F32, (-1, -1)),))
    assert _shapes({"x": [np.zeros(3), np.zeros(5)]}, lines) == [[(1, 3)], [(1, 5)]]


def test_names_of_keras_are_known(tmp_path: Path) -> None:
    photos = np.zeros((2, 4, 6, 3))
    notes: list[Diagnostic] = []
    np.savez(tmp_path / "photos.npz", photos=photos)
    for given in ({"input_layer": photos}, [{"input_layer": each} for each in photos], tmp_path / "photos.npz"):
        assert _shapes(given, PHOTO, notes) == [[(1, 4, 6, 3)]] * 2
    assert [note.message for note in notes] == [
        "'input_layer' of the samples is used for the input 'keras_tensor_7'",
        "'photos' of the samples is used for the input 'keras_tensor_7'",
    ]
    two = Entry("two", tuple(Input(name, F32, (-1,)) for name in ("keras_tensor_10", "keras_tensor_9")))
    assert _read({"input_layer_3": [2], "input_layer_2": [1]}, two) == [(0, [[2], [1]])]
    with pytest.raises(ConversionError, match="no value for 'keras_tensor_10', 'keras_tensor_9'"):
        _read({"input_layer": [2], "other": [1]}, two)


def test_labels_are_left_out_with_a_note() -> None:
    notes: list[Diagnostic] = []
    assert _shapes(((np.zeros((3, 4, 6, 3)), np.zeros(3)) for _ in range(2)), PHOTO, notes) == [[(3, 4, 6, 3)]] * 2
    assert [note.message for note in notes] == ["the samples have labels, which are left out"]


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (np.zeros((5, 3, 4, 6)), "x.transpose(0, 2, 3, 1)"),
        ([np.zeros((3, 4, 6))], "x.transpose(1, 2, 0)[None]"),
        (np.zeros((5, 72)), "x.reshape(-1, 4, 6, 3)"),
        ([np.zeros((4, 6))], "image[None]"),
        (np.zeros((5, 8, 8, 3)), "input_shapes (--input-shape)"),
        ([np.zeros((8, 8, 3))], "resize the samples"),
        (np.zeros((3, 2, 5, 4, 6, 3)), "resize the samples"),
        (np.full((5, 4, 6, 3), 1j), ".astype('float32')"),
        (5, "pass an array"),
    ],
)
def test_refusals_name_the_fix(given: Any, hint: str) -> None:
    with pytest.raises(ConversionError) as caught:
        _shapes(given, PHOTO)
    assert hint in caught.value.diagnostics[0].hint
    assert len(str(caught.value)) < 400


def test_the_recipe_for_images_works(tmp_path: Path) -> None:
    pil = pytest.importorskip("PIL.Image")
    for number in range(3):
        pil.new("L", (9, 7), number).save(tmp_path / f"{number}.png")
    for given in (tmp_path, tmp_path / "0.png"):
        with pytest.raises(ConversionError) as caught:
            _shapes(given, PHOTO)
    recipe = caught.value.diagnostics[0].hint.partition("np.save: ")[2]
    made = eval(recipe, {"np": np, "PIL": __import__("PIL"), "pathlib": __import__("pathlib")})  # noqa: S307
    assert _shapes(made, PHOTO) == [[(1, 4, 6, 3)]] * 3


def test_data_sets_of_tensorflow(tf: ModuleType) -> None:
    photos, labels = np.zeros((5, 4, 6, 3), np.float32), np.arange(5)
    data = tf.data.Dataset.from_tensor_slices((photos, labels))
    one = [[(1, 4, 6, 3)]]
    assert _shapes(data, PHOTO) == _shapes(data.batch(1), PHOTO) == _shapes(lambda: data, PHOTO) == one * 5
    assert _shapes(data.batch(2), PHOTO) == [[(2, 4, 6, 3)], [(2, 4, 6, 3)], [(1, 4, 6, 3)]]
    assert _shapes(data.map(lambda photo, label: {"input_layer": photo}), PHOTO) == one * 5
    assert _shapes(tf.constant(photos), PHOTO) == one * 5
    pairs = tf.data.Dataset.from_tensor_slices(({"a": photos[:, 0, 0, :2], "b": labels}, labels))
    assert [values[1] for _, values in _read(pairs, PAIR)] == [0, 1, 2, 3, 4]
    with pytest.raises(ConversionError, match=r"has no end\n.*take\(100\)"):
        _shapes(data.repeat(), PHOTO)
