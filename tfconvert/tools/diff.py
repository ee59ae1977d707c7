"""The differences between two .tflite files: structure, weights, outputs on the same inputs, latency."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.quantize.samples import Entry, Input, read
from tfconvert.converter.targets.litert.runtime_process import Runtime
from tfconvert.converter.validation.comparison import compare
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.importers.tflite.outline import Outline, Signature, Tensor, outline, read_file
from tfconvert.ops.call import Array
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.tools.bench import measure
from tfconvert.tools.structure import Change, changed_attributes, changes
from tfconvert.tools.weights import WeightChange, changed_weights

_MAX = 32
_ROUNDING = float(np.finfo(np.float32).eps)
_ROUNDS = 3


class OutputChange(NamedTuple):
    """How an output differs: `what` as the end of a sentence, empty if it agrees."""

    signature: str
    output: str
    what: str
    max_absolute: float
    max_relative: float


class Diff(NamedTuple):
    """The differences between two files.

    Attributes:
        sizes: The bytes of each.
        structure: How they are built differently.
        weights: The constants that differ.
        outputs: The outputs of both on the same inputs.
        notes: What could not be compared.
        latency: The median time of each, in milliseconds; `None` unless measured.
    """

    sizes: tuple[int, int]
    structure: tuple[Change, ...] = ()
    weights: tuple[WeightChange, ...] = ()
    outputs: tuple[OutputChange, ...] = ()
    notes: tuple[str, ...] = ()
    latency: tuple[float, float] | None = None

    @property
    def is_same(self) -> bool:
        """Whether nothing differs but bytes, sizes and times."""
        return not (self.structure or self.weights or any(each.what for each in self.outputs))

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            "same": self.is_same,
            "sizes": list(self.sizes),
            "structure": [each._asdict() for each in self.structure],
            "weights": [each._asdict() for each in self.weights],
            "outputs": [each._asdict() for each in self.outputs],
            "notes": list(self.notes),
            **({"latency": list(self.latency)} if self.latency is not None else {}),
        }


def diff(
    first: str | os.PathLike[str], second: str | os.PathLike[str], data: Any = None, *, latency: bool = False
) -> Diff:
    """Returns how two files differ.

    Args:
        first: A file.
        second: The other.
        data: Inputs to run both on, as `Quantize.samples`; `None` for random ones.
        latency: Whether to measure how long each takes.
    """
    runtime.require()
    contents = [read_file(path) for path in (first, second)]
    outlines = [outline(content) for content in contents]
    modules = [import_tflite(content) for content in contents]
    outputs, notes = _outputs(contents, outlines, data)
    return Diff(
        (len(contents[0]), len(contents[1])),
        (*changes(*outlines), *changed_attributes(*modules)),
        tuple(changed_weights(*modules)),
        tuple(outputs),
        tuple(notes),
        _latency(first, second) if latency else None,
    )


def _latency(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> tuple[float, float]:
    """Returns the least of several medians of each, measured in turns."""
    rounds = [
        tuple(measure(path, by_operator=False).latency.median for path in (first, second)) for _ in range(_ROUNDS)
    ]
    return min(each[0] for each in rounds), min(each[1] for each in rounds)


def _outputs(contents: Sequence[bytes], outlines: Sequence[Outline], data: Any) -> tuple[list[OutputChange], list[str]]:
    found, notes = list[OutputChange](), list[str]()
    others = {each.key: each for each in outlines[1].signatures}
    distinct = list({each.subgraph: each for each in reversed(outlines[0].signatures)}.values())[::-1]
    alone = len(distinct) == len({each.subgraph for each in outlines[1].signatures}) == 1
    entries = [_entry(one, outlines[0].signatures) for one in distinct]
    with Runtime() as litert:
        for number, one in enumerate(distinct):
            label = one.key or "main"
            keys = [key for key in (entries[number].key, *entries[number].aliases) if key in others]
            other = others[keys[0]] if keys else outlines[1].signatures[0] if alone else None
            if other is None:
                continue  # Its absence is a difference of the structure.
            if [_kind(each) for each in one.inputs] != [_kind(each) for each in other.inputs]:
                notes.append(f"the outputs of {label!r} were not compared: the inputs differ")
                continue
            pair = _Pair(litert, contents, (one, other), label)
            draws = list(_given(entries, number, data)) if data is not None else _drawn(one.inputs)
            ran = [pair.run(values) for values in draws]
            found += pair.found.values()
            if not any(ran):
                notes.append(f"the outputs of {label!r} were not compared: {pair.refusal or 'there are no inputs'}")
    return found, notes


def _kind(tensor: Tensor) -> tuple[str, int]:
    return tensor.type, len(tensor.shape)


class _Pair:
    """The same signature of both files.

    Attributes:
        found: How each output differs so far.
        refusal: Why LiteRT can't run one of them on inputs.
    """

    def __init__(
        self, litert: Runtime, contents: Sequence[bytes], signatures: tuple[Signature, Signature], label: str
    ) -> None:
        self._litert, self._contents, self._signatures, self._label = litert, contents, signatures, label
        self.found: dict[str, OutputChange] = {}
        self.refusal = ""

    def run(self, values: Sequence[Array]) -> bool:
        """Compares the outputs on inputs; returns whether both files take them."""
        try:
            first, second = (
                self._run(content, each, values) for content, each in zip(self._contents, self._signatures, strict=True)
            )
        except ConversionError as problem:
            self.refusal = problem.diagnostics[0].message
            return False
        names = [tensor.name for tensor in self._signatures[0].outputs]
        for name, want, have in zip(names, first, second, strict=False):
            difference = compare(want, have, _ROUNDING)
            known = self.found.get(name) or OutputChange(self._label, name, "", 0.0, 0.0)
            self.found[name] = known._replace(
                what=known.what or difference.what,
                max_absolute=max(known.max_absolute, difference.absolute),
                max_relative=max(known.max_relative, difference.relative),
            )
        return True

    def _run(self, content: bytes, signature: Signature, values: Sequence[Array]) -> list[Array]:
        """Runs one file; outputs of the same names are in the first file's order."""
        fed = {tensor.name: value for tensor, value in zip(signature.inputs, values, strict=True)}
        wanted, own = ([tensor.name for tensor in each.outputs] for each in (self._signatures[0], signature))
        names = wanted if set(wanted) == set(own) else own
        results = self._litert.run_file(content, signature.key, fed, names)
        return results if signature.key else [results[own.index(name)] for name in names]


