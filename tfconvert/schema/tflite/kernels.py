"""Calls that the runtime's kernels accept and compute correctly, from the table in `kernels.tsv`.

The runtime checks little: a kernel that does not support a mixture of types, or assumes equal scales, may compute
nonsense; one that supports a type may do so for a few ranks only. So each form of call was tried. `python -m
benchmarks.kernel_probe` runs operators alone, with the builtin kernels and with XNNPACK, on all types and ranks,
compares plain ones with the reference executor and quantized ones with the same operators on floats, and writes the
table. Rows are parsed when a call needs them.

A row is: operators, conditions, the outcomes of the builtin kernels and of XNNPACK, signatures. A signature is
`operand,...>result,...` in the words of `form`. The conditions are those of `CONDITIONS` and `PLAIN_CONDITIONS` that
must hold, and the ranks, `rank0-4` or `rank5-`: the maximum rank among the operands and results must be one of these.
Of several rows for a signature the one with the most conditions decides.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from tfconvert.schema.tflite import FOLDER, operators
from tfconvert.schema.tflite.versions import ABSENT as ABSENT_OPERAND
from tfconvert.schema.tflite.versions import Call, Operand

# Relative tolerance of a bias's scale.
_BIAS_TOLERANCE = 1e-3

_FIXED: Mapping[str, Mapping[str, tuple[float, int]]] = {
    "LOGISTIC": {"INT8": (1 / 256, -128), "UINT8": (1 / 256, 0), "INT16": (1 / 32768, 0)},
    "SOFTMAX": {"INT8": (1 / 256, -128), "UINT8": (1 / 256, 0), "INT16": (1 / 32768, 0)},
    "LOG_SOFTMAX": {"INT8": (16 / 256, 127), "UINT8": (16 / 256, 255)},
    "TANH": {"INT8": (1 / 128, 0), "UINT8": (1 / 128, 128), "INT16": (1 / 32768, 0)},
    "L2_NORMALIZATION": {"INT8": (1 / 128, 0), "UINT8": (1 / 128, 128)},
}


def fixed_result(operator: str, type: str) -> tuple[float, int] | None:
    """Returns the required scale and zero point of an operator's result, `None` if any will do.

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


def _has_other_bias(operator: str, call: Call) -> bool:
    """Returns whether a bias is not in units of the product of the operand's scale and the weights'."""
    row = operators.filters().get(operator.lower())
    if row is None:
        return False
    x, weights, bias = map(call.operand, (row.data, row.operand, row.bias))
    if not (x.scales and weights.scales and bias.scales):
        return False
    expected = [x.scales[0] * scale for scale in weights.scales]
    if len(expected) != len(bias.scales):
        return True
    off = any(abs(own - wanted) > _BIAS_TOLERANCE * wanted for own, wanted in zip(bias.scales, expected, strict=True))
    return off or any(bias.zero_points)


# The weights and the bias of each gate of recurrent operators, by name.
_GATES = (
    ("input_to_input_weights", "input_gate_bias"),
    ("input_to_forget_weights", "forget_gate_bias"),
    ("input_to_cell_weights", "cell_bias"),
    ("input_to_output_weights", "output_gate_bias"),
)


def _lacks_gate_bias(operator: str, call: Call) -> bool:
    named = _named(operator, call)
    return any(
        named.get(weights, ABSENT_OPERAND).type and not named.get(bias, ABSENT_OPERAND).type for weights, bias in _GATES
    )


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


def _says_type_of_sums(operator: str, call: Call) -> bool:
    return call.options.get("quantized_bias_type") in ("INT32", "INT64")


CONDITIONS: Mapping[str, Callable[[str, Call], bool]] = {
    "same": _has_same_scales,
    "centred": _has_no_offset,
    "fixed": _has_fixed_result,
    "offset": _has_offset_constant,
    "other-bias": _has_other_bias,
    "unbiased": _lacks_gate_bias,
    "grouped": _has_groups,
    "asymmetric": _is_asymmetric,
    "adjoint": _is_adjoint,
    "powers": _has_powers_of_two,
    "sums": _says_type_of_sums,
}
"""Facts about a call besides its types.

`same`: all scales and zero points are equal; `centred`: all zero points are 0; `fixed`: the result has the scale and
the zero point of `fixed_result`; `offset`: a constant has a zero point; `other-bias`: the bias's scale is not the
product of the other two; `unbiased`: a gate of a recurrent layer has weights but no bias; `grouped`: a convolution in
groups; `asymmetric`: the kernel may quantize its float operand with a zero point; `adjoint`: the second matrix is
transposed; `powers`: all scales are powers of two, and no option forbids the kernel to use that; `sums`: an option
states the type of the bias and of the sums of products.
"""


