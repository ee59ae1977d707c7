"""Reads users' samples into the inputs of signatures."""

from __future__ import annotations

import math
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from tfconvert.converter.ir.interface import entry_functions, interface_of
from tfconvert.converter.process.collector import collected
from tfconvert.converter.targets.litert.stored_values import to_stored
from tfconvert.schema.diagnostics import NOTE, ConversionError, Diagnostic, error
from tfconvert.schema.dialects import quant, types
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION
from tfconvert.schema.files import is_folder, is_missing, open_file
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.builtin import ModuleOp

_SUFFIXES = (".npz", ".npy")
_IMAGES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp")

# The names that Keras gives to inputs, as layers and as tensors; only the latter are in SavedModels.
_LAYER = re.compile(r"input_layer(?:_(\d+))?")
_TENSOR = re.compile(r"keras_tensor(?:_(\d+))?")

# Orders of axes that turn images with the channels first to images with the channels last, with and without a batch.
_ORDERS = ((0, 2, 3, 1), (0, 3, 1, 2))
_MOVES = ((1, 2, 0), (2, 0, 1))

_FORMS = "pass an array, arrays by input name, an iterable or a function that returns one, or .npz and .npy files"

# The kinds of values that are not numbers, for errors.
_KINDS = {"O": "Python objects", "U": "strings", "S": "strings", "V": "records", "M": "dates", "m": "durations"}

# The cardinality of data sets of TensorFlow that repeat forever.
_INFINITE = -1

ADAPTED = "samples-adapted"
"""Code of the note on names that were guessed, and values that were left out."""


class Input(NamedTuple):
    """An input of a signature.

    Attributes:
        name: Its name in the signature.
        dtype: Numpy's dtype of its elements.
        shape: Its shape, -1 for any size; `None` for any rank.
        mapping: The scale and the zero point of an input of integers that represent real numbers.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...] | None
    mapping: tuple[float, int] | None = None


class Entry(NamedTuple):
    """A signature, or the only function of a model without signatures.

    Attributes:
        key: Its key, or an empty string.
        inputs: Its inputs.
        aliases: Other keys of the same signature.
    """

    key: str
    inputs: tuple[Input, ...]
    aliases: tuple[str, ...] = ()


class Sample(NamedTuple):
    """The values of an entry's inputs, in order."""

    entry: int
    values: list[Array]


def read(
    samples: Any, entries: Sequence[Entry], *, allow_nan: bool = False, notes: list[Diagnostic] | None = None
) -> Iterator[Sample]:
    """Yields samples one by one, as they are read.

    Args:
        samples: The user's `Quantize.samples`, or data to verify a model on: an array or arrays by input name, whose
            first axis counts the samples; an iterable of samples, with or without labels; a function that returns
            either; paths; or a mapping from signature to any of these.
        entries: The model's signatures.
        allow_nan: Whether to accept NaN.
        notes: Where notes are added on what was guessed or left out.

    Raises:
        ConversionError: They don't fit the model's inputs (`wrong-sample`).
    """
    noted = [] if notes is None else notes
    try:
        for number, items in _by_entry(_called(samples), entries):
            reader = _Reader(entries[number], noted)
            for count, values in enumerate(reader.read(_called(items))):
                yield Sample(number, values if allow_nan else _without_nan(values, entries[number], count))
    except ConversionError:
        raise
    except (TypeError, ValueError, OSError) as problem:
        raise _sample_error(f"the samples can't be read: {problem}", _FORMS) from problem


def count(samples: Any) -> int | None:
    """Returns the number of samples, `None` if it is not known beforehand."""
    if _is_array(samples):
        return len(samples) if samples.shape else None
    if isinstance(samples, Sequence) and not isinstance(samples, str) and _listed_paths(samples) is None:
        return len(samples)
    return None


def paths_of(samples: Any) -> list[Path]:
    """Returns the files that samples are read from; none if they are in memory."""
    return [file for path in _listed_paths(samples) or () for file in (_files_in(path) if is_folder(path) else [path])]


