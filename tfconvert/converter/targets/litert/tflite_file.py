"""The `.tflite` file of a converted module, with the metadata of the module's origin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tfconvert.exporters.tflite.model import Describe, Origin, TFLiteFile, export
from tfconvert.exporters.tflite.subgraph import Naming
from tfconvert.schema.dialects import tf, tf_saved_model, tfl, tfl_file
from tfconvert.schema.ir.attributes import ArrayAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp

if TYPE_CHECKING:
    from tfconvert.settings.quantization import Quantize
    from tfconvert.settings.quantization_choices import Mode

_OPTIMIZATIONS: Mapping[Mode, str] = {
    "dynamic": "PTQ_DYNAMIC_RANGE",
    "float16": "PTQ_FLOAT16",
    "int8": "PTQ_FULL_INTEGER",
    "int16": "PTQ_INT16",
}

# The modes that use trained ranges for integer activations.
_OF_TRAINING = frozenset(("dynamic", "int8", "int16"))


def export_file(
    module: ModuleOp,
    *,
    allow_custom_ops: bool,
    quantize: Quantize | None = None,
    describe: Describe | None = None,
    target_runtime: str = "",
    allow_flex: bool = False,
    origin: Mapping[str, Any] | None = MappingProxyType({}),
    was_trained: bool = False,
    is_sparse: bool = False,
    official_names: bool = False,
) -> TFLiteFile:
    """Returns the file of a module of `tfl` ops, with the settings of its conversion in the metadata.

    Args:
        module: The module.
        allow_custom_ops: Whether custom operators were allowed.
        quantize: How it was quantized.
        describe: Describes inputs and outputs in the file's metadata.
        target_runtime: The runtime release to support; any if empty.
        allow_flex: Whether TensorFlow's own kernels were allowed.
        origin: Additional fields of `Origin`; `None` leaves out the metadata about the origin.
        was_trained: Whether the model was trained with quantization.
        is_sparse: Whether weights may be stored without their zeros.
        official_names: Whether tensors have the names from TensorFlow's own converter.
    """
    version = module.attributes.get(tf.PRODUCER_VERSION)
    found = (
        None
        if origin is None
        else Origin(
            model_type=_model_type(module),
            tensorflow_version=version.data if isinstance(version, StringAttr) else "",
            optimizations=(*_optimizations(quantize, was_trained), *(_sparsity(module) if is_sparse else ())),
            allow_custom_ops=allow_custom_ops,
            enable_select_tf_ops=allow_flex,
        )._replace(**origin)
    )
    naming = Naming(official_names)
    return export(module, origin=found, restate=True, describe=describe, target_runtime=target_runtime, naming=naming)


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
