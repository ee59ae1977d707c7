"""Pass `initialize-state`: functions that run once assign the initial values of variables and fill tables.

Every exported function begins with calls of the initializers of the state that it uses, itself or through other
functions. The runtime runs each initializer only once.

Before:

    "tf_saved_model.global_tensor"() <{
      is_mutable, sym_name = "v", type = tensor<f32>, value = dense<1.0> : tensor<f32>
    }> : () -> ()
    func.func @main(%x: tensor<f32>) {
      %0 = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<f32>>>
      "tf.AssignVariableOp"(%0, %x) : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()
      func.return
    }

After:

    func.func @main(%x: tensor<f32>) {
      "tfl.call_once"() <{session_init_function = @initialize_variables}> : () -> ()
      %0 = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<f32>>>
      "tf.AssignVariableOp"(%0, %x) : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()
      func.return
    }
    func.func private @initialize_variables() {
      %0 = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<f32>>>
      %1 = "tf.Const"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
      "tf.AssignVariableOp"(%0, %1) : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()
      func.return
    }
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import erase
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.resource_ops import initial_values
from tfconvert.converter.targets.litert.legalize.entry import element_name
from tfconvert.converter.targets.litert.legalize.state import HELD
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp, functions_of
from tfconvert.schema.dialects.locations import node_of, place_of
from tfconvert.schema.dialects.tf_saved_model import GlobalTensorOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

_VARIABLE = "tf.VarHandleOp"
_FILL = "tf.LookupTableImportV2"
_TABLE = "tf.HashTableV2"
# The ops that create handles, and the kind of handle; MLIR text may already have LiteRT's.
_HANDLES = {_VARIABLE: _VARIABLE, _TABLE: _TABLE, "tfl.var_handle": _VARIABLE, "tfl.hashtable": _TABLE}
_CALL_ONCE = "tfl.call_once"

State = tuple[str, str]
"""A kind of handle and the name of its variable or table."""


class InitializeState:
    """Adds a function that assigns variables' initial values, and calls of initializers where state is used."""

    __slots__ = ()

    name: ClassVar[str] = "initialize-state"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites the exported functions; returns the number of variables."""
        initializers = initial_values.take_initializers(module)
        functions = functions_of(module)
        tensors = {op.sym_name: op for op in module.ops if isinstance(op, GlobalTensorOp)}
        initial_values.take_values(module, [functions[name] for name in initializers if name in functions], tensors)
        handles = [op for function in functions.values() for op in function.body.walk() if op.name in _HANDLES]
        if not handles and not initializers:
            return NOTHING_DONE
        variables: dict[str, list[Operation]] = {}
        for op in handles:
            if op.name == _VARIABLE:
                variables.setdefault(_state(op)[1], []).append(op)
        _check(variables, tensors)
        if variables:
            initializers.insert(0, _initialize(module, variables, tensors))
        initializers += _hoist(module, functions.values())
        functions = functions_of(module)
        filled = {name: _states(name, functions) for name in initializers if name in functions}
        needed = {name for function in functions.values() for name in _called(function)}
        for name, function in functions.items():
            if not symbol_table.is_private(function):
                used = _states(name, functions)
                called = [each for each, states in filled.items() if states & used]
                _call(function, called)
                needed.update(called)
        for name in filled.keys() - needed:
            erase(functions[name])
        return PassResult.of({"kept mutable": len(variables)})


def _state(handle: Operation) -> State:
    kind = _HANDLES[handle.name]
    if handle.name == "tfl.hashtable":
        return kind, str(tfl.attribute(handle, "table_id"))
    name = handle.properties.get("shared_name")
    return kind, name.data if isinstance(name, StringAttr) else ""


def _check(variables: Mapping[str, Sequence[Operation]], tensors: Mapping[str, GlobalTensorOp]) -> None:
    """Checks that the initial values of variables are known, and that LiteRT supports their types and shapes."""
    problems = []
    for name, handles in variables.items():
        tensor, place = tensors.get(name), place_of(handles[0].location)
        code, message, hint = _problem(handles, tensor)
        if code:
            problems.append(Diagnostic(code, message, handles[0].name, place.node or name, str(place), hint=hint))
    if problems:
        raise ConversionError(problems)


def _problem(handles: Sequence[Operation], tensor: GlobalTensorOp | None) -> tuple[str, str, str]:
    """Returns why LiteRT can't have a variable (code, message and hint), or an empty code."""
    value = None if tensor is None else tensor.properties.get("value")
    if tensor is None or not tensor_data.is_constant(value):
        return initial_values.UNKNOWN
    element = types.element_of(value.type)
    if element_name(element) not in HELD:
        return (
            "variable-type",
            f"LiteRT's variables hold {', '.join(HELD)}, not {element_name(element)}",
            "keep the state in one of these types, or pass it in and out of the function",
        )
    declared, first = types.shape_of(tensor.properties["type"]), value.shape or ()
    if 0 in first:
        return "variable-shape", "the variable has no elements, which LiteRT's must have", "give it at least one"
    # LiteRT infers the shapes of reads before anything is assigned.
    others = initial_values.assignments_of_other_shapes(handles, first)
    changed = None if types.is_static(declared) else next(others, None)
    if changed is not None:
        return (
            "variable-shape",
            f"the variable is a {tensor.properties['type']}, and its shape is not known to stay "
            f"{list(first)} at {node_of(changed.location) or changed.name}; LiteRT's have a fixed shape",
            "declare the variable with a fixed shape",
        )
    return "", "", ""


