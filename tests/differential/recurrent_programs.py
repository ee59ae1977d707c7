"""Random networks of recurrent layers, most of which are almost what an operator computes, or just that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from tests.differential.recurrent_cells import Cell
from tests.differential.recurrent_draws import Array, Draws
from tests.differential.recurrent_loops import Layer
from tests.support.control_flow import control_flow_v1

Tensor = Any


@dataclass(frozen=True, slots=True)
class Program:
    """A network.

    Attributes:
        graph: Its GraphDef.
        inputs: The names and shapes of its inputs; -1 is the batch, -2 the number of steps, if these are open, and -3
            an open dimension that is one.
        outputs: The names of its outputs.
        sizes: The batches and numbers of steps to run it with.
        mutations: The mutations, due to which it may not be recurrent layers.
    """

    graph: Any
    inputs: dict[str, tuple[int, ...]]
    outputs: list[str]
    sizes: list[tuple[int, int]]
    mutations: set[str]

    def feeds(self, seed: int) -> Iterator[dict[str, Array]]:
        """Yields the inputs of each run."""
        random = np.random.default_rng(seed)
        for batch, time in self.sizes:
            shapes = {
                name: tuple({-1: batch, -2: time, -3: 1}.get(dim, dim) for dim in shape)
                for name, shape in self.inputs.items()
            }
            yield {name: random.normal(0, 1, shape).astype(np.float32) for name, shape in shapes.items()}


def random_program(tf: ModuleType, seed: int) -> Program:
    """Returns a program; the same for the same seed.

    Raises:
        Exception: TensorFlow rejects the draw, too.
    """
    chances = Draws(seed, 0)
    draws = Draws(seed, chances.pick("mutability", 0.0, 0.015, 0.05, odds=(3, 5, 3)))
    form = control_flow_v1(tf) if draws.happens("TensorFlow 1", 0.15) else nullcontext()
    with form, tf.Graph().as_default() as graph:
        network = _Network(tf, draws)
        results = network.build()
        names = [tf.identity(result).name.partition(":")[0] for result in results]
        return Program(graph.as_graph_def(), network.inputs, names, network.sizes(), draws.mutations)


class _Network:
    """A network that is being built.

    Attributes:
        inputs: Its inputs, and their shapes, as a program has them.
    """

    def __init__(self, tf: ModuleType, draws: Draws) -> None:
        self.inputs: dict[str, tuple[int, ...]] = {}
        self._tf = tf
        self._draws = draws
        self._graph = tf.compat.v1.get_default_graph()
        self._batch = draws.pick("batch", -1, 1, 2, 3, odds=(4, 2, 1, 2))
        self._time = draws.pick("time", -2, 1, 2, 3, 5, odds=(8, 1, 2, 2, 2))
        self._axis = draws.pick("axis", 0, 1)
        self._features = draws.pick("features", 2, 3)
        self._gain = self._input("gain")

    def sizes(self) -> list[tuple[int, int]]:
        """Returns the batches and numbers of steps to run with, one size twice."""
        batches = (1, 3, 3, 2) if self._batch < 0 else (self._batch,) * 2
        times = (1, 5, 5, 2) if self._time < 0 else (self._time,) * 2
        longest = max(len(batches), len(times)) if self._batch < 0 or self._time < 0 else 2
        return [(batches[at % len(batches)], times[at % len(times)]) for at in range(longest)]

    def build(self) -> list[Tensor]:
        """Returns the network's results."""
        tf, draws = self._tf, self._draws
        shape = (self._batch, self._time) if self._axis else (self._time, self._batch)
        place = draws.pick("place", "here", "function", "cond", "while", "map", odds=(76, 6, 7, 5, 6))
        if place == "map":
            layers = tf.autograph.experimental.do_not_convert(lambda one: _numbers(tf, self._results(one, draws)))
            return [tf.map_fn(layers, self._input("x", 2, *shape, self._features))]
        x = self._input("x", *shape, self._features)
        if place == "function":
            return list(tf.function(lambda one: self._results(one, draws), autograph=False)(x))
        if place == "cond":
            return list(
                tf.cond(
                    tf.reduce_sum(x) > 0,
                    lambda: self._results(x, draws),
                    lambda: self._results(x, draws.of_twin("else")),
                )
            )
        if place == "while":
            return self._again_and_again(x)
        return self._results(x, draws)

    def _again_and_again(self, x: Tensor) -> list[Tensor]:
        """A loop around the layers."""
        tf = self._tf

        def body(at: Tensor, total: Tensor) -> list[Tensor]:
            results = _numbers(tf, self._results(x * (1.0 + tf.cast(at, tf.float32)), self._draws))
            return [at + 1, total + tf.reduce_sum(results)]

        return list(tf.while_loop(lambda at, total: at < 3, body, [tf.constant(0), tf.constant(0.0)]))

    def _input(self, name: str, *shape: int) -> Tensor:
        """Returns an input."""
        with self._graph.as_default(), self._graph.control_dependencies(None):
            known = [None if dim < 0 else dim for dim in shape]
            tensor = self._tf.compat.v1.placeholder(self._tf.float32, known, name)
        self.inputs[tensor.op.name] = shape
        return tensor

    def _results(self, x: Tensor, draws: Draws) -> list[Tensor]:
        """Returns the used results of some layers."""
        tf = self._tf
        form = draws.pick("form", "one", "stacked", "both", odds=(50, 15, 35))
        if form == "both":
            found = self._both(x, draws)
        else:
            found = self._layer(x, draws, "first")
            if form == "stacked" and "outputs" in found and found["outputs"].shape[-1]:
                found = self._layer(found["outputs"], draws, "second")
        if "outputs" in found:
            found["last output"] = found["outputs"][-1] if self._axis == 0 else found["outputs"][:, -1]
            found["shape"] = tf.shape(found["outputs"])
        found["x"] = x
        odds = {"outputs": 0.6, "last output": 0.3, "h": 0.4, "kept": 0.9, "middle": 0.2, "shape": 0.05}
        wanted = [name for name in found if draws.happens(f"returns {name}", odds.get(name, 0.04))]
        return [found[name] for name in wanted or ["h"]]

    def _both(self, x: Tensor, draws: Draws) -> dict[str, Tensor]:
        """Layers in both directions, or almost."""
        tf, axis = self._tf, self._axis
        there = self._layer(x, draws, "there")
        own = draws.within("other") if draws.mutates("the other layer is of its own") else draws.of_twin("back")
        across = draws.mutates("turned along another axis")
        turned = x if draws.mutates("not turned") else tf.reverse(x, [1 - axis if across else axis])
        back = self._layer(turned, own, "there")
        if "outputs" not in there or "outputs" not in back:
            return {f"{name}": value for name, value in there.items()} | {"kept": back["h"]}
        again = tf.reverse(back["outputs"], [1 - axis if draws.mutates("turned back along another axis") else axis])
        again = back["outputs"] if draws.mutates("not turned back") else again
        pair = [there["outputs"], again]
        pair = pair[::-1] if draws.happens("backwards first", 0.2) else pair
        form = draws.pick("joined", "features", "sum", "apart", "time", odds=(5, 2, 2, 0.5))
        found = {"h": there["h"], "middle": back["h"]}
        if form == "apart" or (form == "sum" and pair[0].shape[-1] != pair[1].shape[-1]):
            return found | {"outputs": pair[0], "kept": pair[1]}
        found["outputs"] = pair[0] + pair[1] if form == "sum" else tf.concat(pair, 2 if form == "features" else axis)
        return found

    def _layer(self, x: Tensor, draws: Draws, name: str) -> dict[str, Tensor]:
        """Returns the results of a layer: a loop with one cell or with two."""
        tf, axis = self._tf, self._axis
        draws = draws.within(name)
        if draws.happens("goes backwards", 0.2):
            x = tf.reverse(x, [axis])
        sequences = self._sequences(x, draws)
        if axis == 1 and draws.happens("turns steps first"):
            sequences, axis = [tf.transpose(each, [1, 0, 2]) for each in sequences], 0
        cells = [Cell(tf, draws.within("cell"), x.shape[2], self._batch, self._gain)]
        form = draws.pick("cells", "one", "chain", "beside", odds=(8, 1, 1))
        if form != "one":
            features = cells[0].sizes[0] if form == "chain" else x.shape[2]
            cells.append(Cell(tf, draws.within("cell 2"), features, self._batch, self._gain))
        is_widened = draws.mutates("states of one row")
        initial = [
            self._initial(x, size, draws.within(f"state {at}"), is_widened)
            for at, size in enumerate(size for cell in cells for size in cell.sizes)
        ]
        if len(initial) == 2 and initial[0].shape[1] == initial[1].shape[1] and draws.mutates("swaps initial states"):
            initial = initial[::-1]
        if form == "beside":
            sequences = [sequences[0], sequences[-1]]

        def step(rows: list[Tensor], states: list[Tensor], at: Tensor) -> list[Tensor]:
            count = len(cells[0].sizes)
            new = cells[0].step(rows[0], states[:count], at)
            for cell in cells[1:]:
                own = rows[-1] if form == "beside" else states[0] if draws.mutates("takes the last output") else new[0]
                new += cell.step(own, states[count:], at)
            return new

        output = len(cells[0].sizes) if len(cells) > 1 and draws.happens("puts out the second", 0.7) else 0
        found = Layer(tf, draws, sequences, axis, self._time, step, initial, output, is_widened).run()
        if "outputs" in found:
            found["outputs"] = self._like_input(found["outputs"], x, draws)
        return found

    def _like_input(self, outputs: Tensor, x: Tensor, draws: Draws) -> Tensor:
        """Returns outputs, which have the steps first, with the axes in the order in which the input has them."""
        outputs = outputs if self._axis == 0 else self._tf.transpose(outputs, [1, 0, 2])
        if draws.mutates("adds its input") and outputs.shape[-1] == x.shape[2]:
            return outputs + x
        return outputs

    def _sequences(self, x: Tensor, draws: Draws) -> list[Tensor]:
        """Returns the sequences of a layer: mostly one."""
        tf = self._tf
        if not draws.happens("two sequences", 0.2):
            return [x]
        shorter = x[:-1] if self._axis == 0 else x[:, :-1]
        return [
            x,
            draws.pick(
                "second",
                tf.reverse(x, [self._axis]),
                x * 0.5,
                tf.concat([x, x], self._axis),
                tf.concat([shorter, shorter, x], self._axis),
            ),
        ]

    def _initial(self, x: Tensor, size: int, draws: Draws, is_widened: bool) -> Tensor:
        """Returns the state before the first step."""
        tf = self._tf
        batch = 1 if is_widened else tf.shape(x)[1 - self._axis] if self._batch < 0 else self._batch
        form = draws.pick("form", "zeros", "ones", "numbers", "input", "computed", odds=(5, 1, 1, 2, 1))
        if form == "zeros":
            return tf.zeros([batch, size])
        if form == "ones":
            return tf.fill([batch, size], 1.0)
        if form == "numbers":
            return tf.broadcast_to(tf.constant(draws.numbers("numbers", 1, size)), [batch, size])
        if form == "input":
            rows = -3 if self._batch < 0 and draws.mutates("one row is given") else self._batch
            return self._input("state", 1 if is_widened else rows, size)
        rows = x[:1, 0] if self._axis == 1 or is_widened else x[0]
        rows = x[:, 0] if self._axis == 1 and not is_widened else rows
        return tf.tanh(tf.matmul(rows, tf.constant(draws.numbers("matrix", x.shape[2], size))))


def _numbers(tf: ModuleType, results: Sequence[Tensor]) -> Tensor:
    """Returns all numbers of some results, one after the other."""
    return tf.concat([tf.reshape(tf.cast(each, tf.float32), [-1]) for each in results], 0)
