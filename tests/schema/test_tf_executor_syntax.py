"""The executor's text is TensorFlow's to the letter, both ways; what is wrong in it is pointed at."""

from __future__ import annotations

import io
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.mlir import oracle
from tests.support.control_flow import control_flow_v1
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.errors import ParseError
from tfconvert.schema.ir.printer import Printer

C = "!tf_executor.control"
X = "tensor<2xf32>"
U = "tensor<*xf32>"
R = "tensor<2x!tf_type.f32ref>"

_ARGUMENTS = f"%x: {X}, %u: {U}, %p: tensor<i1>, %q: tensor<*xi1>, %i: tensor<i32>, %r: {R}"

# Every form that TensorFlow prints; the graph has the control tokens %c and %d.
_FORMS = (
    f"%0, %1, %2 = tf_executor.Switch %x, %p : {X}",
    f'%0, %1, %2 = tf_executor.Switch %x, %p, %c, %d : {X} {{T = f32, _class = ["loc:@w"], device = ""}}',
    f"%0, %1, %2 = tf_executor.Switch %x, %q, %c : ({X}, tensor<*xi1>, {C}) -> ({X}, {X}, {C})",
    f"%0, %1, %2 = tf_executor.Switch %x, %p : ({X}, tensor<i1>) -> ({U}, tensor<?xf32>, {C}) {{T = f32}}",
    f"%0, %1, %2 = tf_executor.Switch %r, %p : {R}",
    f"%0, %1, %2 = tf_executor._SwitchN %x, %i of 2 : {X} {{T = f32}}",
    f"%0, %1, %2, %3 = tf_executor._SwitchN %x, %i of 3 (%c, %d) : {X}",
    f"%0, %1, %2 = tf_executor.Merge %x, %x : {X} {{N = 2 : i64, T = f32}}",
    f"%0, %1, %2 = tf_executor.Merge %x, %x, %c : {X}",
    f"%0, %1, %2 = tf_executor.Merge %x : ({X}) -> ({X}, tensor<i32>, {C})",
    f"%0, %1, %2 = tf_executor.Merge %x, %x, %x, %d : ({X}, {X}, {X}, {C}) -> ({X}, tensor<i32>, {C})",
    f"%0, %1, %2 = tf_executor.Merge %r, %x : ({R}, {X}) -> ({U}, tensor<i32>, {C})",
    f'%0, %1 = tf_executor.Enter %x frame "a b\\22/" : {X} {{T = f32}}',
    f'%0, %1 = tf_executor.Enter %x, %c frame "w" constant  : {X}',
    f'%0, %1 = tf_executor.Enter %x, %c frame "w" parallel_iterations 4 constant  : ({X}, {C}) -> ({U}, {C})',
    f"%0, %1 = tf_executor.Exit %x, %c, %d : {X} {{T = f32}}",
    "%0, %1 = tf_executor.LoopCond %p, %c : tensor<i1>",
    f'%0, %1 = tf_executor.LoopCond %q : (tensor<*xi1>) -> (tensor<i1>, {C}) {{device = ""}}',
    f"%0, %1, %2 = tf_executor.NextIteration.Source : {X} {{T = f32}}\n"
    f"tf_executor.NextIteration.Sink[%1] %x, %c, %2 : {X} {{T = f32}}",
    '%0 = tf_executor.ControlTrigger %c, %d {device = ""}',
    f'%0, %1 = tf_executor.island(%c, %d) wraps "tf.Relu"(%x) {{device = ""}} : ({X}) -> {X}',
    '%0 = tf_executor.island wraps "tf.NoOp"() : () -> ()',
    "%0 = tf_executor.island(%c) {\ntf_executor.yield\n}",
    f"%0, %1, %2 = tf_executor.island {{\n"
    f'%3 = "tf.Relu"(%x) : ({X}) -> {X}\n%4 = "tf.Neg"(%3) : ({X}) -> {X}\n'
    f"tf_executor.yield %3, %4 : {X}, {X}\n}} {{note = 1 : i64}}",
    f"%0, %1 = tf_executor.island {{\n%2 = tf_executor.graph {{\n%3 = tf_executor.ControlTrigger {{}}\n"
    f"tf_executor.fetch %x, %3 : {X}, {C}\n}} {{note = unit}}\ntf_executor.yield %2 : {X}\n}}",
)

