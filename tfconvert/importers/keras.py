"""Keras models, in memory or in Keras' own files, prepared for the importer by the Keras that the user has.

Models in memory need no import: their Keras and its TensorFlow are in the process already. Files are loaded by Keras 3
or by tf_keras, whichever wrote them, and never run code that they hold.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from traceback import extract_tb, walk_tb
from types import ModuleType, TracebackType
from typing import Any

from tfconvert.importers.archive import ArchiveLimits, Unpacked, check_keras
from tfconvert.importers.temporary_model import (
    SIGNATURE,
    TABLES,
    Original,
    PreparedModel,
    TemporaryModel,
    explained,
    is_out_of_memory,
    save_options,
    temporary_model,
    user_module,
)
from tfconvert.importers.tf_originals import original_of
from tfconvert.importers.traced_model import TracedModel, can_be_traced
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import LARGEST, open_file

# Layers whose vocabulary may be the path of a file to read.
_LOOKUPS = frozenset({"Hashing", "IndexLookup", "IntegerLookup", "StringLookup", "TextVectorization"})

_TRUST = "if you trust the file, load it yourself and pass the model to tfconvert.convert"


def check_config(path: Path, config: object, *, runs_code: bool) -> None:
    """Checks the configuration of a model, as its JSON holds it.

    Args:
        path: The file, for messages.
        config: The configuration.
        runs_code: Whether the Keras that loads it would run code in it.

    Raises:
        ConversionError: It holds code that would run, or names a file that would be read (`unsafe-model`), or an
            object has no class (`damaged-model`).
    """
    for each in _tables(config):
        if runs_code and _holds_code(each):
            raise _unsafe(path, "has a Lambda layer whose code would run to load it")
        name, vocabulary = each.get("class_name"), _settings(each).get("vocabulary")
        if not isinstance(name, str):
            if {"class_name", "config"} <= each.keys():
                raise _damaged(path, f"it has an object of the class {str(name)[:_MAX_REASON]}, which is not a name")
        elif name in _LOOKUPS and isinstance(vocabulary, str):
            raise _unsafe(path, f"names the file {vocabulary!r}, which would be read to load it")


# A file may be as large as it is, but not unpack to far more.
_LIMITS = ArchiveLimits(size=sys.maxsize)


def check_calls(path: Path, config: object) -> None:
    """Checks that the calls of layers have an order; tf_keras, unlike Keras 3, looks for it without end.

    Args:
        path: The file, for messages.
        config: The configuration.

    Raises:
        ConversionError: A layer is called with the result of a call that is never made (`damaged-model`).
    """
    for each in _tables(config):
        layers = each.get("layers")
        if isinstance(layers, list) and all(isinstance(layer, dict) and "inbound_nodes" in layer for layer in layers):
            left = _uncalled(layers)
            if left:
                raise _damaged(path, f"the layer {left[0][:_MAX_REASON]} is called with a result that never is there")


def _uncalled(layers: Sequence[dict[str, Any]]) -> list[str]:
    """Returns the layers that can't be called, by the rules of tf_keras: each call needs results of others."""
    # Layers by the names in references, by those of their own: how many calls were made, and how many are numbered
    # before: a model's own call may be.
    names = {str(layer.get("name")): str(_settings(layer).get("name", layer.get("name"))) for layer in layers}
    made = {names[str(layer.get("name"))]: int("layers" in _settings(layer)) for layer in layers}
    inputs = {str(layer.get("name")) for layer in layers if layer.get("class_name") == "InputLayer"}
    calls = {
        str(layer.get("name")): [list(_references(call)) for call in layer["inbound_nodes"]]
        for layer in layers
        if isinstance(layer["inbound_nodes"], list)
    }

    def is_there(reference: list[Any]) -> bool:
        name, number, *_ = reference
        if name in inputs or name not in names or not isinstance(number, int | float | str | None):
            return True  # It is, or Keras refuses it.
        return isinstance(number, int | float) and number in range(made[names[name]])

    is_progress = True
    while is_progress:
        is_progress = False
        for name, pending in calls.items():
            while pending and all(map(is_there, pending[0])):
                del pending[0]
                made[names[name]] += 1
                is_progress = True
    return [name for name, pending in calls.items() if pending]


