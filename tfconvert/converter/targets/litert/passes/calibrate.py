"""Pass `calibrate`: runs the model on samples for the ranges of the values to quantize.

The ranges are attributes of the ops that compute the values, and of the functions for their arguments; see
`targets/litert/quantize/parameters.py`. The model runs in LiteRT, in a child process, or in the reference executor if
LiteRT is not installed.

Existing ranges are kept. Without samples or fake quantization, the ranges are unknown, which is the error
`no-samples`.

Refused:

    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "tfl.relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tfconvert.converter.ir.interface import interface_of
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.fake_quant import ops_of
from tfconvert.converter.targets.litert.passes.fold_fake_quant import FoldFakeQuant
from tfconvert.converter.targets.litert.quantize import calibration, samples
from tfconvert.converter.targets.litert.quantize.candidates import (
    Settings,
    is_constant,
    is_float,
    loop_bodies,
    observed,
)
from tfconvert.converter.targets.litert.quantize.channels import channels_of
from tfconvert.converter.targets.litert.quantize.fake_quant import is_fake_quant
from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.converter.targets.litert.quantize.parameters import RANGES, set_channel_ranges, set_ranges
from tfconvert.converter.targets.litert.quantize.rows import Rows
from tfconvert.converter.targets.litert.quantize.samples import Entry, entries_of
from tfconvert.exporters.tflite.model import Place, export
from tfconvert.schema.diagnostics import NOTE, WARNING, Diagnostic, error
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.operators import FLEX
from tfconvert.settings.quantization import INT8, Quantize

if TYPE_CHECKING:
    from tfconvert.converter.targets.litert.quantize.numpy_run import NumpyRun


@dataclass(frozen=True, slots=True)
class Calibrate:
    """Finds the ranges of the values to quantize."""

    quantize: Quantize = INT8  # How to quantize, with samples, or a file with ranges.
    name: ClassVar[str] = "calibrate"

    def apply(self, module: ModuleOp) -> PassResult:
        """Sets the ranges; returns the number of values with one.

        Raises:
            ConversionError: A sample is wrong, or the model can't be run on it; or samples are missing, and the model
                was not trained with quantization (`no-samples`).
        """
        wanted = self.quantize
        kept = Path(wanted.calibration) if wanted.calibration is not None else None
        notes: list[Diagnostic] = []
        was_kept = kept is not None and kept.is_file()
        if was_kept or wanted.samples is not None:
            found = self._seen(module, kept, notes)
        elif kept is not None:
            raise error(
                "no-samples",
                f"the calibration file {kept} doesn't exist, and there are no samples for it",
                hint="pass typical inputs: samples=... (--samples FILE.npz)",
            )
        elif wanted.default_range is not None:
            found = dict.fromkeys(self._unknown(module), Range(*map(float, wanted.default_range)))
        elif wanted.trained_only or any(is_fake_quant(op) or RANGES in op.attributes for op in module.walk()):
            return NOTHING_DONE
        elif wanted.trained:
            raise error(
                "no-samples",
                "the model was not trained for quantization: it fake-quantizes nothing",
                hint="pass typical inputs with `samples` (--samples FILE.npz) instead of `trained` (--trained)",
            )
        else:
            raise error(
                "no-samples",
                f"the mode {wanted.mode!r} needs samples to find the ranges of values",
                hint="pass typical inputs with `samples` (--samples FILE.npz)",
            )
        set_ranges(found)
        if wanted.samples is None and not was_kept:
            return PassResult(Counter({"values with the default range": len(found)}), [_made_up(len(found))])
        in_numpy = wanted.samples is not None and not runtime.is_installed() and not was_kept
        return PassResult(Counter({"values seen": len(found)}), [*notes, *([_IN_NUMPY] if in_numpy else [])])

    def _unknown(self, module: ModuleOp) -> list[Value]:
        """Returns the values whose ranges were not determined in training."""
        return [
            value
            for values in self._wanted(module).values()
            for value in values
            if not ops_of(value) and not any(is_fake_quant(use.operation) for use in value.uses)
        ]

    def _wanted(self, module: ModuleOp) -> dict[FuncOp, list[Value]]:
        """Returns the values whose ranges are needed, by function."""
        settings, bodies = Settings.of(self.quantize), loop_bodies(module)
        functions = [function for function in module.ops if isinstance(function, FuncOp)]
        values = {function: list(observed(function, settings.of_function(function, bodies))) for function in functions}
        if self.quantize.has_integer_ends:
            for function in entries_of(module)[0]:
                values[function] = list(dict.fromkeys([*values[function], *_boundary(function)]))
        return values

    def _seen(self, module: ModuleOp, kept: Path | None, notes: list[Diagnostic]) -> dict[Value, Range]:
        """Returns the ranges from a file, if there is one, or from samples; also sets those of rows."""
        values, rows = self._wanted(module), Rows(module, Settings.of(self.quantize).storage)
        found: dict[Value, Range] = {}
        try:
            if kept is not None and kept.is_file():
                known = calibration.load(kept, self.quantize.ranges, _places(module))
                found = dict(known.ranges)
                set_channel_ranges(known.channels)
            else:
                found = self._run(module, {each: values[each] + rows.values[each] for each in values}, kept, notes)
        finally:
            rows.remove(found)
        return found

    def _run(
        self, module: ModuleOp, values: Mapping[FuncOp, Sequence[Value]], kept: Path | None, notes: list[Diagnostic]
    ) -> dict[Value, Range]:
        wanted = self.quantize
        _check_kernels(module)
        settings = Settings.of(wanted)
        entries, signatures = entries_of(module)
        inputs: list[Sequence[Value]] = [function.body.block.args for function in entries]
        levels, fold = 2**settings.storage.width, FoldFakeQuant().apply
        ends = {function: _boundary(function) for function in entries}
        seen = {each: list(dict.fromkeys([*own, *ends.get(each, ())])) for each, own in values.items()}
        apart = {} if wanted.equalize == "off" else _channel_axes(entries)
        observation = calibration.Observation(module, seen, inputs, wanted.ranges, levels, fold, apart)
        with _runner()(observation) as run:
            each, total = samples.read(wanted.samples, signatures, notes=notes), samples.count(wanted.samples)
            calibration.observe(run, each, signatures, total, wanted.progress)
            found, channels = run.ranges(), run.channels()
        _check_infinities(entries, signatures, found)
        asked = {value for own in values.values() for value in own}
        found = {value: extent for value, extent in found.items() if value in asked}
        notes += _constant_inputs(entries, signatures, found, total)
        if kept is not None:
            calibration.save(kept, wanted.ranges, _places(module), calibration.Calibration(found, channels))
        set_channel_ranges(channels)
        return found


def _check_infinities(functions: Sequence[FuncOp], entries: Sequence[Entry], found: Mapping[Value, Range]) -> None:
    """Checks that infinities in samples only hide other numbers, as those of a mask do: then results are finite.

    Raises:
        ConversionError: They don't (`wrong-sample`).
    """
    for function, entry in zip(functions, entries, strict=True):
        block = function.body.block
        infinite = [
            given.name
            for argument, given in zip(block.args, entry.inputs, strict=True)
            if argument in found and not found[argument].is_finite
        ]
        outputs = block.last_op.operands if block.last_op is not None else ()
        if infinite and any(value in found and not found[value].is_finite for value in outputs):
            raise samples.infinite(infinite[0])


def _channel_axes(functions: Sequence[FuncOp]) -> dict[Value, tuple[int, ...]]:
    """Returns the axes along which values have channels that may be divided."""
    return {
        value: tuple(axis for axis, size in enumerate(ids.shape) if size > 1)
        for function in functions
        for value, ids in channels_of(function).of.items()
    }


def _constant_inputs(
    functions: Sequence[FuncOp], entries: Sequence[Entry], found: dict[Value, Range], samples: int | None
) -> list[Diagnostic]:
    """Returns warnings about inputs that had the same number in all samples, such as states that began with zeros.

    An input whose name says that an output feeds it back gets the range of both.
    """
    notes = []
    for function, entry in zip(functions, entries, strict=True):
        for argument, given in zip(function.body.block.args, entry.inputs, strict=True):
            seen = found.get(argument)
            if samples == 1 or seen is None or seen.low != seen.high:
                continue
            name, output = _fed_back(function, given.name, argument)
            known = found.get(output) if output is not None else None
            found[argument] = seen if known is None else seen.joined(known)
            instead = "doesn't tell its range: other numbers will be clipped or rounded to it"
            notes.append(
                Diagnostic(
                    "constant-input",
                    f"the input {given.name!r} is always {seen.low:g} in the samples, which "
                    + (instead if known is None else f"doesn't tell its range: it gets that of the output {name!r}"),
                    hint="pass samples as they occur in use, for a state those of a stream",
                    severity=WARNING,
                )
            )
    return notes


def _fed_back(function: FuncOp, name: str, argument: Value) -> tuple[str, Value | None]:
    """Returns the output, with its name, that is an input's next value by its name: `s_out` is that of `s`."""
    end = function.body.block.last_op
    if ENTRY_FUNCTION in function.attributes and end is not None:
        stem = name.removesuffix("_in")
        names = (f"{stem}_out", f"{stem}_next", f"next_{stem}", f"new_{stem}")
        for output, value in zip(interface_of(function).outputs, end.operands, strict=True):
            if output.name in names and value.type == argument.type:
                return output.name, value
    return "", None


