"""Passes on text: parse, verify, apply, verify, print, compare with what comments in the text expect.

What is in TensorFlow's dialects is also run before and after, on the same inputs: no pass may change a result.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser as CheckParser

from tests.converter.pass_texts import FileCheck, Runnable, check_results
from tests.support.run_text import agrees
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp


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
