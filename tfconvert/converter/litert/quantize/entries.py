"""The signatures that samples are for."""

from __future__ import annotations

from tfconvert.converter.ir.interface import interface_of
from tfconvert.converter.litert.quantize.samples import Entry, Input
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION
from tfconvert.schema.ir.builtin import ModuleOp


def entries_of(module: ModuleOp) -> tuple[list[FuncOp], list[Entry]]:
    """Returns the exported functions of a module, and what each takes."""
    functions = [op for op in module.ops if isinstance(op, FuncOp) and ENTRY_FUNCTION in op.attributes]
    return functions, [_entry(function) for function in functions]


def _entry(function: FuncOp) -> Entry:
    interface = interface_of(function)
    inputs = [
        Input(tensor.name, types.numpy_dtype(types.element_of(argument.type)), types.shape_of(argument.type))
        for tensor, argument in zip(interface.inputs, function.body.block.args, strict=True)
    ]
    return Entry(interface.keys[0] if interface.keys else "", tuple(inputs))
