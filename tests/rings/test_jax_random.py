"""Random numbers of JAX whose keys are inputs are those of JAX in LiteRT, bit by bit where no function rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import run

jax = pytest.importorskip("jax")
jnp, lax, random = jax.numpy, jax.lax, jax.random

KEY = np.array([0, 42], np.uint32)
WORDS = np.array([1, 2, 3, 4], np.uint32)
X = np.linspace(-1, 1, 18, dtype=np.float32).reshape(3, 6)


def _bits(algorithm: str, shape: Sequence[int], dtype: str = "uint32") -> Callable[..., Any]:
    chosen = getattr(lax.RandomAlgorithm, f"RNG_{algorithm}")
    return lambda state: lax.rng_bit_generator(state, shape, dtype=jnp.dtype(dtype), algorithm=chosen)


def _denoised(key: Any, x: Any) -> Any:
    def step(_: Any, carry: Any) -> Any:
        key, x = carry
        key, own = random.split(key)
        return key, x * 0.9 + 0.1 * random.normal(own, x.shape)

    return lax.fori_loop(0, 3, step, (key, x))[1]


PROGRAMS: dict[str, tuple[Callable[..., Any], Sequence[np.ndarray]]] = {
    "uniform": (lambda key: random.uniform(key, (3, 5)), [KEY]),
    "normal": (lambda key: random.normal(key, (3, 5)), [KEY]),
    "bernoulli": (lambda key: random.bernoulli(key, 0.3, (3, 5)), [KEY]),
    "bits of 8": (lambda key: random.bits(key, (4, 3), "uint8"), [KEY]),
    "integers": (lambda key: random.randint(key, (4,), 0, 100), [KEY]),
    "split": (lambda key: random.split(key, 3), [KEY]),
    "fold in": (random.fold_in, [KEY, np.array(5, np.int32)]),
    "seed": (lambda seed: random.uniform(random.key(seed), (4,)), [np.array(3, np.int32)]),
    "categorical": (random.categorical, [KEY, X]),
    "denoised": (_denoised, [KEY, X]),
    "key of bits": (lambda seed: random.uniform(random.key(seed, impl="rbg"), (4,)), [np.array(3, np.int32)]),
    "constant key of bits": (lambda x: x + random.uniform(random.key(5, impl="rbg"), (6,)), [X]),
    **{
        f"{algorithm} {dtype} {shape}": (_bits(algorithm, shape, dtype), [WORDS])
        for algorithm in ("THREE_FRY", "PHILOX", "DEFAULT")
        for dtype in ("uint32", "uint16")
        for shape in ((4, 3), (3, 3), (5,), (2, 3, 4), ())
    },
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_static_shapes(name: str) -> None:
    function, inputs = PROGRAMS[name]
    content = bytes(tfconvert.convert(jax.jit(function), args=inputs))
    expected = jax.tree.leaves(jax.jit(function)(*inputs))
    for found, wanted in zip(run(content, inputs), expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=0 if wanted.dtype.kind in "iub" else 3e-7)


DYNAMIC: dict[str, Callable[..., Any]] = {
    "uniform": lambda key, x: random.uniform(key, x.shape),
    "noise": lambda key, x: x + jnp.exp(x) * random.normal(key, x.shape),
    "dropout": lambda key, x: jnp.where(random.bernoulli(key, 0.5, x.shape), x * 2, 0),
    "rows": lambda key, x: x + random.uniform(key, (x.shape[0], 1)),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_batches(name: str) -> None:
    function = jax.jit(DYNAMIC[name])
    kinds = jax.ShapeDtypeStruct((2,), "uint32"), jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, 6"), "float32")
    content = bytes(tfconvert.convert(function, args=kinds))
    for rows in (1, 3):
        (found,) = run(content, [KEY, X[:rows]])
        np.testing.assert_allclose(found, function(KEY, X[:rows]), atol=3e-7)


def test_bits_of_a_dynamic_batch_are_refused_with_the_way_out() -> None:
    kind = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, 6"), "float32")
    exported = jax.export.export(jax.jit(lambda x: x + random.uniform(random.key(1, impl="rbg"), x.shape)))(kind)
    with pytest.raises(tfconvert.ConversionError, match="a fixed batch settles that"):
        tfconvert.convert(exported)
    (found,) = run(bytes(tfconvert.convert(exported, batch=3)), [X])
    np.testing.assert_allclose(found, exported.call(X), atol=3e-7)
