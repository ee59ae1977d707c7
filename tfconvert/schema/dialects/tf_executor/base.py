"""The base classes of the executor's ops: named operands, their checks, and the assembly of forwarding ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Self

from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.tf_executor import syntax
from tfconvert.schema.dialects.tf_executor.values import CONTROL, Signature, check_forwarded, is_control
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

if TYPE_CHECKING:
    from tfconvert.schema.ir.parser import Parser
    from tfconvert.schema.ir.printer import Printer

Attributes = Mapping[str, Attribute]

NOTHING: Attributes = MappingProxyType({})
"""No attributes."""

SCALAR_BOOL = types.tensor(types.I1, ())
SCALAR_INT32 = types.tensor(types.I32, ())


class ExecutorOp(Operation):
    """Base of the dialect's ops.

    Attributes:
        signature: Its operands and results.
        inside: The op that must be its parent; empty if any may be.
    """

    __slots__ = ()

    HAS_ASSEMBLY = True
    signature: ClassVar[Signature]
    inside: ClassVar[str] = "tf_executor.graph"

    @property
    def data_operands(self) -> list[Value]:
        """The operands that carry values."""
        return [operand for operand in self.operands if not is_control(operand)]

    @property
    def control_operands(self) -> list[Value]:
        """The operands that order the op after others."""
        return [operand for operand in self.operands if is_control(operand)]

    @property
    def control(self) -> OpResult:
        """The control result; only of ops that have one."""
        return self.results[-1]

    def verify_(self) -> None:
        parent = self.parent_op()
        if self.inside and parent is not None and parent.name != self.inside:
            raise VerifyError(f"{self.name} must be directly in a {self.inside}, found it in a {parent.name}")
        self.signature.check(self)


class ForwardingOp(ExecutorOp):
    """Base of the ops whose results are their first operand; the short form has its type alone."""

    __slots__ = ()

    @property
    def data(self) -> Value:
        """The forwarded operand."""
        return self.operands[0]

    def verify_(self) -> None:
        super().verify_()
        check_forwarded(self.data, [result for result in self.results if not is_control(result)])

    def short_type(self) -> Attribute | None:
        """Returns the type of the short form, `None` if the types require the long one."""
        kind = self.data.type
        return kind if all(result.type == kind or is_control(result) for result in self.results) else None

    def print(self, printer: Printer) -> None:
        """Prints ` %data, %controls : types {...}`."""
        syntax.print_operands(printer, self.operands)
        syntax.print_types(printer, self, self.short_type())
        syntax.print_attributes(printer, self)


class UnaryOp(ForwardingOp):
    """Base of the ops with one data operand and one data result."""

    __slots__ = ()

    @classmethod
    def build(
        cls,
        data: Value,
        controls: Sequence[Value] = (),
        attributes: Attributes = NOTHING,
        location: Location = UNKNOWN_LOC,
    ) -> Self:
        """Returns an op whose output has the data's type."""
        return cls.create(
            operands=(data, *controls), result_types=(data.type, CONTROL), attributes=attributes, location=location
        )

    @property
    def output(self) -> OpResult:
        """The data operand, if alive."""
        return self.results[0]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the form that `print` prints."""
        operands = syntax.parse_operands(parser)
        values, kinds = syntax.parse_types(
            parser,
            operands,
            lambda kind: ([syntax.known_type(parser, operands[0], kind)] if operands else [kind], [kind, CONTROL]),
        )
        return cls.create(operands=values, result_types=kinds, attributes=syntax.parse_attributes(parser))
