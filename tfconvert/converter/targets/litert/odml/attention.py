"""Recognises attention: `softmax(q k^T * scale + mask) v`, with any arrangement of heads and time.

Axes have letters: B for examples, T for the time of queries, S for that of keys, N for heads, H for the elements of a
head; 1 is any axis of size 1, which reshapes may add and remove.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tfconvert.converter.ir.constants import constant_ints, constant_number
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.odml import masks
from tfconvert.converter.targets.litert.odml.norms import reshape, sole_user
from tfconvert.converter.targets.litert.odml.outline import Body, Insert, Recognized, given
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attributes import FloatAttr, IntegerAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

ATTENTION = "odml.scaled_dot_product_attention"

_PRODUCT = "tfl.batch_matmul"
_ARRANGING = frozenset(("tfl.reshape", "tfl.transpose"))
_MAX_STEPS = 12

Axes = Sequence[str]


@dataclass(frozen=True, slots=True)
class _Port:
    """An operand of the composite.

    Attributes:
        insert: Inserts it.
        bind: Says in the body what it is.
        shape: Its shape: examples, time, heads, elements.
        scale: The factor of scores that comes with it.
    """

    insert: Insert
    bind: Callable[[Body, Value], None]
    shape: types.Shape
    scale: float


@dataclass(slots=True)
class _Scores:
    """The way from the product of queries and keys to the softmax.

    Attributes:
        product: The product.
        steps: The ops after it.
        axes: The axes of the softmax's operand.
        is_swapped: Whether it is the product of keys and queries.
        scale: The factor of scores.
        insert_mask: Inserts the mask, if there is one.
        bind_mask: Says in the body what it is.
        replaced: The op that the body has in another form.
    """

    product: Operation
    steps: Sequence[Operation]
    axes: Axes = ()
    is_swapped: bool = False
    scale: float = 1.0
    insert_mask: Insert | None = None
    bind_mask: Callable[[Body, Value], None] | None = None
    replaced: list[Operation] = field(default_factory=list)


def recognize(op: Operation) -> Recognized | None:
    """Returns the attention whose softmax an op is."""
    if op.name != "tfl.softmax" or not questions.is_float(op.results[0]) or not _has_beta_of_1(op):
        return None
    steps = _steps(op.operands[0])
    scores = None if steps is None else _scores(steps)
    weighted = None if scores is None else _weighted(op, scores.axes)
    if scores is None or weighted is None:
        return None
    product, values, value_axes, axes = weighted
    operands, ports = _ports(scores, values, value_axes)
    if not ports:
        return None

    def bind(body: Body) -> None:
        # One value may be queries, keys and values: each has its own argument.
        scored = scores.product.results[0]
        for index, (port, operand) in enumerate(zip(ports, operands, strict=True)):
            port.bind(body, body.arguments[index])
            body.copy(operand)
            if index == 1:
                body.copy(scored)
            body.keep_only(*(operands[:1], [scored], [scored, values])[index])
        if scores.bind_mask is not None:
            scores.bind_mask(body, body.arguments[-1])

    query, key, value = ports
    inserts = [port.insert for port in ports] + ([scores.insert_mask] if scores.insert_mask is not None else [])
    attributes = {"scale": scores.scale * query.scale * key.scale}
    found = Recognized(ATTENTION, "attentions", attributes, product.results[0], inserts, bind)
    found.replaced = scores.replaced
    return _with_result(found, axes, (*query.shape[:3], value.shape[3]))


def _ports(scores: _Scores, values: Value, value_axes: Axes) -> tuple[list[Value], list[_Port]]:
    """Returns queries, keys and values as the products take them, and as the composite does: none if it can't."""
    place, lead = int(scores.is_swapped), _lead(scores.product)
    if lead is None or scores.product.operands[0] is scores.product.operands[1]:
        return [], []
    given_axes = [
        _operand(scores.product, place, lead, ("T", "H")),
        _operand(scores.product, 1 - place, lead, ("S", "H")),
        (values, value_axes),
    ]
    found = [_port(value, axes, may_scale=index < 2) for index, (value, axes) in enumerate(given_axes)]
    ports = [port for port in found if port is not None]
    is_right = len(ports) == len(found) and _are_sizes_right(*(port.shape for port in ports))
    return [value for value, _ in given_axes], ports if is_right else []


def _are_sizes_right(query: types.Shape, key: types.Shape, value: types.Shape) -> bool:
    """Returns whether queries, keys and values have sizes that all implementations of the composite compute right."""
    examples, _, heads, size = query
    # Of one head of keys, XNNPACK computes only one example right.
    is_known = -1 not in (*query[1:], *key[1:]) and (heads > 1 or examples == 1)
    return is_known and (key[0], *key[2:]) == (examples, heads, size) and value == key


