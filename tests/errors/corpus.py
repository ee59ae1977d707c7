"""The corpus: makes each failing model, and the text that its user reads on a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from tests.errors.damaged import DAMAGED, Damage
from tests.errors.functions import FUNCTIONS, Function
from tests.errors.keras_models import MODELS
from tests.support.flat_settings import converted
from tests.support.foreign_specimens import SPECIMENS
from tfconvert.cli.failure import show_failure
from tfconvert.schema.diagnostics import ConversionError

GOLDENS = Path(__file__).parent / "goldens"

# From TensorFlow and a folder that isn't there yet to what is converted, and with which options.
Make = Callable[[ModuleType, Path], tuple[Path, Mapping[str, Any]]]


def traced(function: Function, tf: ModuleType, folder: Path) -> Path:
    """Saves a function as a SavedModel."""
    module = tf.Module()
    module.state = function.state(tf) if function.state is not None else None
    state = () if function.state is None else (module.state,)
    specs = [tf.TensorSpec(shape, kind, name=name) for name, (shape, kind) in function.arguments.items()]
    module.call = tf.function(lambda *arguments: function.body(tf, *state, *arguments), input_signature=specs)
    options = tf.saved_model.SaveOptions(save_debug_info=function.debug_info)
    tf.saved_model.save(module, str(folder), signatures=module.call, options=options)
    return folder


def healthy(tf: ModuleType, folder: Path) -> Path:
    """Saves a model that nothing is wrong with."""
    module = tf.Module()
    module.w, module.b = tf.Variable(tf.ones([4, 3]), name="w"), tf.Variable(tf.zeros([3]), name="b")

    def call(x: Any) -> Any:
        return tf.nn.relu(tf.matmul(x, module.w) + module.b)

    module.call = tf.function(call, input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    tf.saved_model.save(module, str(folder), signatures=module.call)
    return folder


def _of_function(function: Function) -> Make:
    return lambda tf, folder: (traced(function, tf, folder), {})


def _of_model(make: Callable[[Any, Path], Path]) -> Make:
    return lambda tf, folder: (make(tf, folder), {})


def _of_damage(damage: Damage) -> Make:
    return lambda tf, folder: damage(healthy(tf, folder))


def _of_specimen(name: str) -> Make:
    write = next(write for _, specimen, write, _ in SPECIMENS if specimen == name)

    def make(_: ModuleType, folder: Path) -> tuple[Path, Mapping[str, Any]]:
        folder.mkdir()
        write(folder / name)
        return folder / name, {}

    return make


# Files that are no models of ours, by their specimens.
FOREIGN = {
    "checkpoint-only": "checkpoints",
    "directory-of-versions": "served",
    "git-lfs-pointer": "lfs",
    "onnx-model": "model.onnx",
    "pytorch-model": "model.pth",
    "tensorflow-js": "web",
    "unpacked-keras-file": "unpacked",
    "web-page": "page.pb",
}

CORPUS: Mapping[str, Make] = {
    **{name: _of_function(function) for name, function in FUNCTIONS.items()},
    **{name: _of_model(make) for name, make in MODELS.items()},
    **{name: _of_damage(damage) for name, damage in DAMAGED.items()},
    **{name: _of_specimen(specimen) for name, specimen in FOREIGN.items()},
}


def message(model: Path, options: Mapping[str, Any], capture: pytest.CaptureFixture[str]) -> str:
    """Returns what a user reads when a model is converted; places on this machine are left out."""
    with pytest.raises(ConversionError) as caught:
        converted(model, **options)
    capture.readouterr()
    show_failure(caught.value)
    text = click.unstyle(capture.readouterr().err)
    return _without_places(text, model)


def _without_places(text: str, model: Path) -> str:
    folder = model if model.is_dir() else model.parent
    here = Path(__file__).parent
    text = re.sub(r"(?<=is not a GraphDef): .*(?= \[)", "", text)  # what each version of protobuf says differently
    return text.replace(f"{folder}", "MODEL").replace(f"{here}/", "").replace(f"{folder.parent}", "FOLDER")
