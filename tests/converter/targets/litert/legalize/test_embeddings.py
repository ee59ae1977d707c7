"""Embeddings as recommenders write them: tables in shards, sparse ids, limited norms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite

Lookup = Callable[..., Any]
Feed = Mapping[str, Any]
Converted = Callable[[Lookup, Mapping[str, Any], Sequence[Feed]], dict[str, int]]

HEIGHTS = (5, 5, 4)


@pytest.fixture
def converted(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> Converted:
    """Returns a function that converts a lookup in three shards, and compares it; it returns the operators."""

    def run(lookup: Lookup, signature: Mapping[str, Any], feeds: Sequence[Feed]) -> dict[str, int]:
        module, random = tf.Module(), np.random.default_rng(1)
        module.shards = [tf.Variable(random.normal(size=(height, 3)).astype(np.float32)) for height in HEIGHTS]
        specs = [tf.TensorSpec(shape, dtype, name) for name, (shape, dtype) in signature.items()]
        module.f = tf.function(lambda *inputs: {"y": lookup(tf, module.shards, *inputs)}, input_signature=specs)
        tf.saved_model.save(module, tmp_path, signatures=module.f)
        model = tfconvert.convert(tmp_path)
        for feed in feeds:
            inputs = {name: np.array(feed[name], dtype) for name, (_, dtype) in signature.items()}
            expected = module.f(*map(tf.constant, inputs.values()))["y"].numpy()
            (got,) = run_tflite(bytes(model), inputs, signature="serving_default")
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
        return dict(model.report.operators)

    return run


IDS = {"ids": ([None], np.int64)}
SOME_IDS: list[Feed] = [{"ids": ids} for ids in ([3, 1, 13, 0, 7, 7], [2], list(range(14)))]


@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_shards_become_one_table(converted: Converted, strategy: str) -> None:
    def lookup(tf: ModuleType, shards: Any, ids: Any) -> Any:
        return tf.compat.v1.nn.embedding_lookup(shards, ids, partition_strategy=strategy)

    assert converted(lookup, IDS, SOME_IDS) == {"GATHER": 1}


def by_shard(tf: ModuleType, shards: Any, shard: Any, row: Any) -> Any:
    places = tf.dynamic_partition(tf.range(tf.size(shard)), shard, len(shards))
    rows = tf.dynamic_partition(row, shard, len(shards))
    found = [tf.gather(table, part) for table, part in zip(shards, rows, strict=True)]
    return tf.dynamic_stitch(places, found)


def test_ids_may_be_made_of_others(converted: Converted) -> None:
    def lookup(tf: ModuleType, shards: Any, ids: Any) -> Any:
        shifted = 2 * ids - 1
        return by_shard(tf, shards, tf.cast(shifted % 3, tf.int32), shifted // 3)

    assert converted(lookup, IDS, [{"ids": [3, 1, 7]}])["GATHER"] == 1


def test_shards_of_ids_without_end_stay_apart(converted: Converted) -> None:
    """Ids of 14 and more have rows here, which no table has: one row answers to many ids."""

    def lookup(tf: ModuleType, shards: Any, ids: Any) -> Any:
        return by_shard(tf, shards, tf.cast(ids % 3, tf.int32), ids // 3 % 4)

    assert converted(lookup, IDS, [*SOME_IDS, {"ids": [99, 1000, 14]}])["WHERE"] == 3


def test_shards_by_two_inputs_stay_apart(converted: Converted) -> None:
    signature = {"shard": ([None], np.int32), "row": ([None], np.int32)}
    feeds = [{"shard": [2, 0, 2, 1], "row": [3, 4, 0, 1]}, {"shard": [1], "row": [2]}]
    assert converted(by_shard, signature, feeds)["WHERE"] == 3


SPARSE = {"places": ([None, 2], np.int64), "ids": ([None], np.int64), "shape": ([2], np.int64)}
WEIGHTED = {**SPARSE, "weights": ([None], np.float32)}
FULL = {"places": [[0, 0], [0, 1], [1, 0], [2, 2]], "ids": [1, 2, 3, 2], "shape": [3, 3], "weights": [1, 2, 3, 0.5]}
GAPS = {"places": [[1, 0], [4, 0], [4, 1]], "ids": [1, 1, 9], "shape": [6, 3], "weights": [1, 2, 0.1]}
UNSORTED = {"places": [[2, 0], [0, 1], [2, 3]], "ids": [3, 4, -5], "shape": [4, 4], "weights": [1, -1, 2]}
EMPTY = {"places": np.zeros((0, 2)), "ids": [], "shape": [2, 4], "weights": []}


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("signature", [SPARSE, WEIGHTED], ids=["plain", "weighted"])
def test_rows_of_sparse_ids_are_combined(converted: Converted, combiner: str, signature: Mapping[str, Any]) -> None:
    def lookup(tf: ModuleType, shards: Any, places: Any, ids: Any, shape: Any, weights: Any = None) -> Any:
        sparse = tf.SparseTensor(places, ids, shape)
        factors = None if weights is None else tf.SparseTensor(places, weights, shape)
        return tf.nn.embedding_lookup_sparse(shards, sparse, factors, combiner=combiner, max_norm=2.0)

    converted(lookup, signature, [FULL, GAPS])


@pytest.mark.parametrize("signature", [SPARSE, WEIGHTED], ids=["plain", "weighted"])
def test_rows_without_ids_are_filled(converted: Converted, signature: Mapping[str, Any]) -> None:
    def lookup(tf: ModuleType, shards: Any, places: Any, ids: Any, shape: Any, weights: Any = None) -> Any:
        sparse = tf.SparseTensor(places, ids, shape)
        factors = None if weights is None else tf.SparseTensor(places, weights, shape)
        return tf.nn.safe_embedding_lookup_sparse(shards, sparse, factors, default_id=2)

    operators = converted(lookup, signature, [FULL, GAPS, UNSORTED, EMPTY])
    assert "FLOOR_MOD" not in operators, "the places keep their dimensions"


def test_leading_dimensions_are_merged(converted: Converted) -> None:
    signature = {**SPARSE, "places": ([None, 3], np.int64), "shape": ([3], np.int64)}
    feeds = [
        {"places": [[0, 0, 0], [0, 1, 1], [1, 0, 2]], "ids": [1, 2, 3], "shape": [3, 2, 3]},
        {"places": [[1, 1, 0], [2, 1, 1]], "ids": [1, -2], "shape": [3, 2, 3]},
    ]

    def lookup(tf: ModuleType, shards: Any, places: Any, ids: Any, shape: Any) -> Any:
        return tf.nn.safe_embedding_lookup_sparse(shards, tf.SparseTensor(places, ids, shape))

    assert "FLOOR_MOD" not in converted(lookup, signature, feeds)


def _sparse(tf: ModuleType, parts: Sequence[Any], merged: Sequence[Any]) -> Any:
    return tf.sparse.reshape(tf.SparseTensor(*parts), tf.stack([tf.cast(each, tf.int64) for each in merged]))


def _elements(tf: ModuleType, tensors: Sequence[Any]) -> Any:
    return tf.concat([tf.reshape(each.indices, [-1]) for each in tensors], 0)


def _in_order(tf: ModuleType, shards: Any, *parts: Any) -> Any:
    shape = parts[2]
    forms = (
        [tf.reduce_prod(shape[:-1]), shape[-1]],
        [shape[0], tf.reduce_prod(shape[1:])],
        [tf.reduce_prod(tf.slice(shape, [0], [2])), tf.gather(shape, 2)],
        [tf.reduce_prod(shape)],
        [shape[0], shape[1], shape[-1]],
    )
    found = [_sparse(tf, parts, merged) for merged in forms]
    return _elements(tf, [*found, tf.sparse.reshape(tf.SparseTensor(*parts), shape)])


def _out_of_order(tf: ModuleType, shards: Any, *parts: Any) -> Any:
    shape = parts[2]
    forms = [shape[2], shape[1], shape[0]], [tf.reduce_prod(shape[::2]), shape[1]], [tf.reduce_prod(shape[::-1])]
    return _elements(tf, [_sparse(tf, parts, merged) for merged in forms])


@pytest.mark.parametrize(("merge", "is_recognised"), [(_in_order, True), (_out_of_order, False)])
def test_neighbouring_dimensions_are_merged(converted: Converted, merge: Lookup, is_recognised: bool) -> None:
    signature = {**SPARSE, "places": ([None, 3], np.int64), "shape": ([3], np.int64)}
    feeds = [{"places": [[0, 0, 0], [0, 1, 1], [2, 0, 2]], "ids": [1, 2, 3], "shape": [3, 2, 4]}]
    assert ("FLOOR_MOD" in converted(merge, signature, feeds)) is not is_recognised


def test_dense_ids_are_looked_up_as_sparse_ones(converted: Converted) -> None:
    def lookup(tf: ModuleType, shards: Any, ids: Any) -> Any:
        return tf.nn.safe_embedding_lookup_sparse(shards, tf.sparse.from_dense(ids), combiner="sum")

    feeds = [{"ids": ids} for ids in ([[1, 0, 3]], [[0, 0, 0], [4, 0, 9]])]
    assert "FLOOR_MOD" not in converted(lookup, {"ids": ([None, 3], np.int64)}, feeds)


RAGGED = {"ids": ([None], np.int64), "splits": ([None], np.int64)}
ROWS = [{"ids": [1, 2, 3, 9], "splits": [0, 2, 2, 4]}, {"ids": [5], "splits": [0, 0, 1, 1]}]
OPS = ("RaggedTensorToTensor", "RaggedTensorToSparse")
"""The ops that the tests below cover."""


def ragged(tf: ModuleType, ids: Any, splits: Any) -> Any:
    return tf.RaggedTensor.from_row_splits(ids, splits, validate=False)


def test_rows_of_ragged_ids_are_combined(converted: Converted) -> None:
    def lookup(tf: ModuleType, shards: Any, ids: Any, splits: Any) -> Any:
        return tf.nn.safe_embedding_lookup_sparse(shards, ragged(tf, ids, splits).to_sparse(), None)

    converted(lookup, RAGGED, ROWS)


@pytest.mark.parametrize("width", [None, 3, 1])
def test_rows_are_padded(converted: Converted, width: int | None) -> None:
    def lookup(tf: ModuleType, shards: Any, ids: Any, splits: Any) -> Any:
        return ragged(tf, ids, splits).to_tensor(default_value=-1, shape=width and [None, width])

    converted(lookup, RAGGED, ROWS)


def test_rows_of_vectors_are_padded(converted: Converted) -> None:
    def lookup(tf: ModuleType, shards: Any, ids: Any, splits: Any) -> Any:
        by_row = tf.RaggedTensor.from_value_rowids(ids, ragged(tf, ids, splits).value_rowids(), 5, validate=False)
        return tf.gather(shards[0], by_row % 5).to_tensor(default_value=0.5)

    converted(lookup, RAGGED, ROWS)
