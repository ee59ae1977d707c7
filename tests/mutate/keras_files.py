"""Changes Keras files by structure: the tree of the configuration, and the groups, datasets and attributes of HDF5."""

from __future__ import annotations

import copy
import json
import zipfile
from io import BytesIO
from random import Random
from typing import Any

import h5py
import numpy as np

from tests.mutate import numbers

_CONFIG, _METADATA, _WEIGHTS = "config.json", "metadata.json", "model.weights.h5"

# Values of JSON that stand for any other.
_VALUES: tuple[Any, ...] = (None, True, False, 0, 1, -1, 1.5, float("nan"), float("inf"), "", "x", [], {}, [1], [[]])
_NAMES = (
    "Dense",
    "Conv2D",
    "Functional",
    "Sequential",
    "InputLayer",
    "Lambda",
    "StringLookup",
    "GlorotUniform",
    "DTypePolicy",
    "__keras_tensor__",
    "__tensor__",
    "__numpy__",
    "__tuple__",
    "__lambda__",
    "function",
    "relu",
    "softmax",
    "float16",
    "mixed_bfloat16",
    "string",
    "int8",
    "channels_first",
    "same",
    "causal",
    "keras.layers",
    "builtins",
)


def mutate_zip(random: Random, content: bytes) -> bytes:
    """Returns a `.keras` file with a changed configuration, changed weights, or other members."""
    members = read_members(content)
    kind = random.random()
    if kind < 0.55:
        members[_CONFIG] = _text(random, members[_CONFIG])
    elif kind < 0.6:
        members[_METADATA] = _text(random, members[_METADATA])
    elif kind < 0.9:
        members[_WEIGHTS] = mutate_hdf5(random, members[_WEIGHTS])
    elif kind < 0.93:
        del members[random.choice(sorted(members))]
    elif kind < 0.96:
        name = random.choice(sorted(members))
        members[name] = numbers.content(random, members[name])
    else:
        first, second = random.choices(sorted(members), k=2)
        members[first], members[second] = members[second], members[first]
    if random.random() < 0.03:
        members[numbers.text(random, _CONFIG).replace("\0", "") or "x"] = b"x"
    packed = BytesIO()
    compression = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(packed, "w", compression) as archive:
        for name, each in members.items():
            archive.writestr(zipfile.ZipInfo(name), each, compression)
    return packed.getvalue()


def read_members(content: bytes) -> dict[str, bytes]:
    """Returns the members of a zip."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return {each: archive.read(each) for each in archive.namelist()}


def mutate_hdf5(random: Random, content: bytes) -> bytes:
    """Returns an HDF5 file with one to four changes; the file itself is well-formed."""
    stream = BytesIO(content)
    with h5py.File(stream, "r+") as file:
        for _ in range(random.choice((1, 1, 1, 2, 4))):
            _mutate_object(random, file)
    return stream.getvalue()


def _text(random: Random, text: bytes | str) -> bytes:
    tree = json.loads(text)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        tree = _mutate_tree(random, tree)
    return json.dumps(tree).encode("utf-8", "replace")


def _slots(tree: Any) -> list[tuple[Any, Any]]:
    """Returns the places of a tree's values: each the table or list that it is in, and its key or index."""
    found: list[tuple[Any, Any]] = []
    pending = [tree]
    while pending:
        each = pending.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()
        found += [(each, key) for key in keys]
        pending += [each[key] for key in keys]
    return found


def _mutate_tree(random: Random, tree: Any) -> Any:
    """Changes a value anywhere in a tree; returns the tree."""
    slots = _slots(tree)
    if not slots or random.random() < 0.01:
        return random.choice(_VALUES)
    inside, key = random.choice(slots)
    kind = random.random()
    if kind < 0.12:
        del inside[key]
    elif kind < 0.2 and isinstance(inside, dict):
        inside[numbers.text(random, key)] = inside.pop(key)
    elif kind < 0.25 and isinstance(inside, list):
        inside.insert(random.randrange(len(inside)), copy.deepcopy(inside[key]))
    elif kind < 0.4:
        other, place = random.choice(slots)
        inside[key] = copy.deepcopy(other[place])
    elif kind < 0.45:
        inside[key] = [inside[key]]
    else:
        inside[key] = _value(random, inside[key])
    return tree


