"""Pass `shape-inference`: refines types by what ops mean, and computes what constants and shapes tell (design §10).

One sweep a function, in program order. Each op's result types are merged with what its shape function says of its
operands; ops on constants alone become constants, large ones as expressions that are computed while the file is
written; so do shape tensors whose every element is known, and the shape operands of reshapes that leave one dimension
open. What nothing uses any more is erased.

Before:

    func.func @main(%x: tensor<?x7x7x160xf32>) -> tensor<*xf32> {
      %0 = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tf.Const"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
      %2 = "tf.Const"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
      %3 = "tf.Shape"(%x) : (tensor<?x7x7x160xf32>) -> tensor<4xi32>
      %4 = "tf.StridedSlice"(%3, %0, %1, %1) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64,
        new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}>
        : (tensor<4xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32>
      %5 = "tf.Pack"(%4, %2) <{axis = 0 : i64}> : (tensor<i32>, tensor<i32>) -> tensor<2xi32>
      %6 = "tf.Reshape"(%x, %5) : (tensor<?x7x7x160xf32>, tensor<2xi32>) -> tensor<*xf32>
      %7 = "tf.Relu"(%6) : (tensor<*xf32>) -> tensor<*xf32>
      func.return %7 : tensor<*xf32>
    }

After:

    func.func @main(%x: tensor<?x7x7x160xf32>) -> tensor<?x7840xf32> {
      %0 = "tf.Const"() <{value = dense<[-1, 7840]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %1 = "tf.Reshape"(%x, %0) : (tensor<?x7x7x160xf32>, tensor<2xi32>) -> tensor<?x7840xf32>
      %2 = "tf.Relu"(%1) : (tensor<?x7840xf32>) -> tensor<?x7840xf32>
      func.return %2 : tensor<?x7840xf32>
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult

from converter.rewrite.edit import restate_functions
from converter.shapes.dims import UNKNOWN, Partial, without_symbols
from converter.shapes.folding import fold
from converter.shapes.functions import infer_shapes, infer_values
from converter.shapes.operands import Known, Operands, type_shape
from converter.shapes.reshape_target import constant_target
from schema.dialects import tensor_data, tf, types
from schema.dialects.tensor_data import Constant
from schema.dialects.tf_executor import ExecutorOp
from schema.dialects.types import Shape


@dataclass(frozen=True, slots=True)
class ShapeInference:
    """Refines the types of all functions and folds constants."""

    name: ClassVar[str] = "shape-inference"

    def apply(self, module: ModuleOp) -> None:
        """Sweeps every function once.

        Raises:
            ConversionError: Shapes contradict each other (`shape-mismatch`), or a constant that has to be read is
                damaged (`bad-checksum`).
        """
        functions = [op for op in module.ops if isinstance(op, FuncOp)]
        for function in functions:
            for block in function.body.blocks:
                _sweep(block)
        restate_functions(functions)


def _sweep(block: Block) -> None:
    """Sweeps a block, then the blocks in its ops' regions, which see its values; last, what nothing uses goes."""
    known = Known()
    swept: list[_Sweep] = []
    todo = [block]
    while todo:
        sweep = _Sweep(todo.pop(), known)
        swept.append(sweep)
        todo += sweep.run()
    for sweep in reversed(swept):
        sweep.erase_dead()


class _Sweep:
    """One block's sweep, from its arguments to its terminator.

    Attributes:
        block: What is swept.
        known: What has been found out about the values so far.
    """

    __slots__ = ("block", "known")

    def __init__(self, block: Block, known: Known) -> None:
        self.block = block
        self.known = known

    def run(self) -> list[Block]:
        """Visits the ops in order; returns the blocks inside of them, but for executor graphs, which are for later."""
        for argument in self.block.args:
            self.known.note(argument, type_shape(argument.type))
        inner: list[Block] = []
        for op in list(self.block.ops):
            if op.name == "tf.Const":
                self._note_constant(op)
            elif op.results:
                self._visit(op)
            if op.regions and not isinstance(op, ExecutorOp):
                inner += [block for region in op.regions for block in region.blocks]
        return inner

    def _note_constant(self, op: Operation) -> None:
        result = op.results[0]
        constant = tensor_data.constant_of(result)
        if constant is not None:
            self.known.constants[result] = constant
            self.known.shapes[result] = type_shape(constant.type)

    def _visit(self, op: Operation) -> None:
        operands = Operands(op, self.known)
        noted = operands.results
        shapes = infer_shapes(operands, noted)
        folded = self._fold(operands, shapes)
        if folded is not None:
            self._replace(op, folded)
            return
        partials = infer_values(operands, shapes)
        found = _whole(op, shapes, partials)
        if found is not None:
            self._replace(op, found)
            return
        self._refine(op, shapes, noted)
        for result, partial in zip(op.results, partials, strict=True):
            if partial is not None:
                self.known.partials[result] = partial
        if op.name == "tf.Reshape":
            self._settle_target(operands, shapes[0])

    def _fold(self, operands: Operands, shapes: list[Shape | None]) -> Sequence[Constant] | None:
        constants: list[Constant] = []
        for value in operands.values:
            constant = self.known.constants.get(value)
            if constant is None:
                return None
            constants.append(constant)
        return fold(operands.op, constants, shapes) if constants else None

    def _refine(self, op: Operation, shapes: list[Shape | None], noted: list[Shape | None]) -> None:
        """Notes the results' shapes, and writes into the types what these don't say yet."""
        for result, shape, old in zip(op.results, shapes, noted, strict=True):
            self.known.note(result, shape)
            if shape is not None and shape != old:
                plain = without_symbols(shape)
                if plain != old:
                    # xDSL has no setter for a value's type, and a new value would cost a rewrite of every user.
                    result._type = types.tensor(types.element_of(result.type), plain)  # noqa: SLF001

    def _replace(self, op: Operation, constants: Sequence[Constant]) -> None:
        """Lets the users of an op's results use constants; the op itself is dead from here on."""
        for result, constant in zip(op.results, constants, strict=True):
            if result.first_use is not None:
                result.replace_all_uses_with(self._insert(constant, op))

    def _insert(self, constant: Constant, before: Operation) -> OpResult:
        made = tf.constant(constant, before.location)
        self.block.insert_op_before(made, before)
        self._note_constant(made)
        return made.results[0]

    def _settle_target(self, operands: Operands, shape: Shape | None) -> None:
        """Puts a constant in the place of a reshape's computed shape, where that says the same."""
        if operands.values[1] in self.known.constants:
            return
        target = constant_target(shape)
        if target is not None:
            element = types.element_of(operands.values[1].type)
            value = np.array(target, types.numpy_dtype(element))
            operands.op.operands[1] = self._insert(tensor_data.of_array(value, element), operands.op)

    def erase_dead(self) -> None:
        """Erases what nothing uses, from the last op to the first."""
        op = self.block.last_op
        while op is not None:
            previous = op.prev_op
            if op.results and all(result.first_use is None for result in op.results) and not tf.has_side_effects(op):
                op.detach()
                op.erase()
            op = previous


def _whole(op: Operation, shapes: list[Shape | None], partials: list[Partial | None]) -> list[Constant] | None:
    """Returns the results as constants if every element of each is known."""
    constants: list[Constant] = []
    for result, shape, partial in zip(op.results, shapes, partials, strict=True):
        if partial is None or shape is None or any(element <= UNKNOWN for element in partial):
            return None
        element = types.element_of(result.type)
        value = np.array(partial, types.numpy_dtype(element)).reshape(() if shape == () else (len(partial),))
        constants.append(tensor_data.of_array(value, element))
    return constants