def _has_beta_of_1(softmax: Operation) -> bool:
    beta = softmax.properties.get("beta")
    return isinstance(beta, FloatAttr) and beta.value == 1


def _is_set(op: Operation, name: str) -> bool:
    found = op.properties.get(name)
    return isinstance(found, IntegerAttr) and bool(found.value)


def _lead(product: Operation) -> Axes | None:
    """Returns the axes of a product in front of its last two: examples, and heads."""
    dims = product.results[0].shape
    if dims is None or len(dims) < 3:
        return None
    lead = ["B", *("N" if size != 1 else "1" for size in dims[1:-2])]
    if len(dims) == 4:
        lead[1] = "N"
    return lead if lead.count("N") <= 1 else None


def _operand(product: Operation, place: int, lead: Axes, last: tuple[str, str]) -> tuple[Value, Axes]:
    """Returns an operand of a product, and its axes.

    Args:
        product: The product.
        place: Which operand.
        lead: The axes in front.
        last: The other's last axes if its rows are vectors.
    """
    is_turned = _is_set(product, "adj_x") if place == 0 else not _is_set(product, "adj_y")
    return product.operands[place], (*lead, *(last[::-1] if is_turned else last))


# The scores.


def _steps(value: Value, depth: int = 0) -> list[Operation] | None:
    """Returns the product that scores come from and the ops that follow it; the last computes a value."""
    op = value.owner
    if not isinstance(op, Operation) or depth > _MAX_STEPS or not questions.is_plain(op):
        return None
    if op.name == _PRODUCT:
        return [op]
    if op.name in ("tfl.select", "tfl.select_v2"):
        inputs: Sequence[Value] = op.operands[1:2]
    elif op.name in ("tfl.add", "tfl.mul"):
        inputs = op.operands
    elif op.name in ("tfl.div", "tfl.sub", *_ARRANGING):
        inputs = op.operands[:1]
    else:
        return None
    for each in inputs:
        steps = _steps(each, depth + 1)
        if steps is not None:
            return [*steps, op]
    return None


def _scores(steps: Sequence[Operation]) -> _Scores | None:
    """Follows scores from the product to the softmax; `None` if something else happens on the way."""
    product, *others = steps
    lead, dims = _lead(product), product.results[0].shape
    if lead is None or dims is None:
        return None
    axes: Axes = _units((*lead, "X", "Y"), dims)
    found = _Scores(product, others)
    masking: tuple[Operation, Value, Axes] | None = None
    value = product.results[0]
    for op in others:
        number = _factor(op, value)
        if op.name in _ARRANGING:
            arranged = _forward(op, axes)
            if arranged is None:
                return None
            axes = arranged
        elif number is not None and masking is None:
            found.scale *= number
        elif op.name in ("tfl.add", "tfl.select", "tfl.select_v2") and masking is None:
            masking = (op, value, axes)
        elif not _is_less_maximum(op, value):
            return None
        value = op.results[0]
    if axes[-1] not in ("X", "Y"):
        return None
    found.is_swapped = axes[-1] == "X"
    names = {"X": "S", "Y": "T"} if found.is_swapped else {"X": "T", "Y": "S"}
    found.axes = [names.get(axis, axis) for axis in axes]
    if masking is None:
        return found
    op, kept, own = masking
    sizes = (dims[-1], dims[-2]) if found.is_swapped else (dims[-2], dims[-1])
    return found if _add_mask(found, op, kept, [names.get(axis, axis) for axis in own], sizes) else None


def _factor(op: Operation, value: Value) -> float | None:
    """Returns the number that an op multiplies a value by, `None` if it doesn't."""
    if op.name not in ("tfl.mul", "tfl.div") or op.results[0].type != value.type:
        return None
    if op.name == "tfl.div":
        number = constant_number(op.operands[1]) if op.operands[0] is value else None
        return 1 / number if number else None
    other = op.operands[1] if op.operands[0] is value else op.operands[0]
    return constant_number(other)


def _is_less_maximum(op: Operation, value: Value) -> bool:
    """Returns whether an op subtracts the maximum over the last axis, which softmaxes ignore."""
    if op.name != "tfl.sub" or op.operands[0] is not value:
        return False
    subtracted = op.operands[1]
    moved = subtracted.producer("tfl.reshape")
    maximum = (subtracted if moved is None else moved.operands[0]).producer("tfl.reduce_max")
    if maximum is None:
        return False
    dims, source = questions.known_shape(value), maximum.operands[0]
    before = value.producer("tfl.reshape")
    is_same = source is value or (before is not None and source is before.operands[0])
    own = questions.known_shape(source)
    axes = questions.axes(maximum.operands[1], own)
    return (
        is_same
        and dims is not None
        and own is not None
        and dims[-1] == own[-1]
        and axes == frozenset((len(own) - 1,))
        and subtracted.shape == (*dims[:-1], 1)
    )


