"""Serializes StableHLO text as a portable artifact with jaxlib's StableHLO, in a child process since MLIR may abort.

Ops of `chlo`, which artifacts can't contain, are decomposed first, and StableHLO computes the sizes that this needs.
The artifact has the oldest version that supports all of its ops.
"""

from __future__ import annotations

# The last removes casts between the kinds of sizes that the others leave.
_PASSES = "builtin.module(func.func(chlo-legalize-to-stablehlo,shape-legalize-to-stablehlo,canonicalize))"

# Characters of an error that are reported.
_MAX_SHOWN = 600


def serialized(content: bytes) -> tuple[bytes, str]:
    """Returns text as an artifact, and its version.

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
            module = ir.Module.parse(content.decode())
            passmanager.PassManager.parse(_PASSES).run(module.operation)
        except ir.MLIRError as refused:
            raise _shortened(refused) from refused
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
        raise _shortened(problem)


def _shortened(problem: Exception) -> ValueError:
    return ValueError(str(problem).strip()[:_MAX_SHOWN])
