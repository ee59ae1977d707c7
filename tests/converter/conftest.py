"""Passes on text: parse, verify, apply, verify, print, compare with what comments in the text expect.

What is in TensorFlow's dialects is also run before and after, on the same inputs: no pass may change a result.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser as CheckParser

from tests.run_text import agrees
from tfconvert.converter.validation import pass_check
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.verification import verify
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


@pytest.fixture
def filecheck(tmp_path: Path) -> FileCheck:
    """Returns a function that applies a pass to a text and checks the result against the CHECK lines in it."""

    def run(rewrite: Runnable, text: str) -> ModuleOp:
        module = IRParser(text).parse_module()
        verify(module, with_relations=False)
        before, agreed = module.clone(), agrees(module)
        rewrite.apply(module)
        verify(module, with_relations=agreed)
        check_results(before, module, rewrite.name)
        expected = tmp_path / "expected.mlir"
        expected.write_text(text)
        options = Options(match_filename=str(expected))
        assert Matcher(options, FInput("result", str(module)), CheckParser.from_opts(options)).run() == 0
        return module

    return run
