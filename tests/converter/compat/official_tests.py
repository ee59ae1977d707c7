"""The official project's own tests of its class (`tflite/python/lite_v2_test.py` of LiteRT), one by one.

Run as a module, it writes them as a page:

python -m tests.converter.compat.official_tests docs/tflite_converter_tests.md
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

Verdict = Literal["holds", "exceeds", "differs", "beside"]


class Row(NamedTuple):
    """One of the official tests.

    Attributes:
        name: Its name.
        verdict: Whether what it asks for holds here, exceeds (it expects an error, where the model converts here),
            differs, or is beside the conversion of TensorFlow's models.
        text: What of ours checks the same kind, if it holds: a test of `test_official_kinds`, or a script of
            `script_corpus`; else why it differs, or what it is about.
        remark: What is different in its details all the same.
    """

    name: str
    verdict: Verdict
    text: str
    remark: str = ""


def _holds(text: str, *names: str, remark: str = "") -> list[Row]:
    return [Row(name, "holds", text, remark) for name in names]


def _differs(text: str, *names: str) -> list[Row]:
    return [Row(name, "differs", text) for name in names]


def _exceeds(text: str, *names: str) -> list[Row]:
    return [Row(name, "exceeds", text) for name in names]


def _beside(text: str, *names: str) -> list[Row]:
    return [Row(name, "beside", text) for name in names]


_ERROR = "the error is a `ConversionError` with its own text"
_METADATA = "the metadata that tells how the file was made has fewer fields"
_FLEX = "needs an operator of TensorFlow's runtime, which isn't written"
_QDQ = "models are not read as quantized by others; the flag is refused"

ROWS: dict[str, Sequence[Row]] = {
    "FromConcreteFunctionTest": [
        *_holds("test_functions_that_are_not_traced_are_refused", "testTypeInvalid", remark=_ERROR),
        *_holds("test_one_function", "testFloat", "testScalarInput", "testMultiFunctionModel", "testTrackbleObject"),
        *_holds("test_integers_that_are_refused", "testInvalidFloat", "testInvalidPostTrainingDynamicRangeQuantization",
                "testInvalidIntegerQuantization", remark=_ERROR),
        *_holds("test_no_inputs", "testModelWithoutInputs"),
        *_holds("test_several_functions", "testConvertMultipleFunctions", "testSignatureDefs",
                remark="tensors have other names than `add_x:0`"),
        *_holds("test_integers", "testPostTrainingCalibrateAndQuantize", "testIntegerQuantization", "testNewQuantizer",
                "testCalibrateAndQuantizeBuiltinInt16", remark="tensors are in another order"),
        *_holds("test_trained_for_integers", "testTrainingTimeQuantization",
                "testQuantizationRemovesQDQsForFloatIOInQAT"),
        *_holds("test_an_operator_without_integers_alone", "testQuantizationRemovesQDQsForFloatIO"),
        *_differs("functions always have a signature, whoever owns their variables",
                  "testNoSignatureDefsWhenTrackingObjIsNone", "testNoSignatureDefsWhenInvalidTrackingObjIsGiven"),
        *_differs(_QDQ, "testGatherNDQI8"),
        *_holds("test_embeddings_and_gathers", "testEmbeddings"),
        *_beside("an attribute that is not public; errors here tell the line of source", "testGraphDebugInfo"),
        *_holds("test_flex_is_not_needed", "testIntegerQuantizationWithFlexOp",
                remark="all becomes builtin operators; no metadata says otherwise"),
        *_holds("test_operators_without_integers", "testIntegerQuantizationWithUnsupportedOps"),
        *_holds("test_samples_are_in_the_order_of_arguments", "testIntegerQuantizationWithControlFlow"),
        *_beside("a function beside the class; `QuantizationDebugOptions` excludes operators and nodes",
                 "testNewQuantizerBlocklistingArgs"),
        *_beside("operators that compare layers aren't written; `QuantizationDebugger` compares two files",
                 "testNewQuantizerNumericVerificationDebugMode"),
        *_holds("test_scales_by_channel", "testDisablePerChannelQuantization"),
        *_holds("test_scales_of_dense_layers", "testDisablePerChannelQuantizationForDenseLayers"),
        *_holds("test_biases_that_are_large", "testQuantizeBiasOverflow"),
        *_holds("test_versions_of_operators", "testOpVersion"),
        *_holds("test_one_function", "testForceSelectTFOps", remark="the result is the same, of builtin operators"),
        *_beside(_METADATA, "testExcludeConversionMetadata", "testConversionMetadataForDynamicRange",
                 "testConversionMetadataForFloat16", "testSerializeDebugMetadata"),
    ],
    "FromSavedModelTest": [
        *_beside("a quantizer that isn't here; it is refused", "testStableHloQuantizerSupportsOnlyStaticRangePtq",
                 "testStableHloQuantizerNoOpForTfSavedModel"),
        *_holds("test_shapes_of_all_ranks", "testV1SimpleModel", "testTF1HubFormattedModel",
                "testScalarInputShapeModel", "testMatrixInputShapeModel",
                "testUnknownInputShapeModel"),
        *_holds("test_one_function", "testUnfoldLargeConstant", remark="the flag has no effect"),
        *_differs(_FLEX, "testPreserveAssert", "testModelWithMutableHashTable"),
        *_holds("test_tables", "testModelWithHashTableInitializer"),
        *_holds("test_integers", "testReduceSumWithInt16Quant"),
        *_holds("SavedModel", "testConstModel", "testVariableModel", "testKerasSequentialModel",
                "testKerasSequentialModelExport", "testConvertDoesNotCallLoad"),
        *_holds("counter", "testNativeVariablesModel"),
        *_holds("test_signatures_of_saved_models", "testSignatures", "testSignatureDefs",
                "testSignatureDefsWithDefaultValue", "testSignatureDefsQuantizedModel", "testMultipleFunctionModel",
                "testMultipleFunctionQuantizedModel", "testMultipleFunctionModelWithSharedWeight", remark=_ERROR),
        *_holds("test_trained_for_integers", "testSignatureDefsWithFullIntegerQuantization",
                "testKerasFullyConnectedOutputShape3D"),
        *_holds("test_models_without_signatures_are_refused", "testNoConcreteFunctionModel", remark=_ERROR),
        *_beside("an attribute that is not public; errors here tell the line of source", "testGraphDebugInfo"),
        *_holds("test_convolutions_that_recur", "testNonStatefulConvLSTM2D"),
        *_differs("the states of a dilated layer change their shape from step to step, and are refused",
                  "testKerasConvLSTM2DWithMoreThanOneDilationRate"),
        *_beside("an error of the official converter about its own form",
                 "testKerasConv2DTransposedWithMismatchQuantizedAxes"),
        *_holds("test_scales_by_channel", "testDisablePerChannelQuantization"),
        *_holds("test_integers_that_are_refused", "testBiasQuantization",
                remark="32-bit biases with 16-bit activations are refused, too"),
        *_holds("dynamic range", "testMlirDynamicRangeQuantization"),
        *_differs(_QDQ, "testQDQConversionMode"),
    ],
    "FromKerasModelTest": [
        *_beside("a path of the official converter that isn't here",
                 "testSavedModelTracingErrorIncludesFallbackContext", "testKerasFallbackPath"),
        *_differs("variables stay floats; the flag is refused", "testVariableQuantization"),
        *_holds("test_variables_beside_small_floats", "testVariableQuantizationInFloat16", remark=_ERROR),
        *_holds("Keras", "testSequentialModel"),
        *_holds("several inputs and outputs", "testSequentialMultiInputOutputModel", "testSignatureDefs"),
        *_beside("an attribute that is not public; errors here tell the line of source", "testGraphDebugInfo"),
        *_holds("dynamic range", "testMlirDynamicRangeQuantization"),
        *_differs("what was trained for fewer than 8 bits isn't stored in fewer; the flag is refused",
                  "testQATLowBitKerasModel"),
        *_holds("test_trained_for_integers", "testKerasConv2DTransposedWithBiasAndActivation"),
        *_holds("test_scales_of_dense_layers", "testDisablePerChannelQuantizationForDenseLayers"),
    ],
    "FromJaxModelTest": _beside(
        "JAX hands over StableHLO, which isn't read", "testInvalidInputsModel", "testSingleInputModel",
        "testMultipleInputsModel", "testInputSignaturesModel", "testModelWithParams", "testWhileLoop"),
    "ControlFlowTest": [
        *_holds("test_loops_and_lists", "testCond", "testCondWithFullIntegerQuantization", "testWhileLoop"),
        *_exceeds("loops and branches of TensorFlow 1 convert here", "testConverterErrorOnControlFlowV1Ops"),
        *_holds("test_recurrent_layers", "testStaticRnn", "testDynamicRnn", "testKerasRNN", "testKerasRNNMultiBatches",
                "testKerasRNNLSTMFloat16Quant"),
        *_holds("test_layers_in_both_directions", "testKerasBidirectionalRNNReturnSequence",
                "testKerasBidirectionalRNN"),
    ],
    "StridedSliceTest": _holds("test_slices_that_start_anywhere", "testStridedSlice"),
    "GrapplerTest": _holds("test_open_sizes", "testConstantFolding"),
    "UnknownShapes": [
        *_holds("test_open_sizes", "testMatMul", "testMatMulQuantize", "testMatMulCalibrateAndQuantize",
                "testBatchMatMul", "testBatchMatMulHybrid"),
        *_differs("products of 8-bit integers with 32-bit results are refused",
                  "testBatchMatMulInputInt8Int8OutputInt32"),
        *_exceeds("open sizes may be anywhere", "testSizeInvalid"),
    ],
    "ResourceAndVariantTypes": [
        *_holds("test_maps", "testVariants", "testVariantsWithCond", "testVariantsWithWhile",
                remark="the file is compared, not run: LiteRT's package has no Flex delegate"),
        *_holds("test_stacks", "testResources", "testResourcesWithCond", "testResourcesWithWhile",
                remark="of builtin operators"),
        *_holds("test_loops_and_lists", "testTensorListWithStaticSize", "testTensorListWithDynamicSize",
                remark="lists that grow convert with either flag"),
    ],
    "CalibrateAndQuantizeWithCustomOpTest": _differs(
        "calibration runs LiteRT's own operators, and none that are registered", "testCustomOpRegistererByName",
        "testCustomOpRegistererByFunc", "testCustomOpRegistererFailure"),
    "IntermediatesTest": _holds("test_tensors_keep_names", "testPreserve", "testNoPreserve"),
    "DatasetOpsTest": _differs(_FLEX, "testReduceDataset"),
    "SparsityTest": _holds("test_sparse_weights_are_stored_whole", "testRandomSparsity", "testBlockSparsity",
                           "testQuantizedBlockSparsity", "testQuantizedButNotEnoughBlockSparsity",
                           remark="results are the same; weights are stored whole"),
    "BufferOffsetTest": [
        *_holds("test_one_function", "testCOncreteFunctionFloat"),
        *_beside("where bytes are in the file; buffers are aligned here, too", "testUseBufferOffsetAlignment"),
    ],
}  # fmt: skip
"""The tests by their class."""

_HEAD = """# The official tests of the class