def _initialize(
    module: ModuleOp, variables: Mapping[str, Sequence[Operation]], tensors: Mapping[str, GlobalTensorOp]
) -> str:
    """Moves the values of global tensors to a function that assigns them to the variables; returns its name."""
    block = Block()
    for name in variables:
        tensor = tensors[name]
        value: Attribute = tensor.properties["value"]
        assert tensor_data.is_constant(value)
        insert = TFBuilder.at_block_end(block, tensor.location)
        handle = insert.insert(variables[name][0].clone())
        insert.tf_op("AssignVariableOp", (handle.results[0], insert.constant(value)), ())
        erase(tensor)
    block.add_op(ReturnOp.of())
    return symbol_table.FunctionMaker(module).add(
        "initialize_variables", block, next(iter(variables.values()))[0].location
    )


def _hoist(module: ModuleOp, functions: Iterable[FuncOp]) -> list[str]:
    """Moves ops that fill tables with constants out of exported functions, as in graphs without an init op."""
    fills = [
        op
        for function in functions
        if not symbol_table.is_private(function)
        for op in function.body.walk()
        if op.name == _FILL and all(tensor_data.constant_of(value) is not None for value in op.operands[1:])
    ]
    block = Block()
    for op in fills:
        clones = {value: value.owner.clone() for value in op.operands if isinstance(value.owner, Operation)}
        block.add_ops(clones.values())
        block.add_op(op.clone({value: each.results[0] for value, each in clones.items()}))
        erase(op)
    if not fills:
        return []
    block.add_op(ReturnOp.of())
    return [symbol_table.FunctionMaker(module).add("initialize_tables", block, fills[0].location)]


def _states(root: str, functions: Mapping[str, FuncOp]) -> set[State]:
    """Returns the states that a function uses, itself and through other functions."""
    states, seen, todo = set[State](), {root}, [root]
    while todo:
        for op in functions[todo.pop()].body.walk():
            if op.name in _HANDLES:
                states.add(_state(op))
            for name in symbol_table.names(op):
                if name in functions and name not in seen:
                    seen.add(name)
                    todo.append(name)
    return states


def _called(function: FuncOp) -> set[str]:
    """Returns the initializers that a function calls already."""
    return {name for op in function.body.walk() if op.name == _CALL_ONCE for name in symbol_table.names(op)}


def _call(function: FuncOp, initializers: Sequence[str]) -> None:
    insert = TFBuilder.at_block_begin(function.body.block, function.location)
    already = _called(function)
    for name in [name for name in initializers if name not in already]:
        insert.tfl_op("call_once", (), (), {"session_init_function": attrs.symbol(name)})
