"""Files that list models and their settings, in YAML, TOML or JSON: one format for `build` and `batch`.

The content is a mapping. `models` lists the entries, each a mapping or only the model's path. The other keys of the
file are defaults of all entries.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfconvert.batch import places
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import read_file
from tfconvert.settings.data import NESTED, SETTINGS, check_data
from tfconvert.settings.setting import Schema, Setting, is_valid, settings_of

_STRING = {"type": "string"}
_PAIR = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}

EXTRAS: Mapping[str, Schema] = {
    "array_name": _STRING,
    "depfile": _STRING,
    "report": _STRING,
    "model_explorer": _STRING,
    "cache_dir": _STRING,
    "write_through_links": {"type": "boolean"},
    "input_stats": {"type": "object", "additionalProperties": _PAIR},
    "server": _STRING,
    "token_file": _STRING,
}
"""The keys of an entry that are neither about the model nor settings of the conversion."""

TEMPLATES = ("depfile", "report", "model_explorer")
"""The extras that are paths of files to write, with the fields of `output`."""

_PATHS = ("model", "output", *TEMPLATES, "cache_dir", "token_file")

_ENTRY: Mapping[str, Schema] = {
    "model": _STRING,
    "name": _STRING,
    "output": _STRING,
    "settings": {"type": ["object", "null"]},
    **EXTRAS,
}
_DEFAULTS = {name: schema for name, schema in _ENTRY.items() if name not in ("model", "name", "array_name")}

# The header of an entry in TOML, whose parser returns no lines.
_HEADER = re.compile(r"\s*\[\[\s*models\s*\]\]")

# The maximum size of a file that lists models, in bytes.
_LARGEST = 64 << 20

_HINT = "begin each with [[models]] in TOML, with `- model: PATH` below `models:` in YAML"


def read_models(path: str, directory: str | None = None) -> list[dict[str, Any]]:
    """Returns the entries of a file, with their defaults.

    Args:
        path: The file.
        directory: The directory to which the paths of models and outputs are relative. By default that of the file,
            which each entry then has as `directory`, the start of the paths in its settings.

    Raises:
        ConversionError: The file can't be read or is invalid (`bad-config`), or PyYAML is missing (`yaml-missing`).
    """
    content, lines = _parsed(path)
    if isinstance(content, list):
        content = {"models": content}
    defaults = {name: value for name, value in content.items() if name != "models"} if content else {}
    _check_keys(defaults, _DEFAULTS, path)
    check_data(with_lists(defaults.get("settings") or {}), path)
    listed = content.get("models") if content else None
    if not isinstance(listed, list) or not listed:
        raise _wrong(f"{path} lists no models", _HINT)
    start = os.fspath(Path(path).parent) if directory is None else directory
    inside = {"directory": os.fspath(Path(path).parent.absolute())} if directory is None else {}
    found = []
    for index, item in enumerate(listed):
        line = f":{lines[index]}" if len(lines) == len(listed) else ""
        entry = _checked({"model": item} if isinstance(item, str) else item, f"{path}{line}: model {index + 1}")
        settings = with_lists({**(defaults.get("settings") or {}), **(entry.get("settings") or {})})
        check_data(settings, entry["where"])
        entry = {**defaults, **entry, "settings": settings, **inside}
        found.append({**entry, **{name: _join(start, entry[name]) for name in _PATHS if name in entry}})
    return found


def with_lists(settings: Mapping[str, Any], known: Mapping[str, Setting] = SETTINGS) -> dict[str, Any]:
    """Returns settings in which single strings for lists became lists, as for a repeatable flag given once."""
    found = dict(settings)
    for name, value in settings.items():
        row = known.get(name)
        if isinstance(value, str) and row is not None and row.schema.get("type") == "array":
            found[name] = [value]
        elif isinstance(value, dict) and name in NESTED and known is SETTINGS:
            found[name] = with_lists(value, settings_of(NESTED[name]))
    return found


def _checked(entry: Any, where: str) -> dict[str, Any]:
    if not isinstance(entry, dict) or not isinstance(entry.get("model"), str):
        raise _wrong(f"{where} has no string 'model'")
    where += f" ({entry.get('name') or entry['model']})"
    _check_keys(entry, _ENTRY, where)
    return {**entry, "where": where}


def read_list(path: str) -> list[dict[str, Any]]:
    """Returns the models of a text file: one path, URL or pattern a line, `#` begins a comment."""
    lines = (line.partition("#")[0].strip() for line in _text(path).splitlines())
    start = os.fspath(Path(path).parent)
    return [{"model": _join(start, line)} for line in lines if line]


def _join(start: str, path: str) -> str:
    return path if places.is_url(path) else os.fspath(Path(start) / path) + ("/" if path.endswith("/") else "")


def _check_keys(given: Mapping[Any, Any], known: Mapping[str, Schema], where: str) -> None:
    for key, value in given.items():
        if key not in known:
            raise _wrong(f"{where}: {key!r} is not known", _nearest(str(key), known))
        if not is_valid(value, known[key]):
            raise _wrong(f"{where}: {key!r} can't be {value!r}")


def _nearest(key: str, known: Mapping[str, Schema]) -> str:
    name = key.replace("-", "_")
    if name in known:
        return f"did you mean {name!r}?"
    setting = next((each for each in (name, f"{name}s") if each in SETTINGS), "")
    if setting:
        return f"put {setting!r} into 'settings'"
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"


def _parsed(path: str) -> tuple[Any, Sequence[int]]:
    """Returns the content of a file, and the lines of its entries if they are known."""
    text, extension = _text(path), Path(path).suffix.lower()
    read = {".toml": _toml, ".json": _json}.get(extension, _yaml)
    try:
        content, lines = read(path, text)
    except (ValueError, RecursionError) as problem:
        raise _wrong(f"{path}: {problem}") from None
    if content is not None and not isinstance(content, dict | list):
        raise _wrong(f"{path} lists no models", _HINT)
    return content, lines


def _json(path: str, text: str) -> tuple[Any, Sequence[int]]:
    import json

    return json.loads(text), ()


def _toml(path: str, text: str) -> tuple[Any, Sequence[int]]:
    import tomllib

    return tomllib.loads(text), [
        number for number, line in enumerate(text.splitlines(), start=1) if _HEADER.match(line)
    ]


def _yaml(path: str, text: str) -> tuple[Any, Sequence[int]]:
    try:
        import yaml
    except ImportError:
        raise error(
            "yaml-missing",
            f"{path} is YAML, for which PyYAML is needed",
            hint="pip install tfconvert[batch], or write the file as .toml or .json",
        ) from None
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        content = None if root is None else loader.construct_document(root)
    except yaml.YAMLError as problem:
        raise _wrong(f"{path}: {' '.join(str(problem).split())}") from None
    listed = root
    if isinstance(root, yaml.MappingNode):
        listed = next((value for key, value in root.value if key.value == "models"), None)
    nodes = listed.value if isinstance(listed, yaml.SequenceNode) else ()
    return content, [node.start_mark.line + 1 for node in nodes]


def _text(path: str) -> str:
    try:
        return read_file(path, _LARGEST).decode()
    except OSError as problem:
        raise _wrong(f"can't read {path}: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise _wrong(f"{path} is not text in UTF-8", "give the file that lists the models, not a model") from problem


def _wrong(message: str, hint: str = "") -> ConversionError:
    return error("bad-config", message, hint=hint)
