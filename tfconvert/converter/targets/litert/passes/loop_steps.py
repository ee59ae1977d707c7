"""Pass `loop-steps`: loops read steps of sequences by their index, and sequences stay batch first.

A slice at a loop's counter becomes a gather of one step, whose size LiteRT knows before it runs the loop.

Keras transposes sequences before a recurrent layer's loop and after it. A step is as fast to read and to write along
the second axis, so these transposes go. LiteRT's GPU accelerator also writes rows along the first axis of such tensors
to wrong places, and rows along the second one correctly.

Before:

    func.func @main(%x: tensor<2x5x4xf32>) -> tensor<2x5x4xf32> {
      %i = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %rows = "tf.Const"() <{value = dense<0.0> : tensor<5x2x4xf32>}> : () -> tensor<5x2x4xf32>
      %p = "tf.Const"() <{value = dense<[1, 0, 2]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %0 = "tf.Transpose"(%x, %p) : (tensor<2x5x4xf32>, tensor<3xi32>) -> tensor<5x2x4xf32>
      %1:3 = "tf.While"(%i, %rows, %0) <{cond = @cond, body = @body, is_stateless = true}>
        : (tensor<i32>, tensor<5x2x4xf32>, tensor<5x2x4xf32>) -> (tensor<i32>, tensor<5x2x4xf32>, tensor<5x2x4xf32>)
      %2 = "tf.Transpose"(%1#1, %p) : (tensor<5x2x4xf32>, tensor<3xi32>) -> tensor<2x5x4xf32>
      func.return %2 : tensor<2x5x4xf32>
    }
    func.func private @cond(%i: tensor<i32>, %rows: tensor<5x2x4xf32>, %x: tensor<5x2x4xf32>) -> tensor<i1> {
      %n = "tf.Const"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
      %0 = "tf.Less"(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %0 : tensor<i1>
    }
    func.func private @body(%i: tensor<i32>, %rows: tensor<5x2x4xf32>, %x: tensor<5x2x4xf32>)
        -> (tensor<i32>, tensor<5x2x4xf32>, tensor<5x2x4xf32>) {
      %zero = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %one = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %next = "tf.AddV2"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %0 = "tf.GatherV2"(%x, %i, %zero) : (tensor<5x2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
      %1 = "tf.Tanh"(%0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
      %2 = "tf.ExpandDims"(%1, %zero) : (tensor<2x4xf32>, tensor<i32>) -> tensor<1x2x4xf32>
      %3 = "tf.Pack"(%i, %zero, %zero) <{axis = 0 : i64}> : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3xi32>
      %4 = "tf.XlaDynamicUpdateSlice"(%rows, %2, %3)
        : (tensor<5x2x4xf32>, tensor<1x2x4xf32>, tensor<3xi32>) -> tensor<5x2x4xf32>
      func.return %next, %4, %x : tensor<i32>, tensor<5x2x4xf32>, tensor<5x2x4xf32>
    }

After:

    func.func @main(%x: tensor<2x5x4xf32>) -> tensor<2x5x4xf32> {
      %0 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.Const"() <{value = dense<0.0> : tensor<2x5x4xf32>}> : () -> tensor<2x5x4xf32>
      %2:3 = "tf.While"(%0, %1, %x) <{cond = @cond, body = @body, is_stateless = true}>
        : (tensor<i32>, tensor<2x5x4xf32>, tensor<2x5x4xf32>) -> (tensor<i32>, tensor<2x5x4xf32>, tensor<2x5x4xf32>)
      func.return %2#1 : tensor<2x5x4xf32>
    }
    func.func private @cond(%i: tensor<i32>, %rows: tensor<2x5x4xf32>, %x: tensor<2x5x4xf32>) -> tensor<i1> {
      %0 = "tf.Const"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.Less"(%i, %0) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %1 : tensor<i1>
    }
    func.func private @body(%i: tensor<i32>, %rows: tensor<2x5x4xf32>, %x: tensor<2x5x4xf32>)
        -> (tensor<i32>, tensor<2x5x4xf32>, tensor<2x5x4xf32>) {
      %0 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %2 = "tf.AddV2"(%i, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %3 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %4 = "tf.GatherV2"(%x, %i, %3) : (tensor<2x5x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
      %5 = "tf.Tanh"(%4) : (tensor<2x4xf32>) -> tensor<2x4xf32>
      %6 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %7 = "tf.ExpandDims"(%5, %6) : (tensor<2x4xf32>, tensor<i32>) -> tensor<2x1x4xf32>
      %8 = "tf.Pack"(%0, %i, %0) <{axis = 0 : i64}> : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3xi32>
      %9 = "tf.XlaDynamicUpdateSlice"(%rows, %7, %8)
        : (tensor<2x5x4xf32>, tensor<2x1x4xf32>, tensor<3xi32>) -> tensor<2x5x4xf32>
      func.return %2, %9, %x : tensor<i32>, tensor<2x5x4xf32>, tensor<2x5x4xf32>
    }
"""

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.control_flow.constructs import Construct, invariants, origin, own_loops, returned
from tfconvert.converter.ir.constants import constant_int, constant_ints
from tfconvert.converter.ir.edit import erase_dead, replace_op, update_function_type
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.recurrence.scan import is_counter, sliced, widened
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, Value


