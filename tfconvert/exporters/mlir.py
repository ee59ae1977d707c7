"""IR to MLIR text, and StableHLO modules with weights that are copied while the text is written.

    {-# dialect_resources: {builtin: {w0: "0x40000000...", ...}} #-}

Each weight is a resource at the end of the text, or stands where it is used.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, ClassVar, TextIO

import numpy as np

from tfconvert.exporters.output_file import Parts, write_whole
from tfconvert.exporters.safetensors import PARAMETERS, Safetensors
from tfconvert.schema.dialects import dense_text, tensor_data
from tfconvert.schema.dialects.expressions import SplatSource
from tfconvert.schema.dialects.func import INITIAL, STATE, WEIGHT, FuncOp
from tfconvert.schema.dialects.printing import IRPrinter, print_module
from tfconvert.schema.dialects.tensor_data import Constant, TensorData
from tfconvert.schema.dialects.tf_saved_model import OTHER_NAMES
from tfconvert.schema.dialects.types import I1
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import DictionaryAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FloatType, IntegerType


def write_mlir(module: ModuleOp, stream: TextIO, *, elide: int | None = None, locations: bool = False) -> None:
    """Prints a module.

    Args:
        module: The module.
        stream: Where to.
        elide: Constants of more elements are left out, after which tools can't parse the text; `None` prints
            everything.
        locations: Whether to print the locations of ops.
    """
    print_module(module, stream, elide=elide, locations=locations)


def save_mlir(
    modules: list[ModuleOp], path: str | os.PathLike[str], *, elide: int | None = None, locations: bool = False
) -> None:
    """Writes modules to a file atomically, with `// -----` between them."""

    def write(stream: BinaryIO) -> None:
        text = io.TextIOWrapper(stream, encoding="utf-8", write_through=True)
        write_modules(modules, text, elide=elide, locations=locations)
        text.detach()

    write_whole(path, write)


def write_modules(
    modules: list[ModuleOp], stream: TextIO, *, elide: int | None = None, locations: bool = False
) -> None:
    """Prints modules with `// -----` between them; see `write_mlir`."""
    for number, module in enumerate(modules):
        if number:
            stream.write("// -----\n")
        write_mlir(module, stream, elide=elide, locations=locations)


# Constants up to this many bytes stand where they are used, number by number.
_SMALL = 1024

# Bytes that become digits at a time.
_PIECE = 1 << 20

# The first four bytes of a resource: 64, to which the others are aligned.
_ALIGNMENT = "40000000"

# The attribute that names an argument or a result.
_NAME = "tfconvert.name"

_RENAMED = {"tf_saved_model.index_path": _NAME}
_TARGETS_OWN = ("tf.", "tf_saved_model.", "tfl.", OTHER_NAMES)


class StableHLOText:
    """The text of a module, ready to write.

    Attributes:
        size: Its size in bytes.
        operators: How many ops of each name it has.
        bytes_by_operator: The bytes of constants, by the op that makes them.
        weights: Values of arguments, constant or initial, by name; a file beside the text holds them.
        versions: Versions of ops: always empty.
        min_runtime_version: The first release that reads it: empty, since any does.
        custom_operators: Operators that an app must register: always empty.

    Args:
        module: The module.
        inline: Whether weights stand where they are used, not at the text's end.
    """

    __slots__ = ("_pieces", "bytes_by_operator", "min_runtime_version", "operators", "size", "versions", "weights")

    custom_operators: ClassVar[Mapping[str, int]] = {}

    def __init__(self, module: ModuleOp, *, inline: bool = False) -> None:
        printer = _Printer(inline=inline)
        printer.operation(module)
        printer.write("\n")
        printer.resources()
        self._pieces = _joined(printer.pieces)
        self.weights = _beside(module)
        self.size = sum(len(piece) if isinstance(piece, bytes) else 2 * piece.nbytes for piece in self._pieces)
        ops = [op for op in module.walk() if "." in op.name and op.dialect not in ("builtin", "func")]
        self.operators = Counter(op.name.partition(".")[2] for op in ops)
        self.bytes_by_operator: Counter[str] = Counter()
        for op in ops:
            value = op.properties.get("value")
            if isinstance(value, TensorData):
                self.bytes_by_operator["constant"] += value.nbytes
        self.versions: Mapping[str, int] = {}
        self.min_runtime_version = ""

    def write(self, stream: BinaryIO) -> None:
        """Writes the text."""
        for piece in self._pieces:
            if isinstance(piece, bytes):
                stream.write(piece)
            else:
                for digits in _digits(piece):
                    stream.write(digits)

    @property
    def parts(self) -> Parts:
        """The files of the result: values of arguments, if there are any, and the text."""
        return {**({PARAMETERS: Safetensors(self.weights).write} if self.weights else {}), "": self.write}

    def to_bytes(self) -> bytes:
        """Returns the text."""
        return b"".join(
            digits for piece in self._pieces for digits in ((piece,) if isinstance(piece, bytes) else _digits(piece))
        )


def _attributes(op: Operation) -> Sequence[Attribute]:
    attributes = op.arg_attrs if isinstance(op, FuncOp) else None
    return () if attributes is None else attributes.data


def _beside(module: ModuleOp) -> dict[str, TensorData]:
    """Returns the weights and initial states of functions' arguments, by name."""
    found: dict[str, TensorData] = {}
    for function in module.ops:
        for argument in _attributes(function):
            data = argument.data if isinstance(argument, DictionaryAttr) else {}
            name, value = data.get(WEIGHT) or data.get(STATE), data.get(INITIAL)
            if isinstance(name, StringAttr) and tensor_data.is_constant(value):
                found[name.data] = tensor_data.as_handle(value)
    return found


