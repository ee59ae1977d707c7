"""The executor: calls, control flow, variables, memory, and errors that name the node."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tfconvert.converter.executor import executor
from tfconvert.ops import registry
from tfconvert.ops.call import Call
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.dialects.tf_saved_model import GlobalTensorOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import SymbolRefAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import BlockArgument, Value

VECTOR = types.tensor(types.F32, (3,))
NUMBER = types.tensor(types.F32, ())
TRUTH = types.tensor(types.I1, ())
HANDLE = types.tensor(types.RESOURCE, ())


class Builder:
    """Builds a function of `tf` ops, an op a call."""

    def __init__(self, name: str, inputs: Sequence[Attribute]) -> None:
        self.name = name
        self.block = Block(arg_types=inputs)

    @property
    def args(self) -> tuple[BlockArgument, ...]:
        return self.block.args

    def op(self, name: str, operands: Sequence[Value], result: Attribute | None = None, **properties: Any) -> Any:
        results = [] if result is None else [result]
        op = tf.build(name, operands, results, properties, NameLoc.get(f"{self.name}/{name}"))
        self.block.add_op(op)
        return op.results[0] if op.results else None

    def constant(self, value: Any) -> Value:
        op = tf.constant(tensor_data.of_array(np.asarray(value)))
        self.block.add_op(op)
        return op.results[0]

    def done(self, *results: Value) -> FuncOp:
        self.block.add_op(ReturnOp.of(results))
        types_of = FunctionType.get([arg.type for arg in self.block.args], [result.type for result in results])
        return FuncOp.of(self.name, types_of, Region(self.block))


def module(*ops: Operation) -> ModuleOp:
    return ModuleOp.of(list(ops))


def ones(*shape: int) -> np.ndarray[Any, np.dtype[Any]]:
    return np.ones(shape, np.float32)


def doubling(name: str = "double") -> FuncOp:
    function = Builder(name, [VECTOR])
    return function.done(function.op("AddV2", [function.args[0], function.args[0]], VECTOR))


def test_ops_run_in_order() -> None:
    main = Builder("main", [VECTOR])
    shifted = main.op("AddV2", [main.args[0], main.constant(np.float32(1.0))], VECTOR)
    result = main.op("Mul", [shifted, shifted], VECTOR)
    values = executor.run(module(main.done(result, shifted)), "main", [np.array([0, 1, 2], np.float32)])
    np.testing.assert_array_equal(values[0], [1, 4, 9])
    np.testing.assert_array_equal(values[1], [1, 2, 3])


@pytest.mark.parametrize("call", ["PartitionedCall", "StatefulPartitionedCall"])
def test_functions_call_functions(call: str) -> None:
    main = Builder("main", [VECTOR])
    once = main.op(call, [main.args[0]], VECTOR, f=SymbolRefAttr.get("double"))
    twice = main.op(call, [once], VECTOR, f=SymbolRefAttr.get("double"))
    (value,) = executor.run(module(main.done(twice), doubling()), "main", [ones(3)])
    np.testing.assert_array_equal(value, [4, 4, 4])


@pytest.mark.parametrize(("condition", "expected"), [(True, 2), (False, 1)])
def test_branches(condition: bool, expected: int) -> None:
    same = Builder("same", [VECTOR])
    main = Builder("main", [TRUTH, VECTOR])
    taken = main.op(
        "If", main.args, VECTOR, then_branch=SymbolRefAttr.get("double"), else_branch=SymbolRefAttr.get("same")
    )
    whole = module(main.done(taken), doubling(), same.done(same.args[0]))
    np.testing.assert_array_equal(executor.run(whole, "main", [np.array(condition), ones(3)])[0], [expected] * 3)


@pytest.mark.parametrize(("index", "expected"), [(0, 1), (1, 2), (-1, 2), (7, 2)])
def test_cases(index: int, expected: int) -> None:
    same = Builder("same", [VECTOR])
    main = Builder("main", [types.tensor(types.I32, ()), VECTOR])
    taken = main.op("Case", main.args, VECTOR, branches=[SymbolRefAttr.get("same"), SymbolRefAttr.get("double")])
    whole = module(main.done(taken), doubling(), same.done(same.args[0]))
    inputs = [np.array(index, np.int32), ones(3)]
    np.testing.assert_array_equal(executor.run(whole, "main", inputs)[0], [expected] * 3)


def test_loops() -> None:
    condition = Builder("condition", [NUMBER])
    smaller = condition.op("Less", [condition.args[0], condition.constant(np.float32(100))], TRUTH)
    body = Builder("body", [NUMBER])
    doubled = body.op("AddV2", [body.args[0], body.args[0]], NUMBER)
    main = Builder("main", [NUMBER])
    end = main.op("While", main.args, NUMBER, cond=SymbolRefAttr.get("condition"), body=SymbolRefAttr.get("body"))
    whole = module(main.done(end), condition.done(smaller), body.done(doubled))
    assert executor.run(whole, "main", [np.array(3, np.float32)])[0] == 192


def variable(value: Any) -> GlobalTensorOp:
    data = tensor_data.of_array(np.asarray(value, np.float32))
    return GlobalTensorOp.build("w", data.type, data, is_mutable=True)


def test_variables_are_read_written_and_forgotten() -> None:
    main = Builder("main", [VECTOR])
    handle = main.op("VarHandleOp", [], HANDLE, shared_name="w")
    before = main.op("ReadVariableOp", [handle], VECTOR)
    main.op("AssignAddVariableOp", [handle, main.args[0]])
    again = main.op("VarHandleOp", [], HANDLE, shared_name="w")
    after = main.op("ReadVariableOp", [again], VECTOR)
    whole = module(variable([1, 2, 3]), main.done(before, after))
    for _ in range(2):
        first, second = executor.run(whole, "main", [ones(3)])
        np.testing.assert_array_equal(first, [1, 2, 3])
        np.testing.assert_array_equal(second, [2, 3, 4])


def test_a_variable_without_a_value_is_an_error() -> None:
    main = Builder("main", [])
    handle = main.op("VarHandleOp", [], HANDLE, shared_name="missing")
    with pytest.raises(ConversionError) as caught:
        executor.run(module(main.done(main.op("ReadVariableOp", [handle], VECTOR))), "main", [])
    assert caught.value.code == "uninitialized-variable"


def test_types_and_counts_that_only_results_tell() -> None:
    main = Builder("main", [types.tensor(types.F32, (2, 6))])
    shape = main.op("Shape", main.args, types.tensor(types.I64, (2,)))
    best = main.op("ArgMax", [main.args[0], main.constant(np.int32(1))], types.tensor(types.I32, (2,)))
    whole = main.op("Cast", [best], types.tensor(types.F32, (2,)), Truncate=False)
    split = tf.build("Split", [main.constant(np.int32(1)), main.args[0]], [types.tensor(types.F32, (2, 2))] * 3)
    main.block.add_op(split)
    function = main.done(shape, best, whole, *split.results)
    values = executor.run(module(function), "main", [np.arange(12, dtype=np.float32).reshape(2, 6)])
    assert [value.dtype.name for value in values] == ["int64", "int32", "float32", "float32", "float32", "float32"]
    np.testing.assert_array_equal(values[5], [[4, 5], [10, 11]])


def test_values_are_dropped_after_their_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[int] = []
    made: list[weakref.ref[Any]] = []
    compute = registry.evaluate

    def watched(call: Call) -> Any:
        alive.append(sum(ref() is not None for ref in made))
        results = compute(call)
        made.extend(map(weakref.ref, results))
        return results

    monkeypatch.setattr(registry, "evaluate", watched)
    main = Builder("main", [VECTOR])
    value: Value = main.args[0]
    for _ in range(20):
        value = main.op("AddV2", [value, value], VECTOR)
    executor.run(module(main.done(value)), "main", [ones(3)])
    assert len(alive) == 20
    assert max(alive) <= 1


def test_all_ops_without_a_kernel_are_named_at_once() -> None:
    main = Builder("main", [VECTOR])
    first = main.op("Frobnicate", main.args, VECTOR)
    called = main.op("PartitionedCall", [first], VECTOR, f=SymbolRefAttr.get("inner"))
    inner = Builder("inner", [VECTOR])
    whole = module(main.done(called), inner.done(inner.op("Twiddle", inner.args, VECTOR)))
    with pytest.raises(ConversionError) as caught:
        executor.run(whole, "main", [ones(3)])
    found = [(one.code, one.op, one.node) for one in caught.value.diagnostics]
    assert found == [
        ("no-reference-kernel", "tf.Frobnicate", "main/Frobnicate"),
        ("no-reference-kernel", "tf.Twiddle", "inner/Twiddle"),
    ]


def test_an_error_names_the_node() -> None:
    main = Builder("main", [VECTOR])
    bad = main.op("AddV2", [main.args[0], main.constant(ones(2))], VECTOR)
    with pytest.raises(ConversionError) as caught:
        executor.run(module(main.done(bad)), "main", [ones(3)])
    assert caught.value.diagnostics[0].node == "main/AddV2"


def test_an_attribute_without_a_value_is_an_error() -> None:
    main = Builder("main", [VECTOR])
    bad = main.op("LeakyRelu", main.args, VECTOR, alpha=tf.PlaceholderAttr.get("alpha"))
    with pytest.raises(ConversionError) as caught:
        executor.run(module(main.done(bad)), "main", [ones(3)])
    assert (caught.value.code, caught.value.diagnostics[0].node) == ("bad-operand", "main/LeakyRelu")


def test_endless_recursion_is_an_error() -> None:
    main = Builder("main", [VECTOR])
    itself = main.op("PartitionedCall", main.args, VECTOR, f=SymbolRefAttr.get("main"))
    with pytest.raises(ConversionError) as caught:
        executor.run(module(main.done(itself)), "main", [ones(3)])
    assert caught.value.code == "call-depth"


def test_an_unknown_function_is_an_error() -> None:
    with pytest.raises(ConversionError) as caught:
        executor.run(module(doubling()), "main", [])
    assert caught.value.code == "unknown-function"