def _check_kernels(module: ModuleOp) -> None:
    """Checks that LiteRT's package has the kernels of all operators."""
    for op in module.walk():
        if op.name == "tfl.custom" and str(tfl.attribute(op, tfl.CUSTOM_CODE)).startswith(FLEX):
            code = tfl.attribute(op, tfl.CUSTOM_CODE)
            raise error_at(
                op,
                "flex-calibration",
                f"the samples can't be run: LiteRT's package has no kernel of {code}",
                "quantize weights only, with the mode `dynamic`, or pass `calibration`, a file of ranges",
            )


def _runner() -> type[calibration.Run | NumpyRun]:
    if runtime.is_installed():
        return calibration.Run
    # It imports every reference kernel.
    from tfconvert.converter.targets.litert.quantize.numpy_run import NumpyRun

    return NumpyRun


_IN_NUMPY = Diagnostic(
    "calibrated-in-numpy",
    "the samples were run in the reference executor, which is slow: LiteRT is not installed",
    hint="pip install 'tfconvert[verify]'",
    severity=NOTE,
)


def _made_up(count: int) -> Diagnostic:
    return Diagnostic(
        "default-range",
        f"{count} values have the default range, since nothing tells theirs: results are wrong, and only speed and "
        "size can be measured",
        hint="pass samples",
        severity=WARNING,
    )


def _places(module: ModuleOp) -> dict[Value, Place]:
    places: dict[Value, Place] = {}
    export(module, places=places)
    return places


def _boundary(function: FuncOp) -> list[Value]:
    """Returns the float inputs and outputs."""
    block = function.body.block
    outputs = block.last_op.operands if block.last_op is not None else ()
    return [value for value in (*block.args, *outputs) if is_float(value) and not is_constant(value)]
