"""Hostile models in workers: limits hold, and nothing outside of the job's folder is read or written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.hardening import test_bombs as bombs
from tests.hardening.models import NEGATION
from tests.service.archive_corpus import tarred, zipped
from tfconvert.batch.pool import Pool
from tfconvert.batch.task import Task, TaskLimits
from tfconvert.importers.archive import ArchiveLimits
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.service import archives

MEMORY = 1 << 30
LIMITS = TaskLimits(seconds=20, memory=MEMORY, files=64, output=1 << 28)
SECRET = b"words of somebody else"


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    secret = tmp_path / "jobs" / "other" / "secret.txt"
    secret.parent.mkdir(parents=True)
    secret.write_bytes(SECRET)
    return secret


def others(folder: Path) -> Mapping[str, int]:
    """Returns all files and folders but those of the job, and when each was last changed."""
    return {
        name: path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if not (name := path.relative_to(folder).as_posix()).startswith("jobs/own")
    }


def converted(pool: Pool, tmp_path: Path, data: bytes, name: str, **settings: object) -> str:
    """Returns the code of what a job with an uploaded file ends in, empty if it is converted, as a server runs it."""
    upload = tmp_path / "upload"
    upload.write_bytes(data)
    attempt = tmp_path / "jobs" / "own" / "1"
    shutil.rmtree(attempt, ignore_errors=True)
    attempt.parent.mkdir(parents=True, exist_ok=True)
    before = others(tmp_path)
    try:
        model = archives.unpack(upload, attempt / "model", ArchiveLimits(size=1 << 28, entries=100), name)
    except ConversionError as problem:
        return problem.code
    out = attempt / "out"
    out.mkdir()
    report, page, log = (f"out/{file}" for file in ("report.json", "report.html", "log.txt"))
    model = model.relative_to(attempt)
    task = Task(os.fspath(model), "out/model.tflite", settings, report, page, log, os.fspath(attempt))
    ending = pool.run(task, LIMITS)
    assert ending.peak < MEMORY + (300 << 20)
    assert ending.seconds < 2 * LIMITS.seconds
    assert not ending.is_lost
    assert others(tmp_path) == before
    secrets = (SECRET, os.fsencode(attempt))
    assert not any(secret in file.read_bytes() for file in out.rglob("*") for secret in secrets)
    assert os.fspath(attempt) not in str(ending.problem)
    assert "Traceback" not in (out / "log.txt").read_text()
    return ending.code


BOMBS = (
    "bomb_inline_laughs",
    "bomb_splat",
    "bomb_splats",
    "bomb_concat_doubling",
    "bomb_fold_compute",
    "bomb_where",
    "bomb_segments",
    "mlir_splat_1g",
)


@pytest.mark.parametrize("case", BOMBS)
def test_workers_stay_within_their_limits(case: str, pool: Pool, tmp_path: Path) -> None:
    make, code = bombs.CASES[case]
    model = make()
    data, name = (model.encode(), "bomb.mlir") if isinstance(model, str) else (model.SerializeToString(), "bomb.pb")
    ending = converted(pool, tmp_path, data, name)
    assert ending in ((code,) if code.startswith("too-") else ("", "job-memory", "output-not-writable"))


def test_a_user_who_raises_the_limits_of_conversions_meets_those_of_workers(pool: Pool, tmp_path: Path) -> None:
    make, _ = bombs.CASES["bomb_splat"]
    ending = converted(pool, tmp_path, make().SerializeToString(), "bomb.pb", limits={"constant_bytes": 1 << 40})
    assert ending in ("job-memory", "output-not-writable", "too-large-constants")


def test_endless_loops_are_given_up(pool: Pool, tmp_path: Path) -> None:
    assert (
        converted(pool, tmp_path, bombs._ENDLESS.encode(), "endless.mlir", verify=True, limits={"run_iterations": 500})
        == ""
    )


def test_a_text_reads_no_other_file(secret: Path, pool: Pool, tmp_path: Path) -> None:
    for name in (str(secret), "../../../other/secret.txt", "/etc/passwd"):
        text = f'"tf_saved_model.asset"() <{{filename = "{name}", sym_name = "a"}}> : () -> ()\n'
        archive = tarred({"leak.mlir": b"module {\n" + text.encode() + b"}\n"})
        assert converted(pool, tmp_path, archive, "leak.tar") == "bad-asset"


def test_a_checkpoint_leads_to_no_other(secret: Path, pool: Pool, tmp_path: Path) -> None:
    for name in ("m-1", "m-2"):
        (secret.parent / f"{name}.meta").write_bytes(SECRET)
        (secret.parent / f"{name}.index").write_bytes(SECRET)
    for prefix in ("../../../other/m-1", str(secret.parent / "m-1")):
        state = f'model_checkpoint_path: "{prefix}"\n'.encode()
        archive = zipped({"checkpoint": state, "a.meta": b"", "b.meta": b""})
        assert converted(pool, tmp_path, archive, "m.zip") == "outside-model"


def test_code_in_a_model_is_not_run(pool: Pool, tmp_path: Path) -> None:
    graph = pb.GraphDef()
    node = graph.node.add(name="y", op="PyFunc")
    node.attr["token"].s = b"pyfunc_0"
    node.attr["Tin"].list.SetInParent()
    node.attr["Tout"].list.type.append(pb.DT_FLOAT)
    assert converted(pool, tmp_path, graph.SerializeToString(), "code.pb") == "python-function"
    for name in ("model.keras", "model.h5", "model.hdf5"):
        # What isn't of Keras is not read as if it were, whatever it is called.
        assert converted(pool, tmp_path, NEGATION.SerializeToString(), name) == ""
