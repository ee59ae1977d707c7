"""Pass `merge-functions`: lets equal functions be one.

A SavedModel's `serve` and `serving_default` usually call the same function through wrappers of their own. Equal
private functions are replaced by the first of them; equal exported functions become one with several exported names,
so that the result holds each computation once (design §1).

Before:

    func.func @serve(...) attributes {tf_saved_model.exported_names = ["serve"]} { call @wrapper_1 }
    func.func @serving_default(...) attributes {tf_saved_model.exported_names = ["serving_default"]} { call @wrapper_2 }

After:

    func.func @serve(...) attributes {tf_saved_model.exported_names = ["serve", "serving_default"]} { call @wrapper_1 }
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from converter.rewrite.edit import erase
from schema.dialects import attributes as attrs
from schema.dialects import tf
from schema.dialects.tf_saved_model import EXPORTED_NAMES

_OWN = ("sym_name",)


@dataclass(frozen=True, slots=True)
class MergeFunctions:
    """Merges functions whose bodies, types and attributes are equal."""

    name: ClassVar[str] = "merge-functions"

    def apply(self, module: ModuleOp) -> None:
        """Merges until no two functions are equal; callers become equal once their callees are one."""
        while _merge_round(module):
            pass


def _merge_round(module: ModuleOp) -> bool:
    """Merges the functions that are equal now and tells whether there were any."""
    groups: dict[Hashable, list[FuncOp]] = {}
    for op in module.ops:
        if isinstance(op, FuncOp):
            groups.setdefault((op.function_type, _size(op)), []).append(op)
    renamed: dict[str, str] = {}
    for candidates in groups.values():
        if len(candidates) < 2:
            continue
        firsts: dict[Hashable, FuncOp] = {}
        for function in candidates:
            first = firsts.setdefault(_meaning(function), function)
            if first is not function:
                _absorb(first, function)
                renamed[function.sym_name.data] = first.sym_name.data
    if renamed:
        _rename(module, renamed)
    return bool(renamed)


def _size(function: FuncOp) -> int:
    return sum(len(op.operands) for op in function.body.block.ops)


def _meaning(function: FuncOp) -> Hashable:
    """Returns a key that equal functions share: all but locations, names of values and, if private, of arguments."""
    ignored = _OWN if EXPORTED_NAMES in function.attributes else (*_OWN, "arg_attrs")
    numbers: dict[SSAValue, int] = {arg: index for index, arg in enumerate(function.body.block.args)}
    ops = []
    for op in function.body.walk():
        for result in op.results:
            numbers[result] = len(numbers)
        ops.append((
            op.name,
            tuple(numbers[operand] for operand in op.operands),
            tuple(result.type for result in op.results),
            frozenset(op.properties.items()),
            frozenset(op.attributes.items()),
        ))  # fmt: skip
    kept = frozenset((key, value) for key, value in function.properties.items() if key not in ignored)
    own = frozenset((key, value) for key, value in function.attributes.items() if key != EXPORTED_NAMES)
    return (tuple(ops), kept, own, EXPORTED_NAMES in function.attributes)


def _absorb(first: FuncOp, second: FuncOp) -> None:
    """Erases the second function; the first is exported under its names too."""
    names = second.attributes.get(EXPORTED_NAMES)
    if isinstance(names, ArrayAttr):
        own = first.attributes[EXPORTED_NAMES]
        assert isinstance(own, ArrayAttr)
        first.attributes[EXPORTED_NAMES] = ArrayAttr([*own.data, *names.data])
    erase(second)


def _rename(module: ModuleOp, renamed: dict[str, str]) -> None:
    for op in module.walk():
        if isinstance(op, tf.TFOp):
            for key, value in op.properties.items():
                new = _renamed(value, renamed)
                if new is not value:
                    op.properties[key] = new


def _renamed_symbol(symbol: SymbolRefAttr, renamed: dict[str, str]) -> SymbolRefAttr:
    new = renamed.get(symbol.root_reference.data)
    return symbol if new is None else attrs.symbol(new)


def _renamed(attribute: Attribute, renamed: dict[str, str]) -> Attribute:
    if isinstance(attribute, SymbolRefAttr):
        return _renamed_symbol(attribute, renamed)
    if isinstance(attribute, tf.FunctionAttr):
        function = _renamed_symbol(attribute.function, renamed)
        return attribute if function is attribute.function else tf.FunctionAttr(function, attribute.arguments)
    if isinstance(attribute, ArrayAttr):
        items = [_renamed(item, renamed) for item in attribute.data]
        return (
            ArrayAttr(items)
            if any(new is not old for new, old in zip(items, attribute.data, strict=True))
            else attribute
        )
    return attribute
