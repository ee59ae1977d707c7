"""Runs generators that wait for each other on an explicit stack.

A *task* is a generator that yields the tasks that have to run first, and is sent their results. So the nesting of a
model's functions and regions never reaches Python's recursion limit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from tfconvert.schema.diagnostics import ConversionError

Task = Generator["Task", Any, Any]
"""Yields what has to run first, returns its result."""


def run(task: Task, check: Callable[[int], object] = lambda depth: None) -> Any:
    """Runs a task, and those that it waits for, to its end; an error is raised in the task that waits.

    Args:
        task: The task.
        check: Called with the number of nested tasks before each step; may raise.
    """
    stack = [task]
    result: Any = None
    problem: ConversionError | None = None
    while stack:
        check(len(stack))
        try:
            inner = stack[-1].send(result) if problem is None else stack[-1].throw(problem)
        except StopIteration as done:
            stack.pop()
            result, problem = done.value, None
        except ConversionError as raised:
            stack.pop()
            result, problem = None, raised
        else:
            stack.append(inner)
            result, problem = None, None
    if problem is not None:
        raise problem
    return result
