"""The class `TFLiteConverter` of TensorFlow 1, which `tf.compat.v1.lite` has."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfconvert.compat import input_stats
from tfconvert.compat.arguments import of_graph, of_signature, path_of, shapes_of, signatures, texts
from tfconvert.compat.attributes import V1_ROWS
from tfconvert.compat.converter import Converter
from tfconvert.compat.enumerators import Optimize
from tfconvert.compat.errors import as_of_the_class
from tfconvert.compat.row import Values, refusal, set_plainly
from tfconvert.converter.ir.interface import entry_functions, interface_of
from tfconvert.converter.pipeline.runner import opened
from tfconvert.importers.graph_def import read_graph_def
from tfconvert.importers.keras import prepare_keras_file
from tfconvert.importers.source import Source
from tfconvert.importers.temporary_model import SIGNATURE
from tfconvert.schema.files import is_folder

Shapes = Mapping[str, Collection[int | None] | None]
"""Shapes by input; a set is in the order in which it is iterated."""

_LOG = logging.getLogger(__name__)

# Fields of the metadata on how the file was made.
_MADE = {"api_version": 1}


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

    _is_of_tensors: bool

    @as_of_the_class()
    def __init__(
        self,
        graph_def: Any,
        input_tensors: Sequence[Any] | None,
        output_tensors: Sequence[Any] | None,
        input_arrays_with_shape: Sequence[tuple[str, Sequence[int | None]]] | None = None,
        output_arrays: Sequence[str] | None = None,
        experimental_debug_info_func: Any = None,
    ) -> None:
        if input_tensors is not None and output_tensors:
            inputs, shapes = _fed(input_tensors)
            outputs = [tensor.name for tensor in output_tensors]
            redundant = {"input_arrays_with_shape": input_arrays_with_shape, "output_arrays": output_arrays}
            for name in (name for name, value in redundant.items() if value):
                _LOG.warning("%s will be ignored, since tensors are passed", name)
        elif input_arrays_with_shape is not None and output_arrays:
            inputs = [name for name, _ in input_arrays_with_shape]
            shapes = shapes_of("input_arrays_with_shape", dict(input_arrays_with_shape))
            outputs = texts("output_arrays", output_arrays) or []
        else:
            raise refusal(
                "TFLiteConverter",
                "nothing says what to feed and what to fetch",
                "pass input_tensors and output_tensors, or input_arrays_with_shape and output_arrays",
            )
        super().__init__(V1_ROWS, graph_def, {"inputs": inputs, "outputs": outputs, "input_shapes": shapes})
        set_plainly(self, "_made", _MADE)
        set_plainly(self, "_is_of_tensors", input_tensors is not None and bool(output_tensors))

    @classmethod
    def _of(cls, model: Any, arguments: Mapping[str, Any]) -> TFLiteConverter:
        converter = cls.__new__(cls)
        Converter.__init__(converter, V1_ROWS, model, arguments)
        set_plainly(converter, "_made", _MADE)
        set_plainly(converter, "_is_of_tensors", False)
        return converter

    def _has_valid_tensors(self) -> bool:
        """Returns whether tensors were passed, and not their names; the official class's subclasses ask that."""
        return self._is_of_tensors

    @property
    def post_training_quantize(self) -> bool:
        """Whether `optimizations` has `DEFAULT`; setting it sets these."""
        return Optimize.DEFAULT in self.optimizations

    @post_training_quantize.setter
    def post_training_quantize(self, value: bool) -> None:
        self.optimizations = [Optimize.DEFAULT] if value else []

    @property
    def target_ops(self) -> Any:
        """The sets of operators, `target_spec.supported_ops`."""
        return self.target_spec.supported_ops

    @target_ops.setter
    def target_ops(self, value: Any) -> None:
        self.target_spec.supported_ops = value

    @as_of_the_class()
    def get_input_arrays(self) -> list[str]:
        """Returns the names of the inputs.

        Raises:
            ConversionError: It is not a model, or can't be imported.
        """
        named = self._arguments.get("inputs")
        if named is not None:
            return [name.partition(":")[0] for name in named]
        given = Source(self._model, **self._arguments)
        source = given.importable()
        try:
            return [each.name for each in interface_of(entry_functions(opened(source))[0]).inputs]
        finally:
            if given.prepared is None:
                source.discard()

    def model(self, values: Values) -> Any:
        """Returns what is converted, with the ranges of inputs that are given as numbers.

        Raises:
            ConversionError: They can't be used (`wrong-option`).
        """
        return input_stats.with_ranges(self._model, values, self.get_input_arrays)

    @classmethod
    @as_of_the_class()
    def from_saved_model(
        cls,
        saved_model_dir: str | os.PathLike[str],
        input_arrays: Iterable[str] | None = None,
        input_shapes: Shapes | None = None,
        output_arrays: Iterable[str] | None = None,
        tag_set: Iterable[str] | None = None,
        signature_key: str | None = None,
    ) -> TFLiteConverter:
        """Returns a converter of one signature of a SavedModel.

        Args:
            saved_model_dir: Its directory.
            input_arrays: The tensors to feed, those of the signature by default.
            input_shapes: Shapes by input: the tensor's name, or the signature's for it.
            output_arrays: The tensors to fetch, those of the signature by default.
            tag_set: The tags of the graph to convert, `serve` by default.
            signature_key: The signature, `serving_default` by default.

        Raises:
            ConversionError: There is no such model, graph, signature or input.
        """
        folder, tags = path_of("saved_model_dir", saved_model_dir), texts("tag_set", tag_set)
        keys = texts("signature_key", signature_key) or [SIGNATURE]
        found = signatures(folder, keys, tags)
        selection = of_signature(None if found is None else found[keys[0]], input_arrays, input_shapes, output_arrays)
        return cls._of(folder, {**selection, "tags": tags, "signatures": keys, "order": "official-v1"})

    @classmethod
    @as_of_the_class()
    def from_frozen_graph(
        cls,
        graph_def_file: str | os.PathLike[str],
        input_arrays: Iterable[str],
        output_arrays: Iterable[str],
        input_shapes: Shapes | None = None,
    ) -> TFLiteConverter:
        """Returns a converter of a frozen graph.

        Args:
            graph_def_file: The file, binary or text.
            input_arrays: The tensors to feed.
            output_arrays: The tensors to fetch.
            input_shapes: Shapes by input name.

        Raises:
            ConversionError: The file isn't a graph, has no such tensors, or variables without values.
        """
        path = path_of("graph_def_file", graph_def_file)
        graph = read_graph_def(path)
        converter = cls._of(graph, of_graph(graph, input_arrays, output_arrays, input_shapes))
        set_plainly(converter, "_name", path)
        return converter

    @classmethod
    @as_of_the_class()
    def from_keras_model_file(
        cls,
        model_file: str | os.PathLike[str],
        input_arrays: Iterable[str] | None = None,
        input_shapes: Shapes | None = None,
        output_arrays: Iterable[str] | None = None,
        custom_objects: Mapping[str, Any] | None = None,
    ) -> TFLiteConverter:
        """Returns a converter of a Keras model in a file, which Keras loads.

        Args:
            model_file: The file.
            input_arrays: The tensors to feed, the model's inputs by default.
            input_shapes: Shapes by input name.
            output_arrays: The tensors to fetch, the model's outputs by default.
            custom_objects: Layers and functions that the file only names, by these names.

        Raises:
            ConversionError: The file can't be loaded, or the model has no such input.
        """
        path = path_of("model_file", model_file)
        made = None if is_folder(path) else prepare_keras_file(Path(path), custom_objects)
        found = signatures(made or path, [SIGNATURE], None)
        selection = of_signature(None if found is None else found[SIGNATURE], input_arrays, input_shapes, output_arrays)
        return cls._of(made or path, {**selection, "signatures": [SIGNATURE], "prepared": made, "order": "flattened"})

    @classmethod
    @as_of_the_class()
    def from_session(cls, sess: Any, input_tensors: Sequence[Any], output_tensors: Sequence[Any]) -> TFLiteConverter:
        """Returns a converter of a session's graph, with variables as they are now.

        Args:
            sess: The session.
            input_tensors: The tensors to feed.
            output_tensors: The tensors to fetch.
        """
        # Who has a session has imported TensorFlow.
        tf = sys.modules["tensorflow"]
        freeze = tf.compat.v1.graph_util.convert_variables_to_constants
        frozen = freeze(sess, sess.graph_def, [tensor.op.name for tensor in output_tensors])
        converter = cls(frozen, input_tensors, output_tensors)
        made = {**_MADE, "model_type": "TF_SESSION", "tensorflow_version": tf.__version__}
        set_plainly(converter, "_made", made)
        return converter


def _fed(tensors: Sequence[Any]) -> tuple[list[str], dict[str, Any]]:
    """Returns the names of tensors, and the shapes of those whose rank is known."""
    shapes = {tensor.name: tensor.shape.as_list() for tensor in tensors if tensor.shape.rank is not None}
    return [tensor.name for tensor in tensors], shapes
