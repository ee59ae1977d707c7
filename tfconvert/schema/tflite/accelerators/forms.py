"""The form of a call: the types of its data, and the conditions that decide whether an accelerator takes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from tfconvert.schema.tflite import kernels, operators
from tfconvert.schema.tflite.versions import ABSENT, Call, Operand

ANY = "*"
"""Stands for all signatures in a table."""

# Operands that are neither data nor parameters: they are not part of a signature.
_LEFT_OUT = frozenset(("bias", "on_value", "off_value", "constant_values", "begin_mask"))

_VARIABLE_COUNT = ("CONCATENATION", "PACK", "SPLIT", "SPLIT_V", "UNPACK")


class CallForm:
    """The form of one call.

    Args:
        operator: Enumerator of `BuiltinOperator`.
        call: The call.
    """

    def __init__(self, operator: str, call: Call) -> None:
        self.operator = operator
        # Constants that are stored as f16 are constants for accelerators, too.
        inputs = tuple(each._replace(is_constant=True) if each.origin == "f16" else each for each in call.inputs)
        self.call = call._replace(inputs=inputs)
        self._declared = operators.lookup(operator.lower())

    @cached_property
    def named(self) -> Mapping[str, Operand]:
        """The operands by their names; of a variable number of operands the first one only."""
        names = [value.name for value in self._declared.operands] if self._declared is not None else []
        return dict(zip(names, self.call.inputs, strict=False))

    @cached_property
    def data(self) -> Sequence[Operand]:
        """The operands that are data, without biases and parameters such as axes."""
        names = [value.name for value in self._declared.operands] if self._declared is not None else []
        is_data = [name not in kernels.PARAMETERS and name not in _LEFT_OUT for name in names]
        return [
            operand
            for index, operand in enumerate(self.call.inputs)
            if operand.type and (index >= len(is_data) or is_data[index])
        ]

    @cached_property
    def main(self) -> Operand:
        """The operand that the operator is applied to."""
        if self.operator in ("SELECT", "SELECT_V2"):
            return max(self.data, key=lambda each: len(each.shape or ()), default=ABSENT)
        for name in ("input", "params", "value"):
            if name in self.named and self.operator != "EMBEDDING_LOOKUP":
                return self.named[name]
        return self.data[0] if self.data else ABSENT

    @cached_property
    def weights(self) -> Operand:
        """The weights; `ABSENT` if the operator has none."""
        row = operators.filters().get(self.operator.lower())
        return ABSENT if row is None else self.call.operand(row.operand)

    @cached_property
    def bias(self) -> Operand:
        """The bias; `ABSENT` if it is missing."""
        return self.named.get("bias", ABSENT)

    @cached_property
    def signature(self) -> str:
        """The types of the data and of the results, `f32,i8c>f32`."""
        outputs = [kernels.type_form(operand) for operand in self.call.outputs]
        return kernels.joined(self._declared, [kernels.type_form(operand) for operand in self.data], outputs)

    @cached_property
    def rank(self) -> int:
        """The maximum rank of data and results."""
        return max((len(each.shape or ()) for each in (*self.data, *self.call.outputs)), default=0)

    def option(self, name: str, default: Any = 0) -> Any:
        """Returns an option."""
        value = self.call.options.get(name)
        return default if value is None else value

    def elements(self, *names: str) -> Sequence[float]:
        """Returns the elements of a constant parameter; empty if it is not known."""
        found = next((self.named[name] for name in names if name in self.named), ABSENT)
        return found.elements or ()

    @cached_property
    def axes(self) -> Sequence[int]:
        """The axes that the operator works along, not negative; empty if they are not known."""
        stated = self.call.options.get("axis")
        found = self.elements("axis", "axes", "dim", "reduction_indices", "split_dim")
        if stated is not None and self.operator not in ("ONE_HOT",):
            found = (stated,)
        rank = len((self.call.result(0) if self.operator == "PACK" else self.main).shape or ())
        return [int(axis) % rank for axis in found] if rank else []

    def channels(self, operand: Operand) -> int:
        """Returns the last size of an operand; 1 if it has none."""
        return operand.shape[-1] if operand.shape else 1


def _count(operand: Operand) -> int:
    return math.prod(operand.shape or ())


def _computed(operands: Sequence[Operand]) -> list[Operand]:
    return [operand for operand in operands if not operand.is_constant]


def _constants(form: CallForm) -> list[Operand]:
    return [operand for operand in form.data if operand.is_constant]


def _has_rows(form: CallForm) -> bool:
    """Returns whether a constant of the call's rank, 1 to 3, varies along the first axis."""
    return any(0 < len(each.shape or ()) == form.rank < 4 and (each.shape or (1,))[0] > 1 for each in _constants(form))


