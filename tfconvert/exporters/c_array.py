"""C and C++ source that holds a model as an array, as programs for microcontrollers include it."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tfconvert.exporters.micro_program import micro_program
from tfconvert.exporters.output_file import C_SOURCES, Write, write_whole
from tfconvert.schema.diagnostics import error

ALIGNMENT = 16
"""Alignment of the array in bytes: the runtime reads tensors in place."""

# Bytes in a line of source.
_LINE = 16

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MADE = b"// A model for LiteRT, made by tfconvert; changes are lost when it is made again.\n"


class CArray(NamedTuple):
    """An array to be written.

    Attributes:
        file: The source file, or the header if the array goes there.
        header: The header that declares the array; `None` if the file is a header itself.
        name: The array's name; its length has the same name with `_len`.
    """

    file: Path
    header: Path | None
    name: str

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are written."""
        return (self.file,) if self.header is None else (self.header, self.file)

    def save(self, size: int, write: Write) -> None:
        """Writes the files atomically.

        Args:
            size: The number of bytes.
            write: Writes them to a file.

        Raises:
            ConversionError: A file can't be written (`output-not-writable`), or the length is more than C's `unsigned
                int` holds (`too-large`).
        """
        if size >= 2**32:
            raise error("too-large", f"a model of {size} bytes doesn't fit a C array", hint="write a .tflite file")
        model = io.BytesIO()
        write(model)
        program = "".join([f"{line}\n" for line in micro_program(model.getvalue()).lines(self.name)])
        if self.header is not None:
            header = self._header(self.header.name, program)
            write_whole(self.header, lambda stream: _write(stream, header))
        write_whole(self.file, lambda stream: self._array(stream, model.getbuffer(), "" if self.header else program))

    def _header(self, file_name: str, program: str) -> bytes:
        guard = f"TFCONVERT_{re.sub('[^A-Za-z0-9]', '_', file_name).upper()}_"
        return _MADE + (
            f"#ifndef {guard}\n#define {guard}\n\n"
            '#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
            f"extern const unsigned char {self.name}[];\nextern const unsigned int {self.name}_len;\n\n"
            f"#ifdef __cplusplus\n}}\n\n{program}#endif\n\n#endif  // {guard}\n"
        ).encode(errors="backslashreplace")

    def _array(self, stream: BinaryIO, model: memoryview, program: str) -> None:
        static = "static " if self.header is None else ""
        head = "#pragma once\n\n" if self.header is None else f'#include "{self.header.name}"\n\n'
        head += "#ifndef __cplusplus\n#include <stdalign.h>\n#endif\n\n"
        head += f"alignas({ALIGNMENT}) {static}const unsigned char {self.name}[] = {{\n"
        stream.write(_MADE + head.encode(errors="backslashreplace"))
        lines = _Lines(stream)
        lines.write(model)
        lines.finish()
        stream.write(f"}};\n{static}const unsigned int {self.name}_len = {len(model)}U;\n".encode())
        if program:
            stream.write(f"\n#ifdef __cplusplus\n{program}#endif\n".encode())


class _Lines:
    """A file of bytes that become lines of numbers."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._left = b""

    def write(self, data: bytes | memoryview) -> None:
        """Writes the full lines; the rest is kept for the next block."""
        block = memoryview(data).cast("B") if self._left == b"" else memoryview(self._left + bytes(data))
        whole = len(block) - len(block) % _LINE
        for start in range(0, whole, _LINE):
            self._stream.write(_line(block[start : start + _LINE]))
        self._left = bytes(block[whole:])

    def finish(self) -> None:
        """Writes the last line."""
        if self._left:
            self._stream.write(_line(memoryview(self._left)))


def _line(data: memoryview) -> bytes:
    return b"  0x" + data.hex(",").replace(",", ", 0x").encode() + b",\n"


def _write(stream: BinaryIO, content: bytes) -> None:
    stream.write(content)


def _identifier(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return f"_{name}" if name[:1].isdigit() else name


def c_array(path: str | os.PathLike[str], name: str | None = None) -> CArray:
    """Returns the array for a file of C or C++ source.

    Args:
        path: The file; a source file gets a header of the same name with `.h`.
        name: The array's name; by default `g_` and the file's name without its extension.

    Raises:
        ConversionError: C does not allow the name (`wrong-option`).
    """
    file = Path(path)
    header = file.with_suffix(".h") if file.suffix.lower() in C_SOURCES else None
    if name is None:
        name = f"g_{_identifier(file.stem)}"
    if not _NAME.fullmatch(name):
        raise error(
            "wrong-option",
            f"{name!r} can't be the name of a C array",
            hint="use letters, digits and underscores, with a letter first",
        )
    return CArray(file, header, name)
