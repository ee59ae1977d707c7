"""What the executor's ops have in common: named operands, their checks, and the assembly of those that hand data on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Self

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, OpTraits, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.tf_executor import syntax
from tfconvert.schema.dialects.tf_executor.values import CONTROL, Signature, check_forwarded, is_control

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer

Attributes = Mapping[str, Attribute]

NOTHING: Attributes = MappingProxyType({})
"""No attributes."""

SCALAR_BOOL = types.tensor(types.I1, ())
SCALAR_INT32 = types.tensor(types.I32, ())


class ExecutorOp(Operation):
    """Base of the dialect's ops.

    Attributes:
        signature: What it takes and gives.
        inside: The op that must be its parent; empty if any may be.
        declared: The attributes that it declares, which are properties.
    """

    traits = OpTraits(lambda: ())
    signature: ClassVar[Signature]
    inside: ClassVar[str] = "tf_executor.graph"
    declared: ClassVar[tuple[str, ...]] = ()

    @property
    def data_operands(self) -> list[SSAValue]:
        """The operands that carry values."""
        return [operand for operand in self.operands if not is_control(operand)]

    @property
    def control_operands(self) -> list[SSAValue]:
        """The operands that tell what must come before."""
        return [operand for operand in self.operands if is_control(operand)]

    @property
    def control(self) -> OpResult:
        """The control result; only of ops that have one."""
        return self.results[-1]

    def verify_(self) -> None:
        """Checks the operands, the results and the place.

        Raises:
            VerifyException: The op is not what its signature says, or is not where it may be.
        """
        parent = self.parent_op()
        if self.inside and parent is not None and parent.name != self.inside:
            raise VerifyException(f"{self.name} must be directly in a {self.inside}, found it in a {parent.name}")
        self.signature.check(self)


class DeclaringOp(ExecutorOp):
    """Base of the ops that declare attributes."""

    @classmethod
    def create(
        cls,
        *,
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Attributes = {},  # noqa: B006  # as in xDSL; never written to
        attributes: Attributes = {},  # noqa: B006
        location: LocationAttr | None = None,
        successors: Sequence[Block] = (),
        regions: Sequence[Region] = (),
    ) -> Self:
        """Returns a new op; declared attributes may be given as either kind, as in texts of the generic form."""
        strays = [name for name in cls.declared if name in attributes and name not in properties]
        if strays:
            properties = {**properties, **{name: attributes[name] for name in strays}}
            attributes = {name: value for name, value in attributes.items() if name not in strays}
        return super().create(
            operands=operands, result_types=result_types, properties=properties, attributes=attributes,
            location=location, successors=successors, regions=regions,
        )  # fmt: skip


class ForwardingOp(ExecutorOp):
    """Base of the ops whose results are their first operand; the short form has its type alone."""

    @property
    def data(self) -> SSAValue:
        """The operand that is handed on."""
        return self.operands[0]

    def verify_(self) -> None:
        """Checks what every op is checked for, and that results can be the operand.

        Raises:
            VerifyException: They can't, or the op is not what its signature says.
        """
        super().verify_()
        check_forwarded(self.data, [result for result in self.results if not is_control(result)])

    def short_type(self) -> Attribute | None:
        """Returns the type of the short form, `None` if the types need the long one."""
        kind = self.data.type
        return kind if all(result.type == kind or is_control(result) for result in self.results) else None

    def print(self, printer: Printer) -> None:
        """Prints ` %data, %controls : types {...}`."""
        syntax.print_operands(printer, self.operands)
        syntax.print_types(printer, self, self.short_type())
        syntax.print_attributes(printer, self)


class UnaryOp(ForwardingOp):
    """Base of the ops with one data operand and one data result."""

    @classmethod
    def build(
        cls,
        data: SSAValue,
        controls: Sequence[SSAValue] = (),
        attributes: Attributes = NOTHING,
        location: LocationAttr | None = None,
    ) -> Self:
        """Returns an op whose output has the data's type."""
        return cls.create(
            operands=(data, *controls), result_types=(data.type, CONTROL), attributes=attributes, location=location
        )

    @property
    def output(self) -> OpResult:
        """What the data operand is, if alive."""
        return self.results[0]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses what `print` prints."""
        operands = syntax.parse_operands(parser)
        values, kinds = syntax.parse_types(
            parser,
            operands,
            lambda kind: ([syntax.known_type(parser, operands[0], kind)] if operands else [kind], [kind, CONTROL]),
        )
        return cls.create(operands=values, result_types=kinds, attributes=syntax.parse_attributes(parser))
