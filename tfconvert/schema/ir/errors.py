"""The errors of IR: a rule that is broken, a text that can't be parsed."""

from __future__ import annotations


class VerifyError(Exception):
    """An op, a type or an attribute breaks a rule of its dialect."""


class ParseError(Exception):
    """A text is not MLIR, or not of a dialect that is known.

    Attributes:
        position: Where in the text, counted in characters.
        message: What was expected.
        text: The text.
        filename: The name of the text.
    """

    def __init__(self, position: int, message: str, text: str = "", filename: str = "<unknown>") -> None:
        self.position = position
        self.message = message
        self.text = text
        self.filename = filename
        super().__init__(self.report())

    def report(self) -> str:
        """Returns `file:line:column: message`, the line, and a caret below the place."""
        position = min(self.position, len(self.text))
        start = self.text.rfind("\n", 0, position) + 1
        line = self.text.count("\n", 0, position) + 1
        source = self.text[start:].partition("\n")[0]
        caret = " " * (position - start) + "^"
        return f"{self.filename}:{line}:{position - start + 1}: {self.message}\n{source}\n{caret}"
