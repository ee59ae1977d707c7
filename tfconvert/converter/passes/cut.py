"""Pass `cut`: makes tensors named by the user the inputs and outputs of the exported function that has them.

Ops before the inputs and behind the outputs are erased, with everything that only they needed: other signatures,
variables, tables and their initializers. Calls that lead to a named tensor are inlined, all others stay. Names are
those of nodes, with or without the calls around them. The types of new inputs are inferred.

Before:

    func.func @main(%x: tensor<?x2xf32>, %s: tensor<2xf32>) -> tensor<?x2xf32> attributes {
        tf.entry_function = {control_outputs = "", inputs = "x,s", outputs = "y"},
        tfconvert.cut = {inputs = [{name = "f/scaled", tensor = "f/scaled:0"}]}} {
      %0 = "tf.PartitionedCall"(%x, %s) <{f = @f}> : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32> loc("f")
      func.return %0 : tensor<?x2xf32>
    }
    func.func private @f(%x: tensor<*xf32>, %s: tensor<*xf32>) -> tensor<*xf32> {
      %0 = "tf.Mul"(%x, %s) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("scaled")
      %1 = "tf.Relu"(%0) : (tensor<*xf32>) -> tensor<*xf32> loc("relu")
      func.return %1 : tensor<*xf32>
    }

After:

    func.func @main(%scaled: tensor<?x2xf32>) -> tensor<?x2xf32> attributes {
        tf.entry_function = {control_outputs = "", inputs = "f/scaled", outputs = "y"}} {
      %0 = "tf.Relu"(%scaled) : (tensor<?x2xf32>) -> tensor<?x2xf32>
      func.return %0 : tensor<?x2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from tfconvert.converter.control_flow.calls import inline_call
from tfconvert.converter.cutting.spots import Spot, TensorNames, chosen
from tfconvert.converter.ir.edit import erase, erase_dead, replace_op, update_function_type
from tfconvert.converter.ir.symbol_table import erase_unreferenced, names, names_outside
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.passes.inline import Inline
from tfconvert.converter.passes.merge_functions import MergeFunctions
from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.converter.passes.stablehlo_to_tf import StablehloToTf
from tfconvert.converter.passes.unique_callees import UniqueCallees
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.importers.pinned_shapes import override_shape, with_batch
from tfconvert.schema.diagnostics import NOTE, ConversionError, Diagnostic, error
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.call_interfaces import callees
from tfconvert.schema.dialects.cut import CUT, End, cut_of
from tfconvert.schema.dialects.cut import Cut as Wanted
from tfconvert.schema.dialects.func import FuncOp, defined_functions, functions_of
from tfconvert.schema.dialects.locations import found_at
from tfconvert.schema.dialects.stablehlo_properties import integer_of
from tfconvert.schema.dialects.tf_effects import ModuleEffects
from tfconvert.schema.dialects.tf_saved_model import (
    BOUND_INPUT,
    ENTRY_FUNCTION,
    EXPORTED_NAMES,
    AssetOp,
    GlobalTensorOp,
    SessionInitializerOp,
    entry_attribute,
    path_attributes,
    port_names,
)
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, StringAttr, SymbolRefAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value
from tfconvert.schema.limits import budget

_SIZE = "stablehlo.get_dimension_size"

# Sizes that an old input is given to see which dimensions of new ones follow it.
_TRIED = (3, 10007)


class Needed:
    """The ops of a function that its results need.

    Args:
        module: The module.
        function: The function, of one block.
        gone: Arguments that are cut off. Writes of a state that need them are left out.

    Attributes:
        ops: The ops.
        arguments: The arguments that they need.
        unwritten: Ops that write a state that is read, but need values that are cut off.
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
        """Returns ops, the ops that they need and that aren't known yet, and the arguments that they need."""
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
        """Adds the ops that write a state that is read, and the ops that these need, until no other state is read."""
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
    """Returns the states that are variables and tables; nothing reads others, such as output streams."""
    return {state for state in states if isinstance(state, tuple | Value)}


def states_read(effects: ModuleEffects, ops: Iterable[Operation]) -> set[Hashable]:
    """Returns the kinds and names of variables and tables that ops read; those without a name by their handles."""
    return {state for op in ops for state in _states(effects.effects(op).reads)}


def erase_others(function: FuncOp, kept: set[Operation]) -> int:
    """Erases the ops of a function that aren't among the needed ones; returns their number."""
    others = [op for op in function.body.block.ops if op not in kept]
    for op in reversed(others):
        erase(op)
    return len(others)


