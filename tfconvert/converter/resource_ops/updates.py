"""Decompositions of ops that update variables, whole or in part, into reads, arithmetic and assignments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tfconvert.converter.ir.builder import Builder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow import op_defs

_HANDLE = "tf.VarHandleOp"


class Access(Builder):
    """Inserts ops before an op on variables.

    Attributes:
        op: The op; the caller erases it.
    """

    __slots__ = ("op",)

    def __init__(self, op: Operation) -> None:
        super().__init__(op)
        self.op = op

    def held_shape(self, operand: int = 0) -> types.Shape | None:
        """Returns the shape of the variable that an operand is the handle of, as far as it is known."""
        value = self.op.operands[operand]
        handle, held = value.owner, types.held_by(value.type)
        declared = tf.get(handle, "shape") if isinstance(handle, Operation) and handle.name == _HANDLE else None
        return declared if declared is not None or held is None else types.shape_of(held)

    def held_element(self, operand: int = 0) -> Attribute | None:
        """Returns the element type of the variable that an operand is the handle of, as far as it is known."""
        value = self.op.operands[operand]
        handle, held = value.owner, types.held_by(value.type)
        declared = handle.properties.get("dtype") if isinstance(handle, Operation) and handle.name == _HANDLE else None
        return declared or (None if held is None else types.element_of(held))

    def read(self, operand: int = 0, element: Attribute | None = None) -> Value:
        """Inserts a read of a variable.

        Args:
            operand: Which of the op's operands is the handle.
            element: The element type from the op, where the handle's type doesn't have it.
        """
        element = self.held_element(operand) or element
        assert element is not None, "either the op or the handle has it"
        return self.tf("ReadVariableOp", (self.op.operands[operand],), types.tensor(element, self.held_shape(operand)))

    def assign(self, value: Value, operand: int = 0) -> None:
        """Inserts an assignment to the variable that an operand is the handle of."""
        self.tf_op("AssignVariableOp", (self.op.operands[operand], value), (), {"validate_shape": False})

    def replace_results(self, values: Sequence[Value]) -> None:
        """Replaces the op's results by values."""
        for old, new in zip(self.op.results, values, strict=True):
            old.replace_all_uses_with(new)


_INTEGERS = frozenset({types.I32, types.I64})
_OF_INTEGERS = {"RealDiv": "TruncateDiv"}
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _update(compute: str, access: Access) -> None:
    operand = access.op.operands[1]
    old = access.read(element=types.element_of(operand.type))
    access.assign(access.tf(compute, (old, operand), old.type))


def _scatter(compute: str, access: Access) -> None:
    """Each index is that of a row: a vector of one for the op that takes vectors."""
    old = access.read(element=types.element_of(access.op.operands[2].type))
    indices, updates = access.op.operands[1], _rows(access, old)
    shape = types.shape_of(indices.type)
    vectors = types.tensor(types.element_of(indices.type), None if shape is None else (*shape, 1))
    indices = access.tf("ExpandDims", (indices, access.number(-1)), vectors)
    if shape == ():
        indices, updates = (_as_one(access, value) for value in (indices, updates))
    access.assign(access.tf(compute, (old, indices, updates), old.type))


def _as_one(access: Access, value: Value) -> Value:
    """Returns a value with a leading dimension of 1: kernels don't take single updates."""
    shape = types.shape_of(value.type)
    result = types.tensor(types.element_of(value.type), None if shape is None else (1, *shape))
    return access.tf("ExpandDims", (value, access.number(0)), result)


def _rows(access: Access, old: Value) -> Value:
    """Returns the updates that are scattered, each a row; one scalar may represent all of them."""
    indices, updates = access.op.operands[1:3]
    if not _is_one_for_all(access.op):
        return updates
    row, named = (types.shape_of(old.type) or ())[1:], types.shape_of(indices.type)
    if types.is_static(named):
        shape = access.ints((*(named or ()), *row))
    else:
        counts = access.tf("Shape", (indices,), types.tensor(types.I32, (-1 if named is None else len(named),)))
        whole = types.tensor(types.I32, (-1 if named is None else len(named) + len(row),))
        shape = access.tf("ConcatV2", (counts, access.ints(row), access.number(0)), whole)
    result = types.tensor(types.element_of(updates.type), None if named is None else (*named, *row))
    return access.tf("Fill", (shape, updates), result)


