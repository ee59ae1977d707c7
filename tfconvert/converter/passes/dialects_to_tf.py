"""Pass `dialects-to-tf`: replaces the ops of other dialects, and `tfl` ops with regions, by TensorFlow's.

TensorFlow's converter prints such ops between its passes. Later passes handle only ops of model files.

- constants of `arith`, `stablehlo`, `mhlo` and `vhlo`, and arithmetic of `arith`
- `tfl.while` and `tfl.if` with regions
- `tfl.custom_tf` and `tfl.control_node`, which are replaced by their contents: ops stay in program order
- `tfl.NumericVerify`, a custom op of that name
- `quantfork.stats`, a range that was measured, and conversions to quantized numbers and back
- `tensor.cast`

Before:

    func.func @main(%n: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %one = arith.constant dense<1> : tensor<i32>
      %0:2 = "tfl.while"(%n, %x) <{is_stateless = true}> ({
      ^bb0(%i: tensor<i32>, %a: tensor<2xf32>):
        %3 = "tf.Greater"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "tfl.yield"(%3) : (tensor<i1>) -> ()
      }, {
      ^bb0(%i: tensor<i32>, %a: tensor<2xf32>):
        %4 = "tf.Sub"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %5 = "tfl.custom_tf"(%a) ({
        ^bb0(%b: tensor<2xf32>):
          %6 = "tf.Exp"(%b) : (tensor<2xf32>) -> tensor<2xf32>
          "tfl.yield"(%6) : (tensor<2xf32>) -> ()
        }) {device = ""} : (tensor<2xf32>) -> tensor<2xf32>
        "tfl.yield"(%4, %5) : (tensor<i32>, tensor<2xf32>) -> ()
      }) : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)
      func.return %0#1 : tensor<2xf32>
    }

After:

    func.func @main(%n: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %one = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %0, %1 = "tf.WhileRegion"(%n, %x) <{is_stateless = true, parallel_iterations = 10 : i64}> ({
      ^bb0(%i: tensor<i32>, %a: tensor<2xf32>):
        %2 = "tf.Greater"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "tf.Yield"(%2) : (tensor<i1>) -> ()
      }, {
      ^bb0(%i: tensor<i32>, %a: tensor<2xf32>):
        %2 = "tf.Sub"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %3 = "tf.Exp"(%a) : (tensor<2xf32>) -> tensor<2xf32>
        "tf.Yield"(%2, %3) : (tensor<i32>, tensor<2xf32>) -> ()
      }) : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)
      func.return %1 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import ClassVar

from tfconvert.converter.ir.edit import inline_block, replace_op, take_regions, yield_instead
from tfconvert.converter.ir.option_map import encode
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, tf, tfl, tfl_spelling, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import FloatAttr
from tfconvert.schema.ir.block import Region
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import TensorType, UnrankedTensorType
from tfconvert.schema.ir.values import Value


class DialectsToTf:
    """Replaces ops that occur only in MLIR text printed by TensorFlow."""

    __slots__ = ()

    name: ClassVar[str] = "dialects-to-tf"

    def apply(self, module: ModuleOp) -> PassResult:
        applied: Counter[str] = Counter()
        for op in list(module.walk()):
            rewrite = _REWRITES.get(op.name)
            if rewrite is not None and rewrite(op):
                applied[op.name] += 1
        return PassResult(applied) if applied else NOTHING_DONE


def _is_tensor(kind: Attribute) -> bool:
    return isinstance(kind, TensorType | UnrankedTensorType)


def _replace(op: Operation, name: str, properties: Mapping[str, attrs.Value] | None = None) -> bool:
    new = tf.build(name, op.operands[:], op.result_types, properties, op.location)
    replace_op(op, OpBuilder(op).insert(new).results)
    return True


def _constant(op: Operation) -> bool:
    value = op.properties["value"]
    return _is_tensor(op.results[0].type) and _replace(op, "Const", {"value": value})


_ARITHMETIC: Mapping[str, str] = {
    "arith.addf": "AddV2",
    "arith.addi": "AddV2",
    "arith.subf": "Sub",
    "arith.subi": "Sub",
    "arith.mulf": "Mul",
    "arith.muli": "Mul",
    "arith.divf": "RealDiv",
    "arith.maximumf": "Maximum",
    "arith.minimumf": "Minimum",
    "arith.maxsi": "Maximum",
    "arith.minsi": "Minimum",
}
# The ops on booleans, and on integers.
_BITWISE: Mapping[str, tuple[str, str]] = {
    "arith.andi": ("LogicalAnd", "BitwiseAnd"),
    "arith.ori": ("LogicalOr", "BitwiseOr"),
    "arith.xori": ("NotEqual", "BitwiseXor"),
}


def _arithmetic(op: Operation) -> bool:
    kind = op.results[0].type
    if not _is_tensor(kind):
        return False
    if op.name in _BITWISE:
        name = _BITWISE[op.name][types.element_of(kind) is not types.I1]
        return _replace(op, name, {"incompatible_shape_error": True} if name == "NotEqual" else None)
    return _replace(op, _ARITHMETIC[op.name])


def _with_regions(op: Operation) -> bool:
    """Replaces a loop or a conditional by the `tf` op that has the same regions."""
    if not op.regions:
        return False
    is_loop = op.name == "tfl.while"
    properties = {"is_stateless": op.properties.get("is_stateless", attrs.boolean(False))}
    if is_loop:
        properties["parallel_iterations"] = attrs.integer(10)
        for region in op.regions:
            _take_captured(op, region)
    regions = take_regions(op)
    for region in regions:
        for block in region.blocks:
            last = block.last_op
            if last is not None and last.name == tfl_spelling.TFLYieldOp.NAME:
                yield_instead(last)
    new = tf.build(
        "WhileRegion" if is_loop else "IfRegion",
        operands=op.operands[:],
        result_types=op.result_types,
        properties=properties,
        attributes=op.attributes,
        regions=regions,
        location=op.location,
    )
    replace_op(op, OpBuilder(op).insert(new).results)
    return True


def _take_captured(op: Operation, region: Region) -> None:
    """Adds arguments to a loop's region for operands that it only captures, as outlined loops have them."""
    block = region.blocks[0]
    inside = set(region.walk())
    for operand in op.operands[len(block.args) :]:
        argument = block.add_arg(operand.type)
        for use in [use for use in operand.uses if use.operation in inside]:
            use.operation.set_operand(use.index, argument)


