"""Decompositions of ops that update variables, whole or in part, into reads, arithmetic and assignments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.ops.formula import Tensor
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow import op_defs

_HANDLE = "tf.VarHandleOp"

# The number of counters that a generator skips for each number that it draws.
_RESERVED = 256


class Access(TFBuilder):
    """Inserts ops before an op on variables.

    Attributes:
        op: The op; the caller erases it.
    """

    __slots__ = ("op",)

    def __init__(self, op: Operation) -> None:
        super().__init__(op)
        self.op = op

    def held_shape(self, operand: int = 0) -> types.Shape | None:
        """Returns the shape of an operand's variable, as far as it is known."""
        value = self.op.operands[operand]
        handle, held = value.owner, types.held_by(value.type)
        declared = tf.get(handle, "shape") if isinstance(handle, Operation) and handle.name == _HANDLE else None
        return declared if declared is not None or held is None else types.shape_of(held)

    def held_element(self, operand: int = 0) -> Attribute | None:
        """Returns the element type of an operand's variable, or `None`."""
        value = self.op.operands[operand]
        handle, held = value.owner, types.held_by(value.type)
        declared = handle.properties.get("dtype") if isinstance(handle, Operation) and handle.name == _HANDLE else None
        return declared or (None if held is None else types.element_of(held))

    def read(self, operand: int = 0, element: Attribute | None = None) -> Value:
        """Inserts a read of a variable.

        Args:
            operand: The index of the handle.
            element: The element type by the op, if the handle's type doesn't have it.
        """
        element = self.held_element(operand) or element
        assert element is not None, "either the op or the handle has it"
        return self.tf("ReadVariableOp", (self.op.operands[operand],), types.tensor(element, self.held_shape(operand)))

    def assign(self, value: Value, operand: int = 0) -> None:
        """Inserts an assignment to an operand's variable."""
        self.tf_op("AssignVariableOp", (self.op.operands[operand], value), (), {"validate_shape": False})

    def replace_results(self, values: Sequence[Value]) -> None:
        for old, new in zip(self.op.results, values, strict=True):
            old.replace_all_uses_with(new)


_INTEGERS = frozenset({types.I32, types.I64})
_OF_INTEGERS = {"RealDiv": "TruncateDiv"}
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _update(compute: str, access: Access) -> None:
    operand = access.op.operands[1]
    old = access.read(element=operand.element)
    access.assign(access.tf(compute, (old, operand), old.type))


def _scatter(compute: str, access: Access) -> None:
    """Indices of rows become index vectors of one element."""
    old = access.read(element=access.op.operands[2].element)
    indices, updates = access.op.operands[1], _rows(access, old)
    shape = indices.shape
    vectors = types.tensor(indices.element, None if shape is None else (*shape, 1))
    indices = access.tf("ExpandDims", (indices, access.number(-1)), vectors)
    if shape == ():
        indices, updates = (_as_one(access, value) for value in (indices, updates))
    access.assign(access.tf(compute, (old, indices, updates), old.type))


def _as_one(access: Access, value: Value) -> Value:
    """Returns a value with a leading dimension of 1, because kernels don't support single updates."""
    shape = value.shape
    result = types.tensor(value.element, None if shape is None else (1, *shape))
    return access.tf("ExpandDims", (value, access.number(0)), result)


def _rows(access: Access, old: Value) -> Value:
    """Returns the updates as rows; a scalar is broadcast."""
    indices, updates = access.op.operands[1:3]
    if not _is_one_for_all(access.op):
        return updates
    row, named = (old.shape or ())[1:], indices.shape
    if types.is_static(named):
        shape = access.ints((*(named or ()), *row))
    else:
        counts = access.tf("Shape", (indices,), types.tensor(types.I32, (-1 if named is None else len(named),)))
        whole = types.tensor(types.I32, (-1 if named is None else len(named) + len(row),))
        shape = access.tf("ConcatV2", (counts, access.ints(row), access.number(0)), whole)
    result = types.tensor(updates.element, None if named is None else (*named, *row))
    return access.tf("Fill", (shape, updates), result)


def _is_one_for_all(op: Operation) -> bool:
    is_vector = len(Access(op).held_shape() or (0,)) == 1
    return op.operands[2].shape == () and not (is_vector and op.operands[1].shape == ())


