"""Runs a module that is written down as text in the reference executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from tfconvert.converter.executor import executor
from tfconvert.schema.dialects.context import dialect_context

Array = np.ndarray[Any, np.dtype[Any]]


def parse(text: str) -> ModuleOp:
    """Returns the verified module of a text."""
    module = Parser(dialect_context(), text).parse_module()
    module.verify()
    return module


def run_text(text: str, inputs: Sequence[Any], **options: Any) -> list[Array]:
    """Returns the results of the function `main` of a module; `options` are the executor's."""
    return executor.run(parse(text), "main", [np.asarray(value) for value in inputs], **options)
