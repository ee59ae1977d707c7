"""The models that are mutated: built once with TensorFlow, in a process of its own, and read as bytes.

    python -m tests.mutate.seeds FOLDER [MODEL ...]

writes them: `FOLDER/<format>/<name>/`, each with the files of one model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection
from functools import cached_property
from hashlib import sha256
from io import StringIO
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from google.protobuf import text_format

import tfconvert
from tests.differential.random_programs import random_program
from tests.importers import v1_graphs, v1_models
from tests.importers.stablehlo.seeds import SEEDS as ARTIFACTS
from tests.importers.tflite import official_models
from tests.importers.tflite.written_files import build_file
from tests.mutate import keras_seeds
from tests.mutate.seed_models import SAVED
from tests.support.sample_models import save
from tfconvert.converter.pipeline.runner import run_stages
from tfconvert.converter.pipelines import PIPELINES
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.printing import print_module
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.options import Options

OFFICIAL = sorted(set(official_models.MODELS) - {"two_signatures"})
# The folders of the seeds, by format.
FORMATS = ("saved_model", "graph_def", "meta_graph", "mlir", "tflite", "quantized", "artifact", "keras", "hdf5")
# Those that are read by TensorFlow.
FRAMEWORK_FORMATS = ("keras", "hdf5")

# After which passes the text of a model becomes a seed.
_STAGES = ("import", "executor-to-functional", "shape-inference", "legalize", "separate-results")
_PROGRAMS = 6
# Bytes of text; longer ones are mostly weights.
_MAX_TEXT_BYTES = 1 << 16


# The environment in which seeds are made.
_FIXED = {"PYTHONHASHSEED": "0", "TF_CPP_MIN_LOG_LEVEL": "3"}


class Seed(NamedTuple):
    """A model to be mutated.

    Attributes:
        format: One of `FORMATS`.
        name: Its name.
        files: The contents of its files by name, relative to its folder.
        outputs: The tensors to fetch of a graph; `None` if that is clear.
    """

    format: str
    name: str
    files: dict[str, bytes]
    outputs: list[str] | None = None

    @property
    def target(self) -> str:
        """The name of what is converted; empty for the folder."""
        return (
            ""
            if self.format == "saved_model"
            else min(self.files, key=lambda name: (_ORDER.get(Path(name).suffix, 9), name))
        )


_ORDER = {".meta": 0, **dict.fromkeys((".pb", ".pbtxt", ".mlir", ".mlirbc", ".tflite", ".keras", ".h5"), 1)}


class Seeds:
    """The seeds in a folder.

    Attributes:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def all(self) -> list[Seed]:
        """All seeds, sorted by format and name."""
        return [
            _read_seed(folder)
            for kind in FORMATS
            for folder in sorted((self.folder / kind).iterdir())
            if folder.is_dir()
        ]

    @cached_property
    def digest(self) -> str:
        """A hash of all of them."""
        found = sha256()
        for seed in self.all:
            for name, content in seed.files.items():
                found.update(f"{seed.format}/{seed.name}/{name}:{len(content)}:".encode() + content)
        return found.hexdigest()

    def of(self, *formats: str) -> list[Seed]:
        """Returns the seeds of some formats."""
        return [seed for seed in self.all if seed.format in formats]


def _read_seed(folder: Path) -> Seed:
    files = {
        file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()
    }
    told = _outputs_file(folder)
    return Seed(folder.parent.name, folder.name, files, json.loads(told.read_text("utf-8")) if told.exists() else None)


def _outputs_file(folder: Path) -> Path:
    """Returns the file that holds the outputs of a graph, beside the model's folder."""
    return folder.with_name(f"{folder.name}.json")


