"""Times operators of integers and of floats in LiteRT, and prints the table that a conversion chooses by.

    python -m benchmarks.integer_speed > tfconvert/converter/targets/litert/quantize/speed.tsv

A row has the microseconds that an operator takes with integers and with floats, at some number of elements (of
products, for matrix products). They are what more of it add to a file of one, so that the overhead of a run is
left out: one thread, minima of runs in turns. Conversions have one time.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.commands import parser_of
from tests.converter.targets.litert.optimize.graph import Graph
from tfconvert.converter.targets.litert.passes.calibrate import Calibrate
from tfconvert.converter.targets.litert.passes.quantize import QuantizeOps
from tfconvert.converter.targets.litert.passes.quantize_io import QuantizeIo
from tfconvert.converter.targets.litert.passes.separate_state import SeparateState
from tfconvert.converter.targets.litert.quantize.speed import LOOKUPS
from tfconvert.converter.targets.litert.tuning.form_timing import microseconds_of
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.quant import Uniform, UniformType
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.types import I8, IntegerType
from tfconvert.settings.quantization import Quantize

LSTM = "unidirectional_sequence_lstm"

# Operators of each size in a file that is compared with one: fewer of large ones, since other processes interrupt runs
# of milliseconds.
COPIES = (16, 16, 3, 3)

# How long each set of files runs, and how long one of them before it is the next one's turn.
SECONDS = 1.0

_USUAL = Uniform(I8, (0.03,), (3,))
_CENTERED = Uniform(I8, (0.03,), (0,))
_FAR = Uniform(I8, (1e-5,), (0,))


@dataclass(frozen=True, slots=True)
class Case:
    """An operator."""

    kind: str  # Its row's name: the operator, and what keeps XNNPACK from taking its integers.
    shapes: Sequence[Sequence[Sequence[int]]]  # The shapes of its operands, in ascending sizes.
    results: Sequence[Sequence[int]]  # The shapes of its results.
    # The mappings of its operands to integers, or the types of those that are no floats either way.
    operands: Sequence[Uniform | IntegerType] = (_USUAL, _USUAL)
    result: Uniform | IntegerType = _USUAL  # The same of its result.
    options: dict[str, Any] = field(default_factory=dict)  # Its options.
    integers: Sequence[Any] = ()  # The operands after these: sizes, axes or a permutation; before them, for `split`.
    sizes: slice | None = None  # Which sizes of the result are the operand after these, if any.
    has_constant: bool = False  # Whether the last operand is a constant.
    # The shapes of its weights, which a conversion makes integers, if it has any.
    weights: Sequence[Sequence[int]] = ()
    parts: int = 1  # The number of its results, all of one shape.

    def work(self, index: int) -> int:
        """Returns the number of products of a matrix product, or else the largest number of elements."""
        shapes, result = self.shapes[index], self.results[index]
        if self.kind.startswith("batch_matmul"):
            return math.prod(shapes[0]) * result[-1]
        if self.kind == LSTM:
            return math.prod(result) * 4 * (shapes[0][-1] + result[-1])
        if self.weights:
            return math.prod(result) * math.prod(self.weights[index]) // result[-1]
        return math.prod(result) if self.kind in LOOKUPS else max(math.prod(shape) for shape in (*shapes, result))

    def content(self, index: int, copies: int, *, with_integers: bool) -> bytes:
        """Returns a file that has the operator several times, side by side."""
        if self.kind == LSTM:
            return _lstm(self.shapes[index][0], self.results[index], copies, with_integers=with_integers)
        if self.weights:
            return self._product(index, copies, with_integers=with_integers)
        name, shapes, result = self.kind.partition(":")[0], list(self.shapes[index]), self.results[index]
        given, made = (
            [_element(each, with_integers=with_integers) for each in uniforms]
            for uniforms in (self.operands, [self.result])
        )
        if name == "quantize":
            given, made = [types.F32], [_element(self.result, with_integers=True)]
        if name == "dequantize":
            given, made = [_element(self.result, with_integers=True)], [types.F32]
        constants = [shapes.pop()] if self.has_constant else []
        graph = Graph(*shapes)
        for value, element in zip(graph.inputs, given, strict=False):
            value.type = types.tensor(element, value.shape)
        values: list[Any] = list(graph.inputs)
        for shape in constants:
            stored = np.full(shape, 1, np.int8) if with_integers else np.full(shape, 1e-5, np.float32)
            kind = types.tensor(given[1], shape)
            values.append(graph._add(tfl.constant(tensor_data.of_array(stored), result_type=kind)))  # noqa: SLF001
        numbers = [*self.integers, *([] if self.sizes is None else [result[self.sizes]])]
        integers = [graph.constant(np.array(each, np.int32)) for each in numbers]
        values = [*integers, *values] if name == "split" else [*values, *integers]
        kinds = [types.tensor(made[0], result)] * self.parts
        ops = [tfl.build(name, values, kinds, self.options, NameLoc.get(name)) for _ in range(copies)]
        for op in ops:
            graph._add(op)  # noqa: SLF001
        return graph.returns(*(each for op in ops for each in op.results)).content

    def _product(self, index: int, copies: int, *, with_integers: bool) -> bytes:
        """Returns a file of products with weights, each with its own."""
        (shape,), result = self.shapes[index], self.results[index]
        graph, random = Graph(shape), np.random.default_rng(0)
        weights = [random.normal(0, 0.3, self.weights[index]).astype(np.float32) for _ in range(copies)]
        bias = np.zeros(result[-1], np.float32)
        name, (x,) = self.kind.partition(":")[0], graph.inputs
        operands = [(list(result), each, x, bias) if name == "transpose_conv" else (x, each, bias) for each in weights]
        graph.returns(*[graph.op(name, *each, shape=result, **self.options) for each in operands])
        return _converted(graph, with_integers=with_integers)


def _element(mapping: Uniform | IntegerType, *, with_integers: bool) -> Attribute:
    if not isinstance(mapping, Uniform):
        return mapping
    return UniformType.get(mapping) if with_integers else types.F32


def _lstm(shape: Sequence[int], result: Sequence[int], copies: int, *, with_integers: bool) -> bytes:
    """Returns a file of LSTMs side by side."""
    features, units = shape[-1], result[-1]
    graph = Graph(shape)
    random = np.random.default_rng(0)
    kernels = [random.normal(0, 0.3, (units, size)).astype(np.float32) for size in [features] * 4 + [units] * 4]
    operands: list[Any] = [*kernels, None, None, None, *[np.zeros(units, np.float32)] * 4, None, None]
    operands += [*[np.zeros((shape[0], units), np.float32)] * 2, None, None, None, None]
    options: dict[str, Any] = {
        "fused_activation_function": "TANH",
        "cell_clip": 0.0,
        "proj_clip": 0.0,
        "time_major": False,
    }
    graph.returns(*[graph.op(LSTM, graph.inputs[0], *operands, shape=result, **options) for _ in range(copies)])
    return _converted(graph, with_integers=with_integers)


def _converted(graph: Graph, *, with_integers: bool) -> bytes:
    """Returns the file of a graph; integers are what a conversion makes of ranges."""
    if with_integers:
        quantize = Quantize("int8", default_range=(-1.0, 1.0), io="int8")
        SeparateState().apply(graph.module)
        for change in (Calibrate(quantize), QuantizeOps(quantize), QuantizeIo(quantize)):
            change.apply(graph.module)
    return graph.content


# The largest are larger than the caches of a core, as floats.
_VECTORS = ((1, 16), (8, 64), (512, 128), (4096, 256))


# Other operators of integers take milliseconds for the largest.
_SLOW = (
    *("abs", "add:far", "equal", "hard_swish", "l2_normalization", "less", "log_softmax", "mul:far", "prelu"),
    *("reduce_prod", "relu", "relu6", "rsqrt", "softmax", "sqrt", "squared_difference", "sub:far"),
)


def _vectors(kind: str) -> Sequence[Sequence[int]]:
    return _VECTORS[:-1] if kind in _SLOW else _VECTORS


def _unary(name: str, result: Uniform = _USUAL, **options: Any) -> Case:
    shapes = _vectors(name)
    return Case(name, [[shape] for shape in shapes], shapes, result=result, options=options)


def _binary(
    kind: str,
    operands: Sequence[Uniform] = (_USUAL, _USUAL),
    *,
    has_scalar: bool = False,
    result: Uniform | IntegerType = _USUAL,
) -> Case:
    has_activation = kind.partition(":")[0] in ("add", "sub", "mul")
    options = {"fused_activation_function": "NONE"} if has_activation else {}
    return Case(
        kind,
        [[shape, () if has_scalar else shape] for shape in _vectors(kind)],
        _vectors(kind),
        operands=operands,
        result=result,
        options=options,
        has_constant=has_scalar,
    )


def _reduction(name: str) -> Case:
    shapes = _vectors(name)
    return Case(
        name,
        [[shape] for shape in shapes],
        [(rows, 1) for rows, _ in shapes],
        options={"keep_dims": True},
        integers=[(1,)],
    )


def _product(kind: str, right: Uniform) -> Case:
    shapes = [[(1, 1, 4, 8)] * 2, [(1, 2, 8, 16)] * 2, [(1, 4, 128, 32)] * 2]
    return Case(
        kind,
        shapes,
        [(1, 1, 4, 4), (1, 2, 8, 8), (1, 4, 128, 128)],
        operands=(_USUAL, right),
        options={"adj_x": False, "adj_y": True},
    )


# Images.
_IMAGES = ((1, 2, 2, 4), (1, 8, 8, 8), (1, 64, 64, 16), (1, 128, 128, 64))


def _image(name: str, *integers: Any, width: Fraction, channels: Fraction = Fraction(1), **options: Any) -> Case:
    """Returns an operator of images, given by how much it changes their width and their channels."""
    results = [(1, int(size * width), int(size * width), int(depth * channels)) for _, size, _, depth in _IMAGES]
    sizes = slice(1, 3) if name.startswith("resize") else None
    return Case(name, [[shape] for shape in _IMAGES], results, options=options, integers=integers, sizes=sizes)


def _pool(name: str) -> Case:
    options: dict[str, Any] = {
        "padding": "VALID",
        "filter_width": 2,
        "filter_height": 2,
        "stride_w": 2,
        "stride_h": 2,
        "fused_activation_function": "NONE",
    }
    return _image(name, width=Fraction(1, 2), **options)


# Quarters of the vectors.
_QUARTERS = [(rows, size // 4) for rows, size in _VECTORS]


def _stacked(shapes: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    return [(4, *shape) for shape in shapes]


_DENSE: dict[str, Any] = {
    "fused_activation_function": "NONE",
    "weights_format": "DEFAULT",
    "keep_num_dims": False,
    "asymmetric_quantize_inputs": False,
}


def _dense(kind: str, *sizes: tuple[int, int, int]) -> Case:
    """Returns dense layers, given their rows, inputs and outputs."""
    return Case(
        kind,
        [[(rows, inputs)] for rows, inputs, _ in sizes],
        [(rows, outputs) for rows, _, outputs in sizes],
        weights=[(outputs, inputs) for _, inputs, outputs in sizes],
        options=_DENSE,
    )


_CONVOLUTION: dict[str, Any] = {
    "padding": "SAME",
    "stride_w": 1,
    "stride_h": 1,
    "dilation_w_factor": 1,
    "dilation_h_factor": 1,
    "fused_activation_function": "NONE",
}


def _convolution(kind: str, *sizes: tuple[int, int, int]) -> Case:
    """Returns convolutions of 3 by 3, given the width of the image, the channels and those of the result."""
    return Case(
        kind,
        [[(1, width, width, channels)] for width, channels, _ in sizes],
        [(1, width, width, results) for width, _, results in sizes],
        weights=[(results, 3, 3, channels) for _, channels, results in sizes],
        options=_CONVOLUTION,
    )


def _depthwise(*sizes: tuple[int, int]) -> Case:
    """Returns depthwise convolutions of 3 by 3, given the width of the image and the channels."""
    shapes = [(1, width, width, channels) for width, channels in sizes]
    return Case(
        "depthwise_conv_2d",
        [[shape] for shape in shapes],
        shapes,
        weights=[(1, 3, 3, channels) for _, channels in sizes],
        options={"depth_multiplier": 1, **_CONVOLUTION},
    )


def _transposed(*sizes: tuple[int, int, int]) -> Case:
    """Returns transposed convolutions of 2 by 2, given the width of the image, the channels and those of the result."""
    return Case(
        "transpose_conv",
        [[(1, width, width, channels)] for width, channels, _ in sizes],
        [(1, 2 * width, 2 * width, results) for width, _, results in sizes],
        weights=[(results, 2, 2, channels) for _, channels, results in sizes],
        options={"padding": "VALID", "stride_w": 2, "stride_h": 2, "fused_activation_function": "NONE"},
    )


_STEPS = Uniform(I8, (1 / 256,), (-128,))

CASES: Sequence[Case] = (
    _unary("quantize"),
    _unary("dequantize"),
    _unary("abs"),
    _unary("elu"),
    _unary("exp"),
    _unary("gelu", approximate=False),
    _unary("hard_swish"),
    _unary("l2_normalization", Uniform(I8, (1 / 128,), (0,)), fused_activation_function="NONE"),
    _unary("leaky_relu", alpha=0.2),
    _unary("log"),
    _unary("log_softmax", Uniform(I8, (16 / 256,), (127,))),
    _unary("logistic", _STEPS),
    _unary("relu"),
    _unary("relu6"),
    _unary("rsqrt"),
    _unary("softmax", _STEPS, beta=1.0),
    _unary("sqrt"),
    _unary("tanh", Uniform(I8, (1 / 128,), (0,))),
    _binary("add"),
    _binary("add:far", (_USUAL, _FAR), has_scalar=True),
    _binary("sub"),
    _binary("sub:far", (_USUAL, _FAR), has_scalar=True),
    _binary("mul"),
    _binary("mul:far", (_USUAL, _FAR), has_scalar=True),
    _binary("maximum"),
    _binary("minimum"),
    _binary("squared_difference"),
    _binary("equal", result=types.I1),
    _binary("less", result=types.I1),
    Case(
        "prelu",
        [[shape, (1, shape[-1])] for shape in _vectors("prelu")],
        _vectors("prelu"),
        operands=(_USUAL, _CENTERED),
        has_constant=True,
    ),
    _reduction("mean"),
    _reduction("sum"),
    _reduction("reduce_max"),
    _reduction("reduce_min"),
    _reduction("reduce_prod"),
    Case(
        "arg_max",
        [[shape] for shape in _VECTORS],
        [(rows,) for rows, _ in _VECTORS],
        result=types.I32,
        options={"output_type": "INT32"},
        integers=[1],
    ),
    _pool("average_pool_2d"),
    _pool("max_pool_2d"),
    _image("resize_bilinear", width=Fraction(2), align_corners=False, half_pixel_centers=True),
    _image("resize_nearest_neighbor", width=Fraction(2), align_corners=False, half_pixel_centers=True),
    _image("space_to_depth", width=Fraction(1, 2), channels=Fraction(4), block_size=2),
    _image("depth_to_space", width=Fraction(2), channels=Fraction(1, 4), block_size=2),
    Case(
        "space_to_batch_nd",
        [[shape] for shape in _IMAGES],
        [(4, size // 2, size // 2, depth) for _, size, _, depth in _IMAGES],
        integers=[(2, 2), ((0, 0), (0, 0))],
    ),
    Case(
        "batch_to_space_nd",
        [[(4, size // 2, size // 2, depth)] for _, size, _, depth in _IMAGES],
        _IMAGES,
        integers=[(2, 2), ((0, 0), (0, 0))],
    ),
    Case(
        "reshape",
        [[(16,)], [(512,)], [(65536,)], [(1 << 20,)]],
        [(2, 8), (64, 8), (8192, 8), (1 << 17, 8)],
        integers=[(-1, 8)],
    ),
    Case(
        "transpose",
        [[(1, 2, 2, 4)], [(1, 8, 4, 16)], [(1, 128, 4, 128)], [(1, 512, 16, 128)]],
        [(1, 2, 2, 4), (1, 4, 8, 16), (1, 4, 128, 128), (1, 16, 512, 128)],
        integers=[(0, 2, 1, 3)],
    ),
    Case(
        "concatenation",
        [[(1, 8)] * 2, [(8, 32)] * 2, [(512, 64)] * 2, [(4096, 128)] * 2],
        _VECTORS,
        options={"axis": 1, "fused_activation_function": "NONE"},
    ),
    Case(
        "pack",
        [[part] * 4 for part in _QUARTERS],
        _stacked(_QUARTERS),
        operands=(_USUAL,) * 4,
        options={"values_count": 4, "axis": 0},
    ),
    Case("unpack", [[stack] for stack in _stacked(_QUARTERS)], _QUARTERS, options={"num": 4, "axis": 0}, parts=4),
    Case("split", [[shape] for shape in _VECTORS], _QUARTERS, options={"num_splits": 4}, integers=[1], parts=4),
    Case(
        "slice",
        [[shape] for shape in _VECTORS],
        [(rows, size - 1) for rows, size in _VECTORS],
        integers=[(0, 1), (-1, -1)],
    ),
    Case(
        "pad",
        [[shape] for shape in _VECTORS],
        [(rows, size + 2) for rows, size in _VECTORS],
        integers=[((0, 0), (1, 1))],
    ),
    Case(
        "mirror_pad",
        [[shape] for shape in _VECTORS],
        [(rows, size + 2) for rows, size in _VECTORS],
        options={"mode": "REFLECT"},
        integers=[((0, 0), (1, 1))],
    ),
    Case("reverse_v2", [[shape] for shape in _VECTORS], _VECTORS, integers=[(1,)]),
    Case("tile", [[shape] for shape in _QUARTERS], _VECTORS, integers=[(1, 4)]),
    Case("broadcast_to", [[(1, size)] for _, size in _VECTORS], _VECTORS, sizes=slice(None)),
    Case("select_v2", [[shape] * 3 for shape in _VECTORS], _VECTORS, operands=(types.I1, _USUAL, _USUAL)),
    Case(
        "gather",
        [[(128, size), (rows,)] for rows, size in _VECTORS],
        _VECTORS,
        operands=(_USUAL, types.I32),
        options={"axis": 0, "batch_dims": 0},
    ),
    Case("gather_nd", [[(128, size), (rows, 1)] for rows, size in _VECTORS], _VECTORS, operands=(_USUAL, types.I32)),
    _dense("fully_connected", (1, 16, 16), (1, 32, 32), (32, 32, 32)),
    _dense("fully_connected:thin", (1, 8, 32), (32, 8, 32)),
    _convolution("conv_2d", (1, 16, 4), (8, 8, 8), (28, 8, 8), (112, 8, 8)),
    _convolution("conv_2d:thin", (4, 1, 8), (28, 1, 8), (64, 1, 8)),
    _depthwise((2, 8), (8, 16), (28, 32), (64, 64)),
    _transposed((1, 8, 4), (4, 8, 8), (14, 8, 8), (56, 8, 8)),
    _product("batch_matmul", _CENTERED),
    _product("batch_matmul:zero point", _USUAL),
    Case(LSTM, [[(1, 1, 4)], [(1, 10, 8)], [(1, 50, 64)]], [(1, 1, 4), (1, 10, 8), (1, 50, 64)]),
)


def _interpreter(content: bytes) -> Any:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    random = np.random.default_rng(1)
    for each in interpreter.get_input_details():
        is_float = each["dtype"] is np.float32
        value = random.uniform(0.1, 2, each["shape"]) if is_float else random.integers(4, 100, each["shape"])
        interpreter.set_tensor(each["index"], value.astype(each["dtype"]))
    interpreter.invoke()
    return interpreter


def measured(case: Case, index: int) -> list[float]:
    """Returns the microseconds of one operator with integers and with floats."""
    contents = [
        case.content(index, copies, with_integers=with_integers)
        for with_integers in (True, False)
        for copies in (1, COPIES[index])
    ]
    one, several, one_float, several_float = microseconds_of([_interpreter(content) for content in contents], SECONDS)
    pairs = ((one, several), (one_float, several_float))
    return [max(after - before, 0.0) / (COPIES[index] - 1) for before, after in pairs]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("integer_speed", __doc__)
    parser.add_argument("--only", default="", metavar="NAME,...", help="these operators")
    options = parser.parse_args(arguments)
    print("operator", "work", "integers", "floats", sep="\t")
    for case in CASES:
        if options.only and case.kind not in options.only.split(","):
            continue
        for index in range(len(case.results)):
            integers, floats = measured(case, index)
            print(case.kind, case.work(index), f"{integers:.3f}", f"{floats:.3f}", sep="\t", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
