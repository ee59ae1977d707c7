"""The operators that LiteRT's GPU delegate takes: one table, an operator and the conditions on it.

The conditions are those that follow from a file. A delegate may still decline at run time what they allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tfconvert.schema.tflite.reader import View


class Operand(NamedTuple):
    """A tensor that an operator takes or gives.

    Attributes:
        kind: Its element type, as the format names it: `FLOAT32`; empty if the operand is left out.
        shape: Its shape as it is stored; unknown dimensions are 1.
        is_constant: Whether the file has its elements.
    """

    kind: str = ""
    shape: tuple[int, ...] = ()
    is_constant: bool = False


class Use(NamedTuple):
    """One operator of a file.

    Attributes:
        name: The operator; a custom one's own name.
        is_custom: Whether it is a custom operator.
        inputs: What it takes.
        outputs: What it gives.
        options: Its options; `None` if it stores none, which is as if all had their default values.
    """

    name: str
    is_custom: bool
    inputs: Sequence[Operand]
    outputs: Sequence[Operand]
    options: View | None

    def option(self, name: str, default: Any = 0) -> Any:
        """Returns an option's value."""
        return default if self.options is None else self.options[name]

    @property
    def fed(self) -> int:
        """How many of the inputs are computed."""
        return sum(bool(each.kind) and not each.is_constant for each in self.inputs)

    @property
    def constants(self) -> int:
        """How many of the inputs are constants."""
        return sum(each.is_constant for each in self.inputs)


Condition = Callable[[Use], str]
"""Returns why an operator is declined, an empty text if it is not."""

_FLOATS = ("FLOAT16", "FLOAT32")
# The numbers of the activations that may be fused: all but the sign bit.
_ACTIVATIONS = range(5)


def _counts(fed: int, constants: int | None = None, outputs: int = 1) -> Condition:
    def check(use: Use) -> str:
        if use.fed != fed:
            return f"{use.fed} of its inputs are computed, not {fed}"
        if constants is not None and use.constants != constants:
            return f"{use.constants} of its inputs are constants, not {constants}"
        return "" if len(use.outputs) == outputs else f"it has {len(use.outputs)} outputs, not {outputs}"

    return check


def _inputs(*counts: int) -> Condition:
    wanted = " or ".join(map(str, counts))
    return lambda use: "" if len(use.inputs) in counts else f"it has {len(use.inputs)} inputs, not {wanted}"


def _pair(use: Use) -> str:
    """Two operands that are computed, or one with a constant."""
    if len(use.outputs) == 1 and (use.fed, use.constants) in ((2, 0), (1, 1)):
        return ""
    return "it must have two operands, of which one at least is computed"


def _activation(use: Use) -> str:
    number = use.option("fused_activation_function")
    return "" if number in _ACTIVATIONS else f"the activation {use.options and use.options.tree()} can't be fused"


def _positive(*names: str) -> Condition:
    def check(use: Use) -> str:
        return next((f"{name} is {use.option(name)}" for name in names if use.option(name) <= 0), "")

    return check


def _convolution(use: Use) -> str:
    if use.fed > 2 or len(use.outputs) != 1 or len(use.inputs) < 2:
        return "a convolution must have a filter, and at most two inputs that are computed"
    return ""


def _depthwise(use: Use) -> str:
    shapes = [use.inputs[0].shape, use.inputs[1].shape, use.outputs[0].shape]
    if any(len(shape) != 4 for shape in shapes):
        return "its tensors must have four dimensions"
    image, filters, result = shapes
    multiplier = use.option("depth_multiplier")
    if image[0] != result[0] or filters[3] != result[3] or result[3] != image[3] * multiplier:
        return "its shapes don't agree"
    if multiplier != 1 and image[3] != 1:
        return f"a depth multiplier of {multiplier} with {image[3]} channels"
    return ""


def _axes(use: Use) -> str:
    axes = use.inputs[1]
    if not axes.is_constant:
        return "its axes must be constants"
    return "" if axes.kind == "INT32" else f"its axes must be INT32, not {axes.kind}"


def _cast(use: Use) -> str:
    before, after = use.inputs[0].kind, use.outputs[0].kind
    numbers = ("FLOAT32", "INT32")
    with_flags = {before, after} - {"BOOL"} <= set(_FLOATS) and (before == "BOOL") != (after == "BOOL")
    return "" if with_flags or (before in numbers and after in numbers) else f"from {before} to {after}"


