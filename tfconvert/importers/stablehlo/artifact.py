"""A portable StableHLO artifact as a module of `func` and `stablehlo` ops: what JAX, Keras and torch_xla write."""

from __future__ import annotations

import re

from tfconvert.importers.stablehlo.attributes import newer
from tfconvert.importers.stablehlo.bytecode import MAGIC, NEWEST, Bytecode
from tfconvert.importers.stablehlo.cursor import Cursor
from tfconvert.importers.stablehlo.ops import OpReader
from tfconvert.ops.verification import first_broken
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import sdy
from tfconvert.schema.files import InputFile
from tfconvert.schema.ir.builtin import ModuleOp

_PRODUCER = re.compile(r"StableHLO_v(\d{1,9})\.(\d{1,9})\.(\d{1,9})", re.ASCII)


def is_artifact(first_bytes: bytes | memoryview) -> bool:
    """Returns whether a file that begins with these bytes is MLIR bytecode; four are enough."""
    return bytes(first_bytes[: len(MAGIC)]) == MAGIC


def import_artifact(
    data: bytes | memoryview, name: str, place: tuple[InputFile, int] | None = None, outermost: str = ""
) -> ModuleOp:
    """Returns the module of a portable artifact, verified.

    Args:
        data: The artifact. Constants are views of it, so it must not change while the module is in use.
        name: Its name in errors.
        place: The file that the artifact is in, and its offset there: large constants are read from there when they
            are used, and the module doesn't keep the data.
        outermost: The function that is called from outside, if no attributes are needed but those of its arguments:
            the others are not read. JAX has hundreds of them, which name results.

    Raises:
        ConversionError: It is damaged (`malformed-artifact`), newer than what is known (`newer-artifact`), not
            portable, or contains something that has no form here (`unsupported-artifact`).
    """
    view = memoryview(data).cast("B")
    try:
        file = Bytecode(view)
        module = OpReader(file, _version(file.producer), place, outermost).module()
        if any(name.dialect == sdy.NAME for name in file.op_names):
            sdy.erase_shardings(module)
    except ConversionError as problem:
        raise _named(problem, view, name) from None
    broken = first_broken(module)
    if broken is not None:
        raise ConversionError([broken.diagnostic("malformed-artifact")])
    return module


def _named(problem: ConversionError, data: memoryview, name: str) -> ConversionError:
    """Returns an error with the artifact's name; what can't be read of a newer container is not called damaged."""
    (told,) = problem.diagnostics
    cursor = Cursor(data[len(MAGIC) : len(MAGIC) + 9])
    if told.code == "malformed-artifact" and is_artifact(data) and cursor.left == 9 and cursor.varint() > NEWEST:
        (told,) = newer("the version of the bytecode").diagnostics
    return ConversionError([told._replace(location=name)])


def _version(producer: str) -> tuple[int, ...]:
    """Returns the version of StableHLO that an artifact was written for."""
    match = _PRODUCER.match(producer)
    if match is None:
        raise error(
            "unsupported-artifact",
            f"the file is MLIR bytecode of {producer[:100]!r} and no portable artifact: versions differ in its meaning",
            hint="write it with stablehlo.serialize_portable_artifact, with jax.export, or as text",
        )
    return tuple(map(int, match.groups()))
