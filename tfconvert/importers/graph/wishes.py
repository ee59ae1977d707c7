"""The user's wishes for the inputs and outputs of a model: their order, names and batch."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

from tfconvert.importers.graph.entry_points import EntryPoint, GraphInput, GraphOutput, override_shape, tensor_of
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import types
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


class Wishes(NamedTuple):
    """The user's wishes.

    Attributes:
        sort_key: What the inputs and the outputs of a signature are sorted by; `None` for the order of the function's
            arguments and results.
        results: Names of outputs by signature, in the order of the function's results, where the graph doesn't tell.
        batch: The first dimension of every input whose first dimension is unknown; `None` leaves them.
        rename: New names of inputs and outputs.
        follow_links: Whether links may lead out of the model's folder.
        op_defs: Definitions of ops that neither the model nor TensorFlow's registry has; the model's own go before.
        is_raw: GraphDefs: whether to import every node as it is, though it can't be converted so.
        label: Returns what TensorFlow's own converter calls an input or output of a signature.
        tensors: The labels of outputs by signature and name, where they are others; inputs are then called by name.
        second_names: Names that a function of a SavedModel has only if it isn't `serving_default`, too, or if they are
            asked for; `None` for any.
    """

    sort_key: Callable[[GraphInput | GraphOutput], Any] | None = None
    results: Mapping[str, Sequence[str]] = {}
    batch: int | None = None
    rename: Mapping[str, str] = {}
    follow_links: bool = False
    op_defs: Sequence[pb.OpDef] = ()
    is_raw: bool = False
    label: Callable[[GraphInput | GraphOutput], str] = tensor_of
    tensors: Mapping[str, Mapping[str, str]] = {}
    second_names: Container[str] | None = None


AS_WRITTEN = Wishes()
"""Nothing in particular."""


def fitted(entries: Sequence[EntryPoint], wishes: Wishes) -> list[EntryPoint]:
    """Returns entry points with the batch and the names that the user wants.

    Args:
        entries: The entry points.
        wishes: What the user wants.

    Raises:
        ConversionError: The batch contradicts an input (`shape-mismatch`), or the names are not there, or are taken
            (`wrong-option`).
    """
    result = list(entries)
    if wishes.batch is not None:
        result = [each._replace(inputs=_batched(each.inputs, wishes.batch)) for each in result]
    if wishes.rename:
        _check_names(result, wishes.rename)
        result = [_renamed(each, wishes.rename) for each in result]
    return result


def _batched(inputs: Sequence[GraphInput], batch: Any) -> list[GraphInput]:
    if not isinstance(batch, int) or batch < 1:
        raise error("wrong-option", f"the batch is {batch}", hint="give a number from 1 on")
    result = []
    for each in inputs:
        shape = types.shape_of(each.type)
        if shape:  # Neither a scalar nor of unknown rank; the report names those.
            pinned = override_shape(each.name, shape, [batch, *(-1 for _ in shape[1:])])
            each = each._replace(type=types.tensor(types.element_of(each.type), pinned))
        result.append(each)
    return result


def _check_names(entries: Sequence[EntryPoint], rename: Mapping[str, str]) -> None:
    known = {each.name for entry in entries for each in entry.inputs}
    known |= {each.name for entry in entries for each in entry.outputs}
    if unknown := sorted(rename.keys() - known):
        raise error("wrong-option", f"rename: there is no input or output {', '.join(unknown)}",
                    hint=f"there are: {', '.join(sorted(known))}")  # fmt: skip
    for name in rename.values():
        if not name or "," in name:
            raise error("wrong-option", f"rename: {name!r} can't be a name", hint="give a name without commas")


def _renamed(entry: EntryPoint, rename: Mapping[str, str]) -> EntryPoint:
    inputs = [each._replace(name=rename.get(each.name, each.name)) for each in entry.inputs]
    outputs = [each._replace(name=rename.get(each.name, each.name)) for each in entry.outputs]
    for names in ([each.name for each in inputs], [each.name for each in outputs]):
        twice = sorted({name for name in names if names.count(name) > 1} & set(rename.values()))
        if twice:
            raise error("wrong-option", f"rename: there would be two tensors {', '.join(twice)}",
                        hint="choose another name")  # fmt: skip
    return entry._replace(inputs=inputs, outputs=outputs)
