"""The kinds of result files: the ending of a name chooses the target, or must agree with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from tfconvert.exporters.output_file import C_HEADERS, C_SOURCES
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.settings.targets import TARGETS, AnyTarget, StableHLO


class Form(NamedTuple):
    """The form of a result; the fields are settings of a conversion.

    Attributes:
        target: The target, one of `TARGETS`.
        mlir_artifact: Whether it is a portable artifact of StableHLO rather than a text.
    """

    target: str = TARGETS[0]
    mlir_artifact: bool = False

    @classmethod
    def of(cls, target: AnyTarget) -> Form:
        """Returns what files of a target are."""
        return cls(target.name, isinstance(target, StableHLO) and target.artifact)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of a conversion that makes it, as data."""
        return {"target": self.target, **({"mlir_artifact": True} if self.mlir_artifact else {})}

    @property
    def ending(self) -> str:
        """The usual ending of its files."""
        # A contradictory form has the ending of its target.
        known = self if self in _NAMES else Form(self.target)
        return next(ending for ending, form in ENDINGS.items() if form == known)

    def __str__(self) -> str:
        return _NAMES[self]


ENDINGS: Mapping[str, Form] = {
    ".tflite": Form("litert"),
    ".mlir": Form("stablehlo"),
    ".mlirbc": Form("stablehlo", mlir_artifact=True),
    ".vmfb": Form("iree"),
    **dict.fromkeys((*C_SOURCES, *C_HEADERS), Form("litert")),
}
"""The form of files by their ending."""

_NAMES = {
    Form("litert"): "a model for LiteRT",
    Form("stablehlo"): "StableHLO text",
    Form("stablehlo", mlir_artifact=True): "a portable artifact of StableHLO",
    Form("iree"): "a program of IREE",
}

# Endings of model files that no target writes.
_OTHERS = frozenset(
    (
        ".h5",
        ".hdf5",
        ".keras",
        ".meta",
        ".mlmodel",
        ".mlpackage",
        ".onnx",
        ".pb",
        ".pbtxt",
        ".pt",
        ".pth",
        ".safetensors",
    )
)


def ending_of(path: str | os.PathLike[str]) -> str:
    """Returns the ending of a file's name in lower case, with the dot; empty for names such as `net_v1_0.25`."""
    stem, _, ending = os.fspath(path).replace("\\", "/").rpartition("/")[2].rpartition(".")
    return f".{ending.lower()}" if stem and ending[:1].isalpha() else ""


def form_of(path: str | os.PathLike[str], given: Mapping[str, Any]) -> Form:
    """Returns what a result is to be, by the name of its file and the settings.

    Args:
        path: The file or its URL.
        given: The settings that were given; those that have their defaults are left out.

    Raises:
        ConversionError: They contradict each other, or the ending is unknown (`wrong-option`).
    """
    ending = ending_of(path)
    named = ENDINGS.get(ending)
    target = given.get("target")
    artifact = bool(given.get("mlir_artifact"))
    if named is None:
        if ending in _OTHERS:
            raise _wrong(path, f"no target writes {ending} files", _known())
        if ending and target is None:
            raise _wrong(path, f"the ending {ending} is not known", f"{_known()}; or name the target (--target)")
        return Form(target or TARGETS[0], artifact)
    if target is not None and target != named.target:
        other = Form(target, artifact and target == "stablehlo").ending
        hint = f"did you mean --target {named.target}? Otherwise let the name end in {other}"
        raise _wrong(path, f"{ending} is the ending of {named}, and the target is {target}", hint)
    if artifact and not named.mlir_artifact:
        hint = "let its name end in .mlirbc, or leave mlir_artifact (--mlir-artifact) out"
        raise _wrong(path, f"{ending} is the ending of {named}, not of a portable artifact", hint)
    if named.mlir_artifact and given.get("mlir_weights") == "resource":
        raise _wrong(
            path,
            f"{named} can't have its weights as resources",
            "choose inline or arguments for mlir_weights (--mlir-weights), or an ending .mlir",
        )
    return named


def _known() -> str:
    return "let the name end in .tflite, .mlir, .mlirbc or .vmfb, for LiteRT, StableHLO or IREE"


def _wrong(path: str | os.PathLike[str], message: str, hint: str) -> ConversionError:
    return error("wrong-option", f"won't write {os.fspath(path)}: {message}", hint=hint)
