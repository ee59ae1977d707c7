"""Element types and ranks of `tfl` ops' operands and results, from the table of LiteRT's dialect."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from tfconvert.schema.dialects import quant, types
from tfconvert.schema.dialects.quant import UniformType
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.types import IntegerType, TensorType, UnrankedTensorType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import kernels, operators
from tfconvert.schema.tflite.versions import Operand


class TypeConstraint(NamedTuple):
    """The types that an operand or a result may have."""

    elements: frozenset[str]  # The names of its element types, empty if any.
    ranks: tuple[int, int]  # The minimum and maximum rank.


class OperatorTypes(NamedTuple):
    """The types that an operator's operands and results may have."""

    operands: tuple[TypeConstraint, ...]  # The kinds of its first operands.
    results: tuple[TypeConstraint, ...]  # The kinds of its first results.
    alike: tuple[str, ...]  # Arguments of one element type.


_MAX = 1 << 16

# Arguments that no operator mixes types of, though the dialect lets some do.
_SIDES = ("lhs", "rhs")


@cache
def rows() -> Mapping[str, OperatorTypes]:
    """Returns the rows of the table, by operator."""
    return {
        name: OperatorTypes(_kinds(operands), _kinds(results), () if alike == "-" else tuple(alike.split(",")))
        for name, operands, results, alike in operators.types()
    }


def _kinds(text: str) -> tuple[TypeConstraint, ...]:
    return () if text == "-" else tuple(map(_kind, text.split(" ")))


def _kind(text: str) -> TypeConstraint:
    ranks, _, elements = text.rpartition(":")
    minimum, _, maximum = ranks.rstrip("+").partition("-")
    limits = (int(minimum or 0), _MAX if not ranks or ranks[-1] == "+" else int(maximum or minimum))
    return TypeConstraint(frozenset() if elements == "*" else frozenset(elements.split(",")), limits)


def check(view: View, operator: operators.Operator, *, with_elements: bool = True) -> None:
    """Checks the element types and ranks of an op.

    Args:
        view: The op.
        operator: Its operator.
        with_elements: Whether only those element types may occur that the dialect lists; else also those that one of
            the runtime's kernels was seen to take, which are more.
    """
    row = rows().get(operator.name)
    if row is None:
        return
    for kinds, declared in ((row.operands, operator.operands), (row.results, operator.results)):
        for kind, argument in zip(kinds, declared, strict=False):
            for value in view.values(argument.name):
                _check(view, argument.name, kind, value, "" if with_elements else operator.name.upper())
    first: Attribute | None = None
    alike = row.alike or _SIDES
    for name in alike:
        for value in view.values(name):
            element = value.element
            if isinstance(element, UniformType | quant.BlockedType):
                return
            if first is not None and element != first:
                view.fail(f"{', '.join(map(repr, alike))} must have one element type, found {first} and {element}")
            first = element


def _check(view: View, name: str, kind: TypeConstraint, value: Value, kernel: str) -> None:
    if not isinstance(value.type, TensorType | UnrankedTensorType):
        return
    element = value.element
    # Of integers that represent real numbers the table of kernels knows more, and is asked before a file is written.
    is_quantized = isinstance(element, UniformType | quant.BlockedType)
    is_listed = not kind.elements or is_quantized or _name(element) in kind.elements
    if not is_listed and not (kernel and _is_taken(kernel, element)):
        view.fail(f"{name!r} must have elements of type {', '.join(sorted(kind.elements))}, found {value.type}")
    shape = value.shape
    if shape is not None and not kind.ranks[0] <= len(shape) <= kind.ranks[1]:
        view.fail(f"{name!r} must have rank {_ranks(kind.ranks)}, found {value.type}")


def _is_taken(kernel: str, element: Attribute) -> bool:
    """Returns whether a kernel takes an element type somewhere, or was not tried at all."""
    row, forms = types.from_mlir(element), _forms(kernel)
    # A file may lack the scales of integers that represent real numbers, and be run all the same.
    return row is None or not forms or isinstance(element, IntegerType) or kernels.form(Operand(row.tflite)) in forms


@cache
def _forms(kernel: str) -> frozenset[str]:
    """Returns the forms of operands and results with which a kernel was seen to compute."""
    return frozenset(
        each
        for signature, found in kernels.table().rows(kernel).items()
        if any(kernels.OK in (outcome.builtin, outcome.xnnpack) for outcome in found)
        for each in signature.replace(">", ",").split(",")
    )


def _ranks(ranks: tuple[int, int]) -> str:
    minimum, maximum = ranks
    return (
        str(minimum) if minimum == maximum else f"{minimum} or more" if maximum == _MAX else f"{minimum} to {maximum}"
    )


def _name(element: Attribute) -> str:
    """Returns the name that the table has for an element type."""
    if isinstance(element, types.HandleType | types.StringType):
        return element.NAME.removeprefix("tf_type.")
    return str(element).removeprefix("!tf_type.")
