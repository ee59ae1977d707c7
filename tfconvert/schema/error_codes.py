"""The meanings of the codes of diagnostics, from the table `error_codes.toml`."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

_WIDTH = 100


class ErrorCode(NamedTuple):
    """One code.

    Attributes:
        name: The code.
        means: Its meaning, in one sentence.
        why: When it happens.
        do: What the user can do.
        example: A message with it.
    """

    name: str
    means: str
    why: str
    do: str
    example: str

    def to_text(self) -> str:
        """Returns the explanation, as text for a terminal."""
        parts = (("Why", self.why), ("What to do", self.do))
        paragraphs = [self.name, _wrapped(self.means), *(_wrapped(f"{title}: {text}") for title, text in parts)]
        return "\n\n".join([*paragraphs, f"  Example:\n    {self.example}"])

    def to_markdown(self) -> str:
        """Returns the explanation, as a section of a page."""
        return (
            f"## {self.name}\n\n{textwrap.fill(self.means, _WIDTH + 20)}\n\n"
            f"{textwrap.fill(f'**Why.** {self.why}', _WIDTH + 20)}\n\n"
            f"{textwrap.fill(f'**What to do.** {self.do}', _WIDTH + 20)}\n\n"
            f"```text\n{self.example}\n```\n"
        )


@cache
def all_codes() -> Mapping[str, ErrorCode]:
    """Returns all codes by name, in the order of the table."""
    text = (resources.files("tfconvert.schema") / "error_codes.toml").read_text("utf-8")
    return {name: ErrorCode(name, **fields) for name, fields in tomllib.loads(text).items()}


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
