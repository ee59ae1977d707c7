"""The `tf_executor` dialect: TensorFlow's executor as IR (design §3).

A `graph` holds islands and the executor's own ops in one block; its values may be dead. Data operands come first,
control operands after them. The dialect is closed: the ops of `OPS` are all there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import (
    Attribute,
    Block,
    Dialect,
    Operation,
    OpTraits,
    ParametrizedAttribute,
    Region,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import irdl_attr_definition
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

if TYPE_CHECKING:
    from xdsl.printer import Printer


@irdl_attr_definition
class ControlType(ParametrizedAttribute, TypeAttribute):
    """`!tf_executor.control`: happens after, and dead if dead."""

    name = "tf_executor.control"


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """`!tf_executor.token`: ties a NextIteration's source to its sink."""

    name = "tf_executor.token"


CONTROL = ControlType()
TOKEN = TokenType()


class ExecutorOp(Operation):
    """Base of the dialect's ops."""

    traits = OpTraits(lambda: ())

    @property
    def data_operands(self) -> list[SSAValue]:
        """The operands that carry values."""
        return [operand for operand in self.operands if operand.type is not CONTROL]

    def verify_(self) -> None:
        """Checks that no data operand stands behind a control operand.

        Raises:
            VerifyException: One does.
        """
        kinds = [operand.type == CONTROL for operand in self.operands]
        if kinds != sorted(kinds):
            raise VerifyException("data operands must come before control operands")


class FetchOp(ExecutorOp):
    """`tf_executor.fetch`: the graph's results, and the controls whose effects it waits for."""

    name = "tf_executor.fetch"
    traits = OpTraits(lambda: (IsTerminator(),))

    def print(self, printer: Printer) -> None:
        """Prints `%a, %control : types`."""
        _print_typed(printer, self.operands)


class YieldOp(ExecutorOp):
    """`tf_executor.yield`: an island's values."""

    name = "tf_executor.yield"
    traits = OpTraits(lambda: (IsTerminator(),))

    def print(self, printer: Printer) -> None:
        """Prints `%a : types`."""
        _print_typed(printer, self.operands)


class _BodyOp(ExecutorOp):
    """An op with one block."""

    @property
    def body(self) -> Block:
        """The only block."""
        return self.regions[0].block

    @property
    def terminator(self) -> Operation:
        """The block's last op."""
        last = self.body.last_op
        assert last is not None
        return last

    def verify_(self) -> None:
        """Checks that there is one block with a terminator.

        Raises:
            VerifyException: There is not.
        """
        if len(self.regions) != 1 or len(self.regions[0].blocks) != 1 or self.body.last_op is None:
            raise VerifyException("expected one region of one block with a terminator")
        super().verify_()


class GraphOp(_BodyOp):
    """`tf_executor.graph`: runs its islands as their operands allow; its results are what `fetch` names."""

    name = "tf_executor.graph"

    @classmethod
    def build(cls, body: Block, location: LocationAttr | None = None) -> GraphOp:
        """Returns a graph of a block that ends in a fetch."""
        fetch = body.last_op
        assert isinstance(fetch, FetchOp)
        results = [value.type for value in fetch.data_operands]
        return cls.create(result_types=results, regions=(Region(body),), location=location)

    def verify_(self) -> None:
        """Checks that the graph holds executor ops only, ends in a fetch and has the fetch's types.

        Raises:
            VerifyException: It does not.
        """
        super().verify_()
        for op in self.body.ops:
            if not isinstance(op, ExecutorOp):
                raise VerifyException(f"a graph holds tf_executor ops only, found {op.name}")
        if not isinstance(self.terminator, FetchOp):
            raise VerifyException("a graph must end in tf_executor.fetch")
        if [value.type for value in self.terminator.data_operands] != [result.type for result in self.results]:
            raise VerifyException("the fetched values' types must be the graph's result types")

    def print(self, printer: Printer) -> None:
        """Prints the region."""
        printer.print_string(" ")
        printer.print_region(self.regions[0])


