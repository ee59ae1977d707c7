"""The verdicts on composites: names that accelerators know, and forms that they don't take or compute wrongly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tfconvert.converter.ir.option_map import decode
from tfconvert.converter.targets.litert.accelerator_check import check
from tfconvert.converter.targets.litert.odml.outline import encode
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.tflite.accelerators.acceptance import CRASHES, REFUSED, WRONG

HEADS, FEW = (1, 6, 4, 8), (1, 6, 2, 8)
ATTENTION = "odml.scaled_dot_product_attention"


def _outcome(
    name: str, attributes: Mapping[str, Any], shapes: Sequence[Sequence[int]], accelerator: str
) -> tuple[str, str]:
    """Returns the outcome and its reason; empty if the composite is taken. Operands are computed."""
    kinds = [f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in shapes]
    given = ", ".join(f"%{index}: {kind}" for index, kind in enumerate(kinds))
    names = ", ".join(f"%{index}" for index in range(len(kinds)))
    text = f"""
      func.func @main({given}) -> {kinds[0]} {{
        %y = "tfl.stablehlo_composite"({names}) <{{name = "{name}", decomposition = @body, version = 1 : i32,
            composite_attributes = #tfl<const_bytes : "0x{encode(attributes).hex()}">}}>
            : ({", ".join(kinds)}) -> {kinds[0]}
        func.return %y : {kinds[0]}
      }}
      func.func private @body({given}) -> {kinds[0]} {{
        %y = "tfl.log_softmax"(%0) : ({kinds[0]}) -> {kinds[0]}
        func.return %y : {kinds[0]}
      }}
    """
    found = check(IRParser(text).parse_module(), accelerator)
    assert found.operators == 1
    return (found.obstacles[0].outcome, found.obstacles[0].reason) if found.obstacles else ("", "")


@pytest.mark.parametrize(
    ("name", "attributes", "shapes", "outcome", "reason"),
    [
        ("odml.gelu", {}, [(1, 8)], REFUSED, "it doesn't know the composite odml.gelu"),
        ("odml.swiglu", {}, [(1, 8)] * 2, CRASHES, "those of phones execute it as one"),
        ("odml.swiglu", {}, [(1, 8)], WRONG, "two operands"),
        ("odml.rms_norm", {"epsilon": 1e-6}, [(1, 8), (8,)], REFUSED, "isn't constant"),
        ("odml.group_norm", {"channel_axis": 1}, [(1, 4, 4, 8)], REFUSED, "aren't the last axis"),
        ("odml.group_norm", {"channel_axis": 3}, [(1, 4, 4, 8)], CRASHES, "phones"),
        (ATTENTION, {"scale": 1.0}, [HEADS] * 3, CRASHES, "phones"),
        (ATTENTION, {"scale": 1.0}, [HEADS, FEW, FEW], WRONG, "fewer heads of keys"),
        (ATTENTION, {"scale": 1.0, "logit_cap": 0.5}, [HEADS] * 3, WRONG, "logit_cap"),
        (ATTENTION, {"scale": 1.0}, [(6, 4, 8)] * 3, WRONG, "rank 4"),
    ],
)
def test_the_gpu(
    name: str, attributes: Mapping[str, Any], shapes: Sequence[Sequence[int]], outcome: str, reason: str
) -> None:
    found = _outcome(name, attributes, shapes, "gpu")
    assert found[0] == outcome
    assert reason in found[1]


def test_intels_npu_knows_one() -> None:
    assert _outcome("odml.rms_norm", {}, [(1, 8), (8,)], "npu") == ("", "")
    assert _outcome("odml.swiglu", {}, [(1, 8)] * 2, "npu")[0] == REFUSED


def test_attributes_of_any_kind_are_read() -> None:
    attributes = {"a": 1, "b": 0.5, "c": "text", "d": [1, 2, 3], "e": {"f": [True]}}
    assert decode(encode(attributes)) == attributes
    assert decode(encode({"many": list(range(1000))})) is None
    for data in (b"", b"\0", b"\xff" * 9, b"\x07" * 40):
        assert decode(data) is None
