"""Runs functions of a module on numpy values: ops of `tf`, `tfl`, StableHLO, `tf_executor` graphs, variables.

A value is dropped after its last use, so that a network needs the memory of its widest layer, not of all layers.
Constants stay in mapped files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tfconvert.converter.executor import arith, control_flow, litert_ops, resources
from tfconvert.converter.executor.graphs import Graph, GraphRun
from tfconvert.converter.executor.resources import LookupTable, Variable
from tfconvert.converter.executor.stablehlo import table as stablehlo
from tfconvert.converter.executor.tasks import Machine, Observer, Task, Values, bad, run_task
from tfconvert.converter.ir import symbol_table
from tfconvert.ops import registry
from tfconvert.ops.call import Array, Results, call_of
from tfconvert.schema.diagnostics import ConversionError, Diagnostic, error
from tfconvert.schema.dialects import tensor_data, tf_executor
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.dialects.stablehlo_properties import text
from tfconvert.schema.dialects.tf_saved_model import GlobalTensorOp, SessionInitializerOp
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.limits import Deadline

# Ops without kernels and bodies.
_STRUCTURE = frozenset({"func.return", "tf.Yield", "tfl.yield", "tf.Const", "stablehlo.return"})

_CONSTANTS = tensor_data.CONSTANT_OPS

# Op -> its handler, for ops with handles, LiteRT's operators and StableHLO's ops.
_OTHERS = {**resources.OPS, **litert_ops.OPS, **stablehlo.OPS, **arith.OPS}

# Ops that declare state.
_GLOBALS = frozenset({GlobalTensorOp.NAME, "ml_program.global"})

_TERMINATORS = frozenset({"func.return", "tf.Yield", "tfl.yield", "tf_executor.yield", "stablehlo.return"})


def run(
    module: ModuleOp,
    function_name: str,
    inputs: Sequence[Array],
    *,
    observer: Observer | None = None,
    max_iterations: int | None = None,
) -> list[Array]:
    """Runs a function of a module.

    Args:
        module: Functions of plain ops or `tf_executor` graphs. Its `tf_saved_model.global_tensor`s are the values of
            variables. It doesn't change: assignments are forgotten.
        function_name: The function's symbol.
        inputs: A value for each argument.
        observer: Called with every executed executor op, and whether its values are dead.
        max_iterations: Maximum number of iterations of any loop; `None` for no limit.

    Returns:
        The function's results; they may share memory with the inputs or with constants.
    """
    return Executor(module, observer, max_iterations).run(function_name, inputs)


@dataclass(frozen=True, slots=True)
class _Step:
    """An op, and the values that are dead after it."""

    op: Operation
    dead: tuple[Value, ...]


@dataclass(slots=True)
class Executor:
    """Runs functions of one module; assignments to variables persist."""

    module: ModuleOp  # The module.
    observer: Observer | None = None  # Called with every executed executor op.
    max_iterations: int | None = None  # Maximum number of iterations of any loop.
    # Called with arguments of functions and results of ops, and their values in this run.
    on_values: Callable[[Sequence[Value], Results], None] | None = None
    variables: dict[str, Variable] = field(default_factory=dict)  # The variables with handles so far, by name.
    tables: dict[str, LookupTable] = field(default_factory=dict)  # The tables with handles so far, by name.
    # The states of operators that compute one step of a sequence.
    states: dict[Operation, Results] = field(default_factory=dict)
    initialized: set[str] = field(default_factory=set)  # The functions that run only once and have run.
    # The remaining time and iterations, by the limits of the conversion.
    deadline: Deadline = field(default_factory=Deadline)
    _functions: Mapping[str, FuncOp] = field(init=False)
    _tensors: Mapping[str, Operation] = field(init=False)
    _initializers: list[str] = field(init=False)
    _plans: dict[Block, list[_Step]] = field(default_factory=dict, init=False)
    _graphs: dict[Operation, Graph] = field(default_factory=dict, init=False)
    _captures: control_flow.Captures = field(default_factory=dict, init=False)
    _first: dict[str, Array | None] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._functions = functions_of(self.module)
        self._tensors = {text(op, "sym_name"): op for op in self.module.ops if op.name in _GLOBALS}
        self._initializers = [
            name for op in self.module.ops if isinstance(op, SessionInitializerOp) for name in symbol_table.names(op)
        ]

    def run(self, function_name: str, inputs: Sequence[Array]) -> list[Array]:
        """Runs a function as `run` does; the first run also runs the module's initializers."""
        problems = self.problems(function_name)
        if problems:
            raise ConversionError(problems)
        self.deadline = Deadline()
        while self._initializers:
            run_task(self.begin(self._initializers.pop(0)), self.deadline)
        return list(run_task(self.call(function_name, tuple(inputs)), self.deadline))

    def problems(self, function_name: str) -> list[Diagnostic]:
        """Returns why a function can't be run: ops without a kernel or value in it or its callees."""
        waiting = [*self._initializers, function_name]
        seen, found = set(waiting), list[Diagnostic]()
        while waiting:
            for op in control_flow.all_ops(self._function(waiting.pop())):
                called = control_flow.callees(op)
                found += obstacles(op)
                waiting += [name for name in dict.fromkeys(called) if name not in seen]
                seen.update(called)
        return found

    def initial_value(self, symbol: str) -> Array | None:
        """Returns the value of a variable before initialization, or `None`."""
        tensor = self._tensors.get(symbol)
        value = None if tensor is None else tensor.properties.get("value")
        return tensor_data.to_array(value) if tensor_data.is_constant(value) else None

    def first_value(self, symbol: str) -> Array | None:
        """Returns the value of a variable after initialization, or `None`."""
        return self._first[symbol] if symbol in self._first else self.initial_value(symbol)

    def begin(self, name: str) -> Task:
        """Returns the task that runs an initializer of variables and tables."""
        results = yield self.call(name, ())
        self._first.update((symbol, variable.value) for symbol, variable in self.variables.items())
        return results

    def call(self, name: str, inputs: Results) -> Task:
        """Returns the task that runs a function."""
        function = self._function(name)
        arguments = function.body.block.args
        if len(arguments) != len(inputs):
            raise error("bad-operand", f"function {name!r} has {len(arguments)} arguments, not {len(inputs)}")
        if self.on_values is not None:
            self.on_values(arguments, inputs)
        return self.run_block(function.body.block, dict(zip(arguments, inputs, strict=True)))

    def run_block(self, block: Block, values: Values) -> Task:
        """Returns the task that runs a block's ops in order.

        Args:
            block: The block; its arguments' values are in `values`.
            values: The values visible to the block; its own values are added and dropped.
        """
        for step in self._plan(block):
            self.deadline.check_time()
            op = step.op
            operands = tuple(map(values.__getitem__, op.operands))
            if op.name in _TERMINATORS:
                return operands
            body = control_flow.OPS.get(op.name)
            if body is not None:
                results = yield body(self, op, operands, values)
            elif isinstance(op, tf_executor.GraphOp):
                results = yield GraphRun(self._graph(op), self, values).run()
            else:
                results = self.execute(op, operands)
            del operands
            if self.on_values is not None:
                self.on_values(op.results, results)
            values.update(zip(op.results, results, strict=False))
            for value in step.dead:
                values.pop(value, None)
        return ()

    def execute(self, op: Operation, inputs: Results) -> Results:
        """Returns the results of an op without bodies; subclasses override it to observe or disturb a run."""
        if op.name == "tf.Const":
            return (tensor_data.to_array(op.properties["value"]),)
        try:
            return _OTHERS.get(op.name, _kernel)(self, op, inputs)
        except ConversionError as problem:
            place = place_of(op.location)
            raise ConversionError(
                one._replace(op=op.name, node=place.node, location=str(place)) for one in problem.diagnostics
            ) from problem

    def _function(self, name: str) -> FuncOp:
        function = self._functions.get(name)
        if function is None or not function.body.blocks:
            raise error("unknown-function", f"there is no function {name!r} in the module")
        return function

    def _graph(self, op: tf_executor.GraphOp) -> Graph:
        graph = self._graphs.get(op)
        if graph is None:
            graph = self._graphs[op] = Graph.of(op, self._captures)
        return graph

    def _plan(self, block: Block) -> list[_Step]:
        """Returns a block's ops with the values of the block to drop after each."""
        plan = self._plans.get(block)
        if plan is None:
            needed: set[Value] = set()
            plan = []
            for op in reversed(list(block.ops)):
                used = (*op.operands, *control_flow.captures(op, self._captures))
                last = dict.fromkeys(value for value in (*used, *op.results) if value not in needed)
                plan.append(_Step(op, tuple(value for value in last if value.owner is block or _is_in(value, block))))
                needed.update(used)
            plan.reverse()
            self._plans[block] = plan
        return plan


