"""The builtin operators: their numbers, options, operands and results, from the table in `operators.tsv`.

The table's names are the dialect's: the format's enumerators in lower case. It is read when the first operator is
looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from tfconvert.schema import rows_of
from tfconvert.schema.tflite import FOLDER
from tfconvert.schema.tflite.tables import TFLITE

TABLE = FOLDER / "operators.tsv"

OPTIONS = "builtin_options"
OPTIONS_2 = "builtin_options2"

UNBOUNDED = 1 << 30
"""The maximum number of operands of a variadic operator."""


FLEX = "Flex"
"""The prefix of the names of custom operators that the Flex delegate runs."""

TRANSPOSE_CONV_BIAS = "Convolution2DTransposeBias"
"""The custom operator of a transposed convolution with a bias, which the GPU has under this name."""

# Custom operators that the runtime's builtin resolver also has, and those that only XNNPACK has.
_REGISTERED = frozenset(("AudioSpectrogram", "Mfcc", "NumericVerify", "TFLite_Detection_PostProcess"))
_OF_XNNPACK = frozenset((TRANSPOSE_CONV_BIAS, "MaxPoolingWithArgmax2D", "MaxUnpooling2D"))


def needs_registration(custom: str) -> bool:
    """Returns whether the app must register a custom operator: neither the runtime nor one of its delegates has it.

    Args:
        custom: Its name.
    """
    return custom not in _REGISTERED | _OF_XNNPACK and not custom.startswith(FLEX)


class DeclaredValue(NamedTuple):
    """An operand or a result as the table declares it."""

    name: str  # Its name.
    optional: bool = False  # It may be absent.
    variadic: bool = False  # It is any number of values.
    variable: bool = False  # The operator keeps state in it between calls.


class Filter(NamedTuple):
    """How an operator that multiplies windows of its data by a filter takes them."""

    data: int  # The index of the data among the operands.
    operand: int  # The index of the filter.
    bias: int  # The index of the bias, which may be absent.
    # The filter's axes: output channels `O`, input channels `I`, the window `D`, `H` and `W`, and always 1 `1`.
    axes: str

    @property
    def output_axis(self) -> int:
        """The axis of the output channels."""
        return self.axes.index("O")

    @property
    def input_axis(self) -> int | None:
        """The axis of the input channels, `None` if it isn't one whole axis."""
        return self.axes.index("I") if "I" in self.axes else None


class Operator(NamedTuple):
    """One builtin operator."""

    name: str  # Its name in the `tfl` dialect, without the prefix.
    code: int  # Its number.
    options: str  # Name of its options table; empty if it has none.
    union: str  # The field of `Operator` that holds the options.
    operands: tuple[DeclaredValue, ...]  # Its operands.
    results: tuple[DeclaredValue, ...]  # Its results.
    traits: Mapping[str, str]  # What the table says of it, with values where traits have them.
    variables: tuple[int, ...]  # Indices of the operands that hold state.

    @property
    def operand_range(self) -> tuple[int, int]:
        """The minimum and maximum number of operands; optional ones in the middle count, since they are filled."""
        return _range(self.operands)

    @property
    def has_effect(self) -> bool:
        """Whether a call whose results are not used must still be kept."""
        return "effect" in self.traits

    @property
    def result_range(self) -> tuple[int, int]:
        """The minimum and maximum number of results."""
        return _range(self.results)


def _range(values: tuple[DeclaredValue, ...]) -> tuple[int, int]:
    minimum = max(
        (index + 1 for index, value in enumerate(values) if not (value.optional or value.variadic)), default=0
    )
    return minimum, UNBOUNDED if any(value.variadic for value in values) else len(values)


def _value(text: str) -> DeclaredValue:
    name = text.rstrip("?*&")
    marks = text[len(name) :]
    return DeclaredValue(name, "?" in marks, "*" in marks, "&" in marks)


def _values(text: str) -> tuple[DeclaredValue, ...]:
    return () if text == "-" else tuple(map(_value, text.split(" ")))


@cache
def _rows() -> Mapping[str, tuple[str, ...]]:
    return {row[0]: tuple(row) for row in rows_of(TABLE)}


