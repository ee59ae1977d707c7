"""A conversion on a server, as the command has it done: the same settings, files, report and errors as here."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from typing import Any, BinaryIO

from tfconvert.converter.batch.places import is_url
from tfconvert.converter.batch.settings import SETTINGS
from tfconvert.converter.cli.server_options import ServerAddress
from tfconvert.converter.client.client import Client, Job
from tfconvert.converter.client.remote_report import to_report
from tfconvert.converter.options import Options
from tfconvert.converter.report import Report
from tfconvert.exporters.output_file import write_whole
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError

OnStage = Callable[[str], None]

_LEFT_OUT = ("keep_graphs", "verify_data", "compare_layers")
"""Settings that the server decides by itself, or that are parts of another."""


def convert(
    source: Source, options: Options, server: ServerAddress, on_stage: OnStage, page: str | None,
    write: Callable[[BinaryIO, int], None],
) -> Report:  # fmt: skip
    """Converts a model on a server and returns the report.

    Args:
        source: The model.
        options: The settings.
        server: The server.
        on_stage: Called with the name of each stage.
        page: Where to write the report as a page, if anywhere.
        write: Writes the result, which it is handed as a file, and its size.

    Raises:
        ConversionError: As on this machine; or the server refuses, or can't be reached.
    """
    with Client(server.url, server.token) as client, tempfile.TemporaryFile() as result:
        on_stage("send")
        model = source.name
        where = {"place": model} if is_url(model) else {"model": model}
        job = _waited(client.submit(**where, **_settings(source, options)), on_stage)
        on_stage("fetch")
        job.save(result)
        size = result.tell()
        result.seek(0)
        write(result, size)
        if page is not None:
            text = job.report_page().encode()
            write_whole(page, lambda stream: stream.writelines([text]))
        return to_report(job.report(), source.name)


def _waited(job: Job, on_stage: OnStage) -> Job:
    """Waits for a job, which is cancelled if the command is stopped meanwhile."""
    is_done = False
    try:
        job.wait(on_stage)
        is_done = True
    except ConversionError:
        is_done = True
        raise
    finally:
        if not is_done:
            with contextlib.suppress(ConversionError):
                job.cancel()
    return job


def _settings(source: Source, options: Options) -> dict[str, Any]:
    """Returns the keywords of `convert` that don't have their defaults."""
    found = {}
    for name in SETTINGS:
        if name in _LEFT_OUT:
            continue
        holder = source if name in Source._fields else options
        value = getattr(holder, name)
        if value != holder._field_defaults[name]:
            found[name] = value
    return found
