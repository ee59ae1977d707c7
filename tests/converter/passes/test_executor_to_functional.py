"""The pass `executor-to-functional`."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import text_format

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.executor_to_functional import ExecutorToFunctional
from tfconvert.importers.graph_def import import_graph_def
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tf_executor
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.selection import Selection

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
    module = import_graph_def(path, Selection(outputs=["neg"]))
    verify(module)
    ExecutorToFunctional().apply(module)
    verify(module)
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    assert [op.name for op in function.body.block.ops] == ["tf.Const", "tf.PrintV2", "tf.Relu", "tf.Neg", "func.return"]


def test_bodies_nested_graphs_and_what_passes_through(filecheck: FileCheck) -> None:
    filecheck(
        ExecutorToFunctional(),
        """
    // CHECK: func.func @main
    // CHECK-NEXT: [[A:%[0-9a-z_]+]] = "tf.Relu"(%x)
    // CHECK-NEXT: [[B:%[0-9a-z_]+]] = "tf.Neg"([[A]])
    // CHECK-NEXT: [[C:%[0-9a-z_]+]] = "tf.Exp"([[B]])
    // CHECK-NEXT: "tf.PrintV2"(%text)
    // CHECK-NEXT: func.return [[C]], %x, [[A]]
    func.func @main(%x: tensor<2xf32>, %text: tensor<!tf_type.string>)
        -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
      %0:3 = tf_executor.graph {
        %relu, %c0 = tf_executor.island wraps "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        %inner:3, %c1 = tf_executor.island(%c0) {
          %1:2 = tf_executor.graph {
            %neg, %c2 = tf_executor.island wraps "tf.Neg"(%relu) : (tensor<2xf32>) -> tensor<2xf32>
            %both:2, %c3 = tf_executor.island {
              %2 = "tf.Exp"(%neg) : (tensor<2xf32>) -> tensor<2xf32>
              tf_executor.yield %2, %relu : tensor<2xf32>, tensor<2xf32>
            }
            tf_executor.fetch %both#0, %both#1, %c2 : tensor<2xf32>, tensor<2xf32>, !tf_executor.control
          }
          tf_executor.yield %1#0, %x, %1#1 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
        }
        %trigger = tf_executor.ControlTrigger %c1
        %print = tf_executor.island(%trigger) wraps "tf.PrintV2"(%text) : (tensor<!tf_type.string>) -> ()
        tf_executor.fetch %inner#0, %inner#1, %inner#2, %print
          : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, !tf_executor.control
      }
      func.return %0#0, %0#1, %0#2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    }
    """,
    )


def test_regions_use_what_was_lifted(filecheck: FileCheck) -> None:
    filecheck(
        ExecutorToFunctional(),
        """
    // CHECK: [[A:%[0-9a-z_]+]] = "tf.Relu"(%x)
    // CHECK-NEXT: "tf.IfRegion"(%p)
    // CHECK: "tf.Yield"([[A]])
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = tf_executor.graph {
        %relu, %c0 = tf_executor.island wraps "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        %if, %c1 = tf_executor.island {
          %1 = "tf.IfRegion"(%p) <{is_stateless = true}> ({
            "tf.Yield"(%relu) : (tensor<2xf32>) -> ()
          }, {
            "tf.Yield"(%x) : (tensor<2xf32>) -> ()
          }) : (tensor<i1>) -> tensor<2xf32>
          tf_executor.yield %1 : tensor<2xf32>
        }
        tf_executor.fetch %if : tensor<2xf32>
      }
      func.return %0 : tensor<2xf32>
    }
    """,
    )


V1 = """
    func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
      %0 = tf_executor.graph {
        %a, %b, %c0 = tf_executor.Switch %x, %p : tensor<f32> loc("one")
        %c, %d, %c1 = tf_executor.Switch %x, %p : tensor<f32> loc("two")
        %m, %index, %c2 = tf_executor.Merge %a, %d : tensor<f32> loc("three")
        tf_executor.fetch %m : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }
"""


def test_v1_control_flow_is_one_error_about_all_of_it(filecheck: FileCheck) -> None:
    with pytest.raises(ConversionError) as caught:
        filecheck(ExecutorToFunctional(), V1)
    switches, merges = caught.value.diagnostics
    assert (switches.code, switches.op, switches.node) == ("control-flow-v1", "tf_executor.Switch", "one")
    assert "2 of them, for example one, two" in switches.message
    assert (merges.op, merges.node) == ("tf_executor.Merge", "three")


@pytest.mark.parametrize("by", ["a value", "a control"])
def test_an_order_that_controls_and_values_contradict_is_an_error(filecheck: FileCheck, by: str) -> None:
    text = """
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = tf_executor.graph {
        %relu, %c0 = tf_executor.island wraps "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        %neg, %c1 = USE : (tensor<2xf32>) -> tensor<2xf32>
        tf_executor.fetch %neg : tensor<2xf32>
      }
      func.return %0 : tensor<2xf32>
    }
    """
    use = (
        'tf_executor.island wraps "tf.Neg"(%relu)' if by == "a value" else 'tf_executor.island(%c0) wraps "tf.Neg"(%x)'
    )
    module = filecheck(_Nothing(), text.replace("USE", use) + "// CHECK: graph")
    graph = next(op for op in module.walk() if isinstance(op, tf_executor.GraphOp))
    first, second, _ = graph.body.ops
    first.detach()
    graph.body.insert_op_after(first, second)
    with pytest.raises(ConversionError) as caught:
        ExecutorToFunctional().apply(module)
    assert caught.value.code == "broken-order"


class _Nothing:
    """Leaves a module as it is."""

    name = "nothing"

    def apply(self, module: object) -> None:
        """Does nothing."""
