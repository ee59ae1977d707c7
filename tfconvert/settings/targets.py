"""The targets of a conversion: a class each, whose fields are the settings that only this target has."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

from tfconvert.schema.diagnostics import NOTE, ConversionError, Diagnostic, error
from tfconvert.settings.quantization import WEIGHT_MODES, Quantize, to_quantize
from tfconvert.settings.setting import documented, is_path, setting, shown

Recurrent = Literal["auto", "fused", "loop", "unrolled"]
Names = Literal["signature", "official"]
Weights = Literal["resource", "inline", "arguments"]
State = Literal["globals", "arguments"]
Accelerator = Literal["gpu", "npu", "micro", "ethos-u"]
Backend = Literal["llvm-cpu", "vmvx", "cuda", "rocm", "vulkan-spirv", "metal-spirv"]

RECURRENT: tuple[str, ...] = get_args(Recurrent)

ODML = "odml"
"""The composites that tfconvert itself writes."""

DRIVERS: Mapping[str, str] = {
    "llvm-cpu": "local-task",
    "vmvx": "local-task",
    "cuda": "cuda",
    "rocm": "hip",
    "vulkan-spirv": "vulkan",
    "metal-spirv": "metal",
}
"""The driver of IREE's runtime that runs the code of each backend."""

# Prefixes of flags that would change what is made, rather than how.
_RESERVED = ("-o", "--compile-to", "--iree-hal-target-", "--iree-hal-local-target-", "--output-format")

_FOR_THE_CLASS = "it is for `TFLiteConverter`"
CODE = "it runs code of yours"


HOST = "host"
"""This machine, for `LiteRT.tune` and `Iree.cpu`."""


def is_host(value: str | os.PathLike[str] | None) -> bool:
    """Returns whether a setting means this machine."""
    return isinstance(value, str) and value.lower() == HOST


UNSUITABLE = "unsuitable-setting"
"""Code of the note that a setting doesn't suit an accelerator."""


