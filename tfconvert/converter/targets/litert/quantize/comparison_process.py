"""Compares a float model with its quantized form on the same samples, tensor by tensor, in a child process.

Inner tensors are compared for the first signature, outputs for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.quantize.figures import Figures, OutputFigures, stored_range
from tfconvert.converter.targets.litert.stored_values import to_floats, to_stored
from tfconvert.importers.tflite.buffers import Content, FileContent
from tfconvert.importers.tflite.operators import code
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.tflite.reader import Allowance, View, read_model

# Operators that only convert between types.
_CONVERSIONS = frozenset(("QUANTIZE", "DEQUANTIZE"))

# Operators whose results are their operand's numbers, with which they were compared, in other channels.
_REARRANGE = frozenset(("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE"))


class Layer(NamedTuple):
    """An operator that computes something.

    Attributes:
        operator: Its name.
        shapes: The shapes of its present results.
        results: The indices of their tensors.
        inputs: The indices of its operands.
    """

    operator: str
    shapes: tuple[tuple[int, ...], ...]
    results: tuple[int, ...]
    inputs: tuple[int, ...] = ()


def layers_of(content: Content) -> list[Layer]:
    """Returns the operators of a converted file's first subgraph, in order, without conversions between types."""
    model = read_model(content.view, Allowance(len(content.view)))
    codes = [code(view) for view in model["operator_codes"] or ()]
    main = model["subgraphs"][0]
    tensors = main["tensors"] or ()
    layers = []
    for view in main["operators"] or ():
        found = codes[view["opcode_index"]]
        results = tuple(at for at in _numbers(view, "outputs") if at >= 0)
        name = found.custom or found.name.upper()
        if name not in _CONVERSIONS:
            shapes = tuple(_numbers(tensors[at], "shape") for at in results)
            layers.append(Layer(name, shapes, results, _numbers(view, "inputs")))
    return layers


def _numbers(view: View, name: str) -> tuple[int, ...]:
    values = view[name]
    return () if values is None else tuple(values.tolist())


