"""The tensors of a subgraph: their types, their names, and fields that neither can express."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from tfconvert.importers.tflite.buffers import Buffers, elements
from tfconvert.schema.dialects import quant, types
from tfconvert.schema.dialects.quant import BlockedType, Blocks, BlockwiseType, MultiAxisType, Uniform, UniformType
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.types import BF16, F16, F32, IntegerType, TensorType, UnrankedTensorType
from tfconvert.schema.tflite.reader import View, malformed
from tfconvert.schema.tflite.versions import Operand

_ROWS = {row.tflite: row for row in reversed(types.ELEMENT_TYPES) if row.tflite}

# Fields of `Tensor` that types, names and ops represent.
_IN_IR = frozenset(("shape", "type", "buffer", "name", "has_rank", "shape_signature", "is_variable"))

MAX_INDEX = 2**31 - 1

_BLOCKED: Mapping[str, type[BlockedType]] = {row.details: row for row in (BlockwiseType, MultiAxisType)}


@dataclass(slots=True)
class Tensor:
    """A tensor as the IR sees it.

    Attributes:
        type: The tensor type, its elements quantised perhaps.
        name: The name.
        buffer: Index of the buffer that may hold its value.
        is_variable: It holds state.
        fields: Further fields of its table.
        parts: The tensors that its type has as constants, by the names of the fields that refer to them.
    """

    type: TensorType | UnrankedTensorType
    name: str
    buffer: int
    is_variable: bool
    fields: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Tensor] = field(default_factory=dict)

    @property
    def operand(self) -> Operand:
        """The tensor as the rules for versions see it."""
        element = types.element_of(self.type)
        row = types.from_mlir(quant.storage_of(element))
        assert row is not None
        scales = element.data.scales if isinstance(element, UniformType) else ()
        return Operand(row.tflite, types.shape_of(self.type), scales, "sparsity" in self.fields)

    def stored_type(self, is_constant: bool) -> TensorType | None:
        """Returns the static type of the tensor's value as it is stored, `None` if it has none.

        Args:
            is_constant: A constant without dimensions is a scalar, whatever the file states otherwise.
        """
        shape = types.shape_of(self.type)
        if shape is None and is_constant:
            shape = ()
        if shape is None or not types.is_static(shape):
            return None
        storage = types.tensor(quant.storage_of(types.element_of(self.type)), shape)
        assert isinstance(storage, TensorType)
        return storage


class Tensors:
    """The tensors of one subgraph, each decoded when it is first looked up."""

    def __init__(self, views: list[View], buffers: Buffers) -> None:
        self._views = views
        self._buffers = buffers
        self._known: dict[int, Tensor] = {}

    def __len__(self) -> int:
        return len(self._views)

    def __getitem__(self, index: int) -> Tensor:
        """Returns a tensor."""
        known = self._known.get(index)
        if known is None:
            known = self._known[index] = self._build(index)
        return known

    def _build(self, index: int) -> Tensor:
        tensor = self._plain(index)
        kind, details = tensor.fields.get("quantization", {}).get("details", ("", {}))
        if kind in _BLOCKED:
            del tensor.fields["quantization"]["details"]
            tensor.fields = {key: value for key, value in tensor.fields.items() if value or key == "shape"}
            self._set_blocks(tensor, _BLOCKED[kind], details)
        return tensor

    def _plain(self, index: int) -> Tensor:
        if not 0 <= index < len(self._views):
            raise malformed(f"there is no tensor {index}")
        return _tensor(self._views[index])

    def _set_blocks(self, tensor: Tensor, kind: type[BlockedType], details: Mapping[str, Any]) -> None:
        """Replaces a tensor's element type by one that has its scales and zero points."""
        storage = types.element_of(tensor.type)
        if not _can_be_stored(storage):
            raise malformed(f"tensor {tensor.name!r} has blocks of {storage}, but only integers have")
        size = details.get("block_size", 0)
        if size < 0:
            raise malformed(f"tensor {tensor.name!r} has blocks of {size} elements")
        # Writers state 0, the format's default, or -1 where there are no zero points.
        zero_points = details.get("zero_points", 0)
        tensor.parts = {"scales": self._plain(details.get("scales", 0))}
        if zero_points > 0:
            tensor.parts["zero_points"] = self._plain(zero_points)
        elif zero_points < 0:
            own = tensor.fields.setdefault("quantization", {})
            own["details"] = (kind.details, {"zero_points": zero_points})
        constants = {name: self._constant(part) for name, part in tensor.parts.items()}
        if types.element_of(constants["scales"].type) not in (F16, BF16, F32):
            raise malformed(f"tensor {tensor.name!r} has scales that are not floats")
        numbers = tuple(details.get(kind.dimensions_field, ()))
        blocks = Blocks(storage, size, numbers, **constants)
        tensor.type = types.tensor(kind.get(blocks), types.shape_of(tensor.type))

    def _constant(self, tensor: Tensor) -> Constant:
        stored = tensor.stored_type(True)
        if stored is None or "sparsity" in tensor.fields or not self._buffers.place(tensor.buffer)[1]:
            raise malformed(f"tensor {tensor.name!r} holds scales or zero points, but is not a constant")
        return self._buffers.constant(tensor.buffer, stored)


