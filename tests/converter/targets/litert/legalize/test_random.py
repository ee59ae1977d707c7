"""Random ops: numbers that follow from a seed are TensorFlow's; of the runtime's own, shapes, types and ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Array, Case, Check, converted, graph, operand
from tests.support.litert import RunTFLite

CASES = [
    Case("RandomUniform", ["i32[2]@40:41"], {"dtype": np.float32, "seed": 3}),
    Case("RandomStandardNormal", ["i32[2]@40:41"], {"dtype": np.float32}),
    Case("Multinomial", ["f32[2,3]", "i32[]@5:6"], {"output_dtype": np.int64}),
]

_KEY = np.array([3 << 40], np.uint64)
# The lower half of the counter overflows.
_COUNTER = np.array([2**64 - 2, 5], np.uint64)
_SEED = "i64[2]@-9000000000000:9000000000000"


def _long(number: int) -> Array:
    return np.array(number, np.int64)


def _of_seeds() -> Iterator[Case]:
    for size in ("i32[2]@5:6", [5, 3], [1, 1]):
        for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
            for kind in ("RandomUniform", "RandomNormal", "TruncatedNormal"):
                yield Case(f"Stateless{kind}", (size, _SEED), {"dtype": dtype})
                yield Case(f"Stateless{kind}V2", (size, _KEY, _COUNTER, 1), {"dtype": dtype})
        for dtype in (np.int32, np.int64, np.uint32, np.uint64):
            yield Case("StatelessRandomUniformFullInt", (size, "i32[2]"), {"dtype": dtype})
            yield Case("StatelessRandomUniformFullIntV2", (size, _KEY, _COUNTER, 3), {"dtype": dtype})
    for low, high in ((-3, 9), (-(1 << 31), (1 << 31) - 1)):
        bounds = np.array(low, np.int32), np.array(high, np.int32)
        yield Case("StatelessRandomUniformInt", ("i32[2]@5:6", _SEED, *bounds))
        yield Case("StatelessRandomUniformIntV2", ([5, 3], _KEY, _COUNTER, 1, *bounds))
    yield Case("StatelessRandomUniformInt", ("i32[2]@5:6", _SEED, "i32[]@-9:-1", "i32[]@1:9"))
    for below, above in (
        (-(1 << 40), (1 << 31) - (1 << 40)),
        (-5, 12345678901),
        (-(1 << 62), (1 << 62) - 1),
        (0, 1 << 61),
    ):
        yield Case("StatelessRandomUniformInt", ([7], _SEED, _long(below), _long(above)))
    yield Case("StatelessRandomUniformInt", ([40], _SEED, _long(-(1 << 61)), _long((1 << 61) + (1 << 60))))
    for logits, count in (("f32[1,3]", 4), ("f32[3,7]", 9), ("f16[2,5]", 6), ("f32[1,300]", 50)):
        yield Case("StatelessMultinomial", (logits, count, _SEED), {"output_dtype": np.int32})
        yield Case("StatelessMultinomial", (logits, count, "i32[2]"), {"output_dtype": np.int64})
    certain = np.array([[np.nan, -2, -np.inf, 1, np.inf, 0.5, -np.inf]], np.float32)
    yield Case("StatelessMultinomial", (certain, 60, _SEED), {"output_dtype": np.int64})
    yield Case("StatelessRandomGetKeyCounter", (_SEED,))
    yield Case("StatelessRandomGetKeyCounterAlg", ("i32[2]",))


OF_SEEDS = list(_of_seeds())


@pytest.mark.parametrize("case", OF_SEEDS, ids=str)
def test_numbers_of_seeds(case: Case, check: Check) -> None:
    check(case)


def _drawn_by_philox(tf: ModuleType) -> dict[str, Callable[[Any], Any]]:
    random, experimental = tf.random, tf.random.experimental
    return {
        "uniform": lambda seed: random.stateless_uniform([5, 3], seed, alg="philox"),
        "normal": lambda seed: random.stateless_normal([5, 3], seed, alg="philox"),
        "truncated": lambda seed: random.stateless_truncated_normal([5, 3], seed, alg="philox"),
        "integers": lambda seed: random.stateless_uniform([7], seed, -9, 90, tf.int32, alg="philox"),
        "whole": lambda seed: random.stateless_uniform([7], seed, None, None, tf.int64, alg="philox"),
        "split": lambda seed: experimental.stateless_split(seed, 2, alg="philox"),
        "fold_in": lambda seed: experimental.stateless_fold_in(seed, 7, alg="philox"),
    }


@pytest.mark.parametrize("kind", ["uniform", "normal", "truncated", "integers", "whole", "split", "fold_in"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_philox_that_is_asked_for(kind: str, dtype: str, tf: ModuleType, run_tflite: RunTFLite) -> None:
    """Its seed is mixed by ops of the graph, with unsigned words of 64 bits."""
    draw = _drawn_by_philox(tf)[kind]
    seed = np.array([3, -4], dtype)
    function = tf.function(lambda seed: {"y": draw(seed)}, input_signature=[tf.TensorSpec((2,), dtype, name="seed")])
    (result,) = run_tflite(bytes(tfconvert.convert(function)), [seed])
    expected = function(seed)["y"].numpy()
    if expected.dtype == np.float32 and kind != "uniform":
        np.testing.assert_allclose(result, expected, 1e-5, 2e-6)
    else:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_halves_that_a_model_computes_with_are_those_of_their_type(
    name: str, tf: ModuleType, run_tflite: RunTFLite
) -> None:
    def draw(seed: Any) -> Any:
        numbers = tf.random.stateless_uniform((3, 5), seed, dtype=name)
        return {"y": tf.cast(numbers * 2, tf.float32)}

    seed = np.array([3, -4], np.int32)
    function = tf.function(draw, input_signature=[tf.TensorSpec((2,), tf.int32, name="seed")])
    (result,) = run_tflite(bytes(tfconvert.convert(function)), [seed])
    np.testing.assert_array_equal(result, function(seed)["y"].numpy())


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case("StatelessRandomUniform", ([3], _SEED), {"dtype": np.float64}), "not of f64"),
        (Case("StatelessRandomUniformV2", ([3], _KEY, _COUNTER, "i32[]@1:2")), "not known to be Philox"),
        (Case("StatelessRandomUniformV2", ([3], _KEY, _COUNTER, 2)), "ThreeFry"),
        (Case("StatelessRandomUniformInt", ([3], [1, 2], _long(-(1 << 62)), _long(1 << 62))), "larger than 9223"),
        (Case("StatelessMultinomial", ("f32[64,300]", 50, _SEED), {"output_dtype": np.int32}), "in threads"),
        (Case("StatelessMultinomial", ("f32[2,?3]", 5, _SEED), {"output_dtype": np.int32}), "not known"),
        (Case("StatelessRandomUniformInt", ([3], _SEED, _long(-(1 << 62)), _long(1 << 62))), "larger than 9223"),
    ],
    ids=str,
)
def test_declined(case: Case, reason: str, tmp_path: Path) -> None:
    with pytest.raises(tfconvert.ConversionError, match=reason):
        converted(case, tmp_path)


def test_an_unknown_batch_is_named_with_its_setting(tmp_path: Path) -> None:
    with pytest.raises(tfconvert.ConversionError, match="the batch") as caught:
        converted(Case("StatelessMultinomial", ("f32[?2,3]", 5, _SEED), {"output_dtype": np.int32}), tmp_path)
    assert "--batch" in caught.value.diagnostics[0].hint


# The range of the numbers, its end included, their mean and their standard deviation.
OWN = (
    (Case("RandomUniform", ["i32[2]@40:41"], {"dtype": np.float16}), (0, 0.9991), (0.5, 0.29)),
    (Case("RandomStandardNormal", ["i32[2]@40:41"], {"dtype": np.float16}), (-7, 7), (0, 1)),
    (Case("TruncatedNormal", ["i32[2]@40:41"], {"dtype": np.float32}), (-2, 2), (0, 0.88)),
    (Case("RandomUniformInt", ["i32[2]@40:41", -3, 9]), (-3, 8), (2.5, 3.45)),
    (Case("RandomUniformInt", ([40, 40], _long(0), _long(1 << 31))), (0, (1 << 31) - 1), (1 << 30, (1 << 31) * 0.29)),
)


# The exact mean and deviation of the second limits is that of the half of a normal distribution.
LIMITED = "ParameterizedTruncatedNormal"
_LIMITED = (
    *(([0.5], [2.0], [low], [high], moments) for low, high, moments in ((-1.5, 2.5, (0.5, 1.08)), (-99, 99, (0.5, 2)))),
    (0.0, 1.0, 0.0, np.inf, (0.798, 0.603)),
    (0.0, 1.0, -np.inf, -5.0, (-5.1865, 0.1787)),
    (1.0, 1.0, 6.0, 9.0, (6.1865, 0.1787)),
)


@pytest.mark.parametrize("limits", _LIMITED, ids=str)
def test_normal_numbers_within_limits(limits: Any, run_tflite: RunTFLite, tmp_path: Path) -> None:
    *parameters, (mean, deviation) = limits
    case = Case(LIMITED, ("i32[2]@40:41", *(np.array(x, np.float32) for x in parameters)))
    result = _run(case, run_tflite, tmp_path)
    low, high = (np.asarray(each).item() for each in parameters[2:])
    assert result.shape == (40, 40)
    assert low <= result.min()
    assert result.max() <= high
    assert result.mean() == pytest.approx(mean, abs=0.12 * deviation)
    assert result.std() == pytest.approx(deviation, rel=0.12)


def test_limits_of_each_row(run_tflite: RunTFLite, tmp_path: Path) -> None:
    low, high = np.array([-1, 2, 5], np.float32), np.array([0, 3, 6], np.float32)
    zeros, ones = np.zeros(3, np.float32), np.ones(3, np.float32)
    case = Case(LIMITED, ([3, 4, 50], zeros, ones, low, high))
    result = _run(case, run_tflite, tmp_path).reshape(3, 200)
    assert (result.min(1) >= low).all()
    assert (result.max(1) <= high).all()
    assert (np.ptp(result, 1) > 0.4).all()


@pytest.mark.parametrize(("case", "limits", "moments"), OWN, ids=str)
def test_distributions(
    case: Case, limits: tuple[float, float], moments: tuple[float, float], run_tflite: RunTFLite, tmp_path: Path
) -> None:
    result = _run(case, run_tflite, tmp_path).astype(np.float64)
    mean, deviation = moments
    assert result.shape == (40, 40)
    assert limits[0] <= result.min()
    assert result.max() <= limits[1]
    assert result.mean() == pytest.approx(mean, abs=0.1 * deviation)
    assert result.std() == pytest.approx(deviation, rel=0.06)
    assert len(np.unique(result)) > min(limits[1] - limits[0], 100)


SHUFFLE = Case("RandomShuffle", ["f32[?20,2]"])


def test_shuffled_rows(run_tflite: RunTFLite, tmp_path: Path) -> None:
    rows = np.arange(40, dtype=np.float32).reshape(20, 2)
    result = _run(SHUFFLE, run_tflite, tmp_path, [rows])
    assert not np.array_equal(result, rows)
    np.testing.assert_array_equal(result[np.argsort(result[:, 0])], rows)


def _run(case: Case, run_tflite: RunTFLite, folder: Path, inputs: Sequence[Array] = ()) -> Array:
    operands = [operand(spec, 1) for spec in case.operands]
    path = folder / "graph.pb"
    path.write_bytes(graph(case, operands).SerializeToString())
    given = {f"x{i}": each.value for i, each in enumerate(operands) if each.shape is not None}
    model = tfconvert.convert(path, inputs=list(given), outputs=["y"])
    (result,) = run_tflite(bytes(model), list(inputs) or list(given.values()))
    return result


def test_random_uniform(run_tflite: RunTFLite, tmp_path: Path) -> None:
    result = _run(CASES[0], run_tflite, tmp_path)
    assert result.shape == (40, 40)
    assert result.dtype == np.float32
    assert result.min() >= 0
    assert result.max() < 1
    assert result.mean() == pytest.approx(0.5, abs=0.05)


def test_random_standard_normal(run_tflite: RunTFLite, tmp_path: Path) -> None:
    result = _run(CASES[1], run_tflite, tmp_path)
    assert result.mean() == pytest.approx(0, abs=0.1)
    assert result.std() == pytest.approx(1, abs=0.1)


def test_multinomial(run_tflite: RunTFLite, tmp_path: Path) -> None:
    result = _run(CASES[2], run_tflite, tmp_path)
    assert result.shape == (2, 5)
    assert result.dtype == np.int64
    assert set(result.ravel()) <= {0, 1, 2}
