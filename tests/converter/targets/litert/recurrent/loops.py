"""Recurrent loops as text: a cell, its parts, and the loop that runs it over a sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]

FEATURES, UNITS = 3, 2
GATES = {"i": 0, "f": 1, "g": 2, "o": 3}
"""An LSTM's gates, and which columns of all weights are theirs."""


def kind(shape: Shape, element: str = "f32") -> str:
    """Returns a type's text; -1 is unknown."""
    return f"tensor<{''.join(f'{dim}x' if dim >= 0 else '?x' for dim in shape)}{element}>"


class Block:
    """Ops, one a line, whose types follow from the shapes that are known of their operands.

    Attributes:
        lines: The ops.
        kinds: The types of values.
    """

    def __init__(self, **kinds: str) -> None:
        self.lines: list[str] = []
        self.kinds = {f"%{name}": text for name, text in kinds.items()}
        self.repeat()

    def op(self, name: str, operands: Sequence[str], result: str, properties: str = "") -> str:
        """Adds an op; returns its result."""
        value = f"%v{len(self.kinds)}"
        taken = ", ".join(self.kinds[operand] for operand in operands)
        attributes = f" <{{{properties}}}>" if properties else ""
        self.lines.append(f'{value} = "tf.{name}"({", ".join(operands)}){attributes} : ({taken}) -> {result}')
        self.kinds[value] = result
        return value

    def constant(self, value: Any, element: str = "f32") -> str:
        """Adds a constant."""
        array = np.asarray(value)
        result = kind(array.shape, element)
        return self.op("Const", (), result, f"value = dense<{array.tolist()}> : {result}")

    def repeat(self) -> None:
        """Resets the seed, so that the next weights are the first ones again."""
        self._random = np.random.default_rng(0)

    def weights(self, *shape: int) -> str:
        """Adds a constant of random numbers."""
        return self.constant(self._random.normal(size=shape).round(3))

    def unary(self, name: str, value: str) -> str:
        """Adds an op whose result is like its operand."""
        return self.op(name, (value,), self.kinds[value])

    def binary(self, name: str, one: str, other: str) -> str:
        """Adds an op whose result is like its first operand."""
        return self.op(name, (one, other), self.kinds[one])

    def product(self, value: str, matrix: str, columns: int, properties: str = "") -> str:
        """Adds a product with a matrix."""
        rows = self.kinds[value].removeprefix("tensor<").partition("x")[0]
        return self.op("MatMul", (value, matrix), f"tensor<{rows}x{columns}xf32>", properties)


Sums = Callable[[Block, str, str], dict[str, str]]
"""Adds the sums of a cell's gates, of an input and an output."""


def one_product(block: Block, x: str, h: str) -> dict[str, str]:
    """All gates at once, as Keras has them."""
    both = block.binary(
        "AddV2",
        block.product(x, block.weights(FEATURES, 4 * UNITS), 4 * UNITS),
        block.product(h, block.weights(UNITS, 4 * UNITS), 4 * UNITS),
    )
    return split(block, block.op("BiasAdd", (both, block.weights(4 * UNITS)), block.kinds[both]))


def joined(block: Block, x: str, h: str) -> dict[str, str]:
    """One product with both side by side, as cells of TensorFlow 1 have it, and one more for the forget gate."""
    rows = block.kinds[x].removeprefix("tensor<").partition("x")[0]
    side = block.op("ConcatV2", (x, h, block.constant(1, "i32")), f"tensor<{rows}x{FEATURES + UNITS}xf32>")
    product = block.product(side, block.weights(FEATURES + UNITS, 4 * UNITS), 4 * UNITS)
    gates = split(block, block.op("BiasAdd", (product, block.weights(4 * UNITS)), block.kinds[product]))
    return {**gates, "f": block.binary("AddV2", gates["f"], block.constant(1.0))}


def separate(block: Block, x: str, h: str) -> dict[str, str]:
    """A product for each gate, some of them with transposed weights and without a bias."""
    gates = {}
    for gate in GATES:
        own = block.product(x, block.weights(UNITS, FEATURES), UNITS, "transpose_b = true")
        past = block.product(h, block.weights(UNITS, UNITS), UNITS)
        gates[gate] = block.binary("AddV2", past, own)
    return gates


