"""Changes StableHLO artifacts behind the container: ops, operands, types, attributes and properties.

Bytes that are changed at random mostly break the container. Here it is taken apart, changed, and put together again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

from tests.importers.stablehlo import encoder
from tests.importers.stablehlo.encoder import varint, varints
from tests.mutate import numbers
from tfconvert.importers.stablehlo.bytecode import MAGIC
from tfconvert.importers.stablehlo.cursor import Cursor
from tfconvert.schema.diagnostics import ConversionError

# The sections that are written again; the others stay.
_ENTRIES, _OFFSETS, _IR, _BLOBS = 2, 3, 4, 8
# The bits of an op's mask.
_ATTRIBUTES, _RESULTS, _OPERANDS, _SUCCESSORS, _REGIONS, _USES, _PROPERTIES = (1 << bit for bit in range(7))


@dataclass(slots=True)
class _Region:
    values: int
    arguments: list[tuple[int, int | None]]
    ops: list[_Op]
    has_arguments: bool
    is_empty: bool = False


@dataclass(slots=True)
class _Op:
    name: int
    location: int
    attributes: int | None = None
    properties: int | None = None
    results: list[int] | None = None
    operands: list[int] | None = None
    regions: list[_Region] | None = None
    is_isolated: bool = False


@dataclass(slots=True)
class _Artifact:
    """An artifact, taken apart.

    Attributes:
        head: The bytes before the first section.
        version: The version of the container.
        sections: The sections, by their numbers.
        attributes: The attributes, each its dialect, its flag and its bytes.
        types: The types, in the same form.
        ops: The ops at the top.
        blobs: The properties of ops.
    """

    head: bytes
    version: int
    sections: dict[int, bytes]
    attributes: list[tuple[int, int, bytes]] = field(default_factory=list)
    types: list[tuple[int, int, bytes]] = field(default_factory=list)
    ops: list[_Op] = field(default_factory=list)
    blobs: list[bytes] = field(default_factory=list)

    def walk(self) -> Iterator[tuple[_Op, _Region | None]]:
        """Yields all ops, each with the region that it is in."""
        pending: list[tuple[_Op, _Region | None]] = [(op, None) for op in self.ops]
        while pending:
            op, outer = pending.pop()
            yield op, outer
            pending += [(each, region) for region in op.regions or () for each in region.ops]


def mutate(random: Random, content: bytes) -> bytes:
    """Returns an artifact with one to four changes; the container is well-formed."""
    artifact = _read(content)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        change = random.choices(list(_CHANGES), list(_CHANGES.values()))[0]
        change(random, artifact)
    return _written(artifact)


def _read(content: bytes) -> _Artifact:
    cursor = Cursor(content, len(MAGIC))
    version = cursor.varint()
    while cursor.byte():
        pass
    artifact = _Artifact(content[: cursor.position], version, {})
    while cursor.left:
        number, data = _section(cursor)
        artifact.sections[number] = data
    offsets, start = Cursor(artifact.sections[_OFFSETS]), 0
    counts = offsets.varint(), offsets.varint()
    entries: list[tuple[int, int, bytes]] = []
    while len(entries) < sum(counts):
        dialect = offsets.varint()
        for size in offsets.numbers(offsets.varint()):
            entries.append((dialect, size & 1, artifact.sections[_ENTRIES][start : start + (size >> 1)]))
            start += size >> 1
    artifact.attributes, artifact.types = entries[: counts[0]], entries[counts[0] :]
    if _BLOBS in artifact.sections:
        blobs = Cursor(artifact.sections[_BLOBS])
        artifact.blobs = [_bytes(blobs, blobs.varint()) for _ in range(blobs.varint())]
    ir = Cursor(artifact.sections[_IR])
    artifact.ops = [_read_op(ir, version) for _ in range(ir.varint() >> 1)]
    return artifact


def _bytes(cursor: Cursor, length: int) -> bytes:
    start = cursor.skip(length)
    return bytes(cursor.data[start : start + length])


def _section(cursor: Cursor) -> tuple[int, bytes]:
    head, length = cursor.byte(), cursor.varint()
    if head & 0x80:
        alignment = cursor.varint()
        cursor.skip(-cursor.position % alignment)
    return head & 0x7F, _bytes(cursor, length)


def _read_op(cursor: Cursor, version: int) -> _Op:
    name, mask, location = cursor.head()
    assert not mask & _SUCCESSORS, "no op of VHLO has any"
    op = _Op(name, location)
    if mask & _ATTRIBUTES:
        op.attributes = cursor.varint()
    if mask & _PROPERTIES:
        op.properties = cursor.varint()
    if mask & _RESULTS:
        op.results = cursor.varints()
    if mask & _OPERANDS:
        op.operands = cursor.varints()
    if mask & _USES:
        _skip_uses(cursor, len(op.results or ()))
    if mask & _REGIONS:
        count, op.is_isolated = cursor.flagged()
        inside = Cursor(_section(cursor)[1]) if op.is_isolated and version >= 2 else cursor
        op.regions = [_read_region(inside, version) for _ in range(count)]
    return op


def _skip_uses(cursor: Cursor, values: int) -> None:
    """Skips the order of uses, which isn't written again."""
    for _ in range(cursor.varint() if values > 1 else 1):
        if values > 1:
            cursor.varint()
        cursor.numbers(cursor.varint() >> 1)


