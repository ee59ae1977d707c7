"""Operators of a `.tflite` file that contradict themselves: no kernel runs them, however they are used."""

from __future__ import annotations

from collections.abc import Iterator

from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import tfl, tfl_file
from tfconvert.schema.dialects.locations import found_at
from tfconvert.schema.dialects.relations import tfl_check
from tfconvert.schema.ir.attributes import DictionaryAttr, IntegerAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.tflite.versions import newest_version

_HINT = "make or download the file again"


def check_operators(module: ModuleOp) -> None:
    """Checks the shapes and options of all operators.

    Raises:
        ConversionError: Some don't agree (`malformed-tflite`); all are reported.
    """
    problems = list(_newer(module))
    problems += [found for op in module.walk() if isinstance(op, tfl.TFLOp) and (found := _problem(op)) is not None]
    if problems:
        raise ConversionError(problems)


def _newer(module: ModuleOp) -> Iterator[Diagnostic]:
    """Yields what is wrong with the versions that the file states."""
    versions = module.attributes.get(tfl_file.OPERATOR_VERSIONS)
    for name, version in (versions.data if isinstance(versions, DictionaryAttr) else {}).items():
        known = newest_version(name)
        if isinstance(version, IntegerAttr) and 0 < known < version.value:
            message = f"{name} has version {version.value}, and the newest that is known is {known}"
            yield Diagnostic("malformed-tflite", message, name, hint="use a newer tfconvert, if there is one")


def _problem(op: tfl.TFLOp) -> Diagnostic | None:
    try:
        tfl_check.check(op, with_types=False)
    except VerifyError as problem:
        return found_at(op, "malformed-tflite", str(problem).removeprefix(f"{op.name}: "), _HINT)
    return None
