"""Relations of operands, results, attributes and callees: each kind of rule with an op that breaks it."""

from __future__ import annotations

import pytest

from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.relations import tfl_types
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.tflite import operators

_FUNCTIONS = """
func.func private @keep(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }
func.func private @three(%a: tensor<3xf32>) -> tensor<3xf32> { return %a : tensor<3xf32> }
func.func private @declared(tensor<2xf32>) -> tensor<2xf32>
func.func private @go(%a: tensor<2xf32>) -> tensor<i1> {
  %0 = "tf.Const"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  return %0 : tensor<i1>
}
"""
_ARGUMENTS = """
%x: tensor<2x3xf32>, %y: tensor<4x5xf32>, %f: tensor<2xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %n: tensor<i32>,
%p: tensor<i1>, %image: tensor<1x4x4x2xf32>, %filter: tensor<3x3x2x8xf32>, %u: tensor<*xf32>
"""


def _check(ops: str) -> None:
    verify(IRParser(f"{_FUNCTIONS} func.func @f({_ARGUMENTS}) {{ {ops} return }}").parse_module())


def _const(value: str, kind: str) -> str:
    return f'%c = "tf.Const"() {{value = dense<{value}> : {kind}}} : () -> {kind}\n'


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        (
            '%0 = "tf.Reshape"(%x, %i) : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<7xf32>',
            "must have as many elements as 'tensor'",
        ),
        (
            _const("[4, -1]", "tensor<2xi32>")
            + '%0 = "tf.Reshape"(%x, %c) : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<*xf32>',
            "6 elements can't be divided by 4",
        ),
        (
            _const("[1, 1]", "tensor<2xi32>")
            + '%0 = "tf.Slice"(%x, %c, %i) : (tensor<2x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xf32>',
            r"make the shape \[\?, \?\], but a result has type tensor<2xf32>",
        ),
        (
            _const("[-1, 0]", "tensor<2xi32>")
            + '%0 = "tf.Slice"(%x, %c, %i) : (tensor<2x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x3xf32>',
            "the elements of 'begin' must be at least 0",
        ),
        (
            '%0 = "tf.Transpose"(%x, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>',
            "must have elements of type i32, i64",
        ),
        (
            _const("[1, 0]", "tensor<2xi32>")
            + '%0 = "tf.Transpose"(%x, %c) : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>',
            r"make the shape \[3, 2\], but a result has type tensor<2x3xf32>",
        ),
        ('%0:3 = "tf.Unpack"(%x) : (tensor<2x3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)', "as many res"),
        (
            _const("[1, 4]", "tensor<2xi32>") + '%d = "tf.Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>'
            '%0:2 = "tf.SplitV"(%y, %c, %d) : (tensor<4x5xf32>, tensor<2xi32>, tensor<i32>) '
            "-> (tensor<*xf32>, tensor<*xf32>)",
            "'size_splits' must be 4 together",
        ),
        ('%0 = "tf.Relu"(%x) : (tensor<2x3xf32>) -> tensor<3x2xf32>', r"make the shape \[2, 3\]"),
        (
            '%0 = "tf.AddV2"(%x, %y) : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<*xf32>',
            r"shapes \[2, 3\] and \[4, 5\] can't be broadcast",
        ),
        ('%0 = "tf.AddV2"(%x, %u) : (tensor<2x3xf32>, tensor<*xf32>) -> tensor<4x2x3xf32>', None),
        (
            '%0 = "tf.Conv2D"(%image, %filter) {padding = "VALID", strides = [1, 1, 1, 1]} : '
            "(tensor<1x4x4x2xf32>, tensor<3x3x2x8xf32>) -> tensor<1x4x4x8xf32>",
            r"make the shape \[1, 2, 2, 8\]",
        ),
        (
            '%0 = "tf.ConcatV2"(%x, %f, %n) : (tensor<2x3xf32>, tensor<2xf32>, tensor<i32>) -> tensor<*xf32>',
            r"shapes \[2, 3\], \[2\] can't be concatenated",
        ),
        ('%0 = "tf.ConcatV2"(%x, %n) : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x3xf32>', None),
        (
            '%0 = "tf.If"(%p, %f) {then_branch = @keep, else_branch = @nobody, is_stateless = true} : '
            "(tensor<i1>, tensor<2xf32>) -> tensor<2xf32>",
            "names @nobody, but there is no function",
        ),
        (
            '%0 = "tf.If"(%p, %f) {then_branch = @keep, else_branch = @three, is_stateless = true} : '
            "(tensor<i1>, tensor<2xf32>) -> tensor<2xf32>",
            "arguments of @three must agree with",
        ),
        (
            '%0 = "tf.If"(%p, %f) {then_branch = @keep, else_branch = @declared, is_stateless = true} : '
            "(tensor<i1>, tensor<2xf32>) -> tensor<2xf32>",
            None,
        ),
        (
            '%0 = "tf.While"(%f) {cond = @go, body = @three, is_stateless = true} : (tensor<2xf32>) -> tensor<2xf32>',
            "arguments of the body must agree with",
        ),
        (
            '%0 = "tf.While"(%f) {cond = @keep, body = @keep, is_stateless = true} : (tensor<2xf32>) -> tensor<3xf32>',
            "operands must agree with",
        ),
        (
            '%0 = "tf.PartitionedCall"(%f, %f) {f = @keep} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>',
            "@keep must take 2 arguments, found 1",
        ),
        (
            '%0 = "tf.WhileRegion"(%f) ({ ^b(%a: tensor<?xf32>): "tf.Yield"(%p) : (tensor<i1>) -> () }, '
            '{ ^b(%a: tensor<?xf32>): "tf.Yield"(%a) : (tensor<?xf32>) -> () }) {is_stateless = true, shape_invariant} '
            ": (tensor<2xf32>) -> tensor<3xf32>",
            None,
        ),
        (
            '%0 = "tf.WhileRegion"(%f) ({ ^b(%a: tensor<?xf32>): "tf.Yield"(%p) : (tensor<i1>) -> () }, '
            '{ ^b(%a: tensor<?xf32>): "tf.Yield"(%a) : (tensor<?xf32>) -> () }) {is_stateless = true} '
            ": (tensor<2xf32>) -> tensor<3xf32>",
            "number 0 of the operands must agree",
        ),
        ('%0 = "tf.VarHandleOp"() {shared_name = "v"} : () -> tensor<!tf_type.resource>', "must have one subtype"),
        ('%0 = "tf.HashTableV2"() : () -> tensor<!tf_type.resource>', "'key_dtype' is missing"),
        ('%0 = "tf.Const"() {value = dense<1> : tensor<1xi32>} : () -> tensor<i32>', None),
        ('%0 = "tf.PlaceholderWithDefault"(%f) : (tensor<2xf32>) -> tensor<2xf32>', None),
        (
            '%0 = "tf.MatrixDiagV3"(%f, %n, %n, %n, %n) : (tensor<2xf32>, tensor<i32>, tensor<i32>, tensor<i32>, '
            "tensor<i32>) -> tensor<2x2xf32>",
            None,
        ),
        ('%0 = "tfl.relu"(%i) : (tensor<2xi32>) -> tensor<2xi32>', "must have elements of type f32, qi16, qi8, qui8"),
        ('%0 = "tfl.relu"(%x) : (tensor<2x3xf32>) -> tensor<3x2xf32>', r"make the shape \[2, 3\]"),
        (
            '%0 = "tfl.max_pool_2d"(%x) {padding = "SAME", stride_h = 1, stride_w = 1, filter_height = 1, '
            'filter_width = 1, fused_activation_function = "NONE"} : (tensor<2x3xf32>) -> tensor<2x3xf32>'.replace(
                " = 1,", " = 1 : i32,"
            ),
            "'input' must have rank 4",
        ),
        (
            '%0 = "tfl.concatenation"(%x, %x) {axis = 0 : i32, fused_activation_function = "NONE"} : '
            "(tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<5x3xf32>",
            r"make the shape \[4, 3\]",
        ),
        (
            '%0 = "tfl.sum"(%x, %n) {keep_dims = false} : (tensor<2x3xf32>, tensor<i32>) -> tensor<2xi32>',
            "must have one element type",
        ),
    ],
)
def test_rules(ops: str, message: str | None) -> None:
    if message is None:
        _check(ops)
    else:
        with pytest.raises(VerifyError, match=message):
            _check(ops)


def test_the_table_of_the_dialect_has_no_more_values_than_operators_have() -> None:
    for name, row in tfl_types.rows().items():
        operator = operators.lookup(name)
        assert operator is not None, name
        assert len(row.operands) <= len(operator.operands), name
        assert len(row.results) <= len(operator.results), name
        arguments = {each.name for each in (*operator.operands, *operator.results)}
        assert set(row.alike) <= arguments, name
