"""Recipes of ops on elements: an op, and operands that suit it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from tests.differential.random_graphs.program import Builder, Ref
from tests.differential.random_graphs.values import ALL, FLOATS, INTEGERS, NUMBERS, SIGNED, draw_array, draw_type

Recipe = Callable[[Builder], object]

_UNARY: Mapping[Sequence[str], str] = {
    FLOATS: "Exp Log Log1p Expm1 Sqrt Rsqrt Sin Cos Tan Tanh Sigmoid Elu Selu Softplus Softsign Floor Ceil Rint Erf "
    "Erfc Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Lgamma Reciprocal Inv IsNan IsInf IsFinite",
    NUMBERS: "Relu Relu6",
    SIGNED + FLOATS: "Abs Neg Sign Square",
    FLOATS[:2]: "Round",  # TensorFlow's kernel gives zeros for integers.
    INTEGERS: "Invert PopulationCount",
    ALL: "ZerosLike OnesLike Identity StopGradient Shape Size Rank",
    ("complex64",): "ComplexAbs Real Imag Conj Angle",
}

_BINARY: Mapping[Sequence[str], str] = {
    NUMBERS: "Add AddV2 Sub Mul Div RealDiv FloorDiv FloorMod Maximum Minimum Pow SquaredDifference Less LessEqual "
    "Greater GreaterEqual Equal NotEqual TruncateDiv Mod TruncateMod",
    ("float32", "float16", "float64"): "DivNoNan MulNoNan Xdivy Xlogy Xlog1py Atan2 NextAfter ApproximateEqual",
    INTEGERS: "BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift",
    ("bool",): "LogicalAnd LogicalOr Equal NotEqual",
    ("complex64",): "AddV2 Mul Sub",
}

_KEYS = {
    "Sign": "x",
    "Shape": "input",
    "Size": "input",
    "Rank": "input",
    "Identity": "input",
    "StopGradient": "input",
    "Real": "input",
    "Imag": "input",
    "Conj": "input",
    "Angle": "input",
    "Relu": "features",
    "Relu6": "features",
    "Elu": "features",
    "Selu": "features",
    "Softplus": "features",
    "Softsign": "features",
}


def _unary(op: str, types: Sequence[str], build: Builder) -> None:
    build.op(op, **{_KEYS.get(op, "x"): build.pick(types)})


def broadcastable(build: Builder, other: Ref) -> Ref:
    """Returns a value of another's type, and of a shape that broadcasts with its shape."""
    name, shape = build.type_of(other), build.array(other).shape
    if build.random.random() < 0.5:
        return build.pick([name], shape=shape)
    kept = shape[build.random.randint(0, len(shape)) :]
    smaller = [1 if build.random.random() < 0.3 else size for size in kept]
    return build.leaf(draw_array(build.random, name, smaller), 0.5)


def _binary(op: str, types: Sequence[str], build: Builder) -> None:
    one = build.pick(types)
    other = broadcastable(build, one)
    if build.random.random() < 0.5:
        one, other = other, one
    build.op(op, x=one, y=other)


def _select(build: Builder) -> None:
    one = build.pick()
    condition = build.pick(["bool"], shape=build.array(one).shape)
    other = broadcastable(build, one)
    if build.random.random() < 0.3:
        build.op("Select", condition=condition, x=one, y=build.pick([build.type_of(one)], shape=build.array(one).shape))
    else:
        build.op("SelectV2", condition=condition, t=one, e=other)


def _clip(build: Builder) -> None:
    one = build.pick(NUMBERS)
    low, high = (build.leaf(draw_array(build.random, build.type_of(one), ()), 0.8) for _ in range(2))
    if build.array(low) <= build.array(high):
        build.op("ClipByValue", t=one, clip_value_min=low, clip_value_max=high)


def _cast(build: Builder) -> None:
    one = build.pick()
    to = draw_type(build.random, ALL)
    value = build.array(one)
    if str(value.dtype) in FLOATS and to in INTEGERS and value.size:
        # What is out of range is undefined in TensorFlow.
        info, wide = np.iinfo(to), value.astype(np.float64)
        if not (np.isfinite(wide).all() and wide.min() > info.min - 1 and wide.max() < info.max):
            return
    build.op("Cast", x=one, DstT=build.tf.as_dtype(to))


def _bitcast(build: Builder) -> None:
    one = build.pick(NUMBERS)
    build.op("Bitcast", input=one, type=build.tf.as_dtype(draw_type(build.random, NUMBERS)))


def _leaky(build: Builder) -> None:
    build.op("LeakyRelu", features=build.pick(FLOATS), alpha=build.random.choice((0.2, 0.0, 1.0, 2.0, -0.5)))


def _add_n(build: Builder) -> None:
    one = build.pick(NUMBERS)
    count = build.random.randint(1, 4)
    shape = build.array(one).shape
    values = [one, *(build.pick([build.type_of(one)], shape=shape) for _ in range(count - 1))]
    build.op("AddN", inputs=values)


def _bias(build: Builder) -> None:
    one = build.pick(NUMBERS, rank=range(2, 6))
    bias = build.leaf(draw_array(build.random, build.type_of(one), build.array(one).shape[-1:]), 0.8)
    build.op("BiasAdd", value=one, bias=bias)


def _bucketize(build: Builder) -> None:
    borders = sorted(round(build.random.uniform(-5, 5), 1) for _ in range(build.random.randint(0, 5)))
    build.op("Bucketize", input=build.pick(("float32", "int32", "int64", "float64")), boundaries=borders)


def _fake_quant(build: Builder) -> None:
    low, high = sorted((build.random.uniform(-8, 2), build.random.uniform(-1, 8)))
    build.op(
        "FakeQuantWithMinMaxArgs",
        inputs=build.pick(["float32"]),
        min=low,
        max=high,
        num_bits=build.random.choice((8, 8, 4, 16)),
        narrow_range=build.random.random() < 0.3,
    )


def _logical_not(build: Builder) -> None:
    build.op("LogicalNot", x=build.pick(["bool"]))


def _gradient(op: str, build: Builder) -> None:
    one = build.pick(["float32"])
    other = build.pick(["float32"], shape=build.array(one).shape)
    keys = {"ReluGrad": ("gradients", "features"), "Relu6Grad": ("gradients", "features")}.get(op, ("y", "dy"))
    build.op(op, **dict(zip(keys, (one, other), strict=True)))


_GRADIENTS = "ReluGrad Relu6Grad SigmoidGrad TanhGrad SqrtGrad RsqrtGrad ReciprocalGrad"

# Recipes by name; the op's name comes first, then the types if there are several recipes.
ELEMENTWISE: dict[str, Recipe] = {
    **{f"{op}.{types[0]}": partial(_unary, op, types) for types, ops in _UNARY.items() for op in ops.split()},
    **{f"{op}.{types[0]}": partial(_binary, op, types) for types, ops in _BINARY.items() for op in ops.split()},
    **{op: partial(_gradient, op) for op in _GRADIENTS.split()},
    "Select": _select,
    "ClipByValue": _clip,
    "Cast": _cast,
    "Bitcast": _bitcast,
    "LeakyRelu": _leaky,
    "AddN": _add_n,
    "BiasAdd": _bias,
    "Bucketize": _bucketize,
    "FakeQuantWithMinMaxArgs": _fake_quant,
    "LogicalNot": _logical_not,
}
