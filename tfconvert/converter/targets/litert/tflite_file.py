"""The `.tflite` file of a converted module, with the metadata of the module's origin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tfconvert.exporters.tflite.model import Origin, TFLiteFile, export
from tfconvert.exporters.tflite.subgraph import Naming
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import tf, tf_saved_model, tfl, tfl_file
from tfconvert.schema.ir.attributes import ArrayAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.quantization import Mode, Quantize
from tfconvert.settings.targets import LiteRT

_OPTIMIZATIONS: Mapping[Mode, str] = {
    "dynamic": "PTQ_DYNAMIC_RANGE",
    "float16": "PTQ_FLOAT16",
    "int8": "PTQ_FULL_INTEGER",
    "int16": "PTQ_INT16",
}

# The modes that use trained ranges for integer activations.
_OF_TRAINING = frozenset(("dynamic", "int8", "int16"))


def export_file(module: ModuleOp, settings: LiteRT, *, model_type: str = "", was_trained: bool = False) -> TFLiteFile:
    """Returns the file of a module of `tfl` ops, with the settings of its conversion in the metadata.

    Args:
        module: The module.
        settings: The settings.
        model_type: What the model was, if it was saved for the conversion; see `TemporaryModel`.
        was_trained: Whether the model was trained with quantization.
    """
    describe = None
    if settings.metadata is not None:
        # Here, so that files without metadata don't load what writes it.
        from tfconvert.converter.targets.litert.model_metadata import describer

        describe = describer(settings.metadata)
    return export(
        module,
        origin=_origin(module, settings, model_type, was_trained),
        restate=True,
        describe=describe,
        target_runtime=settings.target_runtime,
        naming=Naming(settings.names == "official"),
    )


def _origin(module: ModuleOp, settings: LiteRT, model_type: str, was_trained: bool) -> Origin | None:
    if settings.origin is None:
        return None
    if unknown := sorted(settings.origin.keys() - set(Origin._fields)):
        raise error("wrong-option", f"origin can't have {unknown[0]!r}", hint=f"known are {', '.join(Origin._fields)}")
    version = module.attributes.get(tf.PRODUCER_VERSION)
    sparsity = _sparsity(module) if settings.sparse_weights else ()
    return Origin(
        model_type=model_type or _model_type(module),
        tensorflow_version=version.data if isinstance(version, StringAttr) else "",
        optimizations=(*_optimizations(settings.quantize, was_trained), *sparsity),
        allow_custom_ops=settings.allow_custom_ops,
        enable_select_tf_ops=settings.allow_flex,
    )._replace(**settings.origin)


def _model_type(module: ModuleOp) -> str:
    """Returns the enumerator of `ModelType` for a module's source."""
    if tf_saved_model.SEMANTICS in module.attributes:
        return "TF_SAVED_MODEL"
    return "TF_GRAPH_DEF" if tf.VERSIONS in module.attributes else "NONE"


def _optimizations(quantize: Quantize | None, was_trained: bool) -> Iterator[str]:
    """Yields the enumerators of `ModelOptimizationMode`; none for weights that are only stored as integers."""
    if quantize is None:
        return
    is_of_training = was_trained and quantize.mode in _OF_TRAINING
    if quantize.mode in _OPTIMIZATIONS and not (is_of_training and quantize.samples is None):
        yield _OPTIMIZATIONS[quantize.mode]
    if is_of_training:
        yield "QUANTIZATION_AWARE_TRAINING"


def _sparsity(module: ModuleOp) -> list[str]:
    """Returns the enumerators of `ModelOptimizationMode` for the forms of weights without zeros."""
    found = set()
    for op in module.walk():
        if isinstance(op, tfl.TFLOp) and op.op_name == tfl.PSEUDO_SPARSE_CONST:
            tensors = op.attributes.get(tfl_file.TENSORS)
            assert isinstance(tensors, ArrayAttr)
            fields = tfl_file.from_dictionary("Tensor", tensors.data[0])
            found.add("BLOCK_SPARSITY" if fields["sparsity"].get("block_map") else "RANDOM_SPARSITY")
    return sorted(found)
