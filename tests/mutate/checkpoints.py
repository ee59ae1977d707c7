"""Changes checkpoints: entries of the index and the objects' graph, with checksums that are right; and their bytes."""

from __future__ import annotations

from random import Random

from tests.mutate import messages, numbers
from tests.support.sstable_writer import block, masked, table, varint
from tfconvert.importers.checkpoint.bundle import OBJECT_GRAPH_KEY
from tfconvert.importers.checkpoint.sstable import read_table
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

Files = dict[str, bytes]

_INDEX, _SHARD = ".index", ".data-00000-of-00001"


def files_of(files: Files, ending: str) -> list[str]:
    """Returns the names that end in a way."""
    return [name for name in files if name.endswith(ending)]


def mutate_index(random: Random, files: Files) -> Files:
    """Returns an index with entries changed, dropped, renamed or exchanged."""
    name = random.choice(files_of(files, _INDEX))
    if random.random() < 0.15:
        return {name: numbers.content(random, files[name])}
    entries = dict(read_table(files[name]))
    keys = sorted(entries)
    key = random.choice(keys)
    kind = random.random()
    if kind < 0.1:
        del entries[key]
    elif kind < 0.2:
        entries[numbers.text(random, key.decode("utf-8", "replace")).encode("utf-8", "replace")] = entries.pop(key)
    elif kind < 0.35:
        entries[key] = entries[random.choice(keys)]
    else:
        proto = pb.BundleEntryProto if key else pb.BundleHeaderProto
        message = proto.FromString(entries[key])
        others = [pb.BundleEntryProto.FromString(entries[other]) for other in keys if other]
        messages.mutate(random, message, messages.Pool([message, *others]))
        entries[key] = message.SerializeToString()
    return {name: table(block(sorted(entries.items())))}


def mutate_shard(random: Random, files: Files) -> Files:
    """Returns a shard with other bytes."""
    name = random.choice(files_of(files, _SHARD))
    return {name: numbers.content(random, files[name])}


def mutate_objects(random: Random, files: Files) -> Files:
    """Returns an index and a shard with another graph of objects."""
    index = random.choice(files_of(files, _INDEX))
    shard = index.removesuffix(_INDEX) + _SHARD
    entries = dict(read_table(files[index]))
    key = OBJECT_GRAPH_KEY.encode()
    if key not in entries or shard not in files:
        return mutate_index(random, files)
    entry = pb.BundleEntryProto.FromString(entries[key])
    stored = files[shard][entry.offset : entry.offset + entry.size]
    start = next(place for place, byte in enumerate(stored) if byte < 0x80) + 1 + 4
    objects = pb.TrackableObjectGraph.FromString(stored[start:])
    messages.mutate(random, objects, messages.Pool([objects]))
    text = objects.SerializeToString()
    length = len(text).to_bytes(4, "little")
    checksum = masked(length).to_bytes(4, "little")
    entry.offset, entry.size = len(files[shard]), len(varint(len(text))) + 4 + len(text)
    entry.crc32c = masked(length + checksum + text)
    entries[key] = entry.SerializeToString()
    return {index: table(block(sorted(entries.items()))), shard: files[shard] + varint(len(text)) + checksum + text}
