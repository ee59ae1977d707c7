"""Functions without a body: a conversion says so, and every pass leaves them alone or says so."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from tfconvert.api import convert
from tfconvert.converter.pipeline.pass_registry import pass_class, pass_names
from tfconvert.importers.mlir import import_mlir
from tfconvert.schema.diagnostics import ConversionError

_TEXTS = {
    "branch": """
        func.func private @t(tensor<2xf32>) -> tensor<2xf32>
        func.func private @e(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }
        func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
          %0 = "tf.If"(%p, %x) {then_branch = @t, else_branch = @e, is_stateless = true}
            : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
          return %0 : tensor<2xf32>
        }""",
    "cases": """
        func.func private @t(tensor<2xf32>) -> tensor<2xf32>
        func.func @main(%i: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
          %0 = "tf.Case"(%i, %x) {branches = [@t, @t], is_stateless = true}
            : (tensor<i32>, tensor<2xf32>) -> tensor<2xf32>
          return %0 : tensor<2xf32>
        }""",
    "loop": """
        func.func private @b(tensor<2xf32>) -> tensor<2xf32>
        func.func private @c(tensor<2xf32>) -> tensor<i1>
        func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
          %0 = "tf.While"(%x) {cond = @c, body = @b, is_stateless = true} : (tensor<2xf32>) -> tensor<2xf32>
          return %0 : tensor<2xf32>
        }""",
    "call": """
        func.func private @b(tensor<2xf32>) -> tensor<2xf32>
        func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
          %0 = "tf.PartitionedCall"(%x) {f = @b, config = "", config_proto = "", executor_type = ""}
            : (tensor<2xf32>) -> tensor<2xf32>
          return %0 : tensor<2xf32>
        }""",
    "entry": "func.func @main(tensor<2xf32>) -> tensor<2xf32>",
}


@pytest.mark.parametrize("name", _TEXTS)
def test_a_conversion_needs_the_bodies(name: str, tmp_path: Path) -> None:
    path = tmp_path / "text.mlir"
    path.write_text(_TEXTS[name])
    with pytest.raises(ConversionError, match="has no body") as refused:
        convert(path)
    assert {each.code for each in refused.value.diagnostics} == {"missing-function"}


@pytest.mark.parametrize("name", _TEXTS)
def test_every_pass_accepts_them_or_gives_a_reason(name: str) -> None:
    for each in pass_names():
        with suppress(ConversionError):
            pass_class(each)().apply(import_mlir(_TEXTS[name]))
