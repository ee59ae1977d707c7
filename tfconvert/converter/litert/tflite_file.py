"""The `.tflite` file of a converted module, with the metadata of the module's origin."""

from __future__ import annotations

from tfconvert.exporters.tflite.metadata import Origin
from tfconvert.exporters.tflite.model import TFLiteFile, export
from tfconvert.schema.dialects import tf, tf_saved_model
from tfconvert.schema.ir.builtin import ModuleOp


def export_file(module: ModuleOp, *, allow_custom_ops: bool) -> TFLiteFile:
    """Returns the file of a module of `tfl` ops.

    Args:
        module: The module.
        allow_custom_ops: The setting with which it was converted, for the file's metadata.
    """
    version = module.attributes.get(tf.PRODUCER_VERSION)
    origin = Origin(
        model_type="TF_SAVED_MODEL" if tf_saved_model.SEMANTICS in module.attributes else "NONE",
        tensorflow_version=str(tf.python_value(version)) if version is not None else "",
        allow_custom_ops=allow_custom_ops,
    )
    return export(module, origin=origin)
