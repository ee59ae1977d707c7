"""Questions about a value that follow the operands of ops: each is asked once a value, however many ops share it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tfconvert.converter.ir.tasks import Task
from tfconvert.converter.ir.tensors import EmittedTensor

T = TypeVar("T")


def remembered(question: Callable[[EmittedTensor], Task[T]]) -> Callable[[EmittedTensor], Task[T]]:
    """Returns a question that keeps its answers with the facts of the values around it.

    Args:
        question: Returns what is known of a tensor, by asking the same of tensors that it is computed from.
    """

    def asked(tensor: EmittedTensor) -> Task[T]:
        answers, key = tensor.known.answers, (question, tensor.value)
        if key not in answers:
            answers[key] = yield from question(tensor)
        return answers[key]  # type: ignore[no-any-return]

    return asked
