"""The graphs before and after in the JSON format of Google's Model Explorer: one graph a function, nested by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from tfconvert.schema.diagnostics import error
from tfconvert.schema.json_text import json_text

SIDES = ("after", "before")
"""The graphs that are written, the one first that is shown first."""


def to_json(source: str, graphs: Mapping[str, Any] | None) -> str:
    """Returns the graphs as JSON.

    Args:
        source: The path of the model, whose last part is the label.
        graphs: The graphs, as `Report.graphs` has them.

    Raises:
        ConversionError: The conversion kept no graphs (`wrong-option`).
    """
    if graphs is None:
        raise error("wrong-option", "the graphs of this conversion were not kept", hint="convert with keep_graphs=True")
    found = [_graph(side, function, graphs) for side in SIDES for function in graphs[side]]
    return json_text({"label": PurePath(source).name, "graphs": found}, separators=(",", ":"))


def _graph(side: str, function: Mapping[str, Any], graphs: Mapping[str, Any]) -> dict[str, Any]:
    names = {each["name"] for each in graphs[side]}
    nodes = [_node(side, index, function, graphs, names) for index in range(len(function["nodes"]))]
    return {"id": _graph_id(side, function["name"]), "nodes": nodes}


def _graph_id(side: str, name: str) -> str:
    return f"{name} ({side})"


def _node(
    side: str, index: int, function: Mapping[str, Any], graphs: Mapping[str, Any], names: set[str]
) -> dict[str, Any]:
    node = function["nodes"][index]
    scope = node.get("scope", node["name"])
    found: dict[str, Any] = {"id": str(index), "label": node["op"], "namespace": scope.rpartition("/")[0]}
    called = [_graph_id(side, name) for name in node.get("calls", ()) if name in names]
    if called:
        found["subgraphIds"] = called
    found["attrs"] = _attributes(node, _replaced(function, index, graphs))
    operands = node.get("operands", ())
    found["incomingEdges"] = [
        {"sourceNodeId": str(operand[0]), "sourceNodeOutputId": str(operand[1]), "targetNodeInputId": str(position)}
        for position, operand in enumerate(operands)
        if not isinstance(operand, Mapping)
    ]
    found["outputsMetadata"] = [
        {"id": str(position), "attrs": _pairs({"tensor_shape": each})}
        for position, each in enumerate(node.get("types", ()))
    ]
    return found


def _attributes(node: Mapping[str, Any], replaced: Sequence[str]) -> list[dict[str, str]]:
    """Returns the attributes of a node, as pairs of strings."""
    constants = {
        f"operand {position}": " ".join(str(operand[key]) for key in ("type", "name", "value") if operand.get(key))
        for position, operand in enumerate(node.get("operands", ()))
        if isinstance(operand, Mapping)
    }
    known = {
        "name": node["name"],
        **node.get("attributes", {}),
        **constants,
        "source": ", ".join(node.get("sources", ())),
        "constant bytes": str(node.get("bytes", "")),
        "came from": ", ".join(replaced),
    }
    return _pairs({key: value for key, value in known.items() if value})


def _replaced(function: Mapping[str, Any], index: int, graphs: Mapping[str, Any]) -> list[str]:
    """Returns the ops before the conversion that a node replaces, with their names."""
    links = function.get("links", {}).get(str(index), {}).get("from", ())
    nodes = [graphs["before"][number]["nodes"][place] for number, place in links]
    return [f"{node['op']} {node['name']}" for node in nodes]


def _pairs(texts: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in texts.items()]
