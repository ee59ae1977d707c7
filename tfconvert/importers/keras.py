"""Keras models, in memory or in Keras' own files, written as temporary SavedModels by the Keras that the user has.

Models in memory need no import: their Keras and its TensorFlow are in the process already. Files are loaded by Keras 3
or by tf_keras, whichever wrote them, and never run code that they hold.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from io import BytesIO, StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

from tfconvert.importers.keras_files import check_config, check_hdf5
from tfconvert.importers.temporary_model import (
    SIGNATURE,
    TemporaryModel,
    explained,
    result_names,
    save_options,
    temporary_model,
    tensor_names,
    user_module,
)
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import LARGEST, open_file

# Bytes of a file's metadata that are read; it has a few lines.
_METADATA = 1 << 16

# Bytes of a model's configuration that are read.
_CONFIG = 1 << 28

_DAMAGED = (zipfile.BadZipFile, EOFError, KeyError, OSError, RuntimeError, ValueError, zlib.error)

_PIP = "pip install 'tfconvert[tensorflow]'"
_LOAD = "load the model in Python with its custom objects, and pass it to tfconvert.convert"


def save_keras(model: Any, name: str | None = None) -> TemporaryModel:
    """Returns a SavedModel of a Keras model's inference, with open batch and a single signature.

    Args:
        model: A model of Keras 3 on TensorFlow, or of tf_keras.
        name: The model, for the report.

    Raises:
        ConversionError: It is a layer only (`unknown-format`), it doesn't run on TensorFlow (`wrong-backend`), it was
            never built (`not-built`), or Keras can't export it (`export-failed`).
    """
    kind = type(model).__name__
    if not any(cls.__name__ == "Model" for cls in type(model).__mro__):
        raise error(
            "unknown-format",
            f"a {kind} of Keras is not a model",
            hint="make a model of it, for instance keras.Sequential([keras.Input(...), layer])",
        )
    is_old = _is_old(model)
    _check_backend(is_old, kind)
    if not model.built:
        raise _not_built(kind)
    with temporary_model(name or f"the {kind} model in memory", "KERAS_MODEL") as folder:
        with explained("export-failed", f"Keras can't export the {kind} model", "see whether model.export can"):
            if is_old:
                _save_old(model, folder)
            else:
                _save_new(model, folder)
        return folder


def save_keras_file(path: Path, custom_objects: Mapping[str, Any] | None = None) -> TemporaryModel:
    """Returns a SavedModel of a model in a file of Keras; nothing in it is run but what Keras and the user bring.

    Args:
        path: The file.
        custom_objects: The user's own layers and functions by the names that the file has for them.
    """
    is_zip, version = _version(path)
    keras = _keras_for(path, is_old=not version.startswith("3"))
    with explained("load-failed", f"Keras can't load {path}", _LOAD):
        # What Keras says of optimizers, which conversion doesn't need, goes nowhere.
        model = keras.models.load_model(
            path, custom_objects=custom_objects, compile=False, **({"safe_mode": True} if is_zip else {})
        )
    return save_keras(model, str(path))


def _is_old(model: Any) -> bool:
    """Returns whether a model is of Keras 2: of tf_keras, or of a `keras` of that version."""
    if any(cls.__module__.partition(".")[0] == "tf_keras" for cls in type(model).__mro__):
        return True
    return str(user_module("keras").__version__).startswith("2.")


def _check_backend(is_old: bool, kind: str) -> None:
    backend = "tensorflow" if is_old else user_module("keras").backend.backend()
    if backend != "tensorflow":
        raise error(
            "wrong-backend",
            f"the {kind} model runs on Keras' {backend} backend, not on TensorFlow",
            hint="save it (model.save, model.save_weights), and load model and weights in a process where "
            "KERAS_BACKEND=tensorflow",
        )


def _not_built(kind: str) -> ConversionError:
    return error(
        "not-built",
        f"the {kind} model has no input shapes yet",
        hint="call it on an example, or begin it with keras.Input(...)",
    )


def _save_new(model: Any, folder: TemporaryModel) -> None:
    """Saves a model of Keras 3; a Keras that keeps its signatures elsewhere leaves out the source lines."""
    utils = sys.modules.get("keras.src.export.export_utils")
    if utils is None or not hasattr(utils, "get_input_signature"):
        model.export(str(Path(folder)), verbose=False)
        return
    tf = user_module("tensorflow")
    signature = _completed(tf, utils.get_input_signature(model), iter(getattr(model, "inputs", None) or ()))
    archive = user_module("keras").export.ExportArchive()
    # Keras adds `serving_default`, whose tensors are then called as in the models that it exports.
    function = archive.track_and_add_endpoint("serve", model, signature)
    folder.signatures = [SIGNATURE]
    concrete = function.get_concrete_function()
    folder.results[SIGNATURE], folder.tensors[SIGNATURE] = result_names(concrete), tensor_names(concrete)
    archive.write_out(str(Path(folder)), options=save_options(tf), verbose=False)


def _completed(tf: ModuleType, signature: Any, inputs: Iterator[Any], name: str | None = None) -> Any:
    """Returns a signature with what Keras's own leaves out: the batch of the model's inputs, and keys as names.

    A model of a class has no inputs; it was built by a call, whose batch says nothing of the next.

    Args:
        tf: TensorFlow.
        signature: The signature, or a part of it.
        inputs: The model's inputs from there on, in the signature's order.
        name: The key of the part.
    """
    if isinstance(signature, Mapping):
        # In the order in which Keras flattens them.
        return {key: _completed(tf, signature[key], inputs, str(key)) for key in sorted(signature)}
    if isinstance(signature, list | tuple):
        made = getattr(type(signature), "_make", type(signature))  # It may be a named tuple.
        return made(_completed(tf, each, inputs, name) for each in signature)
    source = next(inputs, signature)
    return tf.TensorSpec(source.shape, signature.dtype, signature.name or name)


def _save_old(model: Any, folder: TemporaryModel) -> None:
    """Saves a model of Keras 2 with the names of its inputs and outputs, as its own SavedModels have them."""
    tf = user_module("tensorflow")
    keras = sys.modules.get("tf_keras") or user_module("keras")
    arguments, options = model.save_spec() or ((), {})
    if not arguments:
        raise _not_built(type(model).__name__)
    specs = _named(tf, tf.nest.flatten((arguments, options)))

    def serve(*tensors: Any) -> Any:
        values, keywords = tf.nest.pack_sequence_as((arguments, options), tensors)
        results = model(*values, **{**keywords, "training": False})
        if model.output_names is not None or not isinstance(results, dict):
            flat = tf.nest.flatten(results)
            results = dict(zip(model.output_names or _numbered("output", len(flat)), flat, strict=True))
        folder.results[SIGNATURE] = list(results)
        # As in a function that returns them in a list.
        folder.tensors[SIGNATURE] = {name: f"Identity_{at}" if at else "Identity" for at, name in enumerate(results)}
        return results

    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint(SIGNATURE, tf.autograph.experimental.do_not_convert(serve), specs)
    with redirect_stdout(StringIO()):  # It prints all signatures.
        archive.write_out(str(Path(folder)), options=save_options(tf))


def _named(tf: ModuleType, specs: Sequence[Any]) -> list[Any]:
    names = _numbered("input", len(specs))
    return [tf.TensorSpec(spec.shape, spec.dtype, spec.name or name) for spec, name in zip(specs, names, strict=True)]


def _numbered(name: str, count: int) -> list[str]:
    return [f"{name}_{number}" for number in range(1, count + 1)]


def _version(path: Path) -> tuple[bool, str]:
    """Returns whether a file is a zip, and the version of the Keras that wrote it; "2" where it doesn't tell."""
    try:
        with os.fdopen(open_file(path), "rb") as file:
            is_zip = file.read(2) == b"PK"
    except OSError as problem:
        raise error("unreadable-file", f"can't read {path}: {problem.strerror}") from None
    if not is_zip:
        return False, _check_hdf5(path)
    try:
        with zipfile.ZipFile(path) as archive:
            metadata = json.loads(_member(archive, "metadata.json", _METADATA))
            config = json.loads(_member(archive, "config.json", _CONFIG))
            _check_weights(path, archive)
    except (*_DAMAGED, RecursionError):
        raise _no_model(path, "it is damaged, or something else") from None
    check_config(path, config, runs_code=False)
    version = metadata.get("keras_version") if isinstance(metadata, dict) else None
    return True, version if isinstance(version, str) else "3"