def _is_in(value: Value, block: Block) -> bool:
    return isinstance(value.owner, Operation) and value.owner.parent is block


def _kernel(machine: Machine, op: Operation, inputs: Results) -> Results:
    return registry.evaluate(call_of(op, tuple(resources.value_behind(op, value) for value in inputs)))


def _is_known(op: Operation) -> bool:
    return (
        op.name in _STRUCTURE
        or op.name in control_flow.OPS
        or op.name in _OTHERS
        or isinstance(op, tf_executor.ExecutorOp)
        or registry.kernel(op.name.removeprefix("tf.")) is not None
    )


def obstacles(op: Operation) -> Sequence[Diagnostic]:
    """Returns why an op can't be run with any operands."""
    if not _is_known(op):
        return bad(op, "the op has no reference kernel", "no-reference-kernel").diagnostics
    if op.name in litert_ops.OPS and litert_ops.stands_for_floats(op):
        return bad(op, "the op has no reference kernel for quantized numbers", "no-reference-kernel").diagnostics
    if op.name == "stablehlo.custom_call" and text(op, "call_target_name") not in stablehlo.CUSTOM_CALLS:
        return bad(op, "the custom call has no reference kernel", "no-reference-kernel").diagnostics
    value = op.properties.get("value")
    if op.name in _CONSTANTS and not (tensor_data.is_constant(value) or isinstance(value, IntegerAttr)):
        return bad(op, "the constant's value was left out of the text", "missing-value").diagnostics
    return ()
