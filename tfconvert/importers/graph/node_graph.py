"""NodeDefs to a `tf_executor.graph`, or to plain ops: the part that function bodies and main graphs share.

Only nodes that the fetches reach by data or control inputs become IR; the ops come in a topological order in which
every node follows its inputs. The only back edge is NextIteration: its source is an op without operands that comes
before all users, its sink comes at the end.

Where only the pass `executor-to-functional` would look at islands, a graph without V1 control flow comes without them:
this order is one in which its ops can run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from tfconvert.importers.graph import op_forms
from tfconvert.importers.graph.attributes import import_attribute, import_tensor
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
from tfconvert.schema.ir.operation import NO_ATTRIBUTES, Operation
from tfconvert.schema.ir.types import NONE
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

# Maximum number of nodes of a cycle in the message.
_SHOWN_NODES = 8

# The op whose attributes are large and rarely equal.
_CONSTANT = "Const"

# Cache size of forms of nodes: most models have fewer; in some each node has a private attribute of its own.
_MAX_FORMS = 4096

# Maximum size in bytes of a node with a form of one key.
_MAX_KEY = 4096

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
        name: Its name.
        op_name: Its op.
        inputs: Its inputs as the file has them.
        tensors: Its data inputs; the name of a node stands for the first output of that node.
        controls: The nodes of its control inputs.
        is_open: Whether it waits for its inputs.
        op: The op (or island) that it has become.
        types: The types of the op's arguments, and the index of the first result of each output argument.
    """

    __slots__ = ("controls", "inputs", "is_open", "name", "op", "op_name", "proto", "tensors", "types")

    # Set by `_read`: the call of a constructor would take half of its time.
    proto: pb.NodeDef
    name: str
    op_name: str
    inputs: Sequence[str]
    tensors: Sequence[TensorName | str]
    controls: Sequence[str]
    is_open: bool
    op: Operation
    types: NodeTypes

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

    __slots__ = ("_constants", "callees", "forms", "is_functional", "is_raw", "library", "registry", "source_of")

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
        self._constants: dict[int, NodeTypes] = {}  # by the number of the element type

    def note_callees(self, node: pb.NodeDef, signature: OpSignature) -> pb.NodeDef:
        """Records the functions that a node names; returns the node, naming instances of those that have attributes."""
        for name in signature.functions:
            value = node.attr[name]
            for function in (value.func, *value.list.func):
                if function.name:
                    self.callees.setdefault(self.library.instance(function.name, function.attr), node)
        return self.library.bind(node, signature.functions)

    def form(self, node: pb.NodeDef, name: str, op_name: str, inputs: Sequence[str]) -> NodeForm:
        """Returns a node's types and attributes, and records the functions that it names.

        Nodes of one op with the same attributes share them.

        Args:
            node: The node.
            name: Its name.
            op_name: Its op.
            inputs: Its inputs.
        """
        if op_name == _CONSTANT:
            return self._constant_form(node, name) or self._new_form(node, name, op_name)
        key = _form_key(node, name, op_name, inputs)
        known = self.forms.get(key)
        if known is None:
            known = self._new_form(node, name, op_name)
            if len(self.forms) < _MAX_FORMS:
                self.forms[key] = known
        return known

    def _new_form(self, node: pb.NodeDef, name: str, op_name: str) -> NodeForm:
        signature = self.registry.signature(op_name, name)
        if signature.functions:
            node = self.note_callees(node, signature)
        values = node.attr
        attr = {each: values[each] for each in values}
        signature.check_attributes(node, attr)
        types_of_node = signature.resolve(node, attr)
        if op_name == _CONSTANT:
            self._constants[attr["dtype"].type] = types_of_node
        return op_forms.form(node, attr, types_of_node, *_node_attributes(node, attr, signature))

    def _constant_form(self, node: pb.NodeDef, name: str) -> NodeForm | None:
        """Returns the form of a constant whose element type others have had; `None` if it is not plain, or damaged."""
        values = node.attr
        if "value" not in values or "dtype" not in values or node.device:
            return None
        value = values["value"]
        known = self._constants.get(values["dtype"].type)
        if known is None or len(values) - ("_output_shapes" in values) != 2 or value.WhichOneof("value") != "tensor":
            return None
        constant = import_tensor(value.tensor, name)
        if constant.type.element_type is not known.outputs[0]:
            return None
        return NodeForm(known, "tf.Const", (constant.type,), {"value": constant}, NO_ATTRIBUTES)


