"""Mistakes in third-party fusions: the error names the fusion, its part, the function and the line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.converter.composites.modules import mark, module, text
from tfconvert.composites import Body, Composite, Fusion, types
from tfconvert.converter.targets.litert.passes.prepare_composite_functions import PrepareCompositeFunctions
from tfconvert.importers.mlir import import_mlir
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.ir.values import Value

SOURCE = text(mark("acme:op"), ("7x3xf32", "4xi32"), ("4x3xf32",))


def _rewrite(composite: Composite, body: Body) -> Sequence[Value]:
    return body.tf("Gather", body.arguments, *composite.results)


def _old_value(composite: Composite, body: Body) -> Sequence[Value]:
    return composite.calls[0].results


def _misspelt(composite: Composite, body: Body) -> Sequence[Value]:
    return body.tfl("embeding_lookup", body.arguments, *composite.results)


def _of_type(*shape: int, element: Any = types.F32) -> Any:
    return lambda composite, body: body.tf("Gather", body.arguments, types.tensor(element, shape))


@pytest.mark.parametrize(
    ("part", "does", "message"),
    [
        ("rewrite", lambda composite, body: [*body.arguments], "gives 2 results, not 1"),
        ("rewrite", lambda composite, body: _rewrite(composite, body)[0], "not a sequence of values"),
        ("rewrite", lambda composite, body: None, "gives NoneType None, which is not a sequence of values"),
        ("rewrite", lambda composite, body: ["x"], "not a sequence of values"),
        ("rewrite", _of_type(4, 3, element=types.I32), "tensor<4x3xi32> as result 0, not tensor<4x3xf32>"),
        ("rewrite", _of_type(4, 4), "tensor<4x4xf32> as result 0, not tensor<4x3xf32>"),
        ("rewrite", _of_type(4), "tensor<4xf32> as result 0, not tensor<4x3xf32>"),
        ("rewrite", _old_value, "a value as result 0 that is none of the new body's"),
        ("rewrite", lambda composite: None, "fails with TypeError"),
        ("rewrite", _misspelt, r"fails with KeyError: 'embeding_lookup' \(.*test_callbacks.py:2\d\)"),
        ("check", lambda composite: composite.shape(2), r"fails with IndexError: .* \(.*test_callbacks.py:\d+\)"),
        ("check", lambda composite: False, "gives False, neither a reason nor None"),
        ("note", lambda composite: composite.nothing, "fails with AttributeError"),
    ],
)
def test_mistakes_are_reported(part: str, does: Any, message: str) -> None:
    parts = {"check": lambda composite: None, "rewrite": _rewrite, "note": lambda composite: ""} | {part: does}
    fusion = Fusion("acme", "acme:op", "rows", **parts)
    with pytest.raises(ConversionError, match=message) as caught:
        PrepareCompositeFunctions(composites=(fusion,)).apply(import_mlir(SOURCE, "model.mlir"))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "bad-fusion"
    assert diagnostic.message.startswith("the fusion 'acme' ")
    assert diagnostic.message.endswith(f", in its {part} for the function 'f'")
    assert diagnostic.location == "model.mlir:3"
    assert diagnostic.hint == f"correct its {part}"


def test_errors_that_a_fusion_tells_itself_are_left_alone() -> None:
    def check(composite: Composite) -> str | None:
        raise error("acme-licence", "it has expired")

    with pytest.raises(ConversionError) as caught:
        PrepareCompositeFunctions(composites=(Fusion("acme", "acme:op", "", check, _rewrite),)).apply(module(SOURCE))
    assert caught.value.code == "acme-licence"


def test_results_may_say_more_or_less_than_before() -> None:
    for shape in ((-1, 3), None):
        rewrite: Any = lambda composite, body, shape=shape: body.tf(  # noqa: E731
            "Gather", body.arguments, types.tensor(types.F32, shape)
        )
        run = PrepareCompositeFunctions(composites=(Fusion("acme", "acme:op", "", lambda _: None, rewrite),))
        assert run.apply(module(SOURCE)).counts == {"acme": 1}
