"""NodeDefs to a `tf_executor.graph`, or to plain ops: the part that function bodies and main graphs share.

Only nodes that the fetches reach by data or control inputs become IR; the ops come in a topological order in which
every node follows its inputs. The only back edge is NextIteration: its source is an op without operands that comes
before all users, its sink comes at the end.

Where only the pass `executor-to-functional` would look at islands, a graph without V1 control flow comes without them:
this order is one in which its ops can run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from tfconvert.importers.graph import op_forms
from tfconvert.importers.graph.attributes import import_attribute
from tfconvert.importers.graph.debug_info import SourceOf, no_source
from tfconvert.importers.graph.function_instances import FunctionLibrary
from tfconvert.importers.graph.op_forms import NodeForm
from tfconvert.importers.graph.op_signatures import NodeTypes, OpRegistry, OpSignature
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf, tf_executor, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import NONE
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

# Maximum number of nodes of a cycle in the message.
_SHOWN_NODES = 8

# The op whose attributes are large and rarely equal.
_CONSTANT = "Const"

# Cache size of forms of nodes: most models have fewer; in some each node has a private attribute of its own.
_MAX_FORMS = 4096

# Private attributes that are in the types, or that are only hints to TensorFlow's executor.
_NOT_KEPT = frozenset({"_output_shapes", "_read_only_resource_inputs", "_collective_manager_ids"})


class TensorName(NamedTuple):
    """The origin of a value.

    Attributes:
        node: The node's (or function argument's) name.
        argument: The op's output argument, empty where `position` counts over all outputs.
        position: The place in the argument, or over all outputs.
    """

    node: str
    argument: str
    position: int


def parse_graph_input(text: str) -> TensorName:
    """Parses an input of a main graph's node: `node` or `node:index`."""
    if ":" in text:
        node, _, index = text.rpartition(":")
        if _is_index(index):
            return TensorName(node, "", int(index))
    return TensorName(text, "", 0)


def parse_function_input(text: str) -> TensorName:
    """Parses an input of a function body's node: `argument` or `node:output:index`."""
    parts = text.split(":")
    if len(parts) > 2:
        is_output = len(parts) == 3 and _is_index(parts[2])
        return TensorName(parts[0], parts[1], int(parts[2])) if is_output else TensorName(text, "", 0)
    return TensorName(parts[0], parts[1] if len(parts) == 2 else "", 0)


def _is_index(text: str) -> bool:
    """Returns whether a text is the number of an output; no op has more outputs than nine digits can count."""
    return text.isascii() and text.isdecimal() and len(text) <= 9


class _Node:
    """A node on its way to becoming an op.

    Attributes:
        proto: The node.
        op_name: Its op.
        tensors: Its data inputs; the name of a node stands for the first output of that node.
        controls: The nodes of its control inputs.
        is_open: Whether it waits for its inputs.
        op: The op (or island) that it has become.
        types: The types of the op's arguments, and the index of the first result of each output argument.
    """

    __slots__ = ("controls", "is_open", "op", "op_name", "proto", "tensors", "types")

    op: Operation
    types: NodeTypes

    def __init__(self, proto: pb.NodeDef, tensors: list[TensorName | str], controls: list[str]) -> None:
        self.proto = proto
        self.op_name: str = proto.op
        self.tensors = tensors
        self.controls = controls
        self.is_open = True

    @property
    def control(self) -> Value:
        """The control result of an executor op."""
        return self.op.results[-1]

    def value(self, argument: str, position: int) -> Value | None:
        """Returns the op's result of an output, `None` if the node has no such output."""
        if argument:
            start, count = self.types.places.get(argument, (0, 0))
        else:
            start, count = 0, len(self.types.outputs)
        return self.op.results[start + position] if position < count else None


