"""The operator version that a call requires, and the release of the runtime that has it.

A kernel's version states its features: types, ranks, options that were added after the operator itself. A
file states the highest version of each operator that it uses. The rules are rows `version: test`, in the order in which
they are tried; the first test that holds decides, and an operator without rows or without a hit has version 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from tfconvert.schema.tflite import FOLDER

RUNTIME_VERSIONS = FOLDER / "runtime_versions.tsv"

_RELEASE = re.compile(r"\d{1,4}\.\d{1,4}(?:\.\d{1,4})?")


class Operand(NamedTuple):
    """The facts on an operand or a result that rules on kernels read.

    Attributes:
        type: Enumerator of `TensorType`.
        shape: Dimensions, -1 where unknown; `None` if the rank is unknown.
        scales: Scales of the quantisation, empty if it is not quantised.
        sparse: Whether it is stored sparse.
        zero_points: As many as scales; empty also where nobody asks for them.
        axis: The axis that the scales go along, `None` if there is one scale for all.
        block_size: The number of elements that share a scale, 0 if it is not quantised by blocks.
        is_constant: Whether the file holds its value.
    """

    type: str
    shape: tuple[int, ...] | None = None
    scales: tuple[float, ...] = ()
    sparse: bool = False
    zero_points: tuple[int, ...] = ()
    axis: int | None = None
    block_size: int = 0
    is_constant: bool = False


ABSENT = Operand("")
"""Represents an absent operand."""


class Call(NamedTuple):
    """One use of an operator.

    Attributes:
        inputs: The operands; absent ones are `ABSENT`.
        outputs: The results.
        options: Fields of the options table that are set, enums by name.
    """

    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...] = ()
    options: Mapping[str, Any] = MappingProxyType({})

    def operand(self, index: int) -> Operand:
        """Returns an operand, `ABSENT` if there are fewer."""
        return self.inputs[index] if index < len(self.inputs) else ABSENT

    def result(self, index: int) -> Operand:
        """Returns a result, `ABSENT` if there are fewer."""
        return self.outputs[index] if index < len(self.outputs) else ABSENT

    def types(self, *indices: int) -> tuple[str, ...]:
        """Returns the types of some operands."""
        return tuple(self.operand(index).type for index in indices)


Test = Callable[[Call], bool]
Rules = tuple[tuple[int, Test], ...]

FLOAT8 = ("FLOAT8_E4M3FN", "FLOAT8_E5M2")


def _type(*types: str, at: int = 0) -> Test:
    return lambda call: call.operand(at).type in types


def _result(*types: str, at: int = 0) -> Test:
    return lambda call: call.result(at).type in types


def _any_type(*types: str) -> Test:
    """Holds if the operand or the result is of one of the types."""
    return lambda call: call.operand(0).type in types or call.result(0).type in types


def _rank_over(rank: int, at: int = 0) -> Test:
    return lambda call: len(call.operand(at).shape or ()) > rank


def _rank_is_not(rank: int) -> Test:
    return lambda call: len(call.operand(0).shape or ()) != rank


def _option(name: str, *values: Any) -> Test:
    """Holds if an option is set: to one of `values` if there are any, else to anything true."""
    return lambda call: call.options.get(name) in values if values else bool(call.options.get(name))


def _quantized(at: int = 0) -> Test:
    return lambda call: bool(call.operand(at).scales)


def _per_channel(at: int = 0) -> Test:
    return lambda call: len(call.operand(at).scales) > 1


def _all(*tests: Test) -> Test:
    return lambda call: all(test(call) for test in tests)


def _any(*tests: Test) -> Test:
    return lambda call: any(test(call) for test in tests)


def _not(test: Test) -> Test:
    return lambda call: not test(call)


def _broadcast_over_four(call: Call) -> bool:
    left, right = call.operand(0).shape or (), call.operand(1).shape or ()
    return left != right and max(len(left), len(right)) > 4


def _types(*types: str) -> Test:
    """Holds if the operands are of these types, in this order."""
    first, indices = types[0], range(len(types))
    return lambda call: call.operand(0).type == first and call.types(*indices) == types


def _hybrid(weights: int = 1) -> Test:
    """Holds for a float operand with quantised weights."""
    return lambda call: call.operand(0).type == "FLOAT32" and call.operand(weights).type in ("INT8", "UINT8", "INT4")


def _scaled_up(call: Call) -> bool:
    """Holds if the product's scale is not below that of the result."""
    scales = [operand.scales for operand in (call.operand(0), call.operand(1), call.result(0))]
    return all(scales) and scales[0][0] * scales[1][0] / scales[2][0] >= 1


def _by_type(*steps: tuple[int, str], at: int = 0) -> Rules:
    """Returns rules on one operand's type: `(version, types separated by spaces)`."""
    return tuple((version, _type(*types.split(" "), at=at)) for version, types in steps)


