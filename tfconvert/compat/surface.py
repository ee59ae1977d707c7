"""Every name that the official modules offer, and what stands for it here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class NameRow(NamedTuple):
    """A name of `tf.lite` or `tf.compat.v1.lite`.

    Attributes:
        name: The name; that of a method has its class before it.
        text: What stands for it here, or why nothing does.
        is_here: Whether there is something under the same name.
        is_old: Whether only the first generation has it.
    """

    name: str
    text: str
    is_here: bool = True
    is_old: bool = False


def _gone(name: str, text: str) -> NameRow:
    return NameRow(name, text, is_here=False, is_old=True)


NAMES: Sequence[NameRow] = (
    NameRow("TFLiteConverter", "a class over `tfconvert.convert`"),
    NameRow("TFLiteConverter.from_saved_model", "the signatures named, or all"),
    NameRow("TFLiteConverter.from_keras_model", "Keras 3 on TensorFlow, and tf_keras"),
    NameRow("TFLiteConverter.from_concrete_functions", "one or several; several become signatures"),
    NameRow("TFLiteConverter.experimental_from_jax", "one function of JAX, which `jax.export` exports"),
    NameRow("Optimize", "the same names and values"),
    NameRow("OpsSet", "the same names and values"),
    NameRow("TargetSpec", "the same attributes"),
    NameRow("RepresentativeDataset", "the same"),
    NameRow("Interpreter", "LiteRT's, from the extra `verify`"),
    NameRow("experimental", "the module below"),
    NameRow(
        "experimental.Analyzer",
        "`analyze` prints the structure, and what a GPU doesn't take with the reason; `rows` returns the same as data",
    ),
    NameRow(
        "experimental.QuantizationDebugger",
        "compares the quantized file with the float one: `layer_statistics`, "
        "its CSV with the same columns, `model_statistics`; a layer inherits what those before it lost; "
        "`get_debug_quantized_model` is an error",
    ),
    NameRow("experimental.QuantizationDebugOptions", "the same"),
    NameRow("experimental.authoring", "`compatible`, and the error `CompatibilityError` that it raises if asked to"),
    NameRow("experimental.OpResolverType", "LiteRT's"),
    NameRow("experimental.load_delegate", "LiteRT's"),
    NameRow("TFLiteConverter.from_session", "variables as they are now", is_old=True),
    NameRow("TFLiteConverter.from_frozen_graph", "`.pb` and `.pbtxt`", is_old=True),
    NameRow("TFLiteConverter.from_keras_model_file", "`.keras` and `.h5`; with custom objects, too", is_old=True),
    NameRow("TFLiteConverter.get_input_arrays", "the names of the inputs", is_old=True),
    NameRow("TocoConverter", "the same as `TFLiteConverter`", is_old=True),
    _gone("OpHint", "converters have not read hints for years; composites mark functions"),
    _gone("experimental.convert_op_hints_to_stubs", "converters have not read hints for years"),
    _gone("toco_convert", "deprecated there: use `TFLiteConverter.from_session`"),
    _gone("constants", 'the names of element types as constants: pass `np.int8`, or `"int8"`'),
)
"""The names, those of the first generation last."""
