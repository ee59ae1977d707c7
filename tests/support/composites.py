"""The composites of a file: their operands and attributes, and whether their functions compute what their names say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.support.litert import run
from tfconvert.converter.targets.litert.composite_verdicts import attributes_of, name_of
from tfconvert.exporters.tflite.model import export
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.attributes import SymbolRefAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

Array = np.ndarray[Any, np.dtype[Any]]
Attributes = Mapping[str, Any]


class Composite(NamedTuple):
    """A composite in a file.

    Attributes:
        name: Its name.
        attributes: Its attributes.
        shapes: The shapes of its operands.
        operators: The operators of its function.
    """

    name: str
    attributes: Attributes
    shapes: Sequence[tuple[int, ...]]
    operators: Sequence[str]


def check_composites(content: bytes) -> list[Composite]:
    """Returns the composites of a file, each of which computes what its name says of operands at random."""
    module = import_tflite(content)
    functions = {op.sym_name: op for op in module.ops if isinstance(op, FuncOp)}
    found = []
    for op in module.walk():
        if op.name == "tfl.stablehlo_composite":
            symbol = op.properties["decomposition"]
            assert isinstance(symbol, SymbolRefAttr)
            function = functions[symbol.root]
            attributes = attributes_of(op)
            operands = [_operand(op, index) for index in range(len(op.operands))]
            (result,) = run(_alone(function), operands)
            wanted = FORMULAS[name_of(op)](attributes, *(operand.astype(np.float64) for operand in operands))
            np.testing.assert_allclose(result, wanted, atol=1e-5)
            names = [each.name for each in function.walk() if each.name.startswith("tfl.") and "const" not in each.name]
            found.append(Composite(name_of(op), attributes, [each.shape for each in operands], names))
    return found


def _operand(op: Operation, index: int) -> Array:
    constant = tensor_data.constant_of(op.operands[index])
    if constant is not None:
        return tensor_data.to_array(constant)
    dims = op.operands[index].shape
    assert dims is not None
    return np.random.default_rng(index).normal(size=dims).astype(np.float32)


def _alone(function: FuncOp) -> bytes:
    """Returns a function as a file."""
    alone = function.clone()
    alone.sym_name, alone.sym_visibility = "main", "public"
    return export(ModuleOp.of([alone])).to_bytes()


def _rms_norm(attributes: Attributes, x: Array, scale: Array) -> Array:
    result: Array = x / np.sqrt((x**2).mean(-1, keepdims=True) + attributes["epsilon"]) * scale
    return result


def _normalized(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    result: Array = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    return result


def _group_norm(attributes: Attributes, x: Array, scale: Array | float = 1, bias: Array | float = 0) -> Array:
    if attributes.get("sub_type", 1) == 1:
        return _normalized(x, (-1,), attributes["epsilon"]) * scale + bias
    assert attributes["channel_axis"] == 3
    assert attributes["_TENSOR_V1_reduction_axes"]["TENSOR_DATA"] == [1, 2, 3]
    groups = x.reshape(*x.shape[:3], attributes["num_groups"], -1)
    return _normalized(groups, (1, 2, 4), attributes["epsilon"]).reshape(x.shape) * scale + bias


def _attention(attributes: Attributes, q: Array, k: Array, v: Array, mask: Array | float = 0) -> Array:
    scores = np.einsum("btnh,bsnh->bnts", q, k) * attributes["scale"] + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result: Array = np.einsum("bnts,bsnh->btnh", weights / weights.sum(-1, keepdims=True), v)
    return result


def _rope(attributes: Attributes, x: Array, positions: Array) -> Array:
    half = x.shape[-1] // 2
    low, high = attributes["min_timescale"], attributes["max_timescale"]
    angles = positions.reshape(-1, 1) / (low * (high / low) ** (np.arange(half) / half))
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1)


def _swiglu(attributes: Attributes, gate: Array, up: Array) -> Array:
    result: Array = gate / (1 + np.exp(-gate)) * up
    return result


FORMULAS: Mapping[str, Callable[..., Array]] = {
    "odml.rms_norm": _rms_norm,
    "odml.group_norm": _group_norm,
    "odml.scaled_dot_product_attention": _attention,
    "odml.rope": _rope,
    "odml.swiglu": _swiglu,
}
"""The formulas of composites in numpy, by name."""
