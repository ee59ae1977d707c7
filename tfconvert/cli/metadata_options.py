"""Options of the command that say what inputs and outputs mean: labels, normalization."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click


class Normalization(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """`MEAN,STD` or `INPUT=MEAN,STD`: what a program takes from each value, and divides it by, before it feeds it."""

    name = "[INPUT=]MEAN,STD"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, list[float]]:
        """Parses one value."""
        name, _, text = str(value).rpartition("=")
        try:
            mean, std = map(float, text.split(","))
        except ValueError:
            self.fail(f"{value!r} is not [INPUT=]MEAN,STD, as in 127.5,127.5", param, ctx)
        return name, [mean, std]


_OPTIONS = (
    click.option(
        "--metadata",
        "metadata",
        metavar="[OUTPUT=]FILE",
        multiple=True,
        help="Store a text file of labels, one a line, with an output (repeatable); or a .json file.",
    ),
    click.option(
        "--metadata-normalization",
        type=Normalization(),
        multiple=True,
        help="Store how programs are to normalize an input, (x - MEAN) / STD; repeatable.",
    ),
)

METADATA_SETTINGS = ("metadata", "metadata_normalization")
"""The parameters that `metadata_options` adds to a command."""

Function = Callable[..., Any]


def metadata_options(function: Function) -> Function:
    """Adds the options that say what inputs and outputs mean, in the order in which help shows them."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def to_metadata(values: Mapping[str, Any]) -> Mapping[str, Any] | str | None:
    """Returns the metadata that `metadata_options` were given, `None` if there is none.

    Args:
        values: The parameters `METADATA_SETTINGS`.

    Raises:
        UsageError: A JSON file, which holds everything, is not alone.
    """
    files, normalization = values["metadata"], values["metadata_normalization"]
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
