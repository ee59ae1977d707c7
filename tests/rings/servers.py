"""Servers in processes of their own, to be killed, and a PostgreSQL that they may share."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_USER = "postgres"


class Server:
    """The command `serve`, as often as it has to be started.

    Args:
        data: The data folder.
        database: The URL of the database, empty for SQLite.
        wrapper: What the command is started by.
        **settings: Further settings, in upper case.

    Attributes:
        url: Where it listens.
    """

    def __init__(self, data: Path, database: str = "", wrapper: Sequence[str] = (), **settings: object) -> None:
        self._command = [*wrapper, sys.executable, "-m", "tfconvert", "serve", "--port", "0", "--data", str(data)]
        if database:
            self._command += ["--database", database]
        given = {"WORKERS": 2, "MAX_ACTIVE": 10_000, "PER_MINUTE": 1_000_000, "GRACE": 5, **settings}
        self._environment = {f"TFCONVERT_SERVICE_{name}": str(value) for name, value in given.items()}
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
        """Starts it, and waits until it listens."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **self._environment}
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert "serves on" in line, line
        self.url = line.split()[-1]

    def refuse(self) -> str:
        """Starts it, which must fail; returns what it says."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **self._environment}
        done = subprocess.run(self._command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1, done
        assert "Traceback" not in done.stderr
        return done.stderr

    def kill(self) -> None:
        """Kills it as nothing can that it might handle."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate()

    def stop(self) -> int:
        """Asks it to end; returns its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=60)
        return self._process.returncode

    def end(self) -> None:
        """Kills it if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    @property
    def memory(self) -> int:
        """Bytes of memory of its own process."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def job_processes(self) -> list[int]:
        """Returns the processes that convert now."""
        if self._process is None or self._process.poll() is not None:
            return []
        return [job for zygote in _children(self._process.pid) for job in _children(zygote)]

    def zygotes(self) -> list[int]:
        """Returns the process that others are forked from, if any is now."""
        if self._process is None or self._process.poll() is not None:
            return []
        return [zygote for zygote in _children(self._process.pid) if _children(zygote)]


def _children(process: int) -> list[int]:
    """Returns the children of a process; none once it has ended, which it may do at any moment."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with contextlib.suppress(OSError):
                found += map(int, (thread / "children").read_text().split())
    return found


class PostgreSQL:
    """A PostgreSQL in a folder, without a network.

    Args:
        folder: The folder, which a user other than root can write.
        prefix: What starts a command as that user.

    Attributes:
        url: Its URL.
    """

    def __init__(self, folder: Path, prefix: Sequence[str]) -> None:
        self.url = f"postgresql://tfconvert@/postgres?host={folder}"
        self._folder = folder
        self._prefix = prefix
        self._process: subprocess.Popen[bytes] | None = None

    def initialize(self) -> None:
        """Makes the files."""
        options = ["-D", str(self._folder / "data"), "-U", "tfconvert", "--auth=trust", "-E", "UTF8", "-N"]
        command = [*self._prefix, _tool("initdb"), *options]
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder)

    def start(self) -> None:
        """Starts it, and waits until it accepts connections."""
        socket = self._folder / ".s.PGSQL.5432"
        # The log grows by several starts.
        log = self._folder / "log"
        before = log.stat().st_size if log.exists() else 0
        settings = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={self._folder}", "-c", "fsync=off"]
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [*self._prefix, _tool("postgres"), "-D", str(self._folder / "data"), *settings],
                stdout=file,
                stderr=file,
                cwd=self._folder,
            )
        wait_for(lambda: socket.exists() and "ready to accept connections" in log.read_text()[before:])

    def stop(self) -> None:
        """Ends it at once, and the transactions with it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(60)


@contextlib.contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """A PostgreSQL of its own, which is gone afterwards.

    Yields:
        It, started.
    """
    _tool("initdb")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        server = PostgreSQL(folder, _as_user(folder))
        server.initialize()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _as_user(folder: Path) -> list[str]:
    """Returns what starts a command as somebody else than root, whose server PostgreSQL refuses to be."""
    if os.geteuid():
        return []
    try:
        user = pwd.getpwnam(_USER)
    except KeyError:
        user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _tool(name: str) -> str:
    """Returns the path of a program of PostgreSQL, which Debian keeps where no shell looks."""
    found = shutil.which(name)
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    if found is None and not versions:
        pytest.skip("PostgreSQL is not installed")
    return found or str(versions[-1])


def wait_for(holds: Callable[[], object], seconds: float = 120) -> None:
    """Waits until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
