"""Release artifacts and integrations: the page on package indexes, the container, the action, the hooks."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tfconvert.cli.main import main

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
    blocks = re.findall(
        r"^```.*?^```$", readme.partition("## Convert")[2].partition("## Develop")[0], re.MULTILINE | re.DOTALL
    )
    assert blocks
    assert not [block for block in blocks if block not in page]


def test_files_that_the_page_names_are_there(page: str, root: Path) -> None:
    names = set(re.findall(r"\bdocs/[\w./]+\w", page))
    assert "docs/quantization.md" in names
    assert not [name for name in names if not (root / name).is_file()]


def _run_text(action: str, step: str) -> str:
    """Returns the script of a step of the action: the indented block after its `run: |`."""
    block = re.search(rf"- name: {step}\n.*?\n      run: \|\n((?:        [^\n]*\n?)+)", action, re.DOTALL)
    assert block is not None
    return textwrap.dedent(block[1])


@pytest.mark.skipif(os.name == "nt", reason="the script that stands for the command is one for a POSIX shell")
@pytest.mark.parametrize(
    ("lines", "expected"), [("", []), ("--quiet\n--signature=serve\n", ["--quiet", "--signature=serve"])]
)
def test_the_action_converts(lines: str, expected: list[str], root: Path, digits_model: Path, tmp_path: Path) -> None:
    """Its last step runs with the command where its middle step installs it; names with spaces stay whole."""
    scripts = tmp_path / "tfconvert" / "bin"
    scripts.mkdir(parents=True)
    command = scripts / "tfconvert"
    told = tmp_path / "told.txt"
    command.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >"{told}"\nexec "{sys.executable}" -m tfconvert "$@"\n')
    command.chmod(0o755)
    output = tmp_path / "the result.tflite"
    environment = {"RUNNER_TEMP": str(tmp_path), "MODEL": str(digits_model), "OUTPUT": str(output), "ARGS": lines}
    script = _run_text((root / "action.yml").read_text("utf-8"), "Convert the model")
    # As the runner calls it.
    call = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
    subprocess.run(call, check=True, cwd=root, env={**os.environ, **environment}, capture_output=True)
    assert told.read_text("utf-8").splitlines() == [*expected, "-o", str(output), "--", str(digits_model)]
    assert output.read_bytes()[4:8] == b"TFL3"


def test_the_action_uses_the_inputs_that_it_has(root: Path) -> None:
    text = (root / "action.yml").read_text("utf-8")
    inputs = re.findall(r"^  ([\w-]+):$", text.partition("inputs:\n")[2].partition("runs:\n")[0], re.MULTILINE)
    assert set(inputs) == set(re.findall(r"\${{ inputs\.([\w-]+) }}", text))
    # An input that is pasted into a script would be run as a part of it.
    assert not [step for step in ("Install tfconvert", "Convert the model") if "${{" in _run_text(text, step)]


def test_hooks_call_verbs_that_there_are(root: Path) -> None:
    text = (root / ".pre-commit-hooks.yaml").read_text("utf-8")
    verbs = re.findall(r"^  entry: tfconvert (\w+)$", text, re.MULTILINE)
    assert verbs == ["build", "inspect"]
    assert set(verbs) <= main.commands.keys()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tfconvert.toml", True),
        ("models/tfconvert.toml", True),
        ("m/saved_model.pb", True),
        ("m/variables/variables.data-00000-of-00001", True),
        ("m/variables/variables.index", True),
        ("nets/small.keras", True),
        ("small.tflite", True),
        ("nets/f.mlirbc", True),
        ("pyproject.toml", False),
        ("book.pbx", False),
    ],
)
def test_the_hook_runs_when_a_model_changes(path: str, expected: bool, root: Path) -> None:
    text = (root / ".pre-commit-hooks.yaml").read_text("utf-8")
    patterns = re.findall(r"^  files: (.*)$", text, re.MULTILINE)
    assert bool(re.search(patterns[0], path)) == expected
    assert bool(re.search(patterns[1], path)) == (expected and not path.endswith(".toml"))


def test_the_container_copies_what_the_build_needs(root: Path, project: dict[str, Any]) -> None:
    lines = (root / "Dockerfile").read_text("utf-8").replace("\\\n", "").splitlines()
    copied = {
        source.rstrip("/")
        for line in lines
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    }
    assert copied == {"pyproject.toml", "tfconvert", project["readme"], *project["license-files"]}
    let_in = {line[1:] for line in (root / ".dockerignore").read_text("utf-8").splitlines() if line[0] == "!"}
    assert let_in == copied
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users
    assert users[-1] != "root"


def test_the_container_has_a_python_that_is_supported(root: Path, project: dict[str, Any]) -> None:
    found = re.search(r"^ARG PYTHON=([\d.]+)$", (root / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert found is not None
    assert f"Programming Language :: Python :: {found[1]}" in project["classifiers"]
