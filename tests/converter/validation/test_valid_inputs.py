"""Random inputs suit the ops that they reach: what needs indices, partitions, splits, axes or sizes is verified."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tfconvert
from tfconvert.converter.targets.litert.runtime_process import LiteRTProcess
from tfconvert.schema.diagnostics import ConversionError

Build = Callable[[Any], tuple[Callable[..., Any], list[Any]]]


def _spec(tf: Any, shape: list[int | None], dtype: str, name: str) -> Any:
    return tf.TensorSpec(shape, dtype, name)


def _embedding(tf: Any) -> Any:
    table = tf.Variable(tf.random.stateless_normal([10, 4], [1, 2]))
    return lambda ids: tf.gather(table, ids), [_spec(tf, [None, 3], "int64", "ids")]


def _halves_of_ids(tf: Any) -> Any:
    table = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def look_up(ids: Any) -> Any:
        first, second = tf.split(ids, 2)
        return tf.gather(table, first) - tf.gather(table, tf.reverse_sequence(second, [1, 2], 1))

    return look_up, [_spec(tf, [4, 3], "int32", "ids")]


def _cast_embedding(tf: Any) -> Any:
    table = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    return (lambda ids: tf.gather(table, tf.reshape(tf.cast(ids, tf.int32), [-1]))), [
        _spec(tf, [None, 1], "float32", "ids")
    ]


def _gather_nd(tf: Any) -> Any:
    return (lambda x, at: tf.gather_nd(x, at) + 1), [
        _spec(tf, [4, 3], "float32", "x"),
        _spec(tf, [5, 2], "int32", "at"),
    ]


def _dynamic_partition(tf: Any) -> Any:
    return (lambda x, parts: tf.dynamic_partition(x, parts, 2)), [
        _spec(tf, [6], "float32", "x"),
        _spec(tf, [6], "int32", "parts"),
    ]


def _ragged(tf: Any) -> Any:
    return (lambda values, splits: tf.RaggedTensor.from_row_splits(values, splits, validate=False).to_tensor()), [
        _spec(tf, [7], "float32", "values"),
        _spec(tf, [4], "int64", "splits"),
    ]


def _segments(tf: Any) -> Any:
    return (lambda x, ids: tf.math.segment_sum(x, ids) + 1), [
        _spec(tf, [6, 2], "float32", "x"),
        _spec(tf, [6], "int32", "ids"),
    ]


def _unsorted_segments(tf: Any) -> Any:
    return (lambda x, ids: tf.math.unsorted_segment_sum(x, ids, 4)), [
        _spec(tf, [6, 2], "float32", "x"),
        _spec(tf, [6], "int32", "ids"),
    ]


def _lengths(tf: Any) -> Any:
    return (lambda x, lengths: tf.reverse_sequence(x, lengths, seq_axis=1)), [
        _spec(tf, [3, 5], "float32", "x"),
        _spec(tf, [3], "int32", "lengths"),
    ]


def _permutation(tf: Any) -> Any:
    return (lambda x, order: tf.transpose(x, order) + 1), [
        _spec(tf, [2, 3, 4], "float32", "x"),
        _spec(tf, [3], "int32", "order"),
    ]


def _reshape(tf: Any) -> Any:
    return (lambda x, shape: tf.reshape(x, shape) + 1), [
        _spec(tf, [2, 6], "float32", "x"),
        _spec(tf, [2], "int32", "shape"),
    ]


def _axis(tf: Any) -> Any:
    return (lambda x, axis: tf.reduce_sum(x, axis) + 1), [
        _spec(tf, [2, 6], "float32", "x"),
        _spec(tf, [1], "int32", "axis"),
    ]


def _division(tf: Any) -> Any:
    return (lambda x, by: x // by), [_spec(tf, [6], "int32", "x"), _spec(tf, [6], "int32", "by")]


def _in_a_loop(tf: Any) -> Any:
    table = tf.constant([1.0, 2.0, 4.0, 8.0])

    def run(ids: Any) -> Any:
        return tf.while_loop(
            lambda step, total: step < 3,
            lambda step, total: (step + 1, total + tf.reduce_sum(tf.gather(table, ids))),
            [0, 0.0],
        )[1]

    return run, [_spec(tf, [5], "int32", "ids")]


def _sizes(tf: Any) -> Any:
    def run(x: Any, count: Any, pads: Any, depth: Any) -> Any:
        wide = tf.pad(tf.tile(x, count), pads)
        return tf.one_hot(tf.range(depth), depth), tf.math.top_k(wide, count[1])[0], tf.fill(count, 2.0)

    return run, [
        _spec(tf, [3, 6], "float32", "x"),
        _spec(tf, [2], "int32", "count"),
        _spec(tf, [2, 2], "int32", "pads"),
        _spec(tf, [], "int32", "depth"),
    ]


def _places(tf: Any) -> Any:
    return (lambda x, at, order: (tf.scatter_nd(at, x, [6]), tf.math.invert_permutation(order))), [
        _spec(tf, [4], "float32", "x"),
        _spec(tf, [4, 1], "int32", "at"),
        _spec(tf, [5], "int32", "order"),
    ]


def _counted(tf: Any) -> Any:
    return (lambda ids: tf.math.bincount(ids, minlength=5, maxlength=5)), [_spec(tf, [9], "int32", "ids")]


def _sparse(tf: Any) -> Any:
    def run(values: Any, splits: Any) -> Any:
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False).to_sparse().indices

    return run, [_spec(tf, [7], "float32", "values"), _spec(tf, [4], "int64", "splits")]


def _words(tf: Any) -> Any:
    entries = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b", "c"]), tf.constant([3, 4, 5], tf.int64))
    table = tf.lookup.StaticHashTable(entries, -1)
    return (lambda words: table.lookup(words) + 0), [_spec(tf, [4], "string", "words")]


MODELS: dict[str, Build] = {
    build.__name__[1:]: build
    for build in (
        _embedding,
        _halves_of_ids,
        _cast_embedding,
        _gather_nd,
        _dynamic_partition,
        _ragged,
        _segments,
        _unsorted_segments,
        _lengths,
        _permutation,
        _reshape,
        _axis,
        _division,
        _in_a_loop,
        _sizes,
        _places,
        _counted,
        _sparse,
        _words,
    )
}


def save(tf: ModuleType, build: Build, folder: Path) -> Path:
    """Saves a function as a SavedModel with one signature."""
    module = tf.Module()
    function, specs = build(tf)
    module.table = [cell.cell_contents for cell in function.__closure__ or ()]
    module.run = tf.function(function, input_signature=specs)
    tf.saved_model.save(module, folder, signatures=module.run.get_concrete_function())
    return folder


@pytest.mark.parametrize("name", MODELS)
def test_random_inputs_suit_the_model(name: str, tf: ModuleType, tmp_path: Path) -> None:
    report = tfconvert.convert(save(tf, MODELS[name], tmp_path / "model"), verify=True).report
    assert report.verification
    assert [note for note in report.notes if note.code in ("not-verified", "refused-inputs")] == []
    assert max(each.max_relative for each in report.verification) < 1e-5


@pytest.mark.parametrize("name", ["embedding", "dynamic_partition", "segments"])
def test_invalid_inputs_are_found(name: str, tf: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all inputs are zeros: a file that takes every index for the first gives other results."""
    model = save(tf, MODELS[name], tmp_path / "model")
    run_file = LiteRTProcess.run_file

    def wrong(self: LiteRTProcess, content: bytes, key: str, inputs: Any, outputs: Any) -> Any:
        fed = {name: value * 0 if value.dtype.kind == "i" else value for name, value in inputs.items()}
        return run_file(self, content, key, fed, outputs)

    monkeypatch.setattr(LiteRTProcess, "run_file", wrong)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(model, verify=True)
    assert caught.value.code == "verification-failed"


def test_quantized_models_are_compared_on_valid_inputs(tf: ModuleType, tmp_path: Path) -> None:
    def build(tf: Any) -> Any:
        table = tf.Variable(tf.random.stateless_normal([5, 1024], [1, 2]))
        return lambda ids: tf.gather(table, ids), [tf.TensorSpec([None, 9], tf.int32, "ids")]

    report = tfconvert.convert(save(tf, build, tmp_path / "model"), quantize="dynamic", verify=True).report
    assert report.quantization is not None
    assert report.quantization.fidelity is not None
    assert report.quantization.fidelity.samples == 3
