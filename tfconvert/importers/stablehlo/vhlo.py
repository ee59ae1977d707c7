"""The ops of VHLO, StableHLO's versioned form, and the ops of StableHLO that they are.

An op of VHLO has the properties of StableHLO's op of the same name, but for those that are groups of dimensions or of
numbers: VHLO has each by itself. So the table of StableHLO's ops determines VHLO's, and `vhlo_ops.tsv` has exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from tfconvert.importers.stablehlo.attributes import text_of
from tfconvert.importers.stablehlo.cursor import malformed
from tfconvert.schema import rows_of
from tfconvert.schema.dialects import stablehlo, tensor_data
from tfconvert.schema.dialects.op_table import Definition
from tfconvert.schema.dialects.stablehlo import (
    ConvAttr,
    DimensionNumbersAttr,
    DotAttr,
    EnumeratorAttr,
    GatherAttr,
    ScatterAttr,
)
from tfconvert.schema.dialects.stablehlo_types import STRUCTS, StructAttr
from tfconvert.schema.dialects.tensor_data import DenseElementsAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import (
    FALSE,
    TRUE,
    UNIT,
    ArrayAttr,
    DenseArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
)
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I1, I64, NONE, IntegerType

_TABLE = Path(__file__).parent / "vhlo_ops.tsv"

_GROUPS: Mapping[str, type[DimensionNumbersAttr]] = {"dot": DotAttr, "gather": GatherAttr, "scatter": ScatterAttr}

Properties = Mapping[str, Attribute]


class _Step(NamedTuple):
    """How to make a property of StableHLO's op.

    Attributes:
        name: Its name.
        make: Makes it of several of VHLO's, `None` if VHLO has it.
        convert: Changes its form.
        is_default: Whether a value is the same as no value.
    """

    name: str
    make: Callable[[Properties], Attribute | None] | None
    convert: Callable[[Attribute], Attribute] | None
    is_default: Callable[[Attribute], bool] | None


class VHLOOp(NamedTuple):
    """A version of an op.

    Attributes:
        definition: StableHLO's op.
        cls: The class of such ops.
        since: The first version of StableHLO that has it.
        properties: The names of its properties, in the order in which they are stored.
        plan: How to make each of StableHLO's properties.
    """

    definition: Definition
    cls: type[Operation]
    since: tuple[int, ...]
    properties: tuple[str, ...]
    plan: tuple[_Step, ...]


@cache
def _versions() -> Mapping[str, tuple[tuple[int, ...], frozenset[str], frozenset[str]]]:
    """Returns the rows of the table: the first version, and the properties that are missing or additional."""
    rows = {}
    for name, since, changes in rows_of(_TABLE):
        words = changes.split()
        missing = frozenset(word[1:] for word in words if word.startswith("-"))
        added = frozenset(word[1:] for word in words if word.startswith("+"))
        rows[name] = tuple(map(int, since.split("."))), missing, added
    return rows


def class_of(name: str) -> type[Operation]:
    """Returns the class of one of StableHLO's ops."""
    found = stablehlo.class_of(name)
    assert found is not None, name
    return found


@lru_cache(512)
def vhlo_op(name: str) -> VHLOOp | None:
    """Returns an op by its name in VHLO, `gather_v2`; `None` if it is not known."""
    stem, _, version = name.rpartition("_v")
    definition = stablehlo.definitions().get(f"stablehlo.{stem}")
    row = _versions().get(name)
    if definition is None or (row is None and version != "1"):
        return None
    since, missing, added = row or ((0, 9, 0), frozenset(), frozenset())
    names = {
        part
        for own, each in definition.properties.items()
        if own not in missing
        for part in _parts(definition, own, each.kind)
    }
    plan = tuple([_step(own, kind, is_optional=optional) for own, (kind, optional) in definition.properties.items()])
    return VHLOOp(definition, class_of(definition.name), since, tuple(sorted((names - missing) | added)), plan)


