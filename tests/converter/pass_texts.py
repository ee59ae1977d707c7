"""Inputs of the fixture `filecheck`, and the comparison of a module's results before and after a pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tfconvert.converter.validation import pass_check
from tfconvert.schema.ir.builtin import ModuleOp


class Runnable(Protocol):
    """A pass."""

    @property
    def name(self) -> str:
        """Its name."""

    def apply(self, module: ModuleOp) -> object:
        """Rewrites a module."""


def check_results(before: ModuleOp, after: ModuleOp, pass_name: str) -> None:
    """Asserts that two modules compute the same, if they are not for LiteRT to run."""
    dialects = {op.name.partition(".")[0] for op in after.walk()}
    if "tfl" not in dialects or "tf" in dialects:
        pass_check.check(before, after, pass_name)


FileCheck = Callable[[Runnable, str], ModuleOp]
