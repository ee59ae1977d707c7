"""The side effects of `tf` ops: which states they read and write, and whether they must run.

A *state* is what a resource refers to: a variable or a table (by container and name), whatever a function's argument
refers to (arguments are assumed not to alias), the place where an op's asserts or messages go. `ANY` is all of them.
The sources are OpDefs (`is_stateful`, resource and reference arguments) and the table `op_effects.tsv`, which is finer.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from enum import Enum
from functools import cache
from typing import NamedTuple

from tfconvert.schema import rows_of
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.call_interfaces import INTERFACES, REGION_FORMS, callees
from tfconvert.schema.dialects.tf_traits import IDENTITIES, full_names
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import IntegerAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value
from tfconvert.schema.tensorflow import op_defs

ANY = "any state"
"""Represents every state."""

_SENT, _RECEIVED = "sent", "received"


class Effects(NamedTuple):
    """The states that an op may touch."""

    reads: frozenset[Hashable] = frozenset()  # Those that it may read.
    writes: frozenset[Hashable] = frozenset()  # Those that it may write.

    def __or__(self, other: Effects) -> Effects:
        return Effects(self.reads | other.reads, self.writes | other.writes)


NO_EFFECTS = Effects()
ANY_EFFECTS = Effects(frozenset({ANY}), frozenset({ANY}))


class _Kind(Enum):
    """The effects of an op that follow from its name.

    Members:
        PURE: Only computes; equal ones may be merged.
        UNIQUE: Only computes, but each is distinct: inputs, handles without a name, random numbers.
        HANDLE: Names a state; equal ones are the same unless they have no name.
        READS: Reads what its handles refer to.
        WRITES: Writes what its handles refer to, without reading it.
        UPDATES: Reads and writes what its handles refer to.
        FAILS: May end the run with a message: must run, in any order.
        SENDS, RECEIVES: Exchanges values with another part of the program.
        CALLS: Has the effects of its functions or regions.
        UNKNOWN: Anything.
    """

    PURE = "pure"
    UNIQUE = "unique"
    HANDLE = "handle"
    READS = "reads"
    WRITES = "writes"
    UPDATES = "updates"
    FAILS = "fails"
    SENDS = "sends"
    RECEIVES = "receives"
    CALLS = "calls"
    UNKNOWN = "unknown"


@cache
def _kinds() -> Mapping[str, _Kind]:
    callers = ("LegacyCall", *(name[3:] for name in (*INTERFACES, *REGION_FORMS) if name.startswith("tf.")))
    listed = {name: _Kind(kind) for name, kind in rows_of(op_defs.EFFECTS)}
    return {**listed, **dict.fromkeys(callers, _Kind.CALLS)}


# Ops that describe a stream of values; nothing happens until it is iterated.
_DATASET = re.compile(r"(?<!To)Dataset(V\d)?$")

# Ops whose results refer to the same handles as their operands, one by one.
_PASSES_ON = full_names(IDENTITIES) | {"tf_executor.Enter", "tf_executor.Exit"}

_NONE_ELSEWHERE = ("arith.constant", "func.func", "builtin.module", "tf_executor.fetch", "tf_executor.yield")


@cache
def _kind(op_name: str) -> _Kind:
    """Returns the kind of an op by its name in TensorFlow's registry."""
    listed = _kinds().get(op_name)
    if listed is not None:
        return listed
    op_def = op_defs.lookup(op_name)
    if op_def is None:
        return _Kind.UNKNOWN
    if any(arg.is_ref for arg in op_def.input_arg):
        return _Kind.UPDATES
    if not op_def.is_stateful or _DATASET.search(op_name):
        return _Kind.PURE
    if op_name.startswith("Anonymous"):
        return _Kind.UNIQUE
    return _Kind.UPDATES if any(arg.type == _RESOURCE for arg in op_def.input_arg) else _Kind.UNKNOWN


