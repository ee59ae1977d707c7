"""Legalization entries: `BuiltinRow` for one-to-one ops, `Lowering` for the rest.

Both are frozen and list the element types that they take, so that patterns, error messages and the table of supported
ops come from the same place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.legalize.litert_builder import INT32, LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, tfl, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

Constraint = Callable[[Operation], Failure | None]
"""Returns why an entry can't legalize an op, `None` if it can."""


@cache
def element_name(element: Attribute) -> str:
    """Returns an element type as MLIR prints it: `f32`, `ui8`, `complex<f32>`, ..."""
    return str(element)


@cache
def tflite_name(element: Attribute) -> str:
    """Returns the name that options have for an element type, `FLOAT32`; empty if LiteRT has no such type."""
    row = types.from_mlir(element)
    return "" if row is None else row.tflite


def element_of(op: Operation, operand: int = 0) -> str:
    """Returns the name of the element type of an operand, or of the first result if there is no such operand."""
    return element_name(_typed_element(op, operand))


def _typed_element(op: Operation, operand: int) -> Attribute:
    """Returns the element type of an operand, or of the first result if there is no such operand."""
    operands = op.operands
    return types.element_of((operands[operand] if len(operands) > operand else op.results[0]).type)


@lru_cache(1024)
def _takes(names: str, element: Attribute) -> bool:
    """Returns whether an element type is among several, whose names are separated by spaces."""
    return element_name(element) in names.split()


def all_of(*constraints: Constraint) -> Constraint:
    """Returns the conjunction of constraints; the first one that doesn't hold gives the reason."""

    def check(op: Operation) -> Failure | None:
        return next((reason for constraint in constraints if (reason := constraint(op))), None)

    return check


def constant_operand(index: int, what: str) -> Constraint:
    """Returns the constraint that an operand is a constant."""

    def check(op: Operation) -> Failure | None:
        return None if tensor_data.constant_of(op.operands[index]) is not None else Failure(f"{what} is not a constant")

    return check


def number_operand(index: int, what: str) -> Constraint:
    """Returns the constraint that an operand is a constant of one element."""

    def check(op: Operation) -> Failure | None:
        constant = tensor_data.constant_of(op.operands[index])
        is_one = constant is not None and tensor_data.to_array(constant).size == 1
        return None if is_one else Failure(f"{what} is not a constant number")

    return check


def ints(value: Value) -> list[int]:
    """Returns the elements of a constant that a constraint has required."""
    constant = tensor_data.constant_of(value)
    assert constant is not None, "checked by the constraint"
    return [int(item) for item in tensor_data.to_array(constant).reshape(-1)]


def rank_is_known(op: Operation) -> Failure | None:
    """The constraint that the first operand's rank is known."""
    return Failure("the operand's rank is not known") if op.operands[0].shape is None else None


def max_rank(rank: int, index: int = 0) -> Constraint:
    """Returns the constraint that an operand's rank is known to be at most `rank`."""

    def check(op: Operation) -> Failure | None:
        shape = op.operands[index].shape
        if shape is None:
            return None
        return None if len(shape) <= rank else Failure(f"the kernel takes at most {rank} dimensions, not {len(shape)}")

    return check


class Attr(NamedTuple):
    """An option that comes from an attribute of the TensorFlow op."""

    name: str  # The attribute.
    default: Any = None  # The value where the op has no such attribute.
    convert: Callable[[Any], Any] | None = None  # From the attribute's Python value to the option's.


class ResultType(NamedTuple):
    """An option that is a result's element type."""

    result: int = 0  # Its position.


