"""Options of the command that say how to quantize, and the line that shows how far a calibration is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args

import click

from tfconvert.cli.streams import can_redraw
from tfconvert.settings.quantization_choices import (
    NOT_DENSE,
    Accumulation,
    Bias,
    Io,
    Mode,
    Ranges,
    RecurrentState,
    VariableType,
)

if TYPE_CHECKING:
    from tfconvert.settings.quantization import Quantize


class IoOption(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """`TYPE`, or `TYPE,TYPE` for inputs and for outputs."""

    name = "TYPE[,TYPE]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parses one value."""
        ends = str(value).split(",")
        if len(ends) > 2 or not set(ends) <= set(get_args(Io)):
            self.fail(f"{value!r} is not one of {', '.join(get_args(Io))}, or two of them with a comma", param, ctx)
        return ends[0] if len(ends) == 1 else tuple(ends)


class RangeOption(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """`LOW,HIGH`: two numbers."""

    name = "LOW,HIGH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        """Parses one value."""
        try:
            low, high = map(float, str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not LOW,HIGH, as in 0,6", param, ctx)
        return low, high


_OPTIONS = (
    click.option(
        "--quantize",
        "mode",
        type=click.Choice(get_args(Mode)),
        help="Quantize: store weights as 8-bit integers (dynamic, weights) or 16-bit floats, or compute with "
        "8-bit integers, or with 16-bit ones (int8, int16).",
    ),
    click.option("--weights", "bits", type=click.Choice(["8", "4"]), help="Bits of weights that gain by few."),
    click.option(
        "--samples",
        metavar="PATH",
        multiple=True,
        type=click.Path(),
        help="int8, int16: typical inputs, in files (.npz, .npy) or folders of them; repeatable.",
    ),
    click.option(
        "--calibration",
        metavar="FILE",
        type=click.Path(),
        help="int8, int16: where ranges are kept that samples gave; read if there, else written.",
    ),
    click.option(
        "--io",
        type=IoOption(),
        help="Type of float inputs and outputs, or of either as float32,int8. Default: float32.",
    ),
    click.option(
        "--ranges",
        type=click.Choice(get_args(Ranges)),
        help="int8, int16: how a range follows from samples. Default: minmax.",
    ),
    click.option(
        "--exclude",
        metavar="PATTERN",
        multiple=True,
        help="Nodes or operators that stay float, as */logits or SOFTMAX; repeatable.",
    ),
    click.option("--per-tensor", is_flag=True, help="Give weights one scale instead of one for each channel."),
    click.option("--per-tensor-dense", is_flag=True, help="The same, but for fully connected layers alone."),
    click.option(
        "--hybrid-only",
        is_flag=True,
        help="dynamic: turn no filters to floats, which is faster on processors, but not known everywhere.",
    ),
    click.option(
        "--variables",
        type=click.Choice(get_args(VariableType)),
        help="int8, int16: type of variables that keep state between runs. Default: auto.",
    ),
    click.option(
        "--recurrent-state",
        type=click.Choice(get_args(RecurrentState)),
        help="What operators of LSTMs begin a run with: zeros, or what the last run left. Default: reset.",
    ),
    click.option("--bias", type=click.Choice(get_args(Bias)), help="int16: type of biases. Default: int64."),
    click.option(
        "--accumulation",
        type=click.Choice(get_args(Accumulation)),
        help="float16: floats in which products are summed up where that is faster. Default: float32.",
    ),
    click.option(
        "--float-ends",
        is_flag=True,
        help="With --io: leave inputs and outputs floats where operators at them compute with floats.",
    ),
    click.option(
        "--trained-only",
        is_flag=True,
        help="int8, int16, dynamic: quantize what the model fake-quantizes itself, and nothing else.",
    ),
    click.option(
        "--default-range",
        type=RangeOption(),
        help="int8, int16: a range for what neither samples nor training tell: only to measure speed.",
    ),
    click.option("--strict", is_flag=True, help="int8, int16: refuse what would stay float."),
)

QUANTIZE_SETTINGS = (
    "mode",
    "bits",
    "samples",
    "calibration",
    "io",
    "ranges",
    "exclude",
    "per_tensor",
    "per_tensor_dense",
    "hybrid_only",
    "variables",
    "recurrent_state",
    "bias",
    "accumulation",
    "trained_only",
    "float_ends",
    "default_range",
    "strict",
)
"""The parameters that `quantize_options` adds to a command."""

# Those that `Quantize` takes as they are.
_AS_GIVEN = ("calibration", "io", "ranges", "variables", "recurrent_state", "bias", "accumulation", "default_range")

Function = Callable[..., Any]


def quantize_options(function: Function) -> Function:
    """Adds the options that say how to quantize, in the order in which help shows them."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def to_quantize(values: Mapping[str, Any], *, quiet: bool = False) -> Quantize | None:
    """Returns the settings that `quantize_options` were given, `None` if there is nothing to quantize.

    Args:
        values: The parameters `QUANTIZE_SETTINGS`.
        quiet: Whether nothing shows how far a calibration is.

    Raises:
        UsageError: Options say how to quantize, but `--quantize` is missing.
    """
    given = {name: value for name, value in values.items() if value}
    if "mode" not in given:
        if given:
            raise click.UsageError("options of a quantization go with --quantize MODE")
        return None
    from tfconvert.settings.quantization import Quantize  # only where there is something to quantize

    settings: dict[str, Any] = {name: given[name] for name in _AS_GIVEN if name in given}
    if "samples" in given:
        settings["samples"] = list(given["samples"])
    return Quantize(
        given["mode"],
        int(given.get("bits", 8)),
        per_channel="per_tensor" not in given and (NOT_DENSE if "per_tensor_dense" in given else True),
        exclude=tuple(given.get("exclude", ())),
        strict="strict" in given,
        hybrid_only="hybrid_only" in given,
        trained_only="trained_only" in given,
        float_ends="float_ends" in given,
        progress=_show if not quiet and can_redraw(sys.stderr) else None,
        **settings,
    )


def _show(done: int, total: int | None) -> None:
    """Shows on a line of its own how many samples have been run; the line is removed after the last."""
    if done == total:
        click.echo("\r\033[K", nl=False, err=True)
    else:
        of = "" if total is None else f" of {total}"
        click.echo(f"\r\033[Ktfconvert: calibrate, {done}{of} samples", nl=False, err=True)
