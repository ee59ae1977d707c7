"""MLIR text to IR, with errors that say where and what was expected.

Ops without a location of their own get the place in the text, as in MLIR's own tools, so that what a pass says of them
names the line.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from pathlib import Path

from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException, MultipleSpansParseError, ParseError

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects.context import dialect_context
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.verification import first_broken

_WINDOW = 100
"""How much of a long line is shown around the place of an error."""

_NOTHING = re.compile(r"(?:\s|//[^\n]*)*")

# xDSL checks most of what it reads, and lets Python find the rest.
_SLIPS = (
    DiagnosticException, ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError,
    NotImplementedError, struct.error,
)  # fmt: skip


class _Text:
    """A text with its line numbers."""

    def __init__(self, text: str, filename: str, first_line: int) -> None:
        self.text = text
        self.filename = filename
        self._first_line = first_line
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def line_and_column(self, position: int) -> tuple[int, int]:
        """Returns the line in the file and the column, both from 1."""
        row = bisect_right(self._starts, position) - 1
        return self._first_line + row, position - self._starts[row] + 1

    def location(self, position: int) -> FileLineColLoc:
        """Returns a position as a location."""
        line, column = self.line_and_column(position)
        return FileLineColLoc(StringAttr(self.filename), IntAttr(line), IntAttr(column))

    def error(self, position: int, message: str, hint: str = "") -> ConversionError:
        """Returns an error at a position: the message, the source line, a caret."""
        position = min(position, len(self.text))
        line, column = self.line_and_column(position)
        source = self.text[position - column + 1 :].partition("\n")[0].rstrip("\r")
        start = max(0, column - 1 - _WINDOW // 2)
        shown = source[start : start + _WINDOW]
        before = re.sub(r"[^\t]", " ", shown[: column - 1 - start])
        return error(
            "malformed-mlir", f"{message}\n    {shown}\n    {before}^",
            location=f"{self.filename}:{line}:{column}", hint=hint,
        )  # fmt: skip


class _PlacingParser(IRParser):
    """A parser that remembers where in the text each op begins."""

    def __init__(self, text: _Text) -> None:
        self._text = text
        self.starts: dict[Operation, int] = {}
        super().__init__(dialect_context(), text.text, text.filename)

    def parse_operation(self) -> Operation:
        """Parses one op, and gives it its place in the text if the text names none."""
        start = self.pos
        op = super().parse_operation()
        self.starts[op] = start
        if op.location == UNKNOWN_LOC:
            op.location = self._text.location(start)
        return op

    def undefined(self) -> tuple[int, str] | None:
        """Returns where the first op stands that uses a value which nothing defines, and the value's name."""
        places = [
            (self.starts[use.operation], name)
            for name, values in self.forward_ssa_references.items()
            for value in values.values()
            for use in value.uses
            if use.operation in self.starts
        ]
        return min(places, default=None)


def import_mlir(text: str, filename: str = "<text>", *, first_line: int = 1) -> ModuleOp:
    """Returns the module that a text describes, verified.

    Args:
        text: MLIR in the project's dialects; top-level ops without a module get one.
        filename: What errors call the text.
        first_line: The number of the text's first line, if it is a part of a file.

    Raises:
        ConversionError: It can't be parsed (`malformed-mlir`), or breaks a rule of a dialect (`invalid-ir`).
    """
    module = _parse(_Text(text, filename, first_line))
    broken = first_broken(module)
    if broken is not None:
        raise ConversionError([broken.diagnostic("invalid-ir")])
    return module


def read_mlir(path: Path) -> str:
    """Returns the text of a file.

    Raises:
        ConversionError: It can't be read (`unreadable-file`) or is not UTF-8 (`malformed-mlir`).
    """
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as problem:
        raise error("unreadable-file", f"can't read {path}: {problem.strerror or problem}") from problem
    except UnicodeDecodeError as problem:
        raise error("malformed-mlir", f"byte {problem.start} is not UTF-8 text", location=str(path),
                    hint="MLIR bytecode is not read; print the module as text") from problem  # fmt: skip


def _parse(text: _Text) -> ModuleOp:
    if _NOTHING.fullmatch(text.text):
        return ModuleOp([])
    parser: _PlacingParser | None = None
    try:
        parser = _PlacingParser(text)
        return parser.parse_module()
    except ParseError as problem:
        raise _explained(text, parser, problem) from problem
    except RecursionError as problem:
        raise text.error(parser.pos if parser else 0, "this is nested too deeply to be read") from problem
    except _SLIPS as problem:
        raise text.error(parser.pos if parser else 0, str(problem).strip() or "this can't be read") from problem


def _explained(text: _Text, parser: _PlacingParser | None, problem: ParseError) -> ConversionError:
    message = problem.msg.strip()
    hint = ""
    if isinstance(problem, MultipleSpansParseError):
        lines = ", ".join(str(text.line_and_column(span.start)[0]) for span, _ in problem.refs)
        hint = f"see also line {lines}"
    elif parser is not None and message.startswith("values used but not defined") and (first := parser.undefined()):
        start, name = first
        use = re.compile(rf"%{re.escape(name)}(?![\w$.-])").search(text.text, start)
        return text.error(use.start() if use else start, f"%{name} is used but never defined")
    return text.error(problem.span.start, message, hint)
