"""Custom calls that JAX makes in every model, and composites, whose decompositions stand for them."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.symbol_table import named
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.schema.dialects import dims
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.ir.operation import Operation

COMPOSITE = "stablehlo.composite"
_CUSTOM_CALL = "stablehlo.custom_call"


def row_name(op: Operation) -> str:
    """Returns the name of an op's row: for a custom call `@` and what it calls, for composites what they are."""
    if op.name not in (COMPOSITE, _CUSTOM_CALL):
        return op.name.partition(".")[2]
    target = str(getattr(op.properties.get("call_target_name", op.properties.get("name")), "data", ""))
    dialect, _, name = target.partition(".")
    # `chlo.erf` is a composite, `mhlo.erf` a custom call of older ones, with the operands of the op of this name.
    is_op = name and dialect in ("chlo", "mhlo", "stablehlo") and not name.startswith("dynamic_")
    return name if is_op else f"@{target}"


def decomposition(op: Operation) -> str:
    """Returns the function that computes the same as an op, empty if it has no such function."""
    return named(op, "decomposition") if op.name == COMPOSITE else ""


def references(op: Operation) -> Sequence[str]:
    """Returns the functions that say what an op computes and are not called."""
    if op.name not in (COMPOSITE, _CUSTOM_CALL):
        return ()
    found = named(op, "decomposition"), named(op, "called_computations")
    return [name for name in found if name]


def _shape_assertion(raised: RaisedOp) -> Sequence[EmittedTensor]:
    """Takes what an assertion about sizes tells; LiteRT has none.

    Raises:
        ConversionError: It is false for the sizes that the model has (`shape-mismatch`).
    """
    condition, *values = raised.operands
    known = raised.known(condition)
    if known is not None and not known.all():
        message = raised.text("error_message")
        for index, value in enumerate(values):
            number = raised.known(value)
            message = message.replace(f"{{{index}}}", "?" if number is None else str(number.item()))
        raise error_at(raised.op, "shape-mismatch", message)
    owner = condition.value.owner
    if isinstance(owner, Operation) and owner.name == "tf.Equal":
        one, other = (raised.elements(raised.tensor(operand))[0] for operand in owner.operands)
        if min(one, other) < dims.UNKNOWN and dims.UNKNOWN not in (one, other):
            raised.equate(one, other)
    return ()


def _operands(raised: RaisedOp) -> Sequence[EmittedTensor]:
    return raised.operands


_IDENTITIES = (
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "Sharding",
    "annotate_device_placement",
    "xla.sdy.FuncResultSharding",
)

ROWS: Rows = {**{f"@{name}": _operands for name in _IDENTITIES}, "@shape_assertion": _shape_assertion}
