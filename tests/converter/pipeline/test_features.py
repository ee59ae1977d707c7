"""What a model has decides which passes are loaded for it."""

from __future__ import annotations

import pytest

from tfconvert import composites, patterns
from tfconvert.converter.options import Options
from tfconvert.converter.pipeline.features import NOTHING, Presence, presence_in
from tfconvert.schema.dialects.parsing import IRParser

PLAIN = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %v = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource>
  %0 = "tf.ReadVariableOp"(%v) : (tensor<!tf_type.resource>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
"""


def _presence(text: str, options: Options | None = None) -> Presence:
    return presence_in(IRParser(text).parse_module(), options or Options())


def _with(name: str) -> str:
    """Returns a module that has an op of a name, inside another op."""
    return f"""
    func.func @main() {{
      tf_executor.graph {{
        %c = tf_executor.island {{
          "{name}"() : () -> ()
          tf_executor.yield
        }}
        tf_executor.fetch %c : !tf_executor.control
      }}
      func.return
    }}
    """


def test_a_model_that_only_reads_variables_has_nothing() -> None:
    assert _presence(PLAIN) == NOTHING


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("tf.While", {"control_flow", "sequences"}),
        ("tf.TensorListReserve", {"control_flow", "sequences"}),
        ("tf.ResourceGather", {"resource_ops"}),
        ("tf.AssignAddVariableOp", {"resource_ops"}),
        ("tf.HashTableV2", {"tables"}),
        ("tfl.gather", {"sequences"}),
        ("tf.Relu", set()),
    ],
)
def test_ops_tell_what_there_is(name: str, found: set[str]) -> None:
    assert _presence(_with(name)) == NOTHING._replace(**dict.fromkeys(found, True))


@pytest.mark.parametrize("mark", [composites.IMPLEMENTS, composites.API_IMPLEMENTS])
def test_marked_functions_are_there(mark: str) -> None:
    text = f'func.func private @f() attributes {{{mark} = "a"}} {{ func.return }}'
    assert _presence(text) == NOTHING._replace(composites=True, sequences=True)


def test_what_the_user_adds_may_make_more() -> None:
    fusion = composites.Fusion("own", "a", "nothing", lambda composite: "", lambda composite, body: [])
    assert _presence(PLAIN, Options(composites=[fusion])).composites
    rule = patterns.rule("own", patterns.tf.Relu(patterns.value("x")), to=patterns.value("x"))
    assert _presence(PLAIN, Options(patterns=[rule])).tables
