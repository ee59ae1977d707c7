"""The settings of a conversion as data: what manifests and requests bring, clients send, and caches have as keys.

Data is flat: the settings of the model, of the conversion and of LiteRT by their names, those of StableHLO with `mlir_`
before them; `iree`, `quantize`, `verify` and `limits` are objects.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, get_args

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import is_file
from tfconvert.schema.limits import Limits
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import METRICS, Mode, Quantize
from tfconvert.settings.selection import Selection
from tfconvert.settings.setting import Schema, Setting, expected_of, is_valid, schema_of, settings_of
from tfconvert.settings.targets import CLASSES, CODE, TARGETS, AnyTarget, Iree, LiteRT, StableHLO, is_host, not_of
from tfconvert.settings.verify_options import Verify

_IREE = Iree.name

# Settings of a quantization that may be pairs.
_PAIRS = ("io", "default_range")

# The settings in arguments of `convert`, by the expression that sets one.
_PLACES: Mapping[str, Iterable[str]] = {
    "quantize=tfconvert.Quantize(..., {}=...)": settings_of(Quantize),
    "verify=tfconvert.Verify({}=...)": settings_of(Verify),
    **{f"target=tfconvert.{cls.__name__}({{}}=...)": settings_of(cls) for cls in (LiteRT, StableHLO, Iree)},
    "tfconvert.Source(model, {}=...)": settings_of(Selection),
    "limits=tfconvert.Limits({}=...)": Limits._fields,
}

# Settings that have fields of their own.
NESTED: Mapping[str, Any] = {"quantize": Quantize, "verify": Verify, _IREE: Iree}


def _row(name: str, like: Setting, text: str = "", schema: Schema | None = None) -> Setting:
    """Returns a row like another one; what is expected follows from a schema of its own."""
    row = like._replace(name=name, data=name, text=text or like.text)
    return row if schema is None else row._replace(schema=schema, expected=expected_of(schema))


def _settings() -> Mapping[str, Setting]:
    found = {row.data: row for cls in (Selection, Options, LiteRT, StableHLO) for row in settings_of(cls).values()}
    modes, quantize, verify = {"enum": list(get_args(Mode))}, found["quantize"], found["verify"]
    found["quantize"] = quantize._replace(schema={"oneOf": [modes, quantize.schema]})
    found["verify"] = verify._replace(schema={"oneOf": [{"type": "boolean"}, verify.schema]})
    # Short for fields of `verify`.
    rows = settings_of(Verify)
    found["verify_data"] = _row("verify_data", rows["data"])
    found["compare_layers"] = _row("compare_layers", rows["compare_layers"])
    text = "What the model becomes: a LiteRT file, StableHLO (text or an artifact), or a program of IREE."
    found["target"] = _row("target", found["order"], text=text, schema={"type": "string", "enum": list(TARGETS)})
    found[_IREE] = _row(_IREE, found["target"], text="How IREE compiles.", schema=schema_of(Iree))
    return found


_ALL = _settings()

SETTINGS: Mapping[str, Setting] = {name: row for name, row in _ALL.items() if not row.stays}
"""The settings that data can have, by name."""

REFUSED: Mapping[str, str] = {name: row.stays for name, row in _ALL.items() if row.stays}
"""The settings that data can't have, with the reason."""


def check_data(settings: Mapping[str, Any], where: str = "", *, allow_paths: bool = True) -> None:
    """Checks settings.

    Args:
        settings: What was read from JSON, YAML or TOML.
        where: What they belong to, for errors.
        allow_paths: Whether settings that name files are allowed.

    Raises:
        ConversionError: One is not known or has another type (`bad-config`).
    """
    for name, fields_of in NESTED.items():
        nested = settings.get(name)
        if isinstance(nested, Mapping):
            rows = {row.name: row for row in settings_of(fields_of).values()}
            inside = f"{where}: {name}" if where else name
            _check(nested, rows, inside, allow_paths)
            if name == "quantize" and "mode" not in nested:
                raise _wrong("'mode' is missing", inside)
    if not allow_paths and is_host(settings.get("tune")):
        raise _wrong("'tune' can't be 'host' here: the server is not the device", where, "convert without a server")
    _check(settings, SETTINGS, where, allow_paths)
    if allow_paths:
        return
    if path := next(metadata_paths(settings.get("metadata", {})), None):
        hint = "list the lines of labels and vocabularies; add other files to the converted file on your own computer"
        raise _wrong(f"'metadata' names a file, {_shown(path)}, which is not allowed here", where, hint)
    if settings.get(_IREE, {}).get("cpu") == "host":
        raise _wrong("'cpu' can't be 'host' here: the server may have another processor", where, "name the processor")


