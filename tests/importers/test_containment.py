"""The check that paths are in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfconvert.importers.containment import is_within


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", True),
        ("file", True),
        ("missing/file", True),
        ("inner/file", True),
        ("inner/../file", True),
        ("to_inner", True),
        ("to_inner/missing", True),
        ("via_outside", True),
        ("..", False),
        ("to_outside", False),
        ("to_outside/file", False),
        ("to_nothing", False),
        ("circle", False),
        ("a\0b", False),
        ("../folder2/file", False),
    ],
)
def test_links_are_resolved(tmp_path: Path, name: str, expected: bool) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "folder2"
    (folder / "inner").mkdir(parents=True)
    outside.mkdir()
    for link, target in {
        "to_inner": "inner",
        "to_outside": str(outside),
        "to_nothing": "/nothing/at/all",
        "circle": "circle",
        "via_outside": str(outside / "back"),
    }.items():
        (folder / link).symlink_to(target)
    (outside / "back").symlink_to(folder)
    entry = tmp_path / "entry"
    entry.symlink_to(folder)
    assert is_within(folder / name, folder) is expected
    assert is_within(entry / name, folder) is expected
    assert is_within(folder / name, entry) is expected
