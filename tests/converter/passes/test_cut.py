"""The pass `cut` on IR text, beside the examples of its docstring."""

from __future__ import annotations

import re

import pytest

from tests.support.run_text import parse
from tests.support.work import check_linear
from tfconvert.converter.passes.cut import Cut
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.ir.builtin import ModuleOp


def _marked(cut: str, body: str, functions: str = "") -> str:
    """Returns the text of a function of two arguments that is to be cut."""
    return f"""
        func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> attributes {{
            tf.entry_function = {{control_outputs = "", inputs = "x,y", outputs = "z"}}, tfconvert.cut = {cut}}} {{
          {body}
          func.return %z : tensor<2xf32>
        }}
        {functions}
    """


def _cut(text: str) -> ModuleOp:
    module = parse(text)
    Cut().apply(module)
    verify(module)
    return module


def _code(text: str) -> str:
    with pytest.raises(ConversionError) as caught:
        Cut().apply(parse(text))
    return caught.value.code


SUM = """%s = "tf.AddV2"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("sum")
         %z = "tf.Neg"(%s) : (tensor<2xf32>) -> tensor<2xf32> loc("negated")"""


def test_outputs_alone_keep_the_inputs_that_they_need() -> None:
    text = str(_cut(_marked('{outputs = [{name = "o", tensor = "y"}, {name = "p", tensor = "y:0"}]}', SUM)))
    assert "@main(%y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)" in text
    assert 'inputs = "y", outputs = "o,p"' in text
    assert "tf." not in text.partition("{\n")[2].replace("tf.entry", "")


def test_an_input_may_be_an_output() -> None:
    ends = '[{name = "s", tensor = "sum"}]'
    text = str(_cut(_marked(f'{{inputs = {ends}, outputs = {ends[:-1]}, {{name = "z", tensor = "z"}}]}}', SUM)))
    assert re.search(r"@main\(%(\w+): tensor<2xf32>\) -> .*func\.return %\1, ", text, re.DOTALL)


def test_results_beyond_the_first_have_numbers() -> None:
    body = """%axis = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
              %a, %b = "tf.Split"(%axis, %x)
                  : (tensor<i32>, tensor<2xf32>) -> (tensor<1xf32>, tensor<1xf32>) loc("parts")
              %z = "tf.AddV2"(%y, %b) : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xf32> loc("sum")"""
    text = str(_cut(_marked('{inputs = [{name = "parts:1", tensor = "parts:1"}, {name = "y", tensor = "y"}]}', body)))
    assert re.search(r"@main\(%\w+: tensor<1xf32>, %\w+: tensor<2xf32>\)", text)
    assert _code(_marked('{inputs = [{name = "p", tensor = "parts:2"}]}', body)) == "missing-output"


CALLS = """%a = "tf.PartitionedCall"(%x) <{f = @f}> : (tensor<2xf32>) -> tensor<2xf32> loc("a")
           %z = "tf.PartitionedCall"(%a) <{f = @f}> : (tensor<2xf32>) -> tensor<2xf32> loc("b")"""
CALLED = """func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32> {
              %0 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32> loc("n")
              %1 = "tf.Relu"(%0) : (tensor<2xf32>) -> tensor<2xf32> loc("r")
              func.return %1 : tensor<2xf32>
            }"""


def test_calls_that_lead_nowhere_stay() -> None:
    module = _cut(_marked('{outputs = [{name = "z", tensor = "a/n"}]}', CALLS, CALLED))
    assert [op.name for op in module.walk()] == ["builtin.module", "func.func", "tf.Neg", "func.return"]
    module = _cut(_marked('{inputs = [{name = "z", tensor = "a"}]}', CALLS, CALLED))
    assert [op.name for op in module.walk() if "Call" in op.name] == ["tf.PartitionedCall"]


def test_a_call_and_what_is_inside_of_it() -> None:
    ends = '{outputs = [{name = "a", tensor = "a"}, {name = "n", tensor = "a/n"}, {name = "m", tensor = "b/n"}]}'
    module = _cut(_marked(ends, CALLS, CALLED))
    assert [op.name for op in module.walk()][2:] == ["tf.Neg", "tf.Relu", "tf.Neg", "func.return"]
    neg, relu, second, last = list(module.walk())[2:]
    assert list(last.operands) == [relu.results[0], neg.results[0], second.results[0]]


def test_names_that_several_nodes_have() -> None:
    assert _code(_marked('{outputs = [{name = "n", tensor = "n"}]}', CALLS, CALLED)) == "ambiguous-tensor"
    assert _code(_marked('{outputs = [{name = "n", tensor = "c/n"}]}', CALLS, CALLED)) == "unknown-tensor"


def test_a_function_that_calls_itself() -> None:
    text = _marked(
        '{inputs = [{name = "n", tensor = "inner"}]}',
        CALLS.replace("@f", "@g"),
        """func.func private @g(%x: tensor<2xf32>) -> tensor<2xf32> {
             %0 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32> loc("inner")
             %1 = "tf.PartitionedCall"(%0) <{f = @g}> : (tensor<2xf32>) -> tensor<2xf32> loc("again")
             func.return %1 : tensor<2xf32>
           }""",
    )
    assert _code(text) == "ambiguous-tensor"
    assert _code(text.replace('tensor = "inner"', 'tensor = "a/inner"')) == "recursive-function"


@pytest.mark.parametrize("mark", ["1", '{inputs = "x"}', "{inputs = [1]}", '{outputs = [{name = "x"}]}'])
def test_malformed_marks(mark: str) -> None:
    assert _code(_marked(mark, SUM)) == "invalid-ir"


def test_handles_are_no_inputs() -> None:
    body = """%h = "tf.VarHandleOp"() <{container = "", shared_name = "v"}>
                  : () -> tensor<!tf_type.resource<tensor<2xf32>>> loc("v")
              %z = "tf.ReadVariableOp"(%h) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>"""
    assert _code(_marked('{inputs = [{name = "v", tensor = "v"}]}', body)) == "uncuttable-tensor"


def test_the_work_grows_with_the_graph() -> None:
    def text(count: int) -> str:
        ops = ['%n0 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32> loc("n0")']
        ops += [f'%n{i} = "tf.Neg"(%n{i - 1}) : (tensor<2xf32>) -> tensor<2xf32> loc("n{i}")' for i in range(1, count)]
        ops += [f'%z = "tf.Neg"(%n{count - 1}) : (tensor<2xf32>) -> tensor<2xf32>']
        return _marked(f'{{inputs = [{{name = "i", tensor = "n{count // 2}"}}]}}', "\n".join(ops))

    check_linear(Cut(), text(100), text(400), 4)
