"""Pass `xla-to-stablehlo`: replaces TensorFlow's ops of XLA, which JAX wrote before `XlaCallModule`, by StableHLO.

So does it with operators of StableHLO in `.tflite` files for which LiteRT has no kernel.

Operands that are attributes in StableHLO, such as strides, must be constants. Functions that reduce or compare become
regions.

Before:

    func.func @main(%x: tensor<3x8xf32>) -> tensor<3xf32> {
      %0 = "tf.Const"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
      %1 = "tf.XlaReduce"(%x, %0) <{dimensions_to_reduce = [1], reducer = @sum}>
          : (tensor<3x8xf32>, tensor<f32>) -> tensor<3xf32>
      func.return %1 : tensor<3xf32>
    }
    func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
      %0 = "tf.AddV2"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }

After:

    func.func @main(%x: tensor<3x8xf32>) -> tensor<3xf32> {
      %0 = "tf.Const"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
      %1 = "stablehlo.reduce"(%x, %0) <{dimensions = array<i64: 1>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %2 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%2) : (tensor<f32>) -> ()
      }) : (tensor<3x8xf32>, tensor<f32>) -> tensor<3xf32>
      func.return %1 : tensor<3xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, ClassVar, TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message

from tfconvert.converter.from_stablehlo.raising import unsupported
from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.rewrite.pattern import Declined, Failure, attempt, need
from tfconvert.ops.verification import first_broken
from tfconvert.schema.dialects import stablehlo, tensor_data, tf, tfl, types
from tfconvert.schema.dialects.attributes import Value as Property
from tfconvert.schema.dialects.attributes import int32
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.stablehlo import ConvAttr, DotAttr, EnumeratorAttr, GatherAttr, ScatterAttr
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION, EXPORTED_NAMES
from tfconvert.schema.ir.attributes import BytesAttr, StringAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow.generated import xla_pb2 as pb

M = TypeVar("M", bound=Message)
Properties = Mapping[str, Property]


class XlaToStablehlo:
    """Turns TensorFlow's ops of XLA, and LiteRT's of StableHLO, into StableHLO."""

    __slots__ = ()

    name: ClassVar[str] = "xla-to-stablehlo"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of replaced ops by name.

        Raises:
            ConversionError: An op can't be converted (`unsupported-op`).
        """
        functions = functions_of(module)
        applied: Counter[str] = Counter()
        left: dict[Operation, str] = {}
        subgraphs: set[str] = set()
        for op in [op for op in module.walk() if op.name in _REWRITES]:
            if isinstance(op, tfl.TFLOp):
                subgraphs.update(symbol_table.names(op))
            made = attempt(_REWRITES[op.name], _Xla(op, functions))
            if isinstance(made, Failure):
                left[op] = made.reason
                continue
            broken = first_broken(made)
            if broken is not None:
                left[op] = broken.reason
                continue
            applied[op.name] += 1
            replace_op(op, OpBuilder(op).insert(made).results)
        if left:
            raise unsupported(left)
        symbol_table.erase_unreferenced(functions, symbol_table.names_outside(module))
        _erase_unused(module, subgraphs)
        return PassResult(applied)


def _erase_unused(module: ModuleOp, names: Set[str]) -> None:
    """Erases those of a file's subgraphs that are regions now; their functions aren't private."""
    used = {name for op in module.walk() for name in symbol_table.names(op)} if names else set()
    for name, function in functions_of(module).items():
        if name in names - used and not (
            ENTRY_FUNCTION in function.attributes or EXPORTED_NAMES in function.attributes
        ):
            function.erase()


class _Xla:
    """An op that is to be replaced."""

    __slots__ = ("_functions", "op")

    def __init__(self, op: Operation, functions: Mapping[str, FuncOp]) -> None:
        self.op = op
        self._functions = functions

    def build(
        self, name: str, operands: Sequence[Value], properties: Properties | None = None, regions: Sequence[Region] = ()
    ) -> Operation:
        return stablehlo.build(
            f"stablehlo.{name}", operands, self.op.result_types, properties, regions, self.op.location
        )

    def ints(self, operand: int) -> tuple[int, ...]:
        """Returns the elements of an operand that is an attribute in StableHLO."""
        found = constant_ints(self.op.operands[operand])
        if found is None:
            raise Declined("one of its sizes or places isn't constant")
        return found

    def pairs(self, operand: int) -> tensor_data.Constant:
        """Returns a constant operand of two numbers for each dimension."""
        return tensor_data.of_array(np.array(self.ints(operand), np.int64).reshape(-1, 2), types.I64)

    def dimensions(self, message: Callable[[], M]) -> M:
        """Returns the dimensions' roles, which are a message in an attribute."""
        value = self.op.properties.get("dimension_numbers")
        data = value.data if isinstance(value, BytesAttr) else b""
        if isinstance(value, StringAttr):
            data = value.data.encode("utf-8", "surrogateescape")
        found = message()
        try:
            found.ParseFromString(data)
        except DecodeError:
            raise Declined("its dimension numbers are damaged") from None
        return found

    def region(self, attribute: str) -> Region:
        """Returns the body of a function as a region of StableHLO."""
        function = self._functions.get(symbol_table.named(self.op, attribute))
        if function is None or not function.body.blocks:
            raise Declined("the function that it runs is only declared")
        return Region(_scalar_block(function.body.block))


