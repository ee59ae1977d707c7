"""Reads users' samples into the inputs of signatures."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from tfconvert.converter.ir.interface import entry_functions, interface_of
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION
from tfconvert.schema.ir.builtin import ModuleOp

_SUFFIXES = (".npz", ".npy")


class Input(NamedTuple):
    """An input of a signature.

    Attributes:
        name: Its name in the signature.
        dtype: Numpy's dtype of its elements.
        shape: Its shape, -1 for any size; `None` for any rank.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...] | None


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


def read(samples: Any, entries: Sequence[Entry], *, finite: bool = True) -> Iterator[Sample]:
    """Yields samples one by one, as they are read.

    Args:
        samples: The user's `Quantize.samples`, or data to verify a model on.
        entries: The model's signatures.
        finite: Whether to reject infinities and NaN.

    Raises:
        ConversionError: They don't fit the model's inputs (`wrong-sample`).
    """
    try:
        for entry, items in _by_entry(_called(samples), entries):
            items = _called(items)
            paths = _paths(items)
            each = items if paths is None else _from_files(paths, entries[entry])
            for number, item in enumerate(each):
                yield Sample(entry, _values(item, entries[entry], number, finite))
    except ConversionError:
        raise
    except (TypeError, ValueError, OSError) as problem:
        raise _sample_error(f"the samples can't be read: {problem}") from problem


def count(samples: Any) -> int | None:
    """Returns the number of samples, `None` if it is not known beforehand."""
    if isinstance(samples, Sequence) and not isinstance(samples, str) and _paths(samples) is None:
        return len(samples)
    return None


def _called(samples: Any) -> Any:
    return samples() if callable(samples) else samples


def _by_entry(samples: Any, entries: Sequence[Entry]) -> Iterator[tuple[int, Any]]:
    """Yields the samples of each signature."""
    keys = {key: number for number, entry in enumerate(entries) for key in (entry.key, *entry.aliases)}
    if isinstance(samples, Mapping) and samples and set(samples) <= set(keys):
        for key, own in samples.items():
            yield keys[key], own
    elif isinstance(samples, Mapping):
        # One sample, and arrays whose first axis counts samples, would look the same.
        raise _sample_error(
            "a mapping is neither samples by signature nor a list of samples",
            f"pass a list of mappings; the signatures are {_listed(keys)}",
        )
    elif len(entries) > 1 and _paths(samples) is None:
        raise _sample_error(
            f"the model has several signatures: {_listed(keys)}", "pass a mapping from signature to samples"
        )
    elif len(entries) > 1:
        raise _sample_error(
            f"the model has several signatures: {_listed(keys)}",
            "convert one with `signatures`, or pass samples in memory, by signature",
        )
    else:
        yield 0, samples


def _paths(samples: Any) -> list[Path] | None:
    """Returns the files of samples, `None` if they are in memory."""
    single = isinstance(samples, str | os.PathLike)
    listed = [samples] if single else list(samples) if isinstance(samples, list | tuple) else []
    if not listed or not all(isinstance(item, str | os.PathLike) for item in listed):
        return None
    found: list[Path] = []
    for path in map(Path, listed):
        files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES) if path.is_dir() else [path]
        if not files:
            raise _sample_error(f"the directory {path} has no .npz and no .npy files")
        found += files
    return found


def _from_files(paths: Iterable[Path], entry: Entry) -> Iterator[Mapping[str, Array]]:
    """Yields the samples of files, each a batch of one; the first axis of each array counts them."""
    for path in paths:
        try:
            arrays = _load(path, entry)
        except (OSError, ValueError, EOFError, BadZipFile, zlib.error) as problem:
            raise _sample_error(
                f"{path} can't be read: {problem}", "pass .npz or .npy files without pickled objects"
            ) from None
        lengths = {array.shape[:1] for array in arrays.values()}
        if len(lengths) != 1 or () in lengths:
            raise _sample_error(
                f"the arrays in {path} hold different numbers of samples, or single numbers",
                "the first axis of each counts the samples",
            )
        (length,) = lengths.pop()
        for index in range(length):
            yield {name: _one(array, index, entry, name) for name, array in arrays.items()}