def split(block: Block, whole: str) -> dict[str, str]:
    """Adds slices of columns."""
    rows = block.kinds[whole].removeprefix("tensor<").partition("x")[0]
    result, size = f"tensor<{rows}x{UNITS}xf32>", block.constant([-1, UNITS], "i32")
    return {
        gate: block.op("Slice", (whole, block.constant([0, at * UNITS], "i32"), size), result)
        for gate, at in GATES.items()
    }


def lstm(
    block: Block,
    x: str,
    h: str,
    c: str,
    *,
    sums: Sums = one_product,
    activation: str = "Tanh",
    is_coupled: bool = False,
    is_tied: bool = False,
    looks: bool = False,
    clip: float = 0,
    projects: bool = False,
) -> tuple[str, str]:
    """Adds a step of an LSTM; returns its output and its state."""
    gates = sums(block, x, h)

    def opened(gate: str, state: str) -> str:
        value = gates[gate]
        if looks:
            value = block.binary("AddV2", value, block.binary("Mul", state, block.weights(UNITS)))
        return block.unary("Sigmoid", value)

    forget = opened("f", c)
    entry = forget if is_tied else opened("i", c)
    if is_coupled:
        entry = block.op("Sub", (block.constant(1.0), forget), block.kinds[forget])
    state = block.binary(
        "AddV2", block.binary("Mul", block.unary(activation, gates["g"]), entry), block.binary("Mul", c, forget)
    )
    if clip:
        state = block.binary("Minimum", state, block.constant(clip))
        state = block.binary("Maximum", state, block.constant(-clip))
    output = block.binary("Mul", block.unary(activation, state), opened("o", state))
    return (block.product(output, block.weights(UNITS, UNITS), UNITS) if projects else output), state


def rnn(block: Block, x: str, h: str, activation: str = "Tanh") -> str:
    """Adds a step of a simple RNN; returns its output."""
    own = block.product(x, block.weights(FEATURES, UNITS), UNITS)
    own = block.op("BiasAdd", (own, block.weights(UNITS)), block.kinds[own])
    total = block.binary("AddV2", own, block.product(h, block.weights(UNITS, UNITS), UNITS))
    return block.unary(activation, total) if activation else total


def stacked(block: Block, x: str, states: list[str]) -> list[str]:
    """Adds a step of an LSTM and of a simple RNN upon it, which has the first of the three states."""
    output, state = lstm(block, x, *states[1:])
    own = block.product(output, block.weights(UNITS, UNITS), UNITS)
    past = block.product(states[0], block.weights(UNITS, UNITS), UNITS)
    return [block.unary("Tanh", block.binary("AddV2", own, past)), output, state]


Step = Callable[[Block, str, list[str]], list[str]]
"""Adds a step; takes the input and the states, returns the states, of which the first is the output."""


def _initial(main: Block, states: int, axis: int, stack: str, runs: Callable[[Block, str], str]) -> list[str]:
    """Adds what a loop starts with; returns its variables' values: index, number of runs, outputs, sequence, states."""
    length = main.op("Shape", ("%x",), "tensor<3xi32>")
    picked = [main.constant([index], "i32") for index in (axis, axis + 1, 1)]
    masks = ", ".join(f"{name}_mask = 0 : i64" for name in ("begin", "end", "ellipsis", "new_axis"))
    count = main.op("StridedSlice", (length, *picked), "tensor<i32>", f"{masks}, shrink_axis_mask = 1 : i64")
    zero = main.constant(0, "i32")
    rows = main.op("Shape", ("%s0",), "tensor<2xi32>")
    sizes = main.op(
        "ConcatV2",
        (main.op("Reshape", (count, main.constant([1], "i32")), "tensor<1xi32>"), rows, zero),
        "tensor<3xi32>",
    )
    empty = main.op("Fill", (sizes, main.constant(0.0)), stack)
    return [zero, runs(main, count), empty, "%x", *(f"%s{index}" for index in range(states))]


