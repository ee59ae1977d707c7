"""Pass `sink-handles`: sinks handles of variables and tables into branches and loop bodies.

A handle that is a function's argument doesn't show its variable. If it always refers to the same named variable, the
function creates the handle, and the argument is dropped.

Before:

    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.VarHandleOp"() <{container = "", shared_name = "w"}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tf.If"(%p, %0, %x) <{then_branch = @read, else_branch = @leave, is_stateless = false}>
          : (tensor<i1>, tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    func.func private @read(%w: tensor<!tf_type.resource>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.ReadVariableOp"(%w) : (tensor<!tf_type.resource>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @leave(%w: tensor<!tf_type.resource>, %x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }

After:

    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.If"(%p, %x) <{then_branch = @read, else_branch = @leave, is_stateless = false}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @read(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.VarHandleOp"() <{container = "", shared_name = "w"}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    func.func private @leave(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar

from tfconvert.converter.control_flow.constructs import origin
from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import erase, rebuild, update_function_type
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.dialects import tf_effects, types
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_BRANCHES = frozenset({"tf.If", "tf.Case"})
_LOOP = "tf.While"


class SinkHandles:
    """Creates the handles of named variables and tables in the functions of control flow that use them."""

    __slots__ = ()

    name: ClassVar[str] = "sink-handles"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns how many operands of control flow were dropped.

        Only private functions with one user are changed.
        """
        functions = functions_of(module)
        if len(functions) < 2:
            return NOTHING_DONE  # no calls
        users: Counter[str] = Counter()
        inner: dict[str, list[Operation]] = {}
        for name, function in functions.items():
            inner[name] = []
            for op in function.body.walk():
                users.update(set(symbol_table.names(op)))
                if op.name in _BRANCHES or op.name == _LOOP:
                    inner[name].append(op)
        own = {name for name, function in functions.items() if users[name] == 1 and symbol_table.is_private(function)}
        sunk = sum(_sink_from(name, functions, inner, own) for name in functions if name not in own)
        return PassResult.of({"handles": sunk})


def _sink_from(
    root: str, functions: Mapping[str, FuncOp], inner: Mapping[str, Sequence[Operation]], own: set[str]
) -> int:
    """Sinks handles from a function into its callees, and into their callees."""
    sunk = 0
    todo = [root]
    while todo:
        for op in inner[todo.pop()]:
            names = [name for name in dict.fromkeys(symbol_table.names(op)) if name in functions]
            if own.issuperset(names):
                sunk += _sink(op, [functions[name] for name in names])
                todo += names
    return sunk


def _sink(op: Operation, callees: Sequence[FuncOp]) -> int:
    """Replaces an op's handle operands by handles that its functions create; returns how many."""
    operands = op.operands[1:] if op.name in _BRANCHES else op.operands[:]
    handles = {index: handle for index, value in enumerate(operands) if (handle := _handle(value)) is not None}
    blocks = [callee.body.block for callee in callees if len(callee.body.blocks) == 1]
    if len(blocks) != len(callees) or any(len(block.args) != len(operands) for block in blocks):
        return 0
    if op.name == _LOOP:
        handles = _kept_by(callees, symbol_table.named(op, "body"), handles)
    if not handles:
        return 0
    for callee in callees:
        _clone_into(callee, handles)
    _without(op, operands, handles)
    return len(handles)


def _handle(value: Value) -> Operation | None:
    """Returns the op that names the variable or table of a handle."""
    if not isinstance(value.element, types.ResourceType):
        return None
    op = origin(value).owner
    return op if isinstance(op, Operation) and not op.operands and tf_effects.is_pure(op) else None


def _kept_by(callees: Sequence[FuncOp], body: str, handles: Mapping[int, Operation]) -> dict[int, Operation]:
    """Returns the handles that a loop's body returns as they are; they are dropped from its results."""
    block = next((callee.body.block for callee in callees if callee.sym_name == body), None)
    last = block.last_op if block is not None else None
    if block is None or last is None or len(last.operands) != len(block.args):
        return {}
    kept = {index: handle for index, handle in handles.items() if origin(last.operands[index]) is block.args[index]}
    if kept:
        last.set_operands([value for index, value in enumerate(last.operands) if index not in kept])
    return kept


def _clone_into(function: FuncOp, handles: Mapping[int, Operation]) -> None:
    """Clones the handle ops into the callee and drops the arguments."""
    block = function.body.block
    arguments = list(block.args)
    for index, handle in handles.items():
        if arguments[index].first_use is not None:
            own = OpBuilder.at_block_begin(block).insert(handle.clone())
            arguments[index].replace_all_uses_with(own.results[0])
    for index in handles:
        block.erase_arg(arguments[index])
    if function.arg_attrs is not None:
        kept = [item for index, item in enumerate(function.arg_attrs.data) if index not in handles]
        function.properties["arg_attrs"] = ArrayAttr.get(kept)
    update_function_type(function)


def _without(op: Operation, operands: Sequence[Value], handles: Mapping[int, Operation]) -> None:
    """Replaces an op by one without handle operands; a loop then doesn't return them either."""
    kept = [value for index, value in enumerate(operands) if index not in handles]
    if op.name != _LOOP:
        op.set_operands([op.operands[0], *kept])
    else:
        results = [result for index, result in enumerate(op.results) if index not in handles]
        properties: dict[str, Attribute] = {}
        shapes = op.properties.get("output_shapes")
        if isinstance(shapes, ArrayAttr):
            left = [shape for index, shape in enumerate(shapes.data) if index not in handles]
            properties["output_shapes"] = ArrayAttr.get(left)
        loop = OpBuilder(op).insert(rebuild(op, kept, [result.type for result in results], properties))
        for old, new in zip(results, loop.results, strict=True):
            old.replace_all_uses_with(new)
        for index in handles:
            op.results[index].replace_all_uses_with(operands[index])
        erase(op)
    for index in handles:
        _erase_unused(operands[index])


def _erase_unused(value: Value) -> None:
    """Erases the op that created a handle, if it is dead."""
    while isinstance(op := value.owner, Operation) and value.first_use is None:
        operands = op.operands[:]
        erase(op)
        if not operands:
            break
        value = operands[0]