def erase_unused(module: ModuleOp, function: FuncOp) -> None:
    """Erases everything that the exported function of a module doesn't need.

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
    """Erases the initialization of unused tables, and functions that do nothing else."""
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
    """Erases the initialization of unused tables in an initializer; returns whether anything is left."""
    block = function.body.block
    is_left = False
    for op in reversed(list(block.ops)):
        writes = effects.effects(op).writes
        # A table without a name may be the table of another function.
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
    """Returns the values of constants that are single strings."""
    found = set()
    for op in ops:
        value: Attribute | None = op.properties.get("value")
        if value is not None and tensor_data.is_constant(value) and str(value.type) == "tensor<!tf_type.string>":
            found.add(bytes(tensor_data.to_array(value)[()]))
    return found


def _filename(asset: AssetOp) -> bytes:
    name = asset.properties.get("filename")
    return name.data.encode("utf-8", "surrogateescape") if isinstance(name, StringAttr) else b""


class Cut:
    """Cuts the exported functions that an importer has marked."""

    __slots__ = ()

    name: ClassVar[str] = "cut"

    def apply(self, module: ModuleOp) -> PassResult:
        functions = defined_functions(module)
        marked = {name: cut for name, function in functions.items() if (cut := cut_of(function)) is not None}
        if not marked:
            return NOTHING_DONE
        found = chosen(functions, marked, TensorNames(functions), lambda several: _merged(module, several))
        for name in found.others:
            erase(functions.pop(name))
        function = functions[found.function]
        del function.attributes[CUT]
        before = len(list(module.walk()))
        _expose(function, functions, [*found.inputs, *found.outputs])
        return _Cutting(module, function, marked[found.function], len(found.inputs)).result(before)


def _merged(module: ModuleOp, candidates: Sequence[str]) -> list[str]:
    """Returns exported functions without duplicates; the first of equal ones gets the signature keys of all."""
    copy = module.clone()
    for function in defined_functions(copy).values():
        function.attributes.pop(CUT, None)
    MergeFunctions().apply(copy)
    left, functions = defined_functions(copy), defined_functions(module)
    for name in candidates:
        if name in left and EXPORTED_NAMES in functions[name].attributes:
            functions[name].attributes[EXPORTED_NAMES] = left[name].attributes[EXPORTED_NAMES]
    return [name for name in candidates if name in left]


def _expose(function: FuncOp, functions: Mapping[str, FuncOp], spots: Sequence[Spot]) -> None:
    """Adds the values at some spots to a function's results; inlines the calls that lead to them.

    Being results of the function, they are updated when inlining replaces them.
    """
    terminator = _terminator(function)
    results, positions = list(terminator.operands), dict[int, int]()

    def add(at: int, value: Value) -> None:
        positions[at] = len(terminator.operands)
        terminator.set_operands([*terminator.operands, value])

    for at, spot in enumerate(spots):
        if not spot.place:
            add(at, results[spot.port] if spot.is_output else function.args[spot.port])
    references = Counter(name for each in functions.values() for op in each.body.walk() for name in names(op))
    pending: list[tuple[list[Operation], int, list[int]]] = [
        (list(function.body.block.ops), 0, [at for at, spot in enumerate(spots) if spot.place])
    ]
    while pending:
        ops, depth, inside = pending.pop()
        for number in dict.fromkeys(spots[at].place[depth] for at in inside):
            here = [at for at in inside if spots[at].place[depth] == number]
            deeper = [at for at in here if len(spots[at].place) > depth + 1]
            for at in here:
                if at not in deeper:
                    add(at, ops[number].results[spots[at].result])
            if deeper:
                pending.append((_inlined(ops[number], functions, references), depth + 1, deeper))
    operands = list(terminator.operands)
    terminator.set_operands([*operands[: len(results)], *(operands[positions[at]] for at in range(len(spots)))])


def _inlined(call: Operation, functions: Mapping[str, FuncOp], references: Mapping[str, int]) -> list[Operation]:
    """Inlines a call; returns the ops that took its place."""
    callee = functions[callees(call)[0]]
    name = callee.sym_name
    budget().take_operations(len(list(callee.walk())), f"the function {name!r}")
    return inline_call(call, callee, is_last=False, note_call=references[name] > 1)[0]


def _terminator(function: FuncOp) -> Operation:
    found = function.body.block.last_op
    assert found is not None
    return found


class _Cutting:
    """The cut of one function. Its last results are the values of its new inputs and outputs."""

    def __init__(self, module: ModuleOp, function: FuncOp, wanted: Wanted, inputs: int) -> None:
        self._module, self._function, self._wanted = module, function, wanted
        self._terminator = _terminator(function)
        ends = [*(wanted.inputs or ()), *(wanted.outputs or ())]
        first = len(self._terminator.operands) - len(ends)
        self._results, self._at, self._inputs = first, range(first, first + len(ends)), inputs
        self._old: list[BlockArgument] = list(function.args)

    @property
    def _block(self) -> Block:
        return self._function.body.block

    def result(self, before: int) -> PassResult:
        """Cuts the function; returns the number of removed ops, and notes on states that are not written any more."""
        input_names, output_names = (port_names(self._function, side) for side in ("inputs", "outputs"))
        self._feed()
        self._fetch()
        needed = Needed(self._module, self._function, self._old if self._wanted.inputs is not None else ())
        self._check_fed(needed, input_names)
        notes = [_left_alone(op) for op in needed.unwritten]
        erase_others(self._function, needed.ops)
        kept = [name for name, argument in zip(input_names, self._old, strict=True) if self._keep(argument, needed)]
        if self._wanted.inputs is not None:
            input_names = [end.name for end in self._wanted.inputs]
        else:
            input_names = kept
            self._pin_batch(input_names)
        if self._wanted.outputs is not None:
            output_names = [end.name for end in self._wanted.outputs]
        self._name(input_names, output_names)
        update_function_type(self._function)
        erase_unused(self._module, self._function)
        after = len(list(self._module.walk()))
        return PassResult.of({"operations cut off": max(before - after, 0)}, notes)

    def _feed(self) -> None:
        """Replaces the new inputs' values by arguments."""
        ends = self._wanted.inputs or ()
        if not ends:
            return
        inferred = self._inferred()
        # Programs of StableHLO first compute the sizes of their inputs, and pass them on to where they are used.
        sizes = self._sizes()
        places = self._places(sizes.values(), inferred)
        values = [self._terminator.operands[self._at[number]] for number in range(len(ends))]
        _check_distinct(ends, values)
        for number, (end, value) in enumerate(zip(ends, values, strict=True)):
            kind = types.most_specific(value.type, inferred[self._at[number]])
            argument = self._block.add_arg(self._type(end, kind, value))
            argument.name_hint = value.name_hint
            value.replace_all_uses_with(argument)
        for op, (old, axis) in sizes.items():
            if _size(old, axis) >= 0:
                replace_op(op, TFBuilder(op).constant(np.array(_size(old, axis), np.int32)))
            elif (old, axis) in places:
                number, place = places[old, axis]
                op.set_operand(0, self._block.args[len(self._old) + number])
                op.properties["dimension"] = attrs.integer(place)

    def _sizes(self) -> dict[Operation, tuple[BlockArgument, int]]:
        """Returns the ops that are sizes of inputs, with the input and its axis."""
        found = {}
        for op in self._block.ops:
            argument = _measured(op.operands[0]) if op.name == _SIZE else None
            if argument is not None and argument.shape is not None and not op.results[0].is_unused:
                found[op] = argument, integer_of(op.properties["dimension"])
        return found

    def _places(
        self, sizes: Iterable[tuple[BlockArgument, int]], inferred: Sequence[Attribute]
    ) -> dict[tuple[BlockArgument, int], tuple[int, int]]:
        """Returns the number and the axis of the new inputs that have the dynamic sizes of old ones, where any has."""
        found = {}
        for argument, axis in dict.fromkeys(sizes):
            if _size(argument, axis) >= 0:
                continue
            trials = [self._inferred((argument.index, axis, size)) for size in _TRIED]
            for number in reversed(range(self._inputs)):
                shapes = [types.shape_of(kinds[self._at[number]]) or () for kinds in (inferred, *trials)]
                for place, tried in enumerate(zip(*shapes, strict=False)):
                    if tried == (-1, *_TRIED):
                        found[argument, axis] = number, place
        return found

    def _inferred(self, trial: tuple[int, int, int] | None = None) -> list[Attribute]:
        """Returns the function's inferred result types with all calls inlined; works on a copy.

        Args:
            trial: The number of an input, one of its axes, and the size to infer with.
        """
        function = self._function
        update_function_type(function)
        copy = self._module.clone()
        if trial is not None:
            argument, axis, size = trial
            block = defined_functions(copy)[function.sym_name].body.block
            kind = block.args[argument].type
            shape = list(types.shape_of(kind) or ())
            shape[axis] = size
            block.args[argument].type = types.tensor(types.element_of(kind), shape)
        has_programs = any(op.name.startswith("stablehlo.") for op in copy.walk())
        programs = (StablehloToTf("iree"), ShapeInference()) if has_programs else ()
        for run in (Inline(), UniqueCallees(), ShapeInference(), *programs):
            run.apply(copy)
        return list(defined_functions(copy)[function.sym_name].function_type.results)

    def _type(self, end: End, kind: Attribute, value: Value) -> Attribute:
        """Returns the type of a new input."""
        element = types.element_of(kind)
        if isinstance(element, types.ResourceType | types.VariantType | types.RefType):
            what = "a variable's or table's handle" if isinstance(element, types.ResourceType) else "no plain tensor"
            raise error(
                "uncuttable-tensor",
                f"{end.name!r} can't be an input: it is {what}",
                hint="name a tensor that is computed from it",
            )
        if end.shape is not None:
            kind = types.tensor(element, override_shape(end.name, types.shape_of(kind), end.shape))
        if self._wanted.batch is not None:
            assert isinstance(kind, types.AnyTensor)
            kind = with_batch(end.name, kind, self._wanted.batch)
        return kind

    def _fetch(self) -> None:
        """Makes the new outputs' values the function's only results."""
        operands = list(self._terminator.operands)
        is_cut = self._wanted.outputs is not None
        values = operands[self._at.start + self._inputs :] if is_cut else operands[: self._results]
        self._terminator.set_operands(values)

    def _check_fed(self, needed: Needed, input_names: Sequence[str]) -> None:
        """Checks that the outputs need no input that isn't among the new ones."""
        if self._wanted.inputs is None:
            return
        missing = [
            _unfed(name, argument, needed)
            for name, argument in zip(input_names, self._old, strict=True)
            if argument in needed.arguments
        ]
        if missing:
            raise ConversionError(missing)

    def _keep(self, argument: BlockArgument, needed: Needed) -> bool:
        """Erases an old argument unless it is still needed; returns whether it was kept."""
        is_kept = self._wanted.inputs is None and argument in needed.arguments
        if not is_kept:
            self._block.erase_arg(argument)
        return is_kept

    def _pin_batch(self, input_names: Sequence[str]) -> None:
        if self._wanted.batch is None:
            return
        for name, argument in zip(input_names, self._block.args, strict=True):
            assert isinstance(argument.type, types.AnyTensor)
            argument.type = with_batch(name, argument.type, self._wanted.batch)

    def _name(self, input_names: Sequence[str], output_names: Sequence[str]) -> None:
        function = self._function
        function.attributes[ENTRY_FUNCTION] = entry_attribute(input_names, output_names)
        function.arg_attrs = function.res_attrs = None
        if EXPORTED_NAMES in function.attributes:
            function.arg_attrs = ArrayAttr.get([DictionaryAttr.get(path_attributes(each)) for each in input_names])
            function.res_attrs = ArrayAttr.get([DictionaryAttr.get(path_attributes(each)) for each in output_names])


