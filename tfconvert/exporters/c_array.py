"""C and C++ source that holds a model as an array, as programs for microcontrollers include it.

Its comment has lines of C++ that run the model in tflite-micro: its operators, and the memory that it needs.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tfconvert.exporters.output_file import C_SOURCES, Write, write_whole
from tfconvert.schema.diagnostics import error, printable
from tfconvert.schema.tflite.arena import ArenaStep, Schedule, bytes_of, schedule_of
from tfconvert.schema.tflite.compiled_model import Table
from tfconvert.schema.tflite.operators import filters, having
from tfconvert.schema.tflite.reader import View, read_model

_CUSTOM_METHODS = {
    "CIRCULAR_BUFFER": "CircularBuffer",
    "TFLite_Detection_PostProcess": "DetectionPostprocess",
    "ethos-u": "EthosU",
}

# The alignment of tensors; which part is added, since kernels differ; and bytes that the interpreter keeps with its
# reference kernels on a 64-bit processor: for itself, for a tensor, for an operator, for a channel of weights.
_ALIGNMENT = 16
_MARGIN = 20
_FIXED = 1536
_OF_TENSOR = 24
_OF_OPERATOR = 168
_OF_CHANNEL = 8

# Bytes that planning the memory takes for a tensor, and again for a computed one, where tensors are afterwards.
_OF_PLAN = 48

# Operators that sum up integers in 32 bits beside their result, and the one that keeps its operands transposed.
_SUMS = ("TRANSPOSE_CONV", "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
_TURNED = "BATCH_MATMUL"

# Bytes that the interpreter keeps for a variable, besides its value.
_OF_VARIABLE = 32

# Bytes that the interpreter keeps more for some operators.
_MORE = {"CONCATENATION": 384, "UNIDIRECTIONAL_SEQUENCE_LSTM": 1024}


class MicroProgram(NamedTuple):
    """The needs of a program for a model."""

    operators: tuple[str, ...]  # Its operators, each once.
    custom: tuple[str, ...]  # Its custom operators.
    arena: int  # The bytes of memory for tensors, and for what the interpreter keeps; an estimate.
    variables: int = 0  # The number of variables, which the interpreter doesn't make by itself.
    # The inputs with dynamic sizes, each with its sizes in the file and those of the estimate.
    dynamic: tuple[str, ...] = ()

    @property
    def operator_count(self) -> int:
        """How many operators the resolver must have room for."""
        return sum(each.lower() in having("micro") for each in self.operators) + len(self.custom)

    def lines(self, name: str) -> Iterator[str]:
        """Yields the lines of C++.

        Args:
            name: The array's name, with which all names begin.
        """
        yield "// For tflite-micro:"
        yield f"//   tflite::MicroMutableOpResolver<{self.operator_count}> resolver;"
        yield f"//   {name}_add_operators(resolver);"
        yield f"//   alignas({_ALIGNMENT}) static uint8_t arena[{name}_arena_size];"
        memory = f"arena, {name}_arena_size"
        if self.variables:
            yield f"//   auto* allocator = tflite::MicroAllocator::Create({memory});"
            yield f"//   auto* variables = tflite::MicroResourceVariables::Create(allocator, {name}_variable_count);"
            memory = "allocator, variables"
        yield f"//   tflite::MicroInterpreter interpreter(tflite::GetModel({name}), resolver, {memory});"
        yield f"constexpr unsigned int {name}_operator_count = {self.operator_count};"
        if self.variables:
            yield "// An interpreter needs them to allocate tensors: tensorflow/lite/micro/micro_resource_variable.h"
            yield f"constexpr unsigned int {name}_variable_count = {self.variables};"
        yield ""
        if self.dynamic:
            yield "// WARNING: the model has dynamic sizes, and tflite-micro can't resize inputs. The estimate is for:"
            yield from (f"//   {each}" for each in self.dynamic)
            yield "// Convert the model with fixed sizes (--batch, --input-shape) to run it with others."
        yield "// An estimate, for reference kernels; `arena_used_bytes()` of an interpreter tells what it needs."
        yield f"constexpr unsigned int {name}_arena_size = {self.arena};"
        yield ""
        yield "template <typename Resolver>"
        yield f"void {name}_add_operators(Resolver& resolver) {{"
        yield from (f"  {each}" for each in self._calls())
        yield "}"

    def _calls(self) -> Iterator[str]:
        for each in self.operators:
            method = having("micro").get(each.lower())
            name = method or "".join(part.title() for part in each.split("_"))
            yield f"// {each}: tflite-micro does not have it." if method is None else f"resolver.Add{name}();"
        for each in self.custom:
            known = _CUSTOM_METHODS.get(each)
            yield f"resolver.Add{known}();" if known else f'// resolver.AddCustom("{each}", ...): a custom operator.'
        if not self.operators and not self.custom:
            yield "(void)resolver;"


def micro_program(content: bytes | memoryview) -> MicroProgram:
    """Returns what a program needs for a model.

    Args:
        content: The model's file.
    """
    model = read_model(content)
    codes = [(code.name("builtin_code") or "", code["custom_code"] or "") for code in model["operator_codes"] or ()]
    names = [name for name, _ in codes]
    subgraphs: Sequence[View] = model["subgraphs"] or ()
    buffers: Sequence[View] = model["buffers"] or ()

    def is_constant(tensor: Table) -> bool:
        index = tensor["buffer"]
        return index < len(buffers) and bool(buffers[index]["size"] or _length(buffers[index]["data"]))

    variables: dict[str, int] = {}
    for name, size in (each for subgraph in subgraphs for each in _variables(subgraph, names)):
        variables[name] = max(size, variables.get(name, 0))
    arena = _FIXED + sum(_OF_VARIABLE + size for size in variables.values())
    for subgraph in subgraphs:
        schedule = _with_scratch(schedule_of(subgraph, is_constant, _ALIGNMENT), subgraph, names)
        planned = schedule.arena()
        planning = _OF_PLAN * (len(subgraph["tensors"] or ()) + sum(size > 0 for size in schedule.sizes))
        arena += max(schedule.peak() if planned is None else planned, planning) + _kept(subgraph, names)
    return MicroProgram(
        tuple(sorted({name for name, custom in codes if not custom})),
        tuple(sorted({custom for _, custom in codes if custom})),
        -(-(arena + arena // _MARGIN) // _ALIGNMENT) * _ALIGNMENT,
        len(variables),
        tuple(_dynamic(subgraphs[0])) if subgraphs else (),
    )


def _variables(subgraph: View, names: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yields the names of the variables of a subgraph, and the bytes that one that is read or assigned holds."""
    handles: dict[int, str] = {}
    for call in subgraph["operators"] or ():
        name = names[call["opcode_index"]]
        if name == "VAR_HANDLE":
            options: View | None = call["builtin_options"]
            handle = handles[int(call["outputs"][0])] = ("" if options is None else options["shared_name"]) or ""
            yield handle, 0
        elif name in ("ASSIGN_VARIABLE", "READ_VARIABLE") and int(call["inputs"][0]) in handles:
            held = call["inputs"][1] if name == "ASSIGN_VARIABLE" else call["outputs"][0]
            yield handles[int(call["inputs"][0])], _bytes(_tensor(subgraph, held))


