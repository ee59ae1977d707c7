"""The description of functions in an IREE program. IREE keeps it, and loading the program reads it.

func.func @main(...) attributes {iree.reflection = {tfconvert.interface = "..."}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.interface import Tensor, interface_of
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.attributes import DictionaryAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.targets import DRIVERS

_REFLECTION = "iree.reflection"
_KEY = "tfconvert.interface"


class Description(NamedTuple):
    """The description of a function.

    Attributes:
        keys: The keys of the signatures that the function implements.
        inputs: Its inputs.
        outputs: Its outputs.
        backend: The backend that the program was compiled for.
        has_parameters: Whether weights are in a file beside the program.
    """

    keys: tuple[str, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    backend: str
    has_parameters: bool


def describe(module: ModuleOp, backend: str, *, has_parameters: bool) -> None:
    """Adds its description to each exported function.

    Args:
        module: The module to compile.
        backend: The backend that it is compiled for.
        has_parameters: Whether weights are in a file beside the program.
    """
    for function in module.ops:
        if not isinstance(function, FuncOp) or symbol_table.is_private(function):
            continue
        interface = interface_of(function)
        told = {
            "signatures": interface.keys,
            "inputs": [each.to_dict() | {"type": each.type} for each in interface.inputs],
            "outputs": [each.to_dict() | {"type": each.type} for each in interface.outputs],
            "backend": backend,
            "parameters": has_parameters,
        }
        text = StringAttr.get(json.dumps(told, allow_nan=False, separators=(",", ":")))
        function.attributes[_REFLECTION] = DictionaryAttr.get({_KEY: text})


def description_in(reflection: Mapping[str, str]) -> Description | None:
    """Returns a function's description in a program; `None` if it is missing or invalid.

    Args:
        reflection: The attributes that IREE keeps of the function.
    """
    try:
        told = json.loads(reflection[_KEY])
        inputs, outputs = _tensors(told["inputs"]), _tensors(told["outputs"])
        keys = tuple(str(key) for key in told["signatures"])
        found = Description(keys, inputs, outputs, str(told["backend"]), bool(told["parameters"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return found if found.backend in DRIVERS else None


def _tensors(told: Sequence[Mapping[str, Any]]) -> tuple[Tensor, ...]:
    found = []
    for each in told:
        shape = tuple(None if dim is None else int(dim) for dim in each["shape"])
        found.append(Tensor(str(each["name"]), str(each["type"]), str(each["dtype"]), shape))
    return tuple(found)
