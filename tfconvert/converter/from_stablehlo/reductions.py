"""Reductions over dimensions, by bodies of one known op, or that choose the position of an extreme."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tfconvert.converter.from_stablehlo.raised_op import BROADCAST, RaisedOp, Rows
from tfconvert.converter.ir.constants import is_enumeration, is_repeated
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import need
from tfconvert.ops.complex_numbers import complex_of, parts
from tfconvert.schema.dialects import dims, tensor_data, tf
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

Combine = Callable[[EmittedTensor, EmittedTensor], EmittedTensor]

_OTHER_BODY = "its body isn't one op that TensorFlow reduces by"


def _reduce(raised: RaisedOp) -> Sequence[EmittedTensor]:
    count = len(raised.operands) // 2
    tensors, inits = raised.operands[:count], raised.operands[count:]
    axes = raised.ints("dimensions")
    block = raised.op.regions[0].block
    if count == 2:
        extreme = extreme_of(block)
        if extreme is not None:
            return _position(raised, extreme, axes)
    names = ops_of(block)
    return [_reduced(raised, name, x, init, axes) for name, x, init in zip(names, tensors, inits, strict=True)]


def ops_of(block: Block) -> list[str]:
    """Returns the op by which a body combines each pair of its arguments, without its prefix.

    Raises:
        Declined: It is another body.
    """
    arguments: list[Value] = list(block.args)
    count = len(arguments) // 2
    results = block.last_op.operands if block.last_op is not None else ()
    names = []
    for number, value in enumerate(results):
        owner = value.owner
        pair = {arguments[number], arguments[number + count]}
        need(isinstance(owner, Operation) and set(owner.operands) == pair, _OTHER_BODY)
        assert isinstance(owner, Operation)
        names.append(owner.name.removeprefix("stablehlo."))
    return names


def _reduced(raised: RaisedOp, name: str, x: EmittedTensor, init: EmittedTensor, axes: Sequence[int]) -> EmittedTensor:
    """Returns a tensor reduced by an op, and combined with an initial value that is not the neutral one."""
    name = logical(name, x.dtype)
    if name == "add" and x.dtype.kind == "c":
        each = zip(parts(x), parts(init), strict=True)
        return complex_of(*(_reduced(raised, name, part, start, axes) for part, start in each))
    sizes = raised.sizes(x)
    made = raised.unsqueezed(x)
    if axes and all(sizes[axis] == 1 for axis in axes):
        found = raised.reshaped(x, [size for axis, size in enumerate(sizes) if axis not in axes])
    elif made is not None and not {*made[1]} & {*axes}:
        x, inserted = made
        axes = [axis - sum(one < axis for one in inserted) for axis in axes]
        kept = [size for axis, size in enumerate(sizes) if axis not in raised.ints("dimensions")]
        found = raised.reshaped(_over_axes(raised, name, x, axes) if axes else x, kept)
    else:
        found = _over_axes(raised, name, x, axes) if axes else x
    return found if is_neutral(raised, name, init) else combine_by(name)(found, init)


_LOGICAL = {"add": "or", "maximum": "or", "minimum": "and", "multiply": "and"}


def logical(name: str, dtype: np.dtype[Any]) -> str:
    """Returns the op of booleans that one of numbers is for them."""
    return _LOGICAL.get(name, name) if dtype == np.bool_ else name


_REDUCTIONS = {"add": "Sum", "maximum": "Max", "minimum": "Min", "multiply": "Prod"}
_OF_BOOLEANS = {"and": "All", "or": "Any"}
_BITWISE = {"and": "BitwiseAnd", "or": "BitwiseOr", "xor": "BitwiseXor"}
_ELEMENTWISE = {"add": "AddV2", "maximum": "Maximum", "minimum": "Minimum", "multiply": "Mul"}
_OF_TWO_BOOLEANS = {"and": "LogicalAnd", "or": "LogicalOr", "xor": "NotEqual"}


def combine_by(name: str) -> Combine:
    """Returns what combines two tensors by an op of a body.

    Raises:
        Declined: There is no such op.
    """
    need(name in _ELEMENTWISE or name in _BITWISE, _OTHER_BODY)

    def combine(x: EmittedTensor, y: EmittedTensor) -> EmittedTensor:
        of_bits = _OF_TWO_BOOLEANS if x.dtype == np.bool_ else _BITWISE
        return x.op(_ELEMENTWISE.get(name) or of_bits[name], x, y)  # type: ignore[no-any-return]

    return combine


def neutral(name: str, dtype: np.dtype[Any]) -> Any:
    """Returns the number that an op leaves others unchanged with."""
    if name in ("maximum", "minimum"):
        if dtype == np.bool_:
            return name == "minimum"
        if dtype.kind in "iu":
            return np.iinfo(dtype).min if name == "maximum" else np.iinfo(dtype).max
        return -np.inf if name == "maximum" else np.inf
    if name == "and":
        return True if dtype == np.bool_ else ~np.zeros((), dtype)
    return int(name == "multiply")


def is_neutral(raised: RaisedOp, name: str, init: EmittedTensor) -> bool:
    """Returns whether an initial value changes nothing."""
    known = raised.known(init)
    return known is not None and bool(known == np.asarray(neutral(name, init.dtype)).astype(init.dtype))


def _over_axes(raised: RaisedOp, name: str, x: EmittedTensor, axes: Sequence[int]) -> EmittedTensor:
    if x.dtype == np.bool_ and name in _OF_BOOLEANS:
        return x.reduce(_OF_BOOLEANS[name], axes)
    if x.dtype == np.bool_ and name == "xor":
        return (x.cast(np.int32).sum(axes) % 2).not_equal(0)
    if name in _REDUCTIONS:
        wide = wide_type(name, x.dtype)
        return x.cast(wide).reduce(_REDUCTIONS[name], axes).cast(x.dtype)
    return _halved(raised, combine_by(name), x, axes)


def wide_type(name: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the type in which numbers are combined: sums and products of integers wrap around alike."""
    if dtype.kind not in "iu" or dtype.itemsize == 8:
        return dtype
    return np.dtype(np.int64 if name in ("maximum", "minimum") and dtype == np.uint32 else np.int32)


