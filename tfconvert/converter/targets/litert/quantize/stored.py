"""Constants in other forms: each form of a constant is created once, however many operators use it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tfconvert.converter.ir.edit import erase
from tfconvert.converter.ir.extent import extent
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.targets.litert.quantize import weights
from tfconvert.converter.targets.litert.quantize.hybrid import Form, size_of
from tfconvert.schema.diagnostics import NOTE, WARNING, Diagnostic
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.locations import found_at, node_of
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

HALF = Form(16, dequantized=True)
"""16-bit floats, which operators get as 32-bit floats."""

_LARGEST_HALF = float(np.finfo(np.float16).max)

# The contents of a constant's buffer, and the constant's type.
_Stored = tuple[Constant, Attribute]


class StoredConstants:
    """The constants of a module in the forms that operators take instead of 32-bit floats.

    Attributes:
        counts: How many constants got each form.
        notes: Why others stay floats, and where accuracy was lost.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.notes: list[Diagnostic] = []
        self._values: dict[tuple[Value, Form], Value] = {}
        self._plains: dict[tuple[Value, Form], Value] = {}
        self._stored: dict[tuple[Constant, Form], _Stored | None] = {}
        self._replaced: dict[Value, None] = {}

    def can_be(self, value: Value, form: Form, user: Operation) -> bool:
        """Returns whether a constant can have a form: it can't if some of its elements are not finite.

        Args:
            value: The constant, of 32-bit floats.
            form: The form.
            user: The operator that takes it, for notes.
        """
        constant, plain = tensor_data.constant_of(value), form._replace(dequantized=False)
        assert constant is not None
        key = (constant, plain)
        if key not in self._stored:
            self._stored[key] = self._half(constant, user) if form.bits == 16 else _integers(constant, plain)
            if self._stored[key] is None:
                self._note(user, f"a constant of {size_of(value)} elements stays a float: not all of them are finite")
        return self._stored[key] is not None

    def refuses(self, value: Value) -> bool:
        """Returns whether a constant was found not to have a form that an operator would take."""
        constant = tensor_data.constant_of(value)
        return any(key is constant and stored is None for (key, _), stored in self._stored.items())

    def get(self, value: Value, form: Form) -> Value:
        """Returns a constant in a form that it can have."""
        known = self._values.get((value, form))
        if known is None:
            self.counts[str(form)] += 1
            plain = self._plain(value, form._replace(dequantized=False))
            known = self._values[value, form] = _dequantized(value, plain) if form.dequantized else plain
        return known

    def erase_unused(self) -> None:
        """Erases the constants that nothing uses as floats any more."""
        for value in self._replaced:
            if value.is_unused and isinstance(value.owner, Operation):
                erase(value.owner)
        self._replaced.clear()
        self._values.clear()
        self._plains.clear()

    def _plain(self, value: Value, form: Form) -> Value:
        """Returns a constant in a form before any `DEQUANTIZE`."""
        known = self._plains.get((value, form))
        if known is None:
            constant = tensor_data.constant_of(value)
            stored = self._stored[constant, form] if constant is not None else None
            assert stored is not None
            self._replaced[value] = None
            new = tfl.constant(stored[0], result_type=stored[1])
            known = self._plains[value, form] = _builder(value).insert(new).results[0]
        return known

    def _half(self, constant: Constant, user: Operation) -> _Stored | None:
        found = extent(constant)
        if not found.is_finite:
            return None
        largest = max(-float(found.low[0]), float(found.high[0]))
        if largest > _LARGEST_HALF:
            message = f"a constant has elements up to {largest:.3g}, 16-bit floats end at {_LARGEST_HALF:.0f}"
            self._note(user, message, WARNING, "exclude the operator if these elements matter")
        shape = tensor_data.as_handle(constant).shape
        stored = tensor_data.defer("half", (constant,), shape, element=types.F16)
        return stored, stored.type

    def _note(self, user: Operation, message: str, severity: str = NOTE, hint: str = "") -> None:
        self.notes.append(found_at(user, "inexact-weight", message, hint)._replace(severity=severity))


def _integers(constant: Constant, form: Form) -> _Stored | None:
    quantized = weights.quantize_weight(constant, form.axis, form.bits)
    return None if quantized is None else (quantized.stored, quantized.type)


def _dequantized(value: Value, stored: Value) -> Value:
    """Returns the 32-bit floats of a constant in another form."""
    builder = _builder(value)
    builder.location = NameLoc.get(f"{node_of(builder.location) or 'constant'}/dequantized", builder.location)
    return builder.tfl("dequantize", (stored,), value.type)


def _builder(value: Value) -> TFLBuilder:
    owner = value.owner
    assert isinstance(owner, Operation)
    return TFLBuilder(owner)
