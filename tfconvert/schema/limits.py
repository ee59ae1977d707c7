"""Limits on what a small file may expand to, and the budget that a conversion has left.

A file of a few bytes can ask for gigabytes: a constant of one value and a huge shape, functions that call each other
twice at every level, products of large matrices to be folded. Whoever is about to do such work asks the budget first,
which is a comparison of integers. Each conversion has a budget of its own, also where threads convert side by side.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from tfconvert.schema.diagnostics import WARNING, ConversionError, Diagnostic, error

NOT_FOLDED = "not-folded"
"""Code of the warning that ops of constants are left to the runtime."""


class Limits(NamedTuple):
    """Limits of a conversion; the defaults are far above the needs of real models.

    Attributes:
        constant_bytes: Bytes of constants that the converter creates: by folding, or by writing out constants of one
            value and a large shape. Weights that are only copied or rearranged don't count.
        operations: How many ops copies of functions may have together, where several callers share them.
        folding_work: Multiplications and additions, roughly, that folding of constants may take.
        proto_bytes: Size of a file of protocol buffers.
        text_bytes: Size of a text, be it MLIR or a GraphDef's.
        run_seconds: Seconds that the reference executor, or LiteRT, may take for one run of a model to verify.
        run_iterations: Iterations that one run of the reference executor may take, those of all loops together.
    """

    constant_bytes: int = 1 << 30
    operations: int = 100_000
    folding_work: int = 1 << 31
    proto_bytes: int = (1 << 31) - 1
    text_bytes: int = 1 << 30
    run_seconds: int = 300
    run_iterations: int = 100_000


class Budget:
    """The remaining budget of a conversion.

    Attributes:
        limits: The limits.
        constant_bytes: The remaining bytes of constants.
        operations: The remaining ops that may be copied.
        folding_work: The remaining work for folding.
        unfolded: The first op that was not folded, and the number of others, by the limit that forbids it.
    """

    __slots__ = ("constant_bytes", "folding_work", "limits", "operations", "unfolded")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.constant_bytes = limits.constant_bytes
        self.operations = limits.operations
        self.folding_work = limits.folding_work
        self.unfolded: dict[str, tuple[str, int]] = {}

    def take_bytes(self, size: int, what: str) -> None:
        """Spends bytes of constants.

        Raises:
            ConversionError: There are fewer left (`too-large-constants`).
        """
        if size > self.constant_bytes:
            raise exceeded(
                "constant_bytes",
                f"{what} takes {size} bytes, but {self.constant_bytes} are left of the "
                f"{self.limits.constant_bytes} that constants may take beyond the model's own",
            )
        self.constant_bytes -= size

    def take_operations(self, count: int, what: str) -> None:
        """Spends ops that are copied.

        Raises:
            ConversionError: There are fewer left (`too-many-copies`).
        """
        if count > self.operations:
            raise exceeded(
                "operations",
                f"{what} is shared so much that copies for each use have more than {self.limits.operations} ops",
            )
        self.operations -= count

    def can_fold(self, op: str, made: int, transient: int, work: int) -> bool:
        """Returns whether an op may be folded, and spends the cost.

        Args:
            op: The op, for the report.
            made: The bytes of the result.
            transient: The temporary bytes.
            work: Multiplications and additions, roughly.
        """
        if made + transient <= self.constant_bytes and work <= self.folding_work:
            self.constant_bytes -= made
            self.folding_work -= work
            return True
        limit = "folding_work" if made + transient <= self.constant_bytes else "constant_bytes"
        first, more = self.unfolded.get(limit, (op, -1))
        self.unfolded[limit] = first, more + 1
        return False

    def notes(self) -> list[Diagnostic]:
        """Returns a warning for each limit that left ops unfolded."""
        return [
            Diagnostic(
                NOT_FOLDED,
                f"{first}{f' and {more} other ops' if more else ''} of constants stayed in the model, since folding "
                f"would exceed the limit {_option(limit)}={getattr(self.limits, limit)}",
                op=first,
                hint=_hint(limit),
                severity=WARNING,
            )
            for limit, (first, more) in self.unfolded.items()
        ]


CODES = {
    "constant_bytes": "too-large-constants",
    "operations": "too-many-copies",
    "proto_bytes": "too-large-file",
    "text_bytes": "too-large-text",
    "run_seconds": "run-timeout",
    "run_iterations": "endless-loop",
}
"""The error code of each limit. Beyond `folding_work`, ops are left unchanged."""


def exceeded(limit: str, message: str) -> ConversionError:
    """Returns the error of a limit that a model exceeds."""
    return error(CODES[limit], message, hint=_hint(limit))


def _option(limit: str) -> str:
    return limit.replace("_", "-")


def _hint(limit: str) -> str:
    return f"if you trust the model, raise the limit: --limit {_option(limit)}=N, or limits=tfconvert.Limits({limit}=N)"


_BUDGET: ContextVar[Budget | None] = ContextVar("budget", default=None)


def budget() -> Budget:
    """Returns the budget of this thread's current conversion; a full one outside of conversions."""
    return _BUDGET.get() or Budget(Limits())


@contextmanager
def limited(limits: Limits) -> Iterator[Budget]:
    """Starts a conversion with its own budget, which replaces that of an enclosing conversion."""
    token = _BUDGET.set(found := Budget(limits))
    try:
        yield found
    finally:
        _BUDGET.reset(token)


def check_size(size: int, limit: str) -> None:
    """Checks the size of a file or text before it is parsed.

    Raises:
        ConversionError: It exceeds the limit of that name (`too-large-file`, `too-large-text`).
    """
    most: int = getattr(budget().limits, limit)
    if size > most:
        kind = "text" if limit == "text_bytes" else "file"
        raise exceeded(limit, f"the {kind} has {size} bytes, more than {most}")


class Deadline:
    """The remaining time and iterations of one run of a model.

    Attributes:
        iterations: The remaining iterations.
    """

    __slots__ = ("_end", "_limits", "iterations")

    def __init__(self) -> None:
        limits = budget().limits
        self._limits = limits
        self._end = time.monotonic() + limits.run_seconds
        self.iterations = limits.run_iterations

    def check_time(self) -> None:
        """Checks the clock.

        Raises:
            ConversionError: The time is over (`run-timeout`).
        """
        if time.monotonic() > self._end:
            raise exceeded("run_seconds", f"the run has not ended after {self._limits.run_seconds} s")

    def iterate(self) -> None:
        """Starts an iteration of a loop.

        Raises:
            ConversionError: There were too many (`endless-loop`), or the time is over (`run-timeout`).
        """
        self.iterations -= 1
        if self.iterations < 0:
            raise exceeded("run_iterations", f"loops have not ended after {self._limits.run_iterations} iterations")
        if not self.iterations & 0xFF:
            self.check_time()
