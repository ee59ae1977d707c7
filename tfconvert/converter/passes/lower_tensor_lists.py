"""Pass `lower-tensor-lists`: converts lists of tensors to tensors, whose first dimension numbers the elements.

Lists that are passed to loops, branches and calls become tensors there, too. All elements of a list must have one
shape. A dynamic dimension of it, such as the batch, is read from a value that is available where the list is created.
Elements that are read before they were set are zeros.

Before:

    func.func @main(%x: tensor<?x4xf32>) -> tensor<3x?x4xf32> {
      %shape = "tf.Const"() <{value = dense<[-1, 4]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %count = "tf.Const"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %index = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %0 = "tf.TensorListReserve"(%shape, %count) {element_dtype = f32}
        : (tensor<2xi32>, tensor<i32>) -> tensor<!tf_type.variant<tensor<?x4xf32>>>
      %1 = "tf.Neg"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
      %2 = "tf.TensorListSetItem"(%0, %index, %1) <{resize_if_index_out_of_bounds = false}>
        : (tensor<!tf_type.variant<tensor<?x4xf32>>>, tensor<i32>, tensor<?x4xf32>) -> tensor<!tf_type.variant>
      %3 = "tf.TensorListStack"(%2, %shape) <{num_elements = 3 : i64}>
        : (tensor<!tf_type.variant>, tensor<2xi32>) -> tensor<3x?x4xf32>
      func.return %3 : tensor<3x?x4xf32>
    }

After:

    func.func @main(%x: tensor<?x4xf32>) -> tensor<3x?x4xf32> {
      %count = "tf.Const"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %0 = "tf.Neg"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
      %1 = "tf.Shape"(%x) : (tensor<?x4xf32>) -> tensor<2xi32>
      %2 = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %3 = "tf.Const"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
      %4 = "tf.Const"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
      %5 = "tf.StridedSlice"(%1, %2, %3, %4) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64,
        new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}>
        : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32>
      %6 = "tf.Const"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
      %7 = "tf.Pack"(%count, %5, %6) <{axis = 0 : i64}> : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3xi32>
      %8 = "tf.Const"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
      %9 = "tf.Fill"(%7, %8) : (tensor<3xi32>, tensor<f32>) -> tensor<3x?x4xf32>
      %10 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %11 = "tf.ExpandDims"(%0, %10) : (tensor<?x4xf32>, tensor<i32>) -> tensor<1x?x4xf32>
      %12 = "tf.Const"() <{value = dense<[1, 0, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %13 = "tf.XlaDynamicUpdateSlice"(%9, %11, %12)
        : (tensor<3x?x4xf32>, tensor<1x?x4xf32>, tensor<3xi32>) -> tensor<3x?x4xf32>
      func.return %13 : tensor<3x?x4xf32>
    }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tfconvert.converter.control_flow.calls import Calls
from tfconvert.converter.ir.constants import Scalar, constant_array, is_enumeration
from tfconvert.converter.ir.edit import erase, replace_op
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.shapes.list_ops import OPS, ListClass
from tfconvert.converter.shapes.materialize import MAKERS, MaterializedSizes, Positions
from tfconvert.converter.shapes.symbolic import Symbols
from tfconvert.converter.tensor_lists import lists
from tfconvert.converter.tensor_lists.lists import LOWERINGS, Lowered
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import found_at
from tfconvert.schema.dialects.types import is_static
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# Op that reads or writes elements by index -> the operand that replaces it if the indices are 0, 1, ..., length - 1.
_ROWS = {"tf.TensorListGather": 0, "tf.TensorListScatterIntoExistingList": 1}

# The operand with the indices.
_INDICES = {"tf.TensorListGather": 1, "tf.TensorListScatterIntoExistingList": 2}


class LowerTensorLists:
    """Converts lists to tensors."""

    __slots__ = ()

    name: ClassVar[str] = "lower-tensor-lists"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function.

        Raises:
            ConversionError: A list can't become a tensor; all that are found in one (`list-escapes`, `nested-list`,
                `list-elements-differ`, `list-rank`, `list-element-shape`, `list-scatter`).
        """
        if not sum(_erase_unused(op) for op in module.ops):
            return NOTHING_DONE
        calls = Calls(module)
        classes = lists.find(calls)
        class_of = {op: found for found in classes.values() for op in found.ops}
        made = [op for function in calls.functions.values() for op in function.body.block.ops if op.name in MAKERS]
        unknown = any(not is_static(classes[op.results[0]].shape) for op in made)
        symbols = Symbols(calls, classes) if unknown or any(map(_needs_length, class_of)) else None
        whole = set() if symbols is None else {op for op in class_of if _takes_all(op, symbols)}
        _make(made, classes, symbols)
        for value, found in classes.items():
            value.type = found.type
        problems: list[Diagnostic] = []
        for function in calls.functions.values():
            for op in list(function.body.block.ops):
                if op in whole:
                    replace_op(op, [op.operands[_ROWS[op.name]]])
                elif op in class_of:
                    problems += _lower(op, class_of[op])
        if problems:
            raise ConversionError(problems)
        calls.update_types()
        ShapeInference().apply(module)  # The shape of a list's source refines the types of its elements.
        return NOTHING_DONE


