"""Runs a model of floats and its quantized form side by side, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.quantize.comparison_process import layers_of, paired
from tfconvert.converter.targets.litert.stored_values import to_floats, to_stored
from tfconvert.importers.tflite.buffers import BytesContent
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.boxes import Array

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


class Runner:
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


def pairs(floats: Runner, quantized: Runner) -> Iterator[LayerPair]:
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
