"""Some hundred random mutants of models in every format; `python -m tests.mutate` tries as many as one likes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutate.mutants import KINDS, draw
from tests.mutate.seeds import Seeds, find_seeds
from tests.mutate.worker import FAILED, REFUSED, RESULT, Workers, where

_MODELS = ("two_heads", "branches_and_loops", "vocabulary", "indexing", "lists")


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Seeds:
    return find_seeds(tmp_path_factory.mktemp("seeds"), _MODELS)


def test_mutants_are_converted_or_refused(seeds: Seeds, root: Path, tmp_path: Path) -> None:
    """The command, in a process that hasn't loaded TensorFlow, so that its own may be forked fast."""
    command = [sys.executable, "-m", "tests.mutate", "--count", "250", "--open-every", "5"]
    done = subprocess.run(
        [*command, "--seeds", seeds.folder, "--keep", tmp_path],
        cwd=root,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    told = [path.read_text("utf-8") for path in sorted(tmp_path.rglob("failure.txt"))]
    assert not done.returncode, "\n".join([done.stdout, done.stderr, *told])
    counts = {what: int(count) for count, what in re.findall(r"^ *(\d+) (.*)$", done.stdout, re.MULTILINE)}
    assert counts[RESULT] > 50
    assert counts[REFUSED] > 50
    assert counts["opened in LiteRT"] > 10


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_differ_from_their_seeds(seeds: Seeds, kind: str) -> None:
    mutants = [draw(seeds, number, 1, (kind,)) for number in range(20)]
    assert sum(mutant.files != mutant.seed.files for mutant in mutants) > 12
    assert mutants == [draw(seeds, number, 1, (kind,)) for number in range(20)]


def test_failures_are_seen(seeds: Seeds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong in a worker is a failure of the mutant, told with its place."""

    def convert(*_: object, **__: object) -> object:
        return b"x" * (1 << 33) if is_large else vars()["nothing"]

    is_large = False
    mutant = draw(seeds, 0, 0, tuple(KINDS))
    monkeypatch.setattr("tests.mutate.worker.converted", convert)
    (outcome,) = Workers(lambda _: mutant, 1, 0).run(iter([0]))
    assert (outcome.kind, outcome.group.partition(" ")[0]) == (FAILED, "KeyError")
    is_large = True
    (outcome,) = Workers(lambda _: mutant, 1, 0).run(iter([0]))
    assert (outcome.kind, outcome.group.partition(" ")[0]) == (FAILED, "MemoryError")


def test_places_are_named() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        print(1 / 0)
    assert where(caught.value).startswith("ZeroDivisionError at ")
