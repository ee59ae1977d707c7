"""Operators of a .tflite file: their codes and their options, as names and properties of `tfl` ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tfconvert.importers.tflite.buffers import BufferReader
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr
from tfconvert.schema.tflite import operators
from tfconvert.schema.tflite.reader import View, malformed
from tfconvert.schema.tflite.tables import SCALARS, TFLITE, Field

_PLACEHOLDER = TFLITE.enums["BuiltinOperator"]["PLACEHOLDER_FOR_GREATER_OP_CODES"]

# Fields of `Operator` that the op, its operands and its properties represent.
_IN_IR = frozenset(
    (
        "opcode_index",
        "inputs",
        "outputs",
        "intermediates",
        "custom_options",
        "custom_options_format",
        "large_custom_options_offset",
        "large_custom_options_size",
        "builtin_options_type",
        "builtin_options",
        "builtin_options2_type",
        "builtin_options2",
    )
)

# Obsolete options; only seen in files that store them.
_DEPRECATED = frozenset(("new_height", "new_width"))


@dataclass(frozen=True, slots=True)
class Code:
    """An entry of the model's list of operators."""

    name: str  # The op's name in the `tfl` dialect.
    custom: str  # Name of a custom operator.
    version: int  # Its version.

    @property
    def shown(self) -> str:
        """The name that errors show."""
        return self.custom or f"tfl.{self.name}"


def code(view: View) -> Code:
    """Returns an entry of the list of operators.

    Raises:
        ConversionError: The format has no such operator, or it is newer than this version.
    """
    # Old files, from when there were fewer than 127 operators, only have the narrow field; later ones have both.
    number = max(view["builtin_code"], view["deprecated_builtin_code"])
    name = TFLITE.member("BuiltinOperator", number)
    if name is None or number == _PLACEHOLDER:
        raise malformed(f"operator number {number} is unknown to this version")
    custom = view["custom_code"] or ""
    if name == "CUSTOM" and not custom:
        raise malformed("a custom operator has no name")
    return Code(name.lower(), custom if name == "CUSTOM" else "", view["version"])


def check_arity(operator: Code, inputs: Sequence[int], outputs: Sequence[int]) -> None:
    """Checks the numbers of an operator's operands and results, and that no required one is absent.

    Args:
        operator: The operator.
        inputs: The indices of its operands' tensors, -1 where one is absent.
        outputs: Those of its results.

    Raises:
        ConversionError: They are wrong (`malformed-tflite`).
    """
    builtin = operators.lookup(operator.name)
    assert builtin is not None
    for what, indices, values, (minimum, maximum) in (
        ("operands", inputs, builtin.operands, builtin.operand_range),
        ("results", outputs, builtin.results, builtin.result_range),
    ):
        if not minimum <= len(indices) <= maximum:
            raise malformed(f"an operator has {len(indices)} {what}, which is not possible", op=operator.shown)
        if -1 in indices and what == "operands":
            for index, value in zip(indices, values, strict=False):
                if index == -1 and not (value.optional or value.variadic):
                    raise malformed(f"the operand {value.name!r} of an operator is absent", op=operator.shown)


