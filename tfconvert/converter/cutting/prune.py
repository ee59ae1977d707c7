"""What is left of a module whose only exported function was cut: what its results need.

Of ops with effects those stay that write a state that a needed op reads, if they don't need what was cut off: a
streaming model keeps its state, and a vocabulary that only cut-off ops look up is gone. Asserts and messages are no
results.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from tfconvert.converter.ir.edit import erase, erase_dead
from tfconvert.converter.ir.symbol_table import erase_unreferenced, names_outside
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.tf_effects import ModuleEffects
from tfconvert.schema.dialects.tf_saved_model import BOUND_INPUT, AssetOp, GlobalTensorOp, SessionInitializerOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, StringAttr, SymbolRefAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value


class Needed:
    """The ops of a function that its results need.

    Args:
        module: The module.
        function: The function, of one block.
        gone: Arguments that are cut off: what needs them is not needed to keep a state.

    Attributes:
        ops: The ops.
        arguments: The arguments that they need.
        unwritten: Ops that write a state that they read, and that need what is cut off.
    """

    def __init__(self, module: ModuleOp, function: FuncOp, gone: Iterable[BlockArgument] = ()) -> None:
        self._effects = ModuleEffects(module)
        self._gone = set(gone)
        self.ops: set[Operation] = set()
        self.arguments: set[BlockArgument] = set()
        self.unwritten: list[Operation] = []
        terminator = function.body.block.last_op
        assert terminator is not None
        self._add(*self._behind([terminator]))
        self._add_writes([op for op in function.body.block.ops if op not in self.ops])

    def _add(self, ops: Iterable[Operation], arguments: Iterable[BlockArgument]) -> None:
        self.ops.update(ops)
        self.arguments.update(arguments)

    def _behind(self, roots: Sequence[Operation]) -> tuple[set[Operation], set[BlockArgument]]:
        """Returns ops with those that they need, as far as these aren't known, and the arguments that they need."""
        ops, arguments, pending = set[Operation](), set[BlockArgument](), list(roots)
        while pending:
            op = pending.pop()
            if op in ops or op in self.ops:
                continue
            ops.add(op)
            for operand in _operands(op):
                if isinstance(operand, OpResult):
                    pending.append(operand.op)
                elif isinstance(operand, BlockArgument):
                    arguments.add(operand)
        return ops, arguments

    def _add_writes(self, others: Sequence[Operation]) -> None:
        """Adds the ops that write a state that is read, and what they need, until nothing more is read."""
        writes = [(op, states) for op in others if (states := _states(self._effects.effects(op).writes))]
        refused: set[Operation] = set()
        changed = bool(writes)
        while changed:
            changed = False
            read = states_read(self._effects, self.ops)
            for op, states in writes:
                if op in self.ops or op in refused or states.isdisjoint(read):
                    continue
                ops, arguments = self._behind([op])
                if arguments & self._gone:
                    refused.add(op)
                    self.unwritten.append(op)
                else:
                    self._add(ops, arguments)
                    changed = True


def _operands(op: Operation) -> Iterator[Value]:
    for inner in op.walk() if op.regions else (op,):
        yield from inner.operands


def _states(states: Iterable[Hashable]) -> set[Hashable]:
    """Returns the states that are variables and tables; others, such as where messages go, nobody reads."""
    return {state for state in states if isinstance(state, tuple | Value)}


def states_read(effects: ModuleEffects, ops: Iterable[Operation]) -> set[Hashable]:
    """Returns the variables and tables that ops read: by kind and name, those without a name by their handles."""
    return {state for op in ops for state in _states(effects.effects(op).reads)}


def erase_others(function: FuncOp, kept: set[Operation]) -> int:
    """Erases the ops of a function that aren't among some; returns how many."""
    others = [op for op in function.body.block.ops if op not in kept]
    for op in reversed(others):
        erase(op)
    return len(others)


def erase_unused(module: ModuleOp, function: FuncOp) -> None:
    """Erases what a module holds for others than its exported function.

    Args:
        module: The module.
        function: The function.
    """
    effects = ModuleEffects(module)
    _prune_initializers(module, effects, states_read(effects, function.body.block.ops))
    erase_unreferenced(functions_of(module), names_outside(module))
    inside = [op for op in module.walk() if op.name in ("tf.VarHandleOp", "tf.Const")]
    variables = {name.data for op in inside if isinstance(name := op.properties.get("shared_name"), StringAttr)}
    variables |= _bound(module)
    paths = _texts(inside)
    for op in list(module.ops):
        is_variable = isinstance(op, GlobalTensorOp) and op.sym_name not in variables
        if is_variable or (isinstance(op, AssetOp) and _filename(op) not in paths):
            erase(op)


def _prune_initializers(module: ModuleOp, effects: ModuleEffects, read: set[Hashable]) -> None:
    """Erases what fills tables that nothing looks up, and the functions in which nothing else is done."""
    functions = functions_of(module)
    for declaration in [op for op in module.ops if isinstance(op, SessionInitializerOp)]:
        listed = declaration.properties.get("initializers")
        symbols = (
            [each.root for each in listed if isinstance(each, SymbolRefAttr)] if isinstance(listed, ArrayAttr) else []
        )
        there = [symbol for symbol in symbols if symbol in functions]
        kept = [symbol for symbol in there if _does_something(functions[symbol], effects, read)]
        for symbol in symbols:
            if symbol in there and symbol not in kept:
                erase(functions[symbol])
        if kept:
            declaration.properties["initializers"] = ArrayAttr.get([attrs.symbol(symbol) for symbol in kept])
        else:
            erase(declaration)


def _does_something(function: FuncOp, effects: ModuleEffects, read: set[Hashable]) -> bool:
    """Erases in an initializer what fills only tables that nothing reads; returns whether anything is left."""
    block = function.body.block
    is_left = False
    for op in reversed(list(block.ops)):
        writes = effects.effects(op).writes
        # Without a name nothing tells whether it is the table of another function.
        has_names = all(isinstance(state, tuple) for state in writes)
        if writes and has_names and writes.isdisjoint(read) and all(map(_is_unused, op.results)):
            erase(op)
        else:
            is_left = is_left or bool(writes)
    erase_dead(block)
    return is_left


def _is_unused(value: Value) -> bool:
    return value.is_unused


def _bound(module: ModuleOp) -> set[str]:
    """Returns the variables that are arguments of functions."""
    attributes = [
        each.data
        for function in functions_of(module).values()
        for each in function.arg_attrs or ()
        if isinstance(each, DictionaryAttr)
    ]
    return {symbol.root for each in attributes if isinstance(symbol := each.get(BOUND_INPUT), SymbolRefAttr)}


def _texts(ops: Iterable[Operation]) -> set[bytes]:
    """Returns the values of constants that are single texts."""
    found = set()
    for op in ops:
        value: Attribute | None = op.properties.get("value")
        if value is not None and tensor_data.is_constant(value) and str(value.type) == "tensor<!tf_type.string>":
            found.add(bytes(tensor_data.to_array(value)[()]))
    return found


def _filename(asset: AssetOp) -> bytes:
    name = asset.properties.get("filename")
    return name.data.encode("utf-8", "surrogateescape") if isinstance(name, StringAttr) else b""
