"""Flags of the command: those that are settings follow from their table; and how errors are printed.

Nothing here imports more than click: help and wrong calls are answered at once.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TextIO, get_args

import click

from tfconvert.cli.streams import say
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ERROR, WARNING, Diagnostic, texts_of
from tfconvert.schema.limits import Limits
from tfconvert.settings.data import NESTED, SETTINGS, from_data
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import NOT_DENSE, Io, Quantize
from tfconvert.settings.selection import Selection
from tfconvert.settings.setting import Setting, settings_of
from tfconvert.settings.targets import Iree, LiteRT, StableHLO
from tfconvert.settings.verify_options import Verify

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

_COLOURS = {ERROR: "red", WARNING: "magenta"}


class ShapeOption(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """`NAME=1,224,224,3`: an input's shape; `NAME=` is a scalar, -1 leaves a dimension as it is."""

    name = "NAME=DIMS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, list[int]]:
        """Parses one value."""
        name, equals, dims = str(value).rpartition("=")
        try:
            shape = [int(dim) for dim in dims.split(",")] if dims.strip() else []
        except ValueError:
            shape, equals = [], ""
        if not equals or not name or any(dim < -1 for dim in shape):
            self.fail(f"{value!r} is not NAME=DIMS, as in image=1,224,224,3", param, ctx)
        return name, shape


class MemoryOption(ShapeOption):
    """As `ShapeOption`, but the value may be left out."""

    name = "[NAME=DIMS]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, list[int]]:
        return super().convert(value, param, ctx) if value else ("", [])


