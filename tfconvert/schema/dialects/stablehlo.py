"""The dialects `stablehlo` and `chlo`, with what stands beside them of `ml_program` and `cf`: one table of ops.

Ops are read and printed in the generic form, `"stablehlo.add"(%a, %b) : (tensor<?xf32>, ...) -> ...`, constants in
their short one. The table, `stablehlo_ops.tsv`, is read when the first op is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar, NamedTuple

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.foreign import StableHLOConstantOp
from tfconvert.schema.dialects.stablehlo_attributes import KINDS, SYNTAX, EnumeratorAttr
from tfconvert.schema.dialects.tf_executor.values import compatible
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import DenseArrayAttr, FloatAttr, IntegerAttr, StringAttr, SymbolRefAttr, UnitAttr
from tfconvert.schema.ir.block import Region
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import NO_ATTRIBUTES, Operation
from tfconvert.schema.ir.traits import NO_TRAITS, Trait
from tfconvert.schema.ir.values import Value

TABLE = Path(__file__).parent / "stablehlo_ops.tsv"

RETURN = "stablehlo.return"

_UNBOUNDED = 1 << 30

_TRAITS: Mapping[str, frozenset[Trait]] = {
    RETURN: frozenset({Trait.TERMINATOR}),
    "ml_program.global": frozenset({Trait.SYMBOL}),
}

EFFECTS = frozenset({"cf.assert", "stablehlo.custom_call", "ml_program.global", "ml_program.global_store"})
"""Ops that stay although nothing uses their results."""


class Count(NamedTuple):
    """How many operands, results or regions an op has, from the least to the most."""

    least: int
    most: int


class Property(NamedTuple):
    """A property of an op.

    Attributes:
        kind: What it holds.
        optional: Whether it may be absent.
    """

    kind: str
    optional: bool


class Definition(NamedTuple):
    """What the table says of an op.

    Attributes:
        name: The full name.
        operands: How many operands it has.
        results: How many results.
        regions: How many regions.
        properties: Its properties.
        types: The rule of the types of operands and results.
    """

    name: str
    operands: Count
    results: Count
    regions: Count
    properties: Mapping[str, Property]
    types: str


def _count(text: str) -> Count:
    least, _, most = text.partition("-")
    if text.endswith("+"):
        return Count(int(text[:-1]), _UNBOUNDED)
    return Count(int(least), int(most or least))


def _properties(text: str) -> Mapping[str, Property]:
    pairs = (each.partition(":") for each in text.split() if text != "-")
    return {name: Property(kind.removesuffix("?"), kind.endswith("?")) for name, _, kind in pairs}


@cache
def definitions() -> Mapping[str, Definition]:
    """Returns the table by the ops' full names."""
    found = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, operands, results, regions, properties, rule = line.split("\t")
            found[name] = Definition(
                name, _count(operands), _count(results), _count(regions), _properties(properties), rule
            )
    return found


class StableHLOOp(Operation):
    """An op of the table."""

    __slots__ = ()

    DEFINITION: ClassVar[Definition]

    def verify_(self) -> None:
        """Checks the op against its definition.

        Raises:
            VerifyError: The op contradicts it.
        """
        definition = self.DEFINITION
        counts = (
            ("operand", len(self.operands), definition.operands),
            ("result", len(self.results), definition.results),
            ("region", len(self.regions), definition.regions),
        )
        for what, count, allowed in counts:
            if not allowed.least <= count <= allowed.most:
                raise VerifyError(f"{self.name} can't have {count} {what}s")
        for name, prop in definition.properties.items():
            value = self.properties.get(name)
            if value is None and not prop.optional:
                raise VerifyError(f"{self.name} needs the property '{name}'")
            if value is not None and not CHECKS[prop.kind](value):
                raise VerifyError(f"the property '{name}' of {self.name} can't be {value}")
        _check_types(self, definition.types)
        for region in self.regions:
            _check_region(self, region)


def _check_types(op: Operation, rule: str) -> None:
    kinds = [*op.operand_types, *op.result_types]
    if rule == "compare":
        if types.element_of(kinds.pop()) != types.I1:
            raise VerifyError(f"the result of {op.name} must be truth values")
    elif rule == "-":
        return
    if len({types.element_of(kind) for kind in kinds}) > 1:
        raise VerifyError(f"operands and results of {op.name} must have one element type")
    if rule != "elements" and not all(compatible(kinds[0], kind) for kind in kinds[1:]):
        raise VerifyError(f"operands and results of {op.name} must have one shape")


