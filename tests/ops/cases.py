"""Cases of single ops, and what is asserted of them: of shape functions, of kernels, and of what both refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from tests.ops.comparison import operand as array_operand
from tests.ops.tiny_graphs import Inferred, Veil, build, operand, zeros
from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.types import Shape

KernelCase = tuple[str, tuple[Any, ...], dict[str, Any]]
"""An op, its operands as `comparison.operand` takes them, and its attributes."""

ShapeCase = tuple[str, list[Any], dict[str, Any]]
"""An op, its operands as `tiny_graphs.operand` takes them, and its attributes."""


def by_op(cases: Sequence[KernelCase] | Sequence[ShapeCase]) -> pytest.MarkDecorator:
    """Returns the mark that runs a test with each case, by the name of its op."""
    return pytest.mark.parametrize("case", cases, ids=[case[0] for case in cases])


def check_refused(case: KernelCase) -> None:
    """Asserts that a kernel refuses operands that don't fit."""
    op, specs, attributes = case
    with pytest.raises(ConversionError) as caught:
        evaluate(Call(op, tuple(array_operand(spec, 1) for spec in specs), attributes))
    assert caught.value.code == "bad-operand"
    assert caught.value.diagnostics[0].op == f"tf.{op}"


def check_shapes(case: ShapeCase, inferred: Inferred) -> None:
    """Asserts that a shape function says at least what TensorFlow's says, and nothing that contradicts it."""
    expected, actual = inferred(lambda: _build(case))
    assert all(map(_at_least, actual, expected)), f"TensorFlow: {expected}, ours: {actual}"


def check_contradiction(case: ShapeCase, folder: Path) -> None:
    """Asserts that shape inference refuses what TensorFlow refuses to compute."""
    with pytest.raises((tf.errors.OpError, ValueError)):
        _build(case, zeros)
    veil = Veil()
    module, _ = build(folder / "graph.pb", lambda: _build(case, veil), veil.lift)
    with pytest.raises(ConversionError) as refused:
        ShapeInference().apply(module)
    assert refused.value.code == "shape-mismatch"


def _build(case: ShapeCase, made: Callable[[Any], Any] = operand) -> Any:
    name, operands, attributes = case
    values = [[made(item) for item in spec] if _is_several(spec) else made(spec) for spec in operands]
    if name == "Slice":
        values[1:] = [tf.convert_to_tensor(value, tf.int32) for value in values[1:]]
    function = getattr(tf.raw_ops, name)
    parameters = [key for key in _parameters(name) if key not in attributes]
    return function(**dict(zip(parameters, values, strict=False)), **attributes)


def _is_several(spec: Any) -> bool:
    return isinstance(spec, list) and any(isinstance(item, str) for item in spec)


def _parameters(name: str) -> list[str]:
    op_def = tf.raw_ops.__dict__[name].__signature__
    return list(op_def.parameters)


def _at_least(ours: Shape | None, theirs: Shape | None) -> bool:
    """Returns whether one shape says all that the other says."""
    if theirs is None:
        return True
    return (
        ours is not None
        and len(ours) == len(theirs)
        and all(expected in (-1, dim) for dim, expected in zip(ours, theirs, strict=True))
    )