def _inside(op: Operation) -> bool:
    """Replaces an op by the contents of its region."""
    block = op.regions[0].block
    # The operands of `tfl.control_node` only order it.
    for argument, operand in zip(block.args, op.operands, strict=False):
        argument.replace_all_uses_with(operand)
    values = inline_block(op, block)
    for result, value in zip(op.results, values, strict=False):
        result.replace_all_uses_with(value)
    if len(op.results) > len(values):
        _drop_control(op.results[-1])
    op.erase()
    return True


def _drop_control(control: Value) -> None:
    """Removes a control value from the operands of its users."""
    for user in {use.operation for use in control.uses}:
        user.set_operands([operand for operand in user.operands if operand is not control])


def _verified(op: Operation) -> bool:
    """Replaces `tfl.NumericVerify` by the custom op that the runtime has under this name."""
    tolerance, logs = (op.properties.get(name) for name in ("tolerance", "log_if_failed"))
    options = {
        "log_if_failed": bool(tfl.python_value(logs)) if logs is not None else False,
        "tolerance": tolerance.value if isinstance(tolerance, FloatAttr) else 0.0,
    }
    new = tfl.custom("NumericVerify", encode(options), op.operands[:], op.result_types, op.location)
    replace_op(op, OpBuilder(op).insert(new).results)
    return True


def _range(op: Operation) -> bool:
    """Replaces a measured range by fake quantization, from which the model is quantized."""
    low, high = (float(bound) for bound in tensor_data.to_array(op.properties["layerStats"]))
    properties = {"min": min(low, 0.0), "max": max(high, 0.0), "num_bits": 8, "narrow_range": False}
    return _replace(op, "FakeQuantWithMinMaxArgs", properties)


def _quantize(op: Operation) -> bool:
    new = tfl.build(_CONVERSIONS[op.name], op.operands[:], op.result_types, location=op.location)
    replace_op(op, OpBuilder(op).insert(new).results)
    return True


_CONVERSIONS = {"quantfork.qcast": "quantize", "quantfork.dcast": "dequantize"}

# The rewrite of each op; it returns whether the op was replaced.
_REWRITES: Mapping[str, Callable[[Operation], bool]] = {
    **dict.fromkeys(("arith.constant", "stablehlo.constant", "mhlo.constant", "vhlo.constant_v1"), _constant),
    **dict.fromkeys((*_ARITHMETIC, *_BITWISE), _arithmetic),
    **dict.fromkeys(("tfl.while", "tfl.if"), _with_regions),
    **dict.fromkeys(("tfl.custom_tf", "tfl.control_node"), _inside),
    "tfl.NumericVerify": _verified,
    **dict.fromkeys(_CONVERSIONS, _quantize),
    "quantfork.stats": _range,
    "tensor.cast": lambda op: _replace(op, "Cast", {"Truncate": False}),
}
