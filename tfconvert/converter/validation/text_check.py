"""Compares StableHLO text with its model: the reference executor runs both, at several sizes.

It runs the text as written, including the weights. If the model accepts inputs that the text rejects, that is a defect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.interface import Interface
from tfconvert.converter.targets.stablehlo.shape_functions import SUFFIX
from tfconvert.converter.validation import result_check
from tfconvert.converter.validation.function_check import Engine
from tfconvert.converter.validation.result_check import Verification
from tfconvert.converter.validation.witness import Witness
from tfconvert.importers.source import Source
from tfconvert.ops.call import Array
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.func import STATE, WEIGHT, FuncOp, defined_functions
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.tensor_data import TensorData
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.verify_options import VERIFY_SECONDS


def compared(
    source: Source,
    content: bytes,
    data: Any = None,
    beside: Mapping[str, TensorData] = MappingProxyType({}),
    witness: Witness | None = None,
    seconds: float = VERIFY_SECONDS,
) -> Verification:
    """Compares StableHLO text with a model.

    Args:
        source: The model.
        content: The text.
        data: The user's inputs, as `Quantize.samples`; `None` for random ones.
        beside: The values of arguments that are weights, and the initial values of state.
        witness: Computes the model's results; `None` for the reference executor.
        seconds: The time limit.
    """
    module, functions = result_check.exported(source)
    if not functions:
        return result_check.NAMELESS
    text = IRParser(content.decode()).parse_module()
    return result_check.checked(
        module, functions, data, lambda interface: _engine(text, interface, beside), witness=witness, seconds=seconds
    )


def _engine(text: ModuleOp, interface: Interface, beside: Mapping[str, TensorData]) -> Engine:
    function = _function_of(text, interface)
    held = {at: tensor_data.to_array(beside[name]) for at, name in _held(function.arg_attrs).items()}
    left = _held(function.res_attrs)

    def fed(inputs: Sequence[Array]) -> list[Array]:
        own = iter(inputs)
        count = len(inputs) + len(held)
        return [held[at] if at in held else next(own) for at in range(count)]

    def run(inputs: Sequence[Array]) -> Sequence[Array]:
        try:
            results = Executor(text).run(function.sym_name, fed(inputs))
            return [each for at, each in enumerate(results) if at not in left]
        except ConversionError as problem:
            shapes = ", ".join(str(list(each.shape)) for each in inputs)
            raise error(
                "verification-failed",
                f"the model runs on inputs of the shapes {shapes}, but not the text: {problem.diagnostics[0]}",
                hint="please report it",
            ) from problem

    return run


def _held(attributes: ArrayAttr | None) -> dict[int, str]:
    """Returns the names of arguments or results that are weights or state, by number."""
    found: dict[int, str] = {}
    for at, each in enumerate(() if attributes is None else attributes.data):
        told = each.data if isinstance(each, DictionaryAttr) else {}
        name = told.get(WEIGHT) or told.get(STATE)
        if isinstance(name, StringAttr):
            found[at] = name.data
    return found


def _function_of(text: ModuleOp, interface: Interface) -> FuncOp:
    """Returns the function for an interface: the only one, or the one named after its signature."""
    defined = defined_functions(text)
    sizes = {name + SUFFIX for name in defined}
    functions = [each for name, each in defined.items() if name not in sizes and not symbol_table.is_private(each)]
    named = {each.sym_name: each for each in functions}
    found = (named.get(key) for key in (*interface.keys, interface.function))
    return functions[0] if len(functions) == 1 else next(each for each in found if each is not None)
