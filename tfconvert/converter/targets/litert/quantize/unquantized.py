"""The note on a quantization of weights that changes nothing: what kept the constants as floats."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.litert.quantize import halves, hybrid
from tfconvert.converter.targets.litert.quantize.exclusion import Exclusion
from tfconvert.converter.targets.litert.quantize.stored import StoredConstants
from tfconvert.schema.diagnostics import NOTE, Diagnostic
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def why_none(module: ModuleOp, mode: str, exclusion: Exclusion, stored: StoredConstants) -> Diagnostic:
    """Returns a note that says why no weight was quantized.

    Args:
        module: The module.
        mode: The mode of the quantization.
        exclusion: The operators whose constants stay floats.
        stored: The constants that it has tried.
    """
    constants = [op.results[0] for op in module.walk() if op.name == f"{tfl.PREFIX}{tfl.PSEUDO_CONST}"]
    floats = [value for value in constants if hybrid.is_float_constant(value)]
    needed = halves.MIN_ELEMENTS if mode == "float16" else hybrid.MIN_ELEMENTS
    large = [value for value in floats if hybrid.size_of(value) >= needed]
    if not floats:
        reason = "the model has no constants of 32-bit floats"
    elif not large:
        reason = f"the largest tensor has {max(map(hybrid.size_of, floats))} elements, {needed} are needed"
    else:
        reason = "; ".join(_reasons(large, exclusion, stored))
    return Diagnostic("nothing-quantized", f"quantized weights: none: {reason}", severity=NOTE)


def _reasons(large: Sequence[Value], exclusion: Exclusion, stored: StoredConstants) -> list[str]:
    """Returns why constants that are large enough stay floats."""
    infinite = [value for value in large if stored.refuses(value)]
    rest = [value for value in large if value not in infinite]
    excluded = [value for value in rest if all(exclusion.excludes(use.operation) for use in value.uses)]
    users = {use.operation for value in rest if value not in excluded for use in value.uses}
    told = [(len(infinite), "with elements that are not finite"), (len(excluded), "of excluded operators")]
    if users:
        names = ", ".join(sorted(set(map(_operator, users))))
        told.append((len(rest) - len(excluded), f"of operators that take them as floats only ({names})"))
    return [f"{count} tensor{'s'[: count > 1]} {which}" for count, which in told if count]


def _operator(op: Operation) -> str:
    if op.name == f"{tfl.PREFIX}{tfl.CUSTOM}":
        return str(tfl.attribute(op, tfl.CUSTOM_CODE))
    return op.op_name.upper() if isinstance(op, tfl.TFLOp) else "an output of the function"