def _rank(*ranks: int) -> Condition:
    wanted = " or ".join(map(str, ranks))

    def check(use: Use) -> str:
        rank = len(use.inputs[0].shape)
        return "" if rank in ranks else f"its input has {rank} dimensions, not {wanted}"

    return check


def _block(use: Use) -> str:
    return "" if use.option("block_size") > 1 else "its blocks must be larger than 1"


def _dequantize(use: Use) -> str:
    return "from INT16" if use.inputs[0].kind == "INT16" else ""


def _matrix(use: Use) -> str:
    if use.option("weights_format"):
        return "its weights are shuffled"
    if use.fed > 2 or use.inputs[0].is_constant:
        return "its input must be computed, and at most one more"
    if use.option("keep_num_dims") and len(use.inputs[0].shape) != len(use.outputs[0].shape):
        return "input and output have different numbers of dimensions"
    return ""


def _gather(use: Use) -> str:
    table, places = use.inputs[:2]
    if table.kind == "INT32":
        return "from INT32"
    if len(places.shape) != 1 or places.kind != "INT32":
        return "its indices must be INT32, of one dimension"
    return ""


def _small_multiple(use: Use) -> str:
    one, other = (each.shape for each in use.inputs)
    if len(one) != len(other):
        return ""
    grows = {(a > b) - (a < b) for a, b in zip(one, other, strict=True)}
    return "each operand is smaller than the other in a dimension" if {1, -1} <= grows else ""


def _one_hot(use: Use) -> str:
    places, _, on, off = use.inputs
    axis, shape = use.option("axis"), places.shape
    if places.kind != "INT32" or (axis != -1 and axis != (shape[-1] if shape else None)):
        return "its indices must be INT32, and its axis the last"
    if any(size != 1 for size in (shape[1:-1] if len(shape) > 3 else shape[:-1])):
        return "only the batch and the channels may be larger than 1"
    plain = all(each.kind == "FLOAT32" and each.is_constant and math.prod(each.shape) <= 1 for each in (on, off))
    return "" if plain else "its values must be FLOAT32, and single constants"


def _select(use: Use) -> str:
    chosen, one, other = use.inputs
    if chosen.kind not in ("BOOL", *_FLOATS) or one.kind not in _FLOATS or other.kind not in _FLOATS:
        return f"of {one.kind} and {other.kind} by {chosen.kind}"
    whole = use.outputs[0].shape
    fits = all(each.shape in ((), whole, (1,)) for each in (one, other))
    return "" if fits else "what it chooses from must have the result's shape, or one element"


def _cumulative(use: Use) -> str:
    values, axis = use.inputs
    good = values.kind in _FLOATS and values.kind == use.outputs[0].kind and axis.kind == "INT32" and axis.is_constant
    return "" if good else "its numbers must be floats, and its axis an INT32 constant"


def _strided(use: Use) -> str:
    return next(
        (
            f"its {mask} isn't zero"
            for mask in ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
            if use.option(mask)
        ),
        "",
    )


def _margins(use: Use) -> str:
    shape = use.inputs[1].shape
    return "" if shape in ((3, 2), (4, 2)) else f"its paddings have the shape {list(shape)}, not [3, 2] or [4, 2]"


def _lstm(use: Use) -> str:
    activation = use.option("fused_activation_function")
    if use.option("kernel_type") == 0:
        # 4 is the number of tanh.
        return _inputs(20, 24)(use) or (
            "" if activation == 4 and len(use.outputs) == 1 else "it has another activation"
        )
    clipped = use.option("cell_clip") or use.option("proj_clip")
    return _counts(3, 2, 4)(use) or ("numbers are clipped" if clipped else "" if activation == 4 else "not by tanh")


def _reflects(use: Use) -> str:
    return "it repeats the border" if use.option("mode") else ""


def _corners(use: Use) -> str:
    both = use.option("align_corners") and use.option("half_pixel_centers")
    return "align_corners and half_pixel_centers exclude each other" if both else ""


def _beta(use: Use) -> str:
    beta = use.option("beta", 1.0)
    return "" if beta == 1 else f"beta is {beta}, not 1"


