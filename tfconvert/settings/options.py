"""The settings of a conversion; the model to convert is a `Source`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfconvert.schema.diagnostics import error
from tfconvert.schema.limits import Limits
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.setting import check_fields, documented, setting
from tfconvert.settings.targets import CODE, AnyTarget, LiteRT, not_of
from tfconvert.settings.verify_options import Verify

_LITERT = LiteRT()


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of a conversion; every one has the default that most users want."""

    target: AnyTarget = _LITERT
    """The target, with its settings."""
    patterns: Sequence[Any] = setting(
        (),
        "Rewrites of your own, from tfconvert.patterns: the path of a Python file or the name of an entry point.",
        metavar="FILE.py",
        expected="a list of patterns, paths and names",
        example='["rules.py"]',
        schema={"type": "array", "items": {"type": "string"}},
        accepts=lambda value: isinstance(value, list | tuple),
        is_path=True,
        uncached=CODE,
    )
    verify: Verify | None = setting(
        None,
        "Run the result and compare it with the most independent witness at hand; a Verify says how.",
        help="Run the result and compare it with the most independent witness at hand. --verify gpu (or micro, "
        "compiled) runs it there, too; --verify tensorflow compares it with TensorFlow.",
        expected="True, False or a Verify",
        accepts=lambda value: isinstance(value, Verify),
        is_common=True,
    )
    check_passes: bool = setting(
        False, "Run the model before and after each pass on the same random inputs and compare."
    )
    keep_graphs: bool = setting(False, "Keep the graphs before and after in the report, for its page.", has_flag=False)
    limits: Limits = setting(
        Limits(),
        "How much the conversion may make out of the model: limits for untrusted models.",
        help="Limits on what converting an untrusted model may use, such as constant-bytes=4294967296.",
        flag="--limit",
        expected="a Limits",
        example="tfconvert.Limits(constant_bytes=1 << 33)",
    )
    verify_each: bool = False
    """Whether to verify the IR after each pass."""

    @property
    def quantize(self) -> Quantize | None:
        """How to quantize; `None` leaves every number as precise as the model has it."""
        return self.target.quantize if isinstance(self.target, LiteRT) else None

    def __post_init__(self) -> None:
        """Verifies where a metric is given: that is what measures it."""
        if self.verify is None and self.quantize is not None and self.quantize.metric is not None:
            object.__setattr__(self, "verify", Verify())

    def check(self) -> None:
        """Checks values, and what follows from several of them.

        Raises:
            ConversionError: One is wrong, or two contradict each other (`wrong-option`).
        """
        check_fields(self)
        check_fields(self.target, "target.")
        self.target.check()
        if self.verify is None:
            return
        self.verify.check()
        if self.verify.judges and self.quantize is None:
            hint = "leave them out: other models have to agree but for rounding"
            raise error("wrong-option", "min_snr and min_agreement are for quantized models", hint=hint)
        given = None if self.quantize is None or self.quantize.metric is None else self.quantize
        if given is not None and given.samples is None and self.verify.data is None:
            hint = "pass them with `samples` (--samples), or others to measure on with Verify.data (--verify-data)"
            raise error("wrong-option", "quantize: a metric needs the inputs that the labels belong to", hint=hint)
        if self.verify.compare_layers and not isinstance(self.target, LiteRT):
            raise not_of(self.target, "compare_layers", LiteRT)
