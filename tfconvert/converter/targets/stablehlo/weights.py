"""Large constants become the last arguments of public functions.

They are written to a file beside the text, by name. In the order of their first use each is one argument, however often
it is used.

    func.func @main(%x: tensor<4x1024xf32>, %0: tensor<1024x1024xf32> {tfconvert.weight = "kernel"})
"""

from __future__ import annotations

from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import erase, update_function_type
from tfconvert.exporters.mlir import is_weight
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects.func import INITIAL, WEIGHT, FuncOp, defined_functions
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.dialects.tensor_data import TensorData
from tfconvert.schema.dialects.tf_saved_model import INDEX_PATH
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_NOTHING = DictionaryAttr.get({})


def as_arguments(module: ModuleOp) -> None:
    """Takes the weights out of public functions; equal ones have one name in all of them."""
    names: dict[TensorData, str] = {}
    for function in defined_functions(module).values():
        if not symbol_table.is_private(function):
            _take_out(function, names)


def _take_out(function: FuncOp, names: dict[TensorData, str]) -> None:
    block = function.body.block
    known = len(block.args)
    made: dict[TensorData, Value] = {}
    for op in list(function.body.walk()):
        weight = op.properties.get("value")
        if op.name != "stablehlo.constant" or not isinstance(weight, TensorData) or not is_weight(weight):
            continue
        if weight not in made:
            made[weight] = block.insert_arg(weight.type, len(block.args))
            if weight not in names:
                names[weight] = _new_name(op, set(names.values()))
        op.results[0].replace_all_uses_with(made[weight])
        erase(op)
    if made:
        before = [] if function.arg_attrs is None else list(function.arg_attrs.data[:known])
        before += [_NOTHING] * (known - len(before))
        function.arg_attrs = ArrayAttr.get([*before, *(_named(names[weight], weight) for weight in made)])
        update_function_type(function)


def _new_name(op: Operation, taken: set[str]) -> str:
    name = node_of(op.location) or "weight"
    if name not in taken:
        return name
    return next(each for number in range(1, len(taken) + 2) if (each := f"{name}_{number}") not in taken)


def _named(name: str, weight: TensorData) -> Attribute:
    return DictionaryAttr.get({INDEX_PATH: attrs.of([name]), WEIGHT: attrs.string(name), INITIAL: weight})
