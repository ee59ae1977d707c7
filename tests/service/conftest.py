"""A service's store in a folder of its own, without a server."""

from __future__ import annotations

import hashlib
import io
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url, text

from tests.batch.models import RELU
from tests.rings.servers import postgresql
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.connection import Database, open_database
from tfconvert.service.jobs import Submission
from tfconvert.service.leases import Lease
from tfconvert.service.storage import Folders
from tfconvert.service.store import JobStore


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """Returns the URL of a PostgreSQL, which is started once."""
    pytest.importorskip("psycopg")
    with postgresql() as server:
        yield server.url


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> str:
    """Returns the URL of an empty database of each engine; an empty string stands for the file of SQLite."""
    if request.param == "sqlite":
        return ""
    server: str = request.getfixturevalue("postgresql_server")
    return _new_database(server)


@pytest.fixture
def config(tmp_path: Path, engine: str) -> ServiceConfig:
    return ServiceConfig(tmp_path / "data", engine, workers=2, max_active=8, max_queued=10, seconds=60)


def _new_database(server: str) -> str:
    """Returns the URL of a new database of a PostgreSQL."""
    name = f"test_{os.urandom(8).hex()}"
    engine = create_engine(make_url(server).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return make_url(server).set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def folders(config: ServiceConfig) -> Folders:
    folders = Folders(config.data)
    folders.create()
    return folders


@pytest.fixture
def database(config: ServiceConfig, folders: Folders) -> Iterator[Database]:
    database = open_database(config, folders)
    yield database
    database.close()


@pytest.fixture
def store(database: Database, config: ServiceConfig, folders: Folders) -> JobStore:
    return JobStore(database, config, folders)


@pytest.fixture
def lease(database: Database, folders: Folders) -> Iterator[Lease]:
    lease = Lease(database, folders)
    lease.begin()
    yield lease
    lease.end()


@pytest.fixture
def submission(folders: Folders) -> Callable[..., Submission]:
    """Returns a function that uploads a text and returns the submission of a job for it."""

    def make(text: str = RELU, **fields: Any) -> Submission:
        digest = hashlib.sha256(text.encode()).hexdigest()
        folders.model(digest).write_text(text)
        given = {"owner": "me", "settings": {}, "model_name": "relu.mlir", "model_sha256": digest, "size_in": len(text)}
        return Submission(**{**given, **fields})

    return make


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Returns what the server logs."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("tfconvert.service")
    logger.addHandler(handler)
    yield stream
    logger.removeHandler(handler)
