"""From an op of the IR to the call that a kernel computes."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.ops.kernels.call import Array, Call
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.operation import Operation


def call_of(op: Operation, inputs: Sequence[Array]) -> Call:
    """Returns the kernel call of a `tf` op.

    Type attributes and counts that the IR leaves to the types of the results are passed explicitly.

    Args:
        op: The op.
        inputs: Its operands' values.

    Raises:
        ConversionError: An attribute is of a kind that no kernel knows (`bad-operand`).
    """
    try:
        attributes = {name: tf.python_value(value) for name, value in op.properties.items()}
    except TypeError as problem:
        raise error(
            "bad-operand", f"an attribute has no value: {problem}", op=op.name, node=node_of(op.location)
        ) from problem
    op_def = op.op_def if isinstance(op, tf.TFOp) else None
    at = 0
    for arg in op_def.output_arg if op_def is not None else ():
        if arg.number_attr and arg.number_attr not in attributes:
            attributes[arg.number_attr] = len(op.results) - len(op_def.output_arg) + 1 if op_def is not None else 0
        if arg.type_attr and arg.type_attr not in attributes and at < len(op.results):
            entry = types.from_mlir(types.element_of(op.results[at].type))
            attributes.update({} if entry is None else {arg.type_attr: entry.dtype})
        count = attributes.get(arg.number_attr, 1)
        at += count if isinstance(count, int) else 1
    held = types.held_by(op.results[0].type) if op.results else None
    if held is not None and (entry := types.from_mlir(types.element_of(held))) is not None:
        attributes.setdefault("element_dtype", entry.dtype)
    return Call(op.name.removeprefix("tf."), tuple(inputs), attributes)
