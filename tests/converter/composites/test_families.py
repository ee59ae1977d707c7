"""What each family of fusions takes, what it makes of it, and what it declines and why."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from flatbuffers import flexbuffers
from xdsl.ir import Operation

from converter.composites import table
from converter.passes.prepare_composite_functions import KEPT, PrepareCompositeFunctions
from schema.dialects import tfl
from tests.converter.composites.modules import LSTM, LSTM_RESULTS, keras, mark, module, text

NMS = ("12x4xf32", "12xf32", "i32", "f32", "f32", "i1")
NMS_RESULTS = ("1x?xi32", "i32")
STRING = "!tf_type.string"
DETECTION: dict[str, Any] = {
    "max_detections": 10, "max_classes_per_detection": 1, "num_classes": 3, "nms_score_threshold": 0.5,
    "nms_iou_threshold": 0.25, "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
    "use_regular_nms": True,
}  # fmt: skip
BOXES = ("1x6x4xf32", "1x6x4xf32", "6x4xf32")
FOUND = ("1x10x4xf32", "1x10xf32", "1x10xf32", "1xf32")
UNPOOLING: dict[str, Any] = {"pool_size": [2, 3], "strides": [4, 5], "padding": "SAME"}
NGRAMS: dict[str, Any] = {"width": 2, "string_separator": " ", "axis": -1, "reduction_type": "STRING_JOIN"}
SGNN: dict[str, Any] = {"hash_seed": [902, 341], "buckets": 2}
LAYER = keras("lstm_1", time_major=False)
CELL = ("1x3xf32", "5x16xf32", "16xf32", "4x2xf32")
COUPLED = ("1x3xf32", "5x12xf32", "12xf32", "4x2xf32")


def _fuse(source: str, *, custom: bool = True) -> tuple[list[Operation], PrepareCompositeFunctions]:
    """Returns the ops of the marked function after the pass, and the pass."""
    run = PrepareCompositeFunctions(allow_custom_ops=custom)
    parsed = module(source)
    run.apply(parsed)
    parsed.verify()
    function = list(parsed.ops)[1]
    return [op for op in function.walk() if op is not function], run


def _operator(source: str) -> Operation:
    ops, run = _fuse(source)
    operators = [op for op in ops if op.name.startswith("tfl.") and op.name != "tfl.no_value"]
    assert len(operators) == 1, run.notes
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
        (
            mark("LayerNormalizedLstmCellSimple,CoupleInputForgetGates"),
            (*COUPLED, "12xf32"),
            ("1x2xf32",),
            "tfl.lstm",
        ),
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
        (mark("TFLite_Detection_PostProcess", **DETECTION), BOXES, FOUND, "TFLite_Detection_PostProcess", DETECTION),
        (mark("tftext:WhitespaceTokenizer"), (f"?x{STRING}",), (f"?x{STRING}", "?xi64"),
         "tftext:WhitespaceTokenizer", {}),
        (mark("tftext:Ngrams", **NGRAMS), (f"?x{STRING}", "?xi64"), (f"?x{STRING}", "?xi64"), "tftext:Ngrams", NGRAMS),
        (mark("tftext:custom:SgnnProjection", **SGNN), (f"?x{STRING}", "?xi64"), ("?x2xf32",),
         "tftext:custom:SgnnProjection", SGNN),
        (mark("addons:DenseImageWarp"), ("1x4x4x1xf32", "1x4x4x2xf32"), ("1x4x4x1xf32",), "DenseImageWarp", {}),
        (mark("my.op", tfl_fusable_op=True, z=1, on=False, a=[1.5, 2.5], s="x", t=["p", "q"]), ("2xf32",), ("3xf32",),
         "my.op", {"z": 1, "on": False, "a": [1.5, 2.5], "s": "x", "t": ["p", "q"]}),
    ],
)  # fmt: skip
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
    ("marks", "arguments", "results", "reason"),
    [
        (mark("embedding_matmul"), ("7x3xf32",), ("4x3xf32",), "1 arguments, not 2"),
        (mark("embedding_matmul"), ("7xf32", "4xi32"), ("4xf32",), "argument 0 is no table"),
        (mark("embedding_matmul"), ("*xf32", "4xi32"), ("4x3xf32",), "rank of argument 0 is not known"),
        (mark("embedding_matmul"), ("7x3xf32", "4x1xi32"), ("4x1x3xf32",), "argument 1 has rank 2, not 1"),
        (mark("embedding_matmul"), ("7x3xf64", "4xi32"), ("4x3xf64",), "argument 0 holds f64"),
        (mark("non_max_suppression_padded_v2"), NMS[:4], NMS_RESULTS, "4 arguments, not 5 or more"),
        (mark("non_max_suppression_padded_v2"), ("2x12x4xf32", *NMS[1:]), NMS_RESULTS, "argument 0 has rank 3, not 2"),
        (mark("non_max_suppression_padded_v2"), NMS, ("*xi32", "i32"), "rank of result 0 is not known"),
        (mark("TFLite_Detection_PostProcess", **DETECTION), BOXES[:2], FOUND, "2 arguments, not 3"),
        (mark("TFLite_Detection_PostProcess", num_classes=3), BOXES, FOUND, "'max_detections' is missing"),
        (mark("TFLite_Detection_PostProcess", **DETECTION | {"y_scale": 10}), BOXES, FOUND, "'y_scale' is no float"),
        (mark("addons:MaxUnpooling2D", **UNPOOLING | {"padding": "?"}), BOXES[:2], FOUND[:1], "'padding' is not SAME"),
        (mark("addons:MaxUnpooling2D", **UNPOOLING | {"strides": [1]}), BOXES[:2], FOUND[:1], "'strides' is no list"),
        (mark("addons:DenseImageWarp"), ("4x4xf32", "1x4x4x2xf32"), ("4x4xf32",), "argument 0 has rank 2, not 4"),
        (mark("tftext:WhitespaceTokenizer"), (f"1x1x1x{STRING}",), (f"?x{STRING}",), "rank of argument 0"),
        (mark("tftext:WhitespaceTokenizer"), (f"?x{STRING}",), (f"?x{STRING}",), "1 results, not 2"),
        (mark("tftext:Ngrams", width=2), (f"?x{STRING}",), (f"?x{STRING}",), "'string_separator' is missing"),
        (mark("tftext:Ngrams", **NGRAMS), ("?xi64",), ("?xi64",), "argument 0 holds no strings"),
        (mark("tftext:custom:SgnnProjection", **SGNN), (f"?x{STRING}", "?xi64"), ("?x3xf32",), "no matrix of 2 col"),
        (mark("my.op", tfl_fusable_op=True, x=[1, "a"]), ("2xf32",), ("2xf32",), "'x' is no number"),
        (LAYER, (*LSTM, "1x4xi1"), LSTM_RESULTS, "it takes a mask"),
        (LAYER, LSTM[:5], LSTM_RESULTS, "5 arguments, not 6"),
        (LAYER, (*LSTM[:3], "3x?xf32", *LSTM[4:]), LSTM_RESULTS, "shapes of its weights are not all known"),
        (LAYER, (*LSTM[:4], "5x21xf32", LSTM[5]), LSTM_RESULTS, "don't fit together"),
        (LAYER, ("1x4x7xf32", *LSTM[1:]), LSTM_RESULTS, "its inputs doesn't fit"),
        (keras("lstm_1"), LSTM, LSTM_RESULTS, "'time_major' is missing"),
        (keras("indy_lstm_1", time_major=True), LSTM, LSTM_RESULTS, "don't fit together"),
        (mark("LSTMCellSimple"), CELL[:3], ("1x2xf32",), "3 arguments, not 4 or more"),
        (mark("LSTMCellSimple"), COUPLED, ("1x2xf32",), "the 16 columns of 4 gates for 4 cells"),
        (mark("LSTMCellSimple"), ("1x4xf32", *CELL[1:]), ("1x2xf32",), "5 rows, which are not the inputs"),
        (mark("LSTMCellSimple"), ("?x3xf32", *CELL[1:]), ("?x2xf32",), "or the batch, are not known"),
        (mark("LSTMCellSimple"), (*CELL, "1x4xf32"), ("1x2xf32",), "argument 4 is not zeros"),
        (mark("LayerNormalizedLstmCellSimple"), (*CELL, "4xf32"), ("1x2xf32",), "the 16 columns of 4 gates"),
    ],
)  # fmt: skip
def test_what_does_not_fit_keeps_its_body(
    marks: str, arguments: tuple[str, ...], results: tuple[str, ...], reason: str
) -> None:
    ops, run = _fuse(text(marks, arguments, results))
    assert [op.name for op in ops] == ["tf.Mystery", "func.return"]
    assert [note.code for note in run.notes] == [KEPT]
    assert reason in run.notes[0].message


@pytest.mark.parametrize(
    "marks", [mark("gru_1"), keras("gru_1", time_major=False), mark("lstm_1"), mark("my.op", tfl_fusable_op=False)]
)
def test_other_marks_mean_nothing(marks: str) -> None:
    ops, run = _fuse(text(marks, LSTM, LSTM_RESULTS))
    assert ops[0].name == "tf.Mystery"
    assert not run.notes


def test_a_used_cell_state_keeps_the_loop() -> None:
    _, run = _fuse(text(LAYER, LSTM, LSTM_RESULTS, returned=(0, 3)))
    assert "last cell state is used" in run.notes[0].message


def test_the_state_that_the_operator_gives_may_be_used() -> None:
    ops, _ = _fuse(text(LAYER, LSTM, LSTM_RESULTS, returned=(0, 1, 2)))
    returned = ops[-1].operands
    assert returned[0] is returned[2]
    assert returned[1].owner in ops
    assert str(returned[1].type) == "tensor<1x4x5xf32>"


def test_a_layer_that_gives_its_last_output_alone_gives_it_alone() -> None:
    ops, _ = _fuse(text(LAYER, LSTM, (LSTM_RESULTS[0], "1x1x5xf32", *LSTM_RESULTS[2:]), returned=(0, 1)))
    assert str(ops[-1].operands[1].type) == "tensor<1x1x5xf32>"


def test_a_loop_keeps_what_has_state_of_its_own() -> None:
    call = text(LAYER, LSTM, LSTM_RESULTS).split("func.func private")
    looped = call[0].replace("@main", "private @body")
    start = """
      func.func @main(%p: tensor<1x5xf32>) -> tensor<1x5xf32> {
        %0 = "tf.While"(%p) <{cond = @cond, body = @round}> : (tensor<1x5xf32>) -> tensor<1x5xf32>
        func.return %0 : tensor<1x5xf32>
      }
      func.func private @cond(%p: tensor<1x5xf32>) -> tensor<i1> {
        %0 = "tf.Const"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
        func.return %0 : tensor<i1>
      }
      func.func private @round(%p: tensor<1x5xf32>) -> tensor<1x5xf32> {
    """
    makes = "\n".join(f'%m{i} = "tf.Make"() : () -> tensor<{kind}>' for i, kind in enumerate(LSTM))
    values, kinds = ", ".join(f"%m{i}" for i in range(6)), ", ".join(f"tensor<{kind}>" for kind in LSTM)
    middle = f"""{makes}
        %0 = "tf.PartitionedCall"({values}) <{{f = @body}}> : ({kinds}) -> tensor<1x5xf32>
        func.return %0 : tensor<1x5xf32>
      }}
    """
    run = PrepareCompositeFunctions()
    assert not run.apply(module(start + middle + looped + "func.func private" + call[1]))
    assert "it runs in a loop" in run.notes[0].message


def test_every_fusion_has_a_name_and_a_summary_of_its_own() -> None:
    names = [fusion.name for fusion in table.FUSIONS]
    assert len(set(names)) == len(names)
    assert all(fusion.summary for fusion in table.FUSIONS)
