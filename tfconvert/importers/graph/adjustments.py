"""Gives the inputs and outputs of a model the batch and the names that the user wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.importers.graph.entry_points import EntryPoint, GraphInput
from tfconvert.importers.pinned_shapes import check_batch, with_batch
from tfconvert.importers.renaming import check_rename
from tfconvert.schema.dialects.cut import End
from tfconvert.settings.selection import Selection


def adjusted(entries: Sequence[EntryPoint], selection: Selection) -> list[EntryPoint]:
    """Returns entry points with the batch and the names that the user wants.

    Args:
        entries: The entry points.
        selection: The batch and the names.
    """
    result, batch = list(entries), selection.batch
    if batch is not None:
        check_batch(batch)
        # What is cut has other inputs in the end.
        result = [each._replace(inputs=_batched(each.inputs, batch)) if each.cut is None else each for each in result]
    if selection.rename:
        check_rename([(each.input_names, each.output_names) for each in result], selection.rename)
        result = [_renamed(each, selection.rename) for each in result]
    return result


def _batched(inputs: Sequence[GraphInput], batch: int) -> list[GraphInput]:
    return [each._replace(type=with_batch(each.name, each.type, batch)) for each in inputs]


def _renamed(entry: EntryPoint, rename: Mapping[str, str]) -> EntryPoint:
    cut = entry.cut
    if cut is not None:
        cut = cut._replace(inputs=_renamed_ends(cut.inputs, rename), outputs=_renamed_ends(cut.outputs, rename))
    # Ports that a cut replaces keep the names by which they are looked up.
    inputs, outputs = entry.inputs, entry.outputs
    if cut is None or cut.inputs is None:
        inputs = [each._replace(name=rename.get(each.name, each.name)) for each in inputs]
    if cut is None or cut.outputs is None:
        outputs = [each._replace(name=rename.get(each.name, each.name)) for each in outputs]
    return entry._replace(inputs=inputs, outputs=outputs, cut=cut)


def _renamed_ends(ends: tuple[End, ...] | None, rename: Mapping[str, str]) -> tuple[End, ...] | None:
    return None if ends is None else tuple(each._replace(name=rename.get(each.name, each.name)) for each in ends)