def _references(call: object) -> Iterator[list[Any]]:
    """Yields what a call in a configuration refers to: name, number of the call, number of the result, arguments."""
    pending = [call]
    while pending:
        each = pending.pop()
        if isinstance(each, list) and len(each) in (3, 4) and isinstance(each[0], str):
            yield each
            pending += each[3:]
        elif isinstance(each, list):
            pending += each
        elif isinstance(each, dict):
            pending += each.values()


def check_hdf5(path: Path, root: Any) -> None:
    """Checks that an HDF5 file refers to no other file, and that its arrays aren't far larger than the file.

    Args:
        path: The file, for messages; the HDF5 file may be inside of it.
        root: The open file.

    Raises:
        ConversionError: A part of it lies in another file (`unsafe-model`), or it unpacks to too much
            (`archive-too-large`).
    """
    import h5py

    pending, seen = [root], set()
    unpacked = Unpacked(_LIMITS, path.stat().st_size)
    while pending:
        group = pending.pop()
        for name in group:
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                raise _unsafe(path, f"holds a link to the file {link.filename!r}, which would be read to load it")
            found = group.get(name) if isinstance(link, h5py.HardLink) else None
            if isinstance(found, h5py.Dataset) and (found.external or found.is_virtual):
                raise _unsafe(path, f"has the numbers of {found.name!r} in another file, which would be read")
            if isinstance(found, h5py.Dataset):
                with _checked(path):
                    unpacked.spend((found.size or 0) * found.dtype.itemsize)
            if isinstance(found, h5py.Group) and (place := h5py.h5o.get_info(found.id).addr) not in seen:
                seen.add(place)
                pending.append(found)


@contextmanager
def _checked(path: Path) -> Iterator[None]:
    """Adds the file to what the limits of archives refuse."""
    try:
        yield
    except ConversionError as problem:
        hint = "save the model again with model.save, which doesn't compress weights"
        raise error(problem.code, f"{path}: {problem.diagnostics[0].message}", hint=hint) from None


def _tables(config: object) -> Iterator[dict[str, Any]]:
    """Yields all tables of a configuration, however deep."""
    pending = [config]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            yield each
            pending += each.values()
        elif isinstance(each, list):
            pending += each


def _holds_code(table: dict[str, Any]) -> bool:
    """Returns whether a table is or contains a compiled function."""
    if table.get("class_name") == "__lambda__" or "lambda" in (
        table.get("function_type"),
        table.get("output_shape_type"),
        table.get("mask_type"),
    ):
        return True
    return table.get("class_name") == "Lambda" and isinstance(_settings(table).get("function"), list)


def _settings(layer: dict[str, Any]) -> dict[str, Any]:
    settings = layer.get("config")
    return settings if isinstance(settings, dict) else {}


def _unsafe(path: Path, what: str) -> ConversionError:
    return error("unsafe-model", f"{path} {what}", hint=_TRUST)


# Maximum size of a file's metadata, which has a few lines.
_METADATA = 1 << 16

# Maximum size of a model's configuration.
_CONFIG = 1 << 28

# Maximum length of a quoted exception, which may hold a whole configuration.
_MAX_REASON = 300

_KIND = "KERAS_MODEL"

PREDICT = "model.predict"
"""The name in reports of a Keras model that computes its results itself."""

