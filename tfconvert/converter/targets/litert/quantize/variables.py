"""Variables that a model keeps between runs, and the mappings of their integers in all functions.

A variable is integers everywhere or nowhere: one function reads what another has assigned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

READ, ASSIGN = "tfl.read_variable", "tfl.assign_variable"


class Variables(NamedTuple):
    """The mappings of the variables of a module.

    Attributes:
        uniforms: The mappings of those that become integers, by name.
        reasons: The reasons why others stay floats, by name.
    """

    uniforms: Mapping[str, Uniform] = {}
    reasons: Mapping[str, str] = {}

    def uniform(self, op: Operation) -> Uniform | None:
        """Returns the mapping of the variable that an op accesses; `None` if it stays floats, and for other ops."""
        return self.uniforms.get(variable_of(op)) if is_access(op) else None

    def reason(self, op: Operation) -> str:
        """Returns why the variable that an op accesses stays floats."""
        return self.reasons.get(variable_of(op), "")


def is_access(op: Operation) -> bool:
    """Returns whether an op reads or assigns a variable."""
    return op.name in (READ, ASSIGN)


def accessed(op: Operation) -> Value:
    """Returns the value that an op reads from a variable or assigns to it."""
    return op.results[0] if op.name == READ else op.operands[1]


def variable_of(op: Operation) -> str:
    """Returns the name of the variable that an op accesses; empty if its handle has another source."""
    handle = op.operands[0].owner
    if not isinstance(handle, tfl.TFLOp) or handle.op_name != "var_handle":
        return ""
    # The runtime identifies variables by both.
    container, name = (str(tfl.attribute(handle, each) or "") for each in ("container", "shared_name"))
    return f"{container}/{name}" if container else name
