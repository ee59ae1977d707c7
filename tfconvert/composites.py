"""All that one needs to write fusions for `convert(composites=[...])`; docs/composites.md teaches it."""

from __future__ import annotations

from converter.composites.body import Body
from converter.composites.composite import Composite
from converter.composites.custom_options import encode
from converter.composites.fusion import Fusion, first_of
from converter.composites.presence import API_IMPLEMENTS, IMPLEMENTS
from schema.dialects import types

__all__ = ["API_IMPLEMENTS", "IMPLEMENTS", "Body", "Composite", "Fusion", "encode", "first_of", "types"]
