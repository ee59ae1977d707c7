"""The structure of a `.tflite` file as plain rows: signatures, subgraphs, operators, tensors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tfconvert.compat import gpu
from tfconvert.compat.gpu import Operand, Use
from tfconvert.importers.tflite.buffers import content_of
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
        gpu: Why the GPU delegate does not take it; empty if it may take it, or wasn't asked for.
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
    return _Reader(read_model(view, Allowance(len(view))), for_gpu).analysis(len(view))


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
    def __init__(self, model: View, for_gpu: bool) -> None:
        self._model = model
        self._for_gpu = for_gpu
        self._codes = [code(view) for view in model["operator_codes"] or ()]
        self._sizes = [_bytes_of(view) for view in model["buffers"] or ()]

    def analysis(self, size: int) -> Analysis:
        """Returns all rows."""
        subgraphs: list[SubgraphRow] = []
        operators: list[OperatorRow] = []
        tensors: list[TensorRow] = []
        for index, view in enumerate(self._model["subgraphs"] or ()):
            subgraphs.append(SubgraphRow(view["name"] or "", _indices(view, "inputs"), _indices(view, "outputs")))
            found = list(self._tensors(index, view["tensors"] or ()))
            tensors += [row for row, _ in found]
            operands = [operand for _, operand in found]
            operators += self._operators(index, view["operators"] or (), operands)
        signatures = [
            SignatureRow(
                view["signature_key"] or "", view["subgraph_index"], _named(view, "inputs"), _named(view, "outputs")
            )
            for view in self._model["signature_defs"] or ()
        ]
        used = {view["buffer"] for each in self._model["subgraphs"] or () for view in each["tensors"] or ()}
        constants = sum(count for buffer, count in enumerate(self._sizes) if buffer in used)
        return Analysis(size, constants, tuple(subgraphs), tuple(signatures), tuple(operators), tuple(tensors))

    def _tensors(self, subgraph: int, views: Sequence[View]) -> Iterator[tuple[TensorRow, Operand]]:
        for index, view in enumerate(views):
            stored = _indices(view, "shape")
            shape = _indices(view, "shape_signature") or stored
            kind, buffer = view.name("type") or str(view["type"]), view["buffer"]
            size = self._sizes[buffer] if buffer < len(self._sizes) else 0
            yield TensorRow(subgraph, index, view["name"] or "", kind, shape, size), Operand(kind, stored, size > 0)

    def _operators(self, subgraph: int, views: Sequence[View], tensors: Sequence[Operand]) -> Iterator[OperatorRow]:
        for index, view in enumerate(views):
            if view["opcode_index"] >= len(self._codes):
                raise malformed(f"operator {index} has no code")
            found = self._codes[view["opcode_index"]]
            name = found.custom or found.name.upper()
            inputs, outputs = _indices(view, "inputs"), _indices(view, "outputs")
            why = ""
            if self._for_gpu:
                taken, given = (_operands(indices, tensors) for indices in (inputs, outputs))
                why = gpu.objection(Use(name, bool(found.custom), taken, given, view["builtin_options"]))
            yield OperatorRow(subgraph, index, name, inputs, outputs, why)


def _operands(indices: Sequence[int], tensors: Sequence[Operand]) -> list[Operand]:
    if any(index >= len(tensors) for index in indices):
        raise malformed("an operator has an operand that is not there")
    return [tensors[index] if index >= 0 else Operand() for index in indices]


def _bytes_of(buffer: View) -> int:
    # Large files have the bytes behind the tables.
    return int(buffer["size"]) if buffer["offset"] > 1 else buffer.place("data")[1]


def _indices(view: View, name: str) -> tuple[int, ...]:
    values = view[name]
    return () if values is None else tuple(values.tolist())


def _named(view: View, name: str) -> dict[str, int]:
    return {each["name"] or "": each["tensor_index"] for each in view[name] or ()}
