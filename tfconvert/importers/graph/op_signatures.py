"""The inputs and outputs of an op's OpDef, preprocessed for resolving thousands of nodes.

The bundled registry comes first: the converter relies on TensorFlow's own definitions of its ops, as TensorFlow does.
The model's own (stripped) op list comes second, for custom ops.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

from tfconvert.importers.graph.attributes import KINDS, AttributeRule, import_attribute
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf_attributes, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import DenseArrayAttr
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

_OPERAND_SEGMENTS = frozenset(
    {
        "BatchFunction",
        "GeneratorDataset",
        "ParseExample",
        "SendTPUEmbeddingGradients",
        "XlaLaunch",
        "XlaSendTPUEmbeddingGradients",
        "XlaSparseDenseMatmulCustomCombinerOnTcGradWithCsrInput",
        "XlaSparseDenseMatmulGradWithCsrInput",
        "XlaVariadicReduceV2",
        "_FusedConv2D",
        "_XlaCompile",
    }
)
# Ops with segment sizes in MLIR; others with several lists have no such property there.
_RESULT_SEGMENTS = frozenset({"ParseExample", "ParseExampleV2"})

# More tensors than this in one argument are treated as damage.
_MAX_COUNT = 1 << 20


class SignatureArgument(NamedTuple):
    """One input or output argument of an op: one tensor, or a list of them.

    Attributes:
        name: The argument's name; function bodies refer to outputs by it.
        type: The `DataType` number where fixed, else 0.
        type_attr: The attribute that holds the type, if any.
        number_attr: The attribute that holds how many tensors there are, if any.
        type_list_attr: The attribute that holds the list of types, if any.
        is_ref: Whether the tensors are references.
    """

    name: str
    type: int
    type_attr: str
    number_attr: str
    type_list_attr: str
    is_ref: bool

    def types(self, node: pb.NodeDef, values: Mapping[str, int | tuple[int, ...]]) -> list[int]:
        """Returns the `DataType` numbers of the argument's tensors.

        Args:
            node: The node, for error messages.
            values: The values of the node's derived attributes.

        Raises:
            ConversionError: The number of tensors is absurd (`bad-attribute`).
        """
        if self.type_list_attr:
            listed = values[self.type_list_attr]
            return list(listed) if isinstance(listed, tuple) else []
        number = values[self.type_attr] if self.type_attr else self.type
        count = values[self.number_attr] if self.number_attr else 1
        assert isinstance(number, int)
        if not isinstance(count, int) or not 0 <= count <= _MAX_COUNT:
            raise _bad_attribute(node, f"the attribute {self.number_attr!r} is absurd")
        return [number + types.REF_OFFSET if self.is_ref and number < types.REF_OFFSET else number] * count


class NodeTypes(NamedTuple):
    """The op's arguments, resolved with a node's derived attributes.

    Attributes:
        inputs: Element types of the data inputs.
        outputs: Element types of the outputs.
        places: For each output argument its first output and the number of its outputs.
        segments: Properties with the arguments' lengths, where MLIR requires them, and derived attributes that are
            kept nevertheless.
    """

    inputs: tuple[Attribute, ...]
    outputs: tuple[Attribute, ...]
    places: Mapping[str, tuple[int, int]]
    segments: Mapping[str, Attribute]


class OpSignature:
    """A preprocessed OpDef.

    Attributes:
        inputs: The input arguments.
        outputs: The output arguments.
        derived: Attributes that follow from operands and results, each with the AttrValue field that holds it.
        dropped: Derived attributes that are not kept on IR ops.
        rules: The constraints on each attribute that the OpDef declares; others are private to a node.
        defaults: Default values of the declared attributes that are kept, as IR attributes.
        default_protos: The same for the derived ones, as protos.
        functions: Attributes that name functions.
        required: Declared attributes without a default.
    """

    __slots__ = (
        "_resolved",
        "default_protos",
        "defaults",
        "derived",
        "dropped",
        "functions",
        "inputs",
        "outputs",
        "required",
        "rules",
    )

    def __init__(
        self,
        inputs: tuple[SignatureArgument, ...],
        outputs: tuple[SignatureArgument, ...],
        derived: Mapping[str, str],
        dropped: frozenset[str],
        rules: Mapping[str, AttributeRule],
        defaults: dict[str, Attribute],
        default_protos: dict[str, pb.AttrValue],
        functions: tuple[str, ...],
        required: tuple[str, ...],
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.derived = derived
        self.dropped = dropped
        self.rules = rules
        self.defaults = defaults
        self.default_protos = default_protos
        self.functions = functions
        self.required = required
        self._resolved: dict[Hashable, NodeTypes] = {}

    def resolve(self, node: pb.NodeDef, attributes: Mapping[str, pb.AttrValue]) -> NodeTypes:
        """Returns the types of a node's inputs and outputs; nodes of equal derived attributes share them.

        Args:
            node: The node.
            attributes: Its attributes.
        """
        key = tuple([self._derived_value(node, attributes, name, kind) for name, kind in self.derived.items()])
        types_of_node = self._resolved.get(key)
        if types_of_node is None:
            for name in self.derived:
                self._check(node, name, attributes.get(name))
            types_of_node = self._resolved[key] = self._resolve(node, dict(zip(self.derived, key, strict=True)))
        return types_of_node

    def _derived_value(
        self, node: pb.NodeDef, attributes: Mapping[str, pb.AttrValue], name: str, kind: str
    ) -> int | tuple[int, ...]:
        value = attributes.get(name) or self.default_protos.get(name)
        if value is None:
            raise _bad_attribute(node, f"the attribute {name!r} is missing")
        return tuple(value.list.type) if kind == "list" else getattr(value, kind)

    def _resolve(self, node: pb.NodeDef, values: Mapping[str, int | tuple[int, ...]]) -> NodeTypes:
        inputs: list[int] = []
        lengths = []
        for argument in self.inputs:
            numbers = argument.types(node, values)
            lengths.append(len(numbers))
            inputs += numbers
        outputs: list[int] = []
        places = {}
        for argument in self.outputs:
            numbers = argument.types(node, values)
            places[argument.name] = (len(outputs), len(numbers))
            outputs += numbers
        segments: dict[str, Attribute] = {}
        if node.op in _OPERAND_SEGMENTS:
            segments[tf_attributes.OPERAND_SEGMENTS] = DenseArrayAttr.get(types.I32, lengths)
        if node.op in _RESULT_SEGMENTS:
            counts = [count for _, count in places.values()]
            segments[tf_attributes.RESULT_SEGMENTS] = DenseArrayAttr.get(types.I32, counts)
        for name in tf_attributes.KEPT.get(node.op, ()):
            segments[name] = attrs.of(values[name])
        return NodeTypes(_elements(node, inputs), _elements(node, outputs), places, segments)

    def check_attributes(self, node: pb.NodeDef, attributes: Mapping[str, pb.AttrValue]) -> None:
        """Checks that a node has all required attributes, and that each satisfies the op's constraints.

        Those that determine types are checked where they are resolved, which is rare.

        Raises:
            ConversionError: It is not (`bad-attribute`).
        """
        for name in self.required:
            if name not in attributes:
                raise _bad_attribute(node, f"the attribute {name!r} is missing")
        for name, value in attributes.items():
            if name in self.rules and name not in self.derived:
                self._check(node, name, value)

    def _check(self, node: pb.NodeDef, name: str, value: pb.AttrValue | None) -> None:
        rule = self.rules[name]
        if value is not None and (rule.is_limited or value.WhichOneof("value") != rule.field):
            problem = rule.problem(value)
            if problem:
                raise _bad_attribute(node, f"the attribute {name!r} {problem}")


def _elements(node: pb.NodeDef, numbers: Iterable[int]) -> tuple[Attribute, ...]:
    elements = []
    for number in numbers:
        element = types.element_type(number)
        if element is None:
            raise _bad_attribute(node, f"there is no element type {number}")
        elements.append(element)
    return tuple(elements)


def _bad_attribute(node: pb.NodeDef, what: str) -> ConversionError:
    return error("bad-attribute", what, op=f"tf.{node.op}", node=node.name, hint="the model file is damaged")


class OpRegistry:
    """Looks ops up by name and preprocesses each once."""

    def __init__(self, stripped_op_list: Iterable[pb.OpDef] = ()) -> None:
        self._own = {op_def.name: op_def for op_def in stripped_op_list}
        self._signatures: dict[str, OpSignature] = {}

    def has_found(self, op_name: str) -> bool:
        """Returns whether the signature of an op has been requested, as it is for the nodes that are imported."""
        return op_name in self._signatures

    def signature(self, op_name: str, node: str) -> OpSignature:
        """Returns the signature of an op.

        Args:
            op_name: The name in TensorFlow's registry.
            node: The node that uses it, for the error message.

        Raises:
            ConversionError: Neither the model nor the bundled registry has the op (`unknown-op`).
        """
        signature = self._signatures.get(op_name)
        if signature is None:
            op_def = op_defs.lookup(op_name) or self._own.get(op_name)
            if op_def is None:
                raise error(
                    "unknown-op",
                    "the op is defined neither in the model nor in TensorFlow's registry",
                    op=f"tf.{op_name}",
                    node=node,
                    hint="save the model as a SavedModel, whose op list has the definitions of custom ops",
                )
            if not _is_sound(op_def):
                raise error(
                    "bad-op-list",
                    "the model's own definition of the op contradicts itself",
                    op=f"tf.{op_name}",
                    node=node,
                    hint="the model file is damaged",
                )
            signature = self._signatures[op_name] = _digest(op_def)
        return signature


def _is_sound(op_def: pb.OpDef) -> bool:
    """Returns whether an op's arguments have the attributes that they refer to."""
    kinds = {attr.name: attr.type for attr in op_def.attr}
    return all(
        kinds.get(attr) == kind
        for argument in (*op_def.input_arg, *op_def.output_arg)
        for attr, kind in (
            (argument.type_attr, "type"),
            (argument.number_attr, "int"),
            (argument.type_list_attr, "list(type)"),
        )
        if attr
    )


def _digest(op_def: pb.OpDef) -> OpSignature:
    names = op_defs.derived_attributes(op_def)
    derived = {attr.name: KINDS.get(attr.type, "list") for attr in op_def.attr if attr.name in names}
    inputs, outputs = (
        tuple(
            SignatureArgument(arg.name, arg.type, arg.type_attr, arg.number_attr, arg.type_list_attr, arg.is_ref)
            for arg in args
        )
        for args in (op_def.input_arg, op_def.output_arg)
    )
    with_default = [attr for attr in op_def.attr if attr.HasField("default_value")]
    return OpSignature(
        inputs,
        outputs,
        derived,
        frozenset(derived) - tf_attributes.KEPT.get(op_def.name, frozenset()),
        {attr.name: AttributeRule.of(attr) for attr in op_def.attr},
        {a.name: import_attribute(a.default_value, op_def.name) for a in with_default if a.name not in derived},
        {a.name: a.default_value for a in with_default if a.name in derived},
        tuple(attr.name for attr in op_def.attr if attr.type in ("func", "list(func)")),
        tuple(attr.name for attr in op_def.attr if not attr.HasField("default_value")),
    )