def _unsuitable(message: str, hint: str) -> Diagnostic:
    return Diagnostic(UNSUITABLE, message, hint=f"{hint} --quantize int8 --samples FILE", severity=NOTE)


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class LiteRT:
    """A file for LiteRT (`.tflite`)."""

    name: ClassVar[str] = "litert"

    names: Names = setting(
        "signature",
        "What tensors are called: inputs and outputs as in their signature, or all as TensorFlow's converter does.",
    )
    allow_custom_ops: bool = setting(
        False, "Turn ops that LiteRT doesn't have into custom ops, instead of an error.", is_common=True
    )
    allow_flex: bool = setting(
        False,
        "Keep ops that LiteRT doesn't have as TensorFlow's; the app needs the Flex delegate (Select TF ops).",
        is_common=True,
    )
    flex_ops: Sequence[str] = setting(
        (),
        "Names, or patterns of names, of ops that your Flex delegate has in addition to the usual ones.",
        flag="--flex-op",
        metavar="PATTERN",
        expected="a list of names and patterns",
        example='["Acme*"]',
    )
    recurrent: Recurrent = setting(
        "auto",
        "Recurrent layers: LiteRT's operators for whole sequences (fused), loops, up to 64 steps without a loop "
        "(unrolled), or what is faster for their sizes; unrolled for GPUs and NPUs.",
        is_common=True,
    )
    tune: str | os.PathLike[str] | None = setting(
        None,
        "Choose among equal forms of operators by their times: measured on this machine (host), or in a table that was "
        "measured on a device; a directory gets the files to measure, and the script that makes the table.",
        metavar="host|FILE|DIR",
        expected="host, or the path of a table or a directory",
        example='"host"',
        accepts=is_path,
        is_path=True,
        is_common=True,
    )
    accelerator: Sequence[Accelerator] = setting(
        (),
        "Accelerators and runtimes that the file is for: the report lists what each of them runs, and why not the "
        "rest.",
        expected="a list of gpu, npu, micro, ethos-u",
        example='["gpu"]',
        is_common=True,
    )
    composites: Sequence[Any] = setting(
        (),
        "Fusions of your own, from tfconvert.composites: the path of a Python file or the name of an entry point; or "
        "odml, to write attention, normalizations and the like as composites that GPUs and NPUs of phones fuse.",
        metavar="FILE.py|odml",
        expected="a list of fusions, paths and names",
        example='["fusions.py"]',
        schema={"type": "array", "items": {"type": "string"}},
        accepts=lambda value: isinstance(value, list | tuple),
        is_path=True,
        own_values=(ODML,),
        uncached=CODE,
    )
    quantize: Quantize | None = setting(
        None,
        "How to quantize: a mode, or a Quantize; by default not at all.",
        has_flag=False,
        expected="a mode, or a Quantize",
        example='"dynamic"',
        accepts=lambda value: isinstance(value, Quantize),
    )
    metadata: Mapping[str, Any] | str | os.PathLike[str] | None = setting(
        None,
        "What the file says about its inputs and outputs, as labels: a mapping, or the path of a file.",
        has_flag=False,
        expected="a path or a mapping",
        schema={"type": "object"},
        accepts=is_path,
    )
    target_runtime: str = setting(
        "",
        "Refuse operators that a release of the runtime, such as 2.14, doesn't have yet.",
        metavar="RELEASE",
        expected="a release",
        accepts=lambda value: value is None,
        example='"2.14"',
        is_common=True,
    )
    sparse_weights: bool = setting(
        False, "Store matrices that are mostly zero without their zeros.", has_flag=False, stays=_FOR_THE_CLASS
    )
    origin: Mapping[str, Any] | None = setting(
        dict,
        "Fields of the file's metadata on how it was made, beside those that are known; None leaves them all out.",
        has_flag=False,
        expected="a mapping or None",
        schema={"type": ["object", "null"]},
        stays=_FOR_THE_CLASS,
    )

    def __post_init__(self) -> None:
        quantize = self.quantize if self._is_for("ethos-u") else None
        if isinstance(quantize, Quantize) and (quantize.mode, quantize.io) == ("int8", "float32"):
            object.__setattr__(self, "quantize", replace(quantize, io="int8"))

    def _is_for(self, accelerator: str) -> bool:
        return isinstance(self.accelerator, list | tuple) and accelerator in self.accelerator

    @property
    def notes(self) -> Sequence[Diagnostic]:
        """Notes on settings that don't suit the accelerators."""
        mode = None if self.quantize is None else self.quantize.mode
        found = []
        if self._is_for("micro") and mode in WEIGHT_MODES:
            found.append(
                _unsuitable(f"tflite-micro has no kernels for the mode {mode}", "leave --quantize out, or choose")
            )
        if self._is_for("ethos-u") and not self.quantizes_activations:
            found.append(_unsuitable("Ethos-U computes with integers only", "choose"))
        elif self._is_for("ethos-u") and self.quantize is not None and "float32" in self.quantize.ends:
            message = "Ethos-U leaves the operators at inputs and outputs of floats to the processor"
            found.append(Diagnostic(UNSUITABLE, message, hint="choose --io int8", severity=NOTE))
        return found

    @property
    def fusions(self) -> tuple[Any, ...]:
        """The composites that are fusions of the user's."""
        return tuple(each for each in self.composites if each != ODML)

    @property
    def writes_composites(self) -> bool:
        """Whether subgraphs that accelerators fuse become composites."""
        return ODML in self.composites

    @property
    def is_for_processors(self) -> bool:
        """Whether processors run the file, so that their times decide on its operators."""
        return not self.accelerator and not self.writes_composites

    @property
    def fuses_recurrent(self) -> bool:
        """Whether recurrent layers may become operators."""
        return self.recurrent == "fused" or (self.recurrent == "auto" and not self.unrolls_loops)

    @property
    def unrolls_loops(self) -> bool:
        """Whether loops become their steps."""
        return self.recurrent == "unrolled" or (self.recurrent == "auto" and self.is_compiled)

    @property
    def is_compiled(self) -> bool:
        """Whether the file is for accelerators that know neither loops nor states."""
        return bool({"gpu", "npu"}.intersection(self.accelerator))

    @property
    def recurrent_by_speed(self) -> bool:
        """Whether only those recurrent layers become operators that are faster so.

        Integers throughout are for devices that know operators rather than loops, and operators keep their cell states
        in 16 bits.
        """
        if self.recurrent != "auto":
            return False
        return not self.quantizes_activations or (
            self.is_for_processors and self.quantize is not None and self.quantize.prefers_speed
        )

    @property
    def quantizes_activations(self) -> bool:
        """Whether activations should be integers, for which their ranges are needed."""
        return self.quantize is not None and self.quantize.is_static

    def check(self) -> None:
        """Checks what follows from several settings.

        Raises:
            ConversionError: Two contradict each other (`wrong-option`).
        """
        if self.tune == "":
            raise error("wrong-option", "tune can't be empty", hint="use host, or the path of a table or a directory")
        if self.tune is not None and not self.is_for_processors:
            hint = "leave out one of them: accelerators choose their forms by what they take"
            raise error("wrong-option", "tune is for processors, and the file is for accelerators", hint=hint)
        if self.flex_ops and not self.allow_flex:
            hint = "set allow_flex (--allow-flex), too"
            raise error("wrong-option", "flex_ops has no effect without allow_flex", hint=hint)
        if self.quantize is not None:
            self.quantize.check()


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class StableHLO:
    """StableHLO text (`.mlir`) or a portable artifact of StableHLO (`.mlirbc`)."""

    name: ClassVar[str] = "stablehlo"
    DATA_PREFIX: ClassVar[str] = "mlir_"
    FLAG_PREFIX: ClassVar[str] = "mlir_"

    weights: Weights = setting(
        "resource",
        "Where the weights are: resources at the end of the text, inline where they are used, or the last arguments"
        " of each function, with their values in a file beside the text (.safetensors).",
    )
    state: State = setting(
        "globals",
        "Where variables that the model changes are: globals of the module, or the last arguments of each function,"
        " which returns them as its last results.",
    )
    shape_function: bool = setting(
        False, "Add a function main__shape, which computes the sizes of main's results from those of its arguments."
    )
    artifact: bool = setting(
        False,
        "Write a portable artifact (.mlirbc) instead of text, which later releases of StableHLO read, too; needs "
        "tfconvert[artifact], and weights inline or as arguments.",
    )

    def check(self) -> None:
        """Checks what follows from several settings: nothing."""


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class Iree:
    """A program that IREE has compiled (`.vmfb`); needs `tfconvert[iree]`."""

    name: ClassVar[str] = "iree"
    FLAG_PREFIX: ClassVar[str] = "iree_"

    backend: Backend = setting("llvm-cpu", "What to generate code for; vmvx programs run on every processor.")
    cpu: str = setting(
        "generic",
        "llvm-cpu's processor: a name that LLVM knows, host for this machine's, or generic for any of its kind.",
        flag="--iree-target-cpu",
        metavar="CPU",
    )
    flags: Sequence[str] = setting(
        (),
        "Further flags of iree-compile.",
        flag="--iree-flag",
        metavar="FLAG",
        expected="a list of flags",
        example='["--iree-opt-level=O3"]',
        is_path=True,
        uncached="they may name files",
    )
    embed_weights: bool = setting(False, "Store the weights in the .vmfb itself, not in a .safetensors beside it.")
    keep_mlir: bool = setting(
        False,
        "Write the text that was compiled beside the program (.mlir), also if it can't be compiled.",
        flag="--keep-mlir",
    )
    check_indices: bool = setting(
        True,
        "End programs with an error where an index is out of range.",
        flag="--iree-skip-index-checks",
        help="Clamp indices that are out of range instead of reporting an error.",
    )

    def check(self) -> None:
        """Checks what follows from several settings, and the flags.

        Raises:
            ConversionError: One is wrong, or two contradict each other (`wrong-option`).
        """
        if not self.cpu or self.cpu.startswith("-"):
            raise error("wrong-option", f"the processor can't be {self.cpu!r}", hint="name one, or generic, or host")
        if self.cpu != "generic" and self.backend != "llvm-cpu":
            raise error(
                "wrong-option",
                f"the backend {self.backend} doesn't depend on the processor {self.cpu!r}",
                hint="leave the processor out, or choose the backend llvm-cpu",
            )
        for flag in self.flags:
            if not flag.startswith("--") or "\0" in flag or flag.startswith(_RESERVED):
                raise error(
                    "wrong-option",
                    f"{flag!r} is not a flag that can be added to iree-compile's",
                    hint="it must start with -- and must not set the output or the target",
                )


