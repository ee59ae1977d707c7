"""Options of the command: where the result goes, in which form, and which server makes it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import click

from tfconvert.cli.options import adding, flag
from tfconvert.exporters.output_file import descriptor_of
from tfconvert.schema.diagnostics import error
from tfconvert.schema.files import read_input

STANDARD_OUTPUT = "/dev/stdout"
"""The file that `-` represents; systems without it have the same meaning."""

output_options = adding(
    flag(
        "-o",
        "--output-file",
        section="Output",
        metavar="FILE",
        type=click.Path(),
        is_common=True,
        help="The file to write. Default: the model's name, here, with the target's extension. Its extension chooses "
        "the target: .tflite; .mlir, .mlirbc; .vmfb. "
        "-: standard output; .cc, .c, .h: a C array for microcontrollers.",
    ),
    flag(
        "--array-name",
        section="Output",
        metavar="NAME",
        help="C arrays: the array's name. Default: g_ and the file's name.",
    ),
    flag(
        "--depfile",
        section="Output",
        metavar="FILE",
        type=click.Path(),
        help="Write the list of files that were read, for Make and Ninja.",
    ),
    flag(
        "--report",
        "page",
        section="Output",
        is_common=True,
        metavar="FILE",
        type=click.Path(),
        help="Write the report as an HTML page.",
    ),
    flag(
        "--open",
        "opens",
        section="Output",
        is_flag=True,
        help="Open the report in the browser: that of --report, or a temporary file.",
    ),
    flag("--bench", section="Output", is_flag=True, help="Measure each operator in LiteRT, for the report's page."),
    flag(
        "--model-explorer",
        "explorer",
        section="Output",
        metavar="FILE",
        type=click.Path(),
        help="Write the graphs before and after for Google's Model Explorer (JSON).",
    ),
    flag(
        "--cache-dir",
        section="Output",
        metavar="DIR",
        type=click.Path(),
        help="Cache results here by the contents of all inputs.",
    ),
    flag(
        "--write-through-links",
        "through_links",
        section="Output",
        is_flag=True,
        help="Write to the target of an output that is a link. Default: replace the link.",
    ),
)

_WRITTEN = frozenset({"file", "depfile", "page", "explorer"})

OUTPUT_SETTINGS = (
    "output_file",
    "array_name",
    "depfile",
    "cache_dir",
    "page",
    "explorer",
    "through_links",
    "opens",
    "bench",
)
"""The parameters that `output_options` adds to a command."""


class Output(NamedTuple):
    """Where the result goes."""

    file: str  # The file to write.
    array_name: str | None = None  # The name of a C array; `None` for one that follows from the file's name.
    depfile: str | None = None  # The file to write dependencies to, if any.
    cache_dir: str | None = None  # The directory of cached results, if any.
    page: str | None = None  # The file to write the report to as a page, if any.
    explorer: str | None = None  # The file to write the graphs to for Model Explorer, if any.
    opens: bool = False  # Whether the page is opened in the browser.
    bench: bool = False  # Whether operators are measured for the page.

    @property
    def needs_graphs(self) -> bool:
        """Whether the graphs before and after are written."""
        return self.page is not None or self.explorer is not None

    @property
    def name(self) -> str:
        """The file as the report names it."""
        return "standard output" if self.file == STANDARD_OUTPUT else self.file

    @property
    def report_stream(self) -> TextIO | None:
        """Where the report goes: to standard output, unless the result goes there; `None` if it is closed."""
        return sys.stderr if descriptor_of(self.file) == 1 else sys.stdout


def to_output(values: Mapping[str, Any]) -> Output:
    """Returns where the result goes according to the parameters `OUTPUT_SETTINGS`.

    Raises:
        UsageError: Operators are to be measured for no page.
    """
    flags = {name: bool(values.get(name)) for name in ("opens", "bench")}
    paths = {name: values[name] for name in OUTPUT_SETTINGS if name not in ("through_links", *flags)}
    file = paths.pop("output_file")
    paths["file"] = STANDARD_OUTPUT if file == "-" else file
    if values["through_links"]:
        paths |= {name: _target(path) for name, path in paths.items() if name in _WRITTEN and path is not None}
    if flags["opens"] and paths["page"] is None:
        from tfconvert.cli.browser import temporary_page

        paths["page"] = temporary_page(paths["file"])
    if flags["bench"] and paths["page"] is None:
        raise click.UsageError("--bench goes with --report or --open")
    return Output(**paths, opens=flags["opens"], bench=flags["bench"])


def _target(path: str) -> str:
    """Returns the target of a link, and any other path as it is."""
    return os.path.realpath(path) if Path(path).is_symlink() and descriptor_of(path) is None else path


server_options = adding(
    flag(
        "--server",
        section="Server",
        is_common=True,
        metavar="URL",
        help="Send the model to a server (tfconvert serve), which converts it.",
    ),
    flag(
        "--token-file",
        section="Server",
        metavar="FILE",
        type=click.Path(),
        help="The token for the server. Default: the variable TFCONVERT_TOKEN.",
    ),
)

SERVER_SETTINGS = ("server", "token_file")
"""The parameters that `server_options` adds to a command."""


class ServerAddress(NamedTuple):
    """A server that converts."""

    url: str  # Where it is.
    token: str  # The token that it requires; empty for none.


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
        return read_input(file).decode("ascii").strip()
    except UnicodeDecodeError as problem:
        raise error("unreadable-file", f"{file} holds no token", hint="a token is a line of ASCII text") from problem
