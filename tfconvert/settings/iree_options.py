"""How IREE compiles a model: the setting `iree` of a conversion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from tfconvert.schema.diagnostics import error

Backend = Literal["llvm-cpu", "vmvx", "cuda", "rocm", "vulkan-spirv", "metal-spirv"]
"""The backends of IREE's compiler; programs of `vmvx`, a virtual machine, run on every processor."""

BACKENDS: tuple[str, ...] = get_args(Backend)

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


class IreeOptions(NamedTuple):
    """How to compile a model with IREE.

    Attributes:
        backend: What to make code for.
        cpu: `llvm-cpu`: the processor: `generic` for the least of its kind, `host` for this machine's, or a name that
            LLVM knows.
        flags: Further flags of `iree-compile`, in its own words.
        embed_weights: Whether the weights are in the `.vmfb` itself, not in a `.safetensors` beside it.
        keep_mlir: Whether the text that was compiled is written beside the program, also if it can't be compiled.
        check_indices: Whether programs end with an error where an index is out of range.
    """

    backend: Backend = "llvm-cpu"
    cpu: str = "generic"
    flags: Sequence[str] = ()
    embed_weights: bool = False
    keep_mlir: bool = False
    check_indices: bool = True

    def check(self) -> None:
        """Checks the settings.

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
                    hint="it begins with two dashes, and what is made and where is not its matter",
                )
