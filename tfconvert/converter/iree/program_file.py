"""A program of IREE as a result of a conversion: the `.vmfb`, its weights beside it, and the text if it is kept.

model.vmfb  model.safetensors  model.mlir
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from tfconvert.converter.iree import compiler
from tfconvert.converter.iree.description import describe
from tfconvert.converter.iree.passes.weights_to_parameters import weights_of
from tfconvert.converter.iree_options import IreeOptions
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.exporters.output_file import descriptor_of, write_whole
from tfconvert.exporters.safetensors import Safetensors
from tfconvert.exporters.stablehlo import StableHLOText
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.limits import budget

PARAMETERS = ".safetensors"
TEXT = ".mlir"


class IreeFile:
    """A program, and its weights; it must be compiled before it is used.

    Without a compiler there is still the text: saving writes it, and then tells what is missing.

    Attributes:
        size: The bytes of the program, once it is compiled, and of its weights.
        operators: How many ops of each name the text has.
        bytes_by_operator: The bytes of constants, by the op that makes them.
        versions: Versions of ops: there are none.
        min_runtime_version: The first release of LiteRT that reads it: none does.

    Args:
        module: The module that the pipeline has made.
        options: How to compile it.
    """

    __slots__ = (
        "_content", "_keeps_text", "_options", "_problem", "_text", "_weights", "bytes_by_operator",
        "min_runtime_version", "operators", "size", "versions",
    )  # fmt: skip

    def __init__(self, module: ModuleOp, options: IreeOptions) -> None:
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
        """Compiles the program; what it consists of is the result.

        Raises:
            ConversionError: It can't be compiled, and there is no text to be kept (`iree-compile-failed`,
                `iree-timeout`).
        """
        counts: Counter[str] = Counter()
        try:
            limit = budget().limits.run_seconds
            self._content, counts = compiler.compile_text(self._text.write, self._options, limit)
        except ConversionError as problem:
            if problem.code != "iree-missing" and not self._keeps_text:
                raise
            self._problem = problem
            self._keeps_text = True
        self.size += len(self._content)
        return PassResult(counts, heading="compiled program")

    @property
    def has_parameters(self) -> bool:
        """Whether weights are in a file beside the program."""
        return self._weights is not None

    def files(self, path: str | os.PathLike[str]) -> list[Path]:
        """Returns the files that saving writes, the program last.

        Args:
            path: The program's place.
        """
        target = Path(path)
        beside = [target.with_suffix(PARAMETERS)] if self._weights is not None else []
        return [*beside, *([target.with_suffix(TEXT)] if self._keeps_text else []), target]

    def write(self, stream: BinaryIO) -> None:
        """Writes the program by itself.

        Raises:
            ConversionError: It was not compiled; or its weights are in another file (`wrong-option`).
        """
        stream.write(self.to_bytes())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the program, its weights beside it, and the text if it is kept; each is there whole or not at all.

        Raises:
            ConversionError: A file can't be written (`output-not-writable`), or a weight's checksum is wrong
                (`bad-checksum`); or the program could not be compiled, for the reason that the error tells.
        """
        if descriptor_of(path) is not None:
            write_whole(path, self.write)
            return
        target = Path(path)
        if target.suffix in (PARAMETERS, TEXT):
            raise error("wrong-option", f"the program can't be {target.name}: that is another of the files beside it",
                        hint="let its name end in .vmfb")  # fmt: skip
        if self._weights is not None:
            self._weights.save(target.with_suffix(PARAMETERS))
        if self._keeps_text:
            self._text.save(target.with_suffix(TEXT))
        self.check(target.with_suffix(TEXT))
        write_whole(path, lambda stream: stream.writelines([self._content]))

    def to_bytes(self) -> bytes:
        """Returns the program by itself.

        Raises:
            ConversionError: As `write`.
        """
        self.check()
        if self._weights is not None:
            raise error("wrong-option", "the program and its weights are two files",
                        hint="save it to a path, or embed the weights (--iree-embed-weights)")  # fmt: skip
        return self._content

    def check(self, text: Path | None = None) -> None:
        """Raises why the program could not be compiled, if so.

        Args:
            text: Where its text was written, if it was.

        Raises:
            ConversionError: That.
        """
        if self._problem is None:
            return
        told = self._problem.diagnostics
        if text is None:
            raise ConversionError(told)
        first = told[0]._replace(message=f"{told[0].message} (its text is in {text})")
        raise ConversionError((first, *told[1:]))
