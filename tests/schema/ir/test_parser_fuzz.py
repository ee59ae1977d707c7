"""Damaged texts yield a module or a `ParseError`, and modules round-trip."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schema.ir.test_parser import ALIASES, TEXTS
from tests.schema.ir.toy_dialect import REGISTRY
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.errors import ParseError
from tfconvert.schema.ir.parser import Parser
from tfconvert.schema.ir.printer import text_of

RESOURCES = '"toy.a"() {a = 1.5, b = -0x1F : i8} : () -> ()\n{-# dialect_resources: {builtin: {a: "0x01"}} #-}\n'
PIECES = [
    "(",
    ")",
    "<",
    ">",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "::",
    "->",
    "=",
    "#",
    "!",
    "%",
    "@",
    "^",
    '"',
    "\\",
    "-",
    "?",
    "*",
    "\n",
    " ",
    "//",
    "loc(",
    "#loc1",
    "%0",
    "%x#1",
    "^bb0",
    '"toy.a"',
    "toy.give ",
    "module",
    "tensor<",
    "2x",
    "0x",
    "1.",
    "i32",
    "f32",
    "dense",
    "array<",
    "!toy.box<",
    "#toy<shape",
    "{-#",
    "#-}",
    "é",
    "\x00",
]


def parsed(text: str) -> tuple[ModuleOp | None, ParseError | None]:
    """Returns the module of a text, or the error."""
    try:
        return Parser(REGISTRY, text, "toy.mlir", locate=True).parse_module(), None
    except ParseError as problem:
        return None, problem


def read_or_refused(text: str) -> None:
    """Checks that a text gives an error of ours, or a module that is the same after it was printed and read again."""
    module, problem = parsed(text)
    if module is None:
        assert problem is not None
        assert 0 <= problem.position <= len(text)
        assert problem.report().startswith("toy.mlir:")
        return
    generic = text_of(module, generic=True, locations=True)
    again = Parser(REGISTRY, generic, "again.mlir").parse_module()
    assert text_of(again, generic=True, locations=True) == generic


@given(st.sampled_from([*TEXTS, ALIASES, RESOURCES]), st.data())
@settings(max_examples=400)
def test_damaged_texts_are_read_or_refused(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(start + 20, len(text))))
        inserted = data.draw(st.one_of(st.sampled_from(PIECES), st.just(""), st.text(max_size=4)))
        text = text[:start] + inserted + text[end:]
    read_or_refused(text)


@given(st.sampled_from([*TEXTS, ALIASES, RESOURCES]), st.data())
@settings(max_examples=150)
def test_truncated_texts_are_read_or_refused(text: str, data: st.DataObject) -> None:
    read_or_refused(text[: data.draw(st.integers(0, len(text)))])


@given(st.lists(st.sampled_from(PIECES), max_size=12))
@settings(max_examples=200)
def test_any_tokens_are_read_or_refused(pieces: list[str]) -> None:
    read_or_refused('"toy.a"() {a = ' + "".join(pieces) + "} : () -> ()")
    read_or_refused("".join(pieces))
