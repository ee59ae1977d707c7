"""Runs bodies (functions, regions, graphs) as tasks, which wait for the tasks of the bodies inside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tfconvert.converter.ir import tasks
from tfconvert.ops.call import Array, Results
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.limits import Deadline

MAX_DEPTH = 2000
"""Limit of the nesting of bodies, by calls or by regions: endless recursion is detected by it."""

Task = tasks.Task[Results]
"""Runs a body; returns its results."""

Values = dict[Value, Array]
"""The values that a body sees."""

MaybeDead = Array | None
"""A value of an executor graph; `None` is dead."""

Observer = Callable[[Operation, Sequence[MaybeDead] | None], None]
"""Called with every executor op that ran and the values of its results, controls aside; `None` if it was dead."""


class Machine(Protocol):
    """The services that bodies use while they run."""

    variables: dict[str, Any]
    """Variables by their name; filled when their handle is first taken."""

    tables: dict[str, Any]
    """Tables by their name; created when their handle is first taken."""

    states: dict[Operation, Results]
    """The states of operators that compute one step of a sequence, kept from their last run."""

    initialized: set[str]
    """Functions that run only once, and have."""

    observer: Observer | None
    max_iterations: int | None

    deadline: Deadline
    """The time and the iterations that the run may take."""

    def call(self, name: str, inputs: Results) -> Task:
        """Returns the task that runs a function."""

    def run_block(self, block: Block, values: Values) -> Task:
        """Returns the task that runs a block's ops; its results are the terminator's operands."""

    def execute(self, op: Operation, inputs: Results) -> Results:
        """Returns what an op without bodies computes."""

    def begin(self, name: str) -> Task:
        """Returns the task that runs a function for the values that variables and tables begin with."""

    def initial_value(self, symbol: str) -> Array | None:
        """Returns the value that a variable begins with, `None` if it has to be assigned first."""


def run_task(task: Task, deadline: Deadline) -> Results:
    """Runs a task, and those that it waits for, to its end.

    Raises:
        ConversionError: Bodies are nested deeper than `MAX_DEPTH` (`call-depth`), the time is over (`run-timeout`), or
            what a task raises.
    """

    def check(depth: int) -> None:
        deadline.check_time()
        if depth > MAX_DEPTH:
            raise error("call-depth", f"functions and regions are nested more than {MAX_DEPTH} deep")

    return tasks.drive(task, check)


def bad(op: Operation, message: str, code: str = "bad-operand") -> ConversionError:
    """Returns the error of an op that can't be run."""
    return error_at(op, code, message)


def is_true(condition: Array) -> bool:
    """Returns whether a condition holds: a number unless 0, a string unless empty, a tensor if it has elements."""
    return bool(condition.reshape(-1)[0]) if condition.ndim == 0 else condition.size > 0
