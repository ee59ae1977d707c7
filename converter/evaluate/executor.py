"""Runs functions of `tf` ops on numpy values: calls, functional control flow, variables.

A value is dropped after its last use, so that a network needs the memory of its widest place, not of all its layers.
Constants stay where they are: mapped files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from xdsl.dialects.builtin import ModuleOp, NameLoc, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from converter.evaluate import kernels
from converter.evaluate.call import Array, Call, Results
from schema.diagnostics import ConversionError, Diagnostic, error
from schema.dialects import tensor_data, tf, types
from schema.dialects.tf_saved_model import GlobalTensorOp

_MAX_DEPTH = 200
"""Functions may not call each other deeper than this."""


def run(module: ModuleOp, function_name: str, inputs: Sequence[Array]) -> list[Array]:
    """Runs a function of a module.

    Args:
        module: Functions of `tf` ops; the values of their variables are its `tf_saved_model.global_tensor`s. It is
            not changed: what the function assigns is forgotten afterwards.
        function_name: The function's symbol.
        inputs: A value for each argument.

    Returns:
        The function's results; they may share memory with the inputs or with constants.

    Raises:
        ConversionError: There is no such function, ops have no reference kernel (`no-reference-kernel`, all of the
            reachable ones at once), or an op can't be computed from its operands.
    """
    executor = _Executor(
        {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)},
        {op.sym_name: op for op in module.ops if isinstance(op, GlobalTensorOp)},
    )
    executor.check(function_name)
    return list(executor.call(function_name, tuple(inputs)))


def call_of(op: Operation, inputs: Sequence[Array]) -> Call:
    """Returns what a kernel needs of a `tf` op.

    Type attributes and counts that the IR leaves to the types of the results are told explicitly.

    Args:
        op: The op.
        inputs: Its operands' values.

    Raises:
        ConversionError: An attribute is of a kind that no kernel knows (`bad-operand`).
    """
    try:
        attributes = {name: tf.python_value(value) for name, value in op.properties.items()}
    except TypeError as problem:
        raise error("bad-operand", f"an attribute has no value: {problem}", op=op.name, node=_node(op)) from problem
    op_def = op.op_def if isinstance(op, tf.TFOp) else None
    at = 0
    for arg in op_def.output_arg if op_def is not None else ():
        if arg.number_attr and arg.number_attr not in attributes:
            attributes[arg.number_attr] = len(op.results) - len(op_def.output_arg) + 1 if op_def is not None else 0
        if arg.type_attr and arg.type_attr not in attributes and at < len(op.results):
            row = types.from_mlir(types.element_of(op.results[at].type))
            attributes.update({} if row is None else {arg.type_attr: row.dtype})
        count = attributes.get(arg.number_attr, 1)
        at += count if isinstance(count, int) else 1
    return Call(op.name.removeprefix("tf."), tuple(inputs), attributes)


@dataclass(slots=True)
class _Variable:
    """What a resource handle stands for."""

    symbol: str
    value: Array | None


@dataclass(frozen=True, slots=True)
class _Step:
    """An op, and the values that nothing needs after it."""

    op: Operation
    dead: tuple[SSAValue, ...]


@dataclass(slots=True)
class _Executor:
    functions: Mapping[str, FuncOp]
    tensors: Mapping[str, GlobalTensorOp]
    plans: dict[str, list[_Step]] = field(default_factory=dict)
    variables: dict[str, _Variable] = field(default_factory=dict)
    depth: int = 0

    def check(self, name: str) -> None:
        """Raises: some function reachable from `name` is missing or has ops that can't be run."""
        waiting, seen, problems = [name], {name}, list[Diagnostic]()
        while waiting:
            function = self.function(waiting.pop())
            for op in function.body.walk():
                callees = _callees(op)
                problems += [] if callees or _is_known(op) else [_no_kernel(op)]
                waiting += [callee for callee in callees if callee not in seen]
                seen.update(callees)
        if problems:
            raise ConversionError(problems)

    def function(self, name: str) -> FuncOp:
        """Returns a function by its symbol."""
        function = self.functions.get(name)
        if function is None or not function.body.blocks:
            raise error("unknown-function", f"there is no function {name!r} in the module")
        return function

    def call(self, name: str, inputs: Results) -> Results:
        """Runs a function."""
        function = self.function(name)
        arguments = function.body.block.args
        if len(arguments) != len(inputs):
            raise error("bad-operand", f"function {name!r} has {len(arguments)} arguments, not {len(inputs)}")
        if self.depth == _MAX_DEPTH:
            raise error(
                "call-depth", f"functions call each other more than {_MAX_DEPTH} deep", op="func.func", node=name
            )
        values: dict[SSAValue, Array] = dict(zip(arguments, inputs, strict=True))
        del inputs
        self.depth += 1
        try:
            return self._run(self._plan(name, function), values)
        finally:
            self.depth -= 1

    def _run(self, plan: list[_Step], values: dict[SSAValue, Array]) -> Results:
        for step in plan:
            op = step.op
            operands = tuple(values[operand] for operand in op.operands)
            if op.name == "func.return":
                return operands
            results = self._execute(op, operands)
            del operands
            values.update(zip(op.results, results, strict=False))
            for value in step.dead:
                values.pop(value, None)
        return ()

    def _plan(self, name: str, function: FuncOp) -> list[_Step]:
        plan = self.plans.get(name)
        if plan is None:
            needed: set[SSAValue] = set()
            plan = []
            for op in reversed(list(function.body.block.ops)):
                dead = tuple(value for value in {*op.operands, *op.results} if value not in needed)
                needed.update(op.operands)
                plan.append(_Step(op, dead))
            plan.reverse()
            self.plans[name] = plan
        return plan

    def _execute(self, op: Operation, inputs: Results) -> Results:
        special = _SPECIAL.get(op.name)
        if special is not None:
            return special(self, op, inputs)
        try:
            return kernels.evaluate(call_of(op, inputs))
        except ConversionError as problem:
            where = _node(op)
            raise ConversionError(replace(one, op=op.name, node=where) for one in problem.diagnostics) from problem

    def constant(self, op: Operation, inputs: Results) -> Results:
        """Runs `tf.Const`."""
        return (tensor_data.to_array(op.properties["value"]),)

    def call_function(self, op: Operation, inputs: Results) -> Results:
        """Runs a call."""
        return self.call(_callees(op)[0], inputs)

    def branch(self, op: Operation, inputs: Results) -> Results:
        """Runs `tf.If`: a number is true unless it is 0, a string unless it is empty, a tensor if it has elements."""
        condition = inputs[0]
        taken = bool(condition.reshape(-1)[0]) if condition.ndim == 0 else condition.size > 0
        names = {key: _symbol(op, key) for key in ("then_branch", "else_branch")}
        return self.call(names["then_branch" if taken else "else_branch"], inputs[1:])

    def case(self, op: Operation, inputs: Results) -> Results:
        """Runs `tf.Case`; an index without a branch means the last one."""
        index, branches = int(inputs[0]), _callees(op)
        return self.call(branches[index if 0 <= index < len(branches) else -1], inputs[1:])

    def loop(self, op: Operation, inputs: Results) -> Results:
        """Runs `tf.While`."""
        condition, body = _symbol(op, "cond"), _symbol(op, "body")
        while True:
            (again,) = self.call(condition, inputs)
            if not (bool(again.reshape(-1)[0]) if again.ndim == 0 else again.size > 0):
                return inputs
            inputs = self.call(body, inputs)

    def handle(self, op: Operation, inputs: Results) -> Results:
        """Runs `tf.VarHandleOp`: handles of one name are of one variable."""
        symbol = str(tf.get(op, "shared_name", "")) or _node(op)
        variable = self.variables.get(symbol)
        if variable is None:
            tensor = self.tensors.get(symbol)
            value = None if tensor is None else tensor_data.to_array(tensor.properties["value"])
            variable = self.variables[symbol] = _Variable(symbol, value)
        result = np.empty((), object)
        result[()] = variable
        return (result,)

    def read(self, op: Operation, inputs: Results) -> Results:
        """Runs `tf.ReadVariableOp`."""
        return (_value(op, inputs[0]),)

    def shape(self, op: Operation, inputs: Results) -> Results:
        """Runs `tf.VariableShape`."""
        return (np.array(_value(op, inputs[0]).shape, call_of(op, inputs).dtype("out_type", np.int32)),)

    def is_initialized(self, op: Operation, inputs: Results) -> Results:
        """Runs `tf.VarIsInitializedOp`."""
        return (np.array(_variable(op, inputs[0]).value is not None),)

    def gather(self, op: Operation, inputs: Results) -> Results:
        """Runs `tf.ResourceGather`."""
        batch = {"batch_dims": tf.get(op, "batch_dims", 0)}
        operands = (_value(op, inputs[0]), inputs[1], np.array(batch["batch_dims"]))
        return kernels.evaluate(Call("GatherV2", operands, batch))

    def assign(self, op: Operation, inputs: Results) -> Results:
        """Runs `tf.AssignVariableOp`."""
        _variable(op, inputs[0]).value = inputs[1]
        return ()

    def assign_add(self, op: Operation, inputs: Results) -> Results:
        """Runs `tf.AssignAddVariableOp`."""
        value = _value(op, inputs[0])
        _variable(op, inputs[0]).value = np.asarray(value + inputs[1])
        return ()

    def assign_sub(self, op: Operation, inputs: Results) -> Results:
        """Runs `tf.AssignSubVariableOp`."""
        value = _value(op, inputs[0])
        _variable(op, inputs[0]).value = np.asarray(value - inputs[1])
        return ()

    def nothing(self, op: Operation, inputs: Results) -> Results:
        """Runs what has no meaning here."""
        return ()


