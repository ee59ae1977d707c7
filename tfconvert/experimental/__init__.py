"""The names of `tf.lite.experimental`."""

from __future__ import annotations

import tfconvert.experimental.authoring as authoring
from tfconvert.converter.compat.analyzer import Analyzer
from tfconvert.converter.compat.debug_options import QuantizationDebugOptions
from tfconvert.converter.compat.debugger import QuantizationDebugger
from tfconvert.converter.compat.interpreter import OpResolverType, load_delegate

__all__ = [
    "Analyzer",
    "OpResolverType",
    "QuantizationDebugOptions",
    "QuantizationDebugger",
    "authoring",
    "load_delegate",
]
