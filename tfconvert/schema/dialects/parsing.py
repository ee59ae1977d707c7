"""Reads IR from text: xDSL's parser, with the constants and the locations that TensorFlow's MLIR writes.

    module = IRParser(dialect_context(), text, "model.mlir").parse_module()

What xDSL alone can't read: string, quantised and hexadecimal constants, names that are not ASCII, and location
aliases, which MLIR defines at the end of a file. After the last op the OpDef attributes of `tf` ops are where ours
have them (`tf.normalize`), and constants of a resource section are in their places.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import (
    BytesAttr,
    ComplexType,
    DenseResourceAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import dense_text, tensor_data, tensor_proto, tf, types
from tfconvert.schema.dialects.tensor_proto import TensorProtoAttr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdsl.utils.lexer import Position

_LOCATION_ALIAS = re.compile(r"^(#[\w$.-]+) = (loc\(.*\))[ \t]*$", re.MULTILINE)
_REFERENCE = re.compile(r"#[\w$.-]+")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')

# A comment, a string, or a quotation mark that begins no string.
_QUOTED = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"|(?P<open>")')

_RESOURCE_HEADER = 4
"""A resource's bytes come after so many others, which tell their alignment."""

MAX_BYTES = 1 << 30
"""A constant that is written by one number can't be larger; a short text could claim any size."""


