"""Sizes of inputs that the user sets: shapes by name, and the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import dims, types

_SHAPE = "--input-shape (input_shapes)"
_BATCH = "--batch (batch)"


def override_shape(name: str, noted: types.Shape | None, wanted: Any, option: str = _SHAPE) -> types.Shape:
    """Returns the shape that the user sets for an input.

    Args:
        name: The input.
        noted: The shape that the model records.
        wanted: The user's shape; -1 or `None` leaves a dimension as the model has it.
        option: The option that sets it.

    Raises:
        ConversionError: The user's shape contradicts the model's (`shape-mismatch`), or isn't one (`wrong-option`).
    """
    if not isinstance(wanted, Sequence) or not all(dim is None or isinstance(dim, SupportsIndex) for dim in wanted):
        raise error(
            "wrong-option",
            f"the shape of {name!r} can't be {wanted!r}",
            hint="give a list of integers; -1 or None leaves a dimension as it is",
        )
    shape = tuple(-1 if dim is None or dim < 0 else int(dim) for dim in wanted)
    if noted is not None and (clash := dims.difference(shape, noted)):
        hint = "only dynamic dimensions (?) can be set" if option == _SHAPE and "?" in dims.text(noted) else ""
        raise error(
            "shape-mismatch",
            f"the shape {dims.text(shape)} for {name!r} contradicts the model's {dims.text(noted)}: {clash}",
            hint=hint or f"the model has only this {'shape' if option == _SHAPE else 'batch'}: leave {option} out",
        )
    return shape if noted is None else tuple(a if b < 0 else b for a, b in zip(noted, shape, strict=True))


def check_batch(batch: Any) -> None:
    """Checks that a batch is a number of examples.

    Raises:
        ConversionError: It is not (`wrong-option`).
    """
    if not isinstance(batch, int) or batch < 1:
        raise error("wrong-option", f"invalid batch size {batch}", hint="it must be at least 1")


def with_batch(name: str, tensor: types.AnyTensor, batch: int) -> types.AnyTensor:
    """Returns the type of an input with a batch, which scalars and tensors of unknown rank don't get.

    Args:
        name: The input.
        tensor: Its type.
        batch: The first dimension that it gets.
    """
    shape = types.shape_of(tensor)
    if not shape:  # The report names those.
        return tensor
    shape = override_shape(name, shape, [batch, *(-1 for _ in shape[1:])], _BATCH)
    return types.tensor(types.element_of(tensor), shape)
