"""Looks up the declarations of ops, and runs their functions.

A declaration's module is loaded when the first op of its family is met.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from tfconvert.ops.call import Array, Call, Kernel, Results
from tfconvert.ops.computed import compute_by
from tfconvert.ops.declaration import Decomposition, OpDeclaration
from tfconvert.ops.index import DECOMPOSED, MODULES
from tfconvert.ops.operands import Operands, ShapeFunction
from tfconvert.ops.shape_functions import all_equal
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import UNKNOWN, MismatchError, Partial, merge, text
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult

WITHOUT_KERNEL: Mapping[str, str] = dict.fromkeys(
    ("Multinomial", "RandomStandardNormal", "RandomUniform"),
    "its numbers come from a generator whose state is TensorFlow's own; no others are right",
)
"""Ops that are converted but can't be computed here -> why."""

MODULE_OF: Mapping[str, str] = {name: module for module, names in MODULES.items() for name in names.split()}
"""Op name -> the module of its family."""

_DECOMPOSED = frozenset(DECOMPOSED.split())

_FOLLOWED = (types.I32, types.I64)

_loaded: dict[str, OpDeclaration] = {}


def declaration(op_name: str) -> OpDeclaration | None:
    """Returns the declaration of an op by its name in TensorFlow's registry, or `None`."""
    found = _loaded.get(op_name)
    if found is None and op_name in MODULE_OF:
        _loaded.update({each.name: each for each in family(MODULE_OF[op_name])})
        found = _loaded[op_name]
    return found


def family(module: str) -> tuple[OpDeclaration, ...]:
    """Returns the declarations of a module, none if it is not one of a family."""
    declared: tuple[OpDeclaration, ...] = getattr(import_module(f"tfconvert.ops.{module}"), "OPS", ())
    return declared


def shape_function(op_name: str) -> ShapeFunction | None:
    """Returns the shape function of an op by its name in TensorFlow's registry, or `None`."""
    found = declaration(op_name)
    return None if found is None else found.shape


def kernel(op_name: str) -> Kernel | None:
    """Returns the kernel of an op by its name in TensorFlow's registry, or `None`."""
    found = declaration(op_name)
    if found is not None and found.compute is None and found.decompose:
        formula, broadcasts = found.decompose[0].formula, found.shape is not all_equal
        return partial(compute_by, formula, evaluate, broadcasts=broadcasts)
    return None if found is None else found.compute


def is_declined(op: Operation) -> bool:
    """Returns whether only a formula computes an op, and it requires what this one hasn't."""
    found = declaration(op.name.removeprefix("tf."))
    if found is None or found.compute is not None or not found.decompose:
        return False
    requires = found.decompose[0].requires
    return requires is not None and requires(op) is not None


def decompositions(op_name: str) -> tuple[Decomposition, ...]:
    """Returns what an op is composed of, by its name in TensorFlow's registry: one for each kind of numbers."""
    found = declaration(op_name) if op_name in _DECOMPOSED else None
    return () if found is None else found.decompose


def infer_shapes(operands: Operands, noted: list[Shape | None]) -> list[Shape | None]:
    """Returns the results' shapes: what the op determines, merged with the results' types.

    Unknown dimensions that come from an operand are symbols; others are -1.

    Args:
        operands: The op.
        noted: The results' shapes as their types have them.

    Raises:
        ConversionError: Operands, attributes and result types contradict each other (`shape-mismatch`).
    """
    found = declaration(operands.op.name.removeprefix("tf."))
    if found is None or found.shape is None:
        return noted
    try:
        return [merge(*pair) for pair in zip(found.shape(operands), noted, strict=True)]
    except MismatchError as mismatch:
        raise _contradiction(operands, str(mismatch)) from None
    except ValueError:
        raise _contradiction(operands, f"it has {len(noted)} results, which is not what it should have") from None


def infer_values(operands: Operands, shapes: list[Shape | None]) -> list[Partial | None]:
    """Returns the elements of results that are integer scalars or vectors, as far as they are known.

    Args:
        operands: The op.
        shapes: The results' shapes as inferred.
    """
    found = declaration(operands.op.name.removeprefix("tf."))
    if found is None or found.values is None:
        return [None] * len(shapes)
    results = operands.op.results
    followed = list(map(_is_followed, results, shapes))
    if True not in followed:
        return [None] * len(shapes)
    try:
        values = found.values(operands)
    except MismatchError as mismatch:
        raise _contradiction(operands, str(mismatch)) from None
    return [
        partial if is_followed and _fits(partial, result, shape) else None
        for partial, result, shape, is_followed in zip(values, results, shapes, followed, strict=True)
    ]


def _is_followed(result: OpResult, shape: Shape | None) -> bool:
    return shape is not None and len(shape) <= 1 and result.element in _FOLLOWED


def _fits(partial: Partial | None, result: OpResult, shape: Shape | None) -> bool:
    """Returns whether there are as many elements as there should be, each within its type: overflow is not followed."""
    if partial is None or shape is None or len(partial) != (shape[0] if shape else 1):
        return False
    limit = 1 << 31 if result.element == types.I32 else 1 << 63
    return all(element <= UNKNOWN or -limit <= element < limit for element in partial)


def _contradiction(operands: Operands, message: str) -> ConversionError:
    shapes = ", ".join(map(text, operands.shapes()))
    return error_at(
        operands.op,
        "shape-mismatch",
        f"{message} (operands: {shapes or 'none'})",
        "the graph contradicts itself, or an input shape passed for it doesn't fit",
    )


def evaluate(call: Call) -> Results:
    """Computes an op.

    Args:
        call: The op with its operands' values, which are not written to. Results may be views of them.

    Returns:
        The results, a new or shared array each; never to be written to either.

    Raises:
        ConversionError: The op has no kernel (`no-reference-kernel`), its operands don't fit it or each other
            (`bad-operand`), or an integer is divided by zero (`integer-division-by-zero`).
    """
    function = kernel(call.op)
    if function is None:
        why = f": {WITHOUT_KERNEL[call.op]}" if call.op in WITHOUT_KERNEL else ""
        raise error("no-reference-kernel", f"the op has no reference kernel{why}", op=f"tf.{call.op}")
    return apply(function, call)


def apply(function: Kernel, call: Call) -> Results:
    """Computes an op by a kernel; as `evaluate`."""
    try:
        with np.errstate(all="ignore"):
            return tuple(map(_boxed, function(call)))
    except (ValueError, IndexError, TypeError, MemoryError, ArithmeticError) as problem:
        # numpy's own checks of shapes, axes and dtypes, and shapes that no machine has the memory for.
        raise call.bad(f"the operands don't fit: {problem}") from problem


def _boxed(value: Any) -> Array:
    """Returns a value as an array, where numpy has made a scalar of an array without dimensions."""
    if isinstance(value, np.ndarray):
        return value
    array = np.empty((), object if isinstance(value, bytes) else value.dtype)
    array[()] = value
    return array
