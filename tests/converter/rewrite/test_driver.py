"""The pattern set and the greedy driver."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import FusedLoc, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, Region
from xdsl.parser import Parser

from converter.rewrite.driver import rewrite_greedily
from converter.rewrite.pattern import Failure, Pattern, PatternSet
from converter.rewrite.rewriter import Rewriter
from schema.diagnostics import ConversionError
from schema.dialects import attributes, tf
from schema.dialects.context import dialect_context

CHAIN = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
  {body}
  func.return %{last} : tensor<2xf32>
}}
"""


def chain(*names: str) -> tuple[ModuleOp, Region]:
    """Returns a module whose function applies unary ops one after the other."""
    lines, last = [], "x"
    for index, name in enumerate(names):
        lines.append(f'%v{index} = "tf.{name}"(%{last}) : (tensor<2xf32>) -> tensor<2xf32>')
        last = f"v{index}"
    module = Parser(dialect_context(), CHAIN.format(body="\n".join(lines), last=last)).parse_module()
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    return module, function.body


def names_in(region: Region) -> list[str]:
    return [op.name.removeprefix("tf.") for op in region.block.ops if op.name != "func.return"]


def always(op: Operation) -> None:
    return None


def becomes(name: str, absorbed: bool = False) -> object:
    def rewrite(op: Operation, match: object, rewriter: Rewriter) -> None:
        producer = op.operands[0].owner
        extra = (producer,) if absorbed and isinstance(producer, Operation) else ()
        rewriter.replace(rewriter.insert(tf.build(name, op.operands, [op.results[0].type]), *extra))

    return rewrite


def rename(old: str, new: str, benefit: int = 1) -> Pattern[None]:
    return Pattern(f"{old}-to-{new}", f"tf.{old}", always, becomes(new), benefit)  # type: ignore[arg-type]


def match_pair(op: Operation) -> Operation | Failure:
    producer = op.operands[0].owner
    if not isinstance(producer, Operation) or producer.name != op.name:
        return Failure("its operand is not of the same kind")
    return producer if producer.results[0].has_one_use() else Failure("the operand has other uses")


def cancel(op: Operation, producer: Operation, rewriter: Rewriter) -> None:
    rewriter.replace(producer.operands[0])


DOUBLE_NEGATION = Pattern("double-negation", "tf.Neg", match_pair, cancel)


def test_the_highest_benefit_goes_first() -> None:
    _, region = chain("Relu")
    patterns = PatternSet([rename("Relu", "Relu6"), rename("Relu", "Elu", benefit=5), rename("Relu", "Selu")])
    applied = rewrite_greedily(region, patterns, tf.has_side_effects)
    assert names_in(region) == ["Elu"]
    assert applied == {"Relu-to-Elu": 1}


def test_new_ops_are_rewritten_too() -> None:
    _, region = chain("Relu", "Tanh")
    rewrite_greedily(region, PatternSet([rename("Relu", "Elu"), rename("Elu", "Selu")]), tf.has_side_effects)
    assert names_in(region) == ["Selu", "Tanh"]


def test_users_of_a_changed_value_are_looked_at_again() -> None:
    module, region = chain("Neg", "Neg", "Relu", "Neg", "Neg", "Neg", "Neg")
    rewrite_greedily(region, PatternSet([DOUBLE_NEGATION]), tf.has_side_effects)
    assert names_in(region) == ["Relu"]
    module.verify()


def test_dead_ops_go_and_effects_stay() -> None:
    text = """
    func.func @main(%x: tensor<2xf32>, %n: tensor<1xi32>) {
      %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.Neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      %2 = "tf.RandomUniform"(%n) : (tensor<1xi32>) -> tensor<?xf32>
      func.return
    }
    """
    (function,) = Parser(dialect_context(), text).parse_module().ops
    assert isinstance(function, FuncOp)
    rewrite_greedily(function.body, PatternSet([]), tf.has_side_effects)
    assert names_in(function.body) == ["RandomUniform"]


def test_patterns_that_undo_each_other_are_named() -> None:
    _, region = chain("Relu", "Tanh")
    patterns = PatternSet([rename("Relu", "Elu"), rename("Elu", "Relu")])
    with pytest.raises(ConversionError) as caught:
        rewrite_greedily(region, patterns, tf.has_side_effects)
    assert caught.value.code == "rewrite-cycle"
    assert "Relu-to-Elu" in str(caught.value)
    assert "Elu-to-Relu" in str(caught.value)


def test_a_result_has_the_location_of_all_that_it_replaces() -> None:
    _, region = chain("Neg", "Relu")
    for op in region.block.ops:
        op.location = attributes.name_location(op.name)
    pattern = Pattern("fuse", "tf.Relu", always, becomes("Elu", absorbed=True))  # type: ignore[arg-type]
    rewrite_greedily(region, PatternSet([pattern]), tf.has_side_effects)
    fused = next(op for op in region.block.ops if op.name == "tf.Elu")
    assert isinstance(fused.location, FusedLoc)
    assert [str(part) for part in fused.location.locations] == ['loc("tf.Neg")', 'loc("tf.Relu")']  # type: ignore[attr-defined]


def test_two_patterns_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="Relu-to-Elu"):
        PatternSet([rename("Relu", "Elu"), rename("Relu", "Elu")])


def test_a_pattern_set_tells_why_it_declined() -> None:
    _, region = chain("Neg")
    op = region.block.first_op
    assert op is not None
    assert PatternSet([DOUBLE_NEGATION]).reasons(op) == ["double-negation: its operand is not of the same kind"]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["Neg", "Relu"]), max_size=30))
def test_cancelling_is_complete(names: list[str]) -> None:
    _, region = chain(*names)
    rewrite_greedily(region, PatternSet([DOUBLE_NEGATION]), tf.has_side_effects)
    left = names_in(region)
    assert all(pair != ("Neg", "Neg") for pair in pairwise(left))
    expected: list[str] = []
    for name in names:
        if name == "Neg" and expected[-1:] == ["Neg"]:
            expected.pop()
        else:
            expected.append(name)
    assert left == expected
