"""Checks a converted model: LiteRT and the reference executor on the same random inputs must agree.

The reference runs the model as it was imported, before any pass, so that a mistake of any of them shows.
"""

from __future__ import annotations

import zlib

import numpy as np

from tfconvert.converter.executor import executor
from tfconvert.converter.ir.interface import interface_of
from tfconvert.converter.litert import runtime
from tfconvert.converter.passes.merge_functions import MergeFunctions
from tfconvert.converter.report import OutputError
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError, Diagnostic, error
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.builtin import ModuleOp

TOLERANCE = 1e-3
"""Largest difference, relative to an output's largest value, that rounding explains in a deep network."""

_BATCH = 2
"""Size of unknown leading dimensions; more than one, so that a mixed-up batch shows."""

_OTHER = 32
"""Size of other unknown dimensions."""


def verify(source: Source, content: bytes) -> list[OutputError]:
    """Returns how far LiteRT's outputs are from the reference's, for every exported function.

    Args:
        source: The model that was converted.
        content: The converted file's bytes.

    Raises:
        ConversionError: The outputs differ by more than `TOLERANCE` (`verification-failed`), LiteRT is not installed
            (`litert-missing`) or refuses the file (`runtime-error`), an op has no reference kernel, or an input can't
            be made up (strings).
    """
    runtime.require()
    module = source.open()
    MergeFunctions().apply(module)
    errors = []
    for function in module.ops:
        if isinstance(function, FuncOp) and ENTRY_FUNCTION in function.attributes:
            errors += _verify_function(module, function, content)
    bad = [each for each in errors if not each.max_relative <= TOLERANCE]
    if bad:
        raise ConversionError(
            Diagnostic(
                "verification-failed",
                f"output {each.output!r} of {each.signature!r} differs from the reference by {each.max_absolute:.3g}, "
                f"{each.max_relative:.1e} of its largest value",
                hint="this is a defect of the converter; please report it",
            )
            for each in bad
        )
    return errors


def _verify_function(module: ModuleOp, function: FuncOp, content: bytes) -> list[OutputError]:
    interface = interface_of(function)
    inputs = [tensor.name for tensor in interface.inputs]
    outputs = [tensor.name for tensor in interface.outputs]
    values = [_random(arg.type, name) for arg, name in zip(function.body.block.args, inputs, strict=True)]
    expected = executor.run(module, interface.function, values)
    key = interface.keys[0] if interface.keys else ""
    got = runtime.run_file(content, key, dict(zip(inputs, values, strict=True)), outputs)
    label = key or interface.function
    return [_compare(label, name, want, have) for name, want, have in zip(outputs, expected, got, strict=True)]


def _random(tensor_type: Attribute, name: str) -> Array:
    """Returns a random value of a type, the same for the same name."""
    shape = types.shape_of(tensor_type) or ()
    static = tuple((_BATCH if axis == 0 else _OTHER) if dim < 0 else dim for axis, dim in enumerate(shape))
    dtype = types.numpy_dtype(types.element_of(tensor_type))
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    if dtype.kind == "O":
        raise error("unverifiable-input", f"no random value can be made up for the string input {name!r}",
                    hint="verify this model with inputs of your own")  # fmt: skip
    if dtype.kind == "b":
        return generator.integers(0, 2, static).astype(dtype)
    if dtype.kind in "iu":
        return generator.integers(0, 10, static).astype(dtype)
    return generator.uniform(-1, 1, static).astype(dtype)


def _compare(signature: str, output: str, expected: Array, got: Array) -> OutputError:
    if expected.shape != got.shape:
        raise error("verification-failed", f"output {output!r} of {signature!r} has shape {list(got.shape)} in LiteRT, "
                    f"the reference says {list(expected.shape)}",
                    hint="this is a defect of the converter; please report it")  # fmt: skip
    if expected.dtype.kind not in "fciub" or not expected.size:
        return OutputError(signature, output, float(np.any(expected != got)), float(np.any(expected != got)))
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    difference = np.abs(expected.astype(wide) - got.astype(wide))
    same = (expected == got) | (np.isnan(difference) & np.isnan(expected) & np.isnan(got))
    largest = float(np.max(np.where(same, 0, difference)))
    scale = float(np.max(np.abs(expected.astype(wide))))
    return OutputError(signature, output, largest, largest / scale if scale else largest)
