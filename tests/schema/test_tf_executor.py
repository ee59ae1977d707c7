"""Every rule of the executor's dialect refuses what breaks it, as TensorFlow's own verifier does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.mlir import oracle
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects import tf_executor as executor
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.errors import ParseError, VerifyError
from tfconvert.schema.ir.locations import NameLoc

C = "!tf_executor.control"
X = "tensor<2xf32>"
U = "tensor<*xf32>"

_ARGUMENTS = (
    f"%x: {X}, %u: {U}, %z: tensor<3xf32>, %p: tensor<i1>, %q: tensor<1xi1>, %i: tensor<i32>, %raw: f32, "
    "%r: tensor<2x!tf_type.f32ref>, %k: !tf_executor.token"
)
_SOURCE = f"%v, %t, %c = tf_executor.NextIteration.Source : {X}"
_SINK = f"tf_executor.NextIteration.Sink[%t] %x : {X}"
_YIELD = "tf_executor.yield"


@dataclass(frozen=True)
class Rule:
    """A text that breaks a rule.

    Attributes:
        name: The test's name.
        text: The contents of a graph, or of a function.
        message: A part of our verifier's message.
        in_graph: Whether the text is in a graph.
        by_tensorflow: Whether TensorFlow's verifier refuses the text too.
    """

    name: str
    text: str
    message: str
    in_graph: bool = True
    by_tensorflow: bool = True

    def __str__(self) -> str:
        return self.name

    @property
    def module(self) -> str:
        """The whole text."""
        control = "%c1 = tf_executor.ControlTrigger {}"
        text = f"tf_executor.graph {{ {control}\n {self.text}\n tf_executor.fetch }}" if self.in_graph else self.text
        return f"func.func @f({_ARGUMENTS}) {{\n {text}\n func.return }}"


def _op(name: str, operands: str, kinds: str, results: str, attributes: str = "") -> str:
    """Returns an op in generic form: its custom form can't express most errors."""
    return f'"tf_executor.{name}"({operands}) {{{attributes}}} : ({kinds}) -> ({results})'


def _island(body: str, results: str = C) -> str:
    return f'"tf_executor.island"() ({{ {body} }}) : () -> ({results})'


def _graph(body: str, results: str = "") -> str:
    return f'"tf_executor.graph"() ({{ {body} }}) : () -> ({results})'


def _outside(name: str, text: str, message: str, by_tensorflow: bool = True) -> Rule:
    return Rule(name, text, message, in_graph=False, by_tensorflow=by_tensorflow)


