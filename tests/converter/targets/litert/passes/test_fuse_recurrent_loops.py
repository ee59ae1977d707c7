"""Tests of the pass that replaces loops that are recurrent layers by operators."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.converter.pass_texts import FileCheck
from tests.converter.targets.litert.recurrent.loops import UNITS, Block, loop, lstm, lstm_loop, rnn, rnn_loop
from tests.support.run_text import parse
from tests.support.work import check_linear
from tfconvert.converter.targets.litert.passes.fuse_recurrent_loops import FuseRecurrentLoops
from tfconvert.converter.targets.litert.recurrent.replacement import KEPT
from tfconvert.schema.ir.operation import Operation


def test_an_lstm(filecheck: FileCheck) -> None:
    checks = """
      // CHECK: func.func @main(%[[X:.*]]: tensor<2x?x3xf32>, %[[H:.*]]: tensor<2x2xf32>, %[[C:.*]]: tensor<2x2xf32>)
      // CHECK-NOT: tf.While
      // CHECK: tfl.unidirectional_sequence_lstm"(%[[X]],
      // CHECK-SAME: %[[H]], %[[C]],
      // CHECK-SAME: fused_activation_function = "TANH", time_major = false, cell_clip = 0.000000e+00 : f32
      // CHECK-SAME: -> tensor<2x?x2xf32>
      // CHECK: tf.Transpose
      // CHECK-SAME: -> tensor<?x2x2xf32>
      // CHECK-NOT: func.func private
    """
    filecheck(FuseRecurrentLoops(), lstm_loop(time=-1, axis=1) + checks)
    assert not FuseRecurrentLoops().apply(parse(lstm_loop(time=-1, axis=1))).notes


def test_a_reversed_sequence_of_another_order() -> None:
    source = rnn_loop()
    transposed = """
        %r0 = "tf.Const"() <{value = dense<[1, 0, 2]> : tensor<3xi32>}> : () -> tensor<3xi32>
        %r1 = "tf.Transpose"(%x, %r0) : (tensor<2x4x3xf32>, tensor<3xi32>) -> tensor<4x2x3xf32>
        %r2 = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
        %r3 = "tf.ReverseV2"(%r1, %r2) : (tensor<4x2x3xf32>, tensor<1xi32>) -> tensor<4x2x3xf32>
    """
    head, brace, rest = source.partition('"}} {')
    main, private, functions = rest.partition("func.func private")
    head = head.replace("%x: tensor<4x2x3xf32>", "%x: tensor<2x4x3xf32>")
    module = parse(head + brace + transposed + main.replace("%x", "%r3") + private + functions)
    assert FuseRecurrentLoops().apply(module).counts == {"rnn": 1}
    (operator,) = (op for op in module.walk() if op.name.startswith("tfl."))
    assert str(operator.properties["time_major"]) == "false"
    reverse = operator.operands[0].owner
    assert isinstance(reverse, Operation)
    assert reverse.name == "tf.ReverseV2"
    assert reverse.operands[0] is next(iter(module.ops)).regions[0].block.args[0]


def test_lengths_as_dynamic_rnn_has_them() -> None:
    def minimum(block: Block, count: str) -> str:
        return block.binary("Minimum", count, block.binary("Maximum", block.constant(1, "i32"), count))

    assert FuseRecurrentLoops().apply(parse(rnn_loop(time=-1, runs=minimum))).counts == {"rnn": 1}


def test_rows_that_old_tensor_arrays_gather_again() -> None:
    gathered = """
        %g0 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
        %g1 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %g2 = "tf.Range"(%g0, %v5, %g1) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32>
        %g3 = "tf.GatherV2"(%0#2, %g2, %g0) : (tensor<?x2x2xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x2x2xf32>
        func.return %g3"""
    source = rnn_loop(time=-1)
    count = re.search(r'(%v\d+) = "tf.StridedSlice"', source)
    assert count is not None
    module = parse(source.replace("func.return %0#2", gathered.replace("%v5", count[1])))
    assert FuseRecurrentLoops().apply(module).counts == {"rnn": 1}
    assert not any(op.name == "tf.GatherV2" for op in module.walk())


def _rnn(change: Callable[[Block, str, list[str]], list[str]], states: int = 1, state_batch: int | None = None) -> str:
    return loop(change, states, state_batch=state_batch)


def _gru(block: Block, x: str, states: list[str]) -> list[str]:
    update = block.unary("Sigmoid", rnn(block, x, states[0], ""))
    rest = block.op("Sub", (block.constant(1.0), update), block.kinds[update])
    new = block.binary("Mul", rest, rnn(block, x, states[0]))
    return [block.binary("AddV2", block.binary("Mul", update, states[0]), new)]


def _masked(block: Block, x: str, states: list[str]) -> list[str]:
    new = rnn(block, x, states[0])
    mask = block.op("Less", (x, block.constant(0.0)), "tensor<2x3xi1>")
    column = block.op("Slice", (mask, block.constant([0, 0], "i32"), block.constant([2, 1], "i32")), "tensor<2x1xi1>")
    return [block.op("SelectV2", (column, new, states[0]), block.kinds[new])]


def _noisy(block: Block, x: str, states: list[str]) -> list[str]:
    noise = block.op("RandomStandardNormal", (block.constant([2, 2], "i32"),), "tensor<2x2xf32>")
    return [block.binary("AddV2", rnn(block, x, states[0]), noise)]


def _convolved(block: Block, x: str, states: list[str]) -> list[str]:
    image = block.op("Reshape", (states[0], block.constant([1, 2, 2, 1], "i32")), "tensor<1x2x2x1xf32>")
    options = 'strides = [1 : i64, 1 : i64, 1 : i64, 1 : i64], padding = "SAME"'
    moved = block.op("Conv2D", (image, block.weights(1, 1, 1, 1)), "tensor<1x2x2x1xf32>", options)
    flat = block.op("Reshape", (moved, block.constant([2, 2], "i32")), "tensor<2x2xf32>")
    return [block.unary("Tanh", flat)]


def _swapped(block: Block, x: str, states: list[str]) -> list[str]:
    return [rnn(block, x, states[1]), rnn(block, x, states[0])]


def _faded(block: Block, x: str, states: list[str]) -> list[str]:
    output, state = lstm(block, x, *states)
    return [output, block.binary("Mul", state, block.constant(0.5))]


def _hard(block: Block, x: str, states: list[str]) -> list[str]:
    output, state = lstm(block, x, *states)
    block.lines = [line.replace("tf.Sigmoid", "tf.Relu6") for line in block.lines]
    return [output, state]


def _subtracted(block: Block, x: str, states: list[str]) -> list[str]:
    output, state = lstm(block, x, *states)
    last = max(index for index, line in enumerate(block.lines) if line.startswith(f"{state} ="))
    block.lines[last] = block.lines[last].replace("tf.AddV2", "tf.Sub")
    return [output, state]


def _unlike(block: Block, x: str, states: list[str]) -> list[str]:
    output, state = lstm(block, x, *states)
    last = max(index for index, line in enumerate(block.lines) if "tf.Tanh" in line)
    block.lines[last] = block.lines[last].replace("tf.Tanh", "tf.Relu")
    return [output, state]


def _doubled(block: Block, x: str, states: list[str]) -> list[str]:
    again = block.product(states[0], block.weights(UNITS, UNITS), UNITS)
    return [block.unary("Tanh", block.binary("AddV2", again, rnn(block, x, states[0], "")))]


def _squeezed(block: Block, x: str, states: list[str]) -> list[str]:
    output, state = lstm(block, x, *states)
    output = block.binary("Minimum", output, block.constant(0.5))
    return [block.binary("Maximum", output, block.constant(-0.5)), state]


def _seen(block: Block, x: str, states: list[str]) -> list[str]:
    output, state = lstm(block, x, *states, looks=True)
    # The forget gate looks at the output instead.
    first = next(index for index, line in enumerate(block.lines) if '"tf.Mul"(%s1' in line)
    block.lines[first] = block.lines[first].replace("(%s1", "(%s0")
    return [output, state]


DECLINED = {
    "there is an op with effects in it, tf.RandomStandardNormal": _rnn(_noisy),
    "its condition is not just a count": rnn_loop().replace("tf.Less", "tf.LessEqual"),
    "its number of iterations may differ from the length of its sequence": rnn_loop(
        runs=lambda block, count: block.constant(3, "i32")
    ),
    "its state is kept by a mask": _rnn(_masked),
    "its state is a mix of old and new, as in a GRU": _rnn(_gru),
    "its new state is not an activation (Tanh, Relu, Relu6 or none) of products": rnn_loop(activation="Sigmoid"),
    "its output is not an LSTM's": loop(_hard),
    "its new state is not an LSTM's": loop(_subtracted),
    "the activation of its state is not one of Tanh, Relu and Relu6": lstm_loop(activation="Neg"),
    "it has two activations, Tanh and Relu": loop(_unlike),
    "its output is clipped, but not projected": loop(_squeezed),
    "its last cell state is used, which the operator doesn't return": lstm_loop(results=(0, 2)),
    "its cell state is not forwarded to the next step as it is": loop(_faded),
    "its gates are convolutions, not products with matrices": _rnn(_convolved),
    "its gates are not products of just an input and its last output": _rnn(
        lambda block, x, states: [block.unary("Tanh", block.product(states[0], block.weights(UNITS, UNITS), UNITS))]
    ),
    "one value is multiplied by two matrices in a gate": _rnn(_doubled),
    "a gate reads elements of something other than the state": loop(_seen),
    "its gates don't read its last output": _rnn(_swapped, 2),
    "its input is computed in the loop, not read from a sequence": _rnn(
        lambda block, x, states: [rnn(block, block.unary("Exp", x), states[0])]
    ),
    "something other than outputs is read from it": _rnn(
        lambda block, x, states: [(new := rnn(block, x, states[0])), block.unary("Exp", new)]
    ),
    "its initial state has another shape than its states": _rnn(
        lambda block, x, states: [block.op("Identity", (rnn(block, x, states[0]),), "tensor<?x2xf32>")], state_batch=-1
    ),
    "it computes with f64, not f32": rnn_loop().replace("f32", "f64"),
}


@pytest.mark.parametrize("reason", DECLINED)
def test_what_stays_a_loop(reason: str) -> None:
    module = parse(DECLINED[reason])
    before = str(module)
    rewrite = FuseRecurrentLoops()
    result = rewrite.apply(module)
    assert not result.counts
    assert str(module) == before
    assert rewrite.apply(module) == rewrite.apply(module) == result
    (note,) = result.notes
    assert note.code == KEPT
    assert reason in note.message


def test_loops_without_products_are_not_worth_a_note() -> None:
    source = _rnn(lambda block, x, states: [block.unary("Exp", states[0])])
    result = FuseRecurrentLoops().apply(parse(source))
    assert not result.counts
    assert not result.notes


def test_what_only_the_loop_has_turned_round_goes() -> None:
    source = rnn_loop(batch=-1, time=-1)
    head, brace, rest = source.partition('"}} {')
    main, private, functions = rest.partition("func.func private")
    transposed = """
        %r0 = "tf.Const"() <{value = dense<[1, 0, 2]> : tensor<3xi32>}> : () -> tensor<3xi32>
        %r1 = "tf.Transpose"(%x, %r0) : (tensor<?x?x3xf32>, tensor<3xi32>) -> tensor<?x?x3xf32>
    """
    module = parse(head + brace + transposed + main.replace("%x", "%r1") + private + functions)
    assert FuseRecurrentLoops().apply(module).counts == {"rnn": 1}
    names = [op.name for op in module.walk()]
    assert names.count("tf.Transpose") == 1  # of the outputs, which are returned steps first


def test_many_loops_take_no_more_work_each() -> None:
    def loops(count: int) -> str:
        """Returns loops that all go through the same sequence."""
        head, brace, rest = rnn_loop(time=-1).partition('"}} {')
        main, private, functions = rest.partition("func.func private")
        call, end = main.split("        func.return", 1)
        calls = "\n".join(
            re.sub(r"%(v\d+|0)\b", rf"%c{index}_\1", call).replace("@", f"@f{index}_") for index in range(count)
        )
        others = "\n".join((private + functions).replace("@", f"@f{index}_") for index in range(count))
        return head + brace + calls + "        func.return" + end.replace("%0", "%c0_0") + others

    assert FuseRecurrentLoops().apply(parse(loops(3))).counts == {"rnn": 3}
    check_linear(FuseRecurrentLoops(), loops(5), loops(50), 10)
