"""Files of `jax.export`: a FlatBuffer with a portable artifact, and the names in the trees of arguments and results.

The file has no identifier. It is recognized by its structure: a table that has an artifact where `Exported` has it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfconvert.importers.stablehlo.bytecode import MAGIC
from tfconvert.importers.stablehlo.interface import Path
from tfconvert.schema.diagnostics import ConversionError, error

# The fields of the table `Exported`.
_ARGUMENTS, _RESULTS, _PLATFORMS, _MODULE, _KEPT, _DEVICES = 2, 4, 9, 13, 15, 18

# The fields of the table `PyTreeDef`, and its kinds.
_KIND, _CHILDREN, _NAMES = 0, 1, 2
_LEAF, _NONE, _DICTIONARY = 0, 1, 4

# Limits on trees, which may share children.
_MAX_NODES = 1 << 17
_MAX_DEPTH = 100


@dataclass(slots=True)
class Export:
    """The contents of a file.

    Attributes:
        module: The artifact.
        arguments: The paths of the arguments that the module has.
        results: The paths of the results.
        platforms: The platforms that it was exported for, in lower case.
    """

    module: memoryview
    arguments: list[Path]
    results: list[Path]
    platforms: list[str]


def is_export(data: memoryview) -> bool:
    """Returns whether bytes are such a file."""
    try:
        module = _root(data).blob(_MODULE)
    except (struct.error, ConversionError):
        return False
    return module is not None and bytes(module[: len(MAGIC)]) == MAGIC


def read_export(data: memoryview, name: str) -> Export:
    """Returns the contents of a file that `is_export` accepts.

    Args:
        data: The file.
        name: Its name in errors.

    Raises:
        ConversionError: It is damaged (`malformed-artifact`), or for several devices (`unsupported-artifact`).
    """
    try:
        return _read(data)
    except struct.error:
        told = _malformed("a table or a list of the file ends outside of it").diagnostics[0]
    except ConversionError as problem:
        (told,) = problem.diagnostics
    raise ConversionError([told._replace(location=name)])


def _malformed(message: str) -> ConversionError:
    return error("malformed-artifact", message, hint="export the function again")


def _read(data: memoryview) -> Export:
    root = _root(data)
    module = root.blob(_MODULE)
    assert module is not None
    devices = root.number(_DEVICES, "<I") or 1
    if devices > 1:
        raise error(
            "unsupported-artifact",
            f"the function was exported for {devices} devices",
            hint="export it for one device, without shardings",
        )
    arguments = [argument_path(path) for path in _paths(root.table(_ARGUMENTS))]
    kept = root.numbers(_KEPT)
    if any(index >= len(arguments) for index in kept):
        raise _malformed("the file keeps an argument that the function doesn't have")
    results = [("result", *path) for path in _paths(root.table(_RESULTS))]
    platforms = [name.lower() for name in root.strings(_PLATFORMS)]
    return Export(module, [arguments[index] for index in kept], results, platforms)


def argument_path(path: Path) -> Path:
    """Returns the path of an argument: its name, and the keys in it.

    Args:
        path: The path in a pair of positional and named arguments.
    """
    place, name, *keys = (*path, 0, 0)[: max(2, len(path))]
    return (f"arg{name}" if place == 0 else str(name), *keys)


def _paths(tree: _Table | None) -> list[Path]:
    """Returns the paths of a tree's leaves: keys of dictionaries, and numbers in all other containers."""
    paths: list[Path] = []
    pending: list[tuple[_Table, Path]] = [] if tree is None else [(tree, ())]
    nodes = 0
    while pending:
        node, path = pending.pop()
        kind = node.number(_KIND, "<B")
        if kind == _LEAF:
            paths.append(path)
        elif kind != _NONE:
            children = list(node.tables(_CHILDREN))
            nodes += len(children)
            if nodes > _MAX_NODES or len(path) > _MAX_DEPTH:
                raise _malformed("the tree of arguments or results is too large")
            keys: Sequence[str | int] = node.strings(_NAMES) if kind == _DICTIONARY else range(len(children))
            if len(keys) != len(children):
                raise _malformed("a dictionary of the file has another number of keys than of values")
            pending += reversed([(child, (*path, key)) for child, key in zip(children, keys, strict=True)])
    return paths


def _root(data: memoryview) -> _Table:
    return _Table(data, _unpack(data, "<I", 0))


def _unpack(data: memoryview, form: str, position: int) -> int:
    if position < 0:
        raise _malformed("a table of the file begins before it")
    (number,) = struct.unpack_from(form, data, position)
    assert isinstance(number, int)
    return number


class _Table:
    """A table of a FlatBuffer; each read is checked against the end of the bytes."""

    __slots__ = ("_data", "_fields", "_position", "_size")

    def __init__(self, data: memoryview, position: int) -> None:
        self._data = data
        self._position = position
        self._fields = position - _unpack(data, "<i", position)
        self._size = _unpack(data, "<H", self._fields)

    def number(self, field: int, form: str) -> int:
        """Returns a number, 0 if it is absent."""
        place = self._place(field)
        return 0 if place is None else _unpack(self._data, form, place)

    def table(self, field: int) -> _Table | None:
        """Returns a table, `None` if it is absent."""
        place = self._place(field)
        return None if place is None else _Table(self._data, self._target(place))

    def blob(self, field: int) -> memoryview | None:
        """Returns a vector of bytes, `None` if it is absent."""
        place = self._place(field)
        return None if place is None else self._bytes(self._target(place))

    def numbers(self, field: int) -> list[int]:
        """Returns a vector of numbers of 16 bits, empty if it is absent."""
        return [_unpack(self._data, "<H", place) for place in self._elements(field, 2)]

    def strings(self, field: int) -> list[str]:
        """Returns a vector of strings, empty if it is absent."""
        places = self._elements(field, 4)
        return [bytes(self._bytes(self._target(place))).decode("utf-8", "replace") for place in places]

    def tables(self, field: int) -> Iterator[_Table]:
        """Yields the tables of a vector, none if it is absent."""
        for place in self._elements(field, 4):
            yield _Table(self._data, self._target(place))

    def _place(self, field: int) -> int | None:
        entry = 4 + 2 * field
        if entry + 2 > self._size:
            return None
        offset = _unpack(self._data, "<H", self._fields + entry)
        return self._position + offset if offset else None

    def _target(self, place: int) -> int:
        return place + _unpack(self._data, "<I", place)

    def _bytes(self, position: int) -> memoryview:
        size = _unpack(self._data, "<I", position)
        found = self._data[position + 4 : position + 4 + size]
        if len(found) != size:
            raise _malformed("a list of the file ends outside of it")
        return found

    def _elements(self, field: int, size: int) -> range:
        """Returns the positions of a vector's elements."""
        place = self._place(field)
        if place is None:
            return range(0)
        start = self._target(place)
        count = _unpack(self._data, "<I", start)
        if start + 4 + count * size > len(self._data):
            raise _malformed("a list of the file ends outside of it")
        return range(start + 4, start + 4 + count * size, size)
