"""The pattern set and the greedy driver."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.converter.rewrite.ir import last, names, parse, rewrite
from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.driver import rewrite_greedily
from tfconvert.converter.rewrite.dsl import tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import attributes, tf
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.block import Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import FusedLoc, NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

X, Y = value("x"), value("y")

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
    module = IRParser(CHAIN.format(body="\n".join(lines), last=last)).parse_module()
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    return module, function.body


def names_in(region: Region) -> list[str]:
    return [op.name.removeprefix("tf.") for op in region.block.ops if op.name != "func.return"]


def always(op: Operation) -> None:
    return None


def becomes(name: str) -> object:
    def rewrite(op: Operation, match: object, rewriter: Rewriter) -> None:
        rewriter.replace(rewriter.insert(tf.build(name, op.operands, [op.results[0].type])))

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


def fuse(op: Operation, producer: Operation, rewriter: Rewriter) -> None:
    rewriter.replace(rewriter.insert(tf.build("Elu", producer.operands, [op.results[0].type])))


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
    verify(module)


def test_dead_ops_go_and_effects_stay() -> None:
    text = """
    func.func @main(%x: tensor<2xf32>, %n: tensor<1xi32>) {
      %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.Neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      %2 = "tf.OpThatNoTableHas"(%n) : (tensor<1xi32>) -> tensor<?xf32>
      func.return
    }
    """
    (function,) = IRParser(text).parse_module().ops
    assert isinstance(function, FuncOp)
    rewrite_greedily(function.body, PatternSet([]), tf.has_side_effects)
    assert names_in(function.body) == ["OpThatNoTableHas"]


def test_the_patterns_of_a_cycle_are_named_and_no_others() -> None:
    _, region = chain("Relu", "Tanh")
    patterns = PatternSet([rename("Relu", "Elu"), rename("Elu", "Selu"), rename("Selu", "Elu"), rename("Tanh", "Tan")])
    with pytest.raises(ConversionError) as caught:
        rewrite_greedily(region, patterns, tf.has_side_effects)
    assert caught.value.code == "rewrite-cycle"
    found = re.search(r"undo each other: (.*)", str(caught.value))
    assert found is not None
    assert sorted(set(found[1].split(" -> "))) == ["Elu-to-Selu", "Selu-to-Elu"]


REGION = """
func.func @main(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "tf.IfRegion"(%c) <{is_stateless = true}> ({
    %2 = "tf.Neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
    "tf.Yield"(%2) : (tensor<2xf32>) -> ()
  }, {
    %3 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    "tf.Yield"(%3) : (tensor<2xf32>) -> ()
  }) : (tensor<i1>) -> tensor<2xf32>
  func.return %RESULT : tensor<2xf32>
}
"""


def parse_region(result: str) -> FuncOp:
    (function,) = IRParser(REGION.replace("RESULT", result)).parse_module().ops
    assert isinstance(function, FuncOp)
    return function


def test_ops_in_regions_are_rewritten_and_see_what_is_around_them() -> None:
    function = parse_region("1")
    applied = rewrite_greedily(function.body, PatternSet([DOUBLE_NEGATION, rename("Relu", "Elu")]), tf.has_side_effects)
    assert applied == {"double-negation": 1, "Relu-to-Elu": 1}
    assert [op.name for op in function.walk()] == [
        "func.func",
        "tf.IfRegion",
        "tf.Yield",
        "tf.Elu",
        "tf.Yield",
        "func.return",
    ]


def test_values_used_only_in_a_dead_region_are_dead() -> None:
    function = parse_region("x")
    rewrite_greedily(function.body, PatternSet([]), lambda op: op.name in ("tf.Yield", "func.return"))
    assert [op.name for op in function.body.block.ops] == ["func.return"]


def test_a_change_is_seen_as_far_away_as_patterns_look() -> None:
    """Exp is three ops away from the Relu that becomes an Elu; the order of the seeds alone wouldn't suffice."""

    def is_far(op: Operation) -> Failure | None:
        for _ in range(3):
            producer = op.operands[0].owner
            if not isinstance(producer, Operation):
                return Failure("nothing is that far away")
            op = producer
        return None if op.name == "tf.Elu" else Failure("no Elu is there")

    def late(op: Operation) -> Failure | None:
        return None if op.results[0].has_one_use() else Failure("it has several uses")

    far = Pattern("far", "tf.Exp", is_far, becomes("Log"), depth=3)  # type: ignore[arg-type]
    once = Pattern("once", "tf.Relu", late, becomes("Elu"))  # type: ignore[arg-type]
    _, region = chain("Relu", "Tanh", "Sin", "Exp")
    spare = tf.build("Cosh", [region.block.first_op.results[0]], [region.block.args[0].type])  # type: ignore[union-attr]
    region.block.insert_op_before(spare, region.block.last_op)  # type: ignore[arg-type]
    assert rewrite_greedily(region, PatternSet([once, far]), tf.has_side_effects) == {"once": 1, "far": 1}
    assert names_in(region) == ["Elu", "Tanh", "Sin", "Log"]