def _check(settings: Mapping[str, Any], known: Mapping[str, Setting], where: str, allow_paths: bool) -> None:
    for name, value in settings.items():
        row = known.get(name)
        if row is None and name in REFUSED:
            raise _wrong(f"{name!r} can't be set here: {REFUSED[name]}", where)
        if row is None:
            import difflib

            near = difflib.get_close_matches(str(name), known, 1)
            inside = next((each for each, cls in NESTED.items() if name in settings_of(cls) and each in known), "")
            hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"
            hint = f"it is a part of {inside!r}: {inside}.{name}" if inside else hint
            raise _wrong(f"the setting {name!r} is not known", where, hint)
        if row.is_path and not allow_paths and not row.is_own(value):
            raise _wrong(f"{name!r} {row.refusal}, which is not allowed here", where)
        if not is_valid(value, row.schema):
            hint = f"use {row.expected}" if row.expected else ""
            raise _wrong(f"{name!r} can't be {_shown(value)}", where, hint)


METADATA_FILES = ("labels", "calibration", "vocabulary", "model")
"""The keys in tables of metadata whose values may be files."""


def metadata_paths(metadata: Mapping[str, Any]) -> Iterator[str | os.PathLike[str]]:
    """Yields the files that a mapping of metadata names, whose lists are what would be in them."""
    sides = [metadata.get(which) for which in ("inputs", "outputs")]
    tables = [
        metadata.get("tokenizer"),
        *(each for side in sides if isinstance(side, Mapping) for each in side.values()),
    ]
    values = (table.get(key) for table in tables if isinstance(table, Mapping) for key in METADATA_FILES)
    return (value for value in values if isinstance(value, str | os.PathLike))