def _value(random: Random, known: Any) -> Any:
    if random.random() < 0.25:
        return random.choice(_VALUES)
    if isinstance(known, bool):
        return not known
    if isinstance(known, int):
        return numbers.integer(random, -(2**64), 2**64, known)
    if isinstance(known, float):
        return random.choice(numbers.FLOATS)
    if isinstance(known, str):
        return random.choice(_NAMES) if random.random() < 0.5 else numbers.text(random, known)
    return random.choice(_VALUES)


def _mutate_object(random: Random, file: h5py.File) -> None:
    """Changes an attribute, a dataset, a group or a link."""
    objects: list[Any] = [file]
    file.visititems(lambda _, found: objects.append(found))
    with_attributes = [each for each in objects if len(each.attrs)]
    if with_attributes and random.random() < 0.5:
        return _mutate_attribute(random, random.choice(with_attributes))
    inner = objects[1:]
    if inner:
        change = random.choice((_drop, _rename, _link, _replace, _replace, _replace))
        change(random, file, random.choice(inner).name, inner)
    return None


def _mutate_attribute(random: Random, found: Any) -> None:
    configurations = [key for key in found.attrs if key.endswith("_config")]
    name = random.choice(configurations if configurations and random.random() < 0.7 else list(found.attrs))
    if name in configurations and random.random() < 0.9:
        try:
            changed = _text(random, found.attrs[name])
        except (TypeError, ValueError):
            return  # An earlier change made something else of it.
        del found.attrs[name]
        if len(changed) < 60_000:  # An attribute has no more.
            found.attrs[name] = changed
        return
    kind, value = random.random(), found.attrs[name]
    del found.attrs[name]
    if kind < 0.2:
        return
    if kind < 0.3:
        found.attrs[name + "0"] = value
    elif kind < 0.5 and isinstance(value, np.ndarray) and len(value):
        found.attrs[name] = random.choice((value[1:], value[::-1], np.concatenate([value, value])))
    else:
        found.attrs[name] = _hdf5_value(random)


def _hdf5_value(random: Random) -> Any:
    return random.choice(
        (
            0,
            -1,
            2**63 - 1,
            1.5,
            float("nan"),
            True,
            "",
            "x",
            "3.0.0",
            b"\xff\xfe",
            b"layers",
            np.zeros(0, np.int8),
            np.arange(3),
            np.array([b"a", b"b"]),
            np.array([[1.0]], np.float16),
            h5py.Empty("f"),
            np.zeros(2, [("a", "i4"), ("b", "f8")]),
        )
    )


def _drop(random: Random, file: h5py.File, name: str, inner: list[Any]) -> None:
    del file[name]


def _rename(random: Random, file: h5py.File, name: str, inner: list[Any]) -> None:
    new = name + random.choice(("0", "_1", "/x", "é"))
    if not name.startswith(new) and not new.startswith(name + "/") and new not in file:
        file.move(name, new)


def _link(random: Random, file: h5py.File, name: str, inner: list[Any]) -> None:
    """Makes a link of an object: to another, to itself, to nothing, or to the group that it is in."""
    target = random.choice((random.choice(inner).name, name, "/nowhere", "/"))
    other = None if target == name or target not in file or target.startswith(name + "/") else file[target]
    del file[name]
    file[name] = h5py.SoftLink(target) if other is None or random.random() < 0.5 else other


def _replace(random: Random, file: h5py.File, name: str, inner: list[Any]) -> None:
    """Replaces an object by a group, or by numbers of another shape or kind."""
    old = file[name]
    shape, dtype = (old.shape, old.dtype) if isinstance(old, h5py.Dataset) else ((2,), np.dtype(np.float32))
    del file[name]
    kind = random.random()
    if kind < 0.15:
        file.create_group(name)
    elif kind < 0.3:
        file[name] = _hdf5_value(random)
    elif kind < 0.5:
        file.create_dataset(name, shape, random.choice(("f2", "f8", "i4", "u1", "?", "c8", "S3", h5py.string_dtype())))
    elif kind < 0.6:
        file.create_dataset(name, shape, dtype, fillvalue=random.choice((float("nan"), float("inf"), -1e30)))
    else:
        sizes = list(shape or (1,))
        sizes[random.randrange(len(sizes))] = random.choice((0, 1, 2, 3, 5, 64))
        changed = random.choice((sizes, sizes[::-1], sizes[1:], [*sizes, 1], [1, *sizes]))
        compression = random.choice((None, None, "gzip")) if changed and 0 not in changed else None
        file.create_dataset(name, changed, dtype, compression=compression)
