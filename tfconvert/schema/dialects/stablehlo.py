"""The dialects `stablehlo` and `chlo`, with ops of `ml_program` and `cf` that occur with them: one table of ops.

Ops are read and printed in the generic form, `"stablehlo.add"(%a, %b) : (tensor<?xf32>, ...) -> ...`, constants in
their short one. The table, `stablehlo_ops.tsv`, is read when the first op is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tfconvert.schema.dialects import op_table, stablehlo_types, tensor_data
from tfconvert.schema.dialects.foreign import StableHLOConstantOp
from tfconvert.schema.ir.attribute import Attribute, AttributePrinter
from tfconvert.schema.ir.attributes import DenseArrayAttr, IntegerAttr
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser
    from tfconvert.schema.ir.dialect import Syntax


ENUMERATORS: Mapping[str, tuple[str, ...]] = {
    "comparison_direction": ("EQ", "NE", "GE", "GT", "LE", "LT"),
    "comparison_type": ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    "fft_type": ("FFT", "IFFT", "RFFT", "IRFFT"),
    "precision": ("DEFAULT", "HIGH", "HIGHEST"),
    "result_accuracy_mode": ("DEFAULT", "HIGHEST", "TOLERANCE"),
    "rng_algorithm": ("DEFAULT", "THREE_FRY", "PHILOX"),
    "rng_distribution": ("UNIFORM", "NORMAL"),
    "transpose": ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
}
"""The enumerators of each kind, as they are written."""


def is_of_jax(module: Operation) -> bool:
    """Returns whether JAX wrote a module with dynamic sizes: it requires that they are at least 1."""
    found = module.attributes.get(POLYMORPHIC)
    return isinstance(found, IntegerAttr) and bool(found.value) and _OF_JAX in module.attributes


class EnumeratorAttr(Attribute):
    """`#stablehlo<comparison_direction EQ>`: one of `ENUMERATORS`; a mode has the form `#stablehlo.x<HIGHEST>`."""

    __slots__ = ("kind", "value")

    kind: str
    value: str

    @classmethod
    def get(cls, kind: str, value: str) -> EnumeratorAttr:
        """Returns the attribute of an enumerator.

        Raises:
            VerifyError: The kind has no such enumerator.
        """
        if value not in ENUMERATORS[kind]:
            raise VerifyError(f"{value!r} is not a {kind}: these are {', '.join(ENUMERATORS[kind])}")
        return cls.intern(kind, value)

    def print(self, printer: AttributePrinter) -> None:
        if self.kind == "result_accuracy_mode":
            printer.write(f"#stablehlo.{self.kind}<{self.value}>")
        else:
            printer.write(f"#stablehlo<{self.kind} {self.value}>")


def _enumerator(kind: str) -> Syntax:
    return lambda parser: EnumeratorAttr.get(kind, parser.parse_identifier(f" of a {kind}"))


def _mode(parser: AttributeParser) -> EnumeratorAttr:
    with parser.in_angle_brackets():
        return EnumeratorAttr.get("result_accuracy_mode", parser.parse_identifier(" of a mode"))


class DimensionNumbersAttr(Attribute):
    """`#stablehlo.gather<offset_dims = [1], index_vector_dim = 1>`: dimensions by role, as lists or single ones.

    Empty lists are left out, as other printers do; the class determines the roles and their order.
    """

    __slots__ = ()

    ROLES: ClassVar[tuple[str, ...]] = ()
    """The roles of lists of dimensions, in the order in which they are printed."""
    INDEX: ClassVar[str] = ""
    """The role of a single dimension, the last one; empty otherwise."""

    dims: tuple[tuple[int, ...] | int, ...]

    @classmethod
    def get(cls, **dims: Sequence[int] | int) -> DimensionNumbersAttr:
        """Returns the attribute of dimensions by role; missing lists are empty, missing single ones 0."""
        lists: list[tuple[int, ...] | int] = [_list(dims.get(role, ())) for role in cls.ROLES]
        if cls.INDEX:
            index = dims.get(cls.INDEX, 0)
            assert isinstance(index, int)
            lists.append(index)
        return cls.intern(tuple(lists))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.intern, (self.dims,)

    def of(self, role: str) -> tuple[int, ...]:
        """Returns the dimensions of a role."""
        found = self.dims[self.ROLES.index(role)]
        assert isinstance(found, tuple)
        return found

    def print_parameters(self, printer: AttributePrinter) -> None:
        entries = []
        for role, dims in zip((*self.ROLES, self.INDEX), self.dims, strict=False):
            if isinstance(dims, tuple) and dims:
                entries.append(f"{role} = [{', '.join(map(str, dims))}]")
            elif not isinstance(dims, tuple):
                entries.append(f"{role} = {dims}")
        printer.write(f"<{', '.join(entries)}>")

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> DimensionNumbersAttr:
        """Parses the form that `print_parameters` prints; roles may be in any order."""
        dims: dict[str, Sequence[int] | int] = {}
        with parser.in_angle_brackets():
            while parser.token[0] != ">":
                name = parser.parse_identifier(" of a list of dimensions")
                if name in dims or (name not in cls.ROLES and name != cls.INDEX):
                    parser.raise_error(f"'{name}' is not one of the dimensions of #{cls.NAME}, or occurs twice")
                parser.parse_punctuation("=", f" after '{name}'")
                if name == cls.INDEX:
                    dims[name] = parser.parse_integer()
                else:
                    dims[name] = parse_dims(parser)
                if parser.parse_optional_punctuation(",") is None:
                    break
        return cls.get(**dims)


def _list(dims: Sequence[int] | int) -> tuple[int, ...]:
    assert not isinstance(dims, int)
    return tuple(dims)


def parse_dims(parser: AttributeParser) -> list[int]:
    """Parses `[0, 1]`."""
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)


class DotAttr(DimensionNumbersAttr):
    """The dimensions of `stablehlo.dot_general`."""

    __slots__ = ("dims",)

    NAME = "stablehlo.dot"
    ROLES = (
        "lhs_batching_dimensions",
        "rhs_batching_dimensions",
        "lhs_contracting_dimensions",
        "rhs_contracting_dimensions",
    )


class GatherAttr(DimensionNumbersAttr):
    """The dimensions of `stablehlo.gather` and `stablehlo.dynamic_gather`."""

    __slots__ = ("dims",)

    NAME = "stablehlo.gather"
    ROLES = (
        "offset_dims",
        "collapsed_slice_dims",
        "operand_batching_dims",
        "start_indices_batching_dims",
        "start_index_map",
    )
    INDEX = "index_vector_dim"


class ScatterAttr(DimensionNumbersAttr):
    """The dimensions of `stablehlo.scatter`."""

    __slots__ = ("dims",)

    NAME = "stablehlo.scatter"
    ROLES = (
        "update_window_dims",
        "inserted_window_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
        "scatter_dims_to_operand_dims",
    )
    INDEX = "index_vector_dim"


class ConvAttr(Attribute):
    """`#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`: the dimensions of a convolution.

    Attributes:
        lhs: The input's layout: for each dimension a letter or the number of a spatial dimension.
        rhs: The kernel's.
        result: The result's.
    """

    __slots__ = ("lhs", "result", "rhs")

    NAME = "stablehlo.conv"

    lhs: tuple[str, ...]
    rhs: tuple[str, ...]
    result: tuple[str, ...]

    @classmethod
    def get(cls, lhs: Sequence[str], rhs: Sequence[str], result: Sequence[str]) -> ConvAttr:
        """Returns the attribute of three layouts.

        Raises:
            VerifyError: One of them has other dimensions than a convolution.
        """
        spatial = [str(number) for number in range(len(lhs) - 2)]
        for layout, letters in ((lhs, "bf"), (rhs, "io"), (result, "bf")):
            if sorted(layout) != sorted([*spatial, *letters]):
                raise VerifyError(f"a layout should have {', '.join([*letters, *spatial])}, found {', '.join(layout)}")
        return cls.intern(tuple(lhs), tuple(rhs), tuple(result))

    @property
    def layouts(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The layouts of the input, the kernel and the result."""
        return self.lhs, self.rhs, self.result

    def print_parameters(self, printer: AttributePrinter) -> None:
        lhs, rhs, result = (f"[{', '.join(layout)}]" for layout in self.layouts)
        printer.write(f"<{lhs}x{rhs}->{result}>")

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> ConvAttr:
        with parser.in_angle_brackets():
            return cls.parse_layouts(parser)

    @classmethod
    def parse_layouts(cls, parser: AttributeParser) -> ConvAttr:
        """Parses what stands between the angle brackets."""
        lhs = _layout(parser)
        parser.parse_keyword("x", " between the layouts of the input and the kernel")
        rhs = _layout(parser)
        parser.parse_punctuation("->", " before the layout of the result")
        return cls.get(lhs, rhs, _layout(parser))


