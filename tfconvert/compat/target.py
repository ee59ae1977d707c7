"""The official classes for the target and for samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tfconvert.compat.attributes import TARGET_ROWS
from tfconvert.compat.settable import Settable


class TargetSpec(Settable):
    """The hardware and operators that the result is for; its attributes are the rows `target_spec.*` of the table.

    Args:
        supported_ops: The sets of operators; `TFLITE_BUILTINS` by default.
        supported_types: The element types of weights.
        experimental_select_user_tf_ops: The user's own ops for TensorFlow's runtime.
        experimental_supported_backends: The backends that the result must fit.
    """

    def __init__(
        self,
        supported_ops: Iterable[Any] | None = None,
        supported_types: Iterable[Any] | None = None,
        experimental_select_user_tf_ops: Iterable[str] | None = None,
        experimental_supported_backends: Iterable[str] | None = None,
    ) -> None:
        super().__init__(TARGET_ROWS)
        given = {
            "supported_ops": supported_ops,
            "supported_types": supported_types,
            "experimental_select_user_tf_ops": experimental_select_user_tf_ops,
            "experimental_supported_backends": experimental_supported_backends,
        }
        for name, value in given.items():
            if value is not None:
                setattr(self, name, value)


class RepresentativeDataset:
    """Samples as a function without arguments that returns them again for each call.

    Args:
        input_gen: The function.

    Attributes:
        input_gen: The same.
    """

    def __init__(self, input_gen: Callable[[], Iterable[Any]]) -> None:
        self.input_gen = input_gen
