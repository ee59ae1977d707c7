"""Compares the results of a converted model with those of another model: by output, and layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.ir.interface import Interface
from tfconvert.converter.targets.litert.quantize.comparison import compare_files
from tfconvert.converter.targets.litert.quantize.samples import Sample, read
from tfconvert.converter.validation import result_check
from tfconvert.converter.validation.result_check import Quantized
from tfconvert.importers.source import Source
from tfconvert.importers.tflite.outline import Outline, OutlineSignature, outline, read_file
from tfconvert.report.summary import Table, summary
from tfconvert.schema.diagnostics import Diagnostic, error, printable
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.fidelity import HEADS, Fidelity, LayerFidelity, Limits, cells, decibels_text, table
from tfconvert.schema.tflite.reader import Allowance, read_model
from tfconvert.tools.against import Matching, ranges_of
from tfconvert.tools.diff import drawn
from tfconvert.tools.layers import layer_table, nodes_of
from tfconvert.tools.litert_file import describe
from tfconvert.tools.programs import entry_of

# Layers that lose a smaller share of their channels' signal need no advice.
_MIN_LOST = 0.01

# A typical channel that uses a smaller share of the range has too few steps.
_MIN_USED = 0.05

# If the numbers of the typical layer need a smaller share of its range, the range was measured on larger numbers.
_MIN_FILLED = 0.25

# If they need more, they exceed the range.
_MAX_FILLED = 1.25

# Maximum number of layers in the advice.
_FEW = 3

# Maximum number of lines of the text.
_MAX_LAYERS = 20


class Comparison(NamedTuple):
    """How the results of one model differ from those of another, on the same inputs.

    Attributes:
        first: The model whose losses are measured.
        second: The model whose results are taken to be right.
        fidelity: The figures: outputs, and layers if they were compared.
        notes: Notes about outputs that were not compared, and on the inputs.
    """

    first: str
    second: str
    fidelity: Fidelity
    notes: tuple[Diagnostic, ...] = ()

    @property
    def is_low(self) -> bool:
        """Whether an output has less than 20 dB, or another largest element in more than a tenth of the rows."""
        return self.fidelity.is_low

    @property
    def advice(self) -> tuple[str, ...]:
        """Sentences on where accuracy is lost and how to keep it; empty if little is lost."""
        return tuple(_advice(self.fidelity))

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            "first": self.first,
            "second": self.second,
            **self.fidelity.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
            "advice": list(self.advice),
        }

    def to_text(self, *, verbose: bool = False) -> str:
        """Returns the tables as text.

        Args:
            verbose: Whether to list all layers.
        """
        rows = _columns([_OUTPUT_HEADS, *_output_rows(self.fidelity)])
        lines = [self._head(), *(f"  {row}" for row in rows)]
        if self.fidelity.layers:
            most = None if verbose else _MAX_LAYERS
            lines += ["  layers, those where most is lost first:", *table(self.fidelity.layers, most)]
        lines += [f"  {note.severity}: {note}" for note in self.notes]
        lines += [f"  advice: {each}" for each in self.advice]
        return "\n".join(map(printable, lines))

    def _head(self) -> str:
        count = self.fidelity.samples
        kind = "random input" if self.fidelity.is_random else "sample"
        return f"{self.first} compared with {self.second} on {count} {kind}{'' if count == 1 else 's'}:"

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        outputs = Table("outputs", _OUTPUT_HEADS, list(_output_rows(self.fidelity)))
        layers = Table("layers, those where most is lost first", HEADS, list(map(cells, self.fidelity.layers)))
        notes = [f"{note.severity}: {note}" for note in self.notes]
        return summary(self._head(), [*notes, *(f"advice: {each}" for each in self.advice)], [outputs, layers])


_OUTPUT_HEADS = ("output", "SNR", "same largest element")


def _output_rows(fidelity: Fidelity) -> Iterator[tuple[str, ...]]:
    has_several = len({each.signature for each in fidelity.outputs}) > 1
    for each in fidelity.outputs:
        name = f"{each.signature}/{each.name}" if has_several else each.name
        snr = "" if np.isnan(each.snr) else decibels_text(each.snr)
        yield name, snr, "" if np.isnan(each.agreement) else f"{each.agreement:.1%}"


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns rows as lines, the first column to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def _advice(fidelity: Fidelity) -> Iterator[str]:
    if fidelity.is_random and fidelity.is_low:
        yield "pass typical inputs as `data`: random ones say little about a quantized model"
    if not fidelity.is_low:
        return
    if not fidelity.layers:
        yield "layers=True shows where accuracy is lost"
        return
    typical = float(np.median([each.filled for each in fidelity.layers]))
    if not _MIN_FILLED <= typical <= _MAX_FILLED:
        kind = "larger" if typical < 1 else "smaller"
        yield (
            f"the numbers of the typical layer need {typical:.1%} of its range: the samples of the quantization had "
            f"{kind} numbers than these inputs; scale both as the model was trained, and quantize again"
        )
        return
    worst = [each for each in fidelity.layers if each.lost >= _MIN_LOST and each.node][:_FEW]
    for each in worst:
        yield f"{each.node} ({each.op}) loses {each.lost:.0%} of the signal of its channels{_reason(each)}"
    if worst:
        names = list(dict.fromkeys(each.node for each in worst))
        yield (
            f"leave such layers as floats, with what reads them: tfconvert.Quantize(..., exclude={names}); "
            "verify=tfconvert.Verify(compare_layers=True) searches for the fewest that suffice"
        )
    else:
        yield 'no layer loses much by itself: many small losses add up; the mode "int16" or "dynamic" loses less'


def _reason(layer: LayerFidelity) -> str:
    if layer.used >= _MIN_USED:
        return ""
    return f": the typical channel uses {layer.used:.2%} of the range, as a few are far larger"


def compare(
    path: str, second: Source | str, data: Any = None, *, layers: bool = False, names: tuple[str, str]
) -> Comparison:
    """Compares the results of a file with those of a model, or of another file.

    The model runs in the reference executor, files in LiteRT. Of two files, the one with fewer quantized numbers is
    taken to be right.

    Args:
        path: The file.
        second: The model, or the path of the other file.
        data: The inputs, as `Quantize.samples`; `None` for random ones.
        layers: Whether to compare layer by layer, too.
        names: What the two are called.

    Raises:
        ConversionError: Either can't be read or run, they have other signatures, inputs or outputs
            (`no-such-signature`, `unlike-interface`), or the data doesn't suit them (`wrong-sample`).
    """
    if isinstance(second, Source):
        return _with_model(path, second, data, layers, names)
    if outline(read_file(second)).is_quantized and not outline(read_file(path)).is_quantized:
        return _with_file(second, path, data, layers, (names[1], names[0]))
    return _with_file(path, second, data, layers, names)


def _with_model(path: str, source: Source, data: Any, layers: bool, names: tuple[str, str]) -> Comparison:
    content = read_file(path)
    file = outline(content)
    wiring = Matching(file)

    def ranges(interface: Interface) -> dict[int, tuple[float, float]]:
        return ranges_of(file, wiring, interface)

    found = result_check.compared(source, content, data, wiring, Quantized(Limits(), ranges))
    fidelity = found.fidelity or Fidelity(0, (), is_random=data is None)
    if layers:
        fidelity = fidelity._replace(layers=layer_table(source, content, data, wiring, ranges))
    unlike = tuple(each for each in found.problems if fidelity.problem() is None or each.code != "low-fidelity")
    return Comparison(*names, fidelity, (*found.notes, *unlike))


def _with_file(path: str, reference: str, data: Any, layers: bool, names: tuple[str, str]) -> Comparison:
    content = read_file(reference)
    file, known = outline(read_file(path)), outline(content)
    interfaces = describe(read_model(memoryview(content), Allowance(len(content))), len(content)).signatures
    wiring = Matching(file)
    first = interfaces[0]
    one, other = _signature(known, first), wiring.signature(first)
    wires = wiring(first)
    inputs = {each.name: each.number for each in other.inputs}
    outputs = {each.name: each.number for each in other.outputs}
    ends = [
        ([each.number for each in one.inputs], [each.number for each in one.outputs]),
        ([inputs[name] for name in wires.inputs], [outputs[name] for name in wires.outputs]),
    ]
    if one.subgraph or other.subgraph:
        raise error("unlike-interface", "the first signature is not the main graph", hint="compare them with `diff`")
    entries = [entry_of(each) for each in interfaces]
    notes: list[Diagnostic] = []
    ranges = ranges_of(file, wiring, first)
    samples = _random(one, ranges) if data is None else read(data, entries, allow_nan=True, notes=notes)
    nodes = {each.number: nodes_of(each.name)[-1] for each in known.tensors[0]} if layers else None
    found = compare_files([reference, path], samples, entries, nodes, inner=layers, ends=ends)
    outputs_of = {tensor.name: name.name for tensor, name in zip(_tensors(known, one), one.outputs, strict=True)}
    named = tuple(each._replace(name=outputs_of.get(each.name, each.name)) for each in found.outputs)
    return Comparison(*names, found._replace(outputs=named, is_random=data is None), tuple(notes))


def _signature(file: Outline, interface: Interface) -> OutlineSignature:
    key = interface.keys[0] if interface.keys else ""
    return next(each for each in file.signatures if each.key == key)


def _tensors(file: Outline, signature: OutlineSignature) -> list[Any]:
    return [file.tensors[signature.subgraph][each.number] for each in signature.outputs]


def _random(signature: OutlineSignature, ranges: dict[int, tuple[float, float]]) -> Iterator[Sample]:
    for draw, values in enumerate(drawn(signature.inputs)):
        fitting = list[Array](values)
        for place, (low, high) in ranges.items():
            value = values[place]
            if value.dtype.kind == "f":
                numbers = np.random.default_rng([place, draw]).uniform(low, high, value.shape)
                fitting[place] = np.asarray(numbers, value.dtype)
        yield Sample(0, fitting)
