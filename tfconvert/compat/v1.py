"""The names of `tf.compat.v1.lite`."""

from __future__ import annotations

import tfconvert.experimental as experimental
from tfconvert.converter.compat.enumerators import OpsSet, Optimize
from tfconvert.converter.compat.interpreter import Interpreter
from tfconvert.converter.compat.target import RepresentativeDataset, TargetSpec
from tfconvert.converter.compat.tflite_converter_v1 import TFLiteConverter

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
