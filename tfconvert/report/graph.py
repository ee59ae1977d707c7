"""A module's graph as plain data, and an instrument that keeps the graph of the model as it was imported.

Functions consist of nodes, without constants and the weights that these read. Nodes have the number of multiplications
with additions that they need, and the largest constants the distribution of their values, from bounded samples.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np

from tfconvert.converter.ir.interface import entry_functions
from tfconvert.converter.pipeline.pass_registry import pass_class
from tfconvert.converter.pipeline.stage import Instrument, Stage
from tfconvert.ops.call import Array
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import quant, types
from tfconvert.schema.dialects.call_interfaces import may_refer, symbols
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.dialects.tensor_data import Constant, DenseElementsAttr, TensorData, constant_of, to_array
from tfconvert.schema.dialects.tf_executor import GraphOp
from tfconvert.schema.dialects.tf_saved_model import EXPORTED_NAMES, port_names
from tfconvert.schema.dialects.tfl import BESIDE, CUSTOM_CODE, NO_VALUE, PREFIX
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, IntegerAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import FusedLoc, Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.json_text import record
from tfconvert.schema.tflite.operators import filters

# TensorFlow's ops with filters, and the operators that have their operands in the same order.
_WITH_FILTERS: Mapping[str, str] = {
    "tf.Conv2D": "conv_2d",
    "tf.Conv3D": "conv_3d",
    "tf.DepthwiseConv2dNative": "depthwise_conv_2d",
    "tf.Conv2DBackpropInput": "transpose_conv",
}
# Products of two matrices, with the attributes that transpose the first one.
_PRODUCTS: Mapping[str, str] = {
    "tfl.batch_matmul": "adj_x",
    "tf.MatMul": "transpose_a",
    "tf.BatchMatMul": "adj_x",
    "tf.BatchMatMulV2": "adj_x",
    "tf.BatchMatMulV3": "adj_x",
}
_CHANNELS_FIRST = '"NC'


def macs(op: Operation) -> int:
    """Returns the multiplications with additions of an op; dynamic dimensions count as 1, other ops as 0.

    Args:
        op: An op of `tf` or `tfl`.
    """
    row = filters().get(_WITH_FILTERS.get(op.name, op.name.removeprefix(PREFIX)))
    if row is not None and len(op.operands) > max(row.data, row.operand):
        # Each element of the result needs as many as there are weights for its channel; of a transposed convolution,
        # which takes its data last, each element of the data.
        dims = _dims((op.operands[row.data] if row.data else op.results[0]).type)
        if not dims:
            return 0
        is_first = str(op.properties.get("data_format", "")).startswith(_CHANNELS_FIRST)
        channels = dims[1] if is_first and len(dims) > 2 else dims[-1]
        return math.prod(dims) * math.prod(_dims(op.operands[row.operand].type)) // channels
    if op.name in _PRODUCTS:
        left = _dims(op.operands[0].type)
        if len(left) < 2:
            return 0
        flag = op.properties.get(_PRODUCTS[op.name])
        is_transposed = isinstance(flag, IntegerAttr) and bool(flag.value)
        return math.prod(_dims(op.results[0].type)) * left[-2 if is_transposed else -1]
    return 0


def _dims(tensor_type: Attribute) -> tuple[int, ...]:
    return tuple(max(dim, 1) for dim in types.shape_of(tensor_type) or ())


MAX_TENSORS = 96
"""How many tensors of a graph get a histogram: the largest ones."""

MAX_NUMBERS = 1 << 14
"""How many numbers of a tensor are looked at."""

# Tensors that would need more memory than this together are left out: some are computed when they are read.
_MAX_BYTES = 1 << 27
_MIN_NUMBERS = 16
_BINS = 24


def add_histograms(constants: Sequence[tuple[dict[str, Any], Attribute]]) -> None:
    """Adds `histogram` to the operands that are the largest constants.

    Args:
        constants: The operands of nodes that are constants, as data, with their values.
    """
    left = _MAX_BYTES
    numeric = [(operand, constant) for operand, constant in constants if _count(constant) >= _MIN_NUMBERS]
    for operand, constant in sorted(numeric, key=lambda pair: -_count(pair[1]))[:MAX_TENSORS]:
        size = operand.get("bytes", 0)
        if 0 < size <= left:
            left -= size
            found = histogram(to_array(constant))
            if found is not None:
                operand["histogram"] = found


def _count(constant: Attribute) -> int:
    if isinstance(constant, TensorData):
        return math.prod(constant.shape) if constant.dtype.kind in "fiu" else 0
    return len(constant.data) // 4 if isinstance(constant, DenseElementsAttr) else 0


def histogram(values: Array) -> dict[str, Any] | None:
    """Returns the distribution of values; `None` without values, or if they are not numbers.

    Args:
        values: The values, as they are stored. Of more than `MAX_NUMBERS`, every n-th is looked at.
    """
    if values.dtype.kind not in "fiu" or not values.size:
        return None
    step = -(-values.size // MAX_NUMBERS)
    taken = values.reshape(-1)[::step].astype(np.float64)
    finite = taken[np.isfinite(taken)]
    found: dict[str, Any] = {"numbers": values.size, "looked_at": taken.size}
    if len(finite) < taken.size:
        found["not_finite"] = taken.size - len(finite)
    if not len(finite):
        return found
    low, high = float(finite.min()), float(finite.max())
    with np.errstate(over="ignore"):
        spread = {"mean": float(finite.mean()), "deviation": float(finite.std())}
    found |= {name: _short(value) for name, value in {"low": low, "high": high, **spread}.items()}
    found["zeros"] = int(np.count_nonzero(finite == 0))
    if high > low and math.isfinite(high - low):
        found["bins"] = np.histogram(finite, _BINS, (low, high))[0].tolist()
    return record(found)


def _short(value: float) -> float:
    return float(f"{value:.6g}")


INPUT = "Input"
OUTPUT = "Output"
VARIABLE = "tf.VarHandleOp"
READ = "tf.ReadVariableOp"

_ABSENT = PREFIX + NO_VALUE
_CONSTANTS = frozenset({"tf.Const", "arith.constant", *(PREFIX + name for name in BESIDE)})
_SILENT = frozenset({"tf.NoOp", "func.return", "tfl.yield", "tf.Yield", VARIABLE})
_EXECUTOR = "tf_executor."
# Constants of more elements are shown by their types only.
_MAX_ELEMENTS = 8

# Longer texts of attributes are cut.
_MAX_TEXT = 160

# The types of numbers, which say nothing to a reader.
_TYPED = re.compile(r"(?<=[\w.]) : [if]\d+(?=[,\]]|$)")


@dataclass(slots=True)
class Node:
    """An op of a graph, or an input or output of its function.

    Attributes:
        op: What it is, `Conv2D` or `CONV_2D`.
        name: The graph node that it comes from, or the last of them.
        scope: The name by which it is grouped: that of the first of them.
        operands: What it reads: a node's index and which of its results, or what is known of a constant.
        types: The types of its results.
        attributes: Its attributes as text.
        sources: The lines of source that it comes from.
        origins: Where it comes from, to find the nodes that it replaces.
        folded: Where its constants come from.
        calls: Names of the functions that it runs.
        bytes: Bytes of the constants that it is the first to read.
        macs: Multiplications with additions of one run; dynamic dimensions count as 1.
        names: The names of all graph nodes that it comes from.
        problems: The errors that it causes, as indices.
        change: How it differs from the other graph of a comparison: `added`, `removed` or `changed`.
        changes: The differences in words.
    """

    op: str
    name: str
    scope: str
    operands: list[tuple[int, int] | dict[str, Any]] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    origins: list[Location] = field(default_factory=list)
    folded: list[Location] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    bytes: int = 0
    macs: int = 0
    names: list[str] = field(default_factory=list)
    problems: list[int] = field(default_factory=list)
    change: str = ""
    changes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Returns the node as plain data, without empty fields."""
        known = {
            "operands": [each if isinstance(each, dict) else list(each) for each in self.operands],
            "types": self.types,
            "attributes": self.attributes,
            "sources": self.sources,
            "calls": self.calls,
            "bytes": self.bytes,
            "macs": self.macs,
            "problems": self.problems,
            "change": self.change,
            "changes": self.changes,
            "names": self.names if self.names != [self.name] else [],
            "scope": self.scope if self.scope != self.name else "",
        }
        return {"op": self.op, "name": self.name, **{key: value for key, value in known.items() if value}}


