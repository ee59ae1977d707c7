"""Materializes the result side of a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfconvert.converter.rewrite import op_info
from tfconvert.converter.rewrite.dsl import AttributeCapture, Capture, Computed, Literal, Op, Result, Term
from tfconvert.converter.rewrite.functions import parameters_of
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.rewrite.program import Bound
from tfconvert.converter.rewrite.rewriter import Rewriter, fuse_origins
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import dims, tensor_data, types
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.locations import Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

# Attributes that are not properties, in addition to those that begin with `_`.
_FREE = frozenset(("device",))


def misfit(
    op: Operation, terms: Sequence[Term], bound: Mapping[str, Bound], ops: Mapping[Op, Operation]
) -> Failure | None:
    """Returns why existing values can't replace an op's results, or `None` if they can.

    A value fits if its type is the result's or a more specific one.
    """
    for result, term in zip(op.results, terms, strict=False):
        value = _existing(term, bound, ops)
        if value is None or value.type is result.type or value.type == result.type:
            continue
        is_most_specific = types.most_specific(value.type, result.type) == value.type
        if not is_most_specific or not dims.compatible_types(value.type, result.type):
            return Failure(f"the result has the type {result.type}, its replacement {value.type}")
    return None


def _existing(term: Term, bound: Mapping[str, Bound], ops: Mapping[Op, Operation]) -> Value | None:
    if isinstance(term, Capture):
        origin = bound[term.name].origin
        return origin if isinstance(origin, Value) else None
    if isinstance(term, Computed):
        held = bound[term.name].value if term.name in bound else None
        return held if isinstance(held, Value) else None
    op, index = (term.op, term.index) if isinstance(term, Result) else (term, 0)
    found = ops.get(op) if isinstance(op, Op) else None
    return None if found is None else found.results[index]


class Maker:
    """Creates the results of one match."""

    def __init__(self, bound: dict[str, Bound], ops: Mapping[Op, Operation], rewriter: Rewriter) -> None:
        self._bound = bound
        self._ops = ops
        self._rewriter = rewriter
        self._created: dict[Op, Operation] = {}
        self._types: dict[Op, dict[int, Attribute]] = {}
        self._before: Operation = rewriter.root

    def replace(self, replacements: Mapping[Op, Sequence[Term]]) -> None:
        """Replaces the results of matched ops, each op's before those that it feeds."""
        for op, terms in replacements.items():
            for result, term in zip(self._ops[op].results, terms, strict=False):
                made, index = (term.op, term.index) if isinstance(term, Result) else (term, 0)
                if isinstance(made, Op):
                    self._types.setdefault(made, {}).setdefault(index, result.type)
        for op, terms in replacements.items():
            replaced = self._before = self._ops[op]
            like = [result.type for result in replaced.results]
            values = [value for term, wanted in zip(terms, like, strict=False) for value in self._values(term, wanted)]
            for old, new in zip(replaced.results, values, strict=True):
                self._rewriter.replace_value(old, new)
            self._rewriter.erase(replaced)

    def _values(self, term: Term, like: Attribute | None) -> Sequence[Value]:
        """Returns the values that a term represents: one, or several for a capture of the rest."""
        if isinstance(term, Capture):
            origin = self._bound[term.name].origin
            return origin if isinstance(origin, tuple) else (_value(origin),)
        if isinstance(term, Literal):
            return (self._constant(term.value, like, ()),)
        if isinstance(term, Computed):
            held = self._call(term)
            return (held if isinstance(held, Value) else self._constant(held, like, parameters_of(term.function)),)
        op, index = (term.op, term.index) if isinstance(term, Result) else (term, 0)
        assert isinstance(op, Op), "the pattern has been checked"
        found = self._ops.get(op) or self._created.get(op) or self._create(op)
        return (found.results[index],)

    def _call(self, term: Computed) -> Any:
        if term.name in self._bound:
            return self._bound[term.name].value
        result = term.function(*(self._bound[name].value for name in parameters_of(term.function)))
        if term.name:
            self._bound[term.name] = Bound(result, None)
        return result

    def _create(self, term: Op) -> Operation:
        copied = None if term.copied is None else self._ops[term.copied]
        name = term.names[0] if copied is None else copied.name
        operands = self._operands(term)
        properties, free = ({}, {}) if copied is None else (dict(copied.properties), dict(copied.attributes))
        for key, wanted in term.attributes.items():
            attribute = self._attribute(name, key, wanted)
            if attribute is not None:
                (free if key in _FREE or key.startswith("_") else properties)[key] = attribute
        result_types = self._result_types(term, operands, copied)
        if copied is None:
            op = op_info.build(name, operands, result_types, properties)
            op.attributes.update(free)
        else:
            op = type(copied)(name, operands, result_types, properties, free)
        self._created[term] = op
        return self._rewriter.insert(op, before=self._before)

    def _operands(self, term: Op) -> list[Value]:
        """Returns an op's operands; numbers get the element type of the first operand that isn't a number."""
        operands = [() if _is_free(each) else self._values(each, None) for each in term.operands]
        like = next((values[0].type for values in operands if values), None)
        return [
            value
            for each, values in zip(term.operands, operands, strict=True)
            for value in (self._values(each, like) if _is_free(each) else values)
        ]

    def _attribute(self, name: str, key: str, wanted: Any) -> Attribute | None:
        if isinstance(wanted, AttributeCapture):
            origin = self._bound[wanted.name].origin
            return origin if isinstance(origin, Attribute) else None
        return op_info.to_attribute(name, key, self._call(wanted) if isinstance(wanted, Computed) else wanted)

    def _result_types(self, term: Op, operands: Sequence[Value], copied: Operation | None) -> list[Attribute]:
        if term.result_types:
            return [self._type(each) for each in term.result_types]
        expected = self._types.get(term)
        if expected is not None:
            return [expected[index] for index in range(len(expected))]
        name = term.names[0] if copied is None else copied.name
        if not op_info.infers(name):
            return [each.type for each in _of(copied)]
        try:
            return [op_info.infer(operands)]
        except dims.MismatchError as problem:
            root = self._rewriter.root
            raise error(
                "wrong-pattern",
                f"a pattern creates {name} with operands that don't go together: {problem}",
                op=root.name,
                node=place_of(root.location).node,
            ) from problem

    def _type(self, wanted: Attribute | Term) -> Attribute:
        if isinstance(wanted, Attribute):
            return wanted
        if isinstance(wanted, Computed):
            found: Attribute = self._call(wanted)
            return found
        return self._values(wanted, None)[0].type

    def _constant(self, held: Any, like: Attribute | None, names: Sequence[str]) -> Value:
        """Inserts a constant; it has the location of the constants that it was computed from."""
        if not isinstance(held, np.ndarray | Attribute):
            held = np.asarray(held)
            if like is not None:
                held = held.astype(types.numpy_dtype(types.element_of(like)))
            elif held.dtype == np.float64:
                held = held.astype(np.float32)
        constant = tensor_data.of_array(held) if isinstance(held, np.ndarray) else held
        op = op_info.constant(self._rewriter.root.name, constant, self._location(names))
        return self._rewriter.insert(op, before=self._before).results[0]

    def _location(self, names: Sequence[str]) -> Location:
        origins = [self._bound[name].origin for name in names]
        return fuse_origins(
            origin for origin in origins if isinstance(origin, Value) and tensor_data.constant_of(origin) is not None
        )


def _is_free(term: Term) -> bool:
    return isinstance(term, Literal | Computed)


def _value(origin: Any) -> Value:
    assert isinstance(origin, Value), "the pattern has been checked"
    return origin


def _of(copied: Operation | None) -> Sequence[OpResult]:
    assert copied is not None, "the pattern has been checked"
    return copied.results