_PIP = "pip install 'tfconvert[tensorflow]'"
_LOAD = (
    "load the model in Python with its custom objects, and pass it to tfconvert.convert; or on the command line, name "
    "the files that define custom layers: --import FILE.py"
)
_OTHER_FORMAT = "it is damaged or has another format"
# What Keras raises deliberately about files that are as they were written: unknown classes, other versions, code.
_DELIBERATE = (ImportError, NotImplementedError, ValueError, RecursionError, Warning)
# Its messages about configurations that no version writes, and weights that aren't those of the configuration.
_CONTRADICTION = re.compile(
    r"Expected 'config' to be a dict|Improper config format|not a valid Keras config|Received an invalid value|"
    r"Invalid H5|could not be loaded|(?:[Ll]ayer|[Ww]eight) count mismatch|[Ss]hape mismatch|"
    r"expected \d+ variables, but received"
)
# Whose code runs to load a file that needs none of the user's.
_LOADERS = frozenset(
    ("tfconvert", "keras", "tf_keras", "tensorflow", "jax", "h5py", "numpy", "optree", *sys.stdlib_module_names)
)
# The part of Keras' message about a class or function that it doesn't know.
_MISSING = re.compile(r"(?:Could not locate|Unknown) [a-z :]+'[^']*'")


def prepare_keras(model: Any, name: str | None = None) -> PreparedModel:
    """Returns a Keras model's inference for the importer, with dynamic batch size and a single signature.

    A model is traced once. One with tables of strings is saved to a temporary directory.

    Args:
        model: A model of Keras 3 on TensorFlow or JAX, or of tf_keras.
        name: The model, for the report.

    Raises:
        ConversionError: It is a layer only (`unknown-format`), it runs on neither TensorFlow nor JAX
            (`wrong-backend`), it is not built (`not-built`), or Keras can't export it (`export-failed`).
    """
    kind = type(model).__name__
    if not any(cls.__name__ == "Model" for cls in type(model).__mro__):
        raise error(
            "unknown-format",
            f"a {kind} of Keras is not a model",
            hint="wrap it in a model, for instance keras.Sequential([keras.Input(...), layer])",
        )
    is_old = _is_old(model)
    _check_backend(is_old, kind)
    if not model.built:
        raise _not_built(kind)
    name = name or f"the {kind} model in memory"
    with explained("export-failed", f"Keras can't export the {kind} model", "check whether model.export works"):
        if not is_old and user_module("keras").backend.backend() == "jax" and _export_utils() is not None:
            from tfconvert.importers.keras_on_jax import KerasOnJax, export_keras, original_of_keras

            signature = _export_utils().get_input_signature(model)
            return KerasOnJax(name, _KIND, export_keras(model, signature), original_of_keras(model, signature, PREDICT))
        if not is_old and _export_utils() is None:
            return _exported(model, name)
        function = _old_function(model) if is_old else _new_function(model)
        concrete = function.get_concrete_function()
        if can_be_traced([concrete]):
            # The tensors of `serving_default` are named as in models that Keras 3 exports, which also have `serve`.
            keys = (SIGNATURE,) if is_old else ("serve", SIGNATURE)
            made: PreparedModel = TracedModel(name, _KIND, dict.fromkeys(keys, concrete))
            made.signatures = [SIGNATURE]
        else:
            made = _saved(model, function, name, is_old=is_old)
            made.add_results({SIGNATURE: concrete})
        if is_old:
            # As for a function that returns a list.
            names = made.results[SIGNATURE]
            made.tensors[SIGNATURE] = {each: f"Identity_{at}" if at else "Identity" for at, each in enumerate(names)}
        made.original = _original(model, function, concrete, is_old=is_old)
        return made


def _original(model: Any, function: Any, concrete: Any, *, is_old: bool) -> Original:
    """Returns what runs a model as `predict` does: the model itself, not the function that was traced of it."""
    call = function.python_function if is_old else partial(model, training=False)
    variables = [each if is_old else each.value for each in model.variables]
    return original_of({SIGNATURE: concrete}, PREDICT, call, variables)