_RULES = (
    # Operands and results.
    Rule(
        "control first",
        _op("Switch", "%c1, %x, %p", f"{C}, {X}, tensor<i1>", f"{X}, {X}, {C}"),
        "data operands must come before control operands; operand 0 is a control token",
    ),
    Rule(
        "control between",
        _op("Merge", "%x, %c1, %x", f"{X}, {C}, {X}", f"{X}, tensor<i32>, {C}"),
        "data operands must come before control operands; operand 1 is a control token",
    ),
    Rule("operand missing", _op("Switch", "%x", X, f"{X}, {X}, {C}"), "expected 2 data operands (data, predicate)"),
    Rule("operand too many", _op("Exit", "%x, %x", f"{X}, {X}", f"{X}, {C}"), "expected 1 data operands (data)"),
    Rule(
        "no control result",
        _op("Switch", "%x, %p", f"{X}, tensor<i1>", f"{X}, {X}"),
        "the last result must be !tf_executor.control, found tensor<2xf32>",
    ),
    Rule("no tensor", _op("Exit", "%raw", "f32", f"f32, {C}"), "operand 0 (data) must be a tensor, found f32"),
    Rule("trigger with data", _op("ControlTrigger", "%x", X, C), "expected 0 data operands (none), found 1"),
    # Switch and SwitchN.
    Rule(
        "predicate type",
        _op("Switch", "%x, %x", f"{X}, {X}", f"{X}, {X}, {C}"),
        "operand 1 (predicate) must be tensor<i1> or tensor<*xi1>, found tensor<2xf32>",
    ),
    Rule(
        "predicate rank",
        f"%0:3 = tf_executor.Switch %x, %q : ({X}, tensor<1xi1>) -> ({X}, {X}, {C})",
        "(predicate) must be tensor<i1> or tensor<*xi1>, found tensor<1xi1>",
        by_tensorflow=False,
    ),
    Rule(
        "switched shape",
        f"%0:3 = tf_executor.Switch %x, %p : ({X}, tensor<i1>) -> ({X}, tensor<3xf32>, {C})",
        "tensor<2xf32> can't be tensor<3xf32>",
    ),
    Rule(
        "switched element",
        f"%0:3 = tf_executor.Switch %x, %p : ({X}, tensor<i1>) -> (tensor<2xi32>, {X}, {C})",
        "tensor<2xf32> can't be tensor<2xi32>",
    ),
    Rule(
        "index type",
        _op("_SwitchN", "%x, %x", f"{X}, {X}", f"{X}, {C}", "num_outs = 1 : i64"),
        "operand 1 (index) must be tensor<i32>",
    ),
    Rule(
        "number of outputs",
        _op("_SwitchN", "%x, %i", f"{X}, tensor<i32>", f"{X}, {X}, {C}", "num_outs = 3 : i64"),
        "expected num_outs = 3 outputs, at least one; found 2",
    ),
    Rule("no num_outs", _op("_SwitchN", "%x, %i", f"{X}, tensor<i32>", f"{X}, {C}"), "num_outs must be an i64 integer"),
    Rule(
        "output of N",
        _op("_SwitchN", "%x, %i", f"{X}, tensor<i32>", f"tensor<3xf32>, {C}", "num_outs = 1 : i64"),
        "tensor<2xf32> can't be tensor<3xf32>",
    ),
    # Merge.
    Rule("nothing merged", _op("Merge", "%c1", C, f"{X}, tensor<i32>, {C}"), "at least 1 data operands (inputs)"),
    Rule(
        "merged element",
        _op("Merge", "%x, %i", f"{X}, tensor<i32>", f"{X}, tensor<i32>, {C}"),
        "the output is tensor<2xf32>, operand 1 can't be that: it is tensor<i32>",
    ),
    Rule(
        "merged shape",
        _op("Merge", "%x, %z", f"{X}, tensor<3xf32>", f"{X}, tensor<i32>, {C}"),
        "operand 1 can't be that: it is tensor<3xf32>",
    ),
    Rule(
        "merged reference",
        _op("Merge", "%r, %x", f"tensor<2x!tf_type.f32ref>, {X}", f"tensor<2x!tf_type.f32ref>, tensor<i32>, {C}"),
        "the output is a reference, operand 1 is not the same",
    ),
    Rule(
        "value_index type",
        _op("Merge", "%x, %x", f"{X}, {X}", f"{X}, tensor<i64>, {C}"),
        "result 1 (value_index) must be tensor<i32>",
    ),
    Rule(
        "value_index rank",
        _op("Merge", "%x, %x", f"{X}, {X}", f"{X}, tensor<1xi32>, {C}"),
        "result 1 (value_index) must be tensor<i32>",
        by_tensorflow=False,
    ),
    # Frames.
    Rule("no frame", _op("Enter", "%x", X, f"{X}, {C}"), "frame_name must be a string, found none"),
    Rule("frame's name", _op("Enter", "%x", X, f"{X}, {C}", "frame_name = 1 : i64"), "frame_name must be a string"),
    Rule(
        "iterations",
        _op("Enter", "%x", X, f"{X}, {C}", 'frame_name = "w", parallel_iterations = 1 : i32'),
        "parallel_iterations must be an i64 integer",
    ),
    Rule(
        "constant",
        _op("Enter", "%x", X, f"{X}, {C}", 'frame_name = "w", is_constant = 1 : i64'),
        "is_constant must be true or false",
    ),
    Rule(
        "entered type",
        f'%0:2 = tf_executor.Enter %x frame "w" : ({X}) -> (tensor<3xf32>, {C})',
        "tensor<2xf32> can't be tensor<3xf32>",
    ),
    Rule("left type", _op("Exit", "%x", X, f"tensor<2xi32>, {C}"), "tensor<2xf32> can't be tensor<2xi32>"),
    Rule(
        "loop condition",
        _op("LoopCond", "%i", "tensor<i32>", f"tensor<i32>, {C}"),
        "operand 0 (predicate) must be tensor<i1>",
    ),
    # NextIteration.
    Rule("no sink", _SOURCE, "the token must go to one NextIteration.Sink, found 0 uses"),
    Rule("two sinks", f"{_SOURCE}\n{_SINK}\n{_SINK}", "the token must go to one NextIteration.Sink, found 2 uses"),
    Rule(
        "token elsewhere",
        f"{_SOURCE}\n%0:2 = tf_executor.island {{ {_YIELD} %t : !tf_executor.token }}",
        "the token must go to a NextIteration.Sink, found a use by tf_executor.yield",
    ),
    Rule(
        "token from elsewhere",
        f"tf_executor.NextIteration.Sink[%k] %x : {X}",
        "the token must be defined by a NextIteration.Source, found a block argument",
    ),
    Rule(
        "source's type",
        f"{_SOURCE}\ntf_executor.NextIteration.Sink[%t] %u : {U}",
        "must have the type of its NextIteration.Source, tensor<2xf32>, found tensor<*xf32>",
    ),
    Rule(
        "sink of another graph",
        f"{_SOURCE}\n%0 = tf_executor.island {{ tf_executor.graph {{ {_SINK} }} }}",
        "the token must go to a NextIteration.Sink of the same graph",
        by_tensorflow=False,
    ),
    Rule(
        "cycle",
        f"%0:2 = tf_executor.Exit %1#0 : {X}\n%1:2 = tf_executor.Exit %0#0 : {X}",
        "values must be defined before they are used (NextIteration.Source breaks cycles): operand 0",
    ),
    Rule(
        "use in an island before",
        f'%o, %c = tf_executor.island wraps "tf.Relu"(%1#0) : ({X}) -> {X}\n%1:2 = tf_executor.Exit %x : {X}',
        "operand 0 of a tf.Relu is a result of a later tf_executor.Exit",
    ),
    # Islands.
    Rule("island of data", f'"tf_executor.island"(%x) ({{ {_YIELD} }}) : ({X}) -> {C}', "expected 0 data operands"),
    Rule("island's types", _island(f"{_YIELD} %x : {X}", f"tensor<3xf32>, {C}"), "result 0 is tensor<3xf32>, but"),
    Rule("island's count", _island(f"{_YIELD} %x : {X}"), "tf_executor.yield names 1 values for 0 results"),
    Rule("island's control", _island(f"{_YIELD} %x : {X}", X), "the last result must be !tf_executor.control"),
    Rule("control yielded", _island(f"{_YIELD} %c1 : {C}", f"{C}, {C}"), "must be a value, not a control token"),
    Rule("island's arguments", _island(f"^bb0(%a: {X}): {_YIELD}"), "the block must have no arguments, found 1"),
    Rule("empty island", _island(""), "must have one region of one block, found 1 regions and 0 blocks"),
    Rule("island without yield", _island('"tf.NoOp"() : () -> ()'), "must end in tf_executor.yield, found tf.NoOp"),
    Rule(
        "dead in an island",
        _island(f"%0:2 = tf_executor.Exit %x : {X}\n {_YIELD}"),
        "tf_executor.Exit must be directly in a tf_executor.graph, found it in a tf_executor.island",
    ),
    Rule("island in an island", _island(f"{_island(_YIELD)} {_YIELD}"), "found it in a tf_executor.island"),
    Rule("fetch in an island", _island("tf_executor.fetch"), "found it in a tf_executor.island"),
    # Graphs.
    Rule("other op", f'%0 = "tf.Relu"(%x) : ({X}) -> {X}', "a graph holds tf_executor ops only, found tf.Relu"),
    Rule("graph in a graph", "tf_executor.graph { }", "a graph in a graph must be in an island"),
    Rule("yield in a graph", _YIELD, "must be directly in a tf_executor.island, found it in a tf_executor.graph"),
    Rule("two fetches", "tf_executor.fetch", "tf_executor.fetch must be the last op of its block"),
    _outside(
        "graph's operands",
        f'"tf_executor.graph"(%x) ({{ tf_executor.fetch }}) : ({X}) -> ()',
        "expected 0 data operands (none), found 1",
    ),
    _outside(
        "graph's arguments",
        _graph(f"^bb0(%a: {X}): tf_executor.fetch"),
        "the block must have no arguments",
        by_tensorflow=False,
    ),
    _outside("two blocks", _graph("tf_executor.fetch\n^bb1: tf_executor.fetch"), "found 1 regions and 2 blocks"),
    _outside("empty graph", _graph(""), "found 1 regions and 0 blocks"),
    _outside(
        "graph without fetch",
        _graph("%c = tf_executor.ControlTrigger {}"),
        "must end in tf_executor.fetch, found tf_executor.ControlTrigger",
    ),
    _outside("fetched types", _graph(f"tf_executor.fetch %x : {X}", "tensor<3xf32>"), "result 0 is tensor<3xf32>, but"),
    _outside("fetched count", _graph(f"tf_executor.fetch %x : {X}"), "tf_executor.fetch names 1 values for 0 results"),
    _outside(
        "control as result",
        _graph(f"%c = tf_executor.ControlTrigger {{}}\n tf_executor.fetch %c : {C}", C),
        "result 0 (results) must be a value, not a control token",
    ),
    _outside("Switch in a function", f"%0:3 = tf_executor.Switch %x, %p : {X}", "found it in a func.func"),
    _outside("island in a function", f"%0 = tf_executor.island {{ {_YIELD} }}", "found it in a func.func"),
)


