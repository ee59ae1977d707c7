"""TensorFlow's functions in memory as a SavedModel's message: nothing is saved, and weights stay where they are.

The message has what `tf.saved_model.save` would write of the functions: a main graph that calls them, with a handle for
each variable, and the library of functions. Values are views of the variables' memory; TensorFlow copies a variable
before it changes one that is viewed, so the model that was passed is the model that is converted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfconvert.importers.graph.debug_info import SourceOf, Sources, no_source
from tfconvert.importers.saved_model import Files, import_message
from tfconvert.importers.temporary_model import PreparedModel, result_keys, user_module
from tfconvert.importers.tf_originals import argument_names, unique_name
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.sources import MemorySource
from tfconvert.schema.dialects.tensor_data import Constant, TensorData
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import Location
from tfconvert.schema.ir.types import TensorType
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.selection import Selection

_CALL = "StatefulPartitionedCall"
_HANDLE = "VarHandleOp"

# Characters that names of nodes can't have.
_OTHER = re.compile(r"[^A-Za-z0-9_./>-]")


class TracedModel(PreparedModel):
    """Functions of TensorFlow as the importer takes them.

    Args:
        name: The original model, for the report.
        kind: The kind, as in `PreparedModel`.
        functions: Concrete functions that `can_be_traced`, by the keys of their signatures.

    Attributes:
        message: The SavedModel.
        values: The values of variables, by the names of their handles.
        source_of: Finds source lines of nodes.
    """

    def __init__(self, name: str, kind: str, functions: Mapping[str, Any]) -> None:
        super().__init__(name, kind)
        self.add_results(functions)
        tf = user_module("tensorflow")
        library = tf.Graph()
        for function in functions.values():
            function.add_to_graph(library)
        self.source_of = _source_of(library)
        with library.as_default():
            exported = tf.compat.v1.train.export_meta_graph(graph=library, clear_devices=True)
        meta_graph = pb.MetaGraphDef.FromString(exported.SerializeToString())
        meta_graph.meta_info_def.tags.append("serve")
        self.message = pb.SavedModel(meta_graphs=[meta_graph])
        self.values: dict[str, Constant] = {}
        main = _MainGraph(tf, self.message.meta_graphs[0], self.values)
        for key, function in functions.items():
            main.call(key, function)


def can_be_traced(functions: Sequence[Any]) -> bool:
    """Returns whether concrete functions use nothing but variables of numbers and constants: no tables, no files."""
    return all(
        _is_of_numbers(variable.dtype) if variable is not None else captured.dtype.is_numpy_compatible
        for function in functions
        for captured, variable in _captures(function)
    ) and all(_is_of_numbers(each.dtype) for function in functions for each in _arguments(function))


def _is_of_numbers(dtype: Any) -> bool:
    return bool(dtype.is_numpy_compatible) and dtype.name not in ("resource", "string", "variant")


def _arguments(function: Any) -> Sequence[Any]:
    """Returns the tensors in a function's graph that are its arguments."""
    return list(function.inputs[: len(function.inputs) - len(function.captured_inputs)])


