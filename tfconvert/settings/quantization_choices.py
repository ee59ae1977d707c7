"""The choices of a quantization's settings, apart from them: the command line lists them, and seldom quantizes."""

from __future__ import annotations

from typing import Literal

Mode = Literal["dynamic", "float16", "int8", "int16", "weights"]
Io = Literal["float32", "int8", "uint8", "int16"]
Ranges = Literal["minmax", "mse", "percentile"]
Bias = Literal["int32", "int64"]
Accumulation = Literal["float32", "float16"]
RecurrentState = Literal["reset", "kept"]
VariableType = Literal["auto", "float32", "integers"]
PerChannel = bool | Literal["not-dense"]

NOT_DENSE: PerChannel = "not-dense"
"""A scale for each channel of all weights but those of fully connected layers."""
