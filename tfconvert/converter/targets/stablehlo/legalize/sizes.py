"""Symbolic sizes while a module becomes StableHLO, and where each is available as a number at run time.

Before anything is rewritten, the analysis of shapes has found which unknown sizes are equal. This carries its symbols
over to the values that replace the analysed ones, and adds symbols for sizes that rewriting comes upon.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.shapes.symbolic import Symbols
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.dims import UNKNOWN
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import TensorType
from tfconvert.schema.ir.values import OpResult, Value

Dims = tuple[int, ...]
"""Sizes: at least 0 where known, else symbols."""


class Sizes:
    """The symbolic shapes of all values, the new ones included.

    Args:
        symbols: What is known of the values to replace.
    """

    __slots__ = (
        "_cached",
        "_computed",
        "_held",
        "_known",
        "_pairs",
        "_parts",
        "_scalars",
        "_seen",
        "_shapes",
        "_symbols",
    )

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._shapes: dict[Value, Dims] = {}
        self._scalars: dict[int, Value] = {}
        self._seen: dict[tuple[Block | None, int], tuple[Value, int]] = {}
        self._known: set[int] = set()
        self._cached: dict[tuple[Block, int], Value] = {}
        self._pairs: dict[frozenset[int], int] = {}
        self._parts: dict[int, frozenset[int]] = {}
        self._held: dict[Value, int] = {}
        self._computed: dict[tuple[Block, str, Value | int, Value | int], Value] = {}

    def find(self, dim: int) -> int:
        """Returns the number of a size, or the symbol of all equal sizes."""
        return self._symbols.find(dim)

    def fresh(self, scalar: Value | None = None) -> int:
        """Returns the symbol of a new size, which a scalar holds at run time; each scalar holds one."""
        if scalar in self._held:
            return self.find(self._held[scalar])
        new = self._symbols.known.fresh()
        if scalar is not None:
            self._scalars[new] = scalar
            self._held[scalar] = new
        return new

    def joined(self, one: int, other: int) -> int:
        """Returns the symbol of two broadcast sizes, the same one each time.

        Nothing changes a size that another one has been broadcast to already when the two meet again.
        """
        for joined, part in ((one, other), (other, one)):
            if part in map(self.find, self._parts.get(joined, ())):
                return joined
        pair = frozenset((one, other))
        if pair not in self._pairs:
            self._pairs[pair] = new = self.fresh()
            self._parts[new] = pair.union(*(self._parts.get(each, ()) for each in pair))
        return self._pairs[pair]

    def of(self, value: Value) -> Dims | None:
        """Returns a value's shape, a symbol for each unknown size; `None` if its rank is unknown."""
        found = self._shapes.get(value)
        if found is None:
            known = self._symbols.shape(value)
            declared = value.shape
            if known is None or declared is None or len(known) != len(declared):
                known = declared
            if known is None:
                return None
            found = tuple(self.fresh() if dim == -1 else dim for dim in known)
            self._shapes[value] = found
        return tuple(map(self.find, found))

    def elements(self, value: Value) -> Dims | None:
        """Returns the elements of a vector or scalar of integers, `UNKNOWN` those that are not known to be sizes."""
        constant = tensor_data.constant_of(value)
        if constant is not None and tensor_data.is_small(constant):
            array = tensor_data.to_array(constant)
            return tuple(array.reshape(-1).tolist()) if array.dtype.kind in "iu" else None
        found = self._symbols.known.partials.get(value)
        return None if found is None else tuple(each if each >= UNKNOWN else self.find(each) for each in found)

    def note(self, value: Value, dims: Sequence[int]) -> None:
        """Notes the shape of a new value, and that its sizes may be read from it."""
        self._shapes[value] = tuple(dims)
        self.see(value)

    def see(self, value: Value) -> None:
        """Notes that the unknown sizes of a value may be read from it by what comes after it."""
        for axis, dim in enumerate(self.of(value) or ()):
            if dim < UNKNOWN:
                self._seen.setdefault((_block_of(value), dim), (value, axis))
                self._known.add(dim)

    def replace(self, old: Value, new: Value) -> None:
        """Notes that a value replaces an analysed one: facts about either hold for both."""
        partials = self._symbols.known.partials
        if old in partials:
            partials.setdefault(new, partials[old])
        before, after = self.of(old), self.of(new)
        if before is None or after is None or len(before) != len(after):
            return
        for one, other in zip(before, after, strict=True):
            if one != other:
                self._equate(one, other)
        dims = tuple(map(self.find, after))
        if isinstance(new, OpResult) and isinstance(new.type, TensorType):
            new.type = types.tensor(new.type.element_type, static_shape(dims))
        self.note(new, dims)

    def _equate(self, one: int, other: int) -> None:
        one, other = self.find(one), self.find(other)
        is_available = other >= 0 or other in self._scalars or other in self._known
        self._symbols.equate(*((one, other) if is_available else (other, one)))

    def cached(self, block: Block, dim: int) -> Value | None:
        """Returns the scalar that holds a size already, in a block or one around it."""
        scalar = self._scalars.get(dim)
        around: Block | None = block
        while around is not None:
            found = self._cached.get((around, dim))
            if found is not None or (scalar is not None and _block_of(scalar) is around):
                return found or scalar
            around = _around(around)
        return None

    def cache(self, block: Block, dim: int, scalar: Value) -> None:
        """Notes that a scalar holds a size from here on."""
        self._cached[block, dim] = scalar
        self._held.setdefault(scalar, dim)

    def computed(self, block: Block, name: str, one: Value | int, other: Value | int) -> Value | None:
        """Returns the earlier result of an op on two scalars, in a block or one around it."""
        around: Block | None = block
        while around is not None:
            found = self._computed.get((around, name, one, other))
            if found is not None:
                return found
            around = _around(around)
        return None

    def keep(self, block: Block, name: str, one: Value | int, other: Value | int, result: Value) -> None:
        """Notes the result of an op on two scalars for the ops that follow."""
        self._computed[block, name, one, other] = result

    def place(self, block: Block, dim: int) -> tuple[Value, int] | None:
        """Returns a value that has a size, and the axis, if it is in a block or one around it."""
        around: Block | None = block if dim in self._known else None
        while around is not None:
            found = self._seen.get((around, dim))
            if found is not None:
                return found
            around = _around(around)
        return None


def _block_of(value: Value) -> Block | None:
    owner = value.owner
    return owner.parent if isinstance(owner, Operation) else owner


def _around(block: Block) -> Block | None:
    parent = block.parent_op()
    return None if parent is None or parent.name == "func.func" else parent.parent


def static_shape(dims: Sequence[int]) -> Shape:
    """Returns sizes as types have them, -1 for every unknown one."""
    return tuple([dim if dim >= 0 else -1 for dim in dims])
