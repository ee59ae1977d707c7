"""Flags of the command: those that are settings follow from their table; and how errors are printed.

Nothing here imports more than click: help and wrong calls are answered at once.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TextIO, get_args

import click

from tfconvert.cli.extras import as_installed
from tfconvert.cli.help_page import Flag
from tfconvert.cli.keras_files import prepare_for_keras
from tfconvert.cli.streams import COLOURS, say
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import Diagnostic, texts_of
from tfconvert.schema.limits import Limits
from tfconvert.settings.data import NESTED, SETTINGS, from_data
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import NOT_DENSE, Io, Quantize
from tfconvert.settings.selection import Selection
from tfconvert.settings.setting import Setting, settings_of
from tfconvert.settings.targets import Iree, LiteRT, StableHLO
from tfconvert.settings.verify_options import Verify

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Syntax(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """The syntax of an option's value.

    Args:
        name: The form of a value, as help shows it.
        example: A value, for error messages.
        parse: Returns what a string means, and raises a `ValueError` if it means nothing.
    """

    def __init__(self, name: str, example: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._example = example
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._parse(str(value))
        except ValueError:
            self.fail(f"{value!r} is not {self.name}, as in {self._example}", param, ctx)


def _shape(text: str) -> tuple[str, list[int]]:
    name, dims = _named(text)
    shape = [int(dim) for dim in dims.split(",")] if dims.strip() else []
    if any(dim < -1 for dim in shape):
        raise ValueError
    return name, shape


def _named(text: str) -> tuple[str, str]:
    name, _, value = text.rpartition("=")
    if not name:
        raise ValueError
    return name, value


def _pair(text: str) -> tuple[float, float]:
    first, second = map(float, text.split(","))
    return first, second


def _rename(text: str) -> tuple[str, str]:
    old, new = _named(text)
    if not new:
        raise ValueError
    return old, new


def _stats(text: str) -> tuple[str, tuple[float, float]]:
    name, numbers = _named(text)
    return name, _pair(numbers)


def _limit(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    field = name.strip().replace("-", "_")
    if field not in Limits._fields:
        known = ", ".join(each.replace("_", "-") for each in Limits._fields)
        raise click.BadParameter(f"{name!r} is not one of {known}")
    if not number.isascii() or not number.isdigit() or len(number) > 18:
        raise ValueError
    return field, int(number)


def _io(text: str) -> Any:
    ends = text.split(",")
    if len(ends) > 2 or not set(ends) <= set(get_args(Io)):
        raise click.BadParameter(f"{text!r} is not one of {', '.join(get_args(Io))}, or two of them with a comma")
    # A pair says that it was chosen: by default inputs and outputs for Ethos-U are integers.
    return ends[0] if len(ends) == 1 and ends[0] != "float32" else (ends[0], ends[-1])


def _share(text: str) -> float:
    number = text.strip()
    try:
        share = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        share = -1
    if not 0 <= share <= 1:
        raise click.BadParameter(f"{text!r} is not a share, as in 90% or 0.9")
    return share


def _normalization(text: str) -> tuple[str, list[float]]:
    name, _, numbers = text.rpartition("=")
    return name, [*_pair(numbers)]


SHAPE = Syntax("NAME=DIMS", "image=1,224,224,3", _shape)
"""An input's shape; `NAME=` is a scalar, -1 leaves a dimension as it is."""

MEMORY = Syntax("[NAME=DIMS]", "image=1,224,224,3", lambda text: _shape(text) if text else ("", []))
"""As `SHAPE`, but the value may be left out."""

STATS = Syntax("INPUT=MEAN,STD", "x=127.5,127.5", _stats)
"""The integer for 0 in an input, and the number of integers per 1."""

LIMIT = Syntax("NAME=N", "constant-bytes=4294967296", _limit)
"""One of the `Limits`, its name with dashes, and a number."""

Function = Callable[..., Any]


def flag(*names: str, **settings: Any) -> Function:
    """Returns the decorator that adds an option of the main command; see `Flag`."""
    return click.option(*names, cls=Flag, **settings)


