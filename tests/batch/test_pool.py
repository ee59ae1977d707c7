"""Jobs run in processes of their own, within limits; what becomes of one concerns no other."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tfconvert
from tests.batch.models import ENDLESS, RELU, UNKNOWN, write
from tfconvert.batch.messages import MAX_MESSAGE, outcome_line, stage_names
from tfconvert.batch.pool import Pool
from tfconvert.batch.task import CANCELLED, Outcome, Task, TaskLimits
from tfconvert.converter.process import sandbox

LIMITS = TaskLimits(seconds=60)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


def endless(folder: Path) -> Task:
    rules = folder / "endless.py"
    rules.write_text(ENDLESS)
    output = os.fspath(folder / "endless.tflite")
    return Task(os.fspath(write(folder, "endless")), output, {"patterns": [os.fspath(rules)]})


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def children_of(process: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def wait_until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


# What code in a model might try; the pattern is only there to run it.
_SPY = """
import json, os, socket, tempfile
from pathlib import Path
from tfconvert.patterns import rule, tf, value

def said(attempt):
    try:
        return attempt()
    except OSError as problem:
        return type(problem).__name__

found = {
    "model": said(lambda: len(Path("relu.mlir").read_text())),
    "secret": said(lambda: Path("../secret").read_text()),
    "network": said(lambda: socket.socket()),
    "overwrite": said(lambda: Path("relu.mlir").write_text("")),
    "variable": os.environ.get("A_SECRET", ""),
    "temporary": said(lambda: tempfile.mkdtemp().startswith(os.getcwd())),
}
Path("out/found.json").write_text(json.dumps(found))
PATTERNS = [rule("acme", tf.Elu(value("x")), tf.Relu(value("x")))]
"""


# Writes to wherever the process sends its messages.
_FORGER = """
import contextlib, os
for descriptor in range(3, 64):
    with contextlib.suppress(OSError):
        os.write(descriptor, {message!r})
{then}
from tfconvert.patterns import rule, tf, value
PATTERNS = [rule("acme", tf.Elu(value("x")), tf.Relu(value("x")))]
"""


# Fails while a conversion runs, in a way that is a bug of ours.
_BROKEN = """
from tfconvert.batch import run_task
from tfconvert.patterns import rule, tf, value

def summary_of(*_):
    raise KeyError("at a secret path")

run_task.summary_of = summary_of
PATTERNS = [rule("acme", tf.Elu(value("x")), tf.Relu(value("x")))]
"""


@pytest.mark.parametrize(
    "message",
    [
        b"nonsense\n",
        b"[1]\n",
        b"1\n",
        b"[" * 100_000 + b"\n",
        b'{"summary": [1]}\n',
        b'{"summary": {"beside": 1}}\n',
        b'{"problem": 1}\n',
        b'{"problem": {"errors": []}}\n',
        b'{"problem": {"errors": [{"code": 1, "message": "x"}]}}\n',
        b'{"problem": {"errors": [{"code": "x", "message": "x"}], "advice": 1}}\n',
        b'{"problem": {"errors": [{"code": "job-cancelled", "message": "x"}]}}\n',
        b'{"problem": {"errors": [{"code": "x", "message": "x", "other": "x"}]}}\n',
        b'{"summary": {"other": 1}}\n',
        b'{"summary": {"size": 1.5}}\n',
        b'{"summary": {"size": true}}\n',
        b'{"summary": {"beside": ["/../x"]}}\n',
        b'{"summary": {"max_absolute": Infinity}}\n',
        b'{"summary": {"max_absolute": 1e999}}\n',
        b'{"summary": {"fidelity": {"is_low": false, "snr": NaN}}}\n',
        b'{"summary": {"min_runtime_version": "' + b"x" * (1 << 16) + b'"}}\n',
        b'{"summary": {}}\n{"summary": {}}\n',
        b'{"stage": 1}\n',
        b'{"stage": "open"}\n' * 501,
        b"x" * 200_000,
    ],
)
def test_forged_messages_harm_no_other_task(pool: Pool, tmp_path: Path, message: bytes) -> None:
    rules = tmp_path / "forger.py"
    rules.write_text(_FORGER.format(message=message, then="os._exit(0)"))
    model, output = os.fspath(write(tmp_path, "relu")), os.fspath(tmp_path / "x.tflite")
    pool.start()
    before = pool.process
    outcome = pool.run(Task(model, output, {"patterns": [os.fspath(rules)]}), LIMITS)
    assert (outcome.code, outcome.is_lost) == ("worker-lost", True)
    assert pool.run(Task(model, output), LIMITS).problem is None
    assert pool.process == before


@pytest.mark.skipif(not sandbox.is_available(), reason="this system has no Landlock of Linux 6.12")
def test_a_confined_job_sees_only_its_model(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    (folder / "out").mkdir(parents=True)
    (folder / "spy.py").write_text(_SPY)
    (tmp_path / "secret").write_text("secret")
    model = write(folder, "relu")
    settings = {"patterns": ["spy.py"], "verify": True}
    report, page = "out/x.json", "out/x.html"
    task = Task(model.name, "out/x.tflite", settings, report, page, directory=os.fspath(folder), is_confined=True)
    with Pool({name: value for name, value in os.environ.items() if name != "A_SECRET"}) as pool:
        assert pool.run(task, LIMITS).problem is None
        assert json.loads((folder / "out" / "found.json").read_text()) == {
            "model": len(RELU),
            "secret": "PermissionError",
            "network": "PermissionError",
            "overwrite": "PermissionError",
            "variable": "",
            "temporary": True,
        }
        assert (folder / "out" / "x.tflite").read_bytes()[4:8] == b"TFL3"
        # The page of a report that is elsewhere.
        (folder / "out" / "x.json").rename(tmp_path / "x.json")
        later = task._replace(output="", report=os.fspath(tmp_path / "x.json"), page="out/later.html")
        assert pool.run(later, LIMITS).problem is None
        assert "<html" in (folder / "out" / "later.html").read_text()


# What code in a model might use of the machine; each waits until it is ended.
_GREEDY = """
import errno, mmap, os, tempfile, time
from pathlib import Path