def _is_one_for_all(op: Operation) -> bool:
    is_vector = len(Access(op).held_shape() or (0,)) == 1
    return types.shape_of(op.operands[2].type) == () and not (is_vector and types.shape_of(op.operands[1].type) == ())


def _scatter_product(compute: str, access: Access) -> None:
    """Rows are multiplied with, or divided by, the product of all that is scattered to them."""
    old = access.read(element=types.element_of(access.op.operands[2].type))
    if types.element_of(old.type) in _INTEGERS:
        compute = _OF_INTEGERS.get(compute, compute)
    count = access.number((types.shape_of(old.type) or (0,))[0])
    product = access.tf("UnsortedSegmentProd", (_rows(access, old), access.op.operands[1], count), old.type)
    access.assign(access.tf(compute, (old, product), old.type))


def _scatter_nd(compute: str, access: Access) -> None:
    indices, updates = access.op.operands[1:3]
    old = access.read(element=types.element_of(updates.type))
    access.assign(access.tf(compute, (old, indices, updates), old.type))


def _slice_assign(access: Access) -> None:
    _, begin, end, strides, value = access.op.operands
    old = access.read(element=types.element_of(value.type))
    masks = {name: tf.get(access.op, name, 0) for name in _MASKS}
    access.assign(access.tf("TensorStridedSliceUpdate", (old, begin, end, strides, value), old.type, masks))


def _gather(access: Access) -> None:
    op = access.op
    table = access.read(element=types.element_of(op.results[0].type))
    batch_dims = tf.get(op, "batch_dims", 0)
    operands = (table, op.operands[1], access.number(batch_dims))
    results = [result.type for result in op.results]
    access.replace_results(access.tf_op("GatherV2", operands, results, {"batch_dims": batch_dims}).results)


def _gather_nd(access: Access) -> None:
    op = access.op
    table = access.read(element=types.element_of(op.results[0].type))
    access.replace_results(access.tf_op("GatherNd", (table, op.operands[1]), op.result_types).results)


def _shape(access: Access) -> None:
    wanted = access.op.results[0].type
    shape = access.held_shape()
    if types.is_static(shape):
        access.replace_results([access.ints(shape or (), types.element_of(wanted))])
    else:
        access.replace_results([access.tf("Shape", (access.read(),), wanted)])


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
    **{f"tf.ResourceScatter{name}": partial(_scatter, f"TensorScatter{name}") for name in _COMBINED},
    **{f"tf.ResourceScatterNd{name}": partial(_scatter_nd, f"TensorScatter{name}") for name in _COMBINED},
    "tf.ResourceStridedSliceAssign": _slice_assign,
    "tf.VariableShape": _shape,
}
"""Op -> the function that expands it, before it is erased."""


def can_be_written(op: Operation) -> bool:
    """Returns whether an op of `PARTS` can be expanded: some require the variable's shape or type."""
    if op.name == "tf.VariableShape":
        return Access(op).held_element() is not None
    if not op.name.startswith("tf.ResourceScatter") or op.name.startswith("tf.ResourceScatterNd"):
        return True
    needs_shape = op.name in ("tf.ResourceScatterMul", "tf.ResourceScatterDiv") or _is_one_for_all(op)
    return not needs_shape or types.is_static(Access(op).held_shape())


class Term:
    """A value that formulas are written with; numbers become constants of its element type.

    Attributes:
        access: Inserts ops.
        value: The value.
    """

    __slots__ = ("access", "value")

    def __init__(self, access: Access, value: Value) -> None:
        self.access = access
        self.value = value

    def apply(self, name: str, *others: Term | float) -> Term:
        """Returns the result of an elementwise op on this and others; any but one may be scalars."""
        element = types.element_of(self.value.type)
        values = (each.value if isinstance(each, Term) else self.access.scalar(each, element) for each in others)
        operands = [self.value, *values]
        whole = next((each.type for each in operands if types.shape_of(each.type) != ()), self.value.type)
        return Term(self.access, self.access.tf(name, operands, whole))

    def __add__(self, other: Term | float) -> Term:
        return self.apply("AddV2", other)

    def __sub__(self, other: Term | float) -> Term:
        return self.apply("Sub", other)

    def __rsub__(self, other: float) -> Term:
        element = types.element_of(self.value.type)
        return Term(self.access, self.access.scalar(other, element)).apply("Sub", self)

    def __mul__(self, other: Term | float) -> Term:
        return self.apply("Mul", other)

    def __truediv__(self, other: Term | float) -> Term:
        return self.apply("RealDiv", other)

    def __abs__(self) -> Term:
        return self.apply("Abs")

    def __neg__(self) -> Term:
        return self.apply("Neg")

    def square(self) -> Term:
        return self.apply("Square")

    def sqrt(self) -> Term:
        """Returns the square root."""
        return self.apply("Sqrt")

    def rsqrt(self) -> Term:
        """Returns one over the square root."""
        return self.apply("Rsqrt")

    def sign(self) -> Term:
        """Returns -1, 0 or 1."""
        return self.apply("Sign")

    def exp(self) -> Term:
        """Returns the exponential."""
        return self.apply("Exp")

    def power(self, exponent: Term) -> Term:
        """Returns this to the power of another."""
        return self.apply("Pow", exponent)

    def maximum(self, other: Term | float) -> Term:
        """Returns the larger of the two."""
        return self.apply("Maximum", other)


