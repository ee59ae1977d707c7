"""Criteria that a quantized file has to meet, and the table of all files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from benchmarks.comparison import PACKAGES, table
from benchmarks.quantization.convert import MODES, Mode
from benchmarks.quantization.models import Recipe
from benchmarks.quantization.results import Figures
from benchmarks.quantization.run import KERNELS

# dB by which a file may be further from the float one than the official converter's.
SNR_SLACK: Final = 1.0

# How much less often it may be right, in networks that have learned something; others choose by a hair's breadth.
AGREEMENT_SLACK: Final = 0.01

# How many times as large as the official file ours may be in the mode `dynamic`: small filters stay floats.
DYNAMIC_BYTES: Final = 1.125

# The ratio in dB that two converters' float files have to have.
EXACT: Final = 80.0

# Ratios in dB to reach where the official converter's file can't be the bar: it writes none, or none that runs.
#
# The float file of `qat` has roundings inside, which the least difference flips.
AIMS: Final[dict[tuple[str, str], float]] = {
    ("qat", "float"): 50.0,
    ("gru", "int8"): 40.0,
    ("gru", "int16"): 48.0,
    ("lstm", "int16"): 48.0,
    ("transformer", "int16"): 45.0,
    ("embed", "int16"): 43.0,
}

PLAIN_MODES: Final = ("float", "dynamic", "float16", "int8", "int16")
QAT_MODES: Final = ("float", "int8", "qat")

QAT_MODEL: Final = "qat"


def modes_of(recipe: Recipe, wanted: Sequence[str] = ()) -> list[Mode]:
    """Returns the modes to convert a model with: the wanted ones that make sense for it, all of the usual by default.

    Raises:
        ValueError: A wanted mode does not exist.
    """
    unknown = sorted(set(wanted) - MODES.keys())
    if unknown:
        raise ValueError(f"no modes: {', '.join(unknown)}; there are {', '.join(MODES)}")
    is_trained_for_it = recipe.name == QAT_MODEL
    names = wanted or (QAT_MODES if is_trained_for_it else PLAIN_MODES)
    return [MODES[name] for name in names if is_trained_for_it or not name.startswith("qat")]


@dataclass(frozen=True, slots=True)
class Row:
    """Both converters' results for a model and a mode."""

    recipe: Recipe  # The model.
    mode: Mode  # How it was quantized.
    ours: Figures  # Our result.
    official: Figures  # The official converter's.

    @property
    def label(self) -> str:
        """Its name."""
        return f"{self.recipe.name} {self.mode.name}"

    def bar(self, kernels: str) -> float | None:
        """Returns the ratio in dB that our file should have with these kernels; `None` if there is no bar."""
        aim = AIMS.get((self.recipe.name, self.mode.name))
        if not self.mode.quantize:
            return EXACT if aim is None else aim
        return self.official.snr.get(kernels, aim)

    def _counted(self, figures: Figures) -> int:
        """Returns the number of operators that count: weights are dequantized only once, and conversions save time.

        In the mode `int8`, LiteRT computes what is faster so with floats; `benchmarks.latency` has the times.
        """
        left_out = {"dynamic": figures.folded, "int8": figures.conversions}
        return figures.operators - (left_out.get(self.mode.quantize, 0) if self.mode.io == "float32" else 0)

    def shortcomings(self) -> list[str]:
        """Returns the criteria that our result misses."""
        ours, official = self.ours, self.official
        if ours.problem:
            return ["no file"]
        found = [f"{kernels} doesn't run it" for kernels in ours.failures]
        if self.mode.quantize and not ours.reduced:
            found.append("nothing is quantized")
        for kernels, ratio in ours.snr.items():
            bar = self.bar(kernels)
            slack = SNR_SLACK if self.mode.quantize else 0.0
            if bar is not None and ratio < bar - slack:
                found.append(f"{kernels} {ratio:.1f} dB < {bar:.1f}")
        if official.runs:
            if ours.size > official.size * (DYNAMIC_BYTES if self.mode.quantize == "dynamic" else 1):
                found.append("bytes")
            if self._counted(ours) > self._counted(official):
                found.append("operators")
            if self.recipe.is_trained and ours.agreement < official.agreement - AGREEMENT_SLACK:
                found.append("top-1")
        return found

    def cells(self) -> list[str]:
        """Returns the row of the table."""
        ours, official = self.ours, self.official
        found = self.shortcomings()
        pairs = (
            (_size(ours), _size(official)),
            (_operators(ours), _operators(official)),
            *((_ratio(ours, kernels), _ratio(official, kernels) or self._aim(kernels)) for kernels in KERNELS),
            (_agreement(ours), _agreement(official)),
            (_latency(ours), _latency(official)),
            (f"{ours.cost.processor:.1f}", f"{official.cost.processor:.1f}"),
            (f"{ours.cost.peak / 1e6:.0f}", f"{official.cost.peak / 1e6:.0f}"),
        )
        return [
            self.recipe.name,
            self.mode.name,
            *(cell for pair in pairs for cell in pair),
            f"worse: {', '.join(found)}" if found else "ok",
        ]

    def _aim(self, kernels: str) -> str:
        bar = self.bar(kernels)
        return "" if bar is None else f"aim {bar:.0f}"

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data."""
        sides = {"ours": asdict(self.ours), "official": asdict(self.official)}
        return {"model": self.recipe.name, "mode": self.mode.name, **sides, "shortcomings": self.shortcomings()}


def _size(figures: Figures) -> str:
    return "" if figures.problem else f"{figures.size:,}"


def _operators(figures: Figures) -> str:
    if figures.problem:
        return ""
    return f"{figures.operators} ({figures.folded} folded)" if figures.folded else str(figures.operators)


def _ratio(figures: Figures, kernels: str) -> str:
    return f"{figures.snr[kernels]:.1f}" if kernels in figures.snr else ""


def _agreement(figures: Figures) -> str:
    return f"{figures.agreement:.3f}" if figures.runs else ""


def _latency(figures: Figures) -> str:
    return f"{figures.latency * 1e3:.3f}" if figures.latency else ""


HEADER: Final = (
    "model|mode|bytes|official|operators|official|dB, XNNPACK|official|dB, builtin kernels|official|"
    "top-1|official|ms|official|CPU s|official|MB|official|verdict"
)


def markdown(rows: Sequence[Row], setup: dict[str, Any]) -> str:
    """Returns the table, and what went wrong on either side."""
    versions = ", ".join(f"{name} {setup[name]}" for name in PACKAGES)
    good = sum(not row.shortcomings() for row in rows)
    lines = [
        "dB and top-1 compare answers with those of the official converter's float file: outputs, or the logits where",
        "weights are random. ms: an inference in one thread. CPU s and MB: the conversion, as a whole process.",
        f"{setup['processor']}, {setup['cores']} cores; {versions}.",
        "",
        *table(HEADER, [row.cells() for row in rows]),
        "",
        f"{good} of {len(rows)} are good enough.",
        *(f"\n{row.label}: we: {row.ours.fault}" for row in rows if row.ours.fault),
        *(f"\n{row.label}: the official converter: {row.official.fault}" for row in rows if row.official.fault),
        *(f"\n{row.label}: the official converter needs floats in between" for row in rows if row.official.is_mixed),
    ]
    return "\n".join(lines) + "\n"


def line(row: Row) -> str:
    """Returns a line about a row, for whoever waits."""
    found = row.shortcomings()
    return f"{row.label:26} {'worse: ' + ', '.join(found) if found else 'ok'}"
