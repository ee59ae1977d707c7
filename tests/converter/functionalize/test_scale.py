"""Depth and size: nothing recurses, and nothing gets slow, as `benchmarks/control_flow.py` measures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks import control_flow
from tests.converter.functionalize.graphs import functionalize
from tests.support.run_text import parse
from tfconvert.converter.passes.functionalize_conditionals import FunctionalizeConditionals
from tfconvert.importers.graph_def import import_graph_def
from tfconvert.ops.verification import verify
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.selection import Selection


def built(shape: str, size: int, folder: Path) -> ModuleOp:
    """Returns the module of one of the benchmark's graphs, made functional."""
    path = folder / "graph.pb"
    path.write_bytes(control_flow.SHAPES[shape][0](size).SerializeToString())
    module = import_graph_def(path, Selection(inputs=[control_flow.INPUT], outputs=[control_flow.OUTPUT]))
    functionalize(module)
    return module


@pytest.mark.parametrize(
    ("shape", "size", "name", "count"),
    [
        ("sequential", 200, "tf.If", 200),
        ("shared", 200, "tf.If", 200),
        ("nested", 600, "tf.If", 600),
        ("loops", 50, "tf.While", 50),
        ("body", 5000, "tf.AddV2", 2500),
    ],
)
def test_much_of_it(shape: str, size: int, name: str, count: int, tmp_path: Path) -> None:
    assert Counter(op.name for op in built(shape, size, tmp_path).walk())[name] == count


def test_what_a_nested_branch_takes_does_not_grow_with_its_depth(tmp_path: Path) -> None:
    branches = [op for op in built("nested", 100, tmp_path).walk() if op.name == "tf.If"]
    assert max(len(op.operands) for op in branches) <= 3


def test_a_merge_of_many_inputs() -> None:
    count = 400
    switches = "".join(
        f"""
        %p{i}, %cp{i} = tf_executor.island wraps "tf.Less"(%y, %x{i}) : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %f{i}, %x{i + 1}, %c{i} = tf_executor.Switch %x{i}, %p{i} : tensor<f32>"""
        for i in range(count)
    )
    values = ", ".join([*(f"%f{i}" for i in range(count)), f"%x{count}"])
    kinds = ", ".join(["tensor<f32>"] * (count + 1))
    module = parse(f"""
    func.func @main(%x0: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {{
      %r = tf_executor.graph {{{switches}
        %m, %i, %c = tf_executor.Merge {values} : ({kinds}) -> (tensor<f32>, tensor<i32>, !tf_executor.control)
        tf_executor.fetch %m : tensor<f32>
      }}
      func.return %r : tensor<f32>
    }}""")
    FunctionalizeConditionals().apply(module)
    verify(module)
    assert sum(op.name == "tf.If" for op in module.walk()) == count
