"""Dependency files for Make and Ninja."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from tfconvert.exporters.output_file import write_whole
from tfconvert.schema.diagnostics import error

# Characters that both programs take as the end of a name; backslashes before it count, those elsewhere don't.
_BACKSLASHES = re.compile(r"(\\*)([ \t#:])")


def depfile_text(output: str, inputs: Iterable[str | os.PathLike[str]]) -> str:
    """Returns a rule that an output depends on inputs; each input has an empty rule, so that it may vanish.

    Args:
        output: The file that is made, as the build system names it.
        inputs: The files that were read.
    """
    names = [_escaped(os.fspath(each)) for each in dict.fromkeys(inputs)]
    rule = " \\\n  ".join([f"{_escaped(output)}:", *names])
    return "\n".join([rule, *(f"\n{name}:" for name in names if "%" not in name), ""])


def write_depfile(path: str, output: str, inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Writes the rule; see `depfile_text`."""
    content = depfile_text(output, inputs).encode("utf-8", "surrogateescape")
    write_whole(path, lambda stream: stream.writelines([content]))


def _escaped(name: str) -> str:
    if "\n" in name:
        raise error("wrong-option", f"--depfile can't express {name!r}", hint="rename the file")
    return _BACKSLASHES.sub(lambda match: f"{match[1] * 2}\\{match[2]}", name.replace("$", "$$"))
