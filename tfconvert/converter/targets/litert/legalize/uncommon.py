"""Legalizations of ops that few networks have: `registry.py` loads each topic alone, when one of its ops is met.

The ops that an op here is lowered to may be of another topic, which is loaded in turn. No op may be listed here that
`registry.py` has too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Topic(NamedTuple):
    """A file that is loaded when it is needed.

    Attributes:
        module: The file's name; it has `ENTRIES`, or `PATTERNS` that recognise groups of ops.
        title: The topic in the table of support.
        ops: The ops that its entries and patterns start at, separated by spaces.
    """

    module: str
    title: str
    ops: str


TOPICS: tuple[Topic, ...] = (
    Topic(
        "image",
        "image",
        "NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 ResizeBilinear "
        "ResizeNearestNeighbor",
    ),
    Topic("einsum", "einsum", "Einsum"),
    Topic("cross_entropy", "losses", "SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits"),
    Topic("roll", "rolling", "Roll"),
    Topic(
        "scatter",
        "scattering",
        "ScatterNdNonAliasingAdd TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub "
        "TensorScatterUpdate",
    ),
    Topic(
        "segments",
        "segments",
        "SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum SparseSegmentMean SparseSegmentMeanWithNumSegments "
        "SparseSegmentSqrtN SparseSegmentSqrtNWithNumSegments SparseSegmentSum SparseSegmentSumWithNumSegments "
        "UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum",
    ),
    Topic("partition", "partitions", "DynamicPartition DynamicStitch InvertPermutation ParallelDynamicStitch"),
    Topic("sharded_tables", "partitions", "DynamicStitch ParallelDynamicStitch"),
    Topic(
        "diagonals",
        "diagonals",
        "Diag DiagPart MatrixDiag MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 "
        "MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3",
    ),
    Topic("uniques", "sets", "ListDiff Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2"),
    Topic(
        "sparse",
        "sparse tensors",
        "SparseFillEmptyRows SparseReorder SparseReshape SparseTensorDenseMatMul SparseToDense",
    ),
    Topic("ragged", "ragged tensors", "RaggedTensorToSparse RaggedTensorToTensor"),
    Topic("strided_update", "strided update", "TensorStridedSliceUpdate"),
    Topic("search", "sorted rows", "LowerBound UpperBound"),
    Topic("signal", "signal", "IRFFT IRFFT2D RFFT RFFT2D"),
    Topic("random", "random", "Multinomial RandomStandardNormal RandomUniform"),
    Topic("control_flow", "control flow", "If StatelessIf StatelessWhile ToBool While"),
    Topic("binning", "counting", "Bincount Bucketize DenseBincount"),
    Topic("argmax_pooling", "pooling with places", "MaxPoolWithArgmax"),
    Topic("resample", "resampling", "ResizeArea ResizeBicubic ScaleAndTranslate"),
    Topic("crops", "resampling", "CropAndResize"),
    Topic(
        "fake_quant",
        "fake quantization",
        "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel QuantizeAndDequantize "
        "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4",
    ),
    Topic("patches", "resampling", "ExtractImagePatches"),
    Topic("legacy", "older ops", "Reverse"),
    Topic("ranking", "ranking", "ApproxTopK InTopK InTopKV2 NthElement UnravelIndex"),
)


def _by_op() -> Mapping[str, frozenset[Topic]]:
    found: dict[str, frozenset[Topic]] = {}
    for topic in TOPICS:
        alone = frozenset((topic,))
        for op in topic.ops.split():
            name = f"tf.{op}"
            found[name] = found[name] | alone if name in found else alone
    return found


BY_OP: Mapping[str, frozenset[Topic]] = _by_op()
"""Op with its dialect's prefix -> the topics that are loaded for it."""
