"""Archives as nobody packs a model: each with the code of the error that it is refused with."""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial

# A GraphDef of one node.
GRAPH = b"\x0a\x12\x0a\x01x\x12\x0bPlaceholder\x1a\x00"

# Files that look like a SavedModel.
MODEL = {"saved_model.pb": b"\x08\x01\x12\x02\x0a\x00", "variables/variables.index": b"index", "assets/words.txt": b"a"}

_BOMB = 68_000_000

Member = tuple[str, bytes]


def zipped(members: Iterable[Member] | Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Returns a zip."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive, warnings.catch_warnings(action="ignore"):
        for name, content in members.items() if isinstance(members, Mapping) else members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return stream.getvalue()


def zip_entry(name: str, mode: int = 0, content: bytes = b"", **fields: int) -> bytes:
    """Returns a zip of one entry with a mode of Unix, and other fields of its header."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = mode << 16
        archive.writestr(entry, content)
        for field, value in fields.items():
            setattr(entry, field, value)
    return stream.getvalue()


def tarred(members: Iterable[Member] | Mapping[str, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:
    """Returns a tar."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=format) as archive:
        for name, content in members.items() if isinstance(members, Mapping) else members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def tar_entry(name: str, kind: bytes, target: str = "") -> bytes:
    """Returns a tar of a model, and one entry of a kind."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.type = kind
        entry.linkname = target
        archive.addfile(entry)
    return stream.getvalue()


def tar_header(name: bytes, size: bytes, kind: bytes = b"0") -> bytes:
    """Returns a header of a tar with any bytes as the size."""
    header = bytearray(name.ljust(100, b"\0") + b"0000644\0" * 3 + size.ljust(12, b"\0") + b"00000000000\0" + b" " * 8)
    header += kind + bytes(100) + b"ustar\x0000" + bytes(247)
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def _claiming(size: int) -> bytes:
    """Returns a zip whose entry claims another size than it has."""
    data = bytearray(zipped({"saved_model.pb": b"x" * 100}))
    at = data.index(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", size)
    return bytes(data)


def _overlapping() -> bytes:
    """Returns a zip whose entries are all the same bytes."""
    data = zipped({f"a{number}": bytes(1000) if not number else b"" for number in range(4)})
    directory = data.index(b"PK\x01\x02")
    first, rest = data[:directory], bytearray(data[directory:])
    size = struct.unpack_from("<II", rest, 20)
    at = 0
    for _ in range(4):
        struct.pack_into("<II", rest, at + 20, *size)
        struct.pack_into("<I", rest, at + 42, 0)
        at += 46 + 2
    return first + bytes(rest)


def _encrypted() -> bytes:
    data = bytearray(zipped({"saved_model.pb": b"x"}))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def _many_headers() -> bytes:
    pax = b"".join(b"%d k%07d=%s\n" % (len(value) + 14, number, value) for number, value in [(1, b"v" * 900_000)])
    return (tar_header(b"x", b"%011o" % len(pax), b"g") + pax.ljust(-(-len(pax) // 512) * 512, b"\0")) * 100


def _chain() -> bytes:
    return (tar_header(b"x", b"%011o" % 9, b"x") + b"9 a=bcde\n".ljust(512, b"\0")) * 3000


_LINKS = {
    "symbolic": zip_entry("variables", stat.S_IFLNK | 0o777, b"/etc"),
    "pipe": zip_entry("saved_model.pb", stat.S_IFIFO),
    "device": zip_entry("saved_model.pb", stat.S_IFCHR),
}
_KINDS = {
    "symbolic": tarfile.SYMTYPE,
    "hard": tarfile.LNKTYPE,
    "pipe": tarfile.FIFOTYPE,
    "device": tarfile.CHRTYPE,
    "block-device": tarfile.BLKTYPE,
    "unknown": b"Z",
}
_NAMES = {
    "absolute": ["/etc/passwd"],
    "parent": ["../x"],
    "inner-parent": ["variables/../../x"],
    "only-parent": [".."],
    "backslash": ["variables\\..\\..\\x"],
    "newline": ["a\nb"],
    "escape": ["a\x1b[2J"],
    "override": ["a\u202eb"],
    "twice": ["x", "x"],
    "twice-normalized": ["./x", "x"],
    "file-and-folder": ["x", "x/y"],
    "folder-and-file": ["x/y", "x"],
    "case": ["Words.txt", "words.txt"],
    "case-of-folders": ["A/x", "a/y"],
    "unicode-spelling": ["\u00e9", "e\u0301"],
    "long": ["x" * 300],
    "deep": ["x/" * 40 + "y"],
    "long-path": ["/".join(["x" * 200] * 20)],
}

# By name: the code of the error, and the archive.
ARCHIVES: Mapping[str, tuple[str, Callable[[], bytes]]] = {
    **{f"zip-link-{name}": ("bad-archive", partial(bytes, data)) for name, data in _LINKS.items()},
    **{
        f"tar-link-{name}": ("bad-archive", partial(tar_entry, "variables", kind, "/etc"))
        for name, kind in _KINDS.items()
    },
    **{
        f"zip-name-{case}": ("bad-archive", partial(zipped, [(name, b"") for name in names]))
        for case, names in _NAMES.items()
    },
    **{
        f"tar-name-{case}": ("bad-archive", partial(tarred, [(name, b"") for name in names]))
        for case, names in _NAMES.items()
    },
    "gnu-name": ("bad-archive", lambda: tarred([("x" * 300, b"")], tarfile.GNU_FORMAT)),
    "name-of-bytes": ("bad-archive", lambda: tar_header(b"\xff\xfe", b"00000000000") + bytes(1024)),
    "zip-bomb": ("archive-too-large", lambda: zipped({"saved_model.pb": bytes(_BOMB)})),
    "zip-bomb-of-many": ("archive-too-large", lambda: zipped([(f"{n}", bytes(1_000_000)) for n in range(70)])),
    "zip-overlapping": ("bad-archive", _overlapping),
    "zip-claims-less": ("bad-archive", lambda: _claiming(3)),
    "zip-claims-all": ("archive-too-large", lambda: _claiming(0xFFFFFFFE)),
    "zip-encrypted": ("bad-archive", _encrypted),
    "zip-bzip2": ("bad-archive", lambda: zipped({"saved_model.pb": b"x"}, zipfile.ZIP_BZIP2)),
    "zip-lzma": ("bad-archive", lambda: zipped({"saved_model.pb": b"x"}, zipfile.ZIP_LZMA)),
    "zip-many": ("archive-too-large", lambda: zipped([(f"{number}", b"") for number in range(1001)])),
    "zip-empty": ("unknown-model", lambda: zipped({})),
    "zip-truncated": ("bad-archive", lambda: zipped(MODEL)[:-30]),
    "zip-beginning": ("bad-archive", lambda: b"PK\x03\x04"),
    "zip-wrong-sum": ("bad-archive", lambda: zipped(MODEL, zipfile.ZIP_STORED).replace(b"index", b"other", 1)),
    "tar-bomb": ("archive-too-large", lambda: gzip.compress(tarred({"saved_model.pb": bytes(_BOMB)}), 1)),
    "tar-bomb-left-out": ("archive-too-large", lambda: gzip.compress(tarred({"__MACOSX/x": bytes(_BOMB)}), 1)),
    "tar-bomb-behind": ("bad-archive", lambda: gzip.compress(tarred(MODEL) + bytes(_BOMB), 6)),
    "tar-many": ("archive-too-large", lambda: gzip.compress(tarred([(f"{n}", b"") for n in range(1001)]))),
    "tar-headers": ("bad-archive", lambda: gzip.compress(_many_headers(), 1)),
    "tar-pax-of-gigabytes": ("bad-archive", lambda: tar_header(b"x", b"20000000000", b"x") + bytes(2048)),
    "tar-pax-chain": ("bad-archive", _chain),
    "tar-negative-size": ("bad-archive", lambda: tar_header(b"x", b"\xff" * 12) + bytes(1024)),
    "tar-huge-size": ("bad-archive", lambda: tar_header(b"x", b"\x80" + b"\x7f" * 11) + bytes(1024)),
    "tar-truncated": ("bad-archive", lambda: tarred(MODEL)[:700]),
    "tar-cut-between-entries": ("bad-archive", lambda: tarred(MODEL)[:1024]),
    "tar-wrong-sum": ("bad-archive", lambda: tarred(MODEL).replace(b"variables/", b"variabled/", 1)),
    "tar-empty": ("unknown-model", lambda: gzip.compress(bytes(1024))),
    "gz-truncated": ("bad-archive", lambda: gzip.compress(tarred(MODEL))[:-20]),
    "gz-wrong-sum": ("bad-archive", lambda: gzip.compress(tarred(MODEL))[:-8] + bytes(8)),
    "gz-garbage-behind": ("bad-archive", lambda: gzip.compress(tarred(MODEL)) + b"x" * 100),
    "gz-name-without-end": ("bad-archive", lambda: b"\x1f\x8b\x08\x08" + bytes(6) + b"x" * 100_000),
    "gz-of-no-tar": ("bad-archive", lambda: gzip.compress(GRAPH * 100)),
    "xz": ("bad-archive", lambda: b"\xfd7zXZ\x00\x00"),
    "bzip2": ("bad-archive", lambda: b"BZh91AY"),
    "keras": ("keras-file", lambda: zipped({"metadata.json": b"{}", "config.json": b"{}", "model.weights.h5": b""})),
    "keras-in-other-order": ("keras-file", lambda: zipped({"x": b"", "config.json": b"{}", "metadata.json": b"{}"})),
    "keras-in-an-archive": ("keras-file", lambda: tarred({"a/model.keras": b"", "a/notes.txt": b""})),
    "hdf5": ("keras-file", lambda: b"\x89HDF\r\n\x1a\n" + bytes(100)),
    "hdf5-in-an-archive": ("keras-file", lambda: zipped({"model.h5": b""})),
    "two-models": ("unknown-model", lambda: zipped({"a.pb": GRAPH, "b.pb": GRAPH})),
    "two-folders": ("unknown-model", lambda: zipped({"a/saved_model.pb": b"", "b/saved_model.pb": b""})),
    "no-model": ("unknown-model", lambda: tarred({"notes.txt": b""})),
    "empty-file": ("foreign-format", lambda: b""),
    "text": ("unknown-model", lambda: b"hello, this is no model\n"),
    "python": ("unknown-model", lambda: b"import os\nos.system('true')\n"),
    "pickle": ("foreign-format", lambda: b"\x80\x04\x95\x10\x00\x00\x00"),
    "zeros": ("unknown-model", lambda: bytes(5000)),
    "elf": ("unknown-model", lambda: b"\x7fELF\x02\x01\x01" + bytes(100)),
    "html": ("foreign-format", lambda: b"<!doctype html><title>404</title>"),
    "cut-message": ("unknown-model", lambda: GRAPH[:-5]),
}
