"""A database is opened if it is whole, up to date, and belongs to the folder; nothing is overwritten otherwise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Executable, bindparam, select, text

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.connection import Database, _translated, migrate, open_database
from tfconvert.service.database.job_rows import new_record, to_values
from tfconvert.service.database.tables import JOBS, METADATA
from tfconvert.service.jobs import Submission
from tfconvert.service.leases import Lease
from tfconvert.service.storage import Folders
from tfconvert.service.store import JobStore
from tfconvert.service.tokens import TokenStore

ON_SQLITE = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


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


@ON_SQLITE
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


@ON_SQLITE
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


@ON_SQLITE
def test_an_empty_folder_takes_any_database(config: ServiceConfig, folders: Folders, database: Database) -> None:
    database.close()
    folders.database.unlink()
    open_database(config, folders).close()
    (folders.data / "installation").unlink()
    open_database(config, folders).close()
    assert (folders.data / "installation").exists()


@ON_SQLITE
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


@pytest.fixture
def row(submission: Callable[..., Submission]) -> dict[str, Any]:
    """Returns the values of a row of a queued job."""
    return to_values(new_record("0" * 32, submission(), "0" * 64), 0)


def test_numbers_that_json_lacks_are_null_in_every_database(database: Database, row: dict[str, Any]) -> None:
    with database.write() as connection:
        connection.execute(JOBS.insert().values({**row, "summary": {"snr": float("inf"), "all": [float("nan")]}}))
    with database.read() as connection:
        assert connection.execute(select(JOBS.c.summary)).scalar_one() == {"snr": None, "all": [None]}


@ON_SQLITE
def test_numbers_that_json_lacks_are_read_as_null(database: Database, row: dict[str, Any]) -> None:
    with database.write() as connection:
        connection.execute(JOBS.insert().values(row))
        connection.execute(text("""UPDATE jobs SET summary = '{"snr": -Infinity, "all": [NaN, 1]}'"""))
        assert connection.execute(select(JOBS.c.summary)).scalar_one() == {"snr": None, "all": [None, 1]}


def problem_of(act: Callable[[], object]) -> ConversionError:
    with pytest.raises(ConversionError) as caught:
        act()
    return caught.value


def test_a_refused_statement_is_not_a_database_that_is_away(database: Database) -> None:
    def run(statement: Executable) -> None:
        with database.write() as connection:
            connection.execute(statement)

    for statement in (text("SELECT no_such_column FROM jobs"), text("nonsense")):
        problem = problem_of(partial(run, statement))
        assert problem.code == "internal-error"
        assert len(str(problem).splitlines()) == 1


def test_a_locked_table_is_a_database_that_is_away(config: ServiceConfig, database: Database) -> None:
    other = Database(config.database or str(database.engine.url))

    def wait() -> None:
        with _translated(), other.engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA busy_timeout=10")
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            connection.execute(text("SET statement_timeout = 100"))
            connection.execute(text("SELECT count(*) FROM jobs"))

    with database.write() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("LOCK TABLE jobs"))
        assert problem_of(wait).code == "database-away"
    other.close()
