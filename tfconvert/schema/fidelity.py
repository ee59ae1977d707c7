"""How close a quantized model is to the float model: measurements and limits."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tfconvert.schema.diagnostics import ERROR, NOTE, WARNING, Diagnostic
from tfconvert.schema.json_text import finite, record

MIN_SNR = 20.0
"""The default minimum signal-to-noise ratio of an output, in dB."""

MIN_AGREEMENT = 0.9
"""The default minimum share of rows with the same largest element."""

# Maximum number of exclusions in a text.
_SOME = 8

LOW = "low-fidelity"
"""The code of the warning, and of the error."""


class Limits(NamedTuple):
    """The minimum fidelity.

    Attributes:
        snr: Of each output of floats, in dB.
        agreement: Of each output, as a share.
        required: Whether lower values are an error instead of a warning, for the SNR and for the agreement.
    """

    snr: float = MIN_SNR
    agreement: float = MIN_AGREEMENT
    required: tuple[bool, bool] = (False, False)

    @classmethod
    def of(cls, min_snr: float | None, min_agreement: float | None, *, required: bool = False) -> Limits:
        """Returns the limits of the settings, defaults for those that are not set; set ones are required.

        Args:
            min_snr: The setting; `None` for the default.
            min_agreement: The setting; `None` for the default.
            required: Whether the defaults are also required.
        """
        return cls(
            MIN_SNR if min_snr is None else float(min_snr),
            MIN_AGREEMENT if min_agreement is None else float(min_agreement),
            (required or min_snr is not None, required or min_agreement is not None),
        )


class OutputFidelity(NamedTuple):
    """The fidelity of one output of the quantized model, on samples.

    Attributes:
        name: The output.
        snr: The ratio of signal to error, in dB; minus infinity if undefined; NaN for integers.
        agreement: The share of rows with the same largest element, or of equal elements for integers; NaN if rows have
            one element.
        signature: Its signature, if there are several.
    """

    name: str
    snr: float = math.nan
    agreement: float = math.nan
    signature: str = ""

    def is_low(self, limits: Limits) -> tuple[bool, bool]:
        """Returns whether the SNR, and whether the agreement, is below its limit."""
        return self.snr < limits.snr, self.agreement < limits.agreement

    def __str__(self) -> str:
        name = f"{self.signature}/{self.name}" if self.signature else self.name
        return f"{name}: {_figures(self.snr, self.agreement)}"


class LayerFidelity(NamedTuple):
    """The fidelity of one layer's result, and how well its range fits.

    Attributes:
        node: The layer: the node that its result comes from.
        op: The operator.
        snr: The signal-to-noise ratio of the whole tensor, in dB, including losses before it.
        channel_snr: The same for the worst channel that isn't all zero.
        low: The minimum number that the result can represent; the minimum observed one if it is a float.
        high: The maximum.
        used: The share of this range that the typical channel uses; small where few channels are far larger.
        lost: The share of the channels' signal that is lost at this layer rather than before it.
        filled: The share of the range that the numbers of all channels need; above 1 if they exceed it.
    """

    node: str
    op: str
    snr: float
    channel_snr: float
    low: float
    high: float
    used: float
    lost: float
    filled: float = 1.0


class MetricFidelity(NamedTuple):
    """The user's metric of the float model and of the quantized one, on the same samples.

    Attributes:
        name: The metric.
        floats: Its value for the float model.
        quantized: That for the quantized one.
        samples: The number of samples.
        low: The lower end of the 95% interval of the difference; NaN if it is unknown.
        high: The upper end.
        is_loss: Whether lower values are better.
        min_metric: The minimum for the quantized model, or `None`.
        max_loss: The maximum by which it may be worse than the float model, or `None`.
    """

    name: str
    floats: float
    quantized: float
    samples: int
    low: float = math.nan
    high: float = math.nan
    is_loss: bool = False
    min_metric: float | None = None
    max_loss: float | None = None

    @property
    def difference(self) -> float:
        """The value for the quantized model minus that for the float model."""
        return self.quantized - self.floats

    @property
    def loss(self) -> float:
        """By how much the quantized model is worse; negative if it is better."""
        return self.difference if self.is_loss else -self.difference

    @property
    def judges(self) -> bool:
        """Whether there is a limit."""
        return self.min_metric is not None or self.max_loss is not None

    @property
    def is_low(self) -> bool:
        """Whether a limit is not met."""
        return _exceeds(self.min_metric, self.quantized) or _exceeds(self.loss, self.max_loss)

    @property
    def is_out_of_reach(self) -> bool:
        """Whether the float model doesn't have the minimum either."""
        return _exceeds(self.min_metric, self.floats)

    @property
    def limits(self) -> str:
        """The limits in words."""
        low = [] if self.min_metric is None else [f"{self.name} of at least {self.min_metric:g}"]
        return " and ".join([*low, *([] if self.max_loss is None else [f"a loss of at most {self.max_loss:g}"])])

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        limits = {"min_metric": self.min_metric, "max_loss": self.max_loss}
        return {
            "name": self.name,
            "samples": self.samples,
            "float": self.floats,
            "quantized": self.quantized,
            "difference": self.difference,
            "interval": None if math.isnan(self.low) else [self.low, self.high],
            "is_loss": self.is_loss,
            "is_low": self.is_low,
            "limits": {name: value for name, value in limits.items() if value is not None},
        }

    def __str__(self) -> str:
        interval = "" if math.isnan(self.low) else f" (95% interval {self.low:+.4f} to {self.high:+.4f})"
        values = f"float {self.floats:.4f}, quantized {self.quantized:.4f}"
        return f"{self.name}: {values}, difference {self.difference:+.4f}{interval}"


