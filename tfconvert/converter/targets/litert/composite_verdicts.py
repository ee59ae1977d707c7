"""Accelerators on composites: which they know by name, in which forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfconvert.converter.ir.option_map import decode
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.tflite.accelerators.acceptance import CRASHES, OK, REFUSED, WRONG, Verdict

ATTENTION = "odml.scaled_dot_product_attention"
GROUP_NORM = "odml.group_norm"
RMS_NORM = "odml.rms_norm"
SWIGLU = "odml.swiglu"

FUSED: Mapping[str, frozenset[str]] = {
    "gpu": frozenset(
        (
            ATTENTION,
            GROUP_NORM,
            RMS_NORM,
            SWIGLU,
            "custom_call.rotary_positional_embedding",
            "moe",
            "odml.cache_update",
            "odml.qkv_norm_rope",
            "odml.rope",
            "odml.runtime_bmm",
            "odml.sdpa_transposed",
            "odml.short_conv_step",
        )
    ),
    "npu": frozenset((RMS_NORM,)),
}
"""The composites that accelerators execute as one, by name."""

_ON_LINUX = "the accelerator for Linux ends the process at it; those of phones execute it as one"


def name_of(op: Operation) -> str:
    """Returns the name of a composite."""
    name = op.properties.get("name")
    return name.data if isinstance(name, StringAttr) else ""


def attributes_of(op: Operation) -> Mapping[str, Any]:
    """Returns the attributes of a composite; none if they can't be read."""
    data = op.properties.get("composite_attributes")
    return (decode(data.data) if isinstance(data, tfl.ConstBytesAttr) else None) or {}


def composite_verdict(op: Operation, accelerator: str) -> Verdict:
    """Returns what an accelerator makes of a composite.

    Args:
        op: The composite.
        accelerator: A key of `FUSED`.
    """
    name = name_of(op)
    if name not in FUSED[accelerator]:
        return Verdict(REFUSED, f"it doesn't know the composite {name}, whose function runs on the CPU")
    if accelerator != "gpu":
        return Verdict(OK)
    return _form_verdict(op, name) or Verdict(CRASHES, f"the composite {name}: {_ON_LINUX}")


def _form_verdict(op: Operation, name: str) -> Verdict | None:
    """Returns the verdict on forms that the GPU doesn't take, or computes wrongly."""
    dims = [operand.shape or () for operand in op.operands]
    attributes = attributes_of(op)
    if name == RMS_NORM and (len(dims) < 2 or not tfl.is_constant(op.operands[1])):
        return Verdict(REFUSED, f"the scale of {name} isn't constant") if len(dims) > 1 else None
    if name == GROUP_NORM and attributes.get("channel_axis", len(dims[0]) - 1) not in (-1, len(dims[0]) - 1):
        return Verdict(REFUSED, f"the channels of {name} aren't the last axis")
    if name == SWIGLU and len(dims) != 2:
        return Verdict(WRONG, f"{name} needs gate and value as two operands")
    if name != ATTENTION:
        return None
    if any(len(each) != 4 for each in dims[:3]):
        return Verdict(WRONG, f"the operands of {name} aren't of rank 4")
    if len({each[2] for each in dims[:3]}) > 1:
        return Verdict(WRONG, f"{name} has fewer heads of keys than of queries")
    return Verdict(WRONG, f"it ignores the logit_cap of {name}") if attributes.get("logit_cap") else None