def _entry(signature: Signature, signatures: Sequence[Signature]) -> Entry:
    """Returns what a signature takes, with the other keys of the same subgraph."""
    aliases = tuple(each.key for each in signatures if each.subgraph == signature.subgraph and each != signature)
    inputs = tuple(Input(each.name, _dtype(each.type), each.shape) for each in signature.inputs)
    return Entry(signature.key, inputs, aliases)


def _given(entries: Sequence[Entry], number: int, data: Any) -> Iterator[Sequence[Array]]:
    """Yields the user's inputs for a signature."""
    yield from islice((each.values for each in read(data, entries, finite=False) if each.entry == number), _MAX)


def _drawn(tensors: Sequence[Tensor]) -> Iterator[list[Array]]:
    """Yields random inputs: with zeros for integers, which every table has, and with small ones."""
    for most in (1, 8):
        yield [_value(tensor, most) for tensor in tensors]


def _value(tensor: Tensor, most: int) -> Array:
    shape = tuple(2 if dim < 0 else dim for dim in tensor.shape)
    random = np.random.default_rng([zlib.crc32(tensor.name.encode()), most])
    dtype = _dtype(tensor.type)
    if dtype.kind == "O":
        texts = np.empty(shape, object)
        texts.fill(b"text")
        return texts
    if dtype.kind in "iub":
        return random.integers(0, 2 if dtype.kind == "b" else most, shape).astype(dtype)
    return random.uniform(-1, 1, shape).astype(dtype)


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(object if name == "string" else name)
