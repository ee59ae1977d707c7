"""Our verifier refuses what TensorFlow's refuses, and nothing else, on forms of ops with rules: random, and chosen."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.mlir import op_forms, op_variants, oracle
from tfconvert.importers.mlir import import_mlir
from tfconvert.schema.diagnostics import ConversionError

_OPS = """
All BatchMatMul BatchMatMulV2 BatchToSpace BatchToSpaceND BiasAdd BiasAddGrad Bitcast BroadcastGradientArgs ConcatOffset
ConcatV2 Conv2D Conv2DBackpropInput Cumsum DataFormatVecPermute DynamicStitch Einsum Equal FakeQuantWithMinMaxArgs
FakeQuantWithMinMaxVarsPerChannel Fill FusedBatchNorm GatherV2 Identity InvertPermutation MatrixBandPart MaxPoolGrad Mul
OneHot Pack Pad Qr RandomUniform Relu Reshape Select SelectV2 Shape ShapeN Size Slice Softmax
SoftmaxCrossEntropyWithLogits SpaceToBatchND SparseSoftmaxCrossEntropyWithLogits Split SplitV Squeeze StridedSlice
StridedSliceGrad TensorScatterUpdate Tile TopKV2 Transpose UnsortedSegmentSum Unpack XlaBroadcastHelper
XlaSetDynamicDimensionSize
"""

_EACH = 6


def _reason(text: str) -> str:
    try:
        import_mlir(text)
    except ConversionError as refused:
        return refused.diagnostics[0].message
    return ""


def _of_chance() -> dict[str, str]:
    chance = random.Random(13)
    return {f"{name} {number}": op_variants.variant(name, chance) for name in _OPS.split() for number in range(_EACH)}


def _of_relations() -> dict[str, str]:
    return {f"{form.name} {number}": op_forms.text(form) for number, form in enumerate(op_forms.FORMS)}


@pytest.mark.parametrize("made", [_of_chance, _of_relations])
def test_our_verdicts_are_tensorflows(made: Callable[[], dict[str, str]]) -> None:
    texts = made()
    theirs = oracle.problems(texts)
    ours = {key: reason for key, text in texts.items() if (reason := _reason(text))}
    assert len(texts) - 20 > len(theirs) > len(texts) // 3, "the sample is one-sided"
    wrong = ours.keys() ^ theirs.keys()
    assert not wrong, "\n".join(
        f"{key}: {texts[key]}\nours: {ours.get(key)}\ntheirs: {theirs.get(key)}" for key in wrong
    )