def _load(path: Path, entry: Entry) -> dict[str, Array]:
    """Returns the arrays of a file for the entry's inputs, by name."""
    if path.suffix == ".npy":
        if len(entry.inputs) != 1:
            raise _sample_error(f"{path} has one array, and the model expects {len(entry.inputs)}", "pass an .npz file")
        return {entry.inputs[0].name: np.load(path, mmap_mode="r", allow_pickle=False)}
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
        names = {each.name for each in entry.inputs}
        found = {name: file[name] for name in file.files if name in names}
        if not found:
            raise _sample_error(
                f"none of the arrays in {path} ({_listed(file.files)}) has the name of an input",
                f"the inputs are {_listed(each.name for each in entry.inputs)}",
            )
    return found


def _one(array: Array, index: int, entry: Entry, name: str) -> Array:
    """Returns a sample of an array, as a batch of one unless the input has no batches."""
    shape = next(each.shape for each in entry.inputs if each.name == name)
    part: Array = array[index : index + 1]
    return part[0] if shape is not None and len(shape) == array.ndim - 1 else part


def _values(item: Any, entry: Entry, number: int, finite: bool) -> list[Array]:
    """Returns a sample's values in the order of the inputs, checked."""
    if isinstance(item, np.ndarray) or not isinstance(item, Mapping | Sequence):
        item = [item]
    if isinstance(item, Mapping):
        missing = [each.name for each in entry.inputs if each.name not in item]
        if missing:
            raise _sample_error(f"sample {number} has no value for {_listed(missing)}", f"it has {_listed(item)}")
        item = [item[each.name] for each in entry.inputs]
    if len(item) != len(entry.inputs):
        raise _sample_error(f"sample {number} has {len(item)} values, and the model expects {len(entry.inputs)}")
    values = [_checked(np.asarray(value), each, number) for value, each in zip(item, entry.inputs, strict=True)]
    for value, each in zip(values, entry.inputs, strict=True):
        if finite and value.dtype.kind == "f" and not np.isfinite(value).all():
            raise _sample_error(f"sample {number} of {each.name!r} has elements that are not finite")
    return values


def _checked(value: Array, wanted: Input, number: int) -> Array:
    what = f"sample {number} of {wanted.name!r}"
    if wanted.dtype.kind == "O":
        value = _texts(value, what)
    if value.dtype != wanted.dtype:
        if not np.can_cast(value.dtype, wanted.dtype, "same_kind"):
            raise _sample_error(f"{what} is of {value.dtype}, and the model expects {wanted.dtype}")
        with np.errstate(over="ignore"):
            cast = value.astype(wanted.dtype)
        if value.dtype.kind in "iu" and wanted.dtype.kind in "iu" and not np.array_equal(cast, value):
            raise _sample_error(f"{what} has elements that are too large for {wanted.dtype}")
        value = cast
    fitting = next((each for each in _forms(value, wanted.shape) if _fits(each.shape, wanted.shape)), None)
    if fitting is None:
        raise _sample_error(
            f"{what} has the shape {list(value.shape)}, and the model expects {list(wanted.shape or ())}"
        )
    return fitting


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
    """Returns the exported functions of a module with their inputs."""
    functions = entry_functions(module)
    return functions, [_entry(function) for function in functions]


def _entry(function: FuncOp) -> Entry:
    arguments = function.body.block.args
    keys, names = [""], [f"arg{number}" for number in range(len(arguments))]
    if ENTRY_FUNCTION in function.attributes:
        interface = interface_of(function)
        keys = [*interface.keys, *interface.other_keys] or keys
        names = [tensor.name for tensor in interface.inputs]
    inputs = [
        Input(name, types.numpy_dtype(types.element_of(argument.type)), types.shape_of(argument.type))
        for name, argument in zip(names, arguments, strict=True)
    ]
    return Entry(keys[0], tuple(inputs), tuple(keys[1:]))
