"""The table of LiteRT's kernels: forms, conditions and lookups."""

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


def _layer(*absent: int) -> Call:
    """Returns the call of an LSTM without some operands."""
    operands = [I8, *[constant("INT8", 0.5)] * 8, *[ABSENT] * 3, *[constant("INT32", 0.25)] * 4]
    operands += [ABSENT, ABSENT, I8, I16, *[ABSENT] * 4]
    return Call(tuple(ABSENT if index in absent else each for index, each in enumerate(operands)), (I8,))


@pytest.mark.parametrize(
    ("absent", "expected"),
    [
        ((), OK),
        ((1, 5, 12), OK),
        ((12,), CRASHES),
        ((1, 5, 12, 13), CRASHES),
        ((14, 15), CRASHES),
        ((12, 13, 14, 15), CRASHES),
    ],
)
def test_every_gate_with_weights_needs_a_bias(absent: tuple[int, ...], expected: str) -> None:
    call = _layer(*absent)
    assert ("unbiased" in kernels.conditions("UNIDIRECTIONAL_SEQUENCE_LSTM", call)) is (expected == CRASHES)
    found = kernels.outcome("UNIDIRECTIONAL_SEQUENCE_LSTM", call)
    assert found is not None
    assert (found.builtin, found.xnnpack) == (expected, expected)


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
        (
            "FULLY_CONNECTED",
            Call((F32, FILTER), (F32,), {"asymmetric_quantize_inputs": True}),
            {"same", "centred", "asymmetric"},
        ),
        ("BATCH_MATMUL", Call((I8, I16), (I8,), {"adj_y": True}), {"same", "centred", "adjoint"}),
        ("ADD", Call((I16, I16), (integers("INT16", 0.25),)), {"centred", "powers"}),
        ("ADD", Call((I16, I16), (integers("INT16", 0.3),)), {"centred"}),
        ("ADD", Call((I16, I16), (integers("INT16", 0.25),), {"pot_scale_int16": False}), {"centred"}),
    ],
)
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
    found = kernels.find(kernels.KernelTable(TABLE), operator, Call((operand, INDICES), (result,)))
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
        ("POW", Call((F32, F32), (F32,)), (OK, OK)),
        ("CUSTOM", Call((F32, F32), (F32,)), None),
    ],
)
def test_outcomes(operator: str, call: Call, expected: tuple[str, str] | None) -> None:
    found = kernels.outcome(operator, call)
    assert (found and (found.builtin, found.xnnpack)) == expected


def test_missing_requirements_of_a_call() -> None:
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
    table = kernels.table()
    words = set(kernels.CONDITIONS) | set(kernels.PLAIN_CONDITIONS)
    rows = [found for operator in table.operators for found in table.rows(operator).values()]
    assert len(rows) > 3000
    assert all(operators.lookup(operator.lower()) is not None for operator in table.operators)
    for found in rows:
        assert all({row.builtin, row.xnnpack} <= set(OUTCOMES) for row in found)
        assert all(row.conditions <= words for row in found)
        assert len({(row.conditions, row.low) for row in found}) == len(found)
    assert any(row == Outcome(OK, OK, frozenset()) for found in rows for row in found)


def plain(type: str, *shape: int, is_constant: bool = False) -> Operand:
    """Returns an operand whose numbers are stored as they are."""
    return Operand(type, shape, is_constant=is_constant)


AXES = plain("INT32", 1, is_constant=True)
LONGS = plain("INT64", 2)


@pytest.mark.parametrize(
    ("operator", "call", "expected"),
    [
        ("PAD", Call((plain("FLOAT32", 2), AXES), (plain("FLOAT32", 4),)), "f32,int32>f32"),
        ("CONCATENATION", Call((LONGS, LONGS), (LONGS,)), "int64>int64"),
        ("LESS", Call((LONGS, LONGS), (plain("BOOL", 2),)), "int64,int64>bool"),
        ("CONV_2D", Call((F32, F32, ABSENT), (F32,)), "f32,f32,absent>f32"),
    ],
)
def test_signatures_of_plain_calls_have_all_types(operator: str, call: Call, expected: str) -> None:
    assert kernels.signature(operator, call) == expected