class ImportContext:
    """The state that the graphs of one model share.

    Attributes:
        registry: The source of op definitions.
        library: The model's functions.
        source_of: Returns the source location of a node by its full name.
        is_raw: Whether graphs are imported as they are, legacy nodes included.
        is_functional: Whether graphs that need no executor are imported as plain ops.
        callees: Functions that the imported nodes name, each with the first such node.
        forms: The forms of nodes seen so far, by op, device and attributes.
    """

    __slots__ = ("callees", "forms", "is_functional", "is_raw", "library", "registry", "source_of")

    def __init__(
        self,
        registry: OpRegistry,
        library: FunctionLibrary | None = None,
        source_of: SourceOf = no_source,
        is_raw: bool = False,
        is_functional: bool = False,
        callees: dict[str, pb.NodeDef] | None = None,
    ) -> None:
        self.registry = registry
        self.library: FunctionLibrary = FunctionLibrary() if library is None else library
        self.source_of = source_of
        self.is_raw = is_raw
        self.is_functional = is_functional
        self.callees: dict[str, pb.NodeDef] = {} if callees is None else callees
        self.forms: dict[Hashable, NodeForm] = {}

    def note_callees(self, node: pb.NodeDef, signature: OpSignature) -> pb.NodeDef:
        """Records the functions that a node names; returns the node, naming instances of those that have attributes."""
        for name in signature.functions:
            value = node.attr[name]
            for function in (value.func, *value.list.func):
                if function.name:
                    self.callees.setdefault(self.library.instance(function.name, function.attr), node)
        return self.library.bind(node, signature.functions)


