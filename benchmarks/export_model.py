"""Creates one model of the zoo; `zoo.py` runs it in a process of its own.

Fresh networks answer nearly the same to any input: their norms do nothing, their biases are zero, and their batch-norm
statistics fit no data, so signals fade or burst on the way. A wrong converter could go unnoticed. So norms and biases
get random values, the statistics are those of a random batch, and the last layer is scaled until two inputs get
clearly different answers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.architectures import Flavour
from benchmarks.samples import Sample, images, save_samples

SEED = 20
USUAL_SHAPE = (224, 224, 3)
# With few, deep batch norms fit these images alone, and signals burst on any other.
CALIBRATION_IMAGES = 32

SHARPENING_IMAGES = 8
# More would turn rounding errors of the features into differences that are worth talking about.
MAX_SHARPENING = 4.0

# Standard deviation of a logit over inputs; a larger one magnifies rounding as it magnifies answers.
SPREAD = 0.4

# The factor of the last norm of a residual branch.
DAMPING = 0.2

FAINT = 1e-3
# Between the answers to two inputs, relative to the largest: a hundred times the error that a check tolerates.
LEAST_DIFFERENCE = 0.01


def load_library(flavour: Flavour) -> Any:
    """Returns Keras 3 or tf_keras, with TensorFlow held to one thread."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if flavour == "k3":
        import keras

        return keras
    import tf_keras

    return tf_keras


def build(library: Any, name: str) -> Any:
    """Returns a network with fresh weights and an input of known size; some leave theirs open by default."""
    network = getattr(library.applications, name)
    model = network(weights=None)
    return model if None not in model.input_shape[1:] else network(weights=None, input_shape=USUAL_SHAPE)


def all_layers(layer: Any) -> Iterator[Any]:
    """Yields the layers of a model, in order, with those of nested models."""
    for child in getattr(layer, "layers", ()):
        yield child
        yield from all_layers(child)


def _role(weight: Any) -> str:
    path: str = getattr(weight, "path", None) or weight.name
    return path.rpartition("/")[2].partition(":")[0]


def randomize(model: Any, random: np.random.Generator) -> None:
    """Sets norms and biases to random values."""
    for layer in all_layers(model):
        if getattr(layer, "layers", None):
            continue
        layer_scale = type(layer).__name__ == "LayerScale"
        for weight in layer.weights:
            role, shape = _role(weight), tuple(weight.shape)
            if layer_scale:
                weight.assign(random.uniform(0.1, 0.5, shape))
            elif role == "gamma":
                weight.assign(random.uniform(0.6, 1.4, shape))
            elif role == "beta" or role.endswith("bias"):
                weight.assign(random.normal(0, 0.2, shape))


def damp_residuals(model: Any) -> None:
    """Scales the last norm of each residual branch down, as training does.

    Without it a net of a hundred random blocks is chaotic: it amplifies the rounding of any runtime, TensorFlow's on
    another machine included, to more than a ten-thousandth of the answer.
    """
    for layer in all_layers(model):
        if type(layer).__name__ != "Add":
            continue
        for tensor in layer.input:
            history = tensor._keras_history  # noqa: SLF001  # the only way from a tensor to its layer, in both libraries
            producer = getattr(history, "operation", None) or history.layer
            if type(producer).__name__ == "BatchNormalization" and producer.gamma is not None:
                producer.gamma.assign(producer.gamma * DAMPING)


@contextmanager
def _set(objects: list[Any], attribute: str, value: float) -> Iterator[None]:
    before = [getattr(item, attribute) for item in objects]
    for item in objects:
        setattr(item, attribute, value)
    try:
        yield
    finally:
        for item, old in zip(objects, before, strict=True):
            setattr(item, attribute, old)