def _halved(raised: RaisedOp, combine: Combine, x: EmittedTensor, axes: Sequence[int]) -> EmittedTensor:
    """Returns a reduction by an op that has none of its own: one half is combined with the other, again and again."""
    sizes = raised.sizes(x)
    kept = [axis for axis in range(x.rank) if axis not in axes]
    count = prod(sizes[axis] for axis in axes)
    need(min((sizes[axis] for axis in axes), default=1) > 0, "how many elements it combines isn't known")
    x = raised.reshaped(x.op("Transpose", x, [*axes, *kept]), [count, *(sizes[axis] for axis in kept)])

    def rows(begin: int, length: int) -> EmittedTensor:
        rest = len(kept)
        return x.op("Slice", x, [begin] + [0] * rest, [length] + [-1] * rest)  # type: ignore[no-any-return]

    odd = []
    while count > 1:
        half = count // 2
        if count % 2:
            odd.append(rows(count - 1, 1))
        x, count = combine(rows(0, half), rows(half, half)), half
    for row in odd:
        x = combine(x, row)
    return x.op("Squeeze", x, squeeze_dims=[0])  # type: ignore[no-any-return]


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "EQ": operator.eq,
    "GE": operator.ge,
    "GT": operator.gt,
    "LE": operator.le,
    "LT": operator.lt,
    "NE": operator.ne,
}
_CHOOSING: Mapping[str, Callable[..., Any]] = {
    "and": operator.and_,
    "maximum": max,
    "minimum": min,
    "not": operator.not_,
    "or": operator.or_,
    "select": lambda condition, x, y: x if condition else y,
    "xor": operator.xor,
}


def extreme_of(block: Block) -> str | None:
    """Returns `Max` or `Min` if a body chooses that of pairs of values and positions, of equal ones the first.

    The ops that may occur only compare and choose, so what they do is known from all orders that two pairs can have.
    """
    if len(block.args) != 4 or len(block.last_op.operands if block.last_op is not None else ()) != 2:
        return None
    found = {"Max", "Min"}
    for pair, other in product(product((0, 1), (3, 5)), (*product((0, 1), (3, 5)), (0, 4), (1, 4))):
        chosen = _run(block, (*pair, *other))
        if chosen is None:
            return None
        found = {name for name in found if chosen == _first(name, pair, other)}
    return found.pop() if len(found) == 1 else None


def _first(name: str, *pairs: tuple[int, int]) -> tuple[int, int]:
    """Returns the pair with the largest or the smallest value, of equal ones that with the smallest position."""
    sign = -1 if name == "Max" else 1
    return min(pairs, key=lambda each: (sign * each[0], each[1]))


def _run(block: Block, arguments: Sequence[Any]) -> tuple[Any, ...] | None:
    """Returns what a body computes, `None` if it does more than compare and choose."""
    values: dict[Value, Any] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        operands = [values.get(operand) for operand in op.operands]
        if None in operands:
            return None
        if op is block.last_op:
            return tuple(operands)
        name = op.name.removeprefix("stablehlo.")
        direction = op.properties.get("comparison_direction")
        compute = _COMPARISONS[direction.value] if isinstance(direction, EnumeratorAttr) else _CHOOSING.get(name)
        if compute is None:
            return None
        values[op.results[0]] = compute(*operands)
    return None


_LOG_ADD_EXP = (
    "maximum",
    "subtract",
    "compare",
    "add",
    "abs",
    "negate",
    "exponential",
    "log_plus_one",
    "add",
    "select",
    "return",
)