def _captures(function: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the tensors that a function captures, each with the variable whose handle it is, or `None`."""
    variables = {id(variable.handle): variable for variable in function.graph.variables}
    for captured in function.captured_inputs:
        yield captured, variables.get(id(captured))


class _MainGraph:
    """The main graph of a message, which calls the functions of its library.

    Args:
        tf: TensorFlow.
        meta_graph: The graph and its signatures.
        values: The values of variables.
    """

    def __init__(self, tf: Any, meta_graph: pb.MetaGraphDef, values: dict[str, Constant]) -> None:
        self._tf = tf
        self._meta_graph = meta_graph
        self._values = values
        self._names: set[str] = set()
        self._nodes: dict[int, str] = {}
        # Tensors whose identity is a key stay alive.
        self._captured: list[Any] = []
        self._functions = {each.signature.name: each.signature for each in meta_graph.graph_def.library.function}

    def call(self, key: str, function: Any) -> None:
        """Adds a signature: placeholders, the call of its wrapper, and the names of both."""
        signature = self._meta_graph.signature_def[key]
        arguments = list(zip(argument_names(function), _arguments(function), strict=True))
        order = sorted(range(len(arguments)), key=lambda index: arguments[index][0])
        nodes = []
        for name, tensor in (arguments[index] for index in order):
            node = self._add("Placeholder", f"{key}_{name}", dtype=tensor.dtype)
            node.attr["shape"].shape.MergeFromString(tensor.shape.as_proto().SerializeToString())
            _describe(signature.inputs[name], f"{node.name}:0", tensor)
            nodes.append(node.name)
        captures = [self._capture(*each) for each in _captures(function)]
        wrapper = self._wrapper(key, function, [*order, *range(len(arguments), len(function.inputs))])
        call = self._meta_graph.graph_def.node.add(name=unique_name(_call_op(wrapper), self._names))
        _fill_call(call, wrapper, [*nodes, *captures])
        results = dict(zip(result_keys(function), function.outputs, strict=True))
        for position, (name, tensor) in enumerate(sorted(results.items())):
            _describe(signature.outputs[name], f"{call.name}:{position}", tensor)

    def _wrapper(self, key: str, function: Any, order: Sequence[int]) -> pb.OpDef:
        """Returns the signature of a new function of the library that sorts arguments and results by their names.

        The main graph of SavedModels calls one for each of their signatures.

        Args:
            key: The key of the signature.
            function: The function that it calls.
            order: The positions in that function of the wrapper's arguments.
        """
        callee = self._functions[function.name.decode() if isinstance(function.name, bytes) else function.name]
        wrapper = self._meta_graph.graph_def.library.function.add()
        own = wrapper.signature
        own.name, own.is_stateful = f"__inference_signature_wrapper_{key}", callee.is_stateful
        own.input_arg.extend(callee.input_arg[position] for position in order)
        call = wrapper.node_def.add(name=_CALL)
        _fill_call(call, callee, [each.name for each in callee.input_arg])
        for _, position in sorted(zip(result_keys(function), range(len(callee.output_arg)), strict=True)):
            result = own.output_arg.add(name=f"result_{len(own.output_arg)}", type=callee.output_arg[position].type)
            wrapper.ret[result.name] = f"{_CALL}:output:{position}"
        return own

    def _capture(self, captured: Any, variable: Any) -> str:
        """Returns the node of a captured tensor."""
        if id(captured) not in self._nodes:
            self._captured.append(captured)
            made = self._constant(captured) if variable is None else self._handle(variable)
            self._nodes[id(captured)] = made.name
        return self._nodes[id(captured)]

    def _constant(self, tensor: Any) -> pb.NodeDef:
        node = self._add("Const", "Const", dtype=tensor.dtype)
        node.attr["value"].tensor.MergeFromString(self._tf.make_tensor_proto(tensor).SerializeToString())
        return node

    def _handle(self, variable: Any) -> pb.NodeDef:
        node = self._add(_HANDLE, variable.name.partition(":")[0], dtype=variable.dtype)
        node.attr["shape"].shape.MergeFromString(variable.shape.as_proto().SerializeToString())
        node.attr["shared_name"].s = node.name.encode()
        array = np.asarray(variable.read_value())
        value_type = types.tensor(types.from_dtype(array.dtype).mlir, array.shape)
        assert isinstance(value_type, TensorType)
        self._values[node.name] = TensorData.get(value_type, MemorySource(array))
        return node

    def _add(self, op: str, name: str, *, dtype: Any = None) -> pb.NodeDef:
        node = self._meta_graph.graph_def.node.add(op=op, name=unique_name(_OTHER.sub("_", name), self._names))
        if dtype is not None:
            node.attr["dtype"].type = dtype.as_datatype_enum
        return node


def _call_op(callee: pb.OpDef) -> str:
    return _CALL if callee.is_stateful else _CALL.removeprefix("Stateful")


def _fill_call(node: pb.NodeDef, callee: pb.OpDef, operands: Sequence[str]) -> None:
    node.op = _call_op(callee)
    node.input.extend(operands)
    node.attr["f"].func.name = callee.name
    node.attr["Tin"].list.type.extend(each.type for each in callee.input_arg)
    node.attr["Tout"].list.type.extend(each.type for each in callee.output_arg)


def _describe(info: pb.TensorInfo, name: str, tensor: Any) -> None:
    info.name = name
    info.dtype = tensor.dtype.as_datatype_enum
    info.tensor_shape.MergeFromString(tensor.shape.as_proto().SerializeToString())


def _source_of(library: Any) -> SourceOf:
    """Returns what finds source lines in a graph's library, if this TensorFlow keeps the traces of functions there."""
    function_of = getattr(library, "_get_function", lambda name: None)
    found: dict[str, SourceOf] = {}

    def find(name: str) -> Location:
        node, _, function = name.partition("@")
        if function not in found:
            info = getattr(function_of(function), "graph_debug_info", None)
            found[function] = (
                no_source if info is None else Sources(pb.GraphDebugInfo.FromString(info.SerializeToString())).find
            )
        return found[function](node)

    return find


def import_traced(model: TracedModel, selection: Selection) -> ModuleOp:
    """Returns the module of functions in memory; see `import_saved_model`."""
    return import_message(model.message, Files(None, None, model.values, model.source_of), selection)
