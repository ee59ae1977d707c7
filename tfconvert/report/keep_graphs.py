"""An instrument that keeps the model's graph as it was imported, so that a page can show it beside the result's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tfconvert.converter.pipeline.pass_registry import pass_class
from tfconvert.converter.pipeline.stage import Instrument, Stage
from tfconvert.report.graph import Function, count_ops, functions_of
from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.dialects.tf_executor import GraphOp

if TYPE_CHECKING:
    from tfconvert.schema.ir.builtin import ModuleOp
    from tfconvert.schema.ir.locations import Location


@dataclass(slots=True)
class KeepGraphs(Instrument):
    """Keeps the graph after import, once only ops of the model are in it, and the number of ops after each pass.

    Attributes:
        stages: The passes that were run, with the numbers of ops that they left.
    """

    stages: list[tuple[str, int]] = field(default_factory=list)
    _before: list[Function] = field(default_factory=list)

    def before(self, stage: Stage, module: ModuleOp) -> None:
        if self._before or any(isinstance(op, GraphOp) for op in module.walk()):
            return
        # Inlined as the model itself will be, so that both graphs tell the places of their ops alike.
        copy = module.clone()
        pass_class("inline")().apply(copy)
        self._before = functions_of(copy)

    def after(self, stage: Stage, module: ModuleOp) -> Sequence[Diagnostic]:
        self.stages.append((stage.run, count_ops(module)))
        return ()

    def graphs(self, result: ModuleOp) -> dict[str, Any]:
        """Returns the graphs before and after, with what each node of the result came from.

        Args:
            result: The module at the end.
        """
        after = functions_of(result)
        links = _links(self._before, after)
        for function, found in zip(after, links, strict=True):
            for index, each in found.items():
                function.nodes[int(index)].scope = self._layer(each["from"]) or function.nodes[int(index)].scope
        return {
            "before": [function.to_dict() for function in self._before],
            "after": [function.to_dict() | {"links": found} for function, found in zip(after, links, strict=True)],
            "stages": [{"name": name, "ops": count} for name, count in self.stages],
        }

    def _layer(self, places: Sequence[Sequence[int]]) -> str:
        """Returns the name of the node with the largest weights: a fused operator is in the layer that has these."""
        nodes = [self._before[number].nodes[index] for number, index in places]
        return max(nodes, key=lambda node: node.bytes).name if any(node.bytes for node in nodes) else ""


def _links(before: Sequence[Function], after: Sequence[Function]) -> list[dict[str, dict[str, list[list[int]]]]]:
    """Returns what the nodes of each function replace, as functions and indices; what is in their constants apart."""
    places: dict[Location, list[list[int]]] = {}
    for number, function in enumerate(before):
        for index, node in enumerate(function.nodes):
            for location in node.origins:
                places.setdefault(location, []).append([number, index])
    found = []
    for function in after:
        links: dict[str, dict[str, list[list[int]]]] = {}
        for index, node in enumerate(function.nodes):
            came = [place for location in node.origins for place in places.get(location, ())]
            folded = [place for location in node.folded for place in places.get(location, ()) if place not in came]
            if came or folded:
                links[str(index)] = {"from": _distinct(came), "folded": _distinct(folded)}
        found.append(links)
    return found


def _distinct(places: Sequence[list[int]]) -> list[list[int]]:
    return [list(place) for place in dict.fromkeys(map(tuple, places))]
