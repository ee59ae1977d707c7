"""The mark of a model to cut: the tensors that become a function's inputs and outputs.

An importer sets it on exported functions, since tensors inside called functions have no names before these are
imported; the pass `cut` cuts and removes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_attributes import ShapeAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr

CUT = "tfconvert.cut"
"""The attribute of a function."""


class End(NamedTuple):
    """A tensor at which a function is cut."""

    tensor: str  # The name to look it up by: that of an input or output of the function, or `node:index`.
    name: str  # Its name as an input or output.
    shape: types.Shape | None = None  # The shape that the user sets, or `None`.


class Cut(NamedTuple):
    """The place to cut a function at."""

    inputs: tuple[End, ...] | None = None  # The new inputs, in order; `None` keeps the required ones.
    outputs: tuple[End, ...] | None = None  # The new outputs, in order; `None` keeps them.
    # The first dimension of every new input whose first dimension is unknown; `None` leaves them.
    batch: int | None = None

    def to_attribute(self) -> Attribute:
        """Returns the mark."""
        sides = {side: ends for side, ends in (("inputs", self.inputs), ("outputs", self.outputs)) if ends is not None}
        marks: dict[str, Attribute] = {side: ArrayAttr.get(map(_end_attribute, ends)) for side, ends in sides.items()}
        if self.batch is not None:
            marks["batch"] = attrs.integer(self.batch)
        return DictionaryAttr.get(marks)


def cut_of(function: FuncOp) -> Cut | None:
    """Returns the place to cut a function at, `None` if it has no mark.

    Raises:
        ConversionError: The mark is malformed, as it may be in a text (`invalid-ir`).
    """
    mark = function.attributes.get(CUT)
    if mark is None:
        return None
    if not isinstance(mark, DictionaryAttr):
        raise _malformed(function)
    inputs, outputs = (
        tuple(_end(each, function) for each in _items(mark.data[side], function)) if side in mark.data else None
        for side in ("inputs", "outputs")
    )
    batch = mark.data.get("batch")
    return Cut(inputs, outputs, batch.value if isinstance(batch, IntegerAttr) else None)


def _end_attribute(end: End) -> Attribute:
    marks: dict[str, Attribute] = {"tensor": attrs.string(end.tensor), "name": attrs.string(end.name)}
    if end.shape is not None:
        marks["shape"] = ShapeAttr.get(end.shape)
    return DictionaryAttr.get(marks)


def _items(attribute: Attribute, function: FuncOp) -> Sequence[Attribute]:
    if not isinstance(attribute, ArrayAttr):
        raise _malformed(function)
    return attribute.data


def _end(attribute: Attribute, function: FuncOp) -> End:
    held = attribute.data if isinstance(attribute, DictionaryAttr) else {}
    tensor, name, shape = held.get("tensor"), held.get("name"), held.get("shape")
    if not isinstance(tensor, StringAttr) or not isinstance(name, StringAttr):
        raise _malformed(function)
    return End(tensor.data, name.data, shape.shape if isinstance(shape, ShapeAttr) else None)


def _malformed(function: FuncOp) -> Exception:
    return error(
        "invalid-ir",
        f"{CUT} names no tensors",
        op=function.name,
        node=function.sym_name,
        hint='write {inputs = [{name = "x", tensor = "x:0"}]}',
    )
