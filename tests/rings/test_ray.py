"""Batches run on a real Ray cluster, and survive the death of a worker."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.batch.models import UNKNOWN, write
from tfconvert.batch.engines import Trial, run_on_ray
from tfconvert.batch.entries import to_entries
from tfconvert.batch.task import TaskLimits
from tfconvert.cli.main import main

MODELS = 12

# Rules that take a while to be read, so that there is time to kill whoever reads them.
SLOW = "import time\n\ntime.sleep(2)\n"


@pytest.fixture(autouse=True)
def in_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


def test_a_batch_gives_what_processes_here_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(MODELS):
        write(tmp_path / "models", f"m{number:02}", UNKNOWN if number == 3 else None)
    found = {}
    for engine in ("ray", "local"):
        arguments = [f"{tmp_path}/models/*.mlir", "-o", f"{tmp_path}/{engine}/{{name}}.tflite", "--engine", engine]
        done = CliRunner().invoke(main, ["batch", *arguments, "-j", "2", "--json"])
        assert done.exit_code == 1, done.stderr
        rows = json.loads(done.stdout)["models"]
        found[engine] = [(row["name"], row["status"], row.get("operators")) for row in rows]
        assert len(list((tmp_path / engine).iterdir())) == MODELS - 1
    assert found["ray"] == found["local"]


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(SLOW)
    models = [{"model": str(write(tmp_path, f"m{number}"))} for number in range(4)]
    settings = {"patterns": [str(tmp_path / "rules.py")]}
    entries = to_entries(models, f"{tmp_path}/out/{{name}}.tflite", settings)
    killed: list[int] = []
    threading.Thread(target=_kill_one, args=(killed,), daemon=True).start()
    endings = {entry.name: end for entry, end in run_on_ray(entries, Trial(TaskLimits(seconds=60), retries=3), 2, None)}
    assert killed

    assert len(endings) == len(entries)
    assert {ending.code for ending in endings.values()} == {"wrong-option"}


def _kill_one(killed: list[int]) -> None:
    """Kills the first worker of the cluster that runs a job."""
    end = time.monotonic() + 60
    while time.monotonic() < end and not killed:
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and b"batch.zygote" in _command(process):
                parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                if b"ray::" in _command(Path(f"/proc/{parent}")):
                    time.sleep(0.5)
                    os.kill(parent, signal.SIGKILL)
                    killed.append(parent)
                    return
        time.sleep(0.05)


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
