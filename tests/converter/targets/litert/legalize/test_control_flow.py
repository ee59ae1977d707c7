"""Conditions and loops, written as users write them, in LiteRT as in TensorFlow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Case, Check
from tests.support.litert import RunTFLite

OPS = {"If", "StatelessIf", "While", "StatelessWhile", "ToBool"}
"""The ops that are tested through functions that use them."""


@dataclass(frozen=True)
class Program:
    """A function with inputs to run it on.

    Attributes:
        function: Takes TensorFlow and the inputs, returns the outputs by name.
        shapes: The inputs' shapes in the signature.
        runs: The inputs of each run.
        kinds: The operators of the result that are not arithmetic, and how many there are; `None` for any.
        official: Whether the official converter also accepts it, for a comparison.
    """

    function: Callable[..., Mapping[str, Any]]
    shapes: Sequence[Sequence[int | None]]
    runs: Sequence[Sequence[Any]]
    kinds: Mapping[str, int] | None = None
    official: bool = True

    def __str__(self) -> str:
        return self.function.__name__.removeprefix("_")


X = np.array([0.5, -1.5], np.float32)


def _condition(tf: Any, x: Any) -> Any:
    return {"y": tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: tf.exp(x))}


def _equal_results(tf: Any, x: Any) -> Any:
    def both() -> Any:
        e = tf.exp(x)
        return e, e

    a, b = tf.cond(x[0] > 0, both, lambda: (x, -x))
    return {"a": a, "b": b}


def _constant_results(tf: Any, x: Any) -> Any:
    one, two = tf.ones([2]), tf.constant([2.0, 2.0])
    a, b = tf.cond(x[0] > 0, lambda: (one, one), lambda: (two, x))
    return {"a": a, "b": b}


def _number_as_condition(tf: Any, n: Any, x: Any) -> Any:
    then_branch = tf.function(lambda x: x * 2).get_concrete_function(x)
    else_branch = tf.function(lambda x: x - 1).get_concrete_function(x)
    (y,) = tf.raw_ops.If(cond=n, input=[x], Tout=[tf.float32], then_branch=then_branch, else_branch=else_branch)
    return {"y": y}


def _text_as_condition(tf: Any, n: Any, x: Any) -> Any:
    return _number_as_condition(tf, tf.gather(["", "no"], n), x)


def _five_cases(tf: Any, index: Any, x: Any) -> Any:
    branches = [lambda: x, lambda: x * 2, lambda: tf.exp(x), lambda: -x, lambda: x + 1]
    return {"y": tf.switch_case(index, branches)}


def _three_cases(tf: Any, index: Any, x: Any) -> Any:
    return {"y": tf.switch_case(index, [lambda: x, lambda: x * 2, lambda: tf.exp(x)])}


def _one_case(tf: Any, index: Any, x: Any) -> Any:
    return {"y": tf.switch_case(index, [lambda: x * 2])}


def _swap(tf: Any, n: Any, x: Any) -> Any:
    _, a, b, c = tf.while_loop(lambda i, a, b, c: i < n, lambda i, a, b, c: (i + 1, b, a, a + c), [0, x, x * 2, x])
    return {"a": a, "b": b, "c": c}


def _fibonacci(tf: Any, n: Any) -> Any:
    start = [0, tf.constant(0, tf.int64), tf.constant(1, tf.int64)]
    return {"y": tf.while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, b, a + b), start)[1]}


def _growing(tf: Any, n: Any, x: Any) -> Any:
    shapes = [tf.TensorShape([]), tf.TensorShape([None]), tf.TensorShape([None])]
    _, a, b = tf.while_loop(
        lambda i, a, b: i < n, lambda i, a, b: (i + 1, tf.concat([a, x], 0), a), [0, x, x], shape_invariants=shapes
    )
    return {"a": a, "b": b}


def _shrinking(tf: Any, n: Any, x: Any) -> Any:
    shapes = [tf.TensorShape([]), tf.TensorShape([None]), tf.TensorShape([None])]

    def body(i: Any, a: Any, b: Any) -> Any:
        return i + 1, a[1:], tf.boolean_mask(b, b > tf.cast(i, tf.float32))

    _, a, b = tf.while_loop(lambda i, a, b: i < n, body, [0, x, x], shape_invariants=shapes)
    return {"a": a, "b": b}


def _beginning_empty(tf: Any, n: Any, x: Any) -> Any:
    shapes = [tf.TensorShape([]), tf.TensorShape([None, 2])]
    start = tf.zeros([0, 2])
    body = lambda i, a: (i + 1, tf.concat([a, x[None] * tf.cast(i, tf.float32)], 0))  # noqa: E731
    return {"y": tf.while_loop(lambda i, a: i < n, body, [0, start], shape_invariants=shapes)[1]}


def _none_or_all(tf: Any, n: Any, x: Any) -> Any:
    return {"y": tf.cond(n > 1, lambda: x[n:], lambda: tf.tile(x, [n]))}


def _flag(tf: Any, x: Any) -> Any:
    again = tf.constant(True)
    _, y = tf.while_loop(lambda again, y: again, lambda again, y: (tf.reduce_sum(y) < 50, y + 7), [again, x])
    return {"y": y}


def _words(tf: Any, n: Any, x: Any) -> Any:
    a, b = tf.constant(["one", "two"]), tf.constant(["three", "four"])
    _, a, b = tf.while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, b, tf.gather(a, [1, 0])), [0, a, b])
    return {"a": a, "b": b}


def _nested(tf: Any, x: Any) -> Any:
    def inner(i: Any, a: Any) -> Any:
        return tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b + x), [0, a])[1]

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(tf.reduce_sum(a) > 3.0, lambda: a * 0.5, lambda: inner(i, a))

    return {"y": tf.while_loop(lambda i, a: i < 6, body, [0, x])[1]}


def _break_and_continue(tf: Any, x: Any) -> Any:
    total, count = tf.zeros([2]), 0
    for i in tf.range(10):
        if tf.reduce_sum(total) > 8.0:
            break
        if i % 2 == 0:
            continue
        total += x * tf.cast(i, tf.float32)
        count += 1
    return {"total": total, "count": count}


def _two_variables_alike(tf: Any, n: Any, x: Any) -> Any:
    def body(i: Any, a: Any, b: Any) -> Any:
        c = a + b
        return i + 1, c, c

    _, a, b = tf.while_loop(lambda i, a, b: i < n, body, [0, x, x])
    return {"a": a, "b": b}


COUNTS = [(n, X) for n in (0, 1, 2, 5)]

PROGRAMS = (
    Program(_condition, [[2]], [(X,), (-X,)], {"IF": 1}),
    Program(_equal_results, [[2]], [(X,), (-X,)], {"IF": 1}),
    Program(_equal_results, [[None]], [(X,), (-X,), (X[:1],)], {"IF": 1}),
    Program(_constant_results, [[2]], [(X,), (-X,)], {"IF": 1}),
    Program(_number_as_condition, [[], [2]], [(n, X) for n in (0, 1, -7)], {"IF": 1}, official=False),
    Program(_text_as_condition, [[], [2]], [(n, X) for n in (0, 1)], {"IF": 1}, official=False),
    Program(_five_cases, [[], [2]], [(n, X) for n in range(-1, 6)], {"IF": 4}, official=False),
    Program(_three_cases, [[], [2]], [(n, X) for n in range(-1, 5)], {"IF": 2}, official=False),
    Program(_one_case, [[], [2]], [(n, X) for n in (0, 3)], official=False),
    Program(_swap, [[], [2]], COUNTS, {"WHILE": 1}),
    Program(_swap, [[], [None]], [*COUNTS, (2, X[:1])], {"WHILE": 1}),
    Program(_fibonacci, [[]], [(0,), (1,), (2,), (30,)], {"WHILE": 1}),
    Program(_growing, [[], [None]], [*COUNTS, (3, X[:1])], {"WHILE": 1}),
    Program(_growing, [[], [2]], COUNTS, {"WHILE": 1}),
    Program(_shrinking, [[], [2]], COUNTS, {"WHILE": 1}),
    Program(_shrinking, [[], [None]], [*COUNTS, (1, X[:1]), (3, X[:1])], {"WHILE": 1}),
    Program(_beginning_empty, [[], [2]], [*COUNTS, (0, X)], {"WHILE": 1}),
    Program(_none_or_all, [[], [None]], COUNTS, {"IF": 1}),
    Program(_flag, [[2]], [(X,), (X * 100,)], {"WHILE": 1}),
    Program(_words, [[], [2]], COUNTS, {"WHILE": 1}),
    Program(_nested, [[2]], [(X,), (X * 3,)], {"WHILE": 2, "IF": 1}),
    Program(_break_and_continue, [[2]], [(X,), (-X,), (X * 100,)]),
    Program(_two_variables_alike, [[], [2]], COUNTS, {"WHILE": 1}),
)


@pytest.mark.parametrize("mode", ["int8", "int16"])
@pytest.mark.parametrize("size", [2, None])
def test_variables_that_change_places_are_copied_beside_integers(
    mode: Literal["int8", "int16"], size: int | None, tf: ModuleType, run_tflite: RunTFLite
) -> None:
    def swapped(n: Any, x: Any) -> Any:
        shapes = [tf.TensorShape([]), tf.TensorShape([None]), tf.TensorShape([None])]
        body = lambda i, a, b: (i + 1, b, tf.concat([a, b], 0))  # noqa: E731
        return tf.while_loop(lambda i, a, b: i < n, body, [0, x, x], shape_invariants=shapes)[1:]

    function = tf.function(swapped, input_signature=[tf.TensorSpec([], tf.int32, "n"), tf.TensorSpec([size], name="x")])
    samples = [{"n": np.int32(3), "x": X}, {"n": np.int32(2), "x": X * 0.5}]
    content = bytes(tfconvert.convert(function, quantize=tfconvert.Quantize(mode, samples=samples)))
    for n in (0, 1, 2, 3, 1):
        got = run_tflite(content, {"n": np.array(n, np.int32), "x": X}, signature="serving_default")
        for value, wanted in zip(got, function(n, X), strict=True):
            np.testing.assert_allclose(value, wanted, atol=0.02)


def _concrete(tf: Any, program: Program) -> Any:
    dtypes = [np.asarray(value).dtype for value in program.runs[0]]
    signature = [
        tf.TensorSpec(shape, tf.float32 if dtype.kind == "f" else tf.int32, name=f"x{index}")
        for index, (shape, dtype) in enumerate(zip(program.shapes, dtypes, strict=True))
    ]
    return tf.function(partial(program.function, tf), input_signature=signature)


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_gives_what_tensorflow_gives(program: Program, tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> None:
    module = tf.Module()
    module.call = _concrete(tf, program)
    concrete = module.call.get_concrete_function()
    tf.saved_model.save(module, str(tmp_path), signatures=concrete)
    model = tfconvert.convert(tmp_path)
    for run in program.runs:
        inputs = [np.asarray(value, np.float32 if np.asarray(value).dtype.kind == "f" else np.int32) for value in run]
        expected = module.call(*inputs)
        named = {f"x{index}": value for index, value in enumerate(inputs)}
        got = run_tflite(bytes(model), named, signature="serving_default")
        for name, value in zip(sorted(expected), got, strict=True):
            wanted = expected[name].numpy()
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-5)
            else:
                np.testing.assert_array_equal(value, wanted)
    operators = model.report.operators
    if program.kinds is not None:
        assert {name: operators[name] for name in ("IF", "WHILE") if operators[name]} == program.kinds
    if program.official:
        # The official converter inserts no copies, and its file computes something else then.
        counts = [model.report.rewrites.get(name, Counter()) for name in ("separate-results", "separate-outputs")]
        copies = sum(each["copied"] + 3 * each["sized at run time"] for each in counts)
        assert operators.total() - copies <= _official_operators(tf, concrete, module)


def _official_operators(tf: Any, concrete: Any, module: Any) -> int:
    from ai_edge_litert import schema_py_generated as schema

    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], module)
    content = converter.convert()
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    return sum(len(subgraph.operators) for subgraph in model.subgraphs)


TRUTHS = ("f32[]", np.float32(0), "i32[]@0:0.5", "i1[]", "ui8[]", "f32[?2,3]", "f32[?0,3]", "i1[0]")
"""Operands of a condition: numbers, and tensors that have elements or not."""


@pytest.mark.parametrize("operand", TRUTHS, ids=repr)
def test_anything_is_true_or_false(operand: Any, check: Check) -> None:
    check(Case("ToBool", [operand]))


def test_state_that_changes_is_told(tf: ModuleType, tmp_path: Path) -> None:
    module = tf.Module()
    module.count = tf.Variable(0)

    def add_up(x: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            count = tf.raw_ops.ResourceCountUpTo(resource=module.count.handle, limit=9, T=tf.int32)
            return i + 1, y + tf.cast(count, tf.float32)

        return tf.while_loop(lambda i, y: i < 3, body, [0, x])[1]

    module.call = tf.function(add_up, input_signature=[tf.TensorSpec([2])])
    tf.saved_model.save(module, str(tmp_path), signatures=module.call.get_concrete_function())
    with pytest.raises(tfconvert.ConversionError, match="changes this state") as caught:
        tfconvert.convert(tmp_path)
    assert "tf.ResourceCountUpTo" in str(caught.value)


def test_what_only_tells_people_is_dropped_and_told(tf: ModuleType, tmp_path: Path) -> None:
    def talkative(x: Any) -> Any:
        tf.debugging.assert_positive(x)
        if x[0] > 0:
            tf.print("positive", x)
        return tf.debugging.check_numerics(x * 2, "bad")

    module = tf.Module()
    module.call = tf.function(talkative, input_signature=[tf.TensorSpec([2])])
    tf.saved_model.save(module, str(tmp_path), signatures=module.call.get_concrete_function())
    report = tfconvert.convert(tmp_path).report
    assert report.operators == {"MUL": 1}
    assert {note.message.partition(":")[0] for note in report.notes} == {"Assert", "CheckNumerics", "PrintV2"}
