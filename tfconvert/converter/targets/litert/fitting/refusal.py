"""The error about an operator that the runtime rejects or computes incorrectly in every known form."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.locations import found_at
from tfconvert.schema.dialects.tfl import call_of
from tfconvert.schema.tflite import kernels
from tfconvert.schema.tflite.kernels import CRASHES, OK, REFUSED, WRONG, Outcome, rank_of

CODE = "unfit-kernel"

# Prefixes of the forms of types that are not quantized.
_PLAIN = ("f", "b", "int", "uint", "complex", "string")

_DOES: Mapping[str, str] = {REFUSED: "refuses", WRONG: "computes nonsense from", CRASHES: "crashes on"}

_BECAUSE: Mapping[str, str] = {
    "broadcast": "with operands of different shapes",
    "computed": "with a shape or an axis that is not a constant",
    "empty": "with a result without elements",
    "hollow": "with an operand without elements",
}


def refusal(op: tfl.TFLOp, outcome: Outcome) -> Diagnostic:
    """Returns the error.

    Args:
        op: The operator, which is not quantized.
        outcome: What the runtime does with it.
    """
    operator, call = op.op_name.upper(), call_of(op)
    signature = kernels.signature(operator, call)
    inputs, _, outputs = signature.partition(">")
    forms = f"{inputs.replace(',', ', ')} -> {outputs.replace(',', ', ')}"
    circumstances = [text for word, text in _BECAUSE.items() if word in outcome.conditions]
    if outcome.low > 0:
        circumstances.append(f"of {rank_of(operator, call)} dimensions")
    which = " ".join([f"{operator} of {forms}", *circumstances])
    if outcome.builtin == OK:
        message = f"LiteRT's XNNPACK, which it uses by default, {_DOES[outcome.xnnpack]} {which}"
    else:
        message = f"LiteRT {_DOES[outcome.builtin]} {which}"
    return found_at(op, CODE, message, _hint(operator, inputs, outcome))


def _hint(operator: str, inputs: str, outcome: Outcome) -> str:
    if outcome.low > 0:
        return "reshape the operands so that neighbouring dimensions are one, with at most one unknown size among them"
    if outcome.conditions:
        return "change the model so that this doesn't happen"
    rows = kernels.table().rows(operator)
    first = {signature.partition(">")[0].split(",")[0] for signature, found in rows.items() if found[0].is_ok}
    others = sorted(kind for kind in first if kind.startswith(_PLAIN) and kind != inputs.split(",")[0])
    return f"cast its operands; it takes {', '.join(others)}" if others else "do without it"
