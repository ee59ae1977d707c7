"""Which ops can be computed."""

from __future__ import annotations

import importlib

import pytest

from tfconvert.converter.executor import control_flow, resources
from tfconvert.converter.targets.litert.legalize import registry
from tfconvert.ops.kernels import uncommon
from tfconvert.ops.kernels.call import Call
from tfconvert.ops.kernels.registry import COMMON, WITHOUT, evaluate, kernel
from tfconvert.schema.diagnostics import ConversionError


def test_every_op_that_is_converted_can_be_computed_or_says_why_not() -> None:
    supported = {op for _, op, *_ in registry.entries()}
    by_executor = {name.removeprefix("tf.") for name in (*control_flow.OPS, *resources.OPS)}
    assert {op for op in supported if kernel(op) is None} - by_executor == set(WITHOUT)


def test_an_op_has_one_kernel() -> None:
    assert not COMMON.keys() & uncommon.BY_OP.keys()
    assert len(uncommon.BY_OP) == sum(len(ops.split()) for ops in uncommon.MODULES.values())


def test_the_table_of_uncommon_kernels_is_that_of_their_files() -> None:
    for module, ops in uncommon.MODULES.items():
        kernels = importlib.import_module(f"tfconvert.ops.kernels.{module}").KERNELS
        assert ops.split() == sorted(kernels), module
        assert all(kernel(op) is kernels[op] for op in kernels)


@pytest.mark.parametrize(("op", "reason"), [("RandomUniform", "generator"), ("NoSuchOp", "no reference kernel")])
def test_an_op_without_a_kernel_says_so(op: str, reason: str) -> None:
    with pytest.raises(ConversionError, match=reason) as caught:
        evaluate(Call(op, (), {}))
    assert caught.value.code == "no-reference-kernel"
