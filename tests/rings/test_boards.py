"""Files for microcontrollers and NPUs on the real things: tflite-micro, Arm's compiler, Intel's plugin."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite

pytestmark = pytest.mark.skipif(not find_spec("tensorflow"), reason="TensorFlow is not installed")

needs_micro = pytest.mark.skipif(not find_spec("tflite_micro"), reason="tflite-micro is not installed")
needs_vela = pytest.mark.skipif(not find_spec("ethosu"), reason="ethos-u-vela is not installed")

_ON_CPU = re.compile(r"CPU operators = (\d+)")


def _upsampling(keras: Any) -> Any:
    layers = keras.layers
    image = value = layers.Input((8, 8, 3))
    value = layers.Conv2D(8, 3, padding="same", activation="relu")(value)
    value = layers.UpSampling2D()(value)
    return keras.Model(image, layers.Conv2D(4, 1)(value))


def _encoder(keras: Any) -> Any:
    layers = keras.layers
    tokens = layers.Input((8, 16))
    attended = layers.MultiHeadAttention(2, 8)(tokens, tokens)
    value = layers.LayerNormalization()(layers.Add()([tokens, attended]))
    return keras.Model(tokens, layers.Dense(4)(layers.Dense(32, activation="gelu")(value)))


def _separable(keras: Any) -> Any:
    layers = keras.layers
    image = value = layers.Input((16, 16, 1))
    for _ in range(2):
        value = layers.DepthwiseConv2D(3, padding="same", activation="relu")(value)
        value = layers.Conv2D(8, 1, activation="relu")(value)
    return keras.Model(image, layers.Dense(3, activation="softmax")(layers.GlobalAveragePooling2D()(value)))


NETWORKS = {"upsampling": _upsampling, "encoder": _encoder, "separable": _separable}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    import keras

    folder = tmp_path_factory.mktemp("boards")

    def save(name: str) -> Path:
        path = folder / name
        if not path.exists():
            keras.utils.set_random_seed(1)
            NETWORKS[name](keras).export(str(path), verbose=False)
        return path

    return save


def _quantized(model: Path, accelerator: str, **settings: Any) -> tfconvert.Model:
    def samples() -> Any:
        draw = np.random.default_rng(0)
        sizes = {"upsampling": (1, 8, 8, 3), "encoder": (1, 8, 16), "separable": (1, 16, 16, 1)}
        return [draw.uniform(-1, 1, sizes[model.name]).astype(np.float32) for _ in range(8)]

    quantize = tfconvert.Quantize(mode="int8", samples=samples(), **settings)
    return tfconvert.convert(
        model,
        batch=1,
        target=tfconvert.LiteRT(accelerator=[accelerator], quantize=quantize),  # type: ignore[list-item]
    )


@needs_micro
@pytest.mark.parametrize("name", NETWORKS)
def test_tflite_micro_runs_the_array_in_the_stated_memory(
    name: str, saved: Callable[[str], Path], tmp_path: Path, run_tflite: RunTFLite
) -> None:
    from tflite_micro.python.tflite_micro import runtime

    model = _quantized(saved(name), "micro", io="int8")
    assert model.report.acceptances[0].is_whole
    model.save(tmp_path / "net.cc")
    source = (tmp_path / "net.cc").read_text("utf-8")
    array = bytes(int(number, 16) for number in re.findall(r"0x([0-9a-f]{2})", source))
    arena = re.search(r"g_net_arena_size = (\d+);", (tmp_path / "net.h").read_text("utf-8"))
    assert array == bytes(model)
    assert arena
    interpreter = runtime.Interpreter.from_bytes(array, arena_size=int(arena[1]))
    (shape,) = [interpreter.get_input_details(0)["shape"]]
    data = np.random.default_rng(1).integers(-100, 100, shape).astype(np.int8)
    interpreter.set_input(data, 0)
    interpreter.invoke()
    (expected,) = run_tflite(array, [data])
    off = np.abs(interpreter.get_output(0).astype(int) - expected.astype(int))
    assert off.max() <= 4


@needs_vela
@pytest.mark.parametrize("name", NETWORKS)
def test_ethos_u_computes_all(name: str, saved: Callable[[str], Path], tmp_path: Path) -> None:
    model = _quantized(saved(name), "ethos-u")
    assert model.report.acceptances[0].is_whole
    model.save(tmp_path / "net.tflite")
    command = [str(Path(sys.executable).parent / "vela"), "net.tflite", "--accelerator-config", "ethos-u55-128"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=300)
    found = _ON_CPU.search(done.stdout)
    assert found
    assert found[1] == "0"


@needs_micro
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "bool"])
def test_state_runs_in_the_stated_memory(dtype: str, tmp_path: Path) -> None:
    import tensorflow as tf
    from tflite_micro.python.tflite_micro import runtime

    class Delay(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.last = tf.Variable(tf.zeros((1, 4), dtype))
            self.first = tf.Variable(tf.ones((1, 4), dtype))

        @tf.function(input_signature=[tf.TensorSpec((1, 4), dtype, name="x")])  # type: ignore[untyped-decorator]
        def step(self, x: Any) -> Any:
            before, first = self.last.read_value(), self.first.read_value()
            self.last.assign(x)
            self.first.assign(before)
            return {"y": first}

    micro = tfconvert.LiteRT(accelerator=["micro"])
    model = tfconvert.convert(Delay(), target=micro, verify=tfconvert.Verify(on=["micro"]))
    (found,) = model.report.acceptances
    assert found.is_whole
    (note,) = [each for each in model.report.notes if each.code == "runs-there"]
    assert "of its arena" in note.message
    model.save(tmp_path / "net.cc")
    header = (tmp_path / "net.h").read_text("utf-8")
    assert "constexpr unsigned int g_net_variable_count = 2;" in header
    assert f"g_net_arena_size = {found.arena};" in header
    assert found.arena is not None
    interpreter = runtime.Interpreter.from_bytes(bytes(model), arena_size=found.arena)
    steps = [np.array([[step, 0, 1, step]]).astype(dtype) for step in (1, 0, 1, 1)]
    expected = [np.ones((1, 4), dtype), np.zeros((1, 4), dtype), *steps[:2]]
    for step, result in zip(steps, expected, strict=True):
        interpreter.set_input(step, 0)
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_output(0), result)
