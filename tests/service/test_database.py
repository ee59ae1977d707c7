"""A database is opened if it is whole, up to date, and belongs to the folder; nothing is overwritten otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import bindparam, text

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.connection import Database, migrate, open_database
from tfconvert.service.database.job_rows import new_record, to_values
from tfconvert.service.database.tables import JOBS, METADATA
from tfconvert.service.jobs import Submission
from tfconvert.service.leases import Lease
from tfconvert.service.storage import Folders
from tfconvert.service.store import JobStore
from tfconvert.service.tokens import TokenStore


def refused(config: ServiceConfig, folders: Folders) -> ConversionError:
    with pytest.raises(ConversionError) as caught:
        open_database(config, folders)
    return caught.value


def test_the_migrations_make_the_tables(database: Database) -> None:
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
        if connection.dialect.name == "sqlite":
            assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"


def test_current_tables_are_not_migrated(database: Database) -> None:
    with database.write(is_exclusive=True) as connection:
        connection.execute(text("CREATE TABLE extra (x INTEGER)"))
        migrate(connection)
        assert connection.execute(text("SELECT count(*) FROM extra")).scalar() == 0


def test_queued_jobs_and_tokens_of_the_first_tables_are_kept(
    config: ServiceConfig, folders: Folders, submission: Callable[..., Submission]
) -> None:
    older = Database(config.database or f"sqlite:///{folders.database}")
    with older.write() as connection:
        migrate(connection, "jobs_servers_tokens")
        for number in range(2):
            values = to_values(new_record(f"{number}" * 32, submission(), f"{number}" * 64), 0)
            del values["turn"]
            names = ", ".join(values)
            places = ", ".join(f":{name}" for name in values)
            typed = text(f"INSERT INTO jobs ({names}) VALUES ({places})").bindparams(
                *(bindparam(name, type_=JOBS.c[name].type) for name in values)
            )
            connection.execute(typed, values)
        connection.execute(text("INSERT INTO tokens VALUES ('t', 'ci', 'h', 'user', 3, NULL, 1.0, NULL)"))
    older.close()
    database = open_database(config, folders)
    lease = Lease(database, folders)
    lease.begin()
    store = JobStore(database, config, folders)
    claimed = [store.claim(lease.server) for _ in range(3)]
    assert [job and job.id for job in claimed] == ["0" * 32, "1" * 32, None]
    (token,) = TokenStore(database).list()
    assert (token.name, token.max_active, token.max_running, token.max_bytes) == ("ci", 3, None, None)
    lease.end()
    database.close()


def test_a_database_of_a_newer_version_is_not_changed(
    database: Database, config: ServiceConfig, folders: Folders
) -> None:
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'future'"))
    problem = refused(config, folders)
    assert problem.code == "bad-database"
    assert "another version" in str(problem)
    with database.read() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "future"


@pytest.mark.parametrize("damage", [lambda data: b"x" * 4096 + data[4096:], lambda data: data[:8192] + b"\xff" * 8192])
def test_a_damaged_database_is_not_changed(
    config: ServiceConfig,
    folders: Folders,
    store: JobStore,
    submission: Callable[..., Submission],
    damage: Callable[[bytes], bytes],
) -> None:
    store.submit(submission())
    store.database.close()
    assert not folders.database.with_name("service.db-wal").exists()
    folders.database.write_bytes(damage(folders.database.read_bytes()))
    before = {path: path.read_bytes() for path in folders.data.rglob("*") if path.is_file()}
    problem = refused(config, folders)
    assert problem.code == "bad-database"
    assert "damaged" in str(problem)
    after = {path: path.read_bytes() for path in folders.data.rglob("*") if path.is_file() and path in before}
    assert after == before


def test_files_of_another_database_are_not_removed(
    config: ServiceConfig, folders: Folders, store: JobStore, submission: Callable[..., Submission]
) -> None:
    store.submit(submission())
    store.database.close()
    kept = folders.database.rename(folders.data / "kept")
    assert "don't belong together" in str(refused(config, folders))
    folders.database.unlink()
    kept.rename(folders.database)
    open_database(config, folders).close()


def test_an_empty_folder_takes_any_database(config: ServiceConfig, folders: Folders, database: Database) -> None:
    database.close()
    folders.database.unlink()
    open_database(config, folders).close()
    (folders.data / "installation").unlink()
    open_database(config, folders).close()
    assert (folders.data / "installation").exists()


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("mysql://me:secret@host/x", "bad-config"),
        ("secret", "bad-config"),
        ("sqlite+secret:///x", "bad-config"),
        ("postgresql://me:secret@127.0.0.1:1/x", "database-away"),
        ("sqlite:////none/x", "database-away"),
    ],
)
def test_unusable_urls_are_reported(
    url: str, code: str, config: ServiceConfig, folders: Folders, tmp_path: Path
) -> None:
    problem = refused(config._replace(database=url), folders)
    assert problem.code == code
    assert "secret" not in str(problem)
    assert not (folders.data / "installation").exists()
