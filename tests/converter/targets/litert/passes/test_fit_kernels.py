"""The pass `fit-kernels`: every form that it finds computes the same in LiteRT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from benchmarks.kernel_probe import plain
from benchmarks.kernel_probe.case import Case
from benchmarks.kernel_probe.child import Answer, Job, run
from benchmarks.kernel_probe.draw import fed, fixed
from benchmarks.kernel_probe.tensors import Array, Tensor
from tests.support.run_text import parse
from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.targets.litert.kernel_outcomes import KernelOutcomes
from tfconvert.converter.targets.litert.passes.fit_kernels import FitKernels
from tfconvert.exporters.tflite.model import export
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError

NONE: Mapping[str, Any] = {"fused_activation_function": "NONE"}
SEVEN = (2, 1, 3, 2, 2, 1, 2)
EIGHT = (2, 3, 1, 2, 2, 2, 3, 2)
PADS = [[0, 1], [1, 0], [0, 0], [1, 1], [0, 0], [0, 2], [0, 0]]


def x(*shape: int, kind: str = "f32") -> Tensor:
    """Returns an operand of small integers, which all types have."""
    count = int(np.prod(shape))
    return Tensor(kind, (np.arange(count).reshape(shape) * 7 % 11))


def case(operator: str, operands: Sequence[Tensor], result: str = "f32", count: int = 1, **options: object) -> Case:
    """Returns a call with the results that the reference computes."""
    unknown = [Tensor(result, np.zeros(()))] * count
    without = Case(operator, operands, unknown, options)
    results = Executor(without.module).run("main", without.inputs)
    return Case(operator, operands, [Tensor(result, each) for each in results], options)


FITTED = {
    "softmax": case("SOFTMAX", [x(*SEVEN)], beta=1.0),
    "concat": case("CONCATENATION", [x(*SEVEN), x(*SEVEN)], axis=3, **NONE),
    "concat from the back": case("CONCATENATION", [x(*EIGHT), x(*EIGHT)], axis=-1, **NONE),
    "split": case("SPLIT", [fixed(4), x(*SEVEN)], count=2, num_splits=2),
    "mean": case("MEAN", [x(*SEVEN), fixed([2, 3])], keep_dims=False),
    "mean that keeps": case("MEAN", [x(*SEVEN), fixed([-1, 0])], keep_dims=True),
    "mean in steps": case("MEAN", [x(*EIGHT), fixed([0, 3, 5, 7])], keep_dims=False),
    "sum of all": case("SUM", [x(*EIGHT), fixed(range(8))], keep_dims=False),
    "greatest in steps": case("REDUCE_MAX", [x(*EIGHT), fixed([1, 4, 6])], keep_dims=True),
    "dense": case("FULLY_CONNECTED", [x(*SEVEN), x(3, 2)], keep_num_dims=True, weights_format="DEFAULT", **NONE),
    "matrices": case("BATCH_MATMUL", [x(*SEVEN), x(*SEVEN[:-2], 2, 3)], adj_x=False, adj_y=False),
    "broadcast matrices": case("BATCH_MATMUL", [x(2, 1, 2, 1, 3, 2), x(2, 2, 1, 1, 2, 3)], adj_x=False, adj_y=False),
    "pad": case("PAD", [x(*SEVEN), fixed(PADS)]),
    "pad with a number": case("PADV2", [x(*SEVEN), fixed(PADS), x()]),
    "unequal small integers": case("NOT_EQUAL", [x(2, 3, kind="i16"), x(3, kind="i16")], "bool"),
    "sum of bytes": case("SUB", [x(2, 3, kind="u8"), x(2, 3, kind="u8")], "u8", **NONE),
    "split booleans": case("SPLIT", [fixed(0), x(4, 2, kind="bool")], "bool", count=2, num_splits=2),
    "halves": case("RELU", [x(2, 3, kind="f16")], "f16"),
    "nothing": case("SOFTMAX", [x(0)], beta=1.0),
}


def _fitted(cases: Sequence[Case]) -> list[tuple[bytes, list[Array]]]:
    """Returns the files of calls after the pass, which must have changed them all, and their inputs."""
    files = []
    for each in cases:
        module = each.module
        assert FitKernels().apply(module).counts
        verify(module)
        assert not FitKernels().apply(module).counts
        files.append((export(module).to_bytes(), each.inputs))
    return files


def test_every_form_computes_the_same() -> None:
    jobs = [
        Job(file, inputs, has_delegates=has_delegates)
        for file, inputs in _fitted(list(FITTED.values()))
        for has_delegates in (False, True)
    ]
    answers = iter(run(jobs))
    wrong = []
    for name, each in FITTED.items():
        expected = Answer([result.stored for result in each.results])
        wrong += [
            f"{name}: {answer.problem or answer.results}"
            for answer in (next(answers), next(answers))
            if answer.problem or plain.error_of(each, answer, expected) > 1
        ]
    assert not wrong, "\n".join(wrong)


KEPT = [
    case("SOFTMAX", [x(2, 2, 3, 2, 2, 2)], beta=1.0),
    case("MEAN", [x(*SEVEN), fed([1])], keep_dims=False),
    case("NOT_EQUAL", [x(2, 3, kind="i32"), x(3, kind="i32")], "bool"),
    case("TRANSPOSE", [x(*EIGHT), fixed(range(8)[::-1])]),
]


@pytest.mark.parametrize("kept", KEPT, ids=lambda each: each.operator)
def test_what_the_kernels_take_stays(kept: Case) -> None:
    assert not FitKernels().apply(kept.module).counts


DYNAMIC = """
func.func @main(%x: tensor<{shape}xf32>) -> tensor<{shape}xf32> {{
  %0 = "tfl.softmax"(%x) <{{beta = 1.0 : f32}}> : (tensor<{shape}xf32>) -> tensor<{shape}xf32>
  func.return %0 : tensor<{shape}xf32>
}}
"""


def test_one_dimension_may_be_unknown() -> None:
    assert FitKernels().apply(parse(DYNAMIC.format(shape="?x2x1x3x1x2x2"))).counts == {"reshaped": 1}


BAD = """
func.func @main(%x: {type}) -> {type} {{
  %0 = {op} : ({operands}) -> {type}
  func.return %0 : {type}
}}
"""


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            DYNAMIC.format(shape="?x2x1x3x?x2x2"),
            "LiteRT's XNNPACK, which it uses by default, refuses SOFTMAX of f32 -> f32 of 7 dimensions",
            "with at most one unknown size among them",
        ),
        (
            BAD.format(type="tensor<2xf64>", op='"tfl.exp"(%x)', operands="tensor<2xf64>"),
            "LiteRT refuses EXP of float64 -> float64",
            "it takes f32",
        ),
        (
            BAD.format(type="tensor<2xi64>", op='"tfl.abs"(%x)', operands="tensor<2xi64>"),
            "LiteRT refuses ABS of int64 -> int64",
            "it takes f32, int16, int32",
        ),
    ],
)
def test_what_no_form_helps_is_an_error(text: str, message: str, hint: str) -> None:
    with pytest.raises(ConversionError) as caught:
        FitKernels().apply(parse(text, with_relations=False))
    (problem,) = caught.value.diagnostics
    assert problem.code == "unfit-kernel"
    assert problem.message == message
    assert hint in problem.hint


def test_a_reshape_to_too_many_dimensions_goes_with_its_user() -> None:
    text = """
    func.func @main(%x: tensor<?x4x6xf32>) -> tensor<?x2x1x3xf32> {
      %c = "tfl.pseudo_const"() <{value = dense<[1, -1, 2, 2, 1, 1, 2, 3, 1, 1]> : tensor<10xi32>}>
          : () -> tensor<10xi32>
      %a = "tfl.pseudo_const"() <{value = dense<[0, 2, 4, 6, 8, 9]> : tensor<6xi32>}> : () -> tensor<6xi32>
      %0 = "tfl.reshape"(%x, %c) : (tensor<?x4x6xf32>, tensor<10xi32>) -> tensor<1x?x2x2x1x1x2x3x1x1xf32>
      %1 = "tfl.sum"(%0, %a) <{keep_dims = false}>
          : (tensor<1x?x2x2x1x1x2x3x1x1xf32>, tensor<6xi32>) -> tensor<?x2x1x3xf32>
      func.return %1 : tensor<?x2x1x3xf32>
    }
    """
    module = parse(text, with_relations=False)
    x = np.arange(48, dtype=np.float32).reshape(2, 4, 6)
    expected = x.reshape(2, 2, 2, 2, 3).sum((1, 3)).reshape(2, 2, 1, 3)
    FitKernels().apply(module)
    verify(module)
    reshapes = [op for op in module.walk() if op.name == "tfl.reshape"]
    assert [op.results[0].shape for op in reshapes] == [(-1, 2, 2, 2, 3), (-1, 2, 1, 3)]
    (got,) = Executor(module).run("main", [x])
    np.testing.assert_array_equal(got, expected)


def test_all_problems_are_told_at_once() -> None:
    text = """
    func.func @main(%x: tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>) {
      %0 = "tfl.exp"(%x) : (tensor<2xf64>) -> tensor<2xf64>
      %1 = "tfl.log"(%0) : (tensor<2xf64>) -> tensor<2xf64>
      func.return %0, %1 : tensor<2xf64>, tensor<2xf64>
    }
    """
    with pytest.raises(ConversionError) as caught:
        FitKernels().apply(parse(text, with_relations=False))
    assert len(caught.value.diagnostics) == 2


PADDED = """
func.func @main(%x: tensor<1x1x1x1x1x2xf32>, %p: tensor<6x2xi32>) -> tensor<?x?x?x?x?x?xf32> {
  %c = "tfl.pseudo_const"() <{value = dense<1> : tensor<6x2xi32>}> : () -> tensor<6x2xi32>
  %0 = "tfl.pad"(%x, %c) : (tensor<1x1x1x1x1x2xf32>, tensor<6x2xi32>) -> tensor<?x?x?x?x?x?xf32>
  %1 = "tfl.pad"(%x, %p) : (tensor<1x1x1x1x1x2xf32>, tensor<6x2xi32>) -> tensor<?x?x?x?x?x?xf32>
  %2 = "tfl.pad"(%x, %c) : (tensor<1x1x1x1x1x2xf32>, tensor<6x2xi32>) -> tensor<?x?x?x?x?x?xf32>
  func.return %1 : tensor<?x?x?x?x?x?xf32>
}
"""


def test_equal_types_alone_make_no_equal_calls() -> None:
    ops = [op for op in parse(PADDED, with_relations=False).walk() if op.name == "tfl.pad"]
    shared = KernelOutcomes()
    told = [shared.problem(op) for op in ops]
    assert told == [KernelOutcomes().problem(op) for op in ops]
    assert told[0] == told[2] != told[1]
    assert told[1] is not None
    assert told[1].conditions == {"computed"}
