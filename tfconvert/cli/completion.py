"""The command `completion` prints a shell's script, and completes arguments for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfconvert.cli.help_page import COMMANDS
from tfconvert.cli.options import CONTEXT

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_SHELLS = ("bash", "zsh", "fish", "powershell")
# Where a shell finds completions of its user: the variable of a directory, its default in the home directory, the file.
_PLACES = {
    "bash": ("XDG_DATA_HOME", ".local/share", "bash-completion/completions/tfconvert"),
    "fish": ("XDG_CONFIG_HOME", ".config", "fish/completions/tfconvert.fish"),
}
_NAME = "tfconvert"
# The variable by which the shell's function asks the command for completions; click derives it from the name.
_VARIABLE = "_TFCONVERT_COMPLETE"

_EXAMPLES = """
\b
Examples:
  tfconvert completion bash --install
  tfconvert completion fish --install
  tfconvert completion zsh > "${fpath[1]}/_tfconvert"
  tfconvert completion powershell >> $PROFILE
"""


@click.command("completion", context_settings=CONTEXT, epilog=_EXAMPLES, no_args_is_help=True)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.option("--install", is_flag=True, help="bash, fish: write it to where the shell looks for it instead.")
def completion(shell: str, install: bool) -> None:
    """Print the script by which SHELL completes commands, options and files.

    It takes effect in new shells; bash needs to be 4.4 or later.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"completion in {shell} needs a newer version of click: pip install --upgrade click")
    # Not the class's own `source`, which starts a shell to find out its version.
    script = ShellComplete.source(kind(completion, {}, _NAME, _VARIABLE))
    if install:
        _install(shell, script)
    else:
        click.echo(script)


def _install(shell: str, script: str) -> None:
    if shell not in _PLACES:
        raise click.UsageError(f"{shell} has no directory for this: see the example in tfconvert completion -h")
    from tfconvert.batch.run_task import make_directory_of
    from tfconvert.exporters.output_file import write_whole

    variable, default, file = _PLACES[shell]
    path = Path(os.environ.get(variable) or Path.home() / default) / file
    make_directory_of(str(path))
    write_whole(path, lambda stream: stream.writelines([script.encode()]))
    click.echo(f"written to {path}")


def complete_model(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the first argument: a command, or the path of a model."""
    from click.shell_completion import CompletionItem

    commands = COMMANDS if isinstance(context.command, click.Group) else {}
    found = [CompletionItem(name, help=text) for name, text in commands.items() if name.startswith(incomplete)]
    if not found:
        return [CompletionItem(incomplete, type="file")]
    # A shell completes files itself only where there is nothing else.
    return [*found, *(CompletionItem(name) for name in _entries(incomplete))]


def complete_passes(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the last of a list of passes."""
    from click.shell_completion import CompletionItem

    from tfconvert.converter.pipeline.pass_registry import pass_names

    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}") for name in pass_names() if name.startswith(last)]


def _entries(prefix: str) -> Sequence[str]:
    """Returns the files and directories here whose names begin with a text."""
    found = (path for path in Path().iterdir() if path.name.startswith(prefix) and not path.name.startswith("."))
    return sorted(f"{path.name}/" if path.is_dir() else path.name for path in found)