# Ops that TensorFlow's dialect has no form for, or lacks.
_OWN_FORMS = (
    f"%0, %1 = tf_executor.Exit %x : ({X}) -> ({U}, {C})",
    f"%0, %1, %2 = tf_executor._SwitchN %x, %i of 2 (%c) : ({X}, tensor<i32>, {C}) -> ({U}, {X}, {C})",
    f'%0 = tf_executor.Send %x, %c key "edge" : {X} {{T = f32}}',
    f'%0, %1 = tf_executor.Recv %c key "edge" : {X}',
)


def _module(text: str) -> str:
    return (
        f"func.func @f({_ARGUMENTS}) {{\ntf_executor.graph {{\n%c = tf_executor.ControlTrigger {{}}\n"
        f"%d = tf_executor.ControlTrigger %c\n{text}\ntf_executor.fetch\n}}\nfunc.return\n}}"
    )


def _parse(text: str) -> ModuleOp:
    module = IRParser(text, "text.mlir").parse_module()
    verify(module)
    return module


def _lines(text: str) -> list[str]:
    """Returns a text's lines without indentation, an empty dictionary, and what encloses the function."""
    return [line.strip().replace("{note = unit}", "{note}") for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("form", [*_FORMS, *_OWN_FORMS])
def test_text_round_trips(form: str) -> None:
    text = _module(form)
    assert _lines(str(_parse(text)))[1:-1] == _lines(text)


def _switch_n(tf: ModuleType) -> None:
    v1 = tf.compat.v1
    graph = v1.get_default_graph()
    data, index = v1.placeholder(tf.float32, [2], "x"), v1.placeholder(tf.int32, [], "i")
    outputs = graph.create_op(
        "_SwitchN",
        [data, index],
        name="choice",
        attrs={"num_outs": v1.AttrValue(i=3), "T": v1.AttrValue(type=tf.float32.as_datatype_enum)},
        dtypes=[tf.float32] * 3,
    ).outputs
    with tf.control_dependencies([tf.raw_ops.ControlTrigger()]):
        tf.raw_ops.Merge(inputs=[tf.square(outputs[0]), tf.negative(outputs[1]), outputs[2]])


def _condition(tf: ModuleType) -> None:
    v1 = tf.compat.v1
    data, test = v1.placeholder(tf.float32, [2], "x"), v1.placeholder(tf.bool, [], "p")
    inner = v1.cond(test, lambda: v1.cond(data[0] > 0, lambda: data + 1, lambda: data * 2), lambda: tf.zeros([2]))
    with tf.control_dependencies([inner.op]):
        tf.raw_ops.ControlTrigger()


def _loops(tf: ModuleType) -> None:
    v1 = tf.compat.v1
    bound, start = v1.placeholder(tf.int32, [], "n"), v1.placeholder(tf.float32, [None], "x")

    def inner(value: Any) -> Any:
        return v1.while_loop(lambda v: tf.reduce_sum(v) < 9, lambda v: v + start, [value], parallel_iterations=4)

    v1.while_loop(lambda i, v: i < bound, lambda i, v: (i + 1, inner(v)), [tf.constant(0), start])


def _references(tf: ModuleType) -> None:
    v1 = tf.compat.v1
    variable = v1.get_variable("v", [2], use_resource=False)
    parts = tf.raw_ops.RefSwitch(data=variable._ref(), pred=v1.placeholder(tf.bool, [], "p"))
    tf.raw_ops.RefMerge(inputs=[parts.output_false, parts.output_true])


_GRAPHS: dict[str, Callable[[ModuleType], None]] = {
    "switch_n": _switch_n,
    "condition": _condition,
    "loops": _loops,
    "references": _references,
}


@pytest.fixture(scope="module")
def graphs(tf: ModuleType) -> dict[str, str]:
    """Returns the text of graphs as TensorFlow's importer prints it, by name."""
    texts = {}
    for name, build in _GRAPHS.items():
        with control_flow_v1(tf), tf.Graph().as_default() as graph:
            build(tf)
        texts[name] = tf.mlir.experimental.convert_graph_def(graph.as_graph_def(), "", False)
    return texts


@pytest.mark.slow
def test_tensorflow_reads_its_own_modules_as_we_print_them(graphs: dict[str, str]) -> None:
    theirs = {**graphs, **{form: _module(form) for form in _FORMS}}
    ours = {name: str(_parse(text)) for name, text in theirs.items()}
    assert all("tf_executor.Switch" in text or "_SwitchN" in text for text in graphs.values())
    again = oracle.printed(theirs)
    assert oracle.printed(ours) == again
    assert {name: again[name] for name in graphs} == graphs


@pytest.mark.parametrize("name", _GRAPHS)
def test_printing_tensorflows_modules_is_stable(graphs: dict[str, str], name: str) -> None:
    text = str(_parse(graphs[name]))
    assert str(_parse(text)) == text


def test_the_generic_form_is_read_too() -> None:
    own = f'%0, %1 = tf_executor.Enter %x frame "w" constant  : {X} {{T = f32}}'
    generic = '"tf_executor.Enter"(%x) {frame_name = "w", T = f32, is_constant = true}'
    assert str(_parse(_module(f"%0, %1 = {generic} : ({X}) -> ({X}, {C})"))) == str(_parse(_module(own)))


def test_a_short_form_that_leaves_out_the_operands_type_is_read() -> None:
    assert f"({X}) -> ({U}, {C})" in str(_parse(_module(f"%0:2 = tf_executor.Exit %x : {U}")))


def test_a_body_without_terminator_yields_and_fetches_nothing() -> None:
    short = _module("%0 = tf_executor.island {\ntf_executor.graph {\n}\n}")
    whole = _module("%0 = tf_executor.island {\ntf_executor.graph {\ntf_executor.fetch\n}\ntf_executor.yield\n}")
    assert str(_parse(short)) == str(_parse(whole))


def _with_locations(module: ModuleOp) -> str:
    text = io.StringIO()
    Printer(text.write, locations=True).operation(module)
    return text.getvalue()


@pytest.mark.parametrize(
    "form",
    [
        f'%0, %1 = tf_executor.Exit %x : {X} loc("a")',
        f'%0, %1 = tf_executor.island wraps "tf.Relu"(%x) : ({X}) -> {X} loc(fused["Relu:", "a"])',
        f'%0, %1 = tf_executor.island {{\n%2 = "tf.Relu"(%x) : ({X}) -> {X} loc("a")\n'
        f'tf_executor.yield %2 : {X} loc("b")\n}} loc("c")',
    ],
)
def test_locations_survive(form: str) -> None:
    text = _with_locations(_parse(_module(form)))
    assert all(line in _lines(text) for line in _lines(form))
    assert _with_locations(_parse(text)) == text


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (f"%0:3 = tf_executor.Switch %x : {X}", "expected 2 data operands before the type, found 1"),
        ("%0:3 = tf_executor.Switch %x, %p", "Expected ':' before the types"),
        (f"%0:3 = tf_executor._SwitchN %x of 2 : {X}", "expected data and index before 'of', found 1 operands"),
        (f"%0:3 = tf_executor._SwitchN %x, %i : {X}", "Expected 'of' before the number of outputs"),
        (f"%0:2 = tf_executor.Enter %x : {X}", "Expected 'frame' before the frame's name"),
        (f"%0:2 = tf_executor.Enter %x frame w : {X}", "string literal expected as the frame's name"),
        (f'%0:2 = tf_executor.Enter %x frame "w" : {X} {{is_constant = true}}', "expected 'is_constant' once"),
        (f"tf_executor.NextIteration.Sink %x : {X}", "'[' expected"),
        (f"tf_executor.NextIteration.Sink[%c] %x : {X}", "%c is used with type !tf_executor.token"),
        (f"%0 = tf_executor.Send %x : {X}", "Expected 'key' before the name"),
        ("%0 = tf_executor.island(%x) { }", f"%x is used with type {C}"),
        ("%0 = tf_executor.island wraps", "expected an op of another dialect, found tf_executor.fetch"),
        (f'%0:3 = tf_executor.island wraps "tf.Relu"(%x) : ({X}) -> {X}', "Operation has 2 results"),
        (f"%0:2 = tf_executor.Leave %x : {X}", "Operation tf_executor.Leave is not registered"),
    ],
)
def test_errors_report_the_position_and_the_expected_token(form: str, message: str) -> None:
    with pytest.raises(ParseError) as refusal:
        _parse(_module(form))
    assert message in str(refusal.value)
    assert "text.mlir:5:" in str(refusal.value) or "text.mlir:6:" in str(refusal.value)
