"""Changes text of a formal language (MLIR, protobuf text): tokens and lines dropped, doubled, exchanged or replaced."""

from __future__ import annotations

import re
from random import Random

from tests.mutate import numbers

_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|tensor<[^<>\n]*>|[%@#!^][\w$.#-]*|0x[0-9A-Fa-f]+|-?\d+(?:\.\d+(?:[eE][-+]?\d+)?)?'
    r"|[A-Za-z_][\w$.]*|->|\S|\s+"
)
# Tokens that may stand for any other.
_ALSO = (
    "tensor<*xf32>",
    "tensor<?xf32>",
    "tensor<f32>",
    "tensor<0xf32>",
    "tensor<2x?xi32>",
    "tensor<1x!tf_type.string>",
    "tensor<99999999999999x9xf32>",
    "tensor<!tf_type.resource>",
    "tensor<!tf_type.variant>",
    "tensor<4xi1>",
    "tensor<2xi4>",
    "tensor<2xcomplex<f32>>",
    "tensor<2x!quant.uniform<i8:f32, 1.0>>",
    "none",
    "index",
    "f32",
    "i64",
    "unit",
    "true",
    "dense<>",
    "dense<0>",
    'dense<"0x00">',
    "[]",
    "{}",
    "<{}>",
    "()",
    "loc(unknown)",
    "@main",
    "%0",
    "%arg0",
    "^bb0",
    "attributes",
    "func.func",
    "func.return",
)


def mutate(random: Random, text: str, others: str) -> str:
    """Returns a text with one change.

    Args:
        random: Draws everything.
        text: The text.
        others: Another text of the same language, whose tokens and lines may be put in.
    """
    kind = random.random()
    if kind < 0.25:
        return _with_lines(random, text, others)
    if kind < 0.3:
        return numbers.content(random, text.encode()).decode("utf-8", "replace")
    tokens = _TOKEN.findall(text)
    places = [place for place, token in enumerate(tokens) if not token.isspace()]
    if not places:
        return text
    place = random.choice(places)
    if kind < 0.4:
        del tokens[place]
    elif kind < 0.45:
        tokens.insert(place, tokens[place])
    elif kind < 0.55:
        other = random.choice(places)
        tokens[place], tokens[other] = tokens[other], tokens[place]
    else:
        tokens[place] = _replacement(random, tokens[place], tokens, others)
    return "".join(tokens)


def _replacement(random: Random, token: str, tokens: list[str], others: str) -> str:
    """Returns a token that stands for another, mostly one of its kind."""
    if token.lstrip("-")[:1].isdigit() and random.random() < 0.7:
        value = int(token) if token.lstrip("-").isdigit() else 0
        return str(numbers.integer(random, -(2**64), 2**64, value))
    if token.startswith('"') and random.random() < 0.3:
        return '"' + numbers.text(random, token[1:-1]) + '"'
    kind = random.random()
    if kind < 0.2:
        return random.choice(_ALSO)
    known = _TOKEN.findall(others) if kind < 0.4 else tokens
    alike = [other for other in known if other[:1] == token[:1] or (other.isidentifier() and token.isidentifier())]
    return random.choice(alike or tokens)


def _with_lines(random: Random, text: str, others: str) -> str:
    """Returns a text with a line dropped, doubled, moved, or replaced by one of the other text."""
    lines = text.split("\n")
    place, other = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(5)
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines.insert(other, lines[place])
    elif kind == 2:
        lines[place], lines[other] = lines[other], lines[place]
    elif kind == 3:
        lines.insert(place, random.choice(others.split("\n")))
    else:
        del lines[min(place, other) : max(place, other)]
    return "\n".join(lines)
