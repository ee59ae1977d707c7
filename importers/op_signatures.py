"""What an op's OpDef says about its inputs and outputs, made ready for resolving thousands of nodes.

The model's own (stripped) op list comes first, since it holds the custom ops and the versions that the model was
made with; the bundled registry comes second.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Attribute

from importers.attributes import import_attribute
from schema.diagnostics import ConversionError, error
from schema.dialects import types
from schema.tensorflow import op_defs
from schema.tensorflow.generated import tensorflow_pb2 as pb

_KINDS = {
    "string": "s", "int": "i", "float": "f", "bool": "b", "type": "type", "shape": "shape", "tensor": "tensor",
    "func": "func",
}  # fmt: skip
"""An OpDef attribute's type -> the AttrValue field that holds it; all others are lists."""

_MAX_COUNT = 1 << 20
"""More tensors than this in one argument are taken for damage."""


@dataclass(frozen=True, slots=True)
class Argument:
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
            values: What the node's derived attributes hold.

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


@dataclass(frozen=True, slots=True)
class NodeTypes:
    """What a node's derived attributes make of its op's arguments.

    Attributes:
        inputs: Element types of the data inputs.
        outputs: Element types of the outputs.
        places: For each output argument its first output and the number of its outputs.
    """

    inputs: tuple[Attribute, ...]
    outputs: tuple[Attribute, ...]
    places: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class OpSignature:
    """An OpDef, digested.

    Attributes:
        inputs: The input arguments.
        outputs: The output arguments.
        derived: Attributes that operands and results already tell, which are not kept on IR ops, each with the
            AttrValue field that holds it.
        declared: All attributes that the OpDef declares; others are a node's private ones.
        defaults: Default values of the declared attributes that are kept, as IR attributes.
        default_protos: The same for the derived ones, as protos.
        functions: Attributes that name functions.
        required: Declared attributes without a default, with the AttrValue field that holds each.
    """

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    derived: Mapping[str, str]
    declared: frozenset[str]
    defaults: dict[str, Attribute]
    default_protos: dict[str, pb.AttrValue]
    functions: tuple[str, ...]
    required: tuple[tuple[str, str], ...]
    _resolved: dict[Hashable, NodeTypes] = field(default_factory=dict)

    def resolve(self, node: pb.NodeDef, attributes: Mapping[str, pb.AttrValue]) -> NodeTypes:
        """Returns the types of a node's inputs and outputs; nodes of equal derived attributes share them.

        Args:
            node: The node.
            attributes: Its attributes.

        Raises:
            ConversionError: An attribute that tells types is missing, absurd or unknown (`bad-attribute`).
        """
        key = tuple([self._derived_value(node, attributes, name, kind) for name, kind in self.derived.items()])
        types_of_node = self._resolved.get(key)
        if types_of_node is None:
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
        inputs = [number for argument in self.inputs for number in argument.types(node, values)]
        outputs: list[int] = []
        places = {}
        for argument in self.outputs:
            numbers = argument.types(node, values)
            places[argument.name] = (len(outputs), len(numbers))
            outputs += numbers
        return NodeTypes(_elements(node, inputs), _elements(node, outputs), places)

    def check_attributes(self, node: pb.NodeDef, attributes: Mapping[str, pb.AttrValue]) -> None:
        """Checks that a node has the attributes that it must have, each of the declared kind.

        Raises:
            ConversionError: It has not (`bad-attribute`).
        """
        for name, kind in self.required:
            if name not in attributes:
                raise _bad_attribute(node, f"the attribute {name!r} is missing")
            there = attributes[name].WhichOneof("value")
            if there not in (kind, "placeholder"):
                raise _bad_attribute(node, f"the attribute {name!r} holds {there or 'nothing'!r} instead of {kind!r}")


def _elements(node: pb.NodeDef, numbers: Sequence[int]) -> tuple[Attribute, ...]:
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
    """Looks ops up by name, digests each once."""

    def __init__(self, stripped_op_list: Iterable[pb.OpDef] = ()) -> None:
        self._own = {op_def.name: op_def for op_def in stripped_op_list}
        self._signatures: dict[str, OpSignature] = {}

    def signature(self, op_name: str, node: str) -> OpSignature:
        """Returns the signature of an op.

        Args:
            op_name: The name in TensorFlow's registry.
            node: The node that uses it, for the error message.

        Raises:
            ConversionError: Neither the model nor the bundled registry knows the op (`unknown-op`).
        """
        signature = self._signatures.get(op_name)
        if signature is None:
            op_def = self._own.get(op_name) or op_defs.lookup(op_name)
            if op_def is None:
                raise error(
                    "unknown-op", "the op is defined neither in the model nor in TensorFlow's registry",
                    op=f"tf.{op_name}", node=node,
                    hint="save the model as a SavedModel, whose op list has the definitions of custom ops",
                )  # fmt: skip
            signature = self._signatures[op_name] = _digest(op_def)
        return signature


def _digest(op_def: pb.OpDef) -> OpSignature:
    arguments = (*op_def.input_arg, *op_def.output_arg)
    names = {
        name for argument in arguments
        for name in (argument.type_attr, argument.number_attr, argument.type_list_attr) if name
    }  # fmt: skip
    derived = {attr.name: _KINDS.get(attr.type, "list") for attr in op_def.attr if attr.name in names}
    inputs, outputs = (
        tuple(
            Argument(arg.name, arg.type, arg.type_attr, arg.number_attr, arg.type_list_attr, arg.is_ref) for arg in args
        )
        for args in (op_def.input_arg, op_def.output_arg)
    )
    with_default = [attr for attr in op_def.attr if attr.HasField("default_value")]
    return OpSignature(
        inputs,
        outputs,
        derived,
        frozenset(attr.name for attr in op_def.attr),
        {a.name: import_attribute(a.default_value, op_def.name) for a in with_default if a.name not in derived},
        {a.name: a.default_value for a in with_default if a.name in derived},
        tuple(attr.name for attr in op_def.attr if attr.type in ("func", "list(func)")),
        tuple((a.name, _KINDS.get(a.type, "list")) for a in op_def.attr if not a.HasField("default_value")),
    )