def _has_vector(form: CallForm) -> bool:
    """Returns whether a constant of lower rank than the call has several elements."""
    return any(0 < len(each.shape or ()) < form.rank and _count(each) > 1 for each in _constants(form))


def _has_twins(form: CallForm) -> bool:
    tensors = [each.tensor for each in _computed(form.call.inputs) if each.type and each.tensor is not None]
    return len(set(tensors)) < len(tensors)


def _has_unknown_parameter(form: CallForm) -> bool:
    return any(
        name in kernels.PARAMETERS and operand.type and not operand.is_constant for name, operand in form.named.items()
    )


def _has_wide_parameter(form: CallForm) -> bool:
    return any(name in kernels.PARAMETERS and operand.type == "INT64" for name, operand in form.named.items())


def _groups(form: CallForm) -> tuple[int, int, int]:
    """Returns the groups of a convolution, and the inputs and outputs of each."""
    shapes = form.main.shape or (), form.weights.shape or ()
    if form.operator != "CONV_2D" or len(shapes[0]) != 4 or len(shapes[1]) != 4 or not shapes[1][3]:
        return 1, 4, 4
    groups = max(shapes[0][3] // shapes[1][3], 1)
    return groups, shapes[1][3], shapes[1][0] // groups


def _has_odd_groups(form: CallForm) -> bool:
    groups, taken, given = _groups(form)
    is_depthwise = taken == given == 1
    return groups > 1 and not is_depthwise and (taken % 4 > 0 or given % 4 > 0)


def _has_crossing_groups(form: CallForm) -> bool:
    groups, taken, _ = _groups(form)
    return groups > 1 and taken > 4 and taken % 4 > 0


def _spans(form: CallForm) -> list[tuple[int, int, int, int]]:
    """Returns the sizes of a transposed convolution with the padding SAME: operand, result, filter and stride."""
    if form.operator != "TRANSPOSE_CONV" or form.option("padding") not in ("SAME", 0):
        return []
    before, after, filters = form.main.shape or (), form.call.result(0).shape or (), form.weights.shape or ()
    strides = form.option("stride_h", 1), form.option("stride_w", 1)
    return list(zip(before[1:3], after[1:3], filters[1:3], strides, strict=False))


def _is_cropped(form: CallForm) -> bool:
    return any(result != size * stride for size, result, _, stride in _spans(form))


def _is_shifted(form: CallForm) -> bool:
    """Returns whether the padding in front is not that of a convolution of the operand, as the GPU has it.

    Right is that of the convolution which makes the operand of the result.
    """
    return any(
        _padding_in_front(size, kernel, stride) != _padding_in_front(result, kernel, stride)
        for size, result, kernel, stride in _spans(form)
    )


def _padding_in_front(size: int, kernel: int, stride: int) -> int:
    """Returns how far a convolution with the padding SAME pads in front."""
    steps = -(-size // stride) - 1
    return max(steps * stride + kernel - size, 0) // 2


def _is_flattened(form: CallForm) -> bool:
    shape, weights = form.main.shape or (), form.weights.shape or ()
    return form.operator == "FULLY_CONNECTED" and len(shape) > 1 and shape[-1:] != weights[-1:]


def _broadcasts(form: CallForm) -> bool:
    return len({operand.shape for operand in form.data}) > 1


def _broadcasts_batches(form: CallForm) -> bool:
    """Returns whether a product repeats an operand for each batch of the other, except a constant matrix."""
    shapes = [operand.shape or () for operand in form.data[:2]]
    if form.operator != "BATCH_MATMUL" or _has_constant_matrix(form):
        return False
    rank = max(map(len, shapes))
    batches = [(1,) * (rank - len(shape)) + shape[:-2] for shape in shapes]
    return batches[0] != batches[1]


def _has_constant_matrix(form: CallForm) -> bool:
    return form.operator == "BATCH_MATMUL" and form.data[1].is_constant and len(form.data[1].shape or ()) == 2


def _flips_constant(form: CallForm) -> bool:
    return _has_constant_matrix(form) and bool(form.option("adj_x") or form.option("adj_y"))


def _has_low_mask(form: CallForm) -> bool:
    mask = form.named.get("condition", ABSENT)
    return _count(mask) > 1 and 0 < len(mask.shape or ()) < min(form.rank, 3)


def _has_flat_mask(form: CallForm) -> bool:
    mask = form.named.get("condition", ABSENT)
    return _count(mask) > 1 and 0 < len(mask.shape or ()) < form.rank


def _has_partial_choice(form: CallForm) -> bool:
    result = form.call.result(0).shape or ()
    choices = [form.named.get(name, ABSENT) for name in ("x", "y")]
    return "condition" in form.named and any(each.shape not in ((), (1,), result) for each in choices)


def _pads(form: CallForm) -> Sequence[tuple[float, float]]:
    found = form.elements("padding", "pad", "paddings")
    return [(found[at], found[at + 1]) for at in range(0, len(found) - 1, 2)]


def _pads_batch(form: CallForm) -> bool:
    return any(any(pair) for pair in _pads(form)[:1])


def _has_infinity(form: CallForm) -> bool:
    return any(math.isinf(value) for each in form.call.inputs for value in each.elements or () if each.is_constant)


def _has_inner(form: CallForm) -> bool:
    """Returns whether an operand of a higher rank has several elements between the first and the last axis."""
    shape = form.main.shape or ()
    return form.operator == "ONE_HOT" and len(shape) > 2 and math.prod(shape[1:-1]) > 1


def _indices_rank(form: CallForm) -> int:
    return len(form.named.get("indices", ABSENT).shape or ())


def _updates_rows(form: CallForm) -> bool:
    whole, part = form.named.get("operand", ABSENT), form.named.get("update", ABSENT)
    return bool(whole.shape and part.shape) and (whole.shape or ())[:1] != (part.shape or ())[:1]


def _has_axis(test: Callable[[int, int], bool]) -> Callable[[CallForm], bool]:
    """Returns the test whether an axis is as wanted; it gets the axis and the rank."""
    return lambda form: any(test(axis, len(form.main.shape or ())) for axis in form.axes)


def _option_is(name: str, *values: Any) -> Callable[[CallForm], bool]:
    return lambda form: form.option(name) in values


def _is_set(name: str) -> Callable[[CallForm], bool]:
    return lambda form: bool(form.option(name))


def _has_data(index: int, *, constant: bool) -> Callable[[CallForm], bool]:
    return lambda form: len(form.data) > index and form.data[index].is_constant is constant


def _has_strides(form: CallForm) -> bool:
    return any(value < 0 for value in form.elements("strides"))


def _steps_last(form: CallForm) -> bool:
    """Returns whether a slice of all axes takes not every element of the last one."""
    strides = form.elements("strides")
    return len(strides) == len(form.main.shape or ()) > 0 and strides[-1] not in (1, -1)


def _reduces_depth(form: CallForm) -> bool:
    """Returns whether a reduction along the last axis has two other axes with several elements."""
    shape = form.main.shape or ()
    return len(shape) - 1 in form.axes and sum(size > 1 for size in shape[:-1]) > 1


def _scales_oddly(form: CallForm) -> bool:
    """Returns whether an image is not made 1, 2, 4 or 8 times as large in both directions."""
    before, after = (form.main.shape or ())[1:3], (form.call.result(0).shape or ())[1:3]
    if not form.operator.startswith("RESIZE_") or len(before) < 2 or before == (1, 1):
        return False
    aligned = 1 if form.option("align_corners") else 0
    factors = {(new - aligned) / max(old - aligned, 1) for old, new in zip(before, after, strict=False)}
    return len(factors) > 1 or not factors <= {1, 2, 4, 8}


def _has_fewer(form: CallForm) -> bool:
    begin = form.named.get("begin", ABSENT)
    return bool(begin.shape) and form.operator == "STRIDED_SLICE" and begin.shape != (len(form.main.shape or ()),)


def _has_odd_alpha(form: CallForm) -> bool:
    alpha = form.named.get("alpha", ABSENT)
    return "alpha" in form.named and (
        _count(alpha) == 1 or any(size not in (1, own) for size, own in _aligned(alpha, form.main))
    )


def _has_partial_alpha(form: CallForm) -> bool:
    alpha = form.named.get("alpha", ABSENT)
    pairs = _aligned(alpha, form.main)
    is_vector = all(size == 1 for size, _ in pairs[:-1])
    return not is_vector and any(size == 1 < own for size, own in pairs)


def _aligned(part: Operand, whole: Operand) -> list[tuple[int, int]]:
    sizes = part.shape or ()
    return list(zip(sizes, (whole.shape or ())[len(whole.shape or ()) - len(sizes) :], strict=False))


def _multiplies(form: CallForm) -> bool:
    return form.operator == "DEPTHWISE_CONV_2D" and form.channels(form.call.result(0)) != form.channels(form.main)


def _has_odd_units(form: CallForm) -> bool:
    return form.operator == "LSTM" and form.channels(form.call.result(0)) % 4 > 0


CONDITIONS: Mapping[str, tuple[Callable[[CallForm], bool], str]] = {
    "rank0": (lambda form: form.rank == 0, "its data are scalars"),
    "rank1": (lambda form: form.rank == 1, "its data have rank 1"),
    "rank<3": (lambda form: form.rank < 3, "its data have a rank below 3"),
    "rank3": (lambda form: form.rank == 3, "its data have rank 3"),
    "rank<4": (lambda form: form.rank < 4, "its data have a rank below 4"),
    "rank>3": (lambda form: form.rank > 3, "its data have a rank above 3"),
    "rank>4": (lambda form: form.rank > 4, "its data have a rank above 4"),
    "rank>5": (lambda form: form.rank > 5, "its data have a rank above 5"),
    "result-scalar": (lambda form: any(each.shape == () for each in form.call.outputs), "its result is a scalar"),
    "batch": (lambda form: form.rank > 1 and (form.main.shape or (1,))[0] > 1, "its first size is not 1"),
    "one-batch": (lambda form: form.rank > 1 and (form.main.shape or (2,))[0] == 1, "its first size is 1"),
    "scalar": (lambda form: any(each.shape == () for each in _computed(form.data)), "a computed operand is a scalar"),
    "low-operand": (
        lambda form: any(len(each.shape or ()) < form.rank for each in _computed(form.data)),
        "a computed operand has a lower rank",
    ),
    "twins": (_has_twins, "two computed operands are the same tensor"),
    "computed": (_has_unknown_parameter, "a shape, an axis or another parameter is computed"),
    "wide": (_has_wide_parameter, "a parameter is INT64"),
    "variable": (lambda form: any(each.is_variable for each in form.call.inputs), "it keeps a state in a tensor"),
    "odd-channels": (lambda form: form.channels(form.main) % 4 > 0, "the last size is no multiple of 4"),
    "broadcast": (_broadcasts, "its operands have different shapes"),
    "constant-rows": (_has_rows, "a constant of rank 1 to 3 varies along the first axis"),
    "constant-vector": (_has_vector, "a constant of a lower rank has several elements"),
    "constant-single": (lambda form: any(_count(each) == 1 for each in _constants(form)), "a constant has one element"),
    "constant-partial": (
        lambda form: any(_count(each) > 1 and each.shape != form.call.result(0).shape for each in _constants(form)),
        "a constant has several elements, but not the result's shape",
    ),
    "constant-many": (
        lambda form: any(_count(each) > 1 for each in _constants(form)),
        "a constant has several elements",
    ),
    "constant": (lambda form: bool(_constants(form)), "an operand is a constant"),
    "constant-first": (_has_data(0, constant=True), "the first operand is a constant"),
    "constant-second": (_has_data(1, constant=True), "the second operand is a constant"),
    "computed-first": (_has_data(0, constant=False), "the first operand is computed"),
    "computed-second": (_has_data(1, constant=False), "the second operand is computed"),
    "fused": (lambda form: form.option("fused_activation_function") not in (0, "NONE"), "an activation is fused"),
    "sign-bit": (_option_is("fused_activation_function", 5, "SIGN_BIT"), "the sign bit is fused"),
    "fused-tanh": (_option_is("fused_activation_function", 4, "TANH"), "TANH is fused"),
    "unfused-tanh": (
        lambda form: form.option("fused_activation_function") in (2, "RELU_N1_TO_1"),
        "RELU_N1_TO_1 is fused",
    ),
    "computed-weights": (
        lambda form: bool(form.weights.type) and not form.weights.is_constant,
        "the weights are computed",
    ),
    "computed-bias": (lambda form: bool(form.bias.type) and not form.bias.is_constant, "the bias is computed"),
    "bias": (lambda form: bool(form.bias.type), "it has a bias"),
    "no-bias": (lambda form: bool(form.weights.type) and not form.bias.type, "it has no bias"),
    "grouped": (lambda form: _groups(form)[0] > 1, "the convolution is in groups"),
    "odd-groups": (_has_odd_groups, "the inputs or outputs of a group are no multiple of 4"),
    "crossing-groups": (_has_crossing_groups, "the inputs of a group are more than 4, and no multiple of 4"),
    "multiplied": (_multiplies, "a channel has several results"),
    "cropped": (_is_cropped, "its result's size is not the operand's times the stride"),
    "shifted": (_is_shifted, "its padding is not that of a convolution of its operand"),
    "unkept": (
        lambda form: form.operator == "FULLY_CONNECTED" and form.rank > 2 and not form.option("keep_num_dims"),
        "it joins the first axes",
    ),
    "flattened": (_is_flattened, "it flattens its operand"),
    "uneven-batches": (_broadcasts_batches, "the batches of its operands differ"),
    "flipped-constant": (_flips_constant, "an operand is transposed, and the second is a constant of rank 2"),
    "low-mask": (_has_low_mask, "the mask has rank 1 or 2, and a lower one than the result"),
    "flat-mask": (_has_flat_mask, "the mask has a lower rank than the result"),
    "partial-choice": (_has_partial_choice, "an operand to choose from is neither a scalar nor of the result's shape"),
    "odd-alpha": (_has_odd_alpha, "the slope is not one number a channel"),
    "partial-alpha": (_has_partial_alpha, "the slope has the size 1 where the operand has not"),
    "full-alpha": (
        lambda form: any(size > 1 for size, _ in _aligned(form.named.get("alpha", ABSENT), form.main)[:-1]),
        "the slope varies along more than the channels",
    ),
    "pads-batch": (_pads_batch, "it pads the first axis"),
    "infinite": (_has_infinity, "a constant is infinite"),
    "symmetric": (_option_is("mode", 1, "SYMMETRIC"), "it repeats the border"),
    "exclusive": (_is_set("exclusive"), "it is exclusive"),
    "reverse": (_is_set("reverse"), "it goes backwards"),
    "first-axis": (_has_axis(lambda axis, _: axis == 0), "it works along the first axis"),
    "second-axis": (_has_axis(lambda axis, _: axis == 1), "it works along the second axis"),
    "last-axis": (_has_axis(lambda axis, rank: axis == rank - 1), "it works along the last axis"),
    "odd-last": (
        lambda form: (
            len(form.main.shape or ()) > 1
            and form.channels(form.main) % 4 > 0
            and (len(form.main.shape or ()) - 1) in form.axes
        ),
        "it works along the last axis, whose size is no multiple of 4",
    ),
    "negative-axis": (
        lambda form: any(axis < 0 for axis in form.elements("axis")),
        "its axis is counted from the last one",
    ),
    "long-axis": (
        lambda form: form.operator != "PACK" and any((form.main.shape or ())[axis] > 1 for axis in form.axes),
        "it works along several elements",
    ),
    "axis": (
        lambda form: form.operator == "ONE_HOT" and form.option("axis", -1) not in (-1, len(form.main.shape or ())),
        "its axis is not the last",
    ),
    "inner": (_has_inner, "it has several elements between the first and the last axis"),
    "places": (lambda form: "indices" in form.named and _indices_rank(form) != 1, "its indices do not have rank 1"),
    "batch_dims": (_is_set("batch_dims"), "it has batch dimensions"),
    "shrink": (_is_set("shrink_axis_mask"), "it drops axes"),
    "new-axis": (_is_set("new_axis_mask"), "it adds axes"),
    "ellipsis": (_is_set("ellipsis_mask"), "it has an ellipsis"),
    "fewer": (_has_fewer, "it states fewer axes than its operand has"),
    "backwards": (_has_strides, "a stride is negative"),
    "last-stride": (_steps_last, "it skips elements of the last axis"),
    "depth": (_reduces_depth, "it reduces the last axis of three or more"),
    "odd-scale": (_scales_oddly, "it is not scaled by 1, 2, 4 or 8 in both directions"),
    "long-stride": (
        lambda form: max(form.option("stride_h", 1), form.option("stride_w", 1)) > 2,
        "a stride is above 2",
    ),
    "updates-rows": (_updates_rows, "it replaces a part of the first axis"),
    "start": (lambda form: form.named.get("start_indices", ABSENT).is_constant, "its start is a constant"),
    "single": (
        lambda form: form.operator in _VARIABLE_COUNT and len(form.data) == len(form.call.outputs) == 1,
        "it has one operand and one result",
    ),
    "many": (lambda form: len(form.data) > 2, "it has more than two operands"),
    "very-many": (lambda form: len(form.data) > 10, "it has more than 10 operands"),
    "beta": (lambda form: form.option("beta", 1.0) != 1, "beta is not 1"),
    "table3": (
        lambda form: form.operator == "EMBEDDING_LOOKUP" and len(form.call.operand(1).shape or ()) != 2,
        "its table does not have rank 2",
    ),
    "odd-units": (_has_odd_units, "its units are no multiple of 4"),
    "half_pixel": (_is_set("half_pixel_centers"), "half_pixel_centers is set"),
    "align": (_is_set("align_corners"), "align_corners is set"),
    "dilated": (
        lambda form: any(form.option(name, 1) != 1 for name in ("dilation_h_factor", "dilation_w_factor")),
        "it is dilated",
    ),
    "steep": (lambda form: not 0 <= form.option("alpha") <= 1, "its slope is negative or above 1"),
    "keep": (_is_set("keep_dims"), "it keeps the axes"),
}
"""The conditions on calls, with what they mean."""


def holds(word: str, form: CallForm) -> bool:
    """Returns whether a condition holds for a call."""
    return CONDITIONS[word][0](form)


def conditions(form: CallForm) -> frozenset[str]:
    """Returns all conditions that hold for a call."""
    return frozenset(word for word, (test, _) in CONDITIONS.items() if test(form))


def told(words: Sequence[str]) -> str:
    """Returns what conditions mean."""
    return ", and ".join(CONDITIONS[word][1] for word in words)