def _exceeds(value: float | None, limit: float | None) -> bool:
    """Returns whether a value is above its limit by more than the rounding of a difference of shares."""
    if value is None or limit is None:
        return False
    return value > limit and not math.isclose(value, limit, rel_tol=1e-9, abs_tol=1e-12)


class Exclusions(NamedTuple):
    """The outcome of a search for layers that should stay float.

    Attributes:
        exclude: New patterns for `Quantize.exclude`; empty if none were found that suffice.
        snr: The minimum SNR of an output with them.
        agreement: The minimum agreement.
        trials: The number of exclusions tried.
        ran_out: Whether time ran out: with exclusions, fewer may suffice; without, there may be some.
        metric: The user's metric with them, or `None`.
    """

    exclude: tuple[str, ...]
    snr: float = math.nan
    agreement: float = math.nan
    trials: int = 0
    ran_out: bool = False
    metric: float | None = None

    def __str__(self) -> str:
        if not self.exclude:
            why = "ran out of time (`search_seconds`, --search-seconds)" if self.ran_out else "found none"
            return f"the search for layers to exclude {why} after {_counted(self.trials, 'trial')}"
        what = "this one" if len(self.exclude) == 1 else f"these {len(self.exclude)}"
        flags = [f"--exclude {shlex.quote(each)}" for each in self.exclude[:_SOME]]
        if len(self.exclude) > _SOME:
            flags.append(f"and {len(self.exclude) - _SOME} more (--json lists all); another mode may suit it better")
        more = "; time ran out (`search_seconds`, --search-seconds), fewer may do" if self.ran_out else ""
        metric = "" if self.metric is None else f"a metric of {self.metric:.4f}, "
        return f"excluding {what} gives {metric}{_figures(self.snr, self.agreement)}: {' '.join(flags)}{more}"


