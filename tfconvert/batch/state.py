"""The finished part of a batch, in a file that is appended to after each model: the next run skips it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tfconvert.batch import places
from tfconvert.batch.cache_key import cache_key, is_run
from tfconvert.batch.entries import Entry
from tfconvert.batch.task import Outcome
from tfconvert.converter.targets.output_form import form_of
from tfconvert.exporters.output_file import check_directory
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import is_missing, read_file
from tfconvert.schema.json_text import json_text


class State:
    """The results of earlier runs, by their keys; not thread-safe.

    Args:
        path: The file, which need not exist.

    Raises:
        ConversionError: It can't be read, or is not such a file (`bad-config`), or its directory doesn't exist
            (`output-not-writable`).
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._done: dict[str, Outcome] = {}
        try:
            lines = [] if is_missing(path) else read_file(path).decode().splitlines(keepends=True)
        except OSError as problem:
            raise error("bad-config", f"can't read the state {path}: {problem.strerror}") from problem
        except UnicodeDecodeError as problem:
            raise _not_a_state(path) from problem
        check_directory(path)
        for number, line in enumerate(lines, start=1):
            if not line.endswith("\n"):
                break  # The last run was killed while it wrote the line.
            self._learn(line, number)
        self._ends_whole = not lines or lines[-1].endswith("\n")

    def find(self, entry: Entry) -> Outcome | None:
        """Returns the outcome of an entry in an earlier run, if it succeeded and nothing has changed since."""
        outcome = self._done.get(fingerprint(entry))
        if outcome is None:
            return None
        files = [places.beside(entry.output, part) for part in (*outcome.summary.get("beside", ()), "")]
        return outcome if all(map(places.exists, files)) else None

    def add(self, entry: Entry, outcome: Outcome) -> None:
        """Records that an entry succeeded.

        Raises:
            ConversionError: The file can't be written (`output-not-writable`).
        """
        key = fingerprint(entry)
        self._done[key] = outcome
        line = json_text(
            {
                "key": key,
                "name": entry.name,
                "output": entry.output,
                "summary": outcome.summary,
                "seconds": round(outcome.seconds, 3),
                "peak": outcome.peak,
            }
        )
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n" if self._ends_whole else f"\n{line}\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            raise error("output-not-writable", f"can't write the state {self._path}: {problem.strerror}") from None
        self._ends_whole = True

    def _learn(self, line: str, number: int) -> None:
        if not line.strip():
            return
        try:
            row = json.loads(line)
            self._done[row["key"]] = Outcome(None, row["summary"], float(row["seconds"]), int(row["peak"]))
        except (ValueError, KeyError, TypeError):
            if number == 1:
                raise _not_a_state(str(self._path)) from None
            # A run was killed while it wrote the line: the model is converted again.


def _not_a_state(path: str) -> ConversionError:
    hint = "name another file with --state, or delete this one"
    return error("bad-config", f"{path} is not the state of a batch", hint=hint)


def fingerprint(entry: Entry) -> str:
    """Returns the key of an entry's result, from the names, sizes and times of its files."""
    if places.is_url(entry.model):
        files = places.state_of(entry.model)
    else:
        try:
            stats = [(os.fspath(path), path.stat()) for path in Source(entry.model).files()]
            files = " ".join(f"{path}:{stat.st_size}:{stat.st_mtime_ns}" for path, stat in stats)
        except (OSError, ConversionError):
            files = ""  # Converting tells what is wrong with it.
    form = form_of("", entry.settings)
    return cache_key(
        form, entry.settings, [entry.model, entry.output, files, dict(entry.extras)], is_run=is_run(entry.settings)
    )
