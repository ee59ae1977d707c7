"""All fusions: the families put together, and those that the user brings along (design §7)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points

from converter.composites import addons, detection, embedding, fusable, keras_lstm, lstm_cell, text
from converter.composites.composite import Composite
from converter.composites.fusion import Fusion
from schema.diagnostics import error

ENTRY_POINTS = "tfconvert.composites"
"""The group of entry points by which installed packages add fusions: each names a sequence of them."""

FUSIONS: tuple[Fusion, ...] = (
    *embedding.FUSIONS,
    *detection.FUSIONS,
    *addons.FUSIONS,
    *text.FUSIONS,
    *keras_lstm.FUSIONS,
    *lstm_cell.FUSIONS,
    # Any name at all: behind those that are known.
    *fusable.FUSIONS,
)


def all_fusions(given: Sequence[Fusion] = ()) -> tuple[Fusion, ...]:
    """Returns the given fusions, those of installed packages and our own; the first that applies is the one.

    Raises:
        ConversionError: Something is no fusion (`wrong-option`).
    """
    fusions = list(_checked(given, "composites"))
    for point in entry_points(group=ENTRY_POINTS):
        fusions += _checked(point.load(), f"the entry point {point.name!r} of {ENTRY_POINTS}")
    return (*fusions, *FUSIONS)


def _checked(fusions: Sequence[Fusion], where: str) -> Sequence[Fusion]:
    for fusion in fusions:
        if not isinstance(fusion, Fusion):
            raise error("wrong-option", f"{where} holds {fusion!r}, which is no fusion",
                        hint="make one with tfconvert.composites.Fusion")  # fmt: skip
    return fusions


def find(fusions: Sequence[Fusion], composite: Composite, mark: str) -> Fusion | None:
    """Returns the fusion for a function that says with a mark what it implements, `None` if there is none."""
    return next((fusion for fusion in fusions if fusion.applies(composite, mark)), None)
