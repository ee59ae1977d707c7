"""The table of what ops of StableHLO compute, and the checks that all of them have in common."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from tfconvert.converter.executor.stablehlo import effects, elementwise, ordering, products, reducing, shaping, slicing
from tfconvert.converter.executor.stablehlo.properties import Kernel
from tfconvert.converter.executor.stablehlo.reducing import RegionKernel
from tfconvert.converter.executor.tasks import Machine, bad
from tfconvert.converter.executor.variables import Simple
from tfconvert.ops.call import Array, Results
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation

KERNELS: Mapping[str, Kernel] = {
    **elementwise.KERNELS,
    **elementwise.OTHERS,
    **products.KERNELS,
    **shaping.KERNELS,
    **slicing.KERNELS,
}
"""Op -> kernel, of ops without bodies and effects."""

_WITH_MACHINE: Mapping[str, RegionKernel] = {**effects.KERNELS, **ordering.KERNELS, **reducing.KERNELS}


def evaluate(op: Operation, inputs: Results) -> Results:
    """Computes an op without bodies and effects.

    Args:
        op: The op, one of `KERNELS`.
        inputs: Its operands' values, which are not written to.
    """
    if op.name in elementwise.KERNELS:
        elementwise.check_shapes(op, inputs)
    return _checked(op, _computed(op, partial(KERNELS[op.name], op), inputs))


def _computed(op: Operation, kernel: Simple | partial[object], inputs: Results) -> Results:
    try:
        with np.errstate(all="ignore"):
            found = kernel(inputs)  # type: ignore[call-arg, arg-type]
    except (ValueError, IndexError, TypeError, MemoryError, ArithmeticError) as problem:
        # numpy's own checks of shapes, axes and dtypes, and shapes that no machine has the memory for.
        raise bad(op, f"the operands don't fit: {problem}") from problem
    results = found if isinstance(found, tuple) else (found,)
    return tuple(np.asarray(each) for each in results)


def _checked(op: Operation, results: Results) -> Results:
    """Returns results whose sizes are those of their types, as far as these have them."""
    for result, value in zip(op.results, results, strict=True):
        shape = types.shape_of(result.type)
        if shape is not None and not _fits(shape, value):
            raise bad(op, f"the result has the shape {list(value.shape)}, its type {list(shape)}", "unequal-sizes")
    return results


def _fits(shape: tuple[int, ...], value: Array) -> bool:
    return len(shape) == value.ndim and all(size in (-1, own) for size, own in zip(shape, value.shape, strict=True))


def _simple(machine: Machine, op: Operation, inputs: Results) -> Results:
    return evaluate(op, inputs)


def _with_machine(kernel: RegionKernel, machine: Machine, op: Operation, inputs: Results) -> Results:
    return _checked(op, _computed(op, partial(kernel, machine, op), inputs))


OPS: Mapping[str, Simple] = {
    **dict.fromkeys(KERNELS, _simple),
    **{name: partial(_with_machine, kernel) for name, kernel in _WITH_MACHINE.items()},
}
"""Op -> its handler."""
