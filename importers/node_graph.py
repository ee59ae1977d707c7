"""NodeDefs to a `tf_executor.graph`: the part that function bodies and main graphs share (design §4).

Only what the fetches reach, through data or control inputs, becomes IR; the islands come in a topological order in
which every node follows its control inputs. V1 control flow is not importable yet and is named in the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import Attribute, Block, SSAValue

from importers.attributes import import_attribute
from importers.debug_info import SourceOf, no_source
from importers.op_signatures import OpRegistry, OpSignature
from importers.tensor_proto import shape_of
from schema.diagnostics import ConversionError, Diagnostic, error
from schema.dialects import attributes as attrs
from schema.dialects import tensor_data, tf, tf_executor, types
from schema.tensorflow.generated import tensorflow_pb2 as pb

V1_CONTROL_FLOW = frozenset({
    "Switch", "RefSwitch", "_SwitchN", "Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit", "NextIteration",
    "RefNextIteration", "LoopCond", "ControlTrigger",
})  # fmt: skip
"""The executor's own ops, which are no islands."""

_WITH_EFFECTS = frozenset({"If", "While", "Case"})
"""Functional control flow that has a stateless twin; in MLIR an attribute, `is_stateless`, tells them apart."""


_NOT_KEPT = frozenset({"_output_shapes", "_read_only_resource_inputs", "_collective_manager_ids"})
"""Private attributes that are in the types, or that only hint TensorFlow's executor at what analysis finds anew."""


@dataclass(frozen=True, slots=True)
class TensorName:
    """Where a value comes from.

    Attributes:
        node: The node's (or function argument's) name.
        argument: The op's output argument, empty where `index` counts over all outputs.
        index: The position in the argument, or over all outputs.
    """

    node: str
    argument: str
    index: int


def parse_graph_input(text: str) -> TensorName:
    """Parses an input of a main graph's node: `node` or `node:index`."""
    node, colon, index = text.rpartition(":")
    return TensorName(node, "", int(index)) if colon and index.isdigit() else TensorName(text, "", 0)


def parse_function_input(text: str) -> TensorName:
    """Parses an input of a function body's node: `argument` or `node:output:index`."""
    parts = text.split(":")
    if len(parts) == 3 and parts[2].isdigit():
        return TensorName(parts[0], parts[1], int(parts[2]))
    return TensorName(parts[0], parts[1] if len(parts) == 2 else "", 0)


@dataclass(slots=True)
class _Imported:
    """A node's island and where each of its output arguments begins."""

    island: tf_executor.IslandOp
    places: Mapping[str, tuple[int, int]]

    def value(self, tensor: TensorName) -> SSAValue | None:
        """Returns the island's result of an output, `None` if the node has no such output."""
        if tensor.argument:
            start, count = self.places.get(tensor.argument, (0, 0))
        else:
            start, count = 0, len(self.island.results) - 1
        return self.island.results[start + tensor.index] if tensor.index < count else None


@dataclass(slots=True)
class ImportContext:
    """What the graphs of one model share.

    Attributes:
        registry: Where op definitions come from.
        source_of: From a node's full name to its source location.
        callees: Functions that the imported nodes name, each with the first such node.
    """

    registry: OpRegistry
    source_of: SourceOf = no_source
    callees: dict[str, pb.NodeDef] = field(default_factory=dict)

    def note_callees(self, node: pb.NodeDef, signature: OpSignature) -> None:
        """Notes the functions that a node names."""
        for name in signature.functions:
            value = node.attr[name]
            for function in (value.func, *value.list.func):
                if function.name:
                    self.callees.setdefault(function.name, node)