# The ops on scalars that reducers and comparators consist of.
_SCALAR: Mapping[str, str] = {
    "tf.Add": "add",
    "tf.AddV2": "add",
    "tf.LogicalAnd": "and",
    "tf.LogicalNot": "not",
    "tf.LogicalOr": "or",
    "tf.Maximum": "maximum",
    "tf.Minimum": "minimum",
    "tf.Mul": "multiply",
    "tf.Select": "select",
    "tf.SelectV2": "select",
    "tf.Sub": "subtract",
}
_COMPARISONS: Mapping[str, str] = {
    "tf.Equal": "EQ",
    "tf.Greater": "GT",
    "tf.GreaterEqual": "GE",
    "tf.Less": "LT",
    "tf.LessEqual": "LE",
    "tf.NotEqual": "NE",
}


def _scalar_block(source: Block) -> Block:
    """Returns a copy of a function's body, of ops of StableHLO."""
    block = Block(arg_types=[types.tensor(types.element_of(kind), ()) for kind in source.arg_types])
    values: dict[Value, Value] = dict(zip(source.args, block.args, strict=True))
    for op in source.ops:
        operands = [values[operand] for operand in op.operands]
        if op.name in ("tf.Identity", "tf.IdentityN"):
            values.update(zip(op.results, operands, strict=True))
            continue
        made = _scalar_op(op, operands)
        block.add_op(made)
        values.update(zip(op.results, made.results, strict=True))
    return block


def _scalar_op(op: Operation, operands: Sequence[Value]) -> Operation:
    own = _without_prefix(op)
    if own:
        properties = _direction(_Xla(op, {})) if own == "compare" else {}
        kinds = [types.tensor(result.element, ()) for result in op.results]
        return stablehlo.build(f"stablehlo.{own}", operands, kinds, properties, location=op.location)
    if op.name == "func.return":
        return stablehlo.build(stablehlo.RETURN, operands, location=op.location)
    if op.name in ("tf.Const", f"{tfl.PREFIX}{tfl.PSEUDO_CONST}"):
        value = op.properties["value"]
        assert tensor_data.is_constant(value)
        return stablehlo.constant(value, op.location)
    kind = [types.tensor(result.element, ()) for result in op.results]
    name = _name_in_tensorflow(op)
    if name in _COMPARISONS:
        direction = EnumeratorAttr.get("comparison_direction", _COMPARISONS[name])
        properties = {"comparison_direction": direction}
        return stablehlo.build("stablehlo.compare", operands, kind, properties, location=op.location)
    need(name in _SCALAR, f"the function that it runs contains {op.name}")
    return stablehlo.build(f"stablehlo.{_SCALAR[name]}", operands, kind, location=op.location)


def _name_in_tensorflow(op: Operation) -> str:
    """Returns the name of the op of TensorFlow that computes the same on scalars."""
    if not isinstance(op, tfl.TFLOp):
        return op.name
    return "tf." + "".join(part.capitalize() for part in op.op_name.split("_"))


def _without_prefix(op: Operation) -> str:
    """Returns the name in StableHLO of one of LiteRT's operators, empty for others."""
    name = op.op_name if isinstance(op, tfl.TFLOp) else ""
    return name.removeprefix(_OF_STABLEHLO) if name.startswith(_OF_STABLEHLO) else ""


def _dot(xla: _Xla) -> Operation:
    dims = xla.dimensions(pb.DotDimensionNumbers)
    numbers = DotAttr.get(
        lhs_batching_dimensions=dims.lhs_batch_dimensions,
        rhs_batching_dimensions=dims.rhs_batch_dimensions,
        lhs_contracting_dimensions=dims.lhs_contracting_dimensions,
        rhs_contracting_dimensions=dims.rhs_contracting_dimensions,
    )
    return xla.build("dot_general", xla.op.operands[:2], {"dot_dimension_numbers": numbers})


