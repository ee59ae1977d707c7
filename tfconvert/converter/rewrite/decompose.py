"""Patterns that replace an op by what it is composed of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import TypeVar

import numpy as np

from tfconvert.converter.ir.tensors import expand, result_elements
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.ops.declaration import Decomposition
from tfconvert.ops.registry import decompositions
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.dims import MismatchError
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow import op_defs

Op = TypeVar("Op", bound=Operation)

# The shape of an example's operands: a batch of images of colours.
_EXAMPLE = (2, 4, 4, 3)


class RewriteBuilder(TFBuilder):
    """Inserts ops before the one that is rewritten.

    Args:
        rewriter: Keeps track of inserted ops and their origins.
    """

    __slots__ = ("_rewriter",)

    def __init__(self, rewriter: Rewriter) -> None:
        super().__init__(rewriter.root)
        self._rewriter = rewriter

    def insert(self, op: Op) -> Op:
        return self._rewriter.insert(op)


def failure_of(decomposition: Decomposition, op: Operation, kinds: Mapping[str, str]) -> Failure | None:
    """Returns why an op can't be decomposed, `None` if it can.

    Args:
        decomposition: A decomposition of such ops.
        op: The op.
        kinds: Which element types a target has of each kind of numbers.
    """
    takes = decomposition.takes(kinds)
    element = str(op.operands[decomposition.typed].element)
    if takes and element not in takes.split():
        return Failure(f"it takes {takes}, not {element}", takes, element)
    reason = decomposition.requires(op) if decomposition.requires is not None else None
    return None if reason is None else Failure(reason)


def patterns_for(names: Iterable[str], kinds: Mapping[str, str]) -> list[Pattern[None]]:
    """Returns patterns that decompose ops of some names.

    Args:
        names: The ops, without a prefix.
        kinds: Which element types a target has of each kind of numbers.
    """
    return [_pattern(name, each, kinds) for name in sorted(names) for each in decompositions(name)]


def emitted_ops(name: str, decomposition: Decomposition, kinds: Mapping[str, str]) -> list[str]:
    """Returns the ops that an op becomes, each once: those of an example of it. No name has a prefix.

    Args:
        name: The op.
        decomposition: Its decomposition.
        kinds: Which element types a target has of each kind of numbers; the example has the first one.
    """
    definition = op_defs.lookup(name)
    first = next(iter(decomposition.takes(kinds).split()), "f32")
    (element,) = [row.mlir for row in types.ELEMENT_TYPES if str(row.mlir) == first]
    assert definition is not None
    defaults = {each.name: each.default_value.type for each in definition.attr}
    block = Block()
    operands: list[Value] = []
    for argument, shape in zip(definition.input_arg, decomposition.example or repeat(_EXAMPLE), strict=False):
        if isinstance(shape, np.ndarray):
            constant = tf.constant(tensor_data.of_array(shape))
            block.add_op(constant)
            operands.append(constant.results[0])
            continue
        known = types.element_type(argument.type or defaults.get(argument.type_attr, 0))
        operands.append(block.add_arg(types.tensor(known or element, shape)))
    # Types of results that no operand has.
    given = {each.type_attr for each in definition.input_arg}
    chosen = {
        each.name: np.float32
        for each in definition.attr
        if each.type == "type" and not each.default_value.type and each.name not in given
    }
    elements = result_elements(name, operands, len(definition.output_arg), chosen)
    op = tf.build(name, operands, [types.tensor(each, None) for each in elements])
    block.add_op(op)
    try:
        expand(decomposition.formula, op, TFBuilder(op))
    except MismatchError as problem:
        shapes = ", ".join(str(each.type) for each in operands)
        hint = "declare an `example` with shapes that the op takes"
        raise MismatchError(f"the decomposition of {name} can't take {shapes}: {problem}; {hint}") from problem
    names = (each.name.removeprefix("tf.") for each in block.ops if each is not op)
    return [each for each in dict.fromkeys(names) if each != "Const"]


def _pattern(name: str, decomposition: Decomposition, kinds: Mapping[str, str]) -> Pattern[None]:
    def rewrite(op: Operation, match: None, rewriter: Rewriter) -> None:
        rewriter.replace(expand(decomposition.formula, op, RewriteBuilder(rewriter)))

    title = f"decompose-{name}-of-{decomposition.types}"
    return Pattern(title, f"tf.{name}", lambda op: failure_of(decomposition, op, kinds), rewrite)
