"""Ops of StableHLO's texts that do something: assertions, and the state that globals hold."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tfconvert.converter.executor import variables
from tfconvert.converter.executor.stablehlo.properties import numbers, text
from tfconvert.converter.executor.stablehlo.reducing import RegionKernel
from tfconvert.converter.executor.tasks import Machine, bad
from tfconvert.converter.executor.variables import Variable
from tfconvert.ops.call import Results
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.operation import Operation

ASSERTED = "assertion-failed"
"""Code of the error of a condition that a text asserts and that doesn't hold."""

# The placeholder of a number in the message of a shape's assertion.
_PLACE = re.compile(r"\{(\d+)(?::[^}]*)?\}")


def _assert(machine: Machine, op: Operation, inputs: Results) -> Results:
    if not inputs[0].all():
        raise bad(op, text(op, "msg") or "a condition that the text asserts doesn't hold", ASSERTED)
    return ()


def _custom_call(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Runs `@shape_assertion`, the only one that engines know in common."""
    target = text(op, "call_target_name")
    if target != "shape_assertion":
        raise bad(op, f"nothing is known of the custom call {target!r}", "no-reference-kernel")
    if not inputs[0].all():
        message = op.attributes.get("error_message", op.properties.get("error_message"))
        shown = [numbers(each)[0] for each in inputs[1:]]
        found = message.data if isinstance(message, StringAttr) else "the sizes are not what the text asserts"
        raise bad(
            op, _PLACE.sub(lambda at: str(shown[int(at[1])]) if int(at[1]) < len(shown) else at[0], found), ASSERTED
        )
    return ()


def _global(machine: Machine, op: Operation) -> Variable:
    found = variables.handle_of(machine, text(op, "global")).item()
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


KERNELS: Mapping[str, RegionKernel] = {
    "cf.assert": _assert,
    "ml_program.global_load": _load,
    "ml_program.global_store": _store,
    "stablehlo.custom_call": _custom_call,
}
"""Op -> kernel."""
