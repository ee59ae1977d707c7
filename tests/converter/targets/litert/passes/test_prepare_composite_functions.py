"""The pass `prepare-composite-functions`: the ops of each fusion; tests/converter/composites has declined functions."""

from __future__ import annotations

import pytest

from tests.converter.composites.modules import BOXES, DETECTION, FOUND, LSTM, LSTM_RESULTS, STRING, keras, mark, text
from tests.converter.pass_texts import FileCheck
from tfconvert.converter.targets.litert.fusions import registry
from tfconvert.converter.targets.litert.passes.prepare_composite_functions import PrepareCompositeFunctions

SCALARS = ("i32", "f32", "f32")
ANY = "%{{[0-9]+}}"
NONE = "%[[NONE:[0-9]+]]"
LSTM_CHECKS = [
    f'{NONE} = "tfl.no_value"()',
    f'%[[SEQUENCE:[0-9]+]] = "tfl.unidirectional_sequence_lstm"(%a0, {ANY}, {ANY}, {ANY}, {ANY}, {ANY}, {ANY}, {ANY}, '
    f"{ANY}, %[[NONE]], %[[NONE]], %[[NONE]], {ANY}, {ANY}, {ANY}, {ANY}, %[[NONE]], %[[NONE]], %a1, %a2, %[[NONE]],",
    "...cell_clip = 0.000000e+00",
    '%[[LAST:[0-9]+]] = "tf.StridedSlice"(%[[SEQUENCE]]',
    "func.return %[[LAST]], %[[SEQUENCE]], %[[LAST]], %a2,",
]
CELL_CHECKS = [
    f'{NONE} = "tfl.no_value"()',
    '"tfl.lstm"(%a0, ',
    "...cell_clip = 1.000000e+01",
    '...kernel_type = "FULL"',
]
CUSTOM = '...custom_code = "{}", custom_option = #tfl<const_bytes : "0x{}">'

