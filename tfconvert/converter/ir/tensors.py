"""Tensors of formulas that become `tf` ops: those of one block, whose types are inferred as they are created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np

from tfconvert.converter.ir.constants import integers
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.ops.call import call_of
from tfconvert.ops.declaration import Formula, keywords
from tfconvert.ops.folding import fold
from tfconvert.ops.formula import PREDICATES, Tensor
from tfconvert.ops.operands import Known, Operands
from tfconvert.ops.registry import infer_shapes, infer_values
from tfconvert.schema.dialects import dims, tensor_data, tf, types
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value
from tfconvert.schema.tensorflow import op_defs


class EmittedTensor(Tensor):
    """A value in a formula.

    Attributes:
        builder: Inserts the ops.
        value: The value.
        known: The facts of the values of the formula.
    """

    __slots__ = ("builder", "known", "value")

    def __init__(self, builder: TFBuilder, value: Value, known: Known | None = None) -> None:
        self.builder = builder
        self.value = value
        self.known = Known() if known is None else known

    @property
    def shape(self) -> Shape | None:
        return self.value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return types.numpy_dtype(self.value.element)

    @property
    def constant(self) -> tensor_data.Array | None:
        found = tensor_data.constant_of(self.value)
        return None if found is None else tensor_data.to_array(found)

    def produced(self, name: str) -> Sequence[Self] | None:
        owner = self.value.owner
        if not isinstance(owner, Operation) or owner.name != f"tf.{name}":
            return None
        return [self._of(operand) for operand in owner.operands]

    def of(self, array: tensor_data.Array) -> Self:
        return self._of(self.builder.constant(array))

    def _apply(self, name: str, *operands: Self | float) -> Self:
        tensors = [each for each in operands if isinstance(each, EmittedTensor)]
        # A choice begins with its condition, which says nothing of the numbers' type.
        element = tensors[-1].value.element
        values = [
            each.value if isinstance(each, EmittedTensor) else self.builder.scalar(each, element) for each in operands
        ]
        if all(tensor_data.constant_of(each) is not None for each in values):
            return self.op(name, *map(self._of, values))  # type: ignore[no-any-return]
        shape, *others = map(self._note, values)
        for other in others:
            shape = dims.broadcast(shape, other)
        result = self.builder.tf(name, values, _typed(types.I1 if name in PREDICATES else element, shape))
        self.known.note(result, shape)
        return self._of(result)

    def op(self, name: str, *operands: Self | Any, results: int = 1, **attributes: Any) -> Any:
        values = [each.value if isinstance(each, EmittedTensor) else self._constant(each) for each in operands]
        elements = result_elements(name, values, results, attributes)
        kept = {key: value for key, value in attributes.items() if not isinstance(value, np.dtype)}
        op = tf.build(name, values, list(map(_unranked, elements)), kept)
        for value in values:
            self._note(value)
        view = Operands(op, self.known)
        shapes = infer_shapes(view, [None] * results)
        for result, element, shape in zip(op.results, elements, shapes, strict=True):
            result.type = _typed(element, shape)
        constants = [constant for value in values if (constant := tensor_data.constant_of(value)) is not None]
        folded = fold(op, constants, shapes) if len(constants) == len(values) else None
        if folded is not None:
            op.drop_operands()
            found = [self._of(self.builder.constant(constant)) for constant in folded]
            return found if results > 1 else found[0]
        self.builder.insert(op)
        for result, shape, partial in zip(op.results, shapes, infer_values(view, shapes), strict=True):
            self.known.note(result, shape)
            if partial is not None:
                self.known.partials[result] = partial
        return [self._of(result) for result in op.results] if results > 1 else self._of(op.results[0])

    def _of(self, value: Value) -> Self:
        return type(self)(self.builder, value, self.known)

    def _constant(self, number: Any) -> Value:
        return self.builder.constant(number if isinstance(number, np.ndarray) else integers(number, np.dtype(np.int32)))

    def _note(self, value: Value) -> Shape | None:
        """Returns an operand's shape with symbols; notes what is known of one from outside of the formula."""
        if value not in self.known.shapes:
            self.known.note(value, value.shape)
            constant = tensor_data.constant_of(value)
            if constant is not None:
                self.known.constants[value] = constant
        return self.known.shapes[value]


def expand(formula: Formula, op: Operation, builder: TFBuilder) -> Sequence[Value]:
    """Inserts what computes the same as an op; returns the values that replace its results.

    Args:
        formula: Takes the op's operands, and by name the attributes that it has defaults for, and `result_shape`, the
            shape of the first result as its type has it.
        op: The op.
        builder: Inserts ops.
    """
    known = Known()
    tensors = [EmittedTensor(builder, operand, known) for operand in op.operands]
    attributes = {**call_of(op, ()).attributes, "result_shape": op.results[0].shape}
    found = formula(*tensors, **keywords(formula, attributes))
    values = [each.value for each in ((found,) if isinstance(found, EmittedTensor) else found)]
    for value, old in zip(values, op.results, strict=True):
        if isinstance(value, OpResult):
            value.type = types.most_specific(value.type, old.type)
    return values


@cache
def _unranked(element: Attribute) -> Attribute:
    """Returns the type of a result until its shape is known; keeping it spares creating one for each op."""
    return types.tensor(element, None)


def _typed(element: Attribute, shape: Shape | None) -> Attribute:
    return types.tensor(element, None if shape is None else dims.without_symbols(shape))


def result_elements(name: str, values: Sequence[Value], results: int, attributes: Mapping[str, Any]) -> list[Attribute]:
    """Returns the element types of an op's results, from its definition.

    Args:
        name: The op.
        values: Its operands.
        results: How many results it has.
        attributes: Its attributes; those that are types as numpy dtypes.
    """
    signature = _signature(name)
    given: dict[str, Attribute] = {}
    at, more = 0, len(values) - len(signature.inputs)
    for kind, is_list in signature.inputs:
        if kind:
            given.setdefault(kind, values[at].element)
        at += 1 + (more if is_list else 0)
    for kind, default in signature.attributes:
        if kind in attributes:
            given[kind] = types.from_dtype(np.dtype(attributes[kind])).mlir
        elif default is not None:
            given.setdefault(kind, default)
    elements: list[Attribute] = []
    for kind, fixed, is_list in signature.outputs:
        element = given[kind] if fixed is None else fixed
        elements += [element] * (1 + results - len(signature.outputs) if is_list else 1)
    return elements


class _Signature(NamedTuple):
    """The element types of an op's definition.

    Attributes:
        inputs: The attribute that is the type of each operand, if any, and whether that is a list.
        attributes: The attributes that are types, with their defaults.
        outputs: The attribute that is the type of each result, or the type, and whether that is a list.
    """

    inputs: Sequence[tuple[str, bool]]
    attributes: Sequence[tuple[str, Attribute | None]]
    outputs: Sequence[tuple[str, Attribute | None, bool]]


@cache
def _signature(name: str) -> _Signature:
    definition = op_defs.lookup(name)
    assert definition is not None, f"TensorFlow has an op {name}"
    return _Signature(
        [(each.type_attr, bool(each.number_attr)) for each in definition.input_arg],
        [(each.name, types.element_type(each.default_value.type)) for each in definition.attr if each.type == "type"],
        [
            (each.type_attr, None if each.type_attr else types.element_type(each.type), bool(each.number_attr))
            for each in definition.output_arg
        ],
    )