def _parts(definition: Definition, name: str, kind: str) -> Sequence[str]:
    """Returns VHLO's properties for one of StableHLO's."""
    if kind == "conv":
        return _CONVOLUTION
    if kind in _GROUPS:
        group = _GROUPS[kind]
        return (*group.ROLES, group.INDEX) if group.INDEX else group.ROLES
    if kind == "channel_handle":
        return ("channel_id",) if definition.properties[name].optional else ("channel_id", "channel_type")
    return STRUCTS["dot_algorithm"] if name == "algorithm" else (name,)


_CONVOLUTION = tuple(
    f"{side}_{role}"
    for side, roles in (
        ("input", ("batch_dimension", "feature_dimension", "spatial_dimensions")),
        ("kernel", ("input_feature_dimension", "output_feature_dimension", "spatial_dimensions")),
        ("output", ("batch_dimension", "feature_dimension", "spatial_dimensions")),
    )
    for role in roles
)


def stablehlo_properties(op: VHLOOp, found: Properties) -> dict[str, Attribute]:
    """Returns the properties of StableHLO's op; those with their default value are left out.

    Args:
        op: The op.
        found: VHLO's properties.
    """
    result: dict[str, Attribute] = {}
    for step in op.plan:
        value = found.get(step.name) if step.make is None else step.make(found)
        if value is None:
            continue
        if step.convert is not None:
            value = step.convert(value)
        if step.is_default is None or not step.is_default(value):
            result[step.name] = value
    if op.definition.name == "stablehlo.custom_call":
        _drop_empty_layouts(result)
    return result


def _step(name: str, kind: str, *, is_optional: bool) -> _Step:
    return _Step(
        name,
        _MAKERS.get(kind) or _MAKERS.get(name),
        _CONVERTERS.get(kind) or _CONVERTERS.get(name),
        _DEFAULTS.get(name, _is_false) if is_optional else None,
    )


def _drop_empty_layouts(properties: dict[str, Attribute]) -> None:
    """Removes the layouts of a custom call if neither operands nor results have any."""
    layouts = [properties.get(name) for name in _LAYOUTS]
    if all(isinstance(each, ArrayAttr) and not each.data for each in layouts):
        for name in _LAYOUTS:
            del properties[name]


_LAYOUTS = ("operand_layouts", "result_layouts")


def _is_false(value: Attribute) -> bool:
    return value is FALSE


def _all_ones(value: Attribute) -> bool:
    return isinstance(value, DenseArrayAttr) and bool(value.values) and set(value.values) == {1}


def _none_true(value: Attribute) -> bool:
    return isinstance(value, DenseArrayAttr) and bool(value.values) and not any(value.values)


def _all_zeros(value: Attribute) -> bool:
    return isinstance(value, DenseElementsAttr) and bool(value.data) and not any(value.data)


def is_empty(value: Attribute) -> bool:
    """Returns whether a property is an empty list, dictionary or string."""
    if isinstance(value, DenseArrayAttr):
        return not value.values
    return isinstance(value, ArrayAttr | DictionaryAttr | StringAttr) and not value.data


def _all_default(value: Attribute) -> bool:
    return isinstance(value, ArrayAttr) and all(
        isinstance(each, EnumeratorAttr) and each.value == "DEFAULT" for each in value
    )


def _is(number: int) -> Callable[[Attribute], bool]:
    return lambda value: isinstance(value, IntegerAttr) and value.value == number


def _is_no_type(value: Attribute) -> bool:
    return isinstance(value, EnumeratorAttr) and value.value == "NOTYPE"


def _is_usual_accuracy(value: Attribute) -> bool:
    if not isinstance(value, StructAttr) or len(value.entries) > 1:
        return False
    mode = value.of("mode")
    return isinstance(mode, EnumeratorAttr) and mode.value == "DEFAULT"


_DEFAULTS: Mapping[str, Callable[[Attribute], bool]] = {
    "api_version": _is(1),
    "backend_config": is_empty,
    "base_dilations": _all_ones,
    "called_computations": is_empty,
    "compare_type": _is_no_type,
    "composite_attributes": is_empty,
    "dimension": _is(-1),
    "known_expanding_dimensions": is_empty,
    "known_nonexpanding_dimensions": is_empty,
    "layout": is_empty,
    "lhs_dilation": _all_ones,
    "output_operand_aliases": is_empty,
    "padding": _all_zeros,
    "precision_config": _all_default,
    "result_accuracy": _is_usual_accuracy,
    "result_tilings": is_empty,
    "rhs_dilation": _all_ones,
    "source_target_pairs": lambda value: tensor_data.is_constant(value) and 0 in value.shape,
    "version": _is(0),
    "window_dilations": _all_ones,
    "window_dimensions": _all_ones,
    "window_reversal": _none_true,
    "window_strides": _all_ones,
}