def is_plain(call: Call) -> bool:
    """Returns whether a call's numbers are stored as they are: no integers represent real numbers."""
    return not any(operand.scales or operand.block_size for operand in (*call.inputs, *call.outputs))


PARAMETERS = frozenset(
    (
        "axes",
        "axis",
        "block_shape",
        "begin",
        "depth",
        "dim",
        "dims",
        "end",
        "k",
        "multiples",
        "output_shape",
        "pad",
        "padding",
        "paddings",
        "perm",
        "reduction_indices",
        "shape",
        "size",
        "size_splits",
        "split_dim",
        "strides",
    )
)
"""Names of operands that are parameters rather than data."""


def rank_of(operator: str, call: Call) -> int | None:
    """Returns the maximum rank among a call's operands and results, `None` if one is unknown.

    Parameters don't count.
    """
    highest = 0
    for value in (*_data(operator, call), *call.outputs):
        if value.shape is None and value.type:
            return None
        highest = max(highest, len(value.shape or ()))
    return highest


def _data(operator: str, call: Call) -> Sequence[Operand]:
    """Returns the operands that aren't parameters."""
    declared = operators.lookup(operator.lower())
    names = () if declared is None else [value.name for value in declared.operands]
    at = {index for index, name in enumerate(names) if name in PARAMETERS}
    return [operand for index, operand in enumerate(call.inputs) if index not in at]


def _computes_parameters(operator: str, call: Call) -> bool:
    """Returns whether a shape or an axis is not known before the model runs."""
    return any(name in PARAMETERS and not operand.is_constant for name, operand in _named(operator, call).items())


def _broadcasts(operator: str, call: Call) -> bool:
    """Returns whether operands have different shapes."""
    named = _named(operator, call)
    shapes = [named[name].shape for name in ("condition", "lhs", "rhs", "x", "y") if name in named]
    return len(shapes) > 1 and any(shape != shapes[0] for shape in shapes)


def _is_empty(operator: str, call: Call) -> bool:
    return any(0 in (result.shape or ()) for result in call.outputs)


def _is_hollow(operator: str, call: Call) -> bool:
    """Returns whether the result has elements, though an operand has none."""
    return not _is_empty(operator, call) and any(
        0 in (operand.shape or ()) and name not in PARAMETERS for name, operand in _named(operator, call).items()
    )


PLAIN_CONDITIONS: Mapping[str, Callable[[str, Call], bool]] = {
    "computed": _computes_parameters,
    "broadcast": _broadcasts,
    "empty": _is_empty,
    "hollow": _is_hollow,
    "special": lambda operator, call: False,
}
"""Facts about a call on plain numbers besides its types and ranks.

`computed`: a parameter such as a shape or an axis is not a constant; `broadcast`: operands have different shapes;
`empty`: a result has no elements; `hollow`: an operand has none, but the result has some; `special`: an operand has
infinities or NaN, which a call doesn't state.
"""


TABLE = FOLDER / "kernels.tsv"

OK = "ok"
WRONG = "wrong"
REFUSED = "refused"
CRASHES = "crashes"
OUTCOMES = (OK, WRONG, REFUSED, CRASHES)
"""Outcomes of a call, from the best to the worst."""

ABSENT = "absent"

ANY_RANK = 99
"""The maximum rank of a row without one."""

_RANKS = re.compile(r"rank(\d+)-(\d*)")

# The signatures of an operator with more operands, such as an LSTM, only have their distinct forms.
_MANY_OPERANDS = 6