class LoopSteps:
    """Simplifies how loops read and write sequences step by step."""

    __slots__ = ()

    name: ClassVar[str] = "loop-steps"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every loop whose functions have no other users; returns the numbers of rewritten accesses."""
        sliced_steps = read = written = 0
        for loop in own_loops(module):
            sliced_steps += _gather_slices(loop)
            fixed = invariants(loop.functions[1].body.block)
            for index in range(len(loop.given)):
                if index in fixed:
                    read += _swap_read(loop, index)
                else:
                    written += _swap_written(loop, index)
            for function in loop.functions:
                update_function_type(function)
        if sliced_steps or read or written:
            for function in functions_of(module).values():
                erase_dead(function.body.block)
        return PassResult.of({"sliced": sliced_steps, "read": read, "written": written})


# Elements that LiteRT gathers.
_GATHERED = (types.F32, types.I32, types.I64, types.I1)


def _gather_slices(loop: Construct) -> int:
    """Replaces slices of one step at a counter by gathers, which don't accept negative indices; returns the number."""
    body = loop.functions[1].body.block
    count = 0
    for op in list(body.ops):
        step = sliced(op) if op.name == "tf.StridedSlice" else None
        if step is None or op.results[0].element not in _GATHERED:
            continue
        index = origin(step[0])
        if not isinstance(index, BlockArgument) or index.block is not body:
            continue
        if is_counter(loop, body, index.index, returned(body)[index.index]):
            operands = (op.operands[0], index, step[1])
            replace_op(op, TFBuilder(op).tf("GatherV2", operands, op.results[0].type, {"batch_dims": 0}))
            count += 1
    return count


def _swap_read(loop: Construct, index: int) -> bool:
    """Lets a loop read the steps of a sequence along its second axis if that saves a transpose."""
    condition, body = (function.body.block for function in loop.functions)
    argument = body.args[index]
    readers = [use.operation for use in argument.uses if use.operation is not body.last_op]
    others = (condition.args[index], loop.op.results[index])
    if any(value.first_use is not None for value in others) or not all(_reads_step(op, argument) for op in readers):
        return False
    sequence = _swapped(loop.given[index], loop.op)
    if sequence is None:
        return False
    _retype(loop, index, sequence)
    for op in readers:
        op.set_operand(2, TFBuilder(op).number(1))
    return True


def _reads_step(op: Operation, sequence: Value) -> bool:
    """Returns whether an op takes a step along the first axis of a sequence."""
    return (
        op.name == "tf.GatherV2"
        and op.operands[0] is sequence
        and op.operands[1] is not sequence
        and op.operands[1].shape == ()
        and constant_int(op.operands[2]) == 0
        and not tf.get(op, "batch_dims")
    )


def _swapped(value: Value, before: Operation) -> Value | None:
    """Returns a value with its first two axes swapped where no op is added, `None` elsewhere.

    Args:
        value: The value.
        before: Its user.
    """
    owner = value.owner
    if not isinstance(owner, Operation):
        return None
    if _is_swap(owner):
        before_swap = owner.operands[0]
        # A pair of transposes is gone anyway.
        return None if isinstance(before_swap.owner, Operation) and _is_swap(before_swap.owner) else before_swap
    if owner.name == "tf.ReverseV2" and (axes := _swapped_axes(owner)) is not None:
        source = _swapped(owner.operands[0], before)
        build = TFBuilder(before)
        return None if source is None else build.tf("ReverseV2", (source, build.ints(axes)), source.type)
    return None


def _swapped_axes(reversal: Operation) -> list[int] | None:
    """Returns the axes of a reversal after the first two have been swapped, `None` if they aren't known."""
    axes = constant_ints(reversal.operands[1])
    if axes is None or any(axis < 0 for axis in axes):
        return None
    return [1 - axis if axis < 2 else axis for axis in axes]


