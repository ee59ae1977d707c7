"""Runs modules through the stages of the compiler for dynamic sizes, and checks their invariants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfconvert.converter.executor import buffers
from tfconvert.converter.executor.executor import Executor, run
from tfconvert.converter.pipeline import pass_registry
from tfconvert.converter.pipeline.runner import run_stages
from tfconvert.converter.targets.stablehlo.buffers.cost import cost_of
from tfconvert.converter.targets.stablehlo.instruction_fusion import launches
from tfconvert.converter.targets.stablehlo.shape_functions import SUFFIX, Formulas, arguments, results
from tfconvert.converter.targets.stablehlo.stages import STAGES
from tfconvert.ops.call import Results
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import CallOp, FuncOp, defined_functions
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.values import Value
from tfconvert.settings.options import Options
from tfconvert.settings.targets import StableHLO


def stablehlo_of(text: str) -> ModuleOp:
    """Returns the StableHLO module for the text of `tf` ops."""
    module = IRParser(text).parse_module()
    for _ in run_stages(module, STAGES, Options(target=StableHLO())):
        pass
    return module


def staged(module: ModuleOp, *passes: str) -> ModuleOp:
    """Returns a copy of a module after passes."""
    copy = module.clone()
    for name in passes:
        pass_registry.pass_class(name)().apply(copy)
        verify(copy)
    return copy


def count_launches(module: ModuleOp) -> int:
    """Returns how many kernels the module's `main` runs."""
    return launches(defined_functions(module)["main"].body.block)


def check_sizes(module: ModuleOp, inputs: Sequence[np.ndarray]) -> int:
    """Asserts that every function's sizes match its shape function; returns the number of comparisons."""
    functions = defined_functions(module)
    entered: dict[str, Results] = {}
    left: dict[str, Results] = {}
    of_block: dict[tuple[Value, ...], str] = {(*each.body.block.args,): name for name, each in functions.items()}

    def watch(values: Sequence[Value], now: Results) -> None:
        name = of_block.get(tuple(values))
        if name is not None:
            entered[name] = now
        if values and isinstance(values[0].owner, CallOp):
            left[values[0].owner.callee] = now

    left["main"] = tuple(Executor(module, on_values=watch).run("main", inputs))
    compared = [name for name in left if name + SUFFIX in functions]
    for name in compared:
        found = run(module, name + SUFFIX, _taken(functions[name], functions, entered.get(name, ())))
        assert [int(each) for each in found] == _open_sizes(functions[name], left[name]), name
    return len(compared)


def _open_sizes(function: FuncOp, values: Results) -> list[int]:
    """Returns the sizes of a function's results that are dynamic in its type."""
    pairs = zip(function.function_type.results, values, strict=True)
    sizes = [zip(types.shape_of(kind) or (), value.shape, strict=True) for kind, value in pairs]
    return [own for each in sizes for size, own in each if size < 0]


def _taken(function: FuncOp, functions: dict[str, FuncOp], inputs: Results) -> list[np.ndarray]:
    terms = results(function, Formulas.of(function, functions))
    numbers = []
    for symbol in arguments(function, terms):
        assert isinstance(symbol.name, tuple)
        kind, number, at = symbol.name
        value = inputs[number]
        numbers.append(value.reshape(-1)[at] if kind == "element" else value.shape[at])
    return [np.array(each, np.int64) for each in numbers]


def on_buffers(module: ModuleOp, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """Runs a module's program on buffers; asserts that it needs no more memory than its formula."""
    program = staged(module, "legalize-to-buffers", "lower-to-library-calls")
    names = [f"x{index}" for index in range(len(inputs))]
    done = buffers.run(program, "main", inputs)
    sizes = {
        f"{name}.{axis}": size for name, each in zip(names, inputs, strict=True) for axis, size in enumerate(each.shape)
    }
    peak = cost_of(program, "main", names).at(sizes).peak
    assert not isinstance(peak, int) or peak >= done.peak
    return done.results
