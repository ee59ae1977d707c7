"""Fixtures for models in memory, which are saved to a temporary folder first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.importers.temporary_folders import LeftFolders


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the folder for temporary files, which the test has for itself."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def left_folders(temporary: Path) -> LeftFolders:
    """Returns the function of that type."""
    return lambda: list(temporary.glob("tfconvert-*"))