def _dynamic(subgraph: View) -> Iterator[str]:
    """Yields the inputs with dynamic sizes."""
    for index in () if subgraph["inputs"] is None else subgraph["inputs"]:
        tensor = _tensor(subgraph, index)
        signature, shape = tensor["shape_signature"], tensor["shape"]
        if signature is not None and any(size < 0 for size in signature):
            sizes = ",".join("?" if size < 0 else str(size) for size in signature)
            yield f"{printable(tensor['name'] or '')} [{sizes}] as [{','.join(map(str, shape))}]"


def _length(data: Sequence[int] | None) -> int:
    return 0 if data is None else len(data)


def _with_scratch(schedule: Schedule, subgraph: View, names: Sequence[str]) -> Schedule:
    """Returns a schedule as tflite-micro has it: inputs end with their last use, and kernels have scratch memory."""
    sizes = list(schedule.sizes)
    steps = [ArenaStep((), schedule.inputs)]
    for call, step in zip(subgraph["operators"] or (), schedule.steps, strict=True):
        own = [*step.results]
        result = _tensor(subgraph, call["outputs"][0]) if names[call["opcode_index"]] in _SUMS else None
        if result is not None and result.name("type") in ("INT8", "INT16"):
            own.append(len(sizes))
            sizes.append(_bytes(result, "INT32"))
        steps.append(ArenaStep(step.operands, own))
    return Schedule(sizes, steps, (), schedule.outputs)


def _kept(subgraph: View, names: Sequence[str]) -> int:
    """Returns the bytes that the interpreter keeps for a subgraph."""
    calls = subgraph["operators"] or ()
    total = len(subgraph["tensors"] or ()) * _OF_TENSOR + len(calls) * _OF_OPERATOR
    for call in calls:
        name = names[call["opcode_index"]]
        row = filters().get(name.lower())
        if row is not None:
            # For each output channel, there are a multiplier and a shift.
            shape = _tensor(subgraph, call["inputs"][row.operand])["shape"]
            axis = row.output_axis
            total += _OF_CHANNEL * (int(shape[axis]) if shape is not None and len(shape) > axis else 1)
        if name == _TURNED:
            options: View | None = call["builtin_options"]
            is_turned = options is not None and options["adj_x"], options is None or not options["adj_y"]
            turned = [index for index, turns in zip(call["inputs"], is_turned, strict=True) if turns]
            total += sum(_bytes(_tensor(subgraph, index)) for index in turned)
        total += _MORE.get(name, 0)
    return total


def _tensor(subgraph: View, index: int) -> View:
    found: View = subgraph["tensors"][int(index)]
    return found


def _bytes(tensor: View, type_name: str = "") -> int:
    shape = tensor["shape"]
    sizes = () if shape is None else [int(size) for size in shape]
    return bytes_of(sizes, type_name or tensor.name("type") or "FLOAT32", _ALIGNMENT)


ALIGNMENT = 16
"""Alignment of the array in bytes: the runtime reads tensors in place."""

# Bytes in a line of source.
_LINE = 16

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MADE = b"// A model for LiteRT, made by tfconvert; changes are lost when it is made again.\n"


class CArray(NamedTuple):
    """An array to be written."""

    file: Path  # The source file, or the header if the array goes there.
    header: Path | None  # The header that declares the array; `None` if the file is a header itself.
    name: str  # The array's name; its length has the same name with `_len`.

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
