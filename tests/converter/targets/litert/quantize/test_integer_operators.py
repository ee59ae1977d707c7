"""Each row of the rules: an integer operator has the results of the float operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from tests.converter.targets.litert.optimize.graph import Graph
from tests.converter.targets.litert.quantize.one_op import CASES, build
from tfconvert.converter.targets.litert.passes.quantize import QuantizeOps
from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.converter.targets.litert.quantize.parameters import range_of, set_ranges
from tfconvert.converter.targets.litert.quantize.rules import RULES, Rule
from tfconvert.converter.targets.litert.quantize.variables import ASSIGN, READ
from tfconvert.converter.targets.litert.runtime_process import LiteRTProcess
from tfconvert.exporters.tflite.model import export
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.quant import UniformType
from tfconvert.schema.ir.types import I8, I16, IntegerType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.kernels import table
from tfconvert.settings.quantization import Quantize

Array = np.ndarray[Any, np.dtype[Any]]

STEPS = {I8: 1, I16: 4}
"""How far results may be off, in steps of the result."""

KERNELS = {"builtin": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, "xnnpack": OpResolverType.AUTO}


def _operator(case: str) -> str:
    return case.partition(":")[0]


ROWS = [
    pytest.param(case, storage, id=f"{case}-{storage.width}")
    for case in CASES
    for storage in RULES.get(f"tfl.{_operator(case)}", Rule()).types
]


def _run(content: bytes, inputs: list[Array], kernels: str) -> list[Array]:
    interpreter: Any = Interpreter(model_content=content, num_threads=1, experimental_op_resolver_type=KERNELS[kernels])
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def _calibrate(graph: Graph, inputs: list[Array]) -> None:
    """Sets the ranges of all computed values."""
    (function,) = (op for op in graph.module.ops if isinstance(op, FuncOp))
    block = function.body.block
    end = block.last_op
    assert end is not None
    values: list[Value] = [result for op in graph.ops for result in op.results]
    returned = list(end.operands)
    end.set_operands(values)
    found = _run(export(graph.module).to_bytes(), inputs, "builtin")
    end.set_operands(returned)
    seen = dict(zip([*block.args, *values], [*inputs, *found], strict=True))
    set_ranges(
        {
            value: Range(float(each.min()), float(each.max()))
            for value, each in seen.items()
            if value.element is types.F32
        }
    )


def _steps(graph: Graph) -> list[float]:
    """Returns the size of a result's step, 0 for results that are not quantized."""
    ends = [value for op in graph.ops if op.name == "tfl.dequantize" for value in op.operands]
    elements = [value.element for value in ends]
    return [element.data.scales[0] for element in elements if isinstance(element, UniformType)]


def test_every_row_has_a_case() -> None:
    # LSTMs and variables have tests of their own, in several forms.
    tested = {READ, ASSIGN, *(name for name, rule in RULES.items() if rule.gates)}
    assert {name.removeprefix("tfl.") for name in RULES if name not in tested} == set(map(_operator, CASES))


@pytest.mark.parametrize(("case", "storage"), ROWS)
def test_integers_compute_what_floats_do(case: str, storage: IntegerType) -> None:
    graph, inputs = build(CASES[case], storage)
    expected = _run(graph.content, inputs, "builtin")
    _calibrate(graph, inputs)
    QuantizeOps(Quantize("int8" if storage is I8 else "int16", strict=True)).apply(graph.module)
    verify(graph.module)
    (op,) = (op for op in graph.ops if op.name == f"tfl.{_operator(case)}")
    elements = [value.element for value in (*op.operands, *op.results)]
    assert types.F32 not in elements
    assert any(isinstance(element, UniformType) and element.storage is storage for element in elements)
    steps = _steps(graph)
    for kernels in KERNELS:
        results = _run(graph.content, inputs, kernels)
        for index, (one, other) in enumerate(zip(results, expected, strict=True)):
            if other.dtype == np.float32:
                assert np.abs(one - other).max() <= (STEPS[storage] + 1e-3) * steps[min(index, len(steps) - 1)], kernels
            else:
                np.testing.assert_array_equal(one, other, kernels)


@pytest.mark.parametrize(
    ("case", "storage", "operands", "results"),
    [
        ("add", I8, 0, -24),
        ("add", I16, 0, -24),
        ("squared_difference", I8, 0, -24),
        ("squared_difference", I8, 12, 0),
        ("hard_swish", I8, 0, -10),
        ("conv_2d", I8, 0, -24),
        ("conv_2d:relu6", I16, 0, -24),
        ("fully_connected", I8, 0, -24),
        ("depthwise_conv_2d", I8, 0, -24),
        ("transpose_conv", I8, 0, -24),
        ("less", I8, 5, 0),
        ("equal", I16, 12, 0),
    ],
)
def test_no_range_makes_a_kernel_fail(case: str, storage: IntegerType, operands: int, results: int) -> None:
    # The runtime aborts, or refuses the file, if scales are out of proportion. The ranges are those of a model that
    # multiplies its inputs, or whose results cancel each other out.
    graph, inputs = build(CASES[case], storage)
    _calibrate(graph, inputs)
    seen = {value: (operands, range_of(value)) for value in graph.inputs}
    seen |= {result: (results, range_of(result)) for op in graph.ops for result in op.results}
    set_ranges(
        {
            value: Range(each.low * 2.0**power, each.high * 2.0**power)
            for value, (power, each) in seen.items()
            if each is not None
        }
    )
    QuantizeOps(Quantize("int8" if storage is I8 else "int16")).apply(graph.module)
    with LiteRTProcess() as runtime:
        fed = {str(number): value * np.float32(2**operands) for number, value in enumerate(inputs)}
        assert len(runtime.run_file(graph.content, "", fed, ["y"])) == 1


# By the operator: the forms of its operands before the bias.
BIASED = {"tfl.fully_connected": ("i8", "i8w"), "tfl.transpose_conv": ("i8w", "i8")}


def test_kernels_do_without_the_biases_that_are_left_out() -> None:
    """A bias of zeros is left out where the rule doesn't ask for one."""
    assert {name for name, rule in RULES.items() if _may_lack_bias(rule)} == BIASED.keys()
    for name, forms in BIASED.items():
        operator = name.removeprefix("tfl.").upper()
        found = table().of(operator, f"{','.join(forms)},absent>i8")
        assert [row.is_ok for row in found] == [True]


def _may_lack_bias(rule: Rule) -> bool:
    return not rule.needs_bias and any(bias is not None for _, bias in rule.weights)
