"""Reads modules in the project's dialects, with the constants and attributes that TensorFlow's MLIR writes.

    module = IRParser(text, "model.mlir").parse_module()

After the last op, the OpDef attributes of `tf` ops are put where ours have them (`tf.normalize`), so are the options of
`tfl` ops (`tfl_spelling.normalize`), and constants of a resource section get into their places.
"""

from __future__ import annotations

from tfconvert.schema.dialects import (
    constant_text,
    foreign,
    memref,
    quant,
    sdy,
    stablehlo_spelling,
    tf,
    tfl,
    tfl_spelling,
    types,
    upstream,
)
from tfconvert.schema.dialects.arith import ARITH
from tfconvert.schema.dialects.constant_text import TensorProtoAttr, parse_dense, parse_dense_resource
from tfconvert.schema.dialects.foreign import OpaqueAttr
from tfconvert.schema.dialects.func import FUNC
from tfconvert.schema.dialects.tensor_data import DenseResourceAttr
from tfconvert.schema.dialects.tf_attributes import FunctionAttr, PlaceholderAttr, ShapeAttr
from tfconvert.schema.dialects.tf_executor import TF_EXECUTOR
from tfconvert.schema.dialects.tf_saved_model import TF_SAVED_MODEL
from tfconvert.schema.dialects.upstream import parse_affine_map
from tfconvert.schema.ir.builtin import BUILTIN, ModuleOp
from tfconvert.schema.ir.dialect import Dialect, DialectRegistry
from tfconvert.schema.ir.parser import Parser

TF_TYPE = Dialect(
    "tf_type",
    attributes={
        "shape": ShapeAttr.parse_parameters,
        "func": FunctionAttr.parse_parameters,
        "placeholder": PlaceholderAttr.parse_parameters,
        "tensor_proto": TensorProtoAttr.parse_parameters,
    },
    types=types.TYPES,
)

TFL = Dialect(
    "tfl",
    (tfl_spelling.TFLYieldOp, tfl_spelling.CustomTfOp, tfl_spelling.ControlNodeOp, tfl_spelling.NumericVerifyOp),
    open_ops=tfl_spelling.class_of,
    attributes={
        "const_bytes": tfl.ConstBytesAttr.parse_parameters,
        "mirror_pad_attr": tfl_spelling.MirrorPadAttr.parse_parameters,
        "lstm_kernel_type_attr": tfl_spelling.LSTMKernelTypeAttr.parse_parameters,
        "external_buffer": tfl_spelling.parse_external_buffer,
        "sparsity_parameter": tfl_spelling.parse_sparsity,
    },
    types={"control": tfl_spelling.TFLControlType.parse_parameters},
    assembly=tfl_spelling.parse_assembly,
)

DIALECTS = DialectRegistry(
    (
        BUILTIN,
        ARITH,
        FUNC,
        TF_TYPE,
        TF_EXECUTOR,
        TF_SAVED_MODEL,
        tf.TF,
        TFL,
        quant.QUANT,
        *stablehlo_spelling.DIALECTS,
        *foreign.DIALECTS,
        sdy.SDY,
        *upstream.DIALECTS,
        *memref.DIALECTS,
    ),
    {"affine_map": parse_affine_map, "dense": parse_dense, "dense_resource": parse_dense_resource},
    OpaqueAttr.syntax,
)
"""The registry of all of them."""


class IRParser(Parser):
    """Parses modules in the project's dialects.

    Args:
        text: The text.
        filename: The file's name, for messages.
        first_line: The number of the text's first line, if it is a part of a file.
        locate: Whether an op without a location gets its place in the text.
    """

    def __init__(self, text: str, filename: str = "<unknown>", first_line: int = 1, *, locate: bool = False) -> None:
        super().__init__(DIALECTS, text, filename, first_line, locate=locate)

    def parse_module(self) -> ModuleOp:
        module = super().parse_module()
        beside: list[tfl.TFLOp] = []
        for op in module.walk():
            if isinstance(op, tf.TFOp):
                tf.normalize(op)
            elif isinstance(op, tfl.TFLOp):
                tfl_spelling.normalize(op)
                if op.op_name == tfl.EXTERNAL_CONST:
                    beside.append(op)
            for name, value in op.properties.items():
                if isinstance(value, DenseResourceAttr) and (digits := self.resources.get(value.handle)):
                    op.properties[name] = constant_text.resource(self, value, digits)
        tfl_spelling.collect_external_buffers(module, beside)
        return module
