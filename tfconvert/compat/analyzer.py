"""`experimental.Analyzer`: prints the structure of a `.tflite` file, and the obstacles to running it on a GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from tfconvert.compat.analysis import Analysis, OperatorRow, analyze
from tfconvert.compat.errors import as_of_the_class
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.diagnostics import error

Content = bytes | bytearray | memoryview


class Analyzer:
    """Describes `.tflite` files."""

    @staticmethod
    @as_of_the_class()
    def analyze(
        model_path: str | os.PathLike[str] | None = None,
        model_content: Content | None = None,
        gpu_compatibility: bool = False,
        **settings: Any,
    ) -> None:
        """Prints the subgraphs, operators, tensors and signatures of a file, and its size.

        Args:
            model_path: The file's path.
            model_content: Its bytes, instead.
            gpu_compatibility: Whether to tell which operators the GPU delegate does not take, and why.
            settings: `experimental_use_mlir=True` prints the file as MLIR; others are refused.

        Raises:
            ConversionError: There is neither path nor content, or a setting is unknown (`wrong-option`), no such file
                (`model-not-found`), or it is damaged (`malformed-tflite`).
        """
        source = _source(model_path, model_content)
        as_mlir = settings.pop("experimental_use_mlir", False)
        if settings:
            raise error(
                "wrong-option",
                f"Analyzer.analyze: {', '.join(sorted(settings))} is not an argument",
                hint="model_path, model_content, gpu_compatibility are",
            )
        print(f"=== {model_path or 'a .tflite file'} ===\n")
        if as_mlir:
            print(import_tflite(source))
            return
        print("\n".join(_lines(analyze(source, for_gpu=gpu_compatibility), gpu_compatibility)))

    @staticmethod
    @as_of_the_class()
    def rows(
        model_path: str | os.PathLike[str] | None = None,
        model_content: Content | None = None,
        gpu_compatibility: bool = False,
    ) -> Analysis:
        """Returns the same as data.

        Args:
            model_path: The file's path.
            model_content: Its bytes, instead.
            gpu_compatibility: Whether to tell which operators the GPU delegate does not take, and why.

        Raises:
            ConversionError: As `analyze`.
        """
        return analyze(_source(model_path, model_content), for_gpu=gpu_compatibility)


def _source(path: str | os.PathLike[str] | None, content: Content | None) -> str | os.PathLike[str] | Content:
    source = path or content
    if not source:
        raise error("wrong-option", "Analyzer.analyze has nothing to analyze", hint="pass model_path or model_content")
    return source


def _lines(found: Analysis, for_gpu: bool) -> Iterator[str]:
    operators = {key: list(rows) for key, rows in groupby(found.operators, lambda row: row.subgraph)}
    for number, subgraph in enumerate(found.subgraphs):
        yield f"Subgraph#{number} {subgraph.name}({_tensors(subgraph.inputs)}) -> [{_tensors(subgraph.outputs)}]"
        for row in operators.get(number, ()):
            yield f"  Op#{row.number} {row.name}({_tensors(row.inputs)}) -> [{_tensors(row.outputs)}]"
            if row.gpu:
                yield f"    GPU COMPATIBILITY WARNING: {row.name}: {row.gpu}"
        yield f"\nTensors of Subgraph#{number}"
        for each in found.tensors:
            if each.subgraph == number:
                size = f", constant of {each.size} bytes" if each.size else ""
                yield f"  T#{each.number}({each.name}) shape:{list(each.shape)}, type:{each.kind}{size}"
        yield ""
    if for_gpu:
        yield from _gpu_lines(found.operators)
    for number, signature in enumerate(found.signatures):
        ends = [
            ", ".join(f"{name!r}: T#{index}" for name, index in names.items())
            for names in (signature.inputs, signature.outputs)
        ]
        yield f"Signature#{number} {signature.key!r} of Subgraph#{signature.subgraph}: {ends[0]} -> {ends[1]}"
    yield f"Model size: {found.size} bytes, of which {found.constants} are constants"


def _gpu_lines(operators: Sequence[OperatorRow]) -> Iterator[str]:
    declined = [row for row in operators if row.gpu]
    if not declined:
        yield "Your model looks compatible with the GPU delegate.\n"
        return
    yield f"GPU COMPATIBILITY WARNING: {len(declined)} of {len(operators)} operators don't run on the GPU delegate:"
    for row in declined:
        yield f"  Subgraph#{row.subgraph} Op#{row.number} {row.name}: {row.gpu}"
    yield ""


def _tensors(indices: Sequence[int]) -> str:
    return ", ".join(f"T#{index}" if index >= 0 else "-" for index in indices)
