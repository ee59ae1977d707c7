"""Metadata of a model: how it was created, and which runtime it requires."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tfconvert.schema.tflite.tables import CONVERSION_METADATA
from tfconvert.schema.tflite.versions import minimum_runtime
from tfconvert.schema.tflite.writer import encode

MIN_RUNTIME_VERSION = "min_runtime_version"
CONVERSION = "CONVERSION_METADATA"
REDUCED_PRECISION = "reduced_precision_support"

API_VERSION = 2


class Origin(NamedTuple):
    """The origin of a model and the options of its conversion.

    Attributes:
        model_type: Enumerator of `ModelType`: the converter's input.
        tensorflow_version: The version of TensorFlow that created the model; empty if unknown.
        optimizations: Enumerators of `ModelOptimizationMode` that were applied.
        allow_custom_ops: Whether custom operators were allowed.
        enable_select_tf_ops: Whether TensorFlow's own kernels were allowed.
        force_select_tf_ops: Whether no other operators were allowed.
        api_version: The generation of the converter's interface.
    """

    model_type: str = "TF_SAVED_MODEL"
    tensorflow_version: str = ""
    optimizations: tuple[str, ...] = ()
    allow_custom_ops: bool = False
    enable_select_tf_ops: bool = False
    force_select_tf_ops: bool = False
    api_version: int = API_VERSION


def runtime_entry(uses: Iterable[tuple[str, int]]) -> bytes:
    """Returns the metadata entry of the runtime that a model requires, 16 bytes.

    Args:
        uses: Operators with their versions.
    """
    return minimum_runtime(uses).encode().ljust(16, b"\0")


def conversion_entry(origin: Origin) -> bytes:
    """Returns the metadata entry of how a model was created, a flatbuffer of its own."""
    environment: dict[str, Any] = {"api_version": origin.api_version, "model_type": origin.model_type}
    if origin.tensorflow_version:
        environment["tensorflow_version"] = origin.tensorflow_version
    options = {
        "model_optimization_modes": origin.optimizations,
        "allow_custom_ops": origin.allow_custom_ops,
        "enable_select_tf_ops": origin.enable_select_tf_ops,
        "force_select_tf_ops": origin.force_select_tf_ops,
    }
    return bytes(encode(CONVERSION_METADATA, {"environment": environment, "options": options}).data)
