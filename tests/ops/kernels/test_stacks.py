"""Stacks in the reference executor."""

from __future__ import annotations

import numpy as np
import pytest

from tfconvert.ops.call import Array, Call, boxed
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError


def _new() -> Array:
    (handle,) = evaluate(Call("StackV2", (np.array(-1),), {"elem_type": np.dtype(np.float32)}))
    return handle


def test_what_is_pushed_last_is_popped_first() -> None:
    stack, other = _new(), _new()
    for value in (1.0, 2.0):
        (pushed,) = evaluate(Call("StackPushV2", (stack, np.array([value], np.float32)), {}))
        np.testing.assert_array_equal(pushed, [value])
    evaluate(Call("StackPushV2", (other, np.array([3.0], np.float32)), {}))
    popped = [evaluate(Call("StackPopV2", (stack,), {}))[0].item() for _ in range(2)]
    assert popped == [2.0, 1.0]
    assert evaluate(Call("StackCloseV2", (stack,), {})) == ()


@pytest.mark.parametrize(
    "call",
    [
        Call("StackPopV2", (_new(),), {}),
        Call("StackPopV2", (boxed("no stack"),), {}),
        Call("StackPopV2", (np.zeros(2),), {}),
        Call("StackPushV2", (_new(), np.array([1])), {}),
    ],
)
def test_what_no_stack_can_do(call: Call) -> None:
    with pytest.raises(ConversionError) as caught:
        evaluate(call)
    assert caught.value.code == "bad-operand"
