"""Ops described by a table, one line each: operands, results, regions, properties and a rule for the types.

The columns are separated by tabs. Counts are a number, `n+` for at least n, or `n-m`; properties are `name:kind`, with
a question mark if they may be absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar, NamedTuple

from tfconvert.schema import rows_of
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import quant, tensor_data, types
from tfconvert.schema.dialects.tf_executor.base import compatible
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import DenseArrayAttr, FloatAttr, IntegerAttr, StringAttr, SymbolRefAttr, UnitAttr
from tfconvert.schema.ir.block import Region
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import NO_ATTRIBUTES, Operation
from tfconvert.schema.ir.traits import NO_TRAITS, Trait
from tfconvert.schema.ir.types import ComplexType, FloatType, IndexType, IntegerType
from tfconvert.schema.ir.values import Value

_UNBOUNDED = 1 << 30

Check = Callable[[Attribute], bool]
"""Returns whether an attribute can be a property of some kind."""


class Count(NamedTuple):
    """The minimum and maximum number of an op's operands, results or regions."""

    minimum: int
    maximum: int


class Property(NamedTuple):
    """A property of an op."""

    kind: str  # The kind of value.
    optional: bool  # Whether it may be absent.


class Definition(NamedTuple):
    """The table's entry of an op."""

    name: str  # The full name.
    operands: Count  # The number of operands.
    results: Count  # The number of results.
    regions: Count  # The number of regions.
    properties: Mapping[str, Property]  # Its properties.
    types: str  # The rule for the types of operands and results.
    kinds: str  # The kinds of elements that operands can have, as `kind_of` returns them; empty for any.


def _count(text: str) -> Count:
    minimum, _, maximum = text.partition("-")
    if text.endswith("+"):
        return Count(int(text[:-1]), _UNBOUNDED)
    return Count(int(minimum), int(maximum or minimum))


def _properties(text: str) -> Mapping[str, Property]:
    pairs = (each.partition(":") for each in text.split() if text != "-")
    return {name: Property(kind.removesuffix("?"), kind.endswith("?")) for name, _, kind in pairs}


def _types(text: str) -> tuple[str, str]:
    rule, _, kinds = text.partition(":")
    return rule, kinds


class TableOp(Operation):
    """An op of a table."""

    __slots__ = ()

    DEFINITION: ClassVar[Definition]
    TABLE: ClassVar[OpTable]

    def verify_(self) -> None:
        _, operands, results, regions, properties, rule, kinds = self.DEFINITION
        if not operands.minimum <= len(self.operands) <= operands.maximum:
            raise VerifyError(f"{self.name} can't have {len(self.operands)} operands")
        if not results.minimum <= len(self.results) <= results.maximum:
            raise VerifyError(f"{self.name} can't have {len(self.results)} results")
        if not regions.minimum <= len(self.regions) <= regions.maximum:
            raise VerifyError(f"{self.name} can't have {len(self.regions)} regions")
        for name, prop in properties.items():
            value = self.properties.get(name)
            if value is None and not prop.optional:
                raise VerifyError(f"{self.name} needs the property '{name}'")
            if value is not None and not self.TABLE.checks[prop.kind](value):
                raise VerifyError(f"the property '{name}' of {self.name} can't be {value}")
        if rule != "-":
            _check_types(self, rule)
        if kinds:
            _check_kinds(self, kinds)
        for region in self.regions:
            _check_region(self, region, self.TABLE.terminators(self))


def _check_types(op: Operation, rule: str) -> None:
    kinds = [value.type for value in (*op.operands, *op.results)]
    if rule == "same" and all(kind is kinds[0] for kind in kinds):
        return
    if rule == "compare" and types.element_of(kinds.pop()) != types.I1:
        raise VerifyError(f"the result of {op.name} must be booleans")
    if len({types.element_of(kind) for kind in kinds}) > 1:
        raise VerifyError(f"operands and results of {op.name} must have one element type")
    if rule != "elements" and not all(compatible(kinds[0], kind) for kind in kinds[1:]):
        raise VerifyError(f"operands and results of {op.name} must have one shape")


def _check_kinds(op: Operation, kinds: str) -> None:
    for kind in op.operand_types:
        element = types.element_of(kind)
        if kind_of(element) not in kinds:
            names = " or ".join([_KINDS[each] for each in kinds])
            raise VerifyError(f"the operands of {op.name} must be {names}, found {element}")


_KINDS: Mapping[str, str] = {"b": "booleans", "i": "integers", "f": "floats", "c": "complex numbers"}


