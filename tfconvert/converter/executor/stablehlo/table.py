"""The kernels of StableHLO's ops, the checks that they share, and the ops with effects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

import numpy as np

from tfconvert.converter.executor import resources
from tfconvert.converter.executor.resources import Simple, Variable
from tfconvert.converter.executor.stablehlo import elementwise, products, reducing, shaping
from tfconvert.converter.executor.stablehlo.properties import Kernel, numbers
from tfconvert.converter.executor.stablehlo.reducing import RegionKernel
from tfconvert.converter.executor.tasks import Machine, bad
from tfconvert.ops.call import Array, Results
from tfconvert.schema.dialects.stablehlo_properties import text
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.operation import Operation

ASSERTED = "assertion-failed"
"""Code of the error of a failed assertion."""

CUSTOM_CALLS = frozenset({"shape_assertion"})
"""The custom calls that engines share."""

# The placeholder of a number in the message of a shape assertion.
_PLACE = re.compile(r"\{(\d+)(?::[^}]*)?\}")


def _assert(machine: Machine, op: Operation, inputs: Results) -> Results:
    if not inputs[0].all():
        raise bad(op, text(op, "msg") or "an assertion failed", ASSERTED)
    return ()


def _custom_call(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Runs `@shape_assertion`."""
    target = text(op, "call_target_name")
    if target not in CUSTOM_CALLS:
        raise bad(op, f"the custom call {target!r} is not supported", "no-reference-kernel")
    if not inputs[0].all():
        message = op.attributes.get("error_message", op.properties.get("error_message"))
        shown = [numbers(each)[0] for each in inputs[1:]]
        found = message.data if isinstance(message, StringAttr) else "a shape assertion failed"
        raise bad(
            op, _PLACE.sub(lambda at: str(shown[int(at[1])]) if int(at[1]) < len(shown) else at[0], found), ASSERTED
        )
    return ()


def _global(machine: Machine, op: Operation) -> Variable:
    found = resources.handle_of(machine, text(op, "global")).item()
    assert isinstance(found, Variable)
    return found


def _load(machine: Machine, op: Operation, inputs: Results) -> Results:
    held = _global(machine, op)
    if held.value is None:
        raise bad(op, f"the global {held.symbol!r} has no value", "uninitialized-variable")
    return (held.value,)


def _store(machine: Machine, op: Operation, inputs: Results) -> Results:
    _global(machine, op).value = inputs[0]
    return ()


_WITH_EFFECTS: Mapping[str, RegionKernel] = {
    "cf.assert": _assert,
    "ml_program.global_load": _load,
    "ml_program.global_store": _store,
    "stablehlo.custom_call": _custom_call,
}
"""Op -> kernel."""


KERNELS: Mapping[str, Kernel] = {**elementwise.KERNELS, **elementwise.OTHERS, **products.KERNELS, **shaping.KERNELS}
"""Op -> kernel, for ops without bodies and effects."""

_WITH_MACHINE: Mapping[str, RegionKernel] = {**_WITH_EFFECTS, **reducing.KERNELS}


def evaluate(op: Operation, inputs: Results) -> Results:
    """Computes an op without bodies and effects.

    Args:
        op: The op, one of `KERNELS`.
        inputs: Its operands' values, which are not modified.
    """
    if op.name in elementwise.KERNELS:
        elementwise.check_shapes(op, inputs)
    return _checked(op, _computed(op, partial(KERNELS[op.name], op), inputs))


def _computed(op: Operation, kernel: Simple | partial[object], inputs: Results) -> Results:
    try:
        with np.errstate(all="ignore"):
            found = kernel(inputs)  # type: ignore[call-arg, arg-type]
    except (ValueError, IndexError, TypeError, MemoryError, ArithmeticError) as problem:
        # numpy checks shapes, axes and dtypes, and shapes may exceed the memory.
        raise bad(op, f"the operands don't fit: {problem}") from problem
    results = found if isinstance(found, tuple) else (found,)
    return tuple(np.asarray(each) for each in results)


def _checked(op: Operation, results: Results) -> Results:
    """Checks results against the static sizes of their types; returns them."""
    for result, value in zip(op.results, results, strict=True):
        shape = result.shape
        if shape is not None and not _fits(shape, value):
            raise bad(op, f"the result has the shape {list(value.shape)}, its type {list(shape)}", "unequal-sizes")
    return results


def _fits(shape: tuple[int, ...], value: Array) -> bool:
    return len(shape) == value.ndim and all(size in (-1, own) for size, own in zip(shape, value.shape, strict=True))


def _simple(machine: Machine, op: Operation, inputs: Results) -> Results:
    return evaluate(op, inputs)


def _with_machine(kernel: RegionKernel, machine: Machine, op: Operation, inputs: Results) -> Results:
    return _checked(op, _computed(op, partial(kernel, machine, op), inputs))


OPS: Mapping[str, Simple] = {
    **dict.fromkeys(KERNELS, _simple),
    **{name: partial(_with_machine, kernel) for name, kernel in _WITH_MACHINE.items()},
}
"""Op -> its handler."""