class NodeGraphImporter:
    """Imports one graph or function body.

    Attributes:
        nodes: The graph's nodes by name.
        context: The state that all graphs of the model share.
        parse_input: How the graph writes its inputs.
        function: The enclosing function's name, empty in a main graph; becomes part of locations.
        feeds: Values that replace (node, output index): function arguments, placeholders.
    """

    __slots__ = (
        "_block",
        "_entered",
        "_fed",
        "_fed_nodes",
        "_has_islands",
        "_seen",
        "context",
        "feeds",
        "function",
        "nodes",
        "parse_input",
    )

    def __init__(
        self,
        nodes: Mapping[str, pb.NodeDef],
        context: ImportContext,
        parse_input: Callable[[str], TensorName],
        function: str = "",
        feeds: dict[tuple[str, int], Value] | None = None,
    ) -> None:
        self.nodes = nodes
        self.context = context
        self.parse_input = parse_input
        self.function = function
        self.feeds: dict[tuple[str, int], Value] = {} if feeds is None else feeds
        self._fed: Mapping[str, Value] = {}  # by node, values that replace its first output
        self._fed_nodes: Set[str] = frozenset()
        self._seen: dict[str, _Node] = {}
        self._entered: dict[str, Value] = {}
        self._block: Block = Block()
        self._has_islands = True

    def import_into(self, block: Block, fetches: Sequence[TensorName], controls: Iterable[str]) -> Sequence[Value]:
        """Adds the ops that compute values and run nodes to a block, as a graph or as plain ops; returns the values.

        Args:
            block: The block, whose arguments are among the feeds.
            fetches: The values, in order.
            controls: Nodes that must run, without a value.
        """
        controls = list(controls)
        roots = [tensor.node for tensor in fetches if not self._is_fed(tensor)] + controls
        fed = [self.feeds.get((tensor.node, tensor.position)) for tensor in fetches]
        self._feed_frames()
        self._fed_nodes = {name for name, _ in self.feeds}
        self._fed = {name: value for (name, index), value in self.feeds.items() if not index}
        order = self._topological_order(roots)
        self._has_islands = not self.context.is_functional or any(node.op_name in op_forms.OPS for node in order)
        if not self._has_islands:
            self._block = block
        for node in order:
            self._import_node(node)
        operands = [
            value if value is not None else self._resolve(tensor, "the graph's fetch")
            for tensor, value in zip(fetches, fed, strict=True)
        ]
        if not self._has_islands:
            return operands
        for node in order:
            if node.op_name in op_forms.NEXT_ITERATION:
                self._close_loop(node)
        operands += [self._seen[node].control for node in controls]
        self._block.add_op(tf_executor.FetchOp.create(operands=operands))
        graph = tf_executor.GraphOp.build(self._block)
        block.add_op(graph)
        return graph.results

    def _feed_frames(self) -> None:
        """Replaces a feed of an Enter's output by one of its input, so that the value still enters the frame."""
        for name, index in list(self.feeds):
            node = self.nodes.get(name)
            if node is not None and node.op in op_forms.ENTER:
                self._entered[name] = self.feeds.pop((name, index))

    def _is_fed(self, tensor: TensorName) -> bool:
        return (tensor.node, tensor.position) in self.feeds

    def _topological_order(self, roots: list[str]) -> list[_Node]:
        """Returns the roots' transitive inputs in topological order; depth first with an explicit stack.

        A NextIteration has no inputs here; its operand is visited after everything else that the roots reach.
        """
        seen = self._seen
        order: list[_Node] = []
        later: list[str] = []
        # A node itself, in place of its name, comes when all that was pushed after it has been visited: its inputs.
        stack: list[str | _Node] = [*reversed(roots)]
        while stack or later:
            if not stack:
                stack += reversed(later)
                later = []
            name = stack.pop()
            if isinstance(name, _Node):
                name.is_open = False
                order.append(name)
                continue
            node = seen.get(name)
            if node is not None:
                if node.is_open:
                    raise _cycle(name, [node.proto.name for node in stack if isinstance(node, _Node)])
                continue
            node, needed = self._read(name)
            seen[name] = node
            if node.op_name in op_forms.NEXT_ITERATION:
                later += needed
                node.is_open = False
                order.append(node)
                continue
            stack.append(node)
            needed.reverse()
            stack += needed
        return order

    def _read(self, name: str) -> tuple[_Node, list[str]]:
        """Returns a node with its inputs parsed, and the nodes that must come before it."""
        proto = self.nodes.get(name)
        if proto is None:
            raise error("missing-node", f"the graph has no node {name!r}", node=name, hint="the model file is damaged")
        is_entered = name in self._entered
        tensors: list[TensorName | str] = []
        controls: list[str] = []
        needed: list[str] = []
        for text in proto.input:
            if text.startswith("^"):
                if text[1:] not in self._fed:
                    controls.append(text[1:])
            elif is_entered:
                continue
            elif ":" not in text:
                tensors.append(text)
                if text not in self._fed:
                    needed.append(text)
            else:
                tensor = self.parse_input(text)
                tensors.append(tensor)
                if tensor.node not in self._fed_nodes or (tensor.node, tensor.position) not in self.feeds:
                    needed.append(tensor.node)
        return _Node(proto, tensors, controls), needed + controls

    def _resolve(self, tensor: TensorName | str, user: str) -> Value:
        name, argument, position = (tensor, "", 0) if isinstance(tensor, str) else tensor
        if name in self._fed_nodes:
            fed = self.feeds.get((name, position))
            if fed is not None:
                return fed
        node = self._seen[name]
        value = node.value(argument, position)
        if value is None:
            raise error(
                "missing-output",
                f"{user} uses output {argument or position!s}, which the op doesn't have",
                op=f"tf.{node.proto.op}",
                node=name,
                hint="if you named it, name another output; otherwise the model file is damaged",
            )
        return value

    def _import_node(self, node: _Node) -> None:
        """Adds a node's op to the block: the source of a NextIteration, the call if the op is a function's name."""
        if node.op_name not in self.context.library:
            self._import_op(node, node.proto, node.op_name)
            return
        call, places = self.context.library.call(node.proto)
        self._import_op(node, call, call.op)
        node.types = node.types._replace(places=places)

    def _import_op(self, node: _Node, proto: pb.NodeDef, op_name: str) -> None:
        name = proto.name
        signature = self.context.registry.signature(op_name, name)
        if signature.functions:
            proto = self.context.note_callees(proto, signature)
        location_name = f"{name}@{self.function}" if self.function else name
        location = NameLoc.get(location_name, self.context.source_of(location_name))
        values = proto.attr
        attr = {key: values[key] for key in values}
        form = self._form(proto, op_name, attr, signature)
        node.types = form.types
        op: Operation
        if op_name in op_forms.OPS:
            resolved = op_forms.ExecutorNode(
                op_name, form.types.outputs, attr, form.properties, form.attributes, location
            )
            if op_name in op_forms.NEXT_ITERATION:
                op = op_forms.build_source(resolved)
            else:
                op = op_forms.build_executor_op(resolved, self._operands(node, name), self._tokens(node))
        else:
            operands = self._operands(node, name) if node.tensors or form.types.inputs else ()
            op = tf.TFOp(form.op, operands, form.result_types, form.properties, form.attributes, (), location)
            if self._has_islands:
                op = tf_executor.IslandOp.wrap(op, self._tokens(node), location)
        self._block.add_op(op)
        node.op = op

    def _form(
        self, node: pb.NodeDef, op_name: str, attr: Mapping[str, pb.AttrValue], signature: OpSignature
    ) -> NodeForm:
        """Returns a node's types and attributes; nodes of one op with the same attributes share them."""
        forms, key = self.context.forms, None
        if op_name != _CONSTANT:
            key = (op_name, node.device, tuple([(name, value.SerializeToString()) for name, value in attr.items()]))
            known = forms.get(key)
            if known is not None:
                return known
        signature.check_attributes(node, attr)
        form = op_forms.form(node, attr, signature.resolve(node, attr), *_node_attributes(node, attr, signature))
        if key is not None and len(forms) < _MAX_FORMS:
            forms[key] = form
        return form

    def _operands(self, node: _Node, name: str) -> list[Value]:
        """Returns a node's data operands, after a check of their number and element types."""
        expected = node.types.inputs
        operands = [self._resolve(tensor, name) for tensor in node.tensors]
        if name in self._entered:
            operands = [self._entered[name]]
        if len(expected) != len(operands):
            raise _bad_input(node, f"the op takes {len(expected)} inputs, the node has {len(operands)}")
        for wanted, operand in zip(expected, operands, strict=True):
            there = types.element_of(operand.type)
            if wanted is not there:
                _check_reference(node, wanted, there)
        return operands

    def _tokens(self, node: _Node) -> list[Value]:
        """Returns the control results of the ops that must run before a node's."""
        return [self._seen[control].control for control in node.controls]

    def _close_loop(self, node: _Node) -> None:
        """Adds the sink of a NextIteration."""
        (value,) = self._operands(node, node.proto.name)
        self._block.add_op(op_forms.build_sink(node.op, value, self._tokens(node)))


