"""The contents of a LiteRT file, on disk or just converted, from its tables, without reading weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfconvert.converter.ir.interface import Interface, Tensor
from tfconvert.converter.ir.option_map import decode
from tfconvert.importers.tflite.buffers import content_of
from tfconvert.importers.tflite.operators import Code, code
from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.tflite.arena import Schedule, schedule_of
from tfconvert.schema.tflite.compiled_model import Table, compiled_model_note
from tfconvert.schema.tflite.operators import OPTIONS, OPTIONS_2
from tfconvert.schema.tflite.reader import Allowance, View, malformed, read_model
from tfconvert.schema.tflite.versions import minimum_runtime

# Options that name a subgraph.
_CALLS = (
    "then_subgraph_index",
    "else_subgraph_index",
    "cond_subgraph_index",
    "body_subgraph_index",
    "init_subgraph_index",
    "decomposition_subgraph_index",
)


def called_subgraphs(subgraph: View) -> set[int]:
    """Returns the indices of the subgraphs that a subgraph's operators call."""
    called = set()
    for operator in subgraph["operators"] or ():
        for field in (OPTIONS, OPTIONS_2):
            options = operator[field]
            if options is not None:
                called |= {options[name] for name in options.stored() if name in _CALLS}
    return {index for index in called if index >= 0}


_COMPOSITE = "StableHLOCompositeOptions"

# The metadata entry of the runtime that a file needs.
_RUNTIME = "min_runtime_version"


class OperatorUse(NamedTuple):
    """The use of an operator in a file.

    Attributes:
        name: Its name, `CONV_2D`; a custom one's own.
        version: The version that the file requires.
        calls: How many times it is called.
        is_custom: Whether it is not one of the runtime's builtins.
    """

    name: str
    version: int
    calls: int
    is_custom: bool


class CompositeUse(NamedTuple):
    """The use of a composite in a file.

    Attributes:
        name: Its name, `odml.rms_norm`.
        attributes: Its attributes; empty if they can't be read.
        calls: How many times it is called with these.
    """

    name: str
    attributes: Mapping[str, Any]
    calls: int


class LiteRTFile(NamedTuple):
    """The contents of a LiteRT file.

    Attributes:
        size: Its size in bytes.
        constants: Bytes of weights and other constants.
        description: Its description.
        min_runtime_version: The first release of the runtime that can run it; empty if unknown.
        signatures: Its signatures; the main subgraph if it has none.
        subgraphs: How many there are.
        operators: Its operators, the most frequent first.
        activations: The minimum bytes that the runtime needs for computed tensors, for each signature or for `main`,
            with dynamic sizes as stored.
        constant_types: The number of constants of each type, such as `int8 per channel`.
        computed_types: The same of inputs and computed tensors.
        metadata: Sizes of the metadata entries by name.
        arena: The bytes that the runtime plans for the computed tensors of the main subgraph, with dynamic sizes as
            stored; `None` if unknown.
        composites: Its composites, the most frequent first.
        notes: Notes for its users; not part of `to_dict`.
    """

    size: int
    constants: int
    description: str
    min_runtime_version: str
    signatures: tuple[Interface, ...]
    subgraphs: int
    operators: tuple[OperatorUse, ...]
    activations: Mapping[str, int]
    constant_types: Mapping[str, int]
    computed_types: Mapping[str, int]
    metadata: Mapping[str, int]
    arena: int | None
    composites: tuple[CompositeUse, ...]
    notes: tuple[Diagnostic, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            **{name: value for name, value in self._asdict().items() if name != "notes"},
            "signatures": [interface.to_dict() for interface in self.signatures],
            "operators": [operator._asdict() for operator in self.operators],
            "composites": [composite._asdict() for composite in self.composites],
        }


def read_file(path: str) -> LiteRTFile:
    """Returns the contents of a file."""
    view = content_of(path).view
    return describe(read_model(view, Allowance(len(view))), len(view))