def calibrate(model: Any, batch: np.ndarray) -> None:
    """Sets the statistics of all batch norms to those of a batch: one training step without history."""
    layers = list(all_layers(model))
    norms = [layer for layer in layers if type(layer).__name__ in ("BatchNormalization", "SyncBatchNormalization")]
    droppers = [layer for layer in layers if type(layer).__name__ == "Dropout"]
    if norms:
        with _set(norms, "momentum", 0.0), _set(droppers, "rate", 0.0):
            model(batch, training=True)


def sharpen(model: Any, batch: np.ndarray, random: np.random.Generator) -> None:
    """Scales the classifier so that its logits vary by about `SPREAD` between inputs, round about zero.

    A net without a softmax answers logits, whose differences nothing hides: it is left alone.
    """
    if not np.allclose(np.asarray(model(batch, training=False)).sum(axis=-1), 1, atol=1e-3):
        return
    classifier = [layer for layer in all_layers(model) if hasattr(layer, "kernel")][-1]
    kernel, bias = np.asarray(classifier.kernel), np.asarray(classifier.bias)
    # Logits come back from the softmax only as long as it isn't saturated.
    classifier.kernel.assign(kernel * FAINT)
    classifier.bias.assign(np.zeros_like(bias))
    probabilities = np.asarray(model(batch, training=False), np.float64)
    logits = np.log(probabilities) / FAINT
    logits -= logits.mean(axis=1, keepdims=True)
    factor = min(SPREAD / float(logits.std(axis=0).mean()), MAX_SHARPENING)
    classifier.kernel.assign(kernel * factor)
    classifier.bias.assign(random.normal(0, 0.5, bias.shape) - factor * logits.mean(axis=0).reshape(bias.shape))


def export(model: Any, flavour: Flavour, folder: Path) -> None:
    """Saves the model as users of its library do."""
    if flavour == "k3":
        model.export(str(folder), verbose=False)
    else:
        model.save(str(folder), save_format="tf")


def serving(saved_model: Path) -> Callable[[np.ndarray], Sample]:
    """Returns what runs the saved model's serving signature in TensorFlow, with one input."""
    import tensorflow as tf

    model = tf.saved_model.load(str(saved_model))

    def answer(batch: np.ndarray) -> Sample:
        signature = model.signatures["serving_default"]
        (name,) = signature.structured_input_signature[1]
        outputs = {key: value.numpy() for key, value in signature(**{name: tf.constant(batch)}).items()}
        return Sample({name: batch}, outputs)

    return answer


def main() -> None:
    """Runs the command line: NAME FLAVOUR LOW HIGH FOLDER."""
    name, kind, low, high, target = sys.argv[1:]
    flavour: Flavour = "k3" if kind == "k3" else "tfk"
    folder, numbers = Path(target), (float(low), float(high))
    library = load_library(flavour)
    library.utils.set_random_seed(SEED)
    random = np.random.default_rng(SEED)
    model = build(library, name)
    shape = tuple(model.input_shape[1:])
    randomize(model, random)
    damp_residuals(model)
    calibrate(model, images(SEED, CALIBRATION_IMAGES, shape, numbers))
    sharpen(model, images(SEED + 2, SHARPENING_IMAGES, shape, numbers), random)
    export(model, flavour, folder / "saved_model")

    answer = serving(folder / "saved_model")
    pair = answer(images(SEED + 1, 2, shape, numbers))
    (batch,), (answers,) = pair.inputs.values(), pair.outputs.values()
    first, second = answers
    difference = float(np.abs(first - second).max() / np.abs(answers).max())
    if not difference > LEAST_DIFFERENCE:
        raise SystemExit(f"{name} answers nearly the same to two inputs: they differ by {difference:.1%}")
    save_samples(folder / "io.npz", {1: answer(batch[:1]), 2: pair})
    measured = {
        "name": name,
        "flavour": flavour,
        "parameters": model.count_params(),
        "difference": difference,
        "least": float(first.min()),
        "greatest": float(first.max()),
    }
    (folder / "spread.json").write_text(json.dumps(measured))


if __name__ == "__main__":
    main()