def _measured(value: Value) -> BlockArgument | None:
    """Returns the argument that a value is, maybe cast to a type with fewer sizes."""
    while isinstance(value, OpResult) and value.op.name == "tf.Cast":
        value = value.op.operands[0]
    return value if isinstance(value, BlockArgument) else None


def _size(value: Value, axis: int) -> int:
    return (value.shape or ())[axis]


def _check_distinct(ends: Sequence[End], values: Sequence[Value]) -> None:
    seen: dict[Value, str] = {}
    for end, value in zip(ends, values, strict=True):
        if value in seen:
            raise error(
                "wrong-option",
                f"the inputs {seen[value]!r} and {end.name!r} are one tensor",
                hint="name each tensor once",
            )
        seen[value] = end.name


def _unfed(name: str, argument: BlockArgument, needed: Needed) -> Diagnostic:
    """Returns the error about an old input that is needed."""
    users = [use.operation for use in argument.uses if use.operation in needed.ops]
    casts = [op for op in users if op.name == "tf.Cast"]
    users += [use.operation for op in casts for use in op.results[0].uses if use.operation in needed.ops]
    sizes = [op for op in users if op.name == _SIZE]
    if len(sizes) + len(casts) < len(users):
        return Diagnostic(
            "unfed-input",
            f"an output needs the input {name!r}, which is not among the inputs",
            hint=f"add it to the inputs (--input {name}), or choose only outputs that don't need it",
        )
    is_batch = all(integer_of(op.properties["dimension"]) == 0 for op in sizes)
    return Diagnostic(
        "unfed-input",
        f"an output needs a size of the input {name!r}, which no input has",
        hint="fix it: batch=1 (--batch 1)" if is_batch else f"fix it: input_shapes (--input-shape {name}=...)",
    )


def _left_alone(op: Operation) -> Diagnostic:
    return found_at(
        op,
        "state-cut-off",
        "the state that it writes keeps its first value: the new value depends on ops that are cut off",
        "cut earlier in the graph if the model must change it",
    )._replace(severity=NOTE)
