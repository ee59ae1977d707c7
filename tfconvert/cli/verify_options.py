"""Options of the command that say how to verify the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tfconvert.schema.diagnostics import Diagnostic

if TYPE_CHECKING:
    from tfconvert.cli.cache import CachedReport
    from tfconvert.report.report import Report
    from tfconvert.settings.verify_options import Verify


class ShareOption(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """`90%` or `0.9`: a share."""

    name = "SHARE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parses one value."""
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = -1
        if not 0 <= share <= 1:
            self.fail(f"{value!r} is not a share, as in 90% or 0.9", param, ctx)
        return share


_LIMIT_OPTIONS = (
    click.option(
        "--min-snr",
        type=float,
        metavar="DB",
        help="Quantized: fail if an output's signal-to-noise ratio is less. Default: warn below 20.",
    ),
    click.option(
        "--min-agreement",
        type=ShareOption(),
        metavar="SHARE",
        help="Quantized: fail if fewer rows have the same largest element. Default: warn below 90%.",
    ),
)
_OPTIONS = (
    click.option("--verify", is_flag=True, help="Run the result and compare it with the reference executor."),
    click.option(
        "--verify-data",
        metavar="PATH",
        multiple=True,
        help="Verify on inputs in files (.npz, .npy) or folders of them; repeatable. Default: random ones.",
    ),
    *_LIMIT_OPTIONS,
    click.option(
        "--compare-layers",
        is_flag=True,
        help="Verify, and find the first operator whose result differs, or the layers that lose most.",
    ),
    click.option(
        "--search-seconds",
        type=click.FloatRange(0),
        metavar="N",
        help="--compare-layers: how long to look for layers to exclude; 0: don't. Default: 60.",
    ),
)

VERIFY_SETTINGS = ("verify", "verify_data", "min_snr", "min_agreement", "compare_layers", "search_seconds")
"""The parameters that `verify_options` adds to a command."""

Function = Callable[..., Any]


def verify_options(function: Function) -> Function:
    """Adds the options that say how to verify, in the order in which help shows them."""
    return _with(function, _OPTIONS)


def limit_options(function: Function) -> Function:
    """Adds the options that say what is near enough."""
    return _with(function, _LIMIT_OPTIONS)


def _with(function: Function, options: Sequence[Function]) -> Function:
    for option in reversed(options):
        function = option(function)
    return function


def to_verify(values: Mapping[str, Any]) -> Verify | None:
    """Returns the settings that `verify_options` were given, `None` if nothing is to be verified.

    Args:
        values: The parameters `VERIFY_SETTINGS`.

    Raises:
        UsageError: `--search-seconds` is given without `--compare-layers`.
    """
    given = {name: value for name, value in values.items() if value is not None and value is not False and value != ()}
    if not given:
        return None
    if "search_seconds" in given and "compare_layers" not in given:
        raise click.UsageError("--search-seconds goes with --compare-layers")
    from tfconvert.settings.verify_options import Verify  # only where there is something to verify

    given.pop("verify", None)
    data = given.pop("verify_data", None)
    return Verify(None if data is None else list(data), **given)


def low_fidelity(report: Report | CachedReport) -> list[Diagnostic]:
    """Returns the warning that a quantized model differs too much from the float model, for the error stream."""
    from tfconvert.schema.fidelity import LOW

    return [Diagnostic(**note) for note in report.to_dict()["notes"] if note["code"] == LOW]
