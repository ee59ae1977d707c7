"""Compares a .tflite file, whoever made it, with the model that it was made of."""

from __future__ import annotations

import os
from typing import Any

from tfconvert.converter.files.layers import first_difference
from tfconvert.converter.files.matching import Matching
from tfconvert.converter.validation import result_check
from tfconvert.converter.validation.result_check import Verification
from tfconvert.importers.source import Source
from tfconvert.importers.tflite.outline import outline, read_file


def check(
    source: Source, path: str | os.PathLike[str], data: Any = None, *, compare_layers: bool = False
) -> Verification:
    """Returns how a file's results differ from the model's.

    Args:
        source: The model.
        path: The file.
        data: The user's inputs, as `Quantize.samples`; `None` for random ones.
        compare_layers: Whether to find the first operator whose result differs; a note tells it.

    Raises:
        ConversionError: Either can't be read, they have other signatures, inputs or outputs (`no-such-signature`,
            `unlike-interface`), the data is not what the model takes (`wrong-sample`), or LiteRT refuses the file
            (`runtime-error`) or hangs (`litert-timeout`).
    """
    content = read_file(path)
    wiring = Matching(outline(content))
    found = result_check.compared(source, content, data, wiring)
    if compare_layers:
        found = found._replace(notes=(*found.notes, *first_difference(source, content, data, wiring)))
    return found
