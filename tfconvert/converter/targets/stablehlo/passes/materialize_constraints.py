"""Pass `materialize-constraints`: moves assertions on sizes to the start of functions, each only once.

XLA checks them when it compiles for the sizes of arguments, and can't check values; IREE checks both at run time.

Before:

    func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "stablehlo.tanh"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      %1 = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
      %2 = "stablehlo.get_dimension_size"(%y) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
      %3 = "stablehlo.compare"(%1, %2) <{comparison_direction = #stablehlo<comparison_direction EQ>}>
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.custom_call"(%3) <{
        api_version = 2 : i32, call_target_name = "shape_assertion", has_side_effect = true
      }> {error_message = "the sizes must be equal"} : (tensor<i1>) -> ()
      %4 = "stablehlo.add"(%0, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      func.return %4 : tensor<?xf32>
    }

After:

    func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
      %1 = "stablehlo.get_dimension_size"(%y) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
      %2 = "stablehlo.compare"(%0, %1) <{comparison_direction = #stablehlo<comparison_direction EQ>}>
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.custom_call"(%2) <{
        api_version = 2 : i32, call_target_name = "shape_assertion", has_side_effect = true
      }> {error_message = "the sizes must be equal"} : (tensor<i1>) -> ()
      %3 = "stablehlo.tanh"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      %4 = "stablehlo.add"(%3, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      func.return %4 : tensor<?xf32>
    }

Options:
    target: `iree` keeps assertions on values; for `stablehlo` they are omitted, since XLA rejects them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import ClassVar

from tfconvert.converter.ir.edit import erase
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.stablehlo.legalize.constraints import is_assertion
from tfconvert.schema.dialects import stablehlo
from tfconvert.schema.dialects.func import FuncOp, defined_functions
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, Value

_SIZE = "stablehlo.get_dimension_size"

# Ops that engines fold if their operands are known.
_ARITHMETIC = frozenset(
    f"stablehlo.{name}"
    for name in (
        "add",
        "and",
        "compare",
        "concatenate",
        "constant",
        "convert",
        "divide",
        "maximum",
        "minimum",
        "multiply",
        "not",
        "or",
        "remainder",
        "reshape",
        "select",
        "slice",
        "subtract",
    )
)

_COMMUTATIVE = frozenset(f"stablehlo.{name}" for name in ("add", "and", "maximum", "minimum", "multiply", "or"))

# The comparisons that hold between a value and itself.
_PROVED = frozenset({"EQ", "GE", "LE"})

# Maximum number of ops that an assertion depends on; beyond that, it counts as one on values.
_CHECKED = 1 << 12


class MaterializeConstraints:
    """Hoists assertions, and drops repeated ones."""

    __slots__ = ("target",)

    name: ClassVar[str] = "materialize-constraints"

    def __init__(self, target: str = "stablehlo") -> None:
        self.target = target

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the numbers of assertions and of omitted ones."""
        counts: Counter[str] = Counter()
        for function in defined_functions(module).values():
            asserts = [op for op in function.walk() if is_assertion(op)]
            if asserts:
                entry = _Entry(function)
                for op in asserts:
                    counts[self._settle(op, entry)] += 1
                _erase_dead(function)
        return PassResult.of(counts)

    def _settle(self, op: Operation, entry: _Entry) -> str:
        """Moves, keeps or erases an assertion; returns a description of the change."""
        needed = _computed_from(op.operands[0])
        is_of_sizes = needed is not None
        is_at_entry = needed is not None and all(_is_size_of_argument(each, entry.block) for each in needed)
        if is_at_entry and op.parent is entry.block:
            assert needed is not None
            holds = entry.hoisted(op.operands[0], needed)
            if holds in entry.asserted or _is_proved(holds):
                erase(op)
                return "assertions that others prove"
            entry.asserted.add(holds)
            op.detach()
            op.set_operands((holds,))
            entry.add(op)
            return "assertions"
        # Sizes computed in a branch or a loop are not known when XLA compiles.
        if self.target == "iree" or is_at_entry or (is_of_sizes and op.parent is entry.block):
            return "assertions"
        erase(op)
        return "assertions that are left out"


class _Entry:
    """The ops inserted at the start of a function, each computation once.

    Attributes:
        block: The function's block.
        asserted: The conditions that are asserted there.
    """

    def __init__(self, function: FuncOp) -> None:
        self.block: Block = function.body.block
        self.asserted: set[Value] = set()
        self._known: dict[Hashable, Value] = {}
        self._numbers: dict[Value, int] = {}
        self._first = self.block.first_op

    def add(self, op: Operation) -> None:
        """Inserts an op."""
        assert self._first is not None
        self.block.insert_op_before(op, self._first)

    def hoisted(self, value: Value, needed: list[Operation]) -> Value:
        """Returns a value's equivalent at the start of the function.

        Args:
            value: The value.
            needed: The ops that compute it, operands first.
        """
        made: dict[Value, Value] = {}
        for op in needed:
            operands = tuple(made.get(each, each) for each in op.operands)
            order = tuple(sorted(operands, key=self._numbers.__getitem__)) if op.name in _COMMUTATIVE else operands
            key = (op.name, order, tuple(sorted(op.properties.items())), op.results[0].type)
            if key not in self._known:
                copy = op.clone(made)
                self.add(copy)
                self._known[key] = copy.results[0]
                self._numbers[copy.results[0]] = len(self._numbers)
            made[op.results[0]] = self._known[key]
        return made[value]


def _computed_from(value: Value) -> list[Operation] | None:
    """Returns the ops that compute a value from sizes, operands first; `None` if it depends on anything else."""
    order: dict[Operation, None] = {}
    pending: list[tuple[Value, bool]] = [(value, False)]
    while pending:
        current, is_ready = pending.pop()
        op = current.owner
        if not isinstance(op, Operation) or len(order) > _CHECKED:
            return None
        if is_ready or op.name == _SIZE:
            order[op] = None
        elif op.name not in _ARITHMETIC:
            return None
        elif op not in order:
            pending.append((current, True))
            pending += [(each, False) for each in reversed(op.operands)]
    return list(order)


def _is_proved(holds: Value) -> bool:
    """Returns whether a value is true because it compares something with itself."""
    op = holds.owner
    assert isinstance(op, Operation)
    direction = op.properties.get("comparison_direction")
    is_same = op.name == "stablehlo.compare" and op.operands[0] is op.operands[1]
    return is_same and isinstance(direction, EnumeratorAttr) and direction.value in _PROVED


def _is_size_of_argument(op: Operation, block: Block) -> bool:
    if op.name != _SIZE:
        return True
    of = op.operands[0]
    return isinstance(of, BlockArgument) and of.owner is block


def _erase_dead(function: FuncOp) -> None:
    for op in reversed(list(function.body.walk())):
        if op.results and all(result.is_unused for result in op.results) and not stablehlo.has_side_effects(op):
            inner = [each for each in list(op.walk())[1:] if stablehlo.has_side_effects(each)] if op.regions else []
            if not inner:
                op.erase()