@dataclass(slots=True)
class NodeGraphImporter:
    """Imports one graph or function body.

    Attributes:
        nodes: The graph's nodes by name.
        context: What all graphs of the model share.
        parse_input: How the graph writes its inputs.
        function: The enclosing function's name, empty in a main graph; becomes part of locations.
        feeds: Values that stand for (node, output index): function arguments, placeholders.
    """

    nodes: Mapping[str, pb.NodeDef]
    context: ImportContext
    parse_input: Callable[[str], TensorName]
    function: str = ""
    feeds: dict[tuple[str, int], SSAValue] = field(default_factory=dict)
    _inputs: dict[str, tuple[list[TensorName], list[str]]] = field(default_factory=dict, init=False)
    _done: dict[str, _Imported] = field(default_factory=dict, init=False)
    _block: Block = field(default_factory=Block, init=False)

    def import_graph(self, fetches: Sequence[TensorName], controls: Iterable[str]) -> tf_executor.GraphOp:
        """Returns the graph that computes some values and runs some nodes.

        Args:
            fetches: What the graph yields, in order.
            controls: Nodes that must have run, yielding nothing.

        Raises:
            ConversionError: A missing node or output, a cycle, V1 control flow, an unknown op.
        """
        controls = list(controls)
        roots = [tensor.node for tensor in fetches if not self._is_fed(tensor)] + controls
        order = self._topological_order(roots)
        _refuse_control_flow(order)
        for node in order:
            self._done[node.name] = self._import_node(node)
        operands = [self._resolve(tensor, "the graph's fetch") for tensor in fetches]
        operands += [self._done[node].island.control for node in controls]
        self._block.add_op(tf_executor.FetchOp.create(operands=operands))
        return tf_executor.GraphOp.build(self._block)

    def _is_fed(self, tensor: TensorName) -> bool:
        return (tensor.node, tensor.index) in self.feeds

    def _topological_order(self, roots: list[str]) -> list[pb.NodeDef]:
        """Returns what the roots need, each node after its inputs; depth first with an explicit stack.

        V1 control flow, whose loops are cycles, is not looked behind.
        """
        order: list[pb.NodeDef] = []
        done: set[str] = set()
        open_nodes: set[str] = set()
        stack = [(root, False) for root in reversed(roots)]
        while stack:
            name, is_ready = stack.pop()
            if name in done:
                continue
            node = self.nodes.get(name)
            if node is None:
                raise error(
                    "missing-node", f"the graph has no node {name!r}", node=name, hint="the model file is damaged"
                )
            if is_ready or node.op in V1_CONTROL_FLOW:
                open_nodes.discard(name)
                done.add(name)
                order.append(node)
                continue
            if name in open_nodes:
                raise error("cyclic-graph", "the node depends on itself", node=name, hint="the model file is damaged")
            open_nodes.add(name)
            stack.append((name, True))
            stack.extend((needed, False) for needed in reversed(self._needed(node)) if needed not in done)
        return order

    def _needed(self, node: pb.NodeDef) -> list[str]:
        """Parses a node's inputs, notes them, and returns the nodes that must come before it."""
        tensors: list[TensorName] = []
        controls: list[str] = []
        for text in node.input:
            if not text.startswith("^"):
                tensors.append(self.parse_input(text))
            elif (text[1:], 0) not in self.feeds:
                controls.append(text[1:])
        self._inputs[node.name] = (tensors, controls)
        return [tensor.node for tensor in tensors if not self._is_fed(tensor)] + controls

    def _resolve(self, tensor: TensorName, user: str) -> SSAValue:
        fed = self.feeds.get((tensor.node, tensor.index))
        if fed is not None:
            return fed
        value = self._done[tensor.node].value(tensor)
        if value is None:
            raise error(
                "missing-output", f"{user} uses output {tensor.argument or tensor.index!s}, which the op doesn't have",
                op=f"tf.{self.nodes[tensor.node].op}", node=tensor.node, hint="the model file is damaged",
            )  # fmt: skip
        return value

    def _import_node(self, node: pb.NodeDef) -> _Imported:
        signature = self.context.registry.signature(node.op, node.name)
        if signature.functions:
            self.context.note_callees(node, signature)
        name = node.name
        location_name = f"{name}@{self.function}" if self.function else name
        location = attrs.name_location(location_name, self.context.source_of(location_name))
        tensors, controls = self._inputs[name]
        operands = [self._resolve(tensor, name) for tensor in tensors]
        tokens = [self._done[control].island.control for control in controls]
        given = dict(node.attr)
        types_of_node = signature.resolve(node, given)
        _check_operands(node, types_of_node.inputs, operands)
        properties, attributes = _node_attributes(node, given, signature)
        if node.op == "Const":
            result_types = [_constant_type(node, properties, types_of_node.outputs[0])]
        elif node.op == "VarHandleOp":
            result_types = [_handle_type(properties)]
        else:
            result_types = _result_types(types_of_node.outputs, given.get("_output_shapes"))
        op = tf.op_class(node.op).create(
            operands=operands,
            result_types=result_types,
            properties=properties,
            attributes=attributes,
            location=location,
        )
        island = tf_executor.IslandOp.wrap(op, tokens, location)
        self._block.add_op(island)
        return _Imported(island, types_of_node.places)


