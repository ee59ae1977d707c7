"""The user's metric of a quantized model: measured on the outputs of both models, with the interval of the difference.

Named metrics have a value for each sample, and the interval follows from their differences (in pairs, since both models
ran on the same samples). That of shares is Agresti and Min's, which adds half a sample to each of the four outcomes: it
also says how little it means if no sample differs. A function has one value for all samples: it is called again with
samples drawn with replacement, the same for both models.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zipfile import BadZipFile

import numpy as np

from tfconvert.converter.pipeline.plugins import named_object
from tfconvert.converter.process.guard import Guard
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.fidelity import MetricFidelity
from tfconvert.schema.files import open_file
from tfconvert.settings.quantization import LOSSES, METRICS, Quantize

Results = Sequence[Mapping[str, Array]]
"""The outputs of a run of the float model and of the quantized one, by name."""

_Interval = tuple[float, float]

# The standard deviations on either side of a mean that are an interval of 95%.
_DEVIATIONS = 1.959964

# How often a function is called with samples that are drawn, and after how many seconds there is no interval.
_DRAWS = 1000
_SECONDS = 30.0


class Metric:
    """A metric, with the labels and the limits.

    Args:
        quantize: The settings that have a metric.
    """

    def __init__(self, quantize: Quantize) -> None:
        self._metric = function_of(quantize.metric)
        self._labels = labels_of(quantize.labels)
        self._count = _count(self._labels)
        self._limits = quantize.min_metric, quantize.max_loss
        self._name = str(getattr(self._metric, "__name__", None) or self._metric)

    def measured(self, runs: Sequence[Results], *, has_interval: bool = True) -> MetricFidelity:
        """Returns the metric of both models.

        Args:
            runs: The outputs of each run.
            has_interval: Whether to find the interval of a function, which is called many times for that.

        Raises:
            ConversionError: The labels don't fit the outputs, or the function fails (`wrong-metric`).
        """
        if not runs:
            raise _wrong("there are no samples of the first signature to measure the metric on", "pass some")
        models = [self._joined([run[number] for run in runs]) for number in range(2)]
        if callable(self._metric):
            (floats, quantized), (low, high) = self._of_function(self._metric, models, has_interval)
        else:
            (floats, quantized), (low, high) = self._of_samples(self._name, models)
        is_loss = not callable(self._metric) and self._name in LOSSES
        return MetricFidelity(self._name, floats, quantized, self._count, low, high, is_loss, *self._limits)

    def _joined(self, runs: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
        """Returns the outputs of all runs in arrays whose first axis counts the samples as the labels do."""
        return {name: self._stacked(name, [run[name] for run in runs]) for name in runs[0]}

    def _stacked(self, name: str, values: Sequence[Array]) -> Array:
        rows = sum(len(each) if each.ndim else 0 for each in values)
        if len({each.shape[1:] for each in values}) > 1 or len({each.ndim for each in values}) > 1:
            shapes = sorted({str(list(each.shape)) for each in values})
            message = f"the output {name!r} has other sizes for other samples: {' and '.join(shapes[:2])}"
            raise _wrong(message, "fix the sizes with input_shapes (--input-shape), or leave the metric out")
        if rows == self._count:
            found = np.concatenate(values)
        elif len(values) == self._count and len({each.shape for each in values}) == 1:
            found = np.stack(values)
        else:
            results = rows or len(values)
            raise _wrong(
                f"there are labels of {self._count} samples, and the output {name!r} has results of {results}",
                "pass a label for each sample, in their order; batches of a fixed size leave out the rows after the "
                "last whole one",
            )
        found.setflags(write=False)
        return found

    def _of_samples(self, name: str, models: Sequence[Mapping[str, Array]]) -> tuple[list[float], _Interval]:
        """Returns the values of a named metric, and the interval of their difference."""
        output, labels = self._only(models[0])
        measure = _error_of_rows if name in LOSSES else _hits_of_rows(int(name.removeprefix("top")))
        rows = [measure(model[output], labels, f"the metric {name} of the output {output!r}") for model in models]
        values = [_checked(float(each.mean()), name) for each in rows]
        differences = rows[1] - rows[0]
        return values, _interval(differences) if name in LOSSES else _interval_of_shares(differences)

    def _only(self, outputs: Mapping[str, Array]) -> tuple[str, Array]:
        """Returns the output that a named metric is about, and its labels."""
        labels = self._labels
        names = list(labels) if isinstance(labels, dict) else list(outputs)
        if len(names) != 1 or names[0] not in outputs:
            raise _wrong(
                f"the metric {self._name} is about one output, and there are {', '.join(map(repr, outputs))}",
                "pass the labels by the name of one, labels={name: array}; or a function of all",
            )
        return names[0], labels[names[0]] if isinstance(labels, dict) else labels

    def _of_function(
        self, function: Callable[[Any, Any], Any], models: Sequence[Mapping[str, Array]], has_interval: bool
    ) -> tuple[list[float], _Interval]:
        """Returns the values of a function, and the interval of their difference."""

        def value(outputs: Mapping[str, Array], chosen: Array | slice) -> float:
            picked = {name: array[chosen] for name, array in outputs.items()}
            given = picked if len(picked) > 1 else next(iter(picked.values()))
            if isinstance(self._labels, dict):
                labels = {name: array[chosen] for name, array in self._labels.items()}
            else:
                labels = self._labels[chosen]
            with Guard(lambda problem: _wrong(f"the metric {self._name} {problem}", _HOW)):
                return _checked(float(function(given, labels)), self._name)

        values = [value(outputs, slice(None)) for outputs in models]
        unknown = math.nan, math.nan
        if not has_interval:
            return values, unknown
        end = time.monotonic() + _SECONDS
        random, differences = np.random.default_rng(0), []
        for _ in range(_DRAWS):
            chosen = random.integers(0, self._count, self._count)
            try:
                first, second = (value(outputs, chosen) for outputs in models)
            except ConversionError:  # A function may need all samples, or one of each class.
                return values, unknown
            differences.append(second - first)
            if time.monotonic() > end:
                return values, unknown
        low, high = map(float, np.quantile(differences, (0.025, 0.975)))
        return values, (low, high) if low < high else unknown  # No sample differs, which says little about others.


_HOW = "it is called with the outputs (an array, or several by name) and the labels, and returns a number"


def function_of(metric: Any) -> Any:
    """Returns a metric's function, if it has one; the name of others.

    Args:
        metric: A name, `module:function`, whose module may be in the working directory, or a function.

    Raises:
        ConversionError: It can't be imported (`wrong-metric`).
    """
    if not isinstance(metric, str) or metric in METRICS:
        return metric
    hint = "name a function of a module that is installed, or in the working directory: module:function"
    with Guard(lambda problem: _wrong(f"the metric {metric!r} {problem}", hint)):
        found = named_object(metric)
    if not callable(found):
        raise _wrong(f"the metric {metric!r} is not a function", hint)
    return found


def labels_of(labels: Any) -> Any:
    """Returns labels as an array, or arrays by name.

    Args:
        labels: `Quantize.labels`.

    Raises:
        ConversionError: They can't be read, or arrays are of different numbers of samples (`wrong-metric`).
    """
    try:
        found = _loaded(os.fspath(labels)) if isinstance(labels, str | os.PathLike) else labels
        if isinstance(found, Mapping):
            found = {str(name): _array(each) for name, each in found.items()}
        else:
            found = _array(found)
    except (OSError, TypeError, ValueError, BadZipFile) as problem:
        raise _wrong(f"the labels can't be read: {problem}", _FORMS) from problem
    _count(found)
    return found


_FORMS = "pass an array whose first axis counts the samples, arrays by name, or a .npy or .npz file"


def _loaded(path: str) -> Any:
    """Returns the array in a file, or those of several by name."""
    with os.fdopen(open_file(path), "rb") as stream:
        found = np.load(stream, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        arrays = {name: found[name] for name in found.files}
    return arrays if len(arrays) > 1 else next(iter(arrays.values()), np.zeros(0))


def _array(value: Any) -> Array:
    found = np.asarray(value).view()
    found.setflags(write=False)
    return found


def _count(labels: Any) -> int:
    """Returns the number of samples that labels are of."""
    arrays = list(labels.values()) if isinstance(labels, dict) else [labels]
    if not arrays or any(each.ndim == 0 for each in arrays):
        raise _wrong("the labels are not arrays", _FORMS)
    counts = {len(each) for each in arrays}
    if len(counts) > 1 or 0 in counts:
        raise _wrong(f"the labels are of {' and '.join(map(str, sorted(counts)))} samples", _FORMS)
    return counts.pop()


def _hits_of_rows(most: int) -> Callable[[Array, Array, str], Array]:
    """Returns a function that tells of each sample whether its label is among the largest scores."""

    def measure(scores: Array, labels: Array, what: str) -> Array:
        classes = scores.shape[-1]
        if scores.ndim < 2 or classes <= most:
            raise _wrong(
                f"{what} needs more than {most} scores for each sample, and its shape is {list(scores.shape)}",
                "pass a function of the outputs and the labels",
            )
        wanted = labels.argmax(-1) if labels.shape == scores.shape else labels
        if wanted.shape == (*scores.shape[:-1], 1):
            wanted = wanted[..., 0]
        if wanted.shape != scores.shape[:-1] or wanted.dtype.kind not in "biuf":
            raise _wrong(
                f"{what}, {list(scores.shape)}, doesn't go with labels of {labels.dtype} {list(labels.shape)}",
                f"pass the number of the right class of each sample, {list(scores.shape[:-1])}",
            )
        with np.errstate(invalid="ignore"):
            numbers = wanted.astype(np.int64)
        if (numbers != wanted).any() or numbers.min() < 0 or numbers.max() >= classes:
            raise _wrong(
                f"{what} has {classes} scores, and labels are from {wanted.min()} to {wanted.max()}",
                f"labels are the numbers of classes, from 0 to {classes - 1}",
            )
        own = np.take_along_axis(scores, numbers[..., None], -1)
        # Of equal scores the first counts, as in `argmax`; what is no number is ahead of all.
        ahead = ~(own > scores) & ~((own == scores) & (np.arange(classes) >= numbers[..., None]))
        hits: Array = (ahead.sum(-1) < most).reshape(len(scores), -1).mean(1)
        return hits

    return measure


def _error_of_rows(values: Array, labels: Array, what: str) -> Array:
    """Returns the mean absolute difference of each sample."""
    if labels.dtype.kind not in "biuf" or labels.squeeze().shape != values.squeeze().shape:
        raise _wrong(
            f"{what}, {list(values.shape)}, doesn't go with labels of {labels.dtype} {list(labels.shape)}",
            f"pass the right numbers of each sample, {list(values.shape)}",
        )
    differences = values.astype(np.float64) - labels.reshape(values.shape)
    errors: Array = np.abs(differences).reshape(len(values), -1).mean(1)
    return errors


def _interval(differences: Array) -> _Interval:
    """Returns the interval of the mean of the differences of pairs."""
    if len(differences) < 2:
        return math.nan, math.nan
    return _around(float(differences.mean()), float(differences.std(ddof=1)) / math.sqrt(len(differences)))


def _interval_of_shares(differences: Array) -> _Interval:
    """Returns the interval of the difference of two shares in pairs, Agresti and Min's."""
    number = len(differences) + 2
    mean = float(differences.sum()) / number
    variance = (float((differences**2).sum()) + 1) / number - mean**2
    return _around(mean, math.sqrt(variance / number))


def _around(mean: float, deviation: float) -> _Interval:
    return mean - _DEVIATIONS * deviation, mean + _DEVIATIONS * deviation


def _checked(value: float, name: str) -> float:
    if not math.isfinite(value):
        raise _wrong(f"the metric {name} is {value}", "return a finite number, whatever the outputs are")
    return value


def _wrong(message: str, hint: str) -> ConversionError:
    return error("wrong-metric", message, hint=hint)
