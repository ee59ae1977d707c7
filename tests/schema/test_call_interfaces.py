"""Which functions an op runs, whatever the attribute that names them."""

from __future__ import annotations

import pytest

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.call_interfaces import (
    INTERFACES,
    REGION_FORMS,
    STATEFUL,
    CallInterface,
    Kind,
    callees,
    rename_callees,
)
from tfconvert.schema.dialects.func import CallOp
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr
from tfconvert.schema.tensorflow import op_defs

TF_ROWS = [row for row in INTERFACES.values() if row.name.startswith("tf.")]


def _function(name: str) -> tf.FunctionAttr:
    return tf.FunctionAttr.get(attrs.symbol(name), DictionaryAttr.get({}))


@pytest.mark.parametrize("row", TF_ROWS, ids=lambda row: row.name)
def test_properties_are_functions_in_tensorflow(row: CallInterface) -> None:
    op_def = op_defs.lookup(row.name.removeprefix("tf."))
    assert op_def is not None
    declared = {attribute.name: attribute.type for attribute in op_def.attr}
    assert [declared[name] for name in row.properties] == ["list(func)" if row.arity is None else "func"] * len(
        row.properties
    )
    assert op_def.is_stateful is not row.is_stateless
    assert len(op_def.input_arg) == row.first_operand + 1


@pytest.mark.parametrize("row", TF_ROWS, ids=lambda row: row.name)
def test_every_function_type_attribute_is_a_property(row: CallInterface) -> None:
    op_def = op_defs.lookup(row.name.removeprefix("tf."))
    assert op_def is not None
    assert {each.name for each in op_def.attr if each.type in ("func", "list(func)")} == set(row.properties)


def test_callees_in_the_order_of_their_properties() -> None:
    loop = tf.build("While", (), (), {"body": attrs.symbol("b"), "cond": _function("c")})
    branches = tf.build("Case", (), (), {"branches": ArrayAttr.get([attrs.symbol("x"), attrs.symbol("y")])})
    assert [callees(op) for op in (loop, branches, CallOp.of("f", (), ()))] == [["c", "b"], ["x", "y"], ["f"]]


def test_ops_that_run_nothing_have_no_callees() -> None:
    assert callees(tf.build("Relu", (), (), {"f": attrs.symbol("f")})) == []
    assert callees(tf.build("If", (), ())) == []


def test_callees_are_renamed() -> None:
    op = tf.build("If", (), (), {"then_branch": attrs.symbol("a"), "else_branch": _function("b")})
    rename_callees(op, {"a": "x", "b": "y"})
    assert callees(op) == ["x", "y"]
    assert isinstance(op.properties["else_branch"], tf.FunctionAttr)


def test_forms_with_regions() -> None:
    assert REGION_FORMS == {"tf.CaseRegion": "tf.Case", "tf.IfRegion": "tf.If", "tf.WhileRegion": "tf.While"}
    assert all(op_defs.lookup(name.removeprefix("tf.")) is not None for name in STATEFUL)
    assert {INTERFACES[name].kind for name in STATEFUL} == {Kind.BRANCHES, Kind.LOOP}