@dataclass(slots=True)
class Function:
    """A function of a graph.

    Attributes:
        name: Its symbol.
        keys: The signatures that are this function.
        nodes: Its inputs, its ops in their order, its outputs.
        live_bytes: Bytes of the tensors that are needed at one time, at most; dynamic dimensions count as 1.
    """

    name: str
    keys: list[str]
    nodes: list[Node]
    live_bytes: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        nodes = [node.to_dict() for node in self.nodes]
        return {"name": self.name, "keys": self.keys, "live_bytes": self.live_bytes, "nodes": nodes}


class _Collector:
    """Turns functions into nodes; remembers which constants were counted."""

    def __init__(self) -> None:
        # The operands that are constants with values, with these values, each once.
        self.constants: list[tuple[dict[str, Any], Attribute]] = []
        self._counted: set[object] = set()
        # A graph repeats few types many times.
        self._type_text = cache(type_text)
        self._type_bytes = cache(type_bytes)
        self._attribute_text = cache(_attribute_text)

    def function(self, function: FuncOp) -> Function:
        """Returns a function's nodes."""
        nodes: list[Node] = []
        places: dict[Value, tuple[int, int]] = {}
        blocks = function.regions[0].blocks if function.regions else ()
        block = next(iter(blocks), None)
        if block is None:
            return Function(function.sym_name, [], [])
        inputs, outputs = port_names(function, "inputs"), port_names(function, "outputs")
        for index, argument in enumerate(block.args):
            name = inputs[index] if index < len(inputs) else f"arg{index}"
            places[argument] = (len(nodes), 0)
            nodes.append(Node(INPUT, name, name, types=[self._type_text(argument.type)]))
        ops = list(_ops(function))
        for op in ops:
            node = self._node(op, places)
            places.update({result: (len(nodes), index) for index, result in enumerate(op.results)})
            nodes.append(node)
        last = block.last_op
        for index, value in enumerate(last.operands if last is not None else ()):
            name = outputs[index] if index < len(outputs) else f"result{index}"
            node = Node(OUTPUT, name, name)
            self._read(node, value, places)
            node.attributes["type"] = self._type_text(value.type)
            nodes.append(node)
        exported = function.attributes.get(EXPORTED_NAMES)
        keys = (
            [key.data for key in exported.data if isinstance(key, StringAttr)]
            if isinstance(exported, ArrayAttr)
            else []
        )
        returned = set(last.operands) if last is not None else set()
        return Function(function.sym_name, keys, nodes, _live_bytes(ops, returned, self._type_bytes))

    def _node(self, op: Operation, places: dict[Value, tuple[int, int]]) -> Node:
        origins = list(parts(op.location))
        found = [place_of(part) for part in origins]
        names = unique(place.node for place in found if place.node)
        last, first = (names[-1], names[0]) if names else ("", "")
        node = Node(_label(op), last, first, origins=origins, names=names)
        node.sources = unique(place.source for place in found if place.source)
        node.types = [self._type_text(result.type) for result in op.results]
        node.macs = macs(op)
        for operand in op.operands:
            self._read(node, operand, places)
        for key, value in (*op.properties.items(), *op.attributes.items()):
            if may_refer(value) and (called := symbols(value)):
                node.calls += called
            elif not key.startswith("_") and key not in ("device", "operandSegmentSizes", "resultSegmentSizes"):
                node.attributes[key] = self._attribute_text(value)
        return node

    def _read(self, node: Node, value: Value, places: dict[Value, tuple[int, int]]) -> None:
        """Adds an operand to a node."""
        if value in places:
            node.operands.append(places[value])
            return
        op = value.owner if isinstance(value.owner, Operation) else None
        operand: dict[str, Any] = {"type": self._type_text(value.type)}
        if op is None:
            node.operands.append(operand)
            return
        constant = op.properties.get("value") if op.name in _CONSTANTS else None
        if op.name in (READ, VARIABLE):
            handle = op.operands[0].owner if op.operands else op
            operand["name"] = place_of(handle.location).node if isinstance(handle, Operation) else ""
            self._count(node, operand, ("variable", operand["name"]), self._type_bytes(value.type))
        elif isinstance(constant, DenseElementsAttr | TensorData):
            node.folded += parts(op.location)
            operand |= _value_text(constant_of(value))
            if constant not in self._counted:
                self.constants.append((operand, constant))
            self._count(node, operand, constant, self._type_bytes(value.type))
        elif op.name in _CONSTANTS:
            operand["value"] = "none" if op.name == _ABSENT else ""
        node.operands.append(operand)

    def _count(self, node: Node, operand: dict[str, Any], key: object, size: int) -> None:
        if size:
            operand["bytes"] = size
        if key not in self._counted:
            self._counted.add(key)
            node.bytes += size


