"""Long chains of every kind: the work of a conversion grows no faster than they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

import tfconvert
from tests.hardening.graphs import BOOL, FLOAT, INT, add, call, const, function, graph
from tests.support.work import calls
from tfconvert.converter.rewrite.rewriter import MAX_FUSED, fuse_locations
from tfconvert.schema.ir.locations import FusedLoc, Location, NameLoc
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

SHORT, TIMES = 50, 4

# How much more than `TIMES` the work may grow.
_SLACK = 1.2

Chain = Callable[[int], pb.GraphDef]


def _with_constants(*ops: str) -> Chain:
    """Ops with a constant each, in turn; it differs from op to op."""

    def build(length: int) -> pb.GraphDef:
        made, value = graph(), "x"
        for number in range(length):
            own = const(made, f"c{number}", np.arange(4, dtype=np.float32) + number + 1)
            value = add(made, f"n{number}", ops[number % len(ops)], value, own, T=FLOAT).name
        return made

    return build


def _unary(*ops: str) -> Chain:
    def build(length: int) -> pb.GraphDef:
        made, value = graph(), "x"
        for number in range(length):
            value = add(made, f"n{number}", ops[number % len(ops)], value, T=FLOAT).name
        return made

    return build


def _with_itself(op: str) -> Chain:
    def build(length: int) -> pb.GraphDef:
        made, value = graph(), "x"
        for number in range(length):
            value = add(made, f"n{number}", op, value, value, T=FLOAT).name
        return made

    return build


def _reshapes(length: int) -> pb.GraphDef:
    made, value = graph(), "x"
    for number in range(length):
        shape = const(made, f"c{number}", np.array(([2, 2], [4], [1, 4])[number % 3], np.int32))
        value = add(made, f"n{number}", "Reshape", value, shape, T=FLOAT, Tshape=INT).name
    return made


def _transposes(between: str) -> Chain:
    """Transpositions and reshapes that other ops stand between."""

    def build(length: int) -> pb.GraphDef:
        made, value = graph((2, 3, 4)), "x"
        for number in range(length // 3):
            order = const(made, f"p{number}", np.array([1, 2, 0], np.int32))
            value = add(made, f"t{number}", "Transpose", value, order, T=FLOAT, Tperm=INT).name
            shape = const(made, f"s{number}", np.array([2, 3, 4], np.int32))
            value = add(made, f"r{number}", "Reshape", value, shape, T=FLOAT, Tshape=INT).name
            value = add(made, f"n{number}", between, value, T=FLOAT).name
        return made

    return build


def _convolutions(length: int) -> pb.GraphDef:
    """Channels first, with scales, biases and activations to be fused."""
    made, value = graph((1, 2, 4, 4)), "x"
    rng = np.random.default_rng(0)
    for number in range(length // 5):
        order = const(made, f"p{number}", np.array([0, 2, 3, 1], np.int32))
        last = add(made, f"t{number}", "Transpose", value, order, T=FLOAT, Tperm=INT).name
        weights = const(made, f"w{number}", rng.random((1, 1, 2, 2), np.float32))
        add(
            made,
            f"c{number}",
            "Conv2D",
            last,
            weights,
            T=FLOAT,
            strides=[1, 1, 1, 1],
            padding=b"SAME",
            data_format=b"NHWC",
        )
        back = const(made, f"q{number}", np.array([0, 3, 1, 2], np.int32))
        add(made, f"u{number}", "Transpose", f"c{number}", back, T=FLOAT, Tperm=INT)
        bias = const(made, f"b{number}", rng.random((2, 1, 1), np.float32))
        add(made, f"a{number}", "AddV2", f"u{number}", bias, T=FLOAT)
        value = add(made, f"r{number}", "Relu", f"a{number}", T=FLOAT).name
    return made


def _calls(length: int) -> pb.GraphDef:
    """Functions that each call the next one."""
    made = graph()
    call(made, "y", "f0", "x")
    for number in range(length):
        is_last = number == length - 1
        body = function(made, f"f{number}", "e:y:0" if is_last else "c:output:0")
        add(body, "e", "Exp", "a", T=FLOAT)
        if not is_last:
            call(body, "c", f"f{number + 1}", "e:y:0")
    return made


def _conditionals(length: int) -> pb.GraphDef:
    """Conditionals one after another, all of one function."""
    made, value, floats = graph(()), "x", [str(FLOAT)]
    for number in range(length // 2):
        test = add(made, f"p{number}", "Greater", value, const(made, f"c{number}", np.float32(number)), T=FLOAT).name
        value = add(
            made,
            f"n{number}",
            "StatelessIf",
            test,
            value,
            Tin=floats,
            Tout=floats,
            Tcond=BOOL,
            then_branch="f",
            else_branch="g",
            output_shapes=[],
        ).name
    for name, op in (("f", "Exp"), ("g", "Neg")):
        add(function(made, name, "e:y:0"), "e", op, "a", T=FLOAT)
    return made


CHAINS: Mapping[str, Chain] = {
    "add": _with_constants("AddV2"),
    "mul": _with_constants("Mul"),
    "sub": _with_constants("Sub"),
    "div": _with_constants("RealDiv"),
    "mul and add": _with_constants("Mul", "AddV2"),
    "maximum and minimum": _with_constants("Maximum", "Minimum"),
    "pow": _with_constants("Pow"),
    "x * x": _with_itself("Mul"),
    "x + x": _with_itself("AddV2"),
    "activations": _unary("Relu", "Relu6", "Tanh", "Sigmoid", "Elu"),
    "negations and roots": _unary("Neg", "Abs", "Square", "Sqrt", "Rsqrt", "Exp", "Log"),
    "identities": _unary("Identity", "StopGradient"),
    "reshapes": _reshapes,
    "transposes and activations": _transposes("Relu"),
    "transposes and negations": _transposes("Neg"),
    "convolutions": _convolutions,
    "calls": _calls,
    "conditionals": _conditionals,
}


@pytest.mark.parametrize("name", CHAINS)
def test_the_work_grows_with_the_length(name: str) -> None:
    short, long = (CHAINS[name](SHORT * times) for times in (1, TIMES))
    tfconvert.convert(short)  # loads what these ops need
    few, many = calls(lambda: tfconvert.convert(short)), calls(lambda: tfconvert.convert(long))
    assert many < _SLACK * TIMES * few


def test_an_op_made_of_thousands_has_not_the_locations_of_all() -> None:
    location: Location = NameLoc.get("first")
    for number in range(1000):
        location = fuse_locations([location, NameLoc.get(f"n{number}")])
    assert isinstance(location, FusedLoc)
    assert len(location.locations) == MAX_FUSED
    assert location.locations[-1] is NameLoc.get("n999")
