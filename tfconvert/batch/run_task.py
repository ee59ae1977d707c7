"""Runs a task in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tfconvert import api
from tfconvert.batch.task import Task
from tfconvert.exporters.output_file import write_whole
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import error
from tfconvert.settings.data import check_data, from_data


def run_task(task: Task, on_stage: Callable[[str], None]) -> dict[str, Any]:
    """Converts a model and writes the files; returns the summary of an `Outcome`.

    Args:
        task: What to convert, and where to.
        on_stage: Called with the name of each stage before it begins.
    """
    check_data(task.settings)
    selection, options = from_data({**task.settings, **({"keep_graphs": True} if task.page else {})})
    source = Source(task.model, **selection)
    source.check_output(task.output, source.files)
    model = api.convert_source(source, options, on_stage)
    on_stage("write")
    model.save(task.output)
    report = model.report
    if task.report:
        _write_json(task.report, {"output_file": task.output, **report.to_dict()})
    if task.page:
        report.save(task.page)
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


def create_folder_of(task: Task) -> None:
    """Creates the directory of a task's result.

    Raises:
        ConversionError: That can't be done (`output-not-writable`).
    """
    try:
        Path(task.output).parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise error("output-not-writable", f"can't create {Path(task.output).parent}: {problem.strerror}") from None
