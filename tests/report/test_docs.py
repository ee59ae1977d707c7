"""The page about the report does what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.test_main import tfconvert as run


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "report.md").read_text("utf-8")


@pytest.fixture
def _folder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goes to a folder that has the example."""
    (tmp_path / "examples").symlink_to(root / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(root))


@pytest.mark.usefixtures("_folder")
def test_commands_write_what_they_say(page: str) -> None:
    commands = re.findall(r"```sh\ntfconvert (.*?)\n```", page)
    assert len(commands) == 2
    for command in commands:
        words = shlex.split(command)
        assert run(*words).returncode == 0
        assert Path(words[-1]).stat().st_size > 10_000


@pytest.mark.usefixtures("_folder")
def test_python_runs_as_pasted(page: str) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    scope: dict[str, object] = {}
    exec(compile(code, "docs/report.md", "exec"), scope)  # noqa: S102  # our own page
    assert '"digits_1/pool_1/Mean":0.012' in str(scope["page"])
    assert Path("report.html").is_file()


def test_pictures_are_there_and_small(page: str, root: Path) -> None:
    pictures = re.findall(r"!\[[^\]]+\]\((.*?)\)", page)
    assert len(pictures) == 3
    assert all((root / "docs" / name).stat().st_size < 150_000 for name in pictures)
