"""Opens a model of any format: detects the format, and imports it.

Imports are late, so that a model of one format doesn't load the importers of the others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import is_folder, is_missing, open_file
from tfconvert.settings.options import ORDERS

if TYPE_CHECKING:
    from tfconvert.importers.graph.wishes import Wishes
    from tfconvert.importers.temporary_model import TemporaryModel
    from tfconvert.schema.ir.builtin import ModuleOp
    from tfconvert.schema.tensorflow.generated.tensorflow_pb2 import OpDef

_KERAS = {"keras", "tf_keras"}
_KERAS_FILES = (".keras", ".h5", ".hdf5")
IR_FILES = (".mlir", ".tflite")
"""The endings of files whose contents are IR already."""


class Selection(Protocol):
    """The part of a model to import: settings of which each format accepts some and rejects the others."""

    @property
    def inputs(self) -> Sequence[str] | None:
        """The tensors to feed."""

    @property
    def outputs(self) -> Sequence[str] | None:
        """The tensors to fetch."""

    @property
    def input_shapes(self) -> Mapping[str, Sequence[int | None]] | None:
        """Shapes by input name."""

    @property
    def signatures(self) -> Sequence[str] | None:
        """SavedModels: the signatures to import."""

    @property
    def tags(self) -> Sequence[str] | None:
        """SavedModels: the tags of the graph to import."""

    @property
    def asset_root(self) -> str | os.PathLike[str] | None:
        """MLIR text: the folder below which it may name files."""

    @property
    def checkpoint(self) -> str | os.PathLike[str] | None:
        """SavedModel messages: the path of the checkpoint that holds the variables' values."""

    @property
    def rename(self) -> Mapping[str, str] | None:
        """New names of inputs and outputs."""

    @property
    def batch(self) -> int | None:
        """The first dimension of every input whose first dimension is unknown."""

    @property
    def order(self) -> str:
        """SavedModels: the order of a signature's inputs and outputs, one of `ORDERS`."""

    @property
    def follow_links(self) -> bool:
        """Whether links may lead out of the model's folder."""

    @property
    def results(self) -> Mapping[str, Sequence[str]]:
        """SavedModels: names of outputs by signature, in the order of the function's results."""

    @property
    def tensors(self) -> Mapping[str, Mapping[str, str]]:
        """SavedModels: what a function's own graph calls its outputs, by signature and name, in the graph's order."""

    @property
    def op_defs(self) -> object:
        """A file or a message with definitions of custom ops."""

    @property
    def is_raw(self) -> bool:
        """GraphDefs: whether to import every node as it is, though it can't be converted so."""


# The second name of models that Keras exports, which TensorFlow's converter omits beside `serving_default`.
_SECOND_NAMES = ("serve",)


def save_if_needed(model: object) -> TemporaryModel | None:
    """Saves a model that only its framework can read: a Keras model, a Keras file, or TensorFlow's functions.

    The names of its classes' modules determine its kind, so that no framework is imported to find out.

    Returns:
        The SavedModel's folder, which exists as long as this object; `None` if the model can be imported as it is.
    """
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        if path.suffix not in _KERAS_FILES or is_folder(path):
            return None
        from tfconvert.importers.keras import save_keras_file

        return save_keras_file(path)
    frameworks = _frameworks(model)
    if frameworks & _KERAS:
        from tfconvert.importers.keras import save_keras

        return save_keras(model)
    if "tensorflow" in frameworks and "google" not in frameworks:
        from tfconvert.importers.temporary_model import save_functions

        return save_functions(model)
    return None


def _frameworks(model: object) -> set[str]:
    """Returns the packages of an object's classes; those of the first item for several functions."""
    if isinstance(model, list | tuple) and model:
        model = model[0]
    return {cls.__module__.partition(".")[0] for cls in type(model).__mro__}


def files_of(
    model: object, asset_root: str | os.PathLike[str] | None = None, *, follow_links: bool = False
) -> list[Path]:
    """Returns the files that an import of a model may read; empty for a model in memory.

    Args:
        model: A model as for `import_model` or `save_if_needed`.
        asset_root: MLIR text: the folder below which it may name files.
        follow_links: Whether links may lead out of the model's folder.
    """
    if not isinstance(model, str | os.PathLike):
        return []
    from tfconvert.importers.model_files import model_files

    return model_files(Path(model), asset_root, follow_links=follow_links)


def import_model(model: object, options: Selection, *, functional: bool) -> ModuleOp:
    """Returns the module of a model in a file, a folder or a message in memory.

    Args:
        model: A SavedModel folder, a GraphDef file, a MetaGraph, MLIR text or a `.tflite` file; or a SavedModel or
            GraphDef message.
        options: The part to import.
        functional: Whether graphs without V1 control flow are imported as plain ops; see `Source.open`.
    """
    if not isinstance(model, str | os.PathLike):
        return _import_message(model, options, functional=functional)
    _refuse(options, ("checkpoint",), "is for messages in memory; a model's folder has its own checkpoint")
    return _import_path(Path(model), options, functional=functional)


