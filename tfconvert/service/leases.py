"""Leases of the servers: jobs of dead servers go back to the queue. The wall clock is not used.

A server keeps a file locked, so that others on the same machine notice at once when it dies, and increments a number in
the database: a server whose number has not changed for long enough, by the observer's monotonic clock, is dead.
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
from tfconvert.service.storage import Folders, remove, storing

HEARTBEAT_SECONDS = 3.0
"""Seconds between two heartbeats."""

TIMEOUT_SECONDS = 15.0
"""Seconds without a heartbeat after which a server counts as dead."""

# The ID that a Linux kernel gives itself when it starts.
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Lease:
    """The lease of this server, and its observations of other leases.

    Args:
        database: The database.
        folders: The data directory.
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
        """Registers this server."""
        path = self._folders.lock(self.server)
        part = path.with_suffix(".part")
        with storing():
            # Locked before it gets its name, so that no server finds it unlocked.
            self._descriptor = os.open(part, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            part.rename(path)
        self.beat()

    def beat(self) -> None:
        """Sends a heartbeat; registers a server again that was declared dead."""
        own = SERVERS.c.id == self.server
        with self._database.write() as connection:
            if not connection.execute(update(SERVERS).where(own).values(beat=SERVERS.c.beat + 1)).rowcount:
                row = {"id": self.server, "host": host_id(), "pid": os.getpid(), "beat": 1, "started": time.time()}
                connection.execute(insert(SERVERS).values(row))

    def remove_dead(self) -> set[str]:
        """Removes dead servers, and returns their IDs: their jobs are lost."""
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
            if now - since >= TIMEOUT_SECONDS or (host == host_id() and self._is_free(server)):
                dead[server] = beat
        return {server for server, beat in dead.items() if self._remove(server, beat)}

    def is_alone(self) -> bool:
        """Returns whether no other server is registered."""
        with self._database.read() as connection:
            return connection.execute(select(SERVERS.c.id).where(SERVERS.c.id != self.server)).first() is None

    def end(self) -> None:
        """Unregisters this server: jobs that it has not given back are lost."""
        remove(self._folders.lock(self.server))
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        with self._database.write() as connection:
            connection.execute(delete(SERVERS).where(SERVERS.c.id == self.server))

    def _remove(self, server: str, beat: int) -> bool:
        """Removes a server unless it has just sent a heartbeat; returns whether it was removed."""
        with self._database.write() as connection:
            is_it = (SERVERS.c.id == server, SERVERS.c.beat == beat)
            is_gone = connection.execute(delete(SERVERS).where(*is_it)).rowcount > 0
        self._seen.pop(server, None)
        return is_gone

    def _is_free(self, server: str) -> bool:
        """Returns whether a server's lock is free; `False` if its file is missing."""
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


def host_id(boot_id: Path = _BOOT_ID) -> str:
    """Returns a name that is equal for processes under the same kernel, which see each other's file locks.

    Args:
        boot_id: The file with the kernel's own ID.
    """
    try:
        return boot_id.read_text("ascii").strip()
    except OSError:
        return socket.gethostname()[:64]
