"""Checks a converted model: LiteRT and the reference executor on the same random inputs must agree.

The reference runs the model as it was imported, before any pass, so that a mistake of any of them is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tfconvert.converter.executor import executor
from tfconvert.converter.ir.interface import Interface, interface_of
from tfconvert.converter.litert import runtime
from tfconvert.converter.passes.merge_functions import MergeFunctions
from tfconvert.converter.report import OutputError
from tfconvert.converter.validation import samples
from tfconvert.converter.validation.comparison import compare
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError, Diagnostic, error
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION
from tfconvert.schema.ir.builtin import ModuleOp

_ROUNDING = float(np.finfo(np.float32).eps)
"""The rounding error of numbers near one, of which a small result may be the difference."""


def verify(source: Source, content: bytes) -> list[OutputError]:
    """Returns how far LiteRT's outputs are from the reference's, for every exported function.

    Args:
        source: The model that was converted.
        content: The converted file's bytes.

    Raises:
        ConversionError: The outputs differ (`verification-failed`), LiteRT is not installed (`litert-missing`) or
            refuses the file (`runtime-error`), an op has no reference kernel, no random inputs suit a function, or no
            value exists for an input (`unverifiable-input`).
    """
    runtime.require()
    module = source.open()
    MergeFunctions().apply(module)
    checked = [
        _verify_function(module, function, content)
        for function in module.ops
        if isinstance(function, FuncOp) and ENTRY_FUNCTION in function.attributes
    ]
    problems = [problem for _, found in checked for problem in found]
    if problems:
        raise ConversionError(problems)
    return [each for errors, _ in checked for each in errors]


def _verify_function(
    module: ModuleOp, function: FuncOp, content: bytes
) -> tuple[Iterable[OutputError], Iterable[Diagnostic]]:
    """Returns how far a function's outputs are from the reference's at most, and what is wrong about them."""
    interface = interface_of(function)
    outputs = [tensor.name for tensor in interface.outputs]
    label = interface.keys[0] if interface.keys else interface.function
    errors = {name: OutputError(label, name, 0.0, 0.0) for name in outputs}
    problems: dict[str, Diagnostic] = {}
    for expected, got in _runs(module, function, interface, content):
        for name, want, have in zip(outputs, expected, got, strict=True):
            found = compare(want, have, _ROUNDING)
            known = errors[name]
            errors[name] = OutputError(label, name, max(known.max_absolute, found.absolute),
                                       max(known.max_relative, found.relative))  # fmt: skip
            if found.what:
                problems.setdefault(name, _failed(label, name, found.what))
    return errors.values(), problems.values()


def _runs(
    module: ModuleOp, function: FuncOp, interface: Interface, content: bytes
) -> Iterator[tuple[Sequence[Array], Sequence[Array]]]:
    """Yields the reference's outputs and LiteRT's, for random inputs that suit a function.

    Raises:
        ConversionError: There are none.
    """
    inputs, outputs = ([tensor.name for tensor in side] for side in (interface.inputs, interface.outputs))
    refusals: list[ConversionError] = []
    suits = False
    for values in samples.draws([each.type for each in function.body.block.args], inputs):
        try:
            expected = executor.run(module, interface.function, values)
            key = interface.keys[0] if interface.keys else ""
            got = runtime.run_file(content, key, dict(zip(inputs, values, strict=True)), outputs)
        except ConversionError as problem:
            if problem.code not in samples.REFUSED_INPUT - {"runtime-error"}:
                raise
            refusals.append(problem)
            continue
        suits = True
        yield expected, got
    if refusals and not suits:
        raise refusals[0]
    if not suits:
        raise error("unverifiable-input", f"an input of {interface.function!r} is a handle, which has no random values",
                    hint="verify this model with inputs of your own")  # fmt: skip


def _failed(signature: str, output: str, what: str) -> Diagnostic:
    return Diagnostic("verification-failed", f"output {output!r} of {signature!r} {what}, by the reference",
                      hint="this is a defect of the converter; please report it")  # fmt: skip
