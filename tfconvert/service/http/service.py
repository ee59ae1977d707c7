"""The parts of a server, from its settings to its workers."""

from __future__ import annotations

from tfconvert.schema.diagnostics import error
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.opening import open_database
from tfconvert.service.folders import Folders
from tfconvert.service.http.metrics import Metrics
from tfconvert.service.http.rates import RateLimiter
from tfconvert.service.store import JobStore
from tfconvert.service.tokens import TokenStore
from tfconvert.service.workers import WorkerPool


class Service:
    """A server without its front.

    Args:
        config: Its settings.

    Attributes:
        folders: Where it keeps files.
        database: Where it keeps the rest.
        store: The jobs.
        tokens: Who may ask.
        workers: What runs jobs.
        metrics: What is measured.
        rates: How many requests there were of each owner.
        uploads: How many uploads of each owner are under way; of the event loop only.
        is_stopping: Whether the server was asked to stop.

    Raises:
        ConversionError: The data folder or the database can't be used.
    """

    def __init__(self, config: ServiceConfig) -> None:
        self.config = config
        self.folders = Folders(config.data)
        try:
            self.folders.create()
        except OSError as problem:
            raise error(
                "storage-failed",
                f"the folder {config.data} can't be used: {problem.strerror}",
                hint="name another one with --data",
            ) from None
        self.database = open_database(config, self.folders)
        self.store = JobStore(self.database, config, self.folders)
        self.tokens = TokenStore(self.database)
        self.workers = WorkerPool(self.store, self.folders, config)
        self.metrics = Metrics(self.store.counts)
        self.rates = RateLimiter()
        self.uploads: dict[str, int] = {}
        self.is_stopping = False
        self._is_started = False

    def start(self) -> None:
        """Starts to run jobs, unless it has done so."""
        if not self._is_started:
            self._is_started = True
            self.workers.start()

    def stop(self, grace: float) -> None:
        """Takes no jobs any more, and ends.

        Args:
            grace: Seconds that running jobs have to end; then they go back to the queue.
        """
        self.is_stopping = True
        self.store.events.wake()
        self.workers.stop(grace)

    def close(self) -> None:
        """Closes the database."""
        self.database.close()

    def check_open(self) -> None:
        """Looks whether jobs are taken.

        Raises:
            ConversionError: The server was asked to stop (`service-stopping`).
        """
        if self.is_stopping:
            raise error("service-stopping", "the server is about to stop", hint="try again in a while")
