"""How to quantize a model: the setting `quantize` of a conversion."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from tfconvert.schema.diagnostics import error
from tfconvert.settings.quantization_choices import (
    NOT_DENSE,
    Accumulation,
    Bias,
    Io,
    Mode,
    PerChannel,
    Ranges,
    RecurrentState,
    VariableType,
)

Sample = Mapping[str, Any] | Sequence[Any]
"""One run's inputs: arrays by input name, or in the signature's order."""

Samples = Iterable[Sample] | Mapping[str, Iterable[Sample]] | Callable[[], Iterable[Sample]]
"""Samples of the only signature, those of several by signature, or a function that returns either anew."""

_CHOICES: Mapping[str, Any] = {
    "mode": Mode,
    "ranges": Ranges,
    "variables": VariableType,
    "accumulation": Accumulation,
    "recurrent_state": RecurrentState,
}

WEIGHT_MODES = frozenset(("dynamic", "float16", "weights"))
"""The modes that change how constants are stored, and need no samples."""


@dataclass(frozen=True, slots=True)
class Quantize:
    """How to quantize a model after training, or one that was trained for it.

    Attributes:
        mode: `dynamic`: weights as 8-bit integers, which the runtime multiplies with integers where it can; `float16`:
            constants as 16-bit floats; `weights`: weights as integers that are turned to floats when the model is
            loaded or run; `int8`: integers throughout; `int16`: 8-bit weights and 16-bit activations.
        weights: Bits of weights, 8 or 4; with 4, those that gain by it (matrices and embedding tables).
        samples: Typical inputs, for the modes `int8` and `int16`; or paths of `.npz` files (arrays by input name, the
            first axis counts the samples), of `.npy` files, or of folders of them.
        calibration: Path of a file that keeps the ranges that the samples gave: it is read if it is there, and written
            if samples are given.
        io: Element type of float inputs and outputs; or a pair, first that of inputs, then that of outputs.
        per_channel: Whether weights have a scale for each output channel; else one in all. `not-dense`: they have, but
            for those of fully connected layers.
        exclude: Patterns of names of nodes or operators (`*/logits`, `SOFTMAX`) that stay float.
        strict: Whether an op that would stay float is an error; excluded ones may.
        ranges: How a tensor's range follows from what it was in the samples: all of it, the range with the least
            squared error, or all but the outermost 0.01 %.
        hybrid_only: Whether, in the mode `dynamic`, all filters are used as integers that can be, faster or not:
            without operators that turn some to floats, which some devices don't have.
        variables: In the modes `int8` and `int16`, what variables hold that keep state from one run to the next:
            `integers`, `float32`, or `auto`: integers where they are only moved, as in ring buffers, or `strict` is
            set, and floats where a variable is computed from itself, as a sum is.
        recurrent_state: Whether the operators of LSTMs and simple RNNs begin each run with zeros, as in TensorFlow, or
            with what the run before has left (`kept`), as in the official converter's files, until the app calls
            `reset_all_variables`. The latter needs no copies of zeros, which compilers for NPUs leave to the processor.
        bias: Type of biases and of the sums of products. `None`: `int64` in the mode `int16`, else `int32`. The mode
            `int16` takes either: with `int32`, as CMSIS-NN has it, sums of very many products may overflow.
        accumulation: In the mode `float16`, in which floats XNNPACK may sum up products on processors that compute with
            16 bits; 16-bit sums are faster, and less precise.
        trained_only: Whether only that becomes integers which the model fake-quantizes itself, without samples; a model
            without fake quantization stays float, and so do inputs and outputs that aren't fake-quantized.
        default_range: The least and the greatest number of values whose ranges nothing tells, neither samples nor
            training. Results are wrong then; it serves to measure speed and size.
        float_ends: Whether inputs and outputs stay floats where the operators at them compute with floats, whatever
            `io` says.
        progress: Called with the number of samples that were run, and how many there are (`None` if that is unknown).
    """

    mode: Mode
    weights: int = 8
    samples: Samples | str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None
    calibration: str | os.PathLike[str] | None = None
    io: Io | tuple[Io, Io] = "float32"
    per_channel: PerChannel = True
    exclude: Sequence[str] = ()
    strict: bool = False
    ranges: Ranges = "minmax"
    hybrid_only: bool = False
    variables: VariableType = "auto"
    recurrent_state: RecurrentState = "reset"
    bias: Bias | None = None
    accumulation: Accumulation = "float32"
    trained_only: bool = False
    float_ends: bool = False
    default_range: tuple[float, float] | None = None
    progress: Callable[[int, int | None], None] | None = None

    @property
    def is_static(self) -> bool:
        """Whether activations are integers, too."""
        return self.mode not in WEIGHT_MODES

    @property
    def ends(self) -> tuple[Io, Io]:
        """The element types of float inputs and of float outputs."""
        return (self.io, self.io) if isinstance(self.io, str) else self.io

    @property
    def has_integer_ends(self) -> bool:
        """Whether float inputs or outputs become integers."""
        return self.ends != ("float32", "float32")

    def check(self) -> None:
        """Checks the settings.

        Raises:
            ConversionError: One is wrong, or two contradict each other (`wrong-option`).
        """
        for name, kinds in _CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in get_args(kinds):
                raise _wrong(f"{name} can't be {value!r}", f"choose one of {', '.join(get_args(kinds))}")
        if self.bias is not None and self.bias not in get_args(Bias):
            raise _wrong(f"bias can't be {self.bias!r}", f"choose one of {', '.join(get_args(Bias))}")
        if self.bias == "int64" and self.mode != "int16":
            raise _wrong(f"biases are not int64 in the mode {self.mode!r}", "leave `bias` out")
        if self.accumulation == "float16" and self.mode != "float16":
            raise _wrong(f"accumulation doesn't go with the mode {self.mode!r}", "choose the mode 'float16'")
        self._check_io()
        self._check_types()
        self._check_default_range()
        if self.weights == 4 and self.mode in ("float16", "int16"):
            raise _wrong(f"weights of 4 bits don't go with the mode {self.mode!r}", "leave `weights` out")
        if self.trained_only and (self.samples is not None or self.calibration is not None):
            raise _wrong("with trained_only, ranges come from the model alone", "leave samples and calibration out")
        if self.trained_only and self.mode in ("float16", "weights"):
            raise _wrong(f"trained_only doesn't go with the mode {self.mode!r}", "choose the mode 'int8'")
        if not self.is_static and self.samples is not None:
            raise _wrong(f"the mode {self.mode!r} takes no samples", "leave `samples` out, or choose the mode 'int8'")

    def _check_io(self) -> None:
        kinds = get_args(Io)
        ends: Any = self.io if isinstance(self.io, tuple) and len(self.io) == 2 else (self.io,)
        for end in ends:
            if not isinstance(end, str) or end not in kinds:
                raise _wrong(f"io can't be {self.io!r}", f"choose one of {', '.join(kinds)}, or a pair of them")
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
        if not _is_range(self.default_range):
            raise _wrong(f"default_range can't be {self.default_range!r}", "pass two numbers, the least one first")
        if not self.is_static:
            raise _wrong(f"the mode {self.mode!r} needs no default_range", "leave it out, or choose the mode 'int8'")

    def _check_types(self) -> None:
        # Whatever the annotations say, a user may pass anything.
        weights: Any = self.weights
        exclude: Any = self.exclude
        if not isinstance(weights, int) or weights not in (8, 4):
            raise _wrong(f"weights can't have {weights!r} bits", "choose 8 or 4")
        if isinstance(exclude, str):
            raise _wrong("exclude is a text", "pass a list of patterns")
        if not isinstance(exclude, Collection) or not all(isinstance(each, str) for each in exclude):
            raise _wrong(f"exclude can't be {exclude!r}", "pass a list of patterns, which are texts")
        if self.per_channel != NOT_DENSE and not isinstance(self.per_channel, bool):
            raise _wrong(f"per_channel can't be {self.per_channel!r}", f"choose True, False or {NOT_DENSE!r}")
        for name in ("strict", "hybrid_only", "trained_only"):
            if not isinstance(getattr(self, name), bool):
                raise _wrong(f"{name} can't be {getattr(self, name)!r}", "choose True or False")
        if self.calibration is not None and not isinstance(self.calibration, str | os.PathLike):
            raise _wrong(f"calibration can't be {self.calibration!r}", "pass the path of a file")
        if self.progress is not None and not callable(self.progress):
            raise _wrong(f"progress can't be {self.progress!r}", "pass a function")


def _is_range(value: Any) -> bool:
    is_pair = isinstance(value, Sequence) and len(value) == 2 and all(isinstance(each, int | float) for each in value)
    return is_pair and math.isfinite(value[0]) and math.isfinite(value[1]) and value[0] < value[1]


def has_channels(per_channel: PerChannel, operator: str) -> bool:
    """Returns whether the weights of an operator are to have a scale for each channel.

    Args:
        per_channel: The setting.
        operator: The operator's name, without its dialect.
    """
    return operator != "fully_connected" if per_channel == NOT_DENSE else bool(per_channel)


INT8 = Quantize("int8")
"""Integers throughout, with every other setting as it is by default."""


def check(quantize: object) -> None:
    """Checks what the user passed as the setting.

    Raises:
        ConversionError: It is not a `Quantize`, or one with wrong settings (`wrong-option`).
    """
    if not isinstance(quantize, Quantize):
        raise _wrong(f"it can't be {reprlib.repr(quantize)}", 'pass a mode, or a `Quantize`, as in quantize="dynamic"')
    quantize.check()


def _wrong(message: str, hint: str) -> Exception:
    return error("wrong-option", f"quantize: {message}", hint=hint)
