"""Hints install extras from where the package came from."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest

from tfconvert.cli.extras import as_installed

HINT = "LiteRT is missing\n  hint: pip install 'tfconvert[verify]': it runs samples"


class _Distribution:
    def __init__(self, origin: Any) -> None:
        self._text = None if origin is None else json.dumps(origin)

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self._text


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'tfconvert[verify]': it"),
        ({"url": "https://example.com/tfconvert.whl", "archive_info": {}}, "pip install 'tfconvert[verify]': it"),
        ({"url": "file:///HERE/gone", "dir_info": {}}, "pip install 'tfconvert[verify]': it"),
        ({"url": "file:///HERE/my%20source", "dir_info": {}}, "pip install '/HERE/my source[verify]': it"),
        (
            {"url": "file:///HERE/my%20source", "dir_info": {"editable": True}},
            "pip install -e '/HERE/my source[verify]': it",
        ),
    ],
)
def test_commands_name_the_directory(
    origin: Any, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = str(tmp_path).lstrip("/")
    (tmp_path / "my source").mkdir()
    if origin is not None:
        origin = {**origin, "url": origin["url"].replace("HERE", here)}
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: _Distribution(origin))
    assert command.replace("HERE", here) in as_installed(HINT)


def test_other_texts_stay() -> None:
    assert as_installed("hint: pip install jax") == "hint: pip install jax"


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    assert as_installed(HINT) == HINT
