"""The process in which texts become portable artifacts, since MLIR may end it: jaxlib's StableHLO does it.

What artifacts can't hold becomes what they can first: ops of `chlo` are decomposed, and sizes that this asks for are
computed by StableHLO. The oldest version in which everything can be said is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfconvert.converter.process.child_process import Message, serve
from tfconvert.schema.dialects.boxes import Array

# The last removes casts between the kinds of sizes that the others leave.
_PASSES = "builtin.module(func.func(chlo-legalize-to-stablehlo,shape-legalize-to-stablehlo,canonicalize))"

# How many characters of an error are reported.
_TOLD = 600


def _serialized(text: str) -> tuple[bytes, str]:
    """Returns a text as an artifact, and its version.

    Raises:
        ValueError: It can't be parsed, or be an artifact.
    """
    # Here, so that what imports every module doesn't need jaxlib.
    from jaxlib.mlir import ir, passmanager  # type: ignore[import-not-found,unused-ignore]
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext  # type: ignore[import-not-found,unused-ignore]
    from jaxlib.mlir.dialects import chlo, stablehlo  # type: ignore[import-not-found,unused-ignore]

    dialects = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(dialects)
    stablehlo.register_stablehlo_passes()
    with ir.Context() as context:
        context.append_dialect_registry(dialects)
        context.load_all_available_dialects()
        stablehlo.register_dialect(context)
        chlo.register_dialect(context)
        try:
            module = ir.Module.parse(text)
            passmanager.PassManager.parse(_PASSES).run(module.operation)
        except ir.MLIRError as refused:
            raise ValueError(str(refused)) from refused
        plain = str(module)
        periods = stablehlo.StablehloCompatibilityRequirement
        versions = [
            stablehlo.get_version_from_compatibility_requirement(each)
            for each in (periods.MAX, periods.WEEK_12, periods.WEEK_4, periods.NONE)
        ]
        for version in versions:
            try:
                return bytes(stablehlo.serialize_portable_artifact_str(plain, version)), version
            except ValueError as refused:
                problem = refused
        raise problem


def _answer(header: Mapping[str, Any], arrays: list[Array]) -> Message:
    """Returns the artifact of a request's text."""
    try:
        artifact, version = _serialized(arrays[0].tobytes().decode())
    except ValueError as refused:
        return {"problem": str(refused).strip()[:_TOLD]}, []
    return {"problem": "", "version": version}, [np.frombuffer(artifact, np.uint8)]


if __name__ == "__main__":
    serve(_answer)
