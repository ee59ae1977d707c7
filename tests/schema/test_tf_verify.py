"""`tf` ops against OpDefs: each rule with an op that breaks it, and odd ops that must pass."""

from __future__ import annotations

import pytest

from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import tf_verify
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.tensorflow import op_defs

ARGUMENTS = """
    %f: tensor<2xf32>, %i: tensor<2xi32>, %s: tensor<i32>, %b: tensor<i1>, %r: tensor<!tf_type.resource<tensor<2xf32>>>,
    %ref: tensor<2x!tf_type.f32ref>, %str: tensor<!tf_type.string>
"""


def check(op: str) -> None:
    verify(IRParser(f"func.func @f({ARGUMENTS}) {{ {op} return }}").parse_module())


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ('"tf.Relu"() : () -> tensor<2xf32>', "tf.Relu: expected 1 operands, found 0"),
        ('"tf.Relu"(%f) : (tensor<2xf32>) -> ()', "expected 1 results, found 0"),
        ('"tf.Relu"(%b) : (tensor<i1>) -> tensor<i1>', "operand 'features' must have elements of type .*, found i1"),
        (
            '"tf.AddV2"(%f, %i) : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>',
            "operand 'y' makes the attribute 'T' i32, but operand 'x' makes it f32",
        ),
        (
            '"tf.Reshape"(%f, %f) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>',
            "operand 'shape' must have elements of type i32, i64, found f32",
        ),
        (
            '"tf.StringJoin"(%f) : (tensor<2xf32>) -> tensor<!tf_type.string>',
            "operand 'inputs' must have elements of type !tf_type.string, found f32",
        ),
        ('"tf.Pack"() : () -> tensor<2xf32>', "operand 'values' must have at least 1 values, found 0"),
        ('"tf.ConcatV2"(%f) : (tensor<2xf32>) -> tensor<2xf32>', "operand 'values' must have at least 1 values"),
        ('"tf.ConcatV2"() : () -> tensor<2xf32>', "expected at least 1 operands, found 0"),
        ('"tf.IdentityN"(%f, %i) : (tensor<2xf32>, tensor<2xi32>) -> (tensor<2xf32>)', "expected 2 results, found 1"),
        ('"tf.Softmax"(%f) : (tensor<2xf32>) -> tensor<2xi32>', "result 'softmax' makes the attribute 'T' i32"),
        (
            '"tf.MaxPool"(%f) <{ksize = [1], strides = [1]}> : (tensor<2xf32>) -> tensor<2xf32>',
            "'ksize' must have at least 4 items, found 1",
        ),
        (
            '"tf.LeakyRelu"(%f) <{alpha = 1 : i64}> : (tensor<2xf32>) -> tensor<2xf32>',
            "the attribute 'alpha' must be a float, found 1 : i64",
        ),
        (
            '"tf.Sum"(%f, %s) <{keep_dims = 1 : i64}> : (tensor<2xf32>, tensor<i32>) -> tensor<f32>',
            "the attribute 'keep_dims' must be a bool",
        ),
        (
            '"tf.Squeeze"(%f) <{squeeze_dims = 1 : i64}> : (tensor<2xf32>) -> tensor<f32>',
            r"the attribute 'squeeze_dims' must be a list\(int\)",
        ),
        (
            '"tf.ReduceJoin"(%str, %s) <{separator = 1 : i64}> : (tensor<!tf_type.string>, tensor<i32>) '
            "-> tensor<!tf_type.string>",
            "the attribute 'separator' must be a string",
        ),
        ('"tf.Bucketize"(%f) : (tensor<2xf32>) -> tensor<2xi32>', "the attribute 'boundaries' is missing"),
        (
            '"tf.MirrorPad"(%f, %i) <{mode = "EDGE"}> : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>',
            "the attribute 'mode' must be one of .*SYMMETRIC.*, found \"EDGE\"",
        ),
        (
            '"tf.DepthToSpace"(%f) <{block_size = 1 : i64}> : (tensor<2xf32>) -> tensor<2xf32>',
            "the attribute 'block_size' must be at least 2, found 1",
        ),
        ('%0 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<f32>', "must have the value's type"),
        ('%0 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<2xi32>', "must have the value's type"),
        ('"tf.Const"() <{value = 1 : i64}> : () -> tensor<i64>', "the attribute 'value' must be a tensor"),
        (
            '%0:3 = "tf.ParseExampleV2"(%str, %str, %str, %str, %str) <{dense_shapes = [], num_sparse = 1 : i64, '
            "resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>}> : (tensor<!tf_type.string>, tensor<!tf_type.string>, "
            "tensor<!tf_type.string>, tensor<!tf_type.string>, tensor<!tf_type.string>) "
            "-> (tensor<*xi64>, tensor<*xf32>, tensor<*xi64>)",
            "'resultSegmentSizes' must hold the lengths of 6 lists with 3 results",
        ),
    ],
)
def test_violations_of_an_opdef_are_rejected(op: str, message: str) -> None:
    results = op.rpartition("->")[2].count("tensor")
    with pytest.raises(VerifyError, match=message):
        check(op if op.startswith("%") or not results else f"%0:{results} = {op}")


@pytest.mark.parametrize(
    "op",
    [
        '%0 = "tf.NobodyKnowsThis"(%f) <{x = 1 : i64}> : (tensor<2xf32>) -> tensor<i8>',
        '%0 = "tf.Relu"(%ref) : (tensor<2x!tf_type.f32ref>) -> tensor<2xf32>',
        '%0 = "tf.Relu"(%f) <{extra = 1 : i64}> {_private} : (tensor<2xf32>) -> tensor<*xf32>',
        '%0 = "tf.ReadVariableOp"(%r) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>',
        '%0 = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<f32>>>',
        '%0 = "tf.Const"() <{value = dense<1> : tensor<2xi32>}> : () -> tensor<?xi32>',
        '%0 = "tf.Cast"(%f) : (tensor<2xf32>) -> tensor<2xi8>',
        '%0 = "tf.LeakyRelu"(%f) <{alpha = #tf_type.placeholder<"a">}> : (tensor<2xf32>) -> tensor<2xf32>',
        '%0:2 = "tf.Split"(%s, %f) : (tensor<i32>, tensor<2xf32>) -> (tensor<1xf32>, tensor<1xf32>)',
        '%0:3 = "tf.ParseExampleV2"(%str, %str, %str, %str, %str) <{dense_shapes = [], num_sparse = 1 : i64, '
        "resultSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>}> : (tensor<!tf_type.string>, tensor<!tf_type.string>, "
        "tensor<!tf_type.string>, tensor<!tf_type.string>, tensor<!tf_type.string>) "
        "-> (tensor<*xi64>, tensor<*xf32>, tensor<*xi64>)",
    ],
)
def test_valid_ops_pass(op: str) -> None:
    check(op)


def test_every_op_of_the_registry_has_a_plan() -> None:
    for name in op_defs.names():
        plan = tf_verify.plan_of(name)
        assert plan is not None
        assert plan.attributes.keys().isdisjoint(plan.derived)
