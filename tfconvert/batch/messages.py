"""The messages of a task: the stages that it begins, and how it ends.

A model may run code of its own, which can write anything to the pipe. The reader accepts only what has the form of a
message, and needs little memory whatever is written.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tfconvert.batch.task import CANCELLED
from tfconvert.converter.targets.iree import stages as iree
from tfconvert.converter.targets.litert import stages as litert
from tfconvert.converter.targets.stablehlo import stages as stablehlo
from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.json_text import WHY_NULL, json_text

MAX_MESSAGE = 1 << 16
"""Maximum bytes of a message."""

MAX_STAGES = 500
"""Maximum number of stages that a task may begin, some of them several times."""

# Maximum characters of a text in a message that is too long.
_MAX_TEXT = 400

# The stages that are no passes.
_STAGES = frozenset(
    ("compile", "export", "import", "load", "look in the cache", "open", "search-exclusions", "serialize")
    + ("verify", "write")
)


@cache
def stage_names() -> frozenset[str]:
    """Returns the names that stages may have."""
    tables = (litert.STAGES, stablehlo.STAGES, iree.STAGES, iree.EMBEDDED)
    return _STAGES | {stage.run for table in tables for stage in table}


def stage_line(name: str) -> bytes:
    """Returns the message that a stage begins."""
    return json.dumps({"stage": name}, allow_nan=False).encode() + b"\n"


def outcome_line(outcome: Mapping[str, Any]) -> bytes:
    """Returns the last message of a task, which leaves out what is too long.

    Args:
        outcome: `{"summary": {...}}`, or `{"problem": {...}}`, with the `trace` of an internal error.
    """
    line = json_text(outcome).encode()
    if len(line) >= MAX_MESSAGE:
        problem = outcome["problem"]
        errors = [_shortened(each) for each in problem["errors"]]
        advice = [text[:_MAX_TEXT] for text in problem.get("advice", ())[:8]]
        while len(line) >= MAX_MESSAGE:
            kept = errors[: max(len(errors) // 2, 1)]
            left = len(problem["errors"]) - len(kept)
            line = json_text({"problem": {"errors": kept, "advice": [*advice, f"{left} more are not listed"]}}).encode()
            errors = kept
    return line + b"\n"


def _shortened(diagnostic: Mapping[str, str]) -> dict[str, str]:
    return {name: text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..." for name, text in diagnostic.items()}


class MessageReader:
    """Reads the messages of a task.

    Args:
        pipe: The descriptor of the pipe.

    Attributes:
        outcome: The last message; `None` until it has come.
    """

    def __init__(self, pipe: int) -> None:
        self.outcome: dict[str, Any] | None = None
        self._pipe = pipe
        self._rest = b""
        self._count = 0

    def read(self) -> list[str] | None:
        """Returns the names of new stages; `None` at the end, and after anything that is not a message."""
        data = os.read(self._pipe, MAX_MESSAGE)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        stages = []
        for line in lines:
            self._count += 1
            message = _parsed(line) if self._count <= MAX_STAGES and self.outcome is None else None
            if message is None:
                self.outcome = None
                return None
            if "stage" not in message:
                self.outcome = message
            elif message["stage"] in stage_names():
                stages.append(message["stage"])
        return stages if len(self._rest) < MAX_MESSAGE else None


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Returns a message; `None` if it is not one."""
    try:
        message = json.loads(line) if len(line) < MAX_MESSAGE else None
    except (ValueError, RecursionError):
        return None
    return message if any(_has(fields, message, required=names) for names, fields in _MESSAGES.items()) else None


_Check = Callable[[object], bool]


def _has(fields: Mapping[str, _Check], value: object, required: str = "") -> bool:
    """Returns whether a value is an object of these fields."""
    return (
        isinstance(value, dict)
        and (not required or required in value)
        and all(name in fields and fields[name](each) for name, each in value.items())
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _is_number(value: object) -> bool:
    return _is_count(value) or (isinstance(value, float) and math.isfinite(value))


def _is_figure(value: object) -> bool:
    return value is None or _is_number(value)


def _is_truth(value: object) -> bool:
    return isinstance(value, bool)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


_EXTENSION = re.compile(r"(\.[a-z0-9]{1,16}){1,3}")


def _are_extensions(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) and _EXTENSION.fullmatch(each) for each in value)


_CODE = re.compile(r"[a-z0-9-]{1,64}")


def _is_code(value: object) -> bool:
    # Only the pool says that a task was cancelled.
    return isinstance(value, str) and _CODE.fullmatch(value) is not None and value != CANCELLED


_FIDELITY: Mapping[str, _Check] = {"is_low": _is_truth, "snr": _is_figure, "agreement": _is_figure, WHY_NULL: _is_table}
_SUMMARY: Mapping[str, _Check] = {
    "size": _is_count,
    "operators": _is_count,
    "seconds": _is_number,
    "notes": _is_count,
    "min_runtime_version": _is_text,
    "beside": _are_extensions,
    "fidelity": lambda value: _has(_FIDELITY, value),
    "max_absolute": _is_figure,
    "accelerators": _is_table,
    "cached": _is_truth,
    WHY_NULL: _is_table,
}
_DIAGNOSTIC: Mapping[str, _Check] = {**dict.fromkeys(Diagnostic._fields, _is_text), "code": _is_code}


def _are_errors(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(_has(_DIAGNOSTIC, each) and {"code", "message"} <= each.keys() for each in value)
    )


_PROBLEM: Mapping[str, _Check] = {"errors": _are_errors, "advice": _are_texts}
# The messages, by the field that each must have.
_MESSAGES: Mapping[str, Mapping[str, _Check]] = {
    "stage": {"stage": _is_text},
    "summary": {"summary": lambda value: _has(_SUMMARY, value)},
    "problem": {"problem": lambda value: _has(_PROBLEM, value, required="errors"), "trace": _is_text},
}
