"""Element types and their numbers."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterator

import pytest

from tfconvert import schema
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo import ConvAttr, DotAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DenseArrayAttr, DictionaryAttr, FloatAttr, IntegerAttr, StringAttr
from tfconvert.schema.ir.locations import FileLineColLoc, NameLoc


def test_numbers_above_the_offset_are_references() -> None:
    assert types.element_type(1) == types.F32
    assert types.element_type(types.REF_OFFSET + 1) == types.RefType.get(types.F32)


@pytest.mark.parametrize("number", [-1, 0, 99, types.REF_OFFSET, 2 * types.REF_OFFSET + 1, 2**31 - 1])
def test_other_numbers_are_no_types(number: int) -> None:
    assert types.element_type(number) is None


@pytest.mark.parametrize(
    "attribute",
    [
        types.tensor(types.F32, (2, -1)),
        StringAttr.get("a"),
        IntegerAttr.get(3, types.I64),
        FloatAttr.get(-0.0, types.F32),
        DenseArrayAttr.get(types.I64, [1, 2]),
        NameLoc.get("a", FileLineColLoc.get("b.py", 1, 2)),
        ConvAttr.get("b0f", "0io", "b0f"),
        DotAttr.get(lhs_contracting_dimensions=[1]),
        DictionaryAttr.get({"b": StringAttr.get("c"), "a": ArrayAttr.get([types.I1])}),
    ],
    ids=str,
)
def test_equal_attributes_stay_one_object(attribute: Attribute) -> None:
    assert copy.copy(attribute) is attribute
    assert copy.deepcopy(attribute) is attribute
    assert pickle.loads(pickle.dumps(attribute)) is attribute  # noqa: S301


def _classes(base: type[Attribute] = Attribute) -> Iterator[type[Attribute]]:
    for each in base.__subclasses__():
        yield each
        yield from _classes(each)


def test_fields_are_declared_in_the_order_of_their_arguments() -> None:
    for module in pkgutil.walk_packages(schema.__path__, f"{schema.__name__}."):
        importlib.import_module(module.name)
    classes = [each for each in _classes() if each.__module__.startswith(schema.__name__)]
    assert len(classes) > 50
    for each in classes:
        slots = {name for parent in each.__mro__ for name in getattr(parent, "__slots__", ())} - {"__weakref__"}
        # A base class has no slots of its own.
        assert slots <= set(each.FIELDS), each
        if not each.__subclasses__():
            assert slots == set(each.FIELDS), each
        parameters = inspect.signature(each.get).parameters.values() if hasattr(each, "get") else ()
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            assert [parameter.name for parameter in parameters] in ([], list(each.FIELDS)), each


def test_an_attribute_by_the_docstring_has_its_fields_where_they_belong() -> None:
    class Span(Attribute):
        __slots__ = ("end", "start")

        start: int
        end: int

        @classmethod
        def get(cls, start: int, end: int) -> Span:
            return cls.intern(start, end)

    class Named(Span):
        __slots__ = ("label",)

        label: str

    span = Span.get(1, 2)
    assert (span.start, span.end) == (1, 2)
    assert Span.get(2, 1) is not span
    assert Named.FIELDS == ("start", "end", "label")
