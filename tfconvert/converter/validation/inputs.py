"""Inputs that suit a model: random ones, but valid as indices, partitions, splits, axes and sizes where it needs them.

The ops that inputs reach determine their kinds; running the model, which values those take.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.validation import samples
from tfconvert.converter.validation.domains import RULES, Domain, fits
from tfconvert.converter.validation.flow import Flow
from tfconvert.converter.validation.probe import Probe
from tfconvert.ops.call import Array
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

# How often inputs are drawn anew with what the last run showed.
_TRIES = 6


class Run(NamedTuple):
    """Inputs, and the reference's outputs for them."""

    inputs: Sequence[Array]
    outputs: Sequence[Array]


class Refused(NamedTuple):
    """Inputs that the reference can't be run on."""

    problem: ConversionError


def drawn_runs(module: ModuleOp, function: FuncOp, names: Sequence[str]) -> Iterator[Run | Refused]:
    """Yields the reference's runs on random inputs that suit a function; none if one of them is a handle.

    Args:
        module: The model as it was imported.
        function: The function.
        names: The names of its inputs.
    """
    kinds = [each.type for each in function.body.block.args]
    watched = _watched(module, function)
    for draw, values in enumerate(samples.draws(kinds, names)):
        yield _run(module, function, values, names, watched, draw)


def drawn(module: ModuleOp, function: FuncOp, names: Sequence[str]) -> Iterator[Sequence[Array]]:
    """Yields random inputs that suit a function, as `drawn_runs`; the reference runs only if it has to.

    Args:
        module: The model as it was imported.
        function: The function.
        names: The names of its inputs.
    """
    if _watched(module, function) and not Executor(module).problems(function.sym_name):
        yield from (found.inputs for found in drawn_runs(module, function, names) if isinstance(found, Run))
    else:
        yield from samples.draws([each.type for each in function.body.block.args], names)


def runs_in_ranges(
    module: ModuleOp, function: FuncOp, names: Sequence[str], ranges: Mapping[int, tuple[float, float]]
) -> Iterator[Run | Refused]:
    """Yields the reference's runs on random inputs that suit a function, floats within ranges.

    Args:
        module: The model as it was imported.
        function: The function.
        names: The names of its inputs.
        ranges: The ranges, by the places of inputs.
    """
    for draw, values in enumerate(drawn(module, function, names)):
        fitting = list(values)
        for place, (low, high) in ranges.items():
            if fitting[place].dtype.kind == "f":
                random = np.random.default_rng([zlib.crc32(names[place].encode()), draw])
                numbers = np.asarray(random.uniform(low, high, fitting[place].shape))
                fitting[place] = numbers.astype(fitting[place].dtype)
        yield run(module, function, fitting)


def run(module: ModuleOp, function: FuncOp, values: Sequence[Array]) -> Run | Refused:
    """Returns the reference's run on given inputs.

    Raises:
        ConversionError: The reference can't be run at all.
    """
    try:
        return Run(values, Executor(module).run(function.sym_name, values))
    except ConversionError as problem:
        if problem.code not in samples.REFUSED_INPUT:
            raise
        return Refused(problem)


def _run(
    module: ModuleOp,
    function: FuncOp,
    values: list[Array],
    names: Sequence[str],
    watched: dict[Operation, dict[int, tuple[int, ...]]],
    draw: int,
) -> Run | Refused:
    """Returns a run on inputs that are drawn, and drawn again within what the ops that they reach take."""
    first, known = values, dict[int, Domain]()
    for _ in range(_TRIES):
        probe = Probe(module, watched=watched)
        found: Run | Refused
        try:
            found = Run(values, probe.run(function.sym_name, values))
        except ConversionError as problem:
            if problem.code not in samples.REFUSED_INPUT:
                raise
            found = Refused(problem)
        if {**known, **probe.domains} == known:
            return found
        known |= probe.domains
        values = [
            _redrawn(each, name, known.get(number), draw)
            for number, (each, name) in enumerate(zip(first, names, strict=True))
        ]
    return run(module, function, values)


def _redrawn(value: Array, name: str, domain: Domain | None, draw: int) -> Array:
    if domain is None:
        return value
    return domain.draw(value.shape, value.dtype, np.random.default_rng([zlib.crc32(name.encode()), draw]))


def _watched(module: ModuleOp, function: FuncOp) -> dict[Operation, dict[int, tuple[int, ...]]]:
    """Returns the ops that take only some values for operands that a function's inputs reach."""
    flow, found = Flow(module), dict[Operation, dict[int, tuple[int, ...]]]()
    for number, argument in enumerate(function.body.block.args):
        if not fits(argument.type):
            continue
        for use in flow.uses(argument):
            if use.index in RULES.get(use.operation.name.removeprefix("tf."), {}):
                reached = found.setdefault(use.operation, {})
                reached[use.index] = (*reached.get(use.index, ()), number)
    return found
