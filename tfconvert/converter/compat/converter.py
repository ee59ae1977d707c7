"""The base of both generations of the class: attributes, and `convert()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tfconvert.converter.api import convert
from tfconvert.converter.compat import attributes
from tfconvert.converter.compat.analysis import gpu_warnings
from tfconvert.converter.compat.quantization import by_name, names
from tfconvert.converter.compat.row import Row, Values
from tfconvert.converter.compat.settable import Settable, set_plainly
from tfconvert.converter.compat.target import TargetSpec
from tfconvert.converter.quantization import Quantize
from tfconvert.converter.report import Report
from tfconvert.schema.diagnostics import ConversionError, Diagnostic


class Converter(Settable):
    """A model, and attributes that say how to convert it.

    Args:
        rows: The attributes that it has.
        model: What `tfconvert.convert` takes as a model.
        arguments: What else is passed to it.

    Attributes:
        target_spec: What the result is to run on.
        report: The report of the last conversion, with notes on attributes; `None` before.
    """

    _model: Any
    _arguments: Mapping[str, Any]
    _known: Sequence[Row]
    _order: tuple[str, ...]
    target_spec: Any
    report: Report | None

    def __init__(self, rows: Sequence[Row], model: Any, arguments: Mapping[str, Any]) -> None:
        target = Row("target_spec", None, "maps", "what the result is to run on")
        super().__init__([*rows, target])
        set_plainly(self, "_known", rows)
        set_plainly(self, "_model", model)
        set_plainly(self, "_arguments", arguments)
        set_plainly(self, "report", None)
        set_plainly(self, "_order", ())
        self.target_spec = TargetSpec()

    def convert(self) -> bytes:
        """Returns the converted model, as the contents of a `.tflite` file.

        Raises:
            ConversionError: The model can't be converted, or an attribute can't be honoured; the error says what, where
                and what to do.
        """
        return self.variant(lambda wanted: wanted)

    def variant(self, change: Callable[[Quantize | None], Quantize | None]) -> bytes:
        """Returns the model as the attributes say, but for how it is quantized.

        Args:
            change: From what the attributes say about that to what is done.

        Raises:
            ConversionError: As `convert`.
        """
        rows = attributes.targeted(self._known)
        values = self._values(rows)
        mapped = attributes.mapped(rows, values)
        arguments = dict(mapped.arguments)
        setting = change(arguments.pop("quantize", None))
        if setting is not None and self._order and callable(setting.samples):
            setting = replace(setting, samples=by_name(setting.samples, self._order))
        if setting is not None:
            arguments["quantize"] = setting
        try:
            model = convert(
                self.model(values), **{"order": "official", "names": "official", **self._arguments}, **arguments
            )
        except ConversionError as problem:
            raise ConversionError(map(_in_its_words, problem.diagnostics)) from problem
        content = bytes(model)
        report = model.report
        backends = names(
            "experimental_supported_backends", values[f"{attributes.TARGET}experimental_supported_backends"]
        )
        declined = gpu_warnings(content) if "GPU" in backends else []
        notes = [*map(_in_its_words, report.notes), *self.strangers(), *mapped.notes, *declined]
        set_plainly(self, "report", report._replace(notes=tuple(notes)))
        return content

    def model(self, values: Values) -> Any:
        """Returns what is converted.

        Args:
            values: The values of the attributes.
        """
        return self._model

    def strangers(self) -> list[Diagnostic]:
        """Returns a warning for each attribute that was set, here or on the target, and isn't known."""
        target = self.target_spec
        return super().strangers() + (target.strangers() if isinstance(target, Settable) else [])

    def _values(self, rows: Sequence[Row]) -> Values:
        # The target may be TensorFlow's own, of any version.
        prefix = attributes.TARGET
        return {
            row.name: getattr(self.target_spec, row.name.removeprefix(prefix), row.default)
            if row.name.startswith(prefix)
            else getattr(self, row.name)
            for row in rows
        }


_HINTS = {
    "stays-float": "add OpsSet.TFLITE_BUILTINS to target_spec.supported_ops",
    "no-samples": "set representative_dataset to a function that yields typical inputs",
    "same-signature": "name both in signature_keys to keep both",
}
"""Hints by the code of what is told, where it names settings."""


def _in_its_words(problem: Diagnostic) -> Diagnostic:
    """Returns what is told with a hint that names attributes instead of settings."""
    return problem._replace(hint=_HINTS.get(problem.code, problem.hint))
