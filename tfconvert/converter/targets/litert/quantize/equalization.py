"""Chooses what channels are divided by, so that integers lose least.

All channels of a value share one scale of integers, so that small ones get few of its steps; and each row of a filter
has one scale, so that small columns get few of its steps. Dividing a channel moves spread from the one to the other:

    channels of y within 0.01 to 1   y / s  ->  all within 1
    columns of v within 1            v * s  ->  columns within 0.01 to 1

The error that a choice leaves is estimated: that of each value, of uniform steps over the range of its widest channel,
counts as the filters that read it amplify it; that of filters as the numbers they are multiplied by do. The divisors
with the least error are found step by step, and taken if they gain enough. They don't depend on the divisors that the
model comes with: a network and the same one with uneven channels become equal.

The function stays the same. After Nagel et al., Data-Free Quantization (arXiv 1906.04721), and Xiao et al., SmoothQuant
(arXiv 2211.10438), which balance ranges of pairs of layers; here all that is bound together has one choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from itertools import groupby
from typing import NamedTuple

import numpy as np

from tfconvert.converter.pipeline.pass_result import Equalization
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.quantize.channels import FIXED, Channels, Product, components
from tfconvert.converter.targets.litert.quantize.figures import DIVISORS
from tfconvert.converter.targets.litert.quantize.hybrid import Form
from tfconvert.converter.targets.litert.quantize.observers import ChannelRange
from tfconvert.schema.dialects import tensor_data, tfl
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

# What a choice may leave of the error to be worth it: half. Where nothing is uneven, estimates err by as much.
_LEFT = 0.5

# How often a choice is refined, by what part of the way, and the power of ranges that stands for the largest.
_ROUNDS = 40
_RATE = 0.1
_POWER = 8

# Divisors are rounded, so that the last bits of sums, which differ between processors, don't matter.
_GRAIN = math.log(2) / DIVISORS

# Of larger filters only some rows are looked at.
_MAX_ELEMENTS = 1 << 17

# Numbers within a range are this part of it, in the mean.
_RMS = 3.0

# The mean square of numbers that nothing is known of, and the share of it that a rectifier leaves at least.
_UNKNOWN = 1.0
_LEAST = 0.2

# The nodes and weights of a sum that stands for the mean of a function of a normal number.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()

# The widest of estimated ranges is twice as wide as they seem: a ResNet-50 with random weights would lose 3 dB.
_DOUBT = 4.0

# Numbers further apart would lose their last bits in sums of floats.
_MOST = math.log(2.0**20)


class Equalized(NamedTuple):
    """A choice of divisors."""

    divisors: Array  # The divisor of each channel.
    summary: Equalization


class _Value(NamedTuple):
    """Numbers that share a scale: the channels they are of, and their ranges."""

    ids: Array
    low: Array
    high: Array


class _Reader(NamedTuple):
    """A weight that multiplies channels, whose products are added up.

    Attributes:
        ids: The channel of each column.
        power: The sum of the squares of each column, for results of a power of 1.
        columns: The steps that each column of the weight alone would need, a row for each scale, for such results;
            `None` if each column has its own scale, or the weight is floats.
        apart: How much the result of each column matters, if each has one.
    """

    ids: Array
    power: Array
    columns: Array | None
    apart: Array


class _Group(NamedTuple):
    """Channels that have to be chosen together, by the variables of their classes, and all that they are in."""

    variables: Array
    values: list[_Value]
    readers: list[_Reader]


class Equalizer:
    """Chooses divisors for the channels of a function.

    Args:
        channels: The channels.
        extents: The ranges of the channels of values, if integers of one scale hold values.
        steps: The number of steps in the range of a value that is integers.
        form_of: Returns the form that the weight of a product gets, `None` if it stays floats.
    """

    def __init__(
        self,
        channels: Channels,
        extents: Mapping[Value, ChannelRange],
        steps: float,
        form_of: Callable[[Product], Form | None],
    ) -> None:
        self._channels, self._steps = channels, steps
        self._forms = {product: form_of(product) for product in channels.products}
        first, inverse = channels.labels.T
        # Channels of a class and of the class of their inverses have one variable: the logarithm of their divisors.
        self._variable = np.minimum(first, inverse)
        self._sign = np.where(first == FIXED, 0, np.where(first <= inverse, 1, -1))
        self._values = [
            _Value(channels.of[value].reshape(-1), seen.low.reshape(-1), seen.high.reshape(-1))
            for value, seen in extents.items()
        ]
        self._power = self._powers(extents) if extents else _estimated(channels)
        self._doubt = 1.0 if extents else _DOUBT
        self._largest = self._seen() if extents else _RMS * np.sqrt(self._power)
        self._values += self._of_constants() if extents else self._of_products()
        self._gains = np.zeros(len(first) * 2)
        self._readers: list[_Reader] = []
        for each in reversed(channels.products):
            reader = self._reader(each)
            if reader is not None:
                self._readers.append(reader)
                np.add.at(self._gains, first[reader.ids], reader.power)
        self._gains = self._gains[first]

    def _seen(self) -> Array:
        """Returns the largest magnitude of each channel's class."""
        first = self._channels.labels[:, 0]
        largest = np.zeros(len(first) * 2)
        for ids, low, high in self._values:
            np.maximum.at(largest, first[ids], np.maximum(-low, high))
        return largest[first]

    def _powers(self, extents: Mapping[Value, ChannelRange]) -> Array:
        """Returns the mean square of each channel's class."""
        first = self._channels.labels[:, 0]
        power = np.zeros(len(first) * 2)
        for (ids, _, _), seen in zip(self._values, extents.values(), strict=True):
            np.maximum.at(power, first[ids], seen.power.reshape(-1))
        return power[first]

    def _of_constants(self) -> Iterator[_Value]:
        """Yields constants that are integers of one scale, as values are."""
        for each in self._channels.constants:
            if each.op.name.removeprefix(tfl.PREFIX) not in operators.filters():
                array, divided = each.aligned()
                axes = tuple(axis for axis in range(array.ndim) if divided.shape[axis] == 1)
                largest = np.broadcast_to(np.abs(array).max(axes, keepdims=True), divided.shape).reshape(-1)
                yield _Value(divided.reshape(-1), -largest, largest)

    def _of_products(self) -> Iterator[_Value]:
        """Yields the values that become integers at run time, with the ranges that are estimated."""
        for product, form in self._forms.items():
            if form is not None and not form.dequantized:
                ids = self._channels.of[product.op.operands[product.operand]].reshape(-1)
                yield _Value(ids, -self._largest[ids], self._largest[ids])

    def _reader(self, product: Product) -> _Reader | None:
        op, index, weight, axis, rows = product
        form = self._forms[product]
        ids = self._channels.of[op.operands[index]].reshape(-1)
        results = self._channels.of.get(op.results[0])
        # How much an error of each result matters: as much as what reads it amplifies it.
        matters = np.ones(1) if results is None else self._gains[self._channels.labels[results.reshape(-1), 0]]
        matters = matters if matters.any() else np.ones(1)
        columns, apart = None, np.ones(1)
        constant = tensor_data.constant_of(op.operands[weight])
        if constant is None:
            other = self._channels.of.get(op.operands[weight])
            if other is None or other.size != ids.size:
                return None
            power = self._power[other.reshape(-1)]
        else:
            array = np.moveaxis(tensor_data.to_array(constant), axis, -1)
            if array.shape[-1] != ids.size:
                ids = np.repeat(ids, array.shape[-1] // ids.size)
            if rows is None or rows == axis:
                flat = np.abs(array.reshape(-1, array.shape[-1]))
                is_each = op.name != "tfl.batch_matmul" and matters.size in (1, ids.size)
                apart = matters if is_each else np.full(1, matters.sum())
                power = np.einsum("rc,rc->c", flat, flat, dtype=np.float64) * apart
                if form is not None and form.axis is None:
                    columns = flat.max(0)[None]
            else:
                array = np.moveaxis(array, rows - (rows > axis), 0)
                every = -(-max(array.size // 4, len(array) * ids.size) // _MAX_ELEMENTS)
                matters = np.broadcast_to(matters if matters.size == len(array) else np.ones(1), len(array))[::every]
                array = np.abs(array[::every]).reshape(len(matters), -1, ids.size)
                squares = np.square(array).reshape(len(array), -1)
                power = ((matters / matters.max()).astype(np.float32) @ squares).reshape(-1, ids.size)
                power = power.sum(0, dtype=np.float64) * (matters.max() * every)
                if form is not None:
                    widest = array.max(1) if form.axis is not None else array.max((0, 1))
                    columns = widest * np.sqrt(matters * every)[:, None]
        signal = float((power * self._power[ids]).sum())
        if not signal > 0 or not math.isfinite(signal):
            return None
        if columns is not None and form is not None:
            columns = columns / (math.sqrt(signal) * (2 ** (form.bits - 1) - 1))
        return _Reader(ids, power / signal, columns, np.broadcast_to(apart, ids.shape))

    def run(self, *, everything: bool = False) -> Equalized | None:
        """Returns the choice, `None` if nothing is to be divided.

        Args:
            everything: Whether a choice is taken though it gains little.
        """
        logs = np.zeros(len(self._variable) * 2)
        taken: list[Equalization] = []
        for group in self._groups():
            before = self._error(group, logs)
            chosen = self._refined(group, logs)
            error = self._error(group, chosen, self._doubt)
            if not 0 < error < before * (1.0 if everything else _LEFT):
                continue
            spreads = self._spread(group, logs), self._spread(group, chosen)
            logs[group.variables] = chosen[group.variables]
            taken.append(Equalization(0, 1, *spreads, 10 * math.log10(before / error)))
        divisors = np.exp(self._sign * logs[self._variable]).astype(np.float32)
        if not taken or not (divisors != 1).any():
            return None
        return Equalized(divisors, reduce(Equalization.joined, taken)._replace(channels=int((divisors != 1).sum())))

    def _spread(self, group: _Group, logs: Array) -> float:
        """Returns how many times the widest channel is as wide as the mean one, of the worst value or weight."""
        spreads = [1.0]
        with np.errstate(divide="ignore"):
            widths = [(each.ids, np.log(np.maximum(-each.low, each.high))) for each in group.values]
            if not widths:  # Only weights become integers.
                widths += [
                    (each.ids, -np.log(each.columns.max(0))) for each in group.readers if each.columns is not None
                ]
        for ids, width in widths:
            found = (width - self._sign[ids] * logs[self._variable[ids]])[np.isfinite(width)]
            spreads += [math.exp(float(found.max() - found.mean()))] if found.size else []
        return max(spreads)

    def _groups(self) -> Iterator[_Group]:
        """Yields the channels that have to be chosen together."""
        free = [ids[self._sign[ids] != 0] for ids in self._together()]
        free = [ids for ids in free if ids.size]
        if not free:
            return
        starts = np.concatenate([self._variable[ids] for ids in free])
        ends = np.concatenate([np.full(ids.size, self._variable[ids[0]]) for ids in free])
        found = components(len(self._variable) * 2, starts, ends)
        groups: dict[int, _Group] = {}
        used = np.unique(starts)
        order = np.argsort(found[used], kind="stable")
        for variables in np.split(used[order], np.flatnonzero(np.diff(found[used][order])) + 1):
            groups[int(found[variables[0]])] = _Group(variables, [], [])
        for value in self._values:
            if (place := self._place(found, value.ids)) is not None:
                groups[place].values.append(value)
        for reader in self._readers:
            if (place := self._place(found, reader.ids)) is not None:
                groups[place].readers.append(reader)
        yield from groups.values()

    def _together(self) -> Iterator[Array]:
        yield from (value.ids for value in self._values)
        yield from (reader.ids for reader in self._readers)
        for ids in self._channels.of.values():
            yield ids.reshape(-1)

    def _place(self, found: Array, ids: Array) -> int | None:
        free = ids[self._sign[ids] != 0]
        return int(found[self._variable[free[0]]]) if free.size else None

    def _refined(self, group: _Group, logs: Array) -> Array:
        """Returns better divisors near some: where an error that grows with a divisor weighs less, the divisor grows.

        The widest channel counts as all channels do by a high power of their ranges, so that each has a slope.
        """
        logs = logs.copy()
        columns = [None if each.columns is None else each.columns**_POWER for each in group.readers]
        for _ in range(_ROUNDS):
            # The slopes of what grows with a variable, and of what falls.
            slopes = np.zeros((2, len(logs)))
            for ids, low, high in group.values:
                signs, places = self._sign[ids], self._variable[ids]
                factors = np.exp(signs * logs[places])
                parts = (np.maximum(-low, high) / factors) ** _POWER
                noise = self._gains[ids] * factors**2
                widest = float(parts.sum())
                if widest > 0:
                    error = widest ** (2 / _POWER) * 4 / self._steps**2
                    self._add(slopes, ids, error * noise, error * float(noise.sum()) * parts / widest)
            for reader, raised in zip(group.readers, columns, strict=True):
                if raised is not None:
                    factors = np.exp(self._sign[reader.ids] * logs[self._variable[reader.ids]])
                    parts = factors**_POWER
                    widest = raised @ parts
                    widest[widest == 0] = 1.0
                    rows = widest ** (2 / _POWER)
                    noise = reader.apart * self._power[reader.ids] / factors**2
                    grows = (rows / widest) @ raised * parts * float(noise.sum())
                    self._add(slopes, reader.ids, grows, float(rows.sum()) * noise)
            grows, falls = slopes[:, group.variables]
            is_known = (grows > 0) & (falls > 0)
            change = _RATE * np.log(np.where(is_known, falls, 1.0) / np.where(is_known, grows, 1.0))
            logs[group.variables] = np.clip(logs[group.variables] + change, -_MOST, _MOST)
            if np.abs(change).max() < _GRAIN / 4:
                break
        return np.round(logs / _GRAIN) * _GRAIN

    def _add(self, slopes: Array, ids: Array, grows: Array, falls: Array) -> None:
        places, is_up = self._variable[ids], self._sign[ids] > 0
        np.add.at(slopes[0], places, np.where(is_up, grows, falls))
        np.add.at(slopes[1], places, np.where(is_up, falls, grows))

    def _error(self, group: _Group, logs: Array, doubt: float = 1.0) -> float:
        """Returns the error of a choice, as a share of the power of what reads the channels.

        Args:
            group: The channels.
            logs: The logarithms of the divisors.
            doubt: The factor by which the error of values may be larger.
        """
        error = 0.0
        for ids, low, high in group.values:
            factors = np.exp(self._sign[ids] * logs[self._variable[ids]])
            width = max(float((high / factors).max()), 0.0) - min(float((low / factors).min()), 0.0)
            error += doubt * (width / self._steps) ** 2 * float((self._gains[ids] * factors**2).sum())
        for reader in group.readers:
            if reader.columns is not None:
                factors = np.exp(self._sign[reader.ids] * logs[self._variable[reader.ids]])
                widest = (reader.columns * factors).max(1)
                error += float((widest**2).sum() * (reader.apart * self._power[reader.ids] / factors**2).sum())
        return error


def _estimated(channels: Channels) -> Array:
    """Returns the mean square of each channel's class as constants make it, all numbers being as if independent."""
    first = channels.labels[:, 0]
    found = np.zeros(len(first) * 2)
    found[FIXED] = _UNKNOWN
    for op, constants in groupby(channels.constants, lambda each: each.op):
        variance, mean, ids = np.zeros(1), np.zeros(1), np.zeros(1, np.intp)
        for each in constants:
            array, divided = each.aligned()
            axes = tuple(axis for axis in range(array.ndim) if divided.shape[axis] == 1)
            if each.is_factor:
                known = found[first[each.multiplied]]
                squares = np.square(array) * np.where(known > 0, known, 1.0)
                variance = (squares.mean if each.is_table else squares.sum)(axes).reshape(-1)
            else:
                mean = np.broadcast_to(array.mean(axes, keepdims=True), divided.shape).reshape(-1)
            ids = divided.reshape(-1)
        power = variance + np.square(mean)
        if questions.activation(op) == "RELU":
            after = np.maximum(mean + np.sqrt(variance) * _NODES[:, None], 0)
            power = np.maximum(_WEIGHTS @ np.square(after), _LEAST * power)
        # What is added has the sum of both.
        labels, places = np.unique(first[ids], return_index=True)
        found[labels] += np.broadcast_to(power, ids.shape)[places]
        found[FIXED] = _UNKNOWN
    found[found == 0] = 1.0
    return found[first]
