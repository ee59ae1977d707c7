"""FunctionDefs, and graphs that are a function's body, to functions; only called functions are imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tfconvert.importers.graph.attributes import import_attributes, shape_of
from tfconvert.importers.graph.node_graph import (
    ImportContext,
    NodeGraphImporter,
    TensorName,
    parse_function_input,
    parse_graph_input,
)
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, UnitAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

ARGUMENTS = frozenset({"_Arg", "_DeviceArg"})
RESULTS = frozenset({"_Retval", "_DeviceRetval"})


class FunctionGraph(NamedTuple):
    """A function's body as a graph with feeds and fetches.

    Attributes:
        nodes: Its nodes by name, placeholders in place of the arguments, and without the results.
        inputs: The arguments, in order.
        outputs: The tensors that it returns, in order.
    """

    nodes: Mapping[str, pb.NodeDef]
    inputs: list[str]
    outputs: list[str]


def as_graph(nodes: Mapping[str, pb.NodeDef]) -> FunctionGraph | None:
    """Returns the graph of a function's body, `None` if the nodes are not one.

    Raises:
        ConversionError: A result has no operand (`bad-input`).
    """
    if (ARGUMENTS | RESULTS).isdisjoint([node.op for node in nodes.values()]):
        return None
    arguments: list[tuple[int, str]] = []
    results: list[tuple[int, str]] = []
    kept: dict[str, pb.NodeDef] = {}
    for name, node in nodes.items():
        index = node.attr["index"].i if "index" in node.attr else 0
        if node.op in RESULTS:
            if not node.input or node.input[0].startswith("^"):
                raise error(
                    "bad-input",
                    "the result of a function has no value",
                    op=f"tf.{node.op}",
                    node=name,
                    hint="the model file is damaged",
                )
            results.append((index, node.input[0]))
            continue
        if node.op in ARGUMENTS:
            arguments.append((index, name))
            node = _placeholder(node)
        kept[name] = node
    outputs = [tensor for _, tensor in sorted(results)]
    return FunctionGraph(kept, [name for _, name in sorted(arguments)], list(map(_tensor, outputs)))


def _placeholder(node: pb.NodeDef) -> pb.NodeDef:
    made = pb.NodeDef(name=node.name, op="Placeholder", device=node.device)
    if "T" in node.attr:
        made.attr["dtype"].CopyFrom(node.attr["T"])
    made.attr["shape"].shape.unknown_rank = True
    if "_output_shapes" in node.attr:
        made.attr["_output_shapes"].CopyFrom(node.attr["_output_shapes"])
    elif "shape" in node.attr:
        made.attr["shape"].CopyFrom(node.attr["shape"])
    return made


def _tensor(text: str) -> str:
    """Returns an input's text as a tensor's name, without the index of a first output."""
    tensor = parse_graph_input(text)
    return tensor.node if not tensor.position else text


def make_function(
    name: str,
    block: Block,
    results: Sequence[Value],
    attributes: Mapping[str, Attribute],
    arg_attrs: Iterable[Mapping[str, Attribute]],
    res_attrs: Iterable[Mapping[str, Attribute]] | None = None,
    visibility: str = "private",
) -> FuncOp:
    """Returns the function of an entry block that has all but the terminator.

    Args:
        name: The symbol.
        block: The entry block.
        results: The values to return.
        attributes: The function's own attributes.
        arg_attrs: A dictionary for each argument.
        res_attrs: A dictionary for each result.
        visibility: `public` for exported functions.
    """
    block.add_op(ReturnOp.create(operands=results))
    properties: dict[str, Attribute] = {
        "sym_name": attrs.string(name),
        "function_type": FunctionType.get([arg.type for arg in block.args], [res.type for res in results]),
        "arg_attrs": ArrayAttr.get([DictionaryAttr.get(dict(each)) for each in arg_attrs]),
    }
    if res_attrs is not None:
        properties["res_attrs"] = ArrayAttr.get([DictionaryAttr.get(dict(each)) for each in res_attrs])
    if visibility != "public":
        properties["sym_visibility"] = attrs.string(visibility)
    return FuncOp.create(properties=properties, attributes=dict(attributes), regions=(Region(block),))


def import_callees(context: ImportContext) -> list[FuncOp]:
    """Returns the functions that imported nodes name, directly or through other functions, each once.

    Args:
        context: The context that the entry points were imported with; it has their callees and the model's functions.

    Raises:
        ConversionError: A function is missing, or can't be imported.
    """
    imported: dict[str, FuncOp] = {}
    while len(imported) < len(context.callees):
        for name, user in list(context.callees.items())[len(imported) :]:
            definition = context.library.definition(name)
            if definition is None and context.is_raw:
                # Graphs that are imported as they are: the gradient of an op names the op itself.
                context.callees.pop(name)
                continue
            if definition is None:
                raise error(
                    "missing-function",
                    f"the model has no function {name!r}",
                    op=f"tf.{user.op}",
                    node=user.name,
                    hint="the model file is damaged",
                )
            imported[name] = import_function(definition, context)
    return list(imported.values())


def import_function(definition: pb.FunctionDef, context: ImportContext) -> FuncOp:
    """Returns the function of a FunctionDef, its body a `tf_executor.graph`, or plain ops if the context requires that.

    FunctionDef attributes (`_implements`, `api_implements`, ...) become function attributes with the prefix `tf.`.

    Raises:
        ConversionError: The body can't be imported, or a result is not in it.
    """
    signature = definition.signature
    name = signature.name
    arg_types: list[Attribute] = []
    arg_attrs = []
    for index, argument in enumerate(signature.input_arg):
        element = types.element_type(argument.type)
        if element is None:
            raise error("bad-function", f"argument {argument.name!r} of {name!r} has no fixed type", node=name)
        noted = definition.arg_attr[index].attr if index in definition.arg_attr else {}
        shapes = noted["_output_shapes"].list.shape if "_output_shapes" in noted else ()
        arg_types.append(types.tensor(element, shape_of(shapes[0]) if shapes else None))
        kept = {key: value for key, value in noted.items() if key != "_output_shapes"}
        arg_attrs.append({f"tf.{key}": value for key, value in import_attributes(kept, name).items()})
    block = Block(arg_types=arg_types)
    feeds: dict[tuple[str, int], Value] = {
        (argument.name, 0): value for argument, value in zip(signature.input_arg, block.args, strict=True)
    }
    importer = NodeGraphImporter(
        {node.name: node for node in definition.node_def}, context, parse_function_input, name, feeds
    )
    fetches = [_fetch(definition, output.name) for output in signature.output_arg]
    results = importer.import_into(block, fetches, sorted(definition.control_ret.values()))
    attributes = {f"tf.{key}": value for key, value in import_attributes(definition.attr, name).items()}
    attributes.pop("tf._input_shapes", None)
    if signature.is_stateful:
        attributes["tf.signature.is_stateful"] = UnitAttr.intern()
    return make_function(name, block, results, attributes, arg_attrs)


def _fetch(definition: pb.FunctionDef, result: str) -> TensorName:
    if result not in definition.ret:
        name = definition.signature.name
        raise error("bad-function", f"function {name!r} doesn't define its result {result!r}", node=name)
    return parse_function_input(definition.ret[result])
