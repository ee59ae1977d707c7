"""Shared by the verbs of the command: options that choose what to import, and how errors are printed.

Nothing here imports more than click: help and wrong calls are answered at once.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

import click

from tfconvert.cli.streams import say
from tfconvert.converter.targets.output_form import form_of
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ERROR, WARNING, Diagnostic, texts_of
from tfconvert.schema.limits import Limits
from tfconvert.settings.options import NAMES, ORDERS, RECURRENT, STATES, TARGETS, WEIGHTS

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
    """`INPUT=MEAN,STD`: what the number 0 is among an input's integers, and how many of them make 1."""

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


limits_option = click.option(
    "--limit",
    "limits",
    type=LimitOption(),
    multiple=True,
    callback=lambda _context, _option, pairs: Limits(**dict(pairs)),
    help="How much may be made out of the model, as constant-bytes=4294967296; repeatable.",
)
"""The option that sets limits of a conversion."""


_SOURCE_OPTIONS = (
    click.option(
        "--signature",
        "signatures",
        metavar="KEY",
        multiple=True,
        help="A signature to convert; repeatable. Default: every one.",
    ),
    click.option(
        "--tags",
        metavar="TAG",
        multiple=True,
        help="A tag of the SavedModel's graph; repeatable, or several with commas. Default: serve.",
    ),
    click.option(
        "--input",
        "inputs",
        metavar="NAME",
        multiple=True,
        help="A tensor to feed, x or x:0; what lies before is cut off. Repeatable, order kept.",
    ),
    click.option(
        "--output",
        "outputs",
        metavar="NAME",
        multiple=True,
        help="A tensor to fetch, x or x:0; what lies behind is cut off. Repeatable, order kept.",
    ),
    click.option(
        "--input-shape",
        "input_shapes",
        type=ShapeOption(),
        multiple=True,
        help="Pin unknown dimensions of an input; repeatable.",
    ),
    click.option(
        "--batch", type=click.IntRange(1), metavar="N", help="Pin the unknown first dimension of every input."
    ),
    click.option("--rename", type=RenameOption(), multiple=True, help="Rename an input or output; repeatable."),
    click.option(
        "--order",
        type=click.Choice(ORDERS),
        default=ORDERS[0],
        show_default=True,
        help="The order of a signature's inputs and outputs: the function's, or TensorFlow's converter's.",
    ),
    click.option(
        "--asset-root",
        metavar="DIR",
        type=click.Path(),
        help="MLIR: the folder below which the text may name files to be read. Default: none.",
    ),
    click.option(
        "--follow-links",
        is_flag=True,
        help="Follow links that lead out of the model's folder; only for models that you trust.",
    ),
    click.option(
        "--op-defs",
        metavar="FILE",
        type=click.Path(),
        help="Definitions of custom ops, an OpList as text or binary: a GraphDef has none.",
    ),
)

SOURCE_SETTINGS = (
    "signatures",
    "tags",
    "inputs",
    "outputs",
    "input_shapes",
    "asset_root",
    "batch",
    "rename",
    "order",
    "follow_links",
    "op_defs",
)
"""The parameters that `source_options` adds to a command."""

Function = Callable[..., Any]


def source_options(function: Function) -> Function:
    """Adds the options that choose what is imported of a model, in the order in which help shows them."""
    for option in reversed(_SOURCE_OPTIONS):
        function = option(function)
    return function


names_option = click.option(
    "--names",
    type=click.Choice(NAMES),
    default=NAMES[0],
    show_default=True,
    help="What inputs and outputs are called: as in their signature, or as TensorFlow's converter calls them.",
)
"""The option that chooses the names of tensors."""


recurrent_option = click.option(
    "--recurrent",
    type=click.Choice(RECURRENT),
    default=RECURRENT[0],
    show_default=True,
    help="Recurrent layers: LiteRT's operators for whole sequences, loops, up to 64 steps without a loop, or what is "
    "faster for their sizes.",
)
"""The option that chooses operators or loops, whether layers are recognised by marks or by their structure."""


