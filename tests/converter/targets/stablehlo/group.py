"""Groups of cases: functions of the same inputs, all in one model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Tensor = Any
Case = Callable[..., Tensor]


class Input(NamedTuple):
    """An input of a group.

    Attributes:
        dtype: Its element type, by TensorFlow's name.
        shape: Its shape; letters are dynamic sizes, the same letter for equal ones.
        low: The minimum of the input's numbers.
        high: The maximum.
    """

    dtype: str
    shape: Sequence[int | str]
    low: float = -2
    high: float = 2


class Group(NamedTuple):
    """Cases with common inputs.

    Attributes:
        inputs: The inputs.
        cases: The cases, which take the inputs.
        is_open: Whether the group also runs with dynamic sizes.
        in_xla: Whether XLA can run it: it has no `chlo` and no data-dependent sizes.
        in_executor: Whether our executor can be one: it makes no random numbers of its own.
        on_buffers: Whether it also runs on buffers, with dynamic sizes: programs of thousands of ops take long.
    """

    inputs: Sequence[Input]
    cases: Mapping[str, Case]
    is_open: bool = True
    in_xla: bool = True
    in_executor: bool = True
    on_buffers: bool = True
