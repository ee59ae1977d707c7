"""The report as a person reads it on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from converter.report import Report, ranked

_FEW = 8


def render(report: Report, output_file: str, verbose: bool) -> str:
    """Returns the report as text.

    Args:
        report: What the conversion did.
        output_file: Where the result is.
        verbose: Whether to list everything instead of the largest few.
    """
    most = None if verbose else _FEW
    lines = [
        f"{report.source} -> {output_file}",
        f"  {_bytes(report.size)}, {sum(report.operators.values())} operators "
        f"(from {sum(report.operations_before.values())} TensorFlow ops), "
        f"{report.frozen_variables} variables frozen, {report.seconds:.2f} s",
        f"  signatures: {', '.join(report.signatures) or '(none)'}",
    ]
    lines += _section("operators", _operator_rows(report), most)
    lines += _section("fused and folded", _counter_rows(report.rewrites.get("optimize", Counter())), most)
    if verbose:
        for name in (name for name in report.rewrites if name != "optimize"):
            lines += _section(name, _counter_rows(report.rewrites[name]), most)
        lines += _section("TensorFlow ops", _counter_rows(report.operations_before), most)
        lines += _section("stages", [(s.name, f"{s.seconds * 1000:.1f} ms") for s in report.stages], most)
    else:
        slowest = sorted(report.stages, key=lambda stage: -stage.seconds)[:5]
        lines.append("  time: " + ", ".join(f"{s.name} {s.seconds * 1000:.0f} ms" for s in slowest))
    for each in report.verification:
        lines.append(f"  verified {each.signature}/{each.output}: largest error {each.max_absolute:.2e} "
                     f"({each.max_relative:.1e} of the largest value)")  # fmt: skip
    lines += [f"  {note.severity}: {note}" for note in report.notes]
    return "\n".join(lines)


def _section(title: str, rows: Iterable[tuple[str, str]], most: int | None) -> list[str]:
    rows = list(rows)
    if not rows:
        return []
    shown = rows[:most]
    width = max(len(name) for name, _ in shown)
    lines = [f"  {title}:", *(f"    {name:<{width}}  {value}" for name, value in shown)]
    if len(shown) < len(rows):
        lines.append(f"    ... and {len(rows) - len(shown)} more (-v shows all)")
    return lines


def _operator_rows(report: Report) -> list[tuple[str, str]]:
    ranked = sorted(report.operators, key=lambda name: (-report.bytes_by_operator[name], -report.operators[name], name))
    return [(name, f"{report.operators[name]:>4}  {_bytes(report.bytes_by_operator[name]):>10}") for name in ranked]


def _counter_rows(counter: Counter[str]) -> list[tuple[str, str]]:
    return [(name, f"{count:>4}") for name, count in ranked(counter).items()]


def _bytes(size: int) -> str:
    if size < 1000:
        return f"{size} B"
    return f"{size / 1e3:.1f} kB" if size < 1_000_000 else f"{size / 1e6:.2f} MB"
