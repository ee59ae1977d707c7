"""Rules of the region forms of control flow, `tf.IfRegion`, `tf.CaseRegion`, `tf.WhileRegion`, and of `tf.Yield`.

TensorFlow's registry lacks such ops: they are MLIR's forms of `tf.If`, `tf.Case` and `tf.While`, whose functions'
bodies are regions that end in `tf.Yield`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.tf_executor.values import compatible
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Region
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

YIELD = "tf.Yield"

_YIELDS = (YIELD, "tfl.yield")
"""What ends the regions of the `tf` dialect, and of `tfl.if` and `tfl.while`."""


def verify(op: Operation, op_name: str) -> None:
    """Checks an op that TensorFlow's registry doesn't know; all but the region forms pass.

    Raises:
        VerifyError: A region form breaks a rule.
    """
    check = _CHECKS.get(op_name)
    if check is not None:
        check(op)


def _fail(op: Operation, message: str) -> NoReturn:
    raise VerifyError(f"{op.name}: {message}")


def _yielded(op: Operation, region: Region, name: str) -> Sequence[Value]:
    """Returns the terminator of a region of one block."""
    if len(region.blocks) != 1:
        _fail(op, f"the {name} region must have one block, found {len(region.blocks)}")
    last = region.block.last_op
    wanted = _YIELDS[op.dialect == "tfl"]
    if last is None or last.name != wanted:
        _fail(op, f"the {name} region must end in {wanted}, found {last.name if last is not None else 'nothing'}")
    return last.operands


def _check_types(op: Operation, what: str, values: Sequence[Value], expected: Sequence[Value]) -> None:
    """Checks numbers and element types, and that no shapes contradict."""
    if len(values) != len(expected):
        _fail(op, f"expected {len(expected)} {what}, found {len(values)}")
    for index, (value, other) in enumerate(zip(values, expected, strict=True)):
        if not compatible(value.type, other.type):
            _fail(op, f"number {index} of the {what} must agree with {other.type}, found {value.type}")


def _check_scalar(op: Operation, what: str, value: Value, element: Attribute) -> None:
    if types.element_of(value.type) != element or types.shape_of(value.type) not in ((), None):
        _fail(op, f"{what} must be a scalar of type {element}, found {value.type}")


def _check_branches(op: Operation, what: str, element: Attribute) -> None:
    if len(op.operands) != 1:
        _fail(op, f"expected 1 operand, found {len(op.operands)}")
    _check_scalar(op, what, op.operands[0], element)
    for number, region in enumerate(op.regions):
        values = _yielded(op, region, f"number {number}")
        if region.block.args:
            _fail(op, f"the number {number} region must have no arguments, found {len(region.block.args)}")
        _check_types(op, f"values yielded by region {number}", values, op.results)


def _check_if(op: Operation) -> None:
    if len(op.regions) != 2:
        _fail(op, f"expected 2 regions, found {len(op.regions)}")
    _check_branches(op, "the condition", types.I1)


def _check_case(op: Operation) -> None:
    if not op.regions:
        _fail(op, "expected at least 1 region, found 0")
    _check_branches(op, "the branch index", types.I32)


def _check_while(op: Operation) -> None:
    if len(op.regions) != 2:
        _fail(op, f"expected 2 regions, found {len(op.regions)}")
    condition, body = op.regions
    decided = _yielded(op, condition, "cond")
    if not decided:
        _fail(op, "the cond region must yield whether to go on, found nothing")
    _check_scalar(op, "the value that the cond region yields", decided[0], types.I1)
    # The official converter's outlined loops use what they don't change without taking it as an argument.
    taken = op.operands if op.dialect == "tf" else op.operands[: len(condition.block.args)]
    _check_types(op, "arguments of the cond region", condition.block.args, taken)
    _check_types(op, "values yielded by the body region", _yielded(op, body, "body"), op.results)
    _check_types(op, "arguments of the body region", body.block.args, taken)
    _check_types(op, "results", op.results, op.operands)


def _check_yield(op: Operation) -> None:
    parent = op.parent_op()
    if parent is None or not parent.name.endswith("Region"):
        where = "nothing" if parent is None else parent.name
        _fail(op, f"must end a region of tf.IfRegion, tf.CaseRegion or tf.WhileRegion, found in {where}")


_CHECKS: Mapping[str, Callable[[Operation], None]] = {
    "IfRegion": _check_if, "CaseRegion": _check_case, "WhileRegion": _check_while, "Yield": _check_yield,
}  # fmt: skip
