"""Tokens: where they begin and end, in linear time."""

from __future__ import annotations

import contextlib
import time

import pytest

from tests.schema.ir.toy_dialect import refusal
from tfconvert.schema.ir.errors import ParseError
from tfconvert.schema.ir.token_parser import END, Lexer, string_bytes


def tokens(text: str) -> list[tuple[str, str]]:
    """Returns the kinds and the texts of all tokens."""
    lexer, position = Lexer(text, "toy.mlir"), 0
    found: list[tuple[str, str]] = []
    while True:
        kind, start, end, previous = lexer.token(position)
        assert previous == position <= start <= end
        if kind == END:
            return found
        found.append((kind, text[start:end]))
        position = end


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\r\n// all %of it\n//", []),
        ("func.func a$b _1", [("bare", "func.func"), ("bare", "a$b"), ("bare", "_1")]),
        ("größe %größe", [("bare", "größe"), ("%", "%größe")]),
        ("%0 %a-b.$ %12ab", [("%", "%0"), ("%", "%a-b.$"), ("%", "%12"), ("bare", "ab")]),
        ("^bb0:", [("^", "^bb0"), (":", ":")]),
        ('@main @"a \\22b\\22"', [("@", "@main"), ("@", '@"a \\22b\\22"')]),
        ("@a::@b", [("@", "@a"), ("::", "::"), ("@", "@b")]),
        ("#a !b.c #0", [("#", "#a"), ("!", "!b.c"), ("#", "#0")]),
        (
            "1 0x1F 0xg 12ab",
            [
                ("integer", "1"),
                ("integer", "0x1F"),
                ("integer", "0"),
                ("bare", "xg"),
                ("integer", "12"),
                ("bare", "ab"),
            ],
        ),
        (
            "1.5 1. 1.e5 1.5e-7 1e5",
            [
                ("float", "1.5"),
                ("float", "1."),
                ("float", "1.e5"),
                ("float", "1.5e-7"),
                ("integer", "1"),
                ("bare", "e5"),
            ],
        ),
        ("1.5e+x", [("float", "1.5"), ("bare", "e"), ("+", "+"), ("bare", "x")]),
        ("2x?x3xf32", [("integer", "2"), ("bare", "x"), ("?", "?"), ("bare", "x3xf32")]),
        ("-1->{-# #-}", [("-", "-"), ("integer", "1"), ("->", "->"), ("{-#", "{-#"), ("#-}", "#-}")]),
        ("(){}[]<>,:=?*+/|...", [(mark, mark) for mark in [*"(){}[]<>,:=?*+/|", "..."]]),
        ('"a // b" // "c"', [("string", '"a // b"')]),
    ],
)
def test_tokens(text: str, expected: list[tuple[str, str]]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("text", "place", "message", "under_caret"),
    [
        ('a\n "no end', "2:2", "expected a string that ends on its line", '"no end'),
        ('"a\nb"', "1:1", "expected a string that ends on its line", '"a'),
        ('"\\zz"', "1:1", "expected a string that ends on its line", '"\\zz"'),
        ('@"a', "1:1", "expected a string that ends on its line", '@"a'),
        ("a &b", "1:3", "unexpected character '&'", "&b"),
        ("..", "1:1", "unexpected character '.'", ".."),
        ("\x00", "1:1", "unexpected character '\\x00'", "\x00"),
        ("% a", "1:1", "expected a name after '%'", "% a"),
        ("@1", "1:1", "expected a name after '@'", "@1"),
        ("^", "1:1", "expected a name after '^'", "^"),
    ],
)
def test_invalid_tokens(text: str, place: str, message: str, under_caret: str) -> None:
    found = refusal(lambda: tokens(text))
    assert found[0] == place
    assert found[1].startswith(message)
    assert found[2] == under_caret


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ('""', b""),
        ('"a b"', b"a b"),
        ('"\\n\\t\\\\\\""', b'\n\t\\"'),
        ('"\\00\\fF"', b"\x00\xff"),
        ('"ä\\C3\\A4"', "ää".encode()),
        ('"\\\\n"', b"\\n"),
    ],
)
def test_escapes(literal: str, expected: bytes) -> None:
    assert string_bytes(literal) == expected


@pytest.mark.parametrize(
    "text",
    [
        '"' + "a" * 1_000_000,
        '"' + "\\\\" * 500_000,
        "//" * 500_000,
        " // \n" * 200_000,
        "1" * 1_000_000 + "." + "1" * 1_000_000 + "e",
        "0x" + "f" * 1_000_000 + "g",
        "%" + "a-" * 500_000,
        "a." * 500_000,
        '@"' + "a" * 1_000_000,
    ],
)
def test_time_is_linear(text: str) -> None:
    start = time.process_time()
    with contextlib.suppress(ParseError):
        tokens(text)
    assert time.process_time() - start < 5
