"""Prints IR as text that is whole: every constant with its value, in forms that TensorFlow's MLIR reads.

xDSL's own printer, `str(module)`, leaves out large constants and writes some small ones in ways that MLIR refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer

from tfconvert.schema.dialects import dense_text, tensor_data, tensor_proto, types
from tfconvert.schema.dialects.tensor_data import ELIDED, Constant, TensorData
from tfconvert.schema.dialects.tf_attributes import NO_PROPERTIES


class IRPrinter(Printer):
    """xDSL's printer, which also writes constants.

    Args:
        stream: Where to.
        elide: Constants of more elements than this are left out; `None` writes them all.
        locations: Whether every op's location is written, too.
    """

    def __init__(self, stream: IO[str], *, elide: int | None = None, locations: bool = False) -> None:
        super().__init__(stream, print_debuginfo=locations)
        self.elide = elide

    def print_attribute(self, attribute: Attribute) -> None:
        """Prints an attribute or a type."""
        if isinstance(attribute, TensorData | DenseIntOrFPElementsAttr) and isinstance(attribute.type, TensorType):
            self._print_constant(attribute, attribute.type)
        else:
            super().print_attribute(attribute)

    def print_op_with_default_format(self, op: Operation) -> None:
        """Prints an op but for its results and name, in the generic form."""
        if op.name in NO_PROPERTIES and op.properties:
            self._print_without_properties(op)
        else:
            super().print_op_with_default_format(op)

    def _print_without_properties(self, op: Operation) -> None:
        attributes: Mapping[str, Attribute] = {**op.properties, **op.attributes}
        self.print_operands(op.operands)
        self.print_regions(op.regions)
        self.print_op_attributes(attributes)
        self.print_string(" : ")
        self.print_operation_type(op)

    def _print_constant(self, constant: Constant, tensor_type: TensorType[Attribute]) -> None:
        size = 1
        for dim in tensor_type.get_shape():
            size *= dim
        row = types.from_mlir(tensor_type.element_type)
        if self.elide is not None and size > self.elide:
            self.print_string(f"{ELIDED} : ")
        elif row is None:
            super().print_attribute(constant)
            return
        elif not dense_text.can_write(row.mlir):
            self.print_attribute(tensor_proto.of_constant(tensor_data.to_array(constant), tensor_type))
            return
        else:
            self._print_elements(constant, row)
        self.print_attribute(tensor_type)

    def _print_elements(self, constant: Constant, row: types.ElementType) -> None:
        self.print_string("dense<")
        for piece in dense_text.literal(tensor_data.to_array(constant), row.mlir):
            self.print_string(piece)
        self.print_string("> : ")
        if isinstance(constant, TensorData):
            constant.source.release()


def print_module(module: ModuleOp, stream: IO[str], *, elide: int | None, locations: bool = False) -> None:
    """Writes a module as text, and a line's end.

    Args:
        module: The module.
        stream: Where to.
        elide: Constants of more elements than this are left out; `None` writes them all.
        locations: Whether every op's location is written, too.
    """
    IRPrinter(stream, elide=elide, locations=locations).print_op(module)
    stream.write("\n")
