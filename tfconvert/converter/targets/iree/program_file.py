"""An IREE program as the result of a conversion: the `.vmfb`, its weights beside it, and optionally the text.

model.vmfb  model.safetensors  model.mlir
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import BinaryIO, ClassVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.iree import compiler
from tfconvert.converter.targets.iree.description import describe
from tfconvert.converter.targets.iree.passes.weights_to_parameters import weights_of
from tfconvert.exporters.mlir import StableHLOText
from tfconvert.exporters.output_file import Parts
from tfconvert.exporters.safetensors import PARAMETERS, Safetensors
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.limits import budget
from tfconvert.settings.targets import Iree

TEXT = ".mlir"


class IreeFile:
    """A program, and its weights; it must be compiled before it is used.

    If the text is kept and can't be compiled, saving writes it and the weights, and then raises the reason.

    Attributes:
        size: The size in bytes of the compiled program and its weights.
        operators: How many ops of each name the text has.
        bytes_by_operator: The bytes of constants, by op.
        versions: Versions of ops; always empty.
        min_runtime_version: The first release of LiteRT that reads it; always empty.
        custom_operators: Operators that an app must register; always empty.

    Args:
        module: The module from the pipeline.
        options: How to compile it.
    """

    __slots__ = (
        "_content",
        "_keeps_text",
        "_options",
        "_problem",
        "_text",
        "_weights",
        "bytes_by_operator",
        "min_runtime_version",
        "operators",
        "size",
        "versions",
    )

    custom_operators: ClassVar[Mapping[str, int]] = {}

    def __init__(self, module: ModuleOp, options: Iree) -> None:
        weights = weights_of(module)
        describe(module, options.backend, has_parameters=bool(weights))
        self._text = StableHLOText(module)
        self._weights = Safetensors(weights) if weights else None
        self._options = options
        self._keeps_text = options.keep_mlir
        self._content = b""
        self._problem: ConversionError | None = None
        self.operators = self._text.operators
        self.bytes_by_operator = self._text.bytes_by_operator
        self.bytes_by_operator.update({"parameter": sum(each.nbytes for each in weights.values())} if weights else {})
        self.versions: Mapping[str, int] = {}
        self.min_runtime_version = ""
        self.size = self._weights.size if self._weights is not None else 0

    def compile(self) -> PassResult:
        """Compiles the program; its statistics are the result.

        Raises:
            ConversionError: It can't be compiled, and the text is not kept (`iree-missing`,
                `iree-compile-failed`, `iree-timeout`).
        """
        counts: Counter[str] = Counter()
        try:
            limit = budget().limits.run_seconds
            self._content, counts = compiler.compile_text(self._text.write, self._options, limit)
        except ConversionError as problem:
            if not self._keeps_text:
                raise
            self._problem = problem
        self.size += len(self._content)
        return PassResult(counts, heading="compiled program")

    @property
    def has_parameters(self) -> bool:
        """Whether weights are in a file beside the program."""
        return self._weights is not None

    @property
    def parts(self) -> Parts:
        """The files of the result: the weights and the text, if any, and the program."""
        weights = {PARAMETERS: self._weights.write} if self._weights is not None else {}
        return {**weights, **({TEXT: self._text.write} if self._keeps_text else {}), "": self._write}

    def _write(self, stream: BinaryIO) -> None:
        if self._problem is not None:
            first, *rest = self._problem.diagnostics
            told = first._replace(message=f"{first.message} (its text is in the {TEXT} beside it)")
            raise ConversionError((told, *rest))
        stream.write(self._content)

    def check(self) -> None:
        """Raises the error of the compilation, if it failed."""
        if self._problem is not None:
            raise ConversionError(self._problem.diagnostics)
