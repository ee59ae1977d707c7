"""Small programs that write variables, each in a way of its own: functions of TensorFlow, the state and two inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Program = Callable[[Any, Any, Any, Any], object]


def state(tf: Any) -> Any:
    """Returns a module with the variables that the programs use."""
    module = tf.Module()
    module.table = tf.Variable(np.arange(1, 13, dtype=np.float32).reshape(4, 3))
    module.total = tf.Variable([1.0, -2.0, 0.5])
    module.scale = tf.Variable([2.0, 1.0, 0.5])
    module.count = tf.Variable(2, dtype=tf.int64)
    module.flag = tf.Variable(True)
    return module


def _reads_around_a_write(tf: Any, m: Any, x: Any, row: Any) -> None:
    before = m.total.read_value()
    m.total.assign_add(x * m.scale)
    after = m.total.read_value()
    m.total.assign(before - after * m.total)
    m.count.assign_add(3)
    m.count.assign_sub(tf.cast(row, tf.int64))


def _swap(tf: Any, m: Any, x: Any, row: Any) -> None:
    first = m.total.read_value()
    m.total.assign(m.table[row])
    m.table.scatter_nd_update([[row]], [first])


def _branches(tf: Any, m: Any, x: Any, row: Any) -> None:
    if row % 2 == 0:
        m.total.assign_add(x)
        if m.flag:
            m.count.assign_add(1)
    else:
        m.total.assign(x)
    m.flag.assign(tf.logical_not(m.flag))


def _cases(tf: Any, m: Any, x: Any, row: Any) -> None:
    tf.switch_case(
        row, [lambda: m.total.assign_add(x), lambda: m.total.assign_sub(x), lambda: m.total.assign(m.table[1])]
    )


def _loop(tf: Any, m: Any, x: Any, row: Any) -> None:
    step = tf.constant(0)
    while step < 3 and m.total[0] < 50.0:
        m.total.assign_add(x)
        m.table[step].assign(m.table[step] + m.total)
        if step == row:
            m.count.assign_add(2)
        step += 1


def _condition_of_a_loop(tf: Any, m: Any, x: Any, row: Any) -> None:
    while m.count % 5 > 0:
        m.count.assign_add(1)
        m.total.assign_add(x)
    m.count.assign_add(2)


def _function_called_twice(tf: Any, m: Any, x: Any, row: Any) -> None:
    @tf.function  # type: ignore[untyped-decorator]
    def add(variable: Any, value: Any) -> Any:
        variable.assign_add(value)
        return variable.read_value()

    m.scale.assign(add(m.total, x) + add(m.total, m.table[row]))


def _mapped(tf: Any, m: Any, x: Any, row: Any) -> None:
    def add(value: Any) -> Any:
        m.count.assign_add(1)
        return value * tf.cast(m.count, tf.float32)

    m.total.assign(tf.map_fn(add, x, parallel_iterations=1))


def _ring_buffer(tf: Any, m: Any, x: Any, row: Any) -> None:
    m.table.assign(tf.roll(m.table, -1, 0))
    m.table[-1].assign(x)
    m.total.assign(tf.reduce_mean(m.table, 0))


def _moving_position(tf: Any, m: Any, x: Any, row: Any) -> None:
    at = tf.cast(m.count % 4, tf.int32)
    m.table[at].assign(x)
    m.table[at - 4, 1].assign(x[0])
    m.table[at : at + 1].assign(x[None] * 2.0)
    m.table[:row, 2].assign(7.0)
    m.count.assign_add(1)


def _twice_in_one_op(tf: Any, m: Any, x: Any, row: Any) -> None:
    """LiteRT's default delegate crashes where both operands are one read."""
    m.scale.assign(m.total * m.total)
    m.total.assign(tf.concat([m.total, m.total], 0)[2:5] + x)


def _questions(tf: Any, m: Any, x: Any, row: Any) -> None:
    shape = tf.raw_ops.VariableShape(input=m.total.handle)
    m.count.assign_add(tf.cast(tf.reduce_sum(shape) + tf.size(m.total), tf.int64))
    m.total.assign(x)
    m.flag.assign(m.total.is_initialized())


def _scatter(kind: str, repeats: bool) -> Program:
    def program(tf: Any, m: Any, x: Any, row: Any) -> None:
        rows = tf.stack([row, row if repeats else (row + 1) % 4])
        getattr(m.table, f"scatter_{kind}")(tf.IndexedSlices(tf.stack([x, m.scale]), rows))

    return program


def _scatter_number(kind: str) -> Program:
    def program(tf: Any, m: Any, x: Any, row: Any) -> None:
        rows = tf.stack([row, 3])[: row + 1]  # of a size that is not known
        getattr(tf.raw_ops, f"ResourceScatter{kind}")(resource=m.table.handle, indices=rows, updates=x[1])
        getattr(tf.raw_ops, f"ResourceScatter{kind}")(resource=m.table.handle, indices=row, updates=x[2])
        getattr(tf.raw_ops, f"ResourceScatter{kind}")(resource=m.total.handle, indices=row, updates=x[1])

    return program


def _scatter_nd(kind: str) -> Program:
    def program(tf: Any, m: Any, x: Any, row: Any) -> None:
        places = tf.stack([tf.stack([row, 0]), tf.stack([(row + 2) % 4, 2])])
        getattr(m.table, f"scatter_nd_{kind}")(places, x[:2])

    return program


def _scatter_batch(tf: Any, m: Any, x: Any, row: Any) -> None:
    m.table.batch_scatter_update(tf.IndexedSlices(tf.fill([4, 1], x[0]), tf.fill([4, 1], row)))


def _slice(key: Any, *shape: int) -> Program:
    def program(tf: Any, m: Any, x: Any, row: Any) -> None:
        m.table[key].assign(tf.reshape(tf.concat([x, m.total, m.scale], 0)[: int(np.prod(shape))], shape))

    return program


_SLICES: Mapping[str, tuple[Any, ...]] = {
    "block": (np.s_[1:3], 2, 3),
    "row": (np.s_[2], 3),
    "item": (np.s_[-1, 1],),
    "column": (np.s_[..., 0], 4),
    "backwards": (np.s_[::-2, 1:], 2, 2),
    "new axis": (np.s_[None, 1], 1, 3),
    "repeated": (np.s_[1:, :2], 2),
    "nothing": (np.s_[2:2], 1, 3),
}

# The operation -> the program.
PROGRAMS: Mapping[str, Program] = {
    "reads around a write": _reads_around_a_write,
    "swap": _swap,
    "branches": _branches,
    "cases": _cases,
    "loop": _loop,
    "condition of a loop": _condition_of_a_loop,
    "function called twice": _function_called_twice,
    "mapped": _mapped,
    "ring buffer": _ring_buffer,
    "moving position": _moving_position,
    "questions": _questions,
    "twice in one op": _twice_in_one_op,
    **{f"scatter {kind}": _scatter(kind, False) for kind in ("update", "add", "sub", "mul", "div", "min", "max")},
    **{f"scatter {kind} twice": _scatter(kind, True) for kind in ("add", "mul", "div", "min")},
    **{f"scatter a number, {kind}": _scatter_number(kind) for kind in ("Update", "Add", "Mul", "Max")},
    **{f"scatter nd {kind}": _scatter_nd(kind) for kind in ("update", "add", "sub", "min", "max")},
    "scatter in batches": _scatter_batch,
    **{f"slice: {name}": _slice(*arguments) for name, arguments in _SLICES.items()},
}