def paired(floats: Sequence[Layer], quantized: Sequence[Layer]) -> Iterator[tuple[Layer, Layer]]:
    """Yields the layers that both files have, in order."""
    keys, others = ([each[:2] for each in layers] for layers in (floats, quantized))
    for block in SequenceMatcher(None, keys, others, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            yield floats[block.a + offset], quantized[block.b + offset]


Ends = tuple[Sequence[int], Sequence[int]]
"""The tensors of the inputs, and those of the outputs, of the first signature, in the order that two files share."""


class _Model:
    """One of the two files.

    Args:
        path: The file.
        ends: Its inputs and outputs; by default in the file's order.
    """

    def __init__(self, path: str, ends: Ends | None = None) -> None:
        self._interpreter: Any = runtime.interpreter_of(path, num_threads=1, experimental_preserve_all_tensors=True)
        self.inputs: Sequence[Mapping[str, Any]] = self._interpreter.get_input_details()
        self.outputs: list[int] = [each["index"] for each in self._interpreter.get_output_details()]
        self.layers = layers_of(FileContent(path))
        self.tensors: dict[int, Mapping[str, Any]] = {
            each["index"]: each for each in self._interpreter.get_tensor_details()
        }
        if ends is not None:
            by_index = {each["index"]: each for each in self.inputs}
            self.inputs, self.outputs = [by_index[index] for index in ends[0]], list(ends[1])
        self._shapes: list[tuple[int, ...]] = []

    def run(self, values: Sequence[Array]) -> None:
        interpreter = self._interpreter
        shapes = [value.shape for value in values]
        if shapes != self._shapes:
            for each, value in zip(self.inputs, values, strict=True):
                interpreter.resize_tensor_input(each["index"], value.shape)
            interpreter.allocate_tensors()
            self._shapes = shapes
        for each, value in zip(self.inputs, values, strict=True):
            interpreter.set_tensor(each["index"], to_stored(value, each))
        interpreter.invoke()

    def value(self, index: int) -> Array | None:
        details = self.tensors[index]
        try:
            stored = np.asarray(self._interpreter.get_tensor(index))
        except ValueError:
            return None
        return to_floats(stored, *details["quantization"])

    def run_signature(self, key: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Runs a signature; returns its outputs as floats."""
        runner = self._interpreter.get_signature_runner(key)
        details = runner.get_input_details()
        results = runner(**{name: to_stored(value, details[name]) for name, value in inputs.items()})
        found = runner.get_output_details()
        return {name: to_floats(results[name], *found[name]["quantization"]) for name in sorted(found)}

    def reset(self) -> None:
        self._interpreter.reset_all_variables()


class Pair:
    """Both models, and the sums so far.

    Args:
        paths: The file of floats, and the quantized one.
        entries: The keys of the signatures, with the names of the inputs.
        inner: Whether to compare inner tensors.
        ends: The inputs and outputs of each file, where the orders may differ.
    """

    def __init__(
        self,
        paths: Sequence[str],
        entries: Sequence[tuple[str, Sequence[str]]],
        inner: bool,
        ends: Sequence[Ends] | None = None,
    ) -> None:
        self._models = [_Model(path, own) for path, own in zip(paths, ends or (None, None), strict=True)]
        floats, quantized = self._models
        self._outputs = [(*pair, OutputFigures()) for pair in zip(floats.outputs, quantized.outputs, strict=True)]
        others = {
            one: two
            for layer, other in paired(floats.layers, quantized.layers)
            for one, two in zip(layer.results, other.results, strict=True)
            if floats.tensors[one]["dtype"] is np.float32 and layer.operator not in _REARRANGE
        }
        self._inner = {one: (two, Figures()) for one, two in others.items()} if inner else {}
        self._entries = entries
        self._further: dict[tuple[str, str], OutputFigures] = {}

    def run(self, entry: int, values: Sequence[Array], keeps: bool = False) -> list[dict[str, Array]] | None:
        """Runs both models; returns the outputs of each, by name and as floats, if they are wanted.

        Args:
            entry: The signature.
            values: Its inputs.
            keeps: Whether the outputs are wanted; those of the first signature only.
        """
        if entry:
            self._run_signature(*self._entries[entry], values)
        else:
            self._run_first(values)
        results = self._results() if keeps and not entry else None
        for model in self._models:
            model.reset()
        return results

    def _run_signature(self, key: str, names: Sequence[str], values: Sequence[Array]) -> None:
        expected, got = (model.run_signature(key, dict(zip(names, values, strict=True))) for model in self._models)
        for name, value in expected.items():
            if value.shape == got[name].shape:
                self._further.setdefault((key, name), OutputFigures()).add(value, got[name])

    def _run_first(self, values: Sequence[Array]) -> None:
        for model in self._models:
            model.run(values)
        floats, quantized = self._models
        pairs: list[tuple[int, int, Figures | OutputFigures]]
        pairs = [*self._outputs, *((one, two, figures) for one, (two, figures) in self._inner.items())]
        for one, two, figures in pairs:
            expected, got = floats.value(one), quantized.value(two)
            if expected is not None and got is not None and expected.shape == got.shape:
                figures.add(expected, got)

    def _results(self) -> list[dict[str, Array]]:
        names = [str(self._models[0].tensors[one]["name"]) for one, _, _ in self._outputs]
        values = [[model.value(index) for index in model.outputs] for model in self._models]
        return [{name: each for name, each in zip(names, own, strict=True) if each is not None} for own in values]

    def findings(self) -> dict[str, Any]:
        """Returns the findings about outputs, about other tensors by index, and the operators."""
        floats, quantized = self._models
        first = self._entries[0][0] if len(self._entries) > 1 else ""
        outputs = [figures.fidelity(str(floats.tensors[one]["name"]), first) for one, _, figures in self._outputs]
        outputs += [figures.fidelity(name, key) for (key, name), figures in self._further.items()]
        measured = {one: figures.measured() for one, (_, figures) in self._inner.items()}
        ranges = {one: stored_range(quantized.tensors[two]) for one, (two, _) in self._inner.items()}
        return {
            "outputs": [each for each in outputs if each is not None],
            "inner": [(one, str(floats.tensors[one]["name"]), each) for one, each in measured.items() if each],
            "ranges": [(one, each) for one, each in ranges.items() if each],
            "layers": [(each.operator, each.inputs, each.results) for each in floats.layers],
        }