class IslandOp(_BodyOp):
    """`tf_executor.island`: runs its body once all operands are alive; else all its results are dead."""

    name = "tf_executor.island"

    @classmethod
    def wrap(cls, op: Operation, controls: Sequence[SSAValue], location: LocationAttr | None = None) -> IslandOp:
        """Returns an island of a single op that yields all the op's results."""
        types: list[Attribute] = [result.type for result in op.results]
        block = Block((op, YieldOp.create(operands=op.results)))
        types.append(CONTROL)
        return cls.create(operands=controls, result_types=types, regions=(Region(block),), location=location)

    @property
    def wrapped(self) -> Operation | None:
        """The only op of the body if the island yields just its results, else `None`."""
        first = self.body.first_op
        if first is None or first.next_op is not self.body.last_op:
            return None
        return first if tuple(self.terminator.operands) == tuple(first.results) else None

    @property
    def control(self) -> SSAValue:
        """The control result."""
        return self.results[-1]

    def verify_(self) -> None:
        """Checks that the island ends in a yield of its data results' types.

        Raises:
            VerifyException: It does not.
        """
        super().verify_()
        if not isinstance(self.terminator, YieldOp):
            raise VerifyException("an island must end in tf_executor.yield")
        yielded = [value.type for value in self.terminator.operands]
        if [*yielded, CONTROL] != [result.type for result in self.results]:
            raise VerifyException("an island's results must be the yielded values and a control")

    def print(self, printer: Printer) -> None:
        """Prints the controls and `wraps` with the op, or the region."""
        if self.operands:
            printer.print_string("(")
            printer.print_list(self.operands, printer.print_operand)
            printer.print_string(")")
        wrapped = self.wrapped
        if wrapped is None or isinstance(wrapped, ExecutorOp):
            printer.print_string(" ")
            printer.print_region(self.regions[0])
            return
        printer.print_string(f' wraps "{wrapped.name}"')
        printer.print_op_with_default_format(wrapped)


class SwitchOp(ExecutorOp):
    """`tf_executor.Switch`: data, predicate -> false output, true output, control; one of them is alive."""

    name = "tf_executor.Switch"


class SwitchNOp(ExecutorOp):
    """`tf_executor._SwitchN`: data, index -> N outputs, control; one output is alive."""

    name = "tf_executor._SwitchN"


class MergeOp(ExecutorOp):
    """`tf_executor.Merge`: the first live input, its index, control."""

    name = "tf_executor.Merge"


class EnterOp(ExecutorOp):
    """`tf_executor.Enter`: brings a value into a frame."""

    name = "tf_executor.Enter"


class ExitOp(ExecutorOp):
    """`tf_executor.Exit`: brings a value out of a frame, once the loop has ended."""

    name = "tf_executor.Exit"


class NextIterationSourceOp(ExecutorOp):
    """`tf_executor.NextIteration.Source`: what the sink was given an iteration ago."""

    name = "tf_executor.NextIteration.Source"


class NextIterationSinkOp(ExecutorOp):
    """`tf_executor.NextIteration.Sink`: hands a value to the next iteration."""

    name = "tf_executor.NextIteration.Sink"


class LoopCondOp(ExecutorOp):
    """`tf_executor.LoopCond`: the predicate that decides on another iteration."""

    name = "tf_executor.LoopCond"


class ControlTriggerOp(ExecutorOp):
    """`tf_executor.ControlTrigger`: fires even if its control operands are dead."""

    name = "tf_executor.ControlTrigger"


class SendOp(ExecutorOp):
    """`tf_executor.Send`: hands a value to a Recv of the same name."""

    name = "tf_executor.Send"


class RecvOp(ExecutorOp):
    """`tf_executor.Recv`: takes a value from a Send of the same name."""

    name = "tf_executor.Recv"


OPS: tuple[type[ExecutorOp], ...] = (
    GraphOp, FetchOp, IslandOp, YieldOp, SwitchOp, SwitchNOp, MergeOp, EnterOp, ExitOp, NextIterationSourceOp,
    NextIterationSinkOp, LoopCondOp, ControlTriggerOp, SendOp, RecvOp,
)  # fmt: skip

TF_EXECUTOR = Dialect("tf_executor", list(OPS), [ControlType, TokenType])


def _print_typed(printer: Printer, values: Sequence[SSAValue]) -> None:
    if not values:
        return
    printer.print_string(" ")
    printer.print_list(values, printer.print_operand)
    printer.print_string(" : ")
    printer.print_list([value.type for value in values], printer.print_attribute)