def _read_region(cursor: Cursor, version: int) -> _Region:
    if not cursor.varint():
        return _Region(0, [], [], False, is_empty=True)
    region = _Region(cursor.varint(), [], [], False)
    count, region.has_arguments = cursor.flagged()
    if region.has_arguments:
        for _ in range(cursor.varint()):
            kind, has_location = cursor.flagged() if version >= 4 else (cursor.varint(), True)
            region.arguments.append((kind, cursor.varint() if has_location else None))
        if version >= 3 and cursor.byte():
            _skip_uses(cursor, len(region.arguments))
    region.ops = [_read_op(cursor, version) for _ in range(count)]
    return region


def _written(artifact: _Artifact) -> bytes:
    entries = [*artifact.attributes, *artifact.types]
    offsets = [varints(dialect, 1, len(data) << 1 | flag) for dialect, flag, data in entries]
    sections = dict(artifact.sections)
    sections[_ENTRIES] = b"".join(data for _, _, data in entries)
    sections[_OFFSETS] = varints(len(artifact.attributes), len(artifact.types)) + b"".join(offsets)
    sections[_IR] = varint(len(artifact.ops) << 1) + b"".join(_op(each, artifact.version) for each in artifact.ops)
    if _BLOBS in sections:
        blobs = [varint(len(each)) + each for each in artifact.blobs]
        sections[_BLOBS] = varint(len(blobs)) + b"".join(blobs)
    return artifact.head + b"".join(encoder.section(number, data) for number, data in sections.items())


def _op(op: _Op, version: int) -> bytes:
    given = (
        (_ATTRIBUTES, op.attributes),
        (_PROPERTIES, op.properties),
        (_RESULTS, op.results),
        (_OPERANDS, op.operands),
        (_REGIONS, op.regions),
    )
    parts = [varint(op.name), bytes([sum(bit for bit, value in given if value is not None)]), varint(op.location)]
    parts += [varint(each) for each in (op.attributes, op.properties) if each is not None]
    parts += [varint(len(each)) + varints(*each) for each in (op.results, op.operands) if each is not None]
    if op.regions is not None:
        inside = b"".join(_region(each, version) for each in op.regions)
        parts.append(varint(len(op.regions) << 1 | op.is_isolated))
        parts.append(encoder.section(_IR, inside) if op.is_isolated and version >= 2 else inside)
    return b"".join(parts)


def _region(region: _Region, version: int) -> bytes:
    if region.is_empty:
        return varint(0)
    parts = [varint(1), varint(region.values), varint(len(region.ops) << 1 | region.has_arguments)]
    if region.has_arguments:
        parts.append(varint(len(region.arguments)))
        for kind, location in region.arguments:
            has_location = location is not None
            parts.append(varint(kind << 1 | has_location if version >= 4 else kind))
            parts.append(varint(location) if location is not None else b"")
        parts.append(b"\0" if version >= 3 else b"")
    return b"".join([*parts, *(_op(each, version) for each in region.ops)])


def _index(random: Random, known: int, count: int) -> int:
    """Returns another index: rarely one that leads nowhere."""
    return numbers.integer(random, 0, 2**40, known) if random.random() < 0.03 else random.randrange(max(count, 1))


