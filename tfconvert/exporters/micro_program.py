"""Lines of C++ for a program that runs a model in tflite-micro: its operators, and the memory that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tfconvert.schema.diagnostics import printable
from tfconvert.schema.tflite.arena import Schedule, Step, bytes_of, schedule_of
from tfconvert.schema.tflite.compiled_model import Table
from tfconvert.schema.tflite.reader import View, read_model

# The operators that `tflite::MicroMutableOpResolver` has a method for.
_NAMES = """
ABS ADD ADD_N ARG_MAX ARG_MIN ASSIGN_VARIABLE AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND BROADCAST_ARGS
BROADCAST_TO CALL_ONCE CAST CEIL CONCATENATION CONV_2D COS CUMSUM DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE DIV
DYNAMIC_UPDATE_SLICE ELU EMBEDDING_LOOKUP EQUAL EXP EXPAND_DIMS FILL FLOOR FLOOR_DIV FLOOR_MOD FULLY_CONNECTED
GATHER GATHER_ND GREATER GREATER_EQUAL HARD_SWISH IF L2_NORMALIZATION L2_POOL_2D LEAKY_RELU LESS LESS_EQUAL LOG
LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC LOG_SOFTMAX MAXIMUM MAX_POOL_2D MEAN MINIMUM MIRROR_PAD MUL NEG
NOT_EQUAL PACK PAD PADV2 PRELU QUANTIZE READ_VARIABLE REDUCE_ALL REDUCE_MAX REDUCE_MIN RELU RELU6 RESHAPE
RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 ROUND RSQRT SELECT_V2 SHAPE SIN SLICE SOFTMAX SPACE_TO_BATCH_ND
SPACE_TO_DEPTH SPLIT SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM SVDF TANH TRANSPOSE
TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK VAR_HANDLE WHILE ZEROS_LIKE
"""
_OPERATORS = frozenset(_NAMES.split())
_METHODS = {
    "BATCH_MATMUL": "BatchMatMul",
    "CUMSUM": "CumSum",
    "PADV2": "PadV2",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTM",
}
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

# Operators that have numbers for each output channel, with the axis of these in their weights; those that sum up
# integers in 32 bits beside their result; and the one that keeps its operands transposed.
_CHANNELS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 0}
_SUMS = ("TRANSPOSE_CONV", "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
_TURNED = "BATCH_MATMUL"

# Bytes that the interpreter keeps more for some operators.
_MORE = {"CONCATENATION": 384, "UNIDIRECTIONAL_SEQUENCE_LSTM": 1024}


class MicroProgram(NamedTuple):
    """The needs of a program for a model.

    Attributes:
        operators: Its operators, each once.
        custom: Its custom operators.
        arena: The bytes of memory for tensors, and for what the interpreter keeps; an estimate.
        dynamic: The inputs with dynamic sizes, each with its sizes in the file and those of the estimate.
    """

    operators: tuple[str, ...]
    custom: tuple[str, ...]
    arena: int
    dynamic: tuple[str, ...] = ()

    @property
    def operator_count(self) -> int:
        """How many operators the resolver must have room for."""
        return sum(each in _OPERATORS for each in self.operators) + len(self.custom)

    def lines(self, name: str) -> Iterator[str]:
        """Yields the lines of C++.

        Args:
            name: The array's name, with which all names begin.
        """
        yield "// For tflite-micro:"
        yield f"//   tflite::MicroMutableOpResolver<{self.operator_count}> resolver;"
        yield f"//   {name}_add_operators(resolver);"
        yield f"//   alignas({_ALIGNMENT}) static uint8_t arena[{name}_arena_size];"
        model = f"tflite::GetModel({name})"
        yield f"//   tflite::MicroInterpreter interpreter({model}, resolver, arena, {name}_arena_size);"
        yield f"constexpr unsigned int {name}_operator_count = {self.operator_count};"
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
            method = _METHODS.get(each) or "".join(part.title() for part in each.split("_"))
            yield f"resolver.Add{method}();" if each in _OPERATORS else f"// {each}: tflite-micro does not have it."
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

    arena = _FIXED
    for subgraph in subgraphs:
        schedule = _with_scratch(schedule_of(subgraph, is_constant, _ALIGNMENT), subgraph, names)
        planned = schedule.arena()
        planning = _OF_PLAN * (len(subgraph["tensors"] or ()) + sum(size > 0 for size in schedule.sizes))
        arena += max(schedule.peak() if planned is None else planned, planning) + _kept(subgraph, names)
    return MicroProgram(
        tuple(sorted({name for name, custom in codes if not custom})),
        tuple(sorted({custom for _, custom in codes if custom})),
        -(-(arena + arena // _MARGIN) // _ALIGNMENT) * _ALIGNMENT,
        tuple(_dynamic(subgraphs[0])) if subgraphs else (),
    )


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
    steps = [Step((), schedule.inputs)]
    for call, step in zip(subgraph["operators"] or (), schedule.steps, strict=True):
        own = [*step.results]
        result = _tensor(subgraph, call["outputs"][0]) if names[call["opcode_index"]] in _SUMS else None
        if result is not None and result.name("type") in ("INT8", "INT16"):
            own.append(len(sizes))
            sizes.append(_bytes(result, "INT32"))
        steps.append(Step(step.operands, own))
    return Schedule(sizes, steps, (), schedule.outputs)


def _kept(subgraph: View, names: Sequence[str]) -> int:
    """Returns the bytes that the interpreter keeps for a subgraph."""
    calls = subgraph["operators"] or ()
    total = len(subgraph["tensors"] or ()) * _OF_TENSOR + len(calls) * _OF_OPERATOR
    for call in calls:
        name = names[call["opcode_index"]]
        if name in _CHANNELS:
            shape = _tensor(subgraph, call["inputs"][1])["shape"]
            axis = _CHANNELS[name]
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