def _called(samples: Any) -> Any:
    return samples() if callable(samples) else samples


def _is_array(value: Any) -> bool:
    """Returns whether a value is an array or a tensor of any library."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type)


def _by_entry(samples: Any, entries: Sequence[Entry]) -> Iterator[tuple[int, Any]]:
    """Yields the samples of each signature."""
    keys = {key: number for number, entry in enumerate(entries) for key in (entry.key, *entry.aliases)}
    if isinstance(samples, Mapping) and samples and set(samples) <= set(keys):
        for key, own in samples.items():
            yield keys[key], own
    elif len(entries) > 1:
        raise _sample_error(
            f"the model has several signatures: {_listed(keys)}",
            "convert one with `signatures`, or pass samples in memory, by signature"
            if _listed_paths(samples)
            else f"pass a mapping from signature to samples, as in {{{next(iter(keys))!r}: samples}}",
        )
    else:
        yield 0, samples


def _listed_paths(samples: Any) -> list[Path] | None:
    """Returns the paths that stand for samples, `None` if they are in memory."""
    single = isinstance(samples, str | os.PathLike)
    listed = [samples] if single else list(samples) if isinstance(samples, list | tuple) else []
    if not listed or not all(isinstance(item, str | os.PathLike) for item in listed):
        return None
    return [Path(each) for each in listed]


def _files_in(directory: Path) -> list[Path]:
    return sorted(file for file in directory.iterdir() if file.suffix in _SUFFIXES)


class _Reader:
    """Reads the samples of one signature.

    Args:
        entry: The signature.
        notes: Where notes are added.
    """

    def __init__(self, entry: Entry, notes: list[Diagnostic]) -> None:
        self._entry = entry
        self._inputs = {each.name: each for each in entry.inputs}
        self._notes = notes

    def read(self, items: Any) -> Iterator[list[Array]]:
        """Yields the values of each sample, in the order of the inputs."""
        paths = _listed_paths(items)
        if paths is not None:
            for path in paths:
                yield from self._of_path(path)
        elif _is_array(items):
            yield from self._of_columns(self._only(items, "an array"))
        elif isinstance(items, Mapping):
            yield from self._of_columns(self._named(items, "the mapping of samples"))
        elif self._are_columns(items):
            yield from self._of_columns(dict(zip(self._inputs, items, strict=True)))
        else:
            for number, item in enumerate(_iterated(items)):
                yield from self._of_item(item, number)

    def _are_columns(self, items: Any) -> bool:
        """Returns whether items are an array for each of several inputs: no sample is a bare array then."""
        is_list = isinstance(items, list | tuple)
        return is_list and len(items) == len(self._inputs) > 1 and all(_is_array(each) for each in items)

    def _of_path(self, path: Path) -> Iterator[list[Array]]:
        if is_missing(path):
            hint = "pass .npz or .npy files, or directories of them"
            raise error("unreadable-file", f"{path} doesn't exist", hint=hint)
        if not is_folder(path):
            yield from self._of_file(path)
            return
        files = _files_in(path)
        if not files:
            raise self._no_files(path)
        for file in files:
            yield from self._of_file(file)

    def _no_files(self, path: Path) -> ConversionError:
        images = sorted(file for file in path.rglob("*") if file.suffix.lower() in _IMAGES)
        if not images:
            return _sample_error(
                f"the directory {path} has no .npz and no .npy files", "save arrays there with numpy.save"
            )
        message = f"the directory {path} has images, and no .npz or .npy files"
        return _sample_error(message, self._recipe(images[0].parent, images[0].suffix))

    def _recipe(self, directory: Path, suffix: str) -> str:
        """Returns how to make an array of images."""
        images = [each.shape for each in self._entry.inputs if each.shape is not None and len(each.shape) == 4]
        height, width, channels = images[0][1:] if images else (-1, -1, 3)
        size = f"{width if width > 0 else 'WIDTH'}, {height if height > 0 else 'HEIGHT'}"
        mode = "L" if channels == 1 else "RGB"
        more = "[..., None]" if channels == 1 else ""
        glob = f"pathlib.Path({str(directory)!r}).glob('*{suffix}')"
        return (
            "make an array of them, with the numbers that the model was trained on, and pass it or a file of np.save: "
            f"np.stack([np.asarray(PIL.Image.open(f).convert({mode!r}).resize(({size})), np.float32){more} / 255 "
            f"for f in {glob}])"
        )

    def _of_file(self, path: Path) -> Iterator[list[Array]]:
        if path.suffix.lower() in _IMAGES:
            raise _sample_error(f"{path} is an image", self._recipe(path.parent, path.suffix))
        try:
            os.close(open_file(path))
            arrays = self._loaded(path)
        except OSError as problem:
            raise error("unreadable-file", f"can't read {path}: {problem.strerror or problem}") from problem
        except (ValueError, EOFError, BadZipFile, zlib.error) as problem:
            message = f"{path} is not a file of arrays of numbers: it is damaged, has another format, or holds objects"
            raise _sample_error(message, "write it with numpy.save or numpy.savez") from problem
        yield from self._of_columns(arrays)

    def _loaded(self, path: Path) -> Mapping[str, Any]:
        """Returns the arrays of a file for the inputs, by name."""
        if path.suffix == ".npy":
            return self._only(np.lib.format.open_memmap(path, mode="r"), str(path))
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            return self._named(file, str(path))

    def _only(self, array: Any, what: str) -> Mapping[str, Any]:
        """Returns an array for the only input."""
        if len(self._inputs) != 1:
            raise _sample_error(
                f"{what} is one array, and the model expects {len(self._inputs)}",
                f"pass arrays by name, or an .npz file of them: {_listed(self._inputs)}",
            )
        return dict.fromkeys(self._inputs, array)

    def _named(self, given: Mapping[str, Any], what: str) -> dict[str, Any]:
        """Returns the values of the inputs by their names, from values by names that users know."""
        if set(self._inputs) <= set(given):
            return {name: given[name] for name in self._inputs}
        known = self._aliases(list(given))
        missing = [name for name in self._inputs if name not in known]
        if missing:
            raise _sample_error(
                f"{what} has no value for {_listed(missing)}",
                f"it has {_listed(given)}; the inputs are {_listed(self._inputs)}",
            )
        for name, key in known.items():
            if name != key:
                self._note(f"{key!r} of the samples is used for the input {name!r}")
        return {name: given[known[name]] for name in self._inputs}

    def _aliases(self, keys: Sequence[str]) -> dict[str, str]:
        """Returns which key stands for each input: its name, the only one there is, or that of a layer of Keras."""
        found = {name: name for name in self._inputs if name in keys}
        names, others = ([each for each in side if each not in found] for side in (self._inputs, keys))
        if len(self._inputs) == len(keys) == 1:
            return {names[0]: keys[0]}
        layers = sorted((each for each in others if _number(each, _LAYER) is not None), key=_order)
        tensors = sorted((each for each in names if _number(each, _TENSOR) is not None), key=_order)
        if len(tensors) == len(names) == len(layers):
            found |= dict(zip(tensors, layers, strict=True))
        return found

    def _of_item(self, item: Any, number: int) -> Iterator[list[Array]]:
        """Yields a sample of an iterable; several if the batch size is fixed, and it has more."""
        item = self._without_labels(item)
        what = f"sample {number}"
        if isinstance(item, Mapping):
            item = list(self._named(item, what).values())
        elif isinstance(item, str | bytes) or _is_array(item) or not isinstance(item, Sequence):
            item = [item]
        if len(item) != len(self._inputs):
            raise _sample_error(
                f"{what} has {len(item)} values, and the model expects {len(self._inputs)}",
                f"pass a value for each of {_listed(self._inputs)}, in this order or by name",
            )
        values = dict(zip(self._inputs, map(_array, item), strict=True))
        if self._has_more_rows(values):
            yield from self._of_columns(values)
        else:
            yield [_checked(values[each.name], each, number) for each in self._entry.inputs]

    def _without_labels(self, item: Any) -> Any:
        """Returns a sample without the labels and weights that datasets for training have after it."""
        if not isinstance(item, list | tuple) or len(item) not in (2, 3) or not self._inputs:
            return item
        first, second = item[:2]
        if len(self._inputs) > 1:
            has_labels = isinstance(first, Mapping) or (isinstance(first, tuple) and len(first) == len(self._inputs))
        else:
            has_labels = isinstance(item, tuple) or (_is_array(first) and np.ndim(second) < len(first.shape))
        if has_labels:
            self._note("the samples have labels, which are left out")
        return first if has_labels else item

    def _has_more_rows(self, values: Mapping[str, Array]) -> bool:
        """Returns whether values are whole batches, larger than the one that the model has."""
        return any(
            wanted.shape is not None
            and value.ndim == len(wanted.shape) > 0
            and 0 < wanted.shape[0] < value.shape[0]
            and _fits(value.shape[1:], wanted.shape[1:])
            for value, wanted in zip(values.values(), self._entry.inputs, strict=True)
        )

    def _of_columns(self, columns: Mapping[str, Any]) -> Iterator[list[Array]]:
        """Yields the samples in arrays whose first axis counts them."""
        inputs = [self._inputs[name] for name in columns]
        found = [_Column(value, wanted) for value, wanted in zip(columns.values(), inputs, strict=True)]
        if len({len(each) for each in found}) > 1:
            sizes = ", ".join(f"{name!r} {len(each)}" for name, each in zip(columns, found, strict=True))
            raise _sample_error(
                f"the arrays hold different numbers of samples: {sizes}", "the first axis of each counts the samples"
            )
        for each, wanted in zip(found, inputs, strict=True):
            if each.rest:
                self._note(f"the last {each.rest} rows are left out: {wanted.name!r} has batches of {each.step}")
        for number in range(len(found[0]) if found else 0):
            yield [_checked(each[number], wanted, number) for each, wanted in zip(found, inputs, strict=True)]

    def _note(self, message: str) -> None:
        note = Diagnostic(ADAPTED, message, severity=NOTE)
        if note not in self._notes:
            self._notes.append(note)


class _Column:
    """The samples of one input in an array, whose first axis counts them unless it is a single sample.

    Attributes:
        step: The number of rows in a sample.
        rest: The number of rows after the last whole sample.

    Args:
        value: An array, or a list of samples.
        wanted: The input.
    """

    def __init__(self, value: Any, wanted: Input) -> None:
        try:
            self._array: Any = _array(value)
        except ValueError:
            if not isinstance(value, list | tuple):
                raise
            self._array = value  # Samples of different sizes.
        self.step, self.rest, self._has_batch = 1, 0, False
        if isinstance(self._array, list | tuple):
            return
        if wanted.shape is not None and self._array.ndim < len(wanted.shape):
            self._array = self._extended(wanted.name, wanted.shape)
        elif self._array.ndim == 0:
            self._array = self._array[None]
            return
        self._has_batch = wanted.shape is None or self._array.ndim == len(wanted.shape)
        batch = wanted.shape[0] if wanted.shape and self._has_batch else 1
        if 1 < batch <= len(self._array):
            self.step, self.rest = batch, len(self._array) % batch

    def _extended(self, name: str, shape: tuple[int, ...]) -> Array:
        """Returns an array with the dimension that it lacks: the batch of a single sample, or another of size 1."""
        fitting = next((each for each in _forms(self._array, shape) if _fits(each.shape[1:], shape[1:])), None)
        if fitting is None:
            raise _unlike(f"the array for {name!r}", self._array, shape)
        return fitting

    def __len__(self) -> int:
        return len(self._array) // self.step

    def __getitem__(self, number: int) -> Array:
        """Returns a sample, as a batch unless the input has none."""
        if self._has_batch:
            part: Array = self._array[number * self.step : (number + 1) * self.step]
            return part
        return np.asarray(self._array[number])


def _number(name: str, pattern: re.Pattern[str]) -> int | None:
    """Returns the number in a name that Keras has made, `None` for other names."""
    found = pattern.fullmatch(name)
    return None if found is None else int(found[1] or 0)


def _order(name: str) -> int:
    return _number(name, _LAYER) or _number(name, _TENSOR) or 0


def _iterated(items: Any) -> Iterable[Any]:
    """Returns samples one by one, of what has an iterator or, as data sets of Keras and Torch, a length and indices."""
    cardinality = getattr(items, "cardinality", None)
    if callable(cardinality) and int(cardinality()) == _INFINITE:
        raise _sample_error("the data set has no end", "take some of it: samples.take(100)")
    if hasattr(items, "__iter__") or not hasattr(items, "__getitem__"):
        return collected(items)
    return collected(items[number] for number in range(len(items)))


def _array(value: Any) -> Array:
    try:
        return np.asarray(value)
    except RuntimeError as problem:  # A tensor of Torch with a gradient, or on another device.
        raise _sample_error(
            f"an object of type {type(value).__name__} is not an array: {problem}", "pass arrays of numpy"
        ) from problem


def _without_nan(values: list[Array], entry: Entry, number: int) -> list[Array]:
    for value, each in zip(values, entry.inputs, strict=True):
        if value.dtype.kind == "f" and np.isnan(value).any():
            raise _sample_error(
                f"sample {number} of {each.name!r} has elements that are NaN", "leave it out, or correct it"
            )
    return values


def infinite(name: str) -> ConversionError:
    """Returns the error of an input whose infinities do more than hide numbers."""
    return _sample_error(
        f"samples of {name!r} have infinities, and the model's results are not finite with them",
        "infinity may hide numbers from a softmax or a maximum, but not all of a row: leave such samples out, or write "
        "a finite number, such as -1e9 in a mask",
    )


def _checked(value: Array, wanted: Input, number: int) -> Array:
    return fitted(value, wanted, f"sample {number} of {wanted.name!r}")


def fitted(value: Array, wanted: Input, what: str) -> Array:
    """Returns a value as an input takes it: in its type, and with the dimension of 1 that is missing or too many.

    Args:
        value: The value.
        wanted: The input.
        what: The value, for errors.

    Raises:
        ConversionError: It doesn't fit (`wrong-sample`).
    """
    if wanted.dtype.kind == "O":
        value = _texts(value, what)
    if wanted.mapping is not None:
        # Floats are the numbers that the input's integers represent.
        value = to_stored(value, {"quantization": wanted.mapping, "dtype": wanted.dtype})
    if value.dtype != wanted.dtype:
        if not np.can_cast(value.dtype, wanted.dtype, "same_kind"):
            raise _sample_error(
                f"{what} is of {_KINDS.get(value.dtype.kind, value.dtype)}, and the model expects {wanted.dtype}",
                f"convert it with .astype({wanted.dtype.name!r})" if value.dtype.kind in "biufc" else "pass numbers",
            )
        with np.errstate(over="ignore"):
            cast = value.astype(wanted.dtype)
        wraps = value.dtype.kind in "iu" and wanted.dtype.kind in "iu" and not np.array_equal(cast, value)
        if wraps or (wanted.dtype.kind == "f" and (np.isinf(cast) & np.isfinite(value)).any()):
            raise _sample_error(f"{what} has elements that are too large for {wanted.dtype}")
        value = cast
    fitting = next((each for each in _forms(value, wanted.shape) if _fits(each.shape, wanted.shape)), None)
    if fitting is None:
        assert wanted.shape is not None, "an input of any rank takes every shape"
        raise _unlike(what, value, wanted.shape)
    return fitting


def _unlike(what: str, value: Array, shape: tuple[int, ...]) -> ConversionError:
    """Returns the error about a value of another shape, with what may be wrong about it."""
    own, inner = value.shape, shape[1:]
    message = f"{what} has the shape {list(own)}, and the model expects {_dims(shape)}"
    orders, wanted = (_ORDERS, shape) if len(own) == 4 else (_MOVES, inner)
    order = next((each for each in orders if len(own) == len(each) and _fits([own[at] for at in each], wanted)), None)
    if order is not None and len(shape) == 4:
        return _sample_error(message, f"move its axes: x.transpose{order}{'' if len(own) == 4 else '[None]'}")
    size = math.prod(inner)
    if len(own) <= 2 < len(shape) and min(inner) > 0 and value.size and value.size % size == 0:
        return _sample_error(message, f"reshape it: x.reshape(-1, {', '.join(map(str, inner))})")
    if len(own) < len(shape) - 1:
        return _sample_error(message, "the first dimension is the batch: pass image[None] for a single image")
    batch = len(shape) - len(own)
    if batch in (0, 1):
        expected = zip(range(len(own)), own, shape[batch:], strict=True)
        unlike = [f": dimension {axis} has to be {size}" for axis, dim, size in expected if size not in (-1, dim)]
        message += "".join(unlike[:1])
    return _sample_error(message, "resize the samples, or set other sizes with input_shapes (--input-shape)")


def _dims(shape: Sequence[int]) -> str:
    return f"[{', '.join('?' if dim < 0 else str(dim) for dim in shape)}]"


def _forms(value: Array, shape: tuple[int, ...] | None) -> Iterator[Array]:
    """Yields a value, and the forms with a dimension of 1 added or removed if its rank is off by one."""
    yield value
    missing = 0 if shape is None else len(shape) - value.ndim
    if missing == 1:
        yield from (np.expand_dims(value, axis) for axis in range(value.ndim + 1))
    elif missing == -1:
        yield from (value.squeeze(axis) for axis, dim in enumerate(value.shape) if dim == 1)


def _fits(own: Sequence[int], shape: tuple[int, ...] | None) -> bool:
    return shape is None or (
        len(shape) == len(own) and all(dim in (-1, size) for dim, size in zip(shape, own, strict=True))
    )


def _texts(value: Array, what: str) -> Array:
    """Returns strings as bytes, which the runtime expects."""
    texts = [each.encode() if isinstance(each, str) else each for each in value.reshape(-1).tolist()]
    if not all(isinstance(each, bytes) for each in texts):
        raise _sample_error(f"{what} is of {value.dtype}, and the model expects strings")
    found = np.empty(len(texts), object)
    found[:] = texts
    return found.reshape(value.shape)


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(repr(str(name)) for name in names) or "none"


def _sample_error(message: str, hint: str = "") -> ConversionError:
    return error("wrong-sample", message, hint=hint)


def entries_of(module: ModuleOp) -> tuple[list[FuncOp], list[Entry]]:
    """Returns the exported functions of a module that are more than declared, with their inputs."""
    functions = [function for function in entry_functions(module) if not function.is_declaration]
    return functions, [_entry(function) for function in functions]


def _entry(function: FuncOp) -> Entry:
    arguments = function.body.block.args
    keys, names = [""], [f"arg{number}" for number in range(len(arguments))]
    if ENTRY_FUNCTION in function.attributes:
        interface = interface_of(function)
        keys = [*interface.keys, *interface.other_keys] or keys
        names = [tensor.name for tensor in interface.inputs]
    inputs = [_input(name, argument.type) for name, argument in zip(names, arguments, strict=True)]
    return Entry(keys[0], tuple(inputs), tuple(keys[1:]))


def _input(name: str, value_type: Attribute) -> Input:
    element = types.element_of(value_type)
    uniform = element.data if isinstance(element, quant.UniformType) else None
    mapping = None if uniform is None or uniform.axis is not None else (uniform.scales[0], uniform.zero_points[0])
    return Input(name, types.numpy_dtype(quant.storage_of(element)), types.shape_of(value_type), mapping)
