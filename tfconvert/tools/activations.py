"""How much memory a LiteRT file's activations take when it runs, from its tables alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

from tfconvert.schema.dialects.types import ELEMENT_TYPES
from tfconvert.schema.tflite.operators import OPTIONS, OPTIONS_2
from tfconvert.schema.tflite.reader import View

# Of each tensor in the runtime's arena, in bytes.
_ALIGNMENT = 64

# The options that name a subgraph.
_CALLS = (
    "then_subgraph_index",
    "else_subgraph_index",
    "cond_subgraph_index",
    "body_subgraph_index",
    "init_subgraph_index",
    "decomposition_subgraph_index",
)

# Types of which several elements share a byte.
_BITS = {"INT4": 4, "UINT4": 4, "INT2": 2}


def peak_bytes(subgraph: View, is_constant: Callable[[View], bool]) -> int:
    """Returns the most bytes of a subgraph's computed tensors that are needed at once, open sizes taken as stored.

    A tensor is needed from the operator that computes it to the last one that uses it; inputs and outputs are needed
    all the time. The runtime takes at least as much: its kernels may ask for more, for their own use.

    Args:
        subgraph: The subgraph.
        is_constant: Whether a tensor's value is in the file.
    """
    tensors: Sequence[View] = subgraph["tensors"] or ()
    operators: Sequence[View] = subgraph["operators"] or ()
    last = len(operators)
    first_use, last_use = _lifetimes(subgraph, operators)
    changes = [0] * (last + 2)
    for index, tensor in enumerate(tensors):
        if index in first_use and not is_constant(tensor):
            size = _aligned(tensor)
            changes[first_use[index]] += size
            changes[last_use[index] + 1] -= size
    peak = now = 0
    for change in changes:
        now += change
        peak = max(peak, now)
    return peak


def called_subgraphs(subgraph: View) -> set[int]:
    """Returns the indices of the subgraphs that a subgraph's operators call."""
    called = set()
    for operator in subgraph["operators"] or ():
        for field in (OPTIONS, OPTIONS_2):
            options = operator[field]
            if options is not None:
                called |= {options[name] for name in options.stored() if name in _CALLS}
    return {index for index in called if index >= 0}


def _lifetimes(subgraph: View, operators: Sequence[View]) -> tuple[dict[int, int], dict[int, int]]:
    """Returns the operators by number at which each computed tensor is first and last needed."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for step, operator in enumerate(operators):
        for field in ("inputs", "outputs", "intermediates"):
            for tensor in _indices(operator, field):
                first.setdefault(tensor, step)
                last[tensor] = step
    for field in ("inputs", "outputs"):
        for tensor in _indices(subgraph, field):
            if field == "inputs":
                first[tensor] = 0
            first.setdefault(tensor, 0)
            last[tensor] = len(operators)
    return first, last


def _indices(view: View, field: str) -> list[int]:
    values = view[field]
    return [] if values is None else [index for index in values.tolist() if index >= 0]


def _aligned(tensor: View) -> int:
    if tensor["is_variable"]:
        return 0  # Its place is apart, since it keeps its value between calls.
    shape = tensor["shape"]
    name = tensor.name("type") or ""
    count = math.prod(max(dim, 0) for dim in shape.tolist()) if shape is not None else 1
    size = (count * _bits(name) + 7) // 8
    return -(-size // _ALIGNMENT) * _ALIGNMENT


@cache
def _bits(type_name: str) -> int:
    """Returns the bits of an element; 0 if elements have no fixed size."""
    if type_name in _BITS:
        return _BITS[type_name]
    row = next((row for row in ELEMENT_TYPES if row.tflite == type_name), None)
    return 0 if row is None or row.dtype == object else 8 * row.dtype.itemsize
