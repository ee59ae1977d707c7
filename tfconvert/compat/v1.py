"""The names of `tf.compat.v1.lite`."""

from __future__ import annotations

from tfconvert.converter.compat.enumerators import OpsSet, Optimize
from tfconvert.converter.compat.target import RepresentativeDataset, TargetSpec
from tfconvert.converter.compat.tflite_converter_v1 import TFLiteConverter

__all__ = ["OpsSet", "Optimize", "RepresentativeDataset", "TFLiteConverter", "TargetSpec"]
