"""Checks the relations of an op: that its written types are those that its shape function infers, and its rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tfconvert.ops import registry
from tfconvert.ops.declaration import OpDeclaration
from tfconvert.ops.operands import Known, Operands, ShapeFunction
from tfconvert.ops.shape_functions import broadcasting
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.dims import MismatchError, broadcast, compatible, text
from tfconvert.schema.dialects.relations import calls, stablehlo_dimensions
from tfconvert.schema.dialects.relations.view import Plain, View
from tfconvert.schema.dialects.tf_attributes import PlaceholderAttr
from tfconvert.schema.dialects.tfl import TFLOp, option_fields
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.builtin import SymbolTable
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import NONE
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.schema.tflite import operators
from tfconvert.schema.tflite.tables import Field


def check(op: Operation, symbols: Callable[[], SymbolTable], *, with_elements: bool = True) -> None:
    """Checks the relations between an op's operands, results, attributes and callees.

    Args:
        op: An op that keeps to its definition otherwise.
        symbols: Returns the symbols around it.
        with_elements: Whether `tfl` ops may have no element types but those that the dialect lists.
    """
    if isinstance(op, TFLOp):
        _check_tfl(op, with_elements)
    elif op.name.startswith("tf."):
        declaration = registry.declaration(op.name[len("tf.") :])
        if declaration is not None:
            _check_tf(op, declaration)
    else:
        stablehlo_dimensions.check(op)
    calls.check(op, symbols)


def _check_tf(op: Operation, declaration: OpDeclaration) -> None:
    from tfconvert.schema.dialects import tf_verify

    if declaration.relations:
        values = tf_verify.values_by_argument(op, declaration.name)
        op_def = op_defs.lookup(declaration.name)
        if values is not None and op_def is not None:
            view = View(op, values, lambda attribute: _default(op_def, attribute))
            for rule in declaration.relations:
                rule(view)
    # What an attribute of a generic function is, its calls say.
    if (
        declaration.verified
        and declaration.shape
        and not any(isinstance(value, PlaceholderAttr) for value in op.properties.values())
    ):
        _check_shapes(op, declaration.shape)


def _check_shapes(op: Operation, function: ShapeFunction, *, with_results: bool = True) -> None:
    """Checks that operands don't contradict each other, and that results have the types that they determine."""
    known = Known()
    for value in op.operands:
        known.note(value, value.shape)
        constant = tensor_data.constant_of(value)
        if constant is not None:
            known.constants[value] = constant
    try:
        shapes = function(Operands(op, known))
    except MismatchError as mismatch:
        raise VerifyError(f"{op.name}: {mismatch}, found operands {', '.join(map(str, op.operand_types))}") from None
    if not with_results:
        return
    if function is broadcasting and None in shapes:
        shapes = (_at_the_end(types.shape_of(op.result_types[0]), [known.shapes[value] for value in op.operands]),)
    for shape, result in zip(shapes, op.result_types, strict=True):
        if not compatible(shape, types.shape_of(result)):
            raise VerifyError(f"{op.name}: its operands make the shape {text(shape)}, but a result has type {result}")


def _at_the_end(made: Shape | None, operands: Sequence[Shape | None]) -> Shape | None:
    """Returns a result's shape with the last dimensions that the operands of known rank determine.

    An operand of unknown rank may add dimensions in front of these.
    """
    both: Shape | None = ()
    for shape in operands:
        both = both if shape is None else broadcast(both, shape)
    if made is None or not both:
        return made
    return (*made[: max(0, len(made) - len(both))], *both)


def _check_tfl(op: TFLOp, with_elements: bool) -> None:
    from tfconvert.ops import tfl_relations
    from tfconvert.schema.dialects.relations import tfl_types

    operator = op.operator
    if operator is None:
        return
    values = {**_by_argument(operator.operands, op.operands), **_by_argument(operator.results, op.results)}
    fields = option_fields(op.op_name)
    view = View(op, values, lambda name: _field_default(fields.get(name)))
    tfl_types.check(view, operator, with_elements=with_elements)
    for rule in tfl_relations.RULES.get(operator.name, ()):
        rule(view)
    function = tfl_relations.shape_function(operator.name)
    if function is not None and (operator.name != "reshape" or len(op.operands) == 2):
        _check_shapes(op, function, with_results="recomputed" not in operator.traits)


def _by_argument(arguments: Sequence[operators.DeclaredValue], values: Sequence[Value]) -> dict[str, Sequence[Value]]:
    """Returns values by the names of the operator's arguments; those of a list are all that are left."""
    found: dict[str, Sequence[Value]] = {}
    for index, argument in enumerate(arguments):
        found[argument.name] = values[index:] if argument.variadic else values[index : index + 1]
    return {name: [value for value in each if value.type is not NONE] for name, each in found.items()}


def _field_default(field: Field | None) -> Plain | None:
    default = None if field is None else field.default
    return default if isinstance(default, int | float | str) else None


def _default(op_def: pb.OpDef, name: str) -> Plain | None:
    """Returns the default of an attribute that is a number, a string or a list of numbers."""
    for attr in op_def.attr:
        if attr.name == name and attr.HasField("default_value"):
            value = attr.default_value
            match attr.type:
                case "int":
                    return int(value.i)
                case "float":
                    return float(value.f)
                case "bool":
                    return int(value.b)
                case "string":
                    return value.s.decode("utf-8", "replace")
                case "list(int)":
                    return [int(item) for item in value.list.i]
    return None