# TensorFlow's number of the type of handles.
_RESOURCE = 20

_MUST_RUN = frozenset(
    {_Kind.WRITES, _Kind.UPDATES, _Kind.FAILS, _Kind.SENDS, _Kind.RECEIVES, _Kind.CALLS, _Kind.UNKNOWN}
)


def has_side_effects(op: Operation) -> bool:
    """Returns whether an op must be kept although its results are unused; true for all but `tf` ops.

    An op that TensorFlow's registry doesn't know counts as effectful.
    """
    if not op.name.startswith("tf."):
        return True
    kind = _kind(op.name[3:])
    return kind in _MUST_RUN and not (kind is _Kind.CALLS and _is_stateless(op))


def is_pure(op: Operation) -> bool:
    """Returns whether an op is a function of its operands and attributes: equal ones may be merged and moved."""
    if not op.name.startswith("tf."):
        return False
    kind = _kind(op.name[3:])
    if kind is _Kind.PURE:
        return not any(isinstance(operand.element, types.RefType) for operand in op.operands)
    return (kind is _Kind.CALLS and _is_stateless(op)) or (kind is _Kind.HANDLE and bool(_name(op)))


def effects(op: Operation) -> Effects:
    """Returns the states that an op reads and writes; a call may touch any, which `ModuleEffects` refines."""
    if op.name.startswith("tf.") and op.name != "tf.Yield":
        kind = _kind(op.name[3:])
        if kind is _Kind.CALLS:
            return NO_EFFECTS if _is_stateless(op) else _of_regions(op) if op.regions else ANY_EFFECTS
        return _of_kind(op, kind)
    if op.name in _NONE_ELSEWHERE or op.has_trait(Trait.TERMINATOR):
        return NO_EFFECTS
    return _of_regions(op) if op.regions else _of_executor(op)


def _of_executor(op: Operation) -> Effects:
    return NO_EFFECTS if op.name.startswith("tf_executor.") else ANY_EFFECTS


def _of_regions(op: Operation) -> Effects:
    return _union(effects(inner) for region in op.regions for block in region.blocks for inner in block.ops)


def _union(parts: Iterable[Effects]) -> Effects:
    total = NO_EFFECTS
    for part in parts:
        if part is not NO_EFFECTS:
            total |= part
    return total


_FIXED: Mapping[_Kind, Effects] = {
    _Kind.FAILS: NO_EFFECTS,
    _Kind.UNIQUE: NO_EFFECTS,
    _Kind.HANDLE: NO_EFFECTS,
    _Kind.SENDS: Effects(writes=frozenset({_SENT})),
    _Kind.RECEIVES: Effects(writes=frozenset({_RECEIVED})),
    _Kind.UNKNOWN: ANY_EFFECTS,
}


def _of_kind(op: Operation, kind: _Kind) -> Effects:
    fixed = _FIXED.get(kind)
    if fixed is not None:
        return fixed
    if kind is _Kind.PURE:
        return _reads_of_references(op)
    states = frozenset(resource_identity(operand) for operand in op.operands if _is_handle(operand.type))
    return Effects(
        states if kind is not _Kind.WRITES else frozenset(), states if kind is not _Kind.READS else frozenset()
    )


def _reads_of_references(op: Operation) -> Effects:
    """Returns the reads of an op that uses a reference as a value."""
    references = [value for value in op.operands if isinstance(value.element, types.RefType)]
    return Effects(reads=frozenset(map(resource_identity, references))) if references else NO_EFFECTS


def _is_handle(tensor_type: Attribute) -> bool:
    return isinstance(types.element_of(tensor_type), types.ResourceType | types.RefType)


def _is_stateless(op: Operation) -> bool:
    interface = INTERFACES.get(op.name)
    if interface is not None and interface.is_stateless:
        return True
    flag = op.properties.get("is_stateless")
    return isinstance(flag, IntegerAttr) and flag.value != 0


