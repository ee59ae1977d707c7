"""Ops that patterns exclude."""

from __future__ import annotations

import pytest

from tfconvert.converter.targets.litert.quantize.exclusion import Exclusion
from tfconvert.schema.dialects.parsing import IRParser

TEXT = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tfl.pseudo_const"() <{value = dense<1.0> : tensor<2xf32>}> : () -> tensor<2xf32> loc("model/constant")
  %1 = "tfl.add"(%x, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      loc(fused["model/first/add@call", callsite("model/first/Relu" at "caller")])
  %2 = "tfl.softmax"(%1) <{beta = 1.0 : f32}> : (tensor<2xf32>) -> tensor<2xf32> loc("model/[odd]/logits"("a.py":1:2))
  func.return %2 : tensor<2xf32>
}
"""


def _excluded(*patterns: str) -> list[str]:
    exclusion = Exclusion(patterns)
    return [op.name for op in IRParser(TEXT).parse_module().walk() if exclusion.excludes(op)]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("ADD", ["tfl.add"]),
        ("add", []),
        ("S*X", ["tfl.softmax"]),
        ("*", ["tfl.add", "tfl.softmax"]),
        ("model/first/add", ["tfl.add"]),
        ("model/first/Relu", ["tfl.add"]),
        ("model/first/*", ["tfl.add"]),
        ("*/logits", ["tfl.softmax"]),
        ("model/[[]odd]/*", ["tfl.softmax"]),
        ("caller", []),
        ("model/constant", []),
        ("logits", []),
        ("PSEUDO_CONST", []),
    ],
)
def test_names(pattern: str, names: list[str]) -> None:
    assert _excluded(pattern) == names
    notes = Exclusion([pattern]).unmatched(IRParser(TEXT).parse_module())
    assert [note.severity for note in notes] == ([] if names else ["note"])


def test_nothing_is_excluded_without_patterns() -> None:
    assert _excluded() == []
    assert _excluded("nothing", "*/logits", "ADD") == ["tfl.add", "tfl.softmax"]
    assert not Exclusion(()).unmatched(IRParser(TEXT).parse_module())
