"""Opens a model of any format: detects the format, and imports it.

Imports are late, so that a model of one format doesn't load the importers of the others.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfconvert.importers.containment import SAVED_MODEL_FILES
from tfconvert.importers.renaming import with_models_names
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import is_file, is_folder, is_missing, open_file
from tfconvert.settings.selection import Selection
from tfconvert.settings.setting import check_fields

if TYPE_CHECKING:
    from tfconvert.importers.temporary_model import Original, PreparedModel
    from tfconvert.schema.ir.builtin import ModuleOp

_KERAS = {"keras", "tf_keras"}
_JAX = {"jax", "jaxlib"}
_KERAS_FILES = (".keras", ".h5", ".hdf5")
IR_FILES = (".mlir", ".mlirbc", ".tflite")
"""The extensions of files whose contents are IR already."""

# Files that are no StableHLO, by their names.
_OF_TENSORFLOW = (".tflite", ".pb", ".pbtxt", ".prototxt", ".meta")

# What only TensorFlow's models have, and parts and interfaces, which only models without an interface of ours have.
_OF_TENSORFLOW_MODELS = ("tags", "op_defs")
_OF_INTERFACES = ("inputs", "outputs", "signatures", "input_shapes", "rename", "batch")


def is_keras_file(path: Path) -> bool:
    """Returns whether a path is that of a Keras file, which only Keras can read."""
    return path.suffix in _KERAS_FILES and not is_folder(path)


def prepare_if_needed(model: object) -> PreparedModel | None:
    """Prepares a model that only its framework can read: a Keras model, a Keras file, or TensorFlow's functions.

    The names of its classes' modules determine its kind, so that no framework is imported to find out.

    Returns:
        What can be imported, as long as this object exists; `None` if the model can be imported as it is.
    """
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        if not is_keras_file(path):
            return None
        from tfconvert.importers.keras import prepare_keras_file

        try:
            _check_exists(model)
            return prepare_keras_file(path)
        except ConversionError as problem:
            raise _recognized(problem, model) from problem.__cause__
    frameworks = _frameworks(model)
    if frameworks & _KERAS:
        from tfconvert.importers.keras import prepare_keras

        return prepare_keras(model)
    if "tensorflow" in frameworks and "google" not in frameworks:
        from tfconvert.importers.tf_functions import prepare_functions

        return prepare_functions(model)
    return None


def exported(model: object, args: Sequence[Any]) -> object:
    """Returns a function of JAX as `jax.export` exports it.

    Args:
        model: The function.
        args: Examples of its arguments; an array is that of its only one.

    Raises:
        ConversionError: It is not a function (`wrong-option`), or JAX can't export it.
    """
    if not callable(model):
        what = "args is for functions of JAX; other models have inputs of their own"
        raise error("wrong-option", what, hint="leave it out, or use input_shapes")
    from tfconvert.importers.jax_functions import export_function

    is_array = hasattr(args, "shape") and hasattr(args, "dtype")
    return export_function(model, (args,) if is_array else args)


def is_of_jax(model: object) -> bool:
    """Returns whether a model in memory is a function of JAX."""
    return bool(_frameworks(model) & _JAX) or any(map(partial(_is_class_of, model), ("jax_functions", "keras_on_jax")))


def _is_class_of(model: object, module: str) -> bool:
    """Returns whether a model is of a class in one of this package's modules, which need not be loaded to find out."""
    return type(model).__module__ == f"tfconvert.importers.{module}"


def original_of_jax(model: object) -> Original | None:
    """Returns what runs a function of JAX in memory itself; `None` for other models."""
    if not is_of_jax(model):
        return None
    from tfconvert.importers.jax_functions import original_of

    return original_of(model)