def _tensor(view: View) -> Tensor:
    name: str = view["name"] or ""
    kind = view.name("type")
    if kind is None or kind not in _ROWS:
        raise malformed(f"tensor {name!r} has the type number {view['type']}, which this version does not know")
    shape, fields = _shape(view, name)
    stored = set(view.stored()) - _IN_IR
    if stored:
        fields.update((key, value) for key, value in view.tree().items() if key in stored)
    element: Attribute = _ROWS[kind].mlir
    quantization = _stripped(fields.pop("quantization", {}))
    uniform = _uniform(quantization, element, shape)
    if uniform is not None:
        element = UniformType.get(uniform)
    elif quantization:
        fields["quantization"] = quantization
    if fields.get("external_buffer", 0) > MAX_INDEX:
        raise malformed(f"tensor {name!r} has no external buffer {fields['external_buffer']}")
    fields = {key: value for key, value in fields.items() if value or key == "shape"}
    return Tensor(types.tensor(element, shape), name, view["buffer"], view["is_variable"], fields)


def _shape(view: View, name: str) -> tuple[tuple[int, ...] | None, dict[str, Any]]:
    """Returns the shape of a tensor's type, and the fields that it can't express."""
    shape, signature = (() if view[key] is None else tuple(view[key].tolist()) for key in ("shape", "shape_signature"))
    if signature and shape and len(signature) != len(shape):
        raise malformed(f"tensor {name!r} has a shape of rank {len(shape)} and one of rank {len(signature)}")
    if min((*shape, *signature), default=0) < -1:
        raise malformed(f"tensor {name!r} has the shape {list(signature or shape)}")
    elements(tuple(max(dim, 1) for dim in signature or shape))
    if not signature:
        return (shape if shape or view["has_rank"] else None), {}
    allocated = tuple(1 if dim < 0 else dim for dim in signature)
    return signature, {} if shape == allocated else {"shape": shape}


def _stripped(quantization: dict[str, Any]) -> dict[str, Any]:
    """Returns quantisation parameters without empty fields: writers fill in empty vectors."""
    return {key: value for key, value in quantization.items() if value not in ((), 0)}


def _can_be_stored(element: Attribute) -> TypeGuard[IntegerType]:
    """Returns whether elements of a type can represent real numbers."""
    return isinstance(element, IntegerType) and element.width <= 64 and element is not types.I1


def _uniform(fields: dict[str, Any], element: Attribute, shape: tuple[int, ...] | None) -> Uniform | None:
    """Returns quantisation parameters as a type has them, `None` if no type has such."""
    scales, zero_points = fields.get("scale", ()), fields.get("zero_point", ())
    if zero_points and len(scales) != len(zero_points):
        raise malformed(f"there are {len(scales)} scales, but {len(zero_points)} zero points")
    if not scales or len(scales) != len(zero_points) or set(fields) - {"scale", "zero_point", "quantized_dimension"}:
        return None
    if not _can_be_stored(element):
        return None
    if not all(0 < scale < math.inf for scale in scales):
        return None
    axis = fields.get("quantized_dimension", 0)
    if len(scales) == 1:
        return Uniform(element, scales, zero_points) if axis == 0 else None
    if shape is None or not 0 <= axis < len(shape) or shape[axis] != len(scales):
        return None
    return Uniform(element, scales, zero_points, axis)