def function_graphs(module: ModuleOp, *, with_histograms: bool = False) -> list[Function]:
    """Returns a module's functions as graphs: those that are exported, then those that these run.

    Args:
        module: The module.
        with_histograms: Whether the largest constants are read for histograms of their values.
    """
    symbols_of = functions_of(module)
    collector = _Collector()
    pending = [function.sym_name for function in entry_functions(module)]
    known = set(pending)
    found = []
    for name in pending:
        function = collector.function(symbols_of[name])
        found.append(function)
        for callee in (callee for node in function.nodes for callee in node.calls):
            if callee in symbols_of and callee not in known:
                known.add(callee)
                pending.append(callee)
    if with_histograms:
        add_histograms(collector.constants)
    return found


def count_ops(module: ModuleOp) -> int:
    """Returns how many ops of a module a graph of it would show."""
    return sum(1 for function in module.ops if isinstance(function, FuncOp) for _ in _ops(function))


def parts(location: Location) -> Iterable[Location]:
    """Returns the locations that one is fused from; of any other itself."""
    return location.locations if isinstance(location, FusedLoc) else (location,)


def unique(texts: Iterable[str]) -> list[str]:
    """Returns texts without repetitions, in their order."""
    return list(dict.fromkeys(texts))


def type_text(tensor_type: Attribute) -> str:
    """Returns a tensor type as the report writes it, `f32[?,8]`; of integers that represent numbers with the scale."""
    shape, element = types.shape_of(tensor_type), types.element_of(tensor_type)
    name, scale = str(quant.storage_of(element)).removeprefix("!tf_type."), ""
    if isinstance(element, quant.UniformType):
        data = element.data
        scale = f" * {data.scales[0]:.4g}" if data.axis is None else f" * {len(data.scales)} scales"
    return f"{name}[{'...' if shape is None else ','.join('?' if dim < 0 else str(dim) for dim in shape)}]{scale}"


