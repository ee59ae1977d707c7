"""A server's settings: defaults, a file, the environment, the command line; later sources take precedence."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from tfconvert.batch.task import TaskLimits
from tfconvert.converter.process import sandbox
from tfconvert.importers.archive import ArchiveLimits
from tfconvert.schema.diagnostics import error

_PREFIX = "TFCONVERT_SERVICE_"
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


def _default_data() -> Path:
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "tfconvert" / "service"


class ServiceConfig(NamedTuple):
    """The settings of a server.

    Attributes:
        data: The data directory.
        database: A SQLAlchemy URL; empty for a SQLite file in the data directory.
        host: The address to listen on.
        port: The port to listen on.
        workers: The number of concurrent jobs; 0 to run none on this server.
        seconds: Maximum wall time of a job, as in `TaskLimits`; 0 for no limit, as for the next five.
        page_seconds: Maximum wall time to make the page of a report when it is first requested; without the graphs
            if they take longer.
        memory: Maximum memory of a job's processes together, in bytes.
        files: Maximum number of open files of a job.
        output: Maximum size of all files that a job writes, its temporary ones included, in bytes.
        processes: Maximum number of processes of a job.
        max_upload: Maximum bytes of an upload.
        max_unpacked: Maximum bytes of the files in an archive.
        max_entries: Maximum number of files and directories in an archive.
        max_ratio: Maximum size of the files in an archive, relative to the archive.
        max_queued: Maximum number of queued jobs, of all owners.
        max_active: Maximum number of queued and running jobs of an owner.
        max_running: Maximum number of running jobs of an owner; 0 for no limit.
        max_bytes: Maximum sum of the uploads of an owner's jobs, in bytes, except for those with a cached result; 0 for
            no limit.
        per_minute: Maximum number of requests of an owner in a minute.
        per_address: Maximum number of connections of an address; 0 for no limit.
        min_free: Bytes of the disk that must stay free: with less, the server is not ready and takes no uploads.
        keep_days: Days after which ended jobs are deleted; 0 to keep them.
        roots: Paths and URLs under which requests may name models.
        patterns: Files of patterns for every job, or names of entry points of installed packages.
        composites: Files of composite functions for every job, or such names.
        op_defs: A file of the OpDefs of custom ops, or empty.
        keras: Whether Keras' own files are accepted, which needs TensorFlow; by default if jobs that load them can be
            confined to a sandbox.
        require_sandbox: Whether the server starts only where every job can be wholly confined to the sandbox.
        require_token: Whether requests need a token; by default if other machines can reach the address.
        attempts: Maximum number of attempts at a job if servers die.
        grace: Grace period in seconds for running jobs when the server stops.
        idle: Timeout in seconds for clients that send no request, are silent in the middle of one, or don't read.
        admin_token: A file for the token of an administrator, which is created if missing; empty for no such
            file.
    """

    data: Path = Path()
    database: str = ""
    host: str = "127.0.0.1"
    port: int = 8750
    workers: int = 1
    seconds: float = 600.0
    page_seconds: float = 300.0
    memory: int = 8 << 30
    files: int = 256
    output: int = 8 << 30
    processes: int = 64
    max_upload: int = 2 << 30
    max_unpacked: int = 8 << 30
    max_entries: int = 10_000
    max_ratio: int = 200
    max_queued: int = 1000
    max_active: int = 100
    max_running: int = 0
    max_bytes: int = 100 << 30
    per_minute: int = 600
    per_address: int = 256
    min_free: int = 64 << 20
    keep_days: float = 30.0
    roots: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    composites: tuple[str, ...] = ()
    op_defs: str = ""
    keras: bool | None = None
    require_sandbox: bool = False
    require_token: bool | None = None
    attempts: int = 3
    grace: float = 30.0
    idle: float = 30.0
    admin_token: str = ""

    @property
    def limits(self) -> TaskLimits:
        """The limits of a job."""
        return TaskLimits(self.seconds, self.memory, self.files, self.output, self.processes)

    @property
    def page_limits(self) -> TaskLimits:
        """The limits of making the page of a report."""
        return self.limits._replace(seconds=self.page_seconds)

    @property
    def archive_limits(self) -> ArchiveLimits:
        """The limits of unpacking an upload."""
        return ArchiveLimits(self.max_unpacked, self.max_entries, self.max_ratio, self.seconds, self.takes_keras)

    @property
    def takes_keras(self) -> bool:
        """Whether Keras' own files can be converted."""
        return _has_tensorflow() and (sandbox.is_available() if self.keras is None else self.keras)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in ("127.0.0.1", "::1", "localhost")

    @property
    def needs_token(self) -> bool:
        """Whether requests need a token."""
        return not self.is_local if self.require_token is None else self.require_token


@cache
def _has_tensorflow() -> bool:
    return find_spec("tensorflow") is not None


def read_config(path: str = "", environment: Mapping[str, str] = os.environ, **given: Any) -> ServiceConfig:
    """Returns the settings of a server.

    Args:
        path: A TOML file of settings, or empty.
        environment: The environment variables; those with the prefix `TFCONVERT_SERVICE_` are settings, with commas
            between the items of lists.
        **given: Settings of the command line; `None` if not given.
    """
    values: dict[str, Any] = {"data": _default_data(), "workers": os.cpu_count() or 1}
    if path:
        values.update((name, _typed(name, value, path)) for name, value in _content(path).items())
    for variable, text in environment.items():
        if variable.startswith(_PREFIX):
            name = variable.removeprefix(_PREFIX).lower()
            values[name] = _typed(name, text, f"the variable {variable}")
    values.update((name, _typed(name, value, "the command line")) for name, value in given.items() if value is not None)
    return ServiceConfig(**values)


def _content(path: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise error("bad-config", f"can't read {path}: {problem}") from None


def _typed(name: str, value: Any, where: str) -> Any:
    convert = _TYPES.get(name)
    if convert is None:
        raise error("bad-config", f"{where}: the setting {name!r} is not known", hint=f"known are: {', '.join(_TYPES)}")
    try:
        return convert(value)
    except (TypeError, ValueError):
        raise error("bad-config", f"{where}: {name!r} can't be {value!r}") from None


def _is_on(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).lower()
    if text not in _TRUE + _FALSE:
        raise ValueError(value)
    return text in _TRUE


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part for part in value.split(",") if part)
    return tuple(map(_text, value))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool | float) or int(value) < 0:
        raise ValueError(value)
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not float(value) >= 0:
        raise ValueError(value)
    return float(value)


# How values are converted, by the type of the default.
_BY_TYPE: Mapping[type, Callable[[Any], Any]] = {
    str: _text,
    int: _whole,
    float: _number,
    tuple: _texts,
    bool: _is_on,
    type(None): _is_on,
}
_TYPES: Mapping[str, Callable[[Any], Any]] = {
    name: _BY_TYPE.get(type(default), Path) for name, default in ServiceConfig._field_defaults.items()
}