def _add_mask(found: _Scores, op: Operation, kept: Value, axes: Axes, sizes: tuple[int, int]) -> bool:
    """Adds the mask that an op applies to scores; returns whether it can be one."""
    if axes[-1] != "S" or axes[-2] not in ("T", "1") or op.results[0].type != kept.type:
        return False
    masked = op.results[0]
    if op.name == "tfl.add":
        mask = op.operands[1] if op.operands[0] is kept else op.operands[0]
        found.insert_mask = masks.added(mask, *sizes)
        found.bind_mask = lambda body, argument: body.bind(mask, argument)
        return found.insert_mask is not None
    condition, _, otherwise = op.operands
    found.insert_mask = masks.chosen(condition, otherwise, *sizes)
    found.replaced = [op]

    def bind(body: Body, argument: Value) -> None:
        inside = body.copy(kept)
        options = {questions.ACTIVATION: "NONE"}
        body.bind(masked, body.builder.tfl("add", (inside, argument), inside.type, options))

    found.bind_mask = bind
    return found.insert_mask is not None


# The product with values.


def _weighted(softmax: Operation, axes: Axes) -> tuple[Operation, Value, Axes, Axes] | None:
    """Follows weights to their product with values; returns it, the values, their axes and those of the result."""
    weights = softmax.results[0]
    found: Axes | None = axes
    while (op := sole_user(weights)) is not None and op.name in _ARRANGING and found is not None:
        weights, found = op.results[0], _forward(op, found)
    if op is None or op.name != _PRODUCT or found is None or len(found) < 3:
        return None
    place = 0 if op.operands[0] is weights else 1
    is_turned = _is_set(op, "adj_x") if place == 0 else not _is_set(op, "adj_y")
    last = found[-2:] if not is_turned else found[:-3:-1]
    lead = found[:-2]
    if last[1] != "S" or last[0] not in ("T", "1") or not {*lead} <= {"B", "N", "1"}:
        return None
    named = _lead(op)
    if named is None or any(axis not in ("1", name) for axis, name in zip(lead, named, strict=True)):
        return None
    other, turned = op.operands[1 - place], _is_set(op, "adj_y") if place == 0 else not _is_set(op, "adj_x")
    value_axes = (*named, "H", "S") if turned else (*named, "S", "H")
    return op, other, value_axes, (*named, "T", "H") if place == 0 else (*named, "H", "T")


# Axes.


def _units(axes: Axes, dims: types.Shape) -> Axes:
    return [axis if size != 1 else "1" for axis, size in zip(axes, dims, strict=True)]


def _forward(op: Operation, axes: Axes | None) -> Axes | None:
    """Returns the axes of what an op makes of a value by arranging it."""
    dims = op.results[0].shape
    if axes is None or dims is None:
        return None
    if op.name == "tfl.transpose":
        order = constant_ints(op.operands[1])
        return None if order is None else [axes[place] for place in order]
    return _reshaped(axes, op.operands[0].shape, dims)


def _backward(op: Operation, axes: Axes) -> Axes | None:
    """Returns the axes of what an op arranges, from those of its result."""
    source, dims = op.operands[0].shape, op.results[0].shape
    if source is None or dims is None:
        return None
    if op.name == "tfl.transpose":
        order = constant_ints(op.operands[1])
        if order is None:
            return None
        own = [""] * len(axes)
        for axis, place in zip(axes, order, strict=True):
            own[place] = axis
        return own
    return _reshaped(_units(axes, dims), dims, source)


def _reshaped(axes: Axes, dims: types.Shape | None, reshaped: types.Shape) -> Axes | None:
    """Returns the axes after a reshape that only adds and removes axes of size 1."""
    if (
        dims is None
        or dims.count(-1) > 1
        or [size for size in dims if size != 1] != [size for size in reshaped if size != 1]
    ):
        return None
    left = iter([axis for axis, size in zip(axes, dims, strict=True) if size != 1])
    return ["1" if size == 1 else next(left) for size in reshaped]


def _shape_of(axes: Axes, dims: types.Shape) -> types.Shape:
    """Returns the shape of an operand of the composite that a value with these axes is an arrangement of."""
    sizes = {axis: size for axis, size in zip(axes, dims, strict=True) if axis != "1"}
    time = sizes.get("T", sizes.get("S", 1))
    return (sizes.get("B", 1), time, sizes.get("N", 1), sizes.get("H", 1))