def test_a_result_has_the_location_of_all_that_went() -> None:
    _, region = chain("Relu", "Neg", "Neg")
    for index, op in enumerate(region.block.ops):
        op.location = NameLoc.get(f"n{index}")
    pattern = Pattern("fuse", "tf.Neg", match_pair, fuse)
    rewrite_greedily(region, PatternSet([pattern]), tf.has_side_effects)
    relu, fused, _ = region.block.ops
    assert isinstance(fused.location, FusedLoc)
    assert [str(part) for part in fused.location.locations] == ['loc("n1")', 'loc("n2")']
    assert str(relu.location) == 'loc("n0")'


def test_two_patterns_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="Relu-to-Elu"):
        PatternSet([rename("Relu", "Elu"), rename("Relu", "Elu")])


def test_a_pattern_set_reports_why_it_declined() -> None:
    _, region = chain("Neg")
    op = region.block.first_op
    assert op is not None
    assert PatternSet([DOUBLE_NEGATION]).reasons(op) == ["double-negation: its operand is not of the same kind"]


@settings(max_examples=100)
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


# Rules that always end, each taking an op away or a step down, and whose order doesn't matter.
SIMPLIFIED = (
    rule("double-negation", tfl.neg(tfl.neg(X)), X),
    rule("abs-of-neg", tfl.abs(tfl.neg(X)), tfl.abs(X)),
    rule("abs-of-abs", tfl.abs(tfl.abs(X)), tfl.abs(X)),
    rule("relu-of-abs", tfl.relu(tfl.abs(X)), tfl.abs(X)),
    rule("square-of-abs", tfl.square(tfl.abs(X)), tfl.square(X)),
    rule("square-of-neg", tfl.square(tfl.neg(X)), tfl.square(X)),
    rule("same-square", tfl.mul(X, X), tfl.square(X)),
    rule("minus-minus", tfl.sub(X, tfl.neg(Y)), tfl.add(X, Y)),
    rule("minus", tfl.add(X, tfl.neg(Y)).commutative(), tfl.sub(X, Y)),
)

UNARY, BINARY = ("neg", "abs", "relu", "square"), ("add", "sub", "mul")


@st.composite
def graphs(draw: st.DrawFn) -> str:
    lines, known = [], ["%x", "%y"]
    for index in range(draw(st.integers(1, 16))):
        name = draw(st.sampled_from((*UNARY, *BINARY)))
        operands = [draw(st.sampled_from(known[-5:])) for _ in range(1 if name in UNARY else 2)]
        lines.append(f"%{index} = tfl.{name} {', '.join(operands)}")
        known.append(f"%{index}")
    return "\n".join([*lines, f"%r = tfl.add_n {', '.join(known)}"])


def value_of(value: Value, inputs: dict[Value, float]) -> float:
    if value in inputs:
        return inputs[value]
    assert isinstance(value, OpResult)
    return MEANINGS[value.op.name](*(value_of(operand, inputs) for operand in value.op.operands))


MEANINGS: dict[str, Callable[..., float]] = {
    "tfl.neg": lambda x: -x,
    "tfl.abs": abs,
    "tfl.relu": lambda x: max(x, 0),
    "tfl.square": lambda x: x * x,
    "tfl.add": lambda x, y: x + y,
    "tfl.sub": lambda x, y: x - y,
    "tfl.mul": lambda x, y: x * y,
    "tfl.add_n": lambda *values: sum(values),
}


@settings(max_examples=150)
@given(graphs(), st.permutations(SIMPLIFIED))
def test_one_run_reaches_a_fixpoint_that_means_the_same(body: str, patterns: list[Pattern[Any]]) -> None:
    module, region = parse(body, "%r")
    inputs: dict[Value, float] = dict(zip(region.block.args, (3.0, -2.0), strict=True))
    before = value_of(last(region).results[0], inputs)
    rewrite(module, region, *patterns)
    assert value_of(last(region).results[0], inputs) == before
    assert not any(PatternSet(patterns).match(op) for op in region.block.ops)
    assert not rewrite(module, region, *patterns)
    assert all(op.results[0].first_use is not None for op in list(region.block.ops)[:-1])


