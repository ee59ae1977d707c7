"""The forms of `stablehlo` and `chlo` ops that MLIR prints: `%2 = stablehlo.pad %0, %1, low = [0], ... : types`.

Most ops are a list of operands and named values, the other attributes, and types: one if all types are equal.
`HEADS` has the ops that begin in another way; `reduce` and `while` have regions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import stablehlo, tensor_data, types
from tfconvert.schema.dialects.foreign import OpaqueAttr, StableHLOConstantOp
from tfconvert.schema.dialects.op_table import property_of
from tfconvert.schema.dialects.stablehlo import ConvAttr, DotAttr, EnumeratorAttr
from tfconvert.schema.dialects.stablehlo_types import ATTRIBUTES
from tfconvert.schema.ir.attribute import Attribute, Type
from tfconvert.schema.ir.attributes import ArrayAttr, StringAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.operation import NO_ATTRIBUTES, Operation
from tfconvert.schema.ir.parser import Argument
from tfconvert.schema.ir.token_parser import BARE, PERCENT
from tfconvert.schema.ir.types import ComplexType, TupleType
from tfconvert.schema.ir.values import Value

if TYPE_CHECKING:
    from tfconvert.schema.ir.dialect import Syntax
    from tfconvert.schema.ir.parser import Parser, UnresolvedOperand


class _Head(NamedTuple):
    """The part of the text of an op before its attributes.

    Attributes:
        operands: The operands, whose types follow later.
        properties: The properties.
    """

    operands: list[UnresolvedOperand]
    properties: dict[str, Attribute]


# The properties of `name = value`, by the op and the name.
_NAMED: Mapping[str, Mapping[str, str]] = {
    "broadcast": {"sizes": "broadcast_sizes"},
    "broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "cholesky": {"lower": "lower"},
    "concatenate": {"dim": "dimension"},
    "dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "dynamic_iota": {"dim": "iota_dimension"},
    "dynamic_slice": {"sizes": "slice_sizes"},
    "einsum": {"config": "einsum_config"},
    "fft": {"type": "fft_type", "length": "fft_length"},
    "get_dimension_size": {"dim": "dimension"},
    "iota": {"dim": "iota_dimension"},
    "pad": {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"},
    "reverse": {"dims": "dimensions"},
    "rng": {"distribution": "rng_distribution"},
    "rng_bit_generator": {"algorithm": "rng_algorithm"},
    "set_dimension_size": {"dim": "dimension"},
    "top_k": {"k": "k"},
    "transpose": {"dims": "permutation"},
    "unary_einsum": {"config": "einsum_config"},
}

# The properties of words without a name, in their order: `compare EQ, %a, %b, FLOAT`.
_WORDS: Mapping[str, Sequence[str]] = {"compare": ("comparison_direction", "compare_type")}


def parse_assembly(parser: Parser) -> Operation:
    """Parses what follows the name of a `stablehlo` or `chlo` op in the form that MLIR prints."""
    name = parser.op_name
    kind = name.partition(".")[2]
    if kind == "constant":
        return StableHLOConstantOp.parse(parser)
    if kind == "return":
        return _return(parser)
    if kind in _WITH_REGIONS:
        return _WITH_REGIONS[kind](parser)
    head = _HEADS.get(kind, _items)(parser, name)
    regions = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_region)
    attributes = parser.parse_optional_attr_dict()
    operands, result_types = _parse_signature(parser, name, head.operands)
    return _op(parser, name, operands, result_types, head.properties, attributes, regions or ())


def _op(
    parser: Parser,
    name: str,
    operands: Sequence[Value],
    result_types: Sequence[Attribute],
    properties: Mapping[str, Attribute] = NO_ATTRIBUTES,
    attributes: dict[str, Attribute] | None = None,
    regions: Sequence[Region] = (),
) -> Operation:
    """Returns an op of the table; attributes that its definition names become properties."""
    cls = parser.registry.op(name)
    assert cls is not None
    own = {**properties}
    for declared in cls.PROPERTIES:
        if attributes and declared in attributes:
            own.setdefault(declared, attributes.pop(declared))
    return cls(name, operands, result_types, own, attributes or {}, regions)


def _parse_signature(
    parser: Parser, name: str, operands: Sequence[UnresolvedOperand]
) -> tuple[list[Value], Sequence[Attribute]]:
    """Parses `: types`; returns the operands and the types of the results."""
    parser.parse_punctuation(":", " before the types")
    position = parser.pos
    operand_types, result_types = _types(parser, name, len(operands))
    return parser.resolve_operands(operands, operand_types, position), result_types


# Types.


def _types(parser: Parser, name: str, count: int) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
    """Parses the types of a number of operands, and those of the results.

    The forms are `(A, B) -> C`, `A, B -> C`, and short ones that depend on the op: `A` for all.
    """
    if parser.token[0] == "(":
        return parser.parse_signature()
    position = parser.pos
    given = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    if parser.parse_optional_punctuation("->") is not None:
        results = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        return given, [parser.parse_type()] if results is None else results
    short = _SHORT.get(name.partition(".")[2], _same)(given, count)
    if short is None:
        parser.raise_error(f"expected one type for all, or `(types) -> type`, after {name}", position)
    return short


_Short = tuple[Sequence[Attribute], Sequence[Attribute]] | None


def _same(given: Sequence[Type], count: int) -> _Short:
    return ([given[0]] * count, given) if len(given) == 1 else None


def _parts(given: Sequence[Type], count: int) -> _Short:
    """The type of a `complex` is that of its result."""
    element = types.element_of(given[0])
    if len(given) != 1 or not isinstance(element, ComplexType):
        return None
    return [types.tensor(element.element_type, types.shape_of(given[0]))] * count, given


def _choice(given: Sequence[Type], count: int) -> _Short:
    """The types of a `select` are those of the condition and of the rest."""
    return ([given[0], given[1], given[1]], given[1:]) if len(given) == 2 else None


def _elements(given: Sequence[Type], count: int) -> _Short:
    kind = given[0]
    return (kind.types, given) if len(given) == 1 and isinstance(kind, TupleType) else None


def _each(given: Sequence[Type], count: int) -> _Short:
    return given, given


_SHORT: Mapping[str, Callable[[Sequence[Type], int], _Short]] = {
    "complex": _parts,
    "optimization_barrier": _each,
    "select": _choice,
    "tuple": _elements,
    "while": _each,
}


# Operands and named values.


def _items(parser: Parser, name: str) -> _Head:
    """Parses `%a, %b, low = [0], ...`, or nothing; there is an empty item in `dynamic_slice %a, , sizes = []`."""
    head = _Head([], {})
    words = list(_WORDS.get(name.partition(".")[2], ()))
    while parser.token[0] in (PERCENT, BARE, ","):
        if parser.token[0] == PERCENT:
            head.operands.extend(parser.parse_listed_operands())
        elif parser.token[0] == BARE:
            _word(parser, name, head.properties, words)
        if parser.parse_optional_punctuation(",") is None:
            break
    return head


def _word(parser: Parser, name: str, properties: dict[str, Attribute], words: list[str]) -> None:
    """Parses `name = value`, or a value whose name follows from the order."""
    kind = name.partition(".")[2]
    position = parser.pos
    if words:
        declared = words.pop(0)
        properties[declared] = _value(parser, name, declared)
        return
    word = parser.parse_identifier()
    known = _NAMED.get(kind, {})
    special = _SPECIAL.get(kind, {}).get(word)
    if special is None and word not in known:
        parser.raise_error(f"'{word}' is not one of the values of {name}", position)
    if special is not None:
        special(parser, properties)
        return
    parser.parse_punctuation("=", f" after '{word}'")
    properties[known[word]] = _value(parser, name, known[word])


def _value(parser: Parser, name: str, declared: str) -> Attribute:
    """Parses the value of a property in the form of its kind."""
    kind = stablehlo.definitions()[name].properties[declared].kind
    if kind in stablehlo.ENUMERATORS:
        return EnumeratorAttr.get(kind, parser.parse_identifier(f" of a {kind}"))
    if kind == "i64s":
        return property_of(stablehlo.parse_dims(parser))
    if kind == "string":
        return attrs.string(parser.parse_str_literal())
    if kind == "bool":
        return attrs.boolean(parser.expect(parser.parse_optional_boolean, "expected true or false"))
    return attrs.integer(parser.parse_integer(allow_boolean=False))


def _batching(parser: Parser, properties: dict[str, Attribute]) -> None:
    """Parses `= [0] x [0], contracting_dims = [1] x [0]`."""
    batching = _pair(parser, "batching_dims")
    parser.parse_punctuation(",", " before the contracting dimensions")
    parser.parse_keyword("contracting_dims")
    _dot(parser, properties, batching)


def _contracting(parser: Parser, properties: dict[str, Attribute]) -> None:
    """Parses `= [1] x [0]`."""
    _dot(parser, properties, ((), ()))


def _dot(parser: Parser, properties: dict[str, Attribute], batching: tuple[Sequence[int], Sequence[int]]) -> None:
    contracting = _pair(parser, "contracting_dims")
    properties["dot_dimension_numbers"] = DotAttr.get(
        lhs_batching_dimensions=batching[0],
        rhs_batching_dimensions=batching[1],
        lhs_contracting_dimensions=contracting[0],
        rhs_contracting_dimensions=contracting[1],
    )


def _pair(parser: Parser, name: str) -> tuple[Sequence[int], Sequence[int]]:
    parser.parse_punctuation("=", f" after '{name}'")
    lhs = stablehlo.parse_dims(parser)
    parser.parse_keyword("x", " between the dimensions of the operands")
    return lhs, stablehlo.parse_dims(parser)


def _precision(parser: Parser, properties: dict[str, Attribute]) -> None:
    """Parses `= [HIGH, DEFAULT]`."""
    parser.parse_punctuation("=", " after 'precision'")
    names = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
    properties["precision_config"] = ArrayAttr.get([EnumeratorAttr.get("precision", each) for each in names])


def _algorithm(parser: Parser, properties: dict[str, Attribute]) -> None:
    """Parses `= <lhs_precision_type = tf32, ...>`."""
    parser.parse_punctuation("=", " after 'algorithm'")
    properties["algorithm"] = ATTRIBUTES["dot_algorithm"](parser)


def _format(parser: Parser, properties: dict[str, Attribute]) -> None:
    """Parses `= e8m7`, the bits of the exponent and the mantissa."""
    parser.parse_punctuation("=", " after 'format'")
    position = parser.pos
    exponent, _, mantissa = parser.parse_identifier(" of a format").removeprefix("e").partition("m")
    if not (exponent.isdecimal() and mantissa.isdecimal() and len(exponent + mantissa) < 8):
        parser.raise_error("expected a format, such as e8m7", position)
    properties["exponent_bits"] = attrs.int32(int(exponent))
    properties["mantissa_bits"] = attrs.int32(int(mantissa))


_SPECIAL: Mapping[str, Mapping[str, Callable[[Parser, dict[str, Attribute]], None]]] = {
    "dot": {"precision": _precision},
    "dot_general": {
        "batching_dims": _batching,
        "contracting_dims": _contracting,
        "precision": _precision,
        "algorithm": _algorithm,
    },
    "reduce_precision": {"format": _format},
}


# Ops that begin in another way.


def _slice(parser: Parser, name: str) -> _Head:
    """Parses `%a [0:2, 1:3:2]`."""
    operand = parser.parse_unresolved_operand()
    ranges = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _range(parser))
    starts, limits, strides = zip(*ranges, strict=True) if ranges else ((), (), ())
    properties = {"start_indices": starts, "limit_indices": limits, "strides": strides}
    return _Head([operand], {key: property_of(value) for key, value in properties.items()})


def _range(parser: Parser) -> tuple[int, int, int]:
    start = parser.parse_integer(allow_boolean=False)
    parser.parse_punctuation(":", " before the end of a slice")
    limit = parser.parse_integer(allow_boolean=False)
    stride = parser.parse_integer(allow_boolean=False) if parser.parse_optional_punctuation(":") is not None else 1
    return start, limit, stride


def _tuple_element(parser: Parser, name: str) -> _Head:
    """Parses `%a[0]`."""
    operand = parser.parse_unresolved_operand()
    with parser.in_square_brackets():
        index = parser.parse_integer(allow_boolean=False)
    return _Head([operand], {"index": attrs.int32(index)})


def _custom_call(parser: Parser, name: str) -> _Head:
    """Parses `@name(%a, %b)`."""
    target = parser.parse_symbol_name()
    return _Head(parser.parse_operand_list(), {"call_target_name": StringAttr.get(target)})


def _composite(parser: Parser, name: str) -> _Head:
    """Parses `"name" %a, %b`."""
    target = parser.parse_str_literal(" of a composite's name")
    return _Head(_items(parser, name).operands, {"name": StringAttr.get(target)})


def _top_k(parser: Parser, name: str) -> _Head:
    """Parses `(%a, k = 2)`."""
    with parser.in_parens():
        return _items(parser, name)


def _convolution(parser: Parser, name: str) -> _Head:
    """Parses `(%a, %b) dim_numbers = [...]x[...]->[...], window = {stride = [2], pad = [[1, 1]], ...}`."""
    operands = parser.parse_operand_list()
    properties: dict[str, Attribute] = {}
    parser.parse_keyword("dim_numbers", " after the operands")
    parser.parse_punctuation("=", " after 'dim_numbers'")
    properties["dimension_numbers"] = ConvAttr.parse_layouts(parser)
    parser.parse_punctuation(",", " before the window")
    parser.parse_keyword("window")
    parser.parse_punctuation("=", " after 'window'")
    parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _window(parser, properties))
    return _Head(operands, properties)


_WINDOW = {
    "lhs_dilate": "lhs_dilation",
    "pad": "padding",
    "reverse": "window_reversal",
    "rhs_dilate": "rhs_dilation",
    "stride": "window_strides",
}


def _window(parser: Parser, properties: dict[str, Attribute]) -> None:
    position = parser.pos
    word = parser.parse_identifier(" of a window's value")
    declared = _WINDOW.get(word)
    if declared is None or declared in properties:
        parser.raise_error(f"expected one of {', '.join(_WINDOW)}, each once", position)
    parser.parse_punctuation("=", f" after '{word}'")
    if word == "pad":
        pairs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: stablehlo.parse_dims(parser))
        if any(len(pair) != 2 for pair in pairs):
            parser.raise_error("expected two numbers for each dimension", position)
        properties[declared] = tensor_data.of_array(np.array(pairs, np.int64).reshape(-1, 2), types.I64)
    elif word == "reverse":
        truths = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parser.expect(parser.parse_optional_boolean, "expected true or false")
        )
        properties[declared] = property_of(truths)
    else:
        properties[declared] = property_of(stablehlo.parse_dims(parser))


_HEADS: Mapping[str, Callable[[Parser, str], _Head]] = {
    "composite": _composite,
    "convolution": _convolution,
    "custom_call": _custom_call,
    "get_tuple_element": _tuple_element,
    "slice": _slice,
    "top_k": _top_k,
}


# Ops with regions, and the end of regions.


def _return(parser: Parser) -> Operation:
    """Parses `%a, %b {...} : types`; without operands there are no types."""
    head = _items(parser, parser.op_name)
    attributes = parser.parse_optional_attr_dict()
    position = parser.pos
    kinds: Sequence[Attribute] = ()
    if parser.parse_optional_punctuation(":") is not None:
        position = parser.pos
        kinds = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    operands = parser.resolve_operands(head.operands, kinds, position)
    return _op(parser, stablehlo.RETURN, operands, (), attributes=attributes)


def _reduce(parser: Parser) -> Operation:
    """Parses `(%a init: %b), ... applies stablehlo.add across dimensions = [0] : types`.

    Instead of the name of an op there may be a region after the types: `reducer(%c: type, %d: type) ... {...}`.
    """
    name = parser.op_name
    pairs = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _with_initial(parser))
    applied = None
    position = parser.pos
    if parser.parse_optional_keyword("applies") is not None:
        position = parser.pos
        applied = parser.parse_identifier(" of an op")
    parser.parse_keyword("across", " before the dimensions")
    parser.parse_keyword("dimensions")
    parser.parse_punctuation("=", " after 'dimensions'")
    properties = {"dimensions": property_of(stablehlo.parse_dims(parser))}
    attributes = parser.parse_optional_attr_dict()
    unresolved = [value for value, _ in pairs] + [initial for _, initial in pairs]
    operands, result_types = _parse_signature(parser, name, unresolved)
    region = _reducer(parser) if applied is None else _applied(parser, operands, applied, position)
    return _op(parser, name, operands, result_types, properties, attributes, (region,))


def _with_initial(parser: Parser) -> tuple[UnresolvedOperand, UnresolvedOperand]:
    with parser.in_parens():
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("init", " before the initial value")
        parser.parse_punctuation(":", " after 'init'")
        return operand, parser.parse_unresolved_operand()


def _applied(parser: Parser, operands: Sequence[Value], name: str, position: int) -> Region:
    """Returns the region of a `reduce` that applies an op of two operands."""
    definition = stablehlo.definitions().get(name)
    if definition is None or definition.operands != (2, 2) or len(operands) != 2:
        parser.raise_error(f"'{name}' can't be applied: expected an op of two operands", position)
    kind = types.tensor(operands[1].element, ())
    block = Block(arg_types=(kind, kind))
    applied = _op(parser, name, block.args, (kind,))
    block.add_ops((applied, _op(parser, stablehlo.RETURN, applied.results, ())))
    return Region(block)


def _reducer(parser: Parser) -> Region:
    """Parses `reducer(%a: type, %b: type) (%c: type, %d: type) {...}`: for each operand, its two arguments."""
    parser.parse_keyword("reducer", " after the types")
    position = parser.pos
    pairs: list[list[Argument]] = []
    while parser.token[0] == "(":
        pairs.append(parser.parse_arguments())
    if any(len(pair) != 2 for pair in pairs):
        parser.raise_error("expected two arguments for each operand", position)
    return parser.parse_region([pair[index] for index in (0, 1) for pair in pairs])


def _while(parser: Parser) -> Operation:
    """Parses `(%a = %b, ...) : types attributes {...} cond {...} do {...}`."""
    name = parser.op_name
    carried = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _carried(parser))
    kinds: Sequence[Attribute] = ()
    position = parser.pos
    if parser.parse_optional_punctuation(":") is not None:
        position = parser.pos
        kinds = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    operands = parser.resolve_operands([value for _, value in carried], kinds, position)
    attributes = parser.parse_optional_attr_dict_with_keyword()
    arguments = [
        Argument(argument.name, kind, argument.position) for (argument, _), kind in zip(carried, kinds, strict=True)
    ]
    regions = []
    for word in ("cond", "do"):
        parser.parse_keyword(word, " before a region")
        regions.append(parser.parse_region(arguments))
    return _op(parser, name, operands, kinds, attributes=attributes, regions=regions)


def _carried(parser: Parser) -> tuple[UnresolvedOperand, UnresolvedOperand]:
    """Parses `%a = %b`: an argument of the regions, and its first value."""
    argument = parser.parse_unresolved_operand()
    parser.parse_punctuation("=", " before the first value")
    return argument, parser.parse_unresolved_operand()


_WITH_REGIONS: Mapping[str, Callable[[Parser], Operation]] = {"reduce": _reduce, "while": _while}


def _spelled(dialect: Dialect) -> Dialect:
    if dialect.name == "stablehlo":
        return dialect._replace(assembly=parse_assembly)
    return dialect._replace(assembly=parse_assembly, attributes=_CHLO) if dialect.name == "chlo" else dialect


# Enumerators of `chlo` are those of `stablehlo`.
_CHLO: Mapping[str, Syntax] = {
    **{kind: stablehlo.SYNTAX[kind] for kind in ("comparison_direction", "comparison_type", "precision")},
    "ragged_dot": OpaqueAttr.syntax("chlo.ragged_dot"),
}

DIALECTS = tuple(map(_spelled, stablehlo.DIALECTS))
"""The dialects of `stablehlo.DIALECTS`, which are read in these forms too."""