def find_seeds(folder: Path, models: Collection[str] = ()) -> Seeds:
    """Returns the seeds in a folder, and creates them if the directory has none.

    They are made in a process of their own, so that names that TensorFlow counts up are the same each time.

    Args:
        folder: Where they are.
        models: The SavedModels, by name; by default all, and the files of TensorFlow's own converter.
    """
    if not (folder / "complete").exists():
        done = subprocess.run(
            [sys.executable, "-m", __name__, str(folder), *models],
            env={**os.environ, **_FIXED, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"the seeds can't be made:\n{done.stderr}")
    return Seeds(folder)


def make_seeds(
    tf: ModuleType, folder: Path, models: Collection[str] = SAVED, official: Collection[str] = OFFICIAL
) -> Seeds:
    """Writes the seeds, and returns them.

    Args:
        tf: TensorFlow.
        folder: Where to.
        models: The SavedModels, by name.
        official: The files that TensorFlow's own converter writes, by name.
    """
    for name in models:
        place = save(tf, SAVED[name], folder / "saved_model" / name)
        _make_texts(folder / "mlir", name, place)
        _make_file(folder / "tflite" / name, place)
    _make_graphs(tf, folder / "graph_def")
    _make_meta_graphs(tf, folder / "meta_graph")
    for name in official:
        place = folder / "tflite" / f"official_{name}"
        place.mkdir(parents=True)
        (place / "model.tflite").write_bytes(official_models.MODELS[name](tf))
    _make_quantized(tf, folder / "quantized")
    for name, content in ARTIFACTS.items():
        place = folder / "artifact" / name
        place.mkdir(parents=True)
        (place / "model.mlirbc").write_bytes(content)
    keras_seeds.write(folder)
    (folder / "complete").touch()
    return Seeds(folder)


def _make_texts(folder: Path, name: str, model: Path) -> None:
    """Writes a model's text at some points of its conversion."""

    def write(module: ModuleOp, stage: str) -> None:
        text = StringIO()
        print_module(module, text, elide=None, locations=False)
        if text.tell() > _MAX_TEXT_BYTES:
            return
        place = folder / f"{name}-{stage}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "model.mlir").write_text(text.getvalue(), "utf-8")

    module = Source(model).open()
    write(module, "import")
    try:
        for done in run_stages(module, PIPELINES["tflite"], Options()):
            if done.name in _STAGES:
                write(module, done.name)
    except ConversionError:
        return  # What can only be imported is a seed so far.


def _make_file(folder: Path, model: Path) -> None:
    """Writes a model as we convert it."""
    folder.mkdir(parents=True)
    tfconvert.convert(model, target=tfconvert.LiteRT(allow_custom_ops=True)).save(folder / "model.tflite")


def _make_quantized(tf: ModuleType, folder: Path) -> None:
    """Writes files of integers: of 8 bits and of 16, with and without the ranges of tensors, and by blocks."""
    filters = tf.constant(np.linspace(-1, 1, 54).reshape(3, 3, 2, 3), tf.float32)

    def body(x: Any) -> Any:
        y = tf.nn.relu(tf.nn.conv2d(x, filters, 1, "SAME")[..., :2] + x)
        y = tf.concat([tf.nn.avg_pool2d(y, 2, 2, "SAME"), tf.nn.max_pool2d(tf.nn.sigmoid(y), 2, 2, "SAME")], 3)
        return tf.nn.softmax(tf.matmul(tf.reduce_mean(y, [1, 2]), tf.ones([4, 3])))

    files = {f"ranges_{mode}": official_models.with_ranges(tf, body, (1, 4, 4, 2), mode) for mode in ("int8", "int16")}
    for name in ("int8", "int16", "dynamic_range", "lstm_int8"):
        files[name] = official_models.MODELS[name](tf)
    for name, content in {**files, "blocks": _blocks()}.items():
        place = folder / name
        place.mkdir(parents=True)
        (place / "model.tflite").write_bytes(content)


def _blocks() -> bytes:
    """Returns a file of a layer with a scale for each block of its weights."""
    details = ("BlockwiseQuantization", {"scales": 3, "zero_points": 4, "block_size": 32})
    scales: dict[str, Any] = {"shape": (8, 2), "type": "FLOAT16", "buffer": 2}
    tensors: list[dict[str, Any]] = [
        {"shape": (2, 64)},
        {"shape": (8, 64), "type": "INT4", "buffer": 1, "quantization": {"details": details}},
        {"shape": (2, 8)},
        scales,
        {**scales, "type": "INT8", "buffer": 3},
    ]
    options: tuple[str, dict[str, Any]] = ("FullyConnectedOptions", {})
    call = {"opcode_index": 0, "inputs": (0, 1, -1), "outputs": (2,), "builtin_options": options}
    code = {"builtin_code": "FULLY_CONNECTED", "deprecated_builtin_code": 9, "version": 12}
    buffers = [bytes(range(256)), np.full(16, 0.5, np.float16).tobytes(), bytes(16)]
    return build_file(tensors, [call], [code], outputs=(2,), buffers=buffers)


def _make_graphs(tf: ModuleType, folder: Path) -> None:
    """Writes GraphDefs as messages and as text."""
    graphs: dict[str, tuple[pb.GraphDef, list[str] | None]] = {
        build.__name__: (build(), None) for build in (v1_graphs.cond, v1_graphs.loop, v1_graphs.call)
    }
    for number in range(_PROGRAMS):
        program = random_program(tf, Random(number))
        graphs[f"program{number}"] = pb.GraphDef.FromString(program.graph.SerializeToString()), program.outputs
    for name, (graph, outputs) in graphs.items():
        for suffix, content in (
            (".pb", graph.SerializeToString()),
            (".pbtxt", text_format.MessageToString(graph).encode()),
        ):
            place = folder / f"{name}-{suffix[1:]}"
            place.mkdir(parents=True)
            (place / f"graph{suffix}").write_bytes(content)
            if outputs is not None:
                _outputs_file(place).write_text(json.dumps(outputs), "utf-8")


def _make_meta_graphs(tf: ModuleType, folder: Path) -> None:
    """Writes MetaGraphs beside their checkpoints."""
    for build in (
        v1_models.dense,
        v1_models.counter,
        v1_models.written_in_a_branch,
        v1_models.recurrent,
        v1_models.choice,
    ):
        place = folder / build.__name__
        place.mkdir(parents=True)
        saved = v1_models.save(tf, place, build)
        _outputs_file(place).write_text(json.dumps(list(saved.outputs)), "utf-8")


if __name__ == "__main__":
    import tensorflow

    make_seeds(tensorflow, Path(sys.argv[1]), *((sys.argv[2:], ()) if sys.argv[2:] else ()))
