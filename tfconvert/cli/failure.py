"""How a failed command ends: its messages, and a context that hides the tracebacks of unexpected errors."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TextIO

import click

from tfconvert.cli.options import show
from tfconvert.cli.streams import is_full, say, silence
from tfconvert.converter.process.guard import exhausted
from tfconvert.schema.diagnostics import ConversionError, Diagnostic, printable

FAILED = 1
"""Exit status if a model can't be converted or read, or the answer is no, as for files that differ."""

WRONG = 2
"""Exit status if the command line is wrong, or a path that it names can't be opened or is another kind of file."""

BUG = 3
"""Exit status after an internal error."""

INTERRUPTED = 130
"""Exit status after an interrupt from the keyboard."""

# The codes of errors that the user corrects in the command line, or in a file of settings.
_OF_THE_COMMAND_LINE = frozenset(
    {
        "bad-config",
        "bad-tuning-table",
        "foreign-format",
        "malformed-pipeline",
        "model-not-found",
        "not-a-graph-def",
        "not-a-keras-model",
        "not-a-meta-graph",
        "not-a-saved-model",
        "unknown-format",
        "unknown-option",
        "unknown-pass",
        "unknown-pipeline",
        "unreadable-file",
        "wrong-option",
        "yaml-missing",
    }
)

DEBUG = "--debug"
"""The option that prints the traceback of an internal error; every command accepts it."""


def status_of(code: str) -> int:
    """Returns the exit status after a failure with a code, the same for every command."""
    return WRONG if code in _OF_THE_COMMAND_LINE else FAILED


def show_failure(problem: ConversionError) -> None:
    """Prints all findings of a failure, and the command that explains it."""
    show(problem.diagnostics)
    for text in problem.advice:
        say(f"{click.style('tfconvert: note:', bold=True)} {printable(text)}", sys.stderr)
    tell_more(problem.code)


def tell_more(code: str) -> None:
    """Prints the last line of a failed command."""
    say(f"For details, run: tfconvert explain {code}", sys.stderr)


class ErrorGuard:
    """A context that turns an unexpected exception into a message and an exit status.

    Args:
        debug: Whether the exception is raised as it is, with its traceback.
        out_of_resources: The exit status if memory or the disk is exhausted.
    """

    __slots__ = ("_debug", "_out_of_resources")

    def __init__(self, debug: bool, out_of_resources: int = FAILED) -> None:
        self._debug = debug
        self._out_of_resources = out_of_resources

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ends the process if something unexpected was raised; deliberate exits pass."""
        if not self._debug and isinstance(problem, Exception):
            if isinstance(problem, ConversionError):
                show_failure(problem)
                sys.exit(status_of(problem.code))
            if is_full(problem):
                silence(sys.stdout)
            show_failure(ConversionError([unexpected(problem)]))
            is_out = is_full(problem) or isinstance(problem, MemoryError | RecursionError)
            sys.exit(self._out_of_resources if is_out else BUG)


class JsonErrors:
    """A context that also prints something unexpected as a JSON document, before it reaches the guard.

    Args:
        as_json: Whether documents are wanted.
        stream: Where they go; `None` if it is closed.
    """

    __slots__ = ("_as_json", "_stream")

    def __init__(self, as_json: bool, stream: TextIO | None) -> None:
        self._as_json = as_json
        self._stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Prints the document of an unexpected error; the caller prints the expected ones."""
        if self._as_json and isinstance(problem, Exception) and not isinstance(problem, ConversionError):
            from tfconvert.cli.json_output import to_json

            say(to_json(ConversionError([unexpected(problem)]).to_dict()), self._stream)


class UsageErrors:
    """A context that also prints an error of the command line as a JSON document, before click prints it as text.

    Args:
        as_json: Whether documents are wanted.
    """

    __slots__ = ("_as_json",)

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Prints the document of an error of the command line."""
        if self._as_json and isinstance(problem, click.UsageError):
            from tfconvert.cli.json_output import to_json

            say(to_json(ConversionError([Diagnostic("wrong-option", problem.format_message())]).to_dict()), sys.stdout)


def unexpected(problem: Exception) -> Diagnostic:
    """Returns the diagnostic of an unexpected exception, or of one about an exhausted resource."""
    if isinstance(problem, MemoryError | RecursionError):
        return exhausted(problem)
    if is_full(problem):
        return Diagnostic(
            "output-not-writable",
            f"can't write to standard output: {problem.strerror}",
            hint="check that the disk has space left, and that the program that reads it is still running",
        )
    stage = next((note for note in getattr(problem, "__notes__", ()) if note.startswith("stage ")), "")
    what = " ".join(f"{type(problem).__name__}: {problem}".split()).removesuffix(":")
    return Diagnostic("internal-error", f"{stage}: {what}" if stage else what, hint=_hint())


def _hint() -> str:
    import platform
    from importlib.metadata import version

    python = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    versions = f"tfconvert {version('tfconvert')}, {python}"
    return (
        f"this is a bug in tfconvert, not in the model: please report it with this line ({versions}), the model "
        f"if you can, and what the same command prints with {DEBUG}"
    )
