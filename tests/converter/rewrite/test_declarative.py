"""Declarative patterns: what they match, what they make, and what they refuse to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.converter.rewrite.ir import last, names, parse, rewrite
from tfconvert.converter.passes import canonicalize
from tfconvert.converter.rewrite.declarative import Rule, rule
from tfconvert.converter.rewrite.dsl import (
    array,
    attr,
    check,
    computed,
    constant,
    number,
    one_of,
    op,
    rest,
    tf,
    tfl,
    value,
)
from tfconvert.converter.rewrite.pattern import Failure, Pattern, PatternError
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.rewrite.verify import check_rule
from tfconvert.converter.targets.litert.optimize import optimizations
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.ir.locations import FusedLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

X, Y, C = value("x"), value("y"), number("c")

CHAIN = rule(
    "chain-add",
    tfl.add(tfl.add(X, array("c")).commutative().once(), array("d")).commutative(),
    tfl.add(X, computed(lambda c, d: c + d)),
)


def reason(pattern: Pattern[Any], op: Operation) -> str:
    failure = pattern.match(op)
    assert isinstance(failure, Failure)
    return failure.reason


@pytest.mark.parametrize("first", ["%x, %c", "%c, %x"])
@pytest.mark.parametrize("second", ["%0, %d", "%d, %0"])
def test_captures_constants_and_commutativity(first: str, second: str) -> None:
    body = f"%c = constant 1.0\n%d = constant 2.0\n%0 = tfl.add {first}\n%1 = tfl.add {second}"
    module, region = parse(body, "%1")
    assert rewrite(module, region, CHAIN) == {"chain-add": 1}
    assert names(region) == ["add"]
    held = tensor_data.constant_of(last(region).operands[1])
    assert held is not None
    assert tensor_data.to_array(held).tolist() == [3.0, 3.0]
    assert last(region).operands[0] is region.block.args[0]


def test_locations_are_fused_by_default() -> None:
    body = "%c = constant 1.0\n%d = constant 2.0\n%0 = tfl.add %x, %c\n%1 = tfl.mul %0, %d"
    module, region = parse(body, "%1")
    pattern = rule("r", tfl.mul(tfl.add(X, array("c")), array("d")), tfl.sub(X, computed(lambda c, d: c * d)))
    rewrite(module, region, pattern)
    location = last(region).location
    assert isinstance(location, FusedLoc)
    assert [str(part) for part in location.locations] == ['loc("tfl.add")', 'loc("tfl.mul")']


def test_the_same_capture_is_the_same_value() -> None:
    double = rule("double", tfl.add(X, X), tfl.mul(X, 2.0))
    module, region = parse("%0 = tfl.add %x, %x\n%1 = tfl.add %0, %y", "%1")
    assert rewrite(module, region, double) == {"double": 1}
    assert names(region) == ["mul", "add"]
    assert reason(double, last(region)) == "operand 1 of tfl.add isn't the same value as elsewhere in the pattern"


def test_one_to_many_and_inferred_types() -> None:
    silu = rule("gelu-by-hand", tfl.gelu(X), tfl.mul(X, tfl.logistic(tfl.mul(X, 1.702))))
    module, region = parse("%0 = tfl.gelu %x", "%0")
    rewrite(module, region, silu)
    assert names(region) == ["mul", "logistic", "mul"]


def test_many_to_many_with_several_results() -> None:
    """Two results of one op are swapped, and an op in the middle of the pattern is replaced for its other users."""
    split = tfl.split(constant("axis"), X).named("split")
    swap = tfl.split(constant("axis"), X, num_splits=2)
    undone = check("it is done", lambda split: not split.attributes)
    pattern = rule(
        "swap",
        tfl.sub(split[0], split[1]),
        tfl.neg(tfl.sub(swap[0], swap[1])),
        also={split: (swap[1], swap[0])},
        where=[undone],
    )
    body = """
    %a = "tfl.pseudo_const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %s:2 = "tfl.split"(%a, %z) <{num_splits = 2 : i32}> : (tensor<i32>, tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
    %0 = "tfl.sub"(%s#0, %s#1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    """
    module, region = parse(body, "%0", "%s#0", arguments="%z: tensor<4xf32>")
    with_mark = Pattern(pattern.name, pattern.root, pattern.match, _once(pattern), declaration=pattern.declaration)
    rewrite(module, region, with_mark)
    assert names(region) == ["split", "sub", "neg"]
    returned = region.block.last_op
    assert returned is not None
    other = returned.operands[1]
    assert isinstance(other, OpResult)
    assert (other.op.name, other.index) == ("tfl.split", 1)


def _once(pattern: Pattern[Any]) -> Callable[..., None]:
    """Marks the new split, which the pattern would match again."""

    def rewrite(op: Operation, match: object, rewriter: object) -> None:
        block = op.parent
        pattern.rewrite(op, match, rewriter)  # type: ignore[arg-type]
        assert block is not None
        for each in block.ops:
            each.attributes["_mark"] = types.I1

    return rewrite


def test_a_matched_op_in_the_result_is_the_op_that_was_found() -> None:
    inner = tfl.exp(X)
    pattern = rule("keep", tfl.add(inner, inner), tfl.mul(inner, 2.0))
    module, region = parse("%0 = tfl.exp %x\n%1 = tfl.add %0, %0", "%1", "%0")
    rewrite(module, region, pattern)
    assert names(region) == ["exp", "mul"]
    module, region = parse("%0 = tfl.exp %x\n%1 = tfl.exp %x\n%2 = tfl.add %0, %1", "%2")
    assert not rewrite(module, region, pattern)


def test_attributes_are_required_captured_and_carried_over() -> None:
    mean = tfl.mean(X, constant("axes"), keep_dims=attr("keep"))
    pattern = rule(
        "mean",
        tfl.relu(mean),
        tfl.sum(X, constant("axes"), keep_dims=attr("keep")),
        where=[check("dimensions go", lambda keep: keep is True)],
    )
    body = """
    %a = "tfl.pseudo_const"() <{{value = dense<0> : tensor<1xi32>}}> : () -> tensor<1xi32>
    %0 = "tfl.mean"(%x, %a) {options}: (tensor<2xf32>, tensor<1xi32>) -> tensor<2xf32>
    %1 = "tfl.relu"(%0) : (tensor<2xf32>) -> tensor<2xf32>
    """
    module, region = parse(body.format(options="<{keep_dims = true}> "), "%1")
    rewrite(module, region, pattern)
    assert dialect.attribute(last(region), "keep_dims") is True
    module, region = parse(body.format(options=""), "%1")
    assert reason(pattern, last(region)) == "dimensions go"


def test_an_attribute_that_is_not_set_has_its_default() -> None:
    pattern = rule("plain", tfl.add(X, Y, fused_activation_function=one_of("NONE", "RELU")), tfl.sub(X, Y))
    module, region = parse("%0 = tfl.add %x, %y", "%0")
    rewrite(module, region, pattern)
    assert names(region) == ["sub"]
    kinds = "(tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>"
    _, region = parse(f'%0 = "tfl.add"(%x, %y) <{{fused_activation_function = "TANH"}}> : {kinds}', "%0")
    assert reason(pattern, last(region)).endswith('is "TANH", not "NONE" or "RELU"')


def test_an_attribute_that_is_captured_twice_is_one() -> None:
    both = attr("both")
    inner = tfl.mul(X, Y, fused_activation_function=both)
    pattern = rule(
        "same", tfl.add(inner, X, fused_activation_function=both), tfl.sub(X, Y, fused_activation_function=both)
    )
    kinds = ": (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>"
    form = f'%0 = "tfl.mul"(%x, %y) {{}} {kinds}\n%1 = "tfl.add"(%0, %x) {{}} {kinds}'
    relu, none = (f'<{{fused_activation_function = "{name}"}}>' for name in ("RELU", "NONE"))
    for first, second, expected in ((relu, relu, "RELU"), (none, "", "NONE"), ("", none, "NONE"), ("", "", "NONE")):
        module, region = parse(form.format(first, second), "%1")
        assert rewrite(module, region, pattern) == {"same": 1}
        assert dialect.attribute(last(region), "fused_activation_function") == expected
    _, region = parse(form.format(relu, ""), "%1")
    assert reason(pattern, last(region)) == (
        "fused_activation_function of tfl.mul differs from fused_activation_function elsewhere"
    )


def test_an_inner_op_that_is_rebuilt_keeps_the_types_of_its_results() -> None:
    mean = tfl.mean(X, constant("axes"), keep_dims=attr("keep"))
    pattern = rule("turn", tfl.relu(tfl.exp(mean)), tfl.exp(mean.rebuilt(X, constant("axes"), keep_dims=attr("keep"))))
    body = """
    %a = "tfl.pseudo_const"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
    %0 = "tfl.mean"(%z, %a) <{keep_dims = false}> : (tensor<2x5xf32>, tensor<1xi32>) -> tensor<2xf32>
    %1 = "tfl.exp"(%0) : (tensor<2xf32>) -> tensor<2xf32>
    %2 = "tfl.relu"(%1) : (tensor<2xf32>) -> tensor<2xf32>
    """
    module, region = parse(body, "%2", arguments="%z: tensor<2x5xf32>")
    rewrite(module, region, pattern)
    assert names(region) == ["mean", "exp"]
    assert str(last(region).operands[0].type) == "tensor<2xf32>"
    assert dialect.attribute(last(region).operands[0].owner, "keep_dims") is False  # type: ignore[arg-type]


def test_a_named_value_is_computed_once() -> None:
    calls = []

    def more(c: Any) -> object:
        calls.append(c.tolist())
        return c + 1

    pattern = rule("twice", tfl.sub(X, array("c")), tfl.add(tfl.mul(X, computed(more, "d")), computed(more, "d")))
    module, region = parse("%c = constant 2.0\n%0 = tfl.sub %x, %c", "%0")
    rewrite(module, region, pattern)
    assert calls == [[2.0, 2.0]]
    held = [
        tensor_data.constant_of(each.operands[1]) for each in region.block.ops if each.name in ("tfl.mul", "tfl.add")
    ]
    assert [tensor_data.to_array(each).tolist() for each in held if each is not None] == [[3.0, 3.0], [3.0, 3.0]]


def test_an_op_can_be_rebuilt_with_other_operands() -> None:
    added = tfl.add(X, Y)
    pattern = rule("fuse", tfl.relu(added), added.rebuilt(X, Y, fused_activation_function="RELU"))
    module, region = parse("%0 = tfl.add %x, %y\n%1 = tfl.relu %0", "%1")
    rewrite(module, region, pattern)
    assert names(region) == ["add"]
    assert dialect.attribute(last(region), "fused_activation_function") == "RELU"


def test_several_names_and_the_rest_of_the_operands() -> None:
    inner = op(("tfl.relu", "tfl.relu6"), X)
    pattern = rule("flat", tfl.concatenation(inner, rest("more")), tfl.add_n(X, rest("more")))
    module, region = parse("%0 = tfl.relu6 %x\n%1 = tfl.concatenation %0, %y, %x", "%1")
    rewrite(module, region, pattern)
    assert len(last(region).operands) == 3
    _, region = parse("%0 = tfl.exp %x\n%1 = tfl.concatenation %0, %y", "%1")
    assert reason(pattern, last(region)) == (
        "operand 0 of tfl.concatenation is defined by tfl.exp, not defined by tfl.relu or tfl.relu6"
    )


def test_values_computed_while_matching_may_decline() -> None:
    def inverse(c: float) -> object:
        return Failure("there is no inverse of zero") if c == 0 else np.float32(1 / c)

    pattern = rule("inverse", tfl.div(X, C), tfl.mul(X, computed(lambda i: i)), where=[computed(inverse, "i")])
    body = (
        '%c = "tfl.pseudo_const"() <{{value = dense<{0}> : tensor<f32>}}> : () -> tensor<f32>\n'
        '%0 = "tfl.div"(%x, %c) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>'
    )
    module, region = parse(body.format("4.0"), "%0")
    rewrite(module, region, pattern)
    held = tensor_data.constant_of(last(region).operands[1])
    assert held is not None
    assert tensor_data.to_array(held) == 0.25
    _, region = parse(body.format("0.0"), "%0")
    assert reason(pattern, last(region)) == "there is no inverse of zero"


def test_a_value_takes_the_place_of_a_result_only_if_its_type_fits() -> None:
    pattern = rule("neutral", tfl.add(X, 0), X)
    broadcast = '%c = constant 0.0\n%0 = "tfl.add"(%s, %c) : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>'
    module, region = parse(broadcast, "%0", arguments="%s: tensor<f32>")
    assert not rewrite(module, region, pattern)
    assert "its replacement tensor<f32>" in reason(pattern, last(region))
    module, region = parse("%c = constant 0.0\n%0 = tfl.add %x, %c", "%0")
    assert rewrite(module, region, pattern)


def test_operands_that_do_not_go_together_are_an_error_of_the_pattern() -> None:
    kinds = "(tensor<2x2xf32>, tensor<3x2xf32>, tensor<2xf32>) -> tensor<2xf32>"
    body = f"""
    %0 = "tfl.matrix_diag"(%x) : (tensor<2xf32>) -> tensor<2x2xf32>
    %1 = "tfl.fully_connected"(%0, %m, %y) : {kinds}
    """
    module, region = parse(body, "%1", arguments="%x: tensor<2xf32>, %y: tensor<2xf32>, %m: tensor<3x2xf32>")
    wrong = rule("wrong", tfl.fully_connected(X, Y, value("b")), tfl.abs(tfl.sum(tfl.add(X, Y), 0).like(value("b"))))
    with pytest.raises(ConversionError, match=r"creates tfl.add with operands that don't go together: shapes"):
        rewrite(module, region, wrong)


def test_a_value_may_be_required_not_to_be_constant() -> None:
    pattern = rule("one-constant", tfl.add(X.varying(), constant("c")).commutative(), X)
    for operands, applied in (("%x, %c", 1), ("%c, %x", 1), ("%c, %c", 0), ("%x, %x", 0)):
        module, region = parse(f"%c = constant 1.0\n%0 = tfl.add {operands}\n%1 = tfl.neg %0", "%1")
        assert rewrite(module, region, pattern).total() == applied
    both = last(parse("%c = constant 1.0\n%0 = tfl.add %c, %c", "%0")[1])
    assert reason(pattern, both) == "operand 1 of tfl.add is constant"


def test_a_function_may_choose_a_value() -> None:
    def chosen(c: float, x: Value, y: Value) -> Value | Failure:
        return Failure("it is zero") if c == 0 else x if c > 0 else y

    choice = computed(chosen, "choice")
    sum_of_two = tfl.add(X, Y)
    pattern = rule("choose", tfl.mul(sum_of_two, C), choice, where=[choice])
    for number_, applied, index in ((1.0, 1, 0), (-1.0, 1, 1), (0.0, 0, None)):
        c = f'%c = "tfl.pseudo_const"() <{{value = dense<{number_}> : tensor<f32>}}> : () -> tensor<f32>'
        mul = '%1 = "tfl.mul"(%0, %c) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>'
        module, region = parse(f"{c}\n%0 = tfl.add %x, %y\n{mul}\n%2 = tfl.neg %1", "%2")
        assert rewrite(module, region, pattern).total() == applied
        if index is not None:
            assert last(region).operands[0] is region.block.args[index]


def test_a_chosen_value_fits_or_the_pattern_declines() -> None:
    choice = computed(lambda x: x, "choice")
    pattern = rule("choose", tfl.neg(tfl.reshape(X, Y)), choice, where=[choice])
    arguments = "%x: tensor<1x2xf32>, %y: tensor<1xi32>"
    body = """%0 = "tfl.reshape"(%x, %y) : (tensor<1x2xf32>, tensor<1xi32>) -> tensor<2xf32>
    %1 = tfl.neg %0"""
    assert "has the type" in reason(pattern, last(parse(body, "%1", arguments=arguments)[1]))


def test_a_rule_may_look_farther_than_its_terms() -> None:
    assert rule("near", tfl.neg(X), X).depth == 1
    assert rule("far", tfl.neg(X), X, depth=3).depth == 3
    assert rule("terms", tfl.neg(tfl.neg(X)), X, depth=1).depth == 2


def test_ops_without_results_are_erased() -> None:
    module, region = parse('"tf.NoOp"() : () -> ()')
    assert rewrite(module, region, rule("gone", tf.NoOp(), ())) == {"gone": 1}
    assert names(region) == []


def test_a_function_may_make_the_result() -> None:
    def exchange(rewriter: Rewriter, x: Value, y: Value, root: Operation) -> None:
        new = dialect.build("sub", [y, x], [root.results[0].type])
        rewriter.replace(rewriter.insert(new))

    module, region = parse("%0 = tfl.add %x, %y", "%0")
    rewrite(module, region, rule("native", tfl.add(X, Y), exchange))
    assert last(region).operands[0] is region.block.args[1]


WANTS = tfl.add(X.element("float32").rank(1).shaped(2).static(), tfl.relu(Y).once()).because("no such sum")


@pytest.mark.parametrize(
    ("pattern", "body", "expected"),
    [
        (
            tfl.add(tfl.mul(X, Y), X),
            "%0 = tfl.add %x, %y",
            "operand 0 of tfl.add is an argument, not defined by tfl.mul",
        ),
        (tfl.add(X, C), "%0 = tfl.add %x, %y", "operand 1 of tfl.add isn't a constant of one element"),
        (tfl.add(X, constant("k")), "%0 = tfl.add %x, %y", "operand 1 of tfl.add isn't constant"),
        (tfl.add(X, 2), "%c = constant 3.0\n%0 = tfl.add %x, %c", "operand 1 of tfl.add isn't the constant 2.0"),
        (
            tfl.add(X.element("int32", "int64"), Y),
            "%0 = tfl.add %x, %y",
            "operand 0 of tfl.add has elements of type float, not int32 or int64",
        ),
        (tfl.add(X.rank(2), Y), "%0 = tfl.add %x, %y", "operand 0 of tfl.add has the shape (2,), not the rank 2"),
        (
            tfl.add(X.shaped(3), Y),
            "%0 = tfl.add %x, %y",
            "operand 0 of tfl.add has the shape (2,), whose dimension 0 isn't 3",
        ),
        (tfl.add(X.once(), Y), "%0 = tfl.add %x, %x", "operand 0 of tfl.add is used more than once"),
        (
            tfl.add(tfl.relu(X).once(), Y),
            "%1 = tfl.relu %x\n%0 = tfl.add %1, %1",
            "the result of tfl.relu is used more than once",
        ),
        (tfl.concatenation(X, Y), "%0 = tfl.concatenation %x", "tfl.concatenation has 1 operands, not 2"),
        (
            tfl.add(X, 2),
            '%c = "tfl.pseudo_const"() <{value = dense<> : tensor<0xf32>}> : () -> tensor<0xf32>\n'
            '%0 = "tfl.add"(%x, %c) : (tensor<2xf32>, tensor<0xf32>) -> tensor<2xf32>',
            "operand 1 of tfl.add isn't the constant 2.0",
        ),
        (tfl.add(X.because("x is wrong").rank(3), Y), "%0 = tfl.add %x, %y", "x is wrong"),
    ],
)
def test_a_failure_gives_its_reason(pattern: object, body: str, expected: str) -> None:
    _, region = parse(body, "%0")
    assert reason(rule("p", pattern, tfl.exp(X)), last(region)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: rule("p", X, Y), "the root must be an op, not a capture"),  # type: ignore[arg-type]
        (lambda: rule("p", tfl.ad(X, Y), X), "there is no op 'tfl.ad'; is it tfl.pad or tfl.add?"),
        (lambda: rule("p", tf.Rellu(X), X), "is it tf.Relu"),
        (lambda: rule("p", tfl.add(X), X), "tfl.add takes 2 operands, not 1"),
        (lambda: rule("p", tfl.add(X, Y, colour=1), X), "tfl.add has no attribute 'colour'; it has fused_activation"),
        (lambda: rule("p", tfl.add(X, Y, fused_activation_function="SWISH"), X), "can't be 'SWISH'"),
        (lambda: rule("p", tf.Relu(X, T=1), X), "doesn't keep T, which its operands imply"),
        (lambda: rule("p", tfl.relu(X), Y), "the result uses 'y', which nothing captures"),
        (lambda: rule("p", tfl.relu(X), X, where=[check("", lambda z: z)]), "a condition reads 'z'"),
        (lambda: rule("p", tfl.relu(X), tfl.add(X, computed(lambda z: z))), "a computed value reads 'z'"),
        (lambda: rule("p", tfl.relu(X).commutative(), X), "tfl.relu has 1 operands; only two can commute"),
        (lambda: rule("p", tfl.add(X, number("x")), X), "'x' is captured as value and as number"),
        (lambda: rule("p", tfl.add(X.rank(1), X.rank(2)), X), "'x' can't satisfy all its constraints"),
        (lambda: rule("p", tfl.add(X, Y), (X, Y)), "tfl.add has 1 results, but 2 replacements"),
        (lambda: rule("p", op(("tfl.add", "tfl.sub"), X, Y), X), "the root has one name"),
        (lambda: rule("p", tfl.relu(X), tfl.relu(tfl.pack(X))), "the type of result 0 of tfl.pack isn't known"),
        (lambda: rule("p", tfl.add(X, tfl.exp(Y)[1]), X), "tfl.exp has no result 1"),
        (lambda: rule("p", tfl.concatenation(rest("r"), X), X), "must come last"),
        (lambda: rule("p", tfl.concatenation(rest("r")), rest("r")), "can't take the place of one result"),
        (lambda: rule("p", tfl.relu(X), tfl.exp(X.once())), None),
        (lambda: rule("p", tfl.relu(X), tfl.exp(X).once()), "a result can't have constraints"),
        (lambda: rule("p", tfl.relu(computed(lambda: 1)), X), "only results and conditions can be"),
        (lambda: rule("p", tfl.add(X, np.add), X), "an operand of tfl.add is ufunc"),
        (lambda: rule("p", tfl.add(X, Y), X, where=[check("", max)]), "wrap it in a lambda"),
        (lambda: rule("p", tfl.add(X, Y), X, also={tfl.exp(X): X}), "isn't matched"),
        (lambda: rule("p", tfl.relu(X), X, where=[computed(lambda x: x)]), "among the conditions needs a name"),
        (lambda: rule("p", tfl.relu(X), X, where=[check("", lambda *x: x)]), "must be a name of its own"),
        (lambda: rule("p", tfl.relu(op((), X)), X), "an op has no name"),
        (lambda: rule("p", tfl.add(X, Y, fused_activation_function=X), X), "is the term of a value; use attr(...)"),
        (lambda: rule("p", tfl.add(tfl.exp(X).named("e"), tfl.exp(Y).named("e")), X), "the name 'e' is taken twice"),
        (lambda: rule("p", tfl.add(tfl.pack(rest("r")), tfl.pack(rest("r"))), X), "the rest 'r' is captured twice"),
        (lambda: rule("p", tfl.relu(X), lambda: None), "needs the rewriter as its first parameter"),
        (lambda: rule("p", tfl.relu(X), tfl.exp(X).rebuilt(X)), "is rebuilt, but isn't matched"),
        (lambda: rule("p", tfl.relu(X), op(("tfl.exp", "tfl.neg"), X)), "is created and needs one name"),
        (lambda: rule("p", tfl.relu(X), tfl.add(X, 1.0).commutative()), "names and orders are for what is matched"),
        (lambda: rule("p", tfl.relu(X), tfl.add(X, X, fused_activation_function=one_of("NONE", "RELU"))), "say which"),
        (lambda: rule("p", tfl.relu(X), tfl.add(X, X, fused_activation_function=attr("a"))), "which nothing captures"),
        (lambda: rule("p", tfl.relu(tfl.exp(X).typed(types.F32)), X), "rebuilt, typed and like are for results"),
    ],
)
def test_a_pattern_is_checked_when_it_is_defined(make: Callable[[], object], expected: str | None) -> None:
    if expected is None:
        make()
        return
    with pytest.raises(PatternError, match="pattern 'p': ") as caught:
        make()
    assert expected in str(caught.value)


@pytest.mark.parametrize("patterns", [canonicalize.PATTERNS, optimizations.patterns()], ids=["tf", "tfl"])
def test_own_patterns_pass_the_check(patterns: PatternSet) -> None:
    rules = [pattern.declaration for pattern in patterns if isinstance(pattern.declaration, Rule)]
    assert rules
    for each in rules:
        check_rule(each)


def test_the_replacement_of_an_inner_op_must_precede_it() -> None:
    inner = tfl.exp(X)
    with pytest.raises(PatternError, match="'y' may come after"):
        rule("p", tfl.add(inner, Y), X, also={inner: Y})
    with pytest.raises(PatternError, match="no result can use it"):
        rule("p", tfl.add(inner, Y), inner, also={inner: X})


def test_an_op_that_no_table_has_must_be_meant() -> None:
    with pytest.raises(PatternError, match="there is no op"):
        rule("p", tf.MyOp(X), X)
    module, region = parse("%0 = tf.MyOp %x", "%0")
    assert rewrite(module, region, rule("p", op("tf.MyOp", X, unregistered=True), X))
