"""Which quantized calls the runtime's kernels compute correctly, from the table in `kernels.tsv`.

The runtime checks little: a kernel that does not know a mixture of types, or assumes equal scales, may compute
nonsense. So each form of call was tried. `python -m benchmarks.kernel_probe` runs operators alone, with the builtin
kernels and with XNNPACK, compares them with the same operators on floats, and writes the table. It is read when it is
first needed.

A row is: operators, conditions, the outcomes of the builtin kernels and of XNNPACK, signatures. A signature is
`operand,...>result,...` in the words of `form`. The conditions are those of `CONDITIONS` that must hold; of several
rows for a signature the one with the most conditions decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tfconvert.schema.tflite import operators
from tfconvert.schema.tflite.versions import ABSENT as ABSENT_OPERAND
from tfconvert.schema.tflite.versions import Call, Operand

TABLE = Path(__file__).parent / "kernels.tsv"

OK = "ok"
WRONG = "wrong"
REFUSED = "refused"
CRASHES = "crashes"
OUTCOMES = (OK, WRONG, REFUSED, CRASHES)
"""What becomes of a call, from the best to the worst."""

ABSENT = "absent"

_MANY_OPERANDS = 6
"""An operator with more operands, such as an LSTM, has only the distinct forms of them in its signatures."""

_BIAS_TOLERANCE = 1e-3
"""The part of a bias's scale by which it may be off."""

_FORMS: Mapping[str, str] = {
    "FLOAT32": "f32", "FLOAT16": "f16", "BFLOAT16": "bf16", "INT64": "i64", "INT32": "i32", "INT16": "i16",
    "INT8": "i8", "INT4": "i4", "INT2": "i2", "UINT8": "u8", "UINT4": "u4", "UINT16": "u16",
}  # fmt: skip
_FLOATS = frozenset(("FLOAT32", "FLOAT16", "BFLOAT16"))

_OTHER_TYPES = frozenset(("BOOL", "INT32", "INT64", "STRING", "RESOURCE", "VARIANT"))
"""Types of operands that are parameters rather than data: shapes, axes, conditions. They are left out unless quantized.

A bias is not, so that one without a scale is a form that was not tried, rather than no bias.
"""

_FIXED: Mapping[str, Mapping[str, tuple[float, int]]] = {
    "LOGISTIC": {"INT8": (1 / 256, -128), "UINT8": (1 / 256, 0), "INT16": (1 / 32768, 0)},
    "SOFTMAX": {"INT8": (1 / 256, -128), "UINT8": (1 / 256, 0), "INT16": (1 / 32768, 0)},
    "LOG_SOFTMAX": {"INT8": (16 / 256, 127), "UINT8": (16 / 256, 255)},
    "TANH": {"INT8": (1 / 128, 0), "UINT8": (1 / 128, 128), "INT16": (1 / 32768, 0)},
    "L2_NORMALIZATION": {"INT8": (1 / 128, 0), "UINT8": (1 / 128, 128)},
}


class Outcome(NamedTuple):
    """What becomes of a call.

    Attributes:
        builtin: With the kernels of the runtime alone; one of `OUTCOMES`.
        xnnpack: With XNNPACK, which the runtime has by default.
        conditions: The conditions under which it was so, without those that do not matter.
    """

    builtin: str
    xnnpack: str
    conditions: frozenset[str] = frozenset()

    @property
    def is_ok(self) -> bool:
        """Whether the call is computed right either way."""
        return self.builtin == self.xnnpack == OK


def fixed_result(operator: str, type: str) -> tuple[float, int] | None:
    """Returns the scale and zero point that an operator's result should have, `None` if any will do.

    Args:
        operator: Enumerator of `BuiltinOperator`.
        type: Enumerator of `TensorType`.
    """
    return _FIXED.get(operator, {}).get(type)


def _has_same_scales(operator: str, call: Call) -> bool:
    quantized = [operand for operand in (*call.inputs, *call.outputs) if operand.scales]
    return operator not in _FIXED and all(
        operand.scales == quantized[0].scales and operand.zero_points == quantized[0].zero_points
        for operand in quantized
    )


