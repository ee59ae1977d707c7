"""Functions that compute sizes: `@f__shape` takes the open sizes and the few integers of `@f`, on `index`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.targets.stablehlo.formulas.analysis import Formulas
from tfconvert.converter.targets.stablehlo.formulas.formula import ELEMENT, SIZE, Formula, Term, is_known, leaves
from tfconvert.schema.dialects import types, upstream
from tfconvert.schema.dialects.foreign import BinaryOp, ConstantOp
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType, IndexType
from tfconvert.schema.ir.values import Value

SUFFIX = "__shape"
"""The suffix of the function that computes a function's sizes."""

_INDEX = IndexType()

_OPS: Mapping[str, str] = {
    "add": "arith.addi",
    "and": "arith.andi",
    "divide": "arith.divsi",
    "maximum": "arith.maxsi",
    "minimum": "arith.minsi",
    "multiply": "arith.muli",
    "or": "arith.ori",
    "remainder": "arith.remsi",
    "subtract": "arith.subi",
}

# The numbers of `arith.cmpi`'s comparisons of signed integers.
_PREDICATES: Mapping[str, int] = {"EQ": 0, "NE": 1, "LT": 2, "LE": 3, "GT": 4, "GE": 5}


def arguments(function: FuncOp, terms: Sequence[Term]) -> list[Formula]:
    """Returns what a function of sizes takes: all open sizes, in order, and those elements that sizes depend on."""
    used = set().union(*(leaves(term) for term in terms)) if terms else set()
    found: list[Formula] = []
    for number, arg in enumerate(function.body.block.args):
        shape = types.shape_of(arg.type) or ()
        found += [Formula(SIZE, (number, axis)) for axis, size in enumerate(shape) if size < 0]
        count = shape[0] if shape else 1
        found += [leaf for at in range(max(count, 0)) if (leaf := Formula(ELEMENT, (number, at))) in used]
    return found


def results(function: FuncOp, formulas: Formulas) -> list[Term]:
    """Returns the open sizes of a function's results, in order."""
    last = function.body.block.last_op
    values = () if last is None else last.operands
    return [
        term
        for value in values
        for size, term in zip(types.shape_of(value.type) or (), formulas.dims[value], strict=True)
        if size < 0
    ]


def shape_function(function: FuncOp, formulas: Formulas) -> FuncOp | None:
    """Returns the function that computes the sizes of a function's results; `None` if only running it tells them."""
    terms = results(function, formulas)
    if not all(map(is_known, terms)):
        return None
    taken = arguments(function, terms)
    block = Block(arg_types=[_INDEX] * len(taken))
    emitter = _Emitter(block, dict(zip(taken, block.args, strict=True)))
    values = [emitter.value(term) for term in terms]
    block.add_op(ReturnOp.create(operands=values, result_types=()))
    kind = FunctionType.get([_INDEX] * len(taken), [_INDEX] * len(values))
    return FuncOp.of(f"{function.sym_name}{SUFFIX}", kind, Region([block]), function.sym_visibility)


class _Emitter:
    """Appends the ops of terms to a block, each term once."""

    __slots__ = ("_block", "_values")

    def __init__(self, block: Block, values: dict[Formula, Value]) -> None:
        self._block = block
        self._values: dict[Term, Value] = dict(values.items())

    def value(self, term: Term) -> Value:
        """Returns a term's value; those that it needs come first."""
        waiting = [term]
        while waiting:
            each = waiting[-1]
            missing = [] if isinstance(each, int) else [other for other in each.terms if other not in self._values]
            if each in self._values or not missing:
                waiting.pop()
                if each not in self._values:
                    self._values[each] = self._appended(each)
            else:
                waiting += missing
        return self._values[term]

    def _appended(self, term: Term) -> Value:
        op: Operation
        if isinstance(term, int):
            op = ConstantOp.create(properties={"value": IntegerAttr.get(term, _INDEX)}, result_types=(_INDEX,))
            return self._append(op)
        operands = [self._values[each] for each in term.terms]
        if term.kind in _PREDICATES:
            op = upstream.build("arith.cmpi", operands, (types.I1,), {"predicate": _PREDICATES[term.kind]})
        elif term.kind == "select":
            op = upstream.build("arith.select", operands, (operands[1].type,))
        else:
            op = BinaryOp(_OPS[term.kind], operands, (operands[0].type,))
        return self._append(op)

    def _append(self, op: Operation) -> Value:
        self._block.add_op(op)
        return op.results[0]
