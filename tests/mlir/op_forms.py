"""Forms of `tf` ops that chance hardly draws: relations of the tables with ops that keep them and ops that don't."""

from __future__ import annotations

from typing import NamedTuple

from tfconvert.schema.tensorflow import op_defs

_REQUIRED = {
    "bool": "false",
    "float": "1.0 : f32",
    "func": "@joined",
    "int": "0 : i64",
    "string": '"VALID"',
    "type": "!tf_type.qint8",
}
_FUNCTIONS = """
func.func private @joined(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> { func.return %a : tensor<f32> }
func.func private @chosen(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i1> {
  %0 = "tf.Less"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  func.return %0 : tensor<i1>
}
"""


class Form(NamedTuple):
    """An op.

    Attributes:
        name: Its name in TensorFlow's registry.
        operands: The type of each, without `tensor`; or `numbers : type` of a constant.
        results: The type of each.
        attributes: What is not 0, nor as the registry has it.
    """

    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: str = ""


def text(form: Form) -> str:
    """Returns a module with an op of a form."""
    lines, arguments, names, kinds = [], [], [], []
    for index, operand in enumerate(form.operands):
        numbers, colon, kind = operand.rpartition(" : ")
        kinds.append(f"tensor<{kind}>")
        names.append(f"%v{index}")
        if colon:
            lines.append(f'%v{index} = "tf.Const"() {{value = dense<{numbers}> : {kinds[-1]}}} : () -> {kinds[-1]}')
        else:
            arguments.append(f"%v{index}: {kinds[-1]}")
    results = ", ".join(f"tensor<{kind}>" for kind in form.results)
    made = f"%r:{len(form.results)} = " if form.results else ""
    lines.append(
        f'{made}"tf.{form.name}"({", ".join(names)}) {{{_attributes(form)}}} : ({", ".join(kinds)}) -> ({results})'
    )
    return f"{_FUNCTIONS}func.func @f({', '.join(arguments)}) {{\n" + "\n".join(lines) + "\nfunc.return\n}"


def _attributes(form: Form) -> str:
    op_def = op_defs.lookup(form.name)
    if op_def is None:
        return form.attributes
    derived = op_defs.derived_attributes(op_def)
    given = [
        f"{attr.name} = {_REQUIRED[attr.type]}"
        for attr in op_def.attr
        if attr.name not in derived
        and not attr.HasField("default_value")
        and attr.type in _REQUIRED
        and f"{attr.name} =" not in form.attributes
    ]
    return ", ".join([*given, *([form.attributes] if form.attributes else [])])


_IMAGE, _FILTER = "1x4x4x2xf32", "3x3x2x8xf32"
_STRIDES = "strides = [1 : i64, 1 : i64, 1 : i64, 1 : i64]"
_WINDOWS = ("[1, 1] : 2xi32", "[1, 1] : 2xi32", "[1, 1] : 2xi32", "[1, 1] : 2xi32", "[[0, 0], [0, 0]] : 2x2xi32")
_CONVOLUTION = (_WINDOWS[0], _WINDOWS[4], *_WINDOWS[2:4], "1 : i32")
_SCALES = ("2xf32", "2xi32")
_SMALL = "2x!tf_type.qint8"
_VARIABLE = "!tf_type.resource<tensor<2xf32>>"

