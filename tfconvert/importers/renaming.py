"""The names that the user gives inputs and outputs (`rename`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.settings.selection import Selection


def check_rename(interfaces: Sequence[tuple[Sequence[str], Sequence[str]]], rename: Mapping[str, str]) -> None:
    """Checks that each name to replace exists, and that afterwards no two tensors of a signature have the same name.

    An input and an output that the model itself gives one name may keep one.

    Args:
        interfaces: The names of the inputs and of the outputs of each signature.
        rename: New names by old ones.

    Raises:
        ConversionError: They are not so (`wrong-option`).
    """
    known = {name for ends in interfaces for names in ends for name in names}
    if unknown := sorted(rename.keys() - known):
        raise _wrong(f"there is no input or output {', '.join(unknown)}", f"there are: {', '.join(sorted(known))}")
    for name in rename.values():
        if not name or "," in name:
            raise _wrong(f"{name!r} can't be a name", "give a name without commas")
    for inputs, outputs in interfaces:
        after = [[rename.get(name, name) for name in names] for names in (inputs, outputs)]
        twice = {name for names in after for name in names if names.count(name) > 1}
        shared = set(after[0]) & set(after[1]) - {rename.get(name, name) for name in {*inputs} & {*outputs}}
        if taken := sorted((twice | shared) & set(rename.values())):
            raise _wrong(f"two tensors would have the name {', '.join(taken)}", "choose another name")


def with_models_names(selection: Selection) -> Selection:
    """Returns a selection whose shapes are by the model's names, where the user gave them by new names.

    Raises:
        ConversionError: One input has two shapes (`wrong-option`).
    """
    shapes, rename = selection.input_shapes, selection.rename
    if not shapes or not rename:
        return selection
    old = {new: name for name, new in rename.items()}
    by_name = {}
    for given, shape in shapes.items():
        name = given if given in rename else old.get(given, given)
        if name in by_name:
            raise error("wrong-option", f"input_shapes has two shapes of the input {name!r}", hint="leave one out")
        by_name[name] = shape
    return replace(selection, input_shapes=by_name)


def _wrong(message: str, hint: str) -> ConversionError:
    return error("wrong-option", f"rename: {message}", hint=hint)
