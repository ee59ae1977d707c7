"""Marks of functions that declare what they implement. Most models have none and load no code of fusions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfconvert.schema.ir.operation import Operation

IMPLEMENTS = "tf._implements"
"""Function attribute: the interface, as a string, or as `#tf_type.func<@name, {attributes}>`."""

API_IMPLEMENTS = "tf.api_implements"
"""Function attribute: the interface, as Keras writes it."""

KEPT = "composite-kept"
"""Code of the note on a function that keeps its body."""


def is_marked(function: Operation) -> bool:
    """Returns whether a function declares what it implements."""
    return IMPLEMENTS in function.attributes or API_IMPLEMENTS in function.attributes


def plain_name(function_name: str) -> str:
    """Returns a function's name as its author wrote it: `attention` for `__inference_attention_123`.

    Args:
        function_name: The name in the model, to which TensorFlow adds its purpose and a number.
    """
    return _MANGLED.sub(r"\1", function_name)


_MANGLED = re.compile(r"^__(?:inference|forward|backward)_(.+?)_\d+$")