def _scatter_product(compute: str, access: Access) -> None:
    """Multiplies or divides rows by the product of all updates to them."""
    old = access.read(element=access.op.operands[2].element)
    if old.element in _INTEGERS:
        compute = _OF_INTEGERS.get(compute, compute)
    count = access.number((old.shape or (0,))[0])
    product = access.tf("UnsortedSegmentProd", (_rows(access, old), access.op.operands[1], count), old.type)
    access.assign(access.tf(compute, (old, product), old.type))


def _scatter_nd(compute: str, access: Access) -> None:
    indices, updates = access.op.operands[1:3]
    old = access.read(element=updates.element)
    access.assign(access.tf(compute, (old, indices, updates), old.type))


def _slice_assign(access: Access) -> None:
    _, begin, end, strides, value = access.op.operands
    old = access.read(element=value.element)
    masks = {name: tf.get(access.op, name, 0) for name in _MASKS}
    access.assign(access.tf("TensorStridedSliceUpdate", (old, begin, end, strides, value), old.type, masks))


def _gather(access: Access) -> None:
    op = access.op
    table = access.read(element=op.results[0].element)
    batch_dims = tf.get(op, "batch_dims", 0)
    operands = (table, op.operands[1], access.number(batch_dims))
    results = [result.type for result in op.results]
    access.replace_results(access.tf_op("GatherV2", operands, results, {"batch_dims": batch_dims}).results)


def _gather_nd(access: Access) -> None:
    op = access.op
    table = access.read(element=op.results[0].element)
    access.replace_results(access.tf_op("GatherNd", (table, op.operands[1]), op.result_types).results)


def _shape(access: Access) -> None:
    wanted = access.op.results[0].type
    shape = access.held_shape()
    if types.is_static(shape):
        access.replace_results([access.ints(shape or (), types.element_of(wanted))])
    else:
        access.replace_results([access.tf("Shape", (access.read(),), wanted)])


def _read_and_skip(access: Access) -> None:
    """Reads the state of a generator of random numbers, a counter of two halves and a key, and moves the counter."""
    state = EmittedTensor(access, access.read(element=types.I64))
    is_read = bool(access.op.results)
    operand = EmittedTensor(access, access.op.operands[2])
    # Each number may take as many counters as TensorFlow reserves.
    steps = (operand.op("Bitcast", operand, type=state.dtype) if is_read else operand) * _RESERVED
    low, high, key = (state.op("Slice", state, [start], [size]) for start, size in ((0, 1), (1, 1), (2, -1)))
    new = low + steps
    # Unsigned numbers have become less: the steps are positive.
    carry = ((low < 0) & (new >= 0)).cast(state.dtype)
    access.assign(new.concat([high + carry, key], 0).value)
    access.replace_results([state.value] if is_read else [])


def _drop(access: Access) -> None:
    """No-op: a memory hint."""


_COMBINED = ("Update", "Add", "Sub", "Min", "Max")

PARTS: Mapping[str, Callable[[Access], None]] = {
    "tf.AssignAddVariableOp": partial(_update, "AddV2"),
    "tf.AssignSubVariableOp": partial(_update, "Sub"),
    "tf.DisableCopyOnRead": _drop,
    "tf.ResourceGather": _gather,
    "tf.ResourceGatherNd": _gather_nd,
    "tf.ResourceScatterDiv": partial(_scatter_product, "RealDiv"),
    "tf.ResourceScatterMul": partial(_scatter_product, "Mul"),
    "tf.RngReadAndSkip": _read_and_skip,
    "tf.RngSkip": _read_and_skip,
    **{f"tf.ResourceScatter{name}": partial(_scatter, f"TensorScatter{name}") for name in _COMBINED},
    **{f"tf.ResourceScatterNd{name}": partial(_scatter_nd, f"TensorScatter{name}") for name in _COMBINED},
    "tf.ResourceStridedSliceAssign": _slice_assign,
    "tf.VariableShape": _shape,
}
"""Op -> the function that inserts its decomposition."""


