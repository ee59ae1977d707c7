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
    monkeypatch.setenv("BROWSER", "true")
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.mark.usefixtures("_folder")
def test_commands_write_what_they_say(page: str) -> None:
    commands = [line for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    converting = [shlex.split(line)[1:] for line in commands if "examples/" in line]
    assert len(converting) == 3
    for words in converting:
        assert run(*words).returncode == 0
    assert Path("report.html").stat().st_size > 10_000
    assert Path("graphs.json").stat().st_size > 10_000
    (opened,) = Path.cwd().glob("tfconvert-*/digits.html")
    assert opened.stat().st_size > 10_000


@pytest.mark.usefixtures("_folder")
def test_views_are_made_as_the_page_says(page: str) -> None:
    views = re.findall(r"^tfconvert (view .*?) +#", page, re.MULTILINE)
    assert [words.split()[1:] for words in views] == [
        ["model.tflite"],
        ["saved_model/"],
        ["before.tflite", "after.tflite"],
    ]
    Path("saved_model").symlink_to("examples/digits/saved_model")
    for name in ("model", "before", "after"):
        assert run("saved_model", "-o", f"{name}.tflite", "-q").returncode == 0
    for words in views:
        done = run(*words.split())
        assert (done.returncode, done.stderr) == (0, "")
        assert Path(done.stdout.strip()).stat().st_size > 10_000


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