def prepare_keras_file(path: Path, custom_objects: Mapping[str, Any] | None = None) -> PreparedModel:
    """Returns a model in a file of Keras for the importer; only code of Keras and of the user runs.

    Args:
        path: The file.
        custom_objects: The user's own layers and functions by the names that the file has for them.
    """
    is_zip, version = _version(path)
    keras = _keras_for(path, is_old=not version.startswith("3"))
    with (
        explained("load-failed", f"Keras can't load {path}", _LOAD, _reason),
        _Damage(partial(_unless_deliberate, path)),
    ):
        # Keras' warnings about optimizers are dropped: conversion doesn't need optimizers.
        model = keras.models.load_model(
            path, custom_objects=custom_objects, compile=False, **({"safe_mode": True} if is_zip else {})
        )
    return prepare_keras(model, str(path))


class _Damage:
    """A context that converts what a damaged file makes others' code raise, which is nearly every exception.

    Args:
        error_of: Returns the error about an exception, `None` for one that passes.
    """

    __slots__ = ("_error_of",)

    def __init__(self, error_of: Callable[[Exception], ConversionError | None]) -> None:
        self._error_of = error_of

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raises the error, whose cause the exception is."""
        if isinstance(value, Exception) and not isinstance(value, ConversionError):
            problem = self._error_of(value)
            if problem is not None:
                raise problem from value


def _unless_ours(damage: ConversionError, problem: Exception) -> ConversionError | None:
    """Returns the error about an exception of zipfile, json or h5py; `None` for a bug in this package."""
    *_, (frame, _) = walk_tb(problem.__traceback__)
    is_ours = str(frame.f_globals.get("__name__")).startswith("tfconvert.")
    return None if is_ours or isinstance(problem, MemoryError) else damage


def _unless_deliberate(path: Path, problem: Exception) -> ConversionError | None:
    """Returns the error about an exception by which Keras fails on a file that it doesn't check."""
    if not _is_accident(problem):
        return None
    text = _reason(" ".join(str(problem).split()))[:_MAX_REASON]
    return _damaged(path, f"Keras fails on it with {type(problem).__name__}{': ' if text else ''}{text}")


def _is_accident(problem: Exception) -> bool:
    """Returns whether Keras failed on a damaged file: without the user's code, and not for a reason that it has."""
    causes = list(_causes(problem))
    frames = [frame for each in causes for frame, _ in walk_tb(each.__traceback__)]
    packages = {str(frame.f_globals.get("__name__")).partition(".")[0] for frame in frames}
    if packages - _LOADERS or is_out_of_memory(problem):
        return False
    if _CONTRADICTION.search(str(problem)):
        return True
    if isinstance(problem, TypeError):
        # Keras checks some types, and quotes what Python says of others; unknown keywords are those of other versions.
        *_, first = (each for each in causes if isinstance(each, TypeError))
        is_raised = str(extract_tb(first.__traceback__)[-1].line).startswith("raise ")
        return not is_raised and "unexpected keyword" not in str(first)
    deliberate = isinstance(problem, _DELIBERATE) and not isinstance(problem, UnicodeError)
    return not deliberate and not any(cls.__name__ == "OpError" for cls in type(problem).__mro__)


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    """Yields an exception, and those during whose handling it was raised."""
    while problem is not None:
        yield problem
        problem = problem.__context__


def _reason(text: str) -> str:
    """Returns the reason in Keras' message about a file, without the model's configuration."""
    last = text.rpartition("Exception encountered: ")[2].partition(" Full object config:")[0]
    missing = _MISSING.search(last)
    return missing[0] if missing is not None else last


def _is_old(model: Any) -> bool:
    """Returns whether a model is of Keras 2: `tf_keras`, or a `keras` of that version."""
    if any(cls.__module__.partition(".")[0] == "tf_keras" for cls in type(model).__mro__):
        return True
    return str(user_module("keras").__version__).startswith("2.")


# Backends of Keras whose models are read here.
_BACKENDS = ("jax", "tensorflow")


def _check_backend(is_old: bool, kind: str) -> None:
    backend = "tensorflow" if is_old else user_module("keras").backend.backend()
    if backend not in _BACKENDS:
        litert_torch = "litert-torch converts it: litert_torch.convert(model.eval(), (example,)); or "
        raise error(
            "wrong-backend",
            f"the {kind} model runs on Keras' {backend} backend, not on TensorFlow or JAX",
            hint=f"{litert_torch if backend == 'torch' else ''}save it (model.save), and convert the file in a process "
            "where KERAS_BACKEND=jax or tensorflow",
        )


