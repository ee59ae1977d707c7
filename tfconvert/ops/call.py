"""The input of a kernel: an op's name, the values of its operands and its attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.operation import Operation

Array = np.ndarray[Any, np.dtype[Any]]
Dtype = np.dtype[Any]
Results = tuple[Array, ...]


class Call(NamedTuple):
    """One op, ready to be computed.

    Attributes:
        op: The name in TensorFlow's registry, `Conv2D`.
        inputs: The operands' values; strings are object arrays of bytes. Never written to.
        attributes: OpDef attributes as Python values: `int`, `float`, `bool`, `str`, `bytes`, tuples, numpy dtypes for
            types, tuples of dimensions for shapes (-1 where unknown, `None` for an unknown rank). One that is absent
            has TensorFlow's default.
    """

    op: str
    inputs: tuple[Array, ...]
    attributes: Mapping[str, object]

    def flag(self, name: str, default: bool = False) -> bool:
        """Returns a boolean attribute."""
        return bool(self.attributes.get(name, default))

    def integer(self, name: str, default: int = 0) -> int:
        """Returns an integer attribute."""
        value = self.attributes.get(name, default)
        if not isinstance(value, int):
            raise self.bad(f"attribute {name!r} is not an integer")
        return value

    def number(self, name: str, default: float = 0.0) -> float:
        """Returns a float attribute, which TensorFlow keeps in 32 bits."""
        value = self.attributes.get(name, default)
        if not isinstance(value, int | float):
            raise self.bad(f"attribute {name!r} is not a number")
        return float(np.float32(value))

    def text(self, name: str, default: str = "") -> str:
        """Returns a string attribute."""
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else str(value)

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Returns an attribute that is a list of integers, or a shape of known rank."""
        value = self.attributes.get(name, default)
        if not isinstance(value, tuple | list):
            raise self.bad(f"attribute {name!r} is not a list of integers")
        return tuple(value)

    def dtype(self, name: str, default: Any = np.float32) -> Dtype:
        """Returns a type attribute."""
        value: Any = self.attributes.get(name, default)
        dtype: Dtype = np.dtype(value)
        return dtype

    def bad(self, message: str) -> ConversionError:
        """Returns the error of operands or attributes that the op can't work with."""
        return error("bad-operand", message, op=f"tf.{self.op}")


def call_of(op: Operation, inputs: Sequence[Array]) -> Call:
    """Returns the kernel call of a `tf` op.

    Type attributes and counts that the IR leaves to the types of the results are passed explicitly.

    Args:
        op: The op.
        inputs: Its operands' values.

    Raises:
        ConversionError: An attribute is of a kind that no kernel knows (`bad-operand`).
    """
    try:
        attributes = {name: tf.python_value(value) for name, value in op.properties.items()}
    except TypeError as problem:
        raise error(
            "bad-operand", f"an attribute has no value: {problem}", op=op.name, node=node_of(op.location)
        ) from problem
    op_def = op.op_def if isinstance(op, tf.TFOp) else None
    at = 0
    for arg in op_def.output_arg if op_def is not None else ():
        if arg.number_attr and arg.number_attr not in attributes:
            attributes[arg.number_attr] = len(op.results) - len(op_def.output_arg) + 1 if op_def is not None else 0
        if arg.type_attr and arg.type_attr not in attributes and at < len(op.results):
            entry = types.from_mlir(op.results[at].element)
            attributes.update({} if entry is None else {arg.type_attr: entry.dtype})
        count = attributes.get(arg.number_attr, 1)
        at += count if isinstance(count, int) else 1
    held = types.held_by(op.results[0].type) if op.results else None
    if held is not None and (entry := types.from_mlir(types.element_of(held))) is not None:
        attributes.setdefault("element_dtype", entry.dtype)
    return Call(op.name.removeprefix("tf."), tuple(inputs), attributes)


Kernel = Callable[[Call], Results]
Function = Callable[..., Any]

_NARROW = frozenset({"float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"})


def wide(array: Array) -> Array:
    """Returns floats of less than 32 bits as float32, in which TensorFlow accumulates them; all else as it is."""
    return array.astype(np.float32) if array.dtype.name in _NARROW else array


def typed(value: Any, dtype: Dtype) -> Array:
    """Returns a value as an array of a dtype, a copy only where needed."""
    return np.asarray(value).astype(dtype, copy=False)


def boxed(value: object) -> Array:
    """Returns the object that a scalar holds: a list, or the state behind a handle."""
    result = np.empty((), object)
    result[()] = value
    return result


def is_float(dtype: Dtype) -> bool:
    """Returns whether a dtype is a real floating-point one, ml_dtypes' included."""
    return dtype.kind == "f" or dtype.name in _NARROW


def is_integer(dtype: Dtype) -> bool:
    """Returns whether a dtype is an integer one, signed or not."""
    return dtype.kind in "iu"


def lowest(dtype: Dtype) -> Any:
    """Returns the value that no other is less than."""
    if is_float(dtype):
        return np.array(-np.inf).astype(dtype)[()]
    return np.False_ if dtype.kind == "b" else np.iinfo(dtype).min


def highest(dtype: Dtype) -> Any:
    """Returns the value that no other is greater than."""
    if is_float(dtype):
        return np.array(np.inf).astype(dtype)[()]
    return np.True_ if dtype.kind == "b" else np.iinfo(dtype).max


def scalar(array: Array) -> int:
    """Returns an operand of one element, an axis for example, as an `int`."""
    return int(array.reshape(-1)[0])


def ints(array: Array) -> tuple[int, ...]:
    """Returns an integer operand, a shape or a list of axes for example, as a tuple."""
    return tuple(int(value) for value in array.reshape(-1))