# Settings whose values have a syntax of their own.
_SYNTAX: Mapping[str, Syntax] = {
    "input_shapes": SHAPE,
    "rename": Syntax("OLD=NEW", "output_0=scores", _rename),
    "limits": LIMIT,
    "io": Syntax("TYPE[,TYPE]", "int8", _io),
    "default_range": Syntax("LOW,HIGH", "0,6", _pair),
    "min_agreement": Syntax("SHARE", "90%", _share),
}
# The section of the help that a class's flags are in.
_SECTIONS: Mapping[Any, str] = {
    Selection: "Inputs, outputs and shapes",
    LiteRT: "LiteRT files",
    Quantize: "Quantization",
    Verify: "Verification",
    StableHLO: "StableHLO and IREE",
    Iree: "StableHLO and IREE",
    Options: "Conversion",
}
_PATHS = ("FILE", "DIR", "PATH", "FILE.py")
_GROUPS = {StableHLO: "StableHLO: ", Iree: "IREE: "}
# In the order in which help shows them.
_CLASSES: tuple[Any, ...] = (Selection, LiteRT, Quantize, StableHLO, Iree, Options, Verify)

# Flags that are no single setting, by the classes after whose flags they stand.
_OTHERS: Mapping[Any, tuple[Function, ...]] = {
    Selection: (
        flag(
            "--target",
            section="Output",
            is_common=True,
            type=click.Choice(SETTINGS["target"].schema["enum"]),
            help=f"{SETTINGS['target'].text} Default: by the extension of -o, else litert.",
        ),
    ),
    LiteRT: (
        flag(
            "--metadata",
            section="LiteRT files",
            metavar="[OUTPUT=]FILE",
            multiple=True,
            help="Store a text file of labels, one per line, with an output; or a .json file. Repeatable.",
        ),
        flag(
            "--metadata-normalization",
            section="LiteRT files",
            type=Syntax("[INPUT=]MEAN,STD", "127.5,127.5", _normalization),
            multiple=True,
            help="Store how apps should normalize an input, (x - MEAN) / STD. Repeatable.",
        ),
    ),
    Quantize: (
        flag(
            "--per-tensor",
            section="Quantization",
            is_flag=True,
            help="Give weights one scale instead of one for each channel.",
        ),
        flag(
            "--per-tensor-dense",
            section="Quantization",
            is_flag=True,
            help="The same, but for fully connected layers alone.",
        ),
    ),
}


def adding(*options: Function) -> Function:
    """Returns a decorator that adds options, in the order in which help shows them."""

    def add(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def json_option(text: str = "Print JSON.") -> Function:
    """Returns the decorator that adds `--json`."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def options_of(cls: Any, *names: str) -> Function:
    """Returns a decorator that adds the flags of settings.

    Args:
        cls: Their class.
        names: Those of its settings; all by default.
    """
    rows = [row for row in settings_of(cls).values() if row.flag and (not names or row.name in names)]
    return adding(*(_option(row, _GROUPS.get(cls, ""), _SECTIONS[cls]) for row in rows))


def setting_options(function: Function) -> Function:
    """Adds the flags of all settings."""
    return adding(*(adding(options_of(cls), *_OTHERS.get(cls, ())) for cls in _CLASSES))(function)  # type: ignore[no-any-return]


def _option(row: Setting, group: str, section: str) -> Function:
    kind, choices = row.schema.get("type"), row.schema.get("enum", row.schema.get("items", {}).get("enum"))
    text = row.help or row.text
    shown = f"{group}{text[0].lower()}{text[1:]}" if group else text
    if kind == "boolean" or row.data == "verify":
        return flag(row.flag, is_flag=True, help=shown, section=_section(row, section), is_common=row.is_common)
    settings: dict[str, Any] = {"metavar": row.metavar or None}
    if row.name in _SYNTAX:
        settings["type"] = _SYNTAX[row.name]
    elif choices is not None:
        settings["type"] = click.Choice([str(each) for each in choices], case_sensitive=False)
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
    return flag(row.flag, help=shown, section=_section(row, section), is_common=row.is_common, **settings)


def _section(row: Setting, section: str) -> str:
    """Returns the section of a setting: an object's first flag is with those of its own class."""
    return _SECTIONS[Verify] if row.data == "verify" else section


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

    Keras' files are prepared for.

    Args:
        model: The model.
        values: The command's parameters, of which the settings are taken.
    """
    imports = values.pop("imports", ())
    selection, options = from_data(to_settings(values))
    prepare_for_keras(model, imports)
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
        head = click.style(f"tfconvert: {diagnostic.severity}:", fg=COLOURS.get(diagnostic.severity), bold=True)
        say(f"{head} {as_installed(text)}", sys.stderr)
