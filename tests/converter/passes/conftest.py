"""Passes on text: parse, verify, apply, verify, print, compare with what comments in the text expect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser as CheckParser
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from schema.dialects.context import dialect_context


class Runnable(Protocol):
    """A pass."""

    def apply(self, module: ModuleOp) -> object:
        """Rewrites a module."""


FileCheck = Callable[[Runnable, str], ModuleOp]


@pytest.fixture
def filecheck(tmp_path: Path) -> FileCheck:
    """Returns a function that applies a pass to a text and checks the result against the CHECK lines in it."""

    def run(rewrite: Runnable, text: str) -> ModuleOp:
        module = Parser(dialect_context(), text).parse_module()
        module.verify()
        rewrite.apply(module)
        module.verify()
        expected = tmp_path / "expected.mlir"
        expected.write_text(text)
        options = Options(match_filename=str(expected))
        assert Matcher(options, FInput("result", str(module)), CheckParser.from_opts(options)).run() == 0
        return module

    return run
