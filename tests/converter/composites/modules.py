"""Modules of one marked function and a caller, as text, and marks as TensorFlow writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp

LSTM = ("1x4x3xf32", "1x5xf32", "1x5xf32", "3x20xf32", "5x20xf32", "20xf32")
LSTM_RESULTS = ("1x5xf32", "1x4x5xf32", "1x5xf32", "1x5xf32", "f32")
CELL = ("1x3xf32", "5x16xf32", "16xf32", "4x2xf32")
COUPLED = ("1x3xf32", "5x12xf32", "12xf32", "4x2xf32")
CELL_RESULT = "1x2xf32"
NMS = ("12x4xf32", "12xf32", "i32", "f32", "f32", "i1")
NMS_RESULTS = ("1x?xi32", "i32")
BOXES = ("1x6x4xf32", "1x6x4xf32", "6x4xf32")
FOUND = ("1x10x4xf32", "1x10xf32", "1x10xf32", "1xf32")
STRING = "!tf_type.string"
DETECTION: dict[str, Any] = {
    "max_detections": 10,
    "max_classes_per_detection": 1,
    "num_classes": 3,
    "nms_score_threshold": 0.5,
    "nms_iou_threshold": 0.25,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
    "use_regular_nms": True,
}
UNPOOLING: dict[str, Any] = {"pool_size": [2, 3], "strides": [4, 5], "padding": "SAME"}
NGRAMS: dict[str, Any] = {"width": 2, "string_separator": " ", "axis": -1, "reduction_type": "STRING_JOIN"}
SGNN: dict[str, Any] = {"hash_seed": [902, 341], "buckets": 2}


def mark(name: str, **attributes: Any) -> str:
    """Returns the function attribute that says what is implemented, with attributes if there are any."""
    if not attributes:
        return f'tf._implements = "{name}"'
    pairs = ", ".join(f"{key} = {_written(value)}" for key, value in attributes.items())
    return f'tf._implements = #tf_type.func<@"{name}", {{{pairs}}}>'


def keras(name: str, **attributes: Any) -> str:
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
    """Returns a module whose `main` calls a marked function, whose body is an unknown op.

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
    bound = f"{outputs} = " if given else ""
    signature = f"({', '.join(taken)}) -> ({', '.join(given)})"
    kept, kinds = ", ".join(f"%r{index}" for index in returned), ", ".join(given[index] for index in returned)
    return f"""
      func.func @main({parameters}) -> ({kinds}) {{
        {bound}"tf.PartitionedCall"({values}) <{{f = @f}}> : {signature}
        func.return {kept}{" : " * bool(kinds)}{kinds}
      }}
      func.func private @f({parameters}) -> ({", ".join(given)}) attributes {{{marks}}} {{
        {bound}"tf.Mystery"({values}) : {signature}
        func.return {outputs}{" : " * bool(given)}{", ".join(given)}
      }}
    """


def looped(marks: str, arguments: Sequence[str], results: Sequence[str]) -> str:
    """Returns a module in which a loop calls the marked function."""
    made = "\n".join(f'%a{index} = "tf.Make"() : () -> tensor<{kind}>' for index, kind in enumerate(arguments))
    head, _, function = text(marks, arguments, results).partition("func.func private")
    call = next(line for line in head.splitlines() if "Call" in line)
    return f"""
      func.func @main() {{
        "tf.While"() <{{cond = @cond, body = @body}}> : () -> ()
        func.return
      }}
      func.func private @cond() -> tensor<i1> {{
        %0 = "tf.Make"() : () -> tensor<i1>
        func.return %0 : tensor<i1>
      }}
      func.func private @body() {{
        {made}
        {call}
        func.return
      }}
      func.func private {function}
    """


def branching(marks: str, arguments: Sequence[str], results: Sequence[str]) -> str:
    """Returns a module in which the marked function is a conditional's branch."""
    call, condition = '"tf.PartitionedCall"(', '"tf.If"(%c, '
    source = text(marks, arguments, results).replace(call, condition).replace("@main(", "@main(%c: tensor<i1>, ")
    return source.replace("<{f = @f}> : (", "<{then_branch = @f, else_branch = @f}> : (tensor<i1>, ")


def module(source: str) -> ModuleOp:
    """Returns the verified module of a text."""
    parsed = IRParser(source).parse_module()
    verify(parsed)
    return parsed
