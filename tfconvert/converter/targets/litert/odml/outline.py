"""A recognised subgraph, and how it becomes a STABLEHLO_COMPOSITE with a function of the same operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flatbuffers import flexbuffers

from tfconvert.converter.ir.symbol_table import FunctionMaker
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.func import ReturnOp
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

# Operators that may have other users, too: they only arrange data, or many composites share them.
_SHARED = frozenset(f"tfl.{name}" for name in (*tfl.BESIDE, *operators.having("moves"), "concatenation", "cos", "sin"))

Insert = Callable[[TFLBuilder], Value]


class Body:
    """The function of a composite under construction.

    Attributes:
        builder: Inserts at its end.
        arguments: The values that the composite's operands are inside.

    Args:
        builder: Appends to its block.
    """

    def __init__(self, builder: TFLBuilder) -> None:
        self.builder = builder
        self.arguments: Sequence[Value] = builder.block.args
        self._values: dict[Value, Value] = {}
        self._copied: set[Operation] = set()

    def bind(self, value: Value, inside: Value) -> None:
        """Says what a value of the caller is inside."""
        self._values[value] = inside

    def copy(self, value: Value) -> Value:
        """Returns a value that is computed inside by copies of the operators that compute it, up to what is bound."""
        pending = [value]
        while pending:
            current = pending[-1]
            op = current.owner
            if current in self._values:
                pending.pop()
                continue
            assert isinstance(op, Operation), "an argument of the caller is not bound"
            missing = [operand for operand in op.operands if operand not in self._values]
            if missing:
                pending += missing
                continue
            self.builder.insert(op.clone(dict(self._values)))
            copy = self.builder.block.last_op
            assert copy is not None
            if questions.ACTIVATION in copy.properties:
                copy.properties = {**copy.properties, questions.ACTIVATION: questions.NONE}
            self._values.update(zip(op.results, copy.results, strict=True))
            self._copied.add(op)
            pending.pop()
        return self._values[value]

    def keep_only(self, *values: Value) -> None:
        """Forgets what is inside but for some values and constants, so that others may be bound again."""
        known = self._values
        kept = {value: inside for value, inside in known.items() if tfl.is_constant(value)}
        self._values = kept | {value: known[value] for value in values}

    def leaks(self, root: Value, replaced: Sequence[Operation]) -> bool:
        """Returns whether the caller uses what is computed inside elsewhere, too, so that it would be computed twice.

        Args:
            root: The value that the composite computes.
            replaced: Operators that the body has in another form.
        """
        inside = {*self._copied, *replaced}
        return any(
            use.operation not in inside
            for op in self._copied
            if op.name not in _SHARED and root not in op.results
            for result in op.results
            for use in result.uses
        )


@dataclass(slots=True)
class Recognized:
    """A subgraph that can be a composite.

    Attributes:
        name: The composite's name.
        kind: What the report calls it, in the plural.
        attributes: Its attributes.
        root: The value that it computes.
        operands: Insert its operands before the root's op.
        bind: Binds the values that its arguments stand for, in the body.
        finish: Turns the root's value in the body into the composite's result.
        restore: Turns the composite's result into the value that users expect.
        replaced: Operators that the body has in another form.
    """

    name: str
    kind: str
    attributes: Mapping[str, Any]
    root: Value
    operands: Sequence[Insert]
    bind: Callable[[Body], None]
    finish: Callable[[TFLBuilder, Value], Value] = lambda builder, value: value
    restore: Callable[[TFLBuilder, Value], Value] = lambda builder, value: value
    activation: str = "NONE"
    replaced: list[Operation] = field(default_factory=list)


def activation_fits(name: str) -> bool:
    """Returns whether a fused activation can be an operator of its own."""
    return name == "NONE" or name in tfl.ACTIVATIONS


def constant(value: Any) -> Insert:
    """Returns what inserts a constant."""
    return lambda builder: builder.constant(value)


def given(value: Value) -> Insert:
    """Returns what inserts nothing: the value is there."""
    return lambda builder: value


def outline(found: Recognized, maker: FunctionMaker) -> bool:
    """Replaces a recognised subgraph by a composite; returns whether it was.

    Args:
        found: The subgraph.
        maker: Adds the composite's function to the module.
    """
    root_op = found.root.owner
    assert isinstance(root_op, Operation)
    before = root_op.prev_op
    builder = TFLBuilder(root_op)
    operands = [insert(builder) for insert in found.operands]
    block = Block(arg_types=[operand.type for operand in operands])
    body = Body(TFLBuilder.at_block_end(block, root_op.location))
    found.bind(body)
    result = found.finish(body.builder, body.copy(found.root))
    if body.leaks(found.root, found.replaced):
        _erase_after(before, root_op)
        block_op = block.last_op
        while block_op is not None:
            block_op.detach()
            block_op.drop_all_references()
            block_op = block.last_op
        return False
    body.builder.insert(ReturnOp.of([result]))
    name = maker.add(found.name, block, root_op.location)
    properties = {
        "name": attrs.string(found.name),
        "decomposition": attrs.symbol(name),
        "composite_attributes": tfl.ConstBytesAttr.get(encode(found.attributes)),
        "composite_attributes_format": attrs.string("FLEXBUFFERS"),
        "version": attrs.int32(1),
    }
    composite = builder.tfl("stablehlo_composite", operands, result.type, properties)
    value = found.restore(builder, composite)
    if found.activation != "NONE":
        value = builder.tfl(tfl.ACTIVATIONS[found.activation], [value], value.type)
    found.root.replace_all_uses_with(value)
    _erase_unused(root_op)
    return True


def _erase_unused(op: Operation) -> None:
    pending = [op]
    while pending:
        op = pending.pop()
        if op.parent is None or any(result.first_use is not None for result in op.results) or tfl.has_side_effects(op):
            continue
        pending += [operand.owner for operand in op.operands if isinstance(operand.owner, Operation)]
        op.erase()


def _erase_after(before: Operation | None, end: Operation) -> None:
    op = end.prev_op
    while op is not before and op is not None:
        previous = op.prev_op
        op.erase()
        op = previous


def encode(attributes: Mapping[str, Any]) -> bytes:
    """Returns a composite's attributes as a flexbuffer; lists are vectors without a type, as delegates read them."""
    builder = flexbuffers.Builder()
    builder.Add(dict(attributes))
    return bytes(builder.Finish())