def _not_built(kind: str) -> ConversionError:
    return error(
        "not-built",
        f"the {kind} model has no input shapes yet",
        hint="call it on an example, or start it with keras.Input(...)",
    )


def _export_utils() -> Any:
    """Returns the module in which Keras 3 finds how a model is called, or `None` if it has it elsewhere."""
    utils = sys.modules.get("keras.src.export.export_utils")
    return utils if hasattr(utils, "get_input_signature") else None


def _exported(model: Any, name: str) -> TemporaryModel:
    """Returns the SavedModel that an older Keras 3 exports.

    `export` traces the attribute `__call__` of the model without `training`, so it finds a call for inference there.
    """
    own = vars(model)
    with temporary_model(name, _KIND, "Keras exports it for TensorFlow") as folder:
        own["__call__"] = partial(model.__call__, training=False)
        try:
            with redirect_stdout(StringIO()):  # Not every version has `verbose`.
                model.export(str(Path(folder)))
        finally:
            del own["__call__"]
        return folder


def _saved(model: Any, function: Any, name: str, *, is_old: bool) -> TemporaryModel:
    """Returns a SavedModel of a model's inference, with the tables and files that it uses."""
    keras = (sys.modules.get("tf_keras") if is_old else None) or user_module("keras")
    archive = keras.export.ExportArchive()
    archive.track(model)
    # Keras 3 adds `serving_default`.
    archive.add_endpoint(SIGNATURE if is_old else "serve", function)
    with temporary_model(name, _KIND, TABLES) as folder, redirect_stdout(StringIO()):  # It prints all signatures.
        archive.write_out(str(Path(folder)), options=save_options(user_module("tensorflow")))
        folder.signatures = [SIGNATURE]
        return folder


def _new_function(model: Any) -> Any:
    """Returns the inference of a model of Keras 3 as a function of TensorFlow.

    Without `training`, a layer whose default for it is true puts all layers after it into training mode, too.
    """
    tf = user_module("tensorflow")
    inputs = iter(getattr(model, "inputs", None) or ())
    signature = _completed(tf, _export_utils().get_input_signature(model), inputs)
    return tf.function(partial(model.__call__, training=False), input_signature=signature, autograph=False)