def _name(op: Operation) -> tuple[str, str] | None:
    """Returns the container and the name of the state that a handle op names; `None` if it has no name."""
    container, name = (op.properties.get(key) for key in ("container", "shared_name"))
    if not isinstance(name, StringAttr) or not name.data:
        return None
    return (container.data if isinstance(container, StringAttr) else "", name.data)


def resource_identity(value: Value) -> Hashable:
    """Returns which state a handle refers to: equal for equal states, `ANY` if it could be any.

    Args:
        value: A resource or a reference.
    """
    while True:
        if isinstance(value, BlockArgument):
            return ANY if value.block.parent_op() is None else value
        if not isinstance(value, OpResult):
            return ANY
        op = value.op
        if op.name in _PASSES_ON:
            value = op.operands[value.index]
        elif op.name == "tf_executor.island" and op.regions[0].block.last_op is not None:
            value = op.regions[0].block.last_op.operands[value.index]
        elif op.name.startswith("tf.") and _kind(op.name[3:]) in (_Kind.HANDLE, _Kind.UNIQUE):
            name = _name(op)
            return value if name is None else (op.name, *name)
        elif isinstance(value.element, types.RefType) and op.operands:
            value = op.operands[0]  # ops that update a reference forward it
        else:
            return ANY


class ModuleEffects:
    """The effects of ops including those of called functions, computed once for each function.

    Args:
        module: The module; results for a function are valid until the function changes.
    """

    def __init__(self, module: ModuleOp) -> None:
        self._functions = {
            name.data: op
            for op in module.ops
            if op.has_trait(Trait.SYMBOL)
            and op.regions
            and isinstance(name := op.properties.get("sym_name"), StringAttr)
        }
        self._known: dict[str, Effects] = {}

    def effects(self, op: Operation) -> Effects:
        """Returns the states that an op reads and writes, itself and through calls."""
        return _union(self._inner(inner) for inner in (op.walk() if op.regions else (op,)))

    def _inner(self, op: Operation) -> Effects:
        """Returns the effects of an op without those of the ops in its regions."""
        called = callees(op)
        if not called:
            return NO_EFFECTS if op.regions else effects(op)
        if op.name.startswith("tf.") and _is_stateless(op):
            return NO_EFFECTS
        return _union(self._of_call(op, callee) for callee in called)

    def _of_call(self, op: Operation, callee: str) -> Effects:
        """Returns a function's effects with its arguments' states replaced by those of the caller."""
        found = self._function(callee)
        function = self._functions.get(callee)
        if function is None or not function.regions[0].blocks:
            return found
        operands = list(op.operands)
        arguments = function.regions[0].blocks[0].args
        # `If` and `Case` have the condition before the operands of the branches.
        operands = operands[len(operands) - len(arguments) :]
        names = {a: resource_identity(v) for a, v in zip(arguments, operands, strict=False)}
        return Effects(
            frozenset(names.get(state, state) if isinstance(state, BlockArgument) else state for state in found.reads),
            frozenset(names.get(state, state) if isinstance(state, BlockArgument) else state for state in found.writes),
        )

    def _function(self, name: str) -> Effects:
        """Returns a function's effects; computes callees first, without recursion."""
        stack, entered = [name], set[str]()
        while stack:
            current = stack[-1]
            function = self._functions.get(current)
            if current in self._known or function is None:
                self._known.setdefault(current, ANY_EFFECTS)
                stack.pop()
                continue
            needed = [name for op in function.walk() for name in callees(op) if name not in self._known]
            if current not in entered and needed:
                entered.add(current)
                # A recursive function is assumed to have any effect.
                recursive = [callee for callee in needed if callee in entered]
                self._known.update(dict.fromkeys(recursive, ANY_EFFECTS))
                stack += [callee for callee in needed if callee not in entered]
                continue
            self._known[current] = _union(self._inner(op) for op in function.walk() if op is not function)
            stack.pop()
        return self._known[name]
