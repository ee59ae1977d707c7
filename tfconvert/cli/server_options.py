"""Options of the command that have a server do the work."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from tfconvert.cli.output_options import Output
from tfconvert.schema.diagnostics import error

_OPTIONS = (
    click.option("--server", metavar="URL", help="Convert on a server (tfconvert serve), to which the model is sent."),
    click.option(
        "--token-file",
        metavar="FILE",
        type=click.Path(),
        help="The token for the server. Default: the variable TFCONVERT_TOKEN.",
    ),
)

SERVER_SETTINGS = ("server", "token_file")
"""The parameters that `server_options` adds to a command."""

Function = Callable[..., Any]


class ServerAddress(NamedTuple):
    """A server that converts.

    Attributes:
        url: Where it is.
        token: What it asks for, empty for nothing.
    """

    url: str
    token: str


def server_options(function: Function) -> Function:
    """Adds the options that name a server, in the order in which help shows them."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def to_server(values: Mapping[str, Any], output: Output) -> ServerAddress | None:
    """Returns the server to convert on according to the parameters `SERVER_SETTINGS`, `None` for this machine.

    Args:
        values: The parameters.
        output: Where the result goes.

    Raises:
        UsageError: Other options don't go with a server, or a token has no server.
        ConversionError: The token can't be read (`unreadable-file`).
    """
    url, file = values["server"], values["token_file"]
    if not url:
        if file:
            raise click.UsageError("--token-file goes with --server")
        return None
    for name, value in (("--cache-dir", output.cache_dir), ("--model-explorer", output.explorer)):
        if value is not None:
            raise click.UsageError(f"{name} does not go with --server")
    return ServerAddress(url, os.environ.get("TFCONVERT_TOKEN", "") if file is None else _read(file))


def _read(file: str) -> str:
    try:
        return Path(file).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise error("unreadable-file", f"can't read the token in {file}: {problem}") from None
