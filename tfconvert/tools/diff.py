"""The differences between two .tflite files: structure, weights, outputs on the same inputs, latency."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import ml_dtypes
import numpy as np

from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.quantize.samples import Entry, Input
from tfconvert.converter.targets.litert.runtime_process import LiteRTProcess
from tfconvert.converter.validation.comparison import compare
from tfconvert.converter.validation.inputs import sizes_of
from tfconvert.converter.validation.result_check import samples_of
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.importers.tflite.outline import Outline, OutlineSignature, OutlineTensor, outline, read_file
from tfconvert.ops.call import Array
from tfconvert.schema.diagnostics import ConversionError, Diagnostic, printable
from tfconvert.schema.dialects import quant, tensor_data, tfl, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.tools.bench import measure

_T = TypeVar("_T")

# Floats that were computed in another order differ by so many roundings of the largest number.
_FEW_ROUNDINGS = 8

# Longer entries of the metadata are shown as their length and checksum.
_MAX_SHOWN = 40


class Change(NamedTuple):
    """One difference.

    Attributes:
        section: The subject: `operators`, `versions`, `signatures`, `metadata`, `files` (in the archive at the
            end) or `attributes`.
        what: What differs.
        first: What the first file has; empty if it lacks it.
        second: What the second file has.
    """

    section: str
    what: str
    first: str
    second: str


def changes(first: Outline, second: Outline) -> Iterator[Change]:
    """Yields the differences between the outlines of two files."""
    yield from _changes("operators", first.operators, second.operators)
    both = set(first.versions) & set(second.versions)
    versions = [{name: each.versions[name] for name in both} for each in (first, second)]
    yield from _changes("versions", *versions)
    yield from _changes("signatures", _interfaces(first), _interfaces(second))
    yield from _changes("metadata", _metadata(first), _metadata(second))
    yield from _changes("files", first.files, second.files)


def changed_attributes(first: ModuleOp, second: ModuleOp) -> Iterator[Change]:
    """Yields the differences of operators' attributes, if both files have the same operators in the same order."""
    pairs = [_operators(first), _operators(second)]
    if [op.name for op in pairs[0]] != [op.name for op in pairs[1]]:
        return
    for one, other in zip(*pairs, strict=True):
        where = f"{one.name.removeprefix('tfl.').upper()} {node_of(one.location)}"
        for change in _changes("attributes", one.properties, other.properties):
            yield change._replace(what=f"{change.what} of {where}")


def _operators(module: ModuleOp) -> list[Operation]:
    return [
        op
        for function in module.ops
        if isinstance(function, FuncOp)
        for op in function.body.block.ops
        if isinstance(op, tfl.TFLOp) and not op.op_name.startswith("pseudo_")
    ]


