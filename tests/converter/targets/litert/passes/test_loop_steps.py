"""The pass `loop-steps`: which steps loops read by index, and which sequences they read and write batch first."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.targets.litert.passes.loop_steps import LoopSteps

# A loop over five steps of two sequences; the text before and after it differs.
LOOP = """
{checks}
func.func @main(%x: {given}) -> {result} {{
  %zero = "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
  %rows = "tf.Const"() <{{value = dense<0.0> : tensor<5x2x3xf32>}}> : () -> tensor<5x2x3xf32>
  %p = "tf.Const"() <{{value = dense<[1, 0, 2]> : tensor<3xi32>}}> : () -> tensor<3xi32>
  %axis = "tf.Const"() <{{value = dense<{axis}> : tensor<1xi32>}}> : () -> tensor<1xi32>
  {before}
  %out:3 = "tf.While"(%zero, %rows, %seq) <{{cond = @cond, body = @body, is_stateless = true}}>
    : (tensor<i32>, tensor<5x2x3xf32>, tensor<5x2x3xf32>) -> (tensor<i32>, tensor<5x2x3xf32>, tensor<5x2x3xf32>)
  {after}
}}
func.func private @cond(%i: tensor<i32>, %rows: tensor<5x2x3xf32>, %x: tensor<5x2x3xf32>) -> tensor<i1> {{
  %n = "tf.Const"() <{{value = dense<5> : tensor<i32>}}> : () -> tensor<i32>
  %0 = "tf.Less"(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  func.return %0 : tensor<i1>
}}
func.func private @body(%i: tensor<i32>, %rows: tensor<5x2x3xf32>, %x: tensor<5x2x3xf32>)
    -> (tensor<i32>, tensor<5x2x3xf32>, tensor<5x2x3xf32>) {{
  %zero = "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
  %one = "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
  %next = "tf.AddV2"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %0 = "tf.GatherV2"(%x, %i, %zero) : (tensor<5x2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  %1 = "tf.ExpandDims"(%0, %zero) : (tensor<2x3xf32>, tensor<i32>) -> tensor<1x2x3xf32>
  %2 = "tf.Pack"(%i, {begin}, %zero) <{{axis = 0 : i64}}> : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3xi32>
  %3 = "tf.XlaDynamicUpdateSlice"(%rows, %1, %2)
    : (tensor<5x2x3xf32>, tensor<1x2x3xf32>, tensor<3xi32>) -> tensor<5x2x3xf32>
  func.return %next, %3, %x : tensor<i32>, tensor<5x2x3xf32>, tensor<5x2x3xf32>
}}"""
TIME, BATCH = "tensor<5x2x3xf32>", "tensor<2x5x3xf32>"
SWAP_BEFORE = f'%seq = "tf.Transpose"(%x, %p) : ({BATCH}, tensor<3xi32>) -> {TIME}'
PAIR_BEFORE = f"""%t = "tf.Transpose"(%x, %p) : ({TIME}, tensor<3xi32>) -> {BATCH}
  %seq = "tf.Transpose"(%t, %p) : ({BATCH}, tensor<3xi32>) -> {TIME}"""
REVERSED = f"""%t = "tf.Transpose"(%x, %p) : ({BATCH}, tensor<3xi32>) -> {TIME}
  %seq = "tf.ReverseV2"(%t, %axis) : ({TIME}, tensor<1xi32>) -> {TIME}"""
OTHER = f'%seq = "tf.Identity"(%x) : ({TIME}) -> {TIME}'
SWAP_AFTER = f"""%y = "tf.Transpose"(%out#1, %p) : ({TIME}, tensor<3xi32>) -> {BATCH}
  func.return %y : {BATCH}"""
BOTH_AFTER = f"""%y = "tf.Transpose"(%out#1, %p) : ({TIME}, tensor<3xi32>) -> {BATCH}
  %sum = "tf.Const"() <{{value = dense<[0, 1]> : tensor<2xi32>}}> : () -> tensor<2xi32>
  %a = "tf.Max"(%out#1, %sum) <{{keep_dims = true}}> : ({TIME}, tensor<2xi32>) -> tensor<1x1x3xf32>
  %z = "tf.AddV2"(%y, %a) : ({BATCH}, tensor<1x1x3xf32>) -> {BATCH}
  func.return %z : {BATCH}"""
REVERSED_AFTER = f"""%r = "tf.ReverseV2"(%out#1, %axis) : ({TIME}, tensor<1xi32>) -> {TIME}
  %y = "tf.Transpose"(%r, %p) : ({TIME}, tensor<3xi32>) -> {BATCH}
  func.return %y : {BATCH}"""
RETURNED = f"func.return %out#1 : {TIME}"

# What is given and returned, what is before and after the loop, and how many transposes are left.
CASES = {
    "read and written": (BATCH, BATCH, SWAP_BEFORE, SWAP_AFTER, 0),
    "read from the last step on": (BATCH, BATCH, REVERSED, SWAP_AFTER, 0),
    "reversed afterwards": (BATCH, BATCH, REVERSED, REVERSED_AFTER, 0),
    "only written": (TIME, BATCH, OTHER, SWAP_AFTER, 0),
    "read after two transposes": (TIME, BATCH, PAIR_BEFORE, SWAP_AFTER, 2),
    "only read": (BATCH, TIME, SWAP_BEFORE, RETURNED, 0),
    "used in both orders": (BATCH, BATCH, SWAP_BEFORE, BOTH_AFTER, 1),
}


def _loop(given: str, result: str, before: str, after: str, left: int, axis: int = 0, begin: str = "%zero") -> str:
    checks = "\n".join([*['// CHECK: "tf.Transpose"'] * left, '// CHECK-NOT: "tf.Transpose"'])
    return LOOP.format(checks=checks, given=given, result=result, before=before, after=after, axis=axis, begin=begin)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_transposes_are_saved(case: tuple[str, str, str, str, int], filecheck: FileCheck) -> None:
    filecheck(LoopSteps(), _loop(*case))


def test_other_axes_are_reversed_as_they_were(filecheck: FileCheck) -> None:
    text = _loop(BATCH, BATCH, REVERSED, SWAP_AFTER, 0, axis=2)
    filecheck(LoopSteps(), '// CHECK: dense<2> : tensor<1xi32>\n// CHECK: "tf.ReverseV2"' + text)


def test_rows_at_other_places_stay(filecheck: FileCheck) -> None:
    filecheck(LoopSteps(), _loop(TIME, BATCH, OTHER, SWAP_AFTER, 1, begin="%i"))


def test_rows_that_are_read_in_the_loop_stay(filecheck: FileCheck) -> None:
    text = _loop(TIME, BATCH, OTHER, SWAP_AFTER, 1)
    filecheck(LoopSteps(), text.replace('"tf.GatherV2"(%x', '"tf.GatherV2"(%rows'))


def test_rows_that_the_condition_reads_stay(filecheck: FileCheck) -> None:
    text = _loop(TIME, BATCH, OTHER, SWAP_AFTER, 1)
    size = """%size = "tf.Size"(%rows) : (tensor<5x2x3xf32>) -> tensor<i32>
  %ok = "tf.Less"(%i, %size) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %all = "tf.LogicalAnd"(%0, %ok) : (tensor<i1>, tensor<i1>) -> tensor<i1>
  func.return %all : tensor<i1>"""
    filecheck(LoopSteps(), text.replace("func.return %0 : tensor<i1>", size))


def test_a_filled_tensor_gets_its_sizes_in_the_other_order(filecheck: FileCheck) -> None:
    sizes = {"n": "5", "b": "2", "c": "3"}
    scalars = [
        f'%{name} = "tf.Const"() <{{value = dense<{n}> : tensor<i32>}}> : () -> tensor<i32>'
        for name, n in sizes.items()
    ]
    filled = """%none = "tf.Const"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  %sizes = "tf.Pack"(%n, %b, %c) <{axis = 0 : i64}> : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3xi32>
  %rows = "tf.Fill"(%sizes, %none) : (tensor<3xi32>, tensor<f32>) -> tensor<5x2x3xf32>"""
    stored = '%rows = "tf.Const"() <{value = dense<0.0> : tensor<5x2x3xf32>}> : () -> tensor<5x2x3xf32>'
    text = _loop(TIME, BATCH, OTHER, SWAP_AFTER, 0).replace(stored, "\n  ".join([*scalars, filled]))
    filecheck(LoopSteps(), '// CHECK: "tf.Fill"({{.*}} -> tensor<2x5x3xf32>' + text)


GATHER = '%0 = "tf.GatherV2"(%x, %i, %zero) : (tensor<5x2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>'
SLICE = """%begin = "tf.Pack"({index}) <{{axis = 0 : i64}}> : (tensor<i32>) -> tensor<1xi32>
  %end = "tf.Pack"(%next) <{{axis = 0 : i64}}> : (tensor<i32>) -> tensor<1xi32>
  %ones = "tf.Const"() <{{value = dense<1> : tensor<1xi32>}}> : () -> tensor<1xi32>
  %0 = "tf.StridedSlice"(%x, %begin, %end, %ones) <{{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64,
    new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}}>
    : (tensor<5x2x3xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2x3xf32>"""


def _sliced_loop(index: str) -> str:
    text = _loop(BATCH, BATCH, SWAP_BEFORE, SWAP_AFTER, 0)
    assert GATHER in text
    return text.replace(GATHER, SLICE.format(index=index))


def test_a_slice_at_the_counter_is_gathered(filecheck: FileCheck) -> None:
    text = _sliced_loop("%i").replace("// CHECK-NOT:", '// CHECK-NOT: "tf.StridedSlice"\n// CHECK-NOT:')
    filecheck(LoopSteps(), text)


def test_a_slice_that_may_count_from_the_end_stays(filecheck: FileCheck) -> None:
    text = _sliced_loop("%before").replace(
        "%begin =", '%before = "tf.Sub"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>\n  %begin ='
    )
    filecheck(LoopSteps(), text.replace('// CHECK-NOT: "tf.Transpose"', '// CHECK: "tf.StridedSlice"'))
