"""The code on the page about composite functions runs, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from converter.composites import table
from tests.conftest import RunTFLite

PAGE = (Path(__file__).parents[3] / "docs" / "composites.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Runs the page's Python, in order and in one namespace, and returns what it defined."""
    scope: dict[str, Any] = {"folder": tmp_path_factory.mktemp("models")}
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


def test_the_page_lists_every_interface() -> None:
    listed = PAGE.partition("## What is known")[2].partition("`converter/composites/table.py`")[0]
    for fusion in table.FUSIONS:
        name = fusion.flag or fusion.interface.partition(",")[0]
        assert f"`{name}`" in listed
