"""Compares the modules that we import of artifacts with those that jaxlib reads, op by op."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxlib.mlir import ir  # type: ignore[import-not-found,unused-ignore]
from jaxlib.mlir._mlir_libs import _jax_mlir_ext  # type: ignore[import-not-found,unused-ignore]
from jaxlib.mlir.dialects import stablehlo  # type: ignore[import-not-found,unused-ignore]

from tfconvert.importers.stablehlo.artifact import import_artifact
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I1
from tfconvert.schema.ir.values import Value

_NAMED = re.compile(r'loc\("((?:[^"\\]|\\.)*)"[()]')
# Numbers as jaxlib's text has them: in f32 attributes, and in quantized types.
_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:[eE][+-]?\d+)?")


def context() -> Any:
    """Returns a context with all dialects."""
    dialects = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(dialects)
    found = ir.Context()
    found.append_dialect_registry(dialects)
    found.load_all_available_dialects()
    found.allow_unregistered_dialects = True
    stablehlo.register_dialect(found)
    return found


def serialized(text: str, version: str) -> bytes | None:
    """Returns text as an artifact of a version, `None` if jaxlib can't write it for that version."""
    try:
        return bytes(stablehlo.serialize_portable_artifact_str(text, version))
    except ValueError:
        return None


def compare(data: bytes) -> int:
    """Compares our reading of an artifact with jaxlib's; returns the number of ops.

    Raises:
        ValueError: jaxlib can't read it.
    """
    with context() as known:
        theirs = list(_walk(stablehlo.deserialize_portable_artifact(known, data).operation))
        ours = list(import_artifact(data, "artifact").walk())
        assert [op.name for op in ours] == [op.name for op in theirs]
        numbers: dict[Value, int] = {}
        values: dict[int, int] = {}
        for one, other in zip(ours, theirs, strict=True):
            mine, its = list(_defined(one)), list(_defined_by(other))
            assert [str(value.type) for value in mine] == [_same(str(value.type)) for value in its]
            for value, another in zip(mine, its, strict=True):
                numbers[value] = values[hash(another)] = len(numbers)
        for one, other in zip(ours, theirs, strict=True):
            assert [numbers[value] for value in one.operands] == [values[hash(value)] for value in other.operands]
            _compare_attributes(one, other)
            named = _NAMED.match(str(other.location))
            if named is not None:
                assert place_of(one.location).node == named[1].partition("@")[0]
        return len(ours)


def _walk(op: Any) -> Iterator[Any]:
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _walk(inner.operation)


def _defined(op: Operation) -> Iterator[Value]:
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.args


def _defined_by(op: Any) -> Iterator[Any]:
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.arguments


def _same(text: str) -> str:
    """Returns text with numbers as we print them in types."""
    return _NUMBER.sub(lambda number: str(float(number[0])), text) if "!quant" in text else text


def _compare_attributes(one: Operation, other: Any) -> None:
    mine = {**one.properties, **one.attributes}
    try:
        its = {name: other.attributes[name] for name in list(other.attributes)}
    except TypeError:
        # jaxlib has no class for constants of complex numbers.
        text = other.get_asm(print_generic_op_form=True)
        assert all(str(value) in text for value in mine.values())
        return
    assert sorted(mine) == sorted(its), one.name
    for name, value in mine.items():
        if tensor_data.is_constant(value):
            _compare_constants(value, its[name])
        else:
            found, expected = str(value), str(its[name])
            # It leaves out the dimension 0 and writes some numbers with more digits.
            assert _rounded(found.replace(", index_vector_dim = 0>", ">")) == _rounded(expected), (one.name, name)


def _rounded(text: str) -> str:
    return _NUMBER.sub(lambda number: str(np.float32(number[0])), text)


def _compare_constants(value: tensor_data.Constant, other: Any) -> None:
    assert str(value.type) == str(other.type)
    array = tensor_data.to_array(value)
    found = np.asarray(list(other) if _is_listed(value) else _buffer(other))
    if found.dtype == object or found.size != array.size:
        # Types without an equivalent in Python's buffers.
        assert str(value) == str(other)
    else:
        assert array.astype(found.dtype).tobytes() == np.ascontiguousarray(found.reshape(array.shape)).tobytes()


def _is_listed(value: tensor_data.Constant) -> bool:
    """Returns whether jaxlib's buffer of a constant has other elements than the constant: several in a byte."""
    return value.type.element_type is I1


def _buffer(other: Any) -> Any:
    try:
        return np.array(ir.DenseElementsAttr(other))
    except (TypeError, ValueError):
        return None
