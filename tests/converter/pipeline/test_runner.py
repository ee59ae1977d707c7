"""A stage runs if the module has, or had, the names that it needs."""

from __future__ import annotations

import pytest

from tests.support.run_text import parse
from tests.support.work import calls
from tfconvert import composites
from tfconvert.converter.pipeline.runner import OpNames, names_in
from tfconvert.schema.ir.builtin import ModuleOp

NESTED = """
func.func @main() {
  tf_executor.graph {
    %c = tf_executor.island {
      "tf.NoOp"() : () -> ()
      tf_executor.yield
    }
    tf_executor.fetch %c : !tf_executor.control
  }
  func.return
}
"""


def test_ops_inside_of_others_count() -> None:
    assert {"func.func", "tf_executor.graph", "tf_executor.island", "tf.NoOp"} <= names_in(parse(NESTED))


@pytest.mark.parametrize("mark", [composites.IMPLEMENTS, composites.API_IMPLEMENTS])
def test_attributes_of_functions_count(mark: str) -> None:
    module = parse(f'func.func private @f() attributes {{{mark} = "a"}} {{ func.return }}')
    assert OpNames(module).have([(mark,)])


def test_one_name_of_each_group_is_needed() -> None:
    names = OpNames(parse(NESTED), ["options.patterns"])
    assert names.have([])
    assert names.have([("tf.Relu", "tf.No")])
    assert names.have([("tf.NoOp",), ("options.patterns",)])
    assert not names.have([("tf.NoOp",), ("tf.Relu",)])
    assert not names.have([("options.fusions",)])


def test_what_a_pass_makes_counts_and_what_is_gone_still_does() -> None:
    module = parse(NESTED)
    names = OpNames(module)
    assert names.have([("tf.NoOp",)])
    (old,) = module.ops
    (new,) = parse(NESTED.replace("tf.NoOp", "tf.Other")).ops
    old.detach()
    new.detach()
    module.body.block.add_op(new)
    assert not names.have([("tf.Other",)])
    names.changed()
    assert names.have([("tf.Other",)])
    assert names.have([("tf.NoOp",)])


def test_a_module_is_walked_only_after_a_change() -> None:
    module: ModuleOp = parse(NESTED)
    names = OpNames(module)
    first = calls(lambda: names.have([("tf.Relu",)]))
    again = calls(lambda: names.have([("tf.Relu",)]))
    names.changed()
    known = calls(lambda: names.have([("tf.NoOp",)]))
    assert max(again, known) < first < calls(lambda: names.have([("tf.Relu",)])) + calls(lambda: names_in(module))
