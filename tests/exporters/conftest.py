"""Modules of `tfl` ops, built by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION, EXPORTED_NAMES, INDEX_PATH
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value


@dataclass
class Function:
    """A function under construction."""

    block: Block
    counter: int = 0
    names: list[str] = field(default_factory=list)

    @property
    def args(self) -> Sequence[Value]:
        return self.block.args

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        shape: Sequence[int] | None,
        properties: dict[str, Any] | None = None,
        element: Attribute = types.F32,
        at: str = "",
    ) -> Value:
        """Adds an op with one result."""
        self.counter += 1
        location = NameLoc.get(at or f"{name}_{self.counter}")
        return self.add(tfl.build(name, operands, [types.tensor(element, shape)], properties, location)).results[0]

    def add(self, op: Operation) -> Operation:
        self.block.add_op(op)
        return op

    def constant(self, value: Any, at: str = "const") -> Value:
        """Adds a constant."""
        constant = tensor_data.of_array(np.asarray(value))
        return self.add(tfl.constant(constant, NameLoc.get(at))).results[0]


Body = Callable[[Function], Sequence[Value]]


@dataclass
class ModuleBuilder:
    """A module under construction."""

    module: ModuleOp = field(default_factory=lambda: ModuleOp.of([]))

    def function(
        self,
        name: str,
        inputs: Sequence[Attribute],
        body: Body,
        signatures: Sequence[str] = (),
        names: tuple[str, str] | None = None,
        paths: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> ModuleBuilder:
        """Adds a function; `names` are those of its tensors, `paths` those of the signatures."""
        block = Block(arg_types=inputs)
        results = body(Function(block))
        block.add_op(ReturnOp.of(results))
        function_type = FunctionType.get(inputs, [result.type for result in results])
        function = FuncOp.of(name, function_type, Region(block))
        if names is not None:
            entry = {"inputs": attrs.string(names[0]), "outputs": attrs.string(names[1])}
            function.attributes[ENTRY_FUNCTION] = DictionaryAttr.get(entry)
        if signatures:
            function.attributes[EXPORTED_NAMES] = ArrayAttr.get([attrs.string(key) for key in signatures])
        if paths is not None:
            function.arg_attrs, function.res_attrs = map(_paths, paths)
        self.module.body.block.add_op(function)
        return self


def _paths(names: Sequence[str]) -> ArrayAttr:
    return ArrayAttr.get([DictionaryAttr.get({INDEX_PATH: ArrayAttr.get([attrs.string(name)])}) for name in names])


@pytest.fixture
def modules() -> type[ModuleBuilder]:
    """Returns the class that builds modules."""
    return ModuleBuilder
