"""Targets of a conversion: a pipeline, and the export of its result to a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.pipeline.stage import Stage
from tfconvert.exporters.output_file import Parts
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.ir.builtin import ModuleOp


class ConvertedFile(Protocol):
    """The result of a conversion, of any target.

    Attributes:
        size: Bytes of the file, and of those beside it.
        operators: How often each operator is in it.
        bytes_by_operator: Bytes of constants by operator.
        versions: The version of each operator.
        custom_operators: How often each operator is called that the app must register.
        min_runtime_version: The first release of LiteRT that reads it, or empty.
        parts: The files of the result: how each is written, by the ending that replaces that of the result's name.
    """

    @property
    def size(self) -> int: ...

    @property
    def operators(self) -> Mapping[str, int]: ...

    @property
    def bytes_by_operator(self) -> Mapping[str, int]: ...

    @property
    def versions(self) -> Mapping[str, int]: ...

    @property
    def min_runtime_version(self) -> str: ...

    @property
    def custom_operators(self) -> Mapping[str, int]: ...

    @property
    def parts(self) -> Parts: ...


File = TypeVar("File", bound=ConvertedFile)


class Imported(NamedTuple):
    """A model as its file is made.

    Attributes:
        source: The model.
        operations: Its TensorFlow ops, by name.
    """

    source: Source
    operations: Counter[str]


class Target(ABC, Generic[File]):
    """A target, with its settings."""

    @property
    @abstractmethod
    def stages(self) -> Sequence[Stage]:
        """Its pipeline."""

    @abstractmethod
    def export(self, module: ModuleOp, imported: Imported) -> File:
        """Returns the file of a module that the pipeline has rewritten."""

    def finish(self, file: File) -> Mapping[str, Callable[[], PassResult]]:
        """Returns what is still to be done with the file, by name: each is a stage of the report."""
        return {}

    def arena(self, file: File) -> int | None:
        """Returns the bytes of the arena that the runtime plans for a file; or `None`."""
        return None

    def notes(self, file: File) -> Sequence[Diagnostic]:
        """Returns what users of a file should know."""
        return ()
