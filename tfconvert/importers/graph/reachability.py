"""Reachability between the nodes of a main graph, on NodeDefs before any of them is imported."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from tfconvert.importers.graph.node_graph import TensorName, parse_graph_input
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


def needed_nodes(
    nodes: Mapping[str, pb.NodeDef], targets: Iterable[TensorName], fed: Collection[tuple[str, int]] = ()
) -> dict[str, pb.NodeDef]:
    """Returns the targets and the nodes that they depend on through data or control inputs.

    Args:
        nodes: The graph's nodes by name. Missing names are ignored.
        targets: Tensors, or nodes as tensors of index 0.
        fed: Tensors as (node, index) at which the traversal stops.
    """
    found: dict[str, pb.NodeDef] = {}
    pending = [each.node for each in targets if (each.node, each.position) not in fed]
    while pending:
        name = pending.pop()
        node = nodes.get(name)
        if node is None or name in found:
            continue
        found[name] = node
        for text in node.input:
            tensor = parse_graph_input(text.removeprefix("^"))
            if (tensor.node, tensor.position) not in fed:
                pending.append(tensor.node)
    return found


def dependent_nodes(nodes: Mapping[str, pb.NodeDef], sources: Iterable[str]) -> set[str]:
    """Returns the names of the nodes that data of sources reaches, including the sources."""
    users: dict[str, list[str]] = {}
    for node in nodes.values():
        for text in node.input:
            if not text.startswith("^"):
                users.setdefault(parse_graph_input(text).node, []).append(node.name)
    found: set[str] = set()
    pending = list(sources)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += users.get(name, ())
    return found


def unused_nodes(nodes: Mapping[str, pb.NodeDef]) -> list[str]:
    """Returns the names of unused nodes that could be results, in the graph's order.

    The pivots of a condition are excluded: a branch without pivots does not use them.
    """
    texts = [text.removeprefix("^") for node in nodes.values() for text in node.input]
    used = {parse_graph_input(text).node if ":" in text else text for text in texts}
    return [name for name, node in nodes.items() if name not in used and not _is_pivot(node, nodes)]


def _is_pivot(node: pb.NodeDef, nodes: Mapping[str, pb.NodeDef]) -> bool:
    source = nodes.get(parse_graph_input(node.input[0]).node) if node.op == "Identity" and node.input else None
    return source is not None and source.op == "Switch"
