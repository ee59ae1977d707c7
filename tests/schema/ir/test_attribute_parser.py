"""Attributes, types and locations: parsing, printing and errors."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.schema.ir.toy_dialect import REGISTRY, refusal
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attribute_parser import AttributeParser
from tfconvert.schema.ir.attributes import BytesAttr, FloatAttr, StringAttr
from tfconvert.schema.ir.types import F32, I64, TensorType


def parser(text: str) -> AttributeParser:
    """Returns a parser of a text."""
    return AttributeParser(REGISTRY, text, "toy.mlir")


def attribute(text: str) -> Attribute:
    """Returns the attribute that is all of a text."""
    reader = parser(text)
    parsed = reader.parse_attribute()
    assert reader.token[0] == "end"
    return parsed


SAME = [
    "unit",
    "true",
    "false",
    '"text"',
    '"\\FF"',
    '"\\0A\\22\\\\"',
    "1 : i64",
    "-1 : i32",
    "5 : si8",
    "255 : ui8",
    "3 : index",
    "1.500000e+00 : f32",
    "-0.000000e+00 : f64",
    "0x7FC00000 : f32",
    "0xFF80 : bf16",
    "[]",
    '[1 : i64, "a", unit]',
    "{}",
    '{a, "b c" = 1 : i32}',
    "@a",
    '@"a b"::@c',
    "array<i64: 1, -2>",
    "array<i1: true, false>",
    "array<f32: 1.000000e+00>",
    "array<i32>",
    "loc(unknown)",
    'loc("a")',
    'loc("a"("b"))',
    'loc("f.py":1:2)',
    'loc(callsite("a" at "f":3:4))',
    'loc(fused[unknown, "a"])',
    'loc(fused<"m">[])',
    "#toy.shape<2x?x3>",
    "#toy.shape<>",
    "i1",
    "i7",
    "si32",
    "ui16",
    "i16777215",
    "index",
    "none",
    "f32",
    "bf16",
    "f8E4M3FN",
    "tensor<f32>",
    "tensor<0x3xf32>",
    "tensor<2x?x3xi8>",
    "tensor<*xf32>",
    "tensor<2xf32, #toy.shape<2>>",
    "tensor<2xtensor<3xtensor<4xtensor<5xi32>>>>",
    "vector<4x2xf32>",
    "vector<f32>",
    "memref<2x?xf32>",
    "memref<i8>",
    "tuple<>",
    "tuple<i32, tensor<f32>>",
    "complex<f32>",
    "complex<i8>",
    "() -> ()",
    "(i32, f32) -> i32",
    "(i32) -> (i32, f32)",
    "() -> (() -> ())",
    "!toy.token",
    "!toy.box<!toy.box<i32>>",
    "tensor<!toy.box<() -> i32>>",
    "tensor<2x!toy.token>",
]


@pytest.mark.parametrize("text", SAME)
def test_text_that_is_printed_as_it_was_read(text: str) -> None:
    assert str(attribute(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", "1 : i64"),
        ("00012", "12 : i64"),
        ("0x1F : i32", "31 : i32"),
        ("255 : i8", "-1 : i8"),
        ("-1 : i1", "true"),
        ("0 : i0", "0 : i0"),
        ("18446744073709551615 : index", "-1 : index"),
        ("1.5", "1.500000e+00 : f64"),
        ("-1.e5 : f32", "-1.000000e+05 : f32"),
        ("1 : f32", "1.000000e+00 : f32"),
        ("0x3f800000 : f32", "1.000000e+00 : f32"),
        ("array<i8: 255, 0x7f>", "array<i8: -1, 127>"),
        ("array<f32: 0x40000000, 1>", "array<f32: 2.000000e+00, 1.000000e+00>"),
        ("{a = unit, c = 1, b}", "{a, b, c = 1 : i64}"),
        ('{"a" = 1 : i8}', "{a = 1 : i8}"),
        ('loc("f":1:2 to 3:4)', 'loc("f":1:2)'),
        ('loc("f":1:2 to :4)', 'loc("f":1:2)'),
        ("tensor<2 x\n 3 xf32>", "tensor<2x3xf32>"),
        ("tensor<  2x?xf32 , #toy<shape<1>>>", "tensor<2x?xf32, #toy.shape<1>>"),
        ("#toy<shape<1x2>>", "#toy.shape<1x2>"),
        ("!toy<box<i32>>", "!toy.box<i32>"),
        ("#toy<symbol<@a>>", "@a"),
        ('[#toy<typed : "x"> : tensor<1xi8>, 1]', '["x: tensor<1xi8>", 1 : i64]'),
        ('#toy.typed : "x" : i32', '"x: i32"'),
        ('[twice "ab"]', '["abab"]'),
        ("tensor<2xf32> // and a comment", "tensor<2xf32>"),
    ],
)
def test_other_spellings(text: str, expected: str) -> None:
    assert str(attribute(text)) == expected


def test_strings_are_text_if_they_can_be() -> None:
    assert attribute('"\\C3\\A4"') is StringAttr.get("ä")
    assert attribute('"ä"') is StringAttr.get("ä")
    assert attribute('"\\C3"') is BytesAttr.get(b"\xc3")


def test_a_negative_zero_keeps_its_sign() -> None:
    value = attribute("-0.0 : f32")
    assert isinstance(value, FloatAttr)
    assert str(value.value) == "-0.0"


def test_the_same_text_is_the_same_type_behind_a_different_one() -> None:
    reader = parser("tensor<2xf32> tensor<2xf32> tensor<2xf32, unit> tensor<2xf32>")
    first, second, third, fourth = [reader.parse_type() for _ in range(4)]
    assert first is second is fourth is TensorType.get(F32, (2,))
    assert str(third) == "tensor<2xf32, unit>"


def test_texts_that_were_read_are_found_again_only_where_they_end() -> None:
    texts = ['{a = "}"}', '{a = "} // "}', "{a, // }\nb}", '{a = "} // }"}', "{}", "{ // }\n}"]
    reader = parser(" ".join([*texts, *texts]))
    read = [dict(reader.parse_optional_attr_dict()) for _ in texts * 2]
    assert read[: len(texts)] == read[len(texts) :] == [parser(text).parse_optional_attr_dict() for text in texts]
    texts = [
        "() -> tensor<f32>",
        "() -> tensor<f32, unit>",
        "() -> (tensor<f32>, i32)",
        "(// ) -> ()\n) -> i32",
        "(tensor<!toy.box<() -> i32>>) -> (!toy.box<() -> i32>)",
    ]
    reader = parser(" ".join([*texts, *texts]))
    assert [reader.parse_function_type() for _ in texts * 2] == [parser(text).parse_type() for text in texts] * 2


def test_dictionaries_that_are_read_twice_are_two() -> None:
    reader = parser("{a = 1} {a = 1}")
    first, second = reader.parse_optional_attr_dict(), reader.parse_optional_attr_dict()
    assert first == second
    assert first is not second


def test_aliases() -> None:
    reader = parser("[!t, #a, tensor<2x!t>]")
    reader.type_aliases["t"] = I64
    reader.attribute_aliases["a"] = StringAttr.get("x")
    assert str(reader.parse_attribute()) == '[i64, "x", tensor<2xi64>]'


@pytest.mark.parametrize(
    ("text", "place", "message", "under_caret"),
    [
        ("", "1:1", "attribute expected", ""),
        ("[1, ]", "1:5", "attribute expected", "]"),
        ("[1", "1:3", "']' expected", ""),
        ("word", "1:1", "attribute expected", "word"),
        ("{a = }", "1:6", "attribute expected", "}"),
        ("{a b}", "1:4", "'}' expected", "b}"),
        ("{1 = a}", "1:2", "expected the name of an attribute", "1 = a}"),
        ("{a,\n a}", "2:2", "duplicate key 'a' in dictionary", "a}"),
        ('{"\\FF"}', "1:2", "expected a string of UTF-8 text", '"\\FF"}'),
        ("9" * 5000, "1:1", "expected an integer of at most 4300 digits", "9" * 5000),
        ("0x" + "f" * 5000, "1:1", "expected an integer of at most 4300 digits", "0x" + "f" * 5000),
        ("-true", "1:2", "Expected integer or float literal after '-'", "true"),
        ("256 : i8", "1:1", "expected an integer that fits into i8", "256 : i8"),
        ("-129 : i8", "1:1", "expected an integer that fits into i8", "-129 : i8"),
        ("128 : si8", "1:1", "expected an integer that fits into si8", "128 : si8"),
        ("-1 : ui8", "1:1", "expected an integer that fits into ui8", "-1 : ui8"),
        ("9223372036854775808000", "1:1", "expected an integer that fits into i64", "9223372036854775808000"),
        ("1.0 : i32", "1:1", "expected an integer before the type i32", "1.0 : i32"),
        ("1 : none", "1:5", "expected a type of integers or floats after a number", "none"),
        ("1 : word", "1:5", "type expected", "word"),
        ("0x1FFFFFFFF : f32", "1:1", "expected a number that fits into f32", "0x1FFFFFFFF : f32"),
        ("0x7F : f80", "1:1", "the bits of a number of type f80 are not supported", "0x7F : f80"),
        ("1" + "0" * 400 + " : f32", "1:1", "expected a number that fits into f32", "1" + "0" * 400 + " : f32"),
        ("array<none: 1>", "1:7", "expected a type of integers or floats in an array", "none: 1>"),
        ("array<i8: 1.5>", "1:11", "Expected integer literal", "1.5>"),
        ("array<i8: 300>", "1:11", "expected an integer that fits into i8", "300>"),
        ("array<i8: 1", "1:12", "'>' expected", ""),
        ("@a::b", "1:5", "expect symbol name", "b"),
        ("#toy.none", "1:1", "'#toy.none' is not registered", "#toy.none"),
        ("#no.such<1>", "1:1", "'#no.such' is not registered", "#no.such<1>"),
        ("[!toy<none>]", "1:2", "'!toy.none' is not registered", "!toy<none>]"),
        ("!no.such", "1:1", "'!no.such' is not registered", "!no.such"),
        ("#toy<1>", "1:6", "identifier expected of an attribute or a type", "1>"),
        ("#toy<shape<1>", "1:14", "Expected '>' after '#toy.shape'", ""),
        ('#toy<typed : "x">', "1:18", "Expected ':' after '#toy.typed'", ""),
        ('#toy<typed : "bad"> : i8', "1:1", "i8 is a bad type", '#toy<typed : "bad"> : i8'),
        ("#toy.symbol<1>", "1:1", "expected a symbol", "#toy.symbol<1>"),
        ("#toy.shape<2x>", "1:14", "expected a dimension after 'x'", ">"),
        ("#a", "1:1", "undefined symbol alias '#a'", "#a"),
        ("[!a]", "1:2", "undefined symbol alias '!a'", "!a]"),
        ("affine_map<(d0) -> (d0)>", "1:1", "'affine_map' is not supported", "affine_map<(d0) -> (d0)>"),
        ("strided<[1]>", "1:1", "'strided' is not supported", "strided<[1]>"),
        ("loc(", "1:5", "expected a location", ""),
        ("loc(1)", "1:5", "expected a location", "1)"),
        ("loc(unkown)", "1:5", "expected a location", "unkown)"),
        ('loc("a":1)', "1:10", "Expected ':' before the column", ")"),
        ('loc("a":-1:2)', "1:9", "Expected integer literal as a line or a column", "-1:2)"),
        ('loc(callsite("a" "b"))', "1:18", "Expected 'at' before the caller", '"b"))'),
        ("loc(#a)", "1:5", "undefined symbol alias '#a'", "#a)"),
    ],
)
def test_mistakes_in_attributes(text: str, place: str, message: str, under_caret: str) -> None:
    assert refusal(lambda: parser(text).parse_attribute()) == (place, message, under_caret)


@pytest.mark.parametrize(
    ("text", "place", "message", "under_caret"),
    [
        ("", "1:1", "type expected", ""),
        ("f33", "1:1", "type expected", "f33"),
        ("i", "1:1", "type expected", "i"),
        ("i16777216", "1:1", "expected an integer type of at most 16777215 bits", "i16777216"),
        ("ui99999999999", "1:1", "expected an integer type of at most 16777215 bits", "ui99999999999"),
        ("tensor", "1:7", "'<' expected", ""),
        ("tensor<2xf33>", "1:10", "type expected", "f33>"),
        ("tensor<2>", "1:9", "expected 'x' and a type after the dimension", ">"),
        ("tensor<2x3>", "1:11", "expected 'x' and a type after the dimension", ">"),
        ("tensor<-1xf32>", "1:8", "type expected", "-1xf32>"),
        ("tensor<2xf32", "1:13", "'>' expected", ""),
        ("tensor<*f32>", "1:9", "expected 'x' and a type after '*'", "f32>"),
        ("tensor<*xf32, 1>", "1:13", "'>' expected", ", 1>"),
        (
            "tensor<9223372036854775808xf32>",
            "1:8",
            "expected a dimension that fits into 64 bits",
            "9223372036854775808xf32>",
        ),
        ("tensor<2xf32, >", "1:15", "attribute expected", ">"),
        ("vector<?xf32>", "1:8", "expected dimensions of a vector that are known and positive", "?xf32>"),
        ("vector<[4]xf32>", "1:8", "a scalable vector is not supported", "[4]xf32>"),
        ("memref<*xf32>", "1:8", "a memref of unknown rank is not supported", "*xf32>"),
        ("memref<2xf32, 1>", "1:13", "a memref with a layout or a memory space is not supported", ", 1>"),
        ("complex<none>", "1:9", "expected a type of integers or floats in a complex type", "none>"),
        ("tuple<i32,>", "1:11", "type expected", ">"),
        ("( -> i32", "1:3", "type expected", "-> i32"),
        ("(i32 i32) -> ()", "1:6", "')' expected in a function type", "i32) -> ()"),
        ("(i32)", "1:6", "Expected '->' in a function type", ""),
    ],
)
def test_mistakes_in_types(text: str, place: str, message: str, under_caret: str) -> None:
    assert refusal(lambda: parser(text).parse_type()) == (place, message, under_caret)


@pytest.mark.parametrize(
    ("text", "parse", "expected"),
    [
        ("=", lambda p: p.parse_optional_punctuation("="), "="),
        ("=", lambda p: p.parse_optional_punctuation("("), None),
        ("a", lambda p: p.parse_optional_keyword("a"), "a"),
        ("a", lambda p: p.parse_optional_keyword("b"), None),
        ("a.b", lambda p: p.parse_identifier(), "a.b"),
        ("1", lambda p: p.parse_optional_identifier(), None),
        ('"\\FF"', lambda p: p.parse_optional_bytes_literal(), b"\xff"),
        ("1", lambda p: p.parse_optional_bytes_literal(), None),
        ('"a"', lambda p: p.parse_str_literal(), "a"),
        ("a", lambda p: p.parse_optional_str_literal(), None),
        ("-1", lambda p: p.parse_integer(), -1),
        ("true", lambda p: p.parse_integer(), 1),
        ("true", lambda p: p.parse_optional_integer(allow_boolean=False), None),
        ("-1", lambda p: p.parse_optional_integer(allow_negative=False), None),
        ("false", lambda p: p.parse_number(allow_boolean=True), 0),
        ("-1.5", lambda p: p.parse_number(), -1.5),
        ("a", lambda p: p.parse_optional_number(), None),
        ("true", lambda p: p.parse_optional_boolean(), True),
        ("a", lambda p: p.parse_optional_boolean(), None),
        ("1, 2", lambda p: p.parse_comma_separated_list(p.Delimiter.NONE, p.parse_integer), [1, 2]),
        ("{}", lambda p: p.parse_comma_separated_list(p.Delimiter.BRACES, p.parse_integer), []),
        ("(1)", lambda p: p.parse_optional_comma_separated_list(p.Delimiter.PAREN, p.parse_integer), [1]),
        ("1", lambda p: p.parse_optional_comma_separated_list(p.Delimiter.SQUARE, p.parse_integer), None),
        ("1, 2.5)", lambda p: p.parse_comma_separated_list(p.Delimiter.NONE, p.parse_number), [1, 2.5]),
        ("<>", lambda p: p.parse_optional_comma_separated_list(p.Delimiter.ANGLE, p.parse_integer), []),
        ("2x?x0x10", lambda p: p.parse_dimension_list(), [2, -1, 0, 10]),
        ("f32", lambda p: p.parse_optional_function_type(), None),
        ("1", lambda p: p.parse_optional_type(), None),
        (")", lambda p: p.parse_optional_attribute(), None),
        ("@a", lambda p: p.parse_symbol_name(), "a"),
        ("a", lambda p: p.parse_optional_symbol_name(), None),
        ("[", lambda p: p.parse_optional_attr_dict(), {}),
        ("{a = 1}", lambda p: p.parse_optional_attr_dict_with_keyword(), {}),
        ("attributes {}", lambda p: p.parse_optional_attr_dict_with_keyword(), {}),
        ("<{a = f32}>", lambda p: p.parse_optional_properties_dict(), {"a": F32}),
        ("{a = f32}", lambda p: p.parse_optional_properties_dict(), {}),
        ("f32", lambda p: p.parse_optional_location(), None),
    ],
)
def test_pieces(text: str, parse: Callable[[AttributeParser], object], expected: object) -> None:
    assert parse(parser(text)) == expected


@pytest.mark.parametrize(
    ("text", "parse", "place", "message"),
    [
        (" a", lambda p: p.parse_punctuation(":", " before the types"), "1:2", "Expected ':' before the types"),
        ("a", lambda p: p.parse_keyword("of", " before it"), "1:1", "Expected 'of' before it"),
        ("1", lambda p: p.parse_identifier(), "1:1", "identifier expected"),
        ("a", lambda p: p.parse_str_literal(" as the name"), "1:1", "string literal expected as the name"),
        ('\n"\\FF"', lambda p: p.parse_str_literal(), "2:1", "expected a string of UTF-8 text"),
        ("a", lambda p: p.parse_number(), "1:1", "integer or float literal expected"),
        ("-a", lambda p: p.parse_integer(), "1:2", "Expected integer literal after '-'"),
        ("1", lambda p: p.parse_comma_separated_list(p.Delimiter.ANGLE, p.parse_integer), "1:1", "'<' expected"),
        (
            "<1 2",
            lambda p: p.parse_comma_separated_list(p.Delimiter.ANGLE, p.parse_integer, " in it"),
            "1:4",
            "'>' expected in it",
        ),
        (
            "attributes 1",
            lambda p: p.parse_optional_attr_dict_with_keyword(),
            "1:12",
            "'{' expected after 'attributes'",
        ),
        ("<1>", lambda p: p.parse_optional_properties_dict(), "1:2", "'{' expected in properties"),
        ("<{}}", lambda p: p.parse_optional_properties_dict(), "1:4", "Expected '>' after the properties"),
        ("unknown", lambda p: p.parse_location(), "1:1", "expected a location"),
        ("a b", lambda p: p.expect(lambda: None, "nothing"), "1:1", "nothing"),
        ("a b", lambda p: p.raise_error("there", 2), "1:3", "there"),
    ],
)
def test_mistakes_in_pieces(text: str, parse: Callable[[AttributeParser], object], place: str, message: str) -> None:
    assert refusal(lambda: parse(parser(text)))[:2] == (place, message)


@pytest.mark.parametrize(
    "text",
    [
        "tensor<" + "1x" * 100_000 + "f32>",
        "tensor<" + "?x" * 100_000 + "f32>",
        "[" + ", ".join(["tensor<2xf32, [tensor<2xf32>]>"] * 20_000) + "]",
        "tensor<f32, [" + ", ".join(["tensor<2x!toy.box<i32>>"] * 50_000) + "]>",
        "tensor<f32, [" + ", ".join(["{a = (i32) -> i32}"] * 50_000) + "]>",
        '"' + "\\41" * 300_000 + '"',
        '["' + '", "'.join(map(str, range(100_000))) + '"]',
    ],
)
def test_long_texts_take_linear_time(text: str) -> None:
    start = time.process_time()
    parser(text).parse_attribute()
    assert time.process_time() - start < 10
