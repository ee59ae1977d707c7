"""The models of a batch, from patterns, list files and manifests, with a place for each result."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

from tfconvert.batch import places
from tfconvert.converter.targets.output_form import Form, form_of
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.settings.data import check_data

FIELDS = ("name", "parent", "number")
"""The names in a template of results' places."""

_OWN = ("model", "output", "name", "settings")


class Entry(NamedTuple):
    """A model of a batch.

    Attributes:
        name: What it is called in the summary; no two have the same.
        model: The path or URL.
        output: The path or URL of the result.
        settings: Keywords of `tfconvert.convert`.
    """

    name: str
    model: str
    output: str
    settings: Mapping[str, Any] = {}


def read_list(path: str) -> list[dict[str, Any]]:
    """Returns the models of a text file: one path, URL or pattern a line, `#` begins a comment."""
    lines = (line.partition("#")[0].strip() for line in _text(path).splitlines())
    return [{"model": _beside(path, line)} for line in lines if line]


def read_manifest(path: str) -> list[dict[str, Any]]:
    """Returns the models of a manifest, YAML or JSON: `models`, a list of mappings or of texts, and `settings` for all.

    Raises:
        ConversionError: It can't be read or says something else (`bad-config`).
    """
    content = _parsed(path)
    if isinstance(content, list):
        content = {"models": content}
    if not isinstance(content, dict) or not isinstance(content.get("models"), list):
        raise _wrong(f"{path} has no list of models", "begin it with `models:`, then `- model: PATH` for each")
    unknown = [key for key in content if key not in ("models", "settings", "output")]
    if unknown:
        raise _wrong(f"{path}: {unknown[0]!r} is not known", "known are: models, output, settings")
    common = content.get("settings") or {}
    found = []
    for number, item in enumerate(content["models"], start=1):
        where = f"{path}: model {number}"
        item = {"model": item} if isinstance(item, str) else item
        if not isinstance(item, dict) or not isinstance(item.get("model"), str):
            raise _wrong(f"{where} has no text 'model'")
        unknown = [key for key in item if key not in _OWN]
        if unknown:
            raise _wrong(f"{where}: {unknown[0]!r} is not known", f"known are: {', '.join(_OWN)}")
        settings = item.get("settings") or {}
        if not isinstance(settings, dict) or not isinstance(common, dict):
            raise _wrong(f"{where}: its settings are not a mapping")
        check_data({**common, **settings}, where)
        output = item.get("output", content.get("output"))
        places_of = {"model": _beside(path, item["model"])}
        if output is not None:
            places_of["output"] = _beside(path, str(output))
        found.append({**item, **places_of, "settings": {**common, **settings}})
    return found


def to_entries(models: Iterable[Mapping[str, Any]], template: str | None, common: Mapping[str, Any]) -> list[Entry]:
    """Returns the entries of a batch, patterns expanded.

    Args:
        models: `model` and what else is known of each.
        template: Where results go that don't say it themselves, as `out/{name}.tflite`; a directory gets files with the
            models' names. `None` is the current directory.
        common: Settings of all models, which a model's own go before.

    Raises:
        ConversionError: A pattern fits nothing, a template can't be filled in, or results would have one place
            (`bad-config`); or a result's ending contradicts its settings (`wrong-option`).
    """
    found: list[Entry] = []
    for model in models:
        expanded = places.expand(model["model"])
        if not expanded:
            raise _wrong(f"nothing fits {model['model']!r}")
        for path in expanded:
            name = str(model.get("name") or _stem(path))
            settings = {**common, **model.get("settings", {})}
            place = _in_folder(str(model.get("output") or template or ""), settings)
            output = _filled(place, path, name, len(found) + 1)
            form = form_of(output, settings)
            if form != Form():
                settings |= form.settings
            found.append(Entry(name, path, output, settings))
    if not found:
        raise _wrong("there are no models to convert", "name models, patterns, a --list or a --manifest")
    _check_places(found)
    return _with_names(found)


def _in_folder(template: str, settings: Mapping[str, Any]) -> str:
    """Returns a template for files: for a directory, one that adds the models' names and the ending of the target."""
    if template and not template.endswith("/") and (places.is_url(template) or not Path(template).is_dir()):
        return template
    separator = "/" if template and not template.endswith("/") else ""
    return f"{template}{separator}{{name}}{form_of('', settings).ending}"


def _check_places(entries: Sequence[Entry]) -> None:
    counts = Counter(_normal(entry.output) for entry in entries)
    for entry in entries:
        if counts[_normal(entry.output)] > 1:
            hint = f"let -o tell them apart, as by {{parent}} or {{number}}; {entry.model} is one of them"
            raise _wrong(f"several results would be {entry.output}", hint)


def _normal(place: str) -> str:
    return place if places.is_url(place) else os.fspath(Path(place).absolute())


def _with_names(entries: Sequence[Entry]) -> list[Entry]:
    """Returns the entries, those of equal names named by their paths instead."""
    counts = Counter(entry.name for entry in entries)
    named = [entry if counts[entry.name] == 1 else entry._replace(name=entry.model) for entry in entries]
    seen: Counter[str] = Counter()
    for index, entry in enumerate(named):
        seen[entry.name] += 1
        if seen[entry.name] > 1:
            named[index] = entry._replace(name=f"{entry.name} ({seen[entry.name]})")
    return named


def _stem(path: str) -> str:
    """Returns the name of a model: its directory's or file's name, or for `X/saved_model` the directory above."""
    name = places.name_of(path)
    if name in ("saved_model", "saved_model.pb", "1"):
        above = places.name_of(path.rstrip("/")[: -len(name)])
        name = above or name
    stem, dot, ending = name.rpartition(".")
    return stem if dot and ending in ("pb", "pbtxt", "meta", "mlir", "keras", "h5", "tflite") else name


def _filled(template: str, path: str, name: str, number: int) -> str:
    parent = places.name_of(path.rstrip("/")[: -len(places.name_of(path)) or None])
    try:
        unknown = [field for _, field, _, _ in Formatter().parse(template) if field and field not in FIELDS]
        if unknown:
            raise _wrong(f"the template {template!r} has {{{unknown[0]}}}", f"known are: {', '.join(FIELDS)}")
        return template.format(name=name, parent=parent, number=number)
    except (ValueError, IndexError, KeyError) as problem:
        raise _wrong(f"the template {template!r} can't be filled in: {problem}") from None


def _parsed(path: str) -> Any:
    text = _text(path)
    if path.endswith(".json"):
        import json

        try:
            return json.loads(text)
        except (ValueError, RecursionError) as problem:
            raise _wrong(f"{path}: {problem}") from None
    try:
        import yaml
    except ImportError:
        raise error(
            "yaml-missing",
            f"{path} is YAML, for which PyYAML is needed",
            hint="pip install tfconvert[batch], or write the manifest as .json",
        ) from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as problem:
        raise _wrong(f"{path}: {' '.join(str(problem).split())}") from None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise _wrong(f"can't read {path}: {reason}") from None


def _beside(path: str, place: str) -> str:
    """Returns a place that a file names, which counts from the file's own directory."""
    return place if places.is_url(place) else os.fspath(Path(path).parent / place)


def _wrong(message: str, hint: str = "") -> ConversionError:
    return error("bad-config", message, hint=hint)
