"""Explains why a declarative pattern declines an op."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tfconvert.converter.rewrite.questions import Found, Path, Question, QuestionKind, attribute_of, value_at
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.values import OpResult, Value


def of(question: Question, expected: frozenset[Any], found: Found, slots: Mapping[Path, int]) -> str:
    """Returns why an op isn't matched.

    Args:
        question: The question.
        expected: The accepted answers.
        found: The ops found.
        slots: Slots of the positions that have an op.
    """
    kind, path = question.kind, question.path
    if kind in _OF_OP:
        return _OF_OP[kind](found[slots[path]], question, expected)
    where = _place(path, found, slots)
    value = value_at(found, slots, path)
    if kind is QuestionKind.PRODUCER:
        return f"{where} is {_origin(value)}, not defined by {_either(expected)}"
    text = _OF_VALUE[kind]
    return f"{where} {text(value, question, expected) if callable(text) else text}"


def _place(path: Path, found: Found, slots: Mapping[Path, int]) -> str:
    return f"operand {path[-1]} of {found[slots[path[:-1]]].name}" if path else "the result"


def _origin(value: Value) -> str:
    return f"defined by {value.op.name}" if isinstance(value, OpResult) else "an argument"


def _either(answers: frozenset[Any]) -> str:
    texts = sorted(map(_text, answers))
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"


def _text(answer: Any) -> str:
    if isinstance(answer, Attribute):
        entry = types.from_mlir(answer)
        return str(answer) if entry is None else entry.name
    return str(answer)


_OF_OP: Mapping[QuestionKind, Callable[[Any, Question, frozenset[Any]], str]] = {
    QuestionKind.ARITY: lambda op, _, expected: f"{op.name} has {len(op.operands)} operands, not {_either(expected)}",
    QuestionKind.AT_LEAST: lambda op, question, _: f"{op.name} has fewer than {question.argument} operands",
    QuestionKind.ATTRIBUTE: lambda op, question, expected: (
        f"{question.argument} of {op.name} is {attribute_of(op, str(question.argument))}, not {_either(expected)}"
    ),
    QuestionKind.SAME_ATTRIBUTE: lambda op, question, _: (
        f"{question.argument[0]} of {op.name} differs from {question.argument[2]} elsewhere"  # type: ignore[index]
    ),
    QuestionKind.ALL_ONCE: lambda op, _, __: f"the result of {op.name} is used more than once",
}

_OF_VALUE: Mapping[QuestionKind, str | Callable[[Value, Question, frozenset[Any]], str]] = {
    QuestionKind.SAME_OP: "is defined by another op than the same result elsewhere",
    QuestionKind.INDEX: lambda _, __, expected: f"isn't result {_either(expected)} of the op that defines it",
    QuestionKind.SAME: "isn't the same value as elsewhere in the pattern",
    QuestionKind.CONSTANT: lambda _, __, expected: "isn't constant" if True in expected else "is constant",
    QuestionKind.ARRAY: "isn't constant, or too large to look into",
    QuestionKind.NUMBER: "isn't a constant of one element",
    QuestionKind.ONCE: "is used more than once",
    QuestionKind.ELEMENT: lambda value, _, expected: (
        f"has elements of type {_text(types.element_of(value.type))}, not {_either(expected)}"
    ),
    QuestionKind.RANK: lambda value, _, expected: (
        f"has the shape {types.shape_of(value.type)}, not the rank {_either(expected)}"
    ),
    QuestionKind.DIM: lambda value, question, expected: (
        f"has the shape {types.shape_of(value.type)}, whose dimension {question.argument} isn't {_either(expected)}"
    ),
    QuestionKind.STATIC: lambda value, _, __: f"has the shape {types.shape_of(value.type)}, which isn't known",
    QuestionKind.EQUALS: lambda _, question, __: f"isn't the constant {question.argument}",
}
