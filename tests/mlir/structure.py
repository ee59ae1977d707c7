"""Compares two modules of `tf_executor` graphs, and finds the first difference.

Graphs have no order, so ops are matched by the node that their locations name. Of the one module, `ours`, every op
must have its counterpart in the other, which may be larger and lack fetches (TensorFlow's importer may not prune).

Not compared, and why:

- `device = ""`: the default; we leave it out.
- type attributes that follow from operands and results (`T`, `Tin`, ...): kept only for ops unknown to the dialect.
- types and shapes that MLIR's ops derive (a handle's `dtype`) and theirs leaves out; `output_shapes`,
  `_output_shapes`, `tf._input_shapes`: all of it is in the types of results, as is `resultSegmentSizes`.
- `tf.device`: where something was fed is nothing to a function's argument.
- `strtemplate` of `tf.StringFormat`: another name of `template`, always the default.
- `tf.producer_version`: ours alone, the name of the TensorFlow that saved the model.
- `_read_only_resource_inputs`, `tf._construction_context`, ...: hints for TensorFlow's runtime.
- `tf_saved_model.*`: we export signatures, TensorFlow's importer of SavedModels the functions that they call.
- handles of bound constants in such functions: ours have the constants themselves.
- functions' names: TensorFlow makes them unique again; each must correspond to one function in the other module.
- shapes that one side does not know: TensorFlow infers while it imports, we in a pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tfconvert.importers.graph.op_signatures import OpRegistry
from tfconvert.schema.dialects import locations, tensor_data, tf, tf_executor, types
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.ir.attribute import Attribute, Type
from tfconvert.schema.ir.attributes import ArrayAttr, BytesAttr, DictionaryAttr, FloatAttr, StringAttr, SymbolRefAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value
from tfconvert.schema.tensorflow import op_defs

_IGNORED = frozenset(
    {
        "output_shapes",
        "_output_shapes",
        "_read_only_resource_inputs",
        "_collective_manager_ids",
        "tf._input_shapes",
        "tf._construction_context",
        "tf._original_func_name",
        "tf._disable_call_shape_inference",
        "resultSegmentSizes",
        "strtemplate",
        "tf.device",
        "allow_soft_placement",
        "tf.producer_version",
    }
)

_REGISTRY = OpRegistry()

BOUND = "tf_saved_model.bound_input"

# A node and the kind of its op: a NextIteration is two ops.
Key = tuple[str, str]


class DifferenceError(Exception):
    """The first difference, with its node and function."""


def check_same(ours: ModuleOp, theirs: ModuleOp, our_name: str = "main", their_name: str = "main") -> None:
    """Compares a function of two modules, and its callees.

    Raises:
        DifferenceError: They differ.
    """
    comparison = Comparison(_functions(ours), _functions(theirs))
    comparison.check_attributes("the module", ours.attributes, theirs.attributes)
    comparison.check_all(our_name, their_name)


def _functions(module: ModuleOp) -> dict[str, FuncOp]:
    return functions_of(module)


@dataclass
class Comparison:
    """Two modules' functions, by name, and which of ours is which of theirs."""

    ours: Mapping[str, FuncOp]
    theirs: Mapping[str, FuncOp]
    pairs: dict[str, str] = field(default_factory=dict)

    def check_all(self, our_name: str, their_name: str) -> None:
        """Compares two functions and all that they call."""
        self.pair(our_name, their_name)
        done = 0
        while done < len(self.pairs):
            for our_name, their_name in list(self.pairs.items())[done:]:
                try:
                    self.check_functions(self.ours[our_name], self.theirs[their_name])
                except DifferenceError as difference:
                    raise DifferenceError(f"in @{our_name} / @{their_name}: {difference}") from None
                done += 1

    def pair(self, our_name: str, their_name: str) -> None:
        """Notes that two names mean the same function."""
        known = self.pairs.setdefault(our_name, their_name)
        if known != their_name:
            raise DifferenceError(f"@{our_name} is @{known} at one place, @{their_name} at another")
        if list(self.pairs.values()).count(their_name) > 1:
            raise DifferenceError(f"@{their_name} is @{our_name} and another function")
        for name, functions in ((our_name, self.ours), (their_name, self.theirs)):
            if name not in functions:
                raise DifferenceError(f"there is no function @{name}")

    def check_functions(self, ours: FuncOp, theirs: FuncOp) -> None:
        """Compares two functions: types, attributes, graphs."""
        _check_same("number of arguments", len(ours.args), len(theirs.args))
        their_args = _argument_attributes(theirs)
        their_types = [
            _held(arg.type, our_arg.type) if BOUND in attributes else arg.type
            for our_arg, arg, attributes in zip(ours.args, theirs.args, their_args, strict=True)
        ]
        _check_types("an argument", [arg.type for arg in ours.args], their_types)
        self.check_attributes("the function", ours.attributes, theirs.attributes)
        for index, (left, right) in enumerate(zip(_argument_attributes(ours), their_args, strict=True)):
            self.check_attributes(f"argument {index}", left, right)
        graphs = [_graph(each) for each in (ours, theirs)]
        if graphs[1].results:
            _check_types("a result", *([value.type for value in graph.results] for graph in graphs))
        nodes, their_nodes = map(_by_node, graphs)
        for key, op in nodes.items():
            if key not in their_nodes:
                raise DifferenceError(f"{key[0]}: theirs has no such {key[1]}")
            try:
                self.check_ops(op, their_nodes[key])
            except DifferenceError as difference:
                raise DifferenceError(f"at {key[0]} ({key[1]}): {difference}") from None
        fetches = [graph.terminator for graph in graphs]
        if fetches[1].operands:
            self.check_operands(*fetches)

    def check_ops(self, ours: Operation, theirs: Operation) -> None:
        """Compares two executor ops, of islands their bodies."""
        self.check_operands(ours, theirs)
        _check_types("a result", *([value.type for value in op.results] for op in (ours, theirs)))
        inside = [_inside(op) for op in (ours, theirs)]
        if inside[0].name != inside[1].name:
            raise DifferenceError(f"{inside[0].name} / {inside[1].name}")
        self.check_attributes("the op", _attributes(inside[0]), _attributes(inside[1]))
        if inside[0] is not ours:
            _check_same("operands", *(list(map(_producer, op.operands)) for op in inside))

    def check_operands(self, ours: Operation, theirs: Operation) -> None:
        """Compares the operands of two executor ops, controls as sets."""
        data, controls = zip(*(_split_operands(op) for op in (ours, theirs)), strict=True)
        _check_same("operands", *data)
        _check_same("controls", *(sorted(set(each)) for each in controls))

    def check_attributes(self, whose: str, ours: Mapping[str, Attribute], theirs: Mapping[str, Attribute]) -> None:
        """Compares two dictionaries but for ignored entries."""
        left, right = (
            {key: value for key, value in each.items() if not _is_ignored(key, value)} for each in (ours, theirs)
        )
        for key in sorted(left.keys() | right.keys()):
            if key not in right and _is_derived(left[key]):
                continue
            if key not in left or key not in right:
                side, value = ("ours", left[key]) if key in left else ("theirs", right[key])
                raise DifferenceError(f"only {side} has the attribute {key} = {_short(value)} of {whose}")
            if not self._is_same(left[key], right[key]):
                raise DifferenceError(f"attribute {key} of {whose}: {_short(left[key])} / {_short(right[key])}")

    def _is_same(self, ours: Attribute, theirs: Attribute) -> bool:
        if isinstance(ours, tf.FunctionAttr) and isinstance(theirs, tf.FunctionAttr):
            return self._is_same(ours.function, theirs.function) and ours.arguments == theirs.arguments
        if isinstance(ours, SymbolRefAttr) and isinstance(theirs, SymbolRefAttr):
            names = (ours.root, theirs.root)
            if names[0] in self.ours:
                self.pair(*names)
                return True
            return ours == theirs
        if isinstance(ours, ArrayAttr) and isinstance(theirs, ArrayAttr) and len(ours) == len(theirs):
            return all(self._is_same(one, other) for one, other in zip(ours, theirs, strict=True))
        if tensor_data.is_constant(ours) and tensor_data.is_constant(theirs):
            return ours.type == theirs.type and _same_arrays(*map(tensor_data.to_array, (ours, theirs)))
        if isinstance(ours, FloatAttr) and isinstance(theirs, FloatAttr):
            return bool(ours.type == theirs.type) and np.float32(ours.value) == np.float32(theirs.value)
        if isinstance(ours, StringAttr | BytesAttr) and isinstance(theirs, StringAttr | BytesAttr):
            return _bytes(ours) == _bytes(theirs)
        return ours == theirs


