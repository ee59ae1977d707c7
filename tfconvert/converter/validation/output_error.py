"""The largest difference of an output from its reference."""

from __future__ import annotations

from typing import NamedTuple


class OutputError(NamedTuple):
    """How far LiteRT's result is from the reference.

    Attributes:
        signature: The signature, or `main`.
        output: The output's name.
        max_absolute: Largest absolute difference.
        max_relative: The same, relative to the reference's largest magnitude.
    """

    signature: str
    output: str
    max_absolute: float
    max_relative: float
