"""The executor runs StableHLO as XLA does: ops that our own texts rarely have; and it refuses what doesn't fit."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.converter.targets.stablehlo.engine import Program
from tfconvert.converter.executor.executor import Executor, run
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp

TEXT = (Path(__file__).parent / "stablehlo_ops.mlir").read_text("utf-8")


def _module(text: str) -> ModuleOp:
    module = IRParser(text).parse_module()
    verify(module)
    return module


def _inputs() -> list[np.ndarray]:
    draw = np.random.default_rng(3)
    return [
        np.round(draw.normal(size=(4, 6)) * 2, 1).astype(np.float32),
        draw.integers(-40, 40, (4, 6)).astype(np.int32),
        draw.integers(-2, 40, (4, 6)).astype(np.int32),
        draw.normal(size=(2, 4, 6)).astype(np.float32),
        draw.normal(size=(2, 6, 6, 4)).astype(np.float32),
        draw.normal(size=(3, 2, 2, 4)).astype(np.float32),
        np.array([[0, 1], [9, 2], [3, -4]], np.int32),
        np.array([[0, 5, 0], [2, 1, 1]], np.int32),
        np.array([[4, 1, 2], [1, 5, 3], [2, 3, 6]], np.float32),
        draw.normal(size=(4, 12)).astype(np.float32).view(np.complex64),
        np.array([np.inf, -np.inf, np.nan, 3e10, -7.5, 2.5], np.float32),
        draw.normal(size=(4, 6)).astype(np.float16),
    ]


def test_as_xla_does(tf: ModuleType) -> None:
    module, inputs = _module(TEXT), _inputs()
    found = run(module, "main", inputs)
    kinds = [(tf.as_dtype(each.dtype), each.shape) for each in found]
    names = re.findall(r"%\w+(?:#\d)?", TEXT[TEXT.rindex("func.return") :])
    wrong = {}
    for name, own, other in zip(names, found, Program(TEXT, kinds).run(inputs), strict=True):
        close = np.allclose(own, other, rtol=2e-5, atol=2e-5, equal_nan=True) if own.dtype.kind in "fc" else False
        if own.shape != other.shape or own.dtype != other.dtype or not (close or np.array_equal(own, other)):
            wrong[name] = (own, other)
    assert wrong == {}


def test_the_results_have_the_types_that_the_text_says() -> None:
    module = _module(TEXT)
    (function,) = module.ops
    found = run(module, "main", _inputs())
    last = list(function.regions[0].block.ops)[-1]
    for value, operand in zip(found, last.operands, strict=True):
        assert value.shape == operand.shape
        assert value.dtype == types.numpy_dtype(operand.element)


SPECIAL = {
    "bessel_i1e": "bessel_i1e",
    "digamma": "digamma",
    "erf": "erf",
    "erf_inv": "erfinv",
    "erfc": "erfc",
    "lgamma": "lgamma",
    "sinh": "sinh",
    "square": "square",
}
OF_TWO = {"polygamma": "polygamma", "zeta": "zeta", "next_after": "nextafter"}


def test_special_functions(tf: ModuleType) -> None:
    names = [*SPECIAL, *OF_TWO]
    kinds = ", ".join(["tensor<?xf64>"] * len(names))
    lines = [
        f'%{name} = "chlo.{name}"({"%n, %y" if name in OF_TWO else "%x"}) : '
        f"({'tensor<?xf64>, ' * (name in OF_TWO)}tensor<?xf64>) -> {kind}"
        for name, kind in zip(names, kinds.split(", "), strict=True)
    ]
    text = "\n".join(lines)
    module = _module(
        f"func.func @main(%n: tensor<?xf64>, %x: tensor<?xf64>, %y: tensor<?xf64>) -> ({kinds}) {{\n{text}\n"
        f"func.return {', '.join(f'%{name}' for name in names)} : {kinds}\n}}"
    )
    x = np.array([-1, -0.999, -0.5, 0, 0.3, 0.99999, 1, 2.5, 30, -1.5, -7.2, 4.5, 29.9, -300, 1e5])
    y = np.abs(x) + 0.1
    n = np.array([2.0, 3, 4, 1, 1, 2, 3, 5, 2, 2.5, 2, 2, 1, 2, 3])
    for name, own in zip(names, run(module, "main", [n, x, y]), strict=True):
        function = getattr(tf.math, SPECIAL.get(name, OF_TWO.get(name, "")))
        other = function(*[tf.constant(each, tf.float64) for each in ((n, y) if name in OF_TWO else (x,))])
        tolerance = 0 if name == "next_after" else 1e-9
        assert np.allclose(own, other, rtol=tolerance, atol=tolerance / 1000, equal_nan=True), (name, own, other)


def test_a_body_of_ops_that_change_shapes_runs_for_each_element() -> None:
    text = """func.func @main(%x: tensor<?x3xf32>, %z: tensor<f32>) -> tensor<?xf32> {
      %0 = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 1>}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %1 = "stablehlo.reshape"(%l) : (tensor<f32>) -> tensor<1xf32>
        %2 = "stablehlo.reshape"(%1) : (tensor<1xf32>) -> tensor<f32>
        %3 = "stablehlo.add"(%2, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%3) : (tensor<f32>) -> ()
      }) : (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }"""
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    (found,) = run(_module(text), "main", [x, np.zeros((), np.float32)])
    assert np.array_equal(found, x.sum(1))
    (none,) = run(_module(text), "main", [x[:0], np.zeros((), np.float32)])
    assert none.shape == (0,)


STATE = """module {
  "ml_program.global"() <{sym_name = "count", type = tensor<i32>, is_mutable, value = dense<7> : tensor<i32>}>
    : () -> ()
  func.func @main(%x: tensor<i32>) -> tensor<i32> {
    %0 = "ml_program.global_load"() <{global = @count}> : () -> tensor<i32>
    %1 = "stablehlo.add"(%0, %x) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "ml_program.global_store"(%1) <{global = @count}> : (tensor<i32>) -> ()
    func.return %1 : tensor<i32>
  }
}"""


def test_state_stays_between_runs() -> None:
    executor = Executor(_module(STATE))
    assert [int(executor.run("main", [np.array(each, np.int32)])[0]) for each in (1, 2)] == [8, 10]


FAILING = {
    "unequal sizes": (
        "unequal-sizes",
        '%0 = "stablehlo.add"(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>',
    ),
    "a slice past the end": (
        "outside-of-tensor",
        "%b = stablehlo.constant dense<1> : tensor<1xi32>\n%e = stablehlo.constant dense<9> : tensor<1xi32>\n"
        '%0 = "stablehlo.real_dynamic_slice"(%x, %b, %e, %b) '
        ": (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>",
    ),
    "a broadcast of neither one nor the size": (
        "unequal-sizes",
        '%e = stablehlo.constant dense<9> : tensor<1xi32>\n%0 = "stablehlo.dynamic_broadcast_in_dim"(%x, %e) '
        "<{broadcast_dimensions = array<i64: 0>}> : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>",
    ),
    "a hint that is wrong": (
        "unequal-sizes",
        '%e = stablehlo.constant dense<9> : tensor<1xi32>\n%0 = "stablehlo.dynamic_broadcast_in_dim"(%y, %e) '
        "<{broadcast_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 0>}> "
        ": (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>",
    ),
    "another number of elements": (
        "unequal-sizes",
        '%e = stablehlo.constant dense<9> : tensor<1xi32>\n%0 = "stablehlo.dynamic_reshape"(%x, %e) '
        ": (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>",
    ),
    "a result that is not what its type says": (
        "unequal-sizes",
        '%0 = "stablehlo.concatenate"(%x, %y) <{dimension = 0 : i64}> '
        ": (tensor<?xf32>, tensor<?xf32>) -> tensor<7xf32>",
    ),
    "a negative size": (
        "bad-operand",
        "%c = stablehlo.constant dense<9> : tensor<1xi32>\n%e = stablehlo.negate %c : tensor<1xi32>\n"
        '%0 = "stablehlo.dynamic_iota"(%e) '
        "<{iota_dimension = 0 : i64}> : (tensor<1xi32>) -> tensor<?xf32>",
    ),
    "an assertion": (
        "assertion-failed",
        '%0 = stablehlo.constant dense<false> : tensor<i1>\n"cf.assert"(%0) <{msg = "never"}> : (tensor<i1>) -> ()',
    ),
    "an assertion of sizes": (
        "assertion-failed",
        '%0 = stablehlo.constant dense<false> : tensor<i1>\n%d = "stablehlo.get_dimension_size"(%x) '
        '<{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>\n"stablehlo.custom_call"(%0, %d) '
        '<{call_target_name = "shape_assertion", has_side_effect = true}> {error_message = "never is {0}"} '
        ": (tensor<i1>, tensor<i32>) -> ()",
    ),
    "a call of the unknown": (
        "no-reference-kernel",
        '%0 = "stablehlo.custom_call"(%x) <{call_target_name = "other"}> : (tensor<?xf32>) -> tensor<?xf32>',
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_what_does_not_fit_is_an_error(name: str) -> None:
    code, body = FAILING[name]
    text = f"func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) {{\n{body}\nfunc.return\n}}"
    with pytest.raises(ConversionError) as refused:
        run(_module(text), "main", [np.zeros(4, np.float32), np.zeros(1, np.float32)])
    assert refused.value.code == code
    if code == "assertion-failed":
        assert refused.value.diagnostics[0].message in ("never", "never is 4")
