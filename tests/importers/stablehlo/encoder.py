"""Writes MLIR bytecode piece by piece, so that tests can write what no library would."""

from __future__ import annotations

from collections.abc import Sequence


def varint(value: int) -> bytes:
    """Returns a number of variable length."""
    for size in range(1, 9):
        if value < 1 << (7 * size):
            return ((value << size) | (1 << (size - 1))).to_bytes(size, "little")
    return b"\0" + value.to_bytes(8, "little")


def varints(*values: int) -> bytes:
    return b"".join(map(varint, values))


def signed(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def signeds(values: Sequence[int]) -> bytes:
    """Returns a list of signed numbers with its length."""
    return varint(len(values)) + b"".join(map(signed, values))


def section(identifier: int, data: bytes) -> bytes:
    return bytes([identifier]) + varint(len(data)) + data


def op(
    name: int,
    *,
    attributes: int | None = None,
    properties: int | None = None,
    results: Sequence[int] = (),
    operands: Sequence[int] = (),
    regions: bytes = b"",
) -> bytes:
    """Returns an op with the location of attribute 0."""
    given = (attributes is not None, bool(results), bool(operands), False, bool(regions), False, properties is not None)
    parts = [varint(name), bytes([sum(each << bit for bit, each in enumerate(given))]), varint(0)]
    parts += [varint(each) for each in (attributes, properties) if each is not None]
    parts += [varint(len(each)) + varints(*each) for each in (results, operands) if each]
    return b"".join([*parts, regions])


def region(ops: Sequence[bytes], *, arguments: Sequence[int] = (), values: int = 0) -> bytes:
    """Returns a region of one block, whose arguments have no locations."""
    head = varint(1) + varint(values) + varint(len(ops) << 1 | bool(arguments))
    if arguments:
        head += varint(len(arguments)) + varints(*[each << 1 for each in arguments]) + b"\0"
    return head + b"".join(ops)


def isolated(*regions: bytes) -> bytes:
    """Returns the regions of a module or a function."""
    return varint(len(regions) << 1 | 1) + section(4, b"".join(regions))


class Artifact:
    """An artifact to be written.

    Attributes:
        dialects: The dialects; an index is a position in this list.
        strings: The strings; an index is a position in this list.
        names: The names of ops.
        attributes: The attributes, each its dialect and bytes; the first is the unknown location.
        types: The types.
        properties: The properties of ops.
        version: The version of the container.
        producer: The program that writes it.
    """

    def __init__(self) -> None:
        self.dialects = ["builtin", "vhlo", "sdy"]
        self.strings: list[bytes] = []
        self.names: list[tuple[int, str]] = []
        self.attributes: list[tuple[int, bytes]] = [(0, varint(15))]
        self.types: list[tuple[int, bytes]] = []
        self.properties: list[bytes] = []
        self.version = 6
        self.producer = b"StableHLO_v1.15.0"

    def string(self, text: str) -> int:
        self.strings.append(text.encode())
        return len(self.strings) - 1

    def attribute(self, data: bytes, dialect: int = 1) -> int:
        self.attributes.append((dialect, data))
        return len(self.attributes) - 1

    def text(self, text: str) -> int:
        """Returns the index of a string attribute."""
        return self.attribute(varints(14, self.string(text)))

    def type(self, data: bytes, dialect: int = 1) -> int:
        self.types.append((dialect, data))
        return len(self.types) - 1

    def blob(self, *values: int) -> int:
        """Returns the index of properties that are these attributes."""
        self.properties.append(varints(*values))
        return len(self.properties) - 1

    def name(self, name: str, dialect: int = 1) -> int:
        self.names.append((dialect, name))
        return len(self.names) - 1

    def module(self, functions: Sequence[bytes]) -> bytes:
        """Returns the artifact of a module of functions."""
        return self.of_ops([op(self.name("module", 0), regions=isolated(region(functions)))])

    def function(
        self, ops: Sequence[bytes], arguments: Sequence[int] = (), results: Sequence[int] = (), values: int = 0
    ) -> bytes:
        """Returns the function `main`."""
        kind = self.type(varint(8) + b"".join(varint(len(each)) + varints(*each) for each in (arguments, results)))
        empty = self.attribute(varints(1, 0))
        own = self.blob(empty, self.attribute(varints(17, kind)), empty, self.text("main"), self.text(""))
        body = region(ops, arguments=arguments, values=values)
        return op(self.name("func_v1"), properties=own, regions=isolated(body))

    def of_ops(self, ops: Sequence[bytes]) -> bytes:
        """Returns the artifact of the ops at its top."""
        names = [(dialect, self.string(name)) for dialect, name in self.names]
        dialects = [self.string(each) << 1 for each in self.dialects]
        strings = [each + b"\0" for each in self.strings]
        groups = [varints(dialect, 1, name << 1 | 1) for dialect, name in names]
        entries = [*self.attributes, *self.types]
        offsets = [varints(dialect, 1, len(data) << 1 | 1) for dialect, data in entries]
        return b"".join(
            [
                b"ML\xefR" + varint(self.version) + self.producer + b"\0",
                section(0, varints(len(strings), *[len(each) for each in strings[::-1]]) + b"".join(strings)),
                section(1, varints(len(dialects), *dialects, len(names)) + b"".join(groups)),
                section(2, b"".join([data for _, data in entries])),
                section(3, varints(len(self.attributes), len(self.types)) + b"".join(offsets)),
                section(4, varint(len(ops) << 1) + b"".join(ops)),
                section(8, varint(len(self.properties)) + b"".join(varint(len(e)) + e for e in self.properties)),
            ]
        )
