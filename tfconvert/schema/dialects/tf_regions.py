"""Rules of the region forms of control flow, `tf.IfRegion`, `tf.CaseRegion`, `tf.WhileRegion`, and of `tf.Yield`.

TensorFlow's registry lacks such ops: they are MLIR's forms of `tf.If`, `tf.Case` and `tf.While`, whose functions'
bodies are regions that end in `tf.Yield`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.tf_executor.base import compatible
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.block import Region
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

YIELD = "tf.Yield"

# The terminators of regions of the `tf` dialect, and of `tfl.if` and `tfl.while`.
_YIELDS = (YIELD, "tfl.yield")


def verify(op: Operation, op_name: str) -> None:
    """Checks an op that TensorFlow's registry doesn't know; all but the region forms pass."""
    check = _CHECKS.get(op_name)
    if check is not None:
        check(op)


def fail(op: Operation, message: str) -> NoReturn:
    """Raises a `VerifyError` with the op's name."""
    raise VerifyError(f"{op.name}: {message}")


def _yielded(op: Operation, region: Region, name: str) -> Sequence[Value]:
    """Returns the terminator of a region of one block."""
    if len(region.blocks) != 1:
        fail(op, f"the {name} region must have one block, found {len(region.blocks)}")
    last = region.block.last_op
    wanted = _YIELDS[op.dialect == "tfl"]
    if last is None or last.name != wanted:
        fail(op, f"the {name} region must end in {wanted}, found {last.name if last is not None else 'nothing'}")
    return last.operands


def agree(op: Operation, what: str, found: Sequence[Attribute], expected: Sequence[Attribute]) -> None:
    """Checks that forwarded types may be those of one value, one by one."""
    if len(found) != len(expected):
        fail(op, f"expected {len(expected)} {what}, found {len(found)}")
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        if not fits(one, other):
            fail(op, f"number {index} of the {what} must agree with {other}, found {one}")


def fits(one: Attribute, other: Attribute) -> bool:
    """Returns whether a value of one type may be forwarded as one of another, including the types in handles."""
    if not compatible(one, other):
        return False
    a, b = types.element_of(one), types.element_of(other)
    if isinstance(a, types.RefType) != isinstance(b, types.RefType):
        return False
    if isinstance(a, types.ResourceType) and isinstance(b, types.ResourceType) and a.subtypes and b.subtypes:
        return compatible(a.subtypes[0], b.subtypes[0])
    return True


def _check_scalar(op: Operation, what: str, value: Value, element: Attribute) -> None:
    if value.element != element or value.shape not in ((), None):
        fail(op, f"{what} must be a scalar of type {element}, found {value.type}")


def _check_branches(op: Operation, what: str, element: Attribute) -> None:
    if len(op.operands) != 1:
        fail(op, f"expected 1 operand, found {len(op.operands)}")
    _check_scalar(op, what, op.operands[0], element)
    for number, region in enumerate(op.regions):
        values = _yielded(op, region, f"number {number}")
        if region.block.args:
            fail(op, f"the number {number} region must have no arguments, found {len(region.block.args)}")
        agree(op, f"values that region {number} yields", [value.type for value in values], op.result_types)


def _check_if(op: Operation) -> None:
    if len(op.regions) != 2:
        fail(op, f"expected 2 regions, found {len(op.regions)}")
    _check_branches(op, "the condition", types.I1)


def _check_case(op: Operation) -> None:
    if not op.regions:
        fail(op, "expected at least 1 region, found 0")
    _check_branches(op, "the branch index", types.I32)


def _check_while(op: Operation) -> None:
    if len(op.regions) != 2:
        fail(op, f"expected 2 regions, found {len(op.regions)}")
    condition, body = op.regions
    decided = _yielded(op, condition, "cond")
    if not decided:
        fail(op, "the cond region must yield whether to go on, found nothing")
    _check_scalar(op, "the value that the cond region yields", decided[0], types.I1)
    if op.dialect != "tf":
        _check_outlined(op, condition, body)
        return
    if len(decided) > 1 and tuple(decided[1:]) != condition.block.args:
        fail(op, "the cond region must yield its own arguments after the condition, or nothing")
    yielded = [value.type for value in _yielded(op, body, "body")]
    check_loop(op, [value.type for value in condition.block.args], [value.type for value in body.block.args], yielded)


def _check_outlined(op: Operation, condition: Region, body: Region) -> None:
    """Checks a loop of LiteRT's, which may use values from outside that it doesn't change."""
    taken = op.operand_types[: len(condition.block.args)]
    agree(op, "arguments of the cond region", [value.type for value in condition.block.args], taken)
    agree(op, "arguments of the body region", [value.type for value in body.block.args], taken)
    yielded = [value.type for value in _yielded(op, body, "body")]
    agree(op, "values yielded by the body region", yielded, op.result_types)
    agree(op, "results", op.result_types, op.operand_types)


def _changes_shapes(op: Operation) -> bool:
    """Returns whether shapes may change from step to step: the flag is a unit attribute, or `true`."""
    flag = op.properties.get("shape_invariant") or op.attributes.get("shape_invariant")
    return flag is not None and not (isinstance(flag, IntegerAttr) and not flag.value)


def check_loop(
    op: Operation, cond: Sequence[Attribute], body: Sequence[Attribute], yielded: Sequence[Attribute]
) -> None:
    """Checks the types of a loop's variables wherever one is forwarded to another.

    Args:
        op: The loop.
        cond: The types of its condition's arguments.
        body: Those of its body's arguments.
        yielded: Those of its body's results.
    """
    taken, results = op.operand_types, op.result_types
    if not _changes_shapes(op):
        agree(op, "operands", taken, results)
    elif len(taken) != len(results):
        fail(op, f"its operands must be {len(results)}, found {len(taken)}")
    for what, found in (("arguments of the condition", cond), ("arguments of the body", body)):
        agree(op, what, found, taken)
        agree(op, what, found, results)
    agree(op, "results of the body", yielded, results)
    agree(op, "results of the body", yielded, cond)
    agree(op, "results of the body", yielded, body)
    agree(op, "arguments of the body", body, cond)


def _check_yield(op: Operation) -> None:
    parent = op.parent_op()
    if parent is None or not parent.name.endswith("Region"):
        where = "nothing" if parent is None else parent.name
        fail(op, f"must end a region of tf.IfRegion, tf.CaseRegion or tf.WhileRegion, found in {where}")


_CHECKS: Mapping[str, Callable[[Operation], None]] = {
    "IfRegion": _check_if,
    "CaseRegion": _check_case,
    "WhileRegion": _check_while,
    "Yield": _check_yield,
}
