"""The ops of a function that can be quantized, the reasons of the others, and the values whose ranges are needed."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

from tfconvert.converter.targets.litert.fake_quant import FAKE_QUANT, constant_behind
from tfconvert.converter.targets.litert.quantize import lstm
from tfconvert.converter.targets.litert.quantize.calls import CALLS, LOOP, callees
from tfconvert.converter.targets.litert.quantize.exclusion import Exclusion
from tfconvert.converter.targets.litert.quantize.parameters import range_of
from tfconvert.converter.targets.litert.quantize.rules import ANY_SCALE, RULES, Rule, Scales
from tfconvert.converter.targets.litert.quantize.variables import Variables
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I8, I16, FloatType, IntegerType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators
from tfconvert.settings.quantization import PerChannel, Quantize

EXCLUDED = "it is excluded"


class Settings(NamedTuple):
    """How to quantize a module.

    Attributes:
        storage: The integer type of activations.
        exclusion: The ops that stay float because the user excluded them.
        per_channel: Whether weights have a scale for each channel, or which have.
        bits: Bits of the weights of matrix products.
        integers_only: Whether to use integers even where floats would be as fast and more precise.
        keeps_outputs: Whether ops whose integers have a fixed scale stay float if their results are float outputs.
        in_loop: Whether the function is the body of a loop.
        has_wide_sums: Whether biases and sums of products of 16-bit activations have 64 bits.
        variables: The mappings of variables.
        strict: Whether no op may stay float.
        by_speed: Whether ops that LiteRT computes faster with floats stay float.
        trained_only: Whether ranges that kernels fix count only where the model also fake-quantizes the result.
    """

    storage: IntegerType
    exclusion: Exclusion
    per_channel: PerChannel = True
    bits: int = 8
    integers_only: bool = False
    keeps_outputs: bool = True
    in_loop: bool = False
    has_wide_sums: bool = True
    variables: Variables = Variables()
    trained_only: bool = False
    by_speed: bool = False
    strict: bool = False

    @classmethod
    def of(cls, quantize: Quantize, *, for_processors: bool = False) -> Settings:
        """Returns the part of a conversion's settings that selects what becomes integers.

        Args:
            quantize: How to quantize.
            for_processors: Whether processors run the file, and no accelerators.
        """
        storage = I16 if quantize.mode == "int16" else I8
        return cls(
            storage,
            Exclusion(quantize.exclude),
            quantize.per_channel,
            quantize.weights,
            integers_only=quantize.needs_integers,
            keeps_outputs=not (quantize.strict or quantize.trained_only) and quantize.ends[1] == "float32",
            has_wide_sums=quantize.bias != "int32",
            trained_only=quantize.trained_only,
            strict=quantize.strict,
            by_speed=for_processors and quantize.prefers_speed,
        )

    def of_function(self, function: FuncOp, bodies: Container[str]) -> Settings:
        """Returns the settings for one function, given the names of loop bodies."""
        return self._replace(in_loop=function.sym_name in bodies)


def is_float(value: Value) -> bool:
    """Returns whether a value's elements are 32-bit floats."""
    return value.element is types.F32


def is_constant(value: Value) -> bool:
    """Returns whether a value is a constant, possibly a fake-quantized one."""
    return constant_behind(value) is not None


def activations(op: Operation, rule: Rule) -> list[int]:
    """Returns the indices of the operands that are activations, constant or not."""
    others = {*rule.others, *(index for pair in rule.weights for index in pair)}
    return [index for index, value in enumerate(op.operands) if index not in others and is_float(value)]


def candidate(op: Operation, settings: Settings) -> Rule | str:
    """Returns the rule to quantize an op if its ranges are known, else why it can't be quantized."""
    rule = RULES.get(op.name)
    if settings.by_speed and op.name in ANY_SCALE and range_of(op.results[0]) is not None and not _is_output(op):
        rule = ANY_SCALE[op.name]
    if op.name in CALLS:
        return "floats go into its functions and come out of them"
    if rule is None:
        return "its kernel computes with floats only"
    if settings.storage not in rule.types:
        return f"its kernel takes no {settings.storage.width}-bit integers"
    if settings.exclusion.excludes(op):
        return EXCLUDED
    if any(isinstance(value.element, FloatType) and not is_float(value) for value in op.operands):
        return "its operands are not 32-bit floats"
    if settings.trained_only and rule.scales is Scales.FIXED and not _is_trained(op):
        return "the model doesn't fake-quantize its result"
    if rule.weights:
        problem = _with_weights(op, rule)
        if problem or rule.is_product:
            return problem or rule
    return (_better_float(op, rule, settings) if settings.storage is I8 else "") or rule


def _with_weights(op: Operation, rule: Rule) -> str:
    """Returns why an op can't be quantized because of its weights or biases; empty if it can."""
    for weight, bias in rule.weights:
        if tfl.has_operand(op, weight) and not (is_float(op.operands[weight]) and is_constant(op.operands[weight])):
            return "its weight is computed"
        if bias is not None and tfl.has_operand(op, bias) and not is_constant(op.operands[bias]):
            return "its bias is computed"
    return lstm.problem(op) if rule.others else ""


def _better_float(op: Operation, rule: Rule, settings: Settings) -> str:
    """Returns why an op should stay float, or an empty string."""
    if settings.in_loop and not settings.integers_only:
        return "its errors would add up from one iteration of the loop to the next"
    if settings.keeps_outputs and rule.scales is Scales.FIXED and _is_output(op):
        return "its result leaves the model as floats, and would have steps of a fixed size"
    return ""


def _is_bounded(op: Operation) -> bool:
    """Returns whether an op's results are within a range, whatever its operands are."""
    return op.name.removeprefix(tfl.PREFIX) in operators.ranges()


def _is_output(op: Operation) -> bool:
    return all(use.operation.name == "func.return" for use in op.results[0].uses)


def _is_trained(op: Operation) -> bool:
    return all(use.operation.name == FAKE_QUANT for use in op.results[0].uses)


def loop_bodies(module: ModuleOp) -> frozenset[str]:
    """Returns the names of the functions that run in loops: bodies, conditions, and the functions that they call."""
    called: dict[str, list[str]] = {}
    pending: list[str] = []
    for function in functions_of(module).values():
        for op in function.walk():
            called.setdefault(function.sym_name, []).extend(callees(op))
            pending += callees(op) if op.name == LOOP else ()
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += called.get(name, ())
    return frozenset(found)


def observed(function: FuncOp, settings: Settings) -> Iterator[Value]:
    """Yields the values of a function whose ranges are needed to quantize it."""
    seen: set[Value] = set()
    for op in function.body.block.ops:
        rule = candidate(op, settings)
        if not isinstance(rule, Rule) or lstm.creates_state(op):
            continue
        operands = [op.operands[index] for index in activations(op, rule)]
        is_fixed = rule.scales is Scales.FIXED and op.name not in ANY_SCALE and _is_bounded(op)
        results = [] if is_fixed else [result for result in op.results if is_float(result)]
        if rule.others:
            yield lstm.cell_state(op)
        for value in (*operands, *results):
            if value not in seen and not is_constant(value):
                seen.add(value)
                yield value
