"""The picture of the architecture is current, and the page beside it lists every package and module."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from docs.draw_architecture import LISTS, PAGE, PICTURE, Code, direct, draw, page, subpackages
from tests.repository.test_layers import SUBPACKAGES
from tests.support.sources import PACKAGES, SourceFile

SIZE = re.compile(r"([\d,]+) lines")
# Sizes may be off by this fraction, so that not every change of the code has to redraw the picture.
SLACK = 0.25


@pytest.fixture(scope="module")
def code(root: Path, source_files: Sequence[SourceFile]) -> Code:
    """Returns the syntax trees of the code."""
    trees = {file.module: file.tree for file in source_files}
    return Code(root, trees, {file.module: file.text.count("\n") for file in source_files})


@pytest.fixture(scope="module")
def drawn(code: Code) -> str:
    """Returns the picture of the current code."""
    return draw(code)


def _sizes(picture: str) -> list[int]:
    return [int(number.replace(",", "")) for number in SIZE.findall(picture)]


def _differ(committed: str, drawn: str) -> bool:
    """Returns whether two pictures differ, apart from small differences in sizes."""
    if SIZE.sub("", committed) != SIZE.sub("", drawn):
        return True
    pairs = zip(_sizes(committed), _sizes(drawn), strict=True)
    return any(abs(old - new) > max(SLACK * new, 50) for old, new in pairs)


def test_the_picture_is_current(drawn: str) -> None:
    assert not _differ(PICTURE.read_text("utf-8"), drawn), "run: python docs/draw_architecture.py"


def test_drawing_is_deterministic(drawn: str, code: Code) -> None:
    assert draw(code) == drawn


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("<text>1,000 lines", "<text>1,200 lines", False),
        ("<text>1,000 lines", "<text>2,000 lines", True),
        ("<text>20 lines", "<text>60 lines", False),
        ('<text x="1">20 lines', '<text x="2">20 lines', True),
    ],
)
def test_differences_of_pictures(old: str, new: str, expected: bool) -> None:
    assert _differ(old, new) is expected


def test_the_layers_table_is_read_completely(root: Path) -> None:
    assert subpackages(root) == SUBPACKAGES


def test_boxes_do_not_overlap(drawn: str) -> None:
    shape = r'<rect class="(?:group|box)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"'
    boxes = [tuple(map(float, found)) for found in re.findall(shape, drawn)]
    assert len(boxes) > 40
    wrong = []
    for index, (x, y, width, height) in enumerate(boxes):
        for left, top, wide, high in boxes[index + 1 :]:
            is_inside = x < left and left + wide < x + width and y < top and top + high < y + height
            is_apart = x + width <= left or left + wide <= x or y + height <= top or top + high <= y
            if not (is_inside or is_apart):
                wrong.append(((x, y), (left, top)))
    assert not wrong


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, [("a", "b"), ("b", "c")]),
        ({"a": {"c"}, "b": {"c"}, "c": set()}, [("a", "c"), ("b", "c")]),
    ],
)
def test_implied_arrows_are_omitted(edges: dict[str, set[str]], expected: Sequence[tuple[str, str]]) -> None:
    assert direct(edges) == expected


def test_the_page_lists_every_module(root: Path, code: Code) -> None:
    text = PAGE.read_text("utf-8")
    assert text == page(text, code), "run: python docs/draw_architecture.py"
    listed = set(re.findall(r"^\| `([\w/]+)` \|", text.partition(LISTS)[2], re.MULTILINE))
    built = {name for package in PACKAGES for name in _built(root / "tfconvert" / package)}
    assert built <= listed
    targets = _built(root / "tfconvert" / "converter" / "targets")
    assert targets
    assert {f"targets/{name}" for name in targets} <= listed


def _built(package: Path) -> set[str]:
    """Returns the names of a package's subpackages and modules."""
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    return folders | {path.stem for path in package.glob("*.py")} - {"__init__"}


def test_paths_on_the_page_exist(root: Path) -> None:
    paths = re.findall(r"`([a-z_]+/[\w/]+(?:\.\w+|/))`", PAGE.read_text("utf-8"))
    assert len(paths) > 20
    found = {path for path in paths if (root / path).exists() or (root / "tfconvert" / path).exists()}
    assert set(paths) - found == set()