_SPECIAL: Mapping[str, Callable[[_Executor, Operation, Results], Results]] = {
    "tf.AssignAddVariableOp": _Executor.assign_add,
    "tf.AssignSubVariableOp": _Executor.assign_sub,
    "tf.AssignVariableOp": _Executor.assign,
    "tf.Case": _Executor.case,
    "tf.Const": _Executor.constant,
    "tf.DisableCopyOnRead": _Executor.nothing,
    "tf.If": _Executor.branch,
    "tf.PartitionedCall": _Executor.call_function,
    "tf.ReadVariableOp": _Executor.read,
    "tf.ResourceGather": _Executor.gather,
    "tf.StatefulPartitionedCall": _Executor.call_function,
    "tf.StatelessCase": _Executor.case,
    "tf.StatelessIf": _Executor.branch,
    "tf.StatelessWhile": _Executor.loop,
    "tf.VarHandleOp": _Executor.handle,
    "tf.VarIsInitializedOp": _Executor.is_initialized,
    "tf.VariableShape": _Executor.shape,
    "tf.While": _Executor.loop,
    "func.call": _Executor.call_function,
}
"""Op -> how it is run, of ops that are not functions of their operands' values alone."""

_CALLEES: Mapping[str, tuple[str, ...]] = {
    "func.call": ("callee",),
    "tf.Case": ("branches",),
    "tf.If": ("then_branch", "else_branch"),
    "tf.PartitionedCall": ("f",),
    "tf.StatefulPartitionedCall": ("f",),
    "tf.StatelessCase": ("branches",),
    "tf.StatelessIf": ("then_branch", "else_branch"),
    "tf.StatelessWhile": ("cond", "body"),
    "tf.While": ("cond", "body"),
}
"""Op -> the properties that name functions."""


