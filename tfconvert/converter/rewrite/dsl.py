"""The vocabulary of declarative patterns: captures, op builders, constraints, computed values.

A term represents a matched value, or a value to create when it is in a result. Terms never change;
methods such as `once` return a changed copy. A capture is identified by its name: the same name twice is the same
value. An op is identified by its object: the same `Op` twice is the same op, and an `Op` of the matched side that
appears in the result is the matched op.

These are plain classes, since decorators would slow down every start of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from tfconvert.schema.dialects import tfl as tfl_dialect
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attribute import Attribute

VALUE, CONSTANT, ARRAY, NUMBER, REST = "value", "constant", "array", "number", "rest"
"""Kinds of captures; the builders below document the values that functions get."""


class ValueLimits(NamedTuple):
    """Constraints on a value.

    Attributes:
        elements: Element types, one of which it has; empty for any.
        rank: Its number of dimensions; `None` for any.
        dims: Its shape, -1 where any dimension matches; `None` for any.
        static: Whether every dimension has to be known.
        once: Whether it has exactly one use; of an op, whether its results have one use in all.
        varies: Whether constants are excluded.
    """

    elements: frozenset[Attribute] = frozenset()
    rank: int | None = None
    dims: types.Shape | None = None
    static: bool = False
    once: bool = False
    varies: bool = False


NO_LIMITS = ValueLimits()


class Term:
    """Base class of all terms for values.

    Attributes:
        limits: The constraints on the value.
        reason: The message if the term doesn't match, instead of a reason derived from the IR; empty for that.
    """

    limits: ValueLimits = NO_LIMITS
    reason: str = ""

    def element(self, *dtypes: Any) -> Self:
        """Requires one of these element types: a NumPy dtype, or an MLIR type."""
        found = frozenset(each if isinstance(each, Attribute) else _element(each) for each in dtypes)
        return self._limited(elements=found)

    def rank(self, rank: int) -> Self:
        """Requires a number of dimensions."""
        return self._limited(rank=rank)

    def shaped(self, *dims: int) -> Self:
        """Requires a shape; -1 means any dimension, known or not."""
        return self._limited(dims=dims)

    def static(self) -> Self:
        """Requires a static shape."""
        return self._limited(static=True)

    def varying(self) -> Self:
        """Requires a value that isn't constant."""
        return self._limited(varies=True)

    def once(self) -> Self:
        """Requires a value that has one use; for an op, that its results have one use in total."""
        return self._limited(once=True)

    def because(self, reason: str) -> Self:
        """Sets the message if this term doesn't match."""
        return self.changed(reason=reason)

    def _limited(self, **changes: Any) -> Self:
        return self.changed(limits=self.limits._replace(**changes))

    def changed(self, **changes: Any) -> Self:
        """Returns a copy with some attributes changed."""
        made = copy(self)
        vars(made).update(changes)
        return made


def _element(dtype: Any) -> Attribute:
    return types.from_dtype(np.dtype(dtype)).mlir


class Capture(Term):
    """A value that gets a name.

    Attributes:
        name: The name, the parameter of functions that want it.
        kind: The kind of values that it captures.
    """

    def __init__(self, name: str, kind: str = VALUE) -> None:
        self.name = name
        self.kind = kind


class Literal(Term):
    """A constant, written as a number or an array.

    Attributes:
        value: The number; in a result also an array.
    """

    def __init__(self, value: Any) -> None:
        self.value = value


class AttributeCapture:
    """An attribute's value that gets a name; functions get it as a Python value."""

    def __init__(self, name: str) -> None:
        self.name = name


