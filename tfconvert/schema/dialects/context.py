"""All dialects of the project, as a text may use them."""

from __future__ import annotations

from tfconvert.schema.dialects import (
    foreign,
    memref,
    quant,
    stablehlo,
    tf,
    tfl,
    tfl_attributes,
    tfl_regions,
    tfl_spelling,
    types,
    upstream,
)
from tfconvert.schema.dialects.affine_maps import parse_affine_map
from tfconvert.schema.dialects.arith import ARITH
from tfconvert.schema.dialects.dense_parsing import parse_dense, parse_dense_resource
from tfconvert.schema.dialects.func import FUNC
from tfconvert.schema.dialects.tensor_proto import TensorProtoAttr
from tfconvert.schema.dialects.tf_attributes import FunctionAttr, PlaceholderAttr, ShapeAttr
from tfconvert.schema.dialects.tf_executor import TF_EXECUTOR
from tfconvert.schema.dialects.tf_saved_model import TF_SAVED_MODEL
from tfconvert.schema.ir.builtin import BUILTIN
from tfconvert.schema.ir.dialect import Dialect, DialectRegistry

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
    (tfl_regions.YieldOp, tfl_regions.CustomTfOp, tfl_regions.ControlNodeOp, tfl_regions.NumericVerifyOp),
    open_ops=tfl_spelling.class_of,
    attributes={
        "const_bytes": tfl.ConstBytesAttr.parse_parameters,
        "mirror_pad_attr": tfl_attributes.MirrorPadAttr.parse_parameters,
        "lstm_kernel_type_attr": tfl_attributes.LSTMKernelTypeAttr.parse_parameters,
        "external_buffer": tfl_attributes.parse_external_buffer,
        "sparsity_parameter": tfl_attributes.parse_sparsity,
    },
    types={"control": tfl_regions.ControlType.parse_parameters},
    assembly=tfl_regions.parse_assembly,
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
        *stablehlo.DIALECTS,
        *foreign.DIALECTS,
        *upstream.DIALECTS,
        *memref.DIALECTS,
    ),
    {"affine_map": parse_affine_map, "dense": parse_dense, "dense_resource": parse_dense_resource},
)
"""The registry of all of them."""
