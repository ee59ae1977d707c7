"""Parts of functions as modules of their own."""

from __future__ import annotations

from tests.converter.targets.litert.optimize.graph import CONSTANTS, Graph, random
from tests.support.litert import RunTFLite
from tests.support.run_text import parse
from tfconvert.converter.ir.excerpt import Excerpt, excerpt, with_neighbours
from tfconvert.exporters.tflite.model import export
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.func import functions_of


def _graph() -> Graph:
    graph = Graph((2, 3))
    (x,) = graph.inputs
    first, second = graph.split(graph.op("abs", x), [1, 2], 1)
    graph.op("neg", second)  # Unused.
    product = graph.op("mul", first, random(1, 1))
    return graph.returns(graph.op("reshape", product, [2], shape=(2,), new_shape=(2,)), first)


def _names(part: Excerpt) -> list[str]:
    return [name for name in Graph.of(part.module).names if f"tfl.{name}" not in CONSTANTS]


def test_constants_are_copied_and_other_operands_are_arguments(run_tflite: RunTFLite) -> None:
    graph = _graph()
    split, product = (op for op in graph.ops if op.name in ("tfl.split_v", "tfl.mul"))
    part = excerpt(graph.module, [split, product])
    verify(part.module, with_relations=False)
    assert part.inputs == (split.operands[0],)
    assert part.outputs == (*split.results, product.results[0])
    x = random(2, 3)
    *_, result = run_tflite(export(part.module).to_bytes(), [x])
    assert (result == x[:, :1] * random(1, 1)).all()
    assert len(graph.ops) == 5  # The original is as it was.


def test_unused_results_are_outputs_only_if_nothing_else_is() -> None:
    graph = _graph()
    negation = next(op for op in graph.ops if op.name == "tfl.neg")
    assert excerpt(graph.module, [negation]).outputs == negation.results
    source, split = graph.ops[:2]
    assert excerpt(graph.module, [source, split]).outputs == split.results


def test_neighbours_that_others_use_stay_out() -> None:
    graph = _graph()
    absolute, split, negation, product, reshape = graph.ops
    names = frozenset({"tfl.reshape", "tfl.split_v"})
    assert with_neighbours([product], names) == [product, reshape]  # Others read the split.
    assert with_neighbours([absolute], names) == [absolute, split]
    assert with_neighbours([negation], names) == [split, negation]
    assert with_neighbours([], names) == []


def test_functions_that_ops_run_are_copied_in_the_order_of_the_module() -> None:
    module = parse(
        """
        func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
          %0 = "tf.While"(%x) <{cond = @cond, body = @body, is_stateless = true}> : (tensor<2xf32>) -> tensor<2xf32>
          %1 = "tf.Neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
          func.return %1 : tensor<2xf32>
        }
        func.func private @inner(%x: tensor<2xf32>) -> tensor<2xf32> {
          func.return %x : tensor<2xf32>
        }
        func.func private @body(%x: tensor<2xf32>) -> tensor<2xf32> {
          %0 = "tf.PartitionedCall"(%x) <{f = @inner}> : (tensor<2xf32>) -> tensor<2xf32>
          func.return %0 : tensor<2xf32>
        }
        func.func private @cond(%x: tensor<2xf32>) -> tensor<i1> {
          %0 = "tf.Const"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
          func.return %0 : tensor<i1>
        }
        func.func private @other(%x: tensor<2xf32>) -> tensor<2xf32> {
          func.return %x : tensor<2xf32>
        }
        """
    )
    loop = next(op for op in module.walk() if op.name == "tf.While")
    assert list(functions_of(excerpt(module, [loop]).module)) == ["main", "inner", "body", "cond"]
