"""What a model that was trained with quantization says of its ranges."""

from __future__ import annotations

from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def is_fake_quant(op: Operation) -> bool:
    return op.name == "tfl.fake_quant"


def uniform_of(op: Operation) -> Uniform:
    raise NotImplementedError


def constant_source(value: Value) -> Constant | None:
    return tensor_data.constant_of(value)


def trained_uniform(value: Value) -> Uniform | None:
    return None
