"""The class `TFLiteConverter` of TensorFlow 2."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from tfconvert.converter.compat.attributes import ROWS
from tfconvert.converter.compat.converter import Converter
from tfconvert.converter.compat.settable import set_plainly


class TFLiteConverter(Converter):
    """Converts a model as `tf.lite.TFLiteConverter` does; make one with the methods `from_*`.

    What each attribute does is told in docs/tflite_converter.md. The attribute `report` has the conversion's report.
    """

    @classmethod
    def from_saved_model(
        cls,
        saved_model_dir: str | os.PathLike[str],
        signature_keys: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
    ) -> TFLiteConverter:
        """Returns a converter of a SavedModel.

        Args:
            saved_model_dir: Its folder.
            signature_keys: The signatures to convert, every one by default.
            tags: The tags of the graph to convert, `serve` by default.
        """
        keys, names = list(signature_keys or ()), sorted(tags or ())
        return cls(ROWS, saved_model_dir, {"signatures": keys or None, "tags": names or None})

    @classmethod
    def from_keras_model(cls, model: Any) -> TFLiteConverter:
        """Returns a converter of a Keras model in memory.

        Args:
            model: The model.
        """
        return cls(ROWS, model, {})

    @classmethod
    def from_concrete_functions(cls, funcs: Sequence[Any], trackable_obj: Any = None) -> TFLiteConverter:
        """Returns a converter of concrete functions.

        Args:
            funcs: The functions.
            trackable_obj: The object that owns their variables, and keeps them alive.
        """
        converter = cls(ROWS, funcs[0] if len(funcs) == 1 else list(funcs), {})
        # Functions refer to variables weakly.
        set_plainly(converter, "_owner", trackable_obj)
        return converter
