"""Graphs of one op, with operands made from short texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import tfconvert
from tfconvert.schema.dialects import types
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

Array = np.ndarray[Any, np.dtype[Any]]
_SPEC = re.compile(r"(=?)(\w+)\[([?\d,]*)\](?:@(-?[\d.]+):(-?[\d.]+))?")
_DTYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "c64": np.complex64,
    **{f"i{width}": f"int{width}" for width in (8, 16, 32, 64)},
    **{f"ui{width}": f"uint{width}" for width in (8, 16, 32, 64)},
}
_TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2}


@dataclass(frozen=True)
class Case:
    """A graph of one op.

    Attributes:
        op: The op.
        operands: `f32[2,3]` is a random input, `f32[?2,3]` one whose first dimension is dynamic in the graph,
            `=f32[2,3]` a random constant, `@low:high` their range; anything else is a constant.
        attributes: The op's attributes.
        results: The number of results to compare, all by default.
        tolerance: Largest error of floats, relative to the largest value where that is more than one.
    """

    op: str
    operands: Sequence[Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    results: int | None = None
    tolerance: float = 2e-6

    def __str__(self) -> str:
        texts = [
            operand if isinstance(operand, str) else str(np.asarray(operand).tolist()) for operand in self.operands
        ]
        return f"{self.op}({' '.join(texts)[:60]})"


@dataclass(frozen=True)
class Operand:
    """An operand of a case.

    Attributes:
        value: Its value.
        shape: Its placeholder's shape, -1 where dynamic; `None` for a constant.
    """

    value: Array
    shape: tuple[int, ...] | None


def operand(spec: Any, seed: int) -> Operand:
    """Returns the operand that a case's text, array or number represents."""
    if not isinstance(spec, str):
        array = np.asarray(spec)
        narrow = {"i": np.int32, "f": np.float32} if not isinstance(spec, np.ndarray) else {}
        return Operand(array.astype(narrow.get(array.dtype.kind, array.dtype)), None)
    found = _SPEC.fullmatch(spec)
    assert found is not None, spec
    dims = [dim for dim in found[3].split(",") if dim]
    shape = tuple(int(dim.lstrip("?")) for dim in dims)
    dtype: np.dtype[Any] = np.dtype(_DTYPES[found[2]])
    random = np.random.default_rng(seed)
    unsigned = dtype.kind == "u"
    low, high = (float(found[4]), float(found[5])) if found[4] else (0.0 if unsigned else -4.0, 4.0)
    value: Array = random.uniform(low, high, shape)
    if dtype.kind == "b":
        value = value > (low + high) / 2
    elif dtype.kind in "iu":
        value = np.floor(value)
    elif dtype.kind == "c":
        value = value + 1j * random.uniform(low, high, shape)
    open_shape = tuple(-1 if dim[0] == "?" else int(dim) for dim in dims)
    return Operand(np.asarray(value).astype(dtype), None if found[1] else open_shape)


def _number(dtype: np.dtype[Any]) -> Any:
    """Returns a `DataType`; the generated code's annotations take no plain number for one."""
    return types.from_dtype(dtype).number


def graph(case: Case, operands: Sequence[Operand]) -> pb.GraphDef:
    """Returns the graph of a case: operands `x0`, `x1`, ... and the op `y`."""
    result = pb.GraphDef(versions=pb.VersionDef(producer=1882))
    for index, each in enumerate(operands):
        node = result.node.add(name=f"x{index}", op="Const" if each.shape is None else "Placeholder")
        number = _number(each.value.dtype)
        node.attr["dtype"].type = number
        dims = each.value.shape if each.shape is None else each.shape
        shape = pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=dim) for dim in dims])
        if each.shape is None:
            node.attr["value"].tensor.CopyFrom(
                pb.TensorProto(dtype=number, tensor_shape=shape, tensor_content=each.value.tobytes())
            )
        else:
            node.attr["shape"].shape.CopyFrom(shape)
    node = result.node.add(name="y", op=case.op, input=[f"x{index}" for index in range(len(operands))])
    _set_attributes(node, case, operands)
    return result


def _set_attributes(node: pb.NodeDef, case: Case, operands: Sequence[Operand]) -> None:
    definition = op_defs.lookup(case.op)
    assert definition is not None
    lists = [arg for arg in definition.input_arg if arg.number_attr]
    repeated = (len(operands) - len(definition.input_arg) + len(lists)) // max(len(lists), 1)
    position = 0
    for arg in definition.input_arg:
        if arg.type_attr:
            node.attr[arg.type_attr].type = _number(operands[position].value.dtype)
        if arg in lists:
            node.attr[arg.number_attr].i = repeated
        position += repeated if arg in lists else 1
    kinds = {attr.name: attr.type for attr in definition.attr}
    for name, value in case.attributes.items():
        _set(node.attr[name], kinds[name], value)


def _set(attribute: pb.AttrValue, kind: str, value: Any) -> None:
    fields = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type"}
    if isinstance(value, str):
        value = value.encode()
    if kind.startswith("list("):
        getattr(attribute.list, fields[kind[5:-1]]).extend(value)
        if not value:
            attribute.list.SetInParent()
    elif kind == "shape":
        attribute.shape.CopyFrom(pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=dim) for dim in value]))
    elif kind == "type":
        attribute.type = _number(np.dtype(value))
    else:
        setattr(attribute, fields[kind], value)


def compare(case: Case, got: Array, expected: Array) -> None:
    """Asserts that dtype, shape and values are the same."""
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    if expected.dtype.kind in "fcV":
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        limit = max(case.tolerance, _TOLERANCE.get(expected.dtype.name, 0))
        finite = np.abs(expected[np.isfinite(expected.astype(wide))].astype(wide))
        np.testing.assert_allclose(
            got.astype(wide), expected.astype(wide), rtol=limit, atol=limit * max(1.0, finite.max(initial=0))
        )
    else:
        np.testing.assert_array_equal(got, expected)


def converted(case: Case, folder: Path) -> tfconvert.Model:
    """Converts a graph of one op.

    Args:
        case: The op.
        folder: A folder for the graph.
    """
    operands = [operand(spec, index) for index, spec in enumerate(case.operands)]
    path = folder / "graph.pb"
    path.write_bytes(graph(case, operands).SerializeToString())
    inputs = [f"x{index}" for index, each in enumerate(operands) if each.shape is not None]
    return tfconvert.convert(path, inputs=inputs, outputs=["y"])


Check = Callable[[Case], list[str]]
CheckPair = Callable[[Case, Case, Sequence[int], Sequence[int]], None]
