"""The attributes of StableHLO's own: which dimensions an op treats how, and its enumerators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tfconvert.schema.ir.attribute import Attribute, AttributePrinter
from tfconvert.schema.ir.errors import VerifyError

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser
    from tfconvert.schema.ir.dialect import Syntax

ENUMERATORS: Mapping[str, tuple[str, ...]] = {
    "comparison_direction": ("EQ", "NE", "GE", "GT", "LE", "LT"),
    "comparison_type": ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    "fft_type": ("FFT", "IFFT", "RFFT", "IRFFT"),
    "precision": ("DEFAULT", "HIGH", "HIGHEST"),
    "rng_algorithm": ("DEFAULT", "THREE_FRY", "PHILOX"),
    "rng_distribution": ("UNIFORM", "NORMAL"),
    "transpose": ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
}
"""The enumerators of each kind, as they are written."""


class EnumeratorAttr(Attribute):
    """`#stablehlo<comparison_direction EQ>`: one of `ENUMERATORS`."""

    __slots__ = ("kind", "value")

    kind: str
    value: str

    @classmethod
    def get(cls, kind: str, value: str) -> EnumeratorAttr:
        """Returns the attribute of an enumerator.

        Raises:
            VerifyError: The kind doesn't have it.
        """
        if value not in ENUMERATORS[kind]:
            raise VerifyError(f"{value!r} is not a {kind}: these are {', '.join(ENUMERATORS[kind])}")
        return cls.intern(kind, value)

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"#stablehlo<{self.kind} {self.value}>")


def _enumerator(kind: str) -> Syntax:
    return lambda parser: EnumeratorAttr.get(kind, parser.parse_identifier(f" of a {kind}"))


class DimensionNumbersAttr(Attribute):
    """`#stablehlo.gather<offset_dims = [1], index_vector_dim = 1>`: lists of dimensions, and single ones, by role.

    Empty lists are left out, as other printers do; the roles and their order are the class's.
    """

    __slots__ = ()

    ROLES: ClassVar[tuple[str, ...]] = ()
    """The roles that lists of dimensions have, in the order in which they are printed."""
    INDEX: ClassVar[str] = ""
    """The role of a single dimension, the last one; empty if there is none."""

    dims: tuple[tuple[int, ...] | int, ...]

    @classmethod
    def get(cls, **dims: Sequence[int] | int) -> DimensionNumbersAttr:
        """Returns the attribute of dimensions by their role; lists that are not named are empty, single ones 0."""
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
                    dims[name] = _dims(parser)
                if parser.parse_optional_punctuation(",") is None:
                    break
        return cls.get(**dims)


def _list(dims: Sequence[int] | int) -> tuple[int, ...]:
    assert not isinstance(dims, int)
    return tuple(dims)


def _dims(parser: AttributeParser) -> list[int]:
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
    """`#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`: what the dimensions of a convolution are.

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
        """Parses the form that `print_parameters` prints."""
        with parser.in_angle_brackets():
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
    **{kind: _enumerator(kind) for kind in ENUMERATORS},
}
"""The parsers of their parameters."""
