"""Options that cut off ops that belong outside of the model.

If a model begins with such ops, for example image decoding, their results become its inputs. If it ends with them,
their operands become its outputs. The side with more weights is kept.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tfconvert.converter.control_flow.calls import inline_call
from tfconvert.converter.cutting.spots import TensorNames
from tfconvert.converter.ir.interface import entry_functions
from tfconvert.converter.ir.symbol_table import names
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.call_interfaces import CALLS, callees
from tfconvert.schema.dialects.func import FuncOp, defined_functions
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.dialects.tf_saved_model import EXPORTED_NAMES, SEMANTICS, port_names
from tfconvert.schema.dialects.tf_traits import IDENTITIES, SAME_ELEMENTS, full_names
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import CallSiteLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value

# Maximum number of ops of a function after its calls are inlined.
_MAX_OPERATIONS = 1_000_000

# Maximum number of tensors considered behind the ops that are cut off.
_CANDIDATES = 200

_CONSTANT, _READ, _GATHER = "tf.Const", "tf.ReadVariableOp", "tf.ResourceGather"
_NO_WORK = full_names(SAME_ELEMENTS | IDENTITIES) | {_READ}
# Minimum size of a constant that counts as a weight; others are sizes, axes, factors.
_MIN_WEIGHT = 64


@dataclass(frozen=True, slots=True)
class CutOptions:
    """The tensors at which a model is to be cut.

    Attributes:
        inputs: The new inputs; empty if the model keeps its own.
        outputs: The new outputs; empty if the model keeps its own.
        signature: Their signature; empty if it is the only one.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    signature: str = ""

    def __str__(self) -> str:
        signatures = (self.signature,) if self.signature else ()
        given = (("signature", signatures), ("input", self.inputs), ("output", self.outputs))
        flags = [f"--{name} {shlex.quote(each)}" for name, values in given for each in values]
        words = [f"{name}s=[{', '.join(map(_quoted, values))}]" for name, values in given if values]
        return f"{' '.join(flags)} ({', '.join(words)})"


def _quoted(text: str) -> str:
    return f'"{text}"' if '"' not in text and "\\" not in text else repr(text)


def options_that_cut_off(
    original: ModuleOp, module: ModuleOp, failing: Iterable[str], side_of: Callable[[str], str]
) -> CutOptions | None:
    """Returns the options that cut off ops that belong outside of the model, or `None`.

    Args:
        original: The model with its functions, uncut.
        module: The same, cut as the user requested; it is changed.
        failing: Names of ops that can't be converted.
        side_of: Returns where an op belongs by its name: `before` a model, `behind` it, or empty for inside. If it
            processes strings, any failing op belongs outside.
    """
    functions, known = defined_functions(module), defined_functions(original)
    wanted = frozenset(failing)
    entries = [name for each in entry_functions(module) if (name := each.sym_name) in known]
    for name in entries:
        if not _flattened(functions[name], functions):
            continue
        outside = _Outside(functions[name], functions, wanted, side_of)
        if outside.ops:
            found = outside.cut(TensorNames(known), has_functions=SEMANTICS in original.attributes)
            several = len(entries) > 1
            return replace(found, signature=_key(functions[name])) if found is not None and several else found
    return None


def _key(function: FuncOp) -> str:
    keys = function.attributes.get(EXPORTED_NAMES)
    first = keys.data[0] if isinstance(keys, ArrayAttr) and keys.data else None
    return first.data if isinstance(first, StringAttr) else ""


def _flattened(function: FuncOp, functions: Mapping[str, FuncOp]) -> bool:
    """Inlines all calls in a function, recording them in locations; returns whether that is possible."""
    pending = [(op, 1) for op in function.body.block.ops if op.name in CALLS]
    count = len(list(function.walk()))
    while pending:
        call, depth = pending.pop()
        callee = functions.get(next(iter(callees(call)), ""))
        if callee is None or depth > len(functions):
            return False
        count += len(list(callee.walk()))
        if count > _MAX_OPERATIONS:
            return False
        ops, _ = inline_call(call, callee, is_last=False, note_call=True)
        pending += [(op, depth + 1) for op in ops if op.name in CALLS]
    return True


