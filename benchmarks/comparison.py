"""Figures of a comparison with the official converter, and their output: Markdown, JSON, a picture."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.litert import Measured
from benchmarks.measure import Run

PACKAGES = ("tfconvert", "tensorflow", "ai-edge-litert", "numpy")
OURS, OFFICIAL = "#1f6feb", "#b9c0c8"


@dataclass(frozen=True, slots=True)
class Side:
    """One converter on one model."""

    runs: list[Run]  # Its runs, each a whole process.
    result: Measured  # The result.

    @property
    def seconds(self) -> float:
        """Median wall time."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def peak(self) -> float:
        """Median peak memory in bytes."""
        return statistics.median(run.peak for run in self.runs)

    def to_dict(self) -> dict[str, Any]:
        """Returns the raw figures."""
        runs = [{"seconds": run.seconds, "peak": run.peak} for run in self.runs]
        return {"runs": runs, **self.result.to_dict()}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both converters on one model."""

    label: str
    ours: Side
    official: Side

    @property
    def faster(self) -> float:
        """The ratio of the official converter's time to ours."""
        return self.official.seconds / self.ours.seconds

    @property
    def lighter(self) -> float:
        """The ratio of the official converter's memory to ours."""
        return self.official.peak / self.ours.peak

    @property
    def inference(self) -> float:
        """The ratio of our result's inference time to the official result's."""
        return self.ours.result.latency / self.official.result.latency


def conditions(runs: int) -> dict[str, Any]:
    """Returns the conditions of the measurement."""
    return {
        "runs": runs,
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in PACKAGES},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def _geometric_mean(rows: Sequence[Comparison], ratio: Callable[[Comparison], float]) -> float:
    return statistics.geometric_mean(ratio(row) for row in rows)


def table(header: str, rows: list[list[str]]) -> list[str]:
    """Returns the lines of a Markdown table whose columns, save the first, are flush right; `header` has bars."""
    columns = header.split("|")
    ruler = "|".join([" --- ", *[" ---: "] * (len(columns) - 1)])
    return [
        f"| {' | '.join(column.strip() for column in columns)} |",
        f"|{ruler}|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def markdown(rows: Sequence[Comparison], setup: dict[str, Any], failures: dict[str, str]) -> str:
    """Returns the tables."""
    processes = [
        [
            row.label,
            f"{row.ours.seconds:.2f} s",
            f"{row.official.seconds:.2f} s",
            f"**{row.faster:.1f}x**",
            f"{row.ours.peak / 1e6:.0f} MB",
            f"{row.official.peak / 1e6:.0f} MB",
            f"**{row.lighter:.1f}x**",
        ]
        for row in rows
    ]
    results = [
        [
            row.label,
            f"{row.ours.result.count}",
            f"{row.official.result.count}",
            f"{row.ours.result.size:,}",
            f"{row.official.result.size:,}",
            f"{row.ours.result.latency * 1e3:.1f} ms",
            f"{row.official.result.latency * 1e3:.1f} ms",
            f"{row.inference:.2f}",
            f"{row.ours.result.error:.1e}",
            f"{row.official.result.error:.1e}",
        ]
        for row in rows
    ]
    if rows:
        faster, lighter = (_geometric_mean(rows, which) for which in (_faster, _lighter))
        processes.append(["geometric mean", "", "", f"**{faster:.1f}x**", "", "", f"**{lighter:.1f}x**"])
        results.append(["geometric mean", *[""] * 6, f"{_geometric_mean(rows, _inference):.2f}", "", ""])
    versions = ", ".join(f"{name} {setup[name]}" for name in ("python", *PACKAGES))
    lines = [
        f"Times of whole processes, imports included: medians of {setup['runs']} alternating runs of each converter.",
        f"{setup['processor']}, {setup['cores']} cores; {versions}.",
        "",
        *table("model | time | official | faster | peak memory | official | lighter", processes),
        "",
        "The results: inference in LiteRT with one thread at batch 1, error relative to TensorFlow's largest output.",
        "",
        *table(
            "model | operators | official | bytes | official | inference | official | ratio | error | official", results
        ),
        *(f"\n{label} failed: {reason}" for label, reason in failures.items()),
    ]
    return "\n".join(lines) + "\n"


def _faster(row: Comparison) -> float:
    return row.faster


def _lighter(row: Comparison) -> float:
    return row.lighter


def _inference(row: Comparison) -> float:
    return row.inference


def as_dict(rows: Sequence[Comparison], setup: dict[str, Any], failures: dict[str, str]) -> dict[str, Any]:
    """Returns the raw figures and the means."""
    ratios = (_faster, _lighter, _inference) if rows else ()
    means = {which.__name__.strip("_"): _geometric_mean(rows, which) for which in ratios}
    models = {row.label: {"ours": row.ours.to_dict(), "official": row.official.to_dict()} for row in rows}
    return {"conditions": setup, "geometric_means": means, "models": models, "failures": failures}


def draw(rows: Sequence[Comparison], picture: Path) -> None:
    """Draws time and peak memory as pairs of bars, with the ratio written behind each pair."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(12, 1.6 + 0.52 * len(rows)), sharey=True)
    columns = (
        (
            "Time of the whole process, s",
            [(row.ours.seconds, row.official.seconds, row.faster) for row in rows],
            _faster,
        ),
        ("Peak memory, MB", [(row.ours.peak / 1e6, row.official.peak / 1e6, row.lighter) for row in rows], _lighter),
    )
    for panel, (title, figures, which) in zip(panels, columns, strict=True):
        places = range(len(rows))
        ours, official = [each[0] for each in figures], [each[1] for each in figures]
        panel.barh([place - 0.2 for place in places], ours, 0.38, color=OURS, label="tfconvert")
        panel.barh([place + 0.2 for place in places], official, 0.38, color=OFFICIAL, label="TensorFlow's converter")
        for place, (_, longest, ratio) in enumerate(figures):
            panel.text(longest * 1.12, place, f"{ratio:.1f}x", va="center", fontweight="bold", color="#24292f")
        panel.set_xscale("log")
        panel.set_xlim(min(ours) / 2, max(official) * 2.6)
        panel.set_yticks(list(places), [row.label for row in rows])
        panel.set_title(f"{title}   (geometric mean {_geometric_mean(rows, which):.1f}x)", loc="left", fontsize=11)
        panel.spines[["top", "right"]].set_visible(False)
        panel.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        panel.grid(axis="x", color="#e5e8eb", linewidth=0.8)
        panel.set_axisbelow(True)
    panels[0].invert_yaxis()
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="lower center", ncols=2, frameon=False)
    figure.tight_layout(rect=(0, 0.6 / (1.6 + 0.52 * len(rows)), 1, 1))
    figure.savefig(picture, dpi=150, facecolor="white")
    pyplot.close(figure)
