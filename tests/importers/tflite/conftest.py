"""Files written by hand, table by table, and the round trip that all files must survive."""

from __future__ import annotations

import pytest

from tests.importers.tflite.written_files import File, RoundTrip, build_file, through


@pytest.fixture
def file() -> File:
    """Returns the function that writes a file, `build_file`."""
    return build_file


@pytest.fixture
def round_trip() -> RoundTrip:
    """Returns a function that imports a file and checks that nothing of it is lost, as a file or as text."""
    return through
