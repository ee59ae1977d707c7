"""The `tfl` dialect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, tf, tfl, types
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.attributes import ArrayAttr, FloatAttr, IntegerAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators
from tfconvert.schema.tflite.tables import TFLITE

F32 = types.F32
PAIR = types.tensor(F32, (2,))


def values(count: int) -> list[Value]:
    return list(Operation("test.op", (), [PAIR] * count).results)


def test_every_builtin_operator_has_an_op() -> None:
    enumerators = set(TFLITE.enums["BuiltinOperator"]) - {"PLACEHOLDER_FOR_GREATER_OP_CODES"}
    assert {name.upper() for name in operators.names()} == enumerators
    assert tfl.build("conv_2d").name == "tfl.conv_2d"
    with pytest.raises(KeyError):
        tfl.build("conv_9d")


def test_every_options_table_belongs_to_an_operator() -> None:
    tables = {operator.options for operator in map(operators.lookup, operators.names()) if operator is not None}
    unions = {*TFLITE.enums["BuiltinOptions"], *TFLITE.enums["BuiltinOptions2"]}
    assert tables - {""} == unions - {"NONE"}


@pytest.mark.parametrize(
    ("name", "union", "minimum", "maximum", "variables"),
    [
        ("conv_2d", "builtin_options", 2, 3, ()),
        ("concatenation", "builtin_options", 0, operators.UNBOUNDED, ()),
        ("dilate", "builtin_options2", 3, 3, ()),
        ("unidirectional_sequence_lstm", "builtin_options", 20, 24, (18, 19)),
        ("bidirectional_sequence_lstm", "builtin_options", 39, 48, (35, 36, 37, 38)),
        ("lstm", "builtin_options", 1, 24, (18, 19)),
        ("svdf", "builtin_options", 5, 5, (4,)),
        ("unidirectional_sequence_rnn", "builtin_options", 5, 5, (4,)),
    ],
)
def test_operands(name: str, union: str, minimum: int, maximum: int, variables: tuple[int, ...]) -> None:
    operator = operators.lookup(name)
    assert operator is not None
    assert (operator.union, operator.operand_range, operator.variables) == (union, (minimum, maximum), variables)


def test_properties_are_made_from_python_values() -> None:
    options: dict[str, attrs.Value] = {"padding": "SAME", "stride_w": 2, "stride_h": 1, "dilation_w_factor": 3}
    op = tfl.build("conv_2d", values(2), [PAIR], options, NameLoc.get("here"))
    op.verify_()
    assert op.properties["padding"] == StringAttr.get("SAME")
    assert op.properties["stride_w"] == IntegerAttr.get(2, types.I32)
    assert op.properties["stride_w"] is attrs.int32(2)
    assert [tfl.attribute(op, name) for name in (*options, "dilation_h_factor")] == ["SAME", 2, 1, 3, 1]
    assert tfl.attribute(op, "fused_activation_function") == "NONE"
    with pytest.raises(KeyError):
        tfl.attribute(op, "stride")
    with pytest.raises(KeyError):
        tfl.build("conv_2d", values(2), [PAIR], {"stride": 1})


@pytest.mark.parametrize(
    ("name", "field", "value", "attribute", "default"),
    [
        ("softmax", "beta", 1, FloatAttr.get(1.0, F32), 0.0),
        ("add", "pot_scale_int16", False, attrs.boolean(False), True),
        ("squeeze", "squeeze_dims", [1, -1], ArrayAttr.get([attrs.int32(1), attrs.int32(-1)]), ()),
        ("random_uniform", "seed2", 7, IntegerAttr.get(7, types.I64), 0),
        ("bucketize", "boundaries", (0.5,), ArrayAttr.get([FloatAttr.get(0.5, F32)]), ()),
        ("var_handle", "shared_name", "v", StringAttr.get("v"), None),
        ("stablehlo_slice", "strides", [1], ArrayAttr.get([IntegerAttr.get(1, types.I64)]), ()),
        ("stablehlo_dot_general", "precision_config", ["HIGH"], ArrayAttr.get([StringAttr.get("HIGH")]), ()),
        ("stablehlo_composite", "composite_attributes", b"\1", tfl.ConstBytesAttr.get(b"\1"), ()),
        ("unique", "idx_out_type", "INT64", StringAttr.get("INT64"), "INT32"),
    ],
)
def test_kinds_of_properties(name: str, field: str, value: Any, attribute: Any, default: Any) -> None:
    operator = operators.lookup(name)
    assert operator is not None
    count = operator.operand_range[0]
    results = [PAIR] * operator.result_range[0]
    op = tfl.build(name, values(count), results, {field: value})
    op.verify_()
    assert op.properties[field] == attribute
    assert tfl.attribute(op, field) == (tuple(value) if isinstance(value, list) else value)
    assert tfl.attribute(tfl.build(name, values(count), results), field) == default


def wrong(op: Operation) -> str:
    with pytest.raises(VerifyError) as caught:
        op.verify_()
    return str(caught.value)


def test_ops_that_the_verifier_rejects() -> None:
    assert "expects 2 to 3 operands, not 1" in wrong(tfl.build("conv_2d", values(1), [PAIR]))
    assert "expects 1 results, not 2" in wrong(tfl.build("add", values(2), [PAIR, PAIR]))
    for name, value in {
        "padding": attrs.string("FULL"),
        "stride_w": attrs.integer(1),
        "dilation_w_factor": attrs.float32(1),
    }.items():
        op = tfl.build("conv_2d", operands=values(2), result_types=[PAIR], properties={name: value})
        assert f"property '{name}'" in wrong(op)
    unknown = tfl.build("conv_2d", operands=values(2), result_types=[PAIR], properties={"nothing": attrs.int32(1)})
    assert "has no property 'nothing'" in wrong(unknown)
    assert "symbol" in wrong(tfl.build("while", values(1), [PAIR], {"cond": attrs.string("f")}))
    assert "custom_code" in wrong(tfl.build("custom", operands=values(1), result_types=[PAIR]))
    constant = tfl.constant(tensor_data.of_array(np.zeros(2, np.int32)))
    mistyped = tfl.build("pseudo_const", result_types=[PAIR], properties=constant.properties)
    assert "element type" in wrong(mistyped)
    verify(constant)
    verify(tfl.no_value())
    tfl.custom("Mine", b"", values(1), [PAIR]).verify_()


def test_constants_and_absent_values() -> None:
    value = tensor_data.of_array(np.arange(3, dtype=np.float32))
    op = tfl.constant(value)
    assert tensor_data.constant_of(op.results[0]) is value
    assert tensor_data.constant_of(values(1)[0]) is None
    assert tfl.is_absent(tfl.no_value().results[0])
    assert not tfl.is_absent(op.results[0])


@pytest.mark.parametrize(
    ("op", "effect"),
    [
        (tfl.no_value(), False),
        (tfl.build("var_handle", [], [types.tensor(types.RESOURCE, ())]), False),
        (tfl.build("add", values(2), [PAIR]), False),
        (tfl.build("assign_variable", values(2), []), True),
        (tfl.build("call_once", [], []), True),
        (tfl.custom("Mine", b"", values(1), [PAIR]), True),
        (Operation("test.op"), True),
    ],
    ids=lambda value: value.name if isinstance(value, Operation) else "",
)
def test_effects(op: Operation, effect: bool) -> None:
    assert tfl.has_side_effects(op) is effect


def test_text_is_read_back() -> None:
    operand = tf.build("Test", result_types=[PAIR, PAIR])
    ops = [operand, tfl.build("add", operand.results, [PAIR], {"fused_activation_function": "RELU6"})]
    text = str(ModuleOp.of(ops))
    module = IRParser(text).parse_module()
    verify(module)
    assert str(module) == text
    add = list(module.ops)[1]
    assert isinstance(add, tfl.TFLOp)
    assert tfl.attribute(add, "fused_activation_function") == "RELU6"
