"""Rules for operator versions, and the runtime that a model needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tfconvert.schema.tflite import operators, versions
from tfconvert.schema.tflite.tables import TFLITE
from tfconvert.schema.tflite.versions import ABSENT, Call, Operand, minimum_runtime, operator_version

Kind = str | tuple[Any, ...]


def operand(kind: Kind) -> Operand:
    """Returns an operand: a type, or a type with a shape and scales."""
    return Operand(kind) if isinstance(kind, str) else Operand(*kind)


F, I8, I16 = "FLOAT32", "INT8", "INT16"
IMAGE = (F, (1, 8, 8, 4))

CASES: list[tuple[str, list[Kind], list[Kind], Mapping[str, Any], int]] = [
    ("ADD", [F, F], [F], {}, 1),
    ("ADD", [I8, I8], [I8], {}, 2),
    ("ADD", [(I16, (2,), (0.5,))] * 2, [I16], {"pot_scale_int16": False}, 3),
    ("ADD", ["INT64"] * 2, ["INT64"], {}, 4),
    ("ADD", [I16, I16], [I16], {}, 5),
    ("ADD", ["FLOAT16"] * 2, ["FLOAT16"], {}, 6),
    ("SUB", [(F, (1, 1, 1, 1, 2)), (F, (2,))], [F], {}, 3),
    ("MUL", [(I8, (), (2.0,)), (I8, (), (1.0,))], [(I8, (), (1.0,))], {}, 3),
    ("MUL", [(I8, (), (0.1,)), (I8, (), (0.1,))], [(I8, (), (1.0,))], {}, 2),
    ("MUL", ["UINT32"] * 2, ["UINT32"], {}, 7),
    ("CONV_2D", [IMAGE, (F, (2, 3, 3, 4))], [F], {}, 1),
    ("CONV_2D", [IMAGE, (F, (4, 3, 3, 2))], [F], {}, 6),
    ("CONV_2D", [IMAGE, (I8, (2, 3, 3, 4), (0.1,))], [F], {}, 2),
    ("CONV_2D", [IMAGE, (I8, (2, 3, 3, 4), (0.1, 0.2))], [F], {}, 5),
    ("CONV_2D", [I8, I8], [I8], {}, 3),
    ("CONV_2D", [I16, I8], [I16], {"quantized_bias_type": "INT32"}, 8),
    ("DEPTHWISE_CONV_2D", [F, F], [F], {"dilation_w_factor": 1, "dilation_h_factor": 1}, 1),
    ("DEPTHWISE_CONV_2D", [F, F], [F], {"dilation_h_factor": 2}, 2),
    ("TRANSPOSE_CONV", ["INT32", F, F], [F], {"fused_activation_function": "NONE"}, 1),
    ("TRANSPOSE_CONV", ["INT32", F, F, F], [F], {"fused_activation_function": "NONE"}, 3),
    ("TRANSPOSE_CONV", ["INT32", F, F, F], [F], {"fused_activation_function": "RELU"}, 4),
    ("FULLY_CONNECTED", [F, F, F], [F], {}, 1),
    ("FULLY_CONNECTED", [F, F, F], [F], {"keep_num_dims": True}, 5),
    ("FULLY_CONNECTED", [F, F], [F], {"keep_num_dims": True}, 6),
    ("FULLY_CONNECTED", [F, (I8, (), (1.0,)), F], [F], {"asymmetric_quantize_inputs": True}, 9),
    ("GATHER", [F, "INT32"], [F], {"batch_dims": 1}, 5),
    ("GATHER", ["BOOL", "INT32"], ["BOOL"], {}, 3),
    ("TRANSPOSE", [(F, (1,) * 4), "INT32"], [F], {}, 1),
    ("TRANSPOSE", [(F, (1,) * 5), "INT32"], [F], {}, 4),
    ("TRANSPOSE", [(F, (1,) * 6), "INT32"], [F], {}, 6),
    ("TRANSPOSE", [(F, (1,) * 7), "INT32"], [F], {}, 8),
    ("STRIDED_SLICE", [F], [F], {"ellipsis_mask": 0, "new_axis_mask": 0}, 1),
    ("STRIDED_SLICE", [F], [F], {"ellipsis_mask": 0, "new_axis_mask": 1}, 6),
    ("SPLIT", ["INT32", I16], [I16], {}, 4),
    ("FILL", ["INT32", "BOOL"], ["BOOL"], {}, 2),
    ("SPACE_TO_BATCH_ND", [(F, (1, 2, 2, 1))], [F], {}, 1),
    ("SPACE_TO_BATCH_ND", [(F, (1, 2, 1))], [F], {}, 3),
    ("RESIZE_BILINEAR", [F], [F], {"half_pixel_centers": True}, 3),
    ("RESIZE_NEAREST_NEIGHBOR", [F], [F], {"align_corners": True}, 3),
    ("BROADCAST_TO", [F, "INT32"], [F], {}, 2),
    ("SELECT", ["BOOL", (F, (1,) * 5), F], [F], {}, 3),
    ("WHERE", ["BOOL"], ["INT64"], {}, 1),
    ("WHERE", [F], ["INT64"], {}, 2),
    ("CAST", [F], ["INT32"], {}, 1),
    ("CAST", ["INT32"], [I8], {}, 3),
    ("CAST", ["FLOAT16"], [F], {}, 5),
    ("QUANTIZE", [F], [(I8, (), (0.1, 0.2))], {}, 3),
    ("DEQUANTIZE", ["FLOAT16"], [F], {}, 3),
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", [F] * 5, [F], {"diagonal_recurrent_tensors": False}, 1),
    ("RELU_N1_TO_1", [I8], [I8], {}, 1),
]


@pytest.mark.parametrize(("operator", "inputs", "outputs", "options", "version"), CASES)
def test_version(
    operator: str, inputs: list[Kind], outputs: list[Kind], options: Mapping[str, Any], version: int
) -> None:
    call = Call(tuple(map(operand, inputs)), tuple(map(operand, outputs)), options)
    assert operator_version(operator, call) == version


def test_rules_are_of_operators_and_hold_for_calls_without_operands() -> None:
    assert set(versions.rules()) <= set(TFLITE.enums["BuiltinOperator"])
    for operator in versions.rules():
        assert operator_version(operator, Call((), ())) >= 1
    assert Call(()).operand(3) is ABSENT


def test_every_version_of_a_rule_has_a_release() -> None:
    releases = {name.upper(): found for name, found in operators.releases().items()}
    assert set(releases) <= set(TFLITE.enums["BuiltinOperator"])
    missing = {
        (operator, version)
        for operator, rows in versions.rules().items()
        for version, _ in rows
        if version > len(releases[operator]) or releases[operator][version - 1] == "-"
    }
    # The runtime's own table has no release for the 16-bit LSTMs.
    assert missing == {("LSTM", 5), ("UNIDIRECTIONAL_SEQUENCE_LSTM", 5)}


@pytest.mark.parametrize(
    ("uses", "release"),
    [
        ([], ""),
        ([("CUSTOM", 1)], ""),
        ([("ADD", 1)], "1.5.0"),
        ([("ADD", 1), ("CONV_2D", 8), ("ADD", 4)], "2.15.0"),
        ([("ADD", 99)], ""),
        ([("DEPTHWISE_CONV_2D", 2), ("RESIZE_BILINEAR", 1)], "1.12.0"),
    ],
)
def test_runtime(uses: list[tuple[str, int]], release: str) -> None:
    assert minimum_runtime(uses) == release