def child(work):
    if not os.fork():
        kept = work()
        time.sleep(60)

def memory():
    for _ in range(8):
        child(lambda: bytearray(64 << 20).replace(b"\\0", b"1"))

def processes():
    for _ in range(10):
        child(lambda: None)

def files():
    for name in "abc":
        Path("out", name).write_bytes(bytes(1 << 20))

def removed_files():
    found = [tempfile.TemporaryFile(buffering=0) for _ in range(3)]
    for file in found:
        file.write(bytes(1 << 20))
    return found

def mapped_files():
    found = []
    for _ in range(3):
        with tempfile.TemporaryFile(buffering=0) as file:
            file.write(bytes(1 << 20))
            found.append(mmap.mmap(file.fileno(), 1 << 20))
    return found

def levels():
    for _ in range(60):
        os.makedirs("out/d", exist_ok=True)
        os.rename("out/d", "out/e"), os.mkdir("out/d"), os.rename("out/e", "out/d/e")

def many():
    for number in range(10_001):
        os.mkdir(f"out/{{number}}")

def library():
    raise ImportError("libx.so.2: cannot map zero-fill pages")

def segment():
    raise ImportError("libx.so.2: failed to map segment from shared object")

def thread():
    raise RuntimeError("can't start new thread")

def system():
    raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

def mapped():
    return mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

def bytes_():
    return bytes(1 << 40)

def aborted():
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\\n")
    os.abort()

def killed():
    kept = bytearray(450 << 20)
    time.sleep(1)  # Longer than between two looks.
    os.kill(os.getpid(), 9)

def crashed():
    os.write(2, b"Check failed\\n")
    os.abort()

