"""The ops of each module, separated by spaces. Made by `python -m tfconvert.ops.generate`; don't edit."""

from __future__ import annotations

from collections.abc import Mapping

MODULES: Mapping[str, str] = {
    "binning": "Bincount Bucketize DenseBincount HistogramFixedWidth",
    "blocks": "BatchToSpace BatchToSpaceND DepthToSpace SpaceToBatch SpaceToBatchND SpaceToDepth",
    "colors": "AdjustContrastv2 AdjustHue AdjustSaturation HSVToRGB RGBToHSV",
    "control_flow": (
        "Case CollectiveReduce CrossReplicaSum NcclAllReduce StatelessCase TPUExecuteAndUpdateVariables "
        "TPUPartitionedInputV2"
    ),
    "convolution": (
        "Conv2D Conv2DBackpropInput Conv3D Conv3DBackpropInputV2 DepthwiseConv2dNative "
        "DepthwiseConv2dNativeBackpropInput Dilation2D"
    ),
    "creation": "Empty Fill LinSpace OnesLike Range ZerosLike",
    "diagonals": (
        "BatchMatrixBandPart BatchMatrixDiag BatchMatrixDiagPart BatchMatrixSetDiag Diag DiagPart MatrixBandPart "
        "MatrixDiag MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MatrixSetDiag "
        "MatrixSetDiagV2 MatrixSetDiagV3"
    ),
    "elementwise": (
        "Abs AccumulateNV2 Add AddN AddV2 Angle ApproximateEqual Atan2 BitwiseAnd BitwiseOr BitwiseXor Cast Ceil "
        "CheckNumerics CheckNumericsV2 ClipByValue Complex ComplexAbs Conj Div DivNoNan Equal Floor FloorDiv FloorMod "
        "Greater GreaterEqual Imag Inv Invert IsFinite IsInf IsNan LeftShift Less LessEqual LogicalAnd LogicalNot "
        "LogicalOr Maximum Minimum Mod Mul MulNoNan Neg NextAfter NotEqual PopulationCount Pow Real RealDiv Reciprocal "
        "Relu Relu6 RightShift Rint Round Select SelectV2 Sign Square SquaredDifference Sub ToBool TruncateDiv "
        "TruncateMod Xdivy Xlog1py Xlogy"
    ),
    "fake_quant": (
        "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars "
        "FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannel FakeQuantWithMinMaxVarsPerChannelGradient "
        "QuantizeAndDequantize QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4"
    ),
    "gamma_functions": "Betainc Digamma Igamma IgammaGradA Igammac Lgamma Polygamma RandomGammaGrad Zeta",
    "gradients": (
        "BiasAddGrad EluGrad FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 InvGrad LRNGrad "
        "LeakyReluGrad MirrorPadGrad ReciprocalGrad Relu6Grad ReluGrad ResizeBicubicGrad ResizeBilinearGrad "
        "ResizeNearestNeighborGrad RsqrtGrad ScaleAndTranslateGrad SeluGrad SigmoidGrad SoftplusGrad SoftsignGrad "
        "SqrtGrad StridedSliceGrad TanhGrad"
    ),
    "identity": (
        "Assert Const DebugIdentity DeepCopy HashTableV2 Identity IdentityN MergeSummary NoOp PlaceholderWithDefault "
        "PreventGradient ReadVariableOp Snapshot StopGradient Timestamp VarHandleOp VarIsInitializedOp VariableShape "
        "_UnaryOpsComposition"
    ),
    "image": (
        "CropAndResize CropAndResizeGradBoxes CropAndResizeGradImage ExtractImagePatches ImageProjectiveTransformV2 "
        "ImageProjectiveTransformV3"
    ),
    "indexing": (
        "DynamicPartition DynamicStitch Gather GatherNd GatherV2 InplaceAdd InplaceSub InplaceUpdate InvertPermutation "
        "LowerBound OneHot ParallelDynamicStitch ScatterNd ScatterNdNonAliasingAdd SparseToDense TensorScatterAdd "
        "TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate UnravelIndex UpperBound Where"
    ),
    "joining": "Concat ConcatOffset ConcatV2 Pack Split SplitV Unpack",
    "layout": (
        "Bitcast BroadcastTo ConjugateTranspose DataFormatDimMap DataFormatVecPermute MirrorPad Pad PadV2 Reverse "
        "ReverseSequence ReverseV2 Roll Tile Transpose"
    ),
    "linear_algebra": (
        "Cholesky LogMatrixDeterminant Lu MatrixDeterminant MatrixExponential MatrixInverse MatrixLogarithm "
        "MatrixSolve MatrixSquareRoot MatrixTriangularSolve Qr Svd"
    ),
    "matmul": (
        "BatchMatMul BatchMatMulV2 BatchMatMulV3 BiasAdd BiasAddV1 Cross Einsum MatMul SparseMatMul TridiagonalMatMul"
    ),
    "normalization": (
        "BatchNormWithGlobalNormalization FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 LRN LogSoftmax Softmax "
        "SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits"
    ),
    "pooling": "AvgPool AvgPool3D MaxPool MaxPool3D MaxPoolV2 MaxPoolWithArgmax",
    "ragged": "RaggedTensorToSparse RaggedTensorToTensor",
    "random_bits": "XlaRngBitGenerator",
    "random_numbers": (
        "Multinomial ParameterizedTruncatedNormal RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt "
        "StatelessMultinomial StatelessRandomGetAlg StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg "
        "StatelessRandomNormal StatelessRandomNormalV2 StatelessRandomUniform StatelessRandomUniformFullInt "
        "StatelessRandomUniformFullIntV2 StatelessRandomUniformInt StatelessRandomUniformIntV2 "
        "StatelessRandomUniformV2 StatelessTruncatedNormal StatelessTruncatedNormalV2 TruncatedNormal"
    ),
    "ranking": (
        "ApproxTopK InTopK InTopKV2 ListDiff NthElement TopK TopKV2 Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2"
    ),
    "recurrent": "tfl.unidirectional_sequence_lstm tfl.unidirectional_sequence_rnn",
    "reduction": (
        "All Any ArgMax ArgMin Cumprod Cumsum CumulativeLogsumexp EuclideanNorm L2Loss Max Mean Min Prod ReduceJoin Sum"
    ),
    "resampling": "ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor ScaleAndTranslate",
    "segments": (
        "SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum SparseSegmentMean SparseSegmentMeanGrad "
        "SparseSegmentMeanGradV2 SparseSegmentMeanWithNumSegments SparseSegmentSqrtN SparseSegmentSqrtNGrad "
        "SparseSegmentSqrtNGradV2 SparseSegmentSqrtNWithNumSegments SparseSegmentSum SparseSegmentSumGrad "
        "SparseSegmentSumGradV2 SparseSegmentSumWithNumSegments UnsortedSegmentMax UnsortedSegmentMin "
        "UnsortedSegmentProd UnsortedSegmentSum"
    ),
    "shape": "BroadcastArgs BroadcastGradientArgs EnsureShape ExpandDims Rank Reshape Shape ShapeN Size Squeeze",
    "signal": "FFT FFT2D FFT3D IFFT IFFT2D IFFT3D IRFFT IRFFT2D IRFFT3D RFFT RFFT2D RFFT3D",
    "slicing": "Slice StridedSlice TensorStridedSliceUpdate XlaDynamicSlice XlaDynamicUpdateSlice",
    "sparse": "SparseFillEmptyRows SparseReorder SparseReshape SparseTensorDenseMatMul",
    "special_functions": (
        "Acos Acosh Asin Asinh Atan Atanh BesselI0 BesselI0e BesselI1 BesselI1e Cos Cosh Dawsn Elu Erf Erfc Erfinv Exp "
        "Expint Expm1 FresnelCos FresnelSin LeakyRelu Log Log1p Ndtri Rsqrt Selu Sigmoid Sin Sinh Softplus Softsign "
        "Spence Sqrt Tan Tanh"
    ),
    "strings": (
        "AsString RegexFullMatch RegexReplace StaticRegexFullMatch StaticRegexReplace StringLength StringLower "
        "StringStrip StringToHashBucket StringToHashBucketFast StringToHashBucketStrong StringToNumber StringUpper"
    ),
    "suppression": (
        "CombinedNonMaxSuppression NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 "
        "NonMaxSuppressionV5"
    ),
    "tensor_lists": (
        "EmptyTensorList StackCloseV2 StackPopV2 StackPushV2 StackV2 TensorArrayCloseV3 TensorArrayConcatV3 "
        "TensorArrayGatherV3 TensorArrayReadV3 TensorArrayScatterV3 TensorArraySizeV3 TensorArraySplitV3 TensorArrayV3 "
        "TensorArrayWriteV3 TensorListConcat TensorListConcatLists TensorListConcatV2 TensorListElementShape "
        "TensorListFromTensor TensorListGather TensorListGetItem TensorListLength TensorListPopBack TensorListPushBack "
        "TensorListPushBackBatch TensorListReserve TensorListResize TensorListScatter "
        "TensorListScatterIntoExistingList TensorListScatterV2 TensorListSetItem TensorListSplit TensorListStack"
    ),
    "window_gradients": (
        "AvgPool3DGrad AvgPoolGrad Conv2DBackpropFilter Conv3DBackpropFilterV2 DepthwiseConv2dNativeBackpropFilter "
        "Dilation2DBackpropFilter Dilation2DBackpropInput MaxPool3DGrad MaxPool3DGradGrad MaxPoolGrad MaxPoolGradGrad "
        "MaxPoolGradV2 MaxPoolGradWithArgmax"
    ),
    "xla": (
        "UniformDequantize UniformQuantize UniformQuantizedAdd UniformQuantizedClipByValue UniformQuantizedConvolution "
        "UniformQuantizedConvolutionHybrid UniformQuantizedDot UniformQuantizedDotHybrid UniformRequantize "
        "XlaBroadcastHelper XlaConvV2 XlaPad XlaReduceWindow XlaSelectAndScatter XlaSetDynamicDimensionSize "
        "XlaSharding XlaVariadicReduceV2 XlaVariadicSort"
    ),
}

