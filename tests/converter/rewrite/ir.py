"""Small functions as text, for the rewriter's tests."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tfconvert.converter.rewrite.driver import rewrite_greedily
from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import tf, tfl
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.block import Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.operation import Operation

CONSTANTS = frozenset(("tfl.pseudo_const", "tf.Const", "func.return"))


def parse(body: str, *results: str, arguments: str = "%x: tensor<2xf32>, %y: tensor<2xf32>") -> tuple[ModuleOp, Region]:
    """Returns a module with one function, and its body; every op's location is its name.

    Args:
        body: Ops in the generic syntax without types, `%0 = tfl.add %x, %y`, or as MLIR where a colon is in the line.
        results: What is returned.
        arguments: The function's arguments.
    """
    lines = [line if ":" in line else _spelt_out(line) for line in map(str.strip, body.splitlines()) if line]
    types = ["tensor<2xf32>"] * len(results)
    head = f"func.func @main({arguments}) -> ({', '.join(types)}) {{"
    end = f"func.return {', '.join(results)} : {', '.join(types)}" if results else "func.return"
    text = "\n".join([head, *lines, end, "}"])
    module = IRParser(text).parse_module()
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    for op in function.walk():
        op.location = NameLoc.get(op.name)
    return module, function.body


def _spelt_out(line: str) -> str:
    """Writes an op on `tensor<2xf32>` only as MLIR; `constant 3.0` is short for a constant of two equal elements."""
    target, _, call = line.partition(" = ")
    name, _, operands = call.partition(" ")
    if name == "constant":
        value = f"dense<{operands}> : tensor<2xf32>"
        return f'{target} = "tfl.pseudo_const"() <{{value = {value}}}> : () -> tensor<2xf32>'
    values = operands.split(", ") if operands else []
    return f'{target} = "{name}"({operands}) : ({", ".join(["tensor<2xf32>"] * len(values))}) -> tensor<2xf32>'


def has_side_effects(op: Operation) -> bool:
    """Returns whether an op of either dialect may not be erased."""
    return tf.has_side_effects(op) if isinstance(op, tf.TFOp) else tfl.has_side_effects(op)


def rewrite(module: ModuleOp, region: Region, *patterns: Pattern[Any]) -> Counter[str]:
    """Rewrites a function's body and verifies the module."""
    applied = rewrite_greedily(region, PatternSet(patterns), has_side_effects)
    verify(module, with_relations=False)
    return applied


def names(region: Region) -> list[str]:
    """Returns the ops' names in order, without the dialects', constants and the return."""
    return [op.name.partition(".")[2] for op in region.block.ops if op.name not in CONSTANTS]


def last(region: Region) -> Operation:
    """Returns the op before the return."""
    assert region.block.last_op is not None
    op = region.block.last_op.prev_op
    assert op is not None
    return op
