"""Stacks of TensorFlow 1: state behind a handle, a scalar object array that holds the `Stack`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tfconvert.ops.call import Array, Call, Dtype, Kernel, Results, boxed

MAX_HEIGHT = 1 << 24
"""A stack that gets higher is refused; a loop may never end."""


@dataclass(slots=True)
class Stack:
    """The state behind a handle of a stack.

    Attributes:
        dtype: The type of each element.
        elements: The elements, the top one last.
    """

    dtype: Dtype
    elements: list[Array] = field(default_factory=list)


def _stack(call: Call) -> Stack:
    value: object = call.inputs[0].item() if call.inputs[0].shape == () else None
    if not isinstance(value, Stack):
        raise call.bad("the operand is not a handle of a stack")
    return value


def _new(call: Call) -> Results:
    return (boxed(Stack(call.dtype("elem_type"))),)


def _push(call: Call) -> Results:
    stack, element = _stack(call), call.inputs[1]
    if element.dtype != stack.dtype:
        raise call.bad(f"{element.dtype} doesn't go onto a stack of {stack.dtype}")
    if len(stack.elements) >= MAX_HEIGHT:
        raise call.bad(f"the stack has more than {MAX_HEIGHT} elements")
    stack.elements.append(element)
    return (element,)


def _pop(call: Call) -> Results:
    stack = _stack(call)
    if not stack.elements:
        raise call.bad("the stack is empty")
    return (stack.elements.pop(),)


KERNELS: Mapping[str, Kernel] = {
    "StackCloseV2": lambda call: (),
    "StackPopV2": _pop,
    "StackPushV2": _push,
    "StackV2": _new,
}
"""Op name -> kernel."""
