"""The values that the settings of a conversion may have: one table, by which wrong arguments are refused by name.

Only kinds of values are checked here. Whether a name is the model's, or a file can be read, is found out later.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.limits import Limits
from tfconvert.settings.iree_options import BACKENDS, IreeOptions
from tfconvert.settings.options import NAMES, ORDERS, RECURRENT, STATES, TARGETS, WEIGHTS

# How many characters of a wrong value a message has.
_SHOWN = 100


class Kind(NamedTuple):
    """A kind of values.

    Attributes:
        expected: What it is called.
        fits: Returns whether a value is of the kind.
        example: One; empty if the name says enough.
    """

    expected: str
    fits: Callable[[Any], bool]
    example: str = ""


def _is_flag(value: Any) -> bool:
    # Numpy's own is no subclass of `bool`.
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def _is_integer(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, type) and not _is_flag(value) and not _is_array(value)


def _is_array(value: Any) -> bool:
    return bool(getattr(value, "shape", ()))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _are_texts(value: Any) -> bool:
    return _is_list(value) and all(map(_is_text, value))


def _are_names(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, (*value.keys(), *value.values())))


def _is_shape(value: Any) -> bool:
    return _is_list(value) and all(size is None or _is_integer(size) for size in value)


def _are_shapes(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, value)) and all(map(_is_shape, value.values()))


def _are_samples(value: Any) -> bool:
    return _is_path(value) or callable(value) or (isinstance(value, Iterable) and not isinstance(value, bytes))


def _choice(choices: Sequence[str]) -> Kind:
    return Kind(f"one of {', '.join(choices)}", lambda value: _is_text(value) and value in choices)


_FLAG = Kind("True or False", _is_flag)
_COUNT = Kind("an integer of at least 1", lambda value: isinstance(value, int) and not _is_flag(value) and value >= 1)
_LIMIT = Kind("an integer of at least 0", lambda value: _is_integer(value) and value >= 0)
_TEXT = Kind("a text", _is_text)
_PATH = Kind("a path", _is_path)

ARGUMENTS: Mapping[str, Kind] = {
    "signatures": Kind("a signature or a list of them", _are_texts, '["serving_default"]'),
    "tags": Kind("a list of tags", _are_texts, '["serve"]'),
    "inputs": Kind("a list of names", _are_texts, '["x:0"]'),
    "outputs": Kind("a list of names", _are_texts, '["scores:0"]'),
    "input_shapes": Kind("a mapping from names of inputs to shapes", _are_shapes, '{"image": [1, 224, 224, 3]}'),
    "checkpoint": _PATH,
    "asset_root": _PATH,
    "rename": Kind("a mapping from names to new names", _are_names, '{"output_0": "scores"}'),
    "batch": _COUNT,
    "order": _choice(ORDERS),
    "follow_links": _FLAG,
    "op_defs": Kind("a path or an OpList", lambda value: _is_path(value) or hasattr(value, "SerializeToString")),
    "allow_custom_ops": _FLAG,
    "verify": Kind("True, False or a Verify", lambda value: _is_flag(value) or hasattr(value, "min_snr")),
    "check_passes": _FLAG,
    "patterns": Kind("a list of patterns, paths and names", _is_list, '["rules.py"]'),
    "composites": Kind("a list of fusions, paths and names", _is_list, '["fusions.py"]'),
    "recurrent": _choice(RECURRENT),
    "metadata": Kind("a path or a mapping", lambda value: _is_path(value) or isinstance(value, Mapping)),
    "target_runtime": Kind("a release", lambda value: value is None or _is_text(value), '"2.14"'),
    "keep_graphs": _FLAG,
    "allow_flex": _FLAG,
    "flex_ops": Kind("a list of names and patterns", _are_texts, '["Acme*"]'),
    "limits": Kind("a Limits", lambda value: isinstance(value, Limits), "tfconvert.Limits(constant_bytes=1 << 33)"),
    "target": _choice(TARGETS),
    "mlir_weights": _choice(WEIGHTS),
    "mlir_state": _choice(STATES),
    "iree": Kind("an IreeOptions", lambda value: isinstance(value, IreeOptions), 'tfconvert.IreeOptions("vmvx")'),
    "mlir_shape_function": _FLAG,
    "mlir_artifact": _FLAG,
    "names": _choice(NAMES),
    "sparse_weights": _FLAG,
    "origin": Kind("a mapping or None", lambda value: value is None or isinstance(value, Mapping)),
}
"""The settings; how to quantize, the class `Quantize` checks itself."""

FIELDS: Mapping[str, Mapping[str, Kind]] = {
    "limits": dict.fromkeys(Limits._fields, _LIMIT),
    "verify": {
        "data": Kind("a list of samples, a function that returns one, or a path", _are_samples, '["inputs.npz"]'),
        "compare_layers": _FLAG,
    },
    "iree": {
        "backend": _choice(BACKENDS),
        "cpu": _TEXT,
        "flags": Kind("a list of flags", _are_texts, '["--iree-opt-level=O3"]'),
        "embed_weights": _FLAG,
        "keep_mlir": _FLAG,
        "check_indices": _FLAG,
    },
}
"""The fields of settings that have some."""


def check_arguments(*halves: Any) -> None:
    """Checks that settings have values of their kinds.

    Args:
        halves: The two halves of the settings, a `Source` and an `Options`.

    Raises:
        ConversionError: One has another value (`wrong-option`).
    """
    for half in halves:
        _check(half, ARGUMENTS)
        for name, kinds in FIELDS.items():
            nested = getattr(half, name, None)
            if nested is not None:
                _check(nested, kinds, f"{name}.")


def _check(given: Any, kinds: Mapping[str, Kind], prefix: str = "") -> None:
    for name, default in _defaults(given).items():
        value, kind = getattr(given, name), kinds.get(name)
        if kind is not None and value is not default and not kind.fits(value):
            raise _wrong(f"{prefix}{name}", value, kind)


def _defaults(given: Any) -> Mapping[str, Any]:
    """Returns the defaults of a record's fields, a tuple's or a dataclass's."""
    fields = getattr(given, "__dataclass_fields__", None)
    if fields is not None:
        return {name: field.default for name, field in fields.items()}
    defaults: Mapping[str, Any] = given._field_defaults
    return defaults


def _wrong(name: str, value: object, kind: Kind) -> ConversionError:
    shown = " ".join(reprlib.repr(value).split())
    example = f", as in {name}={kind.example}" if kind.example else ""
    return error("wrong-option", f"{name} can't be {shown[:_SHOWN]}", hint=f"expected is {kind.expected}{example}")
