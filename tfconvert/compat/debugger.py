"""`experimental.QuantizationDebugger`: how far each layer of a quantized model is from the model of floats.

Both are run side by side on the same samples, and layers are compared one by one. The differences are those of the
whole model up to a layer, as the user of its result sees them.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from glob import escape
from typing import IO, Any, NamedTuple

import numpy as np

from tfconvert.compat.converter import Converter
from tfconvert.compat.errors import as_of_the_class
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.quantize.comparison_process import layers_of, paired
from tfconvert.converter.targets.litert.stored_values import to_floats, to_stored
from tfconvert.importers.tflite.buffers import BytesContent
from tfconvert.importers.tflite.outline import read_file
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects.boxes import Array
from tfconvert.settings.quantization import Quantize

try:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
except ImportError:
    Interpreter = OpResolverType = None


class LayerPair(NamedTuple):
    """A result that the quantized model has as integers, and the float model as floats.

    Attributes:
        operator: The operator that computes it.
        name: The tensor's name in the float model.
        tensor: Its index in the quantized model.
        float_tensor: Its index in the float model.
        scale: Its scale.
        zero_point: Its zero point.
    """

    operator: str
    name: str
    tensor: int
    float_tensor: int
    scale: float
    zero_point: int


class DebugRunner:
    """A file, whose every tensor can be read after a run.

    Attributes:
        layers: The operators that compute something.
        tensors: What LiteRT tells of each tensor, by index.
    """

    def __init__(self, content: bytes) -> None:
        runtime.require()
        # Delegates compute several layers at once, and leave out what is between them.
        try:
            self._interpreter: Any = Interpreter(
                model_content=content,
                experimental_preserve_all_tensors=True,
                experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            )
            self._interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as problem:
            raise error("runtime-error", f"LiteRT can't run the model: {problem}") from problem
        self._shapes: list[tuple[int, ...]] = []
        self.layers = layers_of(BytesContent(content))
        self.tensors: Mapping[int, Mapping[str, Any]] = {
            each["index"]: each for each in self._interpreter.get_tensor_details()
        }
        self._names = _signature_names(self._interpreter)

    def run(self, sample: Sequence[Any] | Mapping[str, Any]) -> None:
        """Runs the model on a sample of floats: arrays in order, or by name.

        Raises:
            ConversionError: The sample doesn't fit (`wrong-sample`).
        """
        details = self._interpreter.get_input_details()
        values = _in_order(sample, [self._names.get(each["index"], each["name"]) for each in details])
        shapes = [value.shape for value in values]
        if shapes != self._shapes:
            for each, shape in zip(details, shapes, strict=True):
                self._interpreter.resize_tensor_input(each["index"], shape)
            self._interpreter.allocate_tensors()
            self._shapes = shapes
        for each, value in zip(details, values, strict=True):
            self._interpreter.set_tensor(each["index"], to_stored(value, each))
        self._interpreter.invoke()

    def value(self, index: int) -> Array:
        """Returns a tensor as it is stored."""
        value: Array = self._interpreter.get_tensor(index)
        return value

    def outputs(self) -> list[Array]:
        """Returns the outputs as floats."""
        details = self._interpreter.get_output_details()
        return [to_floats(self.value(each["index"]), *each["quantization"]) for each in details]


def pairs(floats: DebugRunner, quantized: DebugRunner) -> Iterator[LayerPair]:
    """Yields the layers that both have, in order."""
    for layer, other in paired(floats.layers, quantized.layers):
        for float_index, index in zip(layer.results, other.results, strict=True):
            scale, zero_point = quantized.tensors[index]["quantization"]
            if scale and floats.tensors[float_index]["dtype"] is np.float32:
                name = str(floats.tensors[float_index]["name"])
                yield LayerPair(layer.operator, name, index, float_index, scale, zero_point)


def _signature_names(interpreter: Any) -> dict[int, str]:
    """Returns the names that the first signature gives inputs, by tensor; empty without signatures."""
    key = next(iter(interpreter.get_signature_list()), None)
    if key is None:
        return {}
    details = interpreter.get_signature_runner(key).get_input_details()
    return {each["index"]: name for name, each in details.items()}


def _in_order(sample: Sequence[Any] | Mapping[str, Any], names: Sequence[str]) -> list[Array]:
    if isinstance(sample, Mapping):
        missing = [name for name in names if name not in sample]
        if missing:
            raise error("wrong-sample", f"a sample has no {', '.join(missing)}", hint="name every input of the model")
        return [np.asarray(sample[name]) for name in names]
    if len(sample) != len(names):
        raise error(
            "wrong-sample",
            f"a sample has {len(sample)} arrays, but the model has {len(names)} inputs",
            hint="yield a list of one array an input",
        )
    return [np.asarray(value) for value in sample]


Dataset = Callable[[], Iterable[Sequence[Any] | Mapping[str, Any]]]

# The measures of every layer.
_METRICS: Mapping[str, Callable[[Array], float]] = {
    "num_elements": lambda differences: float(differences.size),
    "stddev": lambda differences: float(np.std(differences)),
    "mean_error": lambda differences: float(np.mean(differences)),
    "max_abs_error": lambda differences: float(np.max(np.abs(differences))),
    "mean_squared_error": lambda differences: float(np.mean(np.square(differences))),
}


OfDifferences = Callable[[Any], float]
OfOutputs = Callable[[Sequence[Any], Sequence[Any]], float]
OfLayers = Callable[[Any, Any, float, int], float]


class QuantizationDebugOptions:
    """Settings of a `QuantizationDebugger`.

    Args:
        layer_debug_metrics: Functions by name; each gets the differences between a layer's result, turned to floats,
            and the float model's, and returns a number.
        model_debug_metrics: Functions by name; each gets the outputs of the float model and of the quantized one, as
            floats.
        layer_direct_compare_metrics: Functions by name; each gets a layer's result in the float model, its integers in
            the quantized one, their scale and zero point.
        denylisted_ops: Operators that stay float, as `CONV_2D`.
        denylisted_nodes: Layers that stay float, by the name of the tensor that they give.
        fully_quantize: Whether inputs and outputs are 8-bit integers, too, and an operator that would stay float is an
            error.

    Raises:
        ConversionError: Two functions have the same name (`wrong-option`).
    """

    @as_of_the_class()
    def __init__(
        self,
        layer_debug_metrics: Mapping[str, OfDifferences] | None = None,
        model_debug_metrics: Mapping[str, OfOutputs] | None = None,
        layer_direct_compare_metrics: Mapping[str, OfLayers] | None = None,
        denylisted_ops: Sequence[str] | None = None,
        denylisted_nodes: Sequence[str] | None = None,
        fully_quantize: bool = False,
    ) -> None:
        metrics = (layer_debug_metrics, model_debug_metrics, layer_direct_compare_metrics)
        names = Counter(name for each in metrics for name in each or ())
        twice = sorted(name for name, count in names.items() if count > 1)
        if twice:
            raise error("wrong-option", f"two metrics are called {', '.join(twice)}", hint="give each its own name")
        self.layer_debug_metrics = layer_debug_metrics
        self.model_debug_metrics = model_debug_metrics
        self.layer_direct_compare_metrics = layer_direct_compare_metrics
        self.denylisted_ops = denylisted_ops
        self.denylisted_nodes = denylisted_nodes
        self.fully_quantize = fully_quantize


class QuantizationDebugger:
    """Compares a quantized model with its floats, layer by layer.

    Args:
        quant_debug_model_path: Path of the quantized model, if there is no converter.
        quant_debug_model_content: Its bytes, instead.
        float_model_path: Path of the model of floats, if there is no converter.
        float_model_content: Its bytes, instead.
        debug_dataset: A function that returns samples.
        debug_options: The metrics, and the layers to leave as floats.
        converter: A converter whose attributes ask for integers.

    Attributes:
        layer_statistics: The metrics of each layer by the name of its tensor, means over the samples; `None` before
            `run`.
        model_statistics: The means of the outputs' metrics.

    Raises:
        ConversionError: There is no model, or the converter isn't set to make integers (`wrong-option`); or the model
            can't be converted.
    """

    layer_statistics: dict[str, dict[str, float]] | None
    model_statistics: dict[str, float] | None

    @as_of_the_class()
    def __init__(
        self,
        quant_debug_model_path: str | os.PathLike[str] | None = None,
        quant_debug_model_content: bytes | None = None,
        float_model_path: str | os.PathLike[str] | None = None,
        float_model_content: bytes | None = None,
        debug_dataset: Dataset | None = None,
        debug_options: QuantizationDebugOptions | None = None,
        converter: Converter | None = None,
    ) -> None:
        self.converter = converter
        self._dataset = debug_dataset
        if converter is not None:
            self._float_content = converter.variant(_floats)
            self._nodes = self._known_nodes(converter)
        else:
            self._float_content = _content("float_model", float_model_path, float_model_content)
            self._quantized_content = _content("quant_debug_model", quant_debug_model_path, quant_debug_model_content)
        self._floats = DebugRunner(self._float_content)
        self.options = debug_options or QuantizationDebugOptions()

    @property
    def options(self) -> QuantizationDebugOptions:
        """The layers to measure and to leave as floats; setting them quantizes the model again."""
        return self._options

    @options.setter
    def options(self, options: QuantizationDebugOptions) -> None:
        self._options = options
        self.layer_statistics = self.model_statistics = None
        if self.converter is not None:
            self._quantized_content = self._quantized(self.converter)
        self._runner = DebugRunner(self._quantized_content)
        self._pairs = list(pairs(self._floats, self._runner))

    def get_nondebug_quantized_model(self) -> bytes:
        """Returns the quantized model, as the contents of a `.tflite` file.

        Raises:
            ConversionError: There is no converter (`wrong-option`).
        """
        if self.converter is None:
            raise error("wrong-option", "the debugger has no converter to make a model with", hint="pass converter")
        return self._quantized_content

    def get_debug_quantized_model(self) -> bytes:
        """Refused: there are no operators in files here that compare layers.

        Raises:
            ConversionError: Always (`no-debug-model`).
        """
        raise error(
            "no-debug-model",
            "no file with operators that compare layers is written: this debugger compares "
            "the quantized file with the float one",
            hint="call run() and read layer_statistics, or call get_nondebug_quantized_model()",
        )

    @as_of_the_class()
    def run(self) -> None:
        """Runs both models on all samples.

        Raises:
            ConversionError: There are no samples (`no-samples`), or one doesn't fit (`wrong-sample`).
        """
        options = self._options
        by_layer: dict[str, dict[str, list[float]]] = {}
        by_model: dict[str, list[float]] = {}
        count = 0
        for sample in self._dataset() if self._dataset is not None else ():
            count += 1
            self._floats.run(sample)
            self._runner.run(sample)
            for pair in self._pairs:
                for name, figure in self._measured(pair).items():
                    by_layer.setdefault(pair.name, {}).setdefault(name, []).append(figure)
            for name, metric in (options.model_debug_metrics or {}).items():
                by_model.setdefault(name, []).append(metric(self._floats.outputs(), self._runner.outputs()))
        if not count:
            raise error("no-samples", "the debugger has no samples to run the models on", hint="pass debug_dataset")
        self.layer_statistics = {
            layer: {name: float(np.nanmean(figures)) for name, figures in found.items()}
            for layer, found in by_layer.items()
        }
        if options.model_debug_metrics:
            self.model_statistics = {name: float(np.mean(figures)) for name, figures in by_model.items()}

    def layer_statistics_dump(self, file: IO[str]) -> None:
        """Writes the metrics of the layers as CSV.

        Args:
            file: What to write to.
        """
        metrics = [*_METRICS, *(self._options.layer_debug_metrics or ())]
        metrics += self._options.layer_direct_compare_metrics or ()
        names = ["op_name", "tensor_idx", *dict.fromkeys(metrics), "scale", "zero_point", "tensor_name"]
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        if self.layer_statistics is None:
            return
        for pair in self._pairs:
            place = {
                "op_name": pair.operator,
                "tensor_idx": pair.tensor,
                "scale": pair.scale,
                "zero_point": pair.zero_point,
                "tensor_name": pair.name,
            }
            writer.writerow(place | self.layer_statistics[pair.name])

    def _measured(self, pair: LayerPair) -> dict[str, float]:
        """Returns the metrics of a layer in the last run."""
        expected, stored = self._floats.value(pair.float_tensor), self._runner.value(pair.tensor)
        differences = to_floats(stored, pair.scale, pair.zero_point) - expected
        found = {
            name: metric(differences)
            for name, metric in {**_METRICS, **(self._options.layer_debug_metrics or {})}.items()
        }
        for name, compare in (self._options.layer_direct_compare_metrics or {}).items():
            found[name] = compare(expected, stored, pair.scale, pair.zero_point)
        return found

    def _quantized(self, converter: Converter) -> bytes:
        options = self._options
        # A tensor may be called as an output is, or have a number behind its name; the report knows the node.
        nodes = [self._nodes.get(name, name) for name in options.denylisted_nodes or ()]
        excluded = (*(escape(name) for name in nodes), *(options.denylisted_ops or ()))

        def change(wanted: Quantize | None) -> Quantize:
            whole = options.fully_quantize
            return replace(_checked(wanted), exclude=excluded, io="int8" if whole else "float32", strict=whole)

        return converter.variant(change)

    def _known_nodes(self, converter: Converter) -> Mapping[str, str]:
        """Returns the nodes that tensors of the float model belong to, as far as names don't say it."""
        converter.variant(lambda wanted: replace(_checked(wanted), io="float32", strict=False))
        quantization = converter.report.quantization if converter.report is not None else None
        layers = quantization.layers if quantization is not None else ()
        floats = DebugRunner(self._float_content)
        names = [layer.operator for layer in floats.layers]
        found: dict[str, str] = {}
        matcher = SequenceMatcher(None, names, [layer.op for layer in layers], autojunk=False)
        for block in matcher.get_matching_blocks():
            for offset in range(block.size):
                for index in floats.layers[block.a + offset].results:
                    found[str(floats.tensors[index]["name"])] = layers[block.b + offset].node
        return found


def _floats(wanted: Quantize | None) -> None:
    _checked(wanted)


def _checked(wanted: Quantize | None) -> Quantize:
    """Returns the setting of a converter that makes integers.

    Raises:
        ConversionError: It makes none (`wrong-option`).
    """
    if wanted is None or not wanted.is_static or wanted.samples is None:
        raise error(
            "wrong-option",
            "the converter of a QuantizationDebugger must be set to make integers",
            hint="set optimizations = [Optimize.DEFAULT] and a representative_dataset",
        )
    return wanted


def _content(what: str, path: str | os.PathLike[str] | None, content: bytes | None) -> bytes:
    if content is not None:
        return content
    if path is None:
        raise _nothing(what)
    return read_file(path)


def _nothing(what: str) -> ConversionError:
    return error(
        "wrong-option",
        f"the debugger has neither a converter nor {what}_path or {what}_content",
        hint="pass the converter, or both the quantized model and the float one",
    )
