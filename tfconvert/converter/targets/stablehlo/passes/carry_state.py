"""Pass `carry-state`: variables become globals that public functions load and store, or arguments and results.

Branches and loops get the variables that they use as values, so that nothing inside them has effects. A function that
is called once, before all others, makes the assignments of initializers that are not constant.

Before:

    module {
      "tf_saved_model.global_tensor"() <{
        is_mutable, sym_name = "v", type = tensor<f32>, value = dense<1.0> : tensor<f32>
      }> : () -> ()
      func.func @main(%x: tensor<f32>) -> tensor<f32> {
        %0 = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<f32>>>
        %1 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<f32>>>) -> tensor<f32>
        %2 = "tf.AddV2"(%1, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "tf.AssignVariableOp"(%0, %2) : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()
        func.return %2 : tensor<f32>
      }
    }

After:

    module {
      "ml_program.global"() <{
        is_mutable, sym_name = "v", sym_visibility = "private", type = tensor<f32>, value = dense<1.0> : tensor<f32>
      }> : () -> ()
      func.func @main(%x: tensor<f32>) -> tensor<f32> {
        %0 = "ml_program.global_load"() <{global = @v}> : () -> tensor<f32>
        %1 = "tf.AddV2"(%0, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "ml_program.global_store"(%1) <{global = @v}> : (tensor<f32>) -> ()
        func.return %1 : tensor<f32>
      }
    }

Options:
    mlir_state: `globals`, or `arguments` for state that the caller keeps: it is passed as the last arguments of public
        functions, and assigned values are returned as their last results.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, count
from typing import ClassVar, NamedTuple

from tfconvert.converter.control_flow.constructs import inline_body
from tfconvert.converter.ir.edit import erase, erase_dead, update_function_type
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.resource_ops import initial_values
from tfconvert.converter.resource_ops.initial_values import ASSIGN, HANDLE, variable_name
from tfconvert.converter.targets.stablehlo.legalize.state import Carried, StateCarrier
from tfconvert.schema.diagnostics import NOTE, ConversionError, Diagnostic
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import stablehlo, tensor_data, tf, types
from tfconvert.schema.dialects.func import INITIAL, INITIALIZE, INITIALIZER, STATE, FuncOp, functions_of
from tfconvert.schema.dialects.locations import found_at, node_of
from tfconvert.schema.dialects.tf_saved_model import INDEX_PATH, GlobalTensorOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import TRUE, UNIT, ArrayAttr, DictionaryAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import TensorType

_NOTHING = DictionaryAttr.get({})


# The prefix that makes the symbols of variables unique.
_NUMBERED = re.compile(r"__sm_\d+__")


class _Variable(NamedTuple):
    """A variable: its name, its type, its initial value if known, and an op that creates a handle of it."""

    name: str
    kind: TensorType
    value: tensor_data.Constant | None
    handle: Operation


class CarryState:
    """Turns variables into globals, or into arguments and results."""

    __slots__ = ("mlir_state",)

    name: ClassVar[str] = "carry-state"

    def __init__(self, mlir_state: str = "globals") -> None:
        self.mlir_state = mlir_state

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites all functions; returns how many variables are state."""
        as_arguments = self.mlir_state == "arguments"
        initializer = _initializer(module)
        variables = _variables(module, initializer)
        if not variables:
            return NOTHING_DONE
        kinds = {name: variable.kind for name, variable in variables.items()}
        carried = StateCarrier(module, kinds).run()
        if not as_arguments:
            _globals(module, variables)
        for each in carried:
            if as_arguments:
                _as_ports(each, variables)
            else:
                _as_accesses(each, variables)
            update_function_type(each.function)
        for op in tuple(module.ops):
            if isinstance(op, GlobalTensorOp):
                erase(op)
        notes = [_note(variables)] if as_arguments else []
        return PassResult.of({"variables": len(variables)}, notes)


def _initializer(module: ModuleOp) -> FuncOp | None:
    """Returns the function with the rest of the initializers, and makes it public; `None` if nothing is left."""
    names = initial_values.take_initializers(module)
    functions = functions_of(module)
    tensors = {op.sym_name: op for op in module.ops if isinstance(op, GlobalTensorOp)}
    found = [functions[name] for name in dict.fromkeys(names) if name in functions and functions[name].body.blocks]
    initial_values.take_values(module, found, tensors)
    left = []
    for function in found:
        erase_dead(function.body.block)
        if any(tf.has_side_effects(op) and op.name != HANDLE for op in function.body.block.ops if op.name[:3] == "tf."):
            left.append(function)
        else:
            erase(function)
    if not left:
        return None
    first, *others = left
    last = first.body.block.last_op
    assert last is not None
    last.set_operands(())
    for function in others:
        inline_body(function.body.block, (), last, moves=True)
        erase(function)
    first.sym_name = _unique(INITIALIZE, functions)
    first.properties.pop("sym_visibility")
    first.properties.pop("res_attrs", None)
    first.attributes[INITIALIZER] = TRUE
    update_function_type(first)
    return first


def _unique(name: str, taken: Collection[str]) -> str:
    numbered = (f"{name}_{number}" for number in count(1))
    return next(each for each in chain((name,), numbered) if each not in taken)


