"""Fusions apply by mark or by name, and errors in their callbacks name the fusion."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.composites.modules import mark, module, text
from tests.support.litert import RunTFLite
from tfconvert.composites import Body, Composite, Fusion, types
from tfconvert.converter.composites.marks import plain_name
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
        ("rewrite", lambda composite, body: [*body.arguments], "returns 2 results, not 1"),
        ("rewrite", lambda composite, body: _rewrite(composite, body)[0], "not a sequence of values"),
        ("rewrite", lambda composite, body: None, "returns NoneType None, which is not a sequence of values"),
        ("rewrite", lambda composite, body: ["x"], "not a sequence of values"),
        ("rewrite", _of_type(4, 3, element=types.I32), "tensor<4x3xi32> as result 0, not tensor<4x3xf32>"),
        ("rewrite", _of_type(4, 4), "tensor<4x4xf32> as result 0, not tensor<4x3xf32>"),
        ("rewrite", _of_type(4), "tensor<4xf32> as result 0, not tensor<4x3xf32>"),
        ("rewrite", _old_value, "a value as result 0 that is not in the new body"),
        ("rewrite", lambda composite: None, "fails with TypeError"),
        ("rewrite", _misspelt, r"fails with KeyError: 'embeding_lookup' \(.*test_fusion.py:\d+\)"),
        ("check", lambda composite: composite.shape(2), r"fails with IndexError: .* \(.*test_fusion.py:\d+\)"),
        ("check", lambda composite: False, "returns False, neither a reason nor None"),
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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("__inference_attention_123", "attention"),
        ("__forward_attention_2_123", "attention_2"),
        ("__inference_<lambda>_5", "<lambda>"),
        ("__inference___call___180", "__call__"),
        ("attention_1", "attention_1"),
        ("main", "main"),
    ],
)
def test_names_as_they_were_written(name: str, expected: str) -> None:
    assert plain_name(name) == expected


@pytest.fixture(scope="module")
def saved(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A model whose functions bear no marks, one with a variable, and its call."""

    @tf.function  # type: ignore[untyped-decorator]
    def attention_scores(query: Any, key: Any) -> Any:
        return tf.nn.softmax(0.5 * tf.matmul(query, key, transpose_b=True))

    module = tf.Module()
    module.weight = tf.Variable(np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4))

    @tf.function  # type: ignore[untyped-decorator]
    def gate(x: Any) -> Any:
        return tf.nn.relu(x @ module.weight)

    spec = tf.TensorSpec([1, 5, 4], tf.float32)
    module.call = tf.function(lambda q, k: {"y": attention_scores(gate(q), k)}, input_signature=[spec, spec])
    folder = tmp_path_factory.mktemp("unmarked")
    tf.saved_model.save(module, str(folder), signatures=module.call)
    return folder, module.call


def _fusion(check: Any, rewrite: Any, **fields: Any) -> Fusion:
    return Fusion("by-name", "", "(...)", check, rewrite, **fields)


def _without_scale(composite: Composite, body: Body) -> Sequence[Value]:
    """Puts in what computes the same, but for a factor that shows that it was put in."""
    query, key = body.arguments
    products = body.tf("BatchMatMulV2", (query, key), *composite.results, adj_x=False, adj_y=True)
    return body.tf("Softmax", products, *composite.results)


@pytest.mark.parametrize("pattern", ["attention_scores", "attention_*", "*_scores"])
def test_a_function_is_found_by_its_name(
    saved: tuple[Path, Any], tf: ModuleType, run_tflite: RunTFLite, pattern: str
) -> None:
    folder, call = saved
    seen: list[Composite] = []
    fusion = _fusion(seen.append, _without_scale, function=pattern)
    model = tfconvert.convert(folder, target=tfconvert.LiteRT(composites=[fusion]))
    assert model.report.rewrites["prepare-composite-functions"] == {"by-name": 1}
    assert [composite.name for composite in seen] == ["attention_scores"]
    q, k = np.random.default_rng(0).normal(size=(2, 1, 5, 4)).astype(np.float32)
    # The model halves the products, which the operators of the fusion don't.
    got = run_tflite(bytes(model), {"q": q, "k": k}, signature="serving_default")[0]
    np.testing.assert_allclose(got, call(q, 2 * k)["y"], atol=1e-5)


def test_captured_variables_come_last(saved: tuple[Path, Any]) -> None:
    fusion = _fusion(lambda composite: composite.counts(1, 1), _without_scale, function="gate")
    report = tfconvert.convert(saved[0], target=tfconvert.LiteRT(composites=[fusion])).report
    (note,) = report.notes
    assert note.code == "composite-kept"
    assert "it has 2 arguments, not 1" in note.message


@pytest.mark.parametrize("name", ["scores", "serving_default", "call"])
def test_names_that_no_function_has_are_told(saved: tuple[Path, Any], name: str) -> None:
    fusion = _fusion(lambda composite: None, _without_scale, function=name)
    (note,) = tfconvert.convert(saved[0], target=tfconvert.LiteRT(composites=[fusion])).report.notes
    assert note.code == "unused-fusion"
    assert f"is named {name!r}" in note.message
    assert "attention_scores" in note.hint
    assert "gate" in note.hint


def test_custom_operators_have_to_be_allowed(saved: tuple[Path, Any]) -> None:
    def rewrite(composite: Composite, body: Body) -> Sequence[Value]:
        return body.custom("acme", b"", body.arguments, composite.results)

    fusion = _fusion(lambda composite: None, rewrite, function="attention_*", is_custom=True)
    for allowed in (True, False):
        report = tfconvert.convert(
            saved[0], target=tfconvert.LiteRT(composites=[fusion], allow_custom_ops=allowed)
        ).report
        assert ("acme" in report.operators) == allowed
        assert [note.code for note in report.notes] == ["custom-operators" if allowed else "composite-kept"]