_FORMS: Mapping[str, str] = {
    "FLOAT32": "f32",
    "FLOAT16": "f16",
    "BFLOAT16": "bf16",
    "INT64": "i64",
    "INT32": "i32",
    "INT16": "i16",
    "INT8": "i8",
    "INT4": "i4",
    "INT2": "i2",
    "UINT8": "u8",
    "UINT4": "u4",
    "UINT16": "u16",
}
_FLOATS = frozenset(("FLOAT32", "FLOAT16", "BFLOAT16"))
_NARROW = frozenset(("INT16", "INT8", "INT4", "INT2", "UINT8"))

# Types of operands that are parameters rather than data: shapes, axes, conditions. They are omitted unless quantized.
#
# A bias is not, so that one without a scale is a form that was not tried, rather than no bias.
_OTHER_TYPES = frozenset(("BOOL", "INT32", "INT64", "STRING", "RESOURCE", "VARIANT"))


class Outcome(NamedTuple):
    """The outcome of a call."""

    builtin: str  # With the kernels of the runtime alone; one of `OUTCOMES`.
    xnnpack: str  # With XNNPACK, which the runtime has by default.
    conditions: frozenset[str] = frozenset()  # The conditions, without those that do not matter.
    low: int = 0  # The minimum rank.
    high: int = ANY_RANK  # The maximum rank.

    @property
    def is_ok(self) -> bool:
        """Whether the call is computed correctly either way."""
        return self.builtin == self.xnnpack == OK


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


def type_form(operand: Operand) -> str:
    """Returns an operand's type in short, as the tables of accelerators have it.

    That is `i8`; `i8c` with a scale for each channel, `i8b` with one for each block, `int8` with none. `f32<f16` is
    what `DEQUANTIZE` makes of a constant.
    """
    if not operand.type:
        return ABSENT
    short = _FORMS.get(operand.type, operand.type.lower())
    if operand.origin:
        return f"{short}<{operand.origin}"
    if operand.block_size:
        return f"{short}b"
    if len(operand.scales) > 1:
        return f"{short}c"
    return operand.type.lower() if operand.type in _NARROW and not operand.scales else short


def _forms(operands: Iterable[Operand], bias: int = -1) -> list[str]:
    return [
        form(operand)
        for index, operand in enumerate(operands)
        if index == bias or operand.type not in _OTHER_TYPES or operand.scales
    ]


def signature(operator: str, call: Call) -> str:
    """Returns the forms of a call's operands and results, `i8,i8w>i8`.

    A variable number of operands or results is stated by its distinct forms, and so are very many operands. States are
    not constants, whatever defines their initial values. If integers represent real numbers, parameters are omitted.
    """
    declared = operators.lookup(operator.lower())
    if is_plain(call):
        inputs, outputs = [form(operand) for operand in call.inputs], [form(operand) for operand in call.outputs]
    elif declared is None:
        inputs, outputs = _forms(call.inputs), _forms(call.outputs)
    else:
        operands = [
            operand._replace(is_constant=operand.is_constant and index not in declared.variables)
            for index, operand in enumerate(call.inputs)
        ]
        bias = next((index for index, value in enumerate(declared.operands) if value.name == "bias"), -1)
        inputs, outputs = _forms(operands, bias), _forms(call.outputs)
    return joined(declared, inputs, outputs)


def joined(declared: operators.Operator | None, inputs: Iterable[str], outputs: Iterable[str]) -> str:
    """Returns a signature of the forms of an operator's operands and results."""
    if declared is not None:
        if len(declared.operands) > _MANY_OPERANDS:
            inputs = [each for each in dict.fromkeys(inputs) if each != ABSENT]
        elif any(value.variadic for value in declared.operands):
            inputs = sorted(set(inputs))
        if any(value.variadic for value in declared.results):
            outputs = sorted(set(outputs))
    return f"{','.join(inputs)}>{','.join(outputs)}"


def conditions(operator: str, call: Call) -> frozenset[str]:
    """Returns the conditions that hold for a call."""
    known = PLAIN_CONDITIONS if is_plain(call) else CONDITIONS
    return frozenset(name for name, holds in known.items() if holds(operator, call))


Rows = Mapping[str, tuple[Outcome, ...]]
"""The outcomes of one operator's signatures, by conditions."""


