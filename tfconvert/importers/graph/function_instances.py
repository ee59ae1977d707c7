"""A model's functions by name, instantiated for each choice of their attributes.

Functions of TensorFlow 1 may leave types (and other attributes) to their callers; nodes of the body then hold
placeholders. They may also be called by a node whose op is the function's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from google.protobuf.message import EncodeError

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

# More instances than this are treated as endless recursion of a function that instantiates itself.
_MAX_INSTANCES = 1000

# The limit of nesting of functions as attributes of functions.
_MAX_NESTING = 32


class FunctionLibrary:
    """The functions that nodes can name.

    Attributes:
        definitions: The functions and instances by name.
    """

    def __init__(self, library: pb.FunctionDefLibrary | None = None) -> None:
        functions = library.function if library is not None else ()
        self.definitions = {function.signature.name: function for function in functions}
        self._instances: dict[tuple[str, tuple[tuple[str, bytes], ...]], str] = {}

    def definition(self, name: str) -> pb.FunctionDef | None:
        """Returns a function or instance by its name, `None` if the model has none."""
        return self.definitions.get(name)

    def instance(self, name: str, attributes: Mapping[str, pb.AttrValue]) -> str:
        """Returns the name of a function with its own attributes chosen; the name itself if it has none.

        Raises:
            ConversionError: An attribute is missing or wrong, or there are absurdly many instances (`bad-function`).
        """
        definition = self.definitions.get(name)
        if definition is None or not definition.signature.attr:
            return name
        bound = {attr.name: _chosen(name, attr, attributes) for attr in definition.signature.attr}
        try:
            key = (name, tuple((attr, value.SerializeToString(deterministic=True)) for attr, value in bound.items()))
        except EncodeError:
            raise _invalid_function(name, "has attributes with functions nested too deep") from None
        instance = self._instances.get(key)
        if instance is None:
            if len(self._instances) == _MAX_INSTANCES:
                raise _invalid_function(name, "is called with new attributes again and again")
            instance = self._instances[key] = self._unused(name)
            self.definitions[instance] = _instantiate(definition, instance, bound)
        return instance

    def bind(self, node: pb.NodeDef, attributes: Iterable[str]) -> pb.NodeDef:
        """Returns a node whose attributes name instances; the node itself if it names functions without attributes."""
        if all(
            self.instance(function.name, function.attr) == function.name
            for name in attributes
            for function in _functions(node.attr[name])
        ):
            return node
        bound = pb.NodeDef()
        bound.CopyFrom(node)
        for name in attributes:
            for function in _functions(bound.attr[name]):
                instance = self.instance(function.name, function.attr)
                if instance != function.name:
                    function.Clear()
                    function.name = instance
        return bound

    def call(self, node: pb.NodeDef) -> tuple[pb.NodeDef, dict[str, tuple[int, int]]]:
        """Returns the call of a function that a node names as its op, and where in its outputs each result is."""
        name = self.instance(node.op, node.attr)
        signature = self.definitions[name].signature
        call = pb.NodeDef(name=node.name, input=node.input, device=node.device)
        call.op = "StatefulPartitionedCall" if signature.is_stateful else "PartitionedCall"
        call.attr["f"].func.name = name
        call.attr["Tin"].list.type.extend(argument.type for argument in signature.input_arg)
        call.attr["Tout"].list.type.extend(argument.type for argument in signature.output_arg)
        return call, {argument.name: (index, 1) for index, argument in enumerate(signature.output_arg)}

    def _unused(self, name: str) -> str:
        number = len(self._instances)
        while f"{name}_{number}" in self.definitions:
            number += 1
        return f"{name}_{number}"


def _functions(value: pb.AttrValue) -> list[pb.NameAttrList]:
    """Returns the functions that an attribute names; callers may change them."""
    kind = value.WhichOneof("value")
    return [value.func] if kind == "func" else list(value.list.func) if kind == "list" else []


def _chosen(name: str, attr: pb.OpDef.AttrDef, values: Mapping[str, pb.AttrValue]) -> pb.AttrValue:
    value = values[attr.name] if attr.name in values else attr.default_value if attr.HasField("default_value") else None
    kind = value.WhichOneof("value") if value is not None else None
    if value is None or kind in (None, "placeholder") or (attr.type == "type" and kind != "type"):
        raise _invalid_function(name, f"requires the attribute {attr.name!r}")
    return value


def _instantiate(definition: pb.FunctionDef, name: str, bound: Mapping[str, pb.AttrValue]) -> pb.FunctionDef:
    """Returns a function whose attributes are chosen, under another name."""
    instance = pb.FunctionDef()
    instance.CopyFrom(definition)
    instance.signature.name = name
    del instance.signature.attr[:]
    for argument in (*instance.signature.input_arg, *instance.signature.output_arg):
        if argument.number_attr or argument.type_list_attr:
            raise _invalid_function(
                definition.signature.name, f"has the list of tensors {argument.name!r} in its signature"
            )
        if argument.type_attr:
            argument.type = _bound(definition.signature.name, argument.type_attr, bound).type
            argument.type_attr = ""
    for node in instance.node_def:
        for value in node.attr.values():
            _bind(definition.signature.name, value, bound, 0)
    return instance


def _bind(function: str, value: pb.AttrValue, bound: Mapping[str, pb.AttrValue], depth: int) -> None:
    """Replaces the placeholders in an attribute."""
    if depth > _MAX_NESTING:
        raise _invalid_function(function, "nests functions too deep in its attributes")
    if value.WhichOneof("value") == "placeholder":
        value.CopyFrom(_bound(function, value.placeholder, bound))
    for named in _functions(value):
        for inner in named.attr.values():
            _bind(function, inner, bound, depth + 1)


def _bound(function: str, attribute: str, bound: Mapping[str, pb.AttrValue]) -> pb.AttrValue:
    if attribute not in bound:
        raise _invalid_function(function, f"uses an attribute {attribute!r} that it doesn't declare")
    return bound[attribute]


def _invalid_function(name: str, what: str) -> ConversionError:
    return error("bad-function", f"function {name!r} {what}", node=name, hint="the model file is damaged")
