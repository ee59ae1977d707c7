"""The IR that TensorFlow's own converter prints between its passes can be read, and gives files that compute the same.

    python -m tests.mlir.test_official_dumps FOLDER...

reads the dumps in folders (`converter.ir_dump_dir`) and prints how many could be read, and why others could not.
"""

from __future__ import annotations

import io
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite
from tfconvert.importers.mlir import import_mlir
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.printing import print_module

Array = np.ndarray[Any, np.dtype[Any]]


def network(tf: ModuleType, x: Any) -> Any:
    """Weights, activations that are fused, comparisons and logic."""
    weights = tf.constant(np.linspace(-1, 1, 12).reshape(4, 3), tf.float32)
    y = tf.nn.relu(tf.matmul(x, weights) + tf.constant([0.1, 0.2, 0.3]))
    large = tf.logical_and(y > 0.5, tf.logical_not(tf.equal(y, 1.0)))
    return tf.where(large, tf.minimum(y, 1.5) * 2.0, tf.math.squared_difference(y, 1.0)) / tf.constant(3.0)


def control_flow(tf: ModuleType, x: Any) -> Any:
    """A loop in which there is a conditional."""

    def step(i: Any, y: Any) -> Any:
        return i + 1, tf.cond(tf.reduce_sum(y) > 1.0, lambda: y * 0.5, lambda: y + tf.cast(i, tf.float32))

    return tf.while_loop(lambda i, y: i < 4, step, (tf.constant(0), x))[1]


def shapes(tf: ModuleType, x: Any) -> Any:
    """Shapes that are computed, splats, long constants, and an op in TensorFlow's runtime only while it is folded."""
    y = tf.reshape(tf.tile(x, [1, 3]), [tf.shape(x)[0], 3, -1])
    return (
        tf.concat([tf.transpose(y, [0, 2, 1]), tf.fill([2, 4, 3], 2.0)], 1)
        * tf.constant(np.arange(24) % 2, tf.float32)[:3]
    )


def trained_for_integers(tf: ModuleType, x: Any) -> Any:
    """Ranges of quantization-aware training."""
    weights = tf.constant(np.linspace(-1, 1, 12).reshape(4, 3), tf.float32)
    y = tf.matmul(tf.quantization.fake_quant_with_min_max_args(x, -2, 2), weights)
    return tf.quantization.fake_quant_with_min_max_args(y, -4, 4)


def counter(tf: ModuleType) -> Any:
    """A variable that is written."""
    module = tf.Module()
    module.count = tf.Variable(tf.zeros([4]))
    spec = tf.TensorSpec([2, 4], tf.float32)
    module.call = tf.function(lambda x: x + module.count.assign_add(x[0]), input_signature=[spec])
    return module


def _module(body: Callable[[ModuleType, Any], Any]) -> Callable[[ModuleType], Any]:
    def build(tf: ModuleType) -> Any:
        module = tf.Module()
        module.call = tf.function(lambda x: body(tf, x), input_signature=[tf.TensorSpec([2, 4], tf.float32)])
        return module

    return build


MODELS: dict[str, Callable[[ModuleType], Any]] = {
    **{body.__name__: _module(body) for body in (network, control_flow, shapes, trained_for_integers)},
    "counter": counter,
}
INTEGERS = "network in integers"
X = np.array([[0.1, -0.7, 0.4, 0.9], [-1.0, 0.3, 0.2, 0.5]], np.float32)


def _samples() -> Iterator[list[Array]]:
    for factor in (1.0, -0.5, 0.8):
        yield [X * np.float32(factor)]


def official(tf: ModuleType, name: str, folder: Path) -> bytes:
    """Returns the official converter's file of a model; its dumps are in the folder then."""
    module = MODELS["network" if name == INTEGERS else name](tf)
    tf.saved_model.save(module, str(folder / "model"), module.call.get_concrete_function())
    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder / "model"))
    converter.experimental_enable_resource_variables = True
    if name == INTEGERS:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = _samples
    converter.ir_dump_dir = str(folder / "dumps")
    converter.ir_dump_pass_regex = converter.ir_dump_func_regex = ".*"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bytes(converter.convert())


def distinct(folder: Path) -> dict[str, Path]:
    """Returns the texts of a folder, each once, with the first file that has it."""
    texts: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.mlir")):
        texts.setdefault(path.read_text(encoding="utf-8"), path)
    return texts


def problem_of(text: str) -> str:
    """Returns why a dump can't be read, or is not the same when it is printed and read again; empty if all is well.

    The dump of one function may lack those that it calls; TensorFlow doesn't read it either.
    """
    try:
        module = import_mlir(text)
        printed = _printed(module)
        return "" if _printed(import_mlir(printed)) == printed else "it is printed differently when it is read again"
    except ConversionError as problem:
        message = problem.diagnostics[0].message.partition("\n")[0]
        is_part = "builtin.module" not in text and not text.startswith("module")
        missing = "could not be found in symbol table" in message or "there is no function of that name" in message
        return "" if is_part and missing else message


def _printed(module: Any) -> str:
    stream = io.StringIO()
    print_module(module, stream, elide=None)
    return stream.getvalue()


@pytest.mark.parametrize("name", [*MODELS, INTEGERS])
def test_every_dump_is_read_and_gives_the_same(
    tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path, name: str
) -> None:
    content = official(tf, name, tmp_path)
    texts = distinct(tmp_path / "dumps")
    assert len(texts) > 10
    assert {str(path.name): problem for text, path in texts.items() if (problem := problem_of(text))} == {}
    (expected,) = run_tflite(content, [X])
    # Before ranges are applied, a model computes with floats; a number halfway between two steps may go either way.
    close = 0.05 if name in (INTEGERS, "trained_for_integers") else 1e-5
    modules = [path for text, path in texts.items() if text.startswith("module")]
    assert len(modules) > 5
    for path in modules[:: max(1, len(modules) // 6)]:
        (got,) = run_tflite(bytes(tfconvert.convert(path)), [X])
        np.testing.assert_allclose(got, expected, atol=close, rtol=close, err_msg=path.name)


def main(folders: list[str]) -> None:
    """Prints figures of the dumps in folders."""
    texts = {text: path for folder in folders for text, path in distinct(Path(folder)).items()}
    problems = Counter(filter(None, map(problem_of, texts)))
    print(f"{len(texts)} distinct texts, {len(texts) - problems.total()} are read and printed the same")
    for problem, count in problems.most_common():
        print(f"{count:6} {problem}")


if __name__ == "__main__":
    main(sys.argv[1:])
