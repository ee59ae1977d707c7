"""The names of `tf.lite.experimental.authoring`."""

from __future__ import annotations

from tfconvert.compat.authoring import CompatibilityError, compatible

__all__ = ["CompatibilityError", "compatible"]
