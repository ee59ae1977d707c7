"""Which `tf` ops can become flex ops, and how: custom ops whose options tell TensorFlow's runtime what to run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from tfconvert.converter.targets.litert.flex.custom_options import encode
from tfconvert.converter.targets.litert.flex.node_def import UnwritableError, node_def
from tfconvert.schema.diagnostics import NOTE, WARNING, Diagnostic
from tfconvert.schema.dialects import tf, tfl, types
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.tflite.operators import FLEX

NEEDS_FLEX, FLEX_OP = "needs-flex", "flex-op"
"""Codes of what the report tells."""

_LIST = Path(__file__).parent / "ops.txt"


@cache
def known_ops() -> frozenset[str]:
    """Returns the ops that the Flex delegate takes, as the official converter and delegate list them."""
    return frozenset(_LIST.read_text("ascii").split())


def why_not(op: tf.TFOp, further: Sequence[str] = ()) -> str | None:
    """Returns why an op can't become a flex op, as the end of a sentence; `None` if it can.

    Args:
        op: The op.
        further: Names, or patterns of names, of ops that the user's delegate takes beside the known ones.
    """
    name = op.op_name
    if name == "Const" or not (name in known_ops() or any(fnmatchcase(name, each) for each in further)):
        return "the Flex delegate doesn't take the op"
    elements = [types.element_of(value.type) for value in (*op.operands, *op.results)]
    if any(isinstance(element, types.ResourceType) for element in elements):
        return "the Flex delegate can't share a variable or a table with LiteRT"
    unknown = next((element for element in elements if not _is_storable(element)), None)
    if unknown is not None:
        return f"no .tflite file can have tensors of {unknown}"
    try:
        node_def(op)
    except (UnwritableError, VerifyError) as problem:
        return str(problem)
    return None


def _is_storable(element: Attribute) -> bool:
    row = types.from_mlir(element)
    return row is not None and bool(row.tflite)


def flex_op(op: tf.TFOp) -> tfl.TFLOp:
    """Returns the flex op that runs an op that can become one, not inserted yet."""
    return tfl.custom(f"{FLEX}{op.op_name}", encode(node_def(op)), op.operands, op.result_types)


def notes(by_reason: Iterable[tuple[str, Sequence[tf.TFOp]]]) -> list[Diagnostic]:
    """Returns what the report tells of the ops that become flex ops.

    Args:
        by_reason: Why there is no builtin, and ops of one name.
    """
    told = [_note(reason, ops) for reason, ops in by_reason]
    names = ", ".join(dict.fromkeys(f"{FLEX}{note.op.removeprefix('tf.')}" for note in told))
    head = Diagnostic(
        NEEDS_FLEX,
        f"the app that runs this file needs the Flex delegate (Select TF ops) for {names}",
        hint="on Android, add org.tensorflow:tensorflow-lite-select-tf-ops; LiteRT's Python package can't run the file",
        severity=WARNING,
    )
    return [head, *told]


def _note(reason: str, ops: Sequence[tf.TFOp]) -> Diagnostic:
    place = place_of(ops[0].location)
    count = "once" if len(ops) == 1 else f"{len(ops)} times"
    message = f"becomes a flex op, used {count}: {reason}"
    return Diagnostic(FLEX_OP, message, ops[0].name, place.node, str(place), severity=NOTE)