The tests of `TFLiteConverter` in the LiteRT repository (`tflite/python/lite_v2_test.py`), and how the kind of each
fares here. What holds is checked by a test of this project's own on the same kind of model, with the same settings
(`tests/converter/compat/test_official_kinds.py`, `test_flex_kinds.py`), or by a script that runs with both converters
(`script_corpus.py`). Tests of one kind share one of ours. A test that expects an error, where the model converts here,
is exceeded. What is beside the conversion of TensorFlow's models isn't counted.

"""


def counts() -> Counter[Verdict]:
    """Returns how many tests there are of each verdict."""
    return Counter(row.verdict for rows in ROWS.values() for row in rows)


def page() -> str:
    """Returns the tests as a page."""
    found = counts()
    concern = found.total() - found["beside"]
    good = (found["holds"] + found["exceeds"]) / concern
    share = (f"Of {concern} tests that concern conversion, {found['holds']} hold and {found['exceeds']} are exceeded, "
             f"{good:.0%} together; {found['differs']} differ.\n")  # fmt: skip
    return _HEAD + share + "".join(_tables())


def _tables() -> Iterator[str]:
    for title, rows in ROWS.items():
        yield f"\n## {title}\n\n| test | here | checked by, or why |\n| --- | --- | --- |\n"
        for row in rows:
            text = f"`{row.text}`" if row.verdict == "holds" else row.text
            yield f"| `{row.name}` | {row.verdict} | {text}{'; ' + row.remark if row.remark else ''} |\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), "utf-8")
