"""Runs a task in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tfconvert import api
from tfconvert.api import Model
from tfconvert.batch.result_cache import CachedReport, Conversion, uncached_report
from tfconvert.batch.task import Task
from tfconvert.exporters.c_array import c_array
from tfconvert.exporters.output_file import Parts, is_c_source, only_part, write_parts, write_whole
from tfconvert.importers.source import Source
from tfconvert.report.page import render
from tfconvert.report.report import Report, write_page
from tfconvert.schema.diagnostics import error
from tfconvert.schema.json_text import json_text, record, restored
from tfconvert.settings.data import check_data, from_data


def run_task(task: Task, on_stage: Callable[[str], None]) -> dict[str, Any]:
    """Converts a model and writes the files; returns the summary of an `Outcome`.

    Args:
        task: The conversion.
        on_stage: Called with the name of each stage before it begins.
    """
    check_data(task.settings)
    selection, options = from_data({**task.settings, **({"keep_graphs": True} if task.page else {})})
    if task.array_name and not is_c_source(task.output):
        raise error("wrong-option", "array_name is for C arrays", hint="let the output end in .cc, .c or .h")
    source = Source(task.model, **selection)
    if not task.output:
        _write_page(task, api.convert_source(source, options, on_stage))
        return {}
    source.check_output(task.output, source.files)
    parts: list[str] = []

    def save(model: Model) -> Report:
        on_stage("write")
        parts.extend(model.parts)
        model.save(task.output, array_name=task.array_name or None)
        return model.report._replace(source=task.name) if task.name else model.report

    def write(cached: Parts, size: int) -> None:
        parts.extend(cached)
        if is_c_source(task.output):
            c_array(task.output, task.array_name or None).save(size, only_part(cached))
        else:
            write_parts(task.output, cached)

    report: Report | CachedReport
    if not task.cache_dir:
        report = save(api.convert_source(source, options, on_stage))
    elif task.page:
        report = uncached_report(save(api.convert_source(source, options, on_stage)), "it keeps no graphs for pages")
    else:
        report = Conversion(source, options, on_stage).cached(task.cache_dir, save, write)
    if task.report:
        _write_json(task.report, {"output_file": task.output, **report.to_dict()})
    if task.page and isinstance(report, Report):
        report.save(task.page)
    return summary_of(report, parts)


def _write_page(task: Task, model: Model) -> None:
    """Writes the page of an earlier conversion's report, with the graphs of this one."""
    report = json.loads(Path(task.report).read_text("utf-8"))
    del report["output_file"]
    write_page(task.page, render(report, model.report.graphs))


def summary_of(report: Report | CachedReport, parts: Iterable[str] = ()) -> dict[str, Any]:
    """Returns the summary of an `Outcome`.

    Args:
        report: The report.
        parts: The extensions of the result's files.
    """
    data = report.to_dict()
    beside = list(filter(None, parts))
    fidelity = data.get("quantization", {}).get("fidelity")
    verification = [restored(each)["max_absolute"] for each in data.get("verification", ())]
    verdicts = {each["accelerator"]: each["verdict"] for each in data.get("accelerators", ())}
    summary = {
        "size": data["size"],
        "operators": sum(data["operators"].values()),
        "seconds": data["seconds"],
        "notes": len(data["notes"]),
        "min_runtime_version": data["min_runtime_version"],
        **({"beside": beside} if beside else {}),
        **({"fidelity": _verdict(restored(fidelity))} if fidelity else {}),
        **({"max_absolute": max(verification)} if verification else {}),
        **({"accelerators": verdicts} if verdicts else {}),
        **({"cached": True} if data.get("cached") else {}),
    }
    return record(summary)


def _verdict(fidelity: Mapping[str, Any]) -> dict[str, Any]:
    return record({name: fidelity[name] for name in ("is_low", "snr", "agreement")})


def _write_json(path: str, content: Mapping[str, Any]) -> None:
    text = json_text(content, indent=1).encode() + b"\n"

    def write(stream: BinaryIO) -> None:
        stream.write(text)

    write_whole(path, write)


def make_directory_of(path: str) -> None:
    """Creates the directory of a file to be written.

    Raises:
        ConversionError: That fails (`output-not-writable`).
    """
    directory = Path(path).parent
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise error("output-not-writable", f"can't create {directory}: {problem.strerror}") from None