AnyTarget = LiteRT | StableHLO | Iree
"""The settings of a target."""

CLASSES: Mapping[str, type[AnyTarget]] = {each.name: each for each in (LiteRT, StableHLO, Iree)}
"""The classes by the names of the targets."""

TARGETS = tuple(CLASSES)


def target_of(target: object, quantize: object = None, samples: object = None) -> AnyTarget:
    """Returns the settings that the arguments `target`, `quantize` and `samples` of a conversion stand for.

    Args:
        target: A target's settings, or its name.
        quantize: A mode, a `Quantize`, or `None`: a setting of LiteRT.
        samples: The samples of the quantization, or `None`.

    Raises:
        ConversionError: One is something else, or they contradict each other (`wrong-option`).
    """
    if isinstance(target, str) and target in CLASSES:
        target = CLASSES[target]()
    if not isinstance(target, LiteRT | StableHLO | Iree):
        names = ", ".join(TARGETS)
        hint = f"use one of {names}, or a LiteRT, a StableHLO or an Iree"
        raise error("wrong-option", f"target can't be {shown(target)}", hint=hint)
    if quantize is None and samples is None:
        return target
    if not isinstance(target, LiteRT):
        raise not_of(target, "samples" if quantize is None else "quantize", LiteRT)
    if quantize is not None and target.quantize is not None:
        raise error("wrong-option", "target.quantize and quantize are both given", hint="leave one of them out")
    return replace(target, quantize=to_quantize(target.quantize if quantize is None else quantize, samples))


def not_of(target: AnyTarget, name: str, other: type[AnyTarget]) -> ConversionError:
    """Returns the error about a setting that another target has.

    Args:
        target: The target of the conversion.
        name: The setting.
        other: The target that has it.
    """
    return error(
        "wrong-option",
        f"{name} is a setting of {other.__name__}, and the target is {type(target).__name__}",
        hint=f"leave it out, or set the target to {other.name}",
    )
