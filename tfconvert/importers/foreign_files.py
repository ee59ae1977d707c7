"""Files and directories that are not models of this package's formats, recognized once an import failed.

A row of `ROWS` says what something is, how to recognize it, and the tool or command that makes a model of it.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tfconvert.importers.containment import SAVED_MODEL_FILES
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import is_file, is_folder, open_file

# Bytes at the start of a file that are inspected.
_HEAD = 512

# Maximum size of JSON that is read, and number of entries of a directory that are listed.
_MAX_JSON = 1 << 24
_MAX_ENTRIES = 10_000

ZIP, GZIP, TAR = "zip", "gzip", "tar"

# The offset and the bytes by which the formats of archives are known.
_ARCHIVES: Mapping[str, Sequence[tuple[int, bytes]]] = {
    ZIP: ((0, b"PK\x03\x04"), (0, b"PK\x05\x06")),
    GZIP: ((0, b"\x1f\x8b"),),
    TAR: ((257, b"ustar"),),
    "xz": ((0, b"\xfd7zXZ\x00"),),
    "bzip2": ((0, b"BZh"),),
    "zstd": ((0, b"\x28\xb5\x2f\xfd"),),
    "7-Zip": ((0, b"7z\xbc\xaf\x27\x1c"),),
    "RAR": ((0, b"Rar!"),),
}

KERAS_FILES = frozenset({"metadata.json", "config.json", "model.weights.h5"})
"""The files in a Keras 3 file, which is a zip."""

_HDF5 = b"\x89HDF\r\n\x1a\n"

_URL = re.compile(r"([a-z][a-z0-9+]+):/{1,2}[^/]")
_WEB_PAGE = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<!?(?:doctype\s+html|html)", re.IGNORECASE)


def archive_format(head: bytes) -> str:
    """Returns the format of an archive, empty for other files.

    Args:
        head: Its first bytes.
    """
    for name, signatures in _ARCHIVES.items():
        if any(head.startswith(signature, offset) for offset, signature in signatures):
            return name
    return ""


def is_keras_file(head: bytes) -> bool:
    """Returns whether a file is one that only Keras reads: HDF5, or a zip that begins as Keras writes it.

    Args:
        head: Its first bytes.
    """
    # The name of the first entry follows 30 bytes of numbers.
    is_packed = archive_format(head) == ZIP and head.startswith(tuple(map(str.encode, KERAS_FILES)), 30)
    return is_packed or head.startswith(_HDF5)


class ForeignFile:
    """A path as far as rows look at it.

    Args:
        path: The path, which need not exist.
        given: The path as the user wrote it.
    """

    def __init__(self, path: Path, given: str) -> None:
        self.path = path
        self.given = given

    @cached_property
    def head(self) -> bytes:
        """The first bytes of a file; empty otherwise."""
        return _head(self.path)

    @cached_property
    def names(self) -> Sequence[str]:
        """The sorted names in a directory; empty for a file."""
        if not is_folder(self.path):
            return ()
        try:
            with os.scandir(self.path) as entries:
                return sorted(entry.name for entry, _ in zip(entries, range(_MAX_ENTRIES), strict=False))
        except OSError:
            return ()

    @cached_property
    def members(self) -> Sequence[str]:
        """The names in a zip; empty otherwise."""
        if archive_format(self.head) != ZIP:
            return ()
        try:
            with os.fdopen(open_file(self.path), "rb") as file, zipfile.ZipFile(file) as archive:
                return archive.namelist()
        except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
            return ()

    def json(self, name: str) -> dict[str, Any]:
        """Returns the JSON object in a file of a directory, or in the file itself; otherwise an empty one."""
        path = self.path / name if self.names else self.path
        try:
            with os.fdopen(open_file(path), "rb") as file:
                value = json.loads(file.read(_MAX_JSON))
        except (OSError, ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def has(self, *endings: str) -> bool:
        """Returns whether the file, or one in the directory, has one of these endings."""
        return any(name.lower().endswith(endings) for name in (self.path.name, *self.names))

    def saved_models_below(self) -> list[Path]:
        """Returns the SavedModels one or two directories below."""
        folders = [self.path / name for name in self.names]
        folders += [folder / name for folder in folders for name in ForeignFile(folder, "").names]
        return [folder for folder in folders if any(is_file(folder / name) for name in SAVED_MODEL_FILES)]


def _head(path: Path) -> bytes:
    if not is_file(path):
        return b""
    try:
        with os.fdopen(open_file(path), "rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""


class ForeignFormat(NamedTuple):
    """Something that is not a model.

    Attributes:
        what: What it is, after "is".
        hint: The tool or the command that helps; in both texts `{path}` is the path, and `{found}` the text that
            `matches` returned.
        matches: Returns whether it is that, or a text about it.
    """

    what: str
    hint: str
    matches: Callable[[ForeignFile], bool | str]


def _url(found: ForeignFile) -> bool:
    return _URL.match(found.given) is not None


def _lfs_pointer(found: ForeignFile) -> str | bool:
    """Returns whether the file is a pointer of Git LFS, or which file of a SavedModel is one."""
    inside = [found.path / name for name in (*SAVED_MODEL_FILES, "fingerprint.pb")] if found.names else [found.path]
    if "variables" in found.names:
        inside += [found.path / "variables" / name for name in ForeignFile(found.path / "variables", "").names]
    pointers = [path for path in inside if _head(path).startswith(b"version https://git-lfs.github.com/spec/")]
    if not pointers:
        return False
    return f" (the pointer is {pointers[0]})" if found.names else True


def _checkpoint(found: ForeignFile) -> str | bool:
    """Returns whether the path is a checkpoint's prefix or one of its files, or which prefix a directory holds."""
    if found.names:
        indices = [name for name in found.names if name.endswith(".index")]
        return f" ({found.path / indices[-1].removesuffix('.index')})" if indices else ""
    prefix = re.sub(r"\.(?:index|data-\d+-of-\d+)$", "", str(found.path))
    return is_file(Path(prefix + ".index"))