def _digits(weight: TensorData) -> Iterator[bytes]:
    """Yields the hexadecimal digits of a weight's bytes, block by block."""
    for block in weight.blocks():
        data = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
        for start in range(0, len(data), _PIECE):
            yield data[start : start + _PIECE].tobytes().hex().upper().encode()
        del block, data
    weight.source.release()


def _joined(pieces: Sequence[str | TensorData]) -> list[bytes | TensorData]:
    """Returns pieces with adjacent texts joined."""
    joined: list[bytes | TensorData] = []
    texts: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            texts.append(piece)
        else:
            joined += ["".join(texts).encode(), piece]
            texts.clear()
    return [*joined, "".join(texts).encode()]


class _Printer(IRPrinter):
    """Prints ops, and keeps weights apart.

    Attributes:
        pieces: The text so far, and weights whose digits belong where they are.
    """

    __slots__ = ("_inline", "_named", "pieces")

    def __init__(self, *, inline: bool) -> None:
        super().__init__(io.StringIO())
        self.pieces: list[str | TensorData] = []
        self.write = self.pieces.append
        self._inline = inline
        self._named: dict[TensorData, str] = {}

    def dictionary(self, attributes: Mapping[str, Attribute]) -> None:
        shown = {
            _RENAMED.get(name, name): value
            for name, value in attributes.items()
            if name in _RENAMED or not name.startswith(_TARGETS_OWN)
        }
        super().dictionary(shown)

    def _constant(self, constant: Constant) -> None:
        if not isinstance(constant, TensorData) or not is_weight(constant):
            super()._constant(constant)
            return
        if self._inline:
            self.write('dense<"0x')
            self.pieces.append(constant)
            self.write('"> : ')
        else:
            name = self._named.setdefault(constant, f"w{len(self._named)}")
            self.write(f"dense_resource<{name}> : ")
        self.attribute(constant.type)

    def resources(self) -> None:
        """Prints the weights that the text has named."""
        if not self._named:
            return
        self.write("\n{-#\n  dialect_resources: {\n    builtin: {\n")
        for index, (weight, name) in enumerate(self._named.items()):
            self.write(f'{"," if index else ""}\n      {name}: "0x{_ALIGNMENT}')
            self.pieces.append(weight)
            self.write('"')
        self.write("\n    }\n  }\n#-}\n")


def is_weight(constant: TensorData) -> bool:
    """Returns whether a constant is large, with the same bytes in the text as in memory."""
    element = constant.type.element_type
    if constant.nbytes <= _SMALL or isinstance(constant.source, SplatSource) or element is I1:
        return False
    return isinstance(element, IntegerType | FloatType) and element.width % 8 == 0 and dense_text.can_write(element)