FORMS = [
    # Values.
    Form("BroadcastGradientArgs", ("[2, 3] : 2xi32", "[3] : 1xi32"), ("0xi32", "1xi32")),
    Form("BroadcastGradientArgs", ("[2, 3] : 2xi32", "[3] : 1xi32"), ("1xi32", "1xi32")),
    Form("BroadcastGradientArgs", ("[2, 3] : 2xi32", "[2, 3] : 2xi32"), ("0xi32", "0xi32")),
    Form("BroadcastGradientArgs", ("[2, 3] : 2xi32", "[4] : 1xi32"), ("0xi32", "1xi32")),
    Form("ConcatOffset", ("i32", "2xi32", "2xi32"), ("2xi32", "2xi32")),
    Form("ConcatOffset", ("i32", "2xi32", "2xi32"), ("2xi32", "3xi32")),
    Form("ConcatOffset", ("i32", "2xi32", "3xi32"), ("2xi32", "3xi32")),
    Form("ConcatOffset", ("i32", "2x2xi32", "2x2xi32"), ("2x2xi32", "2x2xi32")),
    Form("ConcatOffset", ("i32", "*xi32", "3xi32"), ("2xi32", "3xi32")),
    *[
        Form("DataFormatVecPermute", (kind,), (kind,))
        for kind in ("2xi32", "3xi32", "4xi32", "4x2xi32", "2x2xi32", "4x3xi32")
    ],
    Form("DynamicStitch", ("[0, 1] : 2xi32", "[3, 2] : 2xi32", "2x4xf32", "2x4xf32"), ("4x4xf32",)),
    Form("DynamicStitch", ("[0, 1] : 2xi32", "[3, 2] : 2xi32", "2x4xf32", "2x4xf32"), ("5x4xf32",)),
    Form("DynamicStitch", ("[0, 1] : 2xi32", "[4, 2] : 2xi32", "2x4xf32", "2x4xf32"), ("5x4xf32",)),
    Form("DynamicStitch", ("[0, -1] : 2xi32", "2x4xf32"), ("1x4xf32",)),
    Form("DynamicStitch", ("2xi32", "2xi32", "2x4xf32", "2x5xf32"), ("4x4xf32",)),
    Form("DynamicStitch", ("*xi32", "2xi32", "2x4xf32", "2x5xf32"), ("f32",)),
    Form("GatherV2", ("2x3xf32", "2xi32", "0 : i32"), ("*xf32",), "batch_dims = 1 : i64"),
    Form("GatherV2", ("2x3xf32", "2xi32", "-1 : i32"), ("*xf32",), "batch_dims = 1 : i64"),
    Form("GatherV2", ("2x3xf32", "2xi32", "1 : i32"), ("*xf32",), "batch_dims = -2 : i64"),
    Form("Qr", ("2xf32",), ("*xf32", "*xf32")),
    Form("Select", ("2xi1", "2x3xf32", "2x3xf32"), ("2x3xf32",)),
    Form("Select", ("3xi1", "2x3xf32", "2x3xf32"), ("2x3xf32",)),
    Form("Select", ("2x1xi1", "2x3x4xf32", "2x3x4xf32"), ("2x3x4xf32",)),
    Form("Select", ("2xi1", "f32", "f32"), ("f32",)),
    Form("Shape", ("2x3xf32",), ("3xi32",)),
    Form("Shape", ("2x3xf32",), ("i32",)),
    Form("ShapeN", ("2x3xf32", "2xf32"), ("2xi32", "*xi32")),
    Form("SoftmaxCrossEntropyWithLogits", ("2x3xf32", "3x3xf32"), ("2xf32", "2x3xf32")),
    Form("SoftmaxCrossEntropyWithLogits", ("2x3xf32", "*xf32"), ("2xf32", "2x3xf32")),
    Form(
        "TPUExecuteAndUpdateVariables",
        (_VARIABLE, "2x!tf_type.string"),
        (),
        "device_var_reads_indices = [0], device_var_updates_indices = [-1]",
    ),
    Form(
        "TPUExecuteAndUpdateVariables",
        (_VARIABLE, "2x!tf_type.string"),
        (),
        "device_var_reads_indices = [0, 1], device_var_updates_indices = [-1]",
    ),
    Form(
        "TPUExecuteAndUpdateVariables",
        (_VARIABLE, "2x!tf_type.string"),
        (),
        "device_var_reads_indices = [-1], device_var_updates_indices = [-1]",
    ),
    Form("TPUPartitionedInputV2", ("2xf32", "2xf32"), ("4xf32",), "partition_dims = [2], is_packed = false"),
    Form("TPUPartitionedInputV2", ("2xf32", "2xf32"), ("4xf32",), "partition_dims = [3], is_packed = false"),
    Form("TPUPartitionedInputV2", ("2xf32", "2xf32"), ("4xf32",), "partition_dims = [2], is_packed = true"),
    Form("TensorScatterUpdate", ("2xf32", "1x2xi32", "1xf32"), ("2xf32",)),
    Form("VariableShape", ("!tf_type.resource<tensor<2x3xf32>>",), ("2xi32",)),
    Form("VariableShape", ("!tf_type.resource<tensor<2x3xf32>>",), ("3xi32",)),
    Form("VariableShape", ("2x!tf_type.resource<tensor<2x3xf32>>",), ("2xi32",)),
    # Windows.
    Form("BatchMatMul", ("2x3x4xf32", "3x4x5xf32"), ("2x3x5xf32",)),
    Form("BatchMatMulV2", ("2x3x4xf32", "3x4x5xf32"), ("2x3x5xf32",)),
    Form("BatchMatMulV2", ("2x3x4xf32", "2x4x5xf32"), ("2x3x6xf32",)),
    Form("BatchMatMulV2", ("2x3x4xf32", "4x5xf32"), ("3x5xf32",)),
    Form("BatchMatMulV2", ("2x4x3xf32", "5x4xf32"), ("2x3x5xf32",), "adj_x = true, adj_y = true"),
    Form("BatchMatMulV2", ("*xf32", "4x5xf32"), ("3x5xf32",)),
    Form("BatchToSpace", ("8x2x2x3xf32", "[[0, 1], [1, 0]] : 2x2xi32"), ("2x3x3x3xf32",), "block_size = 2 : i64"),
    Form("BatchToSpace", ("8x2x2x3xf32", "[[0, 1], [1, 0]] : 2x2xi32"), ("2x4x4x3xf32",), "block_size = 2 : i64"),
    Form("BatchToSpace", ("8x2x2x3xf32", "[[0, -1], [1, 0]] : 2x2xi32"), ("2x5x3x3xf32",), "block_size = 2 : i64"),
    Form("BatchToSpace", ("6x2x2x3xf32", "[[0, 1], [1, 0]] : 2x2xi32"), ("2x3x3x3xf32",), "block_size = 2 : i64"),
    Form("BatchToSpace", ("?x2x2x3xf32", "2x2xi32"), ("2x5x4x3xf32",), "block_size = 2 : i64"),
    Form("BatchToSpace", ("?x2x2x3xf32", "2x2xi32"), ("2x4x4x3xf32",), "block_size = 2 : i64"),
    Form("BatchToSpace", ("*xf32", "2x2xi32"), ("2x4x4x3xf32",), "block_size = 2 : i64"),
    Form("BiasAdd", ("1x2x3x4xf32", "4xf32"), ("1x2x3x4xf32",), 'data_format = "NCHW"'),
    Form("BiasAdd", ("1x2x3x4xf32", "2xf32"), ("1x2x3x4xf32",), 'data_format = "NCHW"'),
    Form("BiasAdd", ("*xf32", "2xf32"), ("1x2x3x4xf32",), 'data_format = "NCHW"'),
    Form("Conv2D", (_IMAGE, _FILTER), ("1x2x2x8xf32",), _STRIDES),
    Form("Conv2D", (_IMAGE, _FILTER), ("1x2x2x8xf32",), _STRIDES.replace("1 : i64]", "0 : i64]")),
    Form("Conv2D", (_IMAGE, _FILTER), ("1x2x2x8xf32",), "strides = [1 : i64]"),
    Form("Conv2D", (_IMAGE, _FILTER), ("*xf32",), _STRIDES + ', padding = "EXPLICIT"'),
    Form(
        "Conv2D",
        (_IMAGE, _FILTER),
        ("1x3x3x8xf32",),
        _STRIDES + ', padding = "EXPLICIT", explicit_paddings = [0, 0, 1, 0, 1, 0, 0, 0]',
    ),
    Form(
        "Conv2D",
        (_IMAGE, _FILTER),
        ("1x3x3x8xf32",),
        _STRIDES + ', padding = "EXPLICIT", explicit_paddings = [0, 0, -1, 2, 1, 0, 0, 0]',
    ),
    Form("Conv2D", (_IMAGE, "6x3x2x8xf32"), ("*xf32",), _STRIDES),
    Form("Conv2D", ("1x4x4x3xf32", _FILTER), ("*xf32",), _STRIDES),
    Form("SpaceToBatchND", ("2x5x4xf32", "[2] : 1xi32", "[[0, 1]] : 1x2xi32"), ("4x3x4xf32",)),
    Form("SpaceToBatchND", ("2x5x4xf32", "[2] : 1xi32", "[[0, 2]] : 1x2xi32"), ("4x3x4xf32",)),
    Form("SpaceToBatchND", ("2xf32", "[2] : 1xi32", "[[0, 2]] : 1x2xi32"), ("*xf32",)),
    Form("SpaceToBatchND", ("?x5x4xf32", "[2] : 1xi32", "[[0, 2]] : 1x2xi32"), ("*xf32",)),
    Form("BatchToSpaceND", ("4x5x4xf32", "1xi32", "2x2xi32"), ("*xf32",)),
    # XLA.
    Form("UniformQuantize", ("2xf32", "f32", "i32"), (_SMALL,), "quantization_axis = -1 : i64"),
    Form("UniformQuantize", ("2xf32", *_SCALES), (_SMALL,), "quantization_axis = -1 : i64"),
    Form("UniformQuantize", ("2xf32", *_SCALES), (_SMALL,), "quantization_axis = 0 : i64"),
    Form("UniformQuantize", ("2xf32", "2xf32", "3xi32"), (_SMALL,), "quantization_axis = 0 : i64"),
    Form("UniformQuantize", ("2xf32", "f32", "i32"), (_SMALL,), "quantization_axis = 0 : i64"),
    Form("UniformDequantize", (_SMALL, *_SCALES), ("2xf32",), "Tout = f32, quantization_axis = 0 : i64"),
    Form("UniformDequantize", (_SMALL, "2xf32", "i32"), ("2xf32",), "Tout = f32, quantization_axis = 0 : i64"),
    Form("XlaBroadcastHelper", ("2x3xf32", "3xf32", "[1] : 1xi32"), ("2x3xf32", "1x3xf32")),
    Form("XlaBroadcastHelper", ("3xf32", "2x3xf32", "[1] : 1xi32"), ("1x3xf32", "2x3xf32")),
    Form("XlaBroadcastHelper", ("2x3xf32", "3xf32", "[1] : 1xi32"), ("2x3xf32", "3x1xf32")),
    Form("XlaBroadcastHelper", ("2x3xf32", "3xf32", "[2] : 1xi32"), ("2x3xf32", "1x3xf32")),
    Form("XlaBroadcastHelper", ("2x3xf32", "3xf32", "[0, 1] : 2xi32"), ("2x3xf32", "1x3xf32")),
    Form("XlaBroadcastHelper", ("2x3xf32", "3xf32", " : 0xi32"), ("2x3xf32", "3xf32")),
    Form("XlaConvV2", (_IMAGE, _FILTER, *_CONVOLUTION), ("*xf32",)),
    Form("XlaConvV2", (_IMAGE, _FILTER, "[[1, 1]] : 1x2xi32", *_CONVOLUTION[1:]), ("*xf32",)),
    Form("XlaConvV2", (_IMAGE, _FILTER, _CONVOLUTION[0], "[0, 0] : 2xi32", *_CONVOLUTION[2:]), ("*xf32",)),
    Form("XlaConvV2", (_IMAGE, _FILTER, *_CONVOLUTION[:4], "[1] : 1xi32"), ("*xf32",)),
    Form("XlaConvV2", (_IMAGE, _FILTER, "2xi32", *_CONVOLUTION[1:]), ("*xf32",)),
    Form("XlaReduceWindow", ("2x3xf32", "f32", *_WINDOWS), ("2x3xf32",)),
    Form("XlaReduceWindow", ("2x3xf32", "f32", "[1] : 1xi32", *_WINDOWS[1:]), ("2x3xf32",)),
    Form("XlaReduceWindow", ("2x3xf32", "f32", "[[1, 1]] : 1x2xi32", *_WINDOWS[1:]), ("2x3xf32",)),
    Form("XlaReduceWindow", ("2x3xf32", "f32", *_WINDOWS[:4], "[0, 0] : 2xi32"), ("2x3xf32",)),
    Form("XlaReduceWindow", ("2x3xf32", "f32", *["2xi32"] * 4, "2x2xi32"), ("2x3xf32",)),
    Form(
        "XlaSelectAndScatter",
        ("2x3xf32", *_WINDOWS[:2], _WINDOWS[4], "2x3xf32", "f32"),
        ("2x3xf32",),
        "select = @chosen",
    ),
    Form(
        "XlaSelectAndScatter",
        ("2x3xf32", "[1] : 1xi32", _WINDOWS[1], _WINDOWS[4], "2x3xf32", "f32"),
        ("2x3xf32",),
        "select = @chosen",
    ),
    Form("XlaSetDynamicDimensionSize", ("2x3xf32", "1 : i32", "i32"), ("2x?xf32",)),
    Form("XlaSetDynamicDimensionSize", ("2x3xf32", "2 : i32", "i32"), ("2x?xf32",)),
    Form("XlaSetDynamicDimensionSize", ("2x3xf32", "-1 : i32", "i32"), ("2x?xf32",)),
    Form("XlaSetDynamicDimensionSize", ("2x3xf32", "1 : i32", "i32"), ("3x?xf32",)),
    Form("XlaSetDynamicDimensionSize", ("*xf32", "1 : i32", "i32"), ("3x?xf32",)),
    Form(
        "XlaVariadicReduceV2",
        ("2x3xf32", "f32"),
        ("2xf32",),
        "dimensions_to_reduce = [1], operandSegmentSizes = array<i32: 1, 1>",
    ),
    Form(
        "XlaVariadicReduceV2",
        ("2xf32", "f32"),
        ("f32",),
        "dimensions_to_reduce = [0, 1], operandSegmentSizes = array<i32: 1, 1>",
    ),
    Form(
        "XlaVariadicReduceV2",
        ("2xf32", "3xf32", "f32", "f32"),
        ("f32", "f32"),
        "dimensions_to_reduce = [0], operandSegmentSizes = array<i32: 2, 2>",
    ),
    Form(
        "XlaVariadicReduceV2",
        ("2xf32", "2xf32", "f32", "2xf32"),
        ("f32", "f32"),
        "dimensions_to_reduce = [0], operandSegmentSizes = array<i32: 2, 2>",
    ),
    Form("XlaVariadicSort", ("2xf32", "2xf32", "0 : i32"), ("2xf32", "2xf32")),
    Form("XlaVariadicSort", ("2xf32", "2xf32", "[0] : 1xi32"), ("2xf32", "2xf32")),
    Form("XlaVariadicSort", ("2xf32", "3xf32", "0 : i32"), ("2xf32", "2xf32")),
    # Elements that move.
    Form("Bitcast", ("2x4xi8",), ("2xi32",)),
    Form("Bitcast", ("2xi32",), ("2x4xi8",)),
    Form("Bitcast", ("2xi32",), ("2x2xi8",)),
    Form("Bitcast", ("2xi32",), ("3xf32",)),
    Form("Pack", ("2xf32", "2xf32"), ("*xf32",), "axis = 2 : i64"),
    Form("Reshape", ("2x3xf32", "[-1, -1] : 2xi32"), ("*xf32",)),
    Form("Reshape", ("2x3xf32", "[-2, 3] : 2xi32"), ("*xf32",)),
    Form("Reshape", ("?x3xf32", "[2, -1] : 2xi32"), ("3x?xf32",)),
    Form("Slice", ("2x3xf32", "2xi32", "3xi32"), ("2x3xf32",)),
    Form("Slice", ("2x3xf32", "1xi32", "1xi32"), ("*xf32",)),
    Form("Slice", ("2x3xf32", "[1, 1] : 2xi32", "[1, -1] : 2xi32"), ("1x2xf32",)),
    Form("Slice", ("2x3xf32", "[1, 1] : 2xi32", "[1, -1] : 2xi32"), ("1x3xf32",)),
    Form("Slice", ("2x3xf32", "[1, 1] : 2xi32", "[1, 3] : 2xi32"), ("1x?xf32",)),
    Form("Split", ("0 : i32", "f32"), ("f32", "f32")),
    Form("Split", ("0 : i32", "3xf32"), ("*xf32", "*xf32")),
    Form("SplitV", ("4xf32", "[1, 2, 1] : 3xi32", "0 : i32"), ("*xf32", "*xf32")),
    Form("SplitV", ("4xf32", "[-1, -1] : 2xi32", "0 : i32"), ("*xf32", "*xf32")),
    Form("SplitV", ("4xf32", "*xi32", "0 : i32"), ("*xf32", "*xf32")),
    Form("Squeeze", ("2x1xf32",), ("2xf32",), "squeeze_dims = [-3]"),
    Form("StridedSlice", ("2x3xf32", "32xi32", "32xi32", "32xi32"), ("*xf32",)),
    Form("StridedSlice", ("2x3xf32", "1xi32", "2xi32", "?xi32"), ("*xf32",)),
    Form("StridedSlice", ("2x3xf32", "2xi32", "2xi32", "[1, 0] : 2xi32"), ("*xf32",)),
    Form("StridedSlice", ("2x3xf32", "2xi32", "2xi32", "2xi32"), ("*xf32",), "ellipsis_mask = 3 : i64"),
    Form("Tile", ("2x3xf32", "[1, 2] : 2xi32"), ("2x5xf32",)),
    Form("Tile", ("2x3xf32", "[1, -2] : 2xi32"), ("2x?xf32",)),
    Form("Tile", ("2x3xf32", "2xi32"), ("2xf32",)),
    Form("Tile", ("2x3xf32", "3xi32"), ("*xf32",)),
    Form("Transpose", ("2x3xf32", "3xi32"), ("?x?xf32",)),
    Form("Transpose", ("2x3xf32", "[2, 0] : 2xi32"), ("?x?xf32",)),
    Form("Transpose", ("2x3xf32", "2xi32"), ("?xf32",)),
]
