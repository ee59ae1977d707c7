"""The interface of an exported function: its signature keys, and its inputs and outputs with names and types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tfconvert.schema.dialects import quant, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION, EXPORTED_NAMES
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp


class Tensor(NamedTuple):
    """A named input or output.

    Its type reads `f32[?,224,224,3]`, `?` for what is not known at compile time; integers that represent numbers have
    their scale and zero point beside them.
    """

    name: str
    type: str

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


class Interface(NamedTuple):
    """The interface of an exported function.

    Attributes:
        function: Its symbol.
        keys: The signatures that are this function; empty for a plain graph.
        inputs: Its inputs.
        outputs: Its outputs.
    """

    function: str
    keys: tuple[str, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            "signatures": list(self.keys),
            "inputs": {tensor.name: tensor.type for tensor in self.inputs},
            "outputs": {tensor.name: tensor.type for tensor in self.outputs},
        }

    def __str__(self) -> str:
        inputs, outputs = (", ".join(map(str, tensors)) for tensors in (self.inputs, self.outputs))
        return f"{', '.join(self.keys) or self.function}: {inputs or '()'} -> {outputs}"


def interfaces(module: ModuleOp) -> Iterator[Interface]:
    """Yields the interface of each exported function, in the module's order."""
    for function in module.ops:
        if isinstance(function, FuncOp) and ENTRY_FUNCTION in function.attributes:
            yield interface_of(function)


def entry_functions(module: ModuleOp) -> list[FuncOp]:
    """Returns the exported functions of a module; of one that names none, what becomes the main one."""
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    main = [function for function in functions if function.sym_name == "main"] or functions
    return [function for function in functions if ENTRY_FUNCTION in function.attributes] or main[:1]


def interface_of(function: FuncOp) -> Interface:
    """Returns the interface of an exported function."""
    exported = function.attributes.get(EXPORTED_NAMES)
    keys = [key.data for key in exported.data if isinstance(key, StringAttr)] if isinstance(exported, ArrayAttr) else []
    entry = function.attributes[ENTRY_FUNCTION]
    assert isinstance(entry, DictionaryAttr)
    return Interface(
        function.sym_name,
        tuple(keys),
        _tensors(entry.data["inputs"], function.function_type.inputs),
        _tensors(entry.data["outputs"], function.function_type.results),
    )


def _tensors(names: Attribute, tensor_types: Sequence[Attribute]) -> tuple[Tensor, ...]:
    assert isinstance(names, StringAttr)
    listed = names.data.split(",") if names.data else []
    return tuple(Tensor(name, _text(each)) for name, each in zip(listed, tensor_types, strict=True))


def _text(tensor_type: Attribute) -> str:
    element, shape = types.element_of(tensor_type), types.shape_of(tensor_type)
    name, scale = str(quant.storage_of(element)).removeprefix("!tf_type."), ""
    if isinstance(element, quant.UniformType) and element.data.axis is None:
        # As the runtime tells it: the number that an integer is, is the scale times its distance from the zero point.
        scale = f" (scale {element.data.scales[0]:.6g}, zero point {element.data.zero_points[0]})"
    return f"{name}[{','.join('?' if dim < 0 else str(dim) for dim in shape) if shape is not None else '...'}]{scale}"
