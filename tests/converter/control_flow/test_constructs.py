"""Ops and the functions that they run."""

from __future__ import annotations

import pytest

from tfconvert.converter.control_flow.constructs import construct
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.call_interfaces import KINDS, Kind, callees, rename_callees
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

_FUNCTIONS = """
func.func private @same(%x: tensor<f32>) -> tensor<f32> {
  func.return %x : tensor<f32>
}
func.func private @two(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  func.return %x, %y : tensor<f32>, tensor<f32>
}
func.func private @declared(tensor<f32>) -> tensor<f32>
func.func private @true(%x: tensor<f32>) -> tensor<i1> {
  %0 = "tf.Const"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
  func.return %0 : tensor<i1>
}
"""


def _module(op: str) -> tuple[ModuleOp, Operation]:
    """Returns a module with an op of a condition `%p` and a number `%x`, and the op."""
    text = f"""
    func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {{
      %0 = {op} -> tensor<f32>
      func.return %0 : tensor<f32>
    }}
    {_FUNCTIONS}"""
    module = IRParser(text).parse_module()
    return module, next(inner for inner in module.walk() if inner.name in KINDS)


def _if(then_branch: str, else_branch: str) -> str:
    return (
        f'"tf.If"(%p, %x) <{{then_branch = @{then_branch}, else_branch = @{else_branch}, is_stateless = true}}>'
        " : (tensor<i1>, tensor<f32>)"
    )


def _while(condition: str, body: str) -> str:
    return f'"tf.While"(%x) <{{cond = @{condition}, body = @{body}, is_stateless = true}}> : (tensor<f32>)'


@pytest.mark.parametrize(
    ("op", "kind", "names"),
    [
        (_if("same", "same"), Kind.BRANCHES, ["same", "same"]),
        (_while("true", "same"), Kind.LOOP, ["true", "same"]),
        ('"tf.PartitionedCall"(%x) <{f = @same}> : (tensor<f32>)', Kind.CALL, ["same"]),
        ("func.call @same(%x) : (tensor<f32>)", Kind.CALL, ["same"]),
    ],
)
def test_an_op_has_the_functions_that_it_names(op: str, kind: Kind, names: list[str]) -> None:
    module, user = _module(op)
    found = construct(user, functions_of(module))
    assert found is not None
    assert (found.kind, [function.sym_name for function in found.functions]) == (kind, names)
    assert list(found.given) == [user.operands[-1]]


@pytest.mark.parametrize(
    "op",
    [
        _if("same", "nobody"),
        _if("same", "two"),
        _if("same", "declared"),
        _while("same", "two"),
        '"tf.If"(%p, %x) <{then_branch = @same}> : (tensor<i1>, tensor<f32>)',
        '"tf.If"() <{then_branch = @same, else_branch = @same}> : ()',
        '"tf.Case"(%p, %x) <{branches = []}> : (tensor<i1>, tensor<f32>)',
        '"tf.While"(%x) <{body = @same}> : (tensor<f32>)',
        '"tf.While"(%x, %x) <{cond = @two, body = @two}> : (tensor<f32>, tensor<f32>)',
        '"tf.PartitionedCall"(%x) <{f = "same"}> : (tensor<f32>)',
    ],
)
def test_a_damaged_op_is_no_construct(op: str) -> None:
    module, user = _module(op)
    assert construct(user, functions_of(module)) is None


def test_other_functions_can_be_named() -> None:
    _, case = _module('"tf.Case"(%p, %x) <{branches = [@same, @two]}> : (tensor<i1>, tensor<f32>)')
    branches = case.properties["branches"]
    assert isinstance(branches, ArrayAttr)
    instance = tf.FunctionAttr.get(attrs.symbol("same"), DictionaryAttr.get({"a": branches}))
    case.properties["branches"] = ArrayAttr.get([*branches.data, instance])
    rename_callees(case, {"same": "other"})
    assert callees(case) == ["other", "two", "other"]
