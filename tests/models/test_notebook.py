"""The notebook of the example runs from top to bottom, and shows what its text says."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def notebook(root: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((root / "examples" / "digits" / "quantize.ipynb").read_text("utf-8"))
    return content


def _run(source: str, scope: dict[str, Any]) -> tuple[str, Any]:
    """Runs a cell as Jupyter does; returns what it prints, and the value of its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "cell", "exec"), scope)  # noqa: S102  # Our own notebook.
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), scope)  # noqa: S307
    return printed.getvalue(), value


def test_it_is_stored_without_results(notebook: dict[str, Any]) -> None:
    assert notebook["nbformat"] == 4
    for cell in notebook["cells"]:
        assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)


def test_it_runs(notebook: dict[str, Any], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(root / "examples" / "digits", tmp_path / "digits")
    monkeypatch.chdir(tmp_path / "digits")
    scope: dict[str, Any] = {}
    printed, shown = list[str](), list[str]()
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            text, value = _run("".join(cell["source"]), scope)
            printed.append(text)
            if value is not None:
                shown.append(value._repr_html_())
    assert len(shown) == 4
    assert all("<table" in each for each in shown)
    assert scope["accuracy"](scope["model"]) > 0.97
    assert scope["accuracy"](scope["quantized"]) > 0.97
    assert scope["accuracy"](scope["careless"]) < scope["accuracy"](scope["quantized"]) - 0.01
    figures = {
        name: scope[name].compare(scope["model"], scope["images"]).fidelity.snr
        for name in ("careless", "quantized", "mixed")
    }
    assert figures["careless"] < 20 < figures["quantized"] < figures["mixed"]
    assert "larger numbers than these inputs" in shown[2]
    assert printed[-1].endswith("True\n")
