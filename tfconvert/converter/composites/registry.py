"""Which fusion is for a function: the user's, those of installed packages, and the target's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.metadata import entry_points
from typing import Any

from tfconvert.converter.composites.callbacks import CODE, Guard
from tfconvert.converter.composites.composite import Composite
from tfconvert.converter.composites.fusion import Fusion
from tfconvert.schema.diagnostics import ConversionError, error

ENTRY_POINTS = "tfconvert.composites"
"""The group of entry points by which installed packages add fusions: each names a sequence of them."""


def all_fusions(given: Sequence[Fusion] = (), own: Sequence[Fusion] = ()) -> tuple[Fusion, ...]:
    """Returns the given fusions, those of installed packages and our own; the first that applies is the one.

    Args:
        given: The user's.
        own: The target's.

    Raises:
        ConversionError: Something is no fusion (`wrong-option`), or a package's can't be loaded (`bad-fusion`).
    """
    fusions = list(checked(given, "composites"))
    for point in entry_points(group=ENTRY_POINTS):
        where = f"the entry point {point.name!r} of {ENTRY_POINTS}, {point.value},"
        with Guard(partial(_unloaded, where)):
            loaded = point.load()
        fusions += checked(loaded, where)
    return (*fusions, *own)


def _unloaded(where: str, problem: str) -> ConversionError:
    return error(CODE, f"{where} {problem}", hint="correct or uninstall the package that declares it")


def checked(fusions: Any, where: str) -> tuple[Fusion, ...]:
    """Returns what somebody gives as fusions.

    Raises:
        ConversionError: It is no sequence of fusions (`wrong-option`).
    """
    hint = "give a list of what tfconvert.composites.Fusion makes"
    if not isinstance(fusions, Sequence):
        raise error("wrong-option", f"{where} is {fusions!r}, which is no sequence of fusions", hint=hint)
    for fusion in fusions:
        if not isinstance(fusion, Fusion):
            raise error("wrong-option", f"{where} holds {fusion!r}, which is no fusion", hint=hint)
    return tuple(fusions)


def find(fusions: Sequence[Fusion], composite: Composite, mark: str) -> Fusion | None:
    """Returns the fusion for a function that says with a mark what it implements, `None` if there is none."""
    return next((fusion for fusion in fusions if fusion.applies(composite, mark)), None)