New = dict[str, Term]


def _gradient_descent(var: Term, alpha: Term, delta: Term) -> New:
    return {"var": var - delta * alpha}


def _shrunk(proximal: Term, rate: Term, l1: Term, l2: Term) -> Term:
    """Returns a value shrunk towards zero by a penalty."""
    return proximal.sign() * (abs(proximal) - rate * l1).maximum(0) / (rate * l2 + 1)


def _proximal_gradient_descent(var: Term, alpha: Term, l1: Term, l2: Term, delta: Term) -> New:
    return {"var": _shrunk(var - delta * alpha, alpha, l1, l2)}


def _momentum(var: Term, accum: Term, lr: Term, grad: Term, momentum: Term, *, use_nesterov: bool) -> New:
    accum = accum * momentum + grad
    step = grad * lr + accum * momentum * lr if use_nesterov else accum * lr
    return {"var": var - step, "accum": accum}


def _keras_momentum(var: Term, accum: Term, lr: Term, grad: Term, momentum: Term, *, use_nesterov: bool) -> New:
    accum = accum * momentum - grad * lr
    return {"var": var + (accum * momentum - grad * lr if use_nesterov else accum), "accum": accum}


def _adagrad(var: Term, accum: Term, lr: Term, grad: Term, *, update_slots: bool) -> New:
    accum = accum + grad.square() if update_slots else accum
    return {"var": var - grad * lr * accum.rsqrt(), "accum": accum}


def _adagrad_v2(var: Term, accum: Term, lr: Term, epsilon: Term, grad: Term, *, update_slots: bool) -> New:
    accum = accum + grad.square() if update_slots else accum
    return {"var": var - grad * lr / (accum.sqrt() + epsilon), "accum": accum}


def _proximal_adagrad(var: Term, accum: Term, lr: Term, l1: Term, l2: Term, grad: Term) -> New:
    accum = accum + grad.square()
    rate = accum.rsqrt() * lr
    return {"var": _shrunk(var - grad * rate, rate, l1, l2), "accum": accum}


def _adadelta(var: Term, accum: Term, accum_update: Term, lr: Term, rho: Term, epsilon: Term, grad: Term) -> New:
    accum = accum * rho + grad.square() * (1 - rho)
    step = (accum_update + epsilon).sqrt() * (accum + epsilon).rsqrt() * grad
    return {"var": var - step * lr, "accum": accum, "accum_update": accum_update * rho + step.square() * (1 - rho)}


def _rate(lr: Term, beta1_power: Term, beta2_power: Term) -> Term:
    return lr * (1 - beta2_power).sqrt() / (1 - beta1_power)


def _adam(
    var: Term,
    m: Term,
    v: Term,
    beta1_power: Term,
    beta2_power: Term,
    lr: Term,
    beta1: Term,
    beta2: Term,
    epsilon: Term,
    grad: Term,
    *,
    use_nesterov: bool,
) -> New:
    m, v = m + (grad - m) * (1 - beta1), v + (grad.square() - v) * (1 - beta2)
    step = grad * (1 - beta1) + m * beta1 if use_nesterov else m
    return {"var": var - step * _rate(lr, beta1_power, beta2_power) / (v.sqrt() + epsilon), "m": m, "v": v}


def _adam_with_amsgrad(
    var: Term,
    m: Term,
    v: Term,
    vhat: Term,
    beta1_power: Term,
    beta2_power: Term,
    lr: Term,
    beta1: Term,
    beta2: Term,
    epsilon: Term,
    grad: Term,
) -> New:
    m, v = m + (grad - m) * (1 - beta1), v + (grad.square() - v) * (1 - beta2)
    vhat = vhat.maximum(v)
    step = m * _rate(lr, beta1_power, beta2_power) / (vhat.sqrt() + epsilon)
    return {"var": var - step, "m": m, "v": v, "vhat": vhat}


