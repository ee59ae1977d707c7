"""Mutants by number: which model, what is changed in it, and how it is converted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from random import Random
from typing import Any, NamedTuple

from google.protobuf import text_format
from google.protobuf.message import Message

from tests.mutate import artifacts, checkpoints, flatbuffers, keras_files, messages, numbers, tokens
from tests.mutate.checkpoints import Files
from tests.mutate.seeds import Seed, Seeds
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

# How mutants are converted: the weight, and what `convert` is given.
SETTINGS: Mapping[str, tuple[int, Mapping[str, Any]]] = {
    "plain": (24, {}),
    "custom": (3, {"allow_custom_ops": True}),
    "flex": (1, {"allow_flex": True}),
    "dynamic": (4, {"quantize": "dynamic"}),
    "batch": (4, {"batch": 2}),
    "gpu": (4, {"accelerator": ["gpu"]}),
    "stablehlo": (4, {"target": "stablehlo"}),
}


class Mutant(NamedTuple):
    """A mutant.

    Attributes:
        kind: Its kind, a key of `KINDS`.
        seed: The model it was made of.
        files: All its files; one that has become empty is missing.
        target: The file that is converted; empty for the folder.
        settings: A key of `SETTINGS`.
    """

    kind: str
    seed: Seed
    files: Files
    target: str
    settings: str

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of `convert`."""
        return {**SETTINGS[self.settings][1], **({} if self.seed.outputs is None else {"outputs": self.seed.outputs})}


class Kind(NamedTuple):
    """A kind of mutants.

    Attributes:
        weight: How many there are of it.
        formats: The formats of its seeds.
        ending: What the name of one of the seed's files ends with.
        change: Returns the changed files.
    """

    weight: int
    formats: tuple[str, ...]
    ending: str
    change: Callable[[Random, Seed, Seeds], Files]


def _name(seed: Seed, ending: str) -> str:
    return min(name for name in seed.files if name.endswith(ending))


def _bytes_of(ending: str) -> Callable[[Random, Seed, Seeds], Files]:
    def change(random: Random, seed: Seed, seeds: Seeds) -> Files:
        name = _name(seed, ending)
        content = seed.files[name]
        for _ in range(random.choice((1, 1, 1, 2, 8))):
            content = numbers.content(random, content)
        return {name: content}

    return change


def _text_of(ending: str) -> Callable[[Random, Seed, Seeds], Files]:
    def change(random: Random, seed: Seed, seeds: Seeds) -> Files:
        name = _name(seed, ending)
        text = seed.files[name].decode("utf-8", "replace")
        alike = [each for each in seeds.of(seed.format) if each.target.endswith(ending)]
        other = random.choice(alike)
        for _ in range(random.choice((1, 1, 1, 2, 4))):
            text = tokens.mutate(random, text, other.files[other.target].decode("utf-8", "replace"))
        return {name: text.encode("utf-8", "replace")}

    return change


def _files(mutate: Callable[[Random, Files], Files]) -> Callable[[Random, Seed, Seeds], Files]:
    return lambda random, seed, seeds: mutate(random, seed.files)


_POOLS: dict[tuple[int, type[Message]], messages.Pool] = {}


def _pool(seeds: Seeds, of: type[Message]) -> messages.Pool:
    """Returns what models of one type hold; made once for all mutants."""
    key = id(seeds), of
    if key not in _POOLS:
        ending = {pb.SavedModel: "saved_model.pb", pb.GraphDef: "graph.pb", pb.MetaGraphDef: ".meta"}[of]
        _POOLS[key] = messages.Pool(
            [
                of.FromString(seed.files[_name(seed, ending)])
                for seed in seeds.all
                if checkpoints.files_of(seed.files, ending)
            ]
        )
    return _POOLS[key]


def _regions(graph: Any) -> list[tuple[int, list[Message]]]:
    """Returns the parts of a graph that matter most, with weights."""
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    return [(12, nodes), (3, list(graph.library.function)), (1, [graph])]


def _meta_regions(meta: Any) -> list[tuple[int, list[Message]]]:
    return [
        *_regions(meta.graph_def),
        (2, list(meta.signature_def.values())),
        (2, [meta.object_graph_def]),
        (1, list(meta.collection_def.values())),
        (1, list(meta.asset_file_def)),
        (1, [meta.saver_def]),
        (1, [meta.meta_info_def]),
        (1, [meta]),
    ]


def _mutate_regions(random: Random, regions: list[tuple[int, list[Message]]], pool: messages.Pool) -> None:
    regions = [(weight, parts) for weight, parts in regions if parts]
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        ((_, parts),) = random.choices(regions, [weight for weight, _ in regions])
        messages.mutate(random, random.choice(parts), pool)


def _saved_model(random: Random, seed: Seed, seeds: Seeds) -> Files:
    model = pb.SavedModel.FromString(seed.files["saved_model.pb"])
    _mutate_regions(random, [*_meta_regions(model.meta_graphs[0])] * 4 + [(1, [model])], _pool(seeds, pb.SavedModel))
    if random.random() < 0.03:
        return {"saved_model.pbtxt": text_format.MessageToString(model).encode(), "saved_model.pb": b""}
    return {"saved_model.pb": model.SerializeToString()}


def _op_list(random: Random, seed: Seed, seeds: Seeds) -> Files:
    model = pb.SavedModel.FromString(seed.files["saved_model.pb"])
    info = model.meta_graphs[0].meta_info_def
    _mutate_regions(random, [(6, list(info.stripped_op_list.op)), (1, [info])], _pool(seeds, pb.SavedModel))
    return {"saved_model.pb": model.SerializeToString()}