_PLAIN_INT16 = _all(_type("INT16"), _not(_quantized()))
_BROADCAST: Rules = ((3, _broadcast_over_four),)
_FLOAT8 = " ".join(FLOAT8)
_INT8 = _by_type((2, "INT8"))
_INT8_INT16 = _by_type((2, "INT8 INT16"))
_INT16_3 = _by_type((3, "INT16"), (2, "INT8"))
_INT16_3_BYTES = _by_type((3, "INT16"), (2, "INT8 UINT8"))
_HYBRID_RNN: Rules = ((3, _all(_hybrid(), _option("asymmetric_quantize_inputs"))), (2, _hybrid()))
_NO_POT_SCALE = _option("pot_scale_int16", False)
_BIAS_TYPE = _option("quantized_bias_type", "INT32", "INT64")
_EXTREME: Rules = (*_by_type((4, "INT16")), *_BROADCAST, *_INT8)
_BLOCKS: Rules = (*_by_type((4, "INT16")), (3, _rank_is_not(4)), *_INT8)
_PADS: Rules = (*_by_type((6, _FLOAT8), (5, "BOOL")), (4, _rank_over(4)), *_INT16_3)
_ARG: Rules = _by_type((3, "BOOL"), (2, "INT8"))


def _grouped(call: Call) -> bool:
    """Holds if each filter sees only a part of the channels."""
    image, filters = call.operand(0).shape or (), call.operand(1).shape or ()
    return len(image) == len(filters) == 4 and 0 < filters[3] != image[3] > 0


