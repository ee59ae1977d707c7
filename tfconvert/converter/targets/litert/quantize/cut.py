"""The cheapest way to divide nodes in two: a minimum cut, by Dinic's algorithm for the maximum flow."""

from __future__ import annotations

import math

SOURCE, SINK = 0, 1

# Less than that is a rounding error.
_LEAST = 1e-9


class Cut:
    """A graph whose nodes are to be divided into those on the source's side and those on the sink's.

    It costs the capacity of each edge from the source's side to the sink's.

    Attributes:
        count: The number of nodes.
    """

    def __init__(self) -> None:
        self.count = 2
        # Edges in pairs: an edge and its reverse differ in the last bit.
        self._heads: list[int] = []
        self._left: list[float] = []
        self._edges: list[list[int]] = [[], []]

    def node(self) -> int:
        """Adds a node."""
        self._edges.append([])
        self.count += 1
        return self.count - 1

    def edge(self, tail: int, head: int, cost: float = math.inf) -> None:
        """Adds what it costs if the tail is on the source's side and the head on the sink's."""
        for node, capacity in ((head, cost), (tail, 0.0)):
            self._edges[tail + head - node].append(len(self._heads))
            self._heads.append(node)
            self._left.append(capacity)

    def sink_side(self) -> set[int]:
        """Returns the nodes on the sink's side; if several cuts cost the same, the fewest."""
        while self._augment(self._distances()):
            pass
        found, waiting = {SINK}, [SINK]
        while waiting:
            for edge in self._edges[waiting.pop()]:
                tail = self._heads[edge]
                if tail not in found and self._left[edge ^ 1] > _LEAST:
                    found.add(tail)
                    waiting.append(tail)
        return found

    def _distances(self) -> list[int]:
        """Returns the distance of each node from the source along edges with capacity left; -1 if there is no path."""
        distances = [-1] * self.count
        distances[SOURCE] = 0
        waiting = [SOURCE]
        for node in waiting:
            for edge in self._edges[node]:
                head = self._heads[edge]
                if distances[head] < 0 and self._left[edge] > _LEAST:
                    distances[head] = distances[node] + 1
                    waiting.append(head)
        return distances

    def _augment(self, distances: list[int]) -> bool:
        """Fills all shortest paths; returns whether there was one."""
        if distances[SINK] < 0:
            return False
        tried = [0] * self.count
        path: list[int] = []
        node = SOURCE
        while True:
            if node == SINK:
                flow = min(self._left[edge] for edge in path)
                for edge in path:
                    self._left[edge] -= flow
                    self._left[edge ^ 1] += flow
                path.clear()
                node = SOURCE
                continue
            edges = self._edges[node]
            while tried[node] < len(edges):
                edge = edges[tried[node]]
                head = self._heads[edge]
                if self._left[edge] > _LEAST and distances[head] == distances[node] + 1:
                    path.append(edge)
                    node = head
                    break
                tried[node] += 1
            else:
                if not path:
                    return True
                node = self._heads[path.pop() ^ 1]
                tried[node] += 1