def _version_folder(found: ForeignFile) -> str:
    models = found.saved_models_below()
    return str(models[-1]) if models else ""


def _contained(found: ForeignFile) -> str:
    """Returns a model's file in a directory that is not a model itself."""
    if set(SAVED_MODEL_FILES) & set(found.names):
        return ""
    for ending in (".tflite", ".keras", ".h5", ".pb", ".mlir", ".mlirbc"):
        files = [name for name in found.names if name.endswith(ending) and name != "fingerprint.pb"]
        if files:
            return str(found.path / files[0])
    return ""


def _torch(found: ForeignFile) -> bool:
    in_zip = any(name.endswith(("/data.pkl", "/constants.pkl", "/archive_format")) for name in found.members)
    # `torch.save` begins older files with this number.
    return in_zip or found.head.startswith(b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9") or found.has(".pt", ".pth", ".pt2")


def _onnx(found: ForeignFile) -> bool:
    if found.has(".onnx"):
        return True
    # The version of the format, then the name of the producer.
    return found.head[:1] == b"\x08" and found.head[2:3] == b"\x12" and b"onnx" in found.head.lower()


def _renamed_saved_model(found: ForeignFile) -> bool:
    # The version of the format, 1, then the first graph.
    return found.head.startswith(b"\x08\x01\x12") and found.path.name not in SAVED_MODEL_FILES


def _safetensors(found: ForeignFile) -> bool:
    size = int.from_bytes(found.head[:8], "little")
    return found.head[8:9] == b"{" and 0 < size < 1 << 30 and b'"dtype"' in found.head


def _transformers(found: ForeignFile) -> bool:
    return "config.json" in found.names and bool({"architectures", "model_type"} & found.json("config.json").keys())


def _web_model(found: ForeignFile) -> str:
    """Returns the format of a model of TensorFlow.js."""
    name = "" if found.path.suffix == ".json" else "model.json"
    if name and name not in found.names:
        return ""
    model = found.json(name)
    return str(model.get("format") or "graph-model") if "weightsManifest" in model else ""


def _magic(*starts: bytes) -> Callable[[ForeignFile], bool]:
    return lambda found: found.head.startswith(starts)


def _ending(*endings: str) -> Callable[[ForeignFile], bool]:
    return lambda found: found.path.name.lower().endswith(endings)


def _other_zip(found: ForeignFile) -> bool:
    return found.path.suffix != ".keras" and archive_format(found.head) == ZIP


_WEIGHTS = "build the model in Python, load the weights, and pass it to tfconvert.convert"
_TORCH = "pip install litert-torch; litert_torch.convert(model.eval(), (sample,)).export('model.tflite')"

ROWS: Sequence[ForeignFormat] = (
    ForeignFormat("a URL", "download it first, and give the path of the file or of the unpacked directory", _url),
    ForeignFormat(
        "a pointer of Git LFS, not the file itself",
        "fetch the files in the repository: git lfs pull{found}",
        _lfs_pointer,
    ),
    ForeignFormat(
        "a web page, not the file that it links to",
        "download the file itself; where a site shows a page, use its raw or download link",
        lambda found: _WEB_PAGE.match(found.head) is not None,
    ),
    ForeignFormat("empty", "copy or download it again", lambda found: is_file(found.path) and not found.head),
    ForeignFormat("a directory above a SavedModel", "give the SavedModel itself: {found}", _version_folder),
    ForeignFormat(
        "an unpacked Keras file",
        "pack it again: (cd {path} && zip -0 -r ../model.keras .), and convert model.keras",
        lambda found: set(found.names) >= KERAS_FILES,
    ),
    ForeignFormat(
        "a model of TensorFlow.js ({found})",
        "convert the model that it was made of; or pip install tfjs-graph-converter, and tfjs_graph_converter {path} "
        "saved_model --output_format tf_saved_model",
        _web_model,
    ),
    ForeignFormat(
        "a model of Hugging Face's transformers",
        "save it for TensorFlow, tf.saved_model.save(TFAutoModel.from_pretrained(...), directory, signatures=...); or, "
        "for PyTorch, litert-torch",
        _transformers,
    ),
    ForeignFormat("a model of PyTorch", _TORCH, _torch),
    ForeignFormat(
        "an ONNX model", "pip install onnx2tf; onnx2tf -i {path} -o saved_model, and convert saved_model", _onnx
    ),
    ForeignFormat(
        "the main file of a SavedModel under another name",
        "name it saved_model.pb, in a directory with its variables, and give the directory",
        _renamed_saved_model,
    ),
    ForeignFormat("a file of safetensors, which has weights only", _WEIGHTS, _safetensors),
    ForeignFormat(
        "a checkpoint without a graph{found}",
        "it has values only: restore it in Python (tf.train.Checkpoint(model).restore, model.load_weights), and "
        "pass the model to tfconvert.convert",
        _checkpoint,
    ),
    ForeignFormat(
        "a model of LiteRT-LM",
        "it is for LiteRT-LM's own runtime, and holds .tflite files already",
        _magic(b"LITERTLM"),
    ),
    ForeignFormat(
        "a model of llama.cpp (GGUF), which has weights only", "convert the model that it was made of", _magic(b"GGUF")
    ),
    ForeignFormat(
        "a MediaPipe task bundle",
        "unpack it (unzip {path}): it holds .tflite files",
        lambda found: any(name.endswith(".tflite") for name in found.members),
    ),
    ForeignFormat(
        "an archive of a SavedModel",
        "unpack it (unzip {path}), and give the directory with saved_model.pb",
        lambda found: any(name.endswith(SAVED_MODEL_FILES) for name in found.members),
    ),
    ForeignFormat(
        "a compressed archive",
        "unpack it (tar -xf {path}), and give the directory with saved_model.pb, or the model's file",
        lambda found: archive_format(found.head) not in ("", ZIP),
    ),
    ForeignFormat("a zip that holds no model", "unpack it, and give the model in it", _other_zip),
    ForeignFormat(
        "a model of Core ML",
        "convert the TensorFlow or PyTorch model that it was made of",
        _ending(".mlmodel", ".mlpackage", ".mlmodelc"),
    ),
    ForeignFormat(
        "a model of OpenVINO", "convert the TensorFlow model that it was made of", lambda found: b"<net " in found.head
    ),
    ForeignFormat(
        "a model of PaddlePaddle", "pip install paddle2onnx, then onnx2tf", _ending(".pdmodel", ".pdiparams")
    ),
    ForeignFormat(
        "a model of Caffe", "convert the model by a tool for Caffe to ONNX, then onnx2tf", _ending(".caffemodel")
    ),
    ForeignFormat(
        "an engine of TensorRT, made for one GPU",
        "convert the model that it was made of",
        _ending(".engine", ".plan", ".trt"),
    ),
    ForeignFormat(
        "a pickle of Python",
        "load it in Python; a Keras model or a function of TensorFlow can be passed to tfconvert.convert",
        lambda found: (
            _ending(".pkl", ".pickle", ".joblib")(found) or _magic(b"\x80\x03", b"\x80\x04", b"\x80\x05")(found)
        ),
    ),
    ForeignFormat("a directory that holds a model", "give the file: {found}", _contained),
)
"""All that is recognized, in this order."""

# The errors after which a path is looked at.
_CODES = frozenset(
    {
        "bad-index",
        "damaged-saved-model",
        "missing-index",
        "model-not-found",
        "not-a-graph-def",
        "not-a-keras-model",
        "not-a-meta-graph",
        "not-a-saved-model",
        "truncated-shard",
        "unknown-format",
        "unreadable-file",
    }
)


def recognized(problem: ConversionError, model: str | os.PathLike[str]) -> ConversionError:
    """Returns what to raise after an import failed: an error that names what the path is, or the same one.

    Args:
        problem: The failure.
        model: The path as the user wrote it.
    """
    given = os.fspath(model)
    return (foreign(Path(given), given) or problem) if given and problem.code in _CODES else problem


# The extensions of files that become .tflite files.
_CONVERTIBLE = (".pb", ".pbtxt", ".prototxt", ".meta", ".keras", ".h5", ".hdf5", ".mlir", ".mlirbc", ".jax")


def not_tflite(path: str | os.PathLike[str]) -> ConversionError:
    """Returns the error about a path that should be a .tflite file and is something else, which it names if known.

    Args:
        path: The path as the user wrote it.
    """
    given = os.fspath(path)
    known = foreign(Path(given), given)
    if known is not None:
        return known
    is_model = any(is_file(Path(given) / name) for name in SAVED_MODEL_FILES) or given.endswith(_CONVERTIBLE)
    hint = f"convert it first: tfconvert {given} -o model.tflite" if is_model else "make or download the file again"
    what = "a directory, not a .tflite file" if is_folder(Path(given)) else "not a .tflite file"
    return error("malformed-tflite", f"{given} is {what}", hint=hint)


def foreign(path: Path, given: str) -> ConversionError | None:
    """Returns the error that names what a path is, `None` if no row knows it.

    Args:
        path: The path.
        given: What the user calls it.
    """
    found = ForeignFile(path, given)
    for row in ROWS:
        match = row.matches(found)
        if match:
            text = "" if match is True else match.replace(os.fspath(path), given)
            what = row.what.replace("{found}", text)
            return error(
                "foreign-format", f"{given} is {what}", hint=row.hint.replace("{path}", given).replace("{found}", text)
            )
    return None
