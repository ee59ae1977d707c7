"""The help of the main command: a summary, the usual options in sections, and every option in sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

SUMMARY = """\
Usage: tfconvert MODEL [-o FILE] [OPTION]...

  tfconvert saved_model/ -o model.tflite       convert a TensorFlow or JAX model
  tfconvert saved_model/ --quantize dynamic    with smaller weights
  tfconvert saved_model/ --verify              and compare the results with the model's
  tfconvert inspect saved_model/               show what is in a model, and whether it converts
  tfconvert explain unsupported-op             explain an error

Commands: {commands}
`tfconvert -h` lists the usual options, `tfconvert --help-all` all, `tfconvert COMMAND -h` those of a command.
"""

COMMANDS = {
    "batch": "Convert many models in parallel, each within limits.",
    "bench": "Measure a .tflite FILE in LiteRT, as a whole and by operator.",
    "build": "Convert the models that FILE lists; tfconvert.toml by default.",
    "completion": "Print a shell's completion script, or install it.",
    "diff": "Compare the .tflite files A and B.",
    "explain": "Explain the CODE of an error, or list all codes.",
    "inspect": "Describe MODEL, whether it will convert, and the result.",
    "ops": "List TensorFlow's ops with what becomes of each.",
    "opt": "Print a model as MLIR, after the requested passes.",
    "serve": "Run the conversion service: jobs over HTTP, and a page.",
    "verify": "Compare a .tflite FILE with the model that it was converted from.",
    "view": "Show MODEL in the browser, or two models side by side.",
}
"""The other commands, with a line for the help, for which none of them is loaded."""

SECTIONS = (
    "Output",
    "Inputs, outputs and shapes",
    "LiteRT files",
    "Quantization",
    "Verification",
    "StableHLO and IREE",
    "Conversion",
    "Server",
    "Other",
)
"""The sections of options, in the order of the help."""


class Flag(click.Option):
    """An option of the main command.

    Args:
        names: Its flags, and the name of its parameter.
        section: One of `SECTIONS`.
        is_common: Whether `-h` shows it.
        settings: What click takes.
    """

    def __init__(
        self, names: Sequence[str] | None = None, *, section: str = "Other", is_common: bool = False, **settings: Any
    ) -> None:
        super().__init__(names, **settings)
        self.section = section
        self.is_common = is_common


def format_help(command: click.Group, context: click.Context, *, shows_all: bool) -> str:
    """Returns the help of the main command, verbs first.

    Args:
        command: The command.
        context: Its context.
        shows_all: Whether every option is shown.
    """
    formatter = context.make_formatter()
    command.format_usage(context, formatter)
    command.format_help_text(context, formatter)
    with formatter.section("Commands"):
        formatter.write_dl(list(COMMANDS.items()))
    flags = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    for section in SECTIONS:
        shown = [each for each in flags if _section(each) == section and (shows_all or _is_common(each))]
        records = [record for each in shown if (record := each.get_help_record(context)) is not None]
        if records:
            with formatter.section(section):
                formatter.write_dl(records)
    if not shows_all:
        formatter.write_paragraph()
        formatter.write_text("--help-all lists every option; docs/settings.md explains them.")
    command.format_epilog(context, formatter)
    return formatter.getvalue().rstrip("\n")


def _section(option: click.Option) -> str:
    return option.section if isinstance(option, Flag) else "Other"


def _is_common(option: click.Option) -> bool:
    return option.is_common if isinstance(option, Flag) else True