def _ada_max(
    var: Term, m: Term, v: Term, beta1_power: Term, lr: Term, beta1: Term, beta2: Term, epsilon: Term, grad: Term
) -> New:
    m, v = m + (grad - m) * (1 - beta1), (v * beta2).maximum(abs(grad))
    return {"var": var - m / (v + epsilon) * (lr / (1 - beta1_power)), "m": m, "v": v}


def _rms_prop(var: Term, ms: Term, mom: Term, lr: Term, rho: Term, momentum: Term, epsilon: Term, grad: Term) -> New:
    ms = ms + (grad.square() - ms) * (1 - rho)
    mom = mom * momentum + grad * lr * (ms + epsilon).rsqrt()
    return {"var": var - mom, "ms": ms, "mom": mom}


def _centered_rms_prop(
    var: Term, mg: Term, ms: Term, mom: Term, lr: Term, rho: Term, momentum: Term, epsilon: Term, grad: Term
) -> New:
    ms, mg = ms + (grad.square() - ms) * (1 - rho), mg + (grad - mg) * (1 - rho)
    mom = mom * momentum + grad * lr * (ms - mg.square() + epsilon).rsqrt()
    return {"var": var - mom, "mg": mg, "ms": ms, "mom": mom}


def _ftrl(
    var: Term,
    accum: Term,
    linear: Term,
    grad: Term,
    lr: Term,
    l1: Term,
    l2: Term,
    lr_power: Term,
    l2_shrinkage: Term | None = None,
    *,
    multiply_linear_by_lr: bool,
) -> New:
    # Either all is as many times larger as the rate is small, or it is not.
    scale, rate = (lr, None) if multiply_linear_by_lr else (None, lr)
    drawn = grad if l2_shrinkage is None else grad + var * (l2_shrinkage * 2)
    total = accum + grad.square()
    powers = total.power(-lr_power), accum.power(-lr_power)
    change = (powers[0] - powers[1]) * var
    linear = linear + (drawn * lr if rate is None else drawn) - (change if rate is None else change / rate)
    bound, decay = (l1, l2 * 2) if scale is None else (l1 * scale, l2 * 2 * scale)
    below = (abs(linear) - bound).maximum(0) * -linear.sign()
    return {
        "var": below / ((powers[0] if rate is None else powers[0] / rate) + decay),
        "accum": total,
        "linear": linear,
    }


def _add_sign(var: Term, m: Term, lr: Term, alpha: Term, sign_decay: Term, beta: Term, grad: Term) -> New:
    m = m * beta + grad * (1 - beta)
    return {"var": var - grad * (m.sign() * grad.sign() * sign_decay + alpha) * lr, "m": m}


def _power_sign(var: Term, m: Term, lr: Term, logbase: Term, sign_decay: Term, beta: Term, grad: Term) -> New:
    m = m * beta + grad * (1 - beta)
    return {"var": var - grad * (m.sign() * grad.sign() * (logbase * sign_decay)).exp() * lr, "m": m}


_FLAGS = ("use_nesterov", "update_slots", "multiply_linear_by_lr")


def _step(formula: Callable[..., New], access: Access) -> None:
    """Computes a formula of an op's operands and assigns its results to the variables."""
    op = access.op
    definition = op_defs.lookup(op.name.removeprefix("tf."))
    assert definition is not None
    element = types.element_of(op.operands[-1].type)
    names = [argument.name for argument in definition.input_arg]
    is_handle = [isinstance(types.element_of(operand.type), types.ResourceType) for operand in op.operands]
    terms = {
        name: Term(access, access.read(position, element) if is_handle[position] else op.operands[position])
        for position, name in enumerate(names)
    }
    flags: dict[str, Any] = {
        each.name: tf.get(op, each.name, each.default_value.b) for each in definition.attr if each.name in _FLAGS
    }
    for name, term in formula(**terms, **flags).items():
        if term is not terms[name]:
            access.assign(term.value, names.index(name))


_FORMULAS: Mapping[str, Callable[..., New]] = {
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
    f"tf.ResourceApply{name}": partial(_step, formula) for name, formula in _FORMULAS.items()
}
"""Op -> the function that expands it, before it is erased."""
