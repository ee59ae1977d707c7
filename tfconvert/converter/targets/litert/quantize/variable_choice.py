"""Chooses the variables to quantize, and their mappings.

A ring buffer only stores and moves assigned values, so it is as precise as these. A variable that is computed from
itself, such as a sum, would be rounded in each run, so it stays floats unless integers are requested.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

from tfconvert.converter.ir.extent import extent
from tfconvert.converter.targets.litert.fake_quant import constant_behind
from tfconvert.converter.targets.litert.quantize.candidates import EXCLUDED, Settings, is_constant, is_float
from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.converter.targets.litert.quantize.parameters import range_of, uniform_of
from tfconvert.converter.targets.litert.quantize.plan import NOT_SEEN, Plan, fits
from tfconvert.converter.targets.litert.quantize.rules import RULES, Scales
from tfconvert.converter.targets.litert.quantize.variables import READ, Variables, accessed, is_access, variable_of
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value
from tfconvert.settings.quantization import Quantize

FLOAT_STATE = "its variable was requested to stay floats"
"""The reason of variables that the setting `variables` keeps as floats."""

_UNKNOWN_HANDLE = "a handle of a variable is computed, so all variables stay floats"
_GROWS = "its variable is computed from itself: errors would add up from one run to the next"
_GAINS_NOTHING = "what reads its variable computes with floats"


class _Access(NamedTuple):
    """An op that reads or assigns a variable, in a function with a plan."""

    op: Operation
    plan: Plan


def choose_variables(module: ModuleOp, wanted: Quantize, settings: Settings, bodies: Container[str]) -> Variables:
    """Chooses mappings for the variables of a module with known ranges.

    Args:
        module: The module, still with floats.
        wanted: How to quantize.
        settings: The same as settings of plans.
        bodies: The names of the functions that run in loops.
    """
    accesses: dict[str, list[_Access]] = {}
    # What is between variables is faster with floats as long as these are.
    settings = settings._replace(by_speed=False)
    for function in module.ops:
        if isinstance(function, FuncOp) and not function.is_declaration:
            ops = [op for op in function.body.block.ops if is_access(op) and is_float(accessed(op))]
            plan = Plan(function, settings.of_function(function, bodies)) if ops else None
            for op in ops:
                assert plan is not None
                accesses.setdefault(variable_of(op), []).append(_Access(op, plan))
    if "" in accesses:
        return Variables(reasons=dict.fromkeys(accesses, _UNKNOWN_HANDLE))
    reasons = {name: _problem(ops, wanted, settings) for name, ops in accesses.items()}
    uniforms = {name: _uniform(accesses[name], settings) for name, reason in reasons.items() if not reason}
    return Variables(uniforms, {name: reason for name, reason in reasons.items() if reason})


def _problem(accesses: Sequence[_Access], wanted: Quantize, settings: Settings) -> str:
    """Returns why a variable stays floats, or an empty string."""
    if wanted.variables == "float32":
        return FLOAT_STATE
    if any(settings.exclusion.excludes(op) for op, _ in accesses):
        return EXCLUDED
    if any(seen is None or not seen.is_countable for seen in map(_seen, accesses)):
        return NOT_SEEN
    if wanted.strict or wanted.variables == "integers":
        return ""
    if any(_grows(op) for op, _ in accesses if op.name != READ):
        return _GROWS
    uses = [(use.operation, plan) for op, plan in accesses if op.name == READ for use in op.results[0].uses]
    return "" if any(op in plan.quantized for op, plan in uses) else _GAINS_NOTHING


def _seen(access: _Access) -> Range | None:
    """Returns the range of the value that is read or assigned, and of values that must share its scale."""
    value = accessed(access.op)
    constant = constant_behind(value)
    if constant is not None:
        return Range.of(extent(constant))
    seen, together = range_of(value), access.plan.range(value)
    return seen if seen is None or together is None else seen.joined(together)


def _grows(assign: Operation) -> bool:
    """Returns whether an assigned value is computed from the variable's old value, not just moved."""
    name = variable_of(assign)
    pending: list[tuple[Value, bool]] = [(assign.operands[1], False)]
    done: set[tuple[Value, bool]] = set()
    while pending:
        value, is_computed = pending.pop()
        if (value, is_computed) in done or not isinstance(value, OpResult):
            continue
        done.add((value, is_computed))
        op = value.op
        if op.name == READ and variable_of(op) == name:
            if is_computed:
                return True
            continue
        rule = RULES.get(op.name)
        is_moved = rule is not None and rule.scales is Scales.SAME
        pending += [(operand, is_computed or not is_moved) for operand in op.operands if is_float(operand)]
    return False


def _uniform(accesses: Sequence[_Access], settings: Settings) -> Uniform:
    """Returns a variable's mapping: that of assigned values if all others fit, else one that covers all."""
    ranges = [seen for seen in map(_seen, accesses) if seen is not None]
    computed = [(accessed(op), plan) for op, plan in accesses if op.name != READ and not is_constant(accessed(op))]
    given = {plan.given(value) for value, plan in computed}
    only = next(iter(given)) if len(given) == 1 else None
    if only is not None and all(fits(seen, only) for seen in ranges):
        return only
    whole = ranges[0]
    for seen in ranges[1:]:
        whole = whole.joined(seen)
    return uniform_of(whole, settings.storage)
