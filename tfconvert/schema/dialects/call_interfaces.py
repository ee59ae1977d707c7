"""The ops that run functions, one entry per op, as MLIR's `CallOpInterface` and `RegionBranchOpInterface`.

call     f(operands)                                  results
branches one of several functions, of all operands but the first, which selects it
loop     cond(variables) -> tensor<i1>, body(variables) -> variables
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects.tf_attributes import FunctionAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, SymbolRefAttr
from tfconvert.schema.ir.operation import Operation


class Kind(Enum):
    """The control flow of an op with callees."""

    CALL = "call"
    BRANCHES = "branches"
    LOOP = "loop"


class CallInterface(NamedTuple):
    """The interface of an op with callees."""

    name: str  # The op.
    kind: Kind  # How it runs the functions.
    properties: tuple[str, ...]  # The properties that name them, a loop's condition first.
    is_stateless: bool = False  # Whether the op of this name has no effects.
    region_form: str = ""  # The equivalent op with regions, if there is one.

    @property
    def first_operand(self) -> int:
        """The operand that is the functions' first argument."""
        return 1 if self.kind is Kind.BRANCHES else 0

    @property
    def arity(self) -> int | None:
        """The number of functions, `None` if it is variadic."""
        return None if self.properties == _MANY else len(self.properties)


_MANY = ("branches",)
_CHOICE = ("then_branch", "else_branch")
_LOOP = ("cond", "body")

_ROWS = (
    CallInterface("func.call", Kind.CALL, ("callee",)),
    CallInterface("tf.Case", Kind.BRANCHES, _MANY, region_form="tf.CaseRegion"),
    CallInterface("tf.If", Kind.BRANCHES, _CHOICE, region_form="tf.IfRegion"),
    CallInterface("tf.PartitionedCall", Kind.CALL, ("f",), is_stateless=True),
    CallInterface("tf.StatefulPartitionedCall", Kind.CALL, ("f",)),
    CallInterface("tf.StatelessCase", Kind.BRANCHES, _MANY, is_stateless=True, region_form="tf.CaseRegion"),
    CallInterface("tf.StatelessIf", Kind.BRANCHES, _CHOICE, is_stateless=True, region_form="tf.IfRegion"),
    CallInterface("tf.StatelessWhile", Kind.LOOP, _LOOP, is_stateless=True, region_form="tf.WhileRegion"),
    CallInterface("tf.While", Kind.LOOP, _LOOP, region_form="tf.WhileRegion"),
)

INTERFACES: Mapping[str, CallInterface] = {row.name: row for row in _ROWS}
"""The interface of each op: `func.call` and the ops of TensorFlow's dialect, without region forms."""

KINDS: Mapping[str, Kind] = {row.name: row.kind for row in _ROWS}
"""The same, but only the kind."""

CALLS = frozenset([row.name for row in _ROWS if row.kind is Kind.CALL])
"""Ops that always run one function."""

IFS = frozenset([row.name for row in _ROWS if row.properties == _CHOICE])
"""Ops that choose the first of two functions if a condition holds, else the second."""

CASES = frozenset([row.name for row in _ROWS if row.properties == _MANY])
"""Ops that choose one of several functions by an index."""

LOOPS = frozenset([row.name for row in _ROWS if row.kind is Kind.LOOP])
"""Ops that run a function while another one returns true."""

STATEFUL = frozenset([row.name for row in _ROWS if not (row.is_stateless or row.kind is Kind.CALL)])
"""Branches and loops whose names don't exclude effects."""

REGION_FORMS: Mapping[str, str] = {
    row.region_form: row.name for row in _ROWS if row.region_form and row.name in STATEFUL
}
"""The equivalent op with functions for each op with regions."""

REFERRING = frozenset((SymbolRefAttr, FunctionAttr, ArrayAttr))
"""Classes of attributes that may refer to functions; none has subclasses."""


def may_refer(attribute: Attribute) -> bool:
    """Returns whether an attribute is of a class that can refer to functions."""
    return type(attribute) in REFERRING


def symbols(attribute: Attribute) -> list[str]:
    """Returns the names that an attribute refers to; all items of an array are of one kind."""
    if isinstance(attribute, FunctionAttr):
        attribute = attribute.function
    if isinstance(attribute, SymbolRefAttr):
        return [attribute.root]
    if isinstance(attribute, ArrayAttr) and attribute.data and type(attribute.data[0]) in REFERRING:
        return [name for item in attribute.data for name in symbols(item)]
    return []


def callees(op: Operation) -> list[str]:
    """Returns the functions that an op runs, a loop's condition first; empty for other ops.

    A property may be absent or name no function.
    """
    interface = INTERFACES.get(op.name)
    if interface is None:
        return []
    found = [op.properties.get(key) for key in interface.properties]
    return [name for attribute in found if attribute is not None for name in symbols(attribute)]


def rename_callees(op: Operation, names: Mapping[str, str]) -> None:
    """Replaces the functions that an op of `INTERFACES` runs."""
    for key in INTERFACES[op.name].properties:
        attribute = op.properties.get(key)
        if attribute is not None:
            op.properties[key] = _renamed(attribute, names)


def _renamed(attribute: Attribute, names: Mapping[str, str]) -> Attribute:
    if isinstance(attribute, ArrayAttr):
        return ArrayAttr.get([_renamed(item, names) for item in attribute.data])
    if isinstance(attribute, FunctionAttr):
        name = attribute.function.root
        return FunctionAttr.get(attrs.symbol(names.get(name, name)), attribute.arguments)
    if isinstance(attribute, SymbolRefAttr):
        return attrs.symbol(names.get(attribute.root, attribute.root))
    return attribute
