"""Accelerators on single operators, and on how these use their operands."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.schema.dialects import quant, tfl
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.accelerators.acceptance import CRASHES, OK, REFUSED, UNKNOWN, WRONG, Verdict, verdict
from tfconvert.schema.tflite.operators import TRANSPOSE_CONV_BIAS
from tfconvert.schema.tflite.versions import Call

COMPOSITE = "tfl.stablehlo_composite"
"""The operator that stands for a composite."""

COMPILED = ("gpu", "npu")
"""The accelerators that CompiledModel runs, with its own limits."""

ALL_OR_NONE = ("micro",)
"""The accelerators that can't leave operators to the CPU."""

_CONTROL_FLOW = ("while", "if", "call_once")
# Operators that take rows of a table, with the index of that operand.
_TABLES: Mapping[str, int] = {"embedding_lookup": 1, "gather": 0}
_JOINED = ("concatenation",)
_PARTED = ("split", "split_v")
_BITCAST = "bitcast"

IN_CONTEXT = tfl.full_names({_BITCAST, *_PARTED})
"""Operators on whose results a verdict may depend on more than their types."""


def verdict_of(op: Operation, accelerator: str, *, as_integers: bool = False) -> Verdict:
    """Returns the verdict of an accelerator on an op and on how it uses its operands.

    Args:
        op: The op.
        accelerator: A key of `acceptance.ACCELERATORS`.
        as_integers: Whether it counts as if its floats were quantized to INT8.
    """
    assert isinstance(op, tfl.TFLOp)
    if op.op_name == "custom":
        is_known = accelerator == "gpu" and tfl.attribute(op, tfl.CUSTOM_CODE) == TRANSPOSE_CONV_BIAS
        return Verdict(OK) if is_known else Verdict(REFUSED, "it is a custom operator")
    if op.name == COMPOSITE and accelerator in COMPILED:
        from tfconvert.converter.targets.litert.composite_verdicts import composite_verdict

        return composite_verdict(op, accelerator)
    if op.op_name in _CONTROL_FLOW:
        return Verdict(OK) if accelerator in ALL_OR_NONE else Verdict(REFUSED, "its functions run each for itself")
    if op.op_name == "dequantize" and accelerator == "gpu" and tfl.is_constant(op.operands[0]):
        found = verdict(accelerator, "DEQUANTIZE", tfl.whole_call_of(op))
        return found if found.outcome != UNKNOWN else Verdict(OK)
    call = tfl.whole_call_of(op)
    found = verdict(accelerator, op.op_name.upper(), _quantized(call) if as_integers else call)
    return _in_context(op) if accelerator == "gpu" and found.is_ok else found


def _in_context(op: tfl.TFLOp) -> Verdict:
    """Returns the verdict of the GPU on an op whose form it takes, by what makes its operands and uses its results."""
    if op.operands and all(tfl.is_constant(value) or tfl.is_absent(value) for value in op.operands):
        return Verdict(REFUSED, "all its operands are constants")
    if op.op_name in _TABLES and tfl.whole_call_of(op).inputs[_TABLES[op.op_name]].origin:
        return Verdict(REFUSED, "its table is dequantized (Input / output dtype mismatch.)")
    if _reorders_parts(op):
        return Verdict(WRONG, "it joins the parts of a split along the same axis in another order")
    if any(_is_op(value, _BITCAST) for value in op.operands):
        return Verdict(WRONG, "it is of numbers that were made of bits (its shader is not valid)")
    is_integer = any(isinstance(result.element, quant.UniformType) for result in op.results)
    if is_integer and len({result.first_use is None for result in op.results}) > 1:
        return Verdict(CRASHES, "it has integers, and a result that is not used")
    return Verdict(OK)


def _is_op(value: Value, name: str) -> bool:
    return isinstance(value.owner, tfl.TFLOp) and value.owner.op_name == name


def _quantized(call: Call) -> Call:
    """Returns a call with its floats as INT8."""
    inputs, outputs = (
        tuple([each._replace(type="INT8", scales=(1.0,)) if each.type == "FLOAT32" else each for each in values])
        for values in (call.inputs, call.outputs)
    )
    return call._replace(inputs=inputs, outputs=outputs)


def _reorders_parts(op: Operation) -> bool:
    """Returns whether an op joins the parts of a split along its axis, not in the order of the parts."""
    if op.name.removeprefix(tfl.PREFIX) not in _JOINED:
        return False
    owner = op.operands[0].owner
    if not isinstance(owner, tfl.TFLOp) or owner.op_name not in _PARTED:
        return False
    parts = list(owner.results)
    if set(op.operands) != set(parts) or list(op.operands) == parts or len(parts) != len(op.operands):
        return False
    at = owner.operands[0 if owner.op_name == "split" else 2]
    axes = tfl.whole_call_of(owner).inputs[list(owner.operands).index(at)].elements or ()
    rank = len(tfl.call_of(owner).outputs[0].shape or ()) or 1
    return any(axis % rank == tfl.attribute(op, "axis") % rank for axis in axes)