RULES: Mapping[str, Rules] = {
    "ADD": (
        *_by_type((6, "FLOAT16")),
        (5, _PLAIN_INT16),
        *_by_type((4, "INT64")),
        (3, _all(_type("INT16"), _NO_POT_SCALE)),
        *_INT8,
    ),
    "SUB": ((5, _all(_type("INT16"), _NO_POT_SCALE)), *_by_type((4, "INT64")), *_BROADCAST, *_INT8),
    "MUL": (
        *_by_type((8, "FLOAT16")),
        (7, _any(_PLAIN_INT16, _type("UINT32"))),
        *_by_type((6, "COMPLEX64"), (5, "INT64"), (4, "INT16")),
        (3, _scaled_up),
        *_INT8,
    ),
    "DIV": ((2, _broadcast_over_four),),
    "ABS": (*_by_type((5, "INT32")), (4, _PLAIN_INT16), *_by_type((3, "INT16"), (2, "INT8 UINT8"))),
    "SIGN": _by_type((2, "INT32")),
    **dict.fromkeys(("SIN", "COS"), _by_type((2, "FLOAT16"))),
    **dict.fromkeys(("EXP", "LOG", "SQRT", "REDUCE_PROD"), _INT8_INT16),
    **dict.fromkeys(("RSQRT", "RELU6", "MEAN", "MIRROR_PAD", "REDUCE_MIN", "REDUCE_MAX"), _INT16_3),
    **dict.fromkeys(("TANH", "LOGISTIC", "AVERAGE_POOL_2D", "MAX_POOL_2D", "TOPK_V2"), _INT16_3),
    "RELU": _INT16_3_BYTES,
    "LEAKY_RELU": _by_type((2, "INT16")),
    "SOFTMAX": _by_type((4, "FLOAT16"), (3, "INT16"), (2, "INT8")),
    "GELU": _by_type((3, "FLOAT16"), (2, "INT8 UINT8")),
    "L2_NORMALIZATION": ((2, _result("INT8")),),
    "CONV_2D": (
        (8, _all(_types("INT16", "INT8"), _BIAS_TYPE)),
        (6, _grouped),
        (3, _types("INT8", "INT8")),
        (7, _types("INT8", "INT4")),
        (5, _all(_types("FLOAT32", "INT8"), _per_channel(1))),
        (2, _types("FLOAT32", "INT8")),
    ),
    "DEPTHWISE_CONV_2D": (
        (5, _types("INT16", "INT8")),
        (6, _all(_types("FLOAT32", "INT8"), _per_channel(1))),
        (4, _types("FLOAT32", "INT8")),
        (3, _types("INT8", "INT8")),
        (7, _types("INT8", "INT4")),
        (2, lambda call: any(call.options.get(f"dilation_{axis}_factor", 1) != 1 for axis in "wh")),
    ),
    "TRANSPOSE_CONV": (
        (5, _all(_type("INT16", at=2), _BIAS_TYPE)),
        (4, _option("fused_activation_function", "RELU", "RELU6", "RELU_N1_TO_1", "TANH", "SIGN_BIT")),
        (3, lambda call: call.operand(3) is not ABSENT),
        (2, _type("INT8", at=1)),
    ),
    "FULLY_CONNECTED": (
        (14, _type("INT2", at=1)),
        (13, _types("INT16", "INT4")),
        (12, _all(_hybrid(), _per_channel(1))),
        (11, _all(_types("INT16", "INT8"), _BIAS_TYPE)),
        (8, lambda call: call.operand(1).sparse),
        (7, _types("INT16", "INT16")),
        (6, lambda call: len(call.inputs) == 2),
        (5, _option("keep_num_dims")),
        (4, _types("INT8", "INT8")),
        (10, _types("INT8", "INT4")),
        (9, _all(_hybrid(), _option("asymmetric_quantize_inputs"))),
        (3, _hybrid()),
        (2, _option("weights_format", "SHUFFLED4x16INT8")),
    ),
    "BATCH_MATMUL": (*_INT16_3, (4, _all(_hybrid(), _option("asymmetric_quantize_inputs")))),
    "EMBEDDING_LOOKUP": (
        (5, _type("INT2", at=1)),
        (4, _any(_type("INT4", at=1), _per_channel(1))),
        (3, _type("INT8", at=1)),
    ),
    "GATHER": (
        *_by_type((8, _FLOAT8), (7, "INT4")),
        (6, _type("INT16", at=1)),
        (5, _option("batch_dims")),
        *_by_type((4, "INT16"), (3, "BOOL"), (2, "INT8")),
    ),
    "GATHER_ND": (
        *_by_type((6, _FLOAT8), (5, "BOOL")),
        (4, _type("INT16", at=1)),
        *_by_type((3, "INT16"), (2, "STRING")),
    ),
    "TRANSPOSE": (
        *_by_type((9, "FLOAT16")),
        (8, _any(_rank_over(6), _type("BFLOAT16"))),
        *_by_type((7, "INT4")),
        (6, _rank_over(5)),
        *_by_type((5, "INT16")),
        (4, _rank_over(4)),
        *_by_type((3, "BOOL"), (2, "INT8")),
    ),
    "SLICE": (
        *_by_type((8, "FLOAT16"), (7, "INT4"), (6, "UINT32")),
        (5, _rank_over(4)),
        *_by_type((4, "INT16"), (3, "STRING"), (2, "INT8")),
    ),
    "STRIDED_SLICE": (
        (8, _option("offset")),
        *_by_type((7, "UINT32")),
        (6, _any(_option("ellipsis_mask"), _option("new_axis_mask"))),
        *_by_type((5, "STRING")),
        (4, _rank_over(4)),
        *_by_type((3, "BOOL"), (2, "INT8")),
    ),
    "SPLIT": _by_type((5, _FLOAT8), (4, "INT16"), (3, "INT32"), (2, "INT8"), at=1),
    "SPLIT_V": _by_type((3, _FLOAT8), (2, "INT8")),
    "PACK": _by_type((5, _FLOAT8), (4, "UINT32"), (3, "INT16"), (2, "INT8")),
    "UNPACK": _by_type((6, _FLOAT8), (5, "FLOAT16 BFLOAT16"), (4, "INT16"), (3, "BOOL"), (2, "INT8 UINT8")),
    "CONCATENATION": _by_type((7, _FLOAT8), (6, "FLOAT16"), (5, "INT4"), (4, "UINT32"), (3, "INT16"), (2, "INT8")),
    **dict.fromkeys(("PAD", "PADV2"), _PADS),
    "TILE": _by_type((3, "INT8"), (2, "STRING")),
    "SQUEEZE": _by_type((2, "STRING")),
    "FILL": _by_type((5, _FLOAT8), (4, "FLOAT16"), (3, "INT8 INT16"), (2, "BOOL STRING"), at=1),
    **dict.fromkeys(("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"), _BLOCKS),
    "RESIZE_BILINEAR": (*_by_type((4, "INT16")), (3, _option("half_pixel_centers")), *_INT8),
    "RESIZE_NEAREST_NEIGHBOR": (
        *_by_type((4, "INT16")),
        (3, _any(_option("half_pixel_centers"), _option("align_corners"))),
        *_INT8,
    ),
    "REVERSE_V2": _by_type((4, _FLOAT8), (3, "INT8"), (2, "BOOL")),
    "BROADCAST_TO": (*_by_type((4, _FLOAT8), (3, "INT8 INT16")), (2, lambda call: True)),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), _EXTREME),
    "EQUAL": _by_type((5, "INT16"), (3, "STRING"), (2, "INT8")),
    "NOT_EQUAL": _by_type((4, "INT16"), (3, "STRING"), (2, "INT8")),
    **dict.fromkeys(("LESS", "GREATER_EQUAL"), _INT16_3),
    **dict.fromkeys(("GREATER", "LESS_EQUAL"), _INT8),
    "SELECT": (
        (4, _type("UINT32")),
        (3, lambda call: any(len(call.operand(index).shape or ()) == 5 for index in range(3))),
        *_INT8,
    ),
    "SELECT_V2": _by_type((2, "UINT32")),
    "FLOOR_DIV": _by_type((3, "INT8 INT16"), (2, "FLOAT32")),
    "FLOOR_MOD": _INT8_INT16,
    "RANGE": _by_type((2, "INT64")),
    "WHERE": ((2, _not(_type("BOOL"))),),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), _ARG),
    **dict.fromkeys(("SUM", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "LOG_SOFTMAX", "SQUARED_DIFFERENCE"), _INT8),
    "SPARSE_TO_DENSE": _by_type((3, "INT8 UINT8"), (2, "INT64"), at=2),
    "DYNAMIC_UPDATE_SLICE": (
        *_by_type((6, "BFLOAT16"), (5, "INT4"), (4, "INT16"), (3, "FLOAT16")),
        (2, _type("INT64", at=2)),
    ),
    "CAST": (
        (9, _any_type(*FLOAT8)),
        (8, _any_type("INT2", "UINT4")),
        (7, _any_type("BFLOAT16")),
        (6, _all(_type("INT4"), _result("FLOAT32"))),
        (5, _any_type("FLOAT64", "FLOAT16")),
        (4, _any_type("UINT16")),
        (3, _any_type("INT8")),
        (2, _any_type("UINT32")),
    ),
    "FAKE_QUANT": ((2, _option("narrow_range")),),
    "QUANTIZE": (
        (5, _any_type("UINT4")),
        (4, _any_type("INT4")),
        (3, lambda call: len(call.result(0).scales) > 1),
        (2, _result("INT16")),
    ),
    "DEQUANTIZE": (
        *_by_type((9, _FLOAT8), (8, "UINT4"), (7, "INT2"), (6, "INT4"), (3, "INT16 FLOAT16")),
        (5, _all(_type("INT8"), _per_channel())),
        *_INT8,
    ),
    "LSTM": (
        (5, lambda call: call.types(0, 2) == ("INT16", "INT8")),
        (4, _all(_hybrid(2), _option("asymmetric_quantize_inputs"))),
        (3, _hybrid(2)),
        (2, _option("kernel_type", "BASIC")),
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        (5, lambda call: call.types(0, 2) == ("INT16", "INT8")),
        (4, _option("diagonal_recurrent_tensors")),
        (3, _all(_hybrid(2), _option("asymmetric_quantize_inputs"))),
        (2, _hybrid(2)),
    ),
    "BIDIRECTIONAL_SEQUENCE_LSTM": ((3, _all(_hybrid(), _option("asymmetric_quantize_inputs"))), (2, _hybrid())),
    **dict.fromkeys(("BIDIRECTIONAL_SEQUENCE_RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "RNN"), _HYBRID_RNN),
    "SVDF": (*_by_type((3, "INT8")), (4, _all(_hybrid(), _option("asymmetric_quantize_inputs"))), (2, _hybrid())),
}
"""Rows of each operator by the format's enumerator."""


def operator_version(operator: str, call: Call) -> int:
    """Returns the version of an operator that a call requires.

    Args:
        operator: Enumerator of `BuiltinOperator`.
        call: The call.
    """
    return next((version for version, test in RULES.get(operator, ()) if test(call)), 1)


@cache
def _releases() -> Mapping[str, tuple[str, ...]]:
    lines = (line for line in RUNTIME_VERSIONS.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    rows = (line.split("\t") for line in lines)
    return {name.upper(): tuple(releases.split(" ")) for name, releases in rows}


Release = tuple[float, ...]
"""A release of the runtime, as numbers that can be compared."""


def first_release(operator: str, version: int) -> str:
    """Returns the first release of the runtime that can run a version of an operator; empty if that is not known."""
    releases = _releases().get(operator, ())
    release = releases[version - 1] if 0 < version <= len(releases) else "-"
    return "" if release == "-" else release


def newest_version(operator: str) -> int:
    """Returns the newest version of an operator that is known, 0 if nothing is."""
    listed = len(_releases().get(operator, ()))
    return max((listed, *(version for version, _ in RULES.get(operator, ())))) if listed else 0


def parse_release(text: str) -> Release | None:
    """Returns a release as numbers, `None` if it isn't one; of `2.14` the last one, whatever its third number."""
    if not _RELEASE.fullmatch(text):
        return None
    numbers = [float(part) for part in text.split(".")]
    return tuple(numbers + [math.inf] * (3 - len(numbers)))


def minimum_runtime(uses: Iterable[tuple[str, int]]) -> str:
    """Returns the first release of the runtime that can run some operators; empty if nothing is known.

    Args:
        uses: Pairs of operator and version.
    """
    releases = filter(None, (first_release(operator, version) for operator, version in uses))
    return max(releases, key=lambda release: tuple(map(int, release.split("."))), default="")
