"""The innermost op that breaks a rule is found, however deep it is, and reported in few lines."""

from __future__ import annotations

from tfconvert.ops.verification import excerpt, first_broken
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.attributes import ArrayAttr, UnitAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I32, FunctionType


def _function(*ops: Operation) -> FuncOp:
    return FuncOp.of("main", FunctionType.get((), ()), Region(Block([*ops, ReturnOp.of()])))


def _op(name: str, *operands: Operation) -> Operation:
    return tf.build(name, operands=[operand.results[0] for operand in operands], result_types=[I32])


def test_a_sound_module_has_nothing_broken() -> None:
    a = _op("NoSuchOpA")
    assert first_broken(ModuleOp.of([_function(a, _op("NoSuchOpB", a))])) is None


def test_a_use_before_the_definition_is_found() -> None:
    a = _op("NoSuchOpA")
    b = _op("NoSuchOpB", a)
    broken = first_broken(ModuleOp.of([_function(b, a)]))
    assert broken is not None
    assert broken.op is b
    assert "not defined before its use" in broken.reason


def test_a_value_is_not_visible_outside_of_its_region() -> None:
    inside = _op("NoSuchOpA")
    outside = _op("NoSuchOpB", inside)
    broken = first_broken(ModuleOp.of([ModuleOp.of([inside]), outside]))
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
    assert first_broken(IRParser(text).parse_module()) is None


def test_depth_is_not_a_problem() -> None:
    op = _op("NoSuchOpA", _op("Elsewhere"))
    wrong = op
    for _ in range(5_000):
        op = ModuleOp.of([op])
    broken = first_broken(op)
    assert broken is not None
    assert broken.op is wrong


def test_the_finding_names_op_node_and_text() -> None:
    wrong = _op("NoSuchOpB", _op("Elsewhere"))
    wrong.location = NameLoc.get("model/b@f")
    broken = first_broken(ModuleOp.of([_function(wrong)]))
    assert broken is not None
    diagnostic = broken.diagnostic("broken-ir", "pass x: ", "do y")
    assert (diagnostic.op, diagnostic.node, diagnostic.hint) == ("tf.NoSuchOpB", "model/b", "do y")
    assert diagnostic.message.startswith("pass x: operand 0 is not defined")
    assert '"tf.NoSuchOpB"(%' in diagnostic.message


def test_an_excerpt_is_short() -> None:
    module = ModuleOp.of([_op(f"NoSuchOp{number}") for number in range(3_000)])
    lines = excerpt(module).split("\n")
    assert len(lines) <= 13
    assert lines[-1].strip() == "..."
    wide = tf.build("NoSuchOpA", attributes={"a": ArrayAttr.get([UnitAttr.intern()] * 500)})
    assert max(map(len, excerpt(wide).split("\n"))) < 200


def test_ops_of_stablehlo_are_equal_only_if_types_and_properties_are() -> None:
    text = """
    func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) {
      %0 = "stablehlo.transpose"(%x) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>
      %1 = "stablehlo.transpose"(%x) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>
      %2 = "stablehlo.transpose"(VALUE) <{permutation = array<i64: ORDER>}> : (TYPE) -> tensor<3x2xf32>
      func.return
    }
    """
    for value, order, kind, is_valid in (
        ("%x", "1, 0", "tensor<2x3xf32>", True),
        ("%x", "0, 1", "tensor<2x3xf32>", False),
        ("%y", "1, 0", "tensor<3x2xf32>", False),
    ):
        module = IRParser(text.replace("VALUE", value).replace("ORDER", order).replace("TYPE", kind)).parse_module()
        broken = first_broken(module)
        assert (broken is None) == is_valid
        assert broken is None or "stablehlo.transpose" in broken.reason
