"""Servers, their jobs' processes, disks and clocks fail; no job is lost, doubled or half done."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.batch.models import RELU
from tests.rings.servers import PostgreSQL, Server, postgresql, wait_for
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.connection import open_database
from tfconvert.service.janitor import Janitor
from tfconvert.service.leases import Lease
from tfconvert.service.storage import REPORT, Folders, result_name
from tfconvert.service.store import JobStore

JOBS = 300
SENDERS = 60
# How often a server is killed, and started again.
KILLS = 8

# Codes that jobs may fail with, since their processes are killed.
OWN_REASONS = {"worker-lost", "server-lost"}


class Clients:
    """Clients that send jobs, each until it is accepted.

    Args:
        servers: The servers, any of which may receive a job.
        http: The HTTP client.

    Attributes:
        accepted: Names of models by the IDs of their jobs.
    """

    def __init__(self, servers: Sequence[Server], http: httpx.Client) -> None:
        self._servers = servers
        self._http = http
        self.accepted: dict[str, str] = {}

    def submit(self, number: int) -> None:
        """Submits a job with an idempotency key until some server takes it."""
        name = f"m{number}.mlir"
        model = f"{RELU}// {number}\n".encode()
        end = time.monotonic() + 300
        while time.monotonic() < end:
            server = self._servers[random.randrange(len(self._servers))]
            try:
                said = self._http.post(
                    f"{server.url}/v1/jobs", files={"model": (name, model)}, headers={"Idempotency-Key": name}
                )
            except httpx.TransportError:
                time.sleep(0.1)
                continue
            if said.status_code in (200, 202):
                self.accepted[said.json()["id"]] = name
                return
            assert said.status_code in (429, 503), said.text
            time.sleep(0.1)
        raise AssertionError(name)

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Returns all jobs by their IDs."""
        found: dict[str, dict[str, Any]] = {}
        cursor = None
        while True:
            query = {"limit": "200", **({"cursor": cursor} if cursor else {})}
            page = self._http.get(f"{self._servers[0].url}/v1/jobs", params=query).json()
            found.update((job["id"], job) for job in page["jobs"])
            cursor = page.get("next")
            if not cursor:
                return found

    def post(self, name: str) -> httpx.Response:
        """Submits a job, whatever comes of it."""
        files = {"model": (f"{name}.mlir", f"{RELU}// {name}\n".encode())}
        return self._http.post(f"{self._servers[0].url}/v1/jobs", files=files)

    def get(self, path: str) -> httpx.Response:
        """Reads something."""
        return self._http.get(f"{self._servers[0].url}{path}")


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=20) as client:
        yield client


class Running(NamedTuple):
    """The running servers and their database.

    Attributes:
        servers: The servers.
        config: Their settings.
        database: Their PostgreSQL; `None` for SQLite.
    """

    servers: list[Server]
    config: ServiceConfig
    database: PostgreSQL | None


@pytest.fixture(params=["sqlite", "postgresql"])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(postgresql()) if request.param == "postgresql" else None
        url = database.url if database is not None else ""
        config = ServiceConfig(data=tmp_path / "data", database=url)
        # A job is begun again more often than anybody kills its server.
        servers = [Server(config.data, url, ATTEMPTS=50) for _ in range(2 if url else 1)]
        for server in servers:
            stack.callback(server.end)
            server.start()
        yield Running(servers, config, database)


def is_final(job: dict[str, Any]) -> bool:
    return job["state"] not in ("queued", "running")


def kill_any(servers: Sequence[Server], rng: random.Random, is_over: threading.Event, killed: list[int]) -> None:
    """Kills processes of jobs, and now and then the one that they come from, until it is over."""
    while not is_over.wait(rng.uniform(0.1, 0.5)):
        kind = Server.zygotes if rng.random() < 0.1 else Server.job_processes
        processes = [process for server in servers for process in kind(server)]
        if processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(processes), signal.SIGKILL)
                killed.append(1)


def request_pages(clients: Clients, rng: random.Random, is_over: threading.Event, pages: list[str]) -> None:
    """Requests pages of reports, which are made then, until it is over."""
    while not is_over.wait(0.2):
        job = rng.choice([*clients.accepted] or ["0" * 32])
        try:
            said = clients.get(f"/v1/jobs/{job}/report.html")
        except httpx.TransportError:
            continue
        assert said.status_code in (200, 404, 503), said.text
        if said.status_code == 200:
            pages.append(said.text)


