"""Settings of a server: what counts where, and what is no value of a setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service.config import read_config


def test_later_sources_take_precedence(tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    path.write_text('port = 1\nworkers = 2\nseconds = 3\nroots = ["/a,b", "/c"]\nrequire_token = false\nhost = "::1"\n')
    environment = {
        "TFCONVERT_SERVICE_WORKERS": "5",
        "TFCONVERT_SERVICE_REQUIRE_TOKEN": "On",
        "HOME": "/root",
        "TFCONVERT_SERVICE_PATTERNS": "/x.py,,/y.py",
        "TFCONVERT_SERVICE_KEEP_DAYS": "0.5",
    }
    found = read_config(str(path), environment, seconds=7.5, memory=None)
    assert (found.port, found.workers, found.seconds, found.keep_days) == (1, 5, 7.5, 0.5)
    assert (found.roots, found.patterns) == (("/a,b", "/c"), ("/x.py", "/y.py"))
    assert (found.require_token, found.is_local, found.needs_token) == (True, True, True)
    assert read_config(str(path), {}).needs_token is False


@pytest.mark.parametrize(
    "line",
    [
        'port = "many"',
        "port = -1",
        "port = 1.0",
        "workers = true",
        "seconds = true",
        "seconds = nan",
        'seconds = "-1"',
        'keep_days = ""',
        'require_token = "perhaps"',
        "require_token = 2",
        "host = 1",
        "roots = [1]",
        "roots = 1",
    ],
)
def test_invalid_values_are_rejected(line: str, tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    path.write_text(line)
    with pytest.raises(ConversionError, match=f"'{line.split()[0]}' can't be") as caught:
        read_config(str(path), {})
    assert caught.value.code == "bad-config"


@pytest.mark.parametrize("content", [None, b"port = ", b"\xff"])
def test_invalid_settings_files_are_rejected(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConversionError, match=r"can't read .*server\.toml") as caught:
        read_config(str(path), {})
    assert caught.value.code == "bad-config"
