"""A portable StableHLO artifact as a result of a conversion: bytes that later releases of its libraries can also read.

model.mlirbc  model.safetensors
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.process.child_process import Child, ChildError
from tfconvert.converter.targets.stablehlo.artifact_child import serialized
from tfconvert.exporters.mlir import StableHLOText
from tfconvert.exporters.output_file import Parts
from tfconvert.schema.diagnostics import error
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.limits import budget


class ArtifactFile:
    """A text that jaxlib's StableHLO writes as a portable artifact; it must be serialized before it is used.

    Weights stand where they are used, or are arguments with a file beside the artifact: it has no resources.

    Attributes:
        text: The text.
        size: The bytes of the artifact, once it is serialized.
        operators: The number of ops of each name in the text.
        bytes_by_operator: The bytes of constants, by the op that defines them.
        versions: Versions of ops; always empty.
        min_runtime_version: The first release of LiteRT that reads it; always empty.
        custom_operators: Operators that an app must register; always empty.

    Args:
        module: The result of the pipeline.

    Raises:
        ConversionError: It has state in globals, which artifacts don't know (`artifact-failed`).
    """

    __slots__ = ("_content", "bytes_by_operator", "min_runtime_version", "operators", "size", "text", "versions")

    custom_operators: ClassVar[Mapping[str, int]] = {}

    def __init__(self, module: ModuleOp) -> None:
        if any(op.dialect == "ml_program" for op in module.ops):
            raise error(
                "artifact-failed",
                "state in globals has no form in portable artifacts",
                hint="keep it in arguments (StableHLO.state, --mlir-state)",
            )
        self.text = StableHLOText(module, inline=True)
        self._content = b""
        self.size = 0
        self.operators = self.text.operators
        self.bytes_by_operator = self.text.bytes_by_operator
        self.versions: Mapping[str, int] = {}
        self.min_runtime_version = ""

    def serialize(self) -> PassResult:
        """Makes the artifact; the result names the oldest StableHLO that reads it.

        Raises:
            ConversionError: jaxlib is not installed (`jaxlib-missing`), or refuses the text (`artifact-failed`).
        """
        if find_spec("jaxlib") is None:
            raise error(
                "jaxlib-missing",
                "artifacts are written by jaxlib's StableHLO, which is not installed",
                hint="pip install 'tfconvert[artifact]'",
            )
        with Child(budget().limits.run_seconds) as child:
            try:
                self._content, version = child.call(serialized, self.text.to_bytes())
            except ChildError as problem:
                raise error("artifact-failed", _reason(problem)) from problem
        self.size = len(self._content)
        return PassResult(Counter({f"for StableHLO {version} and later": 1}), heading="portable artifact")

    @property
    def parts(self) -> Parts:
        """The files of the result: the values of arguments, if any, and the artifact."""
        return {**self.text.parts, "": lambda stream: stream.write(self._content)}


def _reason(problem: ChildError) -> str:
    if problem.refusal:
        return f"jaxlib refuses the text: {problem.refusal}"
    if problem.seconds:
        return f"jaxlib has not finished in {problem.seconds:g} s"
    return f"jaxlib has crashed (status {problem.status})"