def describe(model: View, size: int, constants: int | None = None) -> LiteRTFile:
    """Returns the contents of a file.

    Args:
        model: Its tables.
        size: Its size.
        constants: Bytes of its constants, if they are not stored after the tables yet.
    """
    reader = _Reader(model, is_whole=constants is None)
    uses = reader.operators()
    stated = reader.runtime()
    builtin = ((each.name, each.version) for each in uses if not each.is_custom)
    return LiteRTFile(
        size,
        reader.constants() if constants is None else constants,
        model["description"] or "",
        minimum_runtime(builtin) if stated is None else stated,
        tuple(reader.signatures()),
        len(reader.subgraphs),
        uses,
        reader.activations(),
        *reader.types(),
        reader.metadata(),
        reader.arena(),
        reader.composites(),
        reader.notes(),
    )


class _Reader:
    def __init__(self, model: View, *, is_whole: bool) -> None:
        self._model = model
        self._is_whole = is_whole
        self._buffers: Sequence[View] = model["buffers"] or ()
        self.subgraphs: Sequence[View] = model["subgraphs"] or ()
        if not self.subgraphs:
            raise malformed("the file has no subgraph")
        self._codes: list[Code] = [code(view) for view in model["operator_codes"] or ()]
        self._sizes: dict[int, int] = {}

    def is_constant(self, tensor: Table) -> bool:
        """Returns whether a tensor's value is in the file, or beside it."""
        assert isinstance(tensor, View)
        if tensor["external_buffer"]:
            return True
        return self._size(tensor["buffer"]) > 0 if self._is_whole else bool(tensor["buffer"])

    def constants(self) -> int:
        """Returns the bytes of the tensors' values."""
        used = {tensor["buffer"] for subgraph in self.subgraphs for tensor in subgraph["tensors"] or ()}
        return sum(map(self._size, used))

    def operators(self) -> tuple[OperatorUse, ...]:
        """Returns the operators in use, the most frequent first."""
        counts = Counter(call["opcode_index"] for subgraph in self.subgraphs for call in subgraph["operators"] or ())
        if counts and max(counts) >= len(self._codes):
            raise malformed(f"an operator has code {max(counts)}, but the file lists {len(self._codes)}")
        uses = [
            OperatorUse(
                self._codes[index].custom or self._codes[index].name.upper(),
                self._codes[index].version,
                count,
                bool(self._codes[index].custom),
            )
            for index, count in counts.items()
        ]
        return tuple(sorted(uses, key=lambda each: (-each.calls, each.name, each.version)))

    def composites(self) -> tuple[CompositeUse, ...]:
        """Returns the composites in use, the most frequent first."""
        counts: Counter[tuple[str, bytes]] = Counter()
        for subgraph in self.subgraphs:
            for call in subgraph["operators"] or ():
                options = call[OPTIONS_2]
                if options is not None and options.table == _COMPOSITE:
                    attributes = options["composite_attributes"]
                    counts[options["name"] or "", b"" if attributes is None else attributes.tobytes()] += 1
        uses = [CompositeUse(name, _decoded(data), count) for (name, data), count in counts.items()]
        return tuple(sorted(uses, key=lambda each: (-each.calls, each.name)))

    def signatures(self) -> list[Interface]:
        """Returns the signatures, those of the same subgraph under the same names together."""
        found: dict[tuple[int, tuple[Tensor, ...], tuple[Tensor, ...]], list[str]] = {}
        for view in self._model["signature_defs"] or ():
            index = view["subgraph_index"]
            if index >= len(self.subgraphs):
                raise malformed(f"a signature refers to subgraph {index}, which does not exist")
            inputs, outputs = (
                tuple(self._tensor(index, each["tensor_index"], each["name"] or "") for each in view[side] or ())
                for side in ("inputs", "outputs")
            )
            found.setdefault((index, inputs, outputs), []).append(view["signature_key"] or "")
        if not found:
            inputs, outputs = (
                tuple(self._tensor(0, each) for each in _numbers(self.subgraphs[0], side))
                for side in ("inputs", "outputs")
            )
            found[0, inputs, outputs] = []
        return [
            Interface(self._symbol(index), tuple(keys), inputs, outputs)
            for (index, inputs, outputs), keys in found.items()
        ]

    def activations(self) -> dict[str, int]:
        """Returns the memory of computed tensors by signature."""
        entries = {view["signature_key"] or "": view["subgraph_index"] for view in self._model["signature_defs"] or ()}
        needed = {}
        for name, start in (entries or {"main": 0}).items():
            reached, pending = {start}, [start]
            while pending:
                new = {
                    index for index in called_subgraphs(self.subgraphs[pending.pop()]) if index < len(self.subgraphs)
                }
                pending += sorted(new - reached)
                reached |= new
            needed[name] = sum(self._schedule(index).peak() for index in sorted(reached))
        return needed

    def arena(self) -> int | None:
        """Returns the bytes of the main subgraph's arena."""
        return self._schedule(0).arena()

    def _schedule(self, index: int) -> Schedule:
        return schedule_of(self.subgraphs[index], self.is_constant)

    def types(self) -> tuple[dict[str, int], dict[str, int]]:
        """Returns how many constants and how many other tensors there are of each type."""
        counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        for subgraph in self.subgraphs:
            for tensor in subgraph["tensors"] or ():
                counts[0 if self.is_constant(tensor) else 1][_type_name(tensor)] += 1
        constants, computed = (dict(sorted(each.items(), key=lambda item: (-item[1], item[0]))) for each in counts)
        return constants, computed

    def metadata(self) -> dict[str, int]:
        """Returns the sizes of the metadata entries."""
        if not self._is_whole:
            return {}
        return {view["name"] or "": self._size(view["buffer"]) for view in self._model["metadata"] or ()}

    def notes(self) -> tuple[Diagnostic, ...]:
        """Returns notes for users of the file."""
        note = compiled_model_note(self.subgraphs, [each.custom or each.name.upper() for each in self._codes])
        return () if note is None else (note,)

    def runtime(self) -> str | None:
        """Returns the release that the file asks for, or `None`."""
        for view in self._model["metadata"] or () if self._is_whole else ():
            if view["name"] == _RUNTIME and view["buffer"] < len(self._buffers):
                data = self._buffers[view["buffer"]]["data"]
                return None if data is None else data.tobytes().rstrip(b"\0").decode("ascii", "replace")
        return None

    def _size(self, index: int) -> int:
        if index >= len(self._buffers):
            raise malformed(f"a tensor has buffer {index}, but the file has {len(self._buffers)}")
        if index not in self._sizes:
            view = self._buffers[index]
            self._sizes[index] = max(view.place("data")[1], int(view["size"]))
        return self._sizes[index]

    def _symbol(self, index: int) -> str:
        return self.subgraphs[index]["name"] or ("main" if index == 0 else f"subgraph_{index}")

    def _tensor(self, subgraph: int, index: int, name: str = "") -> Tensor:
        tensors = self.subgraphs[subgraph]["tensors"] or ()
        if not 0 <= index < len(tensors):
            raise malformed(f"subgraph {subgraph} has no tensor {index}")
        view = tensors[index]
        shape = view["shape_signature"] if view["shape_signature"] is not None else view["shape"]
        dims = None if shape is None else tuple(None if dim < 0 else dim for dim in shape.tolist())
        dtype = (view.name("type") or "unknown").lower()
        text = "..." if dims is None else ",".join("?" if dim is None else str(dim) for dim in dims)
        quantization = view["quantization"]
        scales = quantization["scale"] if quantization is not None else None
        name = name or view["name"] or ""
        if scales is None or scales.size != 1:
            return Tensor(name, f"{dtype}[{text}]", dtype, dims)
        zeros = quantization["zero_point"]
        zero = int(zeros[0]) if zeros is not None and zeros.size else 0
        told = f" (scale {scales[0]:.6g}, zero point {zero})"
        return Tensor(name, f"{dtype}[{text}]{told}", dtype, dims, float(scales[0]), zero)


def _decoded(data: bytes) -> Mapping[str, Any]:
    return decode(data) or {} if data else {}


def _numbers(view: View, field: str) -> list[int]:
    values = view[field]
    return [] if values is None else values.tolist()


def _type_name(tensor: View) -> str:
    name = (tensor.name("type") or "unknown").lower()
    quantization = tensor["quantization"]
    scales = quantization["scale"] if quantization is not None else None
    if scales is None or not scales.size:
        return name
    return f"{name} per channel" if scales.size > 1 else f"{name} per tensor"