def type_bytes(tensor_type: Attribute) -> int:
    """Returns the bytes of a tensor; dynamic dimensions count as 1; 0 for what has no size."""
    shape, element = types.shape_of(tensor_type), quant.storage_of(types.element_of(tensor_type))
    row = types.from_mlir(element)
    if shape is None or row is None or row.dtype.kind == "O":
        return 0
    return math.prod(max(dim, 1) if dim < 0 else dim for dim in shape) * row.dtype.itemsize


def _live_bytes(ops: Sequence[Operation], returned: Set[Value], bytes_of: Callable[[Attribute], int]) -> int:
    """Returns the peak memory of the ops' tensors, in bytes, if they run in order.

    Args:
        ops: The ops.
        returned: Values that live on.
        bytes_of: Returns the bytes of a tensor of a type.
    """
    last_use: dict[Value, int] = {}
    for position, op in enumerate(ops):
        last_use.update(dict.fromkeys(op.operands, position))
    ends: list[list[Value]] = [[] for _ in ops]
    now = peak = 0
    for position, op in enumerate(ops):
        for result in op.results:
            now += bytes_of(result.type)
            if result not in returned:
                ends[last_use.get(result, position)].append(result)
        peak = max(peak, now)
        now -= sum(bytes_of(value.type) for value in ends[position])
    return peak


def _ops(function: FuncOp) -> Iterator[Operation]:
    """Yields the ops of a function that are nodes, those of regions inside them too."""
    for op in function.walk():
        if _is_shown(op.name) and op is not function and not (op.name == READ and _reads_variable(op)):
            yield op


@lru_cache(4096)
def _is_shown(name: str) -> bool:
    """Returns whether ops of a name are nodes, unless they read variables."""
    return name not in _SILENT and name not in _CONSTANTS and not name.startswith(_EXECUTOR)


def _reads_variable(op: Operation) -> bool:
    owner = op.operands[0].owner if op.operands else None
    return isinstance(owner, Operation) and owner.name == VARIABLE


def _label(op: Operation) -> str:
    custom = op.properties.get(CUSTOM_CODE)
    if isinstance(custom, StringAttr):
        return custom.data
    return op.name[len(PREFIX) :].upper() if op.name.startswith(PREFIX) else op.name.removeprefix("tf.")


def _attribute_text(attribute: Attribute) -> str:
    text = attribute.data if isinstance(attribute, StringAttr) else _TYPED.sub("", str(attribute))
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."


def _value_text(constant: Constant | None) -> dict[str, str]:
    if constant is None or math.prod(constant.shape) > _MAX_ELEMENTS:
        return {}
    values = [
        value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        for value in to_array(constant).reshape(-1).tolist()
    ]
    text = ", ".join(f"{value:.6g}" if isinstance(value, float) else str(value)[:40] for value in values)
    return {"value": f"[{text}]" if constant.shape else text}