def _check_operands(node: pb.NodeDef, expected: Sequence[Attribute], operands: Sequence[SSAValue]) -> None:
    """Checks that a node has as many data inputs as its op takes, of the right element types."""
    if len(expected) != len(operands):
        raise _bad_input(node, f"the op takes {len(expected)} inputs, the node has {len(operands)}")
    for wanted, operand in zip(expected, operands, strict=True):
        there = types.element_of(operand.type)
        if wanted is not there and types.dereferenced(wanted) != types.dereferenced(there):
            raise _bad_input(node, f"an input must be of type {wanted}, not {there}")


def _bad_input(node: pb.NodeDef, what: str) -> ConversionError:
    return error("bad-input", what, op=f"tf.{node.op}", node=node.name, hint="the model file is damaged")


def _constant_type(node: pb.NodeDef, properties: Mapping[str, Attribute], element: Attribute) -> Attribute:
    """Returns the type of a constant node: that of its value, which must be of the declared element type."""
    value = properties["value"]
    if not tensor_data.is_constant(value) or value.type.element_type != element:
        raise error("bad-tensor", "the node declares another element type than its value has", op="tf.Const",
                    node=node.name, hint="the model file is damaged")  # fmt: skip
    return value.type


def _handle_type(properties: Mapping[str, Attribute]) -> Attribute:
    """Returns the type of a variable's handle, which tells what the variable holds."""
    shape = properties.get("shape")
    held = types.tensor(properties["dtype"], shape.shape if isinstance(shape, tf.ShapeAttr) else None)
    return types.resource_of(held)


def _refuse_control_flow(nodes: list[pb.NodeDef]) -> None:
    found = [node for node in nodes if node.op in V1_CONTROL_FLOW]
    if found:
        raise ConversionError(
            Diagnostic(
                "control-flow-v1", "V1 control flow (Switch, Merge, Enter, ...) can't be imported yet",
                op=f"tf.{node.op}", node=node.name,
                hint="save the model with tf.compat.v1.enable_control_flow_v2(), or from TensorFlow 2",
            )
            for node in found
        )  # fmt: skip


def _result_types(elements: Sequence[Attribute], noted: pb.AttrValue | None) -> list[Attribute]:
    """Returns the types of a node's results, with the shapes that the graph noted."""
    shapes = map(shape_of, noted.list.shape) if noted is not None else iter(())
    return [types.tensor(element, next(shapes, None)) for element in elements]


def _node_attributes(
    node: pb.NodeDef, given: Mapping[str, pb.AttrValue], signature: OpSignature
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Returns the declared attributes, defaults filled in, and the private ones."""
    signature.check_attributes(node, given)
    properties = dict(signature.defaults)
    if signature.functions and node.op in _WITH_EFFECTS:
        properties["is_stateless"] = attrs.of(False)
    attributes: dict[str, Attribute] = {}
    for name, value in given.items():
        if name in signature.derived or name in _NOT_KEPT:
            continue
        attribute = import_attribute(value, node.name)
        if name not in signature.declared:
            attributes[name] = attribute
        elif not isinstance(attribute, NoneAttr):
            properties[name] = attribute
    if node.device:
        attributes["device"] = attrs.string(node.device)
    if len(attributes) > 1:
        attributes = dict(sorted(attributes.items()))
    return properties, attributes
