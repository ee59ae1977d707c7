"""The checks of the methods that create a converter, as in the official class."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tfconvert.compat.row import refusal
from tfconvert.importers.graph.node_graph import parse_graph_input
from tfconvert.importers.graph.reachability import needed_nodes
from tfconvert.importers.graph_def import check_tensors
from tfconvert.importers.saved_model import SignatureInfo, is_saved_model, signatures_in, signatures_of
from tfconvert.importers.temporary_model import PreparedModel, TemporaryModel
from tfconvert.importers.traced_model import TracedModel
from tfconvert.schema.diagnostics import ConversionError, Diagnostic, error
from tfconvert.schema.files import is_missing
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.setting import shown


def texts(name: str, given: Any) -> list[str] | None:
    """Returns strings as a list, or `None`; a single string becomes a list of one.

    Raises:
        ConverterError: It is something else (`wrong-option`).
    """
    if given is None:
        return None
    found = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    for each in found:
        if not isinstance(each, str):
            raise refusal(name, f"{each!r} is not a string", "pass a list of strings")
    return found or None


def path_of(name: str, given: Any) -> str:
    """Returns a path as a text.

    Raises:
        ConverterError: It is something else (`wrong-option`).
    """
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str):
        raise refusal(name, f"{given!r} is not a path", "pass a path")
    return path


def signatures(
    model: str | PreparedModel, keys: Sequence[str] | None, tags: Sequence[str] | None
) -> Mapping[str, SignatureInfo] | None:
    """Returns the signatures of a SavedModel's graph; `None` for a model of another format.

    Args:
        model: The path of the model, or one that its framework prepared.
        keys: The signatures to convert; all of them if `None`.
        tags: The tags of the graph.

    Raises:
        ConversionError: There is no such model, graph or signature.
    """
    if isinstance(model, TracedModel):
        found = signatures_in(model.message, tags)
    else:
        assert isinstance(model, str | TemporaryModel)
        if not is_saved_model(model) and not is_missing(model):
            return None
        found = signatures_of(model, tags)
    if not found:
        raise error(
            "no-signature",
            "the model has no signature to convert",
            hint="save it with signatures=module.function.get_concrete_function(...)",
        )
    for key in keys or ():
        if key not in found:
            raise error(
                "unknown-signature",
                f"Invalid signature key {key!r}: the model has no such signature",
                hint=f"its signatures are: {', '.join(found)}",
            )
    return found


def check_functions(funcs: Any) -> None:
    """Checks that there are functions, and that each is traced or can be.

    Raises:
        ConverterError: No function is given, or one could be traced in many ways (`wrong-option`).
    """
    if not isinstance(funcs, list | tuple):
        raise refusal("funcs", f"{shown(funcs)} is not a list", "pass a list of concrete functions")
    if not funcs:
        raise refusal("funcs", "there is no function to convert", "pass a list of concrete functions")
    for each in funcs:
        if hasattr(each, "get_concrete_function") and getattr(each, "input_signature", None) is None:
            name = getattr(each, "__name__", type(each).__name__)
            raise refusal(
                "funcs",
                f"{name} is not a concrete function, and has no input signature",
                "call get_concrete_function(...) of it, and pass what it returns",
            )


def shapes_of(name: str, given: Any) -> dict[str, list[int | None]]:
    """Returns shapes by input; those that are `None` are left out.

    Raises:
        ConverterError: It is something else (`wrong-option`).
    """
    if not isinstance(given, Mapping | None):
        raise refusal(name, f"{given!r} is not a mapping", "pass shapes by the input's name")
    for key, shape in (given or {}).items():
        if not isinstance(key, str) or not isinstance(shape, Collection | None) or isinstance(shape, str):
            raise refusal(name, f"the shape of {key!r} can't be {shape!r}", "pass a list of numbers")
    return {key: list(shape) for key, shape in (given or {}).items() if shape is not None}


def of_graph(graph: pb.GraphDef, inputs: Any, outputs: Any, shapes: Any) -> dict[str, Any]:
    """Returns arguments of `convert` that select a part of a graph.

    Args:
        graph: The graph.
        inputs: The tensors to feed.
        outputs: The tensors to fetch.
        shapes: Shapes by input.

    Raises:
        ConversionError: There is no such tensor, or a variable is needed, whose value a graph doesn't have.
    """
    fed, fetched = texts("input_arrays", inputs) or [], texts("output_arrays", outputs) or []
    nodes = {node.name: node for node in graph.node}
    check_tensors([*fed, *fetched], graph)
    sizes = shapes_of("input_shapes", shapes)
    _check_inputs(sizes, fed)
    tensors = {(each.node, each.position) for each in map(parse_graph_input, fed)}
    needed = needed_nodes(nodes, map(parse_graph_input, fetched), tensors)
    unknown = [each for each in needed.values() if each.op.startswith("Variable") or each.op == "VarHandleOp"]
    if unknown:
        raise ConversionError(
            Diagnostic(
                "no-checkpoint",
                "the variable's value is not in this file",
                f"tf.{each.op}",
                each.name,
                hint="freeze the graph",
            )
            for each in unknown
        )
    return {"inputs": fed, "outputs": fetched, "input_shapes": sizes}


def of_signature(signature: SignatureInfo | None, inputs: Any, shapes: Any, outputs: Any) -> dict[str, Any]:
    """Returns arguments of `convert` that select a part of a signature, with the signature's names where there are.

    Args:
        signature: The signature; `None` if nothing is known of it.
        inputs: The tensors to feed, by their names or the signature's; all of them if `None`.
        shapes: Shapes by input.
        outputs: The tensors to fetch.

    Raises:
        ConversionError: Shapes are of inputs that the signature doesn't have.
    """
    fed, fetched = texts("input_arrays", inputs), texts("output_arrays", outputs)
    sizes = shapes_of("input_shapes", shapes)
    if signature is not None:
        known, results = _names(signature.inputs), _names(signature.outputs)
        _check_inputs(sizes, [*known, *(fed or ())])
        sizes = {known.get(name, name): shape for name, shape in sizes.items()}
        fed = None if fed is None or {known.get(each) for each in fed} == {*signature.inputs} else fed
        fetched = (
            None if fetched is None or {results.get(each) for each in fetched} == {*signature.outputs} else fetched
        )
    return {"inputs": fed, "outputs": fetched, "input_shapes": sizes or None}


def _names(tensors: Mapping[str, str]) -> dict[str, str]:
    """Returns a signature's names by all that a tensor may be called by: a tensor's name goes before a signature's."""
    found = {name: name for name in tensors}
    found |= {tensor.removesuffix(":0"): name for name, tensor in tensors.items()}
    return found | {tensor: name for name, tensor in tensors.items()}


def _check_inputs(shapes: Iterable[str], known: Collection[str]) -> None:
    unknown = [name for name in shapes if name not in known]
    if unknown:
        raise error(
            "unknown-input",
            f"input_shapes has {', '.join(map(repr, unknown))}, which is no input",
            hint=f"the inputs are: {', '.join(known)}",
        )
