"""Runs of models with XNNPACK and with LiteRT's own kernels, and how far results are apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def signal_to_noise(expected: Array, got: Array) -> float:
    """Returns the ratio of a result to its error, in decibels."""
    expected = expected.astype(np.float64)
    noise = np.square(expected - got).sum()
    return float(10 * np.log10(np.square(expected).sum() / max(noise, 1e-30)))


def run_model(content: bytes, inputs: Sequence[Array], *, builtin: bool = False, times: int = 2) -> Array:
    """Returns the first result of the last of several runs of a model.

    Args:
        content: The file.
        inputs: The inputs, in the model's order.
        builtin: Whether to run LiteRT's own kernels instead of XNNPACK's.
        times: The number of runs; state that kernels keep between runs mustn't matter.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if builtin else OpResolverType.AUTO
    interpreter = Interpreter(model_content=content, num_threads=1, experimental_op_resolver_type=resolver)
    details = interpreter.get_input_details()
    for detail, array in zip(details, inputs, strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for _ in range(times):
        interpreter.reset_all_variables()
        for detail, array in zip(details, inputs, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
    result: Array = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return result
