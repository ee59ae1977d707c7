"""The signatures that samples are for."""

from __future__ import annotations

from tfconvert.converter.ir.interface import entry_functions, interface_of
from tfconvert.converter.targets.litert.quantize.samples import Entry, Input
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION
from tfconvert.schema.ir.builtin import ModuleOp


def entries_of(module: ModuleOp) -> tuple[list[FuncOp], list[Entry]]:
    """Returns the exported functions of a module, and what each takes."""
    functions = entry_functions(module)
    return functions, [_entry(function) for function in functions]


def _entry(function: FuncOp) -> Entry:
    arguments = function.body.block.args
    keys, names = [""], [f"arg{number}" for number in range(len(arguments))]
    if ENTRY_FUNCTION in function.attributes:
        interface = interface_of(function)
        keys = [*interface.keys, *interface.other_keys] or keys
        names = [tensor.name for tensor in interface.inputs]
    inputs = [
        Input(name, types.numpy_dtype(types.element_of(argument.type)), types.shape_of(argument.type))
        for name, argument in zip(names, arguments, strict=True)
    ]
    return Entry(keys[0], tuple(inputs), tuple(keys[1:]))
