"""Shardy, the dialect of JAX's shardings: on one device, its ops are their operands.

Before:

    sdy.mesh @mesh = <["batch"=1]>
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = sdy.sharding_constraint %x <@mesh, [{"batch"}]> : tensor<4xf32>
      return %0 : tensor<4xf32>
    }

After:

    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      return %x : tensor<4xf32>
    }
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from tfconvert.schema.dialects.foreign import OpaqueAttr, StableHLOConstantOp
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.token_parser import END, PERCENT
from tfconvert.schema.ir.values import Value

if TYPE_CHECKING:
    from tfconvert.schema.ir.parser import Parser

NAME = "sdy"
"""The name of the dialect."""

CAST = "builtin.unrealized_conversion_cast"
"""The op between values of VHLO and those of the dialect in artifacts; their types are the same here."""

_MESH = "sdy.mesh"
_CONSTANT = "sdy.constant"

# Ops with a region, whose arguments are the operands.
_WITH_REGION = frozenset({"sdy.manual_computation", "sdy.named_computation"})

# The axes of a mesh, in its own attribute or in a sharding that has no other.
_AXES = re.compile(r"<\[((?:[^]\"]|\"[^\"]*\")*)\]")
_SIZE = re.compile(r"\"[^\"]*\"\s*=\s*(\d+)")

_OPENING, _CLOSING = frozenset("<([{"), frozenset(">)]}")


class ShardyOp(Operation):
    """An op of the dialect, or a cast beside one."""

    __slots__ = ()


def _parse(parser: Parser) -> Operation:
    """Parses what follows the name of an op in the form that MLIR prints."""
    name = parser.op_name
    if name == _MESH:
        symbol = parser.parse_symbol_name()
        parser.parse_punctuation("=", " before the axes")
        mesh = OpaqueAttr.get(_MESH, parser.parse_optional_balanced())
        properties = {"mesh": mesh, "sym_name": StringAttr.get(symbol)}
        return ShardyOp(name, (), (), properties, parser.parse_optional_attr_dict())
    if name == _CONSTANT:
        return StableHLOConstantOp.parse(parser)
    if name in _WITH_REGION:
        return _parse_with_region(parser, name)
    start = parser.pos
    _skip_to(parser, PERCENT, ":", END)
    operands = parser.parse_operands() if parser.token[0] == PERCENT else []
    _skip_to(parser, ":", "}", END)
    sharding = StringAttr.get(parser.text[start : parser.pos])
    if parser.parse_optional_punctuation(":") is None:
        return ShardyOp(name)
    position = parser.pos
    if parser.token[0] == "(":
        kinds, results = parser.parse_signature()
    else:
        kinds = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        results = [] if name in ("sdy.return", "sdy.sharding_group") else kinds
    return ShardyOp(name, parser.resolve_operands(operands, kinds, position), results, {"sharding": sharding})


def _parse_with_region(parser: Parser, name: str) -> Operation:
    """Parses `(%x) in_shardings=[...] out_shardings=[...] manual_axes={...} (%y: type) {...} : (types) -> types`."""
    parser.parse_optional_balanced()
    operands = parser.parse_operand_list()
    start = parser.pos
    _skip_to(parser, "(", END)
    sharding = StringAttr.get(parser.text[start : parser.pos])
    region = parser.parse_region(parser.parse_arguments())
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":", " before the types")
    position = parser.pos
    kinds, results = parser.parse_signature()
    values = parser.resolve_operands(operands, kinds, position)
    return ShardyOp(name, values, results, {"sharding": sharding}, attributes, [region])


def _skip_to(parser: Parser, *ends: str) -> None:
    """Skips tokens, those in brackets among them, up to one of some kinds outside of brackets."""
    depth = 0
    while parser.token[0] != END and (depth or parser.token[0] not in ends):
        depth += (parser.token[0] in _OPENING) - (parser.token[0] in _CLOSING)
        parser.advance()


SDY = Dialect(NAME, open_ops=lambda name: ShardyOp, attributes=None, assembly=_parse)
"""The dialect."""


def erase_shardings(module: ModuleOp) -> None:
    """Replaces the dialect's ops in a module for one device by their operands.

    Raises:
        ConversionError: The module is for several devices, or has an op that isn't its operand on one
            (`unsupported-artifact`).
    """
    found = [op for op in module.walk() if isinstance(op, ShardyOp)]
    for op in found:
        devices = _devices(op)
        if devices > 1:
            message = f"the module is for {devices} devices"
            raise error_at(op, "unsupported-artifact", message, "export it for one device, without shardings")
    # What is inside of an op comes after it.
    for op in reversed(found):
        if op.name == _CONSTANT:
            value = StableHLOConstantOp.create(properties={"value": op.properties["value"]}, location=op.location)
            _insert_before(op, value)
            _replace(op, value.results)
        elif op.name in _WITH_REGION:
            _replace(op, _inlined(op, op.regions))
        elif op.name != "sdy.return":
            _replace(op, op.operands[:] if op.results else ())


def _devices(op: Operation) -> int:
    """Returns the number of devices of the largest mesh that an op names by its axes."""
    texts = [each.text if isinstance(each, OpaqueAttr) else str(each) for each in op.properties.values()]
    meshes = [mesh for text in texts for mesh in _AXES.findall(text)]
    return max([prod(map(int, _SIZE.findall(mesh))) for mesh in meshes], default=1)


def _inlined(op: Operation, regions: Sequence[Region]) -> Sequence[Value]:
    """Moves the ops of a region before its op; returns what the region returns."""
    block = regions[0].block if len(regions) == 1 and regions[0].blocks else Block()
    last = block.last_op
    if last is None or last.name != "sdy.return" or len(block.args) != len(op.operands):
        raise _unsupported(op)
    for argument, operand in zip(block.args, op.operands, strict=True):
        if argument.type is not operand.type:
            raise _unsupported(op)
        argument.replace_all_uses_with(operand)
    values = tuple(last.operands)
    last.erase()
    for inner in tuple(block.ops):
        _insert_before(op, block.detach_op(inner))
    return values


def _insert_before(op: Operation, new: Operation) -> None:
    assert op.parent is not None
    op.parent.insert_op_before(new, op)


def _replace(op: Operation, values: Sequence[Value]) -> None:
    if [each.type for each in values] != [each.type for each in op.results]:
        raise _unsupported(op)
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def _unsupported(op: Operation) -> Exception:
    message = f"{op.name} doesn't return its operands, as it does on one device"
    return error_at(op, "unsupported-artifact", message, "export it for one device, without shardings")