_TARGET_OPTIONS = (
    click.option(
        "--target",
        type=click.Choice(TARGETS),
        help="What the model becomes: a LiteRT file, a text of StableHLO (.mlir), a program of IREE (.vmfb). "
        "Default: by the ending of -o, else litert.",
    ),
    click.option(
        "--mlir-weights",
        "mlir_weights",
        type=click.Choice(WEIGHTS),
        help="StableHLO: weights at the end (default), inline, or as arguments, with a file beside the text.",
    ),
    click.option(
        "--mlir-state",
        "mlir_state",
        type=click.Choice(STATES),
        help="StableHLO: variables that the model changes as globals (default), or as arguments and results.",
    ),
    click.option(
        "--mlir-shape-function",
        "mlir_shape_function",
        is_flag=True,
        help="StableHLO: add main__shape, which computes the sizes of results from those of arguments.",
    ),
    click.option(
        "--mlir-artifact",
        "mlir_artifact",
        is_flag=True,
        help="StableHLO: a portable artifact (.mlirbc) instead of a text; needs tfconvert[artifact].",
    ),
)

TARGET_SETTINGS = ("target", "mlir_weights", "mlir_state", "mlir_shape_function", "mlir_artifact")
"""The parameters that `target_options` adds to a command."""


def target_options(function: Function) -> Function:
    """Adds the options that choose what a model becomes."""
    for option in reversed(_TARGET_OPTIONS):
        function = option(function)
    return function


def to_target(values: Mapping[str, Any], output: str) -> dict[str, Any]:
    """Returns the settings that `target_options` were given, and what follows from the name of the output.

    Args:
        values: The parameters `TARGET_SETTINGS`.
        output: The file to write.
    """
    given = {name: value for name, value in values.items() if value}
    return {**given, **form_of(output, given)._asdict()}


_RULE_OPTIONS = (
    click.option(
        "--patterns",
        metavar="FILE.py",
        multiple=True,
        type=click.Path(),
        help="Apply the patterns that a Python file defines with tfconvert.patterns; repeatable.",
    ),
    click.option(
        "--composites",
        metavar="FILE.py",
        multiple=True,
        type=click.Path(),
        help="Fuse functions as a Python file says with tfconvert.composites; repeatable.",
    ),
)


def rule_options(function: Function) -> Function:
    """Adds the options that name files with rewrites of the user's."""
    for option in reversed(_RULE_OPTIONS):
        function = option(function)
    return function


def to_source(
    model: str,
    signatures: Iterable[str],
    tags: Iterable[str],
    inputs: Iterable[str],
    outputs: Iterable[str],
    input_shapes: Iterable[tuple[str, list[int]]],
    asset_root: str | None = None,
    batch: int | None = None,
    rename: Iterable[tuple[str, str]] = (),
    order: str = ORDERS[0],
    follow_links: bool = False,
    op_defs: str | None = None,
) -> Source:
    """Returns a model's source with the options of `source_options`."""
    return Source(
        model,
        inputs=tuple(inputs) or None,
        outputs=tuple(outputs) or None,
        input_shapes=dict(input_shapes) or None,
        signatures=tuple(signatures) or None,
        tags=",".join(tags).split(",") if tags else None,
        asset_root=asset_root,
        batch=batch,
        rename=dict(rename) or None,
        order=order,
        follow_links=follow_links,
        op_defs=op_defs,
    )


def utf8(stream: TextIO) -> TextIO:
    """Returns a standard stream, made to take any text, whatever the terminal's language; IR is UTF-8."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8")
    return stream


def show(diagnostics: Iterable[Diagnostic]) -> None:
    """Prints diagnostics on the error stream."""
    found = list(diagnostics)
    for diagnostic, text in zip(found, texts_of(found, with_code=True), strict=True):
        head = click.style(f"tfconvert: {diagnostic.severity}:", fg=_COLOURS.get(diagnostic.severity), bold=True)
        say(f"{head} {text}", sys.stderr)