def kind_of(element: Attribute) -> str:
    """Returns the kind of an element type, a key of `_KINDS`; of quantized numbers that of those they stand for."""
    if isinstance(element, FloatType | quant.UniformType):
        return "f"
    if isinstance(element, IntegerType):
        return "b" if element.width == 1 else "i"
    return "i" if isinstance(element, IndexType) else "c" if isinstance(element, ComplexType) else "other types"


def _check_region(op: Operation, region: Region, terminators: Sequence[str]) -> None:
    last = region.block.last_op if len(region.blocks) == 1 else None
    if last is None or last.name not in terminators:
        raise VerifyError(f"a region of {op.name} must be one block that ends in {' or '.join(terminators)}")


class OpTable:
    """A table, which is read when the first op is looked up.

    Attributes:
        checks: What a property of each kind can be.
        terminators: Returns the names of the ops that may end the regions of an op.

    Args:
        path: The file.
        base: The class of its ops.
        checks: What a property of each kind can be.
        terminators: Returns the names of the ops that may end the regions of an op.
        traits: Traits of some ops, by full name.
        others: Returns the class of an op outside of the table, or `None`; `build` also creates these.
    """

    def __init__(
        self,
        path: Path,
        base: type[TableOp],
        checks: Mapping[str, Check],
        terminators: Callable[[Operation], Sequence[str]],
        traits: Mapping[str, frozenset[Trait]],
        others: Callable[[str], type[Operation] | None] = lambda name: None,
    ) -> None:
        self.checks = checks
        self.terminators = terminators
        self._path = path
        self._base = base
        self._traits = traits
        self._others = others
        self.definitions = cache(self._read)
        self.class_of = cache(self._class_of)

    def _read(self) -> Mapping[str, Definition]:
        """Returns the table by the ops' full names."""
        return {
            name: Definition(
                name, _count(operands), _count(results), _count(regions), _properties(properties), *_types(rule)
            )
            for name, operands, results, regions, properties, rule in rows_of(self._path)
        }

    def _class_of(self, name: str) -> type[TableOp] | None:
        """Returns the class of an op by its full name, `None` if the table doesn't have it."""
        definition = self.definitions().get(name)
        if definition is None:
            return None
        members = {
            "__slots__": (),
            "__doc__": f"`{name}`.",
            "NAME": name,
            "PROPERTIES": tuple(definition.properties),
            "TRAITS": self._traits.get(name, NO_TRAITS),
            "DEFINITION": definition,
            "TABLE": self,
        }
        return type(self._base.__name__, (self._base,), members)

    def build(
        self,
        name: str,
        operands: Sequence[Value],
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, attrs.Value] | None = None,
        regions: Sequence[Region] = (),
        location: Location = UNKNOWN_LOC,
    ) -> Operation:
        """Returns a detached op.

        Args:
            name: The full name.
            operands: The operands.
            result_types: The results' types.
            properties: The properties, as `property_of` takes them.
            regions: The regions.
            location: The location.
        """
        cls = self._others(name) or self.class_of(name)
        assert cls is not None, name
        found = {key: property_of(value) for key, value in properties.items()} if properties else NO_ATTRIBUTES
        return cls(name, operands, result_types, found, regions=regions, location=location)


def property_of(value: attrs.Value) -> Attribute:
    """Returns a Python value as a property.

    Integers become `i64`, a tuple of integers an `array<i64>`, one of booleans an `array<i1>`.
    """
    if isinstance(value, tuple | list):
        is_bool = bool(value) and all(isinstance(each, bool) for each in value)
        return DenseArrayAttr.get(types.I1 if is_bool else types.I64, value)
    return attrs.of(value)


def array_of(element: Attribute) -> Check:
    return lambda value: isinstance(value, DenseArrayAttr) and value.element_type is element


def integer_of(element: Attribute) -> Check:
    """Returns the check for a number of a type."""
    return lambda value: isinstance(value, IntegerAttr) and value.type is element


def instance_of(kind: type[Attribute]) -> Check:
    """Returns the check for the attributes of a class."""
    return lambda value: isinstance(value, kind)


CHECKS: Mapping[str, Check] = {
    "any": lambda value: True,
    "bool": integer_of(types.I1),
    "f32": lambda value: isinstance(value, FloatAttr) and value.type is types.F32,
    "i32": integer_of(types.I32),
    "i64": integer_of(types.I64),
    "i1s": array_of(types.I1),
    "i32s": array_of(types.I32),
    "i64s": array_of(types.I64),
    "string": instance_of(StringAttr),
    "symbol": instance_of(SymbolRefAttr),
    "tensor": tensor_data.is_constant,
    "unit": instance_of(UnitAttr),
}
"""Values that a property of each kind can have, in any dialect."""