def parse(text: str) -> ModuleOp:
    return IRParser(text).parse_module()


def check(text: str) -> None:
    """Each op by itself first: the rules that hold for all ops see some of these mistakes, too."""
    module = parse(text)
    for op in reversed(list(module.walk())):
        op.verify_()
    verify(module)


@pytest.mark.parametrize("rule", _RULES, ids=str)
def test_violations_are_rejected(rule: Rule) -> None:
    with pytest.raises((VerifyError, ParseError)) as refusal:
        check(rule.module)
    assert rule.message in str(refusal.value)


@pytest.fixture(scope="module")
def problems() -> dict[str, str]:
    return oracle.problems({rule.name: rule.module for rule in _RULES})


@pytest.mark.parametrize("rule", _RULES, ids=str)
def test_tensorflow_refuses_the_same(rule: Rule, problems: dict[str, str]) -> None:
    assert (rule.name in problems) is rule.by_tensorflow


def _loop() -> executor.GraphOp:
    """Returns a graph with a loop in it, of which no part but the condition is an island."""
    start = tf.constant(tensor_data.of_array(np.array(1, np.float32)))
    body = Block()
    first = executor.IslandOp.wrap(start, ())
    enter = executor.EnterOp.build(first.outputs[0], "loop", parallel_iterations=3)
    source = executor.NextIterationSourceOp.build(enter.output.type)
    merge = executor.MergeOp.build([enter.output, source.output], enter.output.type)
    test = executor.IslandOp.wrap(tf.build("Less", [merge.output] * 2, [types.tensor(types.I1, ())]), (merge.control,))
    condition = executor.LoopCondOp.build(test.outputs[0])
    switch = executor.SwitchOp.build(merge.output, condition.output)
    trigger = executor.ControlTriggerOp.build([switch.control])
    sink = executor.NextIterationSinkOp.build(source, switch.true_output, [trigger.control])
    leave = executor.ExitOp.build(switch.false_output)
    fetch = executor.FetchOp.create(operands=[leave.output, trigger.control])
    body.add_ops([first, enter, source, merge, test, condition, switch, trigger, sink, leave, fetch])
    return executor.GraphOp.build(body)


