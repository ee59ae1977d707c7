"""What is known of LiteRT's kernels: forms, conditions and the lookup in the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tfconvert.schema.tflite import kernels, operators
from tfconvert.schema.tflite.kernels import CRASHES, OK, OUTCOMES, REFUSED, WRONG, Outcome
from tfconvert.schema.tflite.versions import ABSENT, Call, Operand


def integers(type: str, scale: float = 0.5, zero_point: int = 0, **facts: Any) -> Operand:
    """Returns a quantized operand with one scale."""
    return Operand(type, (2, 4), (scale,), zero_points=(zero_point,), **facts)


def constant(type: str, *scales: float, zero_point: int = 0, axis: int | None = None) -> Operand:
    """Returns quantized weights."""
    return Operand(type, (2, 4), scales, zero_points=(zero_point,) * len(scales), axis=axis, is_constant=True)


I8, U8, I16, F32 = integers("INT8"), integers("UINT8"), integers("INT16"), Operand("FLOAT32", (2, 4))
INDICES = Operand("INT32", (2,), is_constant=True)


@pytest.mark.parametrize(
    ("operand", "expected"),
    [
        (F32, "f32"),
        (Operand("FLOAT32", (2,), is_constant=True), "f32"),
        (Operand("FLOAT16", (2,)), "f16"),
        (I8, "i8"),
        (constant("INT8", 0.5), "i8w"),
        (constant("INT4", 0.5, 0.25, axis=0), "i4c0"),
        (constant("INT8", 0.5, axis=3), "i8w"),
        (Operand("INT4", (2, 64), block_size=32, is_constant=True), "i4b32"),
        (Operand("INT8", (2,)), "int8"),
        (ABSENT, "absent"),
    ],
)
def test_forms(operand: Operand, expected: str) -> None:
    assert kernels.form(operand) == expected


@pytest.mark.parametrize(
    ("operator", "call", "expected"),
    [
        ("PAD", Call((I8, INDICES), (I8,)), "i8>i8"),
        ("EQUAL", Call((I8, I8), (Operand("BOOL", (2, 4)),)), "i8,i8>"),
        ("CONCATENATION", Call((I8, I8, constant("INT8", 0.5), I8), (I8,)), "i8,i8w>i8"),
        ("SPLIT", Call((INDICES, I8), (I8, I8, I8)), "i8>i8"),
        ("CONV_2D", Call((I8, constant("INT8", 0.5), ABSENT), (I8,)), "i8,i8w,absent>i8"),
        ("CONV_2D", Call((I16, constant("INT8", 0.5), Operand("INT64", (2,))), (I16,)), "i16,i8w,int64>i16"),
        ("FULLY_CONNECTED", Call((F32, constant("INT8", 0.5)), (F32,)), "f32,i8w>f32"),
        ("ADD", Call((I8, constant("INT8", 0.5)), (I8,)), "i8,i8w>i8"),
        ("NO_SUCH_OPERATOR", Call((I8,), (I8,)), "i8>i8"),
    ],
)
def test_signatures(operator: str, call: Call, expected: str) -> None:
    assert kernels.signature(operator, call) == expected


def test_many_operands_have_the_distinct_forms_in_their_signature_and_states_are_no_constants() -> None:
    weights, biases, state = [constant("INT8", 0.5)] * 8, [F32] * 4, constant("INT16", 0.5)
    operands = (I8, *weights, *[ABSENT] * 3, *biases, ABSENT, ABSENT, constant("INT8", 0.5), state, *[ABSENT] * 4)
    signature = kernels.signature("UNIDIRECTIONAL_SEQUENCE_LSTM", Call(operands, (I8,)))
    assert signature == "i8,i8w,f32,i16>i8"


FILTER, BIAS = constant("INT8", 0.5, 0.25, axis=0), constant("INT32", 0.25, 0.125, axis=0)


@pytest.mark.parametrize(
    ("operator", "call", "expected"),
    [
        ("MAXIMUM", Call((I8, I8), (I8,)), {"same", "centred"}),
        ("MAXIMUM", Call((I8, integers("INT8", 0.25)), (I8,)), {"centred"}),
        ("MAXIMUM", Call((I8, I8), (integers("INT8", 0.5, 1),)), set()),
        ("SOFTMAX", Call((I8,), (integers("INT8", 1 / 256, -128),)), {"fixed"}),
        ("SOFTMAX", Call((I8,), (I8,)), {"centred"}),
        ("MUL", Call((I8, constant("INT8", 0.5, zero_point=3)), (integers("INT8", 2.0),)), {"offset"}),
        ("CONV_2D", Call((I8, FILTER, BIAS), (I8,)), {"centred"}),
        ("CONV_2D", Call((I8, FILTER, BIAS._replace(scales=(0.25, 0.2))), (I8,)), {"centred", "other-bias"}),
        ("CONV_2D", Call((I8, FILTER, BIAS._replace(zero_points=(0, 1))), (I8,)), {"offset", "other-bias"}),
        ("CONV_2D", Call((I8, FILTER, constant("INT32", 0.25)), (I8,)), {"centred", "other-bias"}),
        ("TRANSPOSE_CONV", Call((INDICES, FILTER, I8, BIAS), (I8,)), {"centred"}),
        ("CONV_2D", Call((I8._replace(shape=(1, 2, 2, 8)), FILTER, BIAS), (I8,)), {"centred", "grouped"}),
        ("FULLY_CONNECTED", Call((F32, FILTER), (F32,), {"asymmetric_quantize_inputs": True}),
         {"same", "centred", "asymmetric"}),
        ("BATCH_MATMUL", Call((I8, I16), (I8,), {"adj_y": True}), {"same", "centred", "adjoint"}),
        ("ADD", Call((I16, I16), (integers("INT16", 0.25),)), {"centred", "powers"}),
        ("ADD", Call((I16, I16), (integers("INT16", 0.3),)), {"centred"}),
        ("ADD", Call((I16, I16), (integers("INT16", 0.25),), {"pot_scale_int16": False}), {"centred"}),
    ],
)  # fmt: skip
def test_conditions(operator: str, call: Call, expected: set[str]) -> None:
    assert kernels.conditions(operator, call) == expected


TABLE = (
    "# A comment.\n"
    "PAD TILE\t-\twrong\trefused\ti8>i8 u8>u8\n"
    "PAD TILE\tsame\tok\tok\ti8>i8 u8>u8\n"
    "PAD\tcentred same\tcrashes\tok\tu8>u8\n"
)


@pytest.mark.parametrize(
    ("operator", "operand", "result", "expected"),
    [
        ("TILE", I8, I8, (OK, OK)),
        ("TILE", I8, integers("INT8", 0.25), (WRONG, REFUSED)),
        ("PAD", U8, U8, (CRASHES, OK)),
        ("PAD", integers("UINT8", 0.5, 1), integers("UINT8", 0.5, 1), (OK, OK)),
        ("TILE", I16, I16, None),
        ("SLICE", I8, I8, None),
    ],
)
def test_the_row_with_the_most_conditions_decides(
    operator: str, operand: Operand, result: Operand, expected: tuple[str, str] | None
) -> None:
    found = kernels.find(kernels.parse(TABLE), operator, Call((operand, INDICES), (result,)))
    assert (found and (found.builtin, found.xnnpack)) == expected
    assert found is None or found.is_ok is (expected == (OK, OK))


def test_of_rows_with_as_many_conditions_the_worst_decides() -> None:
    rows = [Outcome(OK, OK, frozenset({"same"})), Outcome(OK, WRONG, frozenset({"powers"})), Outcome(REFUSED, OK)]
    assert kernels.decide(rows, frozenset({"same", "powers"})) == rows[1]
    assert kernels.decide(rows, frozenset({"same"})) == rows[0]
    assert kernels.decide(rows, frozenset()) == rows[2]
    assert kernels.decide(rows[:2], frozenset()) is None


@pytest.mark.parametrize(
    ("operator", "call", "expected"),
    [
        ("MAXIMUM", Call((I8, I8), (I8,)), (OK, OK)),
        ("MAXIMUM", Call((I8, integers("INT8", 0.25)), (I8,)), (WRONG, WRONG)),
        ("ADD", Call((I8, integers("INT8", 0.25)), (I8,)), (OK, OK)),
        ("CONCATENATION", Call((U8, integers("UINT8", 0.25)), (U8,)), (OK, OK)),
        ("CONCATENATION", Call((I8, integers("INT8", 0.25)), (I8,)), (REFUSED, REFUSED)),
        ("POW", Call((I8, I8), (I8,)), (REFUSED, REFUSED)),
        ("POW", Call((F32, F32), (F32,)), None),
    ],
)
def test_outcomes(operator: str, call: Call, expected: tuple[str, str] | None) -> None:
    found = kernels.outcome(operator, call)
    assert (found and (found.builtin, found.xnnpack)) == expected


def test_what_a_call_would_need() -> None:
    wide = integers("INT8", 0.25)
    needs: Mapping[str, frozenset[str]] = {
        "MAXIMUM": kernels.required("MAXIMUM", Call((I8, wide), (I8,))),
        "SOFTMAX": kernels.required("SOFTMAX", Call((I8,), (wide,))),
        "POW": kernels.required("POW", Call((I8, I8), (I8,))),
    }
    assert needs == {"MAXIMUM": frozenset({"same"}), "SOFTMAX": frozenset({"fixed"}), "POW": frozenset()}


def test_fixed_results() -> None:
    assert kernels.fixed_result("SOFTMAX", "INT8") == (1 / 256, -128)
    assert kernels.fixed_result("SOFTMAX", "FLOAT32") is None
    assert kernels.fixed_result("ADD", "INT8") is None


def test_the_table_is_in_the_words_that_the_lookup_knows() -> None:
    rows = kernels.table()
    assert len(rows) > 800
    for (operator, _), found in rows.items():
        assert operators.lookup(operator.lower()) is not None
        assert all({row.builtin, row.xnnpack} <= set(OUTCOMES) for row in found)
        assert all(row.conditions <= set(kernels.CONDITIONS) for row in found)
        assert len({row.conditions for row in found}) == len(found)
    assert any(row == Outcome(OK, OK, frozenset()) for found in rows.values() for row in found)