class Properties:
    """Creates the properties of ops.

    Args:
        buffers: The model's buffers, for options outside of the tables.
        symbols: The symbols of the subgraphs.
    """

    def __init__(self, buffers: BufferReader, symbols: Sequence[str]) -> None:
        self._buffers = buffers
        self._symbols = symbols

    def of(self, view: View, operator: Code) -> tuple[dict[str, Attribute], dict[str, Any], list[int]]:
        """Returns an operator's properties, the fields that no property represents, and the subgraphs it calls.

        Raises:
            ConversionError: The options can't be read.
        """
        rest = {key: value for key, value in view.tree().items() if key not in _IN_IR} if _has_more(view) else {}
        options = self._custom_options(view)
        if operator.name == tfl.CUSTOM:
            properties: dict[str, Attribute] = {tfl.CUSTOM_CODE: attrs.string(operator.custom)}
            if options is not None:
                properties[tfl.CUSTOM_OPTION] = tfl.ConstBytesAttr.get(options)
            return properties, rest, []
        if options is not None:
            rest["custom_options"] = options
        builtin = operators.lookup(operator.name)
        assert builtin is not None
        table = None
        for union in (operators.OPTIONS, operators.OPTIONS_2):
            number = view[f"{union}_type"]
            found = view[union]
            if number and TFLITE.member(_union_name(union), number) is None:
                raise malformed(f"options number {number} are unknown to this version", op=operator.shown)
            if found is None:
                continue
            if found.table == builtin.options and union == builtin.union:
                table = found
            else:
                # Options of another operator have no effect, but are kept for the file.
                rest[union] = (found.table, found.tree())
        if not builtin.options:
            return {}, rest, []
        properties, calls = self._properties(operator, builtin.options, table)
        return properties, rest, calls

    def _custom_options(self, view: View) -> bytes | None:
        offset = view["large_custom_options_offset"]
        if offset > 1:
            place, size = self._buffers.outside(offset, view["large_custom_options_size"])
            return self._buffers.content.read(place, size)
        options = view["custom_options"]
        return None if options is None else options.tobytes()

    def _properties(self, operator: Code, table: str, view: View | None) -> tuple[dict[str, Attribute], list[int]]:
        """Returns all scalar options, including defaults so that they are visible, and all other stored ones."""
        properties: dict[str, Attribute] = {}
        calls: list[int] = []
        subgraphs = _subgraph_fields(operator.name)
        stored = set(view.stored()) if view is not None else set()
        for name, field in TFLITE.fields(table).items():
            if name in subgraphs:
                value = view[name] if view is not None else field.default
                if value is not None and (view is not None or field.kind in SCALARS):
                    properties[subgraphs[name]] = self._symbol(value, calls, operator)
            elif name in stored:
                assert view is not None
                properties[name] = _property(field, view, operator)
            elif field.kind in SCALARS and name not in _DEPRECATED:
                properties[name] = _default(field)
        return properties, calls

    def _symbol(self, value: Any, calls: list[int], operator: Code) -> Attribute:
        indices = value.tolist() if isinstance(value, np.ndarray) else [value]
        for index in indices:
            if not 0 <= index < len(self._symbols):
                raise malformed(f"the called subgraph {index} does not exist", op=operator.shown)
        calls += indices
        symbols = [attrs.symbol(self._symbols[index]) for index in indices]
        return ArrayAttr.get(symbols) if isinstance(value, np.ndarray) else symbols[0]


def _has_more(view: View) -> bool:
    return not _IN_IR.issuperset(view.stored())


def _union_name(union: str) -> str:
    return TFLITE.fields("Operator")[union].refers


@cache
def _subgraph_fields(name: str) -> Mapping[str, str]:
    """Returns the property for each option that is a subgraph's index."""
    return {option: prop for prop, option in tfl.SUBGRAPHS.get(name, {}).items()}


@cache
def _default(field: Field) -> Attribute:
    value = TFLITE.member(field.refers, field.default) if field.refers else None
    return tfl.to_attribute(field, field.default if value is None else value)


def _property(field: Field, view: View, operator: Code) -> Attribute:
    value = view[field.name]
    if field.kind == "[ubyte]":
        return tfl.ConstBytesAttr.get(value.tobytes())
    numbers = value.tolist() if isinstance(value, np.ndarray) else value
    if field.refers:
        many = isinstance(numbers, list)
        names = [TFLITE.member(field.refers, number) for number in (numbers if many else [numbers])]
        if None in names:
            raise malformed(f"option {field.name!r} has the value {numbers}, which is unknown", op=operator.shown)
        numbers = names if many else names[0]
    return tfl.to_attribute(field, numbers)
