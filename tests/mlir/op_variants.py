"""Random forms of `tf` ops, most of them invalid: shapes, constants and attributes drawn without regard for rules.

Every op is written from its OpDef, in the generic form, as the only op of a function.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

_FLOAT, _INT32, _INT64, _BOOL = 1, 3, 9, 10
_PREFERRED = (_FLOAT, _INT32, _INT64, _BOOL)
_NUMBERS = (-2, -1, 0, 0, 1, 1, 2, 3, 4, 8)
_DIMS = (1, 2, 2, 3, 4, 4, -1)

_VALUES = {
    "adj_x": ("true",),
    "axis": tuple(f"{axis} : i64" for axis in range(-3, 4)),
    "batch_dims": ("-1 : i64", "1 : i64", "2 : i64"),
    "block_size": ("2 : i64", "3 : i64"),
    "data_format": ('"NHWC"', '"NCHW"'),
    "dilations": ("[1 : i64, 1 : i64, 1 : i64, 1 : i64]", "[1 : i64, 2 : i64, 2 : i64, 1 : i64]", "[1 : i64]"),
    "ellipsis_mask": ("1 : i64", "3 : i64"),
    "explicit_paddings": ("[]", "[0 : i64, 0 : i64, 1 : i64, 1 : i64, 1 : i64, 1 : i64, 0 : i64, 0 : i64]"),
    "incompatible_shape_error": ("false", "true"),
    "min": ("1.0 : f32", "7.0 : f32"),
    "num_bits": ("1 : i64", "8 : i64", "17 : i64"),
    "padding": ('"SAME"', '"VALID"', '"EXPLICIT"'),
    "squeeze_dims": ("[0 : i64]", "[-1 : i64]", "[4 : i64]"),
    "strides": ("[1 : i64, 1 : i64, 1 : i64, 1 : i64]", "[1 : i64, 2 : i64, 2 : i64, 1 : i64]", "[0 : i64]"),
}


def variant(op_name: str, chance: random.Random) -> str:
    """Returns a module with one op of a name, its shapes, constants and attributes drawn by chance."""
    op_def = op_defs.lookup(op_name)
    assert op_def is not None
    lengths = {attr.name: chance.choice((2, 3)) for attr in op_def.attr}
    common = _shape(chance, chance.choice((2, 3, 4, 4, 4, 5)))
    operands = [_tensor(op_def, arg, common, chance) for arg in op_def.input_arg for _ in _times(arg, lengths)]
    results = [_tensor(op_def, arg, common, chance) for arg in op_def.output_arg for _ in _times(arg, lengths)]
    names, lines = [], []
    for index, (element, shape) in enumerate(operands):
        names.append(f"%{index}")
        if element in ("i32", "i64") and chance.random() < 0.6:
            shape = tuple(abs(dim) for dim in _shape(chance, chance.choice((0, 1, 1, 1, 2))))
            operands[index] = (element, shape)
            kind, names[-1] = _text(element, shape), f"%c{index}"
            lines.append(
                f'%c{index} = "tf.Const"() {{value = dense<{_numbers(chance, shape)}> : {kind}}} : () -> {kind}'
            )
    types_of_operands = [_text(*operand) for operand in operands]
    arguments = ", ".join(f"%{index}: {kind}" for index, kind in enumerate(types_of_operands))
    lines.append(
        f'%r:{len(results)} = "tf.{op_name}"({", ".join(names)}) {{{_attributes(op_def, chance)}}} : '
        f"({', '.join(types_of_operands)}) -> ({', '.join(_text(*result) for result in results)})"
    )
    return f"func.func @f({arguments}) {{\n" + "\n".join(lines) + "\nfunc.return\n}"


def _times(arg: pb.OpDef.ArgDef, lengths: dict[str, int]) -> range:
    return range(lengths[arg.number_attr] if arg.number_attr else 1)


def _tensor(op_def: pb.OpDef, arg: pb.OpDef.ArgDef, common: Shape, chance: random.Random) -> tuple[str, Shape | None]:
    allowed = next((list(attr.allowed_values.list.type) for attr in op_def.attr if attr.name == arg.type_attr), [])
    first = next((each for each in _PREFERRED if not allowed or each in allowed), next(iter(allowed), pb.DT_FLOAT))
    number = arg.type or first
    draw = chance.random()
    shape = common if draw < 0.45 else None if draw < 0.5 else _shape(chance, 1 if draw < 0.7 else chance.randrange(5))
    return str(types.element_type(number)), shape


def _shape(chance: random.Random, rank: int) -> Shape:
    return tuple(chance.choice(_DIMS) for _ in range(rank))


def _text(element: str, shape: Shape | None) -> str:
    dims = "*x" if shape is None else "".join(f"{'?' if dim < 0 else dim}x" for dim in shape)
    return f"tensor<{dims}{element}>"


def _numbers(chance: random.Random, shape: Sequence[int]) -> str:
    if not shape:
        return str(chance.choice(_NUMBERS))
    return f"[{', '.join(_numbers(chance, shape[1:]) for _ in range(shape[0]))}]"


def _attributes(op_def: pb.OpDef, chance: random.Random) -> str:
    derived = op_defs.derived_attributes(op_def)
    found: dict[str, str] = {}
    for attr in op_def.attr:
        if attr.name in derived:
            continue
        if attr.name in _VALUES and (not attr.HasField("default_value") or chance.random() < 0.5):
            found[attr.name] = chance.choice(_VALUES[attr.name])
        elif not attr.HasField("default_value"):
            found[attr.name] = {"int": "1 : i64", "float": "1.0 : f32", "bool": "false", "type": "f32"}.get(
                attr.type, '""'
            )
    return ", ".join(f"{name} = {value}" for name, value in found.items())
