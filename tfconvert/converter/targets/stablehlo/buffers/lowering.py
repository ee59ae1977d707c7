"""Rewrites StableHLO functions to functions on buffers.

Each op becomes a call of a kernel that writes to buffers, which are allocated before the call. Buffers with their last
use there are freed after the call, or overwritten if the op is elementwise. Arithmetic on sizes becomes arithmetic on
numbers. Constants and state become memref globals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.targets.stablehlo.buffers.host import CONSTANT, FUSION, assertion, host_ops
from tfconvert.converter.targets.stablehlo.buffers.kernels import Kernels, Operands, buffer_type, is_inline
from tfconvert.converter.targets.stablehlo.buffers.scope import Buffer, InlineScope, Scope, sizes_of_results
from tfconvert.converter.targets.stablehlo.size_rules import NUMBERS
from tfconvert.schema.dialects import memref, stablehlo, types
from tfconvert.schema.dialects.func import CallOp, FuncOp, ReturnOp, functions_of
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import UNIT, DenseArrayAttr, StringAttr, SymbolRefAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX, FunctionType, MemRefType
from tfconvert.schema.ir.values import Value

_GLOBAL = "ml_program.global"


class Constants:
    """The globals of a module; equal constants are one.

    Args:
        module: The module; its state also becomes memory.
    """

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._globals: list[Operation] = []
        self._names: dict[Attribute, str] = {}
        self._declared: set[str] = set()
        self._taken = {_name(op, "sym_name") for op in module.ops}
        self._states = {_name(op, "sym_name"): op for op in module.ops if op.name == _GLOBAL}

    def buffer(self, scope: Scope, value: Value) -> Value:
        """Returns the memory of a constant.

        Args:
            scope: The scope that needs it.
            value: The constant.
        """
        op = value.owner
        assert isinstance(op, Operation)
        assert op.name == CONSTANT, op.name
        held, kind = op.properties["value"], buffer_type(value.type)
        if held not in self._names:
            self._names[held] = self._add("constant", kind, held, is_constant=True)
        return _get(scope, self._names[held], kind)

    def state(self, op: Operation, scope: Scope) -> Value:
        """Returns the memory of the state that an op loads or stores.

        Raises:
            ConversionError: Its sizes are not known (`unsupported-op`).
        """
        name = _name(op, "global")
        declared = self._states[name]
        kind = buffer_type(declared.properties["type"])
        if -1 in kind.shape:
            raise error_at(op, "unsupported-op", "state whose sizes are not known has no memory of its own")
        if name not in self._declared:
            self._declared.add(name)
            self._globals.append(_global(name, kind, declared.properties.get("value"), is_constant=False))
        return _get(scope, name, kind)

    def insert(self) -> None:
        """Inserts the globals before the functions, in place of the state."""
        for op in self._states.values():
            op.detach()
        block = self._module.body.block
        first = block.first_op
        assert first is not None, "there is a function that uses the globals"
        for op in self._globals:
            block.insert_op_before(op, first)

    def _add(self, name: str, kind: MemRefType, value: Attribute, *, is_constant: bool) -> str:
        found, number = name, 0
        while found in self._taken:
            number += 1
            found = f"{name}_{number}"
        self._taken.add(found)
        self._globals.append(_global(found, kind, value, is_constant=is_constant))
        return found


def _global(name: str, kind: MemRefType, value: Attribute | None, *, is_constant: bool) -> Operation:
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr.get(name),
        "sym_visibility": StringAttr.get("private"),
        "type": kind,
    }
    # State without a value is not initialised.
    properties["initial_value"] = UNIT if value is None else value
    if is_constant:
        properties["constant"] = UNIT
    return memref.build("memref.global", (), (), properties)


def _get(scope: Scope, name: str, kind: MemRefType) -> Value:
    return scope.insert(memref.build("memref.get_global", (), (kind,), {"name": _symbol(name)})).results[0]


def _symbol(name: str) -> SymbolRefAttr:
    return SymbolRefAttr.get(name)


def _name(op: Operation, key: str) -> str:
    found = op.properties.get(key)
    if isinstance(found, SymbolRefAttr):
        return found.root
    return found.data if isinstance(found, StringAttr) else ""


_NOT_ELEMENTWISE = frozenset({"stablehlo.cholesky", "stablehlo.reverse"})

_ELEMENTWISE = frozenset({"stablehlo.abs", "stablehlo.compare", "stablehlo.convert", "stablehlo.is_finite", CONSTANT})

# Ops that are inserted in advance and may be unused.
_UNUSED = ("arith.", "memref.dim", "memref.get_global", "memref.load")

_STATE = "ml_program."


def is_elementwise(op: Operation) -> bool:
    """Returns whether an op computes each element from those at the same position."""
    definition = stablehlo.definitions().get(op.name)
    if op.name in _ELEMENTWISE:
        return True
    return definition is not None and definition.types == "same" and op.name not in _NOT_ELEMENTWISE


class _Place(NamedTuple):
    """The position of a rewrite in a block.

    Attributes:
        scope: The scope of the block.
        last: The values that have their last use at each op.
    """

    scope: Scope
    last: dict[Operation, list[Value]]


class BufferLowering:
    """Rewrites the functions of a module.

    Args:
        module: The module.

    Attributes:
        counts: The numbers of allocated, reused and copied buffers.
    """

    def __init__(self, module: ModuleOp) -> None:
        self.counts: Counter[str] = Counter()
        self._module = module
        self._functions = functions_of(module)
        self._kernels = Kernels(module)
        self._constants = Constants(module)
        self._hosted: set[Operation] = set()

    def run(self) -> None:
        """Rewrites every function except fusions, which become kernels."""
        fusions = [each for each in self._functions.values() if FUSION in each.attributes]
        for function in self._functions.values():
            if function.body.blocks and FUSION not in function.attributes and not _is_shape_function(function):
                self._function(function)
        for function in fusions:
            function.detach()
        for function in self._kernels.functions:
            self._module.body.block.add_op(function)
        self._constants.insert()

    def _function(self, function: FuncOp) -> None:
        old = function.body.block
        _forward_barriers(function)
        self._hosted = host_ops([op for op in function.walk() if op is not function])
        block = Block(arg_types=[buffer_type(argument.type) for argument in old.args])
        scope = Scope(block, None, self._constants.buffer)
        for argument, new in zip(old.args, block.args, strict=True):
            new.name_hint, new.location = argument.name_hint, argument.location
            scope.hold(argument, new)
        operands = self._block(old, scope)
        scope.insert(ReturnOp.of(operands))
        region = function.body
        region.detach_block(old)
        region.add_block(block)
        function.function_type = FunctionType.get(block.arg_types, [value.type for value in operands])
        _drop(old)
        _prune(block)

    def _block(self, old: Block, scope: Scope) -> list[Value]:
        """Rewrites a block at the end of a scope's block; returns the buffers that its terminator forwards."""
        place = _Place(scope, _last_uses(old))
        for op in old.ops:
            scope.scalars.builder.location = op.location
            if op is old.last_op:
                return self._handed_on(op, place)
            self._op(op, place)
            scope.free(each for each in place.last.get(op, ()))
        return []

    def _handed_on(self, terminator: Operation, place: _Place) -> list[Value]:
        found, given = [], set[Value]()
        for value in terminator.operands:
            found.append(place.scope.give(value, is_last=value not in given and value in place.scope.owned))
            given.add(value)
        place.scope.free(list(place.scope.owned))
        return found

    def _op(self, op: Operation, place: _Place) -> None:
        scope = place.scope
        message = assertion(op)
        if op in self._hosted:
            scope.set_numbers(op.results[0], NUMBERS[op.name](scope, op))
        elif message is not None:
            (condition,) = scope.numbers(op.operands[0])
            build = stablehlo.build
            scope.insert(build("cf.assert", (scope.scalars.value(condition, types.I1),), (), {"msg": message}))
        elif op.name == CONSTANT:
            return
        elif op.name == "stablehlo.while":
            self._while(op, place)
        elif op.name in ("stablehlo.if", "stablehlo.case"):
            self._choice(op, place)
        elif op.name.startswith(_STATE):
            self._state(op, scope)
        elif isinstance(op, CallOp):
            fused = self._functions.get(op.callee)
            if fused is not None and FUSION in fused.attributes:
                self._kernel(op, fused, place)
            else:
                self._call(op, scope)
        else:
            self._kernel(op, None, place)

    # Kernels.

    def _kernel(self, op: Operation, fused: FuncOp | None, place: _Place) -> None:
        scope = place.scope
        operands = self._operands(op, scope)
        within = scope
        if fused is not None:
            within = InlineScope(scope, dict(zip(fused.args, op.operands, strict=True)))
            returned = fused.body.block.last_op
            sizes = [within.sizes(value) for value in returned.operands] if returned is not None else []
        else:
            sizes = list(sizes_of_results(scope, op)) if op.results else []
        name = self._kernels.add(op, fused, operands)
        buffers = [scope.buffer(value) for value in operands.buffers]
        reused = self._dying(op, fused, place) if len(op.results) == 1 else None
        outputs = []
        for result, each in zip(op.results, sizes, strict=True):
            if reused is not None:
                held = scope.find(reused)
                assert held is not None
                del scope.owned[reused]
                outputs.append(held.memref)
            else:
                outputs.append(scope.allocate(result, each))
            scope.own(result, outputs[-1], each)
            self.counts["reused" if reused is not None else "allocated"] += 1
        numbers = [
            scope.scalars.value(number, value.element) for value in operands.scalars for number in scope.numbers(value)
        ]
        inputs = [held.memref for held in buffers if held is not None]
        scope.insert(CallOp.of(name, [*inputs, *numbers, *outputs], []))

    def _operands(self, op: Operation, scope: Scope) -> Operands:
        used = dict.fromkeys((*op.operands, *_captured(op)))
        constants = [value for value in used if is_inline(value.owner)]
        rest = [value for value in used if value not in constants]
        scalars = {value: _count(value) for value in rest if scope.is_number(value)}
        rest = [value for value in rest if value not in scalars]
        return Operands(rest, scalars, constants)

    def _dying(self, op: Operation, fused: FuncOp | None, place: _Place) -> Value | None:
        """Returns an operand whose buffer an elementwise op can overwrite, because nothing reads it later."""
        inside = fused.body.block.ops if fused is not None else (op,)
        if not all(is_elementwise(each) or isinstance(each, ReturnOp) for each in inside):
            return None
        kind = buffer_type(op.results[0].type)
        for value in place.last.get(op, ()):
            if value in place.scope.owned and buffer_type(value.type) is kind and value in op.operands:
                return value
        return None

    # Calls, state and control flow.

    def _call(self, op: CallOp, scope: Scope) -> None:
        borrowed, stored = [], []
        for value in op.operands:
            held = scope.buffer(value)
            if held is None:
                held = Buffer(scope.stored(value), ())
                stored.append(held.memref)
            borrowed.append(held.memref)
        kinds = [buffer_type(result.type) for result in op.results]
        results = scope.insert(CallOp.of(op.callee, borrowed, kinds)).results
        for each in stored:
            scope.insert(memref.build("memref.dealloc", (each,)))
        self._own_results(op, results, scope)

    def _own_results(self, op: Operation, results: Sequence[Value], scope: Scope) -> None:
        for old, new in zip(op.results, results, strict=True):
            scope.own(old, new)

    def _state(self, op: Operation, scope: Scope) -> None:
        """Loads state as a copy, and stores it into its global."""
        value = op.results[0] if op.results else op.operands[0]
        place = self._constants.state(op, scope)
        if op.results:
            copy = scope.allocate(value, value.shape or ())
            scope.insert(memref.build("memref.copy", (place, copy)))
            scope.own(value, copy)
            return
        held = scope.buffer(value)
        source = held.memref if held is not None else scope.stored(value)
        scope.insert(memref.build("memref.copy", (source, place)))
        if held is None:
            scope.insert(memref.build("memref.dealloc", (source,)))

    def _while(self, op: Operation, place: _Place) -> None:
        scope, last = place.scope, place.last.get(op, [])
        inits, given = [], set[Value]()
        for value in op.operands:
            is_last = value in last and value not in given and value not in _captured(op)
            inits.append(scope.give(value, is_last=is_last))
            given.add(value)
        kinds = [value.type for value in inits]
        regions = [self._condition(op.regions[0].block, scope, kinds), self._carried(op.regions[1].block, scope, kinds)]
        new = scope.insert(memref.build("scf.while", inits, kinds, regions=regions))
        self._own_results(op, new.results, scope)

    def _condition(self, old: Block, outer: Scope, kinds: Sequence[Attribute]) -> Region:
        scope = self._inner(old, outer, kinds, is_owner=False)
        place = _Place(scope, _last_uses(old))
        last = old.last_op
        assert last is not None
        for op in old.ops:
            scope.scalars.builder.location = op.location
            if op is not last:
                self._op(op, place)
                scope.free(place.last.get(op, ()))
        (condition,) = scope.numbers(last.operands[0])
        holds = scope.scalars.value(condition, types.I1)
        scope.free(list(scope.owned))
        scope.insert(memref.build("scf.condition", (holds, *scope.block.args)))
        return Region(scope.block)

    def _carried(self, old: Block, outer: Scope, kinds: Sequence[Attribute]) -> Region:
        scope = self._inner(old, outer, kinds, is_owner=True)
        unused = [argument for argument in old.args if argument.is_unused]
        scope.free(unused)
        scope.insert(memref.build("scf.yield", self._block(old, scope)))
        return Region(scope.block)

    def _inner(self, old: Block, outer: Scope, kinds: Sequence[Attribute], *, is_owner: bool) -> Scope:
        scope = Scope(Block(arg_types=kinds), outer, self._constants.buffer)
        for argument, new in zip(old.args, scope.block.args, strict=True):
            if is_owner:
                scope.own(argument, new)
            else:
                scope.hold(argument, new)
        return scope

    def _choice(self, op: Operation, place: _Place) -> None:
        scope = place.scope
        (chosen,) = scope.numbers(op.operands[0])
        kinds = [buffer_type(result.type) for result in op.results]
        regions = []
        for region in op.regions:
            inner = Scope(Block(), scope, self._constants.buffer)
            inner.insert(memref.build("scf.yield", self._block(region.block, inner)))
            regions.append(Region(inner.block))
        if op.name == "stablehlo.if":
            condition = scope.scalars.value(chosen, types.I1)
            new = memref.build("scf.if", (condition,), kinds, regions=regions)
        else:
            index = scope.scalars.value(scope.scalars.index(chosen, op.operands[0].element))
            cases = DenseArrayAttr.get(types.I64, range(len(regions) - 1))
            # The last branch is the default, which is the first region of the op.
            new = memref.build("scf.index_switch", (index,), kinds, {"cases": cases}, [regions[-1], *regions[:-1]])
        self._own_results(op, scope.insert(new).results, scope)