CONFLUENT = SIMPLIFIED[:6]


@settings(max_examples=100)
@given(graphs(), st.permutations(CONFLUENT))
def test_the_order_of_patterns_does_not_show_where_it_must_not(body: str, patterns: list[Pattern[Any]]) -> None:
    modules = []
    for each in (CONFLUENT, patterns):
        module, region = parse(body, "%r")
        rewrite(module, region, *each)
        modules.append(sorted(names(region)))
    assert modules[0] == modules[1]


def test_an_inserted_op_that_nothing_uses_is_erased() -> None:
    """No pattern starts at it, but the driver looks at it all the same."""

    def rewrite_in_vain(op: Operation, match: object, rewriter: Rewriter) -> None:
        rewriter.insert(tf.build("Exp", op.operands, [op.results[0].type]))
        rewriter.replace(rewriter.insert(tf.build("Abs", op.operands, [op.results[0].type])))

    _, region = chain("Neg", "Sin")
    patterns = PatternSet([Pattern("in-vain", "tf.Neg", always, rewrite_in_vain)])
    rewrite_greedily(region, patterns, tf.has_side_effects)
    assert names_in(region) == ["Abs", "Sin"]


def test_the_root_may_become_another_op_in_place() -> None:
    def turn(op: Operation, match: object, rewriter: Rewriter) -> None:
        rewriter.turn_root_into(tf.TFOp, "tf.Neg", {})

    def match_after(op: Operation) -> Failure | None:
        owner = op.operands[0].owner
        return None if isinstance(owner, Operation) and owner.name == "tf.Neg" else Failure("it isn't after a negation")

    module, region = chain("Abs", "Exp")
    first = region.block.first_op
    after = Pattern("after", "tf.Exp", match_after, becomes("Log"))  # type: ignore[arg-type]
    patterns = PatternSet([Pattern("turn", "tf.Abs", always, turn), rename("Neg", "Sin"), after])
    assert rewrite_greedily(region, patterns, tf.has_side_effects) == {"turn": 1, "Neg-to-Sin": 1}
    assert names_in(region) == ["Sin", "Exp"]
    module, region = chain("Abs", "Exp")
    first = region.block.first_op
    patterns = PatternSet([Pattern("turn", "tf.Abs", always, turn), after])
    assert rewrite_greedily(region, patterns, tf.has_side_effects) == {"turn": 1, "after": 1}
    assert region.block.first_op is first
    verify(module)


def test_an_op_may_do_the_work_of_its_only_user() -> None:
    module, region = parse("%0 = tfl.add %x, %y\n%1 = tfl.abs %y\n%2 = tfl.relu %0\n%3 = tfl.neg %2", "%1", "%3")
    source, other, *_ = region.block.ops
    options = {"fused_activation_function": attributes.string("RELU")}

    def extend(op: Operation, match: object, rewriter: Rewriter) -> None:
        rewriter.extend(source, options)

    assert rewrite(module, region, Pattern("extend", "tfl.relu", always, extend)) == {"extend": 1}
    assert [op.name for op in region.block.ops] == ["tfl.abs", "tfl.add", "tfl.neg", "func.return"]
    assert source.properties == options
    assert source.prev_op is other
    assert source.location is FusedLoc.get([NameLoc.get("tfl.add"), NameLoc.get("tfl.relu")])


def test_ops_behind_the_last_user_of_a_value_are_visited_again() -> None:
    """They may be before the op that was rewritten."""
    module, region = parse("%0 = tfl.neg %x\n%1 = tfl.abs %0\n%2 = tfl.exp %1\n%3 = tfl.relu %0", "%2", "%3")

    def match_exp(op: Operation) -> Failure | None:
        value = op.operands[0].owner.operands[0]  # type: ignore[union-attr]
        return None if value.has_one_use() else Failure("the value has other uses")

    def drop(op: Operation, match: object, rewriter: Rewriter) -> None:
        rewriter.replace(region.block.args[0])

    def sine(op: Operation, match: object, rewriter: Rewriter) -> None:
        rewriter.replace(rewriter.insert(dialect.build("sin", op.operands, [op.results[0].type])))

    patterns = Pattern("sine", "tfl.exp", match_exp, sine, depth=2), Pattern("drop", "tfl.relu", always, drop)
    assert rewrite(module, region, *patterns) == {"drop": 1, "sine": 1}
