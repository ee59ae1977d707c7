"""Exports a network of Keras from the backend that `KERAS_BACKEND` names: the child process of `keras_backends.py`.

    KERAS_BACKEND=jax python -m benchmarks.keras_export NAME FOLDER

writes `FOLDER/BACKEND/saved_model`. TensorFlow comes first: it writes `FOLDER/model.keras`, which the other backend
reads, with the same weights and constants, and samples of the inputs to `FOLDER/inputs.npz`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import export_model
from benchmarks.architectures import ARCHITECTURES
from benchmarks.latency import inputs_of
from benchmarks.latency_models import MODELS
from benchmarks.samples import images

BATCH = 2
"""The batch of the samples: not 1, so that a batch that was fixed by mistake is noticed."""


def _prepare(model: Any, numbers: tuple[float, float]) -> None:
    """Gives a network of images weights with which its outputs depend on its inputs."""
    shape = tuple(model.input_shape[1:])
    random = np.random.default_rng(export_model.SEED)
    export_model.randomize(model, random)
    export_model.damp_residuals(model)
    export_model.calibrate(model, images(export_model.SEED, export_model.CALIBRATION_IMAGES, shape, numbers))
    export_model.sharpen(model, images(export_model.SEED + 2, export_model.SHARPENING_IMAGES, shape, numbers), random)


def build(name: str) -> Any:
    """Returns a network of keras.applications with useful weights, or the Keras model that `latency_models.py` has."""
    import keras

    keras.utils.set_random_seed(export_model.SEED)
    architecture = ARCHITECTURES.get(name)
    if architecture is None:
        return next(model for model in MODELS if model.name == name).build()
    model = export_model.build(keras, name)
    _prepare(model, architecture.input_range)
    return model


def samples_of(model: Any, name: str) -> list[np.ndarray]:
    """Returns a batch for each input of a network."""
    architecture = ARCHITECTURES.get(name)
    if architecture is None:
        return inputs_of([((BATCH, *each.shape[1:]), each.dtype) for each in model.inputs])
    return [images(export_model.SEED + 1, BATCH, tuple(model.input_shape[1:]), architecture.input_range)]


def main() -> None:
    """Runs the command line."""
    name, target = sys.argv[1:]
    folder = Path(target)
    import keras

    backend = keras.backend.backend()
    model_file = folder / "model.keras"
    if backend == "tensorflow":
        model = build(name)
        np.savez(folder / "inputs.npz", *samples_of(model, name))
        model.save(model_file)
    else:
        model = keras.saving.load_model(model_file, compile=False)
    model.export(str(folder / backend / "saved_model"), verbose=False)


if __name__ == "__main__":
    main()
