"""Builds one network of `hub_table.py` with random weights; `hub_models.py` runs it in a process of its own.

    python -m benchmarks.hub_export NAME FOLDER

writes FOLDER/saved_model, and FOLDER/io.npz: inputs of all sizes with TensorFlow's answers.
"""

from __future__ import annotations

import importlib
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hub_table import VOCABULARY, Dim, Input, Network
from benchmarks.hub_table_keras import NETWORKS
from benchmarks.samples import Arrays, Sample, save_samples

# Standard deviation of what is added to every weight: fresh biases are zero, and a lost one would not show.
SPREAD = 0.1


def array(wanted: Input, sizes: Mapping[str, int], random: np.random.Generator) -> np.ndarray:
    """Returns random numbers of the kind and of these sizes."""
    shape = tuple(sizes[dim] if isinstance(dim, str) else dim for dim in wanted.dims)
    if wanted.kind == "numbers":
        return random.normal(0, 1, shape).astype(np.float32)
    if wanted.kind == "tokens":
        return random.integers(3, VOCABULARY, shape, np.int32)
    mask = np.ones(shape, np.int32)
    if wanted.kind == "mask":
        # The first row keeps all, later ones end earlier.
        for row in range(1, shape[0]):
            mask[row, max(1, shape[1] - shape[1] * row // 4) :] = 0
    return mask


def build(network: Network) -> Any:
    """Returns the network with its random weights."""
    library = importlib.import_module(network.library)
    library = getattr(library, "models", library) if network.library == "keras_hub" else library
    name, _, config = network.make.partition(":")
    make = getattr(library, name)
    return make(getattr(library, config)(**network.settings)) if config else make(**network.settings)


def past_inputs(network: Network) -> dict[str, Input]:
    """Returns the inputs for keys and values of earlier steps: two layers, each 4 heads of width 8."""
    if network.past == 1:
        return {f"past_{layer}": Input("numbers", (2, "B", 4, "P", 8)) for layer in range(2)}
    lengths = ("P", "P", "L", "L")[: network.past]
    return {
        f"past_{layer}_{index}": Input("numbers", ("B", 4, length, 8))
        for layer in range(2)
        for index, length in enumerate(lengths)
    }


def part_of(network: Network, model: Any) -> Any:
    """Returns the part of a model that is run."""
    inner = getattr(model, "model", model)
    return getattr(inner, network.method) if network.method else model


def call(network: Network, model: Any, tensors: dict[str, Any]) -> dict[str, Any]:
    """Runs the network and returns its outputs by name, nested ones numbered."""
    import tensorflow as tf

    if network.library == "keras_hub":
        only = len(tensors) == 1
        outputs = model(next(iter(tensors.values())) if only else tensors, training=False)
        named = outputs if isinstance(outputs, dict) else {"output": outputs}
        return {f"out_{name}": value for name, value in named.items()}
    past = [value for name, value in tensors.items() if name.startswith("past_")]
    arguments = {name: value for name, value in tensors.items() if not name.startswith("past_")}
    if past:
        arguments["past_key_values"] = (
            past if network.past == 1 else [tuple(past[at : at + network.past]) for at in range(0, len(past), 4)]
        )
    if "encoder_outputs" in arguments:
        arguments["encoder_outputs"] = (arguments["encoder_outputs"],)
    part = part_of(network, model)
    main = model.main_input_name if model.main_input_name in arguments else "input_ids"
    # Keras insists on a first argument, even where a decoder takes others instead.
    outputs = part(arguments.pop(main, None), **arguments, **network.arguments, training=False)
    items = outputs.items() if hasattr(outputs, "items") else [("output", outputs)]
    return {
        f"{name}_{index}" if index else name: tensor
        for name, value in items
        for index, tensor in enumerate(tf.nest.flatten(value))
    }


def spec(name: str, wanted: Input) -> Any:
    """Returns the input as a signature declares it."""
    import tensorflow as tf

    def size(dim: Dim) -> int | None:
        return dim if isinstance(dim, int) else None

    dtype = tf.float32 if wanted.kind == "numbers" else tf.int32
    return tf.TensorSpec([size(dim) for dim in wanted.dims], dtype, name)


def export(network: Network, folder: Path) -> None:
    """Builds, saves, and runs a network."""
    import tensorflow as tf

    random = np.random.default_rng(zlib.crc32(network.name.encode()))
    tf.random.set_seed(20)
    model = build(network)
    inputs = {**network.inputs, **(past_inputs(network) if network.past else {})}
    samples = [{name: array(wanted, sizes, random) for name, wanted in inputs.items()} for sizes in network.sizes]

    def tensors(arrays: Arrays) -> dict[str, Any]:
        return {name: tf.constant(value) for name, value in arrays.items()}

    call(network, model, tensors(samples[0]))
    for weight in part_of(network, model).trainable_weights:
        weight.assign_add(random.normal(0, SPREAD, weight.shape).astype(np.float32))

    # Not the model itself, whose layers Keras would trace once more, by themselves: not all can be.
    module = tf.Module()
    module.variables_of_part = part_of(network, model).variables
    module.serve = tf.function(lambda **given: call(network, model, given))
    function = module.serve.get_concrete_function(**{name: spec(name, wanted) for name, wanted in inputs.items()})
    tf.saved_model.save(module, str(folder / "saved_model"), signatures=function)
    signature = tf.saved_model.load(str(folder / "saved_model")).signatures["serving_default"]
    answers = [
        Sample(arrays, {name: value.numpy() for name, value in signature(**tensors(arrays)).items()})
        for arrays in samples
    ]
    save_samples(folder / "io.npz", dict(enumerate(answers, 1)))


def main() -> None:
    """Runs the command line: NAME FOLDER."""
    name, folder = sys.argv[1:]
    (network,) = (network for network in NETWORKS if network.name == name)
    export(network, Path(folder))


if __name__ == "__main__":
    main()
