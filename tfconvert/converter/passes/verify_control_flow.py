"""Pass `verify-control-flow`: refuses branches and loops whose functions don't fit them; rewrites nothing.

TensorFlow's importer checks this, but a file may be inconsistent. Each function must take the op's operands and return
its results, in number and element types. A loop's body returns values of its argument types, and its condition one
value. The check comes before any function is erased, so that it doesn't depend on constants that decide which one runs.
All problems of a module are one error, `bad-call`.

Refused:

    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.If"(%p, %x) <{then_branch = @one, else_branch = @two, is_stateless = true}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @one(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
    func.func private @two(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      func.return %x, %x : tensor<2xf32>, tensor<2xf32>
    }
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.call_interfaces import INTERFACES, Kind, callees
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.locations import found_at
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

_HINT = "the model file is damaged"

Types = Sequence[Attribute]


class VerifyControlFlow:
    """Checks that functions fit the branches and loops that run them."""

    __slots__ = ()

    name: ClassVar[str] = "verify-control-flow"

    def apply(self, module: ModuleOp) -> PassResult:
        """Checks all functions.

        Raises:
            ConversionError: A function's arguments or results don't match the op that runs it (`bad-call`), or there
                is no such function (`missing-function`).
        """
        functions = functions_of(module)
        problems = [problem for op in module.walk() for problem in _problems(op, functions)]
        if problems:
            raise ConversionError(problems)
        return NOTHING_DONE


def _problems(op: Operation, functions: Mapping[str, FuncOp]) -> Iterator[Diagnostic]:
    interface = INTERFACES.get(op.name)
    if interface is None or interface.kind is Kind.CALL:
        return
    given = [operand.type for operand in op.operands[interface.first_operand :]]
    results = [result.type for result in op.results]
    if interface.kind is Kind.LOOP and (problem := _mismatch("returns", results, given)):
        yield found_at(op, "bad-call", f"the loop {problem}", _HINT)
        return
    for number, name in enumerate(callees(op)):
        function = functions.get(name)
        if function is None:
            yield found_at(op, "missing-function", f"there is no function {name!r}", _HINT)
            continue
        kind, decides = function.function_type, interface.kind is Kind.LOOP and number == 0
        problem = _mismatch("takes", kind.inputs, given)
        if not problem and decides and len(kind.results) != 1:
            problem = f"returns {len(kind.results)} values, not 1"
        if not problem and not decides:
            problem = _mismatch("returns", kind.results, results)
        if problem:
            yield found_at(op, "bad-call", f"the function {name!r} {problem}", _HINT)


def _mismatch(verb: str, own: Types, wanted: Types) -> str:
    """Returns how values differ in number or element type, empty if they don't."""
    if len(own) != len(wanted):
        return f"{verb} {len(own)} values, not {len(wanted)}"
    for number, (one, other) in enumerate(zip(own, wanted, strict=True)):
        if one is not other and not _agree(one, other):
            return f"{verb} {one} as number {number}, not {other}"
    return ""


def _agree(one: Attribute, other: Attribute) -> bool:
    first, second = (types.dereferenced(types.element_of(each)) for each in (one, other))
    # The types of handles may lack their contents' type.
    return first is second or (type(first) is type(second) and isinstance(first, types.HandleType))
