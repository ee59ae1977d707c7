"""Older generations of what TensorFlow's own converter offers."""

from __future__ import annotations

import tfconvert.compat.v1 as v1

__all__ = ["v1"]
