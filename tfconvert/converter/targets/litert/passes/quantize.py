"""Pass `quantize`: quantizes the ops whose kernels take integers, where the ranges of their values are known.

Before:

    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32>
        attributes {tfl.ranges = array<f32: -1.0, 1.0>} {
      %0 = "tfl.relu"(%x) {tfl.ranges = array<f32: 0.0, 1.0>} : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }

After:

    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32>
        attributes {tfl.ranges = array<f32: -1.0, 1.0>} {
      %0 = "tfl.quantize"(%x) : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.003921569:-128>>
      %1 = "tfl.relu"(%0) {tfl.ranges = array<f32: 0.0, 1.0>}
          : (tensor<4x!quant.uniform<i8:f32, 0.003921569:-128>>) -> tensor<4x!quant.uniform<i8:f32, 0.003921569:-128>>
      %2 = "tfl.dequantize"(%1) : (tensor<4x!quant.uniform<i8:f32, 0.003921569:-128>>) -> tensor<4xf32>
      func.return %2 : tensor<4xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass
from typing import ClassVar

from tfconvert.converter.ir.edit import update_function_type
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, LayerReport, PassResult
from tfconvert.converter.targets.litert.operator_order import schedule_of
from tfconvert.converter.targets.litert.quantize.candidates import EXCLUDED, Settings, is_float, loop_bodies
from tfconvert.converter.targets.litert.quantize.hybrid import weights_of_float
from tfconvert.converter.targets.litert.quantize.plan import Plan
from tfconvert.converter.targets.litert.quantize.rewriting import Rewriting
from tfconvert.converter.targets.litert.quantize.variable_choice import FLOAT_STATE, choose_variables
from tfconvert.converter.targets.litert.quantize.weights import StoredConstants, store_trained_weights
from tfconvert.schema.diagnostics import NOTE, WARNING, ConversionError, Diagnostic, size_text
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import error_at, node_of
from tfconvert.schema.dialects.quant import UniformType
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I8
from tfconvert.schema.ir.values import OpResult
from tfconvert.schema.tflite.arena import ArenaStep
from tfconvert.settings.quantization import INT8, Quantize


@dataclass(frozen=True, slots=True)
class QuantizeOps:
    """Quantizes activations and weights."""

    quantize: Quantize = INT8  # How to quantize.
    # Whether processors run the file, so that ops may stay float that are faster so. Those with weights have integers
    # as in the mode `dynamic`.
    for_processors: bool = False
    name: ClassVar[str] = "quantize"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns what was made.

        Raises:
            ConversionError: An op would stay float in spite of `strict` (`stays-float`), or has a weight that is not
                finite (`non-finite-weight`).
        """
        wanted = self.quantize
        if wanted.mode in ("float16", "weights"):
            return NOTHING_DONE
        settings, bodies = Settings.of(wanted, for_processors=self.for_processors), loop_bodies(module)
        settings = settings._replace(variables=choose_variables(module, wanted, settings, bodies))
        counts: Counter[str] = Counter()
        layers: list[LayerReport] = []
        integers = sum(map(_is_of_integers, module.walk())) if wanted.is_static else 0
        # In the mode `dynamic`, `quantize-weights` notes it.
        notes = settings.exclusion.unmatched(module) if wanted.is_static else []
        notes += [_SLOW] if wanted.mode == "int16" else []
        problems: list[Diagnostic] = []
        fast, arenas = 0, (0, 0)
        for function in module.ops:
            if not isinstance(function, FuncOp) or function.is_declaration:
                continue
            own = settings.of_function(function, bodies)
            plan = Plan(function, own)
            notes += _coarse(plan)
            fast += len(plan.slow)
            if self.for_processors and wanted.mode == "int8":
                notes += _slow_integers(plan)
            if wanted.strict:
                problems += _floats(plan)
            rewriting = Rewriting(function, plan, own)
            rewriting.run()
            arenas = max(arenas, _arenas(function, plan.slow)) if plan.slow else arenas
            if wanted.trained_only and wanted.mode == "dynamic":
                counts["trained weights"] += store_trained_weights(function)
            counts += rewriting.counts
            layers += rewriting.layers
            stored = StoredConstants()
            floats = [*plan.slow, *(plan.float_only() if own.by_speed else ())]
            stored.store_all({op: weights_of_float(op, wanted) for op in floats if isinstance(op, tfl.TFLOp)})
            counts += stored.counts
            layers += stored.layers.values()
            update_function_type(function)
        if problems:
            raise ConversionError(problems)
        notes += [_fast_floats(fast, arenas)] if fast else []
        if wanted.is_static and not counts:
            notes.append(_integers_already(integers) if integers else _NOTHING)
        return PassResult(counts, notes, layers=layers)


def _is_of_integers(op: Operation) -> bool:
    """Returns whether an op of a file computes with integers that represent real numbers."""
    if not isinstance(op, tfl.TFLOp) or op.op_name in tfl.BESIDE:
        return False
    return any(isinstance(result.element, UniformType) for result in op.results)