def _layout(parser: AttributeParser) -> list[str]:
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _dimension(parser))


def _dimension(parser: AttributeParser) -> str:
    number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    return parser.parse_identifier(" of a dimension") if number is None else str(number)


KINDS: Mapping[str, type[Attribute]] = {"conv": ConvAttr, "dot": DotAttr, "gather": GatherAttr, "scatter": ScatterAttr}
"""The classes of attributes by their names in the text."""

SYNTAX: Mapping[str, Syntax] = {
    "conv": ConvAttr.parse_parameters,
    "dot": DotAttr.parse_parameters,
    "gather": GatherAttr.parse_parameters,
    "scatter": ScatterAttr.parse_parameters,
    **{kind: _enumerator(kind) for kind in ENUMERATORS if kind != "result_accuracy_mode"},
    "result_accuracy_mode": _mode,
    **stablehlo_types.ATTRIBUTES,
}
"""The parsers of their parameters."""


TABLE = Path(__file__).parent / "stablehlo_ops.tsv"

RETURN = "stablehlo.return"

_TRAITS: Mapping[str, frozenset[Trait]] = {
    RETURN: frozenset({Trait.TERMINATOR}),
    "ml_program.global": frozenset({Trait.SYMBOL}),
}

EFFECTS = frozenset({"cf.assert", "stablehlo.custom_call", "ml_program.global", "ml_program.global_store"})
"""Ops that must stay although their results are unused."""


