"""Everything needed to write fusions for `LiteRT(composites=[...])`; docs/composites.md teaches it."""

from __future__ import annotations

from tfconvert.converter.composites.composite import Composite
from tfconvert.converter.composites.fusion import Body, Fusion, first_of
from tfconvert.converter.composites.marks import API_IMPLEMENTS, IMPLEMENTS
from tfconvert.converter.ir.option_map import encode
from tfconvert.schema.dialects import types

__all__ = ["API_IMPLEMENTS", "IMPLEMENTS", "Body", "Composite", "Fusion", "encode", "first_of", "types"]
