"""The outcomes of a module's ops in LiteRT's kernels, with a fast path for ops that every kernel computes correctly."""

from __future__ import annotations

from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.tfl import call_of, is_constant
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import TensorType
from tfconvert.schema.tflite import kernels, operators
from tfconvert.schema.tflite.kernels import REFUSED, Outcome, is_plain

HIGHEST_RANK = 8
"""The maximum measured rank, and the maximum rank that can be reshaped."""

NOTED = tfl.full_names({tfl.PSEUDO_CONST, *operators.having("differs")})
"""Ops of which `kernel_notes.py` has something to say; here, since few models need that to be loaded."""

# The safe rank of an op that must be checked each time.
_NEVER = -1

OTHERS = tfl.full_names({*tfl.BESIDE, tfl.CUSTOM})
"""Ops that no kernel of the runtime computes."""


class KernelOutcomes:
    """Looks up the outcomes of ops, as long as the types of a module are alive."""

    __slots__ = ("_fine", "_known")

    def __init__(self) -> None:
        # By identity: types are interned, and hashing them would dominate the run time.
        self._fine: dict[tuple[object, ...], int] = {}
        # Networks repeat their calls. The attributes are kept alive, so that their ids stay unique.
        self._known: dict[tuple[object, ...], tuple[Outcome | None, tuple[Attribute, ...]]] = {}

    def problem(self, op: Operation) -> Outcome | None:
        """Returns how the runtime fails on an op; `None` if it computes it correctly, or if it was not measured.

        Args:
            op: An operator.
        """
        options = tuple(op.properties.values())
        key = (
            op.name,
            *[(id(value.type), is_constant(value)) for value in op.operands],
            0,
            *[id(value.type) for value in op.results],
            0,
            *op.properties,
            *map(id, options),
        )
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = (self._problem(op), options)
        return known[0]

    def _problem(self, op: Operation) -> Outcome | None:
        found = [value.element for value in op.operands]
        key = (op.name, *map(id, found), 0, *[id(value.element) for value in op.results])
        fine = self._fine.get(key)
        if fine is None:
            fine = self._fine[key] = _always_fine(op)
        rank = _rank(op)
        if rank <= fine:
            return None
        assert isinstance(op, tfl.TFLOp)
        if rank > HIGHEST_RANK and op.op_name in operators.having("max_rank"):
            return Outcome(REFUSED, REFUSED, low=HIGHEST_RANK + 1)
        outcome = kernels.outcome(op.op_name.upper(), call_of(op))
        return None if outcome is None or outcome.is_ok else outcome


def _rank(op: Operation) -> int:
    """Returns the maximum rank of an op's values."""
    return max([_rank_of(value.type) for value in (*op.operands, *op.results)], default=0)


def _rank_of(type: object) -> int:
    return len(type.shape) if isinstance(type, TensorType) else 0


def _always_fine(op: Operation) -> int:
    """Returns the maximum rank with which the runtime accepts an op's types under all conditions, or `_NEVER`."""
    assert isinstance(op, tfl.TFLOp)
    operator, call = op.op_name.upper(), call_of(op)
    if not is_plain(call):
        return _NEVER
    rows = kernels.table().of(operator, kernels.signature(operator, call))
    return min((row.low - 1 for row in rows if not row.is_ok), default=HIGHEST_RANK)