class KernelTable:
    """The rows of all operators; they are parsed on demand.

    Args:
        text: The table's text.
    """

    __slots__ = ("_found", "_lines", "_rows")

    def __init__(self, text: str) -> None:
        self._found: dict[tuple[str, str], tuple[Outcome, ...]] = {}
        self._rows: dict[str, Rows] = {}
        self._lines: dict[str, list[str]] = defaultdict(list)
        for line in text.splitlines():
            if not line.startswith("#"):
                names, _, rest = line.partition("\t")
                for name in names.split(" "):
                    self._lines[name].append(rest)

    @property
    def operators(self) -> Sequence[str]:
        """The operators that have rows."""
        return sorted(self._lines)

    def of(self, operator: str, signature: str) -> tuple[Outcome, ...]:
        """Returns the rows of a signature, without parsing others of its operator.

        Args:
            operator: Enumerator of `BuiltinOperator`.
            signature: The forms of operands and results.
        """
        found = self._found.get((operator, signature))
        if found is None:
            lines = (line for line in self._lines.get(operator, ()) if signature in line)
            found = self._found[operator, signature] = _parsed(lines).get(signature, ())
        return found

    def rows(self, operator: str) -> Rows:
        """Returns the rows of an operator.

        Args:
            operator: Enumerator of `BuiltinOperator`.
        """
        found = self._rows.get(operator)
        if found is None:
            found = self._rows[operator] = _parsed(self._lines.get(operator, ()))
        return found


def _parsed(lines: Iterable[str]) -> Rows:
    rows: dict[str, tuple[Outcome, ...]] = {}
    for line in lines:
        needed, builtin, xnnpack, signatures = line.split("\t")
        outcome = _outcome(needed.split(" ") if needed != "-" else [], builtin, xnnpack)
        for each in signatures.split(" "):
            rows[each] = (*rows.get(each, ()), outcome)
    return rows


def _outcome(words: list[str], builtin: str, xnnpack: str) -> Outcome:
    low, high = 0, ANY_RANK
    for word in words:
        found = _RANKS.fullmatch(word)
        if found is not None:
            low, high = int(found[1]), int(found[2] or ANY_RANK)
            words = [other for other in words if other != word]
    return Outcome(builtin, xnnpack, frozenset(words), low, high)


@cache
def table() -> KernelTable:
    """Returns the table in the package."""
    return KernelTable(TABLE.read_text(encoding="utf-8"))


def find(rows: KernelTable, operator: str, call: Call) -> Outcome | None:
    """Returns a call's outcome according to some rows, `None` if it is not in them."""
    found = rows.of(operator, signature(operator, call))
    return decide(found, conditions(operator, call), rank_of(operator, call)) if found else None


def decide(rows: Iterable[Outcome], holding: frozenset[str], rank: int | None = None) -> Outcome | None:
    """Returns the row with the most conditions among those that hold, the worst of several, or `None`.

    Args:
        rows: The rows of one signature.
        holding: The conditions that hold.
        rank: The rank, `None` if it is unknown: then rows for some ranks only don't count.
    """
    fitting = (row for row in rows if row.conditions <= holding and _has_rank(row, rank))
    return max(fitting, key=_weight, default=None)


def _has_rank(row: Outcome, rank: int | None) -> bool:
    return row.low <= rank <= row.high if rank is not None else (row.low, row.high) == (0, ANY_RANK)


def _weight(row: Outcome) -> tuple[int, int, int]:
    return len(row.conditions), OUTCOMES.index(row.builtin), OUTCOMES.index(row.xnnpack)


def required(operator: str, call: Call) -> frozenset[str]:
    """Returns the missing conditions for a correct call; empty if its types alone are the problem.

    Args:
        operator: Enumerator of `BuiltinOperator`.
        call: The call.
    """
    holding = conditions(operator, call)
    rows = table().of(operator, signature(operator, call))
    missing = [row.conditions - holding for row in rows if row.is_ok]
    return min(missing, key=len, default=frozenset())


def outcome(operator: str, call: Call) -> Outcome | None:
    """Returns the outcome of a call in the runtime, `None` if it was not tried.

    Args:
        operator: Enumerator of `BuiltinOperator`.
        call: The call, with the zero points, axes and constness of its operands.
    """
    return find(table(), operator, call)
