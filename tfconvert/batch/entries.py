"""The models to convert, from patterns and files of models, with a path for each result."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

from tfconvert.batch import places
from tfconvert.batch.models_file import EXTRAS, TEMPLATES
from tfconvert.converter.targets.output_form import Form, form_of
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import is_folder
from tfconvert.settings.data import from_data

FIELDS = ("name", "parent", "number")
"""The fields in a template of results' paths."""

# Endings that a model's name drops.
_ENDINGS = frozenset(("pb", "pbtxt", "meta", "mlir", "mlirbc", "bin", "keras", "h5", "tflite"))


class Entry(NamedTuple):
    """A model to convert.

    Attributes:
        name: The unique name in the summary.
        model: The path or URL.
        output: The path or URL of the result.
        settings: The settings as data (`tfconvert.settings.data`).
        extras: Other keys of the entry in its file (`tfconvert.batch.models_file.EXTRAS`).
        directory: The directory to which paths in the settings are relative; empty for the current one.
        where: The file, line and number of the entry, for errors; empty for a model of the command line.
    """

    name: str
    model: str
    output: str
    settings: Mapping[str, Any] = {}
    extras: Mapping[str, Any] = {}
    directory: str = ""
    where: str = ""

    def refused(self, keys: Iterable[str], reason: str) -> ConversionError | None:
        """Returns the error about the first of some keys that the entry has, if any."""
        key = next((key for key in keys if key in self.extras), "")
        return _wrong(f"{self.where or self.name}: {key!r} {reason}") if key else None


def to_entries(models: Iterable[Mapping[str, Any]], template: str | None, common: Mapping[str, Any]) -> list[Entry]:
    """Returns the entries, with patterns expanded.

    Args:
        models: The models, as `read_models` returns them.
        template: The output of models without their own, as `out/{name}.tflite`. In a directory, files get the models'
            names. `None` is the current directory.
        common: Settings of all models. A model's own override them.

    Raises:
        ConversionError: A pattern fits nothing, a template is wrong, or two results have the same path (`bad-config`);
            or the extension of a result or a setting is another target's (`wrong-option`).
    """
    found: list[Entry] = []
    for model in models:
        where = model.get("where", "")
        try:
            expanded = places.expand(model["model"])
            if not expanded:
                raise _wrong(f"nothing fits {model['model']!r}")
            found += [
                _entry(model, path, len(found) + number, template, common) for number, path in enumerate(expanded, 1)
            ]
        except ConversionError as problem:
            first, *rest = problem.diagnostics
            message = f"{where}: {first.message}" if where else first.message
            raise ConversionError([first._replace(message=message), *rest], problem.advice) from None
    if not found:
        raise _wrong("there are no models to convert", "name models, patterns, a --list or a --manifest")
    _check_places(found)
    return _with_names(found)


def _entry(model: Mapping[str, Any], path: str, number: int, template: str | None, common: Mapping[str, Any]) -> Entry:
    name = str(model.get("name") or _stem(path))
    settings = {**common, **model.get("settings", {})}
    output = model.get("output") or _directory(template or "")
    output = _filled(_in_folder(output, settings), path, name, number)
    form = form_of(output, settings)
    if form != Form():
        settings |= form.settings
    from_data(settings)
    extras = {key: model[key] for key in EXTRAS if key in model}
    extras |= {key: _filled(extras[key], path, name, number) for key in TEMPLATES if key in extras}
    return Entry(name, path, output, settings, extras, model.get("directory", ""), model.get("where", ""))


def _directory(template: str) -> str:
    """Returns a template for all results; one without an extension and without fields is a directory."""
    is_directory = template and "{" not in template and not Path(template).suffix
    return f"{template.rstrip('/')}/" if is_directory else template


def _in_folder(template: str, settings: Mapping[str, Any]) -> str:
    """Returns a template for files: a directory gets the models' names and the target's extension."""
    if template and not template.endswith("/") and (places.is_url(template) or not is_folder(template)):
        return template
    separator = "/" if template and not template.endswith("/") else ""
    return f"{template}{separator}{{name}}{form_of('', settings).ending}"


def _check_places(entries: Sequence[Entry]) -> None:
    counts = Counter(_normal(entry.output) for entry in entries)
    for entry in entries:
        if counts[_normal(entry.output)] > 1:
            hint = f"let the outputs differ, as by {{parent}} or {{number}}; {entry.model} is one of them"
            raise _wrong(f"several results would be {entry.output}", hint)


def _normal(place: str) -> str:
    return place if places.is_url(place) else os.path.abspath(place)  # noqa: PTH100  # Not Path.absolute, which keeps `..`.


def _with_names(entries: Sequence[Entry]) -> list[Entry]:
    """Returns the entries with unique names: paths replace equal names."""
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
    return stem if dot and ending in _ENDINGS else name


def _filled(template: str, path: str, name: str, number: int) -> str:
    parent = places.name_of(path.rstrip("/")[: -len(places.name_of(path)) or None])
    try:
        unknown = [field for _, field, _, _ in Formatter().parse(template) if field and field not in FIELDS]
        if unknown:
            raise _wrong(f"the template {template!r} has {{{unknown[0]}}}", f"known are: {', '.join(FIELDS)}")
        return template.format(name=name, parent=parent, number=number)
    except (ValueError, IndexError, KeyError) as problem:
        raise _wrong(f"the template {template!r} can't be filled in: {problem}") from None


def _wrong(message: str, hint: str = "") -> ConversionError:
    return error("bad-config", message, hint=hint)
