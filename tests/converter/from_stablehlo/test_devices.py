"""Ops between devices: on one they are their operands or zeros, on several they are refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converter.from_stablehlo.programs import convert, program, results
from tfconvert.schema.diagnostics import ConversionError

KIND = "tensor<4x8xf32>"
_GROUPS = "replica_groups = dense<GROUP> : tensor<1xCOUNTxi64>"
_BODY = (
    " ({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%s = stablehlo.add %p, %q : tensor<f32>\n"
    "stablehlo.return %s : tensor<f32>\n})"
)

COLLECTIVES = {
    "all_gather": f"<{{all_gather_dim = 0 : i64, {_GROUPS}}}>",
    "all_reduce": f"<{{{_GROUPS}}}>{_BODY}",
    "all_to_all": f"<{{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 1 : i64, {_GROUPS}}}>",
    "collective_broadcast": f"<{{{_GROUPS}}}>",
    "collective_permute": "<{source_target_pairs = dense<PAIR> : tensor<1x2xi64>}>",
    "reduce_scatter": f"<{{scatter_dimension = 0 : i64, {_GROUPS}}}>{_BODY}",
}


def _text(name: str, *, devices: int = 1) -> str:
    """Returns a collective between some devices."""
    group = str([list(range(devices))]) if devices > 1 else "0"
    rest = COLLECTIVES[name].replace("GROUP", group).replace("COUNT", str(devices))
    rest = rest.replace("PAIR", "[[0, 1]]" if devices > 1 else "0")
    return program(
        f'    %0 = "stablehlo.{name}"(%a) {rest} : ({KIND}) -> {KIND}\n    return %0 : {KIND}', [KIND], [KIND]
    )


X = np.arange(32, dtype=np.float32).reshape(4, 8)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_of_one_device_are_their_operands(name: str) -> None:
    assert np.array_equal(results(_text(name), X)[0], X)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_of_several_devices_are_refused(name: str) -> None:
    with pytest.raises(ConversionError, match="the module is for several devices"):
        convert(_text(name, devices=2))


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_in_modules_for_several_devices_are_refused(name: str) -> None:
    text = _text(name).replace("module {", "module attributes {mhlo.num_replicas = 2 : i32} {", 1)
    with pytest.raises(ConversionError, match="the module is for several devices"):
        convert(text)


@pytest.mark.parametrize(
    ("name", "empty"),
    [
        ("collective_permute", "source_target_pairs = dense<> : tensor<0x2xi64>"),
        ("collective_broadcast", "replica_groups = dense<> : tensor<0x0xi64>"),
    ],
)
def test_a_device_that_gets_nothing_has_zeros(name: str, empty: str) -> None:
    body = f'    %0 = "stablehlo.{name}"(%a) <{{{empty}}}> : ({KIND}) -> {KIND}\n    return %0 : {KIND}'
    assert not results(program(body, [KIND], [KIND]), X)[0].any()


@pytest.mark.parametrize("name", ["partition_id", "replica_id"])
def test_the_number_of_the_device_is_zero(name: str) -> None:
    body = f"""    %0 = stablehlo.{name} : tensor<ui32>
    %1 = stablehlo.convert %0 : (tensor<ui32>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> {KIND}
    %3 = stablehlo.add %a, %2 : {KIND}
    return %3 : {KIND}"""
    assert np.array_equal(results(program(body, [KIND], [KIND]), X)[0], X)


@pytest.mark.parametrize("name", ["Sharding", "SPMDFullToShardShape", "xla.sdy.PropagationBarrier"])
def test_calls_of_partitioners_are_their_operands_or_refused(name: str) -> None:
    call = f"    %0 = stablehlo.custom_call @{name}(%a) : ({KIND}) -> RESULT\n    return %0 : RESULT"
    assert np.array_equal(results(program(call.replace("RESULT", KIND), [KIND], [KIND]), X)[0], X)
    half = "tensor<2x8xf32>"
    with pytest.raises(ConversionError, match="the module is for several devices"):
        convert(program(call.replace("RESULT", half), [KIND], [half]))