def names() -> tuple[str, ...]:
    """Returns the names of all builtin operators, in the order of their numbers."""
    return tuple(_rows())


@cache
def elementwise(*counts: int) -> frozenset[str]:
    """Returns the names of the elementwise operators: the shape of their results is that of their operands together.

    Args:
        counts: The numbers of operands that they have.
    """
    return frozenset(name for name in having("elementwise") if _rows()[name][2].count(" ") + 1 in counts)


@cache
def tensorflow_ops() -> Mapping[str, str]:
    """Returns the operators that an op of TensorFlow computes, with its name; layouts may differ."""
    return {name: row[5] for name, row in _rows().items() if row[5] != "-"}


@cache
def moving_ops() -> Mapping[str, int]:
    """Returns the ops of TensorFlow whose results have elements of one operand as they are, with its index."""
    return {tensorflow_ops()[name]: int(index) for name, index in having("moves").items() if name in tensorflow_ops()}


@cache
def releases() -> Mapping[str, tuple[str, ...]]:
    """Returns the first releases of the runtime that run versions 1, 2, ... of operators, `-` where not recorded."""
    return {name: tuple(row[6].split(" ")) for name, row in _rows().items() if row[6] != "-"}


def types() -> Iterator[tuple[str, str, str, str]]:
    """Yields the operators with what the table says of the types of operands, of results, and of those alike."""
    for name, *_, operands, results, alike in _rows().values():
        if (operands, results, alike) != ("-", "-", "-"):
            yield name, operands, results, alike


def having(trait: str) -> Mapping[str, str]:
    """Returns the operators that have a trait, with its value: empty if it needs none."""
    return _operators_by_trait().get(trait, {})


@cache
def _operators_by_trait() -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for name, row in _rows().items():
        for trait, value in _traits(row[4]).items():
            found.setdefault(trait, {})[name] = value
    return found


def _traits(text: str) -> Mapping[str, str]:
    return {} if text == "-" else {name: value for name, _, value in (each.partition("=") for each in text.split(" "))}


@cache
def ranges() -> Mapping[str, tuple[float, float]]:
    """Returns the operators whose results are bounded, with the lowest and the highest float that they can be."""
    limits = ((name, limits.partition(":")) for name, limits in having("range").items())
    return {name: (float(low), float(high)) for name, (low, _, high) in limits}


@cache
def filters() -> Mapping[str, Filter]:
    """Returns the operators that have a filter, with its place and its axes."""
    found = {}
    for name, axes in having("filter").items():
        taken = [value.name for value in _values(_rows()[name][2])]
        operand = next(index for index, each in enumerate(taken) if each in ("filter", "weights"))
        found[name] = Filter(taken.index("input"), operand, taken.index("bias"), axes)
    return found


@cache
def calls() -> Mapping[str, Mapping[str, str]]:
    """Returns the operators that call functions: the properties with their symbols, and the options with indices."""
    pairs = {name: [each.partition(":") for each in text.split(",")] for name, text in having("calls").items()}
    return {name: {key: option or key for key, _, option in each} for name, each in pairs.items()}


@cache
def lookup(name: str) -> Operator | None:
    """Returns the operator of a name in lower case, or `None`."""
    row = _rows().get(name)
    if row is None:
        return None
    _, options, operands, results, traits, *_ = row
    options = "" if options == "-" else options
    union = OPTIONS_2 if options in TFLITE.enums["BuiltinOptions2"] else OPTIONS
    code = TFLITE.enums["BuiltinOperator"][name.upper()]
    taken = _values(operands)
    variables = tuple([index for index, operand in enumerate(taken) if operand.variable])
    return Operator(name, code, options, union, taken, _values(results), _traits(traits), variables)


def computed_activations(name: str) -> frozenset[str] | None:
    """Returns the fused activations that LiteRT computes for an operator, or `None` if it may be any."""
    kinds = having("fuses").get(name)
    return None if kinds is None else frozenset(kinds.split(","))


def fusing(activation: str) -> tuple[str, ...]:
    """Returns the operators for which LiteRT computes a fused activation."""
    return tuple(name for name, kinds in having("fuses").items() if activation in kinds.split(","))
