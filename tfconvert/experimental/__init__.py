"""The names of `tf.lite.experimental`."""

from __future__ import annotations

import tfconvert.experimental.authoring as authoring
from tfconvert.compat.analyzer import Analyzer
from tfconvert.compat.debugger import QuantizationDebugger, QuantizationDebugOptions
from tfconvert.compat.interpreter import OpResolverType, load_delegate

__all__ = [
    "Analyzer",
    "OpResolverType",
    "QuantizationDebugOptions",
    "QuantizationDebugger",
    "authoring",
    "load_delegate",
]