def _check_region(op: Operation, region: Region) -> None:
    last = region.block.last_op if len(region.blocks) == 1 else None
    if last is None or last.name != RETURN:
        raise VerifyError(f"a region of {op.name} must be one block that ends in {RETURN}")


def _array_of(element: Attribute) -> Callable[[Attribute], bool]:
    return lambda value: isinstance(value, DenseArrayAttr) and value.element_type is element


def _integer_of(element: Attribute) -> Callable[[Attribute], bool]:
    return lambda value: isinstance(value, IntegerAttr) and value.type is element


def _instance_of(kind: type[Attribute]) -> Callable[[Attribute], bool]:
    return lambda value: isinstance(value, kind)


def _enumerator_of(kind: str) -> Callable[[Attribute], bool]:
    return lambda value: isinstance(value, EnumeratorAttr) and value.kind == kind


CHECKS: Mapping[str, Callable[[Attribute], bool]] = {
    "any": lambda value: True,
    "bool": _integer_of(types.I1),
    "f32": lambda value: isinstance(value, FloatAttr) and value.type is types.F32,
    "i32": _integer_of(types.I32),
    "i64": _integer_of(types.I64),
    "i1s": _array_of(types.I1),
    "i64s": _array_of(types.I64),
    "string": _instance_of(StringAttr),
    "symbol": _instance_of(SymbolRefAttr),
    "tensor": tensor_data.is_constant,
    "unit": _instance_of(UnitAttr),
    **{kind: _instance_of(cls) for kind, cls in KINDS.items()},
    **{
        kind: _enumerator_of(kind)
        for kind in ("comparison_direction", "comparison_type", "fft_type", "rng_algorithm", "rng_distribution",
                     "transpose")
    },
}  # fmt: skip
"""What a property of each kind can be."""


@cache
def class_of(name: str) -> type[StableHLOOp] | None:
    """Returns the class of an op by its full name, `None` if the table doesn't have it."""
    definition = definitions().get(name)
    if definition is None:
        return None
    members = {
        "__slots__": (),
        "__doc__": f"`{name}`.",
        "NAME": name,
        "PROPERTIES": tuple(definition.properties),
        "TRAITS": _TRAITS.get(name, NO_TRAITS),
        "DEFINITION": definition,
    }
    return type("StableHLOOp", (StableHLOOp,), members)


def build(
    name: str,
    operands: Sequence[Value],
    result_types: Sequence[Attribute],
    properties: Mapping[str, attrs.Value] | None = None,
    regions: Sequence[Region] = (),
    location: Location = UNKNOWN_LOC,
) -> Operation:
    """Returns a detached op.

    Args:
        name: The full name.
        operands: The operands.
        result_types: The results' types.
        properties: The properties; integers and lists of integers become those of `i64`.
        regions: The regions.
        location: The location.
    """
    cls = class_of(name)
    assert cls is not None, name
    converted = {key: property_of(value) for key, value in properties.items()} if properties else NO_ATTRIBUTES
    return cls(name, operands, result_types, converted, regions=regions, location=location)


def constant(value: tensor_data.Constant, location: Location = UNKNOWN_LOC) -> Operation:
    """Returns a `stablehlo.constant` of a value."""
    return StableHLOConstantOp.create(properties={"value": value}, result_types=(value.type,), location=location)


def property_of(value: attrs.Value) -> Attribute:
    """Returns a Python value as a property: a tuple of integers is an `array<i64>`, one of booleans an `array<i1>`."""
    if isinstance(value, tuple | list):
        is_bool = bool(value) and all(isinstance(each, bool) for each in value)
        return DenseArrayAttr.get(types.I1 if is_bool else types.I64, value)
    return attrs.of(value)


def has_side_effects(op: Operation) -> bool:
    """Returns whether an op must stay although nothing uses its results."""
    return op.name in EFFECTS


DIALECTS = (
    Dialect("stablehlo", (StableHLOConstantOp,), open_ops=class_of, attributes=SYNTAX),
    *(Dialect(name, open_ops=class_of) for name in ("cf", "chlo", "ml_program")),
)
"""The dialects of the ops in the table."""
