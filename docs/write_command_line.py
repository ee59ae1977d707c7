"""Writes docs/command_line.md, the reference of the command line, from the command's own help.

python docs/write_command_line.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from docs.make_man_page import EXIT_STATUS, EXIT_STATUS_NOTE, examples_of, options_of, usage_of, verbs_of
from tfconvert.cli.help_page import SECTIONS, Flag
from tfconvert.cli.main import main

PAGE = Path(__file__).parent / "command_line.md"

_HEAD = """# Command line

What `tfconvert --help-all` and `tfconvert VERB --help` print. [Settings](settings.md) has the same settings with their
names in Python and in files.

Each error has a code, which `tfconvert explain CODE` and [error codes](errors.md) explain. tfconvert never overwrites a
file that it reads, and writes each file whole or not at all. Output has no colours if `NO_COLOR` is set or `TERM` is
`dumb`. `tfconvert completion bash` (or `zsh`, `fish`) prints a script that completes commands, options and files;
`docs/tfconvert.1` is the manual page.

## Exit status

| status | meaning |
|---|---|
"""


def page() -> str:
    """Returns the page's text."""
    statuses = "".join(f"| {status} | {_escaped(meaning)} |\n" for status, meaning in EXIT_STATUS)
    parts = [f"{_HEAD}{statuses}\n{EXIT_STATUS_NOTE}\n", *_command("tfconvert", main, "## ")]
    for name, verb in verbs_of(main, ""):
        parts += _command(f"tfconvert {name}", verb, "## ")
    return "\n".join(parts)


def _command(name: str, command: click.Command, mark: str) -> Iterator[str]:
    usage = "tfconvert MODEL [OUTPUT] [OPTIONS]" if command is main else usage_of(name.partition(" ")[2], command)
    yield f"{mark}{name}\n\n```\n{usage}\n```\n"
    for paragraph in (command.help or "").split("\n\n"):
        yield f"{_escaped(' '.join(paragraph.split()))}\n"
    if command is main:
        for section in SECTIONS:
            yield from _options(command, section)
    else:
        yield from _options(command, None)
    if lines := examples_of(command):
        yield "\n".join(("```sh", *lines, "```\n"))


def _options(command: click.Command, section: str | None) -> Iterator[str]:
    """Yields a table of a command's options; of the main command, those of a section."""
    rows = [
        f"| `{names.replace('|', ' / ')}` | {_escaped(told)} |"
        for option, names, told in options_of(command)
        if section in (None, option.section if isinstance(option, Flag) else "Other")
    ]
    if rows:
        title = f"### {section}\n\n" if section else ""
        yield "\n".join((f"{title}| option | meaning |", "|---|---|", *rows, ""))


def _escaped(text: str) -> str:
    """Escapes what Markdown would read as a table or as emphasis."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
