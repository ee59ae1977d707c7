"""What is uploaded and what other systems call: the page that indexes show, the container, the action, the hooks."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

LINK = re.compile(r"\]\(([^)]*)\)")


@pytest.fixture
def page(root: Path) -> str:
    text: str = runpy.run_path(str(root / "docs" / "write_pypi_page.py"))["page"]()
    return text


@pytest.fixture
def project(root: Path) -> dict[str, Any]:
    with (root / "pyproject.toml").open("rb") as file:
        settings: dict[str, Any] = tomllib.load(file)["project"]
    return settings


def test_the_page_is_up_to_date(page: str, root: Path, project: dict[str, Any]) -> None:
    written = (root / project["readme"]).read_text("utf-8")
    assert written == page, "run: python docs/write_pypi_page.py"


def test_links_of_the_page_work_anywhere(page: str) -> None:
    code = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
    targets = LINK.findall(code.sub("", page))
    assert targets
    assert not [target for target in targets if not target.startswith("https://")]


def test_the_page_shows_how_to_install_and_what_the_readme_says(page: str, root: Path) -> None:
    assert "pip install tfconvert" in page
    assert "make run" not in page
    readme = (root / "README.md").read_text("utf-8")
    blocks = re.findall(r"^```.*?^```$", readme.partition("## On the command line")[2], re.MULTILINE | re.DOTALL)
    assert blocks
    assert not [block for block in blocks if block not in page]


def test_files_that_the_page_names_are_there(page: str, root: Path) -> None:
    names = set(re.findall(r"\bdocs/[\w./]+\w", page))
    assert "docs/quantization.md" in names
    assert not [name for name in names if not (root / name).is_file()]
