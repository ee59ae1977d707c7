"""Ops that few networks have, or that rarely have constant operands, by the file that has their kernels.

`registry.py` loads each file alone, when one of its ops is met. None of these ops is among the common ones.
"""

from __future__ import annotations

from collections.abc import Mapping

MODULES: Mapping[str, str] = {
    "binning": "Bincount Bucketize DenseBincount StringToHashBucket StringToHashBucketFast StringToHashBucketStrong",
    "fake_quant": (
        "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel QuantizeAndDequantize "
        "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4"
    ),
    "image": "CropAndResize ExtractImagePatches",
    "legacy": ("BatchMatrixBandPart BatchMatrixDiag BatchMatrixDiagPart BatchMatrixSetDiag Reverse SparseMatMul"),
    "ranking": "ApproxTopK InTopK InTopKV2 NthElement UnravelIndex",
    "signal": "IRFFT IRFFT2D RFFT RFFT2D",
    "sparse": (
        "SparseFillEmptyRows SparseReorder SparseReshape SparseSegmentMean SparseSegmentMeanWithNumSegments "
        "SparseSegmentSqrtN SparseSegmentSqrtNWithNumSegments SparseSegmentSum SparseSegmentSumWithNumSegments "
        "SparseTensorDenseMatMul"
    ),
    "stacks": "StackCloseV2 StackPopV2 StackPushV2 StackV2",
    "suppression": "NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5",
    "tensor_lists": (
        "EmptyTensorList TensorArrayCloseV3 TensorArrayConcatV3 TensorArrayGatherV3 TensorArrayReadV3 "
        "TensorArrayScatterV3 TensorArraySizeV3 TensorArraySplitV3 TensorArrayV3 TensorArrayWriteV3 TensorListConcat "
        "TensorListConcatLists TensorListConcatV2 TensorListElementShape TensorListFromTensor TensorListGather "
        "TensorListGetItem TensorListLength TensorListPopBack TensorListPushBack TensorListPushBackBatch "
        "TensorListReserve TensorListResize TensorListScatter TensorListScatterIntoExistingList TensorListScatterV2 "
        "TensorListSetItem TensorListSplit TensorListStack XlaDynamicUpdateSlice"
    ),
}
"""File -> its ops, separated by spaces."""

BY_OP: Mapping[str, str] = {op: module for module, ops in MODULES.items() for op in ops.split()}
"""Op name -> file."""
