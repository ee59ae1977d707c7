"""The order of a signature's inputs and outputs: of its function, of a Keras model, or of TensorFlow's converter.

TensorFlow 2 sorts a signature's inputs and outputs by name: the main graph calls a wrapper in that order, which calls
the function itself in the order of its definition. Results in a tuple or a list keep their order; the keys of a
dictionary were sorted before. `keras_metadata.pb`, or the object graph before there was such a file, has the
configuration of a Keras 2 model as JSON.

TensorFlow 2's converter sorts by the 64-bit fingerprint (FarmHash) of the names, which looks like no order at all, yet
scripts that use inputs and outputs by their number depend on it. TensorFlow 1's sorts by the tensors' names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from tfconvert.importers.containment import Folder
from tfconvert.importers.graph.entry_points import GraphInput, GraphOutput, tensor_of
from tfconvert.importers.graph.node_graph import parse_graph_input
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")

# Part of the names of TensorFlow's wrappers.
_WRAPPER = "signature_wrapper"


class CallOrder(NamedTuple):
    """Positions of the main graph's arguments and results in a function.

    Attributes:
        arguments: The position of an argument, by the node that it comes from.
        results: The position of a result, by its position among the results of the call.
    """

    arguments: Mapping[str, int]
    results: Mapping[int, int]


def call_order(node: pb.NodeDef | None, library: Mapping[str, pb.FunctionDef]) -> CallOrder | None:
    """Returns the order of the function that a node calls, looking through wrappers; `None` if it calls none.

    Args:
        node: The node.
        library: The functions by name.
    """
    if node is None or node.op not in _CALLS:
        return None
    callee = node.attr["f"].func.name
    arguments = {parse_graph_input(text).node: index for index, text in enumerate(node.input)}
    function = library.get(callee)
    results = {index: index for index in range(len(function.signature.output_arg))} if function is not None else {}
    # A wrapper of a model that was loaded and saved again wraps another one.
    seen: set[str] = set()
    while function is not None and _WRAPPER in callee:
        inner = _forwarded(function)
        if inner is None or callee in seen or not all(index < len(inner[1]) for index in results.values()):
            break
        seen.add(callee)
        call, order = inner
        positions = {text: index for index, text in enumerate(call.input)}
        own = [positions.get(argument.name, len(positions)) for argument in function.signature.input_arg]
        arguments = {name: own[index] for name, index in arguments.items() if index < len(own)}
        results = {outside: order[index] for outside, index in results.items()}
        callee = call.attr["f"].func.name
        function = library.get(callee)
    return CallOrder(arguments, results)


def _forwarded(wrapper: pb.FunctionDef) -> tuple[pb.NodeDef, list[int]] | None:
    """Returns the call that a wrapper's results come from, and their positions in it, or `None`."""
    nodes = {node.name: node for node in wrapper.node_def}
    calls = [node for node in wrapper.node_def if node.op in _CALLS]
    if len(calls) != 1:
        return None
    order = []
    for output in wrapper.signature.output_arg:
        name, _, place = wrapper.ret[output.name].partition(":")
        passed: set[str] = set()
        while name in nodes and nodes[name].op == "Identity" and nodes[name].input and name not in passed:
            passed.add(name)
            name, _, place = nodes[name].input[0].partition(":")
        position = place.rpartition(":")[2]
        if name != calls[0].name or not position.isdecimal():
            return None
        order.append(int(position))
    return calls[0], order


_FILE = "keras_metadata.pb"
_NODES, _METADATA = 1, 5
"""Numbers of fields: the objects of the file, the first of which is the model, and the JSON of an object."""

_VARINT, _BYTES = 0, 2
"""Wire types; the file has no others."""


def output_names(folder: Folder | None, meta_graph: pb.MetaGraphDef) -> list[str]:
    """Returns the names of a functional model's output layers, in their order; empty for other models.

    Args:
        folder: The SavedModel's directory.
        meta_graph: Its MetaGraph.
    """
    try:
        text = _field(_field(folder.read(folder.path / _FILE), _NODES), _METADATA) if folder is not None else b""
    except OSError:
        nodes = meta_graph.object_graph_def.nodes
        text = nodes[0].user_object.metadata.encode() if nodes else b""
    if not text:
        return []
    import json  # only needed for several outputs

    try:
        found = json.loads(text)
    except (RecursionError, ValueError):
        return []
    layers = _get(_get(found, "config"), "output_layers")
    if not isinstance(layers, list) or not all(isinstance(each, list) and each for each in layers):
        return []
    return [name for name, *_ in layers if isinstance(name, str)]


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _field(message: bytes, wanted: int) -> bytes:
    """Returns the first field of a number in an encoded message; empty otherwise."""
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        number, at = _number(message, at)
        if tag & 7 == _BYTES:
            if tag >> 3 == wanted:
                return message[at : at + number]
            at += number
        elif tag & 7 != _VARINT:
            break
    return b""


