"""Ops of old GraphDefs: the converted model computes what TensorFlow does."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tfconvert
from tests.importers import v1_graphs
from tests.importers.v1_graphs import FLOAT, INT, node
from tests.support.litert import RunTFLite
from tfconvert.importers.graph.legacy_ops import upgrade_legacy_ops
from tfconvert.importers.graph_def import import_graph_def
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

# The producer of graphs in which TensorFlow still takes the oldest ops.
BEFORE_DEPRECATION = 6


def vector(name: str, *values: float) -> pb.NodeDef:
    made = node(name, "Const", dtype=FLOAT)
    made.attr["value"].tensor.CopyFrom(
        pb.TensorProto(
            dtype=FLOAT,
            float_val=values,
            tensor_shape=pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=len(values))]),
        )
    )
    return made


def pairs(name: str, *values: int) -> pb.NodeDef:
    made = node(name, "Const", dtype=INT)
    made.attr["value"].tensor.CopyFrom(
        pb.TensorProto(
            dtype=INT,
            int_val=values,
            tensor_shape=pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=size) for size in (2, 2)]),
        )
    )
    return made


def batch_norm(*, scale: bool) -> list[pb.NodeDef]:
    names = ("mean", "variance", "beta", "gamma")
    return [
        *(vector(name, 0.5 + index, 2.0 + index) for index, name in enumerate(names)),
        node(
            "y",
            "BatchNormWithGlobalNormalization",
            "x",
            *names,
            T=FLOAT,
            variance_epsilon=0.01,
            scale_after_normalization=scale,
        ),
    ]


CASES: dict[str, tuple[tuple[int, ...], list[pb.NodeDef]]] = {
    "batch norm": ((2, 2, 2, 2), batch_norm(scale=True)),
    "batch norm without a scale": ((2, 2, 2, 2), batch_norm(scale=False)),
    "space to batch": (
        (1, 2, 4, 1),
        [pairs("pads", 0, 0, 0, 0), node("y", "SpaceToBatch", "x", "pads", T=FLOAT, block_size=2)],
    ),
    "batch to space": (
        (4, 1, 2, 1),
        [pairs("crops", 0, 0, 0, 1), node("y", "BatchToSpace", "x", "crops", T=FLOAT, block_size=2)],
    ),
    "guaranteed constant": (
        (3,),
        [vector("c", 1, 2, 3), node("g", "GuaranteeConst", "c", T=FLOAT), node("y", "Add", "x", "g", T=FLOAT)],
    ),
    "batch matrix diagonal": ((2, 3), [node("y", "BatchMatrixDiag", "x", T=FLOAT)]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_legacy_op_computes_what_it_did(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite, name: str) -> None:
    shape, nodes = CASES[name]
    graph = v1_graphs.graph(v1_graphs.placeholder("x", FLOAT, shape), *nodes)
    graph.versions.producer = BEFORE_DEPRECATION
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.SerializeToString())
    value = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        v1.import_graph_def(v1.GraphDef.FromString(path.read_bytes()), name="")
        wanted = session.run("y:0", {"x:0": value})
    (got,) = run_tflite(bytes(tfconvert.convert(path, inputs=["x"], outputs=["y:0"])), [value])
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_the_oldest_top_k_has_its_count_as_an_attribute(tmp_path: Path, run_tflite: RunTFLite) -> None:
    top = node("y", "TopK", "x", T=FLOAT, k=2, sorted=True)
    path = tmp_path / "graph.pb"
    path.write_bytes(v1_graphs.graph(v1_graphs.placeholder("x", FLOAT, (4,)), top).SerializeToString())
    got = run_tflite(bytes(tfconvert.convert(path, outputs=["y", "y:1"])), [np.array([3, 1, 9, 4], np.float32)])
    np.testing.assert_array_equal(got, [[9, 4], [2, 3]])


def test_control_inputs_stay() -> None:
    first, *rest = batch_norm(scale=True)
    rest[-1].input.append("^other")
    upgraded = upgrade_legacy_ops({each.name: each for each in (first, *rest)})
    assert upgraded["y"].op == "FusedBatchNormV3"
    assert list(upgraded["y"].input) == ["x", "gamma", "beta", "mean", "variance", "^other"]


def test_graphs_without_legacy_ops_are_unchanged() -> None:
    nodes = {each.name: each for each in v1_graphs.loop().node}
    assert upgrade_legacy_ops(nodes) == nodes


def test_attributes_of_other_producers_are_tolerated(tmp_path: Path) -> None:
    graph = v1_graphs.graph(
        v1_graphs.placeholder("x", FLOAT, (2,)),
        node("y", "LeakyRelu", "x", T=FLOAT, future_attribute=3, _class="loc:@x"),
    )
    graph.node[1].device = "/job:worker/device:GPU:7"
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.SerializeToString())
    assert "alpha = 2.000000e-01" in str(import_graph_def(path))
    assert len(tfconvert.convert(path)) > 0
