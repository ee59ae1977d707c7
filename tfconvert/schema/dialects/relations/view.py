"""An op as rules see it: operands, results and attributes by the names of its definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, FloatAttr, IntegerAttr, StringAttr
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

Plain = int | float | str | list["Plain"]
"""The values of attributes that rules ask for."""


class View:
    """An op's values and attributes by name.

    Args:
        op: The op.
        values: Its operands and results by argument.
        defaults: The values of attributes that are not there.
    """

    __slots__ = ("_defaults", "_values", "op")

    def __init__(
        self,
        op: Operation,
        values: Mapping[str, Sequence[Value]],
        defaults: Callable[[str], Plain | None] = lambda name: None,
    ) -> None:
        self.op = op
        self._values = values
        self._defaults = defaults

    def fail(self, message: str) -> NoReturn:
        """Refuses the op.

        Raises:
            VerifyError: Always.
        """
        raise VerifyError(f"{self.op.name}: {message}")

    def values(self, name: str) -> Sequence[Value]:
        """Returns the values of an argument; none if it is absent."""
        return self._values.get(name, ())

    def value(self, name: str) -> Value | None:
        """Returns the value of an argument that is not a list, `None` if it is absent."""
        values = self.values(name)
        return values[0] if values else None

    def type(self, name: str) -> Attribute | None:
        """Returns the type of an argument, `None` if it is absent."""
        value = self.value(name)
        return None if value is None else value.type

    def element(self, name: str) -> Attribute | None:
        """Returns the element type of an argument without a reference's `ref`, `None` if it is absent."""
        found = self.type(name)
        return None if found is None else types.dereferenced(types.element_of(found))

    def shape(self, name: str) -> types.Shape | None:
        """Returns the shape of an argument, `None` if it is unknown."""
        found = self.type(name)
        return None if found is None else types.shape_of(found)

    def dim(self, name: str, index: int) -> int:
        """Returns a dimension of an argument, -1 if it is unknown or not there."""
        shape = self.shape(name)
        return shape[index] if shape is not None and -len(shape) <= index < len(shape) else -1

    def constant(self, name: str) -> Array | None:
        """Returns the elements of a small constant of integers, `None` if an argument is anything else."""
        value = self.value(name)
        found = None if value is None else tensor_data.constant_of(value)
        if found is None or not tensor_data.is_small(found):
            return None
        array = tensor_data.to_array(found)
        return array if array.dtype.kind in "iu" else None

    def integers(self, name: str) -> list[int] | None:
        """Returns the elements of a small constant of integers, row by row."""
        array = self.constant(name)
        return None if array is None else [int(item) for item in array.ravel().tolist()]

    def known_shape(self, name: str) -> types.Shape | None:
        """Returns the shape of an argument; that of its value if it is a constant."""
        array = self.constant(name)
        return self.shape(name) if array is None else array.shape

    def attribute(self, name: str) -> Plain | None:
        """Returns the value of an attribute, or its default; `None` if it has neither or is of another kind."""
        found = self.op.properties.get(name)
        return self._defaults(name) if found is None else _plain(found)

    def integer(self, name: str, otherwise: int = 0) -> int:
        """Returns an attribute that is an integer."""
        found = self.attribute(name)
        return found if isinstance(found, int) else otherwise

    def string(self, name: str) -> str:
        """Returns an attribute that is a string, empty if it is not."""
        found = self.attribute(name)
        return found if isinstance(found, str) else ""

    def list(self, name: str) -> list[int]:
        """Returns an attribute that is a list of integers, empty if it is not."""
        found = self.attribute(name)
        return [item for item in found if isinstance(item, int)] if isinstance(found, list) else []


def _plain(attribute: Attribute) -> Plain | None:
    if isinstance(attribute, IntegerAttr | FloatAttr):
        return attribute.value
    if isinstance(attribute, StringAttr):
        return attribute.data
    if isinstance(attribute, ArrayAttr):
        items = [_plain(item) for item in attribute.data]
        return [item for item in items if item is not None]
    return None