DECOMPOSED = (
    "Acos Acosh AdjustContrastv2 AdjustHue AdjustSaturation ApproxTopK ApproximateEqual Asin Asinh Atan Atanh "
    "AvgPool3DGrad AvgPoolGrad BatchMatrixBandPart BatchMatrixDiag BatchMatrixDiagPart BatchMatrixSetDiag "
    "BatchNormWithGlobalNormalization BatchToSpace BesselI0 BesselI0e BesselI1 BesselI1e Betainc BiasAddGrad "
    "BroadcastGradientArgs Cholesky ClipByValue CombinedNonMaxSuppression ConcatOffset Conv2DBackpropFilter "
    "Conv2DBackpropInput Conv3DBackpropFilterV2 Conv3DBackpropInputV2 Cosh CropAndResizeGradBoxes "
    "CropAndResizeGradImage Cross Cumprod CumulativeLogsumexp Dawsn DepthwiseConv2dNativeBackpropFilter "
    "DepthwiseConv2dNativeBackpropInput Diag DiagPart Digamma Dilation2D Dilation2DBackpropFilter "
    "Dilation2DBackpropInput DivNoNan DynamicPartition DynamicStitch EluGrad Erf Erfc Erfinv EuclideanNorm Expint "
    "Expm1 ExtractImagePatches FFT FFT2D FFT3D FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient "
    "FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannel "
    "FakeQuantWithMinMaxVarsPerChannelGradient FresnelCos FresnelSin FusedBatchNormGrad FusedBatchNormGradV2 "
    "FusedBatchNormGradV3 HSVToRGB IFFT IFFT2D IFFT3D IRFFT IRFFT2D IRFFT3D Igamma IgammaGradA Igammac InTopK "
    "InTopKV2 Inv InvGrad InvertPermutation IsFinite IsInf IsNan L2Loss LRNGrad LeakyReluGrad Lgamma LinSpace "
    "ListDiff Log1p LogMatrixDeterminant LowerBound Lu MatrixBandPart MatrixDeterminant MatrixDiagPart "
    "MatrixDiagPartV2 MatrixDiagPartV3 MatrixInverse MatrixSolve MatrixTriangularSolve MaxPool3DGrad "
    "MaxPool3DGradGrad MaxPoolGrad MaxPoolGradGrad MaxPoolGradV2 MaxPoolGradWithArgmax MaxPoolWithArgmax "
    "MirrorPadGrad Mod MulNoNan Ndtri NextAfter NthElement ParallelDynamicStitch ParameterizedTruncatedNormal "
    "Polygamma Qr QuantizeAndDequantize QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4 RFFT "
    "RFFT2D RFFT3D RGBToHSV RaggedTensorToSparse RaggedTensorToTensor RandomGammaGrad RandomShuffle RandomUniformInt "
    "Reciprocal ReciprocalGrad Relu6Grad ReluGrad ResizeBicubicGrad ResizeBilinearGrad ResizeNearestNeighborGrad "
    "Reverse Roll RsqrtGrad ScaleAndTranslateGrad ScatterNdNonAliasingAdd SegmentMax SegmentMean SegmentMin "
    "SegmentProd SegmentSum Selu SeluGrad ShapeN SigmoidGrad Sinh SoftmaxCrossEntropyWithLogits Softplus SoftplusGrad "
    "Softsign SoftsignGrad SpaceToBatch SparseFillEmptyRows SparseMatMul SparseReorder SparseReshape "
    "SparseSegmentMean SparseSegmentMeanGrad SparseSegmentMeanGradV2 SparseSegmentMeanWithNumSegments "
    "SparseSegmentSqrtN SparseSegmentSqrtNGrad SparseSegmentSqrtNGradV2 SparseSegmentSqrtNWithNumSegments "
    "SparseSegmentSum SparseSegmentSumGrad SparseSegmentSumGradV2 SparseSegmentSumWithNumSegments "
    "SparseSoftmaxCrossEntropyWithLogits SparseTensorDenseMatMul Spence SqrtGrad StatelessMultinomial "
    "StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg StatelessRandomNormal StatelessRandomNormalV2 "
    "StatelessRandomUniform StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2 StatelessRandomUniformInt "
    "StatelessRandomUniformIntV2 StatelessRandomUniformV2 StatelessTruncatedNormal StatelessTruncatedNormalV2 "
    "StridedSliceGrad Tan TanhGrad TensorScatterAdd TensorScatterSub TopK TridiagonalMatMul TruncateDiv TruncateMod "
    "TruncatedNormal UniqueV2 UniqueWithCounts UniqueWithCountsV2 UnravelIndex UpperBound Xdivy Xlog1py Xlogy Zeta"
)
