"""Modules of one marked function and a caller, as text, and marks as TensorFlow writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from schema.dialects.context import dialect_context
from schema.dialects.parsing import IRParser

LSTM = ("1x4x3xf32", "1x5xf32", "1x5xf32", "3x20xf32", "5x20xf32", "20xf32")
LSTM_RESULTS = ("1x5xf32", "1x4x5xf32", "1x5xf32", "1x5xf32", "f32")


def mark(name: str, **attributes: Any) -> str:
    """Returns the function attribute that says what is implemented, with attributes if there are any."""
    if not attributes:
        return f'tf._implements = "{name}"'
    pairs = ", ".join(f"{key} = {_written(value)}" for key, value in attributes.items())
    return f'tf._implements = #tf_type.func<@"{name}", {{{pairs}}}>'


def keras(name: str, **attributes: bool) -> str:
    """Returns the function attributes that Keras writes."""
    flags = "".join(f", tf.{key} = {_written(value)}" for key, value in attributes.items())
    return f'tf.api_implements = "{name}"{flags}'


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return f"{value} : i64" if isinstance(value, int) else f"{value:e} : f32"


def text(marks: str, arguments: Sequence[str], results: Sequence[str], returned: Sequence[int] = (0,)) -> str:
    """Returns a module whose `main` calls a marked function, whose body is an op that nobody knows.

    Args:
        marks: The function's attributes.
        arguments: The types of its arguments, as they stand in `tensor<...>`.
        results: The types of its results.
        returned: The results that `main` returns.
    """
    taken, given = ([f"tensor<{kind}>" for kind in kinds] for kinds in (arguments, results))
    parameters = ", ".join(f"%a{index}: {kind}" for index, kind in enumerate(taken))
    values = ", ".join(f"%a{index}" for index in range(len(taken)))
    outputs = ", ".join(f"%r{index}" for index in range(len(given)))
    signature = f"({', '.join(taken)}) -> ({', '.join(given)})"
    kept, kinds = ", ".join(f"%r{index}" for index in returned), ", ".join(given[index] for index in returned)
    return f"""
      func.func @main({parameters}) -> ({kinds}) {{
        {outputs} = "tf.PartitionedCall"({values}) <{{f = @f}}> : {signature}
        func.return {kept} : {kinds}
      }}
      func.func private @f({parameters}) -> ({", ".join(given)}) attributes {{{marks}}} {{
        {outputs} = "tf.Mystery"({values}) : {signature}
        func.return {outputs} : {", ".join(given)}
      }}
    """


def module(source: str) -> ModuleOp:
    """Returns the verified module of a text."""
    parsed = IRParser(dialect_context(), source).parse_module()
    parsed.verify()
    return parsed
