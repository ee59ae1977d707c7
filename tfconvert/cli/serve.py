"""The command `serve`: runs the conversion service, and manages its tokens."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfconvert.cli.failure import show_failure, status_of
from tfconvert.cli.options import CONTEXT, adding, json_option
from tfconvert.cli.streams import say
from tfconvert.schema.diagnostics import ConversionError, error

if TYPE_CHECKING:
    from tfconvert.service.config import ServiceConfig
    from tfconvert.service.tokens import TokenStore

_EXAMPLES = """
\b
Examples:
  tfconvert serve
  tfconvert serve --port 9000 --data /srv/tfconvert --root /srv/models
  tfconvert serve token create ci --role user
  tfconvert serve --host 0.0.0.0 --database postgresql://convert@db/convert
  curl -F model=@saved_model.tar.gz -F 'options={"quantize": "dynamic"}' localhost:8750/v1/jobs
"""

_ROLES = ("admin", "user", "reader")

# The options that say which server it is.
_place_options = adding(
    click.option(
        "--config",
        "path",
        metavar="FILE",
        type=click.Path(),
        default="",
        help="A TOML file of settings; those of the command line take precedence.",
    ),
    click.option(
        "--data",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="The data directory. Default: ~/.local/share/tfconvert/service.",
    ),
    click.option("--database", metavar="URL", help="A database for several servers. Default: a file in the directory."),
)


@click.group("serve", context_settings=CONTEXT, epilog=_EXAMPLES, invoke_without_command=True)
@click.option("--host", metavar="ADDRESS", help="The address to listen on. Default: 127.0.0.1, this machine alone.")
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), help="The port; 0 for any. Default: 8750.")
@_place_options
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(min=0),
    help="The number of concurrent jobs; 0 to run none here. Default: one for each core.",
)
@click.option(
    "--timeout", "seconds", metavar="SECONDS", type=click.FloatRange(min=0), help="The timeout of a job. Default: 600."
)
@click.option("--memory", metavar="MB", type=click.IntRange(min=0), help="The maximum memory of a job. Default: 8192.")
@click.option(
    "--root",
    "roots",
    metavar="PLACE",
    multiple=True,
    help="A path or URL below which requests may name models; repeatable.",
)
@click.option(
    "--patterns",
    metavar="FILE.py",
    multiple=True,
    type=click.Path(),
    help="Patterns that every job is converted with; repeatable.",
)
@click.option(
    "--composites",
    metavar="FILE.py",
    multiple=True,
    type=click.Path(),
    help="Fusions that every job is converted with; repeatable.",
)
@click.option("--op-defs", metavar="FILE", type=click.Path(), help="Definitions of custom ops, for every job.")
@click.option(
    "--grace",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    help="The grace period of running jobs when the server stops. Default: 30.",
)
@click.option(
    "--require-sandbox",
    is_flag=True,
    default=None,
    help="Start only where the system can confine every job: Linux 6.12 or later with Landlock.",
)
@click.option(
    "--admin-token",
    metavar="FILE",
    type=click.Path(),
    help="If there is no token yet, create one for an administrator and write it to FILE.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log requests.")
@click.pass_context
def serve(
    context: click.Context, /, path: str, data: Path | None, database: str | None, verbose: bool, **given: Any
) -> None:
    """Run the conversion service: jobs over HTTP, and a page.

    Other machines can reach it with --host; requests then need a token.

    Every setting, also those without an option, can be in the file of --config or in a variable TFCONVERT_SERVICE_NAME.

    Exit status: 0 if a signal stopped it, 1 if it can't start, 2 if the command line or the configuration is wrong.
    """
    context.obj = (path, data, database)
    if context.invoked_subcommand is not None:
        return
    try:
        config = _config(context.obj, given)
        gc.enable()  # The command turns it off for processes that convert one model and end.
        _server().serve(config, lambda url: say(f"tfconvert serves on {url}", sys.stdout), verbose=verbose)
    except ConversionError as problem:
        show_failure(problem)
        sys.exit(status_of(problem.code))


@serve.group("token", context_settings=CONTEXT)
def token() -> None:
    """Create, list and revoke tokens; the server may run meanwhile."""


@token.command("create", context_settings=CONTEXT)
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(_ROLES),
    default="user",
    show_default=True,
    help="admin: all jobs, and tokens; user: own jobs; reader: look at own jobs.",
)
@click.option(
    "--max-active", metavar="N", type=click.IntRange(min=1), help="The maximum number of queued and running jobs."
)
@click.option(
    "--per-minute", metavar="N", type=click.IntRange(min=1), help="The maximum number of requests in a minute."
)
@click.option(
    "--max-running",
    metavar="N",
    type=click.IntRange(min=0),
    help="The maximum number of jobs that run at a time; 0 for any.",
)
@click.option(
    "--max-bytes",
    metavar="BYTES",
    type=click.IntRange(min=0),
    help="The maximum sum of the uploads of its jobs; 0 for any.",
)
@_place_options
@click.pass_context
def create(
    context: click.Context, /, name: str, role: str, path: str, data: Path | None, database: str | None, **quotas: Any
) -> None:
    """Create a token and print it; it is not stored, so it can't be shown again.

    Quotas that aren't given are those of the server's settings.
    """
    place = {"path": path, "data": data, "database": database}
    made, _ = _called(context, place, lambda tokens: tokens.create(name, _role(role), **quotas), creates=True)
    say(made, sys.stdout)


@token.command("list", context_settings=CONTEXT)
@json_option()
@_place_options
@click.pass_context
def list_tokens(context: click.Context, /, as_json: bool, **place: Any) -> None:
    """List tokens."""
    found = _called(context, place, lambda tokens: tokens.list())
    if as_json:
        from tfconvert.cli.json_output import print_json

        print_json({"tokens": [each._asdict() for each in found]})
        return
    for each in found:
        revoked = "" if each.revoked is None else "  revoked"
        say(f"{each.name:<24} {each.role:<8}{revoked}".rstrip(), sys.stdout)


@token.command("revoke", context_settings=CONTEXT)
@click.argument("name")
@_place_options
@click.pass_context
def revoke(context: click.Context, /, name: str, **place: Any) -> None:
    """Revoke a token, which is no longer accepted."""
    _called(context, place, lambda tokens: tokens.revoke(name))


def _called(
    context: click.Context, place: dict[str, Any], work: Callable[[TokenStore], Any], *, creates: bool = False
) -> Any:
    """Works with the tokens of the server that the options name, here or before the command's name."""
    before = context.obj
    named = (place["path"] or before[0], place["data"] or before[1], place["database"] or before[2])
    try:
        return work(_server().open_tokens(_config(named, {}), creates=creates))
    except ConversionError as problem:
        show_failure(problem)
        sys.exit(status_of(problem.code))


def _config(place: tuple[str, Path | None, str | None], given: dict[str, Any]) -> ServiceConfig:
    from tfconvert.service.config import read_config

    path, data, database = place
    settings = {name: value for name, value in given.items() if value != ()}
    if settings.get("memory") is not None:
        settings["memory"] <<= 20
    return read_config(path, data=data, database=database, **settings)


def _role(name: str) -> Any:
    from tfconvert.service.tokens import Role

    return Role(name)


def _server() -> Any:
    """Returns the module that serves.

    Raises:
        ConversionError: A package that it needs is missing (`service-missing`).
    """
    try:
        from tfconvert.service import server
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] == "tfconvert":
            raise
        raise error(
            "service-missing",
            f"the service needs a package that is not installed: {problem.name}",
            hint="pip install 'tfconvert[service]'",
        ) from None
    return server