def can_be_written(op: Operation) -> bool:
    """Returns whether an op of `PARTS` can be expanded: some require the variable's shape or type."""
    if op.name == "tf.VariableShape":
        return Access(op).held_element() is not None
    if not op.name.startswith("tf.ResourceScatter") or op.name.startswith("tf.ResourceScatterNd"):
        return True
    needs_shape = op.name in ("tf.ResourceScatterMul", "tf.ResourceScatterDiv") or _is_one_for_all(op)
    return not needs_shape or types.is_static(Access(op).held_shape())


class Training:
    """An op that trains a variable: its operands and variables as terms by TensorFlow's names, and its flags."""

    def __init__(self, access: Access) -> None:
        definition = op_defs.lookup(access.op.name.removeprefix("tf."))
        assert definition is not None
        element = access.op.operands[-1].element
        self.names = [argument.name for argument in definition.input_arg]
        flags = (each for each in definition.attr if each.type == "bool")
        self.flags = {each.name: tf.get(access.op, each.name, each.default_value.b) for each in flags}
        self.terms: dict[str, Tensor] = {}
        for position, (name, operand) in enumerate(zip(self.names, access.op.operands, strict=True)):
            is_handle = isinstance(operand.element, types.ResourceType)
            self.terms[name] = EmittedTensor(access, access.read(position, element) if is_handle else operand)

    def __getattr__(self, name: str) -> Tensor:
        return self.terms[name]


# The new values of variables, by name.
New = dict[str, Tensor]
Formula = Callable[[Training], New]


def _gradient_descent(op: Training) -> New:
    return {"var": op.var - op.delta * op.alpha}


def _shrunk(op: Training, proximal: Tensor, rate: Tensor) -> Tensor:
    """Returns a value shrunk towards zero by the penalties `l1` and `l2`."""
    return proximal.sign() * (abs(proximal) - rate * op.l1).maximum(0) / (rate * op.l2 + 1)


def _proximal_gradient_descent(op: Training) -> New:
    return {"var": _shrunk(op, op.var - op.delta * op.alpha, op.alpha)}


def _momentum(op: Training) -> New:
    accum = op.accum * op.momentum + op.grad
    step = op.grad * op.lr + accum * op.momentum * op.lr if op.flags["use_nesterov"] else accum * op.lr
    return {"var": op.var - step, "accum": accum}


def _keras_momentum(op: Training) -> New:
    accum = op.accum * op.momentum - op.grad * op.lr
    step = accum * op.momentum - op.grad * op.lr if op.flags["use_nesterov"] else accum
    return {"var": op.var + step, "accum": accum}


def _accumulated(op: Training) -> Tensor:
    return op.accum + op.grad.square() if op.flags["update_slots"] else op.accum


def _adagrad(op: Training) -> New:
    accum = _accumulated(op)
    return {"var": op.var - op.grad * op.lr * accum.rsqrt(), "accum": accum}


def _adagrad_v2(op: Training) -> New:
    accum = _accumulated(op)
    return {"var": op.var - op.grad * op.lr / (accum.sqrt() + op.epsilon), "accum": accum}


def _proximal_adagrad(op: Training) -> New:
    accum = op.accum + op.grad.square()
    rate = accum.rsqrt() * op.lr
    return {"var": _shrunk(op, op.var - op.grad * rate, rate), "accum": accum}


def _adadelta(op: Training) -> New:
    accum = op.accum * op.rho + op.grad.square() * (1 - op.rho)
    step = (op.accum_update + op.epsilon).sqrt() * (accum + op.epsilon).rsqrt() * op.grad
    var = op.var - step * op.lr
    return {"var": var, "accum": accum, "accum_update": op.accum_update * op.rho + step.square() * (1 - op.rho)}


def _moments(op: Training) -> tuple[Tensor, Tensor]:
    m = op.m + (op.grad - op.m) * (1 - op.beta1)
    return m, op.v + (op.grad.square() - op.v) * (1 - op.beta2)


def _rate(op: Training) -> Tensor:
    return op.lr * (1 - op.beta2_power).sqrt() / (1 - op.beta1_power)


def _adam(op: Training) -> New:
    m, v = _moments(op)
    step = op.grad * (1 - op.beta1) + m * op.beta1 if op.flags["use_nesterov"] else m
    return {"var": op.var - step * _rate(op) / (v.sqrt() + op.epsilon), "m": m, "v": v}


