"""Pass `unique-callees`: clones shared functions so that every loop, conditional and call has its own.

Then a function's arguments are the operands of one op: types become as specific as the operands', constant operands
become constants inside, and values that the caller doesn't need are dropped. Unshared functions don't change.

Before:

    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>, %y: tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>) {
      %0 = "tf.If"(%p, %x) <{then_branch = @exp, else_branch = @neg, is_stateless = true}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.If"(%p, %y) <{then_branch = @neg, else_branch = @neg, is_stateless = true}>
          : (tensor<i1>, tensor<3xf32>) -> tensor<3xf32>
      func.return %0, %1 : tensor<2xf32>, tensor<3xf32>
    }
    func.func private @exp(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "tf.Exp"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }
    func.func private @neg(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "tf.Neg"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }

After:

    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>, %y: tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>) {
      %0 = "tf.If"(%p, %x) <{then_branch = @exp, else_branch = @neg, is_stateless = true}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.If"(%p, %y) <{then_branch = @neg_1, else_branch = @neg_1, is_stateless = true}>
          : (tensor<i1>, tensor<3xf32>) -> tensor<3xf32>
      func.return %0, %1 : tensor<2xf32>, tensor<3xf32>
    }
    func.func private @exp(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "tf.Exp"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }
    func.func private @neg(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "tf.Neg"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }
    func.func private @neg_1(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "tf.Neg"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from tfconvert.converter.ir import symbol_table
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.dialects.call_interfaces import KINDS, callees, rename_callees
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION, EXPORTED_NAMES
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.limits import budget

_COPIED = "copied"

# The cost of a function besides its ops, in ops.
_ALONE = 8


@dataclass(frozen=True, slots=True)
class UniqueCallees:
    """Copies functions that several ops run."""

    name: ClassVar[str] = "unique-callees"

    def apply(self, module: ModuleOp) -> PassResult:
        functions = functions_of(module)
        users = {name: [op for op in function.body.walk() if op.name in KINDS] for name, function in functions.items()}
        if not any(users.values()):
            return NOTHING_DONE
        outside = set(symbol_table.names_outside(module))
        roots = outside | {name for name, function in functions.items() if not symbol_table.is_private(function)}
        _pay(functions, users, roots)
        copier = _Copier(functions)
        copier.separate(roots)
        return PassResult.of({_COPIED: copier.count})


class _Copier:
    """Creates copies of functions.

    Args:
        functions: The module's functions; copies are added.

    Attributes:
        count: How many copies there are.
    """

    def __init__(self, functions: dict[str, FuncOp]) -> None:
        self._functions = functions
        self._origins: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()
        self.count = 0

    def separate(self, roots: set[str]) -> None:
        """Follows the calls from some functions; the first caller keeps the original."""
        taken = set(roots)
        todo = [name for name in reversed(self._functions) if name in roots]
        while todo:
            found: list[str] = []
            for op in [op for op in self._functions[todo.pop()].body.walk() if op.name in KINDS]:
                own: dict[str, str] = {}
                for name in dict.fromkeys(callees(op)):
                    own[name] = self._copy(name) if name in taken else name
                taken.update(own.values())
                found += own.values()
                if any(name != new for name, new in own.items()):
                    rename_callees(op, own)
            todo += reversed(found)

    def _copy(self, name: str) -> str:
        """Adds a private copy of a function after it and returns the copy's name."""
        function = self._functions[name]
        copy = function.clone()
        unique = self._unique(self._origins.get(name, name))
        self._origins[unique] = self._origins.get(name, name)
        copy.properties["sym_name"] = StringAttr.get(unique)
        copy.location = function.location
        if not symbol_table.is_private(function):
            _make_private(copy)
        assert function.parent is not None
        function.parent.insert_op_after(copy, function)
        self._functions[unique] = copy
        self.count += 1
        return unique

    def _unique(self, name: str) -> str:
        while True:
            self._numbers[name] += 1
            unique = f"{name}_{self._numbers[name]}"
            if unique not in self._functions:
                return unique


def _make_private(function: FuncOp) -> None:
    """Makes a function private, and drops its exported names."""
    function.properties["sym_visibility"] = StringAttr.get("private")
    for name in ("arg_attrs", "res_attrs"):
        function.properties.pop(name, None)
    function.attributes.pop(EXPORTED_NAMES, None)
    function.attributes.pop(ENTRY_FUNCTION, None)


def _expanded(functions: Mapping[str, FuncOp], users: Mapping[str, list[Operation]]) -> dict[str, int]:
    """Returns the number of ops of each function with its callees, counting shared ones repeatedly."""
    sizes: dict[str, int] = {}
    path: set[str] = set()
    stack = [(name, False) for name in reversed(list(functions))]
    while stack:
        name, is_done = stack.pop()
        if is_done:
            path.discard(name)
            inner = (sizes[callee] for op in users[name] for callee in dict.fromkeys(callees(op)))
            sizes[name] = _size(functions[name]) + sum(inner)
        elif name not in sizes and name not in path:
            path.add(name)
            stack.append((name, True))
            for op in users[name]:
                stack += [(callee, False) for callee in _checked(op, functions, path) if callee not in sizes]
    return sizes


def _size(function: FuncOp) -> int:
    """Returns the cost of a copy of a function, in ops."""
    return _ALONE + sum(1 for _ in function.body.walk())


def _pay(functions: Mapping[str, FuncOp], users: Mapping[str, list[Operation]], roots: Iterable[str]) -> None:
    """Charges the copies to the conversion's budget."""
    sizes = _expanded(functions, users)
    copied = sum(sizes[name] for name in roots if name in sizes) - sum(map(_size, functions.values()))
    if copied > 0:
        shared = Counter(name for ops in users.values() for op in ops for name in set(callees(op)))
        budget().take_operations(copied, f"the function {shared.most_common(1)[0][0]!r}")


def _checked(op: Operation, functions: Mapping[str, FuncOp], path: set[str]) -> list[str]:
    names = callees(op)
    for name in names:
        if name not in functions:
            raise error_at(op, "missing-function", f"there is no function {name!r}", "the model file is damaged")
        if name in path:
            raise error_at(
                op,
                "recursive-function",
                f"the function {name!r} runs itself",
                "LiteRT has no recursion; write it as a loop",
            )
    return names