def _forward_barriers(function: FuncOp) -> None:
    """Replaces barriers by their operands, since nothing reorders kernels."""
    for op in list(function.walk()):
        if op.name == "stablehlo.optimization_barrier":
            replace_op(op, op.operands)


def _count(value: Value) -> int:
    count = 1
    for size in value.shape or ():
        count *= size
    return count


def _captured(op: Operation) -> list[Value]:
    """Returns the values from outside that the code inside an op uses."""
    if not op.regions:
        return []
    inside = list(op.walk())[1:]
    own: set[Value] = {result for each in inside for result in each.results}
    own.update(
        argument
        for each in (op, *inside)
        for region in each.regions
        for block in region.blocks
        for argument in block.args
    )
    return list(dict.fromkeys(value for each in inside for value in each.operands if value not in own))


def _last_uses(block: Block) -> dict[Operation, list[Value]]:
    """Returns the values with their last use at each op: operands and results that no later op of the block uses."""
    found: dict[Operation, list[Value]] = {}
    later: set[Value] = set()
    for op in reversed(block.ops):
        used = dict.fromkeys((*op.operands, *_captured(op), *op.results))
        found[op] = [value for value in used if value not in later]
        later.update(used)
    return found


def _is_shape_function(function: FuncOp) -> bool:
    kinds = (*function.function_type.inputs, *function.function_type.results)
    return bool(kinds) and all(kind is INDEX for kind in kinds)


def _drop(block: Block) -> None:
    for op in reversed(block.ops):
        op.detach()
        op.drop_all_references()


def _prune(block: Block) -> None:
    """Erases arithmetic and loads that nothing uses."""
    for op in reversed(block.ops):
        for region in op.regions:
            for each in region.blocks:
                _prune(each)
        if op.name.startswith(_UNUSED) and all(result.is_unused for result in op.results):
            op.erase()
