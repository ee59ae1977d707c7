"""Programs of JAX, Flax and Orbax, saved as their users do, compute in LiteRT what they compute in JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import run

jax = pytest.importorskip("jax", reason="the programs are JAX's")
tf = pytest.importorskip("tensorflow", reason="jax2tf writes SavedModels with TensorFlow")
jax2tf = pytest.importorskip("jax.experimental.jax2tf")
jnp, lax, nn = jax.numpy, jax.lax, jax.nn

_IMAGE = ("NHWC", "HWIO", "NHWC")
_RANDOM = np.random.default_rng(0)
_SIZES = (3, 1, 5)


def _weights(*shape: int) -> np.ndarray:
    return (_RANDOM.standard_normal(shape) * 0.4).astype(np.float32)


W, SQUARE, B = _weights(6, 5), _weights(6, 6), _weights(5)
HEADS, OUT = _weights(6, 2, 3), _weights(2, 3, 6)
KERNEL, KERNEL_1D = _weights(3, 3, 3, 4), _weights(3, 6, 5)
GATES, RECURRENT = _weights(6, 20), _weights(5, 20)


def _attention(x: Any) -> Any:
    q, k, v = (jnp.einsum("bse,ehd->bshd", x, HEADS) for _ in range(3))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2
    masked = jnp.where(jnp.tril(jnp.ones((4, 4), bool)), scores, -1e9)
    return jnp.einsum("bqhd,hde->bqe", jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(masked), v), OUT)


def _layer_norm(x: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered * lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-5)


def _conv(x: Any, strides: int = 1, padding: str = "SAME") -> Any:
    return lax.conv_general_dilated(x, KERNEL, (strides, strides), padding, dimension_numbers=_IMAGE)


def _max_pool(x: Any, size: int = 2, stride: int = 2) -> Any:
    window, steps = (1, size, size, 1), (1, stride, stride, 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, steps, "SAME")


def _lstm(x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        hidden, cell = carry
        i, f, o, g = jnp.split(row @ GATES + hidden @ RECURRENT, 4, -1)
        cell = nn.sigmoid(f) * cell + nn.sigmoid(i) * jnp.tanh(g)
        hidden = nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zeros = jnp.zeros((x.shape[0], 5))
    return lax.scan(step, (zeros, zeros), x.swapaxes(0, 1))


def _grow(x: Any) -> Any:
    return lax.while_loop(lambda s: (s[0] < 6) & (s[1].sum() < 50), lambda s: (s[0] + 1, s[1] * 1.5), (0, x))


def _update(x: Any) -> Any:
    places = jnp.array([0, 2, 2])
    rows = x[:, :3].sum(0)
    base = jnp.zeros(4)
    return base.at[places].add(rows), base.at[places].max(rows), x.at[:, 1].set(7.0), x.at[0].multiply(2.0)


def _gradient(x: Any) -> Any:
    return jax.grad(lambda v: (_max_pool(nn.relu(_conv(v))) ** 2).sum())(x)


def _integers(x: Any) -> Any:
    n = (x * 4).astype(jnp.int32)
    return n // 3, n % 3, lax.rem(n, 3), n >> 1, lax.shift_right_logical(n, 1), n & 6, n ^ 5, jnp.gcd(n, 6)


def _complex(x: Any) -> Any:
    z = lax.complex(x, x[:, ::-1])
    product = z @ (SQUARE + 1j)
    return product.real, product.imag, jnp.abs(z * z), z.sum(1).imag


def _spectrum(x: Any) -> Any:
    return jnp.abs(jnp.fft.rfft(x)), jnp.fft.irfft(jnp.fft.rfft(x) * 2, 6), jnp.fft.fft(x).imag


VECTORS: dict[str, Callable[..., Any]] = {
    "activations": lambda x: [f(x) for f in (nn.relu, nn.relu6, nn.elu, nn.selu, nn.gelu, nn.silu, nn.hard_swish)],
    "argmax": lambda x: (jnp.argmax(x, -1), jnp.argmin(x, -1), nn.one_hot(jnp.argmax(x, -1), 6)),
    "bfloat16": lambda x: (x.astype(jnp.bfloat16) @ W.astype(jnp.bfloat16)).astype(jnp.float32),
    "branches": lambda x: lax.cond(x.sum() > 0, lambda: jnp.sin(x), lambda: x * 2),
    "complex": _complex,
    "cumulative": lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 1), lax.cummax(x, 1), lax.cumlogsumexp(x, 1)),
    "dense": lambda x: nn.relu(x @ W + B),
    "error functions": lambda x: (lax.erf(x), nn.gelu(x, approximate=False), lax.erfc(x)),
    "fft": _spectrum,
    "gather": lambda x: (x[:, jnp.array([0, 2, -1])], x[-1], jnp.take(x, jnp.array([5, 9]), axis=1, mode="clip")),
    "half": lambda x: nn.softmax(x.astype(jnp.float16) @ W.astype(jnp.float16)).astype(jnp.float32),
    "hyperbolic": lambda x: (jnp.sinh(x), jnp.cosh(x), jnp.arcsinh(x), jnp.arctanh(x / 20)),
    "integers": _integers,
    "layer norm": _layer_norm,
    "log softmax": lambda x: (nn.log_softmax(x), nn.logsumexp(x, axis=-1), nn.softplus(x)),
    "loops": lambda x: (lax.fori_loop(0, 3, lambda i, a: jnp.tanh(a + i * x), x), *_grow(x)),
    "nearest bins": lambda x: (jnp.searchsorted(jnp.array([-1.0, 0, 2]), x), jnp.digitize(x, jnp.array([0.0, 1]))),
    "padding": lambda x: (jnp.pad(x, ((0, 0), (1, 2))), jnp.pad(x, ((0, 0), (2, 2)), mode="reflect")),
    "random": lambda x: x + jax.random.normal(jax.random.PRNGKey(1), (6,)),
    "reductions": lambda x: (x.std(1), x.var(1), x.prod(1), x.max(), jnp.any(x > 1, 1), jnp.linalg.norm(x, axis=1)),
    "remainders": lambda x: (jnp.mod(x, 1.5), jnp.fmod(x, 1.5), lax.rem(x, -1.5), jnp.floor_divide(x, 1.5)),
    "rounding": lambda x: (jnp.round(x), jnp.trunc(x), jnp.ceil(x), jnp.sign(x), jnp.clip(x, -1, 1)),
    "scatter": _update,
    "shapes": lambda x: (jnp.repeat(x, 2, 1), jnp.tile(x, (1, 2)), jnp.roll(x, 1, 1), x.reshape(-1, 3, 2), x[:, ::-2]),
    "sizes": lambda x: (jnp.full((x.shape[0],), x.shape[0]), x.sum() / x.shape[0], jnp.arange(x.shape[0]), x[::-1]),
    "sorting": lambda x: (jnp.sort(x), jnp.argsort(x), jnp.median(x, 1), *lax.top_k(x, 2)),
    "where": lambda x: (jnp.where(x > 0, x, 0.1 * x), jnp.nan_to_num(x / jnp.where(x > 0, x, 0)), jnp.isfinite(1 / x)),
}
SEQUENCES: dict[str, Callable[..., Any]] = {
    "attention": _attention,
    "batched gather": lambda x: jnp.take_along_axis(x, jnp.argsort(x[:, :, :1], 1), 1),
    "convolution 1d": lambda x: lax.conv_general_dilated(
        x, KERNEL_1D, (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
    ),
    "dot product attention": lambda x: nn.dot_product_attention(*(x.reshape(-1, 4, 2, 3),) * 3, is_causal=True),
    "lstm": _lstm,
    "summed products": lambda x: jnp.einsum("bij,bkj->bik", x, x),
}
IMAGES: dict[str, Callable[..., Any]] = {
    "convolution": lambda x: nn.relu(_conv(x, 2)).mean((1, 2)),
    "convolution transposed": lambda x: lax.conv_transpose(x, KERNEL, (2, 2), "SAME"),
    "gradient of a network": _gradient,
    "gradient of overlapping windows": jax.grad(lambda v: (_max_pool(v, 3) ** 3).sum()),
    "pooling": lambda x: (_max_pool(x), _max_pool(x, 3, 1)),
    "resizing": lambda x: (jax.image.resize(x, (x.shape[0], 12, 9, 3), "linear"), x.repeat(2, 1)),
}
PROGRAMS = [
    *((name, function, (6,)) for name, function in VECTORS.items()),
    *((name, function, (4, 6)) for name, function in SEQUENCES.items()),
    *((name, function, (6, 8, 3)) for name, function in IMAGES.items()),
]


def _batch(size: int, shape: Sequence[int]) -> np.ndarray:
    """Returns numbers of both signs, with ties."""
    return (np.round(np.random.default_rng(size).standard_normal((size, *shape)) * 3 + 0.1, 0) / 2 + 0.25).astype("f4")


def _save(function: Callable[..., Any], shape: Sequence[int], path: Path) -> None:
    """Saves a program with an open batch."""
    names = ", ".join(["batch", *map(str, shape)])
    converted = jax2tf.convert(
        lambda x: jax.tree.leaves(function(x)), polymorphic_shapes=[f"({names})"], with_gradient=False
    )
    module = tf.Module()

    def call(x: Any) -> Any:
        return {f"y{number:02}": value for number, value in enumerate(converted(x))}

    module.call = tf.function(call, input_signature=[tf.TensorSpec((None, *shape), name="x")], autograph=False)
    tf.saved_model.save(module, str(path), signatures=module.call.get_concrete_function())


def _compare(function: Callable[..., Any], shape: Sequence[int], path: Path, tolerance: float) -> None:
    content = bytes(tfconvert.convert(path, signatures=["serving_default"]))
    for size in _SIZES:
        x = _batch(size, shape)
        expected = jax.tree.leaves(jax.jit(function)(x))
        found = run(content, {"x": x}, signature="serving_default")
        assert len(found) == len(expected)
        for ours, theirs in zip(found, map(np.asarray, expected), strict=True):
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "function", "shape"), PROGRAMS, ids=[name for name, _, _ in PROGRAMS])
def test_programs(name: str, function: Callable[..., Any], shape: Sequence[int], tmp_path: Path) -> None:
    _save(function, shape, tmp_path)
    _compare(function, shape, tmp_path, 2e-2 if name in ("bfloat16", "half") else 1e-4)


@pytest.mark.filterwarnings("ignore")
def test_linen_recurrent_network(tmp_path: Path) -> None:
    linen = pytest.importorskip("flax.linen")
    model = linen.Bidirectional(linen.RNN(linen.LSTMCell(5)), linen.RNN(linen.GRUCell(5)))
    weights = model.init(jax.random.PRNGKey(0), jnp.ones((1, 4, 6)))
    _save(lambda x: model.apply(weights, x), (4, 6), tmp_path)
    _compare(lambda x: model.apply(weights, x), (4, 6), tmp_path, 1e-4)


@pytest.mark.filterwarnings("ignore")
def test_nnx_network(tmp_path: Path) -> None:
    nnx = pytest.importorskip("flax.nnx")
    rngs = nnx.Rngs(0)
    conv, norm, dense = nnx.Conv(3, 6, (3, 3), rngs=rngs), nnx.BatchNorm(6, rngs=rngs), nnx.Linear(6, 4, rngs=rngs)
    norm.eval()

    def network(x: Any) -> Any:
        return dense(nnx.avg_pool(nnx.relu(norm(conv(x))), (2, 2), strides=(2, 2)).mean((1, 2)))

    _save(network, (6, 8, 3), tmp_path)
    _compare(network, (6, 8, 3), tmp_path, 1e-4)
    assert tfconvert.convert(tmp_path).report.operators["CONV_2D"] == 1


@pytest.mark.filterwarnings("ignore")
def test_nnx_recurrent_network(tmp_path: Path) -> None:
    nnx = pytest.importorskip("flax.nnx")
    one, other = (nnx.RNN(nnx.LSTMCell(6, 5, rngs=nnx.Rngs(seed))) for seed in range(2))
    graph, state = nnx.split(nnx.Bidirectional(one, other))
    network = jax.jit(lambda state, x: nnx.merge(graph, state)(x))
    _save(lambda x: network(state, x), (4, 6), tmp_path)
    _compare(lambda x: network(state, x), (4, 6), tmp_path, 1e-4)
    fused = tfconvert.convert(tmp_path, target=tfconvert.LiteRT(recurrent="fused"))
    assert fused.report.operators["BIDIRECTIONAL_SEQUENCE_LSTM"] == 1


@pytest.mark.filterwarnings("ignore")
def test_orbax_export(tmp_path: Path) -> None:
    orbax = pytest.importorskip("orbax.export")
    weights = {"w": W, "b": B}
    module = orbax.JaxModule(weights, lambda p, x: nn.relu(x @ p["w"] + p["b"]), input_polymorphic_shape="batch, ...")
    config = orbax.ServingConfig(
        "serving_default",
        input_signature=[tf.TensorSpec((None, 6), name="x")],
        tf_preprocessor=lambda x: x * 2,
        tf_postprocessor=lambda y: {"y": y + 1},
    )
    orbax.ExportManager(module, [config]).save(str(tmp_path))
    _compare(lambda x: nn.relu(x * 2 @ W + B) + 1, (6,), tmp_path, 1e-4)
