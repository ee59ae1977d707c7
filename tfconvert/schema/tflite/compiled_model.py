"""Reasons why LiteRT's `CompiledModel` can't load a file, on any hardware. The interpreter has no such limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tfconvert.schema.diagnostics import NOTE, Diagnostic
from tfconvert.schema.tflite.reader import View
from tfconvert.schema.tflite.tables import TFLITE

NO_COMPILED_MODEL = "no-compiled-model"
"""Code of the note about such a file."""

# Fields of an operator that must be empty.
_OF_OPERATORS = (
    ("intermediates", "intermediate tensors"),
    ("mutating_variable_inputs", "inputs that are marked as mutable"),
)

_DECIDING = frozenset({"is_variable", "variant_tensors", *(field for field, _ in _OF_OPERATORS)})

_VARIANTS = ("VARIANT", TFLITE.enums["TensorType"]["VARIANT"])

_HINT = "run it in the interpreter"
_OF_LAYERS = (
    "convert the TensorFlow model with recurrent='unrolled' (--recurrent unrolled) for up to 64 steps, or with 'loop' "
    "(--recurrent loop): browsers and other compilers don't take these operators either; the interpreter runs this file"
)

Table = View | dict[str, Any]
"""A table of a file, or the fields to build one from."""


def compiled_model_note(subgraphs: Iterable[Table], operators: Sequence[str]) -> Diagnostic | None:
    """Returns the note about a file that `CompiledModel` can't load, with the reasons, or `None`.

    Args:
        subgraphs: The file's subgraphs.
        operators: The names of its operators, in the order of its list of operator codes.
    """
    found: dict[str, dict[str, None]] = {}
    for subgraph in subgraphs:
        if isinstance(subgraph, dict) and not _may_be_refused(subgraph):
            continue
        get: Callable[[Any, str], Any] = dict.get if isinstance(subgraph, dict) else View.__getitem__
        refused = _refused_tensors(get(subgraph, "tensors") or (), get)
        for reason in refused.values():
            found.setdefault(reason, {})
        for call in get(subgraph, "operators") or ():
            reasons = [name for field, name in _OF_OPERATORS if _is_filled(get(call, field))]
            inputs = get(call, "inputs") if refused else None
            if inputs is not None:
                reasons += [refused[index] for index in map(int, inputs) if index in refused]
            for reason in reasons:
                found.setdefault(reason, {})[operators[get(call, "opcode_index") or 0]] = None
    if not found:
        return None
    users = list(dict.fromkeys(name for names in found.values() for name in names))
    where = f" ({', '.join(users)})" if users else ""
    is_layer = any("_SEQUENCE_" in name for name in users)
    unless = " without --recurrent unrolled" if is_layer else ""
    message = (
        f"LiteRT's CompiledModel loads this file on no hardware{unless}: it has {' and '.join(sorted(found))}{where}"
    )
    return Diagnostic(NO_COMPILED_MODEL, message, hint=_OF_LAYERS if is_layer else _HINT, severity=NOTE)


def _may_be_refused(subgraph: dict[str, Any]) -> bool:
    """Returns whether anything is in a subgraph that decides; large ones are checked faster as a whole."""
    fields = set().union(*subgraph.get("tensors", ()), *subgraph.get("operators", ()))
    if not fields.isdisjoint(_DECIDING):
        return True
    return not {tensor.get("type") for tensor in subgraph.get("tensors", ())}.isdisjoint(_VARIANTS)


def _refused_tensors(tensors: Sequence[Table], get: Callable[[Any, str], Any]) -> dict[int, str]:
    """Returns the tensors that can't be loaded, by index, and their kinds."""
    refused = {}
    for index, tensor in enumerate(tensors):
        if get(tensor, "is_variable"):
            refused[index] = "variable tensors"
        elif get(tensor, "type") in _VARIANTS or _is_filled(get(tensor, "variant_tensors")):
            refused[index] = "variant tensors"
    return refused


def _is_filled(items: Sequence[Any] | None) -> bool:
    return items is not None and len(items) > 0
