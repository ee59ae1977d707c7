"""Writes the manual page, `tfconvert.1`, from the command's own help: `python docs/make_man_page.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from tfconvert.cli.main import main

PAGE = Path(__file__).parent / "tfconvert.1"

_INTRODUCTION = """\
.\\" Made by docs/make_man_page.py from the command's help; not to be edited.
.TH TFCONVERT 1 "" tfconvert "User Commands"
.SH NAME
tfconvert \\- convert TensorFlow models to LiteRT files, without TensorFlow
.SH SYNOPSIS
.B tfconvert
.I MODEL
.B \\-o
.I FILE
.RI [ OPTION ]...
.br
.B tfconvert
.I VERB
.RI [ OPTION ]...
.RI [ ARGUMENT ]...
.SH DESCRIPTION
"""
_ENVIRONMENT = """\
.SH SEE ALSO
The documentation and the support table are in the folder
.I docs
of the sources.
"""


def page() -> str:
    """Returns the page."""
    parts = [_INTRODUCTION, *_text(main.help or ""), ".SH OPTIONS\n", *_options(main), ".SH VERBS\n"]
    for name, verb in _verbs(main, ""):
        parts += [f".SS {_escaped(name)}\n", f".B {_escaped(_usage(name, verb))}\n", ".PP\n"]
        parts += [*_text(verb.help or ""), *_options(verb), *_examples(verb)]
    parts += [".SH EXAMPLES\n", *_examples(main), _ENVIRONMENT]
    return "".join(parts)


def _verbs(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
    """Yields the verbs of a group by their whole names, each before those of its own."""
    for name, verb in sorted(group.commands.items()):
        yield before + name, verb
        if isinstance(verb, click.Group):
            yield from _verbs(verb, f"{before}{name} ")


def _usage(name: str, verb: click.Command) -> str:
    with click.Context(verb, info_name=f"tfconvert {name}", **verb.context_settings) as context:
        return " ".join([context.command_path, *verb.collect_usage_pieces(context)])


def _options(command: click.Command) -> Iterator[str]:
    with click.Context(command, **command.context_settings) as context:
        for parameter in command.get_params(context):
            record = parameter.get_help_record(context)
            if isinstance(parameter, click.Option) and record is not None:
                names, told = record
                yield f".TP\n.B {_escaped(names)}\n{_escaped(told)}\n"


def _text(help_text: str) -> Iterator[str]:
    for paragraph in help_text.split("\n\n"):
        yield f"{_escaped(' '.join(paragraph.split()))}\n.PP\n"


def _examples(command: click.Command) -> Iterator[str]:
    lines = [line.strip() for line in (command.epilog or "").splitlines()]
    commands = [line for line in lines if line.startswith("tfconvert ")]
    if commands:
        yield ".nf\n.RS\n" + "".join(f"{_escaped(line)}\n" for line in commands) + ".RE\n.fi\n"
    for line in lines:
        if line and line not in commands and line not in ("\b", "Examples:"):
            yield f".PP\n{_escaped(line)}\n"


def _escaped(text: str) -> str:
    """Returns text as the page's language has it: hyphens that may be copied, no line that is a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