def _shown(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def check_arguments(names: Iterable[str]) -> None:
    """Checks that none of the arguments that a function lacks is a setting of one of its arguments.

    Args:
        names: The names of the arguments.

    Raises:
        ConversionError: One is a setting that has another place (`wrong-option`).
    """
    for name in names:
        for place, known in _PLACES.items():
            if name in known:
                hint = f"use {place.format(name)}"
                raise error("wrong-option", f"{name} is not an argument, but a setting in one", hint=hint)


def _wrong(message: str, where: str, hint: str = "") -> ConversionError:
    return error("bad-config", f"{where}: {message}" if where else message, hint=hint)


def from_data(settings: Mapping[str, Any]) -> tuple[dict[str, Any], Options]:
    """Returns the fields of a `Selection`, and the options.

    Args:
        settings: The settings by their names in data; values may also be Python's own.

    Raises:
        ConversionError: One is another target's (`wrong-option`).
    """
    given = dict(settings)
    selection = {name: given.pop(name) for name in settings_of(Selection) if name in given}
    target = _target(given)
    options = {name: given[name] for name in settings_of(Options) if name in given}
    options["verify"] = _verify(given)
    options["limits"] = Limits(**given.get("limits", {}))
    return selection, Options(target=target, **options)


def _target(given: Mapping[str, Any]) -> AnyTarget:
    cls: Any = CLASSES[given.get("target", LiteRT.name)]
    target: AnyTarget = cls()
    others: Iterable[Any] = CLASSES.values()
    for other in others:
        for row in settings_of(other).values() if other not in (cls, Iree) else ():
            if given.get(row.data, row.default) not in (row.default, None):
                raise not_of(target, _named(row, given), other)
    if isinstance(target, Iree):
        return Iree(**given.get(_IREE) or {})
    if given.get(_IREE) is not None:
        raise not_of(target, _named(SETTINGS[_IREE], given), Iree)
    own = {row.name: given[row.data] for row in settings_of(cls).values() if row.data in given}
    if own.get("quantize") is not None:
        own["quantize"] = _quantize(own["quantize"])
    made: AnyTarget = cls(**own)
    return made


def _named(row: Setting, given: Mapping[str, Any]) -> str:
    """Returns what a setting is called in data, and its flag; one that has fields is called by the first given."""
    value = given[row.data]
    name = next(iter(value), "") if isinstance(value, Mapping) and row.data in NESTED else ""
    flag = settings_of(NESTED[row.data])[name].flag if name else row.flag
    called = f"{row.data}.{name}" if name else row.data
    return f"{called} ({flag})" if flag else called


def quantize_of(settings: Mapping[str, Any]) -> Quantize | None:
    """Returns how settings that were checked quantize a LiteRT file; `None` if they don't."""
    quantize = settings.get("quantize")
    if quantize is None or settings.get("target", LiteRT.name) != LiteRT.name:
        return None
    return _quantize(quantize)


def _quantize(quantize: Any) -> Quantize:
    if isinstance(quantize, str):
        return Quantize(quantize)  # type: ignore[arg-type]  # The value was checked.
    pairs = {name: tuple(quantize[name]) for name in _PAIRS if isinstance(quantize.get(name), list)}
    return Quantize(**{**quantize, **pairs})


def _verify(given: Mapping[str, Any]) -> Verify | None:
    verify, data, layers = given.get("verify"), given.get("verify_data"), bool(given.get("compare_layers"))
    if not verify and verify != {} and data is None and not layers:
        return None
    found = Verify(**verify) if isinstance(verify, Mapping) else Verify()
    if data is not None and found.data is not None:
        raise error("wrong-option", "verify.data and verify_data are both given", hint="leave `verify_data` out")
    return replace(found, data=found.data if data is None else data, compare_layers=found.compare_layers or layers)


def to_data(selection: Selection, options: Options) -> dict[str, Any]:
    """Returns the settings that don't have their defaults, as data.

    Args:
        selection: What is imported of the model; the model itself is left out.
        options: The settings.

    Raises:
        ConversionError: One can't leave this process (`wrong-option`).
    """
    found: dict[str, Any] = {}
    for given, cls in ((selection, Selection), (options, Options)):
        inner = {each.name for each in fields(given)} - set(settings_of(cls))
        for name in sorted(inner - {"model", "target", "results", "tensors"}):
            if getattr(given, name):
                raise _stays(name, "it is not a setting of a conversion")
        found |= _changed(given, cls)
    return found | target_data(options.target)


def target_data(target: AnyTarget) -> dict[str, Any]:
    """Returns a target's settings that don't have their defaults, and its name, as data."""
    name = {} if isinstance(target, LiteRT) else {"target": target.name}
    changed = _changed(target)
    return {**name, **({_IREE: changed} if changed and isinstance(target, Iree) else changed)}


def _changed(given: Any, cls: Any = None) -> dict[str, Any]:
    """Returns the settings of a dataclass that don't have their defaults, as data."""
    found = {}
    for row, value in _non_defaults(given, cls or type(given)):
        if row.stays:
            raise _stays(row.name, row.stays)
        found[row.data] = plain(value, row.data)
    return found


def _non_defaults(given: Any, cls: Any) -> Iterator[tuple[Setting, Any]]:
    for name, row in settings_of(cls).items():
        value = getattr(given, name)
        if value is not row.default and (row.default is None or value != row.default):
            yield row, value


def _stays(name: str, reason: str) -> ConversionError:
    return error("wrong-option", f"{name} can't be sent to a server: {reason}", hint="convert without a server")


def plain(value: Any, name: str) -> Any:
    """Returns a value as JSON has it.

    Args:
        value: The value.
        name: The setting, for errors.

    Raises:
        ConversionError: It is not data (`wrong-option`).
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Verify):
        return _changed(value) or True
    if isinstance(value, Quantize):
        return _changed(value)
    if isinstance(value, Limits):
        return value._asdict()
    if isinstance(value, Mapping):
        return {str(key): plain(each, name) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [plain(each, name) for each in value]
    raise _stays(name, f"an object of type {type(value).__name__} is not data")


def uncached(selection: Selection, options: Options) -> str:
    """Returns which setting makes a result that can't be cached, and why; empty if all can be."""
    quantize, target = options.quantize, options.target
    for given, cls in ((selection, Selection), (options, Options), (target, type(target))):
        for row, value in _non_defaults(given, cls):
            if row.uncached and not row.is_own(value):
                return f"{row.flag}: {row.uncached}"
    if quantize is not None and quantize.calibration and quantize.samples:
        return "--calibration: it is written beside the result"
    if quantize is not None and quantize.metric is not None and quantize.metric not in METRICS:
        return f"--metric: {CODE}"
    if isinstance(target, LiteRT) and target.tune is not None and not is_file(target.tune):
        return "--tune: the times of this machine decide, or files are written beside the result"
    if isinstance(target, Iree) and target.cpu == "host":
        return "--iree-target-cpu: code for this machine may not run on another"
    return ""
