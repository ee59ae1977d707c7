"""The fusions of a conversion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.metadata import entry_points
from typing import Any

from tfconvert.converter.composites.composite import Composite
from tfconvert.converter.composites.fusion import CODE, Fusion
from tfconvert.converter.process.guard import Guard
from tfconvert.schema.diagnostics import ConversionError, error

ENTRY_POINTS = "tfconvert.composites"
"""The group of entry points for fusions of installed packages; each names a sequence of fusions."""


def all_fusions(user: Sequence[Fusion] = (), own: Sequence[Fusion] = ()) -> tuple[Fusion, ...]:
    """Returns the user's fusions, those of installed packages, and the target's. The first that applies wins.

    Args:
        user: The user's.
        own: The target's.

    Raises:
        ConversionError: An object is not a fusion (`wrong-option`), or a package's can't be loaded (`bad-fusion`).
    """
    fusions = list(checked(user, "composites"))
    for point in entry_points(group=ENTRY_POINTS):
        where = f"the entry point {point.name!r} of {ENTRY_POINTS}, {point.value},"
        with Guard(partial(_unloaded, where)):
            loaded = point.load()
        fusions += checked(loaded, where)
    return (*fusions, *own)


def _unloaded(where: str, problem: str) -> ConversionError:
    return error(CODE, f"{where} {problem}", hint="correct or uninstall the package that declares it")


def checked(fusions: Any, where: str) -> tuple[Fusion, ...]:
    """Checks a sequence of fusions; returns it as a tuple.

    Raises:
        ConversionError: It is not a sequence of fusions (`wrong-option`).
    """
    hint = "pass a list of tfconvert.composites.Fusion objects"
    if not isinstance(fusions, Sequence):
        raise error("wrong-option", f"{where} is {fusions!r}, which is not a sequence of fusions", hint=hint)
    for fusion in fusions:
        if not isinstance(fusion, Fusion):
            raise error("wrong-option", f"{where} holds {fusion!r}, which is not a fusion", hint=hint)
    return tuple(fusions)


def find(fusions: Sequence[Fusion], composite: Composite, mark: str) -> Fusion | None:
    """Returns the first fusion that applies to a marked function, or `None`."""
    return next((fusion for fusion in fusions if fusion.applies(composite, mark)), None)
