"""How to verify a result: the setting `verify` of a conversion."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tfconvert.schema.diagnostics import ConversionError, error


@dataclass(frozen=True, slots=True)
class Verify:
    """How to verify a result, by running it.

    Attributes:
        data: Inputs to verify on, in any form that `Quantize.samples` has; by default a quantized model's samples, else
            random numbers that suit the model.
        min_snr: Quantized models: the least signal-to-noise ratio of an output, in dB; less is an error. By default,
            less than 20 dB is a warning.
        min_agreement: Quantized models: the least share (0 to 1) of rows in which the same element is the largest;
            less is an error. By default, less than 0.9 is a warning.
        compare_layers: Whether to compare layers one by one: a note names the first operator whose result differs; of a
            quantized model the report has a table of all layers, and, if its fidelity is below the limits, the layers
            that should stay float.
        search_seconds: How long to search for layers that should stay float; 0 to not search.
    """

    data: Any = None
    min_snr: float | None = None
    min_agreement: float | None = None
    compare_layers: bool = False
    search_seconds: float = 60.0

    @property
    def judges(self) -> bool:
        """Whether limits are required that only quantized models have."""
        return self.min_snr is not None or self.min_agreement is not None

    def check(self) -> None:
        """Checks the settings.

        Raises:
            ConversionError: One is wrong (`wrong-option`).
        """
        for name in ("min_snr", "min_agreement", "search_seconds"):
            value = getattr(self, name)
            is_number = isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value)
            if not is_number and (value is not None or name == "search_seconds"):
                raise _wrong(f"{name} can't be {value!r}", "pass a number")
        if self.min_agreement is not None and not 0 <= self.min_agreement <= 1:
            raise _wrong(f"min_agreement can't be {self.min_agreement!r}", "pass a share, as 0.95")
        if self.search_seconds < 0:
            raise _wrong(f"search_seconds can't be {self.search_seconds!r}", "pass 0 to not search")
        if not isinstance(self.compare_layers, bool):
            raise _wrong(f"compare_layers can't be {self.compare_layers!r}", "choose True or False")


def to_verify(verify: object, data: Any = None, compare_layers: bool = False) -> Verify | None:
    """Returns the record that the settings of `convert` stand for, `None` if nothing is to be verified.

    Args:
        verify: The setting: a `Verify`, `True` for its defaults, `False` for none.
        data: The setting `verify_data`; implies verifying.
        compare_layers: The setting of that name; implies verifying.

    Raises:
        ConversionError: It is something else, or a setting is given twice or wrong (`wrong-option`).
    """
    if verify is None or isinstance(verify, bool | np.bool_):
        if not verify and data is None and compare_layers is False:
            return None
        found = Verify(data, compare_layers=compare_layers)
    elif isinstance(verify, Verify):
        if data is not None and verify.data is not None:
            raise error("wrong-option", "verify.data and verify_data are both given", hint="leave `verify_data` out")
        found = replace(
            verify, data=verify.data if data is None else data, compare_layers=verify.compare_layers or compare_layers
        )
    else:
        raise error("wrong-option", f"verify can't be {_shown(verify)}", hint="expected is True, False or a Verify")
    found.check()
    return found


def _wrong(message: str, hint: str) -> ConversionError:
    return error("wrong-option", f"verify.{message}", hint=hint)


def _shown(value: object) -> str:
    return " ".join(reprlib.repr(value).split())[:100]