def _is_in_order(axes: Axes, dims: types.Shape) -> bool:
    """Returns whether the axes that are larger than 1 are in the order of a composite's."""
    order = ["BTSNH".index(axis) for axis, size in zip(axes, dims, strict=True) if size != 1 and axis != "1"]
    return order == sorted(order)


def _port(value: Value, axes: Axes, *, may_scale: bool = False) -> _Port | None:
    """Returns the operand of which a value is an arrangement.

    Args:
        value: The operand of a product.
        axes: What its axes are.
        may_scale: Whether numbers that it is multiplied by may be a part of the scale.
    """
    dims = value.shape
    if dims is None or dims.count(-1) > 1 or len(dims) != len(axes):
        return None
    shape = _shape_of(axes, dims)
    chain = _chain(value, axes, may_scale=may_scale)
    for source, own, scale in reversed(chain):
        if source.shape == shape and _is_in_order(own, shape):
            return _Port(given(source), _binding(source), shape, scale)
    arranged = [each for each in chain if _is_in_order(each[1], each[0].shape or ())]
    if arranged:
        source, _, scale = arranged[-1]
        # Between these, only axes of size 1 move.
        last = next(each for each, _, factor in arranged if factor == scale)
        return _Port(_reshaping(source, shape), _binding(last, reshape_to=last.shape), shape, scale)
    source, own, scale = chain[-1]
    if len(own) != 4 or {*own} not in ({*"BTNH"}, {*"BSNH"}):
        return None
    wanted = "BTNH" if "T" in own else "BSNH"
    order = tuple(own.index(axis) for axis in wanted)
    back = tuple(wanted.index(axis) for axis in own)
    return _Port(lambda builder: _transposed(builder, source, order), _binding(source, order=back), shape, scale)


def _chain(value: Value, axes: Axes, *, may_scale: bool) -> list[tuple[Value, Axes, float]]:
    """Returns a value and what it is made of by arranging and scaling, each with its axes and the scale so far."""
    chain = [(value, axes, 1.0)]
    scale = 1.0
    while isinstance(op := value.owner, Operation) and len(chain) < _MAX_STEPS:
        if op.name in _ARRANGING:
            source, own = op.operands[0], _backward(op, axes)
            if own is None:
                break
            value, axes = source, own
        else:
            factored = _scaled(op) if may_scale and value.has_one_use() and questions.is_plain(op) else None
            if factored is None:
                break
            value, scale = factored[0], scale * factored[1]
        chain.append((value, axes, scale))
    return chain


def _scaled(op: Operation) -> tuple[Value, float] | None:
    for value in op.operands if op.name in ("tfl.mul", "tfl.div") else ():
        factor = _factor(op, value)
        if factor and questions.is_float(value):
            return value, factor
    return None


def _reshaping(value: Value, shape: types.Shape) -> Insert:
    return lambda builder: reshape(builder, value, shape)


def _binding(
    value: Value, *, reshape_to: types.Shape | None = None, order: tuple[int, ...] = ()
) -> Callable[[Body, Value], None]:
    def bind(body: Body, argument: Value) -> None:
        inside = argument
        if order:
            inside = _transposed(body.builder, argument, order)
        elif reshape_to is not None:
            inside = reshape(body.builder, argument, reshape_to)
        body.bind(value, inside)

    return bind


def _with_result(found: Recognized, axes: Axes, shape: types.Shape) -> Recognized | None:
    """Lets the composite return its result in the order that it must have.

    Args:
        found: The attention, whose root is the second product.
        axes: The axes of the product.
        shape: The shape of the composite's result.
    """
    root, own, arranged = found.root, axes, None
    while True:
        dims = root.shape or ()
        if _is_in_order(own, dims):
            arranged = root
            if dims == shape:
                found.root = root
                return found
        user = sole_user(root)
        following = _forward(user, own) if user is not None and user.name in _ARRANGING else None
        if user is None or following is None:
            break
        root, own = user.results[0], following
    if arranged is not None:
        dims = arranged.shape or ()
        found.root = arranged
        found.finish = lambda builder, value: reshape(builder, value, shape)
        found.restore = lambda builder, value: reshape(builder, value, dims)
        return found
    if len(axes) != 4 or {*axes} != {*"BTNH"}:
        return None
    order = tuple(axes.index(axis) for axis in "BTNH")
    back = tuple("BTNH".index(axis) for axis in axes)
    found.finish = lambda builder, value: _transposed(builder, value, order)
    found.restore = lambda builder, value: _transposed(builder, value, back)
    return found


def _transposed(builder: TFLBuilder, value: Value, order: tuple[int, ...]) -> Value:
    dims = value.shape or ()
    kind = types.tensor(value.element, tuple(dims[axis] for axis in order))
    return builder.tfl("transpose", (value, builder.ints(order)), kind)