@pytest.mark.parametrize(
    ("operator", "call", "expected"),
    [
        ("MEAN", Call((F32, AXES), (plain("FLOAT32", 2),)), set()),
        ("MEAN", Call((F32, plain("INT32", 1)), (plain("FLOAT32", 2),)), {"computed"}),
        ("ADD", Call((F32, plain("FLOAT32", 4)), (F32,)), {"broadcast"}),
        ("ADD", Call((plain("FLOAT32", 0),) * 2, (plain("FLOAT32", 0),)), {"empty"}),
        ("GATHER_ND", Call((F32, plain("INT32", 3, 0)), (plain("FLOAT32", 3, 2, 4),)), {"hollow"}),
        ("RESHAPE", Call((plain("FLOAT32", 1), plain("INT32", 0, is_constant=True)), (plain("FLOAT32"),)), set()),
    ],
)
def test_conditions_of_plain_calls(operator: str, call: Call, expected: set[str]) -> None:
    assert kernels.conditions(operator, call) == expected


def test_parameters_have_no_part_in_the_rank() -> None:
    pads = plain("INT32", 1, 2, is_constant=True)
    assert kernels.rank_of("PAD", Call((plain("FLOAT32", 3), pads), (plain("FLOAT32", 5),))) == 1
    assert kernels.rank_of("ADD", Call((plain("FLOAT32", 3), F32), (F32,))) == 2
    assert kernels.rank_of("ADD", Call((Operand("FLOAT32"), F32), (Operand("FLOAT32"),))) is None
    assert kernels.rank_of("CONV_2D", Call((F32, F32, ABSENT), (F32,))) == 2


RANKS = """# A comment
MEAN	rank0-6	ok	ok	f32,int32>f32
MEAN	rank7-	ok	refused	f32,int32>f32
MEAN	computed	ok	ok	f32,int32>f32
MEAN SUM	-	refused	refused	bool,int32>bool
"""


@pytest.mark.parametrize(
    ("rank", "axes", "expected"),
    [(3, AXES, OK), (6, AXES, OK), (7, AXES, REFUSED), (8, AXES, REFUSED), (8, plain("INT32", 1), OK)],
)
def test_a_row_may_be_for_some_ranks(rank: int, axes: Operand, expected: str) -> None:
    operand = plain("FLOAT32", *([2] * rank))
    found = kernels.find(kernels.KernelTable(RANKS), "MEAN", Call((operand, axes), (plain("FLOAT32", 2),)))
    assert found is not None
    assert found.xnnpack == expected


def test_for_an_unknown_rank_only_rows_for_all_ranks_apply() -> None:
    table, unknown = kernels.KernelTable(RANKS), Operand("FLOAT32")
    assert kernels.find(table, "MEAN", Call((unknown, AXES), (unknown,))) is None
    of_booleans = kernels.find(table, "SUM", Call((Operand("BOOL"), AXES), (Operand("BOOL"),)))
    assert of_booleans == Outcome(REFUSED, REFUSED)


@pytest.mark.parametrize(
    ("operator", "kind", "rank", "expected"),
    [
        ("NOT_EQUAL", "INT16", 2, WRONG),
        ("EQUAL", "INT16", 2, OK),
        ("NOT_EQUAL", "INT32", 8, OK),
        ("EQUAL", "INT8", 1, CRASHES),
    ],
)
def test_outcomes_of_comparisons(operator: str, kind: str, rank: int, expected: str) -> None:
    operand, result = plain(kind, *([2] * rank)), plain("BOOL", *([2] * rank))
    found = kernels.outcome(operator, Call((operand, operand), (result,)))
    assert found is not None
    assert found.builtin == expected
