"""Random cells of recurrent layers, and near misses: an LSTM, a simple RNN, a GRU with something changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from tests.differential.recurrent_draws import Draws

Tensor = Any

# The number of states of each kind of cell; the first is its output.
STATES = {"lstm": 2, "rnn": 1, "gru": 1}


class Cell:
    """A cell.

    Args:
        tf: TensorFlow.
        draws: The draws of its form.
        features: How many elements its inputs have.
        batch: The batch, -1 if it is open.
        gain: A scalar input of the model that weights may be multiplied by; one most of the time.

    Attributes:
        kind: LSTM, simple RNN or GRU.
        sizes: How many elements each state has.
    """

    def __init__(self, tf: ModuleType, draws: Draws, features: int, batch: int, gain: Tensor) -> None:
        self._tf = tf
        self._draws = draws
        self._outer = tf.compat.v1.get_default_graph()
        self._features = features
        self._batch = max(batch, 1)
        self._gain = gain
        self.kind = draws.pick("kind", *STATES, odds=(55, 32, 13))
        units = draws.pick("units", 2, 3, 4)
        self._units = units
        self._projects = self.kind == "lstm" and draws.happens("projects", 0.1)
        outputs = draws.pick("outputs", units, 2, 3) if self._projects else units
        self.sizes = [outputs, units][: STATES[self.kind]]

    def step(self, x: Tensor, states: Sequence[Tensor], at: Tensor) -> list[Tensor]:
        """Returns the new states.

        Args:
            x: The input.
            states: The last states.
            at: The number of the step.
        """
        made = {"lstm": self._lstm, "rnn": self._rnn, "gru": self._gru}[self.kind](x, list(states), at)
        if self._draws.mutates("states stay where a mask says so"):
            return [self._tf.where(x[:, :1] > 0, new, old) for new, old in zip(made, states, strict=True)]
        return made

    def _lstm(self, x: Tensor, states: list[Tensor], at: Tensor) -> list[Tensor]:
        tf, draws = self._tf, self._draws
        h, c = states
        sums = self._sums("ifgo", x, h, c, at)
        outer, inner = self._activations()
        forget = self._gate("f", sums, c)
        entry = self._gate("i", sums, c)
        if draws.happens("couples gates", 0.12):
            entry = draws.pick("one", 1.0, 2.0 if draws.mutates("two less the forget gate") else 1.0) - forget
        elif draws.mutates("forget gate is one less the input gate"):
            forget = 1.0 - entry
        kept = self._times("kept", forget, h if draws.mutates("keeps h") and self.sizes[0] == self._units else c)
        entered = self._times("entered", entry, inner(self._altered("g", sums["g"])))
        if draws.mutates("state is a difference"):
            state = kept - entered
        else:
            state = kept + entered if draws.happens("kept first") else entered + kept
        state = self._altered("state", self._clipped("state", state))
        seen = draws.pick("seen", state, kept if draws.mutates("output gate sees less") else state)
        gate = self._gate("o", sums, c if draws.mutates("output gate sees the last state") else state)
        output = gate if draws.mutates("only a gate is put out") else self._times("output", gate, outer(seen))
        if self._projects:
            output = tf.matmul(output, self._weights("projection", self._units, self.sizes[0]))
            output = output + 0.5 if draws.mutates("projection has a bias") else output
            output = self._clipped("output", output)
        output = self._altered("output", output)
        if self.sizes[0] == self._units and draws.mutates("states are swapped"):
            return [state, output]
        return [output, state]

    def _rnn(self, x: Tensor, states: list[Tensor], at: Tensor) -> list[Tensor]:
        tf, draws = self._tf, self._draws
        (h,) = states
        total = self._altered("sum", self._sums("h", x, h, h, at)["h"])
        activation = draws.pick("activation", tf.tanh, tf.nn.relu, tf.nn.relu6, tf.identity)
        if draws.mutates("activation of no operator"):
            activation = draws.pick("activation of no operator", tf.sigmoid, tf.nn.elu, tf.nn.leaky_relu, tf.sin)
        output = activation(total)
        if draws.mutates("mixes old and new"):
            output = 0.5 * output + 0.5 * h
        return [self._altered("output", output)]

    def _gru(self, x: Tensor, states: list[Tensor], at: Tensor) -> list[Tensor]:
        tf, draws = self._tf, self._draws
        (h,) = states
        gates = self._sums("zr", x, h, h, at)
        update, reset = tf.sigmoid(gates["z"]), tf.sigmoid(gates["r"])
        new = tf.tanh(self._sums("n", x, reset * h, h, at)["n"])
        if draws.mutates("nothing of the old state is kept"):
            return [update * new]
        return [update * h + (1.0 - update) * new]

    def _activations(self) -> list[Callable[[Tensor], Tensor]]:
        """Returns the activations of the state and of the input to it: the same, if nothing is mutated."""
        tf, draws = self._tf, self._draws
        options = [tf.tanh, tf.nn.relu, tf.nn.relu6]
        found = [draws.pick("activation", *options, odds=(4, 1, 1))] * 2
        for index, name in enumerate(("activation of the state", "activation of what enters")):
            if draws.mutates(name):
                found[index] = draws.pick(name, *options, tf.sigmoid, tf.identity)
        return found

    def _gate(self, name: str, sums: dict[str, Tensor], state: Tensor) -> Tensor:
        tf, draws = self._tf, self._draws
        total = sums[name]
        if draws.happens("peepholes", 0.2) and not draws.mutates(f"no peephole in {name}"):
            by = self._weights(f"peephole {name}", *draws.pick("of peepholes", (self._units,), (1, self._units)))
            seen = tf.matmul(state, self._weights("m", *[self._units] * 2)) if draws.mutates("sees a matrix") else state
            total = total + self._times(f"peephole {name}", seen, by)
        total = self._altered(name, total)
        if draws.happens(f"adds one to {name}", 0.4 if name == "f" else 0.05):
            total = total + 1.0
        if draws.mutates(f"activation of gate {name}"):
            return draws.pick(f"activation of gate {name}", tf.tanh, tf.nn.relu, tf.nn.relu6)(total)
        return tf.sigmoid(total)

    def _altered(self, name: str, value: Tensor) -> Tensor:
        """Returns a value, or something near it."""
        tf, draws = self._tf, self._draws
        width = value.shape[-1]
        if draws.mutates(f"{name} is altered"):
            changes: tuple[Callable[[], Tensor], ...] = (
                lambda: -value,
                lambda: value * 0.5,
                lambda: value * self._weights(f"scales of {name}", width),
                lambda: value + self._weights(f"more {name}", 1, width),
                lambda: value + self._weights(f"more {name}", 1),
                lambda: value * tf.reduce_mean(value),
                lambda: tf.reverse(value, [1]),
            )
            return draws.pick(f"change of {name}", *changes)()
        return value

    def _clipped(self, name: str, value: Tensor) -> Tensor:
        tf, draws = self._tf, self._draws
        if not draws.happens(f"{name} is clipped", 0.12):
            return value
        low, high = -0.4, 0.6 if draws.mutates("limits differ") else 0.4
        if draws.happens("clips by two ops"):
            return tf.maximum(tf.minimum(value, high), low)
        return tf.clip_by_value(value, low, high)

    def _times(self, name: str, one: Tensor, other: Tensor) -> Tensor:
        return one * other if self._draws.happens(f"first factor: {name}") else other * one

    def _sums(self, names: str, x: Tensor, h: Tensor, state: Tensor, at: Tensor) -> dict[str, Tensor]:
        """Returns the sums of gates."""
        draws = self._draws
        order = draws.shuffled(f"order of {names}", names)
        x, h = self._factors(x, h)
        if draws.happens("one product each", 0.25):
            return {name: self._sum(name, self._units, x, h, state, at) for name in order}
        return self._split(self._sum(names, self._units * len(names), x, h, state, at), order)

    def _factors(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        draws = self._draws
        if draws.mutates("input is computed"):
            x = draws.pick("input is", x * 0.5, self._tf.tanh(x), x + 1.0)
        return x, h * 0.5 if draws.mutates("last output is scaled") else h

    def _sum(self, name: str, columns: int, x: Tensor, h: Tensor, state: Tensor, at: Tensor) -> Tensor:
        tf, draws = self._tf, self._draws
        factors = {"x": (x, self._features), "h": (h, h.shape[-1])}
        if draws.mutates("a third factor"):
            factors["third"] = draws.pick(
                "third factor", (state, state.shape[-1]), (x, self._features), (h, h.shape[-1])
            )
        elif draws.mutates("a constant factor"):
            # Added to every row alike, so that it is a bias.
            factors["third"] = tf.broadcast_to(self._weights("constant factor", 1, 2), [tf.shape(x)[0], 2]), 2
        order = draws.shuffled("order of factors", sorted(factors))
        if draws.happens("joins factors", 0.4):
            rows = sum(factors[each][1] for each in order)
            total = self._product(
                f"{name} of all", tf.concat([factors[each][0] for each in order], 1), rows, columns, at
            )
        else:
            products = [self._product(f"{name} of {each}", *factors[each], columns, at) for each in order]
            total = products[0]
            for one in products[1:]:
                total = total - one if draws.mutates("a product is taken off") else total + one
        return self._biased(name, total, columns)

    def _product(self, name: str, value: Tensor, rows: int, columns: int, at: Tensor) -> Tensor:
        tf, draws = self._tf, self._draws
        is_transposed = draws.happens("transposed weights", 0.3)
        matrix = self._weights(name, *((columns, rows) if is_transposed else (rows, columns)))
        if draws.mutates("weights depend on the step"):
            matrix = matrix * (1.0 + 0.1 * tf.cast(at, tf.float32))
        if draws.mutates("weights depend on the input"):
            matrix = matrix * tf.reduce_mean(value)
        if draws.happens("weights are computed", 0.05):
            matrix = matrix * self._gain
        return tf.matmul(value, matrix, transpose_b=is_transposed)

    def _biased(self, name: str, total: Tensor, columns: int) -> Tensor:
        tf, draws = self._tf, self._draws
        form = draws.pick("bias", "none", "vector", "row", "scalar", "op", odds=(2, 3, 2, 1, 4))
        if draws.mutates("bias for each row of the batch"):
            return total + self._weights(f"bias {name}", self._batch, columns)
        if form == "none":
            return total
        if form == "op":
            return tf.nn.bias_add(total, self._weights(f"bias {name}", columns))
        shape = {"vector": (columns,), "row": (1, columns), "scalar": ()}[form]
        bias = self._weights(f"bias {name}", *shape)
        return total + bias if draws.happens("bias behind") else bias + total

    def _split(self, total: Tensor, order: Sequence[str]) -> dict[str, Tensor]:
        tf, draws, units = self._tf, self._draws, self._units
        if len(order) == 1:
            return {order[0]: total}
        if draws.mutates("gates are interleaved"):
            return {name: total[:, at :: len(order)] for at, name in enumerate(order)}
        form = draws.pick("split", "split", "split by sizes", "slices", "strided")
        if form == "split":
            parts = tf.split(total, len(order), axis=draws.pick("axis of split", 1, -1))
        elif form == "split by sizes":
            parts = tf.split(total, [units] * len(order), axis=1)
        elif form == "slices":
            parts = [tf.slice(total, [0, at * units], [-1, units]) for at in range(len(order))]
        else:
            parts = [total[:, at * units : (at + 1) * units] for at in range(len(order))]
        return dict(zip(order, parts, strict=True))

    def _weights(self, name: str, *shape: int) -> Tensor:
        """Returns a constant, in the loop or outside of it."""
        value = self._draws.numbers(name, *shape)
        if self._draws.happens("weights stand outside"):
            with self._outer.as_default():
                return self._tf.constant(value)
        return self._tf.constant(value)
