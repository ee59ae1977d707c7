"""Pass `weights-to-parameters`: large constants become parameters in a file beside the program.

Before:

    func.func @main() -> tensor<32x32xf32> {
      %0 = stablehlo.constant dense_resource<__elided__> : tensor<32x32xf32>
      func.return %0 : tensor<32x32xf32>
    }

After:

    module {
      "util.global"() <{sym_name = "w0", type = tensor<32x32xf32>, sym_visibility = "private",
        initial_value = #flow.parameter.named<"model"::"w0"> : tensor<32x32xf32>}>
        {tf.weight = dense_resource<__elided__> : tensor<32x32xf32>} : () -> ()
      func.func @main() -> tensor<32x32xf32> {
        %0 = "util.global.load"() <{global = @w0}> : () -> tensor<32x32xf32>
        func.return %0 : tensor<32x32xf32>
      }
    }
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.exporters.mlir import is_weight
from tfconvert.schema.dialects import upstream
from tfconvert.schema.dialects.tensor_data import TensorData
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import StringAttr, SymbolRefAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

SCOPE = "model"
"""The name that programs use for the file of their weights."""

WEIGHT = "tf.weight"
"""The attribute of a global that holds the weight until its file is written; it is never printed."""


class WeightsToParameters:
    """Moves weights out of the program."""

    __slots__ = ()

    name: ClassVar[str] = "weights-to-parameters"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every large constant; a shared one becomes one parameter."""
        names = _Names(module)
        globals_: dict[TensorData, Operation] = {}
        loads = 0
        for op in tuple(module.walk()):
            weight = op.properties.get("value")
            if op.name != "stablehlo.constant" or not isinstance(weight, TensorData) or not is_weight(weight):
                continue
            block = op.parent
            assert block is not None
            if weight not in globals_:
                globals_[weight] = _parameter(names.new(), weight)
            symbol = globals_[weight].properties["sym_name"]
            assert isinstance(symbol, StringAttr)
            load = upstream.build(
                "util.global.load",
                (),
                [op.results[0].type],
                {"global": SymbolRefAttr.get(symbol.data)},
                location=op.location,
            )
            block.insert_op_before(load, op)
            replace_op(op, load.results[0])
            loads += 1
        first = next(iter(module.ops), None)
        for each in globals_.values():
            assert first is not None
            module.body.block.insert_op_before(each, first)
        return PassResult(Counter({"parameters": len(globals_), "uses": loads}) if loads else Counter())


class _Names:
    """Symbols that the module doesn't have yet."""

    def __init__(self, module: ModuleOp) -> None:
        named = (op.properties.get("sym_name") for op in module.ops)
        self._taken = {name.data for name in named if isinstance(name, StringAttr)}
        self._count = 0

    def new(self) -> str:
        while (name := f"w{self._count}") in self._taken:
            self._count += 1
        self._taken.add(name)
        return name


def _parameter(name: str, weight: TensorData) -> Operation:
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr.get(name),
        "sym_visibility": StringAttr.get("private"),
        "type": weight.type,
        "initial_value": upstream.ParameterAttr.get(SCOPE, name, weight.type),
    }
    made = upstream.build("util.global", (), (), properties)
    made.attributes[WEIGHT] = weight
    return made


def weights_of(module: ModuleOp) -> dict[str, TensorData]:
    """Returns the weights of a module's parameters, by name."""
    found: dict[str, TensorData] = {}
    for op in module.ops:
        weight, name = op.attributes.get(WEIGHT), op.properties.get("sym_name")
        if isinstance(weight, TensorData) and isinstance(name, StringAttr):
            found[name.data] = weight
    return found
