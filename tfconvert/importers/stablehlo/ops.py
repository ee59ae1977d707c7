"""Reads the ops of an artifact, in one pass over their section.

Attributes, types and strings are decoded when they are first used, locations when a message needs one, and the elements
of constants stay in the artifact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from tfconvert.importers.stablehlo.attributes import Attributes, text_of
from tfconvert.importers.stablehlo.bytecode import Bytecode
from tfconvert.importers.stablehlo.cursor import Cursor, malformed, truncated
from tfconvert.importers.stablehlo.locations import Locations
from tfconvert.importers.stablehlo.vhlo import VHLOOp, class_of, is_empty, stablehlo_properties, vhlo_op
from tfconvert.schema.dialects import sdy, stablehlo
from tfconvert.schema.dialects.foreign import StableHLOConstantOp
from tfconvert.schema.dialects.func import CallOp, FuncOp, ReturnOp
from tfconvert.schema.files import InputFile
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import DictionaryAttr, SymbolRefAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import NO_ATTRIBUTES, Operation
from tfconvert.schema.ir.types import I32, I64, FunctionType, TensorType
from tfconvert.schema.ir.values import Value

# How deep ops may be nested.
_MAX_DEPTH = 100

# The bits of what an op has.
_ATTRIBUTES, _RESULTS, _OPERANDS, _SUCCESSORS, _REGIONS, _USE_LISTS, _PROPERTIES = (1 << bit for bit in range(7))

# How many attributes ops may have for each byte of the artifact, and how many in any case.
_ATTRIBUTES_BY_BYTE, _FREE_ATTRIBUTES = 4, 10_000

# The commonest ops on sizes, of which JAX repeats the same ones wherever it needs a shape.
_OF_SIZES = frozenset({"stablehlo.concatenate", "stablehlo.get_dimension_size", "stablehlo.reshape"})

_FUNCTION = ("arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility")


class _Scope:
    """The values of a region.

    Attributes:
        base: The number of the first.
        declared: How many there are.
        values: Those that are defined so far, `None` for results of an op whose regions are being read.
        outer: The region around it, unless it is isolated.
        sizes: The results of ops on sizes, by the op's name, properties, type and operands.
    """

    __slots__ = ("base", "declared", "outer", "sizes", "values")

    def __init__(self, base: int, declared: int, outer: _Scope | None) -> None:
        self.base = base
        self.declared = declared
        self.values: list[Value | None] = []
        self.outer = outer
        self.sizes: dict[tuple[object, ...], Sequence[Value]] = {}

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


class _StoredOp(NamedTuple):
    """An op as it is stored.

    Attributes:
        attributes: The attributes that its definition doesn't name; in old versions all of them.
        properties: The index of the others, `None` in old versions.
        results: The types of its results.
        operands: Its operands.
        regions: Its regions.
        location: Its location.
    """

    attributes: Mapping[str, Attribute]
    properties: int | None
    results: Sequence[Attribute]
    operands: Sequence[Value]
    regions: Sequence[Region]
    location: Location

    def build(
        self,
        cls: type[Operation],
        properties: Mapping[str, Attribute] = NO_ATTRIBUTES,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Operation:
        """Returns the op, of a class, with properties and all attributes unless others are given."""
        others = self.attributes if attributes is None else attributes
        return cls(cls.NAME, self.operands, self.results, properties, others, self.regions, self.location)


_Builder = Callable[[_StoredOp], Operation]


class OpReader:
    """Reads the ops of a file.

    Args:
        file: The file.
        version: The version of StableHLO that it was written for.
        place: The file that it is in and its offset there, if the module must not keep the artifact in memory.
        outermost: The function that is called from outside, if nothing is needed of the module but what it computes:
            only arguments of this function have attributes, and ops on sizes are not repeated. Empty for all of it.
    """

    def __init__(
        self, file: Bytecode, version: tuple[int, ...], place: tuple[InputFile, int] | None = None, outermost: str = ""
    ) -> None:
        self._file = file
        self._outermost = outermost
        self._is_kept = place is None
        self._known = Attributes(file, version, place)
        self._locations = Locations(file)
        self._builders: list[_Builder | None] = [None] * len(file.op_names)
        # The names that are ops of StableHLO without a form of their own here: most ops.
        self._plain: list[VHLOOp | None] = [None] * len(file.op_names)
        # The names that are ops on sizes, unless all of them are needed.
        self._of_sizes: set[int] = set()
        self._special: Mapping[str, _Builder] = {
            "vhlo.call_v1": self._call,
            "vhlo.constant_v1": self._constant,
            "vhlo.func_v1": self._function,
            "vhlo.return_v1": self._return,
            "builtin.module": self._module,
        }
        self._properties: dict[tuple[int, int | None], Mapping[str, Attribute]] = {}
        # Each op has a copy of its attributes, though the artifact may have them once.
        self._attributes_left = _ATTRIBUTES_BY_BYTE * len(file.data) + _FREE_ATTRIBUTES
        self._depth = 0
        self._is_in_function = False

    def module(self) -> ModuleOp:
        """Returns the module, the only op of the outermost block."""
        cursor = self._file.ir()
        ops: list[Operation] = []
        if cursor.flagged() == (1, False):
            self._op(cursor, _Scope(0, 0, None), ops.append)
        if not ops or cursor.left or not isinstance(ops[0], ModuleOp):
            raise malformed("the artifact is not one module")
        if not self._is_kept:
            self._locations.decode()
        # These methods are a circle of references, which would keep the artifact in memory for a while.
        self._special, self._builders = {}, []
        return ops[0]

    def _op(self, cursor: Cursor, scope: _Scope, add: Callable[[Operation], object]) -> None:
        """Reads an op and adds it to its block."""
        name, mask, place = cursor.head()
        location = self._locations.at(place)
        build = (self._builders[name] if name < len(self._builders) else None) or self._builder(name)
        known = self._known
        attributes = self._dictionary(cursor.varint()) if mask & _ATTRIBUTES else NO_ATTRIBUTES
        properties = cursor.varint() if mask & _PROPERTIES else None
        if properties is not None and not self._file.op_names[name].has_blobs:
            attributes, properties = {**attributes, **self._dictionary(properties)}, None
        results = known.types(cursor.varints()) if mask & _RESULTS else ()
        operands = self._operands(cursor, scope) if mask & _OPERANDS else ()
        if mask & (_SUCCESSORS | _USE_LISTS):
            _skip_unused(cursor, mask, len(results))
        first = len(scope.values)
        if mask & _REGIONS or first + len(results) > scope.declared:
            scope.reserve(len(results))
        regions = self._regions(cursor, scope, build) if mask & _REGIONS else ()
        kind = self._plain[name]
        if kind is not None and (properties is not None or not kind.properties):
            key = None
            if name in self._of_sizes and len(results) == 1 and _is_of_sizes(results[0]) and not attributes:
                key = (name, properties, *results, *operands)
                if key in scope.sizes:
                    scope.values[first:] = scope.sizes[key]
                    return
            own = self._properties.get((name, properties))
            if own is None:
                own = self._own(name, kind, properties)
            op = kind.cls(kind.cls.NAME, operands, results, own, attributes, regions, location)
            if key is not None:
                scope.sizes[key] = op.results
        else:
            op = build(_StoredOp(attributes, properties, results, operands, regions, location))
        if results:
            scope.values[first:] = op.results
        add(op)

    def _dictionary(self, index: int) -> Mapping[str, Attribute]:
        found = self._known.attribute(index)
        if not isinstance(found, DictionaryAttr):
            raise malformed("the attributes of an op are not a dictionary")
        self._attributes_left -= len(found.data)
        if self._attributes_left < 0:
            raise malformed("ops share so many attributes that copies for each op are too large")
        return found.data

    def _operands(self, cursor: Cursor, scope: _Scope) -> list[Value]:
        base, values = scope.base, scope.values
        end = base + len(values)
        return [
            (values[number - base] if base <= number < end else None) or scope.value(number)
            for number in cursor.varints()
        ]

    def _regions(self, cursor: Cursor, scope: _Scope, build: _Builder) -> list[Region]:
        """Reads the regions of an op."""
        count, is_isolated = cursor.flagged()
        if count > cursor.left:
            raise truncated()
        if self._depth >= _MAX_DEPTH:
            raise malformed(f"ops are nested more than {_MAX_DEPTH} deep")
        outside = self._is_in_function
        self._is_in_function = build == self._function
        self._depth += 1
        inside = self._file.region(cursor) if is_isolated and self._file.has_lazy_regions else cursor
        regions = [self._region(inside, None if is_isolated else scope) for _ in range(count)]
        if inside is not cursor and inside.left:
            raise malformed("there are bytes after the regions of an op")
        self._depth -= 1
        self._is_in_function = outside
        return regions

    def _region(self, cursor: Cursor, outer: _Scope | None) -> Region:
        """Reads a region; values are numbered after all that the regions around it declare."""
        blocks = cursor.varint()
        if blocks == 0:
            return Region()
        if blocks > 1:
            raise malformed(f"a region has {blocks} blocks, no op of VHLO has more than one")
        declared = cursor.varint()
        scope = _Scope(outer.base + outer.declared if outer is not None else 0, declared, outer)
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

    def _builder(self, index: int) -> _Builder:
        """Returns what makes the ops of a name."""
        if index >= len(self._builders):
            raise malformed(f"there is no name {index} of ops")
        found = self._file.op_names[index]
        name = f"{found.dialect}.{found.name}"
        build = self._special.get(name)
        if build is None:
            is_shardy = found.dialect == sdy.NAME or name == sdy.CAST
            build = partial(self._shardy, name) if is_shardy else self._plain_builder(index, name)
        self._builders[index] = build
        return build

    def _plain_builder(self, index: int, name: str) -> _Builder:
        """Returns what makes the ops of StableHLO that have a name."""
        found = self._file.op_names[index]
        op = vhlo_op(found.name) if found.dialect == "vhlo" else None
        if op is None:
            raise self._known.unknown(f"the operation {name}")
        self._plain[index] = op
        if self._outermost and op.cls.NAME in _OF_SIZES:
            self._of_sizes.add(index)
        return partial(self._stablehlo, op)

    def _shardy(self, name: str, stored: _StoredOp) -> Operation:
        """Returns an op of Shardy with the properties that matter: the axes of a mesh, the value of a constant."""
        own: dict[str, Attribute] = dict(stored.attributes)
        names = {"sdy.mesh": ("mesh", "sym_name"), "sdy.constant": ("value",)}.get(name, ())
        if names and stored.properties is not None:
            own |= self._blob(names, stored.properties)
        return sdy.ShardyOp(name, stored.operands, stored.results, own, {}, stored.regions, stored.location)

    def _own(self, index: int, op: VHLOOp, properties: int | None) -> Mapping[str, Attribute]:
        """Decodes the properties of an op of StableHLO, once for all ops that share them."""
        own = NO_ATTRIBUTES
        if properties is not None and op.properties:
            own = stablehlo_properties(op, self._blob(op.properties, properties))
        self._properties[index, properties] = own
        return own

    def _stablehlo(self, op: VHLOOp, stored: _StoredOp) -> Operation:
        """Returns an op of an old version, which has its properties among its attributes."""
        found, others = self._separated(op.properties, stored.attributes)
        return stored.build(op.cls, stablehlo_properties(op, found), others)

    def _found(
        self, names: Sequence[str], stored: _StoredOp
    ) -> tuple[Mapping[str, Attribute], Mapping[str, Attribute]]:
        """Returns an op's properties, and its other attributes."""
        if stored.properties is None:
            return self._separated(names, stored.attributes)
        return self._blob(names, stored.properties), stored.attributes

    def _blob(self, names: Sequence[str], index: int) -> Mapping[str, Attribute]:
        return {name: self._known.attribute(found) for name, found in self._indices(names, index).items()}

    def _indices(self, names: Sequence[str], index: int) -> dict[str, int]:
        """Returns the indices of an op's properties."""
        cursor = self._file.properties(index)
        found = dict(zip(names, cursor.numbers(len(names)), strict=True))
        if cursor.left:
            raise self._known.unknown("an operation with more properties")
        return found

    def _separated(
        self, names: Sequence[str], attributes: Mapping[str, Attribute]
    ) -> tuple[Mapping[str, Attribute], Mapping[str, Attribute]]:
        """Returns the properties among the attributes of an old version, and the others."""
        for name in names:
            if name not in attributes:
                raise malformed(f"the property {name!r} of an op is missing")
        others = {name: value for name, value in attributes.items() if name not in names}
        return {name: attributes[name] for name in names}, others

    def _module(self, stored: _StoredOp) -> Operation:
        own = dict(stored.attributes)
        if stored.properties is not None:
            cursor = self._file.properties(stored.properties)
            for name in ("sym_name", "sym_visibility"):
                index, is_there = cursor.flagged()
                if is_there:
                    own[name] = self._known.attribute(index)
        return stored.build(ModuleOp, attributes=own)

    def _function(self, stored: _StoredOp) -> Operation:
        if stored.properties is None:
            found, others = self._separated(_FUNCTION, stored.attributes)
        else:
            indices, others = self._indices(_FUNCTION, stored.properties), stored.attributes
            if self._outermost:
                del indices["res_attrs"]
                if text_of(self._known.attribute(indices["sym_name"])) != self._outermost:
                    del indices["arg_attrs"]
            found = {name: self._known.attribute(index) for name, index in indices.items()}
        text_of(found["sym_name"])
        if not isinstance(found["function_type"], FunctionType):
            raise malformed("the type of a function is not that of functions")
        own = {name: value for name, value in found.items() if not is_empty(value)}
        return stored.build(FuncOp, own, others)

    def _call(self, stored: _StoredOp) -> Operation:
        found, others = self._found(("callee",), stored)
        return stored.build(CallOp, {"callee": SymbolRefAttr.get(text_of(found["callee"]))}, others)

    def _constant(self, stored: _StoredOp) -> Operation:
        found, others = self._found(("value",), stored)
        return stored.build(StableHLOConstantOp, found, others)

    def _return(self, stored: _StoredOp) -> Operation:
        return stored.build(ReturnOp if self._is_in_function else class_of(stablehlo.RETURN))


def _is_of_sizes(kind: Attribute) -> bool:
    """Returns whether a type may be that of sizes: integers, one or a list of them."""
    return isinstance(kind, TensorType) and kind.element_type in (I32, I64) and len(kind.shape) <= 1


def _skip_unused(cursor: Cursor, mask: int, results: int) -> None:
    """Skips what an op has besides."""
    if mask & _SUCCESSORS and cursor.varint():
        raise malformed("an op has successors, which no op of VHLO has")
    if mask & _USE_LISTS:
        _skip_use_lists(cursor, results)


def _skip_use_lists(cursor: Cursor, values: int) -> None:
    """Skips the order of the uses of values."""
    for _ in range(cursor.count() if values > 1 else 1):
        if values > 1:
            cursor.varint()
        length, _ = cursor.flagged()
        if length > cursor.left:
            raise truncated()
        cursor.numbers(length)
