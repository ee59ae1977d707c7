"""Progress of the command: one line on a terminal that is redrawn, or a line for each stage in a log."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from types import TracebackType

import click

from tfconvert.cli.streams import can_redraw, say
from tfconvert.settings.options import Options
from tfconvert.settings.targets import LiteRT

_ERASE = "\r\033[K"


class Progress:
    """Shows stages on the error stream while the body of a `with` runs; afterwards the terminal is as before.

    Args:
        verbose: Whether a log gets a line for each stage.
        quiet: Whether nothing is shown.
    """

    def __init__(self, *, verbose: bool, quiet: bool) -> None:
        self._draws = not quiet and can_redraw(sys.stderr)
        self._tells = verbose and not self._draws

    def __call__(self, stage: str) -> None:
        """Shows that a stage begins."""
        if self._tells:
            say(f"tfconvert: {stage}", sys.stderr)
        elif self._draws:
            self._draw(f"{_ERASE}tfconvert: {stage}"[: len(_ERASE) + _width()])

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._draws:
            self._draw(_ERASE)

    def _draw(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            # The terminal is gone; the conversion isn't.
            self._draws = False


def _width() -> int:
    """Returns how much of a line is shown without a break."""
    try:
        return (os.get_terminal_size(sys.stderr.fileno()).columns or 80) - 1
    except (OSError, ValueError):
        return 79


def with_progress(options: Options, *, quiet: bool) -> Options:
    """Returns settings with a progress display for calibration, if there is a terminal.

    Args:
        options: The settings.
        quiet: Whether nothing is shown.
    """
    quantize = options.quantize
    if not isinstance(options.target, LiteRT) or quantize is None or quiet or not can_redraw(sys.stderr):
        return options
    quantize = replace(quantize, progress=_show_calibration)
    return replace(options, target=replace(options.target, quantize=quantize))


def _show_calibration(done: int, total: int | None) -> None:
    """Shows on a line of its own how many samples have been run; the line is removed after the last."""
    if done == total:
        click.echo(_ERASE, nl=False, err=True)
    else:
        of = "" if total is None else f" of {total}"
        click.echo(f"{_ERASE}tfconvert: calibrate, {done}{of} samples", nl=False, err=True)
