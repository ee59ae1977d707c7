"""Decides which ops of a function become integers, and with which scales, before anything is changed.

An operator is quantized if its kernel accepts integers (`rules`), the user has not excluded it, and the ranges of all
of its operands and results are known. The others stay float, each for a reason that is reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tfconvert.converter.ir.extent import extent
from tfconvert.converter.targets.litert.fake_quant import constant_behind
from tfconvert.converter.targets.litert.quantize import fake_quant, lstm, speed, weights
from tfconvert.converter.targets.litert.quantize.candidates import (
    Settings,
    activations,
    candidate,
    is_constant,
    is_float,
)
from tfconvert.converter.targets.litert.quantize.curves import Curves
from tfconvert.converter.targets.litert.quantize.groups import Groups
from tfconvert.converter.targets.litert.quantize.hybrid import MIN_ELEMENTS, ROWS, gains, size_of
from tfconvert.converter.targets.litert.quantize.needs import Needs
from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.converter.targets.litert.quantize.parameters import (
    headroom,
    minimum_scale,
    range_of,
    range_of_integers,
    range_of_scale,
    uniform_of,
)
from tfconvert.converter.targets.litert.quantize.rules import RULES, SIZES_ONLY, Rule, Scales
from tfconvert.converter.targets.litert.quantize.variables import accessed, is_access
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I8, IntegerType
from tfconvert.schema.ir.values import OpResult, Value
from tfconvert.settings.quantization import has_channels

# The maximum number of rounds of widening groups: one is enough unless an op shares a group with an earlier one.
_ROUNDS = 3

_HYBRID = "the others of its loop are floats, which it multiplies by its integers itself"
_IN_LOOP = "the others of its loop are floats, and conversions would take longer"

# Operators that attention masks its scores with.
_MASKING = frozenset(f"tfl.{name}" for name in ("add", "sub", "select", "select_v2", "minimum", "maximum"))
_BLURRED = "a step of its integers would be several of the results that are computed from them"

# The fewest steps of integers that numbers may have beside others that are far away, if results depend on each.
_FEWEST_STEPS = {8: 32, 16: 256}

# Operators that keep a divisor, or the operand of a logarithm, from being 0.
_GUARDING = frozenset(("tfl.add", "tfl.maximum"))
_GUARD = "its constant is only a few steps of its integers, and its result must not be 0"
_GUARD_STEPS = 8

# Log-probabilities may be below those that its kernel can represent.
_CLIPPED = "its integers have a fixed range, which its results exceed"

_TOO_LARGE = "some of its numbers are too large for integers"
NOT_SEEN = "the ranges of its operands or results are unknown"


class Weight(NamedTuple):
    """How a weight is quantized.

    Attributes:
        uniform: The mapping of its integers to its numbers; `None` if these are not all finite.
        snr: Its signal-to-noise ratio after that, in dB; NaN if it isn't known.
    """

    uniform: Uniform | None
    snr: float = math.nan


class Plan:
    """How one function is quantized.

    Attributes:
        quantized: The ops that are quantized, with their rules, in order.
        reasons: The reasons of other ops with floats.
        slow: Those of them that are better as floats on processors.

    Args:
        function: The function.
        settings: How to quantize.
    """

    def __init__(self, function: FuncOp, settings: Settings) -> None:
        self._settings, self._block, self._curves = settings, function.body.block, Curves()
        # What is clipped beyond the samples is worse than errors of half as many integers beside those of weights.
        self._reach = headroom(settings.storage) if _has_weights(function) else 1.0
        self._extremes: dict[Constant, Range] = {}
        self._weights: dict[tuple[Operation, int], Weight] = {}
        self.quantized: dict[Operation, Rule] = {}
        self.reasons: dict[Operation, str] = {}
        self.slow: dict[Operation, str] = {}
        ops = list(function.body.block.ops)
        for op in filter(_has_floats, ops):
            if op.name in _CONVERSIONS or (fake_quant.is_fake_quant(op) and is_constant(op.results[0])):
                continue
            if lstm.creates_state(op):
                continue
            found = self._candidate(op)
            if isinstance(found, Rule) and isinstance(op, tfl.TFLOp) and self._is_dense_in_loop(op):
                self.slow[op] = found = _HYBRID if gains(op, ROWS[op.op_name]) else _IN_LOOP
            if isinstance(found, Rule):
                self.quantized[op] = found
            else:
                self.reasons[op] = found
        self._groups = self._settled(ops)

    def _candidate(self, op: Operation) -> Rule | str:
        """Returns an op's rule, or why it can't be quantized."""
        if is_access(op):
            variables = self._settings.variables
            return RULES[op.name] if variables.uniform(op) is not None else variables.reason(op)
        return _FAKE_QUANT if fake_quant.is_fake_quant(op) else candidate(op, self._settings)

    def _is_dense_in_loop(self, op: Operation) -> bool:
        return self._settings.by_speed and self._settings.in_loop and op.name == "tfl.fully_connected"

    @property
    def storage(self) -> IntegerType:
        return self._settings.storage

    def uniform(self, value: Value) -> Uniform | None:
        """Returns the mapping of a quantized op's result; `None` if the value is computed as float."""
        return self._groups.uniform(value) if self._is_integer(value) else None

    def operand_uniform(self, op: Operation, index: int) -> Uniform | None:
        """Returns the mapping of an op's activation, `None` if the op uses floats."""
        rule = self.quantized.get(op)
        value = op.operands[index]
        if op.name in SIZES_ONLY:
            return self.uniform(value)
        if rule is None or index not in activations(op, rule):
            return None
        if is_access(op):
            return self._settings.variables.uniform(op)
        if rule.scales is Scales.SAME:
            return self._groups.uniform(next(result for result in op.results if is_float(result)))
        return self._operand(op, index, rule, self._groups)

    def given(self, value: Value) -> Uniform | None:
        """Returns the mapping that a kernel or training fixes for a value, or `None`."""
        return self._groups.given(value)

    def range(self, value: Value) -> Range | None:
        """Returns the range of all values that share a value's scale, `None` if it is unknown."""
        return self._groups.range(value)

    def weight(self, op: Operation, index: int, bits: int | None = None) -> Weight:
        """Returns how a weight of a quantized op is quantized.

        Args:
            op: The op.
            index: The index of the operand.
            bits: Bits of its integers, by default from the settings.
        """
        known = self._weights.get((op, index))
        if known is None:
            known = self._weights[op, index] = self._weight(op, index, bits)
        return known

    def _weight(self, op: Operation, index: int, bits: int | None) -> Weight:
        rule, settings, value = self.quantized[op], self._settings, op.operands[index]
        trained = fake_quant.trained_uniform(value)
        fits = trained is not None and trained.axis in (None, rule.axis) and not any(trained.zero_points)
        if fits and bits is None:
            return Weight(trained)
        constant = constant_behind(value)
        assert constant is not None, "checked by the candidate"
        axis = rule.axis if has_channels(settings.per_channel, op.name.removeprefix("tfl.")) else None
        found = extent(constant, axis)
        if not found.is_finite:
            return Weight(None)
        uniform = weights.symmetric(found, axis, bits or (settings.bits if rule.few_bits else 8))
        return Weight(uniform, weights.snr(found, uniform, size_of(value)))

    def _unknown(self, op: Operation) -> str:
        """Returns why the mappings that an op needs aren't known."""
        if self.quantized[op].others and lstm.is_cell_seen(op) and lstm.cell_uniform(op) is None:
            return lstm.TOO_WIDE
        ranges = [range_of(value) for value in (*op.operands, *op.results) if is_float(value)]
        ranges += self._constant_ranges(op)
        return _TOO_LARGE if any(seen and not seen.is_countable for seen in ranges) else NOT_SEEN

    def _operand(self, op: Operation, index: int, rule: Rule, groups: Groups) -> Uniform | None:
        """Returns the mapping of an activation that has a scale of its own."""
        value = op.operands[index]
        if not is_constant(value):
            return groups.uniform(value)
        seen = self._needs.of_constant(op, index)
        uniform = self._own_uniform(value, seen, is_centered=index == rule.centered)
        minimum = self._nearest(op, index, groups)
        if uniform.scales[0] < minimum:
            wide = range_of_scale(minimum, self._settings.storage)
            uniform = uniform_of(seen.joined(wide), self._settings.storage)
        # Zeros could have any scale.
        is_zero = seen == Range(0.0, 0.0)
        return Uniform(uniform.storage, (rule.below / 2,), (0,)) if is_zero and rule.below < math.inf else uniform

    def _nearest(self, op: Operation, index: int, groups: Groups) -> float:
        """Returns the minimum scale of a constant that XNNPACK takes; it is far smaller than a step of the result."""
        result = groups.uniform(op.results[0])
        others = [groups.uniform(value) for value in (*op.operands[:index], *op.operands[index + 1 :])]
        if self._settings.storage is not I8 or result is None or len(others) != 1 or others[0] is None:
            return 0.0
        return speed.nearest(op.name.removeprefix(tfl.PREFIX), [others[0].scales[0]], result.scales[0])

    def _is_integer(self, value: Value) -> bool:
        return isinstance(value, OpResult) and value.op in self.quantized and is_float(value)

    def _settled(self, ops: Sequence[Operation]) -> Groups:
        """Drops ops until the ranges of all others are known; returns the groups."""
        while True:
            groups = self._grouped(ops)
            unknown = [op for op, rule in self.quantized.items() if not self._is_known(op, rule, groups)]
            for op in unknown:
                self.reasons[op] = self._unknown(op)
            coarse = [] if unknown else self._coarse(groups)
            for op in coarse:
                self.reasons[op] = "its kernel doesn't take scales as large as its operands'"
            by_speed = self._settings.by_speed and not unknown and not coarse
            blurred = [] if self._settings.strict or unknown or coarse else self._blurred(groups)
            self.reasons.update(dict.fromkeys(blurred, _BLURRED))
            clipped = [] if self._settings.strict or unknown else self.clipped()
            self.reasons.update(dict.fromkeys(clipped, _CLIPPED))
            guards = [] if unknown or coarse else self._guards(groups)
            self.reasons.update(dict.fromkeys(guards, _GUARD))
            slow = self._slow(groups) if by_speed and not blurred and not guards else {}
            self.slow.update({op: speed.reason(times) for op, times in slow.items()})
            self.reasons.update(self.slow)
            idle = [] if unknown or coarse or blurred or guards or slow else self._idle()
            dropped = dict.fromkeys((*unknown, *coarse, *blurred, *clipped, *guards, *slow, *idle))
            for op in dropped:
                del self.quantized[op]
            if not dropped:
                return groups

    def _blurred(self, groups: Groups) -> list[Operation]:
        """Returns the ops that mask numbers so far away that integers are too coarse, and those that depend on them."""
        found: list[Operation] = []
        for op, rule in self.quantized.items():
            uniform = groups.uniform(op.results[0]) if op.name in _MASKING else None
            steps = math.inf if uniform is None else self._fewest_steps(op, rule, uniform.scales[0])
            if uniform is not None and steps < _FEWEST_STEPS[self.storage.width]:
                users = self._needs.blurred(op.results[0], uniform.scales[0], is_lost=steps < 1)
                found += [op, *(each for each in users if each in self.quantized)] if users else []
        return found

    def _fewest_steps(self, op: Operation, rule: Rule, step: float) -> float:
        """Returns how many steps of its result the numbers of one of an op's operands have at least."""
        operands = [op.operands[index] for index in activations(op, rule)]
        ranges = [self._needs.of(value) for value in operands if not is_constant(value)]
        widths = [seen.high - seen.low for seen in ranges if seen is not None]
        return min((width / step for width in widths if width > 0), default=math.inf)

    def clipped(self) -> list[Operation]:
        """Returns the ops whose results exceed the range that their kernel fixes."""
        fixed = {op: rule.fixed_type(self.storage) for op, rule in self.quantized.items()}
        return [op for op, given in fixed.items() if given and not fits(self._needs.of(op.results[0]), given)]

    def _guards(self, groups: Groups) -> list[Operation]:
        """Returns the ops that keep a number from being 0 for an op with floats, such as a division."""
        if self._settings.strict:
            return []
        found: list[Operation] = []
        for op, rule in self.quantized.items():
            found += [op] if self._is_guarded(op, rule) else self._guard(op, groups)
        return found

    def _is_guarded(self, op: Operation, rule: Rule) -> bool:
        """Returns whether an op computes only what others keep from being 0; its fixed steps would make it 0."""
        users = {use.operation for result in op.results for use in result.uses}
        return rule.scales is Scales.FIXED and bool(users) and all(self.reasons.get(each) == _GUARD for each in users)

    def _guard(self, op: Operation, groups: Groups) -> list[Operation]:
        """Returns an op that keeps a number from being 0, with those that depend on it; none if it is another one."""
        if op.name not in _GUARDING:
            return []
        result = op.results[0]
        uniform, seen = groups.uniform(result), range_of(result)
        if uniform is None or seen is None or seen.low <= 0:
            return []
        step = uniform.scales[0]
        if not any(0 < each.high < _GUARD_STEPS * step for each in self._constant_ranges(op)):
            return []
        if not any(use.operation in self.quantized for use in result.uses):
            return [op]
        users = self._needs.blurred(result, step, is_lost=False) if seen.low < step else []
        return [op, *(each for each in users if each in self.quantized)] if users else []

    def float_only(self) -> list[Operation]:
        """Returns the ops with weights that have no kernel for integers, unless nothing else becomes integers."""
        exclusion = self._settings.exclusion
        ops = [op for op in self.reasons if op.name not in RULES and op.name.removeprefix(tfl.PREFIX) in ROWS]
        return [op for op in ops if not exclusion.excludes(op)] if self.quantized or self.slow else []

    def slower_with_integers(self) -> dict[Operation, speed.Times]:
        """Returns the ops with integers that LiteRT would compute faster with floats."""
        return self._slow(self._groups)

    def _slow(self, groups: Groups) -> dict[Operation, speed.Times]:
        """Returns the ops that are to be floats so that LiteRT is fastest, conversions included."""
        times = {op: self._times(op, rule, groups) for op, rule in self.quantized.items()}
        return speed.faster_with_floats(times)

    def _times(self, op: Operation, rule: Rule, groups: Groups) -> speed.Times | None:
        """Returns the times of an op that may compute with either; `None` if its times are unknown."""
        if _has_large_weight(op, rule) or is_access(op) or fake_quant.is_fake_quant(op):
            return None
        operands = [self._operand(op, index, rule, groups) for index in activations(op, rule)]
        result = next((groups.uniform(result) for result in op.results if is_float(result)), None)
        kind = speed.kind_of(op, operands, result)
        if kind is None:
            return None
        times = speed.times_of(kind, speed.work_of(op))
        return times._replace(integers=0.0) if speed.is_swish(op) else times

    def _coarse(self, groups: Groups) -> list[Operation]:
        """Returns the ops whose operands have larger scales than their kernels accept."""
        self._widen_results(groups)
        return [
            op
            for op, rule in self.quantized.items()
            if rule.below < math.inf and any(scale >= rule.below for scale in self._scales(op, rule, groups))
        ]

    def _widen_results(self, groups: Groups) -> None:
        """Widens results whose scales are too small for their kernels, and then the results computed from them."""
        storage = self._settings.storage
        for _ in range(_ROUNDS):
            for op, rule in self.quantized.items():
                results = [result for result in op.results if is_float(result)]
                if rule.scales is not Scales.OWN or not results or groups.given(results[0]) is not None:
                    continue
                uniform = self.weight(op, rule.weight).uniform if rule.weight is not None else None
                weight = max(uniform.scales) if uniform is not None else None
                minimum = minimum_scale(op, storage, self._scales(op, rule, groups), weight)
                known = groups.uniform(results[0])
                if known is not None and known.scales[0] < minimum:
                    groups.widen(results[0], range_of_scale(minimum, storage))

    def _scales(self, op: Operation, rule: Rule, groups: Groups) -> list[float]:
        uniforms = [self._operand(op, index, rule, groups) for index in activations(op, rule)]
        return [uniform.scales[0] for uniform in uniforms if uniform is not None]

    def _grouped(self, ops: Sequence[Operation]) -> Groups:
        self._needs = Needs(self._block, self.quantized, self.storage, self._constant_range, self._curves, self._reach)
        groups = Groups(self._settings.storage, self._needs.of)
        for op in ops:
            rule = self.quantized.get(op)
            if rule is None:
                continue
            if is_access(op):
                self._group_variable(op, groups)
            elif fake_quant.is_fake_quant(op):
                self._group_fake_quant(op, groups)
            elif rule.scales is Scales.SAME:
                self._group_same(op, groups)
            elif rule.scales is Scales.FIXED:
                fixed = rule.fixed_type(self._settings.storage)
                assert fixed is not None
                groups.give(op.results[0], fixed)
            if rule.centered is not None:
                groups.center(op.operands[rule.centered])
        lstm.join_alike(self.quantized, groups)
        return groups

    def _group_variable(self, op: Operation, groups: Groups) -> None:
        """Gives a value that is read or assigned its variable's mapping; values that can't have it are converted."""
        value, uniform = accessed(op), self._settings.variables.uniform(op)
        assert uniform is not None, "the op is quantized"
        if not is_constant(value) and groups.given(value) is None and fits(groups.range(value), uniform):
            groups.give(value, uniform)

    def _group_fake_quant(self, op: Operation, groups: Groups) -> None:
        """Gives a value the mapping that the model was trained with."""
        uniform = fake_quant.widened(fake_quant.uniform_of(op))
        source, result = op.operands[0], op.results[0]
        if uniform.storage is not self._settings.storage:
            groups.widen(result, range_of_integers(uniform))
            groups.widen(source, range_of_integers(uniform))
            return
        uniform = fake_quant.symmetric(uniform)
        if groups.give(source, uniform):
            groups.join(source, result)
        else:
            groups.give(result, uniform)

    def _group_same(self, op: Operation, groups: Groups) -> None:
        """Joins the values that an op moves numbers between, except those with other given scales."""
        computed = parts = [value for value in op.operands if is_float(value) and not is_constant(value)]
        first, *others = (result for result in op.results if is_float(result))
        for result in others:
            groups.join(first, result)
        seen = self._constant_ranges(op)
        given = {groups.given(value) for value in computed}
        if len(given) == 2 and None in given:
            own = next(uniform for uniform in given if uniform is not None)
            is_variable = own in self._settings.variables.uniforms.values()
            # The other parts of a ring buffer also get the scale of its variable.
            if is_variable and all(fits(groups.range(value), own) for value in (*computed, first)):
                given = {own}
        if len(given) > 1 or not all(fits(numbers, next(iter(given), None)) for numbers in seen):
            computed = [value for value in computed if groups.given(value) is None]
        for value in computed:
            if not groups.loses(value, first):
                groups.join(first, value)
        for numbers in seen:
            groups.widen(first, numbers)
        if groups.uniform(first) is None:
            self._group_parts(first, parts, groups)

    @staticmethod
    def _group_parts(result: Value, parts: Sequence[Value], groups: Groups) -> None:
        """Gives a result of parts with different mappings, whose range is unknown, a mapping that covers all parts.

        This happens in models trained with fake quantization of the parts, but not of their concatenation.
        """
        uniforms = [uniform for uniform in map(groups.uniform, parts) if uniform is not None]
        if len(uniforms) == len(parts):
            ranges = [range_of_integers(uniform) for uniform in uniforms]
            sufficient = (uniform for uniform in uniforms if all(fits(each, uniform) for each in ranges))
            widest = next(sufficient, None)
            if widest is not None:
                groups.give(result, widest)
            for each in ranges:
                groups.widen(result, each)

    def _is_known(self, op: Operation, rule: Rule, groups: Groups) -> bool:
        """Returns whether all mappings that an op needs are known."""
        if is_access(op):
            return True
        operands = [op.operands[index] for index in activations(op, rule)]
        computed = [value for value in operands if not is_constant(value)]
        results = [result for result in op.results if is_float(result)]
        if rule.others and lstm.cell_uniform(op) is None:
            return False
        return all(groups.uniform(value) is not None for value in (*computed, *results)) and all(
            seen.is_countable for seen in self._constant_ranges(op)
        )

    def _idle(self) -> list[Operation]:
        """Returns the ops that only move numbers, with no computing op before or after them.

        Those that move numbers of large constants are not among them: integers take less space.
        """
        if self._settings.integers_only:
            return []
        working = {
            op
            for op, rule in self.quantized.items()
            if rule.scales is not Scales.SAME or any(map(_is_large_constant, op.operands))
        }
        pending = list(working)
        while pending:
            for op in _neighbours(pending.pop()):
                if op in self.quantized and op not in working:
                    working.add(op)
                    pending.append(op)
        return [op for op in self.quantized if op not in working]

    def _constant_ranges(self, op: Operation) -> list[Range]:
        """Returns the ranges of the constants among an op's activations, without the numbers that don't matter."""
        indices = activations(op, self.quantized[op])
        return [self._needs.of_constant(op, index) for index in indices if is_constant(op.operands[index])]

    def _own_uniform(self, value: Value, seen: Range, *, is_centered: bool) -> Uniform:
        trained = fake_quant.trained_uniform(value)
        if trained is not None and trained.storage is self._settings.storage and trained.axis is None:
            return fake_quant.symmetric(fake_quant.widened(trained))
        return uniform_of(seen, self._settings.storage, is_centered=is_centered)

    def _constant_range(self, value: Value) -> Range:
        constant = constant_behind(value)
        assert constant is not None, "checked by the caller"
        known = self._extremes.get(constant)
        if known is None:
            known = self._extremes[constant] = Range.of(extent(constant))
        return known


