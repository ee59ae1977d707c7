"""Compares a text of StableHLO with the model that it was made of: the reference executor runs both, at several sizes.

It runs the text as it is written, weights and all. What the model computes and the text refuses is a defect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.interface import Interface
from tfconvert.converter.kernels.call import Array
from tfconvert.converter.validation import result_check
from tfconvert.converter.validation.result_check import Engine, Verification
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp


def compared(source: Source, content: bytes, data: Any = None) -> Verification:
    """Returns how a text compares with a model.

    Args:
        source: The model.
        content: The text.
        data: The user's inputs, as `Quantize.samples`; `None` for random ones.

    Raises:
        ConversionError: The text can't be run on what the model takes (`verification-failed`), or the data is not
            what the model takes (`wrong-sample`).
    """
    module, functions = result_check.exported(source)
    if not functions:
        return result_check.NAMELESS
    text = IRParser(content.decode()).parse_module()
    return result_check.checked(module, functions, data, lambda interface: _engine(text, interface))


def _engine(text: ModuleOp, interface: Interface) -> Engine:
    function = _function_of(text, interface)

    def run(inputs: Sequence[Array]) -> Sequence[Array]:
        try:
            return Executor(text).run(function.sym_name, inputs)
        except ConversionError as problem:
            shapes = ", ".join(str(list(each.shape)) for each in inputs)
            raise error(
                "verification-failed",
                f"the model runs on inputs of the shapes {shapes}, but not the text: {problem.diagnostics[0]}",
                hint="please report it",
            ) from problem

    return run


def _function_of(text: ModuleOp, interface: Interface) -> FuncOp:
    """Returns the function of a text that has an interface: the only one, or that of its signature's name."""
    functions = [each for each in symbol_table.defined_functions(text).values() if not symbol_table.is_private(each)]
    named = {each.sym_name: each for each in functions}
    found = (named.get(key) for key in (*interface.keys, interface.function))
    return functions[0] if len(functions) == 1 else next(each for each in found if each is not None)
