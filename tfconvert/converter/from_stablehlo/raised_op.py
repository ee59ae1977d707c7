"""The view of a StableHLO op that its row has: its operands as tensors of formulas, its properties as Python values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from tfconvert.converter.from_stablehlo.ranges import is_dimension, is_size
from tfconvert.converter.ir.constants import constant_array, integers
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.rewrite.pattern import Declined, need
from tfconvert.ops.operands import MAX_PARTIAL, Known
from tfconvert.schema.dialects import dims, tensor_data, types
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.dialects.stablehlo_properties import integer_of, ints_of, pairs_of, text_of
from tfconvert.schema.dialects.tensor_data import DenseElementsAttr
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import DictionaryAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

BROADCAST = "tf.BroadcastTo"

# Ops that keep the elements and their order.
_RESHAPES = frozenset({"tf.ExpandDims", "tf.Reshape", "tf.Squeeze"})

_REDUCTIONS = frozenset({"tf.All", "tf.Any", "tf.Max", "tf.Mean", "tf.Min", "tf.Prod", "tf.Sum"})


class RaisedOp:
    """A StableHLO op that is to be replaced.

    Attributes:
        op: The op.
        operands: Its operands.
    """

    __slots__ = ("_builder", "_is_part", "_known", "op", "operands")

    def __init__(self, op: Operation, known: Known) -> None:
        self.op = op
        self._is_part = False
        self._known = known
        self._builder = TFBuilder(op)
        self.operands = [self.tensor(operand) for operand in op.operands]

    def of_parts(self, operands: list[EmittedTensor]) -> RaisedOp:
        """Returns the same op on the real or on the imaginary parts of its operands."""
        view = RaisedOp(self.op, self._known)
        view.operands, view._is_part = operands, True
        return view

    def tensor(self, value: Value) -> EmittedTensor:
        """Returns a value as a tensor of a formula."""
        return EmittedTensor(self._builder, value, self._known)

    def constant(self, value: Any, dtype: Any = None) -> EmittedTensor:
        """Returns a constant; its dtype is the result's by default."""
        dtype = self.dtype() if dtype is None else np.dtype(dtype)
        array = integers(value, dtype) if dtype == np.int32 else np.asarray(value, dtype)
        return self.tensor(self._builder.constant(array, types.from_dtype(dtype).mlir))

    def constant_of(self, value: tensor_data.Constant) -> EmittedTensor:
        """Returns a constant whose value may be a handle."""
        return self.tensor(self._builder.constant(value))

    def reshaped(
        self, tensor: EmittedTensor, sizes: Sequence[int], shape: EmittedTensor | None = None
    ) -> EmittedTensor:
        """Returns a tensor in another shape, as `sizes` returns shapes.

        Args:
            tensor: The tensor.
            sizes: The shape; without `shape`, dimensions that only running tells are those of the tensor, at most one
                is another.
            shape: The same, a vector of integers.
        """
        sizes = tuple(sizes)
        own = self.sizes(tensor)
        while own != sizes and isinstance(owner := tensor.value.owner, Operation) and owner.name in _RESHAPES:
            source = self.tensor(owner.operands[0])
            if not all(size >= 0 or size in self.sizes(source) for size in sizes):
                break
            tensor, own = source, self.sizes(source)
        if own == sizes:
            return tensor
        found = self._reshaped(tensor, own, sizes, shape)
        self._known.note(found.value, sizes)
        return found

    def unsqueezed(self, tensor: EmittedTensor) -> tuple[EmittedTensor, list[int]] | None:
        """Returns the tensor that another is with dimensions of size 1 between its own, and where these are."""
        owner = tensor.value.owner
        if not isinstance(owner, Operation) or owner.name not in _RESHAPES:
            return None
        source = self.tensor(owner.operands[0])
        inserted = _ones_between(self.sizes(source), self.sizes(tensor))
        return (source, inserted) if inserted else None

    def _reshaped(self, tensor: EmittedTensor, own: Shape, sizes: Shape, shape: EmittedTensor | None) -> EmittedTensor:
        found = self._kept(tensor, sizes) or self._picked(tensor, sizes)
        if found is not None:
            return found
        target = dims.constant_target(sizes)
        if target is not None:
            constant = tensor_data.constant_of(tensor.value)
            if constant is not None and min(sizes, default=0) >= 0 and tensor_data.is_small(constant):
                array = tensor_data.to_array(constant).reshape(sizes)
                return self.tensor(self._builder.constant(array, tensor.value.element))
            return tensor.reshape(target)
        inserted, removed = _ones_between(own, sizes), _ones_between(sizes, own)
        if inserted is not None:
            for axis in inserted:
                tensor = tensor.expand_dims(axis)
            return tensor
        if removed is not None:
            return tensor.op("Squeeze", tensor, squeeze_dims=removed)  # type: ignore[no-any-return]
        if shape is None:
            of = tensor.op("Shape", tensor)
            parts = [
                self.constant(max(size, -1), "int32")
                if size >= 0 or size not in own
                else self.tensor(self._builder.pick(of.value, own.index(size)))
                for size in sizes
            ]
            shape = tensor.op("Pack", *parts)
        return tensor.op("Reshape", tensor, shape)  # type: ignore[no-any-return]

    def _kept(self, tensor: EmittedTensor, sizes: Shape) -> EmittedTensor | None:
        """Returns a reduction that keeps its dimensions, if that is the shape, and nothing else uses it."""
        owner = tensor.value.owner
        if not isinstance(owner, Operation) or owner.name not in _REDUCTIONS or not _is_used_once(tensor.value):
            return None
        axes = constant_array(owner.operands[1])
        x = self.tensor(owner.operands[0])
        if axes is None or len(sizes) != x.rank:
            return None
        of = self.sizes(x)
        if any(size != (1 if axis in axes else of[axis]) for axis, size in enumerate(sizes)):
            return None
        return x.op(owner.name.removeprefix("tf."), x, axes, keep_dims=True)  # type: ignore[no-any-return]

    def _picked(self, tensor: EmittedTensor, sizes: Shape) -> EmittedTensor | None:
        """Returns what a slice has at one index, if that is the shape, and nothing else uses the slice."""
        owner = tensor.value.owner
        if not isinstance(owner, Operation) or owner.name != "tf.Slice" or not _is_used_once(tensor.value):
            return None
        x, of = self.tensor(owner.operands[0]), self.sizes(tensor)
        begin = constant_array(owner.operands[1])
        cut = [axis for axis, (size, left) in enumerate(zip(self.sizes(x), of, strict=True)) if size != left]
        if begin is None or len(cut) != 1 or of[cut[0]] != 1 or sizes != of[: cut[0]] + of[cut[0] + 1 :]:
            return None
        (axis,) = cut
        rest = ((1 << x.rank) - 1) & ~(1 << axis)
        ends = [int(index) + (at == axis) for at, index in enumerate(begin)]
        masks = {"begin_mask": rest, "end_mask": rest, "shrink_axis_mask": 1 << axis}
        return x.op("StridedSlice", x, begin.tolist(), ends, [1] * x.rank, **masks)  # type: ignore[no-any-return]

    def dtype(self, result: int = 0) -> np.dtype[Any]:
        """Returns the dtype of a result."""
        dtype = np.dtype(types.numpy_dtype(self.op.results[result].element))
        if self._is_part and dtype.kind == "c":
            return np.dtype(np.float32 if dtype == np.complex64 else np.float64)
        return dtype

    def declared(self, result: int = 0) -> Shape:
        """Returns a result's shape by its type, -1 for dynamic dimensions."""
        shape = self.op.results[result].shape
        if shape is None:
            raise Declined("its result has no rank")
        return shape

    def sizes(self, tensor: EmittedTensor) -> Shape:
        """Returns a tensor's shape; equal dimensions that only running tells are equal numbers below -1."""
        shape = tensor.known.shapes.get(tensor.value)
        if shape is None:
            tensor.known.note(tensor.value, tensor.shape)
            shape = tensor.known.shapes[tensor.value]
        if shape is None:
            raise Declined("an operand has no rank")
        return shape

    def note(self, value: Value, shape: Shape | None) -> None:
        """Notes the shape of a value, as `sizes` returns it."""
        self._known.note(value, shape)

    def specialize(self, tensor: EmittedTensor, result: int) -> None:
        """Notes what the type of one of the op's results tells of the shape of what replaces it.

        Raises:
            ConversionError: The type contradicts it (`shape-mismatch`).
        """
        kind = self.op.results[result].type
        if tensor.value.type is kind:
            return
        if not dims.compatible_types(tensor.value.type, kind):
            what = f"its result has the type {kind}, but what it computes has the type {tensor.value.type}"
            raise error_at(self.op, "shape-mismatch", what)
        declared, own = types.shape_of(kind), tensor.shape
        if declared is None or (
            own is not None and all(one >= 0 or other < 0 for one, other in zip(own, declared, strict=True))
        ):
            return
        if isinstance(tensor.value, OpResult):
            tensor.value.type = types.most_specific(tensor.value.type, self.op.results[result].type)
            self.note(tensor.value, declared if own is None else tuple(map(max, self.sizes(tensor), declared)))

    def known(self, tensor: EmittedTensor, *, of_any_size: bool = False) -> np.ndarray[Any, np.dtype[Any]] | None:
        """Returns the elements of a constant, also of one that is repeated, `None` for other tensors.

        Args:
            tensor: The tensor.
            of_any_size: Whether constants are read that may be weights.
        """
        repeated = _repetition(tensor)
        constant = tensor_data.constant_of(tensor.value if repeated is None else repeated.operands[0])
        if constant is None or not (of_any_size or tensor_data.is_small(constant)):
            return None
        shape = tensor.value.shape
        if repeated is not None and (shape is None or -1 in shape):
            return None
        elements = tensor_data.to_array(constant)
        return elements if repeated is None else np.broadcast_to(elements, shape or ())

    def only_element(self, tensor: EmittedTensor) -> np.ndarray[Any, np.dtype[Any]] | None:
        """Returns the element that all of a constant's are."""
        value = tensor.value
        while isinstance(owner := value.owner, Operation) and (owner.name == BROADCAST or owner.name in _RESHAPES):
            value = owner.operands[0]
        constant = tensor_data.constant_of(value)
        return None if constant is None else _only_element(constant)

    def filled(self, value: Any, like: EmittedTensor) -> EmittedTensor:
        """Returns a number of the result's type, in the shape of a tensor."""
        sizes = self.sizes(like)
        shape = self.constant(sizes, "int32") if min(sizes, default=0) >= 0 else like.op("Shape", like)
        return self.broadcast(self.constant(value), shape, sizes)

    def elements(self, vector: EmittedTensor) -> tuple[int, ...]:
        """Returns the elements of a vector of sizes or positions as far as they are known.

        Those that only running tells are symbols, as in `sizes`, or `dims.UNKNOWN`.
        """
        found = self._partial(vector.value)
        if found is not None:
            return found
        if not vector.rank:
            return (dims.UNKNOWN,)
        sizes = self.sizes(vector)
        need(len(sizes) == 1 and sizes[0] >= 0, "the number of dimensions isn't known")
        return (dims.UNKNOWN,) * sizes[0]

    def _partial(self, value: Value) -> dims.Partial | None:
        if value not in self._known.partials and (constant := tensor_data.constant_of(value)) is not None:
            self._known.constants[value] = constant
        return self._known.partial(value)

    def target(self, shape: EmittedTensor, result: int = 0) -> Shape:
        """Returns a result's shape, as `sizes` does, which a vector holds.

        Raises:
            ConversionError: The result's type has other sizes (`shape-mismatch`).
        """
        found = tuple(map(dims.dim_of_element, self.elements(shape)))
        if not dims.compatible(found, self.declared(result)):
            what = f"its result has the type {self.op.results[result].type}, but it is given other sizes"
            raise error_at(self.op, "shape-mismatch", what)
        return tuple([size if known < 0 else known for size, known in zip(found, self.declared(result), strict=True)])

    def note_elements(self, tensor: EmittedTensor, elements: Sequence[int]) -> EmittedTensor:
        """Notes the elements of an integer scalar or vector, symbols among them; returns it."""
        self._known.partials[tensor.value] = tuple(elements)
        return tensor

    def size(self, tensor: EmittedTensor, axis: int) -> EmittedTensor:
        """Returns a dimension as an `i32`."""
        size = self.sizes(tensor)[axis]
        if size >= 0:
            return self.constant(size, "int32")
        shape = tensor.op("Shape", tensor)
        picked = self.tensor(self._builder.pick(shape.value, axis))
        self.note(picked.value, ())
        return self.note_elements(picked, [size])

    def is_size(self, scalar: EmittedTensor) -> bool:
        """Returns whether an integer is a size that only running tells, so is not negative."""
        return is_size(scalar.value, self._known)

    def is_dimension(self, scalar: EmittedTensor) -> bool:
        """Returns whether an integer is a dimension of a tensor, which is at least `smallest`."""
        return is_dimension(scalar.value, self._known)

    @property
    def smallest(self) -> int:
        """The smallest size that a dimension may have: 1 in modules of JAX, which requires it."""
        return self._known.smallest

    def scalars(self, vector: EmittedTensor) -> Sequence[EmittedTensor] | None:
        """Returns the scalars that a vector was made of, `None` if they are not to be seen."""
        known = self.known(vector)
        if known is not None:
            return [self.constant(each, known.dtype) for each in known] if known.size <= MAX_PARTIAL else None
        owner = vector.value.owner
        if not isinstance(owner, Operation):
            return None
        if owner.name == "tf.Pack":
            return [self.tensor(operand) for operand in owner.operands]
        scalar = self.tensor(owner.operands[0]) if owner.name == "tf.Reshape" else None
        return [scalar] if scalar is not None and scalar.shape == () else None

    def element(self, vector: EmittedTensor, index: int) -> EmittedTensor:
        """Returns an element of a vector of sizes or positions."""
        scalars = self.scalars(vector)
        if scalars is not None:
            return scalars[index]
        picked = self.tensor(self._builder.pick(vector.value, index))
        self.note(picked.value, ())
        return self.note_elements(picked, self.elements(vector)[index : index + 1])

    def equate(self, one: int, other: int) -> None:
        """Notes that two sizes, a symbol among them, are the same from here on."""
        self._known.equate(one, other)

    def name_size(self, name: str, found: EmittedTensor, operands: Sequence[EmittedTensor]) -> None:
        """Notes that a size computed from others is the same wherever it is computed.

        Args:
            name: The op that computed it from sizes, which are never negative, to one that isn't either.
            found: Its result.
            operands: Its operands.
        """
        terms = [self._partial(operand.value) for operand in operands]
        if self._partial(found.value) not in (None, (dims.UNKNOWN,)):
            return
        sizes = [term[0] for term in terms if term is not None and len(term) == 1 and _is_size(term[0])]
        if len(sizes) == len(terms):
            key = sorted(sizes) if name in _COMMUTATIVE else sizes
            self._known.partials[found.value] = (self._known.symbol_of((name, *key)),)

    def _property(self, name: str) -> Attribute | None:
        """Returns a property; of a composite or a custom call, also an attribute that it has for another op."""
        op = self.op
        for found in (op.properties.get(name), op.attributes.get(name)):
            if found is not None:
                return found
        for holder in (op.properties.get("composite_attributes"), *map(op.attributes.get, _HOLDERS)):
            if isinstance(holder, DictionaryAttr) and name in holder.data:
                return holder.data[name]
        return None

    def ints(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Returns a property that is a list of integers or booleans."""
        return ints_of(self._property(name), default)

    def integer(self, name: str, default: int = 0) -> int:
        """Returns a property that is an integer or a boolean."""
        return integer_of(self._property(name), default)

    def text(self, name: str) -> str:
        """Returns a property that is a string, an enumerator or a symbol; empty if it is absent."""
        return text_of(self._property(name))

    def pairs(self, name: str, rank: int) -> list[tuple[int, int]]:
        """Returns a property of two numbers for each dimension, such as padding; zeros if it is absent."""
        return pairs_of(self.op.properties.get(name), rank)

    def broadcast(self, tensor: EmittedTensor, shape: EmittedTensor, sizes: Shape) -> EmittedTensor:
        """Returns a tensor repeated to a shape; ops that broadcast by themselves use the tensor instead of it.

        Args:
            tensor: The tensor, whose dimensions are the last ones of the shape, equal to them or 1.
            shape: The shape, a vector of integers.
            sizes: The same, as `sizes` returns it.
        """
        own = self.sizes(tensor)
        if own == sizes:
            return tensor
        if tensor.dtype.kind in "iu" and len(sizes) == 1 and 0 <= sizes[0] <= MAX_PARTIAL:
            # Sizes and positions are followed element by element.
            return tensor.reshape(sizes) if sizes == (1,) else tensor.op("BroadcastTo", tensor, shape)
        owner = _repetition(tensor)
        if owner is not None:
            # In one step, so that ops that broadcast by themselves see what is repeated.
            return self.broadcast(self.tensor(owner.operands[0]), shape, sizes)
        more = len(sizes) - len(own)
        if own and sizes == (1,) * more + own:
            for _ in range(more):
                tensor = tensor.expand_dims(0)
            self._known.note(tensor.value, sizes)
            return tensor
        # It isn't folded: what is repeated is rarely needed as a whole.
        element = tensor.value.element
        kind = types.tensor(element, dims.without_symbols(sizes))
        repeated = self.tensor(self._builder.tf("BroadcastTo", (tensor.value, shape.value), kind))
        self._known.note(repeated.value, sizes)
        return repeated

    def elementwise(self, compute: Callable[..., EmittedTensor], *operands: EmittedTensor) -> EmittedTensor:
        """Returns the result of an op of TensorFlow that broadcasts its operands, without repeating them before.

        Args:
            compute: Applies the op.
            operands: Its operands, which have the result's shape, or are scalars.
        """
        if _are_equal_constants(operands):
            return compute(*operands)
        whole = self._whole(operands)
        found = list(map(self._unrepeated, operands))
        squeezed = self._squeezed(found)
        result = compute(*found) if squeezed is None else self.reshaped(compute(*squeezed), self._joined(found) or ())
        own = self.sizes(result)
        if own == whole:
            return result
        if len(own) < len(whole) or any(one == 1 != other for one, other in zip(own, whole, strict=True)):
            repeated = [old for old, new in zip(operands, found, strict=True) if old is not new]
            return self.broadcast(result, self._shape_of_repeated(repeated), whole)
        self._known.note(result.value, whole)
        return result

    def _squeezed(self, operands: Sequence[EmittedTensor]) -> list[EmittedTensor] | None:
        """Returns operands without dimensions of size 1 that a reshape made, `None` if they are not all made so."""
        joined = self._joined(operands) or ()
        if 1 not in joined:
            return None
        ones = {axis - len(joined) for axis, size in enumerate(joined) if size == 1}
        found, is_cheaper = [], False
        for operand in operands:
            sizes = self.sizes(operand)
            rank = len(sizes)
            target = tuple(size for axis, size in enumerate(sizes) if axis - rank not in ones)
            made = self.unsqueezed(operand)
            if made is None and rank and tensor_data.constant_of(operand.value) is None:
                return None
            is_cheaper |= made is not None and self.sizes(made[0]) == target
            found.append((operand, target))
        return [self.reshaped(operand, target) for operand, target in found] if is_cheaper else None

    def unrepeated(self, operands: Sequence[EmittedTensor]) -> Sequence[EmittedTensor]:
        """Returns operands of an op that broadcasts, with as few of them repeated as give the same shape."""
        whole = self._joined(operands)
        found = list(operands)
        for index, operand in enumerate(operands):
            found[index] = self._unrepeated(operand)
            if found[index] is not operand and self._joined(found) != whole:
                found[index] = operand
        return found

    def _unrepeated(self, operand: EmittedTensor) -> EmittedTensor:
        """Returns what is repeated: of a constant of equal elements, one of them."""
        owner = _repetition(operand)
        if owner is not None:
            return self.tensor(owner.operands[0])
        constant = tensor_data.constant_of(operand.value)
        if constant is None or not constant.shape:
            return operand
        element = _only_element(constant)
        if element is None:
            return operand
        return self.tensor(self._builder.constant(np.asarray(element), constant.type.element_type))

    def _shape_of_repeated(self, repeated: Sequence[EmittedTensor]) -> EmittedTensor:
        owners = [owner for each in repeated if (owner := _repetition(each)) is not None]
        if owners:
            return self.tensor(owners[0].operands[1])
        return self.constant(self.sizes(repeated[0]), "int32")

    def _joined(self, operands: Sequence[EmittedTensor]) -> Shape | None:
        shape: Shape | None = ()
        for operand in operands:
            own = self.sizes(operand)
            # Most have one shape, or are scalars.
            shape = own if not shape else dims.broadcast(shape, own) if own and own != shape else shape
        return shape

    def _whole(self, operands: Sequence[EmittedTensor]) -> Shape:
        """Returns the shape of operands that have the same, as far as one of them tells; some may be scalars."""
        shapes = [shape for operand in operands if (shape := self.sizes(operand))]
        return tuple(map(max, *shapes)) if len(shapes) > 1 else shapes[0] if shapes else ()


# Attributes of custom calls that hold those of the op that they stand for.
_HOLDERS = ("mhlo.attributes", "mhlo.backend_config", "stablehlo.attributes")

# Ops on two sizes that may be swapped.
_COMMUTATIVE = frozenset({"AddV2", "Maximum", "Minimum", "Mul"})


def _is_size(element: int) -> bool:
    """Returns whether an element of a vector of sizes is a number or a symbol that isn't negative."""
    return element >= 0 or element < dims.UNKNOWN


def _repetition(tensor: EmittedTensor) -> Operation | None:
    owner = tensor.value.owner
    return owner if isinstance(owner, Operation) and owner.name == BROADCAST else None


def _only_element(constant: tensor_data.Constant) -> np.ndarray[Any, np.dtype[Any]] | None:
    """Returns the element that all of a constant's are; large constants are not read."""
    if isinstance(constant, tensor_data.TensorData) and isinstance(constant.source, tensor_data.SplatSource):
        return np.asarray(constant.source.array(constant.dtype, ()))
    if isinstance(constant, DenseElementsAttr):
        array, data = tensor_data.to_array(constant), constant.data
        return array.reshape(-1)[0] if data and data == data[: array.itemsize] * array.size else None
    if not tensor_data.is_small(constant):
        return None
    flat = tensor_data.to_array(constant).reshape(-1).view()
    if flat.dtype.kind == "O" or not flat.size:
        return None
    words = flat.view(np.uint8).reshape(flat.size, -1)
    return flat[0] if (words[-1] == words[0]).all() and (words == words[0]).all() else None


def _are_equal_constants(operands: Sequence[EmittedTensor]) -> bool:
    """Returns whether tensors are constants of one shape, of more than one element."""
    first = operands[0].value.type
    return types.shape_of(first) != () and all(
        each.value.type is first and tensor_data.constant_of(each.value) is not None for each in operands
    )


# The number of uses of a value that are looked at, the dead ones among them.
_MAX_USES = 16


def _is_used_once(value: Value) -> bool:
    """Returns whether a value has at most one use, but for reshapes that nothing uses any more."""
    users = [use.operation for use in islice(value.uses, _MAX_USES + 1)]
    live = [user for user in users if user.name not in _RESHAPES or not _is_dead(user)]
    return len(users) <= _MAX_USES and len(live) <= 1


def _is_dead(reshape: Operation) -> bool:
    """Returns whether nothing uses a reshape, but for reshapes that nothing uses either."""
    reshapes = [reshape]
    for each in reshapes:
        users = [use.operation for use in islice(each.results[0].uses, _MAX_USES + 1)]
        reshapes += users
        if len(reshapes) > _MAX_USES or any(user.name not in _RESHAPES for user in users):
            return False
    return True


def _ones_between(own: Shape, sizes: Shape) -> list[int] | None:
    """Returns where dimensions of size 1 make one shape of another, `None` if that is more than these."""
    rest, ones = list(own), []
    for axis, size in enumerate(sizes):
        if rest and rest[0] == size:
            rest.pop(0)
        elif size == 1:
            ones.append(axis)
        else:
            return None
    return None if rest else ones


Rows = dict[str, Callable[[RaisedOp], Any]]
"""StableHLO op, without its prefix -> what computes it: a tensor, or a list of its results."""
