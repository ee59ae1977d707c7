"""The errors of the class: `ConversionError`s that scripts also catch as the ones of Python that the official has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tfconvert.schema.diagnostics import ConversionError, Diagnostic


class ConverterError(ConversionError, ValueError):
    """An error of the class or of what belongs to it."""


class ConverterFileError(ConverterError, OSError):
    """An error about a file that is missing, can't be read, or is not what it should be."""


_OF_FILES = frozenset(
    (
        "damaged-model",
        "damaged-saved-model",
        "missing-index",
        "missing-shard",
        "model-not-found",
        "not-a-graph-def",
        "not-a-keras-model",
        "not-a-meta-graph",
        "not-a-saved-model",
        "truncated-index",
        "truncated-shard",
        "unreadable-file",
    )
)

# Hints by the code of the error, for what settings of `Quantize` lead to.
_HINTS = {
    "stays-float": "add OpsSet.TFLITE_BUILTINS to target_spec.supported_ops",
    "slow-integers": "if no device needs integers, use tfconvert.convert with quantize='int8'",
    "same-signature": "name both in signature_keys to keep both",
    "no-samples": "set representative_dataset to a function that yields typical inputs",
}

# How a setting in advice, in brackets after a flag, is written for the class.
_ADVICE = {
    "--allow-custom-ops": "allow_custom_ops = True",
    "--allow-flex": "OpsSet.SELECT_TF_OPS in target_spec.supported_ops",
}
_IN_BRACKETS = re.compile(r"\((--[a-z-]+),[^()]*\)")


@contextmanager
def as_of_the_class() -> Iterator[None]:
    """Turns errors into those of the class, whose hints name attributes instead of settings; it decorates methods.

    Raises:
        ConverterError: The block failed.
    """
    try:
        yield
    except ConverterError:
        raise
    except ConversionError as problem:
        kind = ConverterFileError if problem.code in _OF_FILES else ConverterError
        advice = [_IN_BRACKETS.sub(_attribute, text) for text in problem.advice]
        raise kind(map(in_its_words, problem.diagnostics), advice) from problem


def in_its_words(problem: Diagnostic) -> Diagnostic:
    """Returns what is told with a hint that names attributes instead of settings."""
    return problem._replace(hint=_HINTS.get(problem.code, problem.hint))


def _attribute(found: re.Match[str]) -> str:
    return f"({_ADVICE[found[1]]})" if found[1] in _ADVICE else found[0]