def _changes(section: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[Change]:
    for name in sorted(first.keys() | second.keys()):
        one, other = first.get(name), second.get(name)
        if one != other:
            yield Change(section, name, "" if one is None else str(one), "" if other is None else str(other))


def _interfaces(outline: Outline) -> dict[str, str]:
    return {
        each.key or "main": f"{', '.join(map(str, each.inputs)) or '()'} -> {', '.join(map(str, each.outputs))}"
        for each in outline.signatures
    }


def _metadata(outline: Outline) -> dict[str, str]:
    shown = {name: _shown(content) for name, content in outline.metadata.items()}
    return {**shown, "description": outline.description}


def _shown(content: bytes) -> str:
    text = content.rstrip(b"\0")
    if len(text) <= _MAX_SHOWN and text.isascii() and text.decode().isprintable():
        return text.decode()
    return f"{len(content)} bytes of CRC {zlib.crc32(content):08x}"


_CONSTANTS = frozenset(("tfl.pseudo_const", "tfl.pseudo_qconst"))


class DiffWeight(NamedTuple):
    """A constant: its name, its type as text, its shape, and its op."""

    name: str
    type: str
    shape: tuple[int, ...]
    op: Operation


class WeightChange(NamedTuple):
    """Two constants that differ, or one without a counterpart.

    Attributes:
        name: The name in the first file; in the second, if the first lacks it.
        first: The type in the first file; empty if it lacks it.
        second: The type in the second file.
        shape: The shape.
        numbers: How many numbers differ.
        absolute: The maximum absolute difference.
        relative: The same, relative to the largest number.
        is_rounding: Whether no number differs by more than a step of the coarser type; floats by a few roundings of the
            largest number.
    """

    name: str
    first: str
    second: str
    shape: tuple[int, ...]
    numbers: int = 0
    absolute: float = 0.0
    relative: float = 0.0
    is_rounding: bool = False


def changed_weights(first: ModuleOp, second: ModuleOp) -> Iterator[WeightChange]:
    """Yields the constants that differ; compares those of equal names, and others of equal shapes in order."""
    ours, theirs = list(_weights(first)), list(_weights(second))
    pairs = _pairs(ours, theirs)
    known = {id(other.op) for _, other in pairs}
    paired = {id(one.op) for one, _ in pairs}
    for one, other in pairs:
        change = _change(one, other)
        if change is not None:
            yield change
    yield from (WeightChange(one.name, one.type, "", one.shape) for one in ours if id(one.op) not in paired)
    yield from (WeightChange(each.name, "", each.type, each.shape) for each in theirs if id(each.op) not in known)


def _weights(module: ModuleOp) -> Iterator[DiffWeight]:
    for function in module.ops:
        if isinstance(function, FuncOp):
            for op in function.body.block.ops:
                if op.name in _CONSTANTS and tensor_data.is_constant(op.properties.get("value")):
                    kind = op.results[0].type
                    shape = types.shape_of(kind) or ()
                    yield DiffWeight(node_of(op.location), _text(types.element_of(kind)), tuple(shape), op)


def _text(element: Any) -> str:
    text = str(quant.storage_of(element)).removeprefix("!tf_type.")
    if not isinstance(element, quant.UniformType):
        return text
    scales = element.data.scales
    return f"{text} (scale {scales[0]:.6g})" if len(scales) == 1 else f"{text} ({len(scales)} scales)"


def _pairs(ours: Sequence[DiffWeight], theirs: Sequence[DiffWeight]) -> list[tuple[DiffWeight, DiffWeight]]:
    """Returns matching constants: those of equal name and shape, then those of equal shape in order."""
    pairs: list[tuple[DiffWeight, DiffWeight]] = []
    left = list(theirs)
    rest = []
    for one in ours:
        found = next((other for other in left if (other.name, other.shape) == (one.name, one.shape)), None)
        if found is None:
            rest.append(one)
        else:
            left.remove(found)
            pairs.append((one, found))
    for one in rest:
        found = next((other for other in left if other.shape == one.shape), None)
        if found is not None:
            left.remove(found)
            pairs.append((one, found))
    return pairs


def _change(one: DiffWeight, other: DiffWeight) -> WeightChange | None:
    first, second = tensor_data.to_array(one.op.properties["value"]), tensor_data.to_array(other.op.properties["value"])
    kinds = [each.op.results[0].type for each in (one, other)]
    if kinds[0] == kinds[1] and first.tobytes() == second.tobytes() and first.dtype.kind != "O":
        return None
    if first.dtype.kind in "OS" or second.dtype.kind in "OS":
        count = int(np.count_nonzero(first != second)) if first.shape == second.shape else first.size
        return WeightChange(one.name, one.type, other.type, one.shape, count) if count else None
    a, b = _numbers(first, kinds[0]), _numbers(second, kinds[1])
    distance = np.abs(a - b)
    largest, scale = float(np.max(distance, initial=0)), float(np.max(np.abs(a), initial=0))
    widest = max(scale, float(np.max(np.abs(b), initial=0)))
    count = int(np.count_nonzero(distance))
    steps = np.maximum(_step(first, kinds[0], widest), _step(second, kinds[1], widest))
    is_rounding = count > 0 and bool(np.all(distance <= steps))
    relative = largest / scale if scale else largest
    return WeightChange(one.name, one.type, other.type, one.shape, count, largest, relative, is_rounding)


def _numbers(stored: Array, kind: Any) -> Array:
    """Returns the numbers that a constant represents."""
    element = types.element_of(kind)
    numbers = stored.astype(np.complex128 if stored.dtype.kind == "c" else np.float64)
    if not isinstance(element, quant.UniformType):
        return numbers
    uniform = element.data
    scales, zeros = (_along(uniform.axis, each, numbers.ndim) for each in (uniform.scales, uniform.zero_points))
    return np.asarray((numbers - zeros) * scales)


def _along(axis: int | None, numbers: Sequence[float], rank: int) -> Array:
    """Returns numbers of a quantized type in a shape that broadcasts to that of the tensor."""
    return np.reshape(np.array(numbers, np.float64), [-1 if each == axis else 1 for each in range(rank)])


def _step(stored: Array, kind: Any, largest: float) -> Array:
    """Returns the distance of neighbouring numbers of a constant: the scales; for floats, a few at the largest."""
    element = types.element_of(kind)
    if isinstance(element, quant.UniformType):
        return _along(element.data.axis, element.data.scales, stored.ndim)
    if stored.dtype.kind not in "fc" and "float" not in stored.dtype.name:
        return np.asarray(0.0)
    return np.asarray(_FEW_ROUNDINGS * float(ml_dtypes.finfo(stored.dtype).eps) * largest)  # type: ignore[no-untyped-call]


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
        structure: The differences in structure.
        weights: The constants that differ.
        outputs: The outputs of both on the same inputs.
        notes: Notes about outputs that could not be compared, and about the inputs.
        latency: The median time of each, in milliseconds; `None` unless measured.
        names: The names of the files.
    """

    sizes: tuple[int, int]
    structure: tuple[Change, ...] = ()
    weights: tuple[WeightChange, ...] = ()
    outputs: tuple[OutputChange, ...] = ()
    notes: tuple[str, ...] = ()
    latency: tuple[float, float] | None = None
    names: tuple[str, str] = ("first", "second")

    @property
    def is_same(self) -> bool:
        """Whether only bytes, sizes and times differ."""
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

    def to_text(self) -> str:
        """Returns the first differences of each kind as text."""
        return "\n".join(map(printable, self._lines()))

    def _lines(self) -> Iterator[str]:
        sizes = [f"{name}: {size} bytes" for name, size in zip(self.names, self.sizes, strict=True)]
        yield "; ".join(sizes)
        if self.outputs:
            yield "  outputs:"
            yield from _few(
                [
                    f"{each.signature}/{each.output} {each.what or 'agrees'}{_largest_error(each)}"
                    for each in self.outputs
                ]
            )
        for section in dict.fromkeys(change.section for change in self.structure):
            yield f"  {section}:"
            own = [change for change in self.structure if change.section == section]
            yield from _few([f"{each.what}: {each.first or 'none'} -> {each.second or 'none'}" for each in own])
        if self.weights:
            yield "  weights:"
            yield from _few(
                [
                    f"{each.name} {list(each.shape)}: {each.first or 'none'} -> {each.second or 'none'}"
                    + (f", {each.numbers} numbers differ, by up to {each.absolute:.3g}" if each.numbers else "")
                    for each in self.weights
                    if not each.is_rounding
                ]
            )
            yield from _rounded([each for each in self.weights if each.is_rounding])
        yield from (f"  note: {note}" for note in self.notes)
        if self.latency is not None:
            one, other = self.latency
            yield f"  latency: {one:.3f} ms -> {other:.3f} ms, {other / one:.2f} times" if one else "  latency: none"
        yield "  the same" if self.is_same else "  different"

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return self.to_text()


def _largest_error(output: OutputChange) -> str:
    """Returns the figures of an output; empty for other shapes."""
    if not np.isfinite(output.max_absolute):
        return ""
    return f" (largest error {output.max_absolute:.2e}, {output.max_relative:.1e} of the largest value)"


# Maximum number of lines of a section of the text.
_MAX_LINES = 20


def _few(lines: list[str]) -> list[str]:
    more = [f"    ... and {len(lines) - _MAX_LINES} more (--json has all)"] if len(lines) > _MAX_LINES else []
    return [f"    {line}" for line in lines[:_MAX_LINES]] + more


def _rounded(weights: Sequence[WeightChange]) -> Iterator[str]:
    """Yields a line for each pair of types of the weights that differ by less than a step."""
    groups: dict[str, list[WeightChange]] = {}
    for each in weights:
        first, second = (kind.partition(" (")[0] for kind in (each.first, each.second))
        groups.setdefault(f"{first} -> {second}", []).append(each)
    for kinds, group in groups.items():
        largest = max(each.absolute for each in group)
        what = f"{len(group)} weight{'s'[: len(group) > 1]}, {kinds}"
        yield f"    {what}: differ by rounding only, by up to {largest:.3g} (--json lists them)"


def _read(read: Callable[[bytes], _T], content: bytes, path: str | os.PathLike[str]) -> _T:
    """Returns what is read from a file; an error about its contents names the file, as it is one of two."""
    try:
        return read(content)
    except ConversionError as problem:
        first, *rest = problem.diagnostics
        message = f"{os.fspath(path)}: {first.message}"
        raise ConversionError([first._replace(message=message), *rest], problem.advice) from problem


def diff(
    first: str | os.PathLike[str], second: str | os.PathLike[str], data: Any = None, *, latency: bool = False
) -> Diff:
    """Returns how two files differ.

    Args:
        first: A file.
        second: The other.
        data: Inputs to run both on, as `Quantize.samples`; `None` for random ones.
        latency: Whether to measure the latency of both.
    """
    runtime.require()
    contents = [read_file(path) for path in (first, second)]
    outlines = [_read(outline, content, path) for content, path in zip(contents, (first, second), strict=True)]
    modules = [_read(import_tflite, content, path) for content, path in zip(contents, (first, second), strict=True)]
    found: list[Diagnostic] = []
    outputs, notes = _outputs(contents, outlines, data, found)
    return Diff(
        (len(contents[0]), len(contents[1])),
        (*changes(*outlines), *changed_attributes(*modules)),
        tuple(changed_weights(*modules)),
        tuple(outputs),
        (*notes, *dict.fromkeys(map(str, found))),
        _latency(first, second) if latency else None,
        (os.fspath(first), os.fspath(second)),
    )


def _latency(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> tuple[float, float]:
    """Returns the minimum of several medians of each, measured alternately."""
    rounds = [
        tuple(measure(path, by_operator=False).latency.median for path in (first, second)) for _ in range(_ROUNDS)
    ]
    return min(each[0] for each in rounds), min(each[1] for each in rounds)


def _outputs(
    contents: Sequence[bytes], outlines: Sequence[Outline], data: Any, read_notes: list[Diagnostic]
) -> tuple[list[OutputChange], list[str]]:
    found, notes = list[OutputChange](), list[str]()
    others = {each.key: each for each in outlines[1].signatures}
    distinct = list({each.subgraph: each for each in reversed(outlines[0].signatures)}.values())[::-1]
    alone = len(distinct) == len({each.subgraph for each in outlines[1].signatures}) == 1
    entries = [_entry(one, outlines[0].signatures) for one in distinct]
    with LiteRTProcess() as litert:
        for number, one in enumerate(distinct):
            label = one.key or "main"
            keys = [key for key in (entries[number].key, *entries[number].aliases) if key in others]
            other = others[keys[0]] if keys else outlines[1].signatures[0] if alone else None
            if other is None:
                continue  # A missing output is a difference in structure.
            if data is None and any(-1 in each.shape for each in one.inputs):
                notes.append(f"{label!r} ran with 2 for a dynamic batch, and with 32 for other dynamic sizes")
            if [_kind(each) for each in one.inputs] != [_kind(each) for each in other.inputs]:
                notes.append(f"the outputs of {label!r} were not compared: the inputs differ")
                continue
            pair = _Pair(litert, contents, (one, other), label)
            draws = list(samples_of(data, entries, number, read_notes)) if data is not None else drawn(one.inputs)
            ran = [pair.run(values) for values in draws]
            found += pair.found.values()
            if not any(ran):
                notes.append(f"the outputs of {label!r} were not compared: {pair.refusal or 'there are no inputs'}")
    return found, notes


def _kind(tensor: OutlineTensor) -> tuple[str, int]:
    return tensor.type, len(tensor.shape)


class _Pair:
    """The same signature of both files.

    Attributes:
        found: The difference of each output so far.
        refusal: Why LiteRT can't run one of them on inputs.
    """

    def __init__(
        self,
        litert: LiteRTProcess,
        contents: Sequence[bytes],
        signatures: tuple[OutlineSignature, OutlineSignature],
        label: str,
    ) -> None:
        self._litert, self._contents, self._signatures, self._label = litert, contents, signatures, label
        self.found: dict[str, OutputChange] = {}
        self.refusal = ""

    def run(self, values: Sequence[Array]) -> bool:
        """Compares the outputs on inputs; returns whether both files accept them."""
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

    def _run(self, content: bytes, signature: OutlineSignature, values: Sequence[Array]) -> list[Array]:
        """Runs one file; outputs of the same names are in the first file's order."""
        fed = {tensor.name: value for tensor, value in zip(signature.inputs, values, strict=True)}
        wanted, own = ([tensor.name for tensor in each.outputs] for each in (self._signatures[0], signature))
        names = wanted if set(wanted) == set(own) else own
        results = self._litert.run_file(content, signature.key, fed, names)
        return results if signature.key else [results[own.index(name)] for name in names]


def _entry(signature: OutlineSignature, signatures: Sequence[OutlineSignature]) -> Entry:
    """Returns the inputs of a signature, with the other keys of the same subgraph."""
    aliases = tuple(each.key for each in signatures if each.subgraph == signature.subgraph and each != signature)
    inputs = tuple(Input(each.name, _dtype(each.type), each.shape) for each in signature.inputs)
    return Entry(signature.key, inputs, aliases)


def drawn(tensors: Sequence[OutlineTensor]) -> Iterator[list[Array]]:
    """Yields random inputs: first with zeros for integers, which every table accepts, then with small integers."""
    for most in (1, 8):
        yield [_value(tensor, most) for tensor in tensors]


def _value(tensor: OutlineTensor, most: int) -> Array:
    shape = sizes_of(tensor.shape)
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
