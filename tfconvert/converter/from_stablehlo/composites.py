"""Custom calls that JAX makes in every model, and composites, whose decompositions stand for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.symbol_table import named
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import need
from tfconvert.schema.dialects import dims, stablehlo, types
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.dialects.op_table import Count, Definition, kind_of
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
    is_op = dialect in ("chlo", "mhlo", "stablehlo") and (name == "topk" or _definition(name) is not None)
    return name if is_op else f"@{target}"


@cache
def _definition(name: str) -> Definition | None:
    """Returns the definition of an op that a call can stand for: the properties that such ops need are numbers `k`."""
    found = stablehlo.definitions().get(f"stablehlo.{name}") or stablehlo.definitions().get(f"chlo.{name}")
    if found is None or found.regions.maximum or name.startswith("dynamic_"):
        return None
    needed = {own for own, each in found.properties.items() if not each.optional}
    return found if needed <= {"k"} else None


_MANY = 1 << 30

# The numbers of operands and of results of other custom calls. Dynamic sizes of results are further operands.
_CALLS: Mapping[str, tuple[Count, Count]] = {
    "@ApproxTopK": (Count(4, _MANY), Count(2, 2)),
    "@lapack_sgeqrf_ffi": (Count(1, _MANY), Count(2, 2)),
    "@lapack_sgetrf_ffi": (Count(1, _MANY), Count(3, 3)),
    "@lapack_sorgqr_ffi": (Count(2, _MANY), Count(1, 1)),
    "@lapack_spotrf_ffi": (Count(1, _MANY), Count(2, 2)),
    "@lapack_strsm_ffi": (Count(2, _MANY), Count(1, 1)),
    "@shape_assertion": (Count(1, _MANY), Count(0, 0)),
    "@stablehlo.dynamic_reduce_window": (Count(7, 7), Count(1, 1)),
    "@stablehlo.dynamic_rng_bit_generator": (Count(2, 2), Count(2, 2)),
    "@stablehlo.dynamic_top_k": (Count(2, 2), Count(2, 2)),
    "topk": (Count(1, 1), Count(2, 2)),
}


def check_call(op: Operation, name: str) -> None:
    """Declines a call with other operands or results than its row expects; other ops are verified.

    Args:
        op: The op.
        name: The name of its row.
    """
    if op.name not in (COMPOSITE, _CUSTOM_CALL):
        return
    definition = _definition(name)
    known = _CALLS.get(name) if definition is None else (definition.operands, definition.results)
    for values, count in zip((op.operands, op.results), known or (), strict=False):
        need(count.minimum <= len(values) <= count.maximum, "it has another number of operands or results")
    if definition is not None and definition.kinds:
        found = {kind_of(types.element_of(kind)) for kind in op.operand_types}
        need(found <= {*definition.kinds}, "it has operands of other types than the op that it stands for")


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


_IDENTITIES = ("LayoutConstraint", "MoveToDevice", "MoveToHost", "annotate_device_placement")

ROWS: Rows = {**{f"@{name}": _operands for name in _IDENTITIES}, "@shape_assertion": _shape_assertion}
