"""The structure of a `.tflite` file as plain rows: signatures, subgraphs, operators, tensors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tfconvert.converter.targets.litert.accelerator_check import verdicts
from tfconvert.importers.tflite.buffers import content_of
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.importers.tflite.operators import code
from tfconvert.schema.diagnostics import WARNING, Diagnostic
from tfconvert.schema.tflite.reader import Allowance, View, malformed, read_model


class OperatorRow(NamedTuple):
    """One operator.

    Attributes:
        subgraph: The index of its subgraph.
        number: Its own index there.
        name: The operator; a custom one's own name.
        inputs: The indices of the tensors that it takes; -1 where one is left out.
        outputs: The indices of those that it gives.
        gpu: Why the GPU does not take it, or computes it wrongly; empty if it does, or wasn't asked for.
    """

    subgraph: int
    number: int
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    gpu: str = ""


class TensorRow(NamedTuple):
    """One tensor.

    Attributes:
        subgraph: The index of its subgraph.
        number: Its own index there.
        name: Its name.
        kind: Its element type, as the format names it.
        shape: Its shape; -1 where a dimension is dynamic.
        size: Bytes of the elements that the file has of it; 0 if it is computed.
    """

    subgraph: int
    number: int
    name: str
    kind: str
    shape: tuple[int, ...]
    size: int


class SubgraphRow(NamedTuple):
    """One subgraph.

    Attributes:
        name: Its name.
        inputs: The indices of its inputs.
        outputs: The indices of its outputs.
    """

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class SignatureRow(NamedTuple):
    """One signature.

    Attributes:
        key: Its key.
        subgraph: The index of its subgraph.
        inputs: Tensors by input name.
        outputs: Tensors by output name.
    """

    key: str
    subgraph: int
    inputs: dict[str, int]
    outputs: dict[str, int]


class Analysis(NamedTuple):
    """The structure of a file.

    Attributes:
        size: Bytes of the file.
        constants: Bytes of its constants.
        subgraphs: Its subgraphs.
        signatures: Its signatures.
        operators: Its operators, in order, one subgraph after the other.
        tensors: Its tensors, in the same order.
    """

    size: int
    constants: int
    subgraphs: tuple[SubgraphRow, ...]
    signatures: tuple[SignatureRow, ...]
    operators: tuple[OperatorRow, ...]
    tensors: tuple[TensorRow, ...]


def analyze(source: str | os.PathLike[str] | bytes | bytearray | memoryview, *, for_gpu: bool) -> Analysis:
    """Returns the structure of a file.

    Args:
        source: Its path, or its bytes.
        for_gpu: Whether to tell which operators the GPU delegate does not take.

    Raises:
        ConversionError: There is no such file (`model-not-found`), or it is damaged (`malformed-tflite`).
    """
    view = content_of(source).view
    model = read_model(view, Allowance(len(view)))
    return _Reader(model, _gpu_reasons(source) if for_gpu else []).analysis(len(view))


def _gpu_reasons(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> list[list[str]]:
    """Returns why the GPU does not compute operators, by subgraph and index."""
    return [
        ["" if each.is_ok else f"{each.outcome}: {each.reason}" if each.reason else each.outcome for each in found]
        for found in verdicts(import_tflite(source), "gpu")
    ]


def gpu_warnings(content: bytes) -> list[Diagnostic]:
    """Returns a warning for each operator of a file that the GPU delegate does not take."""
    return [
        Diagnostic(
            "not-for-gpu",
            f"{row.name}, operator {row.number} of subgraph {row.subgraph}, does not run on the "
            f"GPU delegate: {row.gpu}",
            op=row.name,
            severity=WARNING,
        )
        for row in analyze(content, for_gpu=True).operators
        if row.gpu
    ]


class _Reader:
    def __init__(self, model: View, reasons: Sequence[Sequence[str]]) -> None:
        self._model = model
        self._reasons = reasons
        self._codes = [code(view) for view in model["operator_codes"] or ()]
        self._sizes = [_bytes_of(view) for view in model["buffers"] or ()]

    def analysis(self, size: int) -> Analysis:
        """Returns all rows."""
        subgraphs: list[SubgraphRow] = []
        operators: list[OperatorRow] = []
        tensors: list[TensorRow] = []
        for index, view in enumerate(self._model["subgraphs"] or ()):
            subgraphs.append(SubgraphRow(view["name"] or "", _indices(view, "inputs"), _indices(view, "outputs")))
            tensors += self._tensors(index, view["tensors"] or ())
            operators += self._operators(index, view["operators"] or ())
        signatures = [
            SignatureRow(
                view["signature_key"] or "", view["subgraph_index"], _named(view, "inputs"), _named(view, "outputs")
            )
            for view in self._model["signature_defs"] or ()
        ]
        used = {view["buffer"] for each in self._model["subgraphs"] or () for view in each["tensors"] or ()}
        constants = sum(count for buffer, count in enumerate(self._sizes) if buffer in used)
        return Analysis(size, constants, tuple(subgraphs), tuple(signatures), tuple(operators), tuple(tensors))

    def _tensors(self, subgraph: int, views: Sequence[View]) -> Iterator[TensorRow]:
        for index, view in enumerate(views):
            shape = _indices(view, "shape_signature") or _indices(view, "shape")
            kind, buffer = view.name("type") or str(view["type"]), view["buffer"]
            size = self._sizes[buffer] if buffer < len(self._sizes) else 0
            yield TensorRow(subgraph, index, view["name"] or "", kind, shape, size)

    def _operators(self, subgraph: int, views: Sequence[View]) -> Iterator[OperatorRow]:
        reasons = self._reasons[subgraph] if subgraph < len(self._reasons) else ()
        for index, view in enumerate(views):
            if view["opcode_index"] >= len(self._codes):
                raise malformed(f"operator {index} has no code")
            found = self._codes[view["opcode_index"]]
            name = found.custom or found.name.upper()
            why = reasons[index] if index < len(reasons) else ""
            yield OperatorRow(subgraph, index, name, _indices(view, "inputs"), _indices(view, "outputs"), why)


def _bytes_of(buffer: View) -> int:
    # Large files have the bytes behind the tables.
    return int(buffer["size"]) if buffer["offset"] > 1 else buffer.place("data")[1]


def _indices(view: View, name: str) -> tuple[int, ...]:
    values = view[name]
    return () if values is None else tuple(values.tolist())


def _named(view: View, name: str) -> dict[str, int]:
    return {each["name"] or "": each["tensor_index"] for each in view[name] or ()}
