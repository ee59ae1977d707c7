"""Pass `merge-functions`: merges equal functions.

A SavedModel's `serve` and `serving_default` usually call the same function through different wrappers. Equal private
functions are replaced by the first of them. Equal exported functions become one with several exported names.

Before:

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.PartitionedCall"(%x) <{f = @first}> : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.PartitionedCall"(%0) <{f = @second}> : (tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    func.func private @first(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @second(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }

After:

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.PartitionedCall"(%x) <{f = @first}> : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.PartitionedCall"(%0) <{f = @first}> : (tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    func.func private @first(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice, zip_longest
from typing import ClassVar

from tfconvert.converter.ir.edit import erase
from tfconvert.converter.ir.symbol_table import callees_first, is_private, referring_ops
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.cut import CUT
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION, EXPORTED_NAMES, OTHER_NAMES
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, SymbolRefAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# Number of ops whose names are part of the hash key.
_COMPARED_FIRST = 64


class MergeFunctions:
    """Merges functions whose bodies, types and attributes are equal."""

    __slots__ = ()

    name: ClassVar[str] = "merge-functions"

    def apply(self, module: ModuleOp) -> PassResult:
        """Merges functions, callees first, since callers become equal once their callees are one."""
        functions = functions_of(module)
        if any(CUT in function.attributes for function in functions.values()):
            return NOTHING_DONE  # Tensors are still looked up by the names of nodes, in which equal functions differ.
        keys = {name: _key(function) for name, function in functions.items() if len(function.body.blocks) == 1}
        if len(set(keys.values())) == len(keys):
            return NOTHING_DONE
        groups: dict[Hashable, list[FuncOp]] = {}
        renamed: dict[str, str] = {}
        referring = {name: referring_ops(function) for name, function in functions.items()}
        for function in callees_first(functions, referring):
            if renamed:
                _rename(referring[function.sym_name], renamed)
            if function.sym_name not in keys:
                continue
            group = groups.setdefault((keys[function.sym_name], _digest(function)), [])
            first = next((other for other in group if _are_equal(other, function)), None)
            if first is None or not _may_go(function):
                group.append(function)
            else:
                renamed[function.sym_name] = first.sym_name
                _absorb(first, function)
        if renamed:
            # Again, because functions that refer to each other were compared before some of their callees.
            _rename((op for name, ops in referring.items() if name not in renamed for op in ops), renamed)
            _rename((op for op in module.ops if not isinstance(op, FuncOp)), renamed)
        return NOTHING_DONE


def _key(function: FuncOp) -> Hashable:
    """Returns a hash key that equal functions share; merging doesn't change it."""
    beginning = tuple(op.name for op in islice(function.body.walk(), _COMPARED_FIRST))
    return function.function_type, EXPORTED_NAMES in function.attributes, beginning


def _digest(function: FuncOp) -> int:
    """Returns a hash of a function's ops, their attributes and how they are connected, which equal functions share.

    It keeps functions that begin alike from being compared pairwise.
    """
    numbers: dict[Value, int] = {argument: number for number, argument in enumerate(function.body.block.args)}
    digest = 0
    for op in function.body.walk():
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    numbers[argument] = len(numbers)
        operands = tuple([numbers.get(operand, -1) for operand in op.operands])
        digest = hash((digest, op.name, operands, frozenset(op.properties.items()), len(op.results)))
        for result in op.results:
            numbers[result] = len(numbers)
    return digest


def _may_go(function: FuncOp) -> bool:
    """Returns whether nothing outside of the module refers to a function by its symbol."""
    return EXPORTED_NAMES in function.attributes or is_private(function)


def _are_equal(one: FuncOp, other: FuncOp) -> bool:
    """Returns whether two functions differ only in locations, names and, if private, argument names."""
    ignored = {"sym_name"} if EXPORTED_NAMES in one.attributes else {"sym_name", "arg_attrs"}
    if _without(one.properties, ignored) != _without(other.properties, ignored):
        return False
    # Argument names matter only in the signature of an exported function.
    ignored = {EXPORTED_NAMES, OTHER_NAMES, ENTRY_FUNCTION} if EXPORTED_NAMES in one.attributes else set()
    if _without(one.attributes, ignored) != _without(other.attributes, ignored):
        return False
    same: dict[Value, Value] = dict(zip(one.body.block.args, other.body.block.args, strict=True))
    pairs = zip_longest(one.body.walk(), other.body.walk())
    return all(a is not None and b is not None and _ops_are_equal(a, b, same) for a, b in pairs)


def _without(attributes: dict[str, Attribute], ignored: set[str]) -> dict[str, Attribute]:
    return {name: value for name, value in attributes.items() if name not in ignored}


def _ops_are_equal(one: Operation, other: Operation, same: dict[Value, Value]) -> bool:
    """Compares two ops; maps the results of one to those of the other."""
    if one.name != other.name or len(one.operands) != len(other.operands) or len(one.results) != len(other.results):
        return False
    if one.properties != other.properties or one.attributes != other.attributes:
        return False
    if any(same.get(a) is not b for a, b in zip(one.operands, other.operands, strict=True)):
        return False
    if one.regions and not _regions_are_equal(one, other, same):
        return False
    for a, b in zip(one.results, other.results, strict=True):
        if a.type != b.type:
            return False
        same[a] = b
    return True


def _regions_are_equal(one: Operation, other: Operation, same: dict[Value, Value]) -> bool:
    """Compares the numbers of blocks, arguments and ops of two ops' regions; maps the arguments."""
    mine = [block for region in one.regions for block in region.blocks]
    others = [block for region in other.regions for block in region.blocks]
    if [len(region.blocks) for region in one.regions] != [len(region.blocks) for region in other.regions]:
        return False
    for a, b in zip(mine, others, strict=True):
        if len(list(a.ops)) != len(list(b.ops)) or a.arg_types != b.arg_types:
            return False
        same.update(zip(a.args, b.args, strict=True))
    return True


def _absorb(first: FuncOp, second: FuncOp) -> None:
    """Erases the second function; the first is exported under its names too."""
    names = second.attributes.get(EXPORTED_NAMES)
    if isinstance(names, ArrayAttr):
        own = first.attributes[EXPORTED_NAMES]
        assert isinstance(own, ArrayAttr)
        first.attributes[EXPORTED_NAMES] = ArrayAttr.get([*own.data, *names.data])
    erase(second)


def _rename(ops: Iterable[Operation], renamed: dict[str, str]) -> None:
    for op in ops:
        for attributes in (op.properties, op.attributes):
            for key, value in attributes.items():
                new = _renamed(value, renamed)
                if new is not value:
                    attributes[key] = new


def _renamed_symbol(symbol: SymbolRefAttr, renamed: dict[str, str]) -> SymbolRefAttr:
    new = renamed.get(symbol.root)
    return symbol if new is None else attrs.symbol(new)


def _renamed(attribute: Attribute, renamed: dict[str, str]) -> Attribute:
    if isinstance(attribute, SymbolRefAttr):
        return _renamed_symbol(attribute, renamed)
    if isinstance(attribute, tf.FunctionAttr):
        function = _renamed_symbol(attribute.function, renamed)
        return attribute if function is attribute.function else tf.FunctionAttr.get(function, attribute.arguments)
    if isinstance(attribute, ArrayAttr):
        items = [_renamed(item, renamed) for item in attribute.data]
        return (
            ArrayAttr.get(items)
            if any(new is not old for new, old in zip(items, attribute.data, strict=True))
            else attribute
        )
    return attribute