def _has_no_offset(operator: str, call: Call) -> bool:
    return not any(any(operand.zero_points) for operand in (*call.inputs, *call.outputs))


def _has_offset_constant(operator: str, call: Call) -> bool:
    return any(operand.is_constant and any(operand.zero_points) for operand in call.inputs)


def _has_fixed_result(operator: str, call: Call) -> bool:
    result = call.result(0)
    return (result.scales, result.zero_points) == _one_scale(fixed_result(operator, result.type))


def _one_scale(fixed: tuple[float, int] | None) -> tuple[tuple[float, ...], tuple[int, ...]] | None:
    return None if fixed is None else ((fixed[0],), (fixed[1],))


_PRODUCT = (("input",), ("filter", "weights"), ("bias",))
"""The names of the operand, of the weights and of the bias of the operators that have these."""


def _has_other_bias(operator: str, call: Call) -> bool:
    """Returns whether a bias is not in units of the product of the operand's scale and the weights'."""
    named = _named(operator, call)
    x, weights, bias = (next((named[name] for name in names if name in named), ABSENT_OPERAND) for names in _PRODUCT)
    if not (x.scales and weights.scales and bias.scales):
        return False
    expected = [x.scales[0] * scale for scale in weights.scales]
    if len(expected) != len(bias.scales):
        return True
    off = any(abs(own - wanted) > _BIAS_TOLERANCE * wanted for own, wanted in zip(bias.scales, expected, strict=True))
    return off or any(bias.zero_points)


def _named(operator: str, call: Call) -> Mapping[str, Operand]:
    declared = operators.lookup(operator.lower())
    names = [value.name for value in declared.operands] if declared is not None else []
    return dict(zip(names, call.inputs, strict=False))


def _has_groups(operator: str, call: Call) -> bool:
    shapes = call.operand(0).shape, call.operand(1).shape
    return operator == "CONV_2D" and all(shapes) and shapes[0][-1:] != shapes[1][-1:]  # type: ignore[index]


def _has_powers_of_two(operator: str, call: Call) -> bool:
    scales = [scale for operand in (*call.inputs, *call.outputs) for scale in operand.scales]
    is_asked = operator in ("ADD", "SUB") and bool(call.options.get("pot_scale_int16", True))
    return is_asked and all(math.frexp(scale)[0] == 0.5 for scale in scales)


def _is_asymmetric(operator: str, call: Call) -> bool:
    return bool(call.options.get("asymmetric_quantize_inputs"))


def _is_adjoint(operator: str, call: Call) -> bool:
    return bool(call.options.get("adj_y"))


CONDITIONS: Mapping[str, Callable[[str, Call], bool]] = {
    "same": _has_same_scales,
    "centred": _has_no_offset,
    "fixed": _has_fixed_result,
    "offset": _has_offset_constant,
    "other-bias": _has_other_bias,
    "grouped": _has_groups,
    "asymmetric": _is_asymmetric,
    "adjoint": _is_adjoint,
    "powers": _has_powers_of_two,
}
"""Facts about a call besides its types.

`same`: all scales and zero points are equal; `centred`: all zero points are 0; `fixed`: the result has the scale and
the zero point of `fixed_result`; `offset`: a constant has a zero point; `other-bias`: the bias's scale is not the
product of the other two; `grouped`: a convolution in groups; `asymmetric`: the kernel may quantize its float operand
with a zero point; `adjoint`: the second matrix is taken transposed; `powers`: all scales are
powers of two, and the option does not exclude that the kernel makes use of it.
"""


def form(operand: Operand) -> str:
    """Returns an operand's type in short.

    That is `i8`, `i8w` if it is a constant with one scale, `i8c0` with a scale for each slice of axis 0, `i8b32` with
    one for each block of 32 elements. Integers that represent no real numbers have the format's name, `int8`.
    """
    if not operand.type:
        return ABSENT
    short = _FORMS.get(operand.type, operand.type.lower())
    if operand.block_size:
        return f"{short}b{operand.block_size}"
    if operand.axis is not None and len(operand.scales) > 1:
        return f"{short}c{operand.axis}"
    if operand.type in _FLOATS:
        return short
    return operand.type.lower() if not operand.scales else f"{short}w" if operand.is_constant else short