def _number(message: bytes, at: int) -> tuple[int, int]:
    """Returns a varint and the position after it."""
    value = shift = 0
    for byte in message[at : at + 10]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return value, at + max(shift // 7, 1)


_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F

_BLOCK = 64


def by_fingerprint(each: GraphInput | GraphOutput) -> int:
    """Returns the sort key of TensorFlow 2's converter."""
    return fingerprint(each.name)


def label_v1(each: GraphInput | GraphOutput) -> str:
    """Returns an input's or output's name in TensorFlow 1's converter: that of the node for its first result."""
    return tensor_of(each).removesuffix(":0")


class Ordering(NamedTuple):
    """An order of a signature's inputs and outputs, and what belongs to it.

    Attributes:
        sort_key: The key that inputs and outputs are sorted by; `None` for the order of the function's arguments and
            results.
        label: Returns TensorFlow's own converter's name of an input or output.
        second_names: Names that a function only has if it isn't also `serving_default`, or if they are requested;
            `None` for any.
    """

    sort_key: Callable[[GraphInput | GraphOutput], Any] | None = None
    label: Callable[[GraphInput | GraphOutput], str] = tensor_of
    second_names: Collection[str] | None = None


# The second name of models that Keras exports, which TensorFlow's converter omits beside `serving_default`.
_SECOND_NAMES = ("serve",)

ORDERINGS: Mapping[str, Ordering] = {
    "written": Ordering(),
    "flattened": Ordering(),
    "official": Ordering(by_fingerprint, second_names=_SECOND_NAMES),
    "official-v1": Ordering(tensor_of, label_v1, _SECOND_NAMES),
}
"""The orders that `Selection.order` names."""


def fingerprint(name: str) -> int:
    """Returns the fingerprint of a name, as `tf.fingerprint` computes it."""
    text = name.encode()
    if len(text) <= 16:
        return _up_to_16(text)
    if len(text) <= 32:
        return _up_to_32(text)
    return _up_to_64(text) if len(text) <= _BLOCK else _longer(text)


def _word(text: bytes, at: int, size: int = 8) -> int:
    at = at if at >= 0 else len(text) + at
    return int.from_bytes(text[at : at + size], "little")


def _rotated(value: int, by: int) -> int:
    value &= _MASK
    return (value >> by) | (value << (64 - by) & _MASK)


def _shifted(value: int) -> int:
    value &= _MASK
    return value ^ (value >> 47)


def _mixed(one: int, other: int, factor: int) -> int:
    first = _shifted((one ^ other) * factor)
    second = _shifted((other ^ first) * factor)
    return second * factor & _MASK


def _up_to_16(text: bytes) -> int:
    size = len(text)
    factor = _K2 + size * 2
    if size >= 8:
        a, b = _word(text, 0) + _K2 & _MASK, _word(text, -8)
        c, d = _rotated(b, 37) * factor + a, (_rotated(a, 25) + b) * factor
        return _mixed(c & _MASK, d & _MASK, factor)
    if size >= 4:
        return _mixed(size + (_word(text, 0, 4) << 3), _word(text, -4, 4), factor)
    if not size:
        return _K2
    y, z = text[0] + (text[size >> 1] << 8), size + (text[-1] << 2)
    return _shifted((y * _K2 ^ z * _K0) & _MASK) * _K2 & _MASK


def _up_to_32(text: bytes) -> int:
    factor = _K2 + len(text) * 2
    a, b, c, d = _word(text, 0) * _K1 & _MASK, _word(text, 8), _word(text, -8) * factor, _word(text, -16) * _K2
    one = _rotated(a + b, 43) + _rotated(c, 30) + d
    return _mixed(one & _MASK, a + _rotated(b + _K2, 18) + c & _MASK, factor)


def _up_to_64(text: bytes) -> int:
    factor = _K2 + len(text) * 2
    a, b, c, d = _word(text, 0) * _K2 & _MASK, _word(text, 8), _word(text, -8) * factor, _word(text, -16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d & _MASK
    z = _mixed(y, a + _rotated(b + _K2, 18) + c & _MASK, factor)
    e, f = _word(text, 16) * factor & _MASK, _word(text, 24)
    g, h = (y + _word(text, -32)) * factor & _MASK, (z + _word(text, -24)) * factor & _MASK
    one = _rotated(e + f, 43) + _rotated(g, 30) + h
    return _mixed(one & _MASK, e + _rotated(f + a, 18) + g & _MASK, factor)


class _State:
    """The hash state of a long text."""

    def __init__(self, text: bytes) -> None:
        self.x = 81 * _K2 + _word(text, 0)
        self.y = 81 * _K1 + 113
        self.z = _shifted(self.y * _K2 + 113) * _K2
        self.v = self.w = (0, 0)

    def mix(self, block: bytes, factor: int, last: int = 1) -> None:
        """Mixes in a block."""
        x = _rotated(self.x + self.y + self.v[0] + _word(block, 8), 37) * factor
        y = _rotated(self.y + self.v[1] + _word(block, 48), 42) * factor
        x ^= self.w[1] * last
        y += self.v[0] * last + _word(block, 40)
        z = _rotated(self.z + self.w[0], 33) * factor
        self.v = _weakly(block[:32], self.v[1] * factor, x + self.w[0])
        self.w = _weakly(block[32:], z + self.w[1], y + _word(block, 16))
        self.x, self.y, self.z = z & _MASK, y & _MASK, x & _MASK


def _weakly(text: bytes, a: int, b: int) -> tuple[int, int]:
    first, second, third, fourth = (_word(text, at) for at in (0, 8, 16, 24))
    a += first
    b = _rotated(b + a + fourth, 21)
    whole = a + second + third
    return whole + fourth & _MASK, b + _rotated(whole, 44) + a & _MASK


def _longer(text: bytes) -> int:
    state = _State(text)
    for at in range(0, (len(text) - 1) // _BLOCK * _BLOCK, _BLOCK):
        state.mix(text[at : at + _BLOCK], _K1)
    factor = _K1 + ((state.z & 0xFF) << 1)
    (v, second), (w, fourth) = state.v, state.w
    w += (len(text) - 1) & (_BLOCK - 1)
    v += w
    w += v
    state.v, state.w = (v & _MASK, second), (w & _MASK, fourth)
    state.mix(text[-_BLOCK:], factor, 9)
    one = _mixed(state.v[0], state.w[0], factor) + _shifted(state.y) * _K0 + state.z
    other = _mixed(state.v[1], state.w[1], factor) + state.x
    return _mixed(one & _MASK, other & _MASK, factor)
