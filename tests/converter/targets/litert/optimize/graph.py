"""Small modules of `tfl` ops, built by hand, optimized, and run before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.support.litert import RunTFLite
from tests.support.run_text import agrees
from tfconvert.converter.passes.cse import CommonSubexpressions
from tfconvert.converter.targets.litert.passes.optimize import Optimize
from tfconvert.converter.targets.litert.passes.separate_state import SeparateState
from tfconvert.exporters.tflite.model import export
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.dialects.quant import Uniform, UniformType
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value

Operand = Value | np.ndarray | float | Sequence[int] | None

CONSTANTS = ("tfl.pseudo_const", "tfl.no_value")


class Graph:
    """One function under construction.

    Attributes:
        inputs: Its arguments; a shape of `None` is an unknown rank.
    """

    def __init__(self, *shapes: Sequence[int] | None, element: Attribute = types.F32) -> None:
        self._block = Block(arg_types=[types.tensor(element, shape) for shape in shapes])
        self.inputs: list[Value] = list(self._block.args)
        self._module: ModuleOp | None = None

    def constant(self, value: np.ndarray | float | Sequence[int]) -> Value:
        """Adds a constant; lists of integers are i32, numbers f32."""
        array = (
            value
            if isinstance(value, np.ndarray)
            else np.array(value, np.int32 if isinstance(value, list) else np.float32)
        )
        return self._add(tfl.constant(tensor_data.of_array(array)))

    def op(
        self,
        name: str,
        *operands: Operand,
        shape: Sequence[int] | None = None,
        element: Attribute | None = None,
        **options: Any,
    ) -> Value:
        """Adds an op; its result has a certain shape and element type, or else the first operand's type."""
        values = [self._value(operand) for operand in operands]
        data = values[2 if name == "transpose_conv" else 0]
        result = data.type if shape is None else types.tensor(element or data.element, shape)
        return self._add(tfl.build(name, values, [result], options, NameLoc.get(name)))

    def split(self, value: Value, sizes: list[int], axis: int) -> list[Value]:
        """Adds a split of a dimension."""
        shape = value.shape or ()
        kinds = [types.tensor(value.element, [*shape[:axis], each, *shape[axis + 1 :]]) for each in sizes]
        operands = [value, self.constant(sizes), self.constant(np.array(axis, np.int32))]
        made = tfl.build("split_v", operands, kinds, {"num_splits": len(sizes)}, NameLoc.get("split_v"))
        self._add(made)
        return list(made.results)

    def conv(self, value: Value, weights: np.ndarray, bias: np.ndarray | None = None, **options: Any) -> Value:
        """Adds a convolution with stride 1 of a tensor whose height and width are known; bias is zero by default."""
        batch, height, width, _ = value.shape or ()
        merged = {"padding": "SAME", "stride_h": 1, "stride_w": 1, **options}
        step_h, step_w = merged["stride_h"], merged["stride_w"]
        if merged["padding"] == "VALID":
            height, width = height - weights.shape[1] + 1, width - weights.shape[2] + 1
        shape = (batch, -(-height // step_h), -(-width // step_w), weights.shape[0])
        bias = np.zeros(weights.shape[0], np.float32) if bias is None else bias
        return self.op("conv_2d", value, weights, bias, shape=shape, **merged)

    def fake_quantized(self, value: Value | np.ndarray, uniform: Uniform) -> Value:
        """Adds the pair of ops that rounds a value to a mapping's integers and returns floats."""
        value = self._value(value)
        shape = value.shape
        quantized = self.op("quantize", value, element=UniformType.get(uniform), shape=shape)
        return self.op("dequantize", quantized, element=types.F32, shape=shape)

    def returns(self, *values: Value) -> Graph:
        """Finishes the function."""
        self._block.add_op(ReturnOp.of(values))
        kinds = FunctionType.get([each.type for each in self.inputs], [value.type for value in values])
        self._module = ModuleOp.of([FuncOp.of("main", kinds, Region(self._block))])
        verify(self._module, with_relations=False)
        return self

    def _value(self, operand: Operand) -> Value:
        if operand is None:
            return self._add(tfl.no_value())
        return operand if isinstance(operand, Value) else self.constant(operand)

    def _add(self, op: Operation) -> Value:
        self._block.add_op(op)
        return op.results[0]

    @classmethod
    def of(cls, module: ModuleOp) -> Graph:
        """Returns the graph of a module of one function."""
        graph = cls()
        function = next(op for op in module.ops if isinstance(op, FuncOp))
        graph._module, graph._block = module, function.body.block
        graph.inputs = list(graph._block.args)
        return graph

    @property
    def module(self) -> ModuleOp:
        """The finished module."""
        assert self._module is not None
        return self._module

    @property
    def ops(self) -> list[Operation]:
        """The ops in order, without constants and the return."""
        return [op for op in self._block.ops if isinstance(op, tfl.TFLOp) and op.name not in CONSTANTS]

    @property
    def names(self) -> list[str]:
        """The ops' names in order, each with its activation if it has one: `conv_2d{RELU}`."""
        return [_label(op) for op in self.ops]

    def optimize(self) -> Counter[str]:
        """Runs the optimizer; returns how often each pattern was applied."""
        agreed = agrees(self.module)
        applied = Optimize().apply(self.module).counts
        verify(self.module, with_relations=agreed)
        return applied

    def merge(self) -> Counter[str]:
        """Runs the merging of common subexpressions."""
        agreed = agrees(self.module)
        applied = CommonSubexpressions().apply(self.module).counts
        verify(self.module, with_relations=agreed)
        return applied

    @property
    def content(self) -> bytes:
        """The module as a file, each operator with a state of its own."""
        module = self.module.clone()
        SeparateState().apply(module)
        return export(module).to_bytes()

    def run(self, run_tflite: RunTFLite, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Runs the exported module in LiteRT."""
        return run_tflite(self.content, inputs)


def _label(op: Operation) -> str:
    name = op.name.removeprefix(tfl.PREFIX)
    activation = (
        tfl.attribute(op, "fused_activation_function") if "fused_activation_function" in op.properties else "NONE"
    )
    return name if activation == "NONE" else f"{name}{{{activation}}}"


def f32(values: Any) -> np.ndarray:
    """Returns values as an array of 32-bit floats."""
    return np.array(values, np.float32)


def i32(values: Any) -> np.ndarray:
    """Returns values as an array of 32-bit integers."""
    return np.array(values, np.int32)


def random(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Returns reproducible normally distributed values."""
    return np.random.default_rng([seed, *shape]).normal(0, scale, shape).astype(np.float32)


def check(
    graph: Graph, expected: Sequence[str], run_tflite: RunTFLite, *inputs: np.ndarray, tolerance: float = 1e-5
) -> None:
    """Optimizes a graph, compares its ops with those expected and its results with those before."""
    if not inputs:
        shapes = [value.shape or () for value in graph.inputs]
        inputs = tuple(random(*(3 if dim < 0 else dim for dim in shape), scale=3) for shape in shapes)
    before = graph.run(run_tflite, inputs)
    graph.optimize()
    assert graph.names == list(expected)
    after = graph.run(run_tflite, inputs)
    for old, new in zip(before, after, strict=True):
        assert old.shape == new.shape
        np.testing.assert_allclose(new, old, rtol=tolerance, atol=tolerance * float(np.abs(old).max(initial=1)))