kept = {work}()
time.sleep({seconds})
PATTERNS = []
"""


def greedy(pool: Pool, folder: Path, work: str, seconds: int = 60, **limits: int) -> Outcome:
    """Runs a job whose own code does some work, within limits."""
    job = folder / "job"
    (job / "out").mkdir(parents=True)
    (job / "greedy.py").write_text(_GREEDY.format(work=work, seconds=seconds))
    task = Task(
        write(job, "relu").name,
        "out/x.tflite",
        {"patterns": ["greedy.py"]},
        log="out/log",
        directory=os.fspath(job),
        is_confined=True,
    )
    return pool.run(task, LIMITS._replace(**limits))


@pytest.mark.skipif(not sandbox.is_available(), reason="this system has no Landlock of Linux 6.12")
@pytest.mark.parametrize(
    ("work", "limits", "code"),
    [
        ("memory", {"memory": 512 << 20}, "job-memory"),
        ("processes", {"processes": 8}, "job-processes"),
        ("files", {"output": 5 << 19}, "job-output"),
        ("removed_files", {"output": 5 << 19}, "job-output"),
        ("mapped_files", {"output": 5 << 19}, "job-output"),
        ("levels", {}, "job-output"),
        ("many", {}, "job-output"),
    ],
)
def test_limits_hold_for_all_that_a_job_has(
    pool: Pool, tmp_path: Path, work: str, limits: dict[str, int], code: str
) -> None:
    before = time.monotonic()
    outcome = greedy(pool, tmp_path, work, **limits)
    assert (outcome.code, outcome.is_lost) == (code, False)
    assert time.monotonic() - before < 30
    assert pool.process is not None
    assert children_of(pool.process) == []


@pytest.mark.skipif(not sandbox.is_available(), reason="this system has no Landlock of Linux 6.12")
@pytest.mark.parametrize("work", ["library", "segment", "thread", "system", "mapped", "bytes_", "aborted", "killed"])
def test_whatever_fails_for_lack_of_memory_is_told_as_that(pool: Pool, tmp_path: Path, work: str) -> None:
    outcome = greedy(pool, tmp_path, work, memory=512 << 20)
    assert (outcome.code, outcome.is_lost) == ("job-memory", False)


@pytest.mark.skipif(not sandbox.is_available(), reason="this system has no Landlock of Linux 6.12")
def test_a_crash_is_not_told_as_a_lack_of_memory(pool: Pool, tmp_path: Path) -> None:
    outcome = greedy(pool, tmp_path, "crashed", memory=512 << 20)
    assert (outcome.code, outcome.is_lost) == ("worker-lost", True)


@pytest.mark.skipif(not sandbox.is_available(), reason="this system has no Landlock of Linux 6.12")
@pytest.mark.parametrize("work", ["memory", "processes", "removed_files", "mapped_files"])
def test_jobs_may_have_several_processes_and_files(pool: Pool, tmp_path: Path, work: str) -> None:
    outcome = greedy(pool, tmp_path, work, seconds=1)
    assert outcome.code == "wrong-option"  # The file has no patterns.
    assert pool.process is not None
    assert children_of(pool.process) == []


@pytest.mark.skipif(not sandbox.is_available(), reason="this system has no Landlock of Linux 6.12")
def test_files_are_counted_at_the_end(pool: Pool, tmp_path: Path) -> None:
    assert greedy(pool, tmp_path, "files", seconds=0, output=5 << 19).code == "job-output"


def test_a_job_gives_the_same_file_as_the_function(pool: Pool, tmp_path: Path) -> None:
    model = write(tmp_path, "relu")
    stages: list[str] = []
    task = Task(
        os.fspath(model),
        os.fspath(tmp_path / "x.tflite"),
        {"verify": True},
        os.fspath(tmp_path / "x.json"),
        os.fspath(tmp_path / "x.html"),
    )
    outcome = pool.run(task, LIMITS, stages.append)
    assert outcome.problem is None
    assert outcome.code == outcome.message == ""
    assert {"open", "legalize", "export", "verify", "write"} <= set(stages)
    same = tfconvert.convert(model, verify=True)
    same.save(tmp_path / "same.tflite")
    assert (tmp_path / "x.tflite").read_bytes() == (tmp_path / "same.tflite").read_bytes()
    assert outcome.summary["size"] == same.report.size == (tmp_path / "x.tflite").stat().st_size
    assert json.loads((tmp_path / "x.json").read_text())["operators"] == same.report.to_dict()["operators"]
    assert "<html" in (tmp_path / "x.html").read_text()
    assert outcome.peak > 1 << 20


def test_failures_are_told(pool: Pool, tmp_path: Path) -> None:
    output = os.fspath(tmp_path / "x.tflite")
    outcome = pool.run(Task(os.fspath(write(tmp_path, "unknown", UNKNOWN)), output), LIMITS)
    assert outcome.code == "unsupported-op"
    assert not outcome.is_lost
    assert outcome.problem is not None
    assert outcome.problem["errors"][0]["op"] == "tf.Nonsense"
    assert pool.run(Task("/nowhere", output), LIMITS).code == "model-not-found"
    assert pool.run(Task("/nowhere", output, {"batch": "x"}), LIMITS).code == "bad-config"
    assert not Path(output).exists()


def test_time_is_limited_also_that_of_what_a_job_starts(pool: Pool, tmp_path: Path) -> None:
    pool.start()
    assert pool.process is not None
    before = time.monotonic()
    outcome = pool.run(endless(tmp_path), TaskLimits(seconds=2))
    assert outcome.code == "job-timeout"
    assert "2 s" in outcome.message
    assert time.monotonic() - before < 20
    assert children_of(pool.process) == []


def test_memory_is_limited(pool: Pool, tmp_path: Path) -> None:
    task = Task(os.fspath(write(tmp_path, "relu")), os.fspath(tmp_path / "x.tflite"))
    outcome = pool.run(task, TaskLimits(seconds=60, memory=1 << 20))
    assert outcome.code == "job-memory"
    assert pool.run(task, LIMITS).problem is None


def test_output_is_limited(pool: Pool, tmp_path: Path) -> None:
    task = Task(os.fspath(write(tmp_path, "relu")), os.fspath(tmp_path / "x.tflite"))
    assert pool.run(task, LIMITS._replace(output=100)).code == "output-not-writable"
    assert [path.name for path in tmp_path.iterdir()] == ["relu.mlir"]


def test_cancelled_jobs_end(pool: Pool, tmp_path: Path) -> None:
    started: list[int] = []
    with ThreadPoolExecutor() as threads:
        task = threads.submit(pool.run, endless(tmp_path), LIMITS, lambda stage: None, started.append)
        wait_until(lambda: started)
        pool.cancel(started[0])
        assert task.result(20).code == CANCELLED
    pool.cancel(started[0])  # It is over; nothing happens.


def test_a_killed_process_is_a_failure_of_its_job_alone(pool: Pool, tmp_path: Path) -> None:
    pool.start()
    assert pool.process is not None
    zygote = pool.process
    with ThreadPoolExecutor() as threads:
        task = threads.submit(pool.run, endless(tmp_path), LIMITS)
        wait_until(lambda: children_of(zygote))
        (child,) = children_of(zygote)
        os.kill(child, signal.SIGKILL)
        outcome = task.result(20)
    assert outcome.code == "worker-lost"
    assert "SIGKILL" in outcome.message
    assert outcome.is_lost
    assert pool.process == zygote
    assert pool.run(Task(os.fspath(write(tmp_path, "relu")), os.fspath(tmp_path / "x.tflite")), LIMITS).problem is None


def test_the_process_that_forks_is_started_again(tmp_path: Path) -> None:
    task = Task(os.fspath(write(tmp_path, "relu")), os.fspath(tmp_path / "x.tflite"))
    with Pool() as pool:
        pool.start()
        zygote = pool.process
        assert zygote is not None
        with ThreadPoolExecutor() as threads:
            running = threads.submit(pool.run, endless(tmp_path), LIMITS)
            wait_until(lambda: children_of(zygote))
            (child,) = children_of(zygote)
            os.kill(zygote, signal.SIGKILL)
            assert running.result(20).code == "worker-lost"
            wait_until(lambda: is_gone(child))
        assert pool.run(task, LIMITS).problem is None
        assert pool.process != zygote


def test_nothing_outlives_the_pool(tmp_path: Path) -> None:
    pool = Pool()
    pool.start()
    zygote = pool.process
    assert zygote is not None
    with ThreadPoolExecutor() as threads:
        task = threads.submit(pool.run, endless(tmp_path), LIMITS)
        wait_until(lambda: children_of(zygote))
        (child,) = children_of(zygote)
        pool.stop()
        assert task.result(20).code == CANCELLED
    wait_until(lambda: is_gone(child))
    assert is_gone(zygote)
    outcome = pool.run(endless(tmp_path), LIMITS)
    assert outcome.code == CANCELLED


def test_many_jobs_from_many_threads(pool: Pool, tmp_path: Path) -> None:
    texts = [RELU, UNKNOWN]
    jobs = [
        Task(os.fspath(write(tmp_path, f"m{index}", texts[index % 2])), os.fspath(tmp_path / f"{index}.tflite"))
        for index in range(24)
    ]
    with ThreadPoolExecutor(6) as threads:
        endings = list(threads.map(lambda task: pool.run(task, LIMITS), jobs))
    assert [outcome.code for outcome in endings] == ["", "unsupported-op"] * 12
    assert len({(tmp_path / f"{index}.tflite").read_bytes() for index in range(0, 24, 2)}) == 1


def test_what_a_job_prints_goes_to_its_log(pool: Pool, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    task = Task(
        os.fspath(write(tmp_path, "relu")),
        os.fspath(tmp_path / "x.tflite"),
        {"patterns": [_rules(tmp_path)]},
        log=os.fspath(log),
    )
    assert pool.run(task, LIMITS).problem is None
    assert log.read_text() == "rules are read\n"
    assert capfd.readouterr().out == ""
    assert threading.active_count() < 50


def _rules(folder: Path) -> str:
    path = folder / "rules.py"
    path.write_text(
        "from tfconvert.patterns import rule, tfl, value\n\nprint('rules are read', flush=True)\n"
        "TWICE = rule('twice', tfl.neg(tfl.neg(value('x'))), value('x'))\n"
    )
    return os.fspath(path)


@pytest.mark.parametrize(
    ("summary", "content"),
    [({"size": 3}, None), ({"size": 3}, b"abcd"), ({}, b"abc"), ({"size": 3, "beside": [".params"]}, b"abc")],
)
def test_a_success_needs_its_files(
    pool: Pool, tmp_path: Path, summary: dict[str, object], content: bytes | None
) -> None:
    output = tmp_path / "x.tflite"
    if content is not None:
        output.write_bytes(content)
    outcome = pool.run(_forged(tmp_path, json.dumps({"summary": summary}).encode() + b"\n"), LIMITS)
    assert (outcome.code, outcome.summary, outcome.is_lost) == ("internal-error", {}, False)


def test_a_success_is_a_file_of_the_announced_size(pool: Pool, tmp_path: Path) -> None:
    (tmp_path / "x.tflite").write_bytes(b"abc")
    assert pool.run(_forged(tmp_path, b'{"summary": {"size": 3}}\n'), LIMITS).summary == {"size": 3}
    (tmp_path / "y").write_bytes(b"abc")
    (tmp_path / "x.tflite").unlink()
    (tmp_path / "x.tflite").symlink_to("y")
    outcome = pool.run(_forged(tmp_path, b'{"summary": {"size": 3}}\n')._replace(is_served=True), LIMITS)
    assert outcome.code == "internal-error"


def _forged(folder: Path, message: bytes, then: str = "os._exit(0)") -> Task:
    """Returns a task that says what it likes."""
    rules = folder / "forger.py"
    rules.write_text(_FORGER.format(message=message, then=then))
    return Task(os.fspath(write(folder, "relu")), os.fspath(folder / "x.tflite"), {"patterns": [os.fspath(rules)]})


def test_only_known_stages_are_told(pool: Pool, tmp_path: Path) -> None:
    stages: list[str] = []
    message = b'{"stage": "nonsense"}\n{"stage": "' + b"y" * 1000 + b'"}\n'
    assert pool.run(_forged(tmp_path, message, ""), LIMITS, stages.append).problem is None
    assert {"open", "legalize", "write"} <= set(stages) <= stage_names()


def test_stages_that_wait_to_be_heard_do_not_extend_the_time(pool: Pool, tmp_path: Path) -> None:
    stages: list[str] = []

    def listen(name: str) -> None:
        stages.append(name)
        time.sleep(0.1)

    before = time.monotonic()
    task = _forged(tmp_path, b'{"stage": "open"}\n' * 450, "import time\ntime.sleep(60)")
    assert pool.run(task, TaskLimits(seconds=2), listen).code == "job-timeout"
    assert time.monotonic() - before < 10


def test_stages_that_wait_to_be_heard_do_not_delay_cancelling(pool: Pool, tmp_path: Path) -> None:
    started: list[int] = []
    stages: list[str] = []

    def listen(name: str) -> None:
        stages.append(name)
        if len(stages) == 20:
            pool.cancel(started[0])
        time.sleep(0.1)

    before = time.monotonic()
    task = _forged(tmp_path, b'{"stage": "open"}\n' * 450, "import time\ntime.sleep(60)")
    assert pool.run(task, LIMITS, listen, started.append).code == CANCELLED
    assert time.monotonic() - before < 15


@pytest.mark.parametrize("count", [1, 5000])
def test_a_long_outcome_is_shortened(count: int) -> None:
    text = "\N{GRINNING FACE}" * 20_000
    errors = [
        {"code": "unsupported-op", "message": text, "hint": text, "node": f"n{number}"} for number in range(count)
    ]
    line = outcome_line({"problem": {"errors": errors, "advice": [text] * 20}})
    assert len(line) <= MAX_MESSAGE
    problem = json.loads(line)["problem"]
    assert problem["errors"][0]["code"] == "unsupported-op"
    assert problem["advice"][-1] == f"{count - len(problem['errors'])} more are not listed"


def test_a_trace_can_be_kept_from_the_log(pool: Pool, tmp_path: Path) -> None:
    rules = tmp_path / "broken.py"
    rules.write_text(_BROKEN)
    log = tmp_path / "log.txt"
    task = Task(
        os.fspath(write(tmp_path, "relu")),
        os.fspath(tmp_path / "x.tflite"),
        {"patterns": [os.fspath(rules)]},
        log=os.fspath(log),
    )
    shown, hidden = pool.run(task, LIMITS), pool.run(task._replace(is_served=True), LIMITS)
    assert shown.code == hidden.code == "internal-error"
    assert (shown.trace, "at a secret path" in shown.message) == ("", True)
    assert log.read_text().count("Traceback") == 1
    assert "at a secret path" not in hidden.message
    assert hidden.trace.startswith("Traceback")
    assert "at a secret path" in hidden.trace
