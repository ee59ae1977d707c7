"""Variables of loops that change their sizes, as found by the operators of the body.

    body(x) = concatenation(x, y)        x may have more rows
    body(x) = add(x, y)                  x keeps its rows
    body(x, y) = y, x                    x and y keep theirs only if both have the same number at first

A size is dynamic in the types for other reasons, too: a batch is, and doesn't change.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from tfconvert.ops import tfl_relations
from tfconvert.ops.shape_functions import all_equal, broadcasting
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, Value

# The operand of an operator that has the rows of its result.
_ROWS_OF = dict.fromkeys(("batch_matmul", "conv_2d", "dynamic_update_slice", "fully_connected"), 0)


def resized_variables(loop: Operation, body: FuncOp) -> list[int]:
    """Returns the indices of a loop's variables whose number of rows may change."""
    last = body.body.block.last_op
    if last is None:
        return []
    returned = {
        argument: (value, _reached([value], only_same=True))
        for argument, value, result in zip(body.body.block.args, last.operands, loop.results, strict=True)
        if _rows(result) < 0
    }
    found: set[Value] = set()
    while more := {each for each in returned.keys() - found if _changes(each, *returned[each], loop, found)}:
        found |= more
    return sorted(each.index for each in returned if each in found)


def is_sized_at_run(value: Value) -> bool:
    """Returns whether a value is a reshape whose shape the runtime can't compute before it runs."""
    op = value.owner
    if not isinstance(op, tfl.TFLOp) or op.op_name != "reshape" or len(op.operands) < 2:
        return False
    shape = op.operands[1].owner
    return isinstance(shape, tfl.TFLOp) and shape.op_name == tfl.BARRIER


def _rows(value: Value) -> int:
    """Returns the number of rows, -1 if that is unknown; scalars have one."""
    shape = value.shape
    return -1 if shape is None else shape[0] if shape else 1


def _changes(variable: BlockArgument, result: Value, sources: Set[Value], loop: Operation, resized: Set[Value]) -> bool:
    """Returns whether a variable changes its rows, given other variables that do."""
    if variable in sources or is_sized_at_run(result):
        return is_sized_at_run(result)
    rows = {_rows(loop.operands[each.index]) for each in sources if isinstance(each, BlockArgument)} | {_rows(result)}
    others = rows - {-1, _rows(loop.operands[variable.index])}
    return bool(others) or not resized.isdisjoint(sources) or variable in _reached(sources, only_same=False)


def _reached(values: Iterable[Value], *, only_same: bool) -> set[Value]:
    """Returns the values from which others have their rows, or also those of the same type from which they are made."""
    left = list(values)
    found = set(left)
    while left:
        value = left.pop()
        if isinstance(value.owner, tfl.TFLOp):
            sources = set(_sources_of_rows(value.owner))
            if not only_same:
                sources.update(each for each in value.owner.operands if each.type is value.type)
            left.extend(sources - found)
            found |= sources
    return found


def _sources_of_rows(op: tfl.TFLOp) -> Iterable[Value]:
    """Returns the operands with as many rows as an op's results; what broadcasting does isn't counted."""
    if op.op_name in _ROWS_OF:
        return (op.operands[_ROWS_OF[op.op_name]],)
    if op.op_name == "concatenation":
        return () if tfl.attribute(op, "axis") == 0 else op.operands
    is_elementwise = op.op_name == "select" or tfl_relations.shape_function(op.op_name) in (all_equal, broadcasting)
    return op.operands if is_elementwise else ()