def _enumerator_of(kind: str) -> op_table.Check:
    return lambda value: isinstance(value, EnumeratorAttr) and value.kind == kind


POSITIVE_SIZES = "tfconvert.positive_sizes"
"""The attribute of a module with programs of JAX, which requires that dimensions are at least 1."""

POLYMORPHIC = "jax.uses_shape_polymorphism"
"""The attribute of modules with dynamic sizes, which XLA infers again from the arguments' sizes."""

# What only JAX writes beside it.
_OF_JAX = "mhlo.num_partitions"

MAX_SIZE: Final = (1 << 31) - 1
"""The largest size, axis, count or position: at run time they are integers of 32 bits."""


def _are_sizes(check: op_table.Check) -> op_table.Check:
    """Returns the check for integers, or lists of them, that are sizes or positions."""
    return lambda value: check(value) and all(abs(each) <= MAX_SIZE for each in _integers(value))


def _integers(value: Attribute) -> Sequence[float]:
    if isinstance(value, DenseArrayAttr):
        return value.values
    return (value.value,) if isinstance(value, IntegerAttr) else ()


def _is_channel(value: Attribute) -> bool:
    return isinstance(value, stablehlo_types.StructAttr) and value.kind == "channel_handle"


CHECKS: Mapping[str, op_table.Check] = {
    **op_table.CHECKS,
    "i64": _are_sizes(op_table.CHECKS["i64"]),
    "i64s": _are_sizes(op_table.CHECKS["i64s"]),
    "channel_handle": _is_channel,
    **{kind: op_table.instance_of(cls) for kind, cls in KINDS.items()},
    **{
        kind: _enumerator_of(kind)
        for kind in (
            "comparison_direction",
            "comparison_type",
            "fft_type",
            "rng_algorithm",
            "rng_distribution",
            "transpose",
        )
    },
}
"""Values that a property of each kind can have."""


class StableHLOOp(op_table.TableOp):
    """An op of the table."""

    __slots__ = ()


_TABLE = op_table.OpTable(TABLE, StableHLOOp, CHECKS, lambda op: (RETURN,), _TRAITS)

definitions = _TABLE.definitions
class_of = _TABLE.class_of
build = _TABLE.build


def constant(value: tensor_data.Constant, location: Location = UNKNOWN_LOC) -> Operation:
    """Returns a `stablehlo.constant` of a value."""
    return StableHLOConstantOp.create(properties={"value": value}, result_types=(value.type,), location=location)


SIZE_OPERANDS: Mapping[str, tuple[int, ...]] = {
    "stablehlo.dynamic_broadcast_in_dim": (1,),
    "stablehlo.dynamic_conv": (2,),
    "stablehlo.dynamic_gather": (2,),
    "stablehlo.dynamic_iota": (0,),
    "stablehlo.dynamic_pad": (2, 3, 4),
    "stablehlo.dynamic_reshape": (1,),
    "stablehlo.real_dynamic_slice": (1, 2, 3),
    "stablehlo.rng": (2,),
    "stablehlo.set_dimension_size": (1,),
}
"""The operands of ops that are sizes or positions and determine the sizes of results."""


def has_side_effects(op: Operation) -> bool:
    """Returns whether an op must stay although its results are unused."""
    return op.name in EFFECTS


DIALECTS = (
    Dialect("stablehlo", (StableHLOConstantOp,), open_ops=class_of, attributes=SYNTAX, types=stablehlo_types.TYPES),
    *(Dialect(name, open_ops=class_of) for name in ("cf", "chlo", "ml_program")),
)
"""The dialects of the ops in the table."""
