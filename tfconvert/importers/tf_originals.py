"""Functions of TensorFlow in memory that run themselves, for comparing what they were converted to with them.

Variables have their values again after each run, as a file starts with the values that it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tfconvert.importers.temporary_model import Original, OwnRun, result_keys, user_module
from tfconvert.schema.dialects.boxes import Array

_NAME = "_user_specified_name"


def argument_names(function: Any) -> list[str]:
    """Returns the names that the arguments of a concrete function have in a signature, in its order."""
    taken: set[str] = set()
    count = len(function.inputs) - len(function.captured_inputs)
    return [unique_name(each.op.get_attr(_NAME).decode(), taken) for each in function.inputs[:count]]


def unique_name(name: str, taken: set[str]) -> str:
    """Returns a name that is not taken, with a number at its end as TensorFlow writes it, and takes it."""
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found


def original_of(
    functions: Mapping[str, Any],
    name: str = "the function itself",
    call: Callable[..., Any] | None = None,
    variables: Sequence[Any] = (),
) -> Original:
    """Returns what runs functions.

    Args:
        functions: Concrete functions, by the keys of their signatures.
        name: What computes the results, for the report.
        call: What to call with a function's arguments; by default the function itself.
        variables: Variables that a call may change, besides those of the functions.
    """

    def bind(key: str, inputs: Sequence[str], outputs: Sequence[str]) -> OwnRun | None:
        function = functions.get(key)
        return None if function is None else _bound(function, call or function, variables, inputs, outputs)

    return Original(name, bind)


def _bound(
    function: Any, call: Callable[..., Any], variables: Sequence[Any], inputs: Sequence[str], outputs: Sequence[str]
) -> OwnRun | None:
    """Returns what runs a function on values by the names of its inputs; `None` if it has other names."""
    tf = user_module("tensorflow")
    structure = function.structured_input_signature
    leaves = tf.nest.flatten(structure)
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, tf.TensorSpec)]
    names, results = argument_names(function), result_keys(function)
    own = [leaves[place].name for place in places]
    if len(places) == len(names) and set(own) == set(names):
        names = own
    if len(places) != len(names) or set(names) != set(inputs) or not set(outputs) <= set(results):
        return None

    def once(values: Sequence[Array]) -> list[Array]:
        by_name = dict(zip(inputs, values, strict=True))
        filled = list(leaves)
        for place, name in zip(places, names, strict=True):
            filled[place] = tf.constant(by_name[name], leaves[place].dtype)
        arguments, keywords = tf.nest.pack_sequence_as(structure, filled)
        found = tf.nest.flatten(call(*arguments, **keywords), expand_composites=True)
        by_result = dict(zip(results, (each for each in found if each is not None), strict=True))
        return [_array(by_result[name]) for name in outputs]

    def run(calls: Sequence[Sequence[Array]]) -> list[list[Array]]:
        with _unchanged(tf, [*function.graph.variables, *variables]):
            return list(map(once, calls))

    return run


def _array(tensor: Any) -> Array:
    value = tensor.numpy()
    return np.asarray(value, object if isinstance(value, bytes) else None)


@contextmanager
def _unchanged(tf: Any, variables: Sequence[Any]) -> Iterator[None]:
    """Gives variables the values again that they had before the body."""
    known = [(each, each.read_value()) for each in {id(each): each for each in variables}.values()]
    try:
        yield
    finally:
        for variable, value in known:
            if not np.array_equal(variable.numpy(), value.numpy()):
                variable.assign(value)
