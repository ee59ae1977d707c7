"""The pass `order-operators`: orders that need less memory, the same results, and what stays in order."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import tfconvert
from tfconvert.converter.targets.litert.operator_order import _lower_bound, _Orders, best_order
from tfconvert.converter.targets.litert.passes.order_operators import OrderOperators
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tflite.arena import ArenaStep, Schedule

LARGE = "tensor<1x4000xf32>"
CONSTANTS = """
      %times = "tf.Const"() <{value = dense<[1, 500]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %begin = "tf.Const"() <{value = dense<[0, 3]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %size = "tf.Const"() <{value = dense<1> : tensor<2xi32>}> : () -> tensor<2xi32>"""
SLICE = f"({LARGE}, tensor<2xi32>, tensor<2xi32>) -> tensor<1x1xf32>"


def _branches(count: int) -> str:
    """Returns a model that computes large tensors first and uses little of each of them afterwards."""
    lines = [f"func.func @main(%x: tensor<1x8xf32>) -> tensor<1x1xf32> {{{CONSTANTS}"]
    lines.append('  %s0 = "tf.Sin"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>')
    for k in range(count):
        lines.append(f'  %s{k + 1} = "tf.Sin"(%s{k}) : (tensor<1x8xf32>) -> tensor<1x8xf32>')
        lines.append(f'  %t{k} = "tf.Tile"(%s{k}, %times) : (tensor<1x8xf32>, tensor<2xi32>) -> {LARGE}')
    lines += [f'  %m{k} = "tf.Slice"(%t{k}, %begin, %size) : {SLICE}' for k in range(count)]
    total, one = "%m0", "tensor<1x1xf32>"
    for k in range(1, count):
        lines.append(f'  %a{k} = "tf.AddV2"({total}, %m{k}) : ({one}, {one}) -> {one}')
        total = f"%a{k}"
    lines.append(f"  func.return {total} : {one}\n}}")
    return "\n".join(lines)


def _names(module: ModuleOp) -> list[str]:
    return [op.name for op in module.walk() if op.name.startswith("tfl.") and op.name != "tfl.pseudo_const"]


def _apply(text: str) -> tuple[ModuleOp, bool]:
    module = IRParser(text).parse_module()
    result = OrderOperators().apply(module)
    verify(module)
    return module, bool(result.counts)


def test_the_runtime_needs_less_memory_for_the_same_results(tmp_path: Path) -> None:
    source, file = tmp_path / "branches.mlir", tmp_path / "branches.tflite"
    source.write_text(_branches(6))
    model = tfconvert.convert(source)
    model.save(file)
    assert model.report.rewrites["order-operators"] == {"functions": 1}
    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(str(file), experimental_op_resolver_type=plain)
    interpreter.allocate_tensors()
    places = []
    for details in interpreter.get_tensor_details():
        if details["dtype"] == np.float32 and details["name"]:
            array = interpreter.tensor(details["index"])()
            places.append((array.ctypes.data, array.nbytes))
    taken = max(start + size for start, size in places) - min(start for start, _ in places)
    del array
    assert model.report.arena is not None
    assert model.report.arena - 64 < taken <= model.report.arena < 2 * 16_000
    x = np.arange(8, dtype=np.float32)[None]
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    expected = 0.0
    for _ in range(6):
        x = np.sin(x)
        expected += x[0, 3]
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(got, [[expected]], rtol=1e-6)


def test_the_program_s_order_stays_where_no_other_needs_less() -> None:
    text = """
    func.func @main(%x: tensor<64xf32>) -> (tensor<64xf32>) {
      %0 = "tfl.sin"(%x) : (tensor<64xf32>) -> tensor<64xf32>
      %1 = "tfl.cos"(%x) : (tensor<64xf32>) -> tensor<64xf32>
      %2 = "tfl.exp"(%1) : (tensor<64xf32>) -> tensor<64xf32>
      %3 = "tfl.abs"(%0) : (tensor<64xf32>) -> tensor<64xf32>
      %4 = "tfl.mul"(%2, %3) <{fused_activation_function = "NONE"}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      func.return %4 : tensor<64xf32>
    }"""
    module, is_changed = _apply(text)
    assert not is_changed
    assert _names(module) == ["tfl.sin", "tfl.cos", "tfl.exp", "tfl.abs", "tfl.mul"]


TWO = """
    func.func @main(%x: tensor<64xf32>{arguments}) -> tensor<1xf32> {{
      %times = "tfl.pseudo_const"() <{{value = dense<16> : tensor<1xi32>}}> : () -> tensor<1xi32>
      %axis = "tfl.pseudo_const"() <{{value = dense<0> : tensor<1xi32>}}> : () -> tensor<1xi32>
      {first}
      {second}
      %3 = "tfl.sum"(%1, %axis) <{{keep_dims = true}}> : (tensor<1024xf32>, tensor<1xi32>) -> tensor<1xf32>
      %4 = "tfl.sum"(%2, %axis) <{{keep_dims = true}}> : (tensor<1024xf32>, tensor<1xi32>) -> tensor<1xf32>
      %5 = "tfl.mul"(%3, %4) <{{fused_activation_function = "NONE"}}> : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
      func.return %5 : tensor<1xf32>
    }}"""
RANDOM = (
    '%{} = "tfl.random_uniform"(%n) <{{{{seed = {} : i64, seed2 = 0 : i64}}}}> : (tensor<1xi32>) -> tensor<1024xf32>'
)
SIZE = '%n = "tfl.pseudo_const"() <{value = dense<1024> : tensor<1xi32>}> : () -> tensor<1xi32>\n      '


def test_operators_with_effects_keep_their_order() -> None:
    first, second = (RANDOM.format(number, number).replace("{{", "{").replace("}}", "}") for number in (1, 2))
    module, is_changed = _apply(TWO.format(arguments="", first=SIZE + first, second=second))
    names = _names(module)
    assert is_changed
    assert names == ["tfl.random_uniform", "tfl.sum", "tfl.random_uniform", "tfl.sum", "tfl.mul"]
    seeds = [str(op.properties["seed"]) for op in module.walk() if op.name == "tfl.random_uniform"]
    assert seeds == ["1 : i64", "2 : i64"]


def test_functions_that_use_variables_stay_as_they_are() -> None:
    handle = "tensor<!tf_type.resource<tensor<1024xf32>>>"
    read = '%{} = "tfl.read_variable"(%v) : ({}) -> tensor<1024xf32>'
    first, second = read.format(1, handle), read.format(2, handle)
    _, is_changed = _apply(TWO.format(arguments=f", %v: {handle}", first=first, second=second))
    assert not is_changed


def test_each_function_is_ordered_for_itself() -> None:
    tile = '%{} = "tfl.tile"({}, %times) : (tensor<64xf32>, tensor<1xi32>) -> tensor<1024xf32>'
    sin = '%0 = "tfl.sin"(%x) : (tensor<64xf32>) -> tensor<64xf32>\n      '
    body = TWO.format(arguments="", first=sin + tile.format(1, "%x"), second=tile.format(2, "%0"))
    module = IRParser(body + body.replace("@main", "@other")).parse_module()
    assert OrderOperators().apply(module).counts == {"functions": 2}
    verify(module)
    assert OrderOperators().apply(module).counts == {}


@pytest.mark.parametrize("seed", range(60))
def test_orders_are_those_of_the_program(seed: int) -> None:
    """Every proposed order has each operator once, after those that it needs; the best is never worse."""
    source = random.Random(seed)
    count = source.randint(2, 40)
    sizes = [64 * source.randint(0, 40) for _ in range(count + 1)]
    steps = [
        ArenaStep([source.randint(max(0, number - 8), number) for _ in range(source.randint(0, 3))], [number + 1])
        for number in range(count)
    ]
    schedule = Schedule(sizes, steps, [0], [count, source.randint(0, count)])
    proposed = _Orders(schedule)
    orders = list(proposed.all())
    moves = [move for order in orders for move in proposed.moves(order)]
    for order in (*orders, *moves):
        assert sorted(order) == list(range(count))
        computed = {0}
        for number in order:
            assert computed.issuperset(steps[number].operands)
            computed.update(steps[number].results)
    before, best = schedule.arena(), best_order(schedule)
    assert before is not None
    assert before >= schedule.peak() >= _lower_bound(schedule)
    assert best == best_order(schedule)
    if best is not None:
        after = schedule._replace(steps=[steps[number] for number in best]).arena()
        assert after is not None
        assert _lower_bound(schedule) <= after < before


@pytest.mark.parametrize(("following", "is_ordered"), [(4, True), (3000, False)])
def test_large_graphs_are_not_searched_for_a_few_bytes(following: int, is_ordered: bool) -> None:
    """Two large tensors are computed, then a small one of each; small operators follow."""
    sizes = [64, 128, 128, 64, 64, 64, *[64] * following]
    steps = [ArenaStep([0], [1]), ArenaStep([0], [2]), ArenaStep([1], [3]), ArenaStep([2], [4]), ArenaStep([3, 4], [5])]
    steps += [ArenaStep([5 + number], [6 + number]) for number in range(following)]
    schedule = Schedule(sizes, steps, [0], [5 + following])
    assert schedule.arena() == _lower_bound(schedule) + 128
    assert (best_order(schedule) is not None) == is_ordered
