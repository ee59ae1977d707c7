"""Some hundred random mutants of models in every format; `python -m tests.mutate` tries as many as one likes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from tests.mutate import campaign
from tests.mutate.mutants import DEFAULT_KINDS, FRAMEWORK_KINDS, KINDS, Mutant, draw
from tests.mutate.seeds import Seeds, find_seeds
from tests.mutate.worker import FAILED, REFUSED, RESULT, Workers, where
from tfconvert.schema.diagnostics import ConversionError, Diagnostic

_MODELS = ("two_heads", "branches_and_loops", "vocabulary", "indexing", "lists")


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Seeds:
    return find_seeds(tmp_path_factory.mktemp("seeds"), _MODELS)


def _counts(seeds: Seeds, root: Path, folder: Path, *arguments: str, **variables: str) -> dict[str, int]:
    """Runs the command, which must find nothing, and returns its counts."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutate", *arguments, "--seeds", seeds.folder, "--keep", folder],
        cwd=root,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    told = [path.read_text("utf-8") for path in sorted(folder.rglob("failure.txt"))]
    assert not done.returncode, "\n".join([done.stdout, done.stderr, *told])
    return {what: int(count) for count, what in re.findall(r"^ *(\d+) (.*)$", done.stdout, re.MULTILINE)}


def test_mutants_are_converted_or_refused(seeds: Seeds, root: Path, tmp_path: Path) -> None:
    """The command, in a process that hasn't loaded TensorFlow, so that its own may be forked fast."""
    counts = _counts(seeds, root, tmp_path, "--count", "250", "--open-every", "5")
    assert counts[RESULT] > 50
    assert counts[REFUSED] > 50
    assert counts["opened in LiteRT"] > 10


def test_mutants_of_keras_files_are_converted_or_refused(seeds: Seeds, root: Path, tmp_path: Path) -> None:
    """Also in another process, which loads TensorFlow once for all."""
    kinds = [f"--kind={kind}" for kind in FRAMEWORK_KINDS]
    counts = _counts(seeds, root, tmp_path, "--count", "30", *kinds, CUDA_VISIBLE_DEVICES="-1")
    assert counts[RESULT] > 3
    assert counts[REFUSED] > 3


def _refuse(*_: object, **__: object) -> NoReturn:
    raise ConversionError([Diagnostic("refused", "it is refused")])


def test_an_interrupted_campaign_goes_on(seeds: Seeds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = tmp_path / "journal"
    monkeypatch.setattr("tests.mutate.worker.converted", _refuse)
    monkeypatch.setattr(campaign, "warm_up", lambda _: None)
    run = partial(campaign.run, seeds, seed=3, kinds=("tflite", "artifact"), journal=journal)
    whole = campaign.run(seeds, range(8), seed=3, kinds=("tflite", "artifact"))
    run(range(5))
    text = journal.read_text("utf-8")
    assert len(text.splitlines()) == 6
    # It was interrupted while it wrote the last line.
    journal.write_text(text[:-20], "utf-8")
    drawn: list[int] = []
    monkeypatch.setattr(Workers, "_start", lambda self, numbers: drawn.extend(numbers))
    run(range(8))
    assert drawn == [4]  # The first of those that are left.
    monkeypatch.undo()
    monkeypatch.setattr("tests.mutate.worker.converted", _refuse)
    monkeypatch.setattr(campaign, "warm_up", lambda _: None)
    assert run(range(8)) == whole
    assert {json.loads(line)["outcome"]["number"] for line in journal.read_text("utf-8").splitlines()[1:]} == {
        *range(8)
    }
    with pytest.raises(ValueError, match="another campaign"):
        campaign.run(seeds, range(8), seed=4, kinds=("tflite", "artifact"), journal=journal)


def test_the_mutants_after_one_that_ends_its_process_are_converted(
    seeds: Seeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process converts several; the one that ends it is the only one that fails."""
    mutant = draw(seeds, 0, 0, ("tflite",))

    def drawn(number: int) -> Mutant:
        if number == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return mutant

    monkeypatch.setattr("tests.mutate.worker.converted", _refuse)
    outcomes = list(Workers(drawn, 1, 0, each=4).run(iter(range(6))))
    assert [each.number for each in outcomes] == [*range(6)]
    assert [each.kind for each in outcomes] == [REFUSED, REFUSED, FAILED, REFUSED, REFUSED, REFUSED]
    assert outcomes[2].group == "signal SIGTERM"


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
    mutant = draw(seeds, 0, 0, DEFAULT_KINDS)
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