# A check that begins with dots is about the same line as the one before.
CASES = {
    "embedding-matmul": (
        mark("embedding_matmul"),
        ("7x3xf32", "4xi32"),
        ("4x3xf32",),
        ['"tfl.embedding_lookup"(%a1, %a0) : (tensor<4xi32>, tensor<7x3xf32>) -> tensor<4x3xf32>'],
    ),
    "embedding-lookup": (
        mark("embedding_lookup"),
        ("7x3xf32", "4xi64"),
        ("4x3xf32",),
        ['%[[IDS:[0-9]+]] = "tf.Cast"(%a1)', '"tfl.embedding_lookup"(%[[IDS]], %a0)'],
    ),
    "non-max-suppression": (
        mark("non_max_suppression_padded_v2"),
        ("12x4xf32", "12xf32", *SCALARS, "i1"),
        ("1x5xi32", "i32"),
        [
            '%[[FOUND:[0-9]+]], %[[COUNT:[0-9]+]] = "tfl.non_max_suppression_v4"',
            "...(%a0, %a1, %a2, %a3, %a4)",
            '%[[ROW:[0-9]+]] = "tf.Reshape"(%[[FOUND]]',
            "func.return %[[ROW]], %[[COUNT]]",
        ],
    ),
    "detection-post-process": (
        mark("TFLite_Detection_PostProcess", **DETECTION),
        BOXES,
        FOUND,
        ['"tfl.custom"(%a0, %a1, %a2)', CUSTOM.format("TFLite_Detection_PostProcess", "")[:-2]],
    ),
    "max-unpooling-2d": (
        mark("addons:MaxUnpooling2D", pool_size=[2, 2], strides=[2, 2], padding="VALID"),
        ("1x2x2x1xf32", "1x2x2x1xi32"),
        ("1x4x4x1xf32",),
        ['"tfl.custom"(%a0, %a1)', CUSTOM.format("MaxUnpooling2D", "02000000" * 5 + "00000000" * 5)],
    ),
    "dense-image-warp": (
        mark("addons:DenseImageWarp"),
        ("1x4x4x1xf32", "1x4x4x2xf32"),
        ("1x4x4x1xf32",),
        ['"tfl.custom"(%a0, %a1)', CUSTOM.format("DenseImageWarp", "")],
    ),
    "whitespace-tokenizer": (
        mark("tftext:WhitespaceTokenizer"),
        (STRING,),
        (f"?x{STRING}",),
        ['"tfl.custom"(%a0)', CUSTOM.format("tftext:WhitespaceTokenizer", "")],
    ),
    "ngrams": (
        mark("tftext:Ngrams", width=2, string_separator="", axis=-1, reduction_type="STRING_JOIN"),
        (f"?x{STRING}",),
        (f"?x{STRING}",),
        ['"tfl.custom"(%a0)', '...custom_code = "tftext:Ngrams"'],
    ),
    "sgnn-projection": (
        mark("tftext:custom:SgnnProjection", hash_seed=[1, 2], buckets=3),
        (f"?x{STRING}", "?xi64"),
        ("?x2xf32",),
        ['"tfl.custom"(%a0, %a1)', '...custom_code = "tftext:custom:SgnnProjection"'],
    ),
    "keras-lstm": (keras("lstm_0", time_major=False), LSTM, LSTM_RESULTS, LSTM_CHECKS),
    "keras-indy-lstm": (
        keras("indy_lstm_0", time_major=False),
        (*LSTM[:4], "1x20xf32", LSTM[5]),
        LSTM_RESULTS,
        [*LSTM_CHECKS[:3], "...diagonal_recurrent_tensors = true", *LSTM_CHECKS[3:]],
    ),
    "lstm-cell": (mark("LSTMCellSimple"), ("1x3xf32", "5x16xf32", "16xf32", "4x2xf32"), ("1x2xf32",), CELL_CHECKS),
    "lstm-cell-coupled": (
        mark("LSTMCellSimple,CoupleInputForgetGates"),
        ("1x3xf32", "5x12xf32", "12xf32", "4x2xf32"),
        ("1x2xf32",),
        [CELL_CHECKS[0], '"tfl.lstm"(%a0, %[[NONE]],', *CELL_CHECKS[2:]],
    ),
    "lstm-cell-normalized": (
        mark("LayerNormalizedLstmCellSimple"),
        ("1x3xf32", "5x16xf32", "16xf32", "4x2xf32", "16xf32"),
        ("1x2xf32",),
        [CELL_CHECKS[0], '"tf.Slice"(%a4', *CELL_CHECKS[1:]],
    ),
    "lstm-cell-normalized-coupled": (
        mark("LayerNormalizedLstmCellSimple,CoupleInputForgetGates"),
        ("1x3xf32", "5x12xf32", "12xf32", "4x2xf32", "12xf32"),
        ("1x2xf32",),
        [CELL_CHECKS[0], '"tf.Slice"(%a4', '"tfl.lstm"(%a0, %[[NONE]],'],
    ),
    "fusable-op": (
        mark("my.op", tfl_fusable_op=True),
        ("2xf32",),
        ("2xf32", "3xi32"),
        [f'{ANY}, {ANY} = "tfl.custom"(%a0)', '...custom_code = "my.op"', "...-> (tensor<2xf32>, tensor<3xi32>)"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_put_in(filecheck: FileCheck, name: str) -> None:
    marks, arguments, results, checks = CASES[name]
    lines = ["func.func private @f(", *checks]
    expected = "\n".join(
        f"// CHECK-SAME: {line[3:]}" if line.startswith("...") else f"// CHECK: {line}" for line in lines
    )
    filecheck(PrepareCompositeFunctions(allow_custom_ops=True), f"{expected}\n{text(marks, arguments, results)}")


def test_every_fusion_is_shown() -> None:
    assert set(CASES) == {fusion.name for fusion in registry.FUSIONS}
