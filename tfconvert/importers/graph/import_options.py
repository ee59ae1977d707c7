"""Options of the inputs and outputs of a model: their order, names and batch."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

from tfconvert.importers.graph.entry_points import EntryPoint, GraphInput, GraphOutput, override_shape, tensor_of
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.cut import End
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


class ImportOptions(NamedTuple):
    """The options of an import.

    Attributes:
        sort_key: What the inputs and the outputs of a signature are sorted by; `None` for the order of the function's
            arguments and results.
        results: Names of outputs by signature, in the order of the function's results, if the graph doesn't have them.
        batch: The first dimension of every input whose first dimension is unknown; `None` leaves them.
        rename: New names of inputs and outputs.
        follow_links: Whether links may point outside the model's directory.
        op_defs: Definitions of ops that neither the model nor TensorFlow's registry has; the model's take precedence.
        is_raw: GraphDefs: whether to import every node unchanged, even if it can't be converted.
        inputs: Signatures: the tensors that become inputs instead of the signature's own; `None` leaves those.
        outputs: Signatures: the tensors that become outputs.
        label: Returns the name that TensorFlow's own converter gives an input or output of a signature.
        tensors: The labels of outputs by signature and name, if they differ; inputs are then labelled by name.
        second_names: Names that a function of a SavedModel has only if it isn't also `serving_default`, or if the user
            selects them; `None` for any.
    """

    sort_key: Callable[[GraphInput | GraphOutput], Any] | None = None
    results: Mapping[str, Sequence[str]] = {}
    batch: int | None = None
    rename: Mapping[str, str] = {}
    follow_links: bool = False
    op_defs: Sequence[pb.OpDef] = ()
    is_raw: bool = False
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    label: Callable[[GraphInput | GraphOutput], str] = tensor_of
    tensors: Mapping[str, Mapping[str, str]] = {}
    second_names: Container[str] | None = None


AS_WRITTEN = ImportOptions()


def fitted(entries: Sequence[EntryPoint], options: ImportOptions) -> list[EntryPoint]:
    """Returns entry points with the batch and the names of the options.

    Args:
        entries: The entry points.
        options: The options.
    """
    result = list(entries)
    if options.batch is not None:
        check_batch(options.batch)
        # What is cut has other inputs in the end.
        result = [
            each._replace(inputs=_batched(each.inputs, options.batch)) if each.cut is None else each for each in result
        ]
    if options.rename:
        _check_names(result, options.rename)
        result = [_renamed(each, options.rename) for each in result]
    return result


def check_batch(batch: Any) -> None:
    """Checks that a batch is a positive integer.

    Raises:
        ConversionError: It is not (`wrong-option`).
    """
    if not isinstance(batch, int) or batch < 1:
        raise error("wrong-option", f"the batch is {batch}", hint="give a number from 1 on")


def with_batch(name: str, tensor: types.AnyTensor, batch: int) -> types.AnyTensor:
    """Returns the type of an input with a batch, which scalars and tensors of unknown rank don't get.

    Args:
        name: The input.
        tensor: Its type.
        batch: The first dimension that it gets.
    """
    shape = types.shape_of(tensor)
    if not shape:  # The report names those.
        return tensor
    pinned = override_shape(name, shape, [batch, *(-1 for _ in shape[1:])])
    return types.tensor(types.element_of(tensor), pinned)


def _batched(inputs: Sequence[GraphInput], batch: int) -> list[GraphInput]:
    return [each._replace(type=with_batch(each.name, each.type, batch)) for each in inputs]


def _check_names(entries: Sequence[EntryPoint], rename: Mapping[str, str]) -> None:
    known = {name for entry in entries for name in (*entry.input_names, *entry.output_names)}
    if unknown := sorted(rename.keys() - known):
        raise error(
            "wrong-option",
            f"rename: there is no input or output {', '.join(unknown)}",
            hint=f"there are: {', '.join(sorted(known))}",
        )
    for name in rename.values():
        if not name or "," in name:
            raise error("wrong-option", f"rename: {name!r} can't be a name", hint="give a name without commas")


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
    entry = entry._replace(inputs=inputs, outputs=outputs, cut=cut)
    for names in (entry.input_names, entry.output_names):
        twice = sorted({name for name in names if names.count(name) > 1} & set(rename.values()))
        if twice:
            raise error(
                "wrong-option", f"rename: there would be two tensors {', '.join(twice)}", hint="choose another name"
            )
    return entry


def _renamed_ends(ends: tuple[End, ...] | None, rename: Mapping[str, str]) -> tuple[End, ...] | None:
    return None if ends is None else tuple(each._replace(name=rename.get(each.name, each.name)) for each in ends)
