"""Pass `prepare-control-flow`: conditions become booleans, and `tf.Case` a tree of `tf.If`s over its index.

TensorFlow accepts any tensor as a condition: a number, a string, or any other tensor, which is true unless it is empty.
LiteRT only accepts a boolean. It also has no `Case`. As in TensorFlow's kernel, an index out of range chooses the last
branch.

Before:

    func.func @main(%index: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Case"(%index, %x) <{branches = [@exp, @neg], is_stateless = true}>
          : (tensor<i32>, tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.StatelessIf"(%index, %0) <{then_branch = @exp, else_branch = @neg}>
          : (tensor<i32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    func.func private @exp(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @neg(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }

After:

    func.func @main(%index: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.Equal"(%index, %0) <{incompatible_shape_error = true}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %2 = "tf.If"(%1, %x) <{then_branch = @exp, else_branch = @neg, is_stateless = true}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      %3 = "tf.ToBool"(%index) : (tensor<i32>) -> tensor<i1>
      %4 = "tf.StatelessIf"(%3, %2) <{then_branch = @exp, else_branch = @neg}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      func.return %4 : tensor<2xf32>
    }
    func.func private @exp(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @neg(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from tfconvert.converter.control_flow.constructs import is_boolean
from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import replace_op, update_function_type
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.call_interfaces import CASES, IFS, LOOPS, callees
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.ir.attributes import FALSE
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ALL = IFS | CASES | LOOPS


class PrepareControlFlow:
    """Makes the conditions of `If`s and `While`s booleans, and lowers `Case`s."""

    __slots__ = ()

    name: ClassVar[str] = "prepare-control-flow"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of changed ops of each kind."""
        maker = symbol_table.FunctionMaker(module)
        functions = maker.functions
        if len(functions) < 2:
            return NOTHING_DONE  # there are no calls
        found = [op for function in functions.values() for op in function.body.walk() if op.name in _ALL]
        applied: Counter[str] = Counter()
        decided: set[str] = set()
        for op in found:
            if op.name in CASES:
                _Case(op, maker).lower()
                applied["case"] += 1
            elif op.name in IFS:
                if not is_boolean(op.operands[0]):
                    op.set_operand(0, TFBuilder(op).to_bool(op.operands[0]))
                    applied["condition"] += 1
            elif (name := symbol_table.named(op, "cond")) not in decided:
                decided.add(name)
                applied["condition"] += _decide(symbol_table.function_named(functions, name, op))
        if applied["case"]:
            outside = symbol_table.names_outside(module)
            symbol_table.erase_unreferenced(functions, outside)  # branches that are only called as a copy
        return PassResult(+applied)


def _decide(condition: FuncOp) -> bool:
    """Updates a loop's condition function to return a boolean; returns whether it changed."""
    last = condition.body.block.last_op
    if last is None or not last.operands or is_boolean(last.operands[0]):
        return False
    last.set_operand(0, TFBuilder(last).to_bool(last.operands[0]))
    return update_function_type(condition)


class _Case:
    """A `Case` that becomes a binary tree of `If`s on the index.

    The inner `If`s pass the index on; only the lowest ones call the branches.

    Args:
        op: The `Case`.
        maker: Adds the functions of the tree to the module.
    """

    def __init__(self, op: Operation, maker: symbol_table.FunctionMaker) -> None:
        self._op = op
        self._maker = maker
        self._branches = callees(op)
        self._index = op.operands[0].type
        self._operand_types = [operand.type for operand in op.operands[1:]]

    def lower(self) -> None:
        """Replaces the `Case` by the tree.

        Raises:
            ConversionError: There are no branches (`no-branches`), or one is missing (`missing-function`).
        """
        op, count = self._op, len(self._branches)
        if not count:
            raise error_at(op, "no-branches", "it has no branches")
        insert = TFBuilder(op)
        index, *operands = op.operands
        if count > 2:
            # Every other index selects the last branch; the tree only compares with upper bounds.
            below = _compare(insert, "Less", index, 0)
            index = insert.tf("SelectV2", (below, count - 1, index), self._index)
        replace_op(op, self._tree(insert, 0, count, index, operands))

    def _tree(
        self, insert: TFBuilder, first: int, end: int, index: Value, operands: Sequence[Value]
    ) -> Sequence[Value]:
        """Inserts the choice between branches; the depth of the recursion is logarithmic."""
        if end - first <= 2:
            chosen = _compare(insert, "Equal", index, first)
            return self._if(insert, chosen, self._branches[first], self._branches[end - 1], operands)
        # An even number of branches on the left leaves one branch alone at most.
        middle = first + (end - first + 2) // 4 * 2
        below = _compare(insert, "Less", index, middle)
        names = (self._chooser(first, middle), self._chooser(middle, end))
        return self._if(insert, below, *names, [index, *operands])

    def _if(
        self, insert: TFBuilder, condition: Value, then_branch: str, else_branch: str, operands: Sequence[Value]
    ) -> Sequence[Value]:
        is_stateless = self._op.name == "tf.StatelessCase"
        properties: dict[str, attrs.Value] = {
            "then_branch": attrs.symbol(then_branch),
            "else_branch": attrs.symbol(else_branch),
        }
        if not is_stateless:
            properties["is_stateless"] = self._op.properties.get("is_stateless", FALSE)
        name = "StatelessIf" if is_stateless else "If"
        return insert.tf_op(name, [condition, *operands], self._op.result_types, properties).results

    def _chooser(self, first: int, end: int) -> str:
        """Adds a function of the index and the branches' arguments that returns the results of one of the branches."""
        if end - first == 1:
            return self._without_index(self._branches[first])
        block = Block(arg_types=[self._index, *self._operand_types])
        insert = TFBuilder.at_block_end(block, self._op.location)
        results = self._tree(insert, first, end, block.args[0], block.args[1:])
        block.add_op(ReturnOp.of(results))
        return self._maker.add(f"{self._branches[first]}_to_{end - 1}", block, self._op.location)

    def _without_index(self, name: str) -> str:
        """Adds a copy of a branch that ignores an additional index."""
        copy = symbol_table.function_named(self._maker.functions, name, self._op).clone()
        block = copy.body.block
        block.insert_arg(self._index, 0)
        copy.body.detach_block(block)
        return self._maker.add(f"{name}_at_index", block, copy.location)


def _compare(insert: TFBuilder, name: str, index: Value, with_: int) -> Value:
    properties = {"incompatible_shape_error": True} if name == "Equal" else {}
    return insert.tf(name, (index, with_), types.tensor(types.I1, ()), properties)
