"""Results of passes: counts, notes, and what became of each quantized layer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tfconvert.schema.diagnostics import Diagnostic, size_text
from tfconvert.schema.json_text import record

if TYPE_CHECKING:
    from tfconvert.converter.pipeline.tuning_report import TuningReport
    from tfconvert.schema.fidelity import Fidelity

FLOAT = "float32"
"""The form of a layer that is not quantized."""


class LayerReport(NamedTuple):
    """One operator.

    Attributes:
        node: Its node; empty if unknown.
        op: The operator.
        form: The types of its input and weight: `int8 x int8 per channel`, `float32`.
        reason: Why it isn't quantized further; may be empty.
        low: The minimum that its result can represent; NaN for floats.
        high: The maximum.
        weight_snr: The signal-to-noise ratio of its weight as integers, in dB; NaN if it has none.
        bytes_before: Bytes of its constants in the model.
        bytes_after: Bytes of its constants in the file.
    """

    node: str
    op: str
    form: str
    reason: str = ""
    low: float = math.nan
    high: float = math.nan
    weight_snr: float = math.nan
    bytes_before: int = 0
    bytes_after: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Returns the known fields as plain data."""
        # Zero is a known float: ranges often begin there.
        known = {name: value for name, value in self._asdict().items() if value or isinstance(value, float)}
        return record({name: value for name, value in known.items() if value == value})  # NaN is unknown.


class Equalization(NamedTuple):
    """Channels that were divided, and multiplied where they are read, so that integers lose less.

    Attributes:
        channels: The number of channels that were divided.
        groups: The number of groups of channels that were chosen together.
        spread_before: How many times the widest channel of a value is as wide as the mean one, of the worst value.
        spread_after: The same after the division.
        gain: The estimated gain of the group that gains most, in dB.
    """

    channels: int
    groups: int
    spread_before: float
    spread_after: float
    gain: float

    def joined(self, other: Equalization) -> Equalization:
        """Returns the summary of two functions."""
        return Equalization(
            self.channels + other.channels,
            self.groups + other.groups,
            max(self.spread_before, other.spread_before),
            max(self.spread_after, other.spread_after),
            max(self.gain, other.gain),
        )

    def __str__(self) -> str:
        return (
            f"{self.channels} channels in {self.groups} group{'' if self.groups == 1 else 's'}, the widest "
            f"{self.spread_before:.3g} -> {self.spread_after:.3g} times the mean, up to {self.gain:.0f} dB less error "
            "expected"
        )


class QuantizationReport(NamedTuple):
    """The report on a quantization.

    Attributes:
        layers: The numeric operators, in order.
        fidelity: The accuracy of the result; `None` unless it was verified.
    """

    layers: tuple[LayerReport, ...]
    fidelity: Fidelity | None = None
    equalization: Equalization | None = None

    @property
    def forms(self) -> Counter[str]:
        return Counter(layer.form for layer in self.layers)

    @property
    def bytes_before(self) -> int:
        return sum(layer.bytes_before for layer in self.layers)

    @property
    def bytes_after(self) -> int:
        return sum(layer.bytes_after for layer in self.layers)

    @property
    def is_float(self) -> bool:
        """Whether nothing was quantized, so that equal numbers are no merit."""
        return not set(self.forms) - {FLOAT}

    @property
    def head(self) -> str:
        """The fidelity in a line, empty if it is unknown."""
        if self.fidelity is None:
            return ""
        return "fidelity: nothing was quantized" if self.is_float else self.fidelity.head()

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        result: dict[str, Any] = {
            "forms": dict(sorted(self.forms.items())),
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "layers": [layer.to_dict() for layer in self.layers],
        }
        if self.equalization is not None:
            result["equalization"] = self.equalization._asdict()
        return result | {"fidelity": self.fidelity.to_dict()} if self.fidelity is not None else result

    def lines(self, most: int | None) -> list[str]:
        """Returns the report as lines of text.

        Args:
            most: Maximum number of entries of a list; `None` for no limit.
        """
        lines = ["quantization:"]
        if self.bytes_before:
            lines.append(f"  weights: {size_text(self.bytes_before)} -> {size_text(self.bytes_after)}")
        if self.equalization is not None:
            lines.append(f"  equalized: {self.equalization}")
        lines += [f"  {form}: {count}" for form, count in self.forms.most_common() if form != FLOAT]
        floats = [layer for layer in self.layers if layer.form == FLOAT]
        if floats:
            lines.append(f"  {FLOAT}: {len(floats)}")
            from tfconvert.schema.fidelity import some

            lines += some((f"    {layer.op} {layer.node}: {layer.reason}" for layer in floats), most)
        if most is None:
            lines += ["  layers:", *(f"    {_row(layer)}" for layer in self.layers if layer.form != FLOAT)]
        return lines if self.fidelity is None or self.is_float else lines + self.fidelity.lines(most)


def _row(layer: LayerReport) -> str:
    parts = [f"{layer.op} {layer.node}: {layer.form}"]
    if not math.isnan(layer.low):
        parts.append(f"{layer.low:.4g} to {layer.high:.4g}")
    if not math.isnan(layer.weight_snr):
        parts.append(f"weight {layer.weight_snr:.1f} dB")
    if layer.reason:
        parts.append(layer.reason)
    return ", ".join(parts)


class PassResult(NamedTuple):
    """The effect of a pass on one module.

    Attributes:
        counts: Numbers of applications of patterns, or of changes of each kind; without zeros.
        notes: Warnings and decisions for the report.
        heading: The title of the counts in the short report; if empty, only the full report has them.
        frozen_variables: Number of variables that became constants.
        operations: Number of the model's TensorFlow ops by name, from the pass after which they can be counted.
        layers: Reports on operators that were to be quantized.
        tuning: The forms that were chosen by their times; `None` without tuning.
        equalization: The channels that were divided; `None` if none were.
    """

    counts: Counter[str]
    notes: Sequence[Diagnostic] = ()
    heading: str = ""
    frozen_variables: int = 0
    operations: Counter[str] | None = None
    layers: Sequence[LayerReport] = ()
    tuning: TuningReport | None = None
    equalization: Equalization | None = None

    @classmethod
    def of(
        cls, counts: Mapping[str, int], notes: Sequence[Diagnostic] = (), *, frozen_variables: int = 0
    ) -> PassResult:
        """Returns a result with the counts that are not zero."""
        return cls(Counter({name: count for name, count in counts.items() if count}), notes, "", frozen_variables)


NOTHING_DONE = PassResult(Counter())
"""The result of a pass without counts and notes; must not be mutated."""