def _change_operands(random: Random, artifact: _Artifact) -> None:
    found = [(op, outer) for op, outer in artifact.walk() if op.operands]
    if not found:
        return
    op, outer = random.choice(found)
    assert op.operands
    place, kind = random.randrange(len(op.operands)), random.random()
    if kind < 0.15:
        del op.operands[place]
    elif kind < 0.3:
        op.operands.insert(place, random.choice(op.operands))
    elif kind < 0.4:
        random.shuffle(op.operands)
    else:
        op.operands[place] = _index(random, op.operands[place], 0 if outer is None else outer.values)


def _change_results(random: Random, artifact: _Artifact) -> None:
    found = [op.results for op, _ in artifact.walk() if op.results]
    arguments = [region.arguments for op, _ in artifact.walk() for region in op.regions or () if region.arguments]
    if arguments and random.random() < 0.3:
        chosen = random.choice(arguments)
        place = random.randrange(len(chosen))
        chosen[place] = _index(random, chosen[place][0], len(artifact.types)), chosen[place][1]
    elif found:
        results = random.choice(found)
        place = random.randrange(len(results))
        results[place] = _index(random, results[place], len(artifact.types))


def _change_op(random: Random, artifact: _Artifact) -> None:
    """Drops, doubles, moves or renames an op, or gives it what another has."""
    ops = list(artifact.walk())
    inside = [(op, outer) for op, outer in ops if outer is not None]
    if not inside:
        return
    op, outer = random.choice(inside)
    other = random.choice(ops)[0]
    assert outer is not None
    kind, place = random.random(), next(at for at, each in enumerate(outer.ops) if each is op)
    if kind < 0.15:
        del outer.ops[place]
    elif kind < 0.25:
        outer.ops.insert(place, replace(op))
    elif kind < 0.35:
        outer.ops.append(outer.ops.pop(place))
    elif kind < 0.6:
        op.name = other.name
    elif kind < 0.8:
        op.properties = other.properties
    elif kind < 0.9:
        op.attributes = other.attributes
    else:
        op.regions, op.is_isolated = other.regions if not _holds(other, op) else None, other.is_isolated


def _holds(outer: _Op, op: _Op) -> bool:
    pending = [outer]
    while pending:
        each = pending.pop()
        if each is op:
            return True
        pending += [inner for region in each.regions or () for inner in region.ops]
    return False


def _change_properties(random: Random, artifact: _Artifact) -> None:
    """Replaces one of an op's properties by an attribute, mostly one of the same kind."""
    if not artifact.blobs:
        return _change_entry(random, artifact)
    place = random.randrange(len(artifact.blobs))
    found = _numbers(artifact.blobs[place])
    if found:
        at = random.randrange(len(found))
        old = artifact.attributes[found[at]][2][:1] if found[at] < len(artifact.attributes) else b""
        alike = [index for index, (_, _, data) in enumerate(artifact.attributes) if data[:1] == old]
        is_alike = alike and random.random() < 0.7
        found[at] = random.choice(alike) if is_alike else _index(random, found[at], len(artifact.attributes))
        artifact.blobs[place] = varints(*found)
    return None


def _change_entry(random: Random, artifact: _Artifact) -> None:
    """Changes a type or an attribute: a number of it, or all of it."""
    entries = random.choice((artifact.types, artifact.attributes))
    place = random.randrange(len(entries))
    dialect, flag, data = entries[place]
    found = _numbers(data)
    if random.random() < 0.15:
        entries[place] = random.choice(entries)
    elif found is None or len(found) < 2:
        entries[place] = dialect, flag, numbers.content(random, data)
    else:
        at = random.randrange(1, len(found))  # The first says what it is.
        found[at] = numbers.integer(random, 0, 2**64 - 1, found[at])
        entries[place] = dialect, flag, varints(*found)


def _numbers(data: bytes) -> list[int] | None:
    """Returns the numbers that these bytes are, `None` if they are others."""
    cursor, found = Cursor(data), []
    try:
        while cursor.left:
            found.append(cursor.varint())
    except ConversionError:
        return None
    return found


Change = Callable[[Random, _Artifact], None]

_CHANGES: dict[Change, int] = {
    _change_operands: 3,
    _change_results: 3,
    _change_op: 3,
    _change_properties: 4,
    _change_entry: 4,
}
