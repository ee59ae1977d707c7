"""The order in which a signature's function has its arguments and results.

TensorFlow 2 sorts a signature's inputs and outputs by name: the main graph calls a wrapper that has them so, and the
wrapper calls the function itself, with the arguments as they were written. Results that are a tuple or a list keep
their order there, too; of a dictionary, TensorFlow has sorted the keys before it came to that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tfconvert.importers.graph.node_graph import parse_graph_input
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")

# A part of the names of TensorFlow's wrappers.
_WRAPPER = "signature_wrapper"


class CallOrder(NamedTuple):
    """Where the function has what the main graph's call passes and gets.

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
    """Returns the call that a wrapper's results come from and their positions in it; `None` if they don't."""
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
