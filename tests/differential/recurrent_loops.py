"""Random loops of all kinds around a step of recurrent layers, and near misses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tests.differential.recurrent_draws import Draws

Tensor = Any

# Of a row of each sequence, the states and the number of the step: the new states.
Step = Callable[[list[Tensor], list[Tensor], Tensor], list[Tensor]]


@dataclass(slots=True)
class Layer:
    """The layer that a loop implements.

    Attributes:
        tf: TensorFlow.
        draws: The draws of its form.
        sequences: The sequences that it iterates over.
        axis: Along which of the sequences' axes the steps lie.
        time: How many steps there are, -1 if that is open.
        step: The body.
        initial: The states before the first step.
        output: The index of the state that is its output.
        is_widened: Whether the states grow to the batch in the first step.
    """

    tf: ModuleType
    draws: Draws
    sequences: list[Tensor]
    axis: int
    time: int
    step: Step
    initial: list[Tensor]
    output: int
    is_widened: bool

    def run(self) -> dict[str, Tensor]:
        """Returns the results, by name: `outputs`, steps first, `h`, ... not all loops have everything."""
        draws = self.draws
        kinds = {_while: 60, _scanned: 8, _folded: 4, _autographed: 8, _unrolled: 20 if self.time > 0 else 0}
        if self.is_widened:
            kinds = {_while: 2, _unrolled: int(self.time > 0)}
        return draws.pick("loop", *kinds, odds=list(kinds.values()))(self)

    def count(self) -> Tensor:
        """Returns how many steps there are."""
        tf, draws = self.tf, self.draws
        is_known = self.time > 0 and draws.happens("count is known")
        count = tf.constant(self.time) if is_known else tf.shape(self.sequences[0])[self.axis]
        if draws.mutates("one step less"):
            count = tf.maximum(count - 1, 1)  # LiteRT's loops allocate rows for a first step, even without steps.
        if draws.mutates("few steps"):
            count = tf.minimum(count, draws.pick("few", 2, 100))
        return count

    def row(self, sequence: int, at: Tensor) -> Tensor:
        """Returns the row that is read in a step."""
        tf, draws, values = self.tf, self.draws, self.sequences[sequence]
        if draws.mutates("reads another row"):
            last = tf.shape(values)[self.axis] - 1
            at = draws.pick("which row", tf.maximum(at - 1, 0), last - at, tf.minimum(at + 1, last), at // 2, 0)
        if draws.happens("gathers"):
            return tf.gather(values, at, axis=self.axis)
        return values[at] if self.axis == 0 else values[:, at]

    def written(self, new: list[Tensor], old: Sequence[Tensor], rows: list[Tensor]) -> Tensor:
        """Returns the value that a step collects."""
        draws = self.draws
        if not draws.mutates("collects something else"):
            return new[self.output]
        others = [new[-1], old[0], new[0] * 2.0, self.tf.concat([new[0], rows[0]], 1), rows[0]]
        return draws.pick("what is collected", *others)


def _while(layer: Layer) -> dict[str, Tensor]:
    """A loop of variables: counters, a TensorArray, states, and the row of the last step."""
    tf, draws = layer.tf, layer.draws
    first, stride = int(draws.mutates("counts from one")), 1 + draws.mutates("counts by two")
    count = layer.count()
    collects, keeps = draws.happens("collects", 0.75), draws.happens("keeps the last row", 0.15)
    arrays = _arrays(layer) if layer.axis == 0 and draws.happens("reads arrays", 0.4) else []
    adds = draws.mutates("adds up outputs")

    def body(at: Tensor, also: Tensor, collected: Any, last: Tensor, total: Tensor, *states: Tensor) -> list[Any]:
        rows = [each.read(at) for each in arrays] or [layer.row(index, at) for index in range(len(layer.sequences))]
        new = layer.step(rows, list(states), also)
        if collects:
            place = at - first if first else at
            place = count - 1 - place if draws.mutates("collects backwards") else place
            collected = collected.write(place, layer.written(new, states, rows))
        new_total = total + tf.reduce_sum(new[0]) if adds else total
        return [at + stride, also + 1, collected, new[0] if keeps else last, new_total, *new]

    def runs(at: Tensor, also: Tensor, *others: Any) -> Tensor:
        limited = draws.mutates("also ends for another reason")
        reason = draws.pick("reason", also < 2, tf.reduce_max(others[3]) < 0.9, also < 100, at <= count)
        return tf.logical_and(at < count, reason) if limited else at < count

    initial = layer.initial
    is_known = not layer.is_widened and not draws.mutates("collects something else") and draws.happens("shape is told")
    collected = tf.TensorArray(
        tf.float32,
        size=count if collects else 0,
        infer_shape=False,
        element_shape=initial[layer.output].shape if is_known else None,
    )
    values = [tf.constant(first), tf.constant(0), collected, tf.zeros_like(initial[0]), tf.constant(0.0), *initial]
    most = draws.pick("at most", None, count, tf.constant(2) if draws.mutates("stops early") else None, odds=(4, 3, 3))
    shapes = None
    if layer.is_widened:
        open_shapes = [tf.TensorShape([None, state.shape[1]]) for state in initial]
        scalar = tf.TensorShape([])
        shapes = [scalar, scalar, tf.TensorShape(None), open_shapes[0], scalar, *open_shapes]
    done = tf.while_loop(runs, body, values, maximum_iterations=most, shape_invariants=shapes)
    result = {"count": done[0], "also": done[1], **_named(done[5:])}
    result |= {"outputs": done[2].stack()} if collects else {}
    result |= {"kept": done[3]} if keeps else {}
    return result | ({"total": done[4]} if adds else {})


def _arrays(layer: Layer) -> list[Any]:
    """Returns sequences as TensorArrays."""
    tf = layer.tf
    size = tf.shape(layer.sequences[0])[0]
    return [tf.TensorArray(tf.float32, size=size).unstack(each) for each in layer.sequences]


def _named(states: Sequence[Tensor]) -> dict[str, Tensor]:
    return {f"state {index}" if index else "h": state for index, state in enumerate(states)}


def _steps_first(layer: Layer) -> list[Tensor]:
    if layer.axis == 0:
        return layer.sequences
    return [layer.tf.transpose(each, [1, 0, 2]) for each in layer.sequences]


def _scanned(layer: Layer) -> dict[str, Tensor]:
    """`tf.scan`."""

    def step(states: list[Tensor], rows: list[Tensor]) -> list[Tensor]:
        return layer.step(list(rows), list(states), layer.tf.constant(1))

    is_reversed = layer.draws.happens("scans backwards", 0.3)
    found = layer.tf.scan(step, _steps_first(layer), initializer=layer.initial, reverse=is_reversed)
    last = 0 if is_reversed else -1
    return {"outputs": found[layer.output], **_named([each[last] for each in found])}


def _folded(layer: Layer) -> dict[str, Tensor]:
    """`tf.foldl`, or backwards."""

    def step(states: list[Tensor], rows: list[Tensor]) -> list[Tensor]:
        return layer.step(list(rows), list(states), layer.tf.constant(1))

    fold = layer.draws.pick("fold", layer.tf.foldl, layer.tf.foldr)
    return _named(fold(step, _steps_first(layer), initializer=layer.initial))


def _autographed(layer: Layer) -> dict[str, Tensor]:
    """A `for` of Python."""
    tf = layer.tf
    step = tf.autograph.experimental.do_not_convert(layer.step)
    row = tf.autograph.experimental.do_not_convert(layer.row)
    written = tf.autograph.experimental.do_not_convert(layer.written)
    count, numbers = layer.count(), range(len(layer.sequences))

    def run(states):  # type: ignore[no-untyped-def]  # AutoGraph copies its source.
        outputs = tf.TensorArray(tf.float32, size=count)
        for at in tf.range(count):
            rows = [row(index, at) for index in numbers]
            new = step(rows, states, at)
            outputs = outputs.write(at, written(new, states, rows))
            states = new
        return outputs.stack(), states

    outputs, states = tf.autograph.to_graph(run, recursive=False)(list(layer.initial))
    return {"outputs": outputs, **_named(states)}


def _unrolled(layer: Layer) -> dict[str, Tensor]:
    """No loop."""
    tf, draws = layer.tf, layer.draws
    order = list(range(layer.time))
    if draws.happens("backwards", 0.25):
        order = order[::-1]
    if draws.mutates("leaves out steps"):
        order = order[:: draws.pick("every", 1, 2)][draws.pick("from", 0, 1) :] or order
    if draws.mutates("another order"):
        order = draws.shuffled("order", order)
    axis = layer.axis
    unstacked = [tf.unstack(each, layer.time, axis) for each in layer.sequences] if draws.happens("unstacks") else []
    states, outputs, one = list(layer.initial), [], tf.constant(1)
    for place, at in enumerate(order):
        rows = [each[at] for each in unstacked] or [layer.row(index, at) for index in range(len(layer.sequences))]
        if draws.mutates(f"input of step {place} is changed"):
            rows[0] = rows[0] * 0.5
        new = layer.step(rows, states, tf.constant(at) if draws.mutates("knows the step") else one)
        if draws.mutates(f"step {place} is changed"):
            new = draws.pick(
                "changed step",
                new[::-1] if len({each.shape[-1] for each in new}) == 1 else new,
                states,
                [each * 2.0 for each in new],
                [new[0] + 0.5, *new[1:]],
            )
        outputs.append(layer.written(new, states, rows))
        states = new
    return {"outputs": tf.stack(outputs), "middle": outputs[len(outputs) // 2], **_named(states)}
