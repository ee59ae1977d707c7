"""The settings of a conversion as data, as manifests and requests bring them: the keywords of `tfconvert.convert`."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.limits import Limits
from tfconvert.settings.iree_options import BACKENDS
from tfconvert.settings.options import NAMES, ORDERS, RECURRENT, STATES, TARGETS, WEIGHTS

_MODES = ("dynamic", "float16", "int8", "int16", "weights")
_IO = ("float32", "int8", "uint8", "int16")
_MAX_DIMS = 32
_LARGEST = 1 << 62


class Setting(NamedTuple):
    """The values of a setting.

    Attributes:
        schema: Its JSON schema.
        check: Returns whether a value fits.
        is_path: Whether it names files: refused from strangers.
    """

    schema: Mapping[str, Any]
    check: Callable[[Any], bool]
    is_path: bool = False


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_dim(value: Any) -> bool:
    return value is None or (_is_whole(value) and -1 <= value < _LARGEST)


def _are_shapes(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(shape, list) and len(shape) <= _MAX_DIMS and all(map(_is_dim, shape)) for shape in value.values()
    )


def _are_names(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _flag() -> Setting:
    return Setting({"type": "boolean"}, _is_flag)


def _texts(*, is_path: bool = False) -> Setting:
    return Setting({"type": "array", "items": {"type": "string"}}, _are_texts, is_path)


def _choice(*values: str) -> Setting:
    return Setting({"type": "string", "enum": list(values)}, lambda value: value in values)


def _text(*, is_path: bool = False) -> Setting:
    return Setting({"type": "string"}, _is_text, is_path)


def _is_io(value: Any) -> bool:
    return value in _IO or (isinstance(value, list) and len(value) == 2 and all(each in _IO for each in value))


def _is_range(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(each, int | float) and not isinstance(each, bool) for each in value)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


QUANTIZE: Mapping[str, Setting] = {
    "mode": _choice(*_MODES),
    "weights": Setting({"enum": [4, 8]}, lambda value: _is_whole(value) and value in (4, 8)),
    "samples": _texts(is_path=True),
    "calibration": _text(is_path=True),
    "io": Setting(
        {"oneOf": [{"enum": list(_IO)}, {"type": "array", "items": {"enum": list(_IO)}, "minItems": 2, "maxItems": 2}]},
        _is_io,
    ),
    "per_channel": Setting({"enum": [True, False, "not-dense"]}, lambda value: _is_flag(value) or value == "not-dense"),
    "exclude": _texts(),
    "strict": _flag(),
    "ranges": _choice("minmax", "mse", "percentile"),
    "hybrid_only": _flag(),
    "trained_only": _flag(),
    "float_ends": _flag(),
    "recurrent_state": _choice("reset", "kept"),
    "bias": _choice("int32", "int64"),
    "accumulation": _choice("float32", "float16"),
    "variables": _choice("auto", "float32", "integers"),
    "default_range": Setting({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}, _is_range),
}
"""The fields of `Quantize` that data can have."""


IREE: Mapping[str, Setting] = {
    "backend": _choice(*BACKENDS),
    "cpu": _text(),
    "flags": _texts(is_path=True),
    "embed_weights": _flag(),
    "keep_mlir": _flag(),
    "check_indices": _flag(),
}
"""The fields of `IreeOptions`; flags of the compiler can name files, and programs to be run."""

VERIFY: Mapping[str, Setting] = {
    "data": _texts(is_path=True),
    "min_snr": Setting({"type": "number"}, _is_number),
    "min_agreement": Setting(
        {"type": "number", "minimum": 0, "maximum": 1}, lambda value: _is_number(value) and 0 <= value <= 1
    ),
    "compare_layers": _flag(),
    "search_seconds": Setting({"type": "number", "minimum": 0}, lambda value: _is_number(value) and value >= 0),
}
"""The fields of `Verify` that data can have."""


def _are_limits(value: Any) -> bool:
    return isinstance(value, dict) and all(
        name in Limits._fields and _is_whole(each) and each >= 0 for name, each in value.items()
    )


def _is_quantize(value: Any) -> bool:
    return value in _MODES or isinstance(value, dict)


def _object(fields: Mapping[str, Setting], *required: str) -> Mapping[str, Any]:
    schema = {
        "type": "object",
        "properties": {name: each.schema for name, each in fields.items()},
        "additionalProperties": False,
    }
    return {**schema, "required": list(required)} if required else schema


SETTINGS: Mapping[str, Setting] = {
    "inputs": _texts(),
    "outputs": _texts(),
    "input_shapes": Setting(
        {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": ["integer", "null"]}, "maxItems": _MAX_DIMS},
        },
        _are_shapes,
    ),
    "signatures": _texts(),
    "tags": _texts(),
    "batch": Setting({"type": "integer", "minimum": 1}, lambda value: _is_whole(value) and 1 <= value < _LARGEST),
    "rename": Setting({"type": "object", "additionalProperties": {"type": "string"}}, _are_names),
    "order": _choice(*ORDERS),
    "names": _choice(*NAMES),
    "asset_root": _text(is_path=True),
    "allow_custom_ops": _flag(),
    "allow_flex": _flag(),
    "flex_ops": _texts(),
    "recurrent": _choice(*RECURRENT),
    "target_runtime": _text(),
    "metadata": Setting({"type": "object"}, lambda value: isinstance(value, dict)),
    "patterns": _texts(is_path=True),
    "composites": _texts(is_path=True),
    "verify": Setting(
        {"oneOf": [{"type": "boolean"}, _object(VERIFY)]}, lambda value: _is_flag(value) or isinstance(value, dict)
    ),
    "compare_layers": _flag(),
    "check_passes": _flag(),
    "verify_data": _texts(is_path=True),
    "keep_graphs": _flag(),
    "op_defs": _text(is_path=True),
    "follow_links": _flag()._replace(is_path=True),
    "limits": Setting(
        {
            "type": "object",
            "properties": {name: {"type": "integer", "minimum": 0} for name in Limits._fields},
            "additionalProperties": False,
        },
        _are_limits,
    ),
    "quantize": Setting({"oneOf": [{"enum": list(_MODES)}, _object(QUANTIZE, "mode")]}, _is_quantize),
    "target": _choice(*TARGETS),
    "mlir_weights": _choice(*WEIGHTS),
    "mlir_state": _choice(*STATES),
    "mlir_shape_function": _flag(),
    "mlir_artifact": _flag(),
    "iree": Setting(_object(IREE), lambda value: isinstance(value, dict)),
}
"""The keywords of `tfconvert.convert` that data can have: what batches, servers and their clients take."""

REFUSED: Mapping[str, str] = {
    "checkpoint": "it belongs to a SavedModel message in memory, and models are sent as files",
    "temporary": "it is the copy of a model in memory, and models are sent as files",
    "is_raw": "it is for looking at graphs, not for converting them",
    "verify_each": "it is for looking at passes (tfconvert opt)",
    "origin": "it is for `TFLiteConverter`",
    "sparse_weights": "it is for `TFLiteConverter`",
}
"""Fields of `Source` and `Options` that data can't have, with the reason. What is in neither table, a test finds."""

