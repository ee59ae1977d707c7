"""The `.tflite` file of a converted module, with the metadata of the module's origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tfconvert.exporters.tflite.metadata import Origin
from tfconvert.exporters.tflite.model import Describe, TFLiteFile, export
from tfconvert.exporters.tflite.names import Naming
from tfconvert.schema.dialects import tf, tf_saved_model
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.builtin import ModuleOp

if TYPE_CHECKING:
    from tfconvert.converter.quantization import Quantize
    from tfconvert.converter.quantization_choices import Mode

_OPTIMIZATIONS: Mapping[Mode, str] = {
    "dynamic": "PTQ_DYNAMIC_RANGE",
    "float16": "PTQ_FLOAT16",
    "int8": "PTQ_FULL_INTEGER",
    "int16": "PTQ_INT16",
}
"""The enumerators of `ModelOptimizationMode`; there is none for weights that are only stored as integers."""


def export_file(
    module: ModuleOp,
    *,
    allow_custom_ops: bool,
    quantize: Quantize | None = None,
    describe: Describe | None = None,
    target_runtime: str = "",
    allow_flex: bool = False,
    official_names: bool = False,
) -> TFLiteFile:
    """Returns the file of a module of `tfl` ops, with the settings of its conversion in the metadata.

    Args:
        module: The module.
        allow_custom_ops: Whether custom operators were allowed.
        quantize: How it was quantized.
        describe: Describes inputs and outputs in the file's metadata.
        target_runtime: The release of the runtime that is to run the file; any if empty.
        allow_flex: Whether TensorFlow's own kernels were allowed.
        official_names: Whether tensors are called as TensorFlow's own converter calls them.
    """
    version = module.attributes.get(tf.PRODUCER_VERSION)
    origin = Origin(
        model_type="TF_SAVED_MODEL" if tf_saved_model.SEMANTICS in module.attributes else "NONE",
        tensorflow_version=version.data if isinstance(version, StringAttr) else "",
        optimizations=(_OPTIMIZATIONS[quantize.mode],) if quantize and quantize.mode in _OPTIMIZATIONS else (),
        allow_custom_ops=allow_custom_ops,
        enable_select_tf_ops=allow_flex,
    )
    naming = Naming(official_names)
    return export(module, origin=origin, restate=True, describe=describe, target_runtime=target_runtime, naming=naming)
