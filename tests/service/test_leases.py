"""Servers that have died are found dead, and no others, whatever the clock on the wall says."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import select, update

from tfconvert.service import leases
from tfconvert.service.database.connection import Database
from tfconvert.service.database.tables import SERVERS
from tfconvert.service.leases import TIMEOUT_SECONDS, Lease
from tfconvert.service.storage import Folders

HOLDER = """
import sys
from pathlib import Path
from tfconvert.service.database.connection import Database
from tfconvert.service.storage import Folders
from tfconvert.service.leases import Lease
folders = Folders(Path(sys.argv[1]))
lease = Lease(Database(sys.argv[2]), folders)
lease.begin()
print(lease.server, flush=True)
sys.stdin.read()
"""


class Observer(Lease):
    """A server with a clock of its own."""

    def __init__(self, database: Database, folders: Folders) -> None:
        super().__init__(database, folders, lambda: self.now)
        self.now = 0.0


@pytest.fixture
def observer(database: Database, folders: Folders) -> Observer:
    return Observer(database, folders)


def elsewhere(database: Database) -> None:
    with database.write() as connection:
        connection.execute(update(SERVERS).values(host="elsewhere"))


def test_a_killed_server_is_dead_at_once(observer: Observer, folders: Folders, database: Database) -> None:
    url = database.engine.url.render_as_string(hide_password=False)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folders.data), url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    ) as holder:
        assert holder.stdout is not None
        server = holder.stdout.readline().strip()
        assert observer.remove_dead() == set()
        assert not observer.is_alone()
        holder.kill()
        holder.wait()
    assert observer.remove_dead() == {server}
    assert observer.is_alone()
    assert not folders.lock(server).exists()


def test_elsewhere_only_the_beat_counts(
    observer: Observer, lease: Lease, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere(database)
    for clock in (0.0, 1e10, -1e10):
        monkeypatch.setattr(time, "time", lambda clock=clock: clock)
        assert observer.remove_dead() == set()
        observer.now += TIMEOUT_SECONDS - 1
        assert observer.remove_dead() == set()
        lease.beat()
    observer.now += TIMEOUT_SECONDS - 1
    assert observer.remove_dead() == set()
    observer.now += TIMEOUT_SECONDS - 1
    assert observer.remove_dead() == set()
    observer.now += 1
    assert observer.remove_dead() == {lease.server}
    assert observer.remove_dead() == set()


def test_a_server_that_was_declared_dead_comes_back(observer: Observer, lease: Lease, database: Database) -> None:
    elsewhere(database)
    observer.remove_dead()
    observer.now += TIMEOUT_SECONDS
    assert observer.remove_dead() == {lease.server}
    lease.beat()
    assert not observer.is_alone()
    assert observer.remove_dead() == set()


def test_a_sign_of_life_in_the_last_moment_counts(
    observer: Observer, lease: Lease, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere(database)
    observer.remove_dead()
    observer.now += TIMEOUT_SECONDS
    bury = observer._remove

    def late(server: str, beat: int) -> bool:
        lease.beat()
        return bury(server, beat)

    monkeypatch.setattr(observer, "_remove", late)
    assert observer.remove_dead() == set()


def test_a_missing_lock_proves_nothing(observer: Observer, lease: Lease, folders: Folders) -> None:
    folders.lock(lease.server).unlink()
    assert observer.remove_dead() == set()


def test_a_server_that_ends_is_removed(database: Database, folders: Folders) -> None:
    lease = Lease(database, folders)
    lease.begin()
    lease.end()
    with database.read() as connection:
        assert connection.execute(select(SERVERS)).all() == []
    assert list(folders.servers.iterdir()) == []


def test_a_host_without_a_boot_id_has_a_name(tmp_path: Path) -> None:
    known = leases.host_id()
    assert leases.host_id(tmp_path / "none") not in ("", known)