def clean(config: ServiceConfig) -> None:
    """Cleans up as the only server does at its start."""
    folders = Folders(config.data)
    database = open_database(config, folders)
    lease = Lease(database, folders)
    lease.begin()
    store = JobStore(database, config, folders)
    lease.remove_dead()
    assert store.requeue_lost() == 0
    Janitor(store, folders, config, lease).clean(is_start=True)
    lease.end()
    database.close()


def check_files(config: ServiceConfig, jobs: dict[str, dict[str, Any]]) -> None:
    """Looks that each result is there once and whole, and that nothing else is."""
    folders = Folders(config.data)
    assert not list(folders.jobs.iterdir())
    assert not list(folders.incoming.iterdir())
    assert not list(folders.servers.iterdir())
    assert {path.stem for path in folders.events.iterdir()} == set(jobs)
    failed = {job for job, row in jobs.items() if row["state"] == "failed"}
    assert len(list(folders.models.iterdir())) == len(jobs)
    results = {path.name: list(path.iterdir()) for path in folders.results.iterdir()}
    assert set(results) - failed == set(jobs) - failed
    sizes = set()
    for job, attempts in results.items():
        assert len(attempts) == 1
        if job not in failed:
            sizes.add((attempts[0] / result_name({})).read_bytes())
            json.loads((attempts[0] / REPORT).read_text())
    assert len(sizes) == 1  # The models differ in a comment only.


# Bytes by which the memory of a server may grow by a second wave of jobs.
MAX_GROWTH = 20 << 20


def test_kills_lose_nothing(running: Running, http: httpx.Client) -> None:
    """Twice, so that what the first wave leaves meets the second, in which the servers are not killed."""
    clients = Clients(running.servers, http)
    wave(running, clients, range(JOBS), KILLS)
    memory = [server.memory for server in running.servers]
    wave(running, clients, range(JOBS, 2 * JOBS), 0)
    assert all(server.memory - before < MAX_GROWTH for server, before in zip(running.servers, memory, strict=True))
    jobs = clients.jobs()
    assert {job: row["model_name"] for job, row in jobs.items()} == clients.accepted
    check_results(clients, jobs)
    for server in running.servers:
        assert http.get(f"{server.url}/readyz").json()["status"] == "ready"
        assert server.stop() == 0
    clean(running.config)
    check_files(running.config, jobs)


def wave(running: Running, clients: Clients, numbers: range, kills: int) -> None:
    """Sends jobs from many clients, while processes are killed and the database is restarted."""
    rng = random.Random(numbers.start)
    is_over = threading.Event()
    killed: list[int] = []
    pages: list[str] = []
    with ThreadPoolExecutor(SENDERS + 2) as threads:
        killer = threads.submit(kill_any, running.servers, rng, is_over, killed)
        reader = threads.submit(request_pages, clients, random.Random(8), is_over, pages)
        try:
            senders = [threads.submit(clients.submit, number) for number in numbers]
            for _ in range(kills):
                time.sleep(rng.uniform(0.2, 1.5))
                server = rng.choice(running.servers)
                server.kill()
                server.start()
            if running.database is not None:
                running.database.stop()
                time.sleep(2)
                running.database.start()
            wait(senders)
            wait_for(lambda: killed or killer.done())  # Most jobs still wait for their turn.
        finally:
            is_over.set()
        for work in (killer, reader, *senders):
            work.result()
    assert len(clients.accepted) == numbers.stop
    assert killed
    wait_for(lambda: all(map(is_final, clients.jobs().values())), 600)
    made = [job for job, row in clients.jobs().items() if row["state"] == "succeeded"][:5]
    pages += [clients.get(f"/v1/jobs/{job}/report.html").text for job in made]
    assert all(page.startswith("<!doctype html>") and page.endswith("</html>\n") for page in pages)
    assert all('"after":[{' in page for page in pages[-len(made) :])


def check_results(clients: Clients, jobs: dict[str, dict[str, Any]]) -> None:
    """Looks that each job has its result, or a reason that isn't a bug."""
    for job, row in jobs.items():
        if row["state"] == "failed":
            assert row["problem"]["errors"][0]["code"] in OWN_REASONS, row
        else:
            assert row["state"] == "succeeded"
            assert len(clients.get(f"/v1/jobs/{job}/result").content) == row["summary"]["size"]
    assert sum(row["state"] == "succeeded" for row in jobs.values()) > JOBS


