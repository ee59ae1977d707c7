"""Random numbers that follow from a seed against TensorFlow's, and the limits of those that don't."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.cases import ShapeCase, by_op, check_shapes
from tests.ops.comparison import Agree, compare, tensorflow
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate

_SEED = np.array([3, 7], np.int32)
_SHAPE = np.array([5, 3], np.int32)
_KEY, _COUNTER, _PHILOX = np.array([12345], np.uint64), np.array([3, 9], np.uint64), np.array(1, np.int32)


def _dtype(kind: Any) -> dict[str, Any]:
    return {"dtype": np.dtype(kind)}


def test_keys(agree: Agree) -> None:
    agree("StatelessRandomGetKeyCounter", (_SEED,), {})
    agree("StatelessRandomGetKeyCounterAlg", (_SEED,), {})
    agree("StatelessRandomGetAlg", (), {})


_OF_SEED = ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal")
_OF_KEY = ("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2")


@pytest.mark.parametrize("op", [*_OF_SEED, *_OF_KEY])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_floats(agree: Agree, op: str, kind: Any) -> None:
    tolerance = 0 if "Uniform" in op else 2e-3 if kind == np.float16 else 2e-6
    start = (_SEED,) if op in _OF_SEED else (_KEY, _COUNTER, _PHILOX)
    agree(op, (_SHAPE, *start), _dtype(kind), tolerance=tolerance)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_integers(kind: Any) -> None:
    limits = np.array(-5, kind), np.array(17, kind)
    for op, start in (
        ("StatelessRandomUniformInt", (_SEED,)),
        ("StatelessRandomUniformIntV2", (_KEY, _COUNTER, _PHILOX)),
    ):
        inputs = (_SHAPE, *start, *limits)
        # Python's binding takes the type from the limits.
        (expected,) = tensorflow(op, inputs, {})
        (result,) = evaluate(Call(op, inputs, _dtype(kind)))
        compare(result, expected)


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_classes(agree: Agree, dtype: str, kind: Any) -> None:
    attributes = {"output_dtype": np.dtype(kind)}
    agree("StatelessMultinomial", (f"{dtype}[2,5]", np.array(40, np.int32), _SEED), attributes)


@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64])
def test_all_integers(agree: Agree, kind: Any) -> None:
    agree("StatelessRandomUniformFullInt", (_SHAPE, _SEED), _dtype(kind))
    agree("StatelessRandomUniformFullIntV2", (_SHAPE, _KEY, _COUNTER, _PHILOX), _dtype(kind))


SHAPES: list[ShapeCase] = [
    ("RandomShuffle", ["f32[4,2]"], {}),
    ("StatelessRandomNormal", [[2, 3], [1, 2]], {}),
    ("StatelessRandomGetKeyCounter", [[1, 2]], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("TruncatedNormal", (_SHAPE,), _dtype(np.float32)),
        ("ParameterizedTruncatedNormal", (_SHAPE, *np.array([0, 1, -2, 2], np.float32)), {}),
        ("RandomUniformInt", (_SHAPE, np.array(0, np.int32), np.array(9, np.int32)), {}),
        ("RandomShuffle", (np.arange(9),), {}),
    ],
)
def test_numbers_without_a_seed_have_no_value(op: str, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=r"generator|random"):
        evaluate(Call(op, inputs, attributes))