class Fidelity(NamedTuple):
    """The fidelity of the quantized model: how close its outputs are to those of the float model.

    Attributes:
        samples: The number of samples.
        outputs: Its outputs.
        worst: The tensors with the largest losses, with their SNR in dB, the worst first.
        layers: The layers, those with the largest losses first; empty unless they were compared.
        exclusions: The result of a search for layers to exclude, or `None`.
        limits: The minimum fidelity.
        is_random: Whether the samples were random numbers, since the user gave none.
        witness: What the model is compared with.
        metric: The user's metric of both models, or `None`. If it has limits, they decide instead of
            the default limits of outputs.
    """

    samples: int
    outputs: tuple[OutputFidelity, ...]
    worst: tuple[tuple[str, float], ...] = ()
    layers: tuple[LayerFidelity, ...] = ()
    exclusions: Exclusions | None = None
    limits: Limits = Limits()
    is_random: bool = False
    witness: str = "the model's own results"
    metric: MetricFidelity | None = None

    @property
    def snr(self) -> float:
        """The minimum SNR of an output, NaN if none has one."""
        return min((each.snr for each in self.outputs if not math.isnan(each.snr)), default=math.nan)

    @property
    def agreement(self) -> float:
        """The minimum agreement of an output, NaN if none has one."""
        return min((each.agreement for each in self.outputs if not math.isnan(each.agreement)), default=math.nan)

    @property
    def is_low(self) -> bool:
        """Whether a limit is not met."""
        return self._has_low_metric or bool(self._low_outputs(self._counted))

    @property
    def is_refused(self) -> bool:
        """Whether a limit that is required is not met."""
        return self._has_low_metric or bool(self._low_outputs(self.limits.required))

    @property
    def _has_low_metric(self) -> bool:
        return self.metric is not None and self.metric.is_low

    @property
    def _counted(self) -> tuple[bool, bool]:
        """Which limits of outputs count: with limits of the metric, only those that are required."""
        return self.limits.required if self.metric is not None and self.metric.judges else (True, True)

    def _low_outputs(self, counted: tuple[bool, bool]) -> list[OutputFidelity]:
        """Returns the outputs below those limits that count: the one of the SNR, and the one of the agreement."""
        return [
            each
            for each in self.outputs
            if any(low and counts for low, counts in zip(each.is_low(self.limits), counted, strict=True))
        ]

    def problem(self) -> Diagnostic | None:
        """Returns the finding if a limit is not met: an error if it is required, else a warning; or `None`."""
        if not self.is_low:
            return None
        kind = "random inputs" if self.is_random else _counted(self.samples, "sample")
        head, found = "the quantized model differs too much from the float model", []
        if self.metric is not None and self.metric.is_low:
            head = "the quantized model is not good enough"
            found.append(f"{self.metric}; required is {self.metric.limits}")
        if low := self._low_outputs(self._counted):
            more = f" and {len(low) - _FEW} more" if len(low) > _FEW else ""
            limits = f"the limits are {self.limits.snr:g} dB and {self.limits.agreement:.0%}"
            found.append(f"{', '.join(map(str, low[:_FEW]))}{more}; {limits}")
        return Diagnostic(
            LOW,
            f"{head}, on {kind}: {'; '.join(found)}",
            hint=self._hint(),
            severity=ERROR if self.is_refused else WARNING,
        )

    def _hint(self) -> str:
        if self.metric is not None and self.metric.is_out_of_reach:
            return "the float model doesn't reach that either: set another `min_metric`, or improve the model"
        if self.exclusions is not None:
            return str(self.exclusions)
        if self.is_random:
            return "pass typical inputs (verify --data, --verify-data): random ones say little about a quantized model"
        if self.layers:
            return "exclude the layers that lose most, or choose another mode"
        return "`compare_layers` (--compare-layers) shows the layers that lose most"

    def worst_layers(self) -> list[Diagnostic]:
        """Returns a note of the layers that lose most, for an error without a report."""
        if not self.layers:
            return []
        rows = ["the layers that lose most:", *table(self.layers[:_SHOWN], None)]
        text = "\n".join([*rows, f"    of {_counted(len(self.layers), 'layer')} that were compared"])
        return [Diagnostic("worst-layers", text, severity=NOTE)]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        found: dict[str, Any] = {
            "samples": self.samples,
            "is_low": self.is_low,
            "snr": self.snr,
            "agreement": self.agreement,
            "limits": {"snr": self.limits.snr, "agreement": self.limits.agreement},
            "is_random": self.is_random,
            "witness": self.witness,
            "outputs": [_output(each) for each in self.outputs],
            "worst": finite(dict(self.worst)),
        }
        if self.layers:
            found["layers"] = [record(row._asdict()) for row in self.layers]
        if self.metric is not None:
            found["metric"] = self.metric.to_dict()
        if self.exclusions is not None:
            known = {name: value for name, value in self.exclusions._asdict().items() if value is not None}
            found["exclusions"] = record({**known, "exclude": list(self.exclusions.exclude)})
        return record(found)

    def summary(self) -> dict[str, Any]:
        """Returns the verdict as data for JSON."""
        return record({"is_low": self.is_low, "snr": self.snr, "agreement": self.agreement})

    def head(self) -> str:
        """Returns the fidelity in a line."""
        found = self.metric
        metric = "" if found is None else f"; {found.name} {found.quantized:.4f}, and {found.floats:.4f} as floats"
        return f"fidelity: {_figures(self.snr, self.agreement)}{metric}"

    def lines(self, most: int | None) -> list[str]:
        """Returns the fidelity as lines of text.

        Args:
            most: The maximum number of entries of a list, `None` for all.
        """
        kind = "random samples" if self.is_random else "samples"
        lines = [f"  compared with {self.witness} on {self.samples} {kind}:"]
        lines += [f"    {each}" for each in self.outputs]
        lines += [] if self.metric is None else [f"  {self.metric}"]
        if self.layers:
            lines.append("  layers, those where most is lost first:")
            lines += table(self.layers, most)
        elif self.worst:
            lines.append("  the tensors that lose most:")
            lines += some((f"    {name}: {snr:.1f} dB" for name, snr in self.worst), most)
        return lines if self.exclusions is None else [*lines, f"  {self.exclusions}"]


