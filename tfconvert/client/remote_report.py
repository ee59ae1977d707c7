"""The report of a conversion that a server has done, from the data that it sends."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tfconvert.converter.ir.interface import Interface, Tensor
from tfconvert.converter.pipeline.pass_result import Equalization, LayerReport, QuantizationReport
from tfconvert.report.report import Report, StageTime
from tfconvert.schema.diagnostics import Diagnostic, error
from tfconvert.schema.fidelity import Exclusions, Fidelity, LayerFidelity, Limits, OutputError, OutputFidelity
from tfconvert.schema.json_text import restored


def to_report(data: Mapping[str, Any], source: str) -> Report:
    """Returns the report that `Report.to_dict` made data of.

    Args:
        data: The data.
        source: The model as it is called here.

    Raises:
        ConversionError: The data are not those of a report (`server-refused`).
    """
    try:
        return _report(data, source)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise error(
            "server-refused",
            f"what the server sent is not a report: {problem!r}",
            hint="use a server of the same version",
        ) from None


def _report(data: Mapping[str, Any], source: str) -> Report:
    return Report(
        source,
        tuple(StageTime(str(each["name"]), float(each["seconds"])) for each in data["stages"]),
        operations_before=_counter(data["operations_before"]),
        operations_kind=str(data["operations_kind"]),
        operators=_counter(data["operators"]),
        bytes_by_operator=_counter(data["bytes_by_operator"]),
        rewrites={str(name): _counter(counts) for name, counts in data["rewrites"].items()},
        headings={str(name): str(heading) for name, heading in data["headings"].items()},
        frozen_variables=int(data["frozen_variables"]),
        interfaces=tuple(map(_interface, data["functions"])),
        size=int(data["size"]),
        arena=None if data["arena"] is None else int(data["arena"]),
        verification=tuple(OutputError(**restored(each)) for each in data["verification"]),
        notes=tuple(Diagnostic(**each) for each in data["notes"]),
        quantization=_quantization(data["quantization"]) if "quantization" in data else None,
        operator_versions={str(name): int(version) for name, version in data["operator_versions"].items()},
        min_runtime_version=str(data["min_runtime_version"]),
        custom_operators={str(name): int(count) for name, count in data["custom_operators"].items()},
        beside=tuple(map(str, data.get("beside", ()))),
    )


def _counter(counts: Mapping[str, Any]) -> Counter[str]:
    return Counter({str(name): int(count) for name, count in counts.items()})


def _interface(data: Mapping[str, Any]) -> Interface:
    return Interface(
        "main",
        tuple(map(str, data["signatures"])),
        _tensors(data["inputs"], data["arguments"]),
        _tensors(data["outputs"], data["results"]),
        tuple(map(str, data.get("other_signatures", ()))),
    )


def _tensors(types: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> tuple[Tensor, ...]:
    return tuple(
        Tensor(
            str(row["name"]),
            str(types[row["name"]]),
            str(row["dtype"]),
            None if row["shape"] is None else tuple(row["shape"]),
            row.get("scale"),
            row.get("zero_point"),
        )
        for row in rows
    )


def _quantization(data: Mapping[str, Any]) -> QuantizationReport:
    layers = tuple(LayerReport(**{"node": "", "op": "", "form": ""} | restored(each)) for each in data["layers"])
    fidelity = data.get("fidelity")
    equalization = data.get("equalization")
    return QuantizationReport(
        layers,
        None if fidelity is None else _fidelity(fidelity),
        None if equalization is None else Equalization(**restored(equalization)),
    )


def _fidelity(data: Mapping[str, Any]) -> Fidelity:
    layers = tuple(LayerFidelity(**restored(row)) for row in data.get("layers", ()))
    exclusions = None
    if data.get("exclusions") is not None:
        found = restored(data["exclusions"])
        exclusions = Exclusions(**{**found, "exclude": tuple(map(str, found["exclude"]))})
    return Fidelity(
        int(data["samples"]),
        tuple(OutputFidelity(**restored(each)) for each in data["outputs"]),
        tuple((str(name), math.nan if snr is None else float(snr)) for name, snr in data["worst"].items()),
        layers,
        exclusions,
        Limits(float(data["limits"]["snr"]), float(data["limits"]["agreement"])),
        bool(data["is_random"]),
        str(data["witness"]),
    )