# Settings that have fields of their own.
_NESTED: Mapping[str, Mapping[str, Setting]] = {"quantize": QUANTIZE, "verify": VERIFY, "iree": IREE}


def to_travel(*halves: Any) -> dict[str, Any]:
    """Returns the settings that don't have their defaults, by the keywords of `tfconvert.convert`.

    Args:
        halves: The two halves of the settings, a `Source` and an `Options`; the model itself is left out.

    Raises:
        ConversionError: One can't leave this process (`wrong-option`).
    """
    found = {}
    for half in halves:
        for name, value in half._asdict().items():
            if name == "model" or value == half._field_defaults[name]:
                continue
            if name not in SETTINGS:
                reason = REFUSED.get(name, "it is not known there")
                raise error(
                    "wrong-option", f"{name} can't be sent to a server: {reason}", hint="convert without a server"
                )
            found[name] = value
    return found


def check_settings(settings: Mapping[str, Any], where: str = "", *, allow_paths: bool = True) -> None:
    """Checks settings.

    Args:
        settings: What was read from JSON or YAML.
        where: What they belong to, for errors.
        allow_paths: Whether settings that name files are allowed.

    Raises:
        ConversionError: One is not known or has another type (`bad-config`).
    """
    _check(settings, SETTINGS, where, allow_paths)
    if not allow_paths and "metadata" in settings and _names_labels(settings["metadata"]):
        raise _wrong("'metadata' names files of labels, which is not allowed here", where, "list the labels themselves")
    iree = settings.get("iree")
    if not allow_paths and isinstance(iree, dict) and iree.get("cpu") == "host":
        raise _wrong("'cpu' can't be 'host' here: the server may have another processor", where, "name the processor")
    for name, fields in _NESTED.items():
        nested = settings.get(name)
        if isinstance(nested, dict):
            inside = f"{where}: {name}" if where else name
            _check(nested, fields, inside, allow_paths)
            if name == "quantize" and "mode" not in nested:
                raise _wrong("'mode' is missing", inside)


def _check(settings: Mapping[str, Any], known: Mapping[str, Setting], where: str, allow_paths: bool) -> None:
    for name, value in settings.items():
        setting = known.get(name)
        if setting is None and name in REFUSED:
            raise _wrong(f"{name!r} can't be set here: {REFUSED[name]}", where)
        if setting is None:
            near = difflib.get_close_matches(str(name), known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"
            raise _wrong(f"the setting {name!r} is not known", where, hint)
        if setting.is_path and not allow_paths:
            raise _wrong(f"{name!r} names files, which is not allowed here", where)
        if not setting.check(value):
            raise _wrong(f"{name!r} can't be {_shown(value)}", where)


def _names_labels(metadata: Any) -> bool:
    """Returns whether the labels of a tensor are a file, rather than a list of texts."""
    tensors = [
        each
        for which in ("inputs", "outputs")
        if isinstance(metadata.get(which), dict)
        for each in metadata[which].values()
    ]
    return any(isinstance(each, dict) and isinstance(each.get("labels"), str) for each in tensors)


def _shown(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _wrong(message: str, where: str, hint: str = "") -> ConversionError:
    return error("bad-config", f"{where}: {message}" if where else message, hint=hint)
