"""The outline of a .tflite file: signatures, tensors, operators and metadata, without its weights."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tfconvert.importers.tflite import operators
from tfconvert.importers.tflite.buffers import check_identifier, unreadable
from tfconvert.schema import files
from tfconvert.schema.tflite import associated_files
from tfconvert.schema.tflite.reader import Allowance, View, malformed, read_model
from tfconvert.schema.tflite.tables import TFLITE


class OutlineTensor(NamedTuple):
    """A tensor, or an input or output under its name in a signature."""

    name: str  # Its name.
    type: str  # The enumerator of its type, in lower case.
    shape: tuple[int, ...]  # Its shape; -1 for dynamic sizes.
    number: int  # Its place in the subgraph.
    scale: float = 0.0  # The scale of its integers, the first of several channels; 0 if it is not quantized.
    zero_point: int = 0  # The zero point of its integers.

    def __str__(self) -> str:
        return f"{self.name} {self.type}[{','.join('?' if dim < 0 else str(dim) for dim in self.shape)}]"


class OutlineOperator(NamedTuple):
    """An operator of a subgraph: its name, its version, its operands and results."""

    name: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class OutlineSignature(NamedTuple):
    """A signature; the key is empty for the first subgraph of a file without signatures."""

    key: str
    subgraph: int
    inputs: tuple[OutlineTensor, ...]
    outputs: tuple[OutlineTensor, ...]


class Outline(NamedTuple):
    """The outline of a file."""

    size: int  # Its bytes.
    description: str  # Its description.
    signatures: tuple[OutlineSignature, ...]  # Its signatures; if it has none, its first subgraph as one without a key.
    # The operators of each subgraph, in the order in which they run.
    subgraphs: tuple[tuple[OutlineOperator, ...], ...]
    tensors: tuple[tuple[OutlineTensor, ...], ...]  # The tensors of each subgraph.
    main_inputs: tuple[OutlineTensor, ...]  # The inputs of the first subgraph in its order, under their own names.
    metadata: dict[str, bytes]  # Metadata entries by name.
    files: dict[str, str]  # Descriptions of the files in the archive at its end, such as labels, by name.

    @property
    def is_quantized(self) -> bool:
        """Whether some numbers are stored as quantized integers, or as 16-bit floats that become 32-bit."""
        halves = any(each.type == "float16" for tensors in self.tensors for each in tensors)
        has_scales = any(each.scale for tensors in self.tensors for each in tensors)
        return has_scales or (halves and self.operators["DEQUANTIZE"] > 0)

    @property
    def inputs(self) -> tuple[OutlineTensor, ...]:
        """The inputs of the first subgraph in its order, under the names of its first signature if it has one."""
        own = next((each for each in self.signatures if each.subgraph == 0), None)
        names = {each.number: each.name for each in own.inputs} if own is not None else {}
        return tuple(each._replace(name=names.get(each.number, each.name)) for each in self.main_inputs)

    @property
    def operators(self) -> Counter[str]:
        """The number of operators of each name."""
        return Counter(operator.name for subgraph in self.subgraphs for operator in subgraph)

    @property
    def versions(self) -> dict[str, int]:
        """The highest version of each operator."""
        found: dict[str, int] = {}
        for operator in (each for subgraph in self.subgraphs for each in subgraph):
            found[operator.name] = max(operator.version, found.get(operator.name, 0))
        return found


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Returns the bytes of a file.

    Raises:
        ConversionError: It can't be read (`model-not-found`), or is another kind of file (`foreign-format`,
            `malformed-tflite`).
    """
    try:
        content = files.read_file(path)
    except OSError as problem:
        raise unreadable(path, problem) from problem
    check_identifier(path, content)
    return content


def outline(content: bytes) -> Outline:
    """Returns the outline of a file.

    Raises:
        ConversionError: It is not a .tflite file, or damaged (`malformed-tflite`).
    """
    model = read_model(memoryview(content), Allowance(len(content)))
    views: Sequence[View] = model["subgraphs"] or ()
    if not views:
        raise malformed("the file has no subgraph")
    codes = [operators.code(view) for view in model["operator_codes"] or ()]
    tensors = tuple(_tensors(view) for view in views)
    return Outline(
        len(content),
        model["description"] or "",
        tuple(_signatures(model, views, tensors)),
        tuple(tuple(_operator(each, codes) for each in view["operators"] or ()) for view in views),
        tensors,
        tuple(_at(tensors[0], index) for index in _indices(views[0], "inputs")),
        _metadata(model),
        associated_files.contents(
            associated_files.find(lambda start, length: content[start : start + length], len(content))
        ),
    )


def _tensors(view: View) -> tuple[OutlineTensor, ...]:
    return tuple(
        OutlineTensor(
            each["name"] or "",
            (TFLITE.member("TensorType", each["type"]) or "unknown").lower(),
            _shape(each),
            index,
            *_quantization(each),
        )
        for index, each in enumerate(view["tensors"] or ())
    )


def _quantization(view: View) -> tuple[float, int]:
    """Returns the first scale and zero point of a tensor."""
    found = view["quantization"]
    scales, zeros = (None, None) if found is None else (found["scale"], found["zero_point"])
    scale = float(scales[0]) if scales is not None and len(scales) else 0.0
    return scale, int(zeros[0]) if scale and zeros is not None and len(zeros) else 0


def _indices(view: View, name: str) -> tuple[int, ...]:
    return tuple(int(index) for index in view[name]) if view[name] is not None else ()


def _shape(view: View) -> tuple[int, ...]:
    signature, shape = view["shape_signature"], view["shape"]
    known = signature if signature is not None and len(signature) else shape
    return tuple(int(dim) for dim in known) if known is not None else ()


def _at(tensors: Sequence[OutlineTensor], index: int) -> OutlineTensor:
    if not 0 <= index < len(tensors):
        raise malformed(f"there is no tensor {index}")
    return tensors[index]


def _signatures(
    model: View, views: Sequence[View], tensors: Sequence[Sequence[OutlineTensor]]
) -> list[OutlineSignature]:
    found = []
    for view in model["signature_defs"] or ():
        subgraph = view["subgraph_index"]
        if subgraph >= len(views):
            raise malformed(f"signature {view['signature_key']!r} refers to subgraph {subgraph}, which does not exist")
        sides = [
            tuple(_at(tensors[subgraph], each["tensor_index"])._replace(name=each["name"]) for each in view[side] or ())
            for side in ("inputs", "outputs")
        ]
        found.append(OutlineSignature(view["signature_key"] or "", subgraph, *sides))
    if found:
        return found
    sides = [tuple(_at(tensors[0], index) for index in _indices(views[0], side)) for side in ("inputs", "outputs")]
    return [OutlineSignature("", 0, *sides)]


def _operator(view: View, codes: Sequence[operators.Code]) -> OutlineOperator:
    if view["opcode_index"] >= len(codes):
        raise malformed(f"there is no operator code {view['opcode_index']}")
    code = codes[view["opcode_index"]]
    inputs, outputs = (_indices(view, side) for side in ("inputs", "outputs"))
    return OutlineOperator(code.custom or code.name.upper(), code.version, inputs, outputs)


def _metadata(model: View) -> dict[str, bytes]:
    buffers = model["buffers"] or ()
    found = {}
    for view in model["metadata"] or ():
        data = buffers[view["buffer"]]["data"] if view["buffer"] < len(buffers) else None
        found[view["name"] or ""] = bytes(data) if data is not None else b""
    return found