def _swap_written(loop: Construct, index: int) -> bool:
    """Lets a loop write the rows of a tensor along its second axis if the tensor is transposed afterwards."""
    condition, body = (function.body.block for function in loop.functions)
    argument, result = body.args[index], loop.op.results[index]
    write = origin(returned(body)[index]).owner
    uses = list(result.uses)
    swaps = [use.operation for use in uses if _is_swap(use.operation)]
    reversals = [use.operation for use in uses if _is_swapped_reversal(use.operation)]
    if not (swaps or reversals) or condition.args[index].first_use is not None:
        return False
    if not isinstance(write, Operation) or not _writes_row(write, argument) or not write.results[0].has_one_use():
        return False
    row = widened(write.operands[1])
    start = None if row is None else _swapped_start(loop.given[index], loop.op)
    if row is None or start is None:
        return False
    build = TFBuilder(write)
    pack = write.operands[2].owner
    assert isinstance(pack, Operation)
    first, second, *rest = pack.operands
    kind = types.tensor(row.element, _exchanged((1, *(row.shape or ()))))
    write.set_operand(1, build.tf("ExpandDims", (row, 1), kind))
    write.set_operand(2, build.tf("Pack", (second, first, *rest), pack.results[0].type, {"axis": 0}))
    write.results[0].type = start.type
    _retype(loop, index, start)
    others = [use for use in uses if use.operation not in swaps and use.operation not in reversals]
    if others:
        as_before = TFBuilder(loop.op.next_op).transpose(result, _order(result))
        for use in others:
            use.operation.set_operand(use.index, as_before)
    for op in reversals:
        op.set_operand(1, TFBuilder(op).ints(_swapped_axes(op) or ()))
        op.results[0].type = result.type
        for swap in [use.operation for use in op.results[0].uses]:
            replace_op(swap, op.results[0])
    for op in swaps:
        replace_op(op, result)
    return True


def _is_swapped_reversal(op: Operation) -> bool:
    """Returns whether an op reverses a tensor that only transposes of the first two axes use."""
    is_swapped = op.name == "tf.ReverseV2" and all(_is_swap(use.operation) for use in op.results[0].uses)
    return is_swapped and _swapped_axes(op) is not None


def _writes_row(op: Operation, rows: Value) -> bool:
    """Returns whether an op replaces a row of a tensor at a computed index along the first axis."""
    if op.name != "tf.XlaDynamicUpdateSlice" or op.operands[0] is not rows or not rows.has_one_use():
        return False
    pack = op.operands[2].owner
    if not isinstance(pack, Operation) or pack.name != "tf.Pack":
        return False
    return all(constant_int(begin) == 0 for begin in pack.operands[1:])


def _swapped_start(value: Value, before: Operation) -> Value | None:
    """Returns the initial value of a tensor of rows with its first two axes swapped: a constant, or a filled tensor."""
    build = TFBuilder(before)
    shape = value.shape or ()
    constant = tensor_data.constant_of(value)
    if constant is not None:
        return build.constant(tensor_data.defer("transpose", (constant,), _exchanged(shape), _order(value)))
    fill = value.owner
    sizes = fill.operands[0].owner if isinstance(fill, Operation) and fill.name == "tf.Fill" else None
    if not isinstance(sizes, Operation) or sizes.name != "tf.Pack":
        return None
    assert isinstance(fill, Operation)
    first, second, *rest = sizes.operands
    kind = types.tensor(value.element, _exchanged(shape))
    return build.tf("Fill", (build.pack((second, first, *rest)), fill.operands[1]), kind)


def _retype(loop: Construct, index: int, value: Value) -> None:
    """Passes a value of another type to a loop."""
    loop.op.set_operand(index, value)
    for each in (loop.op.results[index], *(function.body.block.args[index] for function in loop.functions)):
        each.type = value.type


def _is_swap(op: Operation) -> bool:
    """Returns whether an op transposes the first two axes."""
    return op.name == "tf.Transpose" and constant_ints(op.operands[1]) == _order(op.operands[0])


def _order(value: Value) -> tuple[int, ...]:
    """Returns the permutation that swaps the first two axes of a value."""
    return _exchanged(tuple(range(len(value.shape or ()))))


def _exchanged(items: tuple[int, ...]) -> tuple[int, ...]:
    return (*items[1:2], *items[:1], *items[2:])
