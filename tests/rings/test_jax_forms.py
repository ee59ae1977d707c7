"""Single forms that models of JAX ship, each exported alone, compute in LiteRT what they compute in JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import run

jax = pytest.importorskip("jax")
jnp, lax, nn = jax.numpy, jax.lax, jax.nn

_RANDOM = np.random.default_rng(3)


def _floats(*shape: int) -> np.ndarray:
    return _RANDOM.uniform(-2, 2, shape).astype(np.float32)


def _integers(*values: Any, dtype: str = "int32") -> np.ndarray:
    return np.array(values, dtype)


X, Y, ROWS, IMAGE, LINE = _floats(3, 6), _floats(3, 6), _floats(8, 6), _floats(2, 8, 8, 4), _floats(2, 7, 8)
HEADS, VOLUME = _floats(2, 6, 4, 8), _floats(2, 6, 6, 6, 3)
PLACES = _integers(0, 3, 7, 3)


def _window(init: float, combine: Any, sizes: Sequence[int], strides: Sequence[int], **settings: Any) -> Any:
    return lambda x: lax.reduce_window(x, init, combine, sizes, strides, "VALID", **settings)


def _cached(q: Any, k: Any, keys: Any, place: Any) -> Any:
    keys = lax.dynamic_update_slice(keys, k, (0, place, 0, 0))
    mask = (jnp.arange(keys.shape[1]) <= place)[None, None, None]
    return nn.dot_product_attention(q, keys, keys, mask=mask), keys


def _switched(x: Any, place: Any) -> Any:
    return lax.switch(place, [lambda v: v + 1, jnp.sin, lambda v: v @ v.T @ v, lambda v: v * 0], x)


def _affine(one: Any, other: Any) -> Any:
    return one[0] * other[0], other[0] * one[1] + other[1]


def _quantized(x: Any) -> Any:
    """The product of integers that training with quantization makes."""
    scale = jnp.max(jnp.abs(x), -1, keepdims=True) / 127
    integers = jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8)
    weights = np.arange(24).reshape(6, 4).astype(np.int8) - 12
    return lax.dot(integers, weights, preferred_element_type=jnp.int32).astype(jnp.float32) * scale


def _wrapped(dtype: str) -> tuple[Callable[..., Any], Sequence[np.ndarray]]:
    """Returns arithmetic of integers that wraps around, with shifts beyond their width."""
    limits = np.iinfo(dtype)
    a, b = (_RANDOM.integers(limits.min, limits.max, (3, 6), dtype=np.int64).astype(dtype) for _ in range(2))
    shifts = _RANDOM.integers(0, limits.bits + 3, (3, 6)).astype(dtype)

    def compute(a: Any, b: Any, shifts: Any) -> Any:
        moved = [move(a, shifts) for move in (lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic)]
        arithmetic = [a + b, a - b, a * b, lax.div(a, b), lax.rem(a, b), a // b, a % b]
        return [*arithmetic, *moved, a & b, a | b, a ^ b, ~a, lax.population_count(a), lax.clz(a), a < b]

    return compute, [a, np.where(b == 0, 1, b).astype(dtype), shifts]


def _definite(*shape: int) -> np.ndarray:
    x = _floats(*shape)
    found: np.ndarray = x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.float32)
    return found


def _at(mode: str, change: str) -> Callable[..., Any]:
    return lambda x, places, rows: getattr(x.at[places], change)(rows, mode=mode)


_TILES, _NEXT = (1, 2, 2, 1), (1, 1, 1, 1)
FORMS: dict[str, tuple[Callable[..., Any], Sequence[np.ndarray]]] = {
    "affine scan": (lambda a, b: lax.associative_scan(_affine, (a, b)), [ROWS, _floats(8, 6)]),
    "attention by groups": (lambda q, k: nn.dot_product_attention(q, k, k), [HEADS, _floats(2, 9, 2, 8)]),
    "attention in a window": (
        lambda q: nn.dot_product_attention(q, q, q, local_window_size=2, is_causal=True),
        [HEADS],
    ),
    "bilinear form": (lambda a, b, c: jnp.einsum("bi,ijk,bk->bj", a, b, c), [X, _floats(6, 5, 4), _floats(3, 4)]),
    "branches by number": (_switched, [X, _integers(2)[0]]),
    "branches by a number too large": (_switched, [X, _integers(9)[0]]),
    "branches by a negative number": (_switched, [X, _integers(-1)[0]]),
    "cached keys": (_cached, [_floats(1, 1, 2, 4), _floats(1, 1, 2, 4), _floats(1, 16, 2, 4), _integers(3)[0]]),
    "choices": (lambda a: jnp.select([a < -1, a < 1], [a * 2, a**2], a), [X]),
    "diagonal": (lambda a: (jnp.diagonal(a, 1), jnp.triu(a, 1)), [_floats(4, 5)]),
    "difference": (lambda a: jnp.diff(a, axis=1, prepend=0), [X]),
    "experts": (lambda a, b: jnp.einsum("bse,bsd->ebsd", a, b), [_floats(2, 3, 4), _floats(2, 3, 5)]),
    "filled lookups": (lambda t, i: jnp.take(t, i, axis=0, mode="fill"), [X, _integers(0, -4, 2, 5)]),
    "gathered along": (lambda a, i: jnp.take_along_axis(a, i, 1), [X, _integers([-1], [-6], [2])]),
    "grid of indices": (lambda a, i, j: a[jnp.ix_(i, j)], [X, _integers(0, 2), _integers(5, 1, 0)]),
    "half pooled": (_window(1.0, lax.mul, _TILES, _TILES), [IMAGE]),
    "masked attention": (lambda q, n: nn.dot_product_attention(q, q, q, key_value_seq_lengths=n), [HEADS, PLACES[:2]]),
    "message passing": (lambda h, s, d: jnp.zeros_like(h).at[d].add(h[s]), [ROWS, PLACES, PLACES[::-1].copy()]),
    "order of pairs": (lambda a, b: jnp.lexsort((a, b)), [_integers(1, 2, 1, 0), _integers(0, 1, 0, 1)]),
    "padded between": (lambda a: lax.pad(a, 7.0, ((-1, 2, 1), (2, -1, 2))), [X]),
    "patches": (
        lambda a: lax.conv_general_dilated_patches(
            a, (2, 2), (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        [IMAGE],
    ),
    "pooled at distances": (_window(-np.inf, lax.max, _TILES, _NEXT, window_dilation=(1, 2, 2, 1)), [IMAGE]),
    "pooled minimum": (_window(np.inf, lax.min, _TILES, _TILES), [IMAGE]),
    "pooled volume": (_window(-np.inf, lax.max, (1, 2, 2, 2, 1), (1, 2, 2, 2, 1)), [VOLUME]),
    "put along": (
        lambda a, i, u: jnp.put_along_axis(a, i, u, 1, inplace=False),
        [X, _integers([5], [-6], [9]), X[:, :1]],
    ),
    "put across": (lambda a, i: jnp.put_along_axis(a, i, 7.0, 0, inplace=False), [X, _integers([2, -1, 0, 0, 5, 1])]),
    "put many": (lambda a, i: jnp.put_along_axis(a, i, 7.0, 1, inplace=False), [X, _integers([5, 5], [-6, 1], [9, 0])]),
    "remainders": (
        lambda a, b: (lax.rem(a, b), a % b, lax.rem(a, np.int32(-7))),
        [_integers(7, -7, 7, -7, 2**31 - 1, -(2**31), 5), _integers(2, 2, -2, -2, -(2**31), 2**31 - 1, 0)],
    ),
    "resized": (
        lambda a: [jax.image.resize(a, (2, 5, 5, 4), method) for method in ("nearest", "bilinear", "cubic")],
        [IMAGE],
    ),
    "rolled by a computed step": (lambda a, step: jnp.roll(a, step, 1), [X, _integers(2)[0]]),
    "running": (lambda a: (lax.cummax(a, 1), lax.cumprod(a, 1, reverse=True), lax.cumlogsumexp(a, 0)), [X]),
    "scattered number": (
        lambda t, i, j: (t.at[i].set(0.0), t.at[i, j].set(-1.0)),
        [ROWS, _integers(1, 20, 3, -3), PLACES],
    ),
    "scattered rows": (
        lambda t, i, u: (t.at[i].set(u[:1], mode="drop"), t.at[i].min(u), t.at[i].multiply(2.0)),
        [ROWS, _integers(1, 20, 3, 3), _floats(4, 6)],
    ),
    "segments": (
        lambda u, i: (jax.ops.segment_max(u, i, 4), jax.ops.segment_prod(u, i, 4)),
        [ROWS, _integers(0, 0, 1, 3, 3, 1, 1, 0)],
    ),
    "sorted half floats": (lambda a: jnp.sort(a.astype(jnp.bfloat16)).astype(jnp.float32), [X]),
    "sorted with values": (lambda k, v: lax.sort((k, v), num_keys=1), [X, Y]),
    "spectrum": (lambda a: (jnp.abs(jnp.fft.fft2(a)), jax.scipy.fft.dct(a, norm="ortho")), [_floats(4, 8)]),
    "unsigned": (
        lambda a: ((a >> np.uint32(3)) ^ (a << np.uint32(5)), a + a, a % np.uint32(7)),
        [_integers(1, 2**31, 2**32 - 1, dtype="uint32")],
    ),
    "vectorized loop": (
        jax.vmap(lambda v: lax.while_loop(lambda c: c < 10, lambda c: c * 2, v)),
        [np.array([1, 3, 9], np.float32)],
    ),
    "vectorized cache": (jax.vmap(lambda t, i, u: t.at[i].set(u)), [HEADS, _integers(5, 9), _floats(2, 4, 8)]),
    "vectorized scatter": (jax.vmap(lambda t, i, u: t.at[i].set(u)), [_floats(3, 7), PLACES[:3], _floats(3)]),
}


ROWS_BEYOND, KEY = _integers(-1, 0, 6, 7, -8, 99), _integers(0, 42, dtype="uint32")
FORMS |= {f"{dtype} arithmetic": _wrapped(dtype) for dtype in ("int8", "int16", "int32", "uint8", "uint16", "uint32")}
FORMS |= {
    f"{change} rows, {mode}": (_at(mode, change), [_floats(7, 5), ROWS_BEYOND, _floats(6, 5)])
    for mode in ("clip", "fill")
    for change in ("set", "add", "multiply", "min", "max")
}
FORMS |= {
    f"random {name}": (draw, [KEY])
    for name, draw in {
        "beta": lambda key: jax.random.beta(key, 2.0, 3.0, (3,)),
        "binomial": lambda key: jax.random.binomial(key, 5.0, 0.4, (4,)),
        "choice": lambda key: jax.random.choice(key, jnp.arange(9), (4,), replace=False),
        "gamma": lambda key: jax.random.gamma(key, 2.0, (3,)),
        "orthogonal": lambda key: jax.random.orthogonal(key, 3),
        "poisson": lambda key: jax.random.poisson(key, 3.0, (3,)),
    }.items()
}
FORMS |= {
    "inverse": (jnp.linalg.inv, [_definite(2, 4, 4)]),
    "large system": (jnp.linalg.solve, [_definite(16, 16), _floats(16, 2)]),
    "lu decomposition": (jax.scipy.linalg.lu, [_floats(5, 3)]),
    "matrix exponential": (jax.scipy.linalg.expm, [_floats(3, 3) / 4]),
    "q and r": (jnp.linalg.qr, [_floats(5, 3)]),
    "quantized product": (_quantized, [X]),
    "systems": (jnp.linalg.solve, [_floats(2, 3, 3), _floats(2, 3, 2)]),
    "triangular system on the right": (
        lambda a, b: lax.linalg.triangular_solve(jnp.tril(a), b, left_side=False, lower=True),
        [_definite(4, 4), _floats(2, 4)],
    ),
}


def _compare(content: bytes, function: Callable[..., Any], inputs: Sequence[np.ndarray]) -> None:
    expected = jax.tree.leaves(jax.jit(function)(*inputs))
    for found, wanted in zip(run(content, list(inputs)), expected, strict=True):
        assert found.shape == wanted.shape
        scale = 1 if wanted.dtype.kind != "f" else max(1, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)))
        np.testing.assert_allclose(found, wanted, atol=0 if wanted.dtype.kind in "iub" else 1e-5 * scale)


@pytest.mark.parametrize("name", FORMS)
def test_static_shapes(name: str) -> None:
    function, inputs = FORMS[name]
    _compare(bytes(tfconvert.convert(jax.jit(function), args=inputs)), function, inputs)


SEQUENCES: dict[str, Callable[..., Any]] = {
    "causal weights": lambda a: nn.softmax(
        jnp.where(jnp.tril(jnp.ones((a.shape[1],) * 2, bool)), jnp.einsum("bid,bjd->bij", a, a), -1e9)
    ),
    "heads": lambda a: a.reshape(a.shape[0], a.shape[1], 2, 4).transpose(0, 2, 1, 3),
    "largest": lambda a: lax.top_k(a, 3),
    "last": lambda a: a[:, -1],
    "outer": lambda a: (a[:, :, None] - a[:, None]) ** 2,
    "positions": lambda a: a + jnp.arange(a.shape[1])[None, :, None] * 0.1,
    "reversed": lambda a: a[:, ::-1],
    "running": lambda a: (jnp.cumsum(a, 1), lax.cummax(a, 1)),
    "scanned": lambda a: lax.scan(lambda c, r: (c * 0.5 + r, c), jnp.zeros((a.shape[0], 8)), a.swapaxes(0, 1))[1],
    "shifted": lambda a: jnp.pad(a, ((0, 0), (1, 0), (0, 0)))[:, :-1],
    "sorted": lambda a: jnp.sort(a, 1),
    "switched": lambda a: lax.switch(a.shape[1] % 3, [lambda v: v, lambda v: v * 2, lambda v: v * v.shape[0]], a),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_of_any_length(name: str) -> None:
    kind = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, t, 8"), "float32")
    content = bytes(tfconvert.convert(jax.jit(SEQUENCES[name]), args=(kind,)))
    for x in (LINE, LINE[:1, :4]):
        _compare(content, SEQUENCES[name], [x])