def _erase_unused(function: Operation) -> int:
    """Erases dead new lists, whose elements may be unknown; returns the number of other ops of lists."""
    found = 0
    if isinstance(function, FuncOp) and function.body.blocks:
        for op in list(function.body.block.ops):
            if op.name in MAKERS and op.results[0].first_use is None:
                erase(op)
            else:
                found += op.name in OPS
    return found


def _lower(op: Operation, found: ListClass) -> tuple[Diagnostic, ...]:
    """Replaces an op of a list; returns why it can't be replaced."""
    try:
        results = LOWERINGS[op.name](Lowered(op, found, TFBuilder(op)))
    except ConversionError as problem_found:
        return problem_found.diagnostics
    replace_op(op, results)
    return ()


def _needs_length(op: Operation) -> bool:
    """Returns whether an op takes or replaces a number of elements that depends on a length not known yet."""
    return op.name in _ROWS and constant_array(op.operands[_INDICES[op.name]]) is None


def _takes_all(op: Operation, symbols: Symbols) -> bool:
    """Returns whether an op takes, or replaces, all elements of a list in their order."""
    if not _needs_length(op) or not is_enumeration(op.operands[_INDICES[op.name]]):
        return False
    shapes = [symbols.shape(op.operands[index]) for index in (0, _INDICES[op.name], _ROWS[op.name])]
    lengths = {shape[0] if shape else -1 for shape in shapes}
    return len(lengths) == 1 and -1 not in lengths


def _make(made: Sequence[Operation], lists: Mapping[Value, ListClass], symbols: Symbols | None) -> None:
    """Replaces new lists by tensors of zeros, inserted before their first uses.

    Raises:
        ConversionError: The elements' shape can't be known there.
    """
    positions = Positions()
    problems = [found for op in made for found in _zeros(op, lists[op.results[0]], symbols, positions)]
    if problems:
        raise ConversionError(problems)
    for op in made:
        erase(op)


def _zeros(op: Operation, found: ListClass, symbols: Symbols | None, positions: Positions) -> list[Diagnostic]:
    """Replaces a new list by a tensor of zeros; returns why it can't be replaced."""
    users = {use.operation: None for use in op.results[0].uses}
    order = [(place, user) for user in users if user.parent is op.parent and (place := positions.of(user)) is not None]
    if not order:
        return []
    anchor = min(order, key=lambda pair: pair[0])[1]
    insert = TFBuilder(anchor)
    length: Scalar = insert.i32(op.operands[1]) if op.name == "tf.TensorListReserve" else 0
    sizes: list[Scalar] = [length]
    for axis, dim in enumerate(found.shape or ()):
        size = _size(op, axis, dim, symbols, positions, anchor)
        if size is None:
            return [_unknown_shape(op)]
        sizes.append(size)
    assert found.element is not None
    op.results[0].replace_all_uses_with(insert.zeros(sizes, found.element))
    return []


def _unknown_shape(op: Operation) -> Diagnostic:
    return found_at(
        op,
        "list-element-shape",
        "the elements' shape is not the same in every iteration, or can't be known before they are computed",
        "give the TensorArray an element_shape",
    )


def _size(
    op: Operation, axis: int, dim: int, symbols: Symbols | None, positions: Positions, anchor: Operation
) -> Value | None:
    """Returns a dimension of a new list's elements as a scalar before the list is first used."""
    if dim >= 0 or symbols is None:
        return TFBuilder(anchor).number(dim)
    shape = symbols.shape(op.results[0])
    assert shape is not None
    return MaterializedSizes(symbols, positions, anchor).scalar(shape[axis + 1])
