"""`experimental.authoring.compatible`: tells whether a function converts when it is first called."""

from __future__ import annotations

import functools
from typing import Any

from tfconvert.compat.tflite_converter import TFLiteConverter
from tfconvert.conversion import CUSTOM_OPERATORS
from tfconvert.schema.diagnostics import NOTE, ConversionError, Diagnostic, error

ERROR = "COMPATIBILITY ERROR"
WARNING = "COMPATIBILITY WARNING"


class CompatibilityError(ConversionError):
    """The error of a function that doesn't convert, if an error was asked for."""


class Compatible:
    """A `tf.function` that is converted, to see whether it can be, when it is called for the first time.

    Args:
        target: The function.
        converter_target_spec: What it is to run on, as `TFLiteConverter.target_spec`.
        converter_allow_custom_ops: Whether custom ops are fine.
        raise_exception: Whether to raise what would only be printed.
    """

    def __init__(
        self,
        target: Any,
        converter_target_spec: Any = None,
        converter_allow_custom_ops: bool | None = None,
        raise_exception: bool = False,
    ) -> None:
        functools.update_wrapper(self, target)
        self._function = target
        self._bound: Any = None
        self._target_spec = converter_target_spec
        self._allow_custom_ops = converter_allow_custom_ops
        self._raises = raise_exception
        self._log: list[str] | None = None

    def __get__(self, instance: Any, owner: Any = None) -> Compatible:
        """Returns the same for a method, of which it keeps the object."""
        self._bound = self._function.__get__(instance, owner)
        return self

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Calls the function; checks it first, if it hasn't been.

        Raises:
            CompatibilityError: It doesn't convert, and an error was asked for.
        """
        if self._log is None:
            self._check(self.get_concrete_function(*args, **keywords))
        return self._called()(*args, **keywords)

    def get_concrete_function(self, *args: Any, **keywords: Any) -> Any:
        """Returns the concrete function for some arguments."""
        return self._called().get_concrete_function(*args, **keywords)

    def get_compatibility_log(self) -> list[str]:
        """Returns what was found.

        Raises:
            ConversionError: The function hasn't been called (`not-checked`).
        """
        if self._log is None:
            raise error("not-checked", "whether the function converts has not been checked yet", hint="call it first")
        return self._log

    def _called(self) -> Any:
        return self._function if self._bound is None else self._bound

    def _check(self, function: Any) -> None:
        converter = TFLiteConverter.from_concrete_functions([function], self._called())
        if self._target_spec is not None:
            converter.target_spec = self._target_spec
        if self._allow_custom_ops is not None:
            converter.allow_custom_ops = self._allow_custom_ops
        self._log = []
        try:
            converter.convert()
        except ConversionError as problem:
            found = [_line(ERROR, each) for each in problem.diagnostics]
        else:
            notes = converter.report.notes if converter.report is not None else ()
            # Custom operators are there only if they are allowed.
            found = [_line(WARNING, each) for each in notes if each.severity != NOTE and each.code != CUSTOM_OPERATORS]
        for line in found:
            self._log.append(line)
            print(line)
        if found and self._raises:
            raise CompatibilityError([Diagnostic("not-compatible", f"{self._function!r}: {line}") for line in found])


def _line(title: str, problem: Diagnostic) -> str:
    return f"{title}: {problem}"


def compatible(target: Any = None, converter_target_spec: Any = None, **settings: Any) -> Any:
    """Wraps a `tf.function`, so that calling it tells what of it doesn't convert.

    Args:
        target: The function; without one, a decorator is returned.
        converter_target_spec: What it is to run on, as `TFLiteConverter.target_spec`.
        settings: `converter_allow_custom_ops`, `raise_exception`.
    """
    if target is None:
        return functools.partial(Compatible, converter_target_spec=converter_target_spec, **settings)
    return Compatible(target, converter_target_spec, **settings)
