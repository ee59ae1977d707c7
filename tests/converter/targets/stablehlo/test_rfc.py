"""A slice whose size is an operand, an addition, a product: the smallest model with dynamic sizes, stage by stage."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.converter.targets.stablehlo.stage_checks import check_sizes, count_launches, stablehlo_of, staged
from tfconvert.converter.executor.executor import run
from tfconvert.converter.targets.stablehlo.buffers.host import FUSION
from tfconvert.converter.targets.stablehlo.places import PLACE, violations
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.func import defined_functions
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.builtin import ModuleOp

TEXT = """
func.func @main(%arg0: tensor<4x8xf32>, %arg1: tensor<2xi64>, %arg2: tensor<?x?xf32>, %arg3: tensor<?x?xf32>)
    -> tensor<?x?xf32> {
  %starts = "tf.Const"() <{value = dense<0> : tensor<2xi64>}> : () -> tensor<2xi64>
  %0 = "tf.AddV2"(%arg1, %arg1) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %1 = "tf.Slice"(%arg0, %starts, %0) : (tensor<4x8xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
  %2 = "tf.AddV2"(%1, %arg2) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %3 = "tf.MatMul"(%2, %arg3) <{transpose_a = false, transpose_b = false}>
    : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  func.return %3 : tensor<?x?xf32>
}
"""


@pytest.fixture(scope="module")
def lowered() -> ModuleOp:
    """Returns the model as StableHLO."""
    return stablehlo_of(TEXT)


def _inputs(rows: int, columns: int, width: int) -> list[np.ndarray]:
    draw = np.random.default_rng(rows + 5 * columns + 50 * width)
    size = (2 * rows, 2 * columns)
    arrays = [draw.normal(size=(4, 8)), draw.normal(size=size), draw.normal(size=(size[1], width))]
    x, y, z = (each.astype(np.float32) for each in arrays)
    return [x, np.array([rows, columns], np.int64), y, z]


def _expected(inputs: list[np.ndarray]) -> np.ndarray:
    x, half, y, z = inputs
    rows, columns = 2 * half
    return (x[:rows, :columns] + y) @ z  # type: ignore[no-any-return]


def test_sizes_stay_operands(lowered: ModuleOp) -> None:
    """The first stage: the arithmetic of sizes is kept, not folded, and the slice takes its result."""
    (cut,) = (op for op in lowered.walk() if op.name == "stablehlo.real_dynamic_slice")
    assert str(cut.results[0].type) == "tensor<?x?xf32>"
    function = defined_functions(lowered)["main"]
    (doubled,) = (op for op in function.body.block.ops if set(op.operands) == {function.body.block.args[1]})
    assert doubled.name == "stablehlo.add"


def test_sizes_are_the_hosts_and_data_the_devices(lowered: ModuleOp) -> None:
    placed = staged(lowered, "place-shape-values")
    function = defined_functions(placed)["main"]
    assert violations(function) == []
    device = Counter(op.name for op in placed.walk() if op.attributes.get(PLACE) is StringAttr.get("device"))
    assert device == Counter(
        {
            "stablehlo.real_dynamic_slice": 1,
            "stablehlo.dynamic_broadcast_in_dim": 2,
            "stablehlo.add": 1,
            "stablehlo.dot_general": 1,
        }
    )
    assert 'tensor<2xi64> {dhlo.place = "host"}' in str(placed)


def test_slice_and_addition_are_one_kernel_and_the_product_another(lowered: ModuleOp) -> None:
    fused = staged(lowered, "place-shape-values", "fuse-instructions")
    assert count_launches(lowered) == 5
    assert count_launches(fused) == 2
    (kernel,) = (each for each in defined_functions(fused).values() if FUSION in each.attributes)
    assert kernel.attributes[FUSION] is StringAttr.get("loop")
    names = [op.name.removeprefix("stablehlo.") for op in kernel.body.block.ops if op.name != "stablehlo.constant"]
    assert names[0] == "real_dynamic_slice"
    assert names[-2:] == ["add", "func.return"]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(1, 2), st.integers(1, 4), st.integers(1, 9))
def test_every_stage_computes_the_same_and_knows_its_sizes(
    lowered: ModuleOp, rows: int, columns: int, width: int
) -> None:
    inputs = _inputs(rows, columns, width)
    stages = [lowered]
    for name in ("place-shape-values", "fuse-instructions", "add-shape-functions"):
        stages.append(staged(stages[-1], name))
    for stage in stages:
        (found,) = run(stage, "main", inputs)
        assert np.allclose(found, _expected(inputs), rtol=1e-5, atol=1e-5)
    assert check_sizes(stages[-1], inputs) == 2


def test_sizes_without_running(lowered: ModuleOp) -> None:
    """The shape function takes the elements of the size operand and the dynamic sizes of the others."""
    module = staged(lowered, "add-shape-functions")
    taken = [np.array(each, np.int64) for each in (1, 2, 6, 6, 9)]
    assert [int(each) for each in run(module, "main__shape", taken)] == [2, 9]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda inputs: [inputs[0], np.array([3, 1], np.int64), *inputs[2:]], "outside-of-tensor"),
        (lambda inputs: [*inputs[:2], inputs[2][:1].repeat(3, 0), inputs[3]], "unequal-sizes"),
        (lambda inputs: [*inputs[:3], inputs[3][1:]], "unequal-sizes"),
    ],
)
def test_what_does_not_fit_is_an_error_at_every_stage(lowered: ModuleOp, change: object, code: str) -> None:
    inputs = change(_inputs(1, 2, 3))  # type: ignore[operator]
    for stage in (lowered, staged(lowered, "place-shape-values", "fuse-instructions")):
        with pytest.raises(ConversionError) as refused:
            run(stage, "main", inputs)
        assert refused.value.code == code
