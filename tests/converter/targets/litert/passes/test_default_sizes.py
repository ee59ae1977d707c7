"""Files with dynamic sizes can be allocated without resizing, and still be resized."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

import tfconvert
from tests.support.sample_models import traced
from tfconvert.converter.ir.interface import entry_functions
from tfconvert.converter.shapes.trial import fits
from tfconvert.converter.targets.litert.passes.default_sizes import DefaultSizes
from tfconvert.importers.mlir import import_mlir

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

Shape = Sequence[int | None]


def _weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(0, 0.3, shape).astype(np.float32)


def _mobile_net(tf: ModuleType, image: Any) -> Any:
    """Strided depthwise convolutions after a padding that is meant for images of even size."""
    y = tf.nn.conv2d(image, _weights(3, 3, 3, 8), 2, "SAME")
    for size in (3, 5, 5):
        y = tf.pad(y, [[0, 0], [size // 2 - 1, size // 2], [size // 2 - 1, size // 2], [0, 0]])
        y = tf.nn.relu6(tf.nn.depthwise_conv2d(y, _weights(size, size, 8, 1), [1, 2, 2, 1], "VALID"))
        scale = tf.nn.sigmoid(tf.reduce_mean(y, [1, 2], keepdims=True))
        y = tf.nn.conv2d(y * scale, _weights(1, 1, 8, 8), 1, "SAME")
    return tf.matmul(tf.reduce_mean(y, [1, 2]), _weights(8, 4))


def _ladder(tf: ModuleType, image: Any) -> Any:
    """Halves an image three times and joins what it was before with what is made large again."""
    seen, y = [], image
    for _ in range(3):
        seen.append(y)
        y = tf.nn.avg_pool2d(y, 2, 2, "SAME")
    for before in reversed(seen):
        shape = tf.shape(y)
        y = tf.image.resize(y, (shape[1] * 2, shape[2] * 2), "nearest")
        y = tf.nn.conv2d(tf.concat([y, before], -1), _weights(1, 1, y.shape[-1] + before.shape[-1], 3), 1, "SAME")
    return y


def _sequences(tf: ModuleType, words: Any, other: Any) -> Any:
    """Two sequences of one length, and windows of seven steps."""
    return tf.nn.conv1d(tf.concat([words, other], -1), _weights(7, 8, 5), 1, "VALID")


def _wave(tf: ModuleType, wave: Any) -> Any:
    """Frames of a sound."""
    frames = tf.signal.frame(wave, 400, 160)
    return tf.reduce_max(tf.abs(frames), -1)


def _running(tf: ModuleType, steps: Any) -> Any:
    """A loop over a sequence."""
    return tf.foldl(lambda state, step: state * 0.5 + step, tf.transpose(steps, [1, 0, 2]))


CASES: dict[str, tuple[Callable[..., Any], list[Shape], list[list[int]], list[list[int]]]] = {
    "mobile net": (_mobile_net, [[None, None, None, 3]], [[1, 16, 16, 3]], [[2, 47, 64, 3]]),
    "half open": (_mobile_net, [[None, None, 64, 3]], [[1, 16, 64, 3]], [[1, 40, 64, 3]]),
    "ladder": (_ladder, [[1, None, None, 3]], [[1, 8, 8, 3]], [[1, 16, 24, 3]]),
    "sequences": (_sequences, [[None, None, 4]] * 2, [[1, 8, 4]] * 2, [[3, 11, 4]] * 2),
    "wave": (_wave, [[None]], [[512]], [[1600]]),
    "loop": (_running, [[None, None, 2]], [[1, 1, 2]], [[2, 5, 2]]),
    "batch": (_sequences, [[None, 9, 4]] * 2, [[1, 9, 4]] * 2, [[2, 9, 4]] * 2),
}


def _saved(tf: ModuleType, folder: Path, build: Callable[..., Any], shapes: Sequence[Shape]) -> Any:
    module = tf.Module()
    specs = [tf.TensorSpec(shape, name=f"in_{index}") for index, shape in enumerate(shapes)]
    module.call = traced(tf, *specs)(lambda *inputs: build(tf, *inputs))
    tf.saved_model.save(module, str(folder), {"one": module.call, "two": module.call})
    return module


@pytest.mark.parametrize("name", CASES)
def test_it_can_be_allocated_run_and_resized(tf: ModuleType, tmp_path: Path, name: str) -> None:
    build, shapes, defaults, others = CASES[name]
    module = _saved(tf, tmp_path, build, shapes)
    content = bytes(tfconvert.convert(tmp_path))
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    assert [each["shape"].tolist() for each in interpreter.get_input_details()] == defaults
    for sizes in (defaults, others):
        values = [_weights(*shape) for shape in sizes]
        for detail, value in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.resize_tensor_input(detail["index"], value.shape)
        interpreter.allocate_tensors()
        for detail, value in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        wanted = module.call(*values).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    for key in ("one", "two"):
        runner = Interpreter(model_content=content).get_signature_runner(key)
        (found,) = runner(**{f"in_{index}": value for index, value in enumerate(values)}).values()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_it_can_be_quantized(tf: ModuleType, tmp_path: Path) -> None:
    build, shapes, defaults, _ = CASES["mobile net"]
    _saved(tf, tmp_path, build, shapes)
    samples = [[_weights(1, 64, 64, 3)]]
    for settings in ("dynamic", tfconvert.Quantize("int8", samples={"one": samples, "two": samples}, io="int8")):
        interpreter = Interpreter(model_content=bytes(tfconvert.convert(tmp_path, quantize=settings)))
        interpreter.allocate_tensors()
        assert [each["shape"].tolist() for each in interpreter.get_input_details()] == defaults


def _text(rows: str, kernel: int) -> str:
    return f"""
func.func @main(%x: tensor<{rows}x3xf32>) -> tensor<?x?x?x4xf32> {{
  %axis = "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
  %f = "tf.Const"() <{{value = dense<1.0> : tensor<1x{kernel}x3x4xf32>}}> : () -> tensor<1x{kernel}x3x4xf32>
  %0 = "tf.ExpandDims"(%x, %axis) : (tensor<{rows}x3xf32>, tensor<i32>) -> tensor<?x1x?x3xf32>
  %1 = "tf.Conv2D"(%0, %f) <{{strides = [1, 1, 1, 1], padding = "VALID"}}>
    : (tensor<?x1x?x3xf32>, tensor<1x{kernel}x3x4xf32>) -> tensor<?x?x?x4xf32>
  func.return %1 : tensor<?x?x?x4xf32>
}}
"""


@pytest.mark.parametrize(
    ("rows", "kernel", "noted"),
    [
        ("?x?", 5, "array<i32: 1, 8, 3>"),
        ("2x?", 5, "array<i32: 2, 8, 3>"),
        ("?x?", 1, ""),
        ("?x9", 5, ""),
        ("2x9", 5, ""),
        ("?x?", 70000, ""),  # No candidate is large enough.
    ],
)
def test_what_is_noted(rows: str, kernel: int, noted: str) -> None:
    module = import_mlir(_text(rows, kernel), "test.mlir")
    before = str(module)
    DefaultSizes().apply(module)
    assert noted in str(module)
    assert ("tfl.tensor" in str(module)) == bool(noted)
    (function,) = entry_functions(module)
    (argument,) = function.body.block.args
    assert fits(function, {argument: (1, kernel, 3)})
    assert kernel == 1 or not fits(function, {argument: (1, kernel - 1, 3)})
    if not noted:
        assert str(module) == before
