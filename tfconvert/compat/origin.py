"""Metadata about the origin of a file, which the conversion itself doesn't know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfconvert.compat.quantization import FLEX, supported_ops
from tfconvert.compat.row import Values

EXCLUDED = "exclude_conversion_metadata"


def origin(values: Values, made: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns fields of the metadata, `None` if the file is to have none.

    Args:
        values: The values of all attributes.
        made: Fields that the model's kind decides.
    """
    if values[EXCLUDED]:
        return None
    return {**made, "force_select_tf_ops": supported_ops(values) == {FLEX}}