def _nodes(op: Operation) -> tuple[str, ...]:
    """Returns the names of the calls that lead to an op, outermost first, and of its node."""
    found, pending = [], [op.location]
    while pending:
        location = pending.pop()
        if isinstance(location, CallSiteLoc):
            pending += [location.callee, location.caller]
        else:
            found.append(node_of(location))
    return tuple(found)


def _kind(value: Value) -> Attribute:
    return value.element


def _producers(op: Operation) -> Iterator[Operation]:
    return (operand.op for operand in op.operands if isinstance(operand, OpResult))


class _Outside:
    """The ops of a function that belong outside, and where to cut them off.

    Attributes:
        ops: The ops.
    """

    def __init__(
        self, function: FuncOp, functions: Mapping[str, FuncOp], failing: frozenset[str], side_of: Callable[[str], str]
    ) -> None:
        self._function = function
        self._ops = list(function.body.block.ops)
        self._terminator = self._ops[-1]
        self._failing, self._side_of = failing, side_of
        self._inside: dict[str, bool] = {}
        self.ops: set[Operation] = set()
        for op in self._ops[:-1]:
            # Handles and lists can't be inputs: their users are cut off, too.
            goes_on = any(isinstance(_kind(operand), types.VariantType) for operand in op.operands)
            if self._is_outside(op, functions) or (goes_on and not self.ops.isdisjoint(_producers(op))):
                self.ops.add(op)

    def _is_outside(self, op: Operation, functions: Mapping[str, FuncOp]) -> bool:
        return self._fails(op) or any(self._function_is_outside(name, functions) for name in names(op))

    def _fails(self, op: Operation) -> bool:
        return op.name in self._failing and (bool(self._side_of(op.name)) or _has_strings(op))

    def _function_is_outside(self, name: str, functions: Mapping[str, FuncOp]) -> bool:
        if name not in self._inside:
            pending, seen = [name], {name}
            found = False
            while pending and not found:
                callee = functions.get(pending.pop())
                for op in callee.body.walk() if callee is not None else ():
                    found = found or self._fails(op)
                    new = [each for each in names(op) if each not in seen]
                    seen.update(new)
                    pending += new
            self._inside[name] = found
        return self._inside[name]

    def cut(self, known: TensorNames, *, has_functions: bool) -> CutOptions | None:
        """Returns the options that cut the ops off, or `None` if there is no tensor with a name to cut at.

        Args:
            known: The names of the uncut model.
            has_functions: Whether tensors inside of called functions can be named.
        """
        self._known, self._has_functions = known, has_functions
        behind = self._behind(self.ops)
        needed, fed, arguments = self._needed()
        ahead = self._ahead(self.ops) - behind
        after = [op for op in needed if op in behind and op is not self._terminator]
        weights = _weight(after), _weight(ahead)
        # Decoding at the end of a model without weights.
        ends = not any(weights) and all(self._side_of(op.name) == "behind" for op in self.ops)
        if not _work(after) or ends or (weights[0], _work(after)) < (weights[1], _work(ahead)):
            return self._at_outputs(behind)
        if len(fed) > 1 or any(_kind(value) == types.STRING for value in fed):
            single = self._single(after)
            fed, arguments = ([single], []) if single is not None else (fed, arguments)
        return self._at_inputs(fed, arguments)

    def _single(self, after: Sequence[Operation]) -> OpResult | None:
        """Returns the first numeric tensor that is the only dependency of the weights on the model's inputs."""
        ordered = [op for op in self._ops if op in set(after)]
        for op in ordered[:_CANDIDATES]:
            if _weight([op]):
                return None
            value = op.results[0] if len(op.results) == 1 else None
            if value is None or isinstance(_kind(value), types.StringType | types.ResourceType | types.VariantType):
                continue
            _, fed, arguments = self._needed(value)
            if fed == [value] and not arguments:
                return value
        return None

    def _at_inputs(self, fed: Sequence[OpResult], arguments: Sequence[BlockArgument]) -> CutOptions | None:
        inputs = port_names(self._function, "inputs")
        found = [inputs[each.index] for each in arguments]
        for value in fed:
            name = self._name(value)
            if not name or isinstance(_kind(value), types.ResourceType | types.VariantType | types.RefType):
                return None
            found.append(name)
        return CutOptions(inputs=tuple(found))

    def _at_outputs(self, behind: set[Operation]) -> CutOptions | None:
        found: dict[str, None] = {}
        is_cut = False
        if any(map(names, self.ops)):
            return None  # The variables of a loop are not tensors.
        for name, value in zip(port_names(self._function, "outputs"), self._terminator.operands, strict=True):
            if not isinstance(value, OpResult) or value.op not in behind:
                found[name] = None
                continue
            ahead = self._ahead({value.op})
            for operand in (each for op in self._ops if op in ahead and op in self.ops for each in op.operands):
                if isinstance(operand, OpResult) and operand.op not in behind and _is_computed(operand):
                    is_cut = True
                    found[self._name(operand)] = None
        return CutOptions(outputs=tuple(found)) if is_cut and "" not in found else None

    def _name(self, value: OpResult) -> str:
        """Returns the name of a tensor; empty if it has none."""
        nodes = _nodes(value.op)
        if not all(nodes) or (len(nodes) > 1 and not self._has_functions):
            return ""
        name = self._known.shortest(self._function.sym_name, nodes)
        return f"{name}:{value.index}" if value.index else name

    def _behind(self, roots: set[Operation]) -> set[Operation]:
        """Returns ops and their transitive users."""
        found = set(roots)
        for op in self._ops:
            if not found.isdisjoint(_producers(op)):
                found.add(op)
        return found

    def _ahead(self, roots: set[Operation]) -> set[Operation]:
        """Returns ops and their transitive dependencies."""
        found, pending = set[Operation](), list(roots)
        while pending:
            op = pending.pop()
            if op not in found:
                found.add(op)
                pending += _producers(op)
        return found

    def _needed(self, given: Value | None = None) -> tuple[set[Operation], list[OpResult], list[BlockArgument]]:
        """Returns the ops, the values computed outside and the arguments that the results need.

        Args:
            given: Another value that becomes an input.
        """
        found, pending = set[Operation](), [self._terminator]
        fed, arguments = set[Value](), set[Value]()
        while pending:
            op = pending.pop()
            if op in found:
                continue
            found.add(op)
            for operand in op.operands:
                if isinstance(operand, OpResult) and operand is not given and operand.op not in self.ops:
                    pending.append(operand.op)
                else:
                    (fed if isinstance(operand, OpResult) else arguments).add(operand)
        in_order = [result for op in self._ops for result in op.results if result in fed]
        return found, in_order, [each for each in self._function.args if each in arguments]


def _is_computed(value: OpResult) -> bool:
    return bool(value.op.operands) and not isinstance(_kind(value), types.ResourceType | types.VariantType)


def _has_strings(op: Operation) -> bool:
    return any(_kind(value) == types.STRING for value in (*op.operands, *op.results))


def _weight(ops: Iterable[Operation]) -> int:
    """Returns the number of elements of variables and large constants that ops use."""
    found = list(ops)
    taken = {value.op for op in found for value in op.operands if isinstance(value, OpResult)}
    gathered = sum(max(_size(op.results[0]), 1) for op in found if op.name == _GATHER)
    sizes = {op: _size(op.results[0]) for op in taken if op.name in (_CONSTANT, _READ)}
    return gathered + sum(size for op, size in sizes.items() if op.name == _READ or size >= _MIN_WEIGHT)


def _work(ops: Iterable[Operation]) -> int:
    """Returns how many ops compute something from operands."""
    return sum(1 for op in ops if op.operands and op.name not in _NO_WORK)


def _size(value: Value) -> int:
    shape = value.shape
    return math.prod(shape) if shape is not None and types.is_static(shape) else 0
