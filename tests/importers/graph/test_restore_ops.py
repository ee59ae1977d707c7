"""Where TensorFlow 1's variables are: under restored keys, in parts of tensors, or in their initialisers."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tfconvert
from tests.importers import v1_models
from tests.importers.v1_graphs import FLOAT, node
from tests.support.control_flow import control_flow_v1
from tests.support.litert import RunTFLite
from tfconvert.importers.checkpoint.bundle import Checkpoint
from tfconvert.importers.graph.variables import Saved, initial_value, saved_variables
from tfconvert.importers.saved_model import import_saved_model
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import types
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


def strings(name: str, *values: str) -> pb.NodeDef:
    made = node(name, "Const", dtype=pb.DT_STRING)
    made.attr["value"].tensor.CopyFrom(
        pb.TensorProto(
            dtype=pb.DT_STRING,
            string_val=[value.encode() for value in values],
            tensor_shape=pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=len(values))]),
        )
    )
    return made


def restoring(slices: str = "") -> tuple[pb.MetaGraphDef, dict[str, pb.NodeDef]]:
    """Returns a graph whose saver keeps `v` under the key `kernel` and `w` under `bias`."""
    nodes = [
        strings("keys", "bias", "kernel"),
        strings("slices", "", slices),
        strings("prefix", "p"),
        node("restored", "RestoreV2", "prefix", "keys", "slices"),
        node("same", "Identity", "restored:1", T=pb.DT_FLOAT),
        node("v", "VariableV2", dtype=FLOAT, shape=(2,)),
        node("w", "VarHandleOp", dtype=FLOAT, shape=(2,)),
        node("set_v", "Assign", "v", "same", T=FLOAT),
        node("set_w", "AssignVariableOp", "w", "restored"),
        node("all", "NoOp", "^set_v", "^set_w"),
    ]
    graph = pb.MetaGraphDef(saver_def=pb.SaverDef(restore_op_name="all", version=pb.SaverDef.V2))
    return graph, {each.name: each for each in nodes}


def test_keys_are_those_that_are_restored() -> None:
    assert saved_variables(*restoring(), {"v"}) == {"v": Saved("kernel"), "w": Saved("bias")}


def test_parts_of_tensors() -> None:
    assert saved_variables(*restoring("10 4 0,5:-"), ())["v"] == Saved("kernel", ((0, 5), (0, -1)))


def test_without_a_saver_keys_are_names() -> None:
    _, nodes = restoring()
    assert saved_variables(pb.MetaGraphDef(), nodes, {"v", "z"}) == {"v": Saved("v")}


@pytest.mark.parametrize("slices", ["10 4 0,5:?", "10 4 0", "10 4 -1,2"])
def test_damaged_slices_are_reported(slices: str) -> None:
    with pytest.raises(ConversionError, match="is not a slice"):
        saved_variables(*restoring(slices), ())


def test_the_oldest_checkpoints_are_reported() -> None:
    graph, nodes = restoring()
    graph.saver_def.version = pb.SaverDef.V1
    with pytest.raises(ConversionError, match="V1"):
        saved_variables(graph, nodes, ())


def test_a_temporary_variable_begins_with_zeros() -> None:
    nodes = {"t": node("t", "TemporaryVariable", dtype=FLOAT, shape=(3,))}
    value = initial_value("t", pb.MetaGraphDef(), nodes)
    assert value is not None
    assert value.type == types.tensor(types.F32, (3,))


def test_slices_are_read_whether_or_not_they_were_saved_so(tf: ModuleType, tmp_path: Path) -> None:
    saved = v1_models.save(tf, tmp_path, v1_models.dense)
    checkpoint = Checkpoint(saved.prefix)
    whole = checkpoint.read("w").array(np.dtype(np.float32), (4, 3))
    for extents, part in ((((0, 2), (0, 3)), whole[:2]), (((1, 2), (0, -1)), whole[1:3])):
        source, shape = checkpoint.read_part("w", extents)
        np.testing.assert_array_equal(source.array(np.dtype(np.float32), shape), part)
    with pytest.raises(ConversionError) as caught:
        checkpoint.read_part("w", ((3, 2), (0, 3)))
    assert caught.value.code == "bad-slice"


def test_a_saved_model_with_reference_and_local_variables(
    tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite
) -> None:
    v1, folder = tf.compat.v1, tmp_path / "model"
    with control_flow_v1(tf), v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [2], "x")
        weight = v1_models.variable(tf, "w", np.array([5, 6], np.float32))
        local = v1_models.variable(tf, "l", np.array([1, -1], np.float32), collections=["local_variables"])
        y = v1.cond(tf.reduce_sum(x) > 0, lambda: weight * x + local, lambda: x)
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        builder = v1.saved_model.builder.SavedModelBuilder(str(folder))
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"predict": signature}, main_op=v1.local_variables_initializer()
        )
        builder.save()
    assert "VariableV2" not in str(import_saved_model(folder))
    (got,) = run_tflite(bytes(tfconvert.convert(folder)), [np.array([1, 2], np.float32)])
    np.testing.assert_array_equal(got, [6, 11])
