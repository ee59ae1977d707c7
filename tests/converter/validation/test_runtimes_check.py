"""Outcomes of accelerators and other runtimes as diagnostics, and where their drivers are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.importers.tflite.written_files import Tree, build_file
from tfconvert.converter.process.child_process import ChildError
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.validation import runtimes_check
from tfconvert.converter.validation.runtimes_check import RuntimeOutcome, notes_of, outcomes, refusals, swiftshader
from tfconvert.schema.diagnostics import ERROR, NOTE

LOG = """INFO: Created LiteRT GpuEnvironment.
ERROR: Following operations are not supported by GPU delegate:
BROADCAST_TO: Operation is not supported.
GATHER: Only support 1D indices
4 operations will run on the GPU, and the remaining 5 operations will run on the CPU.
ERROR: Following operations are not supported by GPU delegate:
GATHER: Only support 1D indices
No operations will run on the GPU, and all 3 operations will run on the CPU.
"""


def test_refusals_are_read_from_the_log() -> None:
    assert list(refusals(LOG)) == ["BROADCAST_TO: Operation is not supported.", "GATHER: Only support 1D indices"]
    assert not list(refusals("INFO: Created LiteRT GpuEnvironment."))


@pytest.mark.parametrize(
    ("outcome", "code", "said"),
    [
        (RuntimeOutcome("gpu", is_whole=True), "runs-there", "runs the file, all of it on the GPU: largest difference"),
        (
            RuntimeOutcome("gpu", is_whole=False, refused=("ABS: Operation is not supported.",)),
            "runs-there",
            "a part of it on the CPU (ABS: Operation is not supported.)",
        ),
        (RuntimeOutcome("micro"), "runs-there", "tflite-micro runs the file: largest difference"),
        (
            RuntimeOutcome("gpu", error=0.5),
            "runtime-differs",
            "has other results than the CPU: 5.0e-01 of the largest value",
        ),
        (RuntimeOutcome("micro", "no kernel"), "runtime-refuses", "tflite-micro does not run the file: no kernel"),
        (
            RuntimeOutcome("micro", "no package", is_missing=True),
            "runtime-missing",
            "can't run in tflite-micro: no package",
        ),
    ],
    ids=["whole", "part", "micro", "differs", "refuses", "missing"],
)
def test_notes(outcome: RuntimeOutcome, code: str, said: str) -> None:
    (note,) = notes_of([outcome])
    assert (note.code, note.severity) == (code, NOTE if code == "runs-there" else ERROR)
    assert said in note.message
    silent = list(notes_of([outcome], silent=True))
    assert [each.severity for each in silent] == ([NOTE] if code in ("runtime-differs", "runtime-refuses") else [])


def test_a_missing_runtime_says_how_to_get_it() -> None:
    (gpu,) = notes_of([RuntimeOutcome("gpu", "there is no GPU", is_missing=True)])
    assert "tfconvert[gpu]" in gpu.hint
    assert "chromium" in gpu.hint
    (micro,) = notes_of([RuntimeOutcome("micro", "there is no package", is_missing=True)])
    assert "tfconvert[micro]" in micro.hint


def test_what_python_can_not_feed_is_no_limit_of_the_file() -> None:
    assert not list(notes_of([RuntimeOutcome("compiled", "Unsupported dtype: int64")], silent=True))


def test_swiftshader_of_playwright_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "chromium-1200" / "chrome-linux"
    folder.mkdir(parents=True)
    monkeypatch.setattr(runtimes_check, "_BROWSERS", (str(tmp_path / "none"),))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    assert not swiftshader()
    driver = folder / "vk_swiftshader_icd.json"
    driver.write_text("{}")
    assert swiftshader() == str(driver)


def test_a_package_that_is_not_installed_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes_check, "_PACKAGES", {"micro": "no_such_package.at_all"})
    assert list(outcomes(b"", ["micro"])) == [
        RuntimeOutcome("micro", "the package no-such-package is not installed", is_missing=True)
    ]


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (ChildError("No adapters found"), RuntimeOutcome("gpu", "", is_missing=True)),
        (ChildError("Failed to load\nthe model"), RuntimeOutcome("gpu", "Failed to load the model")),
        (ChildError("", -11), RuntimeOutcome("gpu", "it ended the process (status -11)")),
        (ChildError("", -9, 300), RuntimeOutcome("gpu", "no answer within 300 s")),
    ],
    ids=["driver", "refused", "crashed", "hung"],
)
def test_failures_are_outcomes(monkeypatch: pytest.MonkeyPatch, failure: ChildError, expected: RuntimeOutcome) -> None:
    class Failing:
        def __init__(self, seconds: float) -> None:
            self.seconds = seconds

        def __enter__(self) -> Failing:
            return self

        def __exit__(self, *details: object) -> None:
            return

        def call(self, *arguments: object) -> None:
            raise failure

    monkeypatch.setattr(runtimes_check, "Child", Failing)
    monkeypatch.setattr(runtimes_check, "is_available", lambda kind: True)
    (found,) = outcomes(b"", ["gpu"])
    assert found.is_missing is expected.is_missing
    assert expected.is_missing or found == expected


@pytest.mark.skipif(not runtime.is_installed(), reason="LiteRT is not installed")
def test_a_file_that_is_not_one_does_not_run() -> None:
    (found,) = outcomes(b"no model at all", ["compiled"])
    assert found.problem
    assert not found.is_missing


@pytest.mark.skipif(not runtime.is_installed(), reason="LiteRT is not installed")
@pytest.mark.parametrize("kind", ["compiled", "micro"])
def test_a_file_without_signatures_runs(kind: str) -> None:
    if not runtimes_check.is_available(kind):
        pytest.skip(f"{kind} is not installed")
    operators: list[Tree] = [{"inputs": (1, 0), "outputs": (2,), "builtin_options": ("SubOptions", {})}]
    content = build_file([{}, {}, {}], operators, ["SUB"], (0, 1), (2,))
    (found,) = outcomes(content, [kind])
    assert not found.problem
    assert not found.error


def test_the_log_says_how_a_file_is_split() -> None:
    found = runtimes_check._split("gpu", 0.0, LOG)
    assert (found.is_whole, found.taken, found.operators) == (False, 4, 12)
    assert runtimes_check._split("gpu", 0.0, "INFO: Created LiteRT GpuEnvironment.").is_whole is True