def _list(value: Attribute) -> Sequence[int]:
    """Returns the elements of a list of integers or booleans, which are few."""
    if isinstance(value, DenseElementsAttr) and len(value.shape) == 1:
        if value.type.element_type is I64:
            return memoryview(value.data).cast("q").tolist()
        if value.type.element_type is I1:
            return [each != 0 for each in value.data]
    raise malformed("a short list of numbers is expected")


def _number(value: Attribute | None) -> int:
    if not isinstance(value, IntegerAttr):
        raise malformed("a number is expected")
    return value.value


def _array_of(element: IntegerType) -> Callable[[Attribute], Attribute]:
    return lambda value: DenseArrayAttr.get(element, _list(value))


def _symbol(value: Attribute) -> Attribute:
    return SymbolRefAttr.get(text_of(value))


def _symbols(value: Attribute) -> Attribute:
    if not isinstance(value, ArrayAttr):
        raise malformed("the names of functions are expected")
    return ArrayAttr.get([_symbol(each) if isinstance(each, StringAttr) else each for each in value])


def _unit(value: Attribute) -> Attribute:
    return UNIT if value is TRUE else FALSE


def _group(kind: type[DimensionNumbersAttr]) -> Callable[[Properties], Attribute]:
    def make(found: Properties) -> Attribute:
        dims: dict[str, Sequence[int] | int] = {role: _list(found[role]) for role in kind.ROLES if role in found}
        if kind.INDEX:
            dims[kind.INDEX] = _number(found.get(kind.INDEX))
        return kind.get(**dims)

    return make


def _convolution(found: Properties) -> Attribute:
    layouts = []
    for side, roles in (
        ("input", (("batch_dimension", "b"), ("feature_dimension", "f"))),
        ("kernel", (("input_feature_dimension", "i"), ("output_feature_dimension", "o"))),
        ("output", (("batch_dimension", "b"), ("feature_dimension", "f"))),
    ):
        spatial = _list(found[f"{side}_spatial_dimensions"])
        places = {dim: str(number) for number, dim in enumerate(spatial)}
        places |= {_number(found[f"{side}_{role}"]): letter for role, letter in roles}
        if sorted(places) != list(range(len(spatial) + 2)):
            raise malformed("the dimensions of a convolution are not distinct")
        layouts.append([places[dim] for dim in sorted(places)])
    if len({len(layout) for layout in layouts}) > 1:
        raise malformed("the layouts of a convolution have different ranks")
    return ConvAttr.get(*layouts)


def _channel(found: Properties) -> Attribute | None:
    identifier = _number(found.get("channel_id"))
    if "channel_type" not in found:
        return StructAttr.get("channel_handle", {"handle": identifier, "type": 0}) if identifier else None
    return StructAttr.get("channel_handle", {"handle": identifier, "type": _number(found["channel_type"])})


def _algorithm(found: Properties) -> Attribute | None:
    names = STRUCTS["dot_algorithm"]
    values = {name: found.get(name, NONE) for name in names}
    if any(value is NONE for value in values.values()):
        return None
    entries = {name: value.to_python() if isinstance(value, IntegerAttr) else value for name, value in values.items()}
    return StructAttr.get("dot_algorithm", entries)


_MAKERS: Mapping[str, Callable[[Properties], Attribute | None]] = {
    "algorithm": _algorithm,
    "channel_handle": _channel,
    "conv": _convolution,
    **{kind: _group(cls) for kind, cls in _GROUPS.items()},
}

_CONVERTERS: Mapping[str, Callable[[Attribute], Attribute]] = {
    "called_computations": _symbols,
    "i1s": _array_of(I1),
    "i64s": _array_of(I64),
    "symbol": _symbol,
    "unit": _unit,
}
