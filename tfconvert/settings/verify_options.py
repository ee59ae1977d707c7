"""How to verify a result: the setting `verify` of a conversion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tfconvert.schema.diagnostics import error
from tfconvert.settings.setting import check_fields, documented, is_flag, is_path, setting, shown

Runtime = Literal["compiled", "gpu", "micro"]

WITNESS = "tensorflow"
"""The witness that users may ask for."""

VERIFY_SECONDS = 120.0
"""The default of `seconds`."""


def _are_samples(value: Any) -> bool:
    return is_path(value) or callable(value) or (isinstance(value, Iterable) and not isinstance(value, bytes))


@documented
@dataclass(frozen=True, slots=True)
class Verify:
    """How to verify a result, by running it."""

    data: Any = setting(
        None,
        "Inputs to verify on: files (.npz, .npy), directories of them, or samples as Quantize has them; by default"
        " a quantized model's samples, else random numbers that suit the model.",
        flag="--verify-data",
        metavar="PATH",
        expected="a list of samples, a function that returns one, or a path",
        example='["inputs.npz"]',
        schema={"type": "array", "items": {"type": "string"}},
        accepts=_are_samples,
        is_path=True,
        is_common=True,
    )
    min_snr: float | None = setting(
        None,
        "Quantized models: the minimum signal-to-noise ratio of an output, in dB; less is an error. "
        "By default, less than 20 is a warning.",
        metavar="DB",
    )
    min_agreement: float | None = setting(
        None,
        "Quantized models: the minimum share (0 to 1) of rows in which the same element is the largest; less is an "
        "error. By default, less than 0.9 is a warning.",
        expected="a share, as 0.95",
        schema={"type": "number", "minimum": 0, "maximum": 1},
    )
    on: Sequence[Runtime] = setting(
        (),
        "Run the result there too, and compare with the CPU: LiteRT's GPU accelerator (gpu), tflite-micro (micro). "
        "LiteRT's CompiledModel (compiled) is always tried, but only an error if it is named here. On the command "
        "line `--verify gpu` is short for it.",
        flag="--verify-on",
        expected="a list of compiled, gpu, micro",
        example='["gpu"]',
    )
    compare_layers: bool = setting(
        False,
        "Compare layers one by one: find the first operator whose result differs; of a quantized model, list all "
        "layers, and those that should stay float if its fidelity is too low.",
    )
    search_seconds: float = setting(
        60.0,
        "Seconds to search for layers that should stay float; 0 to not search.",
        metavar="N",
        schema={"type": "number", "minimum": 0},
    )

    witness: Literal["tensorflow"] | None = setting(
        None,
        "What computes the right results: TensorFlow in a process of its own (tensorflow), for SavedModels and "
        "GraphDefs; by default the most independent witness at hand: a model in memory itself, LiteRT on a .tflite "
        "file, else the reference executor. On the command line `--verify tensorflow` is short for it.",
        flag="--verify-witness",
        is_path=True,  # TensorFlow may read any file that an untrusted model names.
    )
    seconds: float = setting(
        VERIFY_SECONDS,
        "Seconds to verify: when they are over, no further inputs are compared, and a note says so.",
        flag="--verify-seconds",
        metavar="N",
        schema={"type": "number", "minimum": 1},
    )

    def __post_init__(self) -> None:
        """Takes the only word that names a witness for one, as the command line does: `Verify("tensorflow")`."""
        if isinstance(self.data, str) and self.data == WITNESS:
            object.__setattr__(self, "data", None)
            object.__setattr__(self, "witness", WITNESS)

    @property
    def judges(self) -> bool:
        """Whether limits are required that only quantized models have."""
        return self.min_snr is not None or self.min_agreement is not None

    def check(self) -> None:
        """Checks the settings.

        Raises:
            ConversionError: One is wrong (`wrong-option`).
        """
        check_fields(self, "verify.")


def to_verify(verify: object) -> Verify | None:
    """Returns the record that the argument `verify` of a conversion stands for, `None` if nothing is to be verified.

    Args:
        verify: A `Verify`, `True` for its defaults, `False` or `None` for none.

    Raises:
        ConversionError: It is something else (`wrong-option`).
    """
    if isinstance(verify, Verify):
        return verify
    if verify is None or is_flag(verify):
        return Verify() if verify else None
    if isinstance(verify, str) and verify == WITNESS:
        return Verify(WITNESS)
    hint = 'use True, False or a Verify, as in tfconvert.Verify(on=["gpu"])'
    raise error("wrong-option", f"verify can't be {shown(verify)}", hint=hint)
