"""The process in which programs run while they are verified: loads one for each request, runs it, answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfconvert.converter.process.child_process import Message, serve
from tfconvert.converter.targets.iree import runtime
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.boxes import Array


def _answer(header: Mapping[str, Any], arrays: list[Array]) -> Message:
    """Runs the program of a request."""
    try:
        program = runtime.Program(header["path"])
        inputs = dict(zip(header["inputs"], arrays, strict=True)) if header["key"] else arrays
        found = program.run(inputs, header["key"])
        return {"code": ""}, [found[name] for name in header["outputs"]] if header["key"] else list(found.values())
    except ConversionError as refused:
        return {"code": refused.code, "problem": refused.diagnostics[0].message}, []


if __name__ == "__main__":
    serve(_answer)
