"""Takes programs through TensorFlow, the reference executor and LiteRT, and says what differs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from random import Random
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import tfconvert
from tests.differential.random_graphs.network_recipes import NETWORKS
from tests.differential.random_graphs.program import STEP, Builder, Program, RejectedError
from tests.differential.random_graphs.recipes import ELEMENTWISE, Recipe
from tests.differential.random_graphs.shape_recipes import SHAPES
from tests.differential.random_graphs.values import FLOATS, Array
from tests.mutate.worker import where
from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.targets.litert.runtime_process import LiteRTProcess
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

RECIPES: dict[str, Recipe] = {**ELEMENTWISE, **SHAPES, **NETWORKS}

SAME, REFUSED, DIFFERS = "same", "refused", "differs"
UNSTABLE = "not judged: its result depends on rounding"
INVALID = "not judged: TensorFlow calls it, but builds no graph of it"

_TOLERANCES = {"float16": 4e-3, "bfloat16": 4e-2}
_DISTURBANCE = {"float32": 3e-6, "float64": 3e-6, "float16": 2e-3, "bfloat16": 2e-2, "complex64": 3e-6}


class Verdict(NamedTuple):
    """The outcome of a program.

    Attributes:
        kind: `SAME`, `REFUSED`, `DIFFERS`, `UNSTABLE` or `INVALID`.
        what: The error's code, or what differs.
        detail: More about it.
        output: The place of the output that differs; -1 if it is not of one.
        notes: The codes of the notes of the conversion's report.
    """

    kind: str
    what: str = ""
    detail: str = ""
    output: int = -1
    notes: frozenset[str] = frozenset()


def random_program(tf: ModuleType, random: Random, steps: int) -> Program:
    """Returns a program.

    Args:
        tf: TensorFlow.
        random: Draws everything.
        steps: About how many ops it has.
    """
    build = Builder(tf, random)
    names = sorted(RECIPES)
    for _ in range(20 * steps):
        name = random.choice(names)
        try:
            RECIPES[name](build)
        except RejectedError:
            continue
        if len(build.steps) >= steps:
            break
    return build.program()


def difference(want: Array, got: Array) -> str:
    """Returns how two arrays differ; empty if they are as good as equal."""
    if want.dtype != got.dtype:
        return f"type {got.dtype}, not {want.dtype}"
    if want.shape != got.shape:
        return f"shape {list(got.shape)}, not {list(want.shape)}"
    name = str(want.dtype)
    if name not in (*FLOATS, "complex64"):
        return "" if np.array_equal(want, got) else "values"
    wide = np.complex128 if name == "complex64" else np.float64
    one, other = np.asarray(want).astype(wide), np.asarray(got).astype(wide)
    finite = np.abs(one[np.isfinite(one)])
    largest = min(float(finite.max()), 1e3) if finite.size else 0.0
    tolerance = _TOLERANCES.get(name, 2e-4)
    if np.allclose(other, one, rtol=tolerance, atol=tolerance * 0.05 * largest + 1e-7, equal_nan=True):
        return ""
    both = np.isfinite(one) & np.isfinite(other)
    if np.allclose(other[both], one[both], rtol=tolerance, atol=tolerance * 0.05 * largest + 1e-7):
        return "values that are not finite"
    return "values"


def judge(tf: ModuleType, program: Program, runtime: LiteRTProcess) -> Verdict:
    """Returns whether a program, converted, computes the same in LiteRT."""
    try:
        graph = program.graph(tf)
    except (ValueError, TypeError, tf.errors.OpError) as problem:
        return Verdict(INVALID, detail=str(problem))
    names = [f"in{number}" for number in range(len(program.inputs()))]
    outputs = [f"out{number}" for number in range(len(program.outputs))]
    try:
        model = tfconvert.convert(graph, inputs=names or None, outputs=outputs)
        content = bytes(model)
    except ConversionError as refused:
        return Verdict(REFUSED, refused.code, str(refused))
    except (LookupError, ArithmeticError, ValueError, TypeError, AttributeError, AssertionError, RuntimeError) as crash:
        return Verdict(DIFFERS, where(crash), repr(crash))
    notes = frozenset(note.code for note in model.report.notes)
    feed = {name: program.values[place] for name, place in zip(names, program.inputs(), strict=True)}
    try:
        results = runtime.run_file(content, "", feed, outputs)
    except ConversionError as refused:
        return Verdict(DIFFERS, f"LiteRT: {refused.diagnostics[0].message}", str(refused), notes=notes)
    for place, got in zip(program.outputs, results, strict=True):
        found = difference(program.values[place], np.asarray(got))
        if found and found.startswith("values") and _is_unstable(tf, program.cut((), [place])):
            return Verdict(UNSTABLE, notes=notes)
        if found:
            told = (
                f"{found}\nTensorFlow: {program.values[place].ravel()[:24]}\nLiteRT:     {np.asarray(got).ravel()[:24]}"
            )
            return Verdict(DIFFERS, found, told + _reference(graph, feed, program, place), place, notes)
    return Verdict(SAME, notes=notes)


def _shown_difference(want: Array, got: Array) -> str:
    """Returns the first elements, those that differ if there are as many."""
    if want.shape == got.shape and want.dtype == got.dtype:
        wrong = np.array([bool(difference(one, other)) for one, other in zip(want.ravel(), got.ravel(), strict=True)])
        if wrong.any():
            want, got = want.ravel()[wrong], got.ravel()[wrong]
    return f"TensorFlow: {want.ravel()[:16]}\nLiteRT:     {got.ravel()[:16]}"


def _reference(graph: pb.GraphDef, feed: dict[str, Array], program: Program, place: int) -> str:
    """Returns whom the reference executor agrees with."""
    number = program.outputs.index(place)
    module = Source(graph, inputs=list(feed) or None, outputs=[f"out{number}"]).open()
    try:
        (got,) = Executor(module, max_iterations=1000).run("main", list(feed.values()))
    except ConversionError as refused:
        return f"\nthe reference executor: {refused}"
    found = difference(program.values[place], got)
    return f"\nthe reference executor agrees with {'LiteRT or nobody: ' + found if found else 'TensorFlow'}"


def tamed(tf: ModuleType, program: Program) -> Program | None:
    """Returns a program with ordinary numbers instead of odd ones: none infinite, NaN, denormal or huge, and no zeros.

    Returns:
        `None` if it has no odd numbers, given or computed.
    """
    floats = [array for array in program.values if str(array.dtype) in (*FLOATS, "complex64")]
    if not any(np.any(_is_odd(array)) for array in floats):
        return None
    given = {place for step in program.steps for place in step.operands() if program.origins[place] != STEP}
    ordinary = _recomputed(tf, program, given)
    # What is odd by now was computed of ordinary numbers: the logarithm of less than zero, say.
    computed = {
        place
        for step in ordinary.steps
        for place in step.results
        if place not in ordinary.outputs and _has_border(ordinary.values[place])
    }
    if computed:
        ordinary = _recomputed(tf, ordinary.cut(computed, ordinary.outputs), computed)
    return ordinary


def _recomputed(tf: ModuleType, program: Program, places: Collection[int]) -> Program:
    """Returns a program with ordinary numbers at some places, and all that follows from them."""
    values = list(program.values)
    for place in places:
        array = values[place]
        if _has_border(array):
            values[place] = np.where(_is_border(array), np.asarray(0.375, array.dtype), array)
    ordinary = replace(program, values=tuple(values))
    made = [place for step in ordinary.steps for place in step.results]
    for place, array in zip(made, replace(ordinary, outputs=tuple(made)).run(tf), strict=True):
        values[place] = array
    return replace(ordinary, values=tuple(values))


def _has_border(array: Array) -> bool:
    return str(array.dtype) in FLOATS and bool(_is_border(array).any())


def _is_border(array: Array) -> Array:
    """Returns where an array has odd numbers, or zeros and ones, of which functions make odd numbers."""
    return np.asarray(_is_odd(array) | (array == 0) | (np.abs(array) == 1))


def _is_odd(array: Array) -> Array:
    """Returns where an array has numbers that are infinite, NaN, denormal, or so large that their squares overflow."""
    size = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return np.asarray(~np.isfinite(size) | ((size > 0) & (size < 1.2e-38)) | (size > 1e18))


def _is_unstable(tf: ModuleType, program: Program) -> bool:
    """Returns whether a program's result changes if all that it computes on the way is off by a rounding error."""
    generator = np.random.default_rng(0)

    def disturb(value: Any) -> Any:
        size = _DISTURBANCE.get(value.dtype.name)
        if size is None:
            return value
        array = np.asarray(value.numpy())
        with np.errstate(all="ignore"):
            return tf.constant((array * (1 + size * generator.normal(size=array.shape))).astype(array.dtype))

    for _ in range(3):
        results = program.run(tf, disturb)
        for place, got in zip(program.outputs, results, strict=True):
            if difference(program.values[place], got) and len(program.steps) > 1:
                return True
    return False