class OneOf:
    """An attribute that has one of several values."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values


class Computed(Term):
    """A value that a function computes from captures, which are its parameters' names.

    Attributes:
        function: Returns an array or a constant's handle, an existing value, a Python value for an attribute, or a
            `Failure`.
        name: Its name for other functions, or empty.
    """

    def __init__(self, function: Callable[..., Any], name: str = "") -> None:
        self.function = function
        self.name = name


class Check:
    """A condition on captures, which are its function's parameters' names.

    Attributes:
        function: Returns whether the condition holds, or returns a `Failure`.
        reason: Why the pattern declines if the condition doesn't hold.
    """

    def __init__(self, function: Callable[..., Any], reason: str) -> None:
        self.function = function
        self.reason = reason


class Op(Term):
    """An op, matched or created.

    Attributes:
        names: The op's full name; on the matched side also several alternatives.
        operands: Its operands.
        attributes: Its attributes: Python values, `Attribute`s, and the terms for attributes.
        label: Its name as a parameter of functions, or empty.
        commutes: Whether its two operands match in either order.
        unregistered: Whether to accept a name that no table has.
        result_types: For created ops: types, terms whose types are copied, or functions of captures.
        copied: For created ops: the matched op whose name and attributes are copied.
    """

    label: str = ""
    commutes: bool = False
    unregistered: bool = False
    result_types: tuple[Attribute | Term, ...] = ()
    copied: Op | None = None

    def __init__(self, names: tuple[str, ...], operands: tuple[Term, ...], attributes: Mapping[str, Any]) -> None:
        self.names = names
        self.operands = operands
        self.attributes = attributes

    def __getitem__(self, index: int) -> Result:
        return Result(self, index)

    def commutative(self) -> Op:
        """Matches the two operands in either order."""
        return self.changed(commutes=True)

    def named(self, label: str) -> Op:
        """Names the op for functions, which get the `Operation`."""
        return self.changed(label=label)

    def typed(self, *result_types: Attribute | Callable[..., Attribute]) -> Op:
        """Sets the result types of a created op: types, or functions of captures that return one."""
        made = (each if isinstance(each, Attribute) else Computed(each) for each in result_types)
        return self.changed(result_types=tuple(made))

    def like(self, *values: Term) -> Op:
        """Sets the result types of a created op to the types of other values."""
        return self.changed(result_types=values)

    def rebuilt(self, *operands: TermLike, **attributes: Any) -> Op:
        """Returns a term that creates a copy of this op with other operands, and some other attributes."""
        return Op(self.names, tuple(map(as_term, operands)), attributes).changed(copied=self)


class Result(Term):
    """One result of an op."""

    def __init__(self, op: Op, index: int) -> None:
        self.op = op
        self.index = index


TermLike = Term | float | np.ndarray[Any, np.dtype[Any]]
"""The forms in which an operand may be written: numbers and arrays are constants."""


def as_term(operand: TermLike) -> Term:
    """Returns an operand as a term."""
    return operand if isinstance(operand, Term) else Literal(operand)


def value(name: str) -> Capture:
    """Captures any value; functions get the `Value`."""
    return Capture(name)


def constant(name: str) -> Capture:
    """Captures a constant of any size; functions get its handle, which holds no data until it is read."""
    return Capture(name, CONSTANT)


def array(name: str) -> Capture:
    """Captures a small constant; functions get the numpy array."""
    return Capture(name, ARRAY)


def number(name: str) -> Capture:
    """Captures a constant of one element; functions get the Python number."""
    return Capture(name, NUMBER)


def rest(name: str) -> Capture:
    """Captures all operands from here on, if any; functions get a tuple of `Value`s."""
    return Capture(name, REST)


def attr(name: str) -> AttributeCapture:
    """Captures an attribute; the same name twice requires equal attributes."""
    return AttributeCapture(name)


def one_of(*values: Any) -> OneOf:
    """Requires an attribute to have one of several values."""
    return OneOf(values)


def computed(function: Callable[..., Any], name: str = "") -> Computed:
    """Computes a constant or an attribute from captures, or chooses one of the values that the root depends on.

    Among the conditions of a rule, it is computed while matching, may decline by returning a `Failure`, and is
    available to later functions by its name. Anywhere else, it is computed when the result is created.

    Args:
        function: Its parameters are names of captures, of ops (including `root`) and of values computed before.
        name: Its name for other functions.
    """
    return Computed(function, name)


def check(reason: str, function: Callable[..., Any]) -> Check:
    """Requires a condition on captures.

    Args:
        reason: Why the pattern declines if it doesn't hold.
        function: Its parameters are names as in `computed`; returns a boolean, or a `Failure` with another reason.
    """
    return Check(function, reason)


def op(name: str | tuple[str, ...], *operands: TermLike, unregistered: bool = False, **attributes: Any) -> Op:
    """Builds the term of an op.

    Args:
        name: Its full name (`tfl.add`); for matched ops other than the root also several alternatives.
        operands: All of its operands.
        unregistered: Accepts a name that no table has, such as a user's own op.
        attributes: Its attributes; others may have any value when matched, and have the default when created.
    """
    names = (name,) if isinstance(name, str) else tuple(name)
    made = Op(names, tuple(map(as_term, operands)), attributes)
    return made.changed(unregistered=True) if unregistered else made


def custom(code: str, *operands: TermLike, options: Mapping[str, Any] | Computed | None = None) -> Op:
    """Builds the term of a custom operator, for which your runtime has a kernel; needs `allow_custom_ops`.

    As the replacement of the root it has the root's result types; any other declares them with `like` or `typed`.

    Args:
        code: The name of the registered kernel.
        operands: Its operands.
        options: Options of the kernel by name: numbers, strings, booleans, and lists of one of these types; or the
            computation of such a mapping, `computed(lambda scale: {"scale": scale})`. No options by default.
    """
    wanted: dict[str, Any] = {} if options is None else {tfl_dialect.CUSTOM_OPTION: options}
    wanted[tfl_dialect.CUSTOM_CODE] = code
    return op(f"{tfl_dialect.PREFIX}{tfl_dialect.CUSTOM}", *operands, **wanted)


class Builders:
    """A dialect's ops as functions: `tfl.add(x, y)` is `op("tfl.add", x, y)`."""

    __slots__ = ("_dialect",)

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect

    def __getattr__(self, name: str) -> Callable[..., Op]:
        if name.startswith("__"):
            raise AttributeError(name)
        full_name = f"{self._dialect}.{name}"

        def build(*operands: TermLike, **attributes: Any) -> Op:
            return op(full_name, *operands, **attributes)

        return build


tf = Builders("tf")
tfl = Builders("tfl")
