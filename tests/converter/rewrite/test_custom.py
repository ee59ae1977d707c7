"""Custom operators that rules make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import tfconvert
from tests.converter.rewrite.ir import parse, rewrite
from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.patterns import PatternError, computed, custom, number, rule, tf, tfl, types, value
from tfconvert.schema.dialects import tfl as dialect

X = value("x")
OPTIONS = {
    "b": True,
    "f": 0.5,
    "i": 3,
    "s": "SAME",
    "list": [1, 2],
    "tuple": (0.5, 1.5),
    "texts": ["a", "b"],
    "numpy": np.float32(2.0),
    "array": np.arange(3),
}


def _made(body: str, pattern: Any) -> Any:
    module, region = parse(body, "%r")
    rewrite(module, region, pattern)
    (op,) = (op for op in region.block.ops if op.name == "tfl.custom")
    return op


def test_options_are_a_map() -> None:
    op = _made("%r = tfl.relu %x", rule("p", tfl.relu(X), custom("Leaky", X, options=OPTIONS)))
    assert dialect.attribute(op, dialect.CUSTOM_CODE) == "Leaky"
    assert flexbuffers.Loads(dialect.attribute(op, dialect.CUSTOM_OPTION)) == {
        **OPTIONS,
        "tuple": [0.5, 1.5],
        "numpy": 2.0,
        "array": [0, 1, 2],
    }
    assert op.results[0].type == op.operands[0].type


def test_without_options() -> None:
    op = _made("%r = tfl.relu %x", rule("p", tfl.relu(X), custom("Plain", X)))
    assert dialect.CUSTOM_OPTION not in op.properties


@pytest.mark.parametrize("raw", [b"\x00\xff", bytearray(b"\x00\xff")])
def test_options_of_bytes(raw: Any) -> None:
    op = _made("%r = tfl.relu %x", rule("p", tfl.relu(X), tfl.custom(X, custom_code="Raw", custom_option=raw)))
    assert dialect.attribute(op, dialect.CUSTOM_OPTION) == b"\x00\xff"


def test_options_from_captures() -> None:
    pattern = rule("p", tfl.mul(X, number("c")), custom("Scale", X, options=computed(lambda c: {"by": c})))
    body = """
    %c = "tfl.pseudo_const"() <{value = dense<3.0> : tensor<f32>}> : () -> tensor<f32>
    %r = "tfl.mul"(%x, %c) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    """
    op = _made(body, pattern)
    assert flexbuffers.Loads(dialect.attribute(op, dialect.CUSTOM_OPTION)) == {"by": 3.0}


def test_types_that_a_function_declares() -> None:
    inner = custom("Half", X).typed(lambda x: types.tensor(types.F32, (1,)))
    op = _made("%r = tfl.relu %x", rule("p", tfl.relu(X), tfl.neg(inner)))
    assert str(op.results[0].type) == "tensor<1xf32>"


@pytest.mark.parametrize("options", [3, {"x": object()}, {"x": [1, "a"]}, {"é": 1}, {"x": [[1]]}])
def test_unreadable_options_are_rejected_immediately(options: Any) -> None:
    with pytest.raises(PatternError, match=r"pattern 'p': attribute 'custom_option' of tfl\.custom can't be"):
        rule("p", tfl.relu(X), custom("Leaky", X, options=options))


def test_an_inner_operator_needs_types() -> None:
    with pytest.raises(PatternError, match=r"use like\(...\) or typed"):
        rule("p", tfl.relu(X), tfl.neg(custom("Half", X)))


@pytest.mark.parametrize("result", [custom("Leaky", X), tf.Neg(custom("Leaky", X).like(X))])
def test_custom_operators_have_to_be_allowed(digits_model: Path, result: Any) -> None:
    pattern = rule("leaky", tf.Relu(X), result)
    with pytest.raises(tfconvert.ConversionError, match="pattern 'leaky' makes the custom op 'Leaky'") as caught:
        tfconvert.convert(digits_model, patterns=[pattern])
    assert (caught.value.code, "--allow-custom-ops" in caught.value.diagnostics[0].hint) == ("wrong-option", True)
    report = tfconvert.convert(digits_model, patterns=[pattern], target=tfconvert.LiteRT(allow_custom_ops=True)).report
    assert report.operators["Leaky"] == 1


def test_matched_custom_operators_need_no_permission(digits_model: Path) -> None:
    pattern = rule("back", tfl.custom(X, custom_code="Leaky"), tfl.relu(X))
    assert "Leaky" not in tfconvert.convert(digits_model, patterns=[pattern]).report.operators


@pytest.mark.parametrize("root", ["tf.Relu", "tfl.relu"])
def test_functions_that_make_custom_operators_have_to_be_allowed_to(root: str, digits_model: Path) -> None:
    def replace(op: Any, match: object, rewriter: Any) -> None:
        rewriter.replace(rewriter.insert(dialect.custom("Leaky", b"", op.operands, [op.results[0].type])))

    pattern = Pattern("by hand", root, lambda op: None, replace)
    with pytest.raises(tfconvert.ConversionError, match="pattern 'by hand' makes the custom op 'Leaky'") as caught:
        tfconvert.convert(digits_model, patterns=[pattern])
    assert caught.value.code == "wrong-option"
    report = tfconvert.convert(digits_model, patterns=[pattern], target=tfconvert.LiteRT(allow_custom_ops=True)).report
    assert report.operators["Leaky"] == 1
