"""Runs recursive work as generators on an explicit stack, so that no nesting reaches Python's recursion limit."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from tfconvert.schema.diagnostics import ConversionError

T = TypeVar("T")

Task = Generator["Task[T]", T, T]
"""A part of the work: yields the tasks that it waits for, is sent their results, and returns its own."""


def drive(task: Task[T], check: Callable[[int], None] | None = None) -> T:
    """Runs a task, and those that it waits for, to its end; errors propagate to the task that waits.

    Args:
        task: The task.
        check: Called with the depth before each step; may raise.
    """
    stack = [task]
    result: Any = None
    problem: ConversionError | None = None
    while True:
        if check is not None:
            check(len(stack))
        try:
            inner = stack[-1].send(result) if problem is None else stack[-1].throw(problem)
        except StopIteration as done:
            stack.pop()
            result, problem = done.value, None
            if not stack:
                return done.value  # type: ignore[no-any-return]
        except ConversionError as raised:
            stack.pop()
            if not stack:
                raise
            problem = raised
        else:
            stack.append(inner)
            result = problem = None
