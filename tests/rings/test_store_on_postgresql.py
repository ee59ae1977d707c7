"""The tests of jobs, tokens and servers in SQLite also pass in PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.rings.servers import ROOT, postgresql

_FILES = (
    "test_store.py",
    "test_fairness.py",
    "test_janitor.py",
    "test_leases.py",
    "test_tokens.py",
    "test_workers.py",
    "test_database.py::test_the_migrations_make_the_tables",
    "test_database.py::test_queued_jobs_and_tokens_of_the_first_tables_are_kept",
)


def test_the_tests_of_the_database_pass() -> None:
    with postgresql() as url:
        files = [f"tests/service/{name}" for name in _FILES]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
            cwd=ROOT,
            env={**os.environ, "TFCONVERT_TEST_POSTGRESQL": url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