class IRParser(Parser):
    """Parses modules in the project's dialects; every complaint is xDSL's `ParseError` with its place.

    Args:
        ctx: The dialects, as `context.dialect_context` makes them.
        input: The text.
        name: The file's name, for messages.

    Raises:
        ParseError: The text begins with no token, or has a string that doesn't end.
    """

    def __init__(self, ctx: Context, input: str, name: str = "<unknown>") -> None:
        _check_strings(Input(input, name))
        text, aliases = _split_locations(input)
        super().__init__(ctx, text, name)
        for alias, location, start in aliases:
            self.attribute_aliases[alias] = self._location(location, start)

    def _location(self, text: str, start: Position) -> Attribute:
        """Parses a location that begins at a place of the file."""
        inner = Parser(self.ctx, text)
        inner.attribute_aliases = self.attribute_aliases
        try:
            return inner.expect(inner.parse_optional_location, "expected a location")
        except ParseError as problem:
            span = problem.span
            there = Span(start + span.start, start + span.end, self.lexer.input)
            raise ParseError(there, problem.msg) from None

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """Parses a whole file.

        Raises:
            ParseError: The text is malformed.
        """
        module = super().parse_module(allow_implicit_module)
        for op in module.walk():
            if isinstance(op, tf.TFOp):
                tf.normalize(op)
            for name, value in op.properties.items():
                if isinstance(value, DenseResourceAttr):
                    op.properties[name] = self._resource(value)
        return module

    def parse_optional_str_literal(self) -> str | None:
        """Parses a string, if there is one; escapes may spell UTF-8. One of other bytes is none."""
        position = self.pos
        data = self.parse_optional_bytes_literal()
        if data is None:
            return super().parse_optional_str_literal()
        try:
            return data.decode()
        except UnicodeDecodeError:
            self._resume_from(position)
            return None

    def parse_optional_attribute(self) -> Attribute | None:
        """Parses an attribute, if there is one."""
        attribute = super().parse_optional_attribute()
        if isinstance(attribute, BytesAttr):
            try:
                return attrs.string(attribute.data.decode())
            except UnicodeDecodeError:
                return attribute
        if isinstance(attribute, TensorProtoAttr):
            return self._tensor_proto(attribute)
        return attribute

    def _tensor_proto(self, attribute: TensorProtoAttr) -> Attribute:
        position = self.pos
        self.parse_punctuation(":")
        tensor_type = self.parse_type()
        try:
            return tensor_proto.typed(attribute, tensor_type)
        except ValueError as problem:
            self.raise_error(str(problem), position)

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> Any:
        """Parses what follows `dense`: elements and a type.

        Args:
            type: The type, `None` if it is in the text.

        Returns:
            The same constant as `tensor_data.of_array` would make.
        """
        position = self.pos
        self.parse_punctuation("<", " in dense attribute")
        shape, items = self._literal()
        self.parse_punctuation(">", " in dense attribute")
        tensor_type = type
        if tensor_type is None:
            self.parse_punctuation(":", " in dense attribute")
            tensor_type = self.parse_type()
        if not isinstance(tensor_type, TensorType) or not dense_text.can_write(tensor_type.element_type):
            self.raise_error("expected a tensor type of numbers or strings", position)
        dims, element = types.shape_of(tensor_type), tensor_type.element_type
        if dims is None or not types.is_static(dims):
            self.raise_error("expected a static shape", position)
        return tensor_data.of_array(self._array(items, shape, element, dims, position), element)

    def _literal(self) -> tuple[list[int], list[Any]]:
        """Parses nested brackets.

        Returns:
            The shape, and the elements in a row; a lone element has the shape `[]`.
        """
        items: list[Any] = []
        open_rows: list[int] = []  # elements or rows so far in each open bracket
        shape: list[int] = []  # of closed brackets, by depth; -1 where not known yet
        while True:
            while self.parse_optional_punctuation("[") is not None:
                open_rows.append(0)
                if len(open_rows) > len(shape):
                    if items:
                        self.raise_error("expected rows of equal depth")
                    shape.append(-1)
            closing = bool(open_rows) and open_rows[-1] == 0 and self.parse_optional_punctuation("]") is not None
            if not closing:
                position = self.pos
                element = self._optional_element()
                if element is None and (open_rows or items):
                    self.raise_error("expected a number, a string, or a row of them")
                if element is None:
                    return [0], items
                if len(open_rows) != len(shape):
                    self.raise_error("expected rows of equal depth", position)
                items.append(element)
            self._close_rows(open_rows, shape, closing)
            if not open_rows:
                return shape, items

    def _close_rows(self, open_rows: list[int], shape: list[int], closed: bool) -> None:
        """Parses `]`s up to and with the next comma."""
        while open_rows:
            if closed:
                count = open_rows.pop()
                depth = len(open_rows)
                if shape[depth] not in (-1, count):
                    self.raise_error("expected rows of equal length")
                shape[depth] = count
                if not open_rows:
                    return
            open_rows[-1] += 1
            if self.parse_optional_punctuation(",") is not None:
                return
            self.parse_punctuation("]", " in dense attribute")
            closed = True

    def _optional_element(self) -> Any:
        """Parses a string (as bytes) or a number; digits in `0x` form are bits, not a value."""
        if (data := self.parse_optional_bytes_literal()) is not None:
            return data
        if (text := self.parse_optional_str_literal()) is not None:
            return text.encode()
        if self.parse_optional_punctuation("(") is not None:
            real = self._number()
            self.parse_punctuation(",")
            imaginary = self._number()
            self.parse_punctuation(")")
            return (real, imaginary)
        return self._optional_number()

    def _number(self) -> Any:
        return self.expect(self._optional_number, "expected a number")

    def _optional_number(self) -> Any:
        if (truth := self.parse_optional_boolean()) is not None:
            return truth
        position = self.pos
        number = self.parse_optional_number()
        if isinstance(number, int) and self.lexer.input.content[position : position + 2] == "0x":
            return _Bits(number)
        return number

    def _array(
        self, items: list[Any], shape: list[int], element: Attribute, dims: types.Shape, position: Position
    ) -> tensor_data.Array:
        dtype = types.numpy_dtype(element)
        if math.prod(dims) * dtype.itemsize > MAX_BYTES:
            self.raise_error(f"expected at most {MAX_BYTES} bytes in a constant", position)
        if math.prod(dims) == 0 and not items:
            return np.zeros(dims, dtype)
        if not shape and isinstance(items[0], bytes) and element != types.STRING:
            return self._from_hexadecimal(items[0], element, dims, position)
        if shape and tuple(shape) != dims:
            self.raise_error(f"expected elements of shape {list(dims)}, got {shape}", position)
        try:
            values = _converted(items, element, dtype)
        except (TypeError, ValueError, OverflowError):
            self.raise_error(f"expected elements of type {element}", position)
        return values.reshape(dims) if shape else np.broadcast_to(values.reshape(()), dims)

    def _from_hexadecimal(
        self, digits: bytes, element: Attribute, dims: types.Shape, position: Position
    ) -> tensor_data.Array:
        try:
            if digits[:2] != b"0x":
                raise ValueError
            data = bytes.fromhex(digits[2:].decode())
        except ValueError:
            self.raise_error("expected a string of hexadecimal digits that begins with 0x", position)
        return self._from_bytes(data, element, dims, position)

    def _from_bytes(
        self, data: bytes, element: Attribute, dims: types.Shape, position: Position | None
    ) -> tensor_data.Array:
        values = dense_text.from_hexadecimal(data, math.prod(dims), element)
        if values is None:
            self.raise_error(f"{len(data)} bytes don't fill a tensor of {element} and shape {list(dims)}", position)
        return values.reshape(dims)

    def _resource(self, attribute: DenseResourceAttr) -> Attribute:
        """Returns the constant that a resource of the file is; one that is not there (elided) stays as it is."""
        interface = self.ctx.get_dialect("builtin").get_interface(OpAsmDialectInterface)
        digits = interface.lookup(attribute.resource_handle.data) if interface is not None else None
        if not digits or not isinstance(attribute.type, TensorType):
            return attribute
        dims, element = types.shape_of(attribute.type), attribute.type.element_type
        if dims is None or not types.is_static(dims) or not dense_text.can_write(element):
            self.raise_error(f"the resource {attribute.resource_handle.data!r} can't be a {attribute.type}")
        try:
            data = bytes.fromhex(digits.removeprefix("0x"))[_RESOURCE_HEADER:]
        except ValueError:
            self.raise_error(f"the resource {attribute.resource_handle.data!r} is no string of hexadecimal digits")
        return tensor_data.of_array(self._from_bytes(data, element, dims, None), element)


