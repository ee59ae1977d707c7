"""Pass `functional-to-regions`: converts `tf.If`, `tf.Case` and `tf.While` to region ops that call their functions.

After `inline`, the bodies are inside the loop or conditional, so that patterns see the code around it and inside.
Conditions become booleans, as the region forms require.

Before:

    func.func @main(%n: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.If"(%n, %x) <{then_branch = @exp, else_branch = @same, is_stateless = true}>
          : (tensor<i32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @exp(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "tf.Exp"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }
    func.func private @same(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }

After:

    func.func @main(%n: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.ToBool"(%n) : (tensor<i32>) -> tensor<i1>
      %1 = "tf.IfRegion"(%0) <{is_stateless = true, _then_func_name = "exp", _else_func_name = "same"}> ({
        %2 = "tf.Cast"(%x) <{Truncate = false}> : (tensor<2xf32>) -> tensor<?xf32>
        %3 = func.call @exp(%2) : (tensor<?xf32>) -> tensor<?xf32>
        "tf.Yield"(%3) : (tensor<?xf32>) -> ()
      }, {
        %4 = func.call @same(%x) : (tensor<2xf32>) -> tensor<2xf32>
        "tf.Yield"(%4) : (tensor<2xf32>) -> ()
      }) : (tensor<i1>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    func.func private @exp(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "tf.Exp"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }
    func.func private @same(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar

from tfconvert.converter.control_flow.constructs import is_boolean
from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.call_interfaces import IFS, INTERFACES, Kind, callees
from tfconvert.schema.dialects.func import CallOp, FuncOp, functions_of
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class FunctionalToRegions:
    """Converts control flow over functions to control flow over regions."""

    __slots__ = ()

    name: ClassVar[str] = "functional-to-regions"

    def apply(self, module: ModuleOp) -> PassResult:
        functions = functions_of(module)
        ops = [op for op in module.walk() if op.name in INTERFACES and INTERFACES[op.name].region_form]
        for op in ops:
            _replace(op, functions)
        return PassResult(Counter(op.name.removeprefix("tf.") for op in ops))


def _replace(op: Operation, functions: Mapping[str, FuncOp]) -> None:
    interface = INTERFACES[op.name]
    keys = interface.properties
    names = callees(op) if interface.arity is None else [symbol_table.named(op, key) for key in keys]
    called = [symbol_table.function_named(functions, name, op) for name in names]
    properties = {name: value for name, value in op.properties.items() if name not in keys}
    if interface.is_stateless:
        properties["is_stateless"] = attrs.boolean(True)
    if interface.kind is Kind.LOOP:
        operands = list(op.operands)
        regions = [_loop_region(op, callee, decides=callee is called[0]) for callee in called]
    else:
        operands = [op.operands[0]]
        if op.name in IFS:
            properties["_then_func_name"], properties["_else_func_name"] = map(attrs.string, names)
            if not is_boolean(operands[0]):
                operands = [TFBuilder(op).to_bool(operands[0])]
        regions = [Region(_call(op, callee, op.operands[1:])) for callee in called]
    new = tf.build(
        interface.region_form.removeprefix("tf."),
        operands=operands,
        result_types=op.result_types,
        properties=properties,
        attributes=op.attributes,
        location=op.location,
        regions=regions,
    )
    replace_op(op, OpBuilder(op).insert(new).results)


def _loop_region(op: Operation, callee: FuncOp, *, decides: bool) -> Region:
    block = Block(arg_types=[operand.type for operand in op.operands])
    _call(op, callee, block.args, block)
    last = block.last_op
    if decides and last is not None and last.operands and not is_boolean(last.operands[0]):
        last.set_operands([TFBuilder(last).to_bool(last.operands[0])])
    return Region(block)


def _call(op: Operation, callee: FuncOp, operands: Sequence[Value], block: Block | None = None) -> Block:
    """Adds the call of a function and the yield of its results to a block, a new one by default.

    Operands are cast to the types of the function's arguments, where those are more or less specific.
    """
    block = block or Block()
    wanted = callee.function_type.inputs
    if len(wanted) != len(operands):
        raise _bad_call(op, callee, f"takes {len(wanted)} values, not {len(operands)}")
    arguments = [_as(op, callee, value, kind, block) for value, kind in zip(operands, wanted, strict=True)]
    call = CallOp.of(callee.sym_name, arguments, callee.function_type.results)
    call.location = op.location
    block.add_ops([call, tf.build("Yield", call.results, (), location=op.location)])
    return block


def _as(op: Operation, callee: FuncOp, value: Value, kind: Attribute, block: Block) -> Value:
    if value.type == kind:
        return value
    element, wanted = value.element, types.element_of(kind)
    if element != wanted and not isinstance(wanted, types.ResourceType | types.VariantType):
        raise _bad_call(op, callee, f"takes {kind}, not {value.type}")
    cast = tf.build("Cast", (value,), (kind,), {"Truncate": False}, op.location)
    block.add_op(cast)
    return cast.results[0]


def _bad_call(op: Operation, callee: FuncOp, message: str) -> ConversionError:
    return error_at(op, "bad-call", f"the function {callee.sym_name!r} {message}", "the model file is damaged")