_STRIDES = ("stride_h", "stride_w")
_DILATED = _positive(*_STRIDES, "dilation_h_factor", "dilation_w_factor")
_POOL: Sequence[Condition] = (_counts(1), _positive(*_STRIDES, "filter_height", "filter_width"), _activation)
_REDUCTION: Sequence[Condition] = (_counts(1), _axes)
_PAD: Sequence[Condition] = (_counts(1), _margins)
_ANY = ("PACK", "RELU_N1_TO_1", "PRELU", "SPLIT", "SPLIT_V", "RELU", "RELU6", "LEAKY_RELU", "CONCATENATION")
_OF_ONE = (
    "ABS",
    "COS",
    "ELU",
    "EXP",
    "FLOOR",
    "GELU",
    "LOG",
    "LOGISTIC",
    "NEG",
    "RSQRT",
    "SIGN",
    "SIN",
    "SQRT",
    "SQUARE",
    "TANH",
)
_OF_TWO = (
    "EQUAL",
    "FLOOR_DIV",
    "FLOOR_MOD",
    "GREATER",
    "GREATER_EQUAL",
    "LOGICAL_AND",
    "LESS",
    "LESS_EQUAL",
    "MAXIMUM",
    "MINIMUM",
    "NOT_EQUAL",
    "POW",
    "SQUARED_DIFFERENCE",
)
_OF_ONE_FED = ("QUANTIZE", "HARD_SWISH", "RESHAPE", "TILE", "TRANSPOSE", "RESIZE_NEAREST_NEIGHBOR")

ROWS: Mapping[str, Sequence[Condition]] = {
    **dict.fromkeys(_ANY, ()),
    **dict.fromkeys(_OF_ONE, (_counts(1, 0),)),
    **dict.fromkeys(_OF_TWO, (_pair,)),
    **dict.fromkeys(_OF_ONE_FED, (_counts(1),)),
    "ADD": (_inputs(2),),
    "ADD_N": (_inputs(2),),
    "AVERAGE_POOL_2D": _POOL,
    "BATCH_MATMUL": (_inputs(2),),
    "CAST": (_counts(1), _cast),
    "CONV_2D": (_convolution, _DILATED, _activation),
    "CUMSUM": (_inputs(2), _cumulative),
    "DENSIFY": (_counts(0),),
    "DEPTHWISE_CONV_2D": (_convolution, _DILATED, _activation, _depthwise),
    "DEPTH_TO_SPACE": (_counts(1), _block),
    "DEQUANTIZE": (_inputs(1), _dequantize),
    "DIV": (_pair, _activation),
    "FULLY_CONNECTED": (_matrix,),
    "GATHER": (_pair, _gather),
    "LSTM": (_lstm,),
    "MAX_POOL_2D": _POOL,
    "MEAN": (_counts(1, 1), _axes),
    "MIRROR_PAD": (_reflects, *_PAD),
    "MUL": (_inputs(2), _small_multiple, _activation),
    "ONE_HOT": (_inputs(4), _one_hot),
    "PAD": _PAD,
    "PADV2": _PAD,
    "REDUCE_MAX": _REDUCTION,
    "REDUCE_MIN": _REDUCTION,
    "REDUCE_PROD": _REDUCTION,
    "RESIZE_BILINEAR": (_counts(1), _corners),
    "SELECT": (_inputs(3), _select),
    "SELECT_V2": (_inputs(3), _select),
    "SLICE": (_inputs(3), _rank(3, 4)),
    "SOFTMAX": (_beta,),
    "SPACE_TO_DEPTH": (_counts(1), _block),
    "STRIDED_SLICE": (_strided, _inputs(4), _rank(3, 4)),
    "SUB": (_pair, _activation),
    "SUM": _REDUCTION,
    "TRANSPOSE_CONV": (_convolution, _positive(*_STRIDES)),
}
"""The operators that the delegate has, and the conditions on each."""


def objection(use: Use) -> str:
    """Returns why the delegate does not take an operator; empty if it may take it."""
    if use.is_custom:
        return "the GPU delegate has no custom operators but its own"
    conditions = ROWS.get(use.name)
    if conditions is None:
        return "the GPU delegate has no such operator"
    return next((why for condition in conditions if (why := condition(use))), "")
