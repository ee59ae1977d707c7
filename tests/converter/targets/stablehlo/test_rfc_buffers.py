"""The example of the dynamic-shape proposal, from arithmetic of shapes to buffers and calls of a library."""

from __future__ import annotations

import random

import numpy as np

from tfconvert.converter.executor import buffers
from tfconvert.converter.targets.stablehlo.buffers.cost import cost_of
from tfconvert.converter.targets.stablehlo.passes.legalize_to_buffers import LegalizeToBuffers
from tfconvert.converter.targets.stablehlo.passes.lower_to_library_calls import LowerToLibraryCalls
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.func import CallOp
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp

# A slice with an input as its size, twice; the sum of it and a matrix; the product with another one.
TEXT = """
func.func @main(%whole: tensor<4x8xf32>, %half: tensor<2xi64>, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %starts = stablehlo.constant dense<0> : tensor<2xi64>
  %steps = stablehlo.constant dense<1> : tensor<2xi64>
  %size = "stablehlo.add"(%half, %half) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %0 = "stablehlo.real_dynamic_slice"(%whole, %starts, %size, %steps) : (tensor<4x8xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
  %1 = "stablehlo.add"(%0, %a) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = "stablehlo.dot_general"(%1, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  func.return %2 : tensor<?x?xf32>
}
"""  # noqa: E501  # One op a line.


def _program() -> ModuleOp:
    module = IRParser(TEXT).parse_module()
    LegalizeToBuffers().apply(module)
    LowerToLibraryCalls().apply(module)
    verify(module)
    return module


def test_a_buffer_lives_from_right_before_its_writer_to_right_after_its_last_reader() -> None:
    (main,) = (op for op in _program().ops if str(op).startswith("func.func @main"))
    steps = []
    for op in main.regions[0].block.ops:
        if isinstance(op, CallOp):
            steps.append(op.callee)
        elif op.name in ("memref.alloc", "memref.dealloc", "memref.load", "arith.addi", "func.return"):
            steps.append(op.name)
    assert steps == [
        # The size of the slice is computed by the host, from numbers that it reads once.
        "memref.load",
        "memref.load",
        "arith.addi",
        "arith.addi",
        # The sum is written over the slice, which nothing else reads.
        "memref.alloc",
        "real_dynamic_slice",
        "add",
        "memref.alloc",
        "lib_gemm_f32",
        "memref.dealloc",
        "func.return",
    ]


def test_what_it_computes_and_needs() -> None:
    module = _program()
    cost = cost_of(module, "main")
    (call,) = cost.library_calls
    rows, columns = "2*half[0]", "2*half[1]"
    assert call.routine == "lib_gemm_f32"
    assert [[str(size) for size in each] for each in call.sizes] == [[rows, columns], ["b.0", "b.1"], [rows, "b.1"]]
    draw, numbers = random.Random(0), np.random.default_rng(0)
    for _ in range(20):
        half, width = (draw.randint(0, 2), draw.randint(0, 4)), draw.randint(1, 9)
        rows_of, columns_of = 2 * half[0], 2 * half[1]
        whole, a, b = (
            numbers.normal(size=shape).astype(np.float32)
            for shape in ((4, 8), (rows_of, columns_of), (columns_of, width))
        )
        run = buffers.run(module, "main", [whole, np.array(half), a, b])
        expected = (whole[:rows_of, :columns_of] + a) @ b
        np.testing.assert_allclose(run.results[0], expected, rtol=1e-5, atol=1e-5)
        sizes = {"half[0]": half[0], "half[1]": half[1], "b.0": columns_of, "b.1": width}
        found = cost.at(sizes)
        assert found.peak == run.peak == 4 * rows_of * (columns_of + width)
        assert found.operations == rows_of * columns_of + 2 * rows_of * columns_of * width
