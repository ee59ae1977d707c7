"""Measures our quantization against the official converter's, model by model and mode by mode.

    python -m benchmarks.quantization --output out/quantization.md
    python -m benchmarks.quantization --only digits,lstm --modes dynamic,int8

Both convert the same SavedModel with the same samples, in processes of their own; the results run in LiteRT, with and
without XNNPACK. The official converter's results are kept from run to run, since they take minutes. Exit status 1 if
a file of ours

- is missing, has nothing quantized, or some kernels don't run it;
- is further from the float file than the official converter's, by more than 1 dB;
- has more bytes or operators (in the mode `dynamic`, an eighth more bytes, since small filters stay floats; in the
  mode `int8`, conversions don't count, since some operators stay floats because they are faster so);
- of a trained network, has another first choice more often, by more than a hundredth of the samples.

Where the official converter has no file that runs, the ratio to reach is written down in `table.py`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.commands import parser_of
from benchmarks.comparison import conditions
from benchmarks.litert import operators
from benchmarks.quantization.convert import MODES, Mode
from benchmarks.quantization.models import Reference, add_selection, make, selected
from benchmarks.quantization.results import Officials, our_figures
from benchmarks.quantization.run import times
from benchmarks.quantization.table import Row, line, markdown, modes_of
from benchmarks.zoo import default_cache


def compare(reference: Reference, mode: Mode, officials: Officials, folder: Path, seconds: float) -> Row:
    """Converts a model by both, and compares the results.

    Args:
        reference: The model.
        mode: How to quantize.
        officials: The official converter's results.
        folder: Where our file goes.
        seconds: How long to time inferences.

    Raises:
        RuntimeError: The official converter has no float file that runs: there is nothing to compare with.
    """
    official_float = officials.figures(MODES["float"], seconds)
    if not official_float.runs:
        raise RuntimeError(f"the official converter's float file: {official_float.fault}")
    official = officials.figures(mode, seconds)
    target = folder / f"{reference.recipe.name}.{mode.name}.tflite"
    ours = our_figures(reference, mode, target, officials.expected())
    for figures, path in ((ours, target), (official, officials.path(mode))):
        if not figures.problem:
            figures.conversions = sum(operators(path)[name] for name in ("QUANTIZE", "DEQUANTIZE"))
    models = [
        (figures, path)
        for figures, path in ((ours, target), (official, officials.path(mode)))
        if "xnnpack" in figures.snr
    ]
    if models:
        # In turns, whatever was measured before: the machine may be busier now.
        measured = times([path for _, path in models], reference.test, seconds)
        for (figures, _), latency in zip(models, measured, strict=True):
            figures.latency = latency
    return Row(reference.recipe, mode, ours, official)


def compare_all(
    references: Sequence[Reference], wanted: Sequence[str], kept: Path, folder: Path, seconds: float
) -> Iterator[Row]:
    """Yields the comparisons of all models, each in its modes; a model that can't be had ends them.

    Raises:
        RuntimeError: A model can't be created or compared with anything.
    """
    for reference in references:
        make(reference)
        officials = Officials(reference, kept)
        for mode in modes_of(reference.recipe, wanted):
            yield compare(reference, mode, officials, folder, seconds)


def write(output: Path, text: str, rows: Sequence[Row]) -> None:
    """Writes the table, and the raw figures beside it."""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text)
    raw = {"conditions": conditions(1), "rows": [row.to_dict() for row in rows]}
    output.with_suffix(".json").write_text(json.dumps(raw, indent=2) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("quantization", __doc__)
    add_selection(parser)
    parser.add_argument("--modes", default="", metavar="MODE,...", help=f"these modes, of {' '.join(MODES)}")
    parser.add_argument(
        "--official-cache",
        type=Path,
        default=default_cache() / "quantization" / "official",
        metavar="DIR",
        help="where the official converter's results are kept, default: %(default)s",
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep our files in this folder")
    parser.add_argument("--seconds", type=float, default=2.0, help="of timing inferences a row, default: %(default)s")
    parser.add_argument("--output", type=Path, metavar="FILE.md", help="write the table and raw figures")
    options = parser.parse_args(arguments)
    wanted = [name.strip() for name in options.modes.split(",") if name.strip()]
    references = selected(parser, options)
    try:
        for reference in references:
            modes_of(reference.recipe, wanted)
    except ValueError as problem:
        parser.error(str(problem))
    rows: list[Row] = []
    reason = ""
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        try:
            folder = options.keep or Path(temporary)
            for row in compare_all(references, wanted, options.official_cache, folder, options.seconds):
                rows.append(row)
                print(line(row), file=sys.stderr, flush=True)
        except RuntimeError as failure:
            reason = str(failure)
            print(reason, file=sys.stderr)
    text = markdown(rows, conditions(1))
    print(text)
    if options.output is not None:
        write(options.output, text, rows)
    return 1 if reason or not rows or any(row.shortcomings() for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