_FAKE_QUANT = Rule(Scales.SAME)

# Conversions between integers and floats; the model may already have them.
_CONVERSIONS = frozenset(("tfl.quantize", "tfl.dequantize"))


def _has_floats(op: Operation) -> bool:
    if not isinstance(op, tfl.TFLOp) or op.op_name in tfl.BESIDE or op.name in SIZES_ONLY:
        return False
    return any(is_float(value) for value in (*op.operands, *op.results))


def _has_weights(function: FuncOp) -> bool:
    """Returns whether any function of a module multiplies by weights of 8 bits."""
    module = function.parent_op()
    rules = (RULES.get(op.name) for op in (module or function).walk())
    return any(rule is not None and rule.is_product for rule in rules)


def _is_large_constant(value: Value) -> bool:
    return is_float(value) and is_constant(value) and size_of(value) >= MIN_ELEMENTS


def _has_large_weight(op: Operation, rule: Rule) -> bool:
    """Returns whether an op multiplies by a weight that is to be integers because that takes less space."""
    return rule.is_product and rule.weight is not None and size_of(op.operands[rule.weight]) >= MIN_ELEMENTS


def _neighbours(op: Operation) -> Iterator[Operation]:
    """Yields the ops that produce or use an op's floats."""
    for value in filter(is_float, op.operands):
        if isinstance(value, OpResult):
            yield value.op
    for result in filter(is_float, op.results):
        for use in result.uses:
            yield use.operation


def fits(seen: Range | None, given: Uniform | None) -> bool:
    """Returns whether a mapping covers a range, if both are known."""
    if given is None or seen is None:
        return True
    covered = range_of_integers(given)
    step = given.scales[0]
    return covered.low - step <= seen.low and seen.high <= covered.high + step
