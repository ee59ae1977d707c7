"""A server: runs the application on a socket until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from tfconvert.converter.process import sandbox
from tfconvert.schema.diagnostics import error
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.connection import open_database
from tfconvert.service.http.app import create_app
from tfconvert.service.http.protocol import Connections, Protocol
from tfconvert.service.http.service import Service
from tfconvert.service.storage import Folders
from tfconvert.service.tokens import Role, TokenStore

_LOG = logging.getLogger("tfconvert.service")

# The name of the token that is created at the first start.
_FIRST_TOKEN = "admin"

# Maximum number of connections.
_MAX_CONNECTIONS = 1000

# Maximum number of connections in the accept queue.
_BACKLOG = 512

# Number of files that may be open: connections, files that are sent and received, connections of the database.
_MAX_FILES = 4096

# Timeout in seconds for connections after the last job.
_SHUTDOWN_SECONDS = 2


class _Server(uvicorn.Server):
    """Answers requests until running jobs have ended; a second signal ends it at once."""

    def __init__(self, config: uvicorn.Config, service: Service, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service = service
        self._on_ready = on_ready
        self._stopping: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to run jobs and to serve requests, after installing signal handlers."""
        # An error during the application's startup would be shown as a traceback.
        await asyncio.to_thread(self._service.start)
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._service.is_stopping:
            self.should_exit = True
        self._service.is_stopping = True

    async def on_tick(self, counter: int) -> bool:
        """Returns whether to end."""
        if self._service.is_stopping and self._stopping is None:
            self._stopping = asyncio.create_task(asyncio.to_thread(self._service.stop, self._service.config.grace))
        return await super().on_tick(counter) or (self._stopping is not None and self._stopping.done())


def serve(config: ServiceConfig, on_ready: Callable[[str], None], *, verbose: bool = False) -> None:
    """Runs a server until a signal ends it.

    Args:
        config: Its settings.
        on_ready: Called with its URL once it listens.
        verbose: Whether requests are logged on the error stream.
    """
    prepare_access(config)
    prepare_sandbox(config)
    _allow_files()
    listener = _listen(config)
    with listener:
        app = create_app(config)
        service = app.state.service
        server = _Server(
            uvicorn_config(app, config, verbose=verbose), service, lambda: on_ready(_url(config, listener))
        )
        server.run([listener])


def uvicorn_config(app: FastAPI, config: ServiceConfig, *, verbose: bool = False) -> uvicorn.Config:
    """Returns how an application is served.

    Args:
        app: The application.
        config: The settings of its server.
        verbose: Whether requests are logged on the error stream.
    """
    limits = Connections(_MAX_CONNECTIONS, config.per_address)
    return uvicorn.Config(
        app,
        http=partial(Protocol, limits=limits, idle=config.idle),  # type: ignore[arg-type]
        log_level="info" if verbose else "warning",
        access_log=verbose,
        server_header=False,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        lifespan="on",
        ws="none",
        proxy_headers=False,
    )


def _allow_files() -> None:
    """Raises the limit of open files, which is often too low for the connections; each job has a limit of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_FILES if hard == resource.RLIM_INFINITY else min(_MAX_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def prepare_access(config: ServiceConfig) -> None:
    """Checks that a server that other machines can reach has tokens and requires them.

    Args:
        config: Its settings.

    Raises:
        ConversionError: Anyone could use it (`bad-config`), or no one (`no-token`).
    """
    if not config.is_local and not config.needs_token:
        raise error(
            "bad-config",
            f"'require_token' can't be off on {config.host}: others could use the server",
            hint="listen on 127.0.0.1, or create a token: tfconvert serve token create NAME",
        )
    if not config.needs_token and not config.admin_token:
        return
    tokens = open_tokens(config)
    if any(token.revoked is None for token in tokens.list()):
        return
    if config.admin_token:
        _write_first(tokens, Path(config.admin_token))
        return
    raise error(
        "no-token",
        f"nobody has a token for the server on {config.host}",
        hint="create one with the same --data or --database: tfconvert serve token create NAME --role admin, "
        "or name a file for it: --admin-token FILE",
    )


def prepare_sandbox(config: ServiceConfig) -> None:
    """Checks that jobs can be confined, and logs how, or what can't be.

    Args:
        config: Its settings.

    Raises:
        ConversionError: Something can't be confined, and the settings require it (`no-sandbox`).
    """
    if not config.workers:
        return
    if sandbox.is_available():
        _LOG.info("jobs are confined: %s", "; ".join(f"{name} by {means}" for name, means in sandbox.parts().items()))
        return
    text = sandbox.problem()
    if config.require_sandbox:
        raise error("no-sandbox", f"jobs can't be confined here: {text}")
    _LOG.warning("jobs are not wholly confined here: %s", text)


def open_tokens(config: ServiceConfig, *, creates: bool = True) -> TokenStore:
    """Returns the tokens of a server, which need not run.

    Args:
        config: Its settings.
        creates: Whether a data directory that was never used is created.

    Raises:
        ConversionError: The data directory or the database can't be used, or was never used (`bad-config`).
    """
    folders = Folders(config.data)
    if not creates and not folders.installation.exists():
        hint = "name the one that the server uses: --data DIRECTORY"
        raise error("bad-config", f"{folders.data} is not the data directory of a server", hint=hint)
    folders.create()
    return TokenStore(open_database(config, folders))


def _write_first(tokens: TokenStore, path: Path) -> None:
    """Creates an administrator's token and writes it to a file that only this user can read."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as problem:
        raise error("output-not-writable", f"can't create {path}: {problem.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        token, _ = tokens.create(_FIRST_TOKEN, Role.ADMIN)
        file.write(f"{token}\n")


def _listen(config: ServiceConfig) -> socket.socket:
    try:
        found = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, OverflowError, UnicodeError) as problem:
        raise error("address-in-use", f"can't listen on {config.host}:{config.port}: {problem}") from None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as problem:
        listener.close()
        reason = problem.strerror if isinstance(problem, OSError) else problem
        raise error(
            "address-in-use",
            f"can't listen on {config.host}:{config.port}: {reason}",
            hint="end what listens there, or choose another port with --port",
        ) from None
    listener.set_inheritable(False)
    return listener


def _url(config: ServiceConfig, listener: socket.socket) -> str:
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"http://{host}:{listener.getsockname()[1]}"
