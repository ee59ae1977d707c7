"""Sizes that contradict each other end in an error that says so, and only those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tfconvert
from tests.converter.pass_texts import FileCheck
from tests.converter.targets.stablehlo.engine import Program
from tfconvert.converter.targets.stablehlo.passes.materialize_constraints import MaterializeConstraints
from tfconvert.schema.dialects.parsing import IRParser


class Case(NamedTuple):
    """A computation with dynamic sizes: shapes that fit, shapes that don't, and their message."""

    run: Callable[[ModuleType, Sequence[Any]], Any]
    shapes: Sequence[Sequence[int | None]]
    good: Sequence[Sequence[Sequence[int]]]
    bad: Sequence[Sequence[int]]
    message: str


CASES = {
    "sum": Case(
        lambda tf, x: x[0] + x[1],
        [[None], [None]],
        [[[3], [3]], [[3], [1]], [[1], [2]]],
        [[3], [2]],
        "must be equal or 1",
    ),
    "known": Case(
        lambda tf, x: x[0] * tf.constant([1.0, 2.0, 3.0]), [[None]], [[[3]], [[1]]], [[2]], "must be equal or 1"
    ),
    "joined": Case(
        lambda tf, x: tf.concat([x[0], x[1]], 1),
        [[None, None], [None, None]],
        [[[2, 3], [2, 1]]],
        [[2, 3], [3, 1]],
        "but for the axis",
    ),
    "product": Case(
        lambda tf, x: tf.matmul(x[0], x[1]),
        [[None, None], [None, None]],
        [[[2, 3], [3, 4]]],
        [[2, 3], [4, 4]],
        "multiplies along must be equal",
    ),
    "reshape": Case(lambda tf, x: tf.reshape(x[0], [-1, 3]), [[None]], [[[6]], [[3]]], [[7]], "as many elements"),
    "boxes": Case(
        lambda tf, x: tf.cast(
            tf.raw_ops.NonMaxSuppressionV4(
                boxes=x[0],
                scores=x[1],
                max_output_size=2,
                iou_threshold=0.5,
                score_threshold=0.1,
                pad_to_max_output_size=True,
            )[0],
            tf.float32,
        ),
        [[None, 4], [None]],
        [[[3, 4], [3]], [[1, 4], [1]]],
        [[3, 4], [2]],
        "as many scores as boxes",
    ),
    "slice": Case(lambda tf, x: tf.slice(x[0], [2], [3]), [[None]], [[[5]], [[9]]], [[4]], "lie within its operand"),
}


@pytest.mark.parametrize("name", CASES)
def test_sizes_that_contradict_each_other_are_told(tf: ModuleType, name: str) -> None:
    case = CASES[name]
    specs = [tf.TensorSpec(shape, tf.float32) for shape in case.shapes]
    function = tf.function(lambda *x: case.run(tf, x), autograph=False).get_concrete_function(*specs)
    text = bytes(tfconvert.convert(function, target="stablehlo")).decode()
    program = Program(text, [(tf.float32, function.structured_outputs.shape)])
    for shapes in case.good:
        inputs = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes]
        (found,) = program.run(inputs)
        np.testing.assert_allclose(found, function(*map(tf.constant, inputs)).numpy(), rtol=1e-5)
    assert text.count("shape_assertion") == text.count(case.message) == 1
    # XLA infers shapes before it looks at assertions, so that the message may be its own.
    with pytest.raises(tf.errors.InvalidArgumentError):
        program.run([np.zeros(shape, np.float32) for shape in case.bad])


ASSERTED = """
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %a = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
  %b = "stablehlo.get_dimension_size"(%y) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
  %c = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LE>}>
    : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "stablehlo.custom_call"(%c) <{
    api_version = 2 : i32, call_target_name = "shape_assertion", has_side_effect = true
  }> {error_message = "there must be no less of y"} : (tensor<i1>) -> ()
  %0 = "stablehlo.tanh"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}
"""


def test_xla_tells_what_was_asserted(tf: ModuleType) -> None:
    module = IRParser(ASSERTED).parse_module()
    MaterializeConstraints().apply(module)
    text = f"module attributes {{jax.uses_shape_polymorphism = true}} {{\n{next(iter(module.ops))}\n}}"
    program = Program(text, [(tf.float32, (None,))])
    longer, shorter = np.ones(3, np.float32), np.ones(2, np.float32)
    np.testing.assert_allclose(program.run([shorter, longer])[0], np.tanh(shorter), rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="there must be no less of y"):
        program.run([longer, shorter])


def test_equal_symbols_need_no_assertion(tf: ModuleType) -> None:
    spec = tf.TensorSpec([None, 4], tf.float32)
    function = tf.function(lambda x: tf.concat([tf.tanh(x) + x, x * 2], 1), autograph=False)
    text = bytes(tfconvert.convert(function.get_concrete_function(spec), target="stablehlo")).decode()
    assert "assert" not in text


REPEATED = """
// CHECK: func.func @main
// CHECK-COUNT-1: shape_assertion
// CHECK-NOT: shape_assertion
// CHECK: "stablehlo.tanh"
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: tensor<i32>) -> tensor<?xf32> {
  %0 = "stablehlo.tanh"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  ONE
  OTHER
  VALUE
  func.return %0 : tensor<?xf32>
}
"""
EQUAL = """
  %a@ = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
  %b@ = "stablehlo.get_dimension_size"(%y) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
  %c@ = "stablehlo.compare"(%a@, %b@) <{comparison_direction = #stablehlo<comparison_direction EQ>}>
    : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "stablehlo.custom_call"(%c@) <{
    api_version = 2 : i32, call_target_name = "shape_assertion", has_side_effect = true
  }> {error_message = "unequal"} : (tensor<i1>) -> ()
"""
POSITIVE = """
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %p = "stablehlo.compare"(%n, %zero) <{comparison_direction = #stablehlo<comparison_direction GT>}>
    : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "stablehlo.custom_call"(%p) <{
    api_version = 2 : i32, call_target_name = "shape_assertion", has_side_effect = true
  }> {error_message = "too small"} : (tensor<i1>) -> ()
"""


def test_equal_assertions_are_one(filecheck: FileCheck) -> None:
    text = REPEATED.replace("ONE", EQUAL.replace("@", "1")).replace("OTHER", EQUAL.replace("@", "2"))
    filecheck(MaterializeConstraints(), text.replace("VALUE", ""))


@pytest.mark.parametrize(("target", "kept"), [("stablehlo", 0), ("iree", 1)])
def test_assertions_on_values_are_for_engines_that_check_them(filecheck: FileCheck, target: str, kept: int) -> None:
    text = REPEATED.partition("func.func")[2].partition("func.func")
    module = filecheck(
        MaterializeConstraints(target),
        "// CHECK: func.func\nfunc.func" + text[2].replace("ONE", "").replace("OTHER", "").replace("VALUE", POSITIVE),
    )
    assert str(module).count("shape_assertion") == kept