@dataclass(slots=True)
class KeepGraphs(Instrument):
    """Keeps the graph after import, once only ops of the model are in it, and the number of ops after each pass.

    Attributes:
        stages: The passes that were run, with the numbers of ops that they left.
    """

    stages: list[tuple[str, int]] = field(default_factory=list)
    _before: list[Function] = field(default_factory=list)

    def before(self, stage: Stage, module: ModuleOp) -> None:
        if self._before or any(isinstance(op, GraphOp) for op in module.walk()):
            return
        # Inlined as the model itself will be, so that ops have the same locations in both graphs.
        copy = module.clone()
        pass_class("inline")().apply(copy)
        self._before = function_graphs(copy)

    def after(self, stage: Stage, module: ModuleOp) -> Sequence[Diagnostic]:
        self.stages.append((stage.run, count_ops(module)))
        return ()

    def graphs(self, result: ModuleOp) -> dict[str, Any]:
        """Returns the graphs before and after, with the origin of each node of the result.

        Args:
            result: The module at the end.
        """
        after = function_graphs(result, with_histograms=True)
        links = _links(self._before, after)
        for function, found in zip(after, links, strict=True):
            for index, each in found.items():
                function.nodes[int(index)].scope = self._layer(each["from"]) or function.nodes[int(index)].scope
        return {
            "before": [function.to_dict() for function in self._before],
            "after": [function.to_dict() | {"links": found} for function, found in zip(after, links, strict=True)],
            "stages": [{"name": name, "ops": count} for name, count in self.stages],
        }

    def graphs_of_failure(self, module: ModuleOp, problem: ConversionError) -> dict[str, Any] | None:
        """Returns the graph before a conversion that failed, with the nodes that failed; `None` without a graph.

        Args:
            module: The module when it failed.
            problem: The failure.
        """
        if not self._before and not any(isinstance(op, GraphOp) for op in module.walk()):
            self._before = function_graphs(module)
        mark_problems(self._before, problem.diagnostics)
        graphs = {"before": [function.to_dict() for function in self._before], "after": [], "stages": []}
        return graphs if self._before else None

    def _layer(self, places: Sequence[Sequence[int]]) -> str:
        """Returns the name of the node with the largest weights: a fused operator is in the layer that has these."""
        nodes = [self._before[number].nodes[index] for number, index in places]
        return max(nodes, key=lambda node: node.bytes).name if any(node.bytes for node in nodes) else ""


def mark_problems(functions: Sequence[Function], problems: Sequence[Diagnostic]) -> None:
    """Gives each node the numbers of the errors that name it, by its kind and a name, or else by one of these.

    Args:
        functions: The graphs.
        problems: The errors.
    """
    of_kind: dict[str, list[Node]] = {}
    of_name: dict[str, list[Node]] = {}
    for node in (node for function in functions for node in function.nodes if node.op not in (INPUT, OUTPUT)):
        of_kind.setdefault(node.op.lower(), []).append(node)
        for name in {node.name, *node.names}:
            of_name.setdefault(name, []).append(node)
    for number, problem in enumerate(problems):
        kind = problem.op.removeprefix("tf.").removeprefix(PREFIX).lower()
        named = of_name.get(problem.node, []) if problem.node else of_kind.get(kind, [])
        both = [node for node in named if node.op.lower() == kind]
        if both:  # The message lists the others that fail alike.
            words = set(re.split(r"[\s,]+", problem.message))
            both += [node for node in of_kind[kind] if node.name in words and node.name != problem.node]
        for node in both or named:
            node.problems.append(number)


def _links(before: Sequence[Function], after: Sequence[Function]) -> list[dict[str, dict[str, list[list[int]]]]]:
    """Returns the nodes that those of each function replace, as functions and indices; folded ones apart."""
    places: dict[Location, list[list[int]]] = {}
    for number, function in enumerate(before):
        for index, node in enumerate(function.nodes):
            for location in node.origins:
                places.setdefault(location, []).append([number, index])
    found = []
    for function in after:
        links: dict[str, dict[str, list[list[int]]]] = {}
        for index, node in enumerate(function.nodes):
            came = [place for location in node.origins for place in places.get(location, ())]
            folded = [place for location in node.folded for place in places.get(location, ()) if place not in came]
            if came or folded:
                links[str(index)] = {"from": _distinct(came), "folded": _distinct(folded)}
        found.append(links)
    return found


def _distinct(places: Sequence[list[int]]) -> list[list[int]]:
    return [list(place) for place in dict.fromkeys(map(tuple, places))]
