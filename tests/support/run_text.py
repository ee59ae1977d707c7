"""Runs a module that is written down as text in the reference executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.executor import executor
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.errors import VerifyError

Array = np.ndarray[Any, np.dtype[Any]]


def parse(text: str, *, with_relations: bool = True) -> ModuleOp:
    """Returns the verified module of a text; operands and results need not agree with each other if so requested."""
    module = IRParser(text).parse_module()
    verify(module, with_relations=with_relations)
    return module


def agrees(module: ModuleOp) -> bool:
    """Returns whether what ops take and return agrees in shapes and types; not all that tests make up does."""
    try:
        verify(module)
    except VerifyError:
        return False
    return True


def run_text(text: str, inputs: Sequence[Any], **options: Any) -> list[Array]:
    """Returns the results of the function `main` of a module; `options` are the executor's."""
    return executor.run(parse(text), "main", [np.asarray(value) for value in inputs], **options)
