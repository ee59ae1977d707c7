"""How to quantize a model: the setting `quantize` of a conversion."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from typing import Any, Literal, get_args

from tfconvert.schema.diagnostics import error
from tfconvert.settings.setting import check_fields, documented, is_path, setting, shown

Mode = Literal["dynamic", "float16", "int8", "int16", "weights"]
Io = Literal["float32", "int8", "uint8", "int16"]
Ranges = Literal["minmax", "mse", "percentile"]
Bias = Literal["int32", "int64"]
Accumulation = Literal["float32", "float16"]
RecurrentState = Literal["reset", "kept"]
Equalization = Literal["auto", "off", "all"]
VariableType = Literal["auto", "float32", "integers"]
PerChannel = bool | Literal["not-dense"]

NOT_DENSE: PerChannel = "not-dense"
"""A scale for each channel of all weights but those of fully connected layers."""

Sample = Mapping[str, Any] | Sequence[Any]
"""One run's inputs: arrays by input name, or in the signature's order."""

Samples = Iterable[Sample] | Mapping[str, Iterable[Sample]] | Callable[[], Iterable[Sample]]
"""Samples of the only signature, those of several by signature, or a function that returns either again."""

_PATHS = {"type": "array", "items": {"type": "string"}}

Labels = Any
"""Labels of samples: an array, a list or a tensor whose first axis counts them, several by name, or a file of these."""

METRICS = ("top1", "top5", "mae")
"""The metrics that have names."""

LOSSES = frozenset(("mae",))
"""Those of them that are better if they are lower."""

WEIGHT_MODES = frozenset(("dynamic", "float16", "weights"))
"""The modes that change how constants are stored, and need no samples."""


@documented
@dataclass(frozen=True, slots=True)
class Quantize:
    """How to quantize a model after training, or one that was trained for it."""

    mode: Mode = setting(
        MISSING,
        "Weights as 8-bit integers, which the runtime multiplies with integers where it can (dynamic); constants as"
        " 16-bit floats (float16); weights as integers that become floats when the model is loaded or run "
        "(weights); integers, and floats where processors are faster with them (int8); 8-bit weights and 16-bit "
        "activations (int16).",
        flag="--quantize",
        is_common=True,
    )
    weights: int = setting(
        8,
        "Bits of weights; with 4, only matrices and embedding tables, where that reduces size.",
        schema={"enum": [8, 4]},
    )
    samples: Samples | str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = setting(
        None,
        "int8, int16: typical inputs: an array, or arrays by input name, whose first axis counts the samples; a data "
        "set, a list or a function that returns one; or .npz and .npy files, or directories of them.",
        metavar="PATH",
        schema=_PATHS,
        accepts=lambda value: True,
        is_path=True,
        is_common=True,
    )
    calibration: str | os.PathLike[str] | None = setting(
        None,
        "int8, int16: a file of the ranges that samples gave: read if it exists, else written.",
        metavar="FILE",
        expected="the path of a file",
        accepts=is_path,
        is_path=True,
    )
    io: Io | tuple[Io, Io] = setting(
        "float32",
        "Type of float inputs and outputs; or a pair, that of inputs and that of outputs. For Ethos-U only a pair "
        "keeps floats in the mode int8.",
        expected=f"one of {', '.join(get_args(Io))}, or a pair of them",
        is_common=True,
    )
    per_channel: PerChannel = setting(
        True,
        "Give weights a scale for each output channel, or one in all; not-dense: for each channel but in fully "
        "connected layers.",
        has_flag=False,
        schema={"enum": [True, False, "not-dense"]},
    )
    exclude: Sequence[str] = setting(
        (),
        "Patterns of names of nodes or operators that stay float, such as */logits or SOFTMAX.",
        metavar="PATTERN",
        expected="a list of patterns",
        accepts=lambda value: isinstance(value, set | frozenset) and all(isinstance(each, str) for each in value),
        is_common=True,
    )
    strict: bool = setting(False, "int8, int16: refuse ops that would stay float, except excluded ones.")
    slow_integers: bool = setting(
        False,
        "int8: use integers also where processors compute faster with floats, for devices that need integers; strict "
        "and integer inputs or outputs imply it.",
    )
    metric: str | Callable[[Any, Any], float] | None = setting(
        None,
        "How good results are, given the labels: the share of samples whose label has the largest score (top1), or one "
        "of the five largest (top5); the mean absolute difference (mae); or a function of the outputs and the labels, "
        "which is better if it is higher (module:function). It is measured on the samples, or on the data to verify "
        "on, for the float model and the quantized one.",
        metavar="NAME",
        expected="top1, top5, mae, module:function or a function",
        schema={"type": "string"},
        accepts=callable,
        is_path=True,
        refusal="needs a file of labels, or runs code of yours",
    )
    labels: Labels = setting(
        None,
        "The labels that the metric needs, in the order of the samples: an array whose first axis counts them, arrays "
        "by name, or a .npy or .npz file.",
        metavar="FILE",
        schema={"type": "string"},
        accepts=lambda value: True,
        is_path=True,
    )
    min_metric: float | None = setting(
        None, "The minimum of the metric for the quantized model; less is an error.", metavar="X"
    )
    max_loss: float | None = setting(
        None,
        "How much worse the metric of the quantized model may be than that of the float model, as a difference; more "
        "is an error.",
        metavar="X",
        schema={"type": "number", "minimum": 0},
    )
    ranges: Ranges = setting(
        "minmax",
        "int8, int16: how a range follows from samples: all of it, the one with the smallest squared error, or all but "
        "the outermost 0.01 %.",
    )
    equalize: Equalization = setting(
        "auto",
        "Whether channels are divided by numbers that what reads them is multiplied by, which changes nothing but the "
        "errors of integers: where they become smaller (auto), never (off), or wherever it can be done (all).",
    )
    hybrid_only: bool = setting(
        False,
        "dynamic: use filters as integers wherever possible, without operators that turn some to floats, which is "
        "faster on processors but not known to all devices.",
    )
    variables: VariableType = setting(
        "auto",
        "int8, int16: type of variables that keep state between runs: auto stands for integers where values are "
        "only moved, as in ring buffers, or strict is set, and for floats where a variable is computed from itself.",
    )
    recurrent_state: RecurrentState = setting(
        "reset",
        "What operators of LSTMs and simple RNNs begin a run with: zeros, as in TensorFlow, or what the last run "
        "left (kept), as in the official converter's files, until the app calls reset_all_variables; that needs no "
        "copies of zeros, which compilers for NPUs leave to the processor.",
    )
    bias: Bias | None = setting(
        None,
        "Type of biases and of sums of products; by default int64 in the mode int16, else int32. The mode int16 "
        "takes either: with int32, as in CMSIS-NN, sums of very many products may overflow.",
    )
    accumulation: Accumulation = setting(
        "float32",
        "float16: the floats in which XNNPACK may sum up products on processors that compute with 16 bits; 16-bit "
        "sums are faster, and less precise.",
    )
    trained: bool = setting(
        False,
        "int8, int16: the model was trained with fake quantization and needs no samples. Conversions detect that "
        "themselves; a server accepts these modes without samples only if this is set.",
    )
    trained_only: bool = setting(
        False,
        "int8, int16, dynamic: quantize only what the model fake-quantizes itself, without samples; the rest, and "
        "inputs and outputs that aren't fake-quantized, stay float.",
    )
    float_ends: bool = setting(
        False, "Leave inputs and outputs floats where the operators at them compute with floats, whatever io says."
    )
    default_range: tuple[float, float] | None = setting(
        None,
        "int8, int16: the minimum and maximum of values without a range from samples or training. Results are then "
        "wrong: use it only to measure speed and size.",
        expected="two numbers, the smaller one first",
    )
    progress: Callable[[int, int | None], None] | None = None
    """Called with the number of samples that were run, and how many there are (`None` if that is unknown)."""

    def __post_init__(self) -> None:
        mode: object = self.mode
        if isinstance(mode, str) and not mode.islower():
            object.__setattr__(self, "mode", mode.lower())

    @property
    def is_static(self) -> bool:
        """Whether activations are integers, too."""
        return self.mode not in WEIGHT_MODES

    @property
    def takes_samples(self) -> bool:
        """Whether ranges follow from samples."""
        return self.is_static and not self.trained and not self.trained_only

    @property
    def lacks_samples(self) -> bool:
        """Whether there is nothing that ranges could follow from, unless the model was trained for quantization."""
        has_ranges = self.calibration is not None or self.default_range is not None
        return self.takes_samples and self.samples is None and not has_ranges

    @property
    def ends(self) -> tuple[Io, Io]:
        """The element types of float inputs and of float outputs."""
        return (self.io, self.io) if isinstance(self.io, str) else self.io

    @property
    def has_integer_ends(self) -> bool:
        """Whether float inputs or outputs become integers."""
        return self.ends != ("float32", "float32")

    @property
    def needs_integers(self) -> bool:
        """Whether activations must be integers wherever kernels take them, even where floats are as fast, or faster."""
        return self.strict or self.trained_only or self.has_integer_ends

    @property
    def prefers_speed(self) -> bool:
        """Whether operators that processors compute faster with floats may stay float."""
        return self.mode == "int8" and not (self.slow_integers or self.needs_integers)

    @property
    def judges(self) -> bool:
        """Whether limits of the metric are required."""
        return self.min_metric is not None or self.max_loss is not None

    def check(self) -> None:
        """Checks the settings.

        Raises:
            ConversionError: One is wrong, or two contradict each other (`wrong-option`).
        """
        check_fields(self, "quantize.")
        if self.progress is not None and not callable(self.progress):
            raise _wrong(f"progress can't be {self.progress!r}", "pass a function")
        if self.bias == "int64" and self.mode != "int16":
            raise _wrong(f"biases are not int64 in the mode {self.mode!r}", "leave `bias` out")
        if self.accumulation == "float16" and self.mode != "float16":
            raise _wrong(f"accumulation doesn't go with the mode {self.mode!r}", "choose the mode 'float16'")
        self._check_io()
        self._check_default_range()
        if self.weights == 4 and self.mode in ("float16", "int16"):
            raise _wrong(f"weights of 4 bits don't go with the mode {self.mode!r}", "leave `weights` out")
        given = "trained_only" if self.trained_only else "trained"
        if (self.trained or self.trained_only) and (self.samples is not None or self.calibration is not None):
            raise _wrong(f"with {given}, ranges come from the model alone", "leave samples and calibration out")
        if self.trained and not self.is_static:
            raise _wrong(f"trained doesn't go with the mode {self.mode!r}", "choose the mode 'int8'")
        if self.trained_only and self.mode in ("float16", "weights"):
            raise _wrong(f"trained_only doesn't go with the mode {self.mode!r}", "choose the mode 'int8'")
        if not self.is_static and self.samples is not None and self.metric is None:
            raise _wrong(f"the mode {self.mode!r} takes no samples", "leave `samples` out, or choose the mode 'int8'")
        self._check_metric()

    def _check_metric(self) -> None:
        given = {"labels": self.labels, "min_metric": self.min_metric, "max_loss": self.max_loss}
        alone = next((name for name, value in given.items() if value is not None), "")
        if self.metric is None and alone:
            raise _wrong(
                f"{alone} goes with a metric", 'add metric="top1", or a function of the outputs and the labels'
            )
        if self.metric is None:
            return
        is_name = isinstance(self.metric, str)
        if is_name and self.metric not in METRICS and ":" not in str(self.metric):
            hint = f"choose one of {', '.join(METRICS)}, or name a function of yours: module:function"
            raise _wrong(f"there is no metric {self.metric!r}", hint)
        if self.labels is None:
            raise _wrong("a metric needs labels", "pass the label of each sample with `labels` (--labels FILE.npy)")
        if is_name and self.metric in LOSSES and self.min_metric is not None:
            raise _wrong(f"{self.metric} is better if it is lower, and has no minimum", "use `max_loss` (--max-loss)")

    def _check_io(self) -> None:
        if not isinstance(self.io, str | tuple):
            raise _wrong(f"io can't be {self.io!r}", "choose a type, or a pair of them")
        for end in self.ends:
            if end != "float32" and not self.is_static:
                raise _wrong(
                    f"inputs and outputs can't be {end} in the mode {self.mode!r}: it computes with floats",
                    "choose the mode 'int8'",
                )
            if end == "int16" and self.mode != "int16":
                raise _wrong("inputs and outputs can be int16 in the mode 'int16' only", "choose io='int8'")
            if end in ("int8", "uint8") and self.mode == "int16":
                raise _wrong(f"inputs and outputs can't be {end} in the mode 'int16'", "choose io='int16'")

    def _check_default_range(self) -> None:
        if self.default_range is None:
            return
        if self.default_range[0] >= self.default_range[1]:
            raise _wrong(f"default_range can't be {self.default_range!r}", "pass two numbers, the smaller one first")
        if not self.is_static:
            raise _wrong(f"the mode {self.mode!r} needs no default_range", "leave it out, or choose the mode 'int8'")


def has_channels(per_channel: PerChannel, operator: str) -> bool:
    """Returns whether the weights of an operator are to have a scale for each channel.

    Args:
        per_channel: The setting.
        operator: The operator's name, without its dialect.
    """
    return operator != "fully_connected" if per_channel == NOT_DENSE else bool(per_channel)


INT8 = Quantize("int8")
"""8-bit integers, with every other setting as it is by default."""


def to_quantize(quantize: object, samples: object = None) -> Quantize:
    """Returns the record that the arguments `quantize` and `samples` of a conversion stand for.

    Args:
        quantize: A mode, or a `Quantize`.
        samples: Its samples; `None` for those that it has.

    Raises:
        ConversionError: It is neither, or has samples already (`wrong-option`).
    """
    if quantize is None:
        raise error("wrong-option", "samples are given, but nothing is to be quantized", hint='add quantize="int8"')
    if isinstance(quantize, str):
        return Quantize(quantize, samples=samples)  # type: ignore[arg-type]  # Checked with the other settings.
    if not isinstance(quantize, Quantize):
        hint = 'pass a mode, or a `Quantize`, as in "dynamic" or tfconvert.Quantize("int8", samples=x)'
        raise _wrong(f"it can't be {shown(quantize)}", hint)
    if samples is None:
        return quantize
    if quantize.samples is not None:
        raise error("wrong-option", "samples are given twice", hint="leave them out here, or in the `Quantize`")
    return replace(quantize, samples=samples)  # type: ignore[arg-type]  # What samples can be is found out later.


def _wrong(message: str, hint: str) -> Exception:
    return error("wrong-option", f"quantize: {message}", hint=hint)