def _member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    with archive.open(name) as file:
        return file.read(limit)


def _check_weights(path: Path, archive: zipfile.ZipFile) -> None:
    """Checks the weights in a zip, which h5py reads where they are unless they are compressed."""
    weights = [each for each in archive.infolist() if each.filename.endswith(".h5")]
    if not weights or importlib.util.find_spec("h5py") is None:
        return
    import h5py

    for each in weights:
        with archive.open(each) as stream:
            is_plain = each.compress_type == zipfile.ZIP_STORED
            with h5py.File(stream if is_plain else BytesIO(stream.read(LARGEST)), "r") as file:
                check_hdf5(path, file)


def _check_hdf5(path: Path) -> str:
    """Returns the version of Keras that wrote an HDF5 file, after a look for code, which Keras 2 would run."""
    if importlib.util.find_spec("h5py") is None:
        raise _needs(path, "Keras", _PIP)
    import h5py

    try:
        with h5py.File(path, "r") as file:
            check_hdf5(path, file)
            text, version = file.attrs.get("model_config"), file.attrs.get("keras_version", "2")
    except OSError:
        raise _no_model(path, "it is damaged, or something else") from None
    if text is None:
        raise _no_model(path, "it has weights only")
    try:
        config = json.loads(text)
    except (RecursionError, TypeError, ValueError):
        raise _no_model(path, "its configuration is damaged") from None
    check_config(path, config, runs_code=True)
    return version.decode() if isinstance(version, bytes) else str(version)


def _keras_for(path: Path, is_old: bool) -> Any:
    """Returns the Keras that loads a file."""
    if importlib.util.find_spec("tensorflow") is None:
        raise _needs(path, "TensorFlow and Keras", _PIP)
    if is_old:
        if importlib.util.find_spec("tf_keras") is None:
            raise _needs(path, "Keras 2", "pip install tf_keras")
        import tf_keras

        return tf_keras
    if importlib.util.find_spec("keras") is None:
        raise _needs(path, "Keras", _PIP)
    import keras

    _check_backend(False, path.name)
    return keras


def _needs(path: Path, what: str, pip: str) -> ConversionError:
    return error("no-tensorflow", f"{path} can only be read by {what}, which isn't installed", hint=pip)


def _no_model(path: Path, because: str) -> ConversionError:
    return error(
        "not-a-keras-model", f"{path} is not a Keras model: {because}", hint="save the whole model with model.save"
    )