# Maximum number of outputs in a message.
_FEW = 3

# Maximum number of layers in a message.
_SHOWN = 5

HEADS = ("layer", "operator", "SNR", "worst channel", "range", "range used", "lost here")
"""The columns of the table of layers."""


def table(layers: Sequence[LayerFidelity], most: int | None) -> list[str]:
    """Returns layers as lines of text.

    Args:
        layers: The layers.
        most: The maximum number shown, `None` for all.
    """
    rows = [HEADS, *(cells(each) for each in layers[:most])]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADS))]
    lines = [
        "    "
        + "  ".join(
            cell.ljust(width) if number < 2 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    if most is not None and len(layers) > most:
        lines.append(f"    ... and {len(layers) - most} more (-v shows all)")
    return lines


def cells(layer: LayerFidelity) -> tuple[str, ...]:
    """Returns a row of the table of layers."""
    return (
        layer.node,
        layer.op,
        decibels_text(layer.snr),
        decibels_text(layer.channel_snr),
        f"{layer.low:.4g} to {layer.high:.4g}",
        f"{layer.used:.2%}",
        f"{layer.lost:.2%}",
    )


def decibels(signal: float, noise: float) -> float:
    """Returns a ratio of powers in dB: infinity without noise, minus infinity if the noise is not finite."""
    if noise <= 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 and math.isfinite(noise) else -math.inf


def some(lines: Iterable[str], most: int | None) -> list[str]:
    """Returns the first lines of a list, and the number of others."""
    found = list(lines)
    if most is None or len(found) <= most:
        return found
    return [*found[:most], f"    ... and {len(found) - most} more (-v shows all)"]


def decibels_text(value: float) -> str:
    """Returns an SNR as text."""
    return "exact" if value == math.inf else f"{value:.1f} dB"


def _figures(snr: float, agreement: float) -> str:
    if math.isnan(snr):
        return "nothing to compare" if math.isnan(agreement) else f"equal in {agreement:.1%}"
    ratio = "the same numbers" if snr == math.inf else decibels_text(snr)
    return ratio if math.isnan(agreement) else f"{ratio}, the same largest element in {agreement:.1%}"


def _output(output: OutputFidelity) -> dict[str, Any]:
    known = {name: value for name, value in output._asdict().items() if value == value and value != ""}
    return record({"name": output.name, "snr": output.snr, **known})


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


class OutputError(NamedTuple):
    """How far LiteRT's result is from that of the witness.

    Attributes:
        signature: The signature, or `main`.
        output: The output's name.
        max_absolute: Largest absolute difference.
        max_relative: The same, relative to the witness's largest magnitude.
        witness: What computed the right result.
    """

    signature: str
    output: str
    max_absolute: float
    max_relative: float
    witness: str = "the reference executor"
