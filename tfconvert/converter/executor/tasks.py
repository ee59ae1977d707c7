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
"""Maximum nesting of bodies, by calls or by regions, to detect endless recursion."""

Task = tasks.Task[Results]
"""Runs a body; returns its results."""

Values = dict[Value, Array]
"""The values visible to a body."""

MaybeDead = Array | None
"""A value of an executor graph; `None` is dead."""

Observer = Callable[[Operation, Sequence[MaybeDead] | None], None]
"""Called with every executed executor op and the values of its results without controls; `None` for dead ops."""


class Machine(Protocol):
    """The services that bodies use while they run."""

    variables: dict[str, Any]
    """Variables by name, created with their first handle."""

    tables: dict[str, Any]
    """Tables by name, created with their first handle."""

    states: dict[Operation, Results]
    """The states of operators that compute one step of a sequence."""

    initialized: set[str]
    """Functions that run only once and have run."""

    observer: Observer | None
    max_iterations: int | None

    deadline: Deadline
    """The remaining time and iterations of the run."""

    def call(self, name: str, inputs: Results) -> Task:
        """Returns the task that runs a function."""

    def run_block(self, block: Block, values: Values) -> Task:
        """Returns the task that runs a block's ops; its results are the terminator's operands."""

    def execute(self, op: Operation, inputs: Results) -> Results:
        """Returns the results of an op without bodies."""

    def begin(self, name: str) -> Task:
        """Returns the task that runs an initializer of variables and tables."""

    def initial_value(self, symbol: str) -> Array | None:
        """Returns the value of a variable before initialization, or `None`."""


def run_task(task: Task, deadline: Deadline) -> Results:
    """Runs a task, and the tasks that it waits for, to its end.

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