def _layout(spatial: Sequence[int], roles: Mapping[str, int]) -> list[str]:
    """Returns what each dimension is: the number of a spatial one, or a letter."""
    of = {**{axis: str(number) for number, axis in enumerate(spatial)}, **{axis: role for role, axis in roles.items()}}
    need(sorted(of) == list(range(len(spatial) + len(roles))), "its dimension numbers are damaged")
    return [of[axis] for axis in range(len(of))]


def _conv(xla: _Xla) -> Operation:
    dims = xla.dimensions(pb.ConvolutionDimensionNumbers)
    layouts = (
        _layout(dims.input_spatial_dimensions, {"b": dims.input_batch_dimension, "f": dims.input_feature_dimension}),
        _layout(
            dims.kernel_spatial_dimensions,
            {"i": dims.kernel_input_feature_dimension, "o": dims.kernel_output_feature_dimension},
        ),
        _layout(dims.output_spatial_dimensions, {"b": dims.output_batch_dimension, "f": dims.output_feature_dimension}),
    )
    properties: dict[str, Property] = {
        "window_strides": xla.ints(2),
        "padding": xla.pairs(3),
        "lhs_dilation": xla.ints(4),
        "rhs_dilation": xla.ints(5),
        "dimension_numbers": ConvAttr.get(*layouts),
        "feature_group_count": xla.ints(6)[0],
        "batch_group_count": tf.get(xla.op, "batch_group_count", 1),
    }
    return xla.build("convolution", xla.op.operands[:2], properties)


def _gather(xla: _Xla) -> Operation:
    dims = xla.dimensions(pb.GatherDimensionNumbers)
    numbers = GatherAttr.get(
        offset_dims=dims.offset_dims,
        collapsed_slice_dims=dims.collapsed_slice_dims,
        operand_batching_dims=dims.operand_batching_dims,
        start_indices_batching_dims=dims.start_indices_batching_dims,
        start_index_map=dims.start_index_map,
        index_vector_dim=dims.index_vector_dim,
    )
    operands = xla.op.operands
    if constant_ints(operands[2]) is None:
        return xla.build("dynamic_gather", operands[:3], {"dimension_numbers": numbers})
    return xla.build("gather", operands[:2], {"dimension_numbers": numbers, "slice_sizes": xla.ints(2)})


def _scatter(xla: _Xla) -> Operation:
    dims = xla.dimensions(pb.ScatterDimensionNumbers)
    numbers = ScatterAttr.get(
        update_window_dims=dims.update_window_dims,
        inserted_window_dims=dims.inserted_window_dims,
        input_batching_dims=dims.input_batching_dims,
        scatter_indices_batching_dims=dims.scatter_indices_batching_dims,
        scatter_dims_to_operand_dims=dims.scatter_dims_to_operand_dims,
        index_vector_dim=dims.index_vector_dim,
    )
    region = xla.region("update_computation")
    return xla.build("scatter", xla.op.operands[:], {"scatter_dimension_numbers": numbers}, [region])


def _pad(xla: _Xla) -> Operation:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    if all(constant_ints(operand) is not None for operand in xla.op.operands[2:]):
        return xla.build("pad", xla.op.operands[:2], {name: xla.ints(2 + at) for at, name in enumerate(names)})
    return xla.build("dynamic_pad", xla.op.operands[:])


def _reduce(xla: _Xla) -> Operation:
    properties = {"dimensions": tuple(tf.get(xla.op, "dimensions_to_reduce", ()))}
    return xla.build("reduce", xla.op.operands[:], properties, [xla.region("reducer")])


def _reduce_window(xla: _Xla) -> Operation:
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    properties: dict[str, Property] = {name: xla.ints(2 + at) for at, name in enumerate(names)}
    properties["padding"] = xla.pairs(6)
    return xla.build("reduce_window", xla.op.operands[:2], properties, [xla.region("computation")])


def _select_and_scatter(xla: _Xla) -> Operation:
    operand, _, _, _, source, initial = xla.op.operands
    properties: dict[str, Property] = {
        "window_dimensions": xla.ints(1),
        "window_strides": xla.ints(2),
        "padding": xla.pairs(3),
    }
    regions = [xla.region("select"), xla.region("scatter")]
    return xla.build("select_and_scatter", (operand, source, initial), properties, regions)


def _variadic_sort(xla: _Xla) -> Operation:
    properties: dict[str, Property] = {
        "dimension": xla.ints(len(xla.op.operands) - 1)[0],
        "is_stable": bool(tf.get(xla.op, "is_stable", False)),
    }
    return xla.build("sort", xla.op.operands[:-1], properties, [xla.region("comparator")])