def _following(body: Block, step: Step, states: int, axis: int, batch: int) -> list[str]:
    """Adds one run of a loop; returns its variables' values for the next one."""
    at = body.op("GatherV2", ("%x", "%i", body.constant(axis, "i32")), kind((batch, FEATURES)))
    after = step(body, at, [f"%s{index}" for index in range(states)])
    row = body.op(
        "ExpandDims", (after[states if len(after) > states else 0], body.constant(0, "i32")), kind((1, batch, UNITS))
    )
    first = body.constant(0, "i32")
    place = body.op("Pack", ("%i", first, first), "tensor<3xi32>", "axis = 0 : i64")
    out = body.op("XlaDynamicUpdateSlice", ("%out", row, place), body.kinds["%out"])
    following = body.binary("AddV2", "%i", body.constant(1, "i32"))
    return [following, "%n", out, "%x", *after[:states]]


def loop(
    step: Step,
    states: int = 2,
    *,
    time: int = 4,
    batch: int = 2,
    axis: int = 0,
    results: Sequence[int] = (0,),
    runs: Callable[[Block, str], str] = lambda block, count: count,
    state_batch: int | None = None,
) -> str:
    """Returns a module whose `main` takes a sequence and initial states, and runs a step in a loop.

    Args:
        step: The step; its results after the states are collected instead of the first state.
        states: The number of states.
        time: The sequence's length.
        batch: The batch.
        axis: The axis of the steps in the sequence.
        results: The results of `main`: 0 all outputs, steps first; 1, 2, ... the states; -3 the number of
            iterations, and -2 the intended number.
        runs: The number of iterations, computed from the sequence's length.
        state_batch: The batch of the states, if not the sequence's.
    """
    sequence = kind((time, batch, FEATURES) if axis == 0 else (batch, time, FEATURES))
    state, stack = kind((batch if state_batch is None else state_batch, UNITS)), kind((time, batch, UNITS))
    kinds = {"x": sequence, **{f"s{index}": state for index in range(states)}}
    main = Block(**kinds)
    values = _initial(main, states, axis, stack, runs)
    variables = [main.kinds[value] for value in values]
    names = ["i", "n", "out", *kinds]
    body = Block(**dict(zip(names, variables, strict=True)))
    forwarded = ", ".join(_following(body, step, states, axis, batch))
    signature = ", ".join(variables)
    arguments = ", ".join(f"%{name}: {text}" for name, text in zip(names, variables, strict=True))
    places = [2 if result == 0 else 3 + result for result in results]
    returned, outputs = ", ".join(f"%0#{place}" for place in places), ", ".join(variables[place] for place in places)
    newline = "\n"
    return f"""
      func.func @main({", ".join(f"%{name}: {text}" for name, text in kinds.items())}) -> ({outputs})
          attributes {{tf.entry_function = {{inputs = "{",".join(kinds)}",
            outputs = "{",".join(f"y{index}" for index, _ in enumerate(results))}"}}}} {{
        {newline.join(main.lines)}
        %0:{len(names)} = "tf.While"({", ".join(values)}) <{{cond = @cond, body = @body, is_stateless = true}}>
          : ({signature}) -> ({signature})
        func.return {returned} : {outputs}
      }}
      func.func private @cond({arguments}) -> tensor<i1> {{
        %less = "tf.Less"(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
        func.return %less : tensor<i1>
      }}
      func.func private @body({arguments}) -> ({signature}) {{
        {newline.join(body.lines)}
        func.return {forwarded} : {signature}
      }}
    """


def lstm_loop(*, results: Sequence[int] = (0,), time: int = 4, batch: int = 2, axis: int = 0, **options: Any) -> str:
    """Returns the module of an LSTM; `options` are those of `lstm`."""
    return loop(
        lambda block, x, states: list(lstm(block, x, *states, **options)),
        results=results,
        time=time,
        batch=batch,
        axis=axis,
    )


def rnn_loop(*, activation: str = "Tanh", **options: Any) -> str:
    """Returns the module of a simple RNN; `options` are those of `loop`."""
    return loop(lambda block, x, states: [rnn(block, x, states[0], activation)], 1, **options)