def _same_arrays(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Compares arrays, not-a-numbers and signs of zero included."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return False
    return ours.tolist() == theirs.tolist() if ours.dtype == object else ours.tobytes() == theirs.tobytes()


def _bytes(text: StringAttr | BytesAttr) -> bytes:
    return text.data.encode() if isinstance(text, StringAttr) else text.data


def _short(attribute: Attribute) -> str:
    text = str(attribute)
    return text if len(text) < 200 else f"{text[:200]}..."


def _check_same(what: str, ours: object, theirs: object) -> None:
    if ours != theirs:
        raise DifferenceError(f"{what}: {ours} / {theirs}")


def _check_types(what: str, ours: Sequence[Attribute], theirs: Sequence[Attribute]) -> None:
    if len(ours) != len(theirs):
        raise DifferenceError(f"{len(ours)} / {len(theirs)} of what is {what}")
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if not is_compatible(one, other):
            raise DifferenceError(f"the type of {what}, number {index}: {one} / {other}")


def _held(bound: Attribute, ours: Attribute) -> Attribute:
    """Returns the type of a bound input as we have it: of a constant the constant's, not its handle's."""
    element = types.element_of(bound)
    if not isinstance(element, types.ResourceType) or isinstance(types.element_of(ours), types.ResourceType):
        return bound
    return element.subtypes[0] if element.subtypes else bound


def is_compatible(one: Attribute, other: Attribute) -> bool:
    """Returns whether two types may be of one value: equal except where one of them is unknown."""
    elements = types.element_of(one), types.element_of(other)
    if elements[0] != elements[1] and types.dereferenced(elements[0]) != types.dereferenced(elements[1]):
        return False
    if isinstance(elements[0], types.RefType) != isinstance(elements[1], types.RefType):
        return False
    left, right = types.shape_of(one), types.shape_of(other)
    if left is None or right is None:
        return True
    return len(left) == len(right) and all(a == b or a < 0 or b < 0 for a, b in zip(left, right, strict=True))


def _argument_attributes(function: FuncOp) -> list[Mapping[str, Attribute]]:
    if function.arg_attrs is None:
        return [{} for _ in function.args]
    return [each.data for each in function.arg_attrs if isinstance(each, DictionaryAttr)]


def _graph(function: FuncOp) -> tf_executor.GraphOp:
    graphs = [op for op in function.body.block.ops if isinstance(op, tf_executor.GraphOp)]
    if len(graphs) != 1:
        raise DifferenceError(f"{len(graphs)} graphs instead of one")
    return graphs[0]


def _inside(op: Operation) -> Operation:
    """Returns the op that an island wraps; any other op itself."""
    if isinstance(op, tf_executor.IslandOp) and op.wrapped is not None:
        return op.wrapped
    return op


def _key(op: Operation) -> Key:
    return locations.node_of(_inside(op).location) or locations.node_of(op.location), op.name


def _by_node(graph: tf_executor.GraphOp) -> dict[Key, Operation]:
    return {_key(op): op for op in graph.body.ops if not isinstance(op, tf_executor.FetchOp)}


def _producer(value: Value) -> tuple[str, str, int]:
    """Returns a key for the origin of a value: an argument, or a result of a node's op."""
    while isinstance(value, OpResult) and isinstance(value.op.parent_op(), FuncOp):
        # TensorFlow's importer of SavedModels puts these before a graph: an argument's handle loses its subtype,
        # and a bound constant is read from its handle.
        assert value.op.name in ("tf.Cast", "tf.ReadVariableOp")
        value = value.op.operands[0]
    if isinstance(value, BlockArgument):
        return "", "argument", value.index
    assert isinstance(value, OpResult)
    return (*_key(value.op), value.index)


def _split_operands(op: Operation) -> tuple[list[object], list[tuple[str, str, int]]]:
    data = [_producer(value) for value in op.operands if value.type != tf_executor.CONTROL]
    return [*data], [_producer(value) for value in op.operands if value.type == tf_executor.CONTROL]


def _attributes(op: Operation) -> dict[str, Attribute]:
    """Returns an op's properties and attributes, with defaults of OpDefs and without derived ones."""
    found = {**op.properties, **op.attributes}
    if isinstance(op, tf.TFOp) and op_defs.lookup(op.op_name) is not None:
        signature = _REGISTRY.signature(op.op_name, "")
        found = {key: value for key, value in {**signature.defaults, **found}.items() if key not in signature.derived}
    return found


def _is_derived(value: Attribute) -> bool:
    """Returns whether a value may be derived from a type."""
    if isinstance(value, ArrayAttr):
        return all(map(_is_derived, value))
    return isinstance(value, Type | tf.ShapeAttr)


def _is_ignored(key: str, value: Attribute) -> bool:
    if key == "device":
        return isinstance(value, StringAttr) and not value.data
    return key in _IGNORED or key.startswith("tf_saved_model.")
