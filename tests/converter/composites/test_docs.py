"""The code on the page about composite functions runs, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import tfconvert
from tests.support.litert import RunTFLite
from tfconvert.composites import Body, Composite, types
from tfconvert.converter.targets.litert.fusions import registry
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.values import Value

PAGE = (Path(__file__).parents[3] / "docs" / "composites.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Runs the page's Python as it is, in order and in one namespace, and returns what it defined."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("models")))
        return _run()


def _run() -> dict[str, Any]:
    scope: dict[str, Any] = {}
    printed = ""
    for language, text in re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL):
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(compile(text, "docs/composites.md", "exec"), scope)  # noqa: S102  # our own page
            printed = stream.getvalue()
        elif language == "output":
            assert printed == text
    return scope


def test_the_user_s_fusion_computes_what_the_body_computed(page: dict[str, Any], run_tflite: RunTFLite) -> None:
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(1, 4, 3)
    expected = page["lstm"](x, page["kernel"], page["bias"])
    np.testing.assert_allclose(run_tflite(bytes(page["model"]), [x])[0], expected, atol=1e-5)


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu(tf: ModuleType, page: dict[str, Any], tmp_path: Path, run_tflite: RunTFLite, approximate: bool) -> None:
    mark = f'name: "acme:gelu" attr {{ key: "approximate" value {{ b: {str(approximate).lower()} }} }}'
    gelu = tf.function(lambda x: tf.nn.gelu(x, approximate), experimental_implements=mark)
    page["save"](lambda x: {"y": gelu(x)}, tmp_path, [2, 3])
    model = tfconvert.convert(tmp_path, target=tfconvert.LiteRT(composites=[page["acme_gelu"]]))
    x = np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3)
    assert model.report.rewrites["prepare-composite-functions"] == {"acme-gelu": 1}
    np.testing.assert_allclose(run_tflite(bytes(model), [x])[0], gelu(x), atol=1e-5)


def test_options_of_the_user_s_operator(page: dict[str, Any]) -> None:
    model = tfconvert.convert(
        f"{page['folder']}/attention",
        target=tfconvert.LiteRT(composites=[page["acme_attention"]], allow_custom_ops=True),
    )
    (op,) = (op for op in import_tflite(bytes(model)).walk() if op.name == "tfl.custom")
    options = flexbuffers.Loads(tfl.attribute(op, tfl.CUSTOM_OPTION))
    assert options == {"is_causal": False, "scale": 0.5, "version": 1}


def test_attention_of_builtin_operators(page: dict[str, Any], run_tflite: RunTFLite) -> None:
    def rewrite(composite: Composite, body: Body) -> Sequence[Value]:
        query, key, value = body.arguments
        of_all = types.tensor(types.F32, (1, 2, 5, 5))
        scores = body.tf("BatchMatMulV2", (query, key), of_all, adj_x=False, adj_y=True)[0]
        scaled = body.tf("Mul", (scores, body.constant(np.array(composite.get("scale"), np.float32))), of_all)
        weights = body.tf("Softmax", scaled, of_all)[0]
        return body.tf("BatchMatMulV2", (weights, value), *composite.results, adj_x=False, adj_y=False)

    fusion = replace(page["acme_attention"], rewrite=rewrite, is_custom=False)
    model = tfconvert.convert(f"{page['folder']}/attention", target=tfconvert.LiteRT(composites=[fusion]))
    given = np.random.default_rng(2).normal(size=(3, 1, 2, 5, 4)).astype(np.float32)
    assert model.report.rewrites["prepare-composite-functions"] == {"acme-attention": 1}
    named = dict(zip("qkv", given, strict=True))
    found = run_tflite(bytes(model), named, signature="serving_default")[0]
    np.testing.assert_allclose(found, page["attention"](*given), atol=1e-5)


def test_the_page_lists_every_interface() -> None:
    listed = PAGE.partition("## Known interfaces")[2].partition(
        "`tfconvert/converter/targets/litert/fusions/registry.py`"
    )[0]
    for fusion in registry.FUSIONS:
        name = fusion.flag or fusion.interface.partition(",")[0]
        assert f"`{name}`" in listed
