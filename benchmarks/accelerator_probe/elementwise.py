"""Forms of operators that work element by element, and of reductions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.accelerator_probe.trial import Result, Shape, Trial, data, floats, integers, pairs, result_of
from benchmarks.kernel_probe.operators import (
    ARITHMETIC,
    BITS,
    COMPARISONS,
    LOGIC,
    OF_BOOLEANS,
    POSITIVE,
    REDUCTIONS,
    UNARY,
)
from benchmarks.kernel_probe.tensors import Tensor

SHAPES: Mapping[int, Shape] = {
    0: (),
    1: (6,),
    2: (3, 6),
    3: (2, 3, 6),
    4: (1, 3, 4, 6),
    5: (1, 2, 3, 4, 6),
    6: (1, 2, 2, 3, 2, 4),
}
"""A shape of each rank."""

ALL_SHAPES = (*[shape for rank, shape in SHAPES.items() if rank], (2, 3, 4, 6), (1, 6), (1, 3, 6), (1, 1, 1, 8))

R4 = SHAPES[4]

_FIXED = {
    "LOGISTIC": (1 / 256, -128),
    "SOFTMAX": (1 / 256, -128),
    "TANH": (1 / 128, 0),
    "L2_NORMALIZATION": (1 / 128, 0),
    "LOG_SOFTMAX": (16 / 256, 127),
    "EXP": (0.03, -128),
}


def _unary() -> Iterator[Trial]:
    for name, options in UNARY.items():
        low, high = (0.1, 4.0) if name in POSITIVE else (-6.0, 6.0)
        for shape in ((), *ALL_SHAPES):
            yield Trial(name, [data("f32", shape, low, high)], options=options)
        for kind in ("i8", "u8", "i16", "i32", "i64", "f16"):
            for rank in (4, 2, 5):
                x = data(kind, SHAPES[rank], low / 3, high / 3)
                if name in POSITIVE and kind == "i8":
                    x = Tensor("i8", x.value, (0.02,), (-128,))
                result = Result(kind, *_FIXED[name]) if kind == "i8" and name in _FIXED else result_of(kind)
                yield Trial(name, [x], [result], options)
    yield Trial("GELU", [data("f32", R4)], options={"approximate": True})
    for shape in ((6,), (3, 6), (2, 3, 6), R4):
        for slope in (-0.5, 0.0, 1.0, 1.5):
            for kind in ("f32", "i8"):
                x = data(kind, shape, -2.4, 2.4)
                yield Trial("LEAKY_RELU", [x], [result_of(kind)], {"alpha": slope})
    yield Trial("SOFTMAX", [data("f32", R4)], options={"beta": 0.5})
    yield Trial("SOFTMAX", [data("f32", (2, 6))], options={"beta": 0.5})
    yield Trial("SOFTMAX", [data("f32", (1, 3, 2, 257))], options={"beta": 1.0})
    yield Trial("SOFTMAX", [data("f32", (3, 1))], options={"beta": 1.0})
    for shape in ALL_SHAPES:
        yield Trial("LOGICAL_NOT", [data("bool", shape)], [Result("bool")])


def _slopes() -> Iterator[Trial]:
    slopes: Mapping[Shape, Sequence[Shape]] = {
        R4: ((6,), (1, 1, 6), (3, 4, 6), (1,), (3, 4, 1), (1, 3, 4, 6), (1, 1, 1, 6), (), (3, 1, 6), (1, 4, 6)),
        (2, 3, 6): ((6,), (1, 6), (), (3, 6)),
        (3, 6): ((6,), ()),
        (1, 6): ((),),
        (1, 3, 6): ((), (6,)),
        (1, 2, 3, 4, 6): ((6,),),
    }
    for shape, slope in pairs(slopes):
        yield Trial("PRELU", [data("f32", shape), data("f32", slope, 0.0, constant=True)])
    for slope in ((6,), (1, 1, 6), (3, 4, 6), (1, 3, 4, 6), (1, 1, 1, 6)):
        yield Trial("PRELU", [data("f32", R4), data("f32", slope, 0.0)])
    yield Trial("PRELU", [data("i8", R4), data("i8", (1, 1, 6), constant=True)], [result_of("i8")])


_ACTIVATED = ("ADD", "SUB", "MUL", "DIV")
_NARROW = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", *COMPARISONS)

# A computed operand and a constant, which come in this order and the other way round.
_WITH_CONSTANT: Mapping[Shape, Sequence[Shape]] = {
    R4: ((), (1,), (6,), (1, 1, 1, 6), R4, (3, 4, 6), (1, 3, 4, 1), (3, 4, 1), (4, 6), (1, 3, 1, 1), (1, 1, 4, 1)),
    (1, 1, 1, 6): (R4, (3, 4, 6)),
    (1, 3, 4, 1): ((6,),),
    (2, 3, 4, 6): ((6,), (2, 1, 1, 1), (2, 3, 4, 6), (3, 4, 6), (4, 6), (1, 3, 1, 6)),
    (1, 3, 1, 6): ((1, 1, 4, 1),),
    (2, 3, 6): ((6,), (1, 3, 6), (3, 6), (3, 1), (), (2, 3, 6), (2, 1, 1), (2, 1, 6), (1, 3, 1), (1, 1, 6)),
    (1, 3, 6): ((1, 3, 6), (3, 6), (6,), (2, 3, 6)),
    (2, 1, 6): ((1, 3, 6),),
    (3, 6): ((6,), (), (3, 1), (3, 6), (1, 6), (1, 1), (1,)),
    (1, 6): ((1, 6), (6,), (3, 6), (3, 1)),
    (6,): ((), (6,), (1,)),
    (1,): ((1,), ()),
    (): ((),),
    (1, 1, 1, 1): ((),),
    SHAPES[5]: ((), (6,), SHAPES[5]),
    SHAPES[6]: ((),),
}
_COMPUTED: Mapping[Shape, Sequence[Shape]] = {
    R4: ((1, 1, 1, 6), (6,), (1, 3, 4, 1), (3, 4, 6), (4, 6), (1, 1, 4, 6), (1, 1, 1, 1), (1,), ()),
    (1, 3, 4, 1): (R4,),
    (): (R4,),
    (1, 3, 1, 6): ((1, 1, 4, 1),),
    (2, 3, 4, 6): (R4, (2, 1, 1, 6), (6,)),
    (2, 3, 6): ((3, 1), (2, 3, 1), (2, 1, 6), (6,), (3, 6), ()),
    (3, 6): ((3, 1), (1, 6), (6,), ()),
    (3, 1): ((1, 6),),
    (6,): ((), R4),
    SHAPES[5]: ((6,),),
}
_FEW = (R4, (3, 6), (2, 3, 6), SHAPES[5])


def _options(name: str, kind: str) -> Mapping[str, Any]:
    if name in _ACTIVATED:
        is_exact = kind == "i16" and name in ("ADD", "SUB")
        return {"fused_activation_function": "NONE", **({"pot_scale_int16": False} if is_exact else {})}
    return {}


def _pairs(name: str, kind: str, *, thorough: bool) -> Iterator[Trial]:
    low, high = (0.2, 2.4) if name in ("DIV", "POW", "FLOOR_DIV", "FLOOR_MOD") else (-1.0, 1.0)
    if name in COMPARISONS and kind == "i8":
        low, high = -2.4, 2.4
    result = Result("bool") if name in COMPARISONS else result_of(kind)
    options = _options(name, kind)

    def trial(left: Tensor, right: Tensor) -> Trial:
        return Trial(name, [left, right], [result], options)

    def drawn(shape: Shape, *, constant: bool = False) -> Tensor:
        tensor = data(kind, shape, low, high, constant=constant)
        # Floats of which some are equal.
        return replace(tensor, value=np.round(2 * tensor.value) / 2) if name in COMPARISONS else tensor

    for computed, constant in pairs(_WITH_CONSTANT):
        if thorough or (computed in _FEW and constant in ((), (6,), computed)):
            yield trial(drawn(computed), drawn(constant, constant=True))
            if computed in (R4, (3, 6), (2, 3, 6)) or constant == ():
                yield trial(drawn(constant, constant=True), drawn(computed))
    for left, right in (*((shape, shape) for shape in ((), *ALL_SHAPES)), *pairs(_COMPUTED)):
        if thorough or (left in _FEW and right in (left, (1, 1, 1, 6), (3, 1))):
            yield trial(drawn(left), drawn(right))
    for shape in (R4, (3, 6)):
        x = drawn(shape)
        yield trial(x, x)


def _binary() -> Iterator[Trial]:
    for name in (*ARITHMETIC, *COMPARISONS):
        yield from _pairs(name, "f32", thorough=True)
        yield from _pairs(name, "i32", thorough=name in ("ADD", "MUL", "EQUAL", "MAXIMUM", "FLOOR_DIV", "LESS"))
        yield from _pairs(name, "i64", thorough=False)
        if name in _NARROW:
            yield from _pairs(name, "i8", thorough=name in ("ADD", "MUL"))
        for kind in ("u8", "i16") if name in ("ADD", "MUL", "EQUAL") else ():
            yield from _pairs(name, kind, thorough=False)
    for name in LOGIC:
        yield from _pairs(name, "bool", thorough=True)
    yield from _activated()
    yield from _shifts()


def _activated() -> Iterator[Trial]:
    for name in _ACTIVATED:
        for activation in ("RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT"):
            options = {"fused_activation_function": activation}
            for other in (
                data("f32", R4, 0.2),
                data("f32", (6,), 0.2, constant=True),
                data("f32", (), 0.2, constant=True),
            ):
                yield Trial(name, [data("f32", R4, 0.2), other], options=options)
            other = data("i8", R4, 0.2)
            yield Trial(name, [data("i8", R4, 0.2), other], [result_of("i8")], options)


def _shifts() -> Iterator[Trial]:
    for name in BITS:
        for other in (data("i32", R4), data("i32", (), constant=True), data("i32", (6,), constant=True)):
            yield Trial(name, [data("i32", R4), other], [Result("i32")])
        yield Trial(name, [data("i32", (3, 6)), data("i32", (3, 6))], [Result("i32")])
    for count in (2, 3, 4):
        yield Trial("ADD_N", [data("f32", R4) for _ in range(count)])
        yield Trial("ADD_N", [data("i32", R4) for _ in range(count)], [Result("i32")])


_AXES: Mapping[Shape, Sequence[Sequence[int]]] = {
    (6,): [(0,)],
    (3, 6): [(0,), (1,), (0, 1), (-1,)],
    (2, 3, 6): [(0,), (1,), (2,), (1, 2), (0, 1), (0, 1, 2), (-1,)],
    R4: [(0,), (1,), (2,), (3,), (1, 2), (2, 3), (1, 3), (1, 2, 3), (0, 1, 2, 3), (0, 3), (-1,), (-2, -3), ()],
    (2, 3, 4, 6): [(0,), (1, 2), (3,), (0, 1, 2), (0, 1, 2, 3)],
    (1, 3, 4, 8): [(3,), (1, 2)],
    SHAPES[5]: [(4,), (1, 2), (2, 3)],
}


def _reductions() -> Iterator[Trial]:
    for name in REDUCTIONS:
        for shape, sets in _AXES.items():
            for axes in sets:
                for keeps in (True, False):
                    options = {"keep_dims": keeps}
                    yield Trial(name, [data("f32", shape), integers(axes)], options=options)
                    if axes in ((1, 2), (1,), (2,), (4,), (0,), (3,)):
                        for kind in ("i8", "i32") + (("i64", "u8", "i16") if len(shape) in (2, 4) else ()):
                            yield Trial(name, [data(kind, shape), integers(axes)], [result_of(kind)], options)
        axes_given = integers((1, 2), constant=False)
        yield Trial(name, [data("f32", R4), axes_given], options={"keep_dims": True})
        yield Trial(name, [data("f32", R4), integers((1, 2), "i64")], options={"keep_dims": True})


def _of_flags() -> Iterator[Trial]:
    for name in OF_BOOLEANS:
        for shape, sets in _AXES.items():
            for axes in sets:
                for keeps in (True, False):
                    yield Trial(name, [data("bool", shape), integers(axes)], [Result("bool")], {"keep_dims": keeps})


def _extremes() -> Iterator[Trial]:
    for name in ("ARG_MAX", "ARG_MIN"):
        for shape in ((6,), (3, 6), (2, 3, 6), R4, (2, 3, 4, 6), SHAPES[5], (1, 8), (1, 1, 1, 1000), (1, 1000)):
            for axis in range(len(shape)):
                for output, kind in (("INT32", "i32"), ("INT64", "i64")):
                    options = {"output_type": output}
                    for low, high in ((-1.0, 1.0), (-2.0, -1.0)):
                        yield Trial(name, [data("f32", shape, low, high), integers(axis)], [Result(kind)], options)
        for kind in ("i8", "i32", "u8"):
            for shape in (R4, (3, 6), (1, 8)):
                last = integers(len(shape) - 1)
                for x in (data(kind, shape), data(kind, shape, -2.0, -1.0)):
                    yield Trial(name, [x, last], [Result("i32")], {"output_type": "INT32"})
        for at in (integers((-1,)), integers(3, "i64")):
            yield Trial(name, [data("f32", R4), at], [Result("i32")], {"output_type": "INT32"})


def _casts() -> Iterator[Trial]:
    names = {
        "f32": "FLOAT32",
        "i32": "INT32",
        "i64": "INT64",
        "bool": "BOOL",
        "int8": "INT8",
        "f16": "FLOAT16",
        "uint8": "UINT8",
    }
    shorts = {"int8": "i8", "uint8": "u8"}
    for source, first in names.items():
        for target, second in names.items():
            if source != target:
                for shape in (R4, (3, 6), SHAPES[5], ()):
                    short = shorts.get(source, source)
                    x = floats_or(short, shape)
                    result = Result(shorts.get(target, target))
                    yield Trial("CAST", [x], [result], {"in_data_type": first, "out_data_type": second})


def floats_or(kind: str, shape: Shape) -> Tensor:
    """Returns an operand of a type that is not quantized."""
    if kind in ("i8", "u8"):
        return Tensor(kind, data("i32", shape).value)
    return data(kind, shape, -5.0, 5.0)


def _quantization() -> Iterator[Trial]:
    for shape in (R4, (3, 6), SHAPES[5]):
        for kind in ("i8", "u8", "i16"):
            yield Trial("QUANTIZE", [data("f32", shape)], [result_of(kind)])
            yield Trial("DEQUANTIZE", [data(kind, shape)])
        yield Trial("QUANTIZE", [data("i8", shape)], [Result("i8", 0.04, -5)])
        yield Trial("QUANTIZE", [data("u8", shape)], [result_of("i8")])
        yield Trial("QUANTIZE", [data("i8", shape)], [result_of("u8")])
        yield Trial("DEQUANTIZE", [data("f16", shape)])
        yield Trial("FAKE_QUANT", [data("f32", shape)], options={"min": -1.0, "max": 1.0, "num_bits": 8})


def _choices() -> Iterator[Trial]:
    forms: Mapping[Shape, Sequence[tuple[Shape, Shape]]] = {
        R4: (
            (R4, R4),
            (R4, ()),
            ((), ()),
            ((), R4),
            (R4, (6,)),
            (R4, (1, 1, 1, 6)),
            ((6,), R4),
            (R4, (1,)),
            (R4, (1, 3, 4, 1)),
        ),
        (1, 1, 1, 6): ((R4, R4), (R4, ())),
        (1, 3, 4, 1): ((R4, R4), (R4, ())),
        (): ((R4, R4),),
        (2, 3, 6): (((2, 3, 6), (2, 3, 6)), ((2, 3, 6), ())),
        (3, 6): (((3, 6), (3, 6)), ((3, 6), ()), ((2, 3, 6), ()), ((1, 3, 6), ())),
        (6,): (((6,), (6,)), ((6,), ()), (R4, R4), (R4, ()), ((2, 3, 6), ()), ((3, 6), ())),
        SHAPES[5]: ((SHAPES[5], SHAPES[5]),),
        (4, 6): ((R4, R4), (R4, ()), ((2, 3, 4, 6), ())),
        (1, 4, 6): ((R4, R4), (R4, ())),
        (1, 1, 4, 6): ((R4, ()), ((2, 3, 4, 6), ())),
        (1, 3, 6): (((2, 3, 6), ()),),
        (2, 3, 1): (((2, 3, 6), ()),),
        (2, 1, 6): (((2, 3, 6), ()),),
        (3, 1): (((3, 6), ()),),
        (1, 6): (((3, 6), ()),),
        (2, 1, 1, 6): (((2, 3, 4, 6), ()),),
        (1,): ((R4, R4),),
        (1, 1, 1, 1): ((R4, R4),),
        (3,): (((3, 6), (3, 6)),),
        (2, 3, 4, 1): (((2, 3, 4, 6), ()),),
        (1, 4, 4): (((1, 4, 4), ()),),
        (4, 4): (((2, 4, 4), ()),),
    }
    for name in ("SELECT", "SELECT_V2"):
        for mask, (left, right) in pairs(forms):
            for is_constant in (False, True):
                operands = [data("bool", mask, constant=is_constant)]
                for shape in (left, right):
                    is_whole = len(shape) == max(len(left), len(right), len(mask)) and shape in (left,)
                    operands.append(data("f32", shape, constant=not is_whole))
                if any(not each.is_constant for each in operands[1:]) or not is_constant:
                    yield Trial(name, operands)
        for mask, left, right in ((R4, R4, R4), ((3, 6),) * 3, ((), R4, R4), (R4, R4, (6,))):
            for kind in ("i32", "i64", "i8", "bool"):
                operands = [data("bool", mask), data(kind, left), data(kind, right)]
                yield Trial(name, operands, [result_of(kind)])
        yield Trial(name, [data("bool", R4), data("f32", R4), data("f32", ())])
        yield Trial(name, [data("bool", R4), data("f32", R4), data("f32", R4, constant=True)])
        yield Trial(name, [data("bool", R4), data("f32", R4), data("f32", (1, 1, 1, 6))])


def trials() -> Iterator[Trial]:
    """Yields the forms."""
    yield from _unary()
    yield from _slopes()
    yield from _binary()
    yield from _reductions()
    yield from _of_flags()
    yield from _extremes()
    yield from _casts()
    yield from _quantization()
    yield from _choices()
    yield Trial("FILL", [integers((1, 3, 4, 6)), floats(1.0, constant=False)])
    for name in ("STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"):
        yield Trial(name, [data("f32", R4), data("f32", R4)])
    yield Trial("STABLEHLO_SHIFT_LEFT", [data("i32", R4), data("i32", R4)], [Result("i32")])
    yield Trial("BITCAST", [data("f32", R4)], [Result("i32")])
    yield Trial("BITCAST", [data("i32", (3, 6))], [Result("f32")])
    yield Trial("MATRIX_DIAG", [data("f32", (3, 6))])
    yield Trial("BUCKETIZE", [data("f32", (3, 6))], [Result("i32")], {"boundaries": [-0.5, 0.0, 0.5]})