def _cycle(name: str, path: list[str]) -> ConversionError:
    """Returns the error of a node that depends on itself, with the cycle; `path` leads to it, users first."""
    between = path[path.index(name) :]
    shown = " <- ".join([*between[:_SHOWN_NODES], *(["..."] if len(between) > _SHOWN_NODES else []), name])
    return error("cyclic-graph", f"the node depends on itself: {shown}", node=name, hint="the model file is damaged")


def _check_reference(node: _Node, wanted: Attribute, there: Attribute) -> None:
    """Checks that a node may take an input of another element type than its op declares: only references differ."""
    wants_reference = isinstance(wanted, types.RefType) and not isinstance(there, types.RefType)
    if wants_reference or types.dereferenced(wanted) != types.dereferenced(there):
        raise _bad_input(node, f"an input must be of type {wanted}, not {there}")


def _bad_input(node: _Node, what: str) -> ConversionError:
    return error("bad-input", what, op=f"tf.{node.proto.op}", node=node.proto.name, hint="the model file is damaged")


def _node_attributes(
    node: pb.NodeDef, attr: Mapping[str, pb.AttrValue], signature: OpSignature
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Returns the declared attributes, defaults filled in, and the private ones."""
    properties = dict(signature.defaults)
    attributes: dict[str, Attribute] = {}
    node_name = node.name
    for name, value in attr.items():
        if name in signature.dropped or name in _NOT_KEPT:
            continue
        attribute = import_attribute(value, node_name)
        if name not in signature.rules:
            attributes[name] = attribute
        elif attribute is not NONE:
            properties[name] = attribute
    if node.device:
        attributes["device"] = attrs.string(node.device)
    if len(attributes) > 1:
        attributes = dict(sorted(attributes.items()))
    return properties, attributes
