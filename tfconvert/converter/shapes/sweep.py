"""Shape inference of one block in program order, and the rewrites that follow from it.

An analysis doesn't change the IR, since a function may be analysed several times with different arguments before the IR
is updated.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import attrgetter

import numpy as np

from tfconvert.converter.shapes.facts import Fact, agreed, constant_of, fits
from tfconvert.ops.folding import fold
from tfconvert.ops.operands import Known, Operands
from tfconvert.ops.registry import infer_shapes, infer_values
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data, tf, tf_effects, types
from tfconvert.schema.dialects.dims import Partial, constant_target, without_symbols
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

Folded = dict[Operation, tuple[list[Constant], Sequence[Constant] | None]]
"""Op -> the constant operands of its last folding, and the results, or `None` if it failed."""

Inferred = dict[Hashable, Sequence[tuple[Shape | None, Attribute]]]
"""The determinants of results (see `_determinants`) -> the results' shapes, and the types that they have then."""

_TYPE = attrgetter("type")

# What the names of ops begin with that have their types from the start, and are not folded.
_TYPED = ("stablehlo.", "chlo.")


class Sweep:
    """The sweep of one block.

    Args:
        block: The block.
        known: The facts of values so far.
        writes: Whether the IR is updated; otherwise only `known` is.
        tolerates: Whether shape errors are ignored (code that may be unreachable).
        folded: The results of earlier foldings.
        inferred: The results that ops determine by shapes and attributes alone; other sweeps may add to them too.
    """

    __slots__ = ("_block", "_constant_of", "_folded", "_inferred", "_known", "_shape_of", "_tolerates", "_writes")

    def __init__(
        self,
        block: Block,
        known: Known,
        *,
        writes: bool = True,
        tolerates: bool = False,
        folded: Folded | None = None,
        inferred: Inferred | None = None,
    ) -> None:
        self._block = block
        self._known = known
        self._writes = writes
        self._tolerates = tolerates
        self._folded = folded
        self._inferred: Inferred = {} if inferred is None else inferred
        self._constant_of, self._shape_of = known.constants.get, known.shapes.get

    def enter(self, facts: Sequence[Fact] | None, *, keeps_returns: bool = False) -> None:
        """Records the facts of the block's arguments.

        Args:
            facts: Their facts, in addition to their types.
            keeps_returns: Whether uses of the arguments by the terminator are kept.
        """
        for index, argument in enumerate(self._block.args):
            self._known.forget(argument)
            declared = argument.shape
            if facts is None:
                self._known.note(argument, declared)
                continue
            shape = agreed(facts[index].shape, declared)
            self._note(argument, facts[index]._replace(shape=shape))
            if self._writes:
                self._write_type(argument, shape)
                constant = constant_of(facts[index], argument.element)
                if constant is not None:
                    self._sink(argument, constant, keeps_returns)

    def _sink(self, argument: Value, constant: Constant, keeps_returns: bool) -> None:
        """Replaces uses of an argument that is a constant by the constant."""
        first, last = self._block.first_op, self._block.last_op
        uses = [use for use in argument.uses if not (keeps_returns and use.operation is last)]
        if uses and first is not None:
            value = self._insert(constant, first)
            for use in uses:
                use.operation.set_operand(use.index, value)

    def _note(self, value: Value, fact: Fact) -> None:
        self._known.note(value, fact.shape)
        if fact.constant is not None:
            self._known.constants[value] = fact.constant
        if fact.partial is not None:
            self._known.partials[value] = fact.partial

    def note_constant(self, op: Operation) -> None:
        """Records the value of a constant, whose result gets its type."""
        result = op.results[0]
        constant = tensor_data.constant_of(result)
        if constant is not None:
            self._known.constants[result] = constant
            self._known.shapes[result] = constant.shape
            if self._writes and result.type is not constant.type and not types.is_static(result.shape):
                result.type = constant.type

    def settle(self, op: Operation, facts: Sequence[Fact]) -> None:
        """Records the facts of an op's results, or writes them into the IR."""
        for result, fact in zip(op.results, facts, strict=True):
            constant = constant_of(fact, result.element)
            shape = agreed(fact.shape, result.shape)
            self._note(result, fact._replace(shape=shape))
            if self._writes and constant is not None:
                self._replace(result, constant)
            elif self._writes:
                self._write_type(result, shape)

    def visit(self, op: Operation) -> None:
        """Infers an op's results, and records them or updates the IR."""
        if op.name.startswith(_TYPED):
            for result in op.results:
                self._known.note(result, result.shape)
            return
        key = self._determinants(op)
        known = self._inferred.get(key)
        if known is not None and None in map(self._constant_of, op.operands):
            for result, (shape, kind) in zip(op.results, known, strict=True):
                self._known.note(result, shape)
                result.type = kind
            return
        operands = Operands(op, self._known)
        shapes = self._infer_and_update(operands)
        if shapes is not None and operands.is_by_shapes:
            self._inferred[key] = list(zip(shapes, map(_TYPE, op.results), strict=True))

    def _determinants(self, op: Operation) -> Hashable:
        """Returns all that shape functions read which look neither at elements nor at other ops."""
        values, properties = op.operands, op.properties
        return (
            self._writes,
            op.name,
            *map(_TYPE, values),
            *map(self._shape_of, values),
            *map(_TYPE, op.results),
            *properties,
            *properties.values(),
        )

    def _infer_and_update(self, operands: Operands) -> list[Shape | None] | None:
        """Infers an op's results, and records them or updates the IR; returns their shapes if nothing else is known."""
        op = operands.op
        noted = operands.results
        shapes, partials = self._infer(operands, noted)
        found = self._fold(operands, shapes) or _whole(op, shapes, partials) or _empty(op, shapes)
        if found is not None:
            for result, constant in zip(op.results, found, strict=True):
                if self._writes:
                    self._replace(result, constant)
                else:
                    self._known.constants[result] = constant
                    self._known.shapes[result] = constant.shape
            return None
        for result, shape, old, partial in zip(op.results, shapes, noted, partials, strict=True):
            self._known.note(result, shape)
            if self._writes and shape != old:
                self._write_type(result, shape)
            if partial is not None:
                self._known.partials[result] = partial
        if self._writes and op.name == "tf.Reshape":
            self._settle_target(operands, shapes[0])
        return shapes if partials.count(None) == len(partials) else None

    def _infer(self, operands: Operands, noted: list[Shape | None]) -> tuple[list[Shape | None], list[Partial | None]]:
        try:
            shapes = infer_shapes(operands, noted)
            return shapes, infer_values(operands, shapes)
        except ConversionError as problem:
            if not self._tolerates or problem.code != "shape-mismatch":
                raise
            operands.is_by_shapes = False  # Another function may not tolerate it.
            return noted, [None] * len(noted)

    def _fold(self, operands: Operands, shapes: list[Shape | None]) -> Sequence[Constant] | None:
        constants: list[Constant] = []
        for value in operands.values:
            constant = self._known.constants.get(value)
            if constant is None:
                return None
            constants.append(constant)
        if not constants:
            return None
        if self._folded is None:
            return fold(operands.op, constants, shapes)
        before = self._folded.get(operands.op)
        if before is None or any(one is not other for one, other in zip(before[0], constants, strict=True)):
            before = self._folded[operands.op] = (constants, fold(operands.op, constants, shapes))
        return before[1]

    def _write_type(self, value: Value, shape: Shape | None) -> None:
        """Updates a value's type from a shape if that is more specific."""
        if shape is None:
            return
        plain = without_symbols(shape)
        if plain != value.shape:
            value.type = types.tensor(value.element, plain)

    def _replace(self, result: OpResult, constant: Constant) -> None:
        """Replaces the uses of a result by a constant; an op without uses is then dead."""
        if result.first_use is not None:
            result.replace_all_uses_with(self._insert(constant, result.op))

    def _insert(self, constant: Constant, before: Operation) -> OpResult:
        made = OpBuilder(before).insert(tf.constant(constant))
        self.note_constant(made)
        return made.results[0]

    def _settle_target(self, operands: Operands, shape: Shape | None) -> None:
        """Replaces a reshape's computed shape by an equivalent constant, if there is one."""
        if operands.values[1] in self._known.constants:
            return
        target = constant_target(shape)
        element = operands.values[1].element
        if target is not None and fits(max(target, default=0), types.numpy_dtype(element)):
            value = np.array(target, types.numpy_dtype(element))
            constant = tensor_data.of_array(value, element)
            operands.op.set_operand(1, self._insert(constant, operands.op))


def _whole(op: Operation, shapes: list[Shape | None], partials: list[Partial | None]) -> list[Constant] | None:
    """Returns the results as constants if every element of each is known."""
    constants: list[Constant] = []
    for result, shape, partial in zip(op.results, shapes, partials, strict=True):
        constant = None if partial is None else constant_of(Fact(shape, None, partial), result.element)
        if constant is None:
            return None
        constants.append(constant)
    return constants


def _empty(op: Operation, shapes: list[Shape | None]) -> list[Constant] | None:
    """Returns results without elements as constants: a kernel may treat an empty slice as the whole value."""
    if any(shape is None or 0 not in shape or min(shape) < 0 for shape in shapes) or not tf_effects.is_pure(op):
        return None
    constants: list[Constant] = []
    for result, shape in zip(op.results, shapes, strict=True):
        element = result.element
        entry = types.from_mlir(element)
        if entry is None or isinstance(element, types.ResourceType | types.VariantType):
            return None
        constants.append(tensor_data.of_array(np.empty(shape or (), entry.dtype), element))
    return constants