class BuiltinRow(NamedTuple):
    """An op with one builtin that does the same."""

    op: str  # TensorFlow's op, `Relu`.
    target: str  # The tfl op, `relu`.
    # Element types (as MLIR prints them, separated by spaces) that the builtin's kernel takes as its first (or
    # `typed`th) operand; empty for any.
    types: str = ""
    operands: tuple[int, ...] | None = None  # Which operands to forward, all in their order by default.
    narrow: tuple[int, ...] = ()  # Operands to forward as `i32`: shapes, axes, counts.
    options: Mapping[str, Any] = MappingProxyType({})  # Options: values, `Attr`s, or `ResultType`s.
    constraint: Constraint | None = None  # A further requirement.
    typed: int = 0  # The operand that `types` restricts.
    benefit: int = 2  # Precedence among the patterns of one op.

    def pattern(self) -> Pattern[None]:
        """Returns the pattern of the entry."""
        is_plain = self.operands is None and not self.narrow
        rewrite = self._rewrite
        if is_plain and not any(isinstance(value, Attr | ResultType) for value in self.options.values()):
            rewrite = _Turn(self.target, self.options)
        return Pattern(f"{self.op}-to-{self.target}", f"tf.{self.op}", self._match, rewrite, self.benefit)

    def _match(self, op: Operation) -> Failure | None:
        if self.types and not _takes(self.types, _typed_element(op, self.typed)):
            element = element_of(op, self.typed)
            return Failure(f"tfl.{self.target} takes {self.types}, not {element}", self.types, element)
        if self.narrow:
            wide = next((index for index in self.narrow if not _fits(op.operands[index])), None)
            if wide is not None:
                return Failure(f"operand {wide} doesn't fit 32 bits")
        for name, value in self.options.items():
            if isinstance(value, Attr) and not _is_option(_option(op, value)):
                return Failure(f"{name} doesn't fit 32 bits")
        return self.constraint(op) if self.constraint is not None else None

    def _rewrite(self, op: Operation, match: None, rewriter: Rewriter) -> None:
        operands = None
        if self.narrow or self.operands is not None:
            emit = LiteRTBuilder(rewriter)
            chosen = range(len(op.operands)) if self.operands is None else self.operands
            operands = [emit.i32(op.operands[i]) if i in self.narrow else op.operands[i] for i in chosen]
        options = {
            name: _option(op, value) if isinstance(value, Attr | ResultType) else value
            for name, value in self.options.items()
        }
        properties = tfl.to_properties(self.target, options)
        rewriter.turn_root_into(tfl.TFLOp, tfl.full_name(self.target), properties, operands)


class _Turn:
    """Makes the builtin of an op in place; its options don't depend on the op."""

    __slots__ = ("_name", "_options", "_properties")

    def __init__(self, target: str, options: Mapping[str, Any]) -> None:
        self._name = tfl.PREFIX + target
        self._options = options
        self._properties: dict[str, Attribute] | None = None  # made for the first op

    def __call__(self, op: Operation, match: None, rewriter: Rewriter) -> None:
        if self._properties is None:
            self._properties = tfl.to_properties(self._name.removeprefix(tfl.PREFIX), self._options)
        rewriter.turn_root_into(tfl.TFLOp, self._name, {**self._properties})


class Lowering(NamedTuple):
    """An op that becomes something other than one builtin with the same operands."""

    op: str  # TensorFlow's op, `Conv2D`.
    becomes: str  # Its replacement, for readers: the names of the builtins, or of the `tf` ops that are legalized next.
    # Emits the replacement of the op; returns the new results, or `None` if the op has become another.
    rewrite: Callable[[Operation, LiteRTBuilder], Value | Sequence[Value] | None]
    types: str = ""  # Element types that it takes as its first (or `typed`th) operand; empty for any.
    constraint: Constraint | None = None  # A further requirement.
    typed: int = 0  # The operand that `types` restricts.
    benefit: int = 1  # Precedence among the patterns of one op.
    name: str = ""  # The pattern's name; derived from the op and the builtins by default.
    note: str = ""  # A note for the user, as the end of a sentence that begins with the op, or empty.

    @property
    def pattern_name(self) -> str:
        """The pattern's name, derived or not."""
        return self.name or f"{self.op}-to-{self.becomes.replace(' ', '-')}"

    def pattern(self) -> Pattern[None]:
        """Returns the pattern of the lowering."""
        note = f"{self.op}: {self.note}" if self.note else ""
        return Pattern(self.pattern_name, f"tf.{self.op}", self._match, self._rewrite, self.benefit, note=note)

    def _match(self, op: Operation) -> Failure | None:
        if self.types and not _takes(self.types, _typed_element(op, self.typed)):
            element = element_of(op, self.typed)
            return Failure(f"it takes {self.types}, not {element}", self.types, element)
        return self.constraint(op) if self.constraint is not None else None

    def _rewrite(self, op: Operation, match: None, rewriter: Rewriter) -> None:
        values = self.rewrite(op, LiteRTBuilder(rewriter))
        if values is not None:
            rewriter.replace(values)


Entry = BuiltinRow | Lowering
"""An entry of a topic's table."""


def _option(op: Operation, attr: Attr | ResultType) -> Any:
    if isinstance(attr, ResultType):
        return tflite_name(op.results[attr.result].element)
    value = tf.get(op, attr.name, attr.default)
    return attr.convert(value) if attr.convert is not None else value


def _is_option(value: Any) -> bool:
    """Returns whether an attribute's value fits an option, if it is a number."""
    return not isinstance(value, int) or INT32[0] <= value <= INT32[1]


def _fits(value: Value) -> bool:
    """Returns whether an integer operand can be forwarded as `i32`."""
    if value.element == types.I32:
        return True
    constant = tensor_data.constant_of(value)
    if constant is None:
        return True
    array = tensor_data.to_array(constant)
    return array.size == 0 or (INT32[0] <= array.min() and array.max() <= INT32[1])
