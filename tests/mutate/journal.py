"""The journal of a campaign: the outcome of each mutant, a line each, from which an interrupted campaign goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from tests.mutate.worker import Outcome


class Journal:
    """The journal in a file; a context manager.

    Args:
        path: The file; `None` for a journal that isn't kept.
        campaign: What determines the mutants: a journal of others isn't continued.

    Raises:
        ValueError: The file is the journal of another campaign.
    """

    def __init__(self, path: Path | None, campaign: Mapping[str, Any]) -> None:
        self._path = path
        self._campaign = dict(campaign)
        self._file: TextIO | None = None
        self._kept = list(self._read())

    def _read(self) -> Iterator[tuple[Outcome, str]]:
        lines = self._path.read_text("utf-8").split("\n") if self._path is not None and self._path.exists() else [""]
        if lines[0] and json.loads(lines[0]) != self._campaign:
            raise ValueError(f"{self._path} is the journal of another campaign: {lines[0]}")
        for line in lines[1:-1]:  # What follows the last end of a line was being written when it was interrupted.
            message = json.loads(line)
            yield Outcome(**message["outcome"])._replace(output=""), message["kind"]

    def __enter__(self) -> Journal:
        """Returns itself, open to be continued."""
        if self._path is not None:
            self._file = self._path.open("w", encoding="utf-8")
            self._write(self._campaign)
            for outcome, kind in self._kept:
                self.add(outcome, kind)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()

    @property
    def outcomes(self) -> list[tuple[Outcome, str]]:
        """The outcomes that it held when it was opened, each with the mutant's kind."""
        return self._kept

    def add(self, outcome: Outcome, kind: str) -> None:
        """Adds an outcome."""
        self._write({"kind": kind, "outcome": outcome._asdict()})

    def _write(self, message: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(message) + "\n")
            self._file.flush()
