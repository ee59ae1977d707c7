"""The pass `executor-to-functional`."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import text_format
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from converter.passes.executor_to_functional import ExecutorToFunctional
from importers.graph_def import import_graph_def
from schema.diagnostics import ConversionError
from schema.dialects import tf_executor
from schema.tensorflow.generated import tensorflow_pb2 as pb

GRAPH = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "relu" op: "Relu" input: "x" input: "^print" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "neg" op: "Neg" input: "relu" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "text" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
       attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { } string_val: "hello" } } } }
node { name: "print" op: "PrintV2" input: "text" }
"""


def test_islands_become_ops_in_the_order_of_their_controls(tmp_path: Path) -> None:
    path = tmp_path / "graph.pb"
    path.write_bytes(text_format.Parse(GRAPH, pb.GraphDef()).SerializeToString())
    module = import_graph_def(path, outputs=["neg"])
    module.verify()
    ExecutorToFunctional().apply(module)
    module.verify()
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    assert [op.name for op in function.body.block.ops] == ["tf.Const", "tf.PrintV2", "tf.Relu", "tf.Neg", "func.return"]


def test_v1_control_flow_is_an_error() -> None:
    trigger = tf_executor.ControlTriggerOp.create(result_types=(tf_executor.CONTROL,))
    graph = tf_executor.GraphOp.build(Block([trigger, tf_executor.FetchOp.create()]))
    function = FuncOp("main", ([], []), Region(Block([graph, ReturnOp()])))
    with pytest.raises(ConversionError) as caught:
        ExecutorToFunctional().apply(ModuleOp([function]))
    assert caught.value.code == "control-flow-v1"