def test_a_full_disk_loses_nothing(tmp_path: Path, http: httpx.Client) -> None:
    """Twice, so that what the first time leaves meets the second."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    config = ServiceConfig(data=disk / "data")
    server = Server(config.data, MIN_FREE=0)
    try:
        server.start()
        clients = Clients([server], http)
        clients.submit(0)
        wait_for(lambda: all(map(is_final, clients.jobs().values())))
        for number in (1, 2):
            fill_disk(disk / "filler", clients, number)
            wait_for(lambda: all(map(is_final, clients.jobs().values())))
            assert clients.get("/readyz").json()["status"] == "ready"
        assert server.stop() == 0
        server.start()
        jobs = clients.jobs()
        assert set(clients.accepted) <= set(jobs)
        for job, row in jobs.items():
            if row["state"] == "failed":
                assert job not in clients.accepted
                assert row["problem"]["errors"][0]["code"] in ("storage-failed", "output-not-writable"), row
        assert server.stop() == 0
        clean(config)
        folders = Folders(config.data)
        assert not list(folders.jobs.iterdir())
        assert not list(folders.incoming.iterdir())
    finally:
        server.end()
        subprocess.run(["umount", "-l", str(disk)], check=False)


def fill_disk(filler: Path, clients: Clients, number: int) -> None:
    """Fills the disk, sends jobs that it has no room for, and then one that it has."""
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    refused = clients.post(f"x{number}")
    assert refused.status_code == 503
    assert "Retry-After" in refused.headers
    assert clients.get("/healthz").status_code == 200
    with filler.open("r+b") as file:  # A little room, which the next job uses up.
        file.truncate(filler.stat().st_size - 24 * 1024)
    with contextlib.suppress(httpx.HTTPError):
        clients.post(f"y{number}")
    filler.unlink()
    clients.submit(number)


def test_a_damaged_database_is_reported_and_not_changed(tmp_path: Path, http: httpx.Client) -> None:
    server = Server(tmp_path / "data")
    server.start()
    Clients([server], http).submit(0)
    assert server.stop() == 0
    database = tmp_path / "data" / "service.db"
    database.write_bytes(b"damaged" * 1000)
    kept = list((tmp_path / "data" / "models").iterdir()) + list((tmp_path / "data" / "results").iterdir())
    assert kept
    said = server.refuse()
    assert "bad-database" in said
    assert database.read_bytes() == b"damaged" * 1000
    assert all(path.exists() for path in kept)


# Runs a module with a clock of which one can't rely on anything.
CLOCK = """
import random, runpy, sys, time
real, shift = time.time, [0.0]
def jumping():
    shift[0] -= random.random() * 100  # It is set back all the time.
    return real() + shift[0]
time.time = jumping
sys.argv = ["tfconvert", *sys.argv[3:]]
runpy.run_module("tfconvert", run_name="__main__", alter_sys=True)
"""


def test_the_clock_may_be_set_back(tmp_path: Path, http: httpx.Client) -> None:
    script = tmp_path / "clock.py"
    script.write_text(CLOCK)
    servers = [Server(tmp_path / "data"), Server(tmp_path / "data")]
    servers[0]._command[1:1] = [str(script)]
    try:
        for server in servers:
            server.start()
        clients = Clients(servers, http)
        for number in range(20):
            clients.submit(number)
        wait_for(lambda: all(map(is_final, clients.jobs().values())))
        time.sleep(8)  # Signs of life come and go.
        for number in range(20, 40):
            clients.submit(number)
        wait_for(lambda: all(map(is_final, clients.jobs().values())))
        jobs = clients.jobs()
        assert len(jobs) == 40
        assert {row["state"] for row in jobs.values()} == {"succeeded"}
        assert {row["attempt"] for row in jobs.values()} == {1}
        assert [server.stop() for server in servers] == [0, 0]
    finally:
        for server in servers:
            server.end()


SLOW = """
import time
from pathlib import Path
from tfconvert.patterns import rule, tf, value

if Path("out").exists():  # Not at the start, when plug-ins are tried.
    time.sleep(60)
PATTERNS = [rule("acme", tf.Elu(value("x")), tf.Relu(value("x")))]
"""


def test_a_stopped_server_gives_its_jobs_back(tmp_path: Path, http: httpx.Client) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text(SLOW)
    data = tmp_path / "data"
    server = Server(data, PATTERNS=slow, GRACE=0.2)
    try:
        server.start()
        clients = Clients([server], http)
        for number in range(3):
            clients.submit(number)
        wait_for(lambda: [job["state"] for job in clients.jobs().values()].count("running") == 2)
        assert server.stop() == 0
        again = Server(data)
        again.start()
        clients = Clients([again], http)
        wait_for(lambda: all(map(is_final, clients.jobs().values())))
        assert {job["state"] for job in clients.jobs().values()} == {"succeeded"}
        again.stop()
    finally:
        server.end()
