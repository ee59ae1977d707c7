"""The innermost op that breaks a rule is found, however deep it is, and told in few lines."""

from __future__ import annotations

from xdsl.dialects.builtin import UNKNOWN_LOC, ArrayAttr, ModuleOp, NameLoc, StringAttr, UnitAttr, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region

from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.context import dialect_context
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.verification import excerpt, first_broken


def _function(*ops: Operation) -> FuncOp:
    return FuncOp("main", ((), ()), Region(Block([*ops, ReturnOp()])))


def _op(name: str, *operands: Operation) -> Operation:
    return tf.op_class(name).create(operands=[operand.results[0] for operand in operands], result_types=[i32])


def test_a_sound_module_has_nothing_broken() -> None:
    a = _op("NoSuchOpA")
    assert first_broken(ModuleOp([_function(a, _op("NoSuchOpB", a))])) is None


def test_a_use_before_the_definition_is_found() -> None:
    a = _op("NoSuchOpA")
    b = _op("NoSuchOpB", a)
    broken = first_broken(ModuleOp([_function(b, a)]))
    assert broken is not None
    assert broken.op is b
    assert "not defined before its use" in broken.reason


def test_a_value_is_not_visible_outside_of_its_region() -> None:
    inside = _op("NoSuchOpA")
    outside = _op("NoSuchOpB", inside)
    broken = first_broken(ModuleOp([ModuleOp([inside]), outside]))
    assert broken is not None
    assert broken.op is outside


def test_a_value_is_visible_in_regions_behind_it() -> None:
    text = """
    func.func @main(%c: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
      %0 = "tf.Relu"(%x) : (tensor<f32>) -> tensor<f32>
      %1 = "tf.IfRegion"(%c) <{is_stateless = true}> ({
        "tf.Yield"(%0) : (tensor<f32>) -> ()
      }, {
        "tf.Yield"(%x) : (tensor<f32>) -> ()
      }) : (tensor<i1>) -> tensor<f32>
      func.return %1 : tensor<f32>
    }
    """
    assert first_broken(IRParser(dialect_context(), text).parse_module()) is None


def test_depth_is_no_problem() -> None:
    op = _op("NoSuchOpA", _op("Elsewhere"))
    wrong = op
    for _ in range(5_000):
        op = ModuleOp([op])
    broken = first_broken(op)
    assert broken is not None
    assert broken.op is wrong


def test_the_finding_names_op_node_and_text() -> None:
    wrong = _op("NoSuchOpB", _op("Elsewhere"))
    wrong.location = NameLoc(StringAttr("model/b@f"), UNKNOWN_LOC)
    broken = first_broken(ModuleOp([_function(wrong)]))
    assert broken is not None
    diagnostic = broken.diagnostic("broken-ir", "pass x: ", "do y")
    assert (diagnostic.op, diagnostic.node, diagnostic.hint) == ("tf.NoSuchOpB", "model/b", "do y")
    assert diagnostic.message.startswith("pass x: operand 0 is not defined")
    assert '"tf.NoSuchOpB"(%' in diagnostic.message


def test_an_excerpt_is_short() -> None:
    module = ModuleOp([_op(f"NoSuchOp{number}") for number in range(3_000)])
    lines = excerpt(module).split("\n")
    assert len(lines) <= 13
    assert lines[-1].strip() == "..."
    wide = tf.op_class("NoSuchOpA").create(attributes={"a": ArrayAttr([UnitAttr()] * 500)})
    assert max(map(len, excerpt(wide).split("\n"))) < 200