def _integers_already(count: int) -> Diagnostic:
    which = "1 operator computes" if count == 1 else f"{count} operators compute"
    message = f"quantized operators: none: {which} with integers already, and their scales stay"
    hint = "quantize the float model, from which the file was made, for other integers"
    return Diagnostic("nothing-quantized", message, hint=hint, severity=WARNING)


_SLOW = Diagnostic(
    "slow-on-processors",
    "16-bit activations are for accelerators that have them: on processors the runtime computes them many times slower",
    hint="measure it, or choose the mode 'int8'",
    severity=WARNING,
)

_NOTHING = Diagnostic(
    "nothing-quantized",
    "nothing was quantized: all operators compute what they did before",
    hint="the report lists the operators that stay float, with the reason for each (-v)",
    severity=NOTE,
)

# With this number of classes or more, probabilities are often below the smallest 8-bit step, and become 0.
_CLASSES = 256


def _coarse(plan: Plan) -> list[Diagnostic]:
    """Returns warnings about probabilities whose 8-bit steps are too coarse for the number of classes."""
    ops = [op for op in plan.quantized if op.name == "tfl.softmax" and plan.storage is I8]
    return [
        Diagnostic(
            "coarse-probabilities",
            "probabilities below 1/512 become 0, and there are many classes",
            "tfl.softmax",
            node_of(op.location),
            hint='exclude the op, which costs no speed: quantize=tfconvert.Quantize(..., exclude=["SOFTMAX"]) '
            "(--exclude SOFTMAX)",
            severity=WARNING,
        )
        for op in ops
        if ((op.results[0].shape or (0,))[-1]) >= _CLASSES
    ]


# How many times as large as with integers throughout an arena is, to be worth a note.
_WIDER = 1.5


def _fast_floats(count: int, arenas: tuple[int, int]) -> Diagnostic:
    """Returns the note on ops that stay float for speed.

    Args:
        count: The number of ops.
        arenas: The bytes that tensors need, and those that they would need with integers throughout.
    """
    which = "1 operator stays float" if count == 1 else f"{count} operators stay float"
    message, (own, integers) = f"{which} because processors are faster so", arenas
    if own > _WIDER * integers:
        message += f"; with integers throughout, tensors would need {size_text(integers)} instead of {size_text(own)}"
    hint = "if a device needs integers, set `accelerator` to it, or `slow_integers` (--slow-integers)"
    return Diagnostic("fast-floats", message, hint=hint, severity=NOTE)


def _arenas(function: FuncOp, slow: Container[Operation]) -> tuple[int, int]:
    """Returns the bytes that a function's tensors need, and those that they would need with integers throughout.

    Args:
        function: The function, with conversions between integers and floats.
        slow: The ops that would be integers, too.
    """
    inputs = function.body.block.args
    *operators, end = [op for op in function.body.block.ops if op.name.removeprefix(tfl.PREFIX) not in tfl.BESIDE]
    schedule = schedule_of(inputs, operators, end.operands)
    computed = [*inputs, *(result for op in operators for result in op.results)]
    places = {value: place for place, value in enumerate(computed)}
    sizes = list(schedule.sizes)
    merged: dict[int, int] = {}
    for place, value in enumerate(computed):
        if not isinstance(value, OpResult):
            continue
        users = {use.operation for use in value.uses}
        source = next((operand for operand in value.op.operands if operand in places), value)
        is_made = value.op.name == "tfl.quantize" and isinstance(source, OpResult) and source.op in slow
        if is_made or (value.op.name == "tfl.dequantize" and all(user in slow for user in users)):
            merged[place] = merged.get(places[source], places[source])
            sizes[place] = 0
        elif value.op in slow and is_float(value) and end not in users:
            sizes[place] //= 4
    steps = [ArenaStep([merged.get(place, place) for place in step.operands], step.results) for step in schedule.steps]
    return schedule.peak(), schedule._replace(sizes=sizes, steps=steps).peak()


# How many times as long as floats the slowest operators of integers take, together, to be worth a note, and how many
# microseconds more.
_SLOWNESS = 2.0
_MIN_LOSS = 5.0


def _slow_integers(plan: Plan) -> list[Diagnostic]:
    """Returns a note on ops that are integers although LiteRT is much faster with floats."""
    slow = plan.slower_with_integers()
    integers, floats = (sum(times[form] for times in slow.values()) for form in (0, 1))
    if integers <= max(_SLOWNESS * floats, floats + _MIN_LOSS):
        return []
    names = ", ".join(dict.fromkeys(op.name.removeprefix(tfl.PREFIX).upper() for op in slow))
    message = f"LiteRT takes about {integers:.3g} us with integers, and {floats:.3g} us with floats for: {names}"
    hint = "if no device needs integers, leave `io`, `strict` and `slow_integers` out, or choose the mode 'dynamic'"
    return [Diagnostic("slow-integers", message, hint=hint, severity=NOTE)]


def _floats(plan: Plan) -> list[Diagnostic]:
    """Returns an error for each op that stays float without being excluded."""
    return [
        error_at(
            op, "stays-float", f"it would compute with floats: {reason}", "exclude it, or leave `strict` out"
        ).diagnostics[0]
        for op, reason in plan.reasons.items()
        if reason not in (EXCLUDED, FLOAT_STATE)
    ]
