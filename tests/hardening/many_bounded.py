"""Converts files one by one, each in a process of its own that is forked from one that has loaded everything.

`python -m tests.hardening.many_bounded FILE...` prints a line of JSON for each: how it ended, and what it took.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from typing import Any

import tfconvert
from tests.hardening.bounded import MEMORY, SECONDS
from tests.hardening.graphs import small_model


def _outcome(path: str) -> dict[str, Any]:
    try:
        model = tfconvert.convert(path)
        if model.report.size < 1 << 28:
            with tempfile.TemporaryFile() as stream:
                model.save(stream)
    except tfconvert.ConversionError as problem:
        return {"code": problem.code, "codes": [each.code for each in problem.diagnostics]}
    notes = [note.code for note in model.report.notes]
    return {"code": "", "size": model.report.size, "notes": notes, "operators": dict(model.report.operators)}


def main(paths: list[str]) -> None:
    """Converts files."""
    for path in paths:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
            found = _outcome(path)
            usage = resource.getrusage(resource.RUSAGE_SELF)
            print(
                json.dumps({**found, "rss": usage.ru_maxrss << 10, "cpu": usage.ru_utime + usage.ru_stime}), flush=True
            )
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(json.dumps({"code": f"status {status}"}), flush=True)


if __name__ == "__main__":
    tfconvert.convert(small_model())  # so that no child has to load anything
    main(sys.argv[1:])
