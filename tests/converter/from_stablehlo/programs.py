"""Programs of StableHLO, converted and run in LiteRT."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ai_edge_litert.interpreter as litert
import numpy as np

import tfconvert
from tests.support.litert import run

_TYPES: Mapping[str, str] = {"bool": "i1", "float16": "f16", "float32": "f32", "float64": "f64"} | {
    f"{sign}int{width}": f"{prefix}{width}" for sign, prefix in (("", "i"), ("u", "ui")) for width in (8, 16, 32, 64)
}


def type_of(array: np.ndarray[Any, Any], *, is_open: bool = False) -> str:
    """Returns the type of an array, `4x?xf32`; the first dimension may be open."""
    sizes = ["?" if is_open and not axis else str(size) for axis, size in enumerate(array.shape)]
    return f"tensor<{'x'.join([*sizes, _TYPES[array.dtype.name]])}>"


def program(body: str, operands: Sequence[str], results: Sequence[str]) -> str:
    """Returns a module of one function.

    Args:
        body: Its ops, which read `%a`, `%b` and so on, and end in `return`.
        operands: The types of its operands.
        results: Those of its results.
    """
    arguments = ", ".join(f"%{letter}: {kind}" for letter, kind in zip("abcdefgh", operands, strict=False))
    return f"module {{\n  func.func public @main({arguments}) -> ({', '.join(results)}) {{\n{body}\n  }}\n}}\n"


def of_jax(text: str) -> str:
    """Returns a module as JAX writes one with dynamic sizes, which are at least 1."""
    attributes = "jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32"
    return text.replace("module {", f"module attributes {{{attributes}}} {{", 1)


def convert(text: str, **settings: Any) -> bytes:
    """Returns the file that a module is converted to."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.mlir")
        path.write_text(text, "utf-8")
        return bytes(tfconvert.convert(str(path), **settings))


def results(text: str, *inputs: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    return run(convert(text), inputs)


def operators(content: bytes) -> dict[str, int]:
    """Returns how many operators of each kind the first subgraph of a file has."""
    ops = litert.Interpreter(model_content=content)._get_ops_details()
    return dict(Counter(op["op_name"] for op in ops if op["op_name"] != "DELEGATE"))