def _import_message(message: object, options: Selection, *, functional: bool) -> ModuleOp:
    from tfconvert.importers.graph.protos import own_message
    from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

    model = own_message(message)
    if isinstance(model, pb.GraphDef):
        from tfconvert.importers.graph_def import import_graph

        _refuse(options, ("signatures", "tags", "checkpoint"), "is for SavedModels; a GraphDef only has nodes")
        return import_graph(
            model, options.inputs, options.outputs, options.input_shapes, wishes=_wishes(options), functional=functional
        )
    from tfconvert.importers.saved_model import Files, import_message

    checkpoint = None if options.checkpoint is None else Path(options.checkpoint)
    files = Files(None, checkpoint)
    return import_message(
        model, files, options.signatures, options.tags, options.input_shapes, _wishes(options), functional=functional
    )


def _import_path(path: Path, options: Selection, *, functional: bool) -> ModuleOp:
    from tfconvert.importers.saved_model import import_saved_model, is_saved_model

    if path.name in ("saved_model.pb", "saved_model.pbtxt"):
        path = path.parent
    if path.suffix != ".mlir":
        _refuse(options, ("asset_root",), "is the folder of files named by MLIR text; models have their own")
    if is_saved_model(path):
        return import_saved_model(
            path, options.signatures, options.tags, options.input_shapes, _wishes(options), functional=functional
        )
    if path.suffix in (".pb", ".pbtxt", ".prototxt") and not is_missing(path):
        from tfconvert.importers.graph_def import import_graph_def

        return import_graph_def(
            path, options.inputs, options.outputs, options.input_shapes, wishes=_wishes(options), functional=functional
        )
    if path.suffix in IR_FILES:
        _refuse(
            options,
            ("inputs", "outputs", "input_shapes", "signatures", "tags", "rename", "batch", "op_defs"),
            f"chooses what to import of a TensorFlow model; {path.name} is imported whole",
        )
        return _import_ir(path, options)
    from tfconvert.importers.meta_graph import find_meta_graph, import_meta_graph

    meta_graph = find_meta_graph(path, follow_links=options.follow_links)
    if meta_graph is not None:
        _refuse(options, ("tags",), "chooses a graph of a SavedModel; a MetaGraph is a single one")
        return import_meta_graph(
            meta_graph,
            options.inputs,
            options.outputs,
            options.input_shapes,
            options.signatures,
            _wishes(options),
            functional=functional,
        )
    if is_folder(path) or is_missing(path):
        return import_saved_model(path, wishes=_wishes(options))
    try:
        os.close(open_file(path))
    except OSError as problem:
        raise error("unreadable-file", f"can't read {path}: {problem.strerror}") from None
    raise error(
        "unknown-format",
        f"{path} is not a SavedModel folder, GraphDef (.pb, .pbtxt), MetaGraph (.meta), MLIR text or .tflite file",
        hint="export the model with tf.saved_model.save or model.export",
    )


def _wishes(options: Selection) -> Wishes:
    from tfconvert.importers.graph.wishes import Wishes

    if options.order not in ORDERS:
        raise error("wrong-option", f"there is no order {options.order!r}", hint=f"choose from {', '.join(ORDERS)}")
    for name in ("inputs", "outputs"):
        if isinstance(given := getattr(options, name), str):
            raise error("wrong-option", f"{name} can't be {given!r}", hint=f'give a list: {name}=["{given}"]')
    wishes = Wishes(
        None,
        options.results,
        options.batch,
        options.rename or {},
        options.follow_links,
        _op_defs(options),
        options.is_raw,
        options.inputs,
        options.outputs,
    )
    if options.order.startswith("official"):
        from tfconvert.importers.graph.entry_points import tensor_of
        from tfconvert.importers.graph.signature_order import by_fingerprint, label_v1

        wishes = wishes._replace(sort_key=by_fingerprint, second_names=_SECOND_NAMES)
        return wishes if options.order == "official" else wishes._replace(sort_key=tensor_of, label=label_v1)
    if options.order == "flattened":
        results = {key: list(names) for key, names in options.tensors.items()}
        return wishes._replace(results=results, tensors=options.tensors)
    return wishes


def _op_defs(options: Selection) -> Sequence[OpDef]:
    if options.op_defs is None:
        return ()
    from tfconvert.importers.graph.protos import read_op_defs

    return read_op_defs(options.op_defs)


def _import_ir(path: Path, options: Selection) -> ModuleOp:
    """Returns the module of a file whose contents are IR already, as text or as LiteRT's tables."""
    if path.suffix == ".mlir":
        from tfconvert.importers.mlir import import_mlir, read_mlir

        return import_mlir(read_mlir(path), str(path), asset_root=options.asset_root)
    from tfconvert.importers.tflite.model import check_versions, import_tflite
    from tfconvert.ops.verification import first_broken

    module = import_tflite(path)
    # The runtime accepts more element types than its dialect lists; they are checked before a file is written.
    broken = None if options.is_raw else first_broken(module, with_elements=False)
    if broken is not None:
        raise ConversionError([broken.diagnostic("malformed-tflite")])
    if not options.is_raw:
        check_versions(module)
    return module


def _refuse(options: Selection, names: Sequence[str], because: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            raise error("wrong-option", f"{name} {because}")
