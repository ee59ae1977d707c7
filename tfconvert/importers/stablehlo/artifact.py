"""A portable StableHLO artifact as a module of `func` and `stablehlo` ops: what JAX, Keras and torch_xla write.

Ops are read in one pass over their section. Attributes, types and strings are decoded when they are first used,
locations when a message needs one, and the elements of constants stay in the artifact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tfconvert.importers.stablehlo.attributes import Attributes, newer, text_of
from tfconvert.importers.stablehlo.bytecode import MAGIC, NEWEST, Bytecode, OpName
from tfconvert.importers.stablehlo.cursor import Cursor, malformed, truncated
from tfconvert.importers.stablehlo.locations import Locations
from tfconvert.importers.stablehlo.vhlo import VHLOOp, stablehlo_properties, vhlo_op
from tfconvert.ops.verification import first_broken
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import stablehlo
from tfconvert.schema.dialects.foreign import StableHLOConstantOp
from tfconvert.schema.dialects.func import CallOp, FuncOp, ReturnOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, StringAttr, SymbolRefAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import NO_ATTRIBUTES, Operation
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value

# How deep ops may be nested.
_MAX_DEPTH = 100

_PRODUCER = re.compile(r"StableHLO_v(\d{1,9})\.(\d{1,9})\.(\d{1,9})")

# The bits of what an op has.
_ATTRIBUTES, _RESULTS, _OPERANDS, _SUCCESSORS, _REGIONS, _USE_LISTS, _PROPERTIES = (1 << bit for bit in range(7))


def is_artifact(first_bytes: bytes | memoryview) -> bool:
    """Returns whether a file that begins with these bytes is MLIR bytecode; four are enough."""
    return bytes(first_bytes[: len(MAGIC)]) == MAGIC


def import_artifact(data: bytes | memoryview, name: str) -> ModuleOp:
    """Returns the module of a portable artifact, verified.

    Constants are views of the bytes, which must not change while the module is in use.

    Args:
        data: The artifact.
        name: Its name in errors.

    Raises:
        ConversionError: It is damaged (`malformed-artifact`), newer than what is known (`newer-artifact`), not
            portable, or contains something that has no form here (`unsupported-artifact`).
    """
    view = memoryview(data).cast("B")
    try:
        file = Bytecode(view)
        module = _Reader(file, _version(file.producer)).module()
    except ConversionError as problem:
        raise _named(problem, view, name) from None
    broken = first_broken(module)
    if broken is not None:
        raise ConversionError([broken.diagnostic("malformed-artifact")])
    return module


def _named(problem: ConversionError, data: memoryview, name: str) -> ConversionError:
    """Returns an error with the artifact's name; what can't be read of a newer container is not called damaged."""
    (told,) = problem.diagnostics
    cursor = Cursor(data[len(MAGIC) : len(MAGIC) + 9])
    if told.code == "malformed-artifact" and is_artifact(data) and cursor.left == 9 and cursor.varint() > NEWEST:
        return newer("the version of the bytecode")
    return ConversionError([told._replace(location=name)])


def _version(producer: str) -> tuple[int, ...]:
    """Returns the version of StableHLO that an artifact was written for."""
    match = _PRODUCER.match(producer)
    if match is None:
        raise error(
            "unsupported-artifact",
            f"the file is MLIR bytecode of {producer!r} and no portable artifact; its meaning changes between versions",
            hint="write it with stablehlo.serialize_portable_artifact, with jax.export, or as text",
        )
    return tuple(map(int, match.groups()))


@dataclass(slots=True)
class _Scope:
    """The values of a region.

    Attributes:
        base: The number of the first.
        declared: How many there are.
        values: Those that are defined so far, `None` for results of an op whose regions are being read.
        outer: The region around it, unless it is isolated.
    """

    base: int
    declared: int
    values: list[Value | None]
    outer: _Scope | None

    def value(self, number: int) -> Value:
        """Returns the value of a number."""
        scope: _Scope | None = self
        while scope is not None and number < scope.base:
            scope = scope.outer
        index = number - scope.base if scope is not None else -1
        found = scope.values[index] if scope is not None and 0 <= index < len(scope.values) else None
        if found is None:
            raise malformed(f"value {number} is used before it is defined")
        return found

    def reserve(self, count: int) -> None:
        """Reserves numbers for values."""
        if len(self.values) + count > self.declared:
            raise malformed("a region defines more values than it declares")
        self.values += [None] * count


# Makes an op of its attributes, the index of its properties, the types of results, operands, regions and the location.
_Builder = Callable[
    [Mapping[str, Attribute], int | None, Sequence[Attribute], Sequence[Value], Sequence[Region], Location], Operation
]


class _Reader:
    """Reads the ops of a file."""

    def __init__(self, file: Bytecode, version: tuple[int, ...]) -> None:
        self._file = file
        self._known = Attributes(file, version)
        self._locations = Locations(file)
        self._builders: list[_Builder | None] = [None] * len(file.op_names)
        self._properties: dict[tuple[int, int], Mapping[str, Attribute]] = {}
        self._special: Mapping[str, _Builder] = {
            "call_v1": self._call,
            "constant_v1": self._constant,
            "func_v1": self._function,
            "return_v1": self._return,
        }
        self._depth = 0
        self._is_function = False

    def module(self) -> ModuleOp:
        """Returns the module, the only op of the outermost block."""
        cursor = self._file.ir()
        scope = _Scope(0, 0, [], None)
        ops: list[Operation] = []
        count, has_arguments = cursor.flagged()
        if count != 1 or has_arguments:
            raise malformed("the artifact is not one module")
        self._op(cursor, scope, ops.append)
        if cursor.left or not isinstance(ops[0], ModuleOp):
            raise malformed("the artifact is not one module")
        return ops[0]

    def _op(self, cursor: Cursor, scope: _Scope, add: Callable[[Operation], object]) -> None:
        """Reads an op and adds it to its block."""
        name, mask, location = cursor.varint(), cursor.byte(), self._locations.at(cursor.varint())
        build = (self._builders[name] if name < len(self._builders) else None) or self._builder(name)
        known = self._known
        attributes = self._dictionary(cursor.varint()) if mask & _ATTRIBUTES else NO_ATTRIBUTES
        properties = None
        if mask & _PROPERTIES:
            properties = cursor.varint()
            if not self._file.op_names[name].has_blobs:
                attributes, properties = {**attributes, **self._dictionary(properties)}, None
        results = [known.type(cursor.varint()) for _ in range(cursor.count())] if mask & _RESULTS else ()
        operands = self._operands(cursor, scope) if mask & _OPERANDS else ()
        if mask & _SUCCESSORS and cursor.varint():
            raise malformed("an op has successors, which no op of VHLO has")
        if mask & _USE_LISTS:
            _skip_use_lists(cursor, len(results))
        first = len(scope.values)
        if results:
            scope.reserve(len(results))
        regions = self._regions(cursor, scope, build) if mask & _REGIONS else ()
        op = build(attributes, properties, results, operands, regions, location)
        if results:
            scope.values[first : first + len(results)] = op.results
        add(op)

    def _dictionary(self, index: int) -> Mapping[str, Attribute]:
        found = self._known.attribute(index)
        if not isinstance(found, DictionaryAttr):
            raise malformed("the attributes of an op are not a dictionary")
        return found.data

    def _operands(self, cursor: Cursor, scope: _Scope) -> list[Value]:
        base, values = scope.base, scope.values
        operands = []
        for _ in range(cursor.count()):
            number = cursor.varint()
            value = values[number - base] if base <= number < base + len(values) else None
            operands.append(scope.value(number) if value is None else value)
        return operands

    # Regions.

    def _regions(self, cursor: Cursor, scope: _Scope, build: _Builder) -> list[Region]:
        """Reads the regions of an op."""
        count, is_isolated = cursor.flagged()
        if count > cursor.left:
            raise truncated()
        if self._depth >= _MAX_DEPTH:
            raise malformed(f"ops are nested more than {_MAX_DEPTH} deep")
        outside = self._is_function
        self._is_function = build == self._function
        self._depth += 1
        inside = self._file.region(cursor) if is_isolated and self._file.has_lazy_regions else cursor
        regions = [self._region(inside, None if is_isolated else scope) for _ in range(count)]
        if inside is not cursor and inside.left:
            raise malformed("there are bytes after the regions of an op")
        self._depth -= 1
        self._is_function = outside
        return regions

    def _region(self, cursor: Cursor, outer: _Scope | None) -> Region:
        """Reads a region; values are numbered after all that the regions around it declare."""
        blocks = cursor.varint()
        if blocks == 0:
            return Region()
        if blocks > 1:
            raise malformed(f"a region has {blocks} blocks, no op of VHLO has more than one")
        declared = cursor.varint()
        scope = _Scope(outer.base + outer.declared if outer is not None else 0, declared, [], outer)
        count, has_arguments = cursor.flagged()
        block = self._arguments(cursor, scope) if has_arguments else Block()
        for _ in range(count):
            self._op(cursor, scope, block.add_op)
        return Region(block)

    def _arguments(self, cursor: Cursor, scope: _Scope) -> Block:
        """Returns a block with its arguments."""
        kinds, places = [], []
        for _ in range(cursor.count()):
            kind, has_location = cursor.varint(), True
            if self._file.arguments_may_lack_locations:
                kind, has_location = kind >> 1, bool(kind & 1)
            kinds.append(self._known.type(kind))
            places.append(self._locations.at(cursor.varint()) if has_location else UNKNOWN_LOC)
        scope.reserve(len(kinds))
        block = Block(arg_types=kinds)
        for argument, place in zip(block.args, places, strict=True):
            argument.location = place
        scope.values[:] = block.args
        if self._file.has_use_lists and cursor.byte():
            _skip_use_lists(cursor, len(kinds))
        return block

    # Ops.

    def _builder(self, index: int) -> _Builder:
        """Returns what makes the ops of a name."""
        if index >= len(self._builders):
            raise malformed(f"there is no name {index} of ops")
        name = self._file.op_names[index]
        build = self._builders[index] = self._new_builder(index, name)
        return build

    def _new_builder(self, index: int, name: OpName) -> _Builder:
        if name.dialect == "builtin" and name.name == "module":
            return self._module
        if name.dialect == "vhlo":
            special = self._special.get(name.name)
            if special is not None:
                return special
            op = vhlo_op(name.name)
            if op is not None:
                return partial(self._stablehlo, index, op)
        raise self._known.unknown(f"the operation {name.dialect}.{name.name}")

    def _stablehlo(
        self,
        index: int,
        op: VHLOOp,
        attributes: Mapping[str, Attribute],
        properties: int | None,
        results: Sequence[Attribute],
        operands: Sequence[Value],
        regions: Sequence[Region],
        location: Location,
    ) -> Operation:
        name = op.definition.name
        cls = stablehlo.class_of(name)
        assert cls is not None
        if not op.properties:
            return cls(name, operands, results, NO_ATTRIBUTES, attributes, regions, location)
        if properties is None:
            found, attributes = self._found(op.properties, attributes, properties)
            own: Mapping[str, Attribute] = stablehlo_properties(op, found)
        else:
            known = self._properties.get((index, properties))
            if known is None:
                found, attributes = self._found(op.properties, attributes, properties)
                known = self._properties[index, properties] = stablehlo_properties(op, found)
            own = known
        return cls(name, operands, results, own, attributes, regions, location)

    def _found(
        self, names: Sequence[str], attributes: Mapping[str, Attribute], properties: int | None
    ) -> tuple[Mapping[str, Attribute], Mapping[str, Attribute]]:
        """Returns the properties of an op of VHLO, and its other attributes; old versions don't separate them."""
        if properties is None:
            for name in names:
                if name not in attributes:
                    raise malformed(f"the property {name!r} of an op is missing")
            others = {name: value for name, value in attributes.items() if name not in names}
            return {name: attributes[name] for name in names}, others
        cursor = self._file.properties(properties)
        found = {name: self._known.attribute(cursor.varint()) for name in names}
        if cursor.left:
            raise self._known.unknown("an operation with more properties")
        return found, attributes

    def _module(
        self,
        attributes: Mapping[str, Attribute],
        properties: int | None,
        results: Sequence[Attribute],
        operands: Sequence[Value],
        regions: Sequence[Region],
        location: Location,
    ) -> Operation:
        own = dict(attributes)
        if properties is not None:
            cursor = self._file.properties(properties)
            for name in ("sym_name", "sym_visibility"):
                index, is_there = cursor.flagged()
                if is_there:
                    own[name] = self._known.attribute(index)
        return ModuleOp.create(
            operands=operands, result_types=results, attributes=own, regions=regions, location=location
        )

    def _function(
        self,
        attributes: Mapping[str, Attribute],
        properties: int | None,
        results: Sequence[Attribute],
        operands: Sequence[Value],
        regions: Sequence[Region],
        location: Location,
    ) -> Operation:
        names = ("arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility")
        found, attributes = self._found(names, attributes, properties)
        own = {name: found[name] for name in ("sym_name", "function_type")}
        if not isinstance(own["function_type"], FunctionType):
            raise malformed("the type of a function is none of functions")
        text_of(own["sym_name"])
        visibility = found["sym_visibility"]
        if not isinstance(visibility, StringAttr) or visibility.data:
            own["sym_visibility"] = visibility
        for name in ("arg_attrs", "res_attrs"):
            each = found[name]
            if not isinstance(each, ArrayAttr) or each.data:
                own[name] = each
        return FuncOp.create(
            operands=operands,
            result_types=results,
            properties=own,
            attributes=attributes,
            regions=regions,
            location=location,
        )

    def _call(
        self,
        attributes: Mapping[str, Attribute],
        properties: int | None,
        results: Sequence[Attribute],
        operands: Sequence[Value],
        regions: Sequence[Region],
        location: Location,
    ) -> Operation:
        found, attributes = self._found(("callee",), attributes, properties)
        return CallOp.create(
            operands=operands,
            result_types=results,
            properties={"callee": SymbolRefAttr.get(text_of(found["callee"]))},
            attributes=attributes,
            regions=regions,
            location=location,
        )

    def _constant(
        self,
        attributes: Mapping[str, Attribute],
        properties: int | None,
        results: Sequence[Attribute],
        operands: Sequence[Value],
        regions: Sequence[Region],
        location: Location,
    ) -> Operation:
        found, attributes = self._found(("value",), attributes, properties)
        return StableHLOConstantOp.create(
            operands=operands,
            result_types=results,
            properties=found,
            attributes=attributes,
            regions=regions,
            location=location,
        )

    def _return(
        self,
        attributes: Mapping[str, Attribute],
        properties: int | None,
        results: Sequence[Attribute],
        operands: Sequence[Value],
        regions: Sequence[Region],
        location: Location,
    ) -> Operation:
        cls: type[Operation] | None = ReturnOp if self._is_function else stablehlo.class_of(stablehlo.RETURN)
        assert cls is not None
        return cls.create(
            operands=operands, result_types=results, attributes=attributes, regions=regions, location=location
        )


def _skip_use_lists(cursor: Cursor, values: int) -> None:
    """Skips the order of the uses of values."""
    for _ in range(cursor.count() if values > 1 else 1):
        if values > 1:
            cursor.varint()
        length, _ = cursor.flagged()
        if length > cursor.left:
            raise truncated()
        for _ in range(length):
            cursor.varint()
