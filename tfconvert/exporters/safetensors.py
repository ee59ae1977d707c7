"""Weights as a safetensors file, copied from their sources without being held in memory.

The length of a header in JSON (8 bytes), the header, padded with spaces, and the numbers without gaps. Weights whose
sizes are multiples of 64 bytes go first, so that they can be used where the file is mapped into memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from tfconvert.schema.dialects.tensor_data import TensorData

PARAMETERS = ".safetensors"
"""The extension of such files beside results."""

_ALIGNMENT = 64

# The format's names of element types, by numpy's.
_NAMES = {
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}


class Safetensors:
    """A file of weights, ready to write.

    Attributes:
        size: Its size in bytes.

    Args:
        weights: The weights, by name.
    """

    __slots__ = ("_head", "_weights", "size")

    def __init__(self, weights: Mapping[str, TensorData]) -> None:
        # Readers refuse gaps: a weight is aligned if those before it are multiples of the alignment.
        self._weights = sorted(weights.items(), key=lambda item: -math.gcd(item[1].nbytes, _ALIGNMENT))
        entries: dict[str, Any] = {}
        end = 0
        for name, weight in self._weights:
            start, end = end, end + weight.nbytes
            kind, shape = _NAMES[weight.dtype.name], list(weight.shape)
            entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
        text = json.dumps(entries, allow_nan=False, separators=(",", ":")).encode()
        text += b" " * (-(len(text) + 8) % _ALIGNMENT)
        self._head = len(text).to_bytes(8, "little") + text
        self.size = len(self._head) + end

    def write(self, stream: BinaryIO) -> None:
        """Writes the file."""
        stream.write(self._head)
        for _, weight in self._weights:
            for block in weight.blocks():
                data = np.ascontiguousarray(block)
                stream.write(data.reshape(-1).view(np.uint8).data)
                del block, data
            weight.source.release()
