"""Pass `sink-constants`: constants that branches and loops only read move into their functions.

Files of other converters hand weights to the subgraphs that multiply by them. Quantization finds constants in the
function of the op that reads them.

Before:

    func.func @main(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
      %1 = "tfl.if"(%c, %x, %0) <{then_branch = @add, else_branch = @mul}>
          : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    func.func private @add(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tfl.add"(%x, %y) <{fused_activation_function = "NONE"}>
          : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @mul(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tfl.mul"(%x, %x) <{fused_activation_function = "NONE"}>
          : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }

After:

    func.func @main(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tfl.if"(%c, %x) <{then_branch = @add, else_branch = @mul}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @add(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
      %1 = "tfl.add"(%x, %0) <{fused_activation_function = "NONE"}>
          : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    func.func private @mul(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tfl.mul"(%x, %x) <{fused_activation_function = "NONE"}>
          : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from tfconvert.converter.control_flow.constructs import body_of, invariants
from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import erase, rebuild, update_function_type
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.dialects import tfl, tfl_file
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_IF, _WHILE = f"{tfl.PREFIX}if", f"{tfl.PREFIX}while"


class SinkConstants:
    """Moves constants into the functions of branches and loops."""

    __slots__ = ()

    name: ClassVar[str] = "sink-constants"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of operands that became constants."""
        functions = functions_of(module)
        references = Counter(name for op in module.walk() for name in symbol_table.names(op))
        counts: Counter[str] = Counter()
        todo = list(functions.values())
        while todo:
            for op in list(todo.pop().walk()):
                if op.name not in (_IF, _WHILE):
                    continue
                callees = [functions[name] for name in dict.fromkeys(symbol_table.names(op)) if name in functions]
                if any(references[callee.sym_name] > 1 for callee in callees):
                    continue
                sunk = _sink(op, callees)
                if sunk:
                    counts["sunk"] += sunk
                    # Theirs may be handed on.
                    todo += callees
        return PassResult(counts)


def _sink(op: Operation, callees: Sequence[FuncOp]) -> int:
    """Moves an op's constant operands into its functions; returns how many."""
    blocks = [block for block in map(body_of, callees) if block is not None]
    first = 1 if op.name == _IF else 0
    if len(blocks) != 2 or any(len(block.args) != len(op.operands) - first for block in blocks):
        return 0
    known = range(len(blocks[0].args)) if op.name == _IF else sorted(invariants(blocks[1]))
    sunk = [index for index in known if _is_read(op.operands[first + index], index, blocks, op.name == _WHILE)]
    if not sunk:
        return 0
    for callee, block in zip(callees, blocks, strict=True):
        if op.name == _WHILE and block is blocks[1]:
            last = block.last_op
            assert last is not None
            last.set_operands([value for index, value in enumerate(last.operands) if index not in sunk])
        for index in reversed(sunk):
            _replace_argument(block, index, op.operands[first + index])
        callee.arg_attrs = _without(callee.arg_attrs, sunk)
        if op.name == _WHILE and block is blocks[1]:
            callee.res_attrs = _without(callee.res_attrs, sunk)
        update_function_type(callee)
    _drop_operands(op, [first + index for index in sunk], sunk if op.name == _WHILE else ())
    return len(sunk)


def _is_read(value: Value, index: int, blocks: Sequence[Block], is_loop: bool) -> bool:
    """Returns whether functions only read an operand that is a constant."""
    if not tfl.is_constant(value) or tfl_file.is_variable(value):
        return False
    for block in blocks:
        for use in block.args[index].uses:
            is_forwarded = is_loop and block is blocks[1] and use.index == index
            if use.operation is block.last_op and not is_forwarded:
                return False
    return True


def _replace_argument(block: Block, index: int, value: Value) -> None:
    """Replaces an argument of a function by a copy of a constant."""
    argument = block.args[index]
    if not argument.is_unused:
        assert isinstance(value.owner, Operation)
        assert block.first_op is not None
        made = rebuild(value.owner, (), location=value.owner.location)
        block.insert_op_before(made, block.first_op)
        argument.replace_all_uses_with(made.results[0])
    block.erase_arg(argument)


def _drop_operands(op: Operation, operands: Sequence[int], results: Sequence[int]) -> None:
    """Replaces an op by one without some operands and results, which are equal."""
    assert op.parent is not None
    sources = [op.operands[index] for index in operands]
    for index, source in zip(results, sources, strict=False):
        op.results[index].replace_all_uses_with(source)
    kept = [index for index in range(len(op.results)) if index not in results]
    made = rebuild(
        op,
        [value for index, value in enumerate(op.operands) if index not in operands],
        [op.results[index].type for index in kept],
        location=op.location,
    )
    tensors = _without(made.attributes.get(tfl_file.TENSORS), results)
    if tensors is not None:
        made.attributes[tfl_file.TENSORS] = tensors
    op.parent.insert_op_before(made, op)
    for index, result in zip(kept, made.results, strict=True):
        op.results[index].replace_all_uses_with(result)
    erase(op)
    for source in sources:
        if source.is_unused and isinstance(source.owner, Operation):
            erase(source.owner)


def _without(attributes: Attribute | None, places: Sequence[int]) -> ArrayAttr | None:
    if not isinstance(attributes, ArrayAttr):
        return None
    return ArrayAttr.get([item for index, item in enumerate(attributes.data) if index not in places])