def test_built_graphs_hold_the_rules() -> None:
    graph = _loop()
    verify(graph)
    assert [result.type for result in graph.results] == [types.tensor(types.F32, ())]


def test_operands_and_results_have_names() -> None:
    ops = {type(op): op for op in _loop().body.ops}
    source, sink = ops[executor.NextIterationSourceOp], ops[executor.NextIterationSinkOp]
    switch, enter, merge = ops[executor.SwitchOp], ops[executor.EnterOp], ops[executor.MergeOp]
    assert isinstance(source, executor.NextIterationSourceOp)
    assert isinstance(sink, executor.NextIterationSinkOp)
    assert (source.sink, sink.source) == (sink, source)
    trigger = ops[executor.ControlTriggerOp]
    assert isinstance(trigger, executor.ControlTriggerOp)
    assert isinstance(switch, executor.SwitchOp)
    assert (sink.input, sink.control_operands) == (switch.true_output, [trigger.control])
    assert isinstance(enter, executor.EnterOp)
    assert (enter.frame_name, enter.parallel_iterations, enter.is_constant) == ("loop", 3, False)
    assert isinstance(merge, executor.MergeOp)
    assert merge.data_operands == [enter.output, source.output]
    assert switch.predicate is ops[executor.LoopCondOp].results[0]


def test_send_and_recv_meet_by_name() -> None:
    value = Block(arg_types=[types.tensor(types.F32, ())]).args[0]
    send = executor.SendOp.build("edge", value)
    recv = executor.RecvOp.build("edge", value.type, [send.control])
    assert send.tensor_name == recv.tensor_name
    verify(recv)


def test_an_island_wraps_an_op_only_if_it_yields_all_of_it() -> None:
    op = tf.build("Relu", [Block(arg_types=[types.tensor(types.F32, ())]).args[0]], [types.tensor(types.F32, ())])
    assert executor.IslandOp.wrap(op, ()).wrapped is op
    assert executor.IslandOp.build(Block([executor.YieldOp.create()])).wrapped is None
    idle = tf.build("Relu", op.operands, [types.tensor(types.F32, ())])
    assert executor.IslandOp.build(Block([idle, executor.YieldOp.create()])).wrapped is None


def test_locations_are_kept() -> None:
    place = NameLoc.get("n")
    assert executor.ControlTriggerOp.build((), location=place).location == place
