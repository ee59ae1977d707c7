"""A conversion on a server, with the same settings, files, report and errors as on this machine."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from tfconvert.batch.places import is_url
from tfconvert.batch.result_cache import copy_file
from tfconvert.cli.output_options import ServerAddress
from tfconvert.client.client import Client, Job
from tfconvert.client.remote_report import to_report
from tfconvert.converter.targets.output_form import Form
from tfconvert.exporters.output_file import Parts, places_of, write_whole
from tfconvert.importers.source import Source
from tfconvert.report.report import Report
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.data import to_data
from tfconvert.settings.options import Options

OnStage = Callable[[str], None]


def convert(
    source: Source,
    options: Options,
    server: ServerAddress,
    on_stage: OnStage,
    page: str | None,
    write: Callable[[Parts, int], None],
) -> Report:
    """Converts a model on a server and returns the report.

    Args:
        source: The model.
        options: The settings.
        server: The server.
        on_stage: Called with the name of each stage.
        page: Where to write the report as a page, if anywhere.
        write: Writes the files of the result, of which it is also given the size of the result's own.
    """
    # The server decides by itself whether to keep graphs.
    settings = to_data(source, replace(options, keep_graphs=False))
    form = Form.of(options.target)
    with Client(server.url, server.token) as client, tempfile.TemporaryDirectory(prefix="tfconvert-") as folder:
        on_stage("send")
        model = source.name
        where = {"place": model} if is_url(model) else {"model": model}
        job = _waited(client.submit(**where, **settings), on_stage)
        on_stage("fetch")
        result = Path(folder, f"model{form.ending}")
        job.save(result)
        endings = [*job.info.summary.get("beside", ()), ""]
        files = dict(zip(endings, places_of(result, endings), strict=True))
        write({ending: partial(copy_file, file) for ending, file in files.items()}, result.stat().st_size)
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
