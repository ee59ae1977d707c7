"""The base of both generations of the class: attributes, and `convert()`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tfconvert.api import convert_source
from tfconvert.compat import attributes
from tfconvert.compat.analysis import gpu_warnings
from tfconvert.compat.attributes import TARGET_ROWS, origin
from tfconvert.compat.errors import as_of_the_class, in_its_words
from tfconvert.compat.quantization import by_name, names
from tfconvert.compat.row import OfficialAttribute, Settable, Values, set_plainly
from tfconvert.importers.source import Source
from tfconvert.report.report import Report
from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.targets import LiteRT


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
    _known: Sequence[OfficialAttribute]
    _order: tuple[str, ...]
    _made: Mapping[str, Any]
    _name: str
    target_spec: Any
    report: Report | None

    def __init__(self, rows: Sequence[OfficialAttribute], model: Any, arguments: Mapping[str, Any]) -> None:
        target = OfficialAttribute("target_spec", None, "maps", "what the result is to run on")
        super().__init__([*rows, target])
        set_plainly(self, "_known", rows)
        set_plainly(self, "_model", model)
        set_plainly(self, "_arguments", arguments)
        set_plainly(self, "report", None)
        set_plainly(self, "_order", ())
        # Fields of the metadata on how the file was made that only the method that made this object knows.
        set_plainly(self, "_made", {})
        set_plainly(self, "_name", "")
        self.target_spec = TargetSpec()

    def convert(self) -> bytes:
        """Returns the converted model, as the contents of a `.tflite` file.

        Raises:
            ConversionError: The model can't be converted, or an attribute can't be honoured; the error says what, where
                and what to do.
        """
        return self.variant(lambda wanted: wanted)

    @as_of_the_class()
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
        selection = {"order": "official", **self._arguments}
        target = LiteRT(**arguments, names="official", origin=origin(values, self._made))
        model = convert_source(Source(self.model(values), **selection), Options(target=target))
        content = bytes(model)
        report = model.report
        backends = names(
            "experimental_supported_backends", values[f"{attributes.TARGET}experimental_supported_backends"]
        )
        declined = gpu_warnings(content) if "GPU" in backends else []
        notes = [*map(in_its_words, report.notes), *self.strangers(), *mapped.notes, *declined]
        set_plainly(self, "report", report._replace(source=self._name or report.source, notes=tuple(notes)))
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

    def _values(self, rows: Sequence[OfficialAttribute]) -> Values:
        # The target may be TensorFlow's own, of any version.
        prefix = attributes.TARGET
        return {
            row.name: getattr(self.target_spec, row.name.removeprefix(prefix), row.default)
            if row.name.startswith(prefix)
            else getattr(self, row.name)
            for row in rows
        }