def _form_key(node: pb.NodeDef, name: str, op_name: str, inputs: Sequence[str]) -> Hashable:
    """Returns what two nodes have in common if they have the same op, device and attributes."""
    values = node.attr
    if len(values) > 1 and len(data := node.SerializeToString()) <= _MAX_KEY:
        # The bytes of a node begin with its name, op and inputs. The rest is a key that takes much less time than each
        # attribute by itself. This is their form in bytes if all are ASCII and shorter than 128.
        texts = "".join([f"\x1a{chr(len(text))}{text}" for text in inputs])
        head = f"\n{chr(len(name))}{name}\x12{chr(len(op_name))}{op_name}{texts}".encode()
        if data.startswith(head):
            return op_name, data[len(head) :]
    return (op_name, node.device, *[(each, values[each].SerializeToString()) for each in values])


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
        "_first",
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
        self._first: dict[str, Value] = {}  # by node, the first outputs of those imported so far, and the fed ones
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
        self._first = dict(self._fed)
        order = self._topological_order(roots)
        names = [node.op_name for node in order]
        self._has_islands = not self.context.is_functional or not op_forms.OPS.isdisjoint(names)
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
                    raise _cycle(name, [node.name for node in stack if isinstance(node, _Node)])
                continue
            node, needed = self._read(name)
            seen[name] = node
            if node.op_name in op_forms.NEXT_ITERATION:
                later += needed
                needed = []
            if needed:
                stack.append(node)
                stack += needed[::-1]
            else:
                node.is_open = False
                order.append(node)
        return order

    def _read(self, name: str) -> tuple[_Node, list[str]]:
        """Returns a node with its inputs parsed, and the nodes that must come before it."""
        proto = self.nodes.get(name)
        if proto is None:
            raise error("missing-node", f"the graph has no node {name!r}", node=name, hint="the model file is damaged")
        node = _Node()
        node.proto = proto
        node.name = name
        node.op_name = proto.op
        node.is_open = True
        # A list: iterating over the field itself takes several times as long.
        node.inputs = node.tensors = texts = proto.input[:]
        node.controls = ()
        if not texts:
            return node, texts
        joined = "".join(texts)
        if "^" in joined or ":" in joined or name in self._entered or not self._fed.keys().isdisjoint(texts):
            return node, self._read_inputs(node)
        return node, texts

    def _read_inputs(self, node: _Node) -> list[str]:
        """Parses a node's inputs; returns the nodes that must come before it."""
        is_entered = node.name in self._entered
        tensors: list[TensorName | str] = []
        controls: list[str] = []
        needed: list[str] = []
        for text in node.inputs:
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
        node.tensors, node.controls = tensors, controls
        return needed + controls

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
        library = self.context.library
        if node.op_name not in library.definitions:
            self._import_op(node, node.proto, node.op_name)
            return
        call, places = library.call(node.proto)
        self._import_op(node, call, call.op)
        node.types = node.types._replace(places=places)

    def _import_op(self, node: _Node, proto: pb.NodeDef, op_name: str) -> None:
        name = node.name
        location_name = f"{name}@{self.function}" if self.function else name
        location = NameLoc.get(location_name, self.context.source_of(location_name))
        types_of_node, full_name, result_types, properties, attributes = self.context.form(
            proto, name, op_name, node.inputs
        )
        node.types = types_of_node
        elements, outputs, _, _ = types_of_node
        op: Operation
        if op_name in op_forms.OPS:
            resolved = op_forms.ExecutorNode(op_name, outputs, proto.attr, properties, attributes, location)
            if op_name in op_forms.NEXT_ITERATION:
                op = op_forms.build_source(resolved)
            else:
                op = op_forms.build_executor_op(resolved, self._operands(node, elements), self._tokens(node))
        else:
            operands = self._operands(node, elements) if node.tensors or elements else ()
            op = tf.TFOp(full_name, operands, result_types, properties, attributes, (), location)
            if self._has_islands:
                op = tf_executor.IslandOp.wrap(op, self._tokens(node), location)
        self._block.add_op(op)
        node.op = op
        if outputs and name not in self._fed:
            self._first[name] = op.results[0]

    def _operands(self, node: _Node, expected: Sequence[Attribute]) -> list[Value]:
        """Returns a node's data operands, after a check of their number and element types."""
        first: Mapping[Any, Any] = self._first
        operands: list[Any] = list(map(first.get, node.tensors))
        if None in operands:
            for index, tensor in enumerate(node.tensors):
                operands[index] = self._resolve(tensor, node.name)
        if node.name in self._entered:
            operands = [self._entered[node.name]]
        if len(expected) != len(operands):
            raise _bad_input(node, f"the op takes {len(expected)} inputs, the node has {len(operands)}")
        for wanted, operand in zip(expected, operands, strict=True):
            there = operand.element
            if wanted is not there:
                _check_reference(node, wanted, there)
        return operands

    def _tokens(self, node: _Node) -> list[Value]:
        """Returns the control results of the ops that must run before a node's."""
        return [self._seen[control].control for control in node.controls]

    def _close_loop(self, node: _Node) -> None:
        """Adds the sink of a NextIteration."""
        (value,) = self._operands(node, node.types.inputs)
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
    # The order of a protobuf map differs between processes.
    for name, value in sorted(attr.items()):
        if name in signature.dropped or name in _NOT_KEPT:
            continue
        attribute = import_attribute(value, node_name)
        if name not in signature.rules:
            attributes[name] = attribute
        elif attribute is not NONE:
            properties[name] = attribute
    if node.device:
        attributes["device"] = attrs.string(node.device)
        attributes = dict(sorted(attributes.items()))
    return properties, attributes
