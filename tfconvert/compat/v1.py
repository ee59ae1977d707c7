"""The names of `tf.compat.v1.lite`."""

from __future__ import annotations

import tfconvert.experimental as experimental
from tfconvert.compat.converter import RepresentativeDataset, TargetSpec
from tfconvert.compat.enumerators import OpsSet, Optimize
from tfconvert.compat.interpreter import Interpreter
from tfconvert.compat.tflite_converter_v1 import TFLiteConverter

TocoConverter = TFLiteConverter
"""The name that the class had first."""

__all__ = [
    "Interpreter",
    "OpsSet",
    "Optimize",
    "RepresentativeDataset",
    "TFLiteConverter",
    "TargetSpec",
    "TocoConverter",
    "experimental",
]