class RenameOption(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """`OLD=NEW`: a name of the model's, and the one that it gets."""

    name = "OLD=NEW"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Parses one value."""
        old, _, new = str(value).rpartition("=")
        if not old or not new:
            self.fail(f"{value!r} is not OLD=NEW, as in output_0=scores", param, ctx)
        return old, new


class StatsOption(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """`INPUT=MEAN,STD`: the integer for 0 in an input, and the number of integers per 1."""

    name = "INPUT=MEAN,STD"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[float, float]]:
        """Parses one value."""
        name, _, numbers = str(value).rpartition("=")
        try:
            mean, std = map(float, numbers.split(","))
        except ValueError:
            name, mean, std = "", 0, 0
        if not name:
            self.fail(f"{value!r} is not INPUT=MEAN,STD, as in x=127.5,127.5", param, ctx)
        return name, (mean, std)


class LimitOption(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """`NAME=VALUE`: one of the `Limits`, its name with dashes, and a number."""

    name = "NAME=N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Parses one value."""
        name, _, number = str(value).partition("=")
        field = name.strip().replace("-", "_")
        if field not in Limits._fields:
            self.fail(
                f"{name!r} is not one of {', '.join(each.replace('_', '-') for each in Limits._fields)}", param, ctx
            )
        if not number.isascii() or not number.isdigit() or len(number) > 18:
            self.fail(f"{value!r} is not NAME=N, as in constant-bytes=4294967296", param, ctx)
        return field, int(number)


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


class Normalization(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """`MEAN,STD` or `INPUT=MEAN,STD`: a program subtracts MEAN from each value and divides by STD."""

    name = "[INPUT=]MEAN,STD"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, list[float]]:
        """Parses one value."""
        name, _, text = str(value).rpartition("=")
        try:
            mean, std = map(float, text.split(","))
        except ValueError:
            self.fail(f"{value!r} is not [INPUT=]MEAN,STD, as in 127.5,127.5", param, ctx)
        return name, [mean, std]


Function = Callable[..., Any]

# Settings whose values have a syntax of their own.
_SYNTAX: Mapping[str, Callable[[], Any]] = {
    "input_shapes": ShapeOption,
    "rename": RenameOption,
    "limits": LimitOption,
    "io": IoOption,
    "default_range": RangeOption,
    "min_agreement": ShareOption,
}
_PATHS = ("FILE", "DIR", "PATH", "FILE.py")
_GROUPS = {StableHLO: "StableHLO: ", Iree: "IREE: "}
# In the order in which help shows them.
_CLASSES: tuple[Any, ...] = (Selection, LiteRT, Quantize, StableHLO, Iree, Options, Verify)

# Flags that are no single setting, by the classes after whose flags they stand.
_OTHERS: Mapping[Any, tuple[Function, ...]] = {
    Selection: (
        click.option(
            "--target",
            type=click.Choice(SETTINGS["target"].schema["enum"]),
            help=f"{SETTINGS['target'].text} Default: by the ending of -o, else litert.",
        ),
    ),
    LiteRT: (
        click.option(
            "--metadata",
            metavar="[OUTPUT=]FILE",
            multiple=True,
            help="Store a text file of labels, one a line, with an output; or a .json file. Repeatable.",
        ),
        click.option(
            "--metadata-normalization",
            type=Normalization(),
            multiple=True,
            help="Store how programs are to normalize an input, (x - MEAN) / STD. Repeatable.",
        ),
    ),
    Quantize: (
        click.option("--per-tensor", is_flag=True, help="Give weights one scale instead of one for each channel."),
        click.option("--per-tensor-dense", is_flag=True, help="The same, but for fully connected layers alone."),
    ),
}


def setting_options(function: Function) -> Function:
    """Adds the flags of all settings."""
    for cls in reversed(_CLASSES):
        for option in reversed(_OTHERS.get(cls, ())):
            function = option(function)
        function = options_of(cls)(function)
    return function


def options_of(cls: Any, *names: str) -> Callable[[Function], Function]:
    """Returns a decorator that adds the flags of settings, in the order in which help shows them.

    Args:
        cls: Their class.
        names: Those of its settings; all by default.
    """
    rows = [row for row in settings_of(cls).values() if row.flag and (not names or row.name in names)]

    def add(function: Function) -> Function:
        for row in reversed(rows):
            function = _option(row, _GROUPS.get(cls, ""))(function)
        return function

    return add


def _option(row: Setting, group: str) -> Function:
    kind, choices = row.schema.get("type"), row.schema.get("enum")
    text = row.help or row.text
    shown = f"{group}{text[0].lower()}{text[1:]}" if group else text
    if kind == "boolean" or row.data == "verify":
        return click.option(row.flag, is_flag=True, help=shown)
    settings: dict[str, Any] = {"metavar": row.metavar or None}
    if row.name in _SYNTAX:
        settings["type"] = _SYNTAX[row.name]()
    elif choices is not None:
        settings["type"] = click.Choice([str(each) for each in choices])
    elif kind == "integer":
        settings["type"] = click.IntRange(row.schema.get("minimum"))
    elif kind == "number":
        settings["type"] = click.FloatRange(row.schema["minimum"]) if "minimum" in row.schema else float
    elif row.metavar in _PATHS:
        settings["type"] = click.Path()
    if _is_multiple(row):
        settings["multiple"] = True
        shown += " Repeatable."
    if isinstance(row.default, str | int | float) and row.default != "":
        shown += f" Default: {row.default:g}." if isinstance(row.default, float) else f" Default: {row.default}."
    return click.option(row.flag, help=shown, **settings)


def _is_multiple(row: Setting) -> bool:
    return row.schema.get("type") in ("array", "object") and row.name not in ("io", "default_range")


def to_settings(values: dict[str, Any]) -> dict[str, Any]:
    """Takes the settings that were given out of a command's parameters; returns them as data.

    Args:
        values: The parameters; those that are no settings stay.

    Raises:
        UsageError: Flags need others.
    """
    data = {"target": values.pop("target", None), "metadata": _metadata(values)}
    data = {name: value for name, value in data.items() if value is not None}
    for cls in (Selection, LiteRT, StableHLO, Options):
        data |= {row.data: value for row, value in _given(cls, values)}
    for name, cls in NESTED.items():
        nested = {row.name: value for row, value in _given(cls, values)}
        if cls is Quantize:
            dense, tensor = (values.pop(each, False) for each in ("per_tensor_dense", "per_tensor"))
            nested |= {"per_channel": NOT_DENSE} if dense else {}
            nested |= {"per_channel": False} if tensor else {}
        if nested:
            data[name] = nested
    if "quantize" in data and "mode" not in data["quantize"]:
        raise click.UsageError("options of a quantization go with --quantize MODE")
    verify = data.get("verify")
    if isinstance(verify, dict) and "search_seconds" in verify and "compare_layers" not in verify:
        raise click.UsageError("--search-seconds goes with --compare-layers")
    return data


def _given(cls: Any, values: dict[str, Any]) -> Iterator[tuple[Setting, Any]]:
    """Takes the settings of a class that were given out of parameters."""
    for row in settings_of(cls).values():
        value = values.pop(row.flag.removeprefix("--").replace("-", "_"), None) if row.flag else None
        if value is None or value is False or value == ():
            continue
        if row.default is True:
            value = False  # Such a flag turns it off.
        elif row.name == "tags":
            value = ",".join(value).split(",")
        elif _is_multiple(row) and value is not True:
            value = dict(value) if row.schema["type"] == "object" else list(value)
        elif "enum" in row.schema:
            value = next(each for each in row.schema["enum"] if str(each) == value)
        yield row, value


def _metadata(values: dict[str, Any]) -> Mapping[str, Any] | str | None:
    """Takes the metadata out of parameters; or `None`.

    Raises:
        UsageError: A JSON file, which holds everything, is not alone.
    """
    files, normalization = values.pop("metadata", ()), values.pop("metadata_normalization", ())
    if not files and not normalization:
        return None
    if any(file.lower().endswith(".json") for file in files):
        if len(files) > 1 or normalization:
            raise click.UsageError("a .json file of --metadata holds everything; write labels and normalization there")
        return str(files[0])
    labels = [file.rpartition("=") for file in files]
    return {
        "inputs": {name: {"mean": mean, "std": std} for name, (mean, std) in normalization},
        "outputs": {name: {"labels": path} for name, _, path in labels},
    }


def to_source(model: str, values: dict[str, Any]) -> tuple[Source, Options]:
    """Returns the model with its selection, and the settings, of a command that writes no file.

    Args:
        model: The model.
        values: The command's parameters, of which the settings are taken.
    """
    selection, options = from_data(to_settings(values))
    return Source(model, **selection), options


def utf8(stream: TextIO) -> TextIO:
    """Returns a standard stream, set to UTF-8, the encoding of IR, whatever the terminal's language."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8")
    return stream


def show(diagnostics: Iterable[Diagnostic]) -> None:
    """Prints diagnostics on the error stream."""
    found = list(diagnostics)
    for diagnostic, text in zip(found, texts_of(found, with_code=True), strict=True):
        head = click.style(f"tfconvert: {diagnostic.severity}:", fg=_COLOURS.get(diagnostic.severity), bold=True)
        say(f"{head} {text}", sys.stderr)
