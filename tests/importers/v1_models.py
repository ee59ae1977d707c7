"""Models of TensorFlow 1 as its `Saver` writes them: reference variables, a MetaGraph, a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.support.control_flow import control_flow_v1

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Saved:
    """A saved model.

    Attributes:
        prefix: The checkpoint's path without endings.
        inputs: The feeds, by tensor name.
        outputs: The results, by tensor name.
    """

    prefix: Path
    inputs: Arrays
    outputs: Arrays


def save(tf: ModuleType, folder: Path, build: Callable[[Any], tuple[dict[str, np.ndarray], list[str]]]) -> Saved:
    """Builds, initialises, saves and runs a model.

    Args:
        tf: TensorFlow.
        folder: Where to write.
        build: Builds the graph; returns the feeds and the fetches.
    """
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(7)
        inputs, outputs = build(tf)
        session.run(v1.global_variables_initializer())
        session.run(v1.local_variables_initializer())
        prefix = v1.train.Saver().save(session, str(folder / "model.ckpt"), global_step=5)
        return Saved(Path(prefix), inputs, dict(zip(outputs, session.run(outputs, inputs), strict=True)))


def variable(tf: ModuleType, name: str, value: object, **settings: object) -> Any:
    """Returns a reference variable."""
    return tf.compat.v1.get_variable(name, initializer=value, use_resource=False, **settings)


def dense(tf: Any) -> tuple[dict[str, np.ndarray], list[str]]:
    """A layer whose weights are partitioned, a label that only the loss needs, a training step."""
    v1 = tf.compat.v1
    x = v1.placeholder(tf.float32, [None, 4], "x")
    label = v1.placeholder(tf.float32, [None, 3], "label")
    weight = v1.get_variable(
        "w",
        [4, 3],
        use_resource=False,
        partitioner=v1.fixed_size_partitioner(2),
        initializer=v1.random_normal_initializer(),
    )
    bias = variable(tf, "b", np.ones(3, np.float32))
    keep = v1.placeholder_with_default(np.float32(2), [], "keep")
    scores = v1.identity((tf.matmul(x, tf.convert_to_tensor(weight)) + bias) * keep, name="scores")
    loss = tf.reduce_mean((scores - label) ** 2, name="loss")
    v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    return {"x:0": np.arange(8, dtype=np.float32).reshape(2, 4)}, ["scores:0"]


def counter(tf: Any) -> tuple[dict[str, np.ndarray], list[str]]:
    """A variable that the outputs write: reads before and after."""
    v1 = tf.compat.v1
    x = v1.placeholder(tf.float32, [2], "x")
    total = variable(tf, "total", np.array([1, 2], np.float32))
    # No Identity: TensorFlow's gives the variable's own memory, in which later writes show.
    before = tf.raw_ops.Neg(x=total._ref(), name="before")
    with v1.control_dependencies([before]):
        added = v1.assign_add(total, x, name="added")
    after = tf.raw_ops.Neg(x=added, name="after")
    with v1.control_dependencies([after]):
        again = v1.scatter_update(total, [0], [9.0], name="again")
    with v1.control_dependencies([again]):
        tf.raw_ops.AddV2(x=total._ref(), y=after, name="last")
    return {"x:0": np.array([3, 4], np.float32)}, ["before:0", "after:0", "last:0"]


def written_in_a_branch(tf: Any) -> tuple[dict[str, np.ndarray], list[str]]:
    """A variable that one branch of a condition writes, and that is read thereafter."""
    v1 = tf.compat.v1
    x = v1.placeholder(tf.float32, [2], "x")
    total = variable(tf, "total", np.array([1, 2], np.float32))
    with control_flow_v1(tf):
        chosen = v1.cond(tf.reduce_sum(x) > 0, lambda: v1.assign_add(total, x) * 2, lambda: total * 3, name="chosen")
    with v1.control_dependencies([chosen]):
        tf.raw_ops.AddV2(x=total._ref(), y=chosen, name="y")
    return {"x:0": np.array([3, 4], np.float32)}, ["y:0"]


class Cell:
    """A recurrent cell with reference variables, whose state is an average while it does not train."""

    output_size = state_size = 4

    def __init__(self, tf: Any, is_training: Any) -> None:
        self._tf, self._is_training = tf, is_training

    def zero_state(self, size: Any, dtype: Any) -> Any:
        """Returns the first state."""
        return self._tf.zeros([size, self.state_size], dtype)

    def __call__(self, value: Any, state: Any, scope: object = None) -> tuple[Any, Any]:
        """Returns a step's output and state."""
        tf = self._tf
        weight = variable(tf, "w", np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
        new = tf.tanh(tf.matmul(value, tf.convert_to_tensor(weight)) + state)
        new = tf.compat.v1.cond(self._is_training, lambda: new * weight[0], lambda: (new + state) / 2)
        return new, new


def recurrent(tf: Any) -> tuple[dict[str, np.ndarray], list[str]]:
    """A condition in a loop, as a default decides that is not fed, and arrays of tensors."""
    v1 = tf.compat.v1
    x = v1.placeholder(tf.float32, [2, 5, 3], "x")
    is_training = v1.placeholder_with_default(False, [], "is_training")
    with control_flow_v1(tf):
        outputs, state = v1.nn.dynamic_rnn(Cell(tf, is_training), x, dtype=tf.float32)
    v1.identity(outputs, name="outputs")
    v1.identity(state, name="state")
    return {"x:0": np.linspace(-1, 1, 30, dtype=np.float32).reshape(2, 5, 3)}, ["outputs:0", "state:0"]


def choice(tf: Any) -> tuple[dict[str, np.ndarray], list[str]]:
    """A variable that both branches of a condition read, and a loop."""
    v1 = tf.compat.v1
    x = v1.placeholder(tf.float32, [2], "x")
    weight = variable(tf, "w", np.array([5, 6], np.float32))
    with control_flow_v1(tf):
        y = v1.cond(tf.reduce_sum(x) > 0, lambda: weight + x, lambda: tf.raw_ops.Mul(x=weight._ref(), y=x))
        z = v1.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a + weight), [0, y])[1]
    v1.identity(z, name="y")
    return {"x:0": np.array([1, 2], np.float32)}, ["y:0"]
