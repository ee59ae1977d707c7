"""The official converter's enumerators: optimizations and sets of operators. Their values are their names."""

from __future__ import annotations

from enum import Enum


class _LikeOfficial(Enum):
    """Enumerators that are equal to TensorFlow's of the same name, with which scripts may mix them."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Enum) and (type(other).__name__, other.name) == (type(self).__name__, self.name)

    def __hash__(self) -> int:
        return hash(self.name)  # as that of any enumerator


class Optimize(_LikeOfficial):
    """The optimizations."""

    DEFAULT = "DEFAULT"
    OPTIMIZE_FOR_SIZE = "OPTIMIZE_FOR_SIZE"
    OPTIMIZE_FOR_LATENCY = "OPTIMIZE_FOR_LATENCY"
    EXPERIMENTAL_SPARSITY = "EXPERIMENTAL_SPARSITY"


class OpsSet(_LikeOfficial):
    """Sets of operators that a result may have."""

    TFLITE_BUILTINS = "TFLITE_BUILTINS"
    SELECT_TF_OPS = "SELECT_TF_OPS"
    TFLITE_BUILTINS_INT8 = "TFLITE_BUILTINS_INT8"
    EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8 = (
        "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"
    )
    EXPERIMENTAL_STABLEHLO_OPS = "EXPERIMENTAL_STABLEHLO_OPS"
