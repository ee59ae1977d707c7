"""The kinds of models that the official project tests flex ops with: stacks and maps, in branches and loops too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import tfconvert
from tests.support.litert import RunTFLite

_OPS = [tfconvert.OpsSet.TFLITE_BUILTINS, tfconvert.OpsSet.SELECT_TF_OPS]

Build = Callable[[Any, Any], Any]
"""Adds the ops of a model to a graph, given TensorFlow and the input; returns the output."""


def _stack(tf: ModuleType) -> Any:
    return tf.raw_ops.StackV2(max_size=10, elem_type=tf.float32)


def _pushed(tf: ModuleType, stack: Any, value: Any) -> Any:
    return tf.raw_ops.StackPushV2(handle=stack, elem=tf.cast(value, tf.float32))


def _popped(tf: ModuleType, stack: Any, *after: Any) -> Any:
    with tf.control_dependencies(list(after)):
        return tf.raw_ops.StackPopV2(handle=stack, elem_type=tf.float32)


def _stack_in_branch(tf: ModuleType, x: Any) -> Any:
    stack = _stack(tf)
    pushed, same = tf.cond(x[0] < 10, lambda: (_pushed(tf, stack, 4), stack), lambda: (_pushed(tf, stack, 5), stack))
    return _popped(tf, same, pushed)


def _stack_in_loop(tf: ModuleType, x: Any) -> Any:
    _, same, last = tf.while_loop(
        lambda i, stack, last: i < x[0],
        lambda i, stack, last: (i + 1, stack, _pushed(tf, stack, i)),
        [0.0, _stack(tf), 0.0],
    )
    return _popped(tf, same, last)


def _plain_stack(tf: ModuleType, x: Any) -> Any:
    stack = _stack(tf)
    return x + x + _popped(tf, stack, _pushed(tf, stack, x))


_STACKS: Mapping[str, tuple[Build, Callable[[float], float]]] = {
    "plain": (_plain_stack, lambda x: 3 * x),
    "branch": (_stack_in_branch, lambda x: 4 if x < 10 else 5),
    "loop": (_stack_in_loop, lambda x: x - 1),
}
"""Models with stacks, and what they compute from a whole number."""


def _inserted(tf: ModuleType, table: Any, key: Any) -> Any:
    return tf.raw_ops.TensorMapInsert(input_handle=table, key=key, value=key)


def _result(tf: ModuleType, x: Any, table: Any) -> Any:
    return x + tf.cast(tf.raw_ops.TensorMapSize(input_handle=table), tf.float32)


def _plain_map(tf: ModuleType, x: Any) -> Any:
    table = _inserted(tf, tf.raw_ops.EmptyTensorMap(), x)
    erased = tf.raw_ops.TensorMapErase(input_handle=table, key=x, value_dtype=tf.float32)
    has = tf.raw_ops.TensorMapHasKey(input_handle=table, key=x)
    found = tf.raw_ops.TensorMapLookup(input_handle=table, key=x, value_dtype=tf.float32)
    keys = tf.raw_ops.TensorMapStackKeys(input_handle=table, key_dtype=tf.float32)
    return _result(tf, found + tf.cast(has, tf.float32) + tf.reduce_sum(keys), erased)


def _map_in_branch(tf: ModuleType, x: Any) -> Any:
    table = tf.raw_ops.EmptyTensorMap()
    return _result(tf, x, tf.cond(x[0] < 10, lambda: _inserted(tf, table, x), lambda: _inserted(tf, table, 2 * x)))


def _map_in_loop(tf: ModuleType, x: Any) -> Any:
    start = [0, tf.raw_ops.EmptyTensorMap()]
    return _result(
        tf, x, tf.while_loop(lambda i, table: i < 10, lambda i, table: (i + 1, _inserted(tf, table, i)), start)[1]
    )


_MAPS: Mapping[str, Build] = {"plain": _plain_map, "branch": _map_in_branch, "loop": _map_in_loop}
"""Models with maps."""


def _save(tf: ModuleType, folder: Path, build: Build) -> None:
    """Saves a model as TensorFlow 1 does, with one float as its input."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        fed = tf.compat.v1.placeholder(tf.float32, [1], name="input")
        tf.compat.v1.saved_model.simple_save(session, str(folder), {"x": fed}, {"y": build(tf, fed)})


@pytest.mark.parametrize("kind", _STACKS)
def test_stacks(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite, kind: str) -> None:
    build, expected = _STACKS[kind]
    _save(tf, tmp_path, build)
    converter = tfconvert.TFLiteConverter.from_saved_model(tmp_path)
    converter.target_spec.supported_ops = _OPS
    content = converter.convert()
    for x in (5, 12) if kind == "branch" else (5, 1):
        np.testing.assert_array_equal(run_tflite(content, [np.array([x], np.float32)])[0], expected(x))


@pytest.mark.parametrize("kind", _MAPS)
def test_maps(tf: ModuleType, tmp_path: Path, kind: str) -> None:
    _save(tf, tmp_path, _MAPS[kind])
    want, got = (
        _flex_ops(tf, converter, tmp_path) for converter in (tf.lite.TFLiteConverter, tfconvert.TFLiteConverter)
    )
    assert {name for name, _ in got} >= {"FlexEmptyTensorMap", "FlexTensorMapInsert", "FlexTensorMapSize"}
    assert got == want


def _flex_ops(tf: ModuleType, kind: Any, folder: Path) -> list[tuple[str, str]]:
    """Returns the names of a file's flex ops, and the nodes that they tell TensorFlow to run."""
    from tensorflow.lite.python import schema_py_generated as schema

    converter = kind.from_saved_model(str(folder))
    converter.target_spec.supported_ops = [getattr(tf.lite.OpsSet, each.name) for each in _OPS]
    model = schema.ModelT.InitFromPackedBuf(converter.convert(), 0)
    codes = [(code.customCode or b"").decode() for code in model.operatorCodes]
    found = []
    for op in (op for graph in model.subgraphs for op in graph.operators if codes[op.opcodeIndex]):
        text = flexbuffers.GetRoot(bytes(op.customOptions)).AsVector[1]
        node = tf.compat.v1.NodeDef.FromString(flexbuffers.String(text._Indirect(), text._byte_width).Bytes)
        node.ClearField("experimental_debug_info")
        found.append((codes[op.opcodeIndex], str(node)))
    return sorted(found)
