"""LiteRT's `STABLEHLO_SCATTER`, in place of ops that are slower."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tfconvert.converter.ir.constants import constant_number
from tfconvert.converter.ir.symbol_table import FunctionMaker
from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, worth
from tfconvert.converter.targets.litert.forms.questions import activation, shape_of
from tfconvert.converter.targets.litert.forms.scatter_places import Filled, Indices, Insert, places_of
from tfconvert.converter.targets.litert.forms.scatter_speed import Sizes, is_faster
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import SymbolRefAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value

SET = ""
"""Names no operator: an update replaces the element."""

ADD, MULTIPLY, MAXIMUM, MINIMUM = (f"stablehlo_{name}" for name in ("add", "multiply", "maximum", "minimum"))
"""Operators that combine an element with an update, all that LiteRT's kernel knows."""

BODIES: Mapping[str, str] = {"add": ADD, "maximum": MAXIMUM, "minimum": MINIMUM, "mul": MULTIPLY}
"""The operators of `tfl` that do the same for whole tensors."""

_ELEMENTS = frozenset(("f16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"))
"""The types of elements that the kernel takes."""

FILLED = (types.F32, types.I32, types.I64)
"""Those of which LiteRT makes tensors of one number."""


def scatter(form: str, body: str, indices: Indices, updates: Insert, count: int, op: Operation) -> Emit:
    """Returns what emits the operator.

    Args:
        form: The usual form, by its name in `scatter_speed.tsv`.
        body: The operator that combines an element with an update; empty if updates replace elements.
        indices: The places of the updates.
        updates: Inserts the updates.
        count: Their number, -1 if it is unknown.
        op: The op that it replaces.
    """
    x, axes = indices.x, indices.axes
    shape = types.shape_of(x.type) or ()
    need(str(types.element_of(x.type)) in _ELEMENTS, "the kernel doesn't take its elements")
    rest = [size for axis, size in enumerate(shape) if axis not in axes]
    need(types.is_static(tuple(rest)), "the size of its rows is unknown")
    rows = math.prod(abs(shape[axis]) for axis in axes)
    worth(is_faster(form, Sizes(rows, math.prod(rest), abs(count))), "LiteRT isn't faster with a scatter")
    after = activation(op)
    need(after == "NONE" or after in tfl.ACTIVATIONS, "its activation isn't an operator")

    def emit_scatter(build: FormBuilder) -> Value:
        operands = (_inserted(build, x), indices.insert(build), build.reshape(updates(build), (count, *rest)))
        options = {
            "indices_are_sorted": False,
            "update_window_dims": tuple(range(1, 1 + len(rest))),
            "inserted_window_dims": tuple(sorted(axes)),
            "scatter_dims_to_operand_dims": tuple(axes),
            "index_vector_dim": 1,
            "unique_indices": False,
            "update_computation": _body(build, body, types.element_of(x.type)),
        }
        found = build.tfl("stablehlo_scatter", operands, x.type, options)
        if after != "NONE":
            found = build.tfl(tfl.ACTIVATIONS[after], (found,), x.type)
        return build.reshape(found, shape_of(op.results[0]))

    return emit_scatter


def _inserted(build: FormBuilder, x: Value | Filled) -> Value:
    if isinstance(x, Value):
        return x
    shape = build.ints(types.shape_of(x.type) or ())
    return build.tfl("fill", (shape, build.scalar(x.number, types.element_of(x.type))), x.type)


def _body(build: FormBuilder, name: str, element: Attribute) -> SymbolRefAttr:
    """Returns the function that combines an element with an update, which all scatters of a module share."""
    module = build.rewriter.root.parent_op()
    while not isinstance(module, ModuleOp):
        assert module is not None
        module = module.parent_op()
    scalar = types.tensor(element, ())
    block = Block(arg_types=[scalar, scalar])
    result: Value = block.args[1]
    if name:
        combined = tfl.build(name, block.args, [scalar])
        block.add_op(combined)
        result = combined.results[0]
    block.add_op(ReturnOp.of([result]))
    maker = FunctionMaker(module)
    symbol = f"scatter_{name.removeprefix('stablehlo_') or 'set'}_{element}"
    known = maker.functions.get(symbol)
    if known is None or not _is_same(known, block):
        symbol = maker.add(symbol, block, build.rewriter.root.location)
    return SymbolRefAttr.get(symbol)


def _is_same(function: FuncOp, block: Block) -> bool:
    """Returns whether a function is one that was made before for the same."""
    kind = FunctionType.get([each.type for each in block.args], [block.args[0].type])
    names = [[op.name for op in each.ops] for each in (*function.body.blocks, block)]
    return function.function_type == kind and len(names) == 2 and names[0] == names[1]


def whole(x: Value, kind: Attribute) -> Value | Filled:
    """Returns a tensor of a type; declines if it is broadcast to that, unless it is one number."""
    shape, number = types.shape_of(kind), constant_number(x)
    need(types.is_static(shape), "a size is unknown")
    if number is not None and shape_of(x) != shape:
        need(types.element_of(kind) in FILLED, "LiteRT doesn't fill tensors of its elements")
        return Filled(number, kind)
    need(shape_of(x) == shape, "it is broadcast")
    return x


def scatter_rows(rows: Value, ids: Value, updates: Value, form: str, body: str, op: Operation) -> Emit:
    need(len(shape_of(ids)) == 1, "the rows of updates have several dimensions")
    need(shape_of(updates)[1:] == shape_of(rows)[1:], "the updates aren't rows")
    return scatter(form, body, places_of(rows, ids), lambda build: updates, shape_of(updates)[0], op)
