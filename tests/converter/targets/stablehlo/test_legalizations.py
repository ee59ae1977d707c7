"""Every legalization to StableHLO, with static and dynamic sizes, against TensorFlow, in XLA and our executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tfconvert
from tests.converter.targets.stablehlo.cases import GROUPS, SIZES
from tests.converter.targets.stablehlo.engine import Program
from tests.converter.targets.stablehlo.group import Group, Input
from tests.converter.targets.stablehlo.stage_checks import check_sizes, on_buffers, staged
from tfconvert.converter.executor import executor
from tfconvert.schema.dialects.parsing import IRParser


def _shape(each: Input, sizes: Mapping[str, int] | None) -> list[int | None]:
    """Returns an input's shape with sizes for the letters, or `None`."""
    known = sizes or {}
    return [known.get(dim) if isinstance(dim, str) else dim for dim in each.shape]


def _function(tf: ModuleType, group: Group, sizes: Mapping[str, int] | None) -> Any:
    specs = [
        tf.TensorSpec(_shape(each, sizes), each.dtype, name=f"x{index}") for index, each in enumerate(group.inputs)
    ]

    def model(*inputs: Any) -> dict[str, Any]:
        return {name: run(*inputs) for name, run in group.cases.items()}

    return tf.function(model, autograph=False).get_concrete_function(*specs)


def _inputs(group: Group, sizes: Mapping[str, int]) -> list[np.ndarray]:
    draw = np.random.default_rng(7)
    arrays = []
    for each in group.inputs:
        shape = [dim for dim in _shape(each, sizes) if dim is not None]
        numbers = draw.uniform(each.low, each.high, shape)
        arrays.append(np.asarray(np.round(numbers) if "int" in each.dtype else numbers).astype(_numpy_type(each)))
    return arrays


def _numpy_type(each: Input) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if each.dtype == "bfloat16" else each.dtype)


def _compare(names: Sequence[str], found: Sequence[np.ndarray], expected: Mapping[str, Any]) -> None:
    wrong = {}
    for name, own in zip(names, found, strict=True):
        other = expected[name].numpy()
        if own.shape != other.shape or own.dtype != other.dtype:
            wrong[name] = f"{own.dtype}{own.shape} instead of {other.dtype}{other.shape}"
        elif own.dtype.kind in "fcV":
            own, other = (each.astype(np.float32) if each.dtype.itemsize == 2 else each for each in (own, other))
            close = 1e-5 if expected[name].numpy().dtype.itemsize > 2 else 3e-2
            if not np.allclose(own, other, rtol=close, atol=close * max(1, _largest(other))):
                wrong[name] = f"off by {np.abs(own - other).max()}"
        elif not np.array_equal(own, other):
            wrong[name] = f"{own} instead of {other}"
    assert wrong == {}


def _largest(array: np.ndarray) -> float:
    """Returns the largest magnitude that is not infinite."""
    return float(np.abs(array[np.isfinite(array)]).max(initial=0))


def _check(tf: ModuleType, group: Group, *, is_open: bool) -> None:
    for index, sizes in enumerate(SIZES):
        if index == 0 or not is_open:
            function = _function(tf, group, None if is_open else sizes)
            names, results = zip(*sorted(function.structured_outputs.items()), strict=True)
            converted = tfconvert.convert(
                function.graph.as_graph_def(add_shapes=True),
                inputs=[each.name for each in function.inputs],
                outputs=[each.name for each in results],
                target=tfconvert.StableHLO(weights="inline"),
            )
            text = bytes(converted).decode()
            program = Program(text, [(each.dtype, each.shape) for each in results]) if group.in_xla else None
            module = IRParser(text).parse_module()
            if program is None:
                tf.mlir.experimental.run_pass_pipeline(text, "", False)  # It verifies what it reads.
            if group.in_executor and is_open:
                stages = staged(module, "place-shape-values", "fuse-instructions", "add-shape-functions")
        inputs = _inputs(group, sizes)
        expected = function(*[tf.constant(each) for each in inputs])
        if program is not None:
            _compare(names, program.run(inputs), expected)
        if group.in_executor:
            _compare(names, executor.run(module, "main", inputs), expected)
        if group.in_executor and is_open:
            _compare(names, executor.run(stages, "main", inputs), expected)
            assert check_sizes(stages, inputs) > 0
            if group.on_buffers and index:
                _compare(names, on_buffers(module, inputs), expected)
        if not is_open:
            return


@pytest.mark.parametrize("name", GROUPS)
def test_known_sizes(tf: ModuleType, name: str) -> None:
    _check(tf, GROUPS[name](tf), is_open=False)


@pytest.mark.parametrize("name", GROUPS)
def test_open_sizes(tf: ModuleType, name: str) -> None:
    _check(tf, GROUPS[name](tf), is_open=True)