def _completed(tf: ModuleType, signature: Any, inputs: Iterator[Any], name: str | None = None) -> Any:
    """Adds to a Keras signature the batch of the model's inputs, and keys as names.

    A subclassed model has no inputs; it was built by a call, whose batch does not bind the next one.

    Args:
        tf: TensorFlow.
        signature: The signature, or part of it.
        inputs: The model's remaining inputs, in the signature's order.
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


def _old_function(model: Any) -> Any:
    """Returns the inference of a model of Keras 2, with the names of inputs and outputs that its SavedModels have."""
    tf = user_module("tensorflow")
    arguments, options = model.save_spec() or ((), {})
    if not arguments:
        raise _not_built(type(model).__name__)

    def serve(*tensors: Any) -> Any:
        values, keywords = tf.nest.pack_sequence_as((arguments, options), tensors)
        results = model(*values, **{**keywords, "training": False})
        if model.output_names is not None or not isinstance(results, dict):
            flat = tf.nest.flatten(results)
            results = dict(zip(model.output_names or _numbered("output", len(flat)), flat, strict=True))
        return results

    specs = _named(tf, tf.nest.flatten((arguments, options)))
    return tf.function(serve, input_signature=specs, autograph=False)


def _named(tf: ModuleType, specs: Sequence[Any]) -> list[Any]:
    names = _numbered("input", len(specs))
    return [tf.TensorSpec(spec.shape, spec.dtype, spec.name or name) for spec, name in zip(specs, names, strict=True)]


def _numbered(name: str, count: int) -> list[str]:
    return [f"{name}_{number}" for number in range(1, count + 1)]


def _version(path: Path) -> tuple[bool, str]:
    """Returns whether a file is a zip, and the version of the Keras that wrote it, "2" by default."""
    try:
        with os.fdopen(open_file(path), "rb") as file:
            is_zip = file.read(2) == b"PK"
    except OSError as problem:
        raise error("unreadable-file", f"can't read {path}: {problem.strerror}") from None
    if not is_zip:
        return False, _check_hdf5(path)
    with _checked(path):
        check_keras(path, _LIMITS)
    with ExitStack() as stack:
        with _Damage(partial(_unless_ours, _no_model(path, _OTHER_FORMAT))):
            archive = stack.enter_context(zipfile.ZipFile(path))
            metadata = json.loads(_member(archive, "metadata.json", _METADATA))
            config = json.loads(_member(archive, "config.json", _CONFIG))
        with _Damage(partial(_unless_ours, _damaged(path, "its weights can't be read"))):
            _check_weights(path, archive)
    check_config(path, config, runs_code=False)
    version = metadata.get("keras_version") if isinstance(metadata, dict) else None
    if isinstance(version, str) and not version.startswith("3"):
        check_calls(path, config)
    return True, version if isinstance(version, str) else "3"


def _member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    with archive.open(name) as file:
        return file.read(limit)


def _check_weights(path: Path, archive: zipfile.ZipFile) -> None:
    """Checks the weights in a zip, which h5py reads in place unless they are compressed."""
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
    """Returns the version of Keras that wrote an HDF5 file, after a check for code, which Keras 2 would run."""
    if importlib.util.find_spec("h5py") is None:
        raise _needs(path, "Keras", _pip("keras h5py"))
    import h5py

    with ExitStack() as stack:
        with _Damage(partial(_unless_ours, _no_model(path, _OTHER_FORMAT))):
            file = stack.enter_context(h5py.File(path, "r"))
        with _Damage(partial(_unless_ours, _damaged(path, "a part of it can't be read"))):
            check_hdf5(path, file)
            text, version = file.attrs.get("model_config"), file.attrs.get("keras_version", "2")
    if text is None:
        raise _no_model(path, "it has weights only")
    with _Damage(partial(_unless_ours, _no_model(path, "its configuration is damaged"))):
        config = json.loads(text)
    check_config(path, config, runs_code=True)
    written_by = version.decode("utf-8", "replace") if isinstance(version, bytes) else str(version)
    if not written_by.startswith("3"):
        check_calls(path, config)
    return written_by


def _pip(packages: str) -> str:
    """Returns the command for packages; the extra would replace a TensorFlow that is installed, such as a nightly."""
    return _PIP if importlib.util.find_spec("tensorflow") is None else f"pip install {packages}"


def _keras_for(path: Path, is_old: bool) -> Any:
    """Returns the Keras that loads a file."""
    if (is_old or os.environ.get("KERAS_BACKEND") != "jax") and importlib.util.find_spec("tensorflow") is None:
        raise _needs(path, "TensorFlow and Keras", _PIP)
    if is_old:
        if importlib.util.find_spec("tf_keras") is None:
            raise _needs(path, "Keras 2", "pip install tf_keras")
        import tf_keras

        return tf_keras
    if importlib.util.find_spec("keras") is None:
        raise _needs(path, "Keras", _pip("keras"))
    import keras

    _check_backend(False, path.name)
    return keras


def _needs(path: Path, what: str, pip: str) -> ConversionError:
    return error("no-tensorflow", f"{path} can only be read with {what} installed", hint=pip)


def _damaged(path: Path, because: str) -> ConversionError:
    return error(
        "damaged-model",
        f"{path} is damaged: {because}",
        hint="copy or download the file again, or save the model again with model.save",
    )


def _no_model(path: Path, because: str) -> ConversionError:
    return error(
        "not-a-keras-model", f"{path} is not a Keras model: {because}", hint="save the whole model with model.save"
    )
