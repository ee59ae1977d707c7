"""The fields of the page's form, derived from the table of settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfconvert.settings.data import SETTINGS
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.selection import Selection
from tfconvert.settings.setting import Setting, settings_of
from tfconvert.settings.targets import CLASSES, Iree, LiteRT, StableHLO
from tfconvert.settings.verify_options import Verify

# What fields are called where the setting's name isn't plain enough.
_LABELS: Mapping[str, str] = {
    "accelerator": "Accelerators",
    "allow_custom_ops": "Custom ops",
    "allow_flex": "Select TF ops",
    "batch": "Batch size",
    "bias": "Type of biases",
    "compare_layers": "Compare layer by layer",
    "cpu": "Processor",
    "exclude": "Layers that stay float",
    "flex_ops": "Further Select TF ops",
    "float_ends": "Float inputs and outputs",
    "input_shapes": "Input shapes",
    "io": "Type of inputs and outputs",
    "keep_mlir": "Keep the StableHLO text",
    "min_agreement": "Minimum agreement",
    "min_snr": "Minimum signal-to-noise ratio",
    "mlir_artifact": "Portable artifact",
    "mlir_state": "Variables that change",
    "mlir_weights": "Place of weights",
    "mode": "Quantization",
    "names": "Names of tensors",
    "on": "Run on",
    "order": "Order of inputs and outputs",
    "per_channel": "Scales of weights",
    "quantize": "Quantization",
    "recurrent": "Recurrent layers",
    "rename": "New names",
    "samples": "Calibration samples",
    "search_seconds": "Search time",
    "signatures": "Signatures",
    "slow_integers": "Integers even where slower",
    "strict": "Integers only",
    "target_runtime": "Oldest runtime",
    "trained": "Trained for quantization",
    "trained_only": "Only what was trained for quantization",
    "weights": "Bits of weights",
}

# Settings that the form has fields of its own for, and those that are only for the settings as JSON.
_OWN = ("target", "quantize", "verify", "batch", "mode", "trained", "keep_graphs")

_SENTENCE = re.compile(r"(?<=[.;]) ")


def fields() -> Mapping[str, Any]:
    """Returns what the page makes its form of, as plain data.

    Fields are in groups; a group belongs to a target, or to a setting whose object the fields are in. Labels are by
    settings, and by the command's flags, which hints name.
    """
    groups: Sequence[tuple[str, Any, Mapping[str, str]]] = (
        ("Model", Selection, {}),
        ("LiteRT file", LiteRT, {"target": LiteRT.name}),
        ("StableHLO", StableHLO, {"target": StableHLO.name}),
        ("IREE", Iree, {"target": Iree.name, "inside": Iree.name}),
        ("Quantization", Quantize, {"inside": "quantize"}),
        ("Verification", Verify, {"inside": "verify"}),
        ("Checks", Options, {}),
    )
    rows = [row for _, cls, _ in groups for row in settings_of(cls).values()]
    return {
        "targets": list(CLASSES),
        "labels": {row.data: _label(row) for row in rows},
        "flags": {row.flag: _label(row) for row in rows if row.flag},
        "groups": [
            {"title": title, **where, "fields": list(_fields(settings_of(cls).values(), is_inside="inside" in where))}
            for title, cls, where in groups
        ],
    }


def _fields(rows: Iterable[Setting], *, is_inside: bool) -> Iterable[Mapping[str, Any]]:
    for row in rows:
        schema, is_path = row.client_schema, row.is_path and not row.own_values
        kind = _kind(schema)
        if is_path or row.stays or not kind or row.data in _OWN or not (is_inside or row.data in SETTINGS):
            continue
        choices = _first(schema).get("enum") or schema.get("items", {}).get("enum") or ()
        yield {
            "name": row.data,
            "label": _label(row),
            "kind": kind,
            "text": _text(row),
            "example": "" if choices else row.example,
            "is_common": row.is_common,
            "default": row.default if isinstance(row.default, bool | int | float | str) else None,
            **({"choices": list(choices)} if choices else {}),
            **({"minimum": schema["minimum"]} if "minimum" in schema else {}),
        }


def _kind(schema: Mapping[str, Any]) -> str:
    """Returns the kind of a field, empty for settings that are only for JSON."""
    schema = _first(schema)
    if "enum" in schema:
        return "choice"
    known = schema.get("type")
    if known == "array":
        items = schema.get("items", {})
        kinds = {"string": "choices" if "enum" in items else "list"}
        return kinds.get(str(items.get("type")), "")
    if known == "object":
        values = schema.get("additionalProperties")
        inside = values.get("type") if isinstance(values, Mapping) else None
        return {"array": "shapes", "string": "names"}.get(str(inside), "")
    return {"boolean": "flag", "integer": "number", "number": "number", "string": "text"}.get(str(known), "")


def _first(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the schema of a single value where a pair is possible, too."""
    return schema["oneOf"][0] if "oneOf" in schema else schema


def _label(row: Setting) -> str:
    return _LABELS.get(row.data) or _LABELS.get(row.name) or row.name.replace("_", " ").capitalize()


def _text(row: Setting) -> str:
    """Returns what a setting does, without what is said of the command."""
    told = _SENTENCE.split(row.text)
    return " ".join(each for each in told if "--" not in each and "command" not in each)