def _graph_def(random: Random, seed: Seed, seeds: Seeds) -> Files:
    name = _name(seed, "graph.pb")
    graph = pb.GraphDef.FromString(seed.files[name])
    _mutate_regions(random, _regions(graph), _pool(seeds, pb.GraphDef))
    return {name: graph.SerializeToString()}


def _meta_graph(random: Random, seed: Seed, seeds: Seeds) -> Files:
    name = _name(seed, ".meta")
    meta = pb.MetaGraphDef.FromString(seed.files[name])
    _mutate_regions(random, _meta_regions(meta), _pool(seeds, pb.MetaGraphDef))
    return {name: meta.SerializeToString()}


def _state(random: Random, seed: Seed, seeds: Seeds) -> Files:
    text = seed.files["checkpoint"].decode()
    return {"checkpoint": tokens.mutate(random, text, text).encode("utf-8", "replace")}


def _flatbuffer(random: Random, seed: Seed, seeds: Seeds) -> Files:
    return {"model.tflite": flatbuffers.mutate(random, seed.files["model.tflite"])}


def _quantized(random: Random, seed: Seed, seeds: Seeds) -> Files:
    return {"model.tflite": flatbuffers.mutate(random, seed.files["model.tflite"], quantization=True)}


def _by(mutate: Callable[[Random, bytes], bytes]) -> Callable[[Random, Seed, Seeds], Files]:
    """Returns what changes the only file of a seed."""
    return lambda random, seed, seeds: {seed.target: mutate(random, seed.files[seed.target])}


def _missing(random: Random, seed: Seed, seeds: Seeds) -> Files:
    return {random.choice(sorted(seed.files)): b""}


def _target_bytes(random: Random, seed: Seed, seeds: Seeds) -> Files:
    return _bytes_of(seed.target)(random, seed, seeds)


_WITH_VARIABLES = ("saved_model", "meta_graph")

# The kinds of mutants.
KINDS: Mapping[str, Kind] = {
    "saved-model": Kind(30, ("saved_model",), "", _saved_model),
    "op-list": Kind(4, ("saved_model",), "", _op_list),
    "saved-model-bytes": Kind(3, ("saved_model",), "", _bytes_of("saved_model.pb")),
    "index": Kind(3, _WITH_VARIABLES, ".index", _files(checkpoints.mutate_index)),
    "objects": Kind(2, _WITH_VARIABLES, ".index", _files(checkpoints.mutate_objects)),
    "shard": Kind(1, _WITH_VARIABLES, ".data-00000-of-00001", _files(checkpoints.mutate_shard)),
    "asset": Kind(1, ("saved_model",), "words.txt", _bytes_of("words.txt")),
    "file": Kind(1, ("saved_model", "meta_graph"), "", _missing),
    "graph-def": Kind(13, ("graph_def",), "graph.pb", _graph_def),
    "graph-def-bytes": Kind(2, ("graph_def",), "graph.pb", _bytes_of("graph.pb")),
    "pbtxt": Kind(4, ("graph_def",), "graph.pbtxt", _text_of("graph.pbtxt")),
    "meta-graph": Kind(7, ("meta_graph",), ".meta", _meta_graph),
    "state": Kind(1, ("meta_graph",), "checkpoint", _state),
    "mlir": Kind(16, ("mlir",), "", _text_of("model.mlir")),
    "tflite": Kind(12, ("tflite",), "", _flatbuffer),
    "tflite-bytes": Kind(3, ("tflite",), "", _bytes_of("model.tflite")),
    "tflite-quantized": Kind(12, ("quantized",), "", _quantized),
    "artifact": Kind(12, ("artifact",), "", _by(artifacts.mutate)),
    "keras": Kind(8, ("keras",), "", _by(keras_files.mutate_zip)),
    "keras-hdf5": Kind(6, ("hdf5",), "", _by(keras_files.mutate_hdf5)),
    "keras-bytes": Kind(2, ("keras", "hdf5"), "", _target_bytes),
}

# The kinds that TensorFlow reads, which takes a process seconds to load: they are mutated only if they are named, and
# many of them are converted in one process.
FRAMEWORK_KINDS = frozenset({"keras", "keras-hdf5", "keras-bytes"})
DEFAULT_KINDS = tuple(kind for kind in KINDS if kind not in FRAMEWORK_KINDS)


@cache
def _seeds_of(seeds: Seeds, kind: str) -> list[Seed]:
    one = KINDS[kind]
    return [seed for seed in seeds.of(*one.formats) if checkpoints.files_of(seed.files, one.ending)]


def draw(seeds: Seeds, number: int, seed: int, kinds: tuple[str, ...]) -> Mutant:
    """Returns a mutant, the same for the same numbers and the same seeds.

    Args:
        seeds: The models.
        number: Which one.
        seed: Of the random numbers.
        kinds: The kinds to draw from.
    """
    random = Random(f"{seed}:{number}")
    available = [kind for kind in kinds if _seeds_of(seeds, kind)]
    kind = random.choices(available, [KINDS[each].weight for each in available])[0]
    model = random.choice(_seeds_of(seeds, kind))
    names = list(SETTINGS)
    settings = random.choices(names, [SETTINGS[name][0] for name in names])[0]
    files = {**model.files, **KINDS[kind].change(random, model, seeds)}
    target = "" if kind == "state" else model.target
    return Mutant(kind, model, {name: content for name, content in files.items() if content}, target, settings)
