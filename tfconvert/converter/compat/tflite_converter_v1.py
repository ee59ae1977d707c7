"""The class `TFLiteConverter` of TensorFlow 1, which `tf.compat.v1.lite` has."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfconvert.converter.compat import input_stats
from tfconvert.converter.compat.attributes import V1_ROWS
from tfconvert.converter.compat.converter import Converter
from tfconvert.converter.compat.quantization import element_type
from tfconvert.converter.compat.row import Values, refusal
from tfconvert.converter.ir.interface import entry_functions, interface_of
from tfconvert.importers.source import Source

Shapes = Mapping[str, Sequence[int | None]]


class TFLiteConverter(Converter):
    """Converts a model as `tf.compat.v1.lite.TFLiteConverter` does; make one with the methods `from_*`.

    docs/tflite_converter.md says what each attribute does. The attribute `report` has the conversion's report.

    Args:
        graph_def: A frozen graph.
        input_tensors: The tensors to feed; their names and shapes are used.
        output_tensors: The tensors to fetch.
        input_arrays_with_shape: The names and shapes of the tensors to feed, where there are no `input_tensors`.
        output_arrays: The names of the tensors to fetch, where there are no `output_tensors`.
        experimental_debug_info_func: Has no effect: errors tell the source lines that the model holds.

    Raises:
        ConversionError: Nothing says what to feed, or what to fetch (`wrong-option`).
    """

    def __init__(
        self,
        graph_def: Any,
        input_tensors: Sequence[Any] | None,
        output_tensors: Sequence[Any] | None,
        input_arrays_with_shape: Sequence[tuple[str, Sequence[int | None]]] | None = None,
        output_arrays: Sequence[str] | None = None,
        experimental_debug_info_func: Any = None,
    ) -> None:
        if input_tensors:
            inputs, shapes = _fed(input_tensors)
        else:
            inputs = [name for name, _ in input_arrays_with_shape or ()]
            shapes = {name: list(shape) for name, shape in input_arrays_with_shape or ()}
        outputs = [tensor.name for tensor in output_tensors] if output_tensors else list(output_arrays or ())
        if not inputs or not outputs:
            raise refusal("TFLiteConverter", "nothing says what to feed and what to fetch",
                          "pass input_tensors and output_tensors, or input_arrays_with_shape and output_arrays",
                          )  # fmt: skip
        super().__init__(V1_ROWS, graph_def, {"inputs": inputs, "outputs": outputs, "input_shapes": shapes})

    @classmethod
    def _of(cls, model: Any, arguments: Mapping[str, Any]) -> TFLiteConverter:
        converter = cls.__new__(cls)
        Converter.__init__(converter, V1_ROWS, model, arguments)
        return converter

    def get_input_arrays(self) -> list[str]:
        """Returns the names of the inputs.

        Raises:
            ConversionError: It is not a model, or can't be imported.
        """
        named = self._arguments.get("inputs")
        if named:
            return [name.partition(":")[0] for name in named]
        taken = {name: value for name, value in self._arguments.items() if name in Source._fields}
        source = Source(self._model, **taken).on_disk()
        try:
            return [each.name for each in interface_of(entry_functions(source.open())[0]).inputs]
        finally:
            source.discard()

    def model(self, values: Values) -> Any:
        """Returns what is converted, with the ranges of inputs that are given as numbers.

        Raises:
            ConversionError: They can't be used (`wrong-option`).
        """
        stats, whole = values[input_stats.NAME], element_type(values["inference_type"])
        if not stats or whole == "float32":
            return self._model
        return input_stats.with_ranges(self._model, stats, element_type(values["inference_input_type"] or whole))

    @classmethod
    def from_saved_model(
        cls,
        saved_model_dir: str | os.PathLike[str],
        input_arrays: Sequence[str] | None = None,
        input_shapes: Shapes | None = None,
        output_arrays: Sequence[str] | None = None,
        tag_set: Iterable[str] | None = None,
        signature_key: str | None = None,
    ) -> TFLiteConverter:
        """Returns a converter of one signature of a SavedModel.

        Args:
            saved_model_dir: Its folder.
            input_arrays: Refused by `convert`: the signature has its inputs.
            input_shapes: Shapes by input name.
            output_arrays: Refused by `convert`: the signature has its outputs.
            tag_set: The tags of the graph to convert, `serve` by default.
            signature_key: The signature, `serving_default` by default.
        """
        return cls._of(saved_model_dir, {
            "inputs": input_arrays, "outputs": output_arrays, "input_shapes": input_shapes,
            "tags": sorted(tag_set or ()) or None, "signatures": [signature_key or "serving_default"],
            "order": "official-v1",
        })  # fmt: skip

    @classmethod
    def from_frozen_graph(
        cls,
        graph_def_file: str | os.PathLike[str],
        input_arrays: Sequence[str],
        output_arrays: Sequence[str],
        input_shapes: Shapes | None = None,
    ) -> TFLiteConverter:
        """Returns a converter of a frozen graph.

        Args:
            graph_def_file: The `.pb` or `.pbtxt` file.
            input_arrays: The tensors to feed.
            output_arrays: The tensors to fetch.
            input_shapes: Shapes by input name.
        """
        arguments = {"inputs": input_arrays, "outputs": output_arrays, "input_shapes": input_shapes}
        return cls._of(graph_def_file, arguments)

    @classmethod
    def from_keras_model_file(
        cls,
        model_file: str | os.PathLike[str],
        input_arrays: Sequence[str] | None = None,
        input_shapes: Shapes | None = None,
        output_arrays: Sequence[str] | None = None,
        custom_objects: Mapping[str, Any] | None = None,
    ) -> TFLiteConverter:
        """Returns a converter of a Keras model in a file, if `convert` reads the file.

        Args:
            model_file: The file.
            input_arrays: The tensors to feed.
            input_shapes: Shapes by input name.
            output_arrays: The tensors to fetch.
            custom_objects: Refused: the code of layers isn't run.

        Raises:
            ConversionError: Custom objects were passed (`wrong-option`).
        """
        if custom_objects:
            raise refusal("custom_objects", "layers of one's own aren't run",
                          "load the model with Keras, and call model.export(folder)")  # fmt: skip
        arguments = {"inputs": input_arrays, "outputs": output_arrays, "input_shapes": input_shapes}
        return cls._of(model_file, {**arguments, "order": "flattened"})

    @classmethod
    def from_session(cls, sess: Any, input_tensors: Sequence[Any], output_tensors: Sequence[Any]) -> TFLiteConverter:
        """Returns a converter of a session's graph, with variables as they are now.

        Args:
            sess: The session.
            input_tensors: The tensors to feed.
            output_tensors: The tensors to fetch.
        """
        # Who has a session has imported TensorFlow.
        freeze = sys.modules["tensorflow"].compat.v1.graph_util.convert_variables_to_constants
        frozen = freeze(sess, sess.graph_def, [tensor.op.name for tensor in output_tensors])
        return cls(frozen, input_tensors, output_tensors)


def _fed(tensors: Sequence[Any]) -> tuple[list[str], dict[str, Any]]:
    """Returns the names of tensors, and the shapes of those whose rank is known."""
    shapes = {tensor.name: tensor.shape.as_list() for tensor in tensors if tensor.shape.rank is not None}
    return [tensor.name for tensor in tensors], shapes
