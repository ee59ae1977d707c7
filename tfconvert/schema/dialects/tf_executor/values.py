"""The operands and results of the executor's ops: the dialect's two types, and the constraints on them.

Every op has data operands first and control operands after them, data results first and one control result after
them. A `Signature` states which, an op's verifier checks itself against it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attribute import Attribute, Type
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import TensorType, UnrankedTensorType
from tfconvert.schema.ir.values import Value


class ControlType(Type):
    """`!tf_executor.control`: happens after, and dead if dead."""

    __slots__ = ()

    NAME = "tf_executor.control"


class TokenType(Type):
    """`!tf_executor.token`: ties a NextIteration's source to its sink."""

    __slots__ = ()

    NAME = "tf_executor.token"


CONTROL = ControlType.intern()
TOKEN = TokenType.intern()


def is_control(value: Value) -> bool:
    """Returns whether a value is a control token and carries no data."""
    return value.type is CONTROL


class Kind(NamedTuple):
    """The constraint on an operand or a result.

    Attributes:
        name: What the operand is called.
        expected: What it must be, for the reader of an error.
        accepts: Returns whether a type satisfies it.
    """

    name: str
    expected: str
    accepts: Callable[[Attribute], bool]


def _is_tensor(found: Attribute) -> bool:
    return isinstance(found, TensorType | UnrankedTensorType)


def _is_scalar_of(element: Attribute) -> Callable[[Attribute], bool]:
    def accepts(found: Attribute) -> bool:
        return (
            _is_tensor(found) and types.dereferenced(types.element_of(found)) == element and not types.shape_of(found)
        )

    return accepts


def anything(name: str) -> Kind:
    """Returns the kind of a value of any type but a control token."""
    return Kind(name, "a value, not a control token", lambda found: not isinstance(found, ControlType))


def tensor(name: str) -> Kind:
    """Returns the kind of a tensor of any element type and shape."""
    return Kind(name, "a tensor", _is_tensor)


def scalar_bool(name: str) -> Kind:
    """Returns the kind of a boolean scalar, whose rank may be unknown; references are dereferenced."""
    return Kind(name, "tensor<i1> or tensor<*xi1>", _is_scalar_of(types.I1))


def scalar_int32(name: str) -> Kind:
    """Returns the kind of an `i32` scalar, whose rank may be unknown."""
    return Kind(name, "tensor<i32> or tensor<*xi32>", _is_scalar_of(types.I32))


def token(name: str) -> Kind:
    """Returns the kind of a NextIteration's token."""
    return Kind(name, "!tf_executor.token", lambda found: isinstance(found, TokenType))


class Signature(NamedTuple):
    """The operands and results of an op.

    Attributes:
        operands: The data operands.
        results: The data results.
        many_operands: Whether there may be any number of the last data operand, one at least.
        optional_operands: Whether there may be none at all.
        many_results: Whether there may be any number of the last data result.
        controls: Whether control operands may follow.
        control: Whether a control result follows.
    """

    operands: tuple[Kind, ...] = ()
    results: tuple[Kind, ...] = ()
    many_operands: bool = False
    many_results: bool = False
    optional_operands: bool = False
    controls: bool = True
    control: bool = True

    def check(self, op: Operation) -> None:
        """Checks an op's operands and results.

        Raises:
            VerifyError: One is missing, too many, of a wrong type, or out of order.
        """
        data = list(op.operands)
        if self.controls:
            while data and is_control(data[-1]):
                data.pop()
        for index, value in enumerate(data):
            if is_control(value) and self.controls:
                raise VerifyError(
                    f"data operands must come before control operands; operand {index} is a control token, "
                    f"operand {len(data) - 1} is {data[-1].type}"
                )
        _check(
            "operand",
            self.operands,
            self.many_operands,
            data,
            at_least=0 if self.optional_operands else len(self.operands),
        )
        results: Sequence[Value] = op.results
        if self.control:
            if not results or not is_control(results[-1]):
                found = results[-1].type if results else "no result"
                raise VerifyError(f"the last result must be !tf_executor.control, found {found}")
            results = results[:-1]
        at_least = len(self.results) - self.many_results
        _check("result", self.results, self.many_results, results, at_least=at_least)


def _check(what: str, kinds: Sequence[Kind], many: bool, values: Sequence[Value], at_least: int) -> None:
    if len(values) < at_least or (len(values) > at_least and not many):
        names = ", ".join(kind.name for kind in kinds) or "none"
        count = f"at least {at_least}" if many else str(at_least)
        raise VerifyError(f"expected {count} data {what}s ({names}), found {len(values)}")
    for index, value in enumerate(values):
        kind = kinds[min(index, len(kinds) - 1)]
        if not kind.accepts(value.type):
            raise VerifyError(f"{what} {index} ({kind.name}) must be {kind.expected}, found {value.type}")


def check_forwarded(data: Value, results: Sequence[Value]) -> None:
    """Checks that results may have the type of a forwarded operand.

    Raises:
        VerifyError: An element type or a shape contradicts.
    """
    for result in results:
        if not compatible(data.type, result.type):
            raise VerifyError(f"a result forwards the data operand: {data.type} can't be {result.type}")


def compatible(one: Attribute, other: Attribute) -> bool:
    """Returns whether one value may have both of two types.

    That is so if the element types are the same but for references and for handles' subtypes, and no known dimensions
    contradict.
    """
    if one is other or one == other:
        return True
    if not _is_tensor(one) or not _is_tensor(other):
        return False
    if types.dereferenced(types.element_of(one)) != types.dereferenced(types.element_of(other)):
        return False
    a, b = types.shape_of(one), types.shape_of(other)
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(x == y or x < 0 or y < 0 for x, y in zip(a, b, strict=True))