def _variables(module: ModuleOp, initializer: FuncOp | None) -> dict[str, _Variable]:
    """Returns the variables that functions use."""
    tensors = {op.sym_name: op for op in module.ops if isinstance(op, GlobalTensorOp)}
    handles: dict[str, list[Operation]] = {}
    for function in functions_of(module).values():
        for op in function.body.walk():
            if op.name == HANDLE:
                handles.setdefault(variable_name(op), []).append(op)
    set_at_start = (
        set()
        if initializer is None
        else {
            variable_name(op.operands[0].owner)
            for op in initializer.body.walk()
            if op.name == ASSIGN and isinstance(op.operands[0].owner, Operation)
        }
    )
    found: dict[str, _Variable] = {}
    problems: list[Diagnostic] = []
    taken = set(functions_of(module))
    for name, ops in handles.items():
        tensor = tensors.get(name)
        value = None if tensor is None else tensor.properties.get("value")
        known = value if tensor_data.is_constant(value) else None
        kind = _kind(ops, tensor, known)
        if known is None and name not in set_at_start:
            problems.append(found_at(ops[0], *initial_values.UNKNOWN))
        elif kind is None:
            problems.append(
                found_at(
                    ops[0],
                    "variable-shape",
                    "the variable's shape may change",
                    "declare the variable with a fixed shape",
                )
            )
        else:
            called = _unique(_NUMBERED.sub("", name, count=1) or "variable", taken)
            taken.add(called)
            found[name] = _Variable(called, kind, known, ops[0])
    if problems:
        raise ConversionError(problems)
    return found


def _kind(
    handles: Sequence[Operation], tensor: Operation | None, value: tensor_data.Constant | None
) -> TensorType | None:
    """Returns the type of a variable's value, or `None` if its shape may change."""
    if value is None or tensor is None:
        declared = types.held_by(handles[0].results[0].type)
        return declared if isinstance(declared, TensorType) and declared.is_static else None
    first = value.type
    assert isinstance(first, TensorType)
    if not types.is_static(types.shape_of(tensor.properties["type"])):
        others = initial_values.assignments_of_other_shapes(handles, first.shape)
        if next(others, None) is not None:
            return None
    return first


def _globals(module: ModuleOp, variables: Mapping[str, _Variable]) -> None:
    """Adds a global for each variable."""
    first = module.body.block.first_op
    assert first is not None
    for variable in variables.values():
        properties: dict[str, attrs.Value] = {
            "sym_name": variable.name,
            "sym_visibility": "private",
            "type": variable.kind,
            "is_mutable": UNIT,
        }
        if variable.value is not None:
            properties["value"] = variable.value
        op = stablehlo.build("ml_program.global", (), (), properties, location=variable.handle.location)
        module.body.block.insert_op_before(op, first)


def _as_accesses(carried: Carried, variables: Mapping[str, _Variable]) -> None:
    """Inserts loads at the start of a function, and stores of new values at its end."""
    block = carried.function.body.block
    first, last = block.first_op, block.last_op
    assert first is not None
    assert last is not None
    left = dict(carried.left)
    for name, argument in reversed(tuple(carried.taken.items())):
        properties = {"global": attrs.symbol(variables[name].name)}
        load = stablehlo.build("ml_program.global_load", (), (argument.type,), properties, location=first.location)
        block.insert_op_before(load, first)
        first = load
        argument.replace_all_uses_with(load.results[0])
        block.erase_arg(argument)
        left = {key: load.results[0] if value is argument else value for key, value in left.items()}
    for name, value in left.items():
        properties = {"global": attrs.symbol(variables[name].name)}
        store = stablehlo.build("ml_program.global_store", (value,), (), properties, location=last.location)
        block.insert_op_before(store, last)


def _as_ports(carried: Carried, variables: Mapping[str, _Variable]) -> None:
    """Adds the final state of a function to its results, and names these and the new arguments."""
    function = carried.function
    last = function.body.block.last_op
    assert last is not None
    first = len(last.operands)
    last.set_operands([*last.operands, *carried.left.values()])
    arguments = [_named(variables[name].name, variables[name].value) for name in carried.taken]
    known = len(function.body.block.args) - len(arguments)
    function.arg_attrs = ArrayAttr.get([*_padded(function.arg_attrs, known), *arguments])
    function.res_attrs = ArrayAttr.get(
        [*_padded(function.res_attrs, first), *[_named(variables[name].name) for name in carried.left]]
    )


def _named(name: str, value: tensor_data.Constant | None = None) -> DictionaryAttr:
    own: dict[str, Attribute] = {INDEX_PATH: attrs.of([name]), STATE: attrs.string(name)}
    return DictionaryAttr.get(own if value is None else {**own, INITIAL: value})


def _padded(attributes: ArrayAttr | None, count: int) -> list[Attribute]:
    known = [] if attributes is None else list(attributes.data[:count])
    return known + [_NOTHING] * (count - len(known))


def _note(variables: Mapping[str, _Variable]) -> Diagnostic:
    shown = ", ".join(f"{variable.name} ({variable.kind})" for variable in variables.values())
    first = next(iter(variables.values())).handle
    hint = "the file of weights beside the text holds what it is at first; or keep it in globals (--mlir-state)"
    message = f"the caller keeps the state, as the functions' last arguments and results: {shown}"
    return Diagnostic("state-arguments", message, node=node_of(first.location), hint=hint, severity=NOTE)
