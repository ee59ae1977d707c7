"""Models and methods that people write in JAX, small: LiteRT computes what JAX does, for batches of two sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import run

jax = pytest.importorskip("jax")
jnp, lax, nn, linalg = jax.numpy, jax.lax, jax.nn, jax.scipy.linalg

_RANDOM = np.random.default_rng(11)
_IMAGE, _LINE = ("NHWC", "HWIO", "NHWC"), ("NWC", "WIO", "NWC")
WIDTH = 16


def _floats(*shape: int, scale: float = 0.4) -> np.ndarray:
    return (_RANDOM.normal(size=shape) * scale).astype(np.float32)


QKV, OUT, UP, DOWN = _floats(WIDTH, 3, 2, 8), _floats(2, 8, WIDTH), _floats(WIDTH, 32), _floats(32, WIDTH)
PATCH, FIRST, HEAD = _floats(4, 4, 3, WIDTH), _floats(1, 1, WIDTH), _floats(WIDTH, 10)
WORDS = _floats(11, WIDTH, scale=1)
KERNEL, POINTWISE, TIME = _floats(3, 3, 8, 8), _floats(1, 1, 8, 8), _floats(6, 8)
DILATED, SKIP = [_floats(2, 8, 16) for _ in range(3)], _floats(8, 8)
GATES, RECURRENT = _floats(WIDTH, 48), _floats(WIDTH, 48)
HIDDEN, COLOR, SOLUTION = _floats(27, 32), _floats(32, 4), [_floats(2, 16, scale=1), _floats(16, 16), _floats(16, 1)]
POINTS, VALUES = _floats(6, 2, scale=1), _floats(6, scale=1)
TRANSITION = np.array([[1, 0.1], [0, 1]], np.float32)
SENSOR = np.array([[1.0, 0]], np.float32)


def _norm(x: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered * lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-6)


def _group_norm(x: Any) -> Any:
    batch, height, width, channels = x.shape
    groups = x.reshape(batch, height, width, 2, channels // 2)
    centered = groups - groups.mean((1, 2, 4), keepdims=True)
    return (centered * lax.rsqrt(groups.var((1, 2, 4), keepdims=True) + 1e-5)).reshape(x.shape)


def _conv(x: Any, kernel: np.ndarray, stride: int = 1, padding: str = "SAME") -> Any:
    return lax.conv_general_dilated(x, kernel, (stride, stride), padding, dimension_numbers=_IMAGE)


def _transformer(x: Any, mask: Any = None) -> Any:
    q, k, v = jnp.moveaxis(jnp.einsum("btd,dnhe->btnhe", _norm(x), QKV), 2, 0)
    x = x + jnp.einsum("bthe,hed->btd", nn.dot_product_attention(q, k, v, mask=mask), OUT)
    return x + nn.gelu(_norm(x) @ UP) @ DOWN


def _vision_transformer(x: Any) -> Any:
    patches = _conv(x, PATCH, 4, "VALID").reshape(x.shape[0], 4, WIDTH)
    tokens = jnp.concatenate([jnp.broadcast_to(FIRST, (x.shape[0], 1, WIDTH)), patches], 1)
    return nn.softmax(_norm(_transformer(tokens)[:, 0]) @ HEAD)


def _language_model(tokens: Any) -> Any:
    length = tokens.shape[1]
    mask = jnp.tril(jnp.ones((length, length), bool))[None, None]
    return (
        _transformer(jnp.asarray(WORDS)[tokens] + jnp.sin(jnp.arange(length)[:, None] * jnp.arange(WIDTH)), mask)
        @ WORDS.T
    )


def _step(token: Any, place: Any, keys: Any, values: Any) -> Any:
    x = jnp.asarray(WORDS)[token]
    q, k, v = jnp.moveaxis(jnp.einsum("btd,dnhe->btnhe", _norm(x), QKV), 2, 0)
    keys = lax.dynamic_update_slice(keys, k, (0, place, 0, 0))
    values = lax.dynamic_update_slice(values, v, (0, place, 0, 0))
    mask = (jnp.arange(keys.shape[1]) <= place)[None, None, None]
    found = nn.dot_product_attention(q, keys, values, mask=mask)
    return jnp.argmax((x + jnp.einsum("bthe,hed->btd", found, OUT)) @ WORDS.T, -1), keys, values


def _generate(token: Any) -> Any:
    def step(carry: Any, _: Any) -> Any:
        token, keys, values, place = carry
        found, keys, values = _step(token, place, keys, values)
        return (found.astype(jnp.int32), keys, values, place + 1), found[:, 0]

    cache = jnp.zeros((1, 8, 2, 8))
    return lax.scan(step, (token, cache, cache, jnp.int32(0)), None, length=6)[1]


def _diffusion_block(x: Any, time: Any) -> Any:
    angles = time[:, None] * jnp.exp(-jnp.arange(3) * 1.5)
    shift = nn.silu(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1) @ TIME)
    return _conv(x, POINTWISE) + _conv(
        nn.silu(_group_norm(_conv(nn.silu(_group_norm(x)), KERNEL) + shift[:, None, None])), KERNEL
    )


def _wavenet(x: Any) -> Any:
    skipped = 0
    for level, kernel in enumerate(DILATED):
        rate = 2**level
        found = lax.conv_general_dilated(x, kernel, (1,), [(rate, 0)], rhs_dilation=(rate,), dimension_numbers=_LINE)
        one, other = jnp.split(found, 2, -1)
        found = jnp.tanh(one) * nn.sigmoid(other)
        x, skipped = x + found @ SKIP, skipped + found
    return nn.log_softmax(skipped)


def _gru(state: Any, x: Any) -> Any:
    (a, b, c), (d, e, f) = jnp.split(x @ GATES, 3, -1), jnp.split(state @ RECURRENT, 3, -1)
    update = nn.sigmoid(a + d)
    state = (1 - update) * jnp.tanh(c + nn.sigmoid(b + e) * f) + update * state
    return state, state


def _translate(tokens: Any) -> Any:
    words, count = jnp.asarray(WORDS), tokens.shape[0]
    state, _ = lax.scan(_gru, jnp.zeros((count, WIDTH)), words[tokens].swapaxes(0, 1))

    def decode(carry: Any, _: Any) -> Any:
        state, token = carry
        state, _ = _gru(state, words[token])
        token = jnp.argmax(state @ WORDS.T, -1).astype(jnp.int32)
        return (state, token), token

    return lax.scan(decode, (state, jnp.zeros(count, jnp.int32)), None, length=4)[1].T


def _radiance_field(origin: Any, direction: Any) -> Any:
    depths = jnp.linspace(1.0, 2.0, 6)
    points = origin[:, None] + direction[:, None] * depths[:, None]
    waves = [function(points * 2.0**level) for level in range(4) for function in (jnp.sin, jnp.cos)]
    found = nn.relu(jnp.concatenate([points, *waves], -1) @ HIDDEN) @ COLOR
    opacity = 1 - jnp.exp(-nn.relu(found[..., 3]) * 0.2)
    clear = jnp.concatenate([jnp.ones_like(opacity[:, :1]), 1 - opacity[:, :-1] + 1e-10], 1)
    weights = opacity * jnp.cumprod(clear, 1)
    return (weights[..., None] * nn.sigmoid(found[..., :3])).sum(1), (weights * depths).sum(1)


def _residual_of_a_differential_equation(points: Any) -> Any:
    def solution(point: Any) -> Any:
        return (jnp.tanh(jnp.tanh(point @ SOLUTION[0]) @ SOLUTION[1]) @ SOLUTION[2])[0]

    def residual(point: Any) -> Any:
        gradient = jax.grad(solution)(point)
        second = jax.jvp(lambda at: jax.grad(solution)(at)[0], (point,), (jnp.array([1.0, 0]),))[1]
        return gradient[1] + solution(point) * gradient[0] - 0.01 * second

    return jax.vmap(residual)(points)


def _similarity(one: Any, other: Any) -> Any:
    return jnp.exp(-0.5 * ((one[:, None] - other[None]) ** 2).sum(-1))


def _gaussian_process(points: Any) -> Any:
    factor = linalg.cho_factor(_similarity(POINTS, POINTS) + 0.1 * jnp.eye(6))
    near = _similarity(points, POINTS)
    return near @ linalg.cho_solve(factor, VALUES), 1 - (near * linalg.cho_solve(factor, near.T).T).sum(-1)


def _kalman_filter(measured: Any) -> Any:
    def step(carry: Any, value: Any) -> Any:
        mean, spread = TRANSITION @ carry[0], TRANSITION @ carry[1] @ TRANSITION.T + 0.01 * jnp.eye(2)
        gain = jnp.linalg.solve(SENSOR @ spread @ SENSOR.T + 0.1, SENSOR @ spread).T
        mean = mean + gain @ (value - SENSOR @ mean)
        return (mean, (jnp.eye(2) - gain @ SENSOR) @ spread), mean

    return lax.scan(step, (jnp.zeros(2), jnp.eye(2)), measured)


def _decision(x: Any) -> Any:
    branches = [lambda y: y * 2, jnp.sin, lambda y: -y]
    return lax.cond(x.mean() > 0, lambda y: lax.switch(jnp.argmax(y.sum(1)), branches, y), nn.softmax, x)


def _experts(x: Any) -> Any:
    scores, chosen = lax.top_k(x @ HEAD[:, :3], 2)
    weights = jnp.zeros((x.shape[0], 3)).at[jnp.arange(x.shape[0])[:, None], chosen].set(nn.softmax(scores))
    return (jnp.einsum("td,dne->tne", x, QKV[:, :, 0]) * weights[..., None]).sum(1)


def _clusters(x: Any) -> Any:
    def step(_: Any, centers: Any) -> Any:
        nearest = nn.one_hot(jnp.argmin(((x[:, None] - centers[None]) ** 2).sum(-1), 1), 3)
        return nearest.T @ x / jnp.maximum(nearest.sum(0)[:, None], 1)

    return lax.fori_loop(0, 5, step, x[:3])


def _tokens(*shape: int) -> np.ndarray:
    return _RANDOM.integers(0, 11, shape).astype(np.int32)


IMAGE, FEATURES, TIMES = _floats(3, 8, 8, 3, scale=1), _floats(3, 8, 8, 8, scale=1), _floats(3)
# A model, examples of its inputs, and their shapes if they have dynamic sizes.
MODELS: dict[str, tuple[Callable[..., Any], Sequence[np.ndarray], Sequence[str]]] = {
    "clusters": (_clusters, [_floats(12, 2, scale=1)], ()),
    "decision": (_decision, [_floats(3, 4, scale=1)], ()),
    "diffusion block": (_diffusion_block, [FEATURES, TIMES], ("b, 8, 8, 8", "b")),
    "experts": (_experts, [_floats(6, WIDTH, scale=1)], ()),
    "gaussian process": (_gaussian_process, [_floats(4, 2, scale=1)], ("b, 2",)),
    "generated text": (_generate, [_tokens(1, 1)], ()),
    "kalman filter": (_kalman_filter, [_floats(7, 1, scale=1)], ()),
    "language model": (_language_model, [_tokens(2, 6)], ("b, t",)),
    "radiance field": (_radiance_field, [_floats(5, 3, scale=1), _floats(5, 3, scale=1)], ("b, 3", "b, 3")),
    "residual": (_residual_of_a_differential_equation, [_floats(4, 2, scale=1)], ("b, 2",)),
    "translation": (_translate, [_tokens(3, 5)], ("b, 5",)),
    "vision transformer": (_vision_transformer, [IMAGE], ("b, 8, 8, 3",)),
    "wavenet": (_wavenet, [_floats(2, 12, 8, scale=1)], ("b, t, 8",)),
}


def _compare(content: bytes, function: Callable[..., Any], inputs: Sequence[np.ndarray]) -> None:
    expected = jax.tree.leaves(jax.jit(function)(*inputs))
    for found, wanted in zip(run(content, list(inputs)), expected, strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, atol=1e-5 * max(1, float(np.abs(wanted).max())))


@pytest.mark.parametrize("name", MODELS)
def test_static_shapes(name: str) -> None:
    function, inputs, _ = MODELS[name]
    _compare(bytes(tfconvert.convert(jax.jit(function), args=inputs)), function, inputs)


@pytest.mark.parametrize("name", [name for name, (_, _, shapes) in MODELS.items() if shapes])
def test_dynamic_batches(name: str) -> None:
    function, inputs, shapes = MODELS[name]
    scope = jax.export.SymbolicScope()
    kinds = [
        jax.ShapeDtypeStruct(jax.export.symbolic_shape(shape, scope=scope), each.dtype)
        for shape, each in zip(shapes, inputs, strict=True)
    ]
    content = bytes(tfconvert.convert(jax.jit(function), args=kinds))
    for count in (len(inputs[0]), 1):
        _compare(content, function, [each[:count] for each in inputs])
