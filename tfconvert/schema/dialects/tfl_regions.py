"""The ops of the `tfl` dialect that have regions, and what ends these; no file has them.

TensorFlow's converter has loops and conditionals in this form while it works (`tfl.while` and `tfl.if` with regions
that end in `tfl.yield`), ops that it keeps from being changed (`tfl.custom_tf`), and ops in an order of their own
(`tfl.control_node`). Texts that it prints between its passes have them; `dialects-to-tf` replaces them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from tfconvert.schema.dialects.tf_executor.values import compatible
from tfconvert.schema.ir.attribute import Attribute, Type
from tfconvert.schema.ir.attributes import FloatAttr, IntegerAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait
from tfconvert.schema.ir.values import Value

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser
    from tfconvert.schema.ir.parser import Parser


class ControlType(Type):
    """`!tfl.control`: the type of values that only order ops."""

    __slots__ = ()

    NAME = "tfl.control"

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> ControlType:
        """Parses what follows the name: nothing."""
        return cls.intern()


class YieldOp(Operation):
    """`tfl.yield`: ends a region with its results."""

    __slots__ = ()

    NAME: ClassVar[str] = "tfl.yield"
    TRAITS: ClassVar[frozenset[Trait]] = frozenset({Trait.TERMINATOR})

    def verify_(self) -> None:
        parent = self.parent_op()
        if parent is None or parent.dialect != "tfl":
            raise VerifyError("tfl.yield must end a region of a tfl op")
        if self.results:
            raise VerifyError(f"tfl.yield has no results, found {len(self.results)}")


def _agree(some: Sequence[Attribute], others: Sequence[Attribute]) -> bool:
    """Returns whether as many types have the same elements, and shapes that don't contradict each other."""
    return len(some) == len(others) and all(map(compatible, some, others))


def _check_region(op: Operation, arguments: Sequence[Attribute], results: Sequence[Attribute]) -> None:
    """Checks that an op has one region, of one block with arguments of some types, which yields some types."""
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        raise VerifyError(f"{op.name} must have one region of one block")
    block = op.regions[0].block
    if not _agree(block.arg_types, arguments):
        raise VerifyError(f"the arguments of the region of {op.name} must have the types of its operands")
    last = block.last_op
    if not isinstance(last, YieldOp):
        raise VerifyError(f"the region of {op.name} must end in tfl.yield")
    if not _agree(last.operand_types, results):
        raise VerifyError(f"the region of {op.name} must yield values of the types of its results")


class CustomTfOp(Operation):
    """`tfl.custom_tf`: ops of TensorFlow in a region, whose arguments are the operands."""

    __slots__ = ()

    NAME: ClassVar[str] = "tfl.custom_tf"

    def verify_(self) -> None:
        _check_region(self, self.operand_types, self.result_types)


class ControlNodeOp(Operation):
    """`tfl.control_node`: ops in a region, which run after the operands; the last result orders what comes after."""

    __slots__ = ()

    NAME: ClassVar[str] = "tfl.control_node"

    def verify_(self) -> None:
        orders = [*self.operand_types, *self.result_types[-1:]]
        if not self.results or not all(isinstance(kind, ControlType) for kind in orders):
            raise VerifyError("the operands and the last result of tfl.control_node must be of type !tfl.control")
        _check_region(self, (), self.result_types[:-1])


class NumericVerifyOp(Operation):
    """`tfl.NumericVerify`: compares a quantized tensor with the same one of floats while the model runs."""

    __slots__ = ()

    NAME: ClassVar[str] = "tfl.NumericVerify"
    PROPERTIES: ClassVar[tuple[str, ...]] = ("tolerance", "log_if_failed")

    def verify_(self) -> None:
        if len(self.operands) != 2 or len(self.results) > 1:
            raise VerifyError("tfl.NumericVerify has two operands and at most one result")
        tolerance, logs = map(self.properties.get, self.PROPERTIES)
        if not isinstance(tolerance, FloatAttr | None) or not isinstance(logs, IntegerAttr | None):
            raise VerifyError("tfl.NumericVerify has the properties 'tolerance', a float, and 'log_if_failed', i1")


def parse_assembly(parser: Parser) -> Operation:
    """Parses what follows the name of a `tfl` op in the forms that TensorFlow's MLIR prints.

    `%a, %b {...} : type` stands for operands and one result of one type, `(%a) <{...}> : (types) -> type` is the
    generic form; `tfl.control_node` has a form of its own.
    """
    name = parser.op_name
    cls = parser.registry.op(name)
    assert cls is not None
    if cls is ControlNodeOp:
        return _control_node(parser)
    if parser.token[0] == "(":
        return parser.parse_generic_form(name, cls)
    operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    properties = parser.parse_optional_properties_dict()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":", " before the type")
    kind = parser.parse_type()
    values = [parser.resolve_operand(operand, kind) for operand in operands]
    return cls(name, values, (kind,), properties, attributes)


def _control_node(parser: Parser) -> Operation:
    """Parses `(%control) controls "tfl.op"(%a) : (type) -> type`, or `(%control) {region} {...}`."""
    operands: list[Value] = []
    if parser.token[0] == "(":
        operands = [parser.resolve_operand(each, CONTROL) for each in parser.parse_operand_list()]
    attributes: dict[str, Attribute] = {}
    if parser.parse_optional_keyword("controls") is not None:
        inner = parser.parse_operation()
        region = Region(Block((inner, YieldOp.create(operands=inner.results))))
    else:
        region = parser.parse_region()
        attributes = parser.parse_optional_attr_dict()
    last = region.blocks[0].last_op if region.blocks else None
    results = [*(last.operand_types if last is not None else ()), CONTROL]
    return ControlNodeOp.create(operands=operands, result_types=results, attributes=attributes, regions=(region,))


CONTROL = ControlType.intern()
