"""The operators that each family of fusions creates."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from flatbuffers import flexbuffers

from tests.converter.composites.modules import (
    BOXES,
    CELL,
    COUPLED,
    DETECTION,
    FOUND,
    LSTM,
    LSTM_RESULTS,
    NGRAMS,
    NMS,
    NMS_RESULTS,
    SGNN,
    STRING,
    UNPOOLING,
    keras,
    mark,
    module,
    text,
)
from tfconvert.converter.composites.marks import KEPT
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.litert.fusions import registry
from tfconvert.converter.targets.litert.passes.prepare_composite_functions import PrepareCompositeFunctions
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.operation import Operation

LAYER = keras("lstm_1", time_major=False)


def _fuse(source: str, *, custom: bool = True) -> tuple[list[Operation], PassResult]:
    """Returns the ops of the marked function after the pass, and what the pass returned."""
    parsed = module(source)
    result = PrepareCompositeFunctions(allow_custom_ops=custom).apply(parsed)
    verify(parsed)
    function = list(parsed.ops)[1]
    return [op for op in function.walk() if op is not function], result


def _operator(source: str) -> Operation:
    ops, result = _fuse(source)
    operators = [op for op in ops if op.name.startswith("tfl.") and op.name != "tfl.no_value"]
    assert len(operators) == 1, result.notes
    return operators[0]


@pytest.mark.parametrize(
    ("marks", "arguments", "results", "operator"),
    [
        (mark("embedding_matmul"), ("7x3xf32", "4xi32"), ("4x3xf32",), "tfl.embedding_lookup"),
        (mark("embedding_lookup"), ("7x3x2xf32", "?xi64"), ("?x3x2xf32",), "tfl.embedding_lookup"),
        (mark("non_max_suppression_padded_v2"), NMS, NMS_RESULTS, "tfl.non_max_suppression_v4"),
        (LAYER, LSTM, LSTM_RESULTS, "tfl.unidirectional_sequence_lstm"),
        (
            keras("indy_lstm_1", time_major=False),
            (*LSTM[:4], "1x20xf32", LSTM[5]),
            LSTM_RESULTS,
            "tfl.unidirectional_sequence_lstm",
        ),
        (mark("LSTMCellSimple"), CELL, ("1x2xf32",), "tfl.lstm"),
        (mark("LSTMCellSimple,CoupleInputForgetGates"), COUPLED, ("1x2xf32",), "tfl.lstm"),
        (mark("LayerNormalizedLstmCellSimple"), (*CELL, "16xf32"), ("1x?xf32",), "tfl.lstm"),
        (mark("LayerNormalizedLstmCellSimple,CoupleInputForgetGates"), (*COUPLED, "12xf32"), ("1x2xf32",), "tfl.lstm"),
    ],
)
def test_builtin_operators(marks: str, arguments: tuple[str, ...], results: tuple[str, ...], operator: str) -> None:
    source = text(marks, arguments, results)
    assert _operator(source).name == operator
    ops, _ = _fuse(source, custom=False)
    assert not any(op.name == "tf.Mystery" for op in ops)


@pytest.mark.parametrize(
    ("marks", "arguments", "results", "code", "options"),
    [
        (
            mark("TFLite_Detection_PostProcess", **DETECTION),
            BOXES,
            FOUND,
            "TFLite_Detection_PostProcess",
            DETECTION | {"use_regular_nms": 1},
        ),
        (
            mark("tftext:WhitespaceTokenizer"),
            (f"?x{STRING}",),
            (f"?x{STRING}", "?xi64"),
            "tftext:WhitespaceTokenizer",
            {},
        ),
        (mark("tftext:Ngrams", **NGRAMS), (f"?x{STRING}", "?xi64"), (f"?x{STRING}", "?xi64"), "tftext:Ngrams", NGRAMS),
        (
            mark("tftext:custom:SgnnProjection", **SGNN),
            (f"?x{STRING}", "?xi64"),
            ("?x2xf32",),
            "tftext:custom:SgnnProjection",
            SGNN,
        ),
        (mark("addons:DenseImageWarp"), ("1x4x4x1xf32", "1x4x4x2xf32"), ("1x4x4x1xf32",), "DenseImageWarp", {}),
        (
            mark("my.op", tfl_fusable_op=True, z=1, on=False, a=[1.5, 2.5], s="x", t=["p", "q"]),
            ("2xf32",),
            ("3xf32",),
            "my.op",
            {"z": 1, "on": False, "a": [1.5, 2.5], "s": "x", "t": ["p", "q"]},
        ),
    ],
)
def test_custom_operators(
    marks: str, arguments: tuple[str, ...], results: tuple[str, ...], code: str, options: dict[str, Any]
) -> None:
    source = text(marks, arguments, results)
    op = _operator(source)
    assert tfl.attribute(op, tfl.CUSTOM_CODE) == code
    content = tfl.attribute(op, tfl.CUSTOM_OPTION)
    found = flexbuffers.Loads(content) if content else {}
    assert list(found) == sorted(options)
    assert found == options
    assert [type(value) for value in found.values()] == [type(options[name]) for name in found]
    _, kept = _fuse(source, custom=False)
    assert [note.code for note in kept.notes] == [KEPT]
    assert "would be a custom op" in kept.notes[0].message


def test_unpooling_has_the_pooling_parameters_for_options() -> None:
    op = _operator(text(mark("addons:MaxUnpooling2D", **UNPOOLING), ("1x2x2x1xf32", "1x2x2x1xi32"), ("1x8x8x1xf32",)))
    content = tfl.attribute(op, tfl.CUSTOM_OPTION)
    assert struct.unpack("<10i", content) == (1, 5, 4, 3, 2, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "marks", [mark("gru_1"), keras("gru_1", time_major=False), mark("lstm_1"), mark("my.op", tfl_fusable_op=False)]
)
def test_other_marks_mean_nothing(marks: str) -> None:
    ops, result = _fuse(text(marks, LSTM, LSTM_RESULTS))
    assert ops[0].name == "tf.Mystery"
    assert not result.notes


def test_the_state_that_the_operator_gives_may_be_used() -> None:
    ops, _ = _fuse(text(LAYER, LSTM, LSTM_RESULTS, returned=(0, 1, 2)))
    returned = ops[-1].operands
    assert returned[0] is returned[2]
    assert returned[1].owner in ops
    assert str(returned[1].type) == "tensor<1x4x5xf32>"


def test_a_layer_that_gives_its_last_output_alone_gives_it_alone() -> None:
    ops, _ = _fuse(text(LAYER, LSTM, (LSTM_RESULTS[0], "1x1x5xf32", *LSTM_RESULTS[2:]), returned=(0, 1)))
    assert str(ops[-1].operands[1].type) == "tensor<1x1x5xf32>"


def test_every_fusion_has_a_name_and_a_summary_of_its_own() -> None:
    names = [fusion.name for fusion in registry.FUSIONS]
    assert len(set(names)) == len(names)
    assert all(fusion.summary for fusion in registry.FUSIONS)