class _Bits(int):
    """A number that was written as its bits."""


def _converted(items: list[Any], element: Attribute, dtype: np.dtype[Any]) -> tensor_data.Array:
    """Returns parsed elements as a flat array.

    Raises:
        TypeError, ValueError, OverflowError: They are not of the element type.
    """
    if dtype.kind == "O":
        return _strings(items)
    if isinstance(element, ComplexType):
        part = np.dtype(np.float64 if dtype == np.complex128 else np.float32)
        parts = [_floating(number, part) for pair in items for number in pair]
        return np.array(parts, part).view(dtype)
    if dtype == np.bool_:
        return np.array([_integer(item, 0, 1) != 0 for item in items], dtype)
    if isinstance(element, IntegerType):
        width, unsigned = element.width.data, element.signedness.data == Signedness.UNSIGNED
        # Signless numbers may be written either way.
        numbers = [_integer(item, 0 if unsigned else -1 << (width - 1), (1 << width) - 1) for item in items]
        if unsigned:
            return np.array(numbers, np.uint64).astype(dtype)
        wrapped = [number - (1 << width) if number >> (width - 1) == 1 else number for number in numbers]
        return np.array(wrapped, np.int64).astype(dtype)
    return np.array([_floating(item, dtype) for item in items], dtype)


def _strings(items: list[Any]) -> tensor_data.Array:
    if not all(isinstance(item, bytes) for item in items):
        raise TypeError
    values = np.empty(len(items), object)
    values[:] = items
    return values


def _integer(item: Any, least: int, most: int) -> int:
    if not isinstance(item, int) or (isinstance(item, bool) and most != 1):
        raise TypeError
    if not least <= item <= most:
        raise OverflowError
    return int(item)


def _floating(item: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(item, _Bits):
        return np.frombuffer(item.to_bytes(dtype.itemsize, "little"), dtype)[0]
    if isinstance(item, bool) or not isinstance(item, int | float):
        raise TypeError
    return dtype.type(float(item))


def _check_strings(text: Input[str]) -> None:
    """Checks that every string ends; xDSL's lexer takes exponential time to see that one doesn't."""
    for match in _QUOTED.finditer(text.content):
        if match["open"]:
            raise ParseError(
                Span(match.start(), match.end(), text),
                r"expected a string that ends on its line; "
                r"escapes are \n, \t, \\, \" and two hexadecimal digits",
            )


def _split_locations(text: str) -> tuple[str, list[tuple[str, str, int]]]:
    """Takes the definitions of location aliases out of a text, since they come after their uses.

    Args:
        text: The text.

    Returns:
        The text with these lines as comments, of the same length; and aliases, what they stand for and where that
        is, those that refer to others after these.
    """
    found: dict[str, tuple[str, int]] = {}

    def comment(match: re.Match[str]) -> str:
        alias, location = match.groups()
        if alias in found:
            return match[0]  # xDSL will complain that there are two
        found[alias] = (location, match.start(2))
        return "//" + match[0][2:]

    if "\n#" not in text and not text.startswith("#"):
        return text, []
    text = _LOCATION_ALIAS.sub(comment, text)
    references = {alias: _REFERENCE.findall(_STRING.sub("", location)) for alias, (location, _) in found.items()}
    return text, [(alias, *found[alias]) for alias in _in_order(references)]


def _in_order(references: dict[str, list[str]]) -> Iterator[str]:
    """Yields names after the names that they refer to; in a circle, any order."""
    done: set[str] = set()
    for root in references:
        stack = [root]
        while stack:
            name = stack[-1]
            if name in done:
                stack.pop()
                continue
            missing = [other for other in references[name] if other in references and other not in done]
            missing = [other for other in missing if other not in stack] if len(stack) > 1 else missing
            if missing and name not in missing:
                stack += missing
                continue
            done.add(name)
            yield stack.pop()