def is_log_add_exp(block: Block) -> bool:
    """Returns whether a body is `log(exp(x) + exp(y))` as JAX writes it."""
    names = tuple(op.name.rpartition(".")[2] for op in block.ops)
    if names != _LOG_ADD_EXP:
        return False
    top, difference, is_nan, total, size, less, power, log, found, choice, last = block.ops
    x, y = block.args
    wiring = {
        top: (x, y),
        difference: (x, y),
        is_nan: (difference, difference),
        total: (x, y),
        size: (difference,),
        less: (size,),
        power: (less,),
        log: (power,),
        found: (top, log),
        choice: (is_nan, total, found),
        last: (choice,),
    }
    return all(
        tuple(op.operands) == tuple(each.results[0] if isinstance(each, Operation) else each for each in operands)
        for op, operands in wiring.items()
    )


def _position(raised: RaisedOp, name: str, axes: Sequence[int]) -> Sequence[EmittedTensor]:
    x, positions, init, first = raised.operands
    need(len(axes) == 1 and is_count(raised, positions, axes[0]), "the positions that it chooses from are computed")
    known = raised.known(first)
    body = "maximum" if name == "Max" else "minimum"
    need(known is not None and known == 0 and is_neutral(raised, body, init), "it begins with a value of its own")
    wide = x.cast(np.int32) if x.dtype == np.bool_ else x.cast(wide_type(body, x.dtype))
    dtype = positions.dtype
    found = x.op(
        f"Arg{name}",
        x if x.dtype == np.bool_ else wide,
        axes[0],
        output_type=dtype if dtype == np.int64 else np.dtype(np.int32),
    )
    return [x.op(name, wide, [axes[0]]).cast(x.dtype), found.cast(dtype)]


def is_count(raised: RaisedOp, positions: EmittedTensor, axis: int) -> bool:
    """Returns whether the elements of a tensor are their own positions along an axis."""
    axis -= positions.rank
    while isinstance(owner := positions.value.owner, Operation) and owner.name in _SPREADING:
        inner, sizes = raised.tensor(owner.operands[0]), raised.sizes(positions)
        inner_sizes = raised.sizes(inner)
        if owner.name == BROADCAST and (len(inner_sizes) < -axis or inner_sizes[axis] != sizes[axis]):
            return False
        if owner.name in _SHAPING:
            if _only_axis(sizes) != axis or _only_axis(inner_sizes) is None:
                return False
            axis = _only_axis(inner_sizes) or 0
        positions = inner
    constant = tensor_data.constant_of(positions.value)
    if constant is None:
        return is_enumeration(positions.value)
    array = np.moveaxis(tensor_data.to_array(constant), axis, -1)
    return not is_repeated(array, -1) and bool((array == np.arange(array.shape[-1])).all())


_SHAPING = ("tf.ExpandDims", "tf.Reshape")
_SPREADING = (BROADCAST, "tf.Cast", *_SHAPING)


def _only_axis(sizes: Sequence[int]) -> int | None:
    """Returns the only dimension that isn't 1, counted from the end, `None` if there are several or none."""
    found = [axis - len(sizes) for axis, size in enumerate(sizes) if size != 1]
    return found[0] if len(found) == 1 else None


def mean_of(raised: RaisedOp, total: EmittedTensor, count: EmittedTensor) -> EmittedTensor | None:
    """Returns the mean that a sum divided by the number of its terms is, where running tells the number."""
    owner, cast = total.value.owner, count.value.owner
    if not isinstance(owner, Operation) or owner.name != "tf.Sum" or not isinstance(cast, Operation):
        return None
    if cast.name != "tf.Cast" or count.rank > 0:
        return None
    x, axes = raised.tensor(owner.operands[0]), raised.known(raised.tensor(owner.operands[1]))
    assert axes is not None
    sizes = [raised.sizes(x)[axis] for axis in axes.reshape(-1)]
    if _normal(sizes) != _normal(_factors(raised, raised.tensor(cast.operands[0]))):
        return None
    return x.mean(axes.reshape(-1).tolist(), keep_dims=bool(tf.get(owner, "keep_dims", False)))


# The number of factors up to which a product is written out. A tensor has fewer dimensions.
_MAX_FACTORS = 16


def _factors(raised: RaisedOp, scalar: EmittedTensor) -> list[int]:
    """Returns the sizes that a number is the product of."""
    factors: list[int] = []
    pending = [scalar]
    while pending:
        if len(pending) + len(factors) > _MAX_FACTORS:
            return [dims.UNKNOWN]
        factor = pending.pop()
        owner = factor.value.owner
        if isinstance(owner, Operation) and owner.name == "tf.Mul":
            pending += map(raised.tensor, owner.operands)
        else:
            factors += raised.elements(factor) if not factor.rank else [dims.UNKNOWN]
    return factors


def _normal(sizes: Sequence[int]) -> list[int]:
    """Returns factors in an order that all equal products have."""
    return [prod(size for size in sizes if size >= 0), *sorted(size for size in sizes if size < 0)]


ROWS: Rows = {"reduce": _reduce}