def _symbol(op: Operation, name: str) -> str:
    attribute = op.properties.get(name)
    if isinstance(attribute, SymbolRefAttr):
        return attribute.root_reference.data
    raise error("bad-operand", f"attribute {name!r} names no function", op=op.name, node=_node(op))


def _callees(op: Operation) -> tuple[str, ...]:
    """Returns the functions that an op may call."""
    names = _CALLEES.get(op.name, ())
    if names == ("branches",):
        return tuple(tf.get(op, "branches", ()))
    return tuple(_symbol(op, name) for name in names)


def _is_known(op: Operation) -> bool:
    return op.name in _SPECIAL or op.name == "func.return" or kernels.kernel(op.name.removeprefix("tf.")) is not None


def _no_kernel(op: Operation) -> Diagnostic:
    return Diagnostic("no-reference-kernel", "the op has no reference kernel", op=op.name, node=_node(op))


def _node(op: Operation) -> str:
    return op.location.desc.data if isinstance(op.location, NameLoc) else ""


def _variable(op: Operation, handle: Array) -> _Variable:
    variable: object = handle.item() if handle.shape == () else None
    if isinstance(variable, _Variable):
        return variable
    raise error("bad-operand", "the operand is no handle of a variable", op=op.name, node=_node(op))


def _value(op: Operation, handle: Array) -> Array:
    variable = _variable(op, handle)
    if variable.value is None:
        raise error("uninitialized-variable", f"variable {variable.symbol!r} has no value", op=op.name, node=_node(op))
    return variable.value
