"""The outcome of tuning: times of forms of operators, and the choices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple


class TunedForm(NamedTuple):
    """Equal forms of operators, and the choice among them.

    Attributes:
        pattern: The pattern that makes the fast form, or the recurrent layer's kind.
        shape: The shape of the largest input, as `1x56x56x64`; `n` is a dynamic size.
        form: A digest of both forms.
        becomes: The operators of the fast form.
        usual: Microseconds of the usual form; NaN if it was not measured.
        fast: Those of the fast form.
        is_fast: Whether the fast form was chosen.
        is_default: Whether the conversion would choose the same without tuning.
        places: How often the model has it.
    """

    pattern: str
    shape: str
    form: str
    becomes: str
    usual: float
    fast: float
    is_fast: bool
    is_default: bool
    places: int = 1

    @property
    def is_measured(self) -> bool:
        return not math.isnan(self.usual)

    @property
    def gain(self) -> float:
        """Microseconds less than those of the other form, in all places."""
        return self.places * (self.usual - self.fast if self.is_fast else self.fast - self.usual)

    def to_dict(self) -> dict[str, Any]:
        times = {"usual": round(self.usual, 3), "fast": round(self.fast, 3)} if self.is_measured else {}
        return {
            "pattern": self.pattern,
            "shape": self.shape,
            "form": self.form,
            "becomes": self.becomes,
            **times,
            "chosen": "fast" if self.is_fast else "usual",
            "is_default": self.is_default,
            "places": self.places,
        }

    def line(self) -> str:
        """Returns the form as a line of text."""
        places = "" if self.places == 1 else f" ({self.places} places)"
        times = "not measured"
        if self.is_measured:
            chosen = "chosen" if self.is_fast else "not chosen"
            times = f"{chosen}, {self.fast:.1f} us; without it {self.usual:.1f} us"
        return f"{self.pattern} {self.shape}{places}: {times}"


class TuningReport(NamedTuple):
    """The outcome of tuning.

    Attributes:
        device: Where the forms were measured.
        forms: The forms, in the order in which they were found.
        directory: Where their files were written, to be measured elsewhere; empty if nothing was written.
    """

    device: str
    forms: tuple[TunedForm, ...] = ()
    directory: str = ""

    def joined(self, other: TuningReport) -> TuningReport:
        """Returns the outcome of this and of a later pass."""
        return self._replace(forms=merged((*self.forms, *other.forms)))

    @property
    def gain(self) -> float:
        """Microseconds less than those of the forms that were not chosen."""
        return sum(each.gain for each in self.forms if each.is_measured)

    @property
    def gain_over_default(self) -> float:
        """Microseconds less than without tuning."""
        return sum(each.gain for each in self.forms if each.is_measured and not each.is_default)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            "device": self.device,
            "directory": self.directory,
            "gain": round(self.gain, 3),
            "gain_over_default": round(self.gain_over_default, 3),
            "forms": [each.to_dict() for each in self.forms],
        }

    def lines(self, most: int | None) -> list[str]:
        """Returns the outcome as lines of text.

        Args:
            most: Maximum number of forms; `None` for no limit.
        """
        forms = sorted(self.forms, key=lambda each: -each.gain if each.is_measured else math.inf)
        if self.directory and most is not None:
            return [self._head()]
        shown = [f"  {each.line()}" for each in forms[:most]]
        if len(shown) < len(forms):
            shown.append(f"  ... and {len(forms) - len(shown)} more (-v shows all)")
        return [self._head(), *shown]

    def _head(self) -> str:
        if not self.forms:
            return "tuning: the model has no operators with several forms to choose from"
        if self.directory:
            table = Path(self.directory, "table.tsv")
            return (
                f"tuning: forms were written to {self.directory}; measure_forms.py there measures them on the device, "
                f"and --tune {table} chooses by the table that it writes"
            )
        measured = [each for each in self.forms if each.is_measured]
        missing = len(self.forms) - len(measured)
        return (
            f"tuning on {self.device}: {_us(self.gain)} less than with the other forms, "
            f"{_us(self.gain_over_default)} less than without tuning; {_many(len(measured), 'form')} measured"
            f"{f', {missing} not' if missing else ''}"
        )


def merged(forms: Iterable[TunedForm]) -> tuple[TunedForm, ...]:
    """Returns forms without duplicates, whose places are added."""
    found: dict[TunedForm, int] = {}
    for each in forms:
        once = each._replace(places=1)
        found[once] = found.get(once, 0) + each.places
    return tuple(each._replace(places=places) for each, places in found.items())


def _us(time: float) -> str:
    return f"{round(time, 1) or 0.0:.1f} us"  # Never -0.0.


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
