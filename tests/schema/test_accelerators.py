"""The tables of what accelerators accept: their form, and what they say about forms whose verdict is known."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tfconvert.schema.tflite.accelerators.acceptance import (
    ACCELERATORS,
    CRASHES,
    LOAD_FAILS,
    OK,
    OUTCOMES,
    REFUSED,
    UNKNOWN,
    WRONG,
    table,
    verdict,
)
from tfconvert.schema.tflite.accelerators.forms import CONDITIONS, CallForm
from tfconvert.schema.tflite.kernels import type_form
from tfconvert.schema.tflite.tables import TFLITE
from tfconvert.schema.tflite.versions import Call, Operand

Shape = Sequence[int]
MEASURED = ("gpu", "micro")


def x(*shape: int, type: str = "FLOAT32") -> Operand:
    return Operand(type, shape)


def held(*shape: int, type: str = "FLOAT32", elements: Sequence[float] | None = None) -> Operand:
    return Operand(type, shape, is_constant=True, elements=None if elements is None else tuple(elements))


def ints(*elements: int) -> Operand:
    return held(len(elements), type="INT32", elements=elements)


R4 = x(1, 3, 4, 6)

FORMS: Sequence[tuple[str, Call, str]] = [
    ("ADD", Call((R4, R4), (R4,)), OK),
    ("ADD", Call((x(1, 2, 3, 4, 6), x(1, 2, 3, 4, 6)), (x(1, 2, 3, 4, 6),)), REFUSED),
    ("ADD", Call((R4, x()), (R4,)), REFUSED),
    ("ADD", Call((x(3, 6), held(3, 6)), (x(3, 6),)), WRONG),
    ("ADD", Call((x(3, 6), held(1, 6)), (x(3, 6),)), OK),
    ("MUL", Call((x(2, 3, 6), held(2, 1, 6)), (x(2, 3, 6),)), WRONG),
    ("MUL", Call((x(1, 3, 6), held(1, 3, 6)), (x(1, 3, 6),)), OK),
    ("SUB", Call((R4._replace(tensor=1), R4._replace(tensor=1)), (R4,)), REFUSED),
    ("ADD", Call((R4, R4), (R4,), {"fused_activation_function": "SIGN_BIT"}), REFUSED),
    ("EQUAL", Call((x(2, 3, 6, type="INT32"), held(6, type="INT32")), (x(2, 3, 6, type="BOOL"),)), WRONG),
    ("NEG", Call((x(1, 3, type="INT64"),), (x(1, 3, type="INT64"),)), REFUSED),
    ("SOFTMAX", Call((R4,), (R4,), {"beta": 0.5}), REFUSED),
    ("SOFTMAX", Call((x(6),), (x(6),), {"beta": 1.0}), WRONG),
    ("BROADCAST_TO", Call((x(1, 6), ints(3, 6)), (x(3, 6),)), REFUSED),
    ("CUMSUM", Call((R4, held(type="INT32", elements=[3])), (R4,), {"exclusive": True}), WRONG),
    ("REVERSE_V2", Call((R4, ints(3)), (R4,)), WRONG),
    ("REVERSE_V2", Call((x(1, 3, 4, 8), ints(3)), (x(1, 3, 4, 8),)), OK),
    ("RESHAPE", Call((x(2, 12), x(4, type="INT32")), (x(1, 2, 2, 6),)), LOAD_FAILS),
    ("MEAN", Call((R4, x(2, type="INT32")), (R4,), {"keep_dims": True}), LOAD_FAILS),
    ("SELECT_V2", Call((held(4, 6, type="BOOL"), R4, held()), (R4,)), LOAD_FAILS),
    ("SELECT_V2", Call((held(1, 1, 4, 6, type="BOOL"), R4, held()), (R4,)), OK),
    ("CONV_2D", Call((x(1, 8, 8, 4), held(5, 3, 3, 4), x(5)), (x(1, 8, 8, 5),)), CRASHES),
    ("CONV_2D", Call((x(1, 8, 8, 8), held(6, 3, 3, 4), held(6)), (x(1, 8, 8, 6),)), WRONG),
    (
        "TRANSPOSE_CONV",
        Call(
            (ints(1, 15, 15, 5), held(5, 3, 3, 4), x(1, 8, 8, 4)),
            (x(1, 15, 15, 5),),
            {"padding": "SAME", "stride_h": 2, "stride_w": 2},
        ),
        WRONG,
    ),
    ("FULLY_CONNECTED", Call((x(1, 8), x(5, 8), held(5)), (x(1, 5),)), WRONG),
    ("FULLY_CONNECTED", Call((x(1, 8), held(5, 8), held(5)), (x(1, 5),)), OK),
    ("BATCH_MATMUL", Call((x(2, 3, 4), x(1, 4, 5)), (x(2, 3, 5),)), WRONG),
    ("BATCH_MATMUL", Call((x(2, 3, 4), held(4, 5)), (x(2, 3, 5),)), OK),
    ("BATCH_MATMUL", Call((x(2, 3, 4), held(5, 4)), (x(2, 3, 5),), {"adj_y": True}), WRONG),
    ("BATCH_MATMUL", Call((x(1, 2, 3, 4), x(2, 4, 5)), (x(1, 2, 3, 5),)), OK),
    ("BATCH_MATMUL", Call((held(2, 3, 4), x(2, 4, 5)), (x(2, 3, 5),)), REFUSED),
    ("SUB", Call((held(6, type="INT32"), x(1, 3, 4, 6, type="INT32")), (x(1, 3, 4, 6, type="INT32"),)), WRONG),
    ("SUB", Call((held(type="INT32"), x(1, 3, 4, 6, type="INT32")), (x(1, 3, 4, 6, type="INT32"),)), OK),
    ("ARG_MAX", Call((x(1, 10), held(type="INT32", elements=[1])), (x(1, type="INT32"),)), WRONG),
    ("ARG_MAX", Call((x(1, 1000), held(type="INT32", elements=[1])), (x(1, type="INT32"),)), OK),
    ("DEPTHWISE_CONV_2D", Call((x(1, 8, 8, 4), held(1, 3, 3, 4)), (x(1, 8, 8, 4),)), CRASHES),
    ("PAD", Call((x(1, 8, 8, 4), held(4, 2, type="INT32", elements=(0, 1) + (0,) * 6)), (x(2, 8, 8, 4),)), WRONG),
    ("SELECT_V2", Call((held(4, 6, type="BOOL"), x(2, 3, 4, 6), held()), (x(2, 3, 4, 6),)), WRONG),
    ("RANDOM_UNIFORM", Call((ints(1, 6),), (x(1, 6),)), REFUSED),
    ("STABLEHLO_ADD", Call((R4, R4), (R4,)), REFUSED),
    ("PAD", Call((x(3, 8), held(2, 2, type="INT32", elements=(0, 0, 1, 2))), (x(3, 11),)), REFUSED),
    ("GATHER", Call((held(8, 6), x(1, 3, type="INT32")), (x(1, 3, 6),), {"axis": 0}), REFUSED),
    ("STRIDED_SLICE", Call((x(3, 6), ints(1, 0), ints(2, 6), ints(1, 1)), (x(6),), {"shrink_axis_mask": 1}), REFUSED),
    ("TOPK_V2", Call((x(2, 6), held(type="INT32", elements=[3])), (x(2, 3), x(2, 3, type="INT32"))), WRONG),
    ("DEPTH_TO_SPACE", Call((x(2, 8, 8, 16),), (x(2, 16, 16, 4),), {"block_size": 2}), WRONG),
    ("PRELU", Call((R4, held()), (R4,)), REFUSED),
    ("PRELU", Call((R4, held(6)), (R4,)), OK),
    ("SPLIT", Call((held(type="INT32", elements=[3]), R4), (R4,), {"num_splits": 1}), CRASHES),
    ("LEAKY_RELU", Call((R4,), (R4,), {"alpha": -0.5}), WRONG),
    ("LEAKY_RELU", Call((R4,), (R4,), {"alpha": 0.5}), OK),
    ("PACK", Call((x(3, 6)._replace(tensor=1),) * 2, (x(3, 2, 6),), {"axis": 1}), CRASHES),
    ("PACK", Call((x(3, 6)._replace(tensor=1),) * 2, (x(3, 6, 2),), {"axis": -1}), OK),
    ("PACK", Call((x(3, 6)._replace(tensor=1), x(3, 6)._replace(tensor=2)), (x(3, 2, 6),), {"axis": 1}), OK),
    ("BATCH_MATMUL", Call((x(1, 3, 3)._replace(tensor=1),) * 2, (x(1, 3, 3),)), CRASHES),
    ("BATCH_MATMUL", Call((x(2, 3, 3)._replace(tensor=1),) * 2, (x(2, 3, 3),)), OK),
    ("CUMSUM", Call((R4, held(type="INT32", elements=[-1])), (R4,)), CRASHES),
]


@pytest.mark.parametrize(
    ("size", "taps", "stride", "result", "outcome"),
    [
        (8, 3, 2, 16, OK),
        (7, 3, 2, 14, WRONG),
        (5, 5, 2, 10, WRONG),
        (7, 4, 2, 14, OK),
        (5, 3, 2, 9, OK),
        (4, 3, 2, 7, WRONG),
        (7, 3, 3, 21, WRONG),
        (5, 3, 3, 15, OK),
        (6, 4, 4, 24, WRONG),
        (7, 3, 1, 7, OK),
    ],
)
@pytest.mark.parametrize("is_wide", [False, True])
def test_sizes_of_transposed_convolutions(
    size: int, taps: int, stride: int, result: int, outcome: str, is_wide: bool
) -> None:
    sizes, after = ((12, size), (12 * stride, result)) if is_wide else ((size, size), (result, result))
    operands = ints(1, *after, 5), held(5, taps, taps, 4), x(1, *sizes, 4)
    options = {"padding": "SAME", "stride_h": stride, "stride_w": stride}
    assert verdict("gpu", "TRANSPOSE_CONV", Call(operands, (x(1, *after, 5),), options)).outcome == outcome
    valid = Call(operands, (x(1, *after, 5),), {**options, "padding": "VALID"})
    assert verdict("gpu", "TRANSPOSE_CONV", valid).outcome == OK


@pytest.mark.parametrize(
    ("operator", "call", "outcome"),
    FORMS,
    ids=[f"{name}-{outcome}-{at}" for at, (name, _, outcome) in enumerate(FORMS)],
)
def test_verdicts_of_the_gpu(operator: str, call: Call, outcome: str) -> None:
    found = verdict("gpu", operator, call)
    assert found.outcome == outcome, found
    assert found.is_ok or found.reason or outcome in (CRASHES, WRONG)


@pytest.mark.parametrize("name", MEASURED)
def test_tables_are_in_order(name: str) -> None:
    found = table(name)
    assert found.release
    assert set(found.operators) <= set(TFLITE.enums["BuiltinOperator"])
    for operator in found.operators:
        for row in found.rows(operator):
            assert row.outcome in OUTCOMES
            assert set(row.words) <= set(CONDITIONS)


def test_what_was_not_tried_is_unknown() -> None:
    assert verdict("gpu", "HASHTABLE_LOOKUP", Call((R4,), (R4,))).outcome == UNKNOWN
    assert verdict("gpu", "ADD", Call((x(2, type="UINT64"),) * 2, (x(2, type="UINT64"),))).outcome == UNKNOWN


@pytest.mark.parametrize(
    ("operator", "outcome"),
    [("GELU", REFUSED), ("ONE_HOT", REFUSED), ("TILE", REFUSED), ("SELECT", REFUSED), ("TANH", OK), ("SQUEEZE", OK)],
)
def test_verdicts_of_microcontrollers(operator: str, outcome: str) -> None:
    calls = {
        "ONE_HOT": Call((x(3, type="INT32"), held(type="INT32"), held(), held()), (x(3, 4),)),
        "SELECT": Call((x(2, 3, type="BOOL"), x(2, 3), x(2, 3)), (x(2, 3),)),
        "TILE": Call((R4, ints(1, 2, 1, 1)), (x(1, 6, 4, 6),)),
    }
    assert verdict("micro", operator, calls.get(operator, Call((R4,), (R4,)))).outcome == outcome


def test_forms_of_types() -> None:
    assert type_form(Operand("INT8", (2,), (0.1,))) == "i8"
    assert type_form(Operand("INT8", (2,), (0.1, 0.2), axis=0)) == "i8c"
    assert type_form(Operand("INT8", (2,))) == "int8"
    assert type_form(Operand("FLOAT32", (2,), origin="f16")) == "f32<f16"
    assert CallForm("CONV_2D", FORMS[21][1]).signature == "f32,f32>f32"


def test_accelerators_have_tables() -> None:
    assert set(MEASURED) <= set(ACCELERATORS)
