"""Programs on buffers: their results, that they free all buffers, and the formulas of their memory."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.converter.targets.stablehlo.random_modules import module_text
from tfconvert.converter.executor import buffers, executor
from tfconvert.converter.targets.stablehlo.buffers.cost import cost_of
from tfconvert.converter.targets.stablehlo.passes.legalize_to_buffers import LegalizeToBuffers
from tfconvert.converter.targets.stablehlo.passes.lower_to_library_calls import LowerToLibraryCalls
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp

COUNT = 1000
PARTS = 10


def _parsed(text: str) -> ModuleOp:
    return IRParser(text).parse_module()


def _check(seed: int) -> None:
    """Compares a random module with its program on buffers, at random sizes."""
    text = module_text(seed)
    module = _parsed(text)
    program = module.clone()
    LegalizeToBuffers().apply(program)
    if seed % 2:
        LowerToLibraryCalls().apply(program)
    if seed % 10 == 0:
        verify(program)
        assert str(_parsed(str(program))) == str(program)
    draw = random.Random(seed)
    n, m = draw.randint(1, 9), draw.randint(1, 9)
    numbers = np.random.default_rng(seed)
    inputs = [numbers.normal(size=shape).astype(np.float32) for shape in ((n, m), (n, m), (m, 4))]
    expected = executor.run(module, "main", inputs)
    run = buffers.run(program, "main", inputs)
    for own, other in zip(run.results, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-5, atol=1e-5 * max(1.0, float(np.abs(other).max(initial=0))))
    sizes = {"x.0": n, "x.1": m, "y.0": n, "y.1": m, "z.0": m}
    peak = cost_of(program, "main").at(sizes).peak
    if "stablehlo.sign" not in text:
        assert peak == run.peak
    elif isinstance(peak, int):
        # A branch that is not taken may need more.
        assert peak >= run.peak


@pytest.mark.parametrize("part", range(PARTS))
def test_random_modules(part: int) -> None:
    for seed in range(part * COUNT // PARTS, (part + 1) * COUNT // PARTS):
        try:
            _check(seed)
        except (AssertionError, ConversionError) as problem:
            raise AssertionError(f"seed {seed}: {problem}\n{module_text(seed)}") from problem


def test_random_modules_have_all_kinds_of_ops() -> None:
    texts = [module_text(seed) for seed in range(COUNT)]
    for name in ("if", "while", "real_dynamic_slice", "dynamic_reshape", "dot_general", "reduce", "sign"):
        assert sum(f"stablehlo.{name}" in text for text in texts) > COUNT // 50, name


ALLOC = '"memref.alloc"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2xf32>'
FREE = '"memref.dealloc"(%a) : (memref<2xf32>) -> ()'
COPY = '"memref.copy"(%x, %a) : (memref<2xf32>, memref<2xf32>) -> ()'


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ((f"%a = {ALLOC}", COPY), "memory-leak"),
        ((f"%a = {ALLOC}", FREE, COPY), "use-after-free"),
        ((f"%a = {ALLOC}", FREE, FREE), "double-free"),
        (('"memref.dealloc"(%x) : (memref<2xf32>) -> ()',), "double-free"),
    ],
)
def test_mistakes_with_memory_are_found(lines: tuple[str, ...], code: str) -> None:
    body = "\n".join(lines)
    module = _parsed(f"func.func @main(%x: memref<2xf32>) {{\n{body}\nfunc.return\n}}")
    with pytest.raises(ConversionError) as caught:
        buffers.run(module, "main", [np.ones(2, np.float32)])
    assert caught.value.code == code


def test_sizes_of_a_kernel_must_be_those_of_its_buffer() -> None:
    module = _parsed(
        "func.func @main(%x: memref<?xf32>) -> memref<2xf32> {\n"
        f"%a = {ALLOC}\n"
        '"memref.copy"(%x, %a) : (memref<?xf32>, memref<2xf32>) -> ()\nfunc.return %a : memref<2xf32>\n}'
    )
    with pytest.raises(ConversionError) as caught:
        buffers.run(module, "main", [np.ones(3, np.float32)])
    assert caught.value.code == "unequal-sizes"


def _program(text: str) -> ModuleOp:
    module = _parsed(text)
    LegalizeToBuffers().apply(module)
    LowerToLibraryCalls().apply(module)
    verify(module)
    return module


def test_rows_that_only_counting_tells_are_copied_in_a_second_phase() -> None:
    """The count is read when all has been computed; the exact result is allocated then."""
    text = """
    func.func @main(%x: tensor<?xf32>, %count: tensor<i32>) -> tensor<?xf32> {
      %0 = stablehlo.constant dense<0> : tensor<1xi32>
      %1 = stablehlo.constant dense<1> : tensor<1xi32>
      %2 = "stablehlo.add"(%count, %count) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %3 = "stablehlo.reshape"(%2) : (tensor<i32>) -> tensor<1xi32>
      %4 = "stablehlo.tanh"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      %5 = "stablehlo.real_dynamic_slice"(%4, %0, %3, %1) : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
      func.return %5 : tensor<?xf32>
    }"""  # noqa: E501  # One op a line.
    module = _program(text)
    x = np.linspace(-1, 1, 9, dtype=np.float32)
    run = buffers.run(module, "main", [x, np.array(3, np.int32)])
    np.testing.assert_allclose(run.results[0], np.tanh(x[:6]), rtol=1e-6)
    assert (run.peak, run.allocations) == (4 * (9 + 6), 2)
    cost = cost_of(module, "main")
    assert str(cost.peak) == "max(4*x.0, 8*count[] + 4*x.0)"
    assert str(cost.results) == "8*count[]"


@pytest.mark.parametrize(
    ("lhs", "rhs", "numbers", "routine"),
    [
        ("?x4", "4x?", "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]", "lib_gemm_f32"),
        ("?x4", "?x4", "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]", "lib_gemm_nt_f32"),
        ("4x?", "4x?", "lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]", "lib_gemm_tn_f32"),
        (
            "3x?x4",
            "3x4x?",
            "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
            "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]",
            "lib_batch_gemm_f32",
        ),
    ],
)
def test_products_are_calls_of_a_library(lhs: str, rhs: str, numbers: str, routine: str) -> None:
    result = "3x?x?" if lhs.startswith("3x") else "?x?"
    text = f"""
    func.func @main(%a: tensor<{lhs}xf32>, %b: tensor<{rhs}xf32>) -> tensor<{result}xf32> {{
      %0 = "stablehlo.dot_general"(%a, %b) <{{dot_dimension_numbers = #stablehlo.dot<{numbers}>}}> : (tensor<{lhs}xf32>, tensor<{rhs}xf32>) -> tensor<{result}xf32>
      func.return %0 : tensor<{result}xf32>
    }}"""  # noqa: E501  # One op a line.
    module = _program(text)
    draw = np.random.default_rng(0)
    left, right = (
        draw.normal(size=[5 + at if size == "?" else int(size) for size in shape.split("x")]).astype(np.float32)
        for at, shape in enumerate((lhs, rhs))
    )
    expected = executor.run(_parsed(text), "main", [left, right])
    run = buffers.run(module, "main", [left, right])
    np.testing.assert_allclose(run.results[0], expected[0], rtol=1e-5, atol=1e-6)
    cost = cost_of(module, "main")
    assert [call.routine for call in cost.library_calls] == [routine]
    sizes = {
        f"{name}.{axis}": size for name, each in (("a", left), ("b", right)) for axis, size in enumerate(each.shape)
    }
    assert cost.at(sizes).operations == 2 * 4 * run.results[0].size


def test_a_loop_frees_what_it_replaces() -> None:
    text = """
    func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = stablehlo.constant dense<0> : tensor<i32>
      %1 = stablehlo.constant dense<50> : tensor<i32>
      %2 = stablehlo.constant dense<1> : tensor<i32>
      %3:2 = "stablehlo.while"(%0, %x) ({
      ^bb0(%i: tensor<i32>, %a: tensor<?xf32>):
        %4 = "stablehlo.compare"(%i, %1) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "stablehlo.return"(%4) : (tensor<i1>) -> ()
      }, {
      ^bb0(%i: tensor<i32>, %a: tensor<?xf32>):
        %4 = "stablehlo.add"(%i, %2) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %5 = "stablehlo.concatenate"(%a, %x) <{dimension = 0 : i64}> : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
        "stablehlo.return"(%4, %5) : (tensor<i32>, tensor<?xf32>) -> ()
      }) : (tensor<i32>, tensor<?xf32>) -> (tensor<i32>, tensor<?xf32>)
      func.return %3#1 : tensor<?xf32>
    }"""  # noqa: E501  # One op a line.
    run = buffers.run(_program(text), "main", [np.ones(2, np.float32)])
    assert run.results[0].shape == (102,)
    # The last two lengths of the growing tensor are alive at a time, and the number of rounds.
    assert run.peak == 4 * (100 + 102) + 4


FUSED = """
func.func @main(%x: tensor<?x8xf32>, %n: tensor<2xi64>, %y: tensor<?x8xf32>) -> (tensor<?xf32>, tensor<?x8xf32>) {
  %0 = "stablehlo.add"(%n, %n) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %1 = func.call @sums(%x, %0, %y) {dhlo.fusion = "input"} : (tensor<?x8xf32>, tensor<2xi64>, tensor<?x8xf32>) -> tensor<?xf32>
  %2 = "stablehlo.tanh"(%y) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = func.call @scaled(%2) {dhlo.fusion = "loop"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %1, %3 : tensor<?xf32>, tensor<?x8xf32>
}
func.func private @sums(%x: tensor<?x8xf32>, %n: tensor<2xi64>, %y: tensor<?x8xf32>) -> tensor<?xf32> attributes {dhlo.fusion = "input"} {
  %0 = stablehlo.constant dense<0> : tensor<2xi64>
  %1 = stablehlo.constant dense<1> : tensor<2xi64>
  %2 = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = "stablehlo.real_dynamic_slice"(%x, %0, %n, %1) : (tensor<?x8xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x8xf32>
  %4 = "stablehlo.add"(%3, %y) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %5 = "stablehlo.reduce"(%4, %2) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %6 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%6) : (tensor<f32>) -> ()
  }) : (tensor<?x8xf32>, tensor<f32>) -> tensor<?xf32>
  func.return %5 : tensor<?xf32>
}
func.func private @scaled(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dhlo.fusion = "loop"} {
  %0 = "stablehlo.negate"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = "stablehlo.multiply"(%0, %x) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %1 : tensor<?x8xf32>
}
"""  # noqa: E501  # One op a line.


def test_a_fusion_is_one_kernel_without_buffers_inside() -> None:
    module = _program(FUSED)
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(5, 8)).astype(np.float32), draw.normal(size=(2, 8)).astype(np.float32)
    inputs = [x, np.array([1, 4]), y]
    run = buffers.run(module, "main", inputs)
    np.testing.assert_allclose(run.results[0], (x[:2] + y).sum(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run.results[1], -(np.tanh(y) ** 2), rtol=1e-5, atol=1e-6)
    # The sums, and the tanh, over which the second fusion writes.
    assert (run.peak, run.allocations) == (4 * 2 + 4 * 2 * 8, 2)
    assert 'dhlo.kernel = "input"' in str(module)
    assert 'dhlo.kernel = "loop"' in str(module)
