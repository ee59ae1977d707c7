"""Prints IR as complete text: every constant with its value, in forms that TensorFlow's MLIR reads.

`str(attribute)` and `text_of` leave out large constants.
"""

from __future__ import annotations

import math
from typing import IO

from tfconvert.schema.dialects import constant_text, dense_text, tensor_data, types
from tfconvert.schema.dialects.tensor_data import ELIDED, Constant, DenseElementsAttr, TensorData
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.printer import Printer


class IRPrinter(Printer):
    """A printer that also writes constants.

    Args:
        stream: The target.
        elide: Constants of more elements than this are left out; `None` writes them all.
        locations: Whether to write every op's location.
    """

    __slots__ = ("elide",)

    def __init__(self, stream: IO[str], *, elide: int | None = None, locations: bool = False) -> None:
        super().__init__(stream.write, locations=locations)
        self.elide = elide

    def attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, TensorData | DenseElementsAttr):
            self._constant(attribute)
        else:
            attribute.print(self)

    def _constant(self, constant: Constant) -> None:
        row = types.from_mlir(constant.type.element_type)
        if self.elide is not None and math.prod(constant.shape) > self.elide:
            self.write(f"{ELIDED} : ")
            self.attribute(constant.type)
        elif row is None:
            constant.print(self)
        elif not dense_text.can_write(row.mlir):
            self.attribute(constant_text.of_constant(tensor_data.to_array(constant), constant.type))
        else:
            tensor_data.print_dense(self, tensor_data.to_array(constant), constant.type)
            if isinstance(constant, TensorData):
                constant.source.release()


def print_module(module: ModuleOp, stream: IO[str], *, elide: int | None, locations: bool = False) -> None:
    """Writes a module as text, with a newline at the end.

    Args:
        module: The module.
        stream: The target.
        elide: Constants of more elements than this are left out; `None` writes them all.
        locations: Whether to write every op's location.
    """
    IRPrinter(stream, elide=elide, locations=locations).operation(module)
    stream.write("\n")