def _forms(operands: Iterable[Operand], bias: int = -1) -> list[str]:
    return [
        form(operand)
        for index, operand in enumerate(operands)
        if index == bias or operand.type not in _OTHER_TYPES or operand.scales
    ]


def signature(operator: str, call: Call) -> str:
    """Returns the forms of a call's operands and results, `i8,i8w>i8`.

    Of a variable number of operands or results only the distinct forms are stated, and of very many operands those that
    are there. States are not constants, whatever defines their initial values.
    """
    declared = operators.lookup(operator.lower())
    if declared is None:
        return f"{','.join(_forms(call.inputs))}>{','.join(_forms(call.outputs))}"
    operands = [
        operand._replace(is_constant=operand.is_constant and index not in declared.variables)
        for index, operand in enumerate(call.inputs)
    ]
    bias = next((index for index, value in enumerate(declared.operands) if value.name == "bias"), -1)
    inputs, outputs = _forms(operands, bias), _forms(call.outputs)
    if len(declared.operands) > _MANY_OPERANDS:
        inputs = [each for each in dict.fromkeys(inputs) if each != ABSENT]
    elif any(value.variadic for value in declared.operands):
        inputs = sorted(set(inputs))
    if any(value.variadic for value in declared.results):
        outputs = sorted(set(outputs))
    return f"{','.join(inputs)}>{','.join(outputs)}"


def conditions(operator: str, call: Call) -> frozenset[str]:
    """Returns the conditions that hold for a call."""
    return frozenset(name for name, holds in CONDITIONS.items() if holds(operator, call))


Rows = Mapping[tuple[str, str], tuple[Outcome, ...]]
"""The outcomes of an operator and a signature, by conditions."""


def parse(text: str) -> Rows:
    """Returns the rows of a table."""
    rows: dict[tuple[str, str], tuple[Outcome, ...]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        names, needed, builtin, xnnpack, signatures = line.split("\t")
        outcome = Outcome(builtin, xnnpack, frozenset(needed.split(" ")) if needed != "-" else frozenset())
        for name in names.split(" "):
            for each in signatures.split(" "):
                rows[name, each] = (*rows.get((name, each), ()), outcome)
    return rows


@cache
def table() -> Rows:
    """Returns the rows of the table that is part of the package."""
    return parse(TABLE.read_text(encoding="utf-8"))


def find(rows: Rows, operator: str, call: Call) -> Outcome | None:
    """Returns a call's outcome according to some rows, `None` if they say nothing about it."""
    return decide(rows.get((operator, signature(operator, call)), ()), conditions(operator, call))


def decide(rows: Iterable[Outcome], holding: frozenset[str]) -> Outcome | None:
    """Returns the row with the most conditions of those that hold, of several the worst; `None` if there is none."""
    return max((row for row in rows if row.conditions <= holding), key=_weight, default=None)


def _weight(row: Outcome) -> tuple[int, int, int]:
    return len(row.conditions), OUTCOMES.index(row.builtin), OUTCOMES.index(row.xnnpack)


def required(operator: str, call: Call) -> frozenset[str]:
    """Returns what does not hold for a call, but would make it right; empty if its types alone are the problem.

    Args:
        operator: Enumerator of `BuiltinOperator`.
        call: The call.
    """
    holding = conditions(operator, call)
    rows = table().get((operator, signature(operator, call)), ())
    missing = [row.conditions - holding for row in rows if row.is_ok]
    return min(missing, key=len, default=frozenset())


def outcome(operator: str, call: Call) -> Outcome | None:
    """Returns what the runtime makes of a call, `None` if that was not tried.

    Args:
        operator: Enumerator of `BuiltinOperator`.
        call: The call, with the zero points, axes and constness of its operands.
    """
    return find(table(), operator, call)