def _adam_with_amsgrad(op: Training) -> New:
    m, v = _moments(op)
    vhat = op.vhat.maximum(v)
    return {"var": op.var - m * _rate(op) / (vhat.sqrt() + op.epsilon), "m": m, "v": v, "vhat": vhat}


def _ada_max(op: Training) -> New:
    m, v = op.m + (op.grad - op.m) * (1 - op.beta1), (op.v * op.beta2).maximum(abs(op.grad))
    return {"var": op.var - m / (v + op.epsilon) * (op.lr / (1 - op.beta1_power)), "m": m, "v": v}


def _rms_prop(op: Training) -> New:
    ms = op.ms + (op.grad.square() - op.ms) * (1 - op.rho)
    mom = op.mom * op.momentum + op.grad * op.lr * (ms + op.epsilon).rsqrt()
    return {"var": op.var - mom, "ms": ms, "mom": mom}


def _centered_rms_prop(op: Training) -> New:
    ms, mg = op.ms + (op.grad.square() - op.ms) * (1 - op.rho), op.mg + (op.grad - op.mg) * (1 - op.rho)
    mom = op.mom * op.momentum + op.grad * op.lr * (ms - mg.square() + op.epsilon).rsqrt()
    return {"var": op.var - mom, "mg": mg, "ms": ms, "mom": mom}


def _ftrl(op: Training) -> New:
    # `linear` and the penalties are all multiplied by the rate, or none of them is.
    is_scaled = op.flags["multiply_linear_by_lr"]
    grad = op.grad + op.var * (op.l2_shrinkage * 2) if "l2_shrinkage" in op.terms else op.grad
    accum = op.accum + op.grad.square()
    power, old_power = accum.power(-op.lr_power), op.accum.power(-op.lr_power)
    change = (power - old_power) * op.var
    linear = op.linear + (grad * op.lr if is_scaled else grad) - (change if is_scaled else change / op.lr)
    bound, decay = (op.l1 * op.lr, op.l2 * 2 * op.lr) if is_scaled else (op.l1, op.l2 * 2)
    below = (abs(linear) - bound).maximum(0) * -linear.sign()
    return {"var": below / ((power if is_scaled else power / op.lr) + decay), "accum": accum, "linear": linear}


def _mean(op: Training) -> Tensor:
    return op.m * op.beta + op.grad * (1 - op.beta)


def _add_sign(op: Training) -> New:
    m = _mean(op)
    return {"var": op.var - op.grad * (m.sign() * op.grad.sign() * op.sign_decay + op.alpha) * op.lr, "m": m}


def _power_sign(op: Training) -> New:
    m = _mean(op)
    return {"var": op.var - op.grad * (m.sign() * op.grad.sign() * (op.logbase * op.sign_decay)).exp() * op.lr, "m": m}


def _train(formula: Formula, access: Access) -> None:
    """Computes a formula of an op's operands and assigns its results to the variables."""
    op = Training(access)
    for name, term in formula(op).items():
        if isinstance(term, EmittedTensor) and term is not op.terms[name]:
            access.assign(term.value, op.names.index(name))


_FORMULAS: Mapping[str, Formula] = {
    "AdaMax": _ada_max,
    "Adadelta": _adadelta,
    "Adagrad": _adagrad,
    "AdagradV2": _adagrad_v2,
    "Adam": _adam,
    "AdamWithAmsgrad": _adam_with_amsgrad,
    "AddSign": _add_sign,
    "CenteredRMSProp": _centered_rms_prop,
    "Ftrl": _ftrl,
    "FtrlV2": _ftrl,
    "GradientDescent": _gradient_descent,
    "KerasMomentum": _keras_momentum,
    "Momentum": _momentum,
    "PowerSign": _power_sign,
    "ProximalAdagrad": _proximal_adagrad,
    "ProximalGradientDescent": _proximal_gradient_descent,
    "RMSProp": _rms_prop,
}

OPTIMIZERS: Mapping[str, Callable[[Access], None]] = {
    f"tf.ResourceApply{name}": partial(_train, formula) for name, formula in _FORMULAS.items()
}
"""Op -> the function that inserts its decomposition."""