def _sort(xla: _Xla) -> Operation:
    """Sorts along the last axis, by the first operand."""
    elements = [operand.element for operand in xla.op.operands]
    block = Block(arg_types=[types.tensor(element, ()) for element in elements for _ in range(2)])
    direction = {"comparison_direction": EnumeratorAttr.get("comparison_direction", "LT")}
    compared = stablehlo.build("stablehlo.compare", block.args[:2], [types.tensor(types.I1, ())], direction)
    block.add_op(compared)
    block.add_op(stablehlo.build(stablehlo.RETURN, compared.results))
    rank = len(xla.op.operands[0].shape or ())
    need(rank > 0, "the rank of its operand isn't known")
    return xla.build("sort", xla.op.operands[:], {"dimension": rank - 1, "is_stable": True}, [Region(block)])


def _reduce_precision(xla: _Xla) -> Operation:
    bits: dict[str, Any] = {name: int32(tf.get(xla.op, name, 0)) for name in ("exponent_bits", "mantissa_bits")}
    return xla.build("reduce_precision", xla.op.operands[:], bits)


_OF_STABLEHLO = "stablehlo_"


def _operator(
    properties: Callable[[_Xla], Properties] = lambda xla: {}, region: str = ""
) -> Callable[[_Xla], Operation]:
    """Returns the function that gives one of LiteRT's operators the form that it has in StableHLO."""

    def build(xla: _Xla) -> Operation:
        regions = [xla.region(region)] if region else []
        return xla.build(_without_prefix(xla.op), xla.op.operands[:], properties(xla), regions)

    return build


def _options(*names: str) -> Callable[[_Xla], Properties]:
    def read(xla: _Xla) -> Properties:
        values = {name: tfl.attribute(xla.op, name) for name in names}
        return {name: tuple(value) if isinstance(value, Sequence) else value for name, value in values.items()}

    return read


def _direction(xla: _Xla) -> Properties:
    direction = str(tfl.attribute(xla.op, "comparison_direction")).rpartition("_")[2]
    return {"comparison_direction": EnumeratorAttr.get("comparison_direction", direction)}


def _dot_numbers(xla: _Xla) -> Properties:
    sides = ((side, part) for part in ("batching", "contracting") for side in ("lhs", "rhs"))
    names = [f"{side}_{part}_dimensions" for side, part in sides]
    return {"dot_dimension_numbers": DotAttr.get(**{name: tfl.attribute(xla.op, name) or () for name in names})}


# The operators of StableHLO without a kernel in LiteRT 2.3.0, those without options first.
_PLAIN = """
abs cbrt clamp convert cosine divide dynamic_update_slice exponential floor log logistic negate power remainder reshape
rsqrt select subtract tanh
"""
_OPERATORS: Mapping[str, Callable[[_Xla], Operation]] = {
    **dict.fromkeys(_PLAIN.split(), _operator()),
    "broadcast_in_dim": _operator(_options("broadcast_dimensions")),
    "compare": _operator(_direction),
    "concatenate": _operator(_options("dimension")),
    "dot_general": _operator(_dot_numbers),
    "dynamic_slice": _operator(_options("slice_sizes")),
    "iota": _operator(_options("iota_dimension")),
    "reduce": _operator(_options("dimensions"), "body"),
    "slice": _operator(_options("start_indices", "limit_indices", "strides")),
    "sort": _operator(_options("dimension", "is_stable"), "comparator"),
    "transpose": _operator(_options("permutation")),
}

_REWRITES: Mapping[str, Callable[[_Xla], Operation]] = {
    "tf.XlaConv": _conv,
    "tf.XlaConvV2": _conv,
    "tf.XlaDot": _dot,
    "tf.XlaDotV2": _dot,
    "tf.XlaGather": _gather,
    "tf.XlaKeyValueSort": _sort,
    "tf.XlaOptimizationBarrier": lambda xla: xla.build("optimization_barrier", xla.op.operands[:]),
    "tf.XlaPad": _pad,
    "tf.XlaReduce": _reduce,
    "tf.XlaReducePrecision": _reduce_precision,
    "tf.XlaReduceWindow": _reduce_window,
    "tf.XlaScatter": _scatter,
    "tf.XlaSelectAndScatter": _select_and_scatter,
    "tf.XlaSort": _sort,
    "tf.XlaVariadicReduce": _reduce,
    "tf.XlaVariadicReduceV2": _reduce,
    "tf.XlaVariadicSort": _variadic_sort,
    **{f"{tfl.PREFIX}{_OF_STABLEHLO}{name}": rewrite for name, rewrite in _OPERATORS.items()},
}
