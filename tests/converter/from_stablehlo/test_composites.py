"""Composites and custom calls of StableHLO: ops that TensorFlow has, or their decompositions."""

from __future__ import annotations

import ai_edge_litert.interpreter as litert
import numpy as np
import pytest

import tfconvert
from tests.converter.from_stablehlo.programs import convert, operators, program, results

KIND = "tensor<3xf32>"
X = np.array([-2, 0.5, 3], np.float32)

DECOMPOSED = f"""  func.func private @impl(%x: {KIND}) -> {KIND} {{
    %0 = stablehlo.negate %x : {KIND}
    %1 = func.call @inner(%0) : ({KIND}) -> {KIND}
    return %1 : {KIND}
  }}
  func.func private @inner(%x: {KIND}) -> {KIND} {{
    %0 = stablehlo.sqrt %x : {KIND}
    %1 = stablehlo.is_finite %0 : ({KIND}) -> tensor<3xi1>
    %2 = stablehlo.select %1, %0, %x : tensor<3xi1>, {KIND}
    return %2 : {KIND}
  }}
}}
"""


@pytest.mark.parametrize("name", ["odml.update", "my.function", "chlo.unheard_of"])
def test_unknown_composites_are_what_they_decompose_to(name: str) -> None:
    op = f'stablehlo.composite "{name}" %a {{decomposition = @impl}} : ({KIND}) -> {KIND}'
    text = program(f"    %0 = {op}\n    return %0 : {KIND}", [KIND], [KIND])[:-2] + DECOMPOSED
    assert np.allclose(results(text, X)[0], [2**0.5, -0.5, -3])


def test_a_decomposition_that_is_not_needed_need_not_be_convertible() -> None:
    impl = f"""  func.func private @impl(%x: {KIND}) -> {KIND} {{
    %0 = stablehlo.custom_call @nobody_knows(%x) : ({KIND}) -> {KIND}
    return %0 : {KIND}
  }}
}}
"""
    op = f'stablehlo.composite "chlo.square" %a {{decomposition = @impl}} : ({KIND}) -> {KIND}'
    text = program(f"    %0 = {op}\n    return %0 : {KIND}", [KIND], [KIND])[:-2] + impl
    assert operators(convert(text)) == {"SQUARE": 1}


def test_unknown_custom_calls_are_refused_by_name() -> None:
    body = f"    %0 = stablehlo.custom_call @nobody_knows(%a) : ({KIND}) -> {KIND}\n    return %0 : {KIND}"
    with pytest.raises(tfconvert.ConversionError, match="there is no 'nobody_knows' in TensorFlow"):
        convert(program(body, [KIND], [KIND]))


def test_tensors_have_names_without_the_program_that_all_ops_are_in() -> None:
    body = f"""    %0 = stablehlo.sine %a : {KIND} loc("jit(step)/block/sin")
    %1 = stablehlo.cosine %0 : {KIND} loc("jit(step)/jit(inner)/cos")
    return %0, %1 : {KIND}, {KIND}"""
    interpreter = litert.Interpreter(model_content=convert(program(body, [KIND], [KIND, KIND])))
    names = {tensor["name"] for tensor in interpreter.get_tensor_details()}
    assert {"block/sin", "jit(inner)/cos"} <= names