def name_of_jax(model: object) -> str:
    """Returns what to call a function of JAX; empty for other models."""
    if not is_of_jax(model):
        return ""
    from tfconvert.importers.stablehlo.jax_objects import name_of

    return name_of(model)


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
        model: A model as for `import_model` or `prepare_if_needed`.
        asset_root: MLIR text: the directory below which it may name files.
        follow_links: Whether links may lead out of the model's directory.
    """
    if not isinstance(model, str | os.PathLike):
        return []
    from tfconvert.importers.model_files import model_files

    return model_files(Path(model), asset_root, follow_links=follow_links)


def import_model(model: object, selection: Selection) -> ModuleOp:
    """Returns the module of a model in a file, a directory or a message in memory.

    What is not a model is recognized after the import failed, for the error's hint.

    Args:
        model: A SavedModel directory, a GraphDef file, a MetaGraph, MLIR text, a StableHLO artifact, a file of
            `jax.export` or a `.tflite` file; or a SavedModel or GraphDef message, or a function of JAX.
        selection: The part to import.
    """
    check_fields(selection, cls=Selection)
    selection = with_models_names(selection)
    if not isinstance(model, str | os.PathLike):
        return _import_message(model, selection)
    _refuse(selection, ("checkpoint",), "is for messages in memory; a model's directory has its own checkpoint")
    try:
        _check_exists(model)
        return _import_path(Path(model), selection)
    except ConversionError as problem:
        raise _recognized(problem, model) from problem.__cause__


def _check_exists(model: str | os.PathLike[str]) -> None:
    given = os.fspath(model)
    if not given:
        raise error("model-not-found", "the path of the model is empty", hint="check the variable that it comes from")
    if given == "-" and is_missing(given):
        hint = "write it to a file first; only tfconvert inspect and tfconvert opt read standard input"
        raise error("model-not-found", "the model can't be read from standard input", hint=hint)
    if is_missing(given):
        from tfconvert.importers.saved_model import missing

        raise missing(given)


def _recognized(problem: ConversionError, model: str | os.PathLike[str]) -> ConversionError:
    from tfconvert.importers.foreign_files import recognized

    return recognized(problem, model)


def _import_message(message: object, selection: Selection) -> ModuleOp:
    if is_of_jax(message):
        _refuse(selection, _OF_TENSORFLOW_MODELS, "is for TensorFlow's models; functions of JAX have none")
        from tfconvert.importers.stablehlo.jax_objects import import_jax

        return import_jax(message, selection)
    if _is_class_of(message, "traced_model"):
        from tfconvert.importers.traced_model import TracedModel, import_traced

        assert isinstance(message, TracedModel)
        _refuse(selection, ("checkpoint",), "is for messages in memory; a function has its variables")
        return import_traced(message, selection)
    from tfconvert.importers.graph.protos import own_message
    from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

    model = own_message(message)
    if isinstance(model, pb.GraphDef):
        from tfconvert.importers.graph_def import import_graph

        _refuse(selection, ("signatures", "tags", "checkpoint"), "is for SavedModels; a GraphDef only has nodes")
        return import_graph(model, selection)
    from tfconvert.importers.saved_model import Files, import_message

    checkpoint = None if selection.checkpoint is None else Path(selection.checkpoint)
    files = Files(None, checkpoint)
    return import_message(model, files, selection)


def _import_path(path: Path, selection: Selection) -> ModuleOp:
    from tfconvert.importers.saved_model import import_saved_model, is_saved_model

    if path.name in SAVED_MODEL_FILES:
        path = path.parent
    if path.suffix != ".mlir":
        _refuse(selection, ("asset_root",), "is the directory of files named by MLIR text; models have their own")
    if is_saved_model(path):
        return import_saved_model(path, selection)
    if path.suffix in (".pb", ".pbtxt", ".prototxt") and not is_missing(path):
        from tfconvert.importers.graph_def import import_graph_def

        return import_graph_def(path, selection)
    if is_stablehlo(path):
        _refuse_parts(selection, _OF_TENSORFLOW_MODELS, path)
        from tfconvert.importers.stablehlo.model_file import import_stablehlo

        return import_stablehlo(path, selection)
    if path.suffix in IR_FILES:
        return _import_ir(path, selection)
    from tfconvert.importers.meta_graph import find_meta_graph, import_meta_graph

    meta_graph = find_meta_graph(path, follow_links=selection.follow_links)
    if meta_graph is not None:
        _refuse(selection, ("tags",), "chooses a graph of a SavedModel; a MetaGraph is a single one")
        return import_meta_graph(meta_graph, selection)
    if is_folder(path) or is_missing(path):
        return import_saved_model(path, selection)
    try:
        os.close(open_file(path))
    except OSError as problem:
        raise error("unreadable-file", f"can't read {path}: {problem.strerror}") from None
    raise error(
        "unknown-format",
        f"{path} is not a SavedModel directory, GraphDef (.pb, .pbtxt), MetaGraph (.meta), MLIR text, StableHLO "
        "artifact, file of jax.export or .tflite file",
        hint="export the model with tf.saved_model.save or model.export",
    )


def _import_ir(path: Path, selection: Selection) -> ModuleOp:
    """Returns the module of a file whose contents are IR already, as text or as LiteRT's tables."""
    _refuse_parts(selection, _OF_TENSORFLOW_MODELS, path)
    if path.suffix == ".mlir":
        from tfconvert.importers.mlir import import_mlir, read_mlir
        from tfconvert.importers.stablehlo.interface import export_main, is_foreign

        module = import_mlir(read_mlir(path), str(path), asset_root=selection.asset_root)
        if is_foreign(module):
            return export_main(module, selection)
        _refuse_parts(selection, _OF_INTERFACES, path)
        return module
    if path.suffix == ".mlirbc" and not is_missing(path):
        raise error("unknown-format", f"{path} is not MLIR bytecode", hint="create or copy the artifact again")
    _refuse_parts(selection, _OF_INTERFACES, path)
    from tfconvert.importers.tflite.model import check_versions, import_tflite
    from tfconvert.ops.verification import first_broken

    module = import_tflite(path)
    # The runtime accepts more element types than its dialect lists; they are checked before a file is written.
    broken = None if selection.is_raw else first_broken(module, with_elements=False)
    if broken is not None:
        raise ConversionError([broken.diagnostic("malformed-tflite")])
    if not selection.is_raw:
        check_versions(module)
    return module


def is_stablehlo(path: Path) -> bool:
    """Returns whether a file is MLIR bytecode or was written by `jax.export`, whatever its name."""
    if path.suffix in _OF_TENSORFLOW or not is_file(path):
        return False
    from tfconvert.importers.stablehlo.model_file import is_stablehlo_file

    return is_stablehlo_file(path)


def is_ir(path: Path) -> bool:
    """Returns whether the contents of a file are IR already, which is imported whole."""
    return path.suffix in IR_FILES or is_stablehlo(path)


def _refuse_parts(selection: Selection, names: Sequence[str], path: Path) -> None:
    _refuse(selection, names, f"chooses what to import of a TensorFlow model; {path.name} is imported whole")


def _refuse(selection: Selection, names: Sequence[str], because: str) -> None:
    for name in names:
        if getattr(selection, name) is not None:
            raise error("wrong-option", f"{name} {because}")
