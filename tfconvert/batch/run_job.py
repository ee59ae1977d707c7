"""Runs a job in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tfconvert import api
from tfconvert.batch.job import Job
from tfconvert.exporters.output_file import write_whole
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import error
from tfconvert.settings.data import check_data, from_data


def run_job(job: Job, on_stage: Callable[[str], None]) -> dict[str, Any]:
    """Converts a model and writes the files; returns the summary of an `Ending`.

    Args:
        job: What to convert, and where to.
        on_stage: Called with the name of each stage before it begins.
    """
    check_data(job.settings)
    selection, options = from_data({**job.settings, **({"keep_graphs": True} if job.page else {})})
    source = Source(job.model, **selection)
    source.check_output(job.output, source.files)
    model = api.convert_source(source, options, on_stage)
    on_stage("write")
    model.save(job.output)
    report = model.report
    if job.report:
        _write_json(job.report, {"output_file": job.output, **report.to_dict()})
    if job.page:
        report.save(job.page)
    beside = list(filter(None, model.parts))
    fidelity = report.quantization.fidelity if report.quantization is not None else None
    return {
        "size": report.size,
        "operators": sum(report.operators.values()),
        "seconds": round(report.seconds, 6),
        "notes": len(report.notes),
        "min_runtime_version": report.min_runtime_version,
        **({"beside": beside} if beside else {}),
        **({"fidelity": fidelity.summary()} if fidelity is not None else {}),
    }


def _write_json(path: str, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, indent=1).encode() + b"\n"

    def write(stream: BinaryIO) -> None:
        stream.write(text)

    write_whole(path, write)


def check_place(job: Job) -> None:
    """Creates the folder of a job's result.

    Raises:
        ConversionError: That can't be done (`output-not-writable`).
    """
    try:
        Path(job.output).parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise error("output-not-writable", f"can't create {Path(job.output).parent}: {problem.strerror}") from None
