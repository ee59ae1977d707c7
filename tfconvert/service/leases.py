"""Leases of the servers: jobs of those that are dead go back to the queue. The wall clock plays no part.

A server keeps a file locked, which tells others on the same machine at once when it has died, and counts up a number
in the database: one whose number has stood still for long enough, by the observer's own monotonic clock, is dead.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import delete, insert, select, update

from tfconvert.service.database.connection import Database
from tfconvert.service.database.tables import SERVERS
from tfconvert.service.folders import Folders
from tfconvert.service.result_files import remove
from tfconvert.service.storage import storing

BEAT = 3.0
"""Seconds between two signs of life."""

PATIENCE = 15.0
"""Seconds without a sign of life after which a server is dead."""

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Lease:
    """The life of this server as others see it, and that of others as this one does.

    Args:
        database: The database.
        folders: The data folder.
        monotonic: The clock.

    Attributes:
        server: This server's ID.
    """

    def __init__(self, database: Database, folders: Folders, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.server = secrets.token_hex(16)
        self._database = database
        self._folders = folders
        self._monotonic = monotonic
        self._descriptor = -1
        self._seen: dict[str, tuple[int, float]] = {}

    def begin(self) -> None:
        """Enters this server among those that live."""
        path = self._folders.lock(self.server)
        part = path.with_suffix(".part")
        with storing():
            # It has its name once it is locked: nobody may find it free.
            self._descriptor = os.open(part, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            part.rename(path)
        self.beat()

    def beat(self) -> None:
        """Gives a sign of life; a server that was taken for dead is among the living again."""
        own = SERVERS.c.id == self.server
        with self._database.write() as connection:
            if not connection.execute(update(SERVERS).where(own).values(beat=SERVERS.c.beat + 1)).rowcount:
                row = {"id": self.server, "host": _host(), "pid": os.getpid(), "beat": 1, "started": time.time()}
                connection.execute(insert(SERVERS).values(row))

    def bury_dead(self) -> set[str]:
        """Removes servers that are dead, and returns which: their jobs are lost."""
        now = self._monotonic()
        with self._database.read() as connection:
            rows = connection.execute(select(SERVERS.c.id, SERVERS.c.host, SERVERS.c.beat)).all()
        seen, self._seen = self._seen, {}
        dead: dict[str, int] = {}
        for server, host, beat in rows:
            if server == self.server:
                continue
            last, since = seen.get(server, (beat, now))
            if beat != last:
                since = now
            self._seen[server] = (beat, since)
            if now - since >= PATIENCE or (host == _host() and self._is_free(server)):
                dead[server] = beat
        return {server for server, beat in dead.items() if self._bury(server, beat)}

    def is_alone(self) -> bool:
        """Returns whether no other server is known to live."""
        with self._database.read() as connection:
            return connection.execute(select(SERVERS.c.id).where(SERVERS.c.id != self.server)).first() is None

    def end(self) -> None:
        """Leaves the living: what this server has not given back is lost."""
        remove(self._folders.lock(self.server))
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        with self._database.write() as connection:
            connection.execute(delete(SERVERS).where(SERVERS.c.id == self.server))

    def _bury(self, server: str, beat: int) -> bool:
        """Removes a server unless it has given a sign of life in this moment; returns whether it did."""
        with self._database.write() as connection:
            is_it = (SERVERS.c.id == server, SERVERS.c.beat == beat)
            is_gone = connection.execute(delete(SERVERS).where(*is_it)).rowcount > 0
        self._seen.pop(server, None)
        return is_gone

    def _is_free(self, server: str) -> bool:
        """Returns whether nobody holds a server's lock; one that isn't in this folder tells nothing."""
        path = self._folders.lock(server)
        try:
            descriptor = os.open(path, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        remove(path)
        return True


def _host() -> str:
    """Returns what only processes under the same kernel have in common; locks of files tell nothing to others."""
    try:
        return _BOOT.read_text("ascii").strip()
    except OSError:
        return socket.gethostname()[:64]
