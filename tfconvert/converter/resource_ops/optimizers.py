"""The steps of optimizers: updates of a variable and of the optimizer's slots for it.

A step is a function that names its parameters as the op names its operands, and returns the new values by the names of
the variables that get them. All variables are read before any is assigned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.resource_ops.access import Access
from tfconvert.ops.formula import Tensor
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.tensorflow import op_defs

New = dict[str, Tensor]


def _gradient_descent(var: Tensor, alpha: Tensor, delta: Tensor) -> New:
    return {"var": var - delta * alpha}


def _shrunk(proximal: Tensor, rate: Tensor, l1: Tensor, l2: Tensor) -> Tensor:
    """Returns a value shrunk towards zero by a penalty."""
    return proximal.sign() * (abs(proximal) - rate * l1).maximum(0) / (rate * l2 + 1)


def _proximal_gradient_descent(var: Tensor, alpha: Tensor, l1: Tensor, l2: Tensor, delta: Tensor) -> New:
    return {"var": _shrunk(var - delta * alpha, alpha, l1, l2)}


def _momentum(var: Tensor, accum: Tensor, lr: Tensor, grad: Tensor, momentum: Tensor, *, use_nesterov: bool) -> New:
    accum = accum * momentum + grad
    step = grad * lr + accum * momentum * lr if use_nesterov else accum * lr
    return {"var": var - step, "accum": accum}


def _keras_momentum(
    var: Tensor, accum: Tensor, lr: Tensor, grad: Tensor, momentum: Tensor, *, use_nesterov: bool
) -> New:
    accum = accum * momentum - grad * lr
    return {"var": var + (accum * momentum - grad * lr if use_nesterov else accum), "accum": accum}


def _adagrad(var: Tensor, accum: Tensor, lr: Tensor, grad: Tensor, *, update_slots: bool) -> New:
    accum = accum + grad.square() if update_slots else accum
    return {"var": var - grad * lr * accum.rsqrt(), "accum": accum}


def _adagrad_v2(var: Tensor, accum: Tensor, lr: Tensor, epsilon: Tensor, grad: Tensor, *, update_slots: bool) -> New:
    accum = accum + grad.square() if update_slots else accum
    return {"var": var - grad * lr / (accum.sqrt() + epsilon), "accum": accum}


def _proximal_adagrad(var: Tensor, accum: Tensor, lr: Tensor, l1: Tensor, l2: Tensor, grad: Tensor) -> New:
    accum = accum + grad.square()
    rate = accum.rsqrt() * lr
    return {"var": _shrunk(var - grad * rate, rate, l1, l2), "accum": accum}


def _adadelta(
    var: Tensor, accum: Tensor, accum_update: Tensor, lr: Tensor, rho: Tensor, epsilon: Tensor, grad: Tensor
) -> New:
    accum = accum * rho + grad.square() * (1 - rho)
    step = (accum_update + epsilon).sqrt() * (accum + epsilon).rsqrt() * grad
    return {"var": var - step * lr, "accum": accum, "accum_update": accum_update * rho + step.square() * (1 - rho)}


def _rate(lr: Tensor, beta1_power: Tensor, beta2_power: Tensor) -> Tensor:
    return lr * (1 - beta2_power).sqrt() / (1 - beta1_power)


def _adam(
    var: Tensor,
    m: Tensor,
    v: Tensor,
    beta1_power: Tensor,
    beta2_power: Tensor,
    lr: Tensor,
    beta1: Tensor,
    beta2: Tensor,
    epsilon: Tensor,
    grad: Tensor,
    *,
    use_nesterov: bool,
) -> New:
    m, v = m + (grad - m) * (1 - beta1), v + (grad.square() - v) * (1 - beta2)
    step = grad * (1 - beta1) + m * beta1 if use_nesterov else m
    return {"var": var - step * _rate(lr, beta1_power, beta2_power) / (v.sqrt() + epsilon), "m": m, "v": v}


def _adam_with_amsgrad(
    var: Tensor,
    m: Tensor,
    v: Tensor,
    vhat: Tensor,
    beta1_power: Tensor,
    beta2_power: Tensor,
    lr: Tensor,
    beta1: Tensor,
    beta2: Tensor,
    epsilon: Tensor,
    grad: Tensor,
) -> New:
    m, v = m + (grad - m) * (1 - beta1), v + (grad.square() - v) * (1 - beta2)
    vhat = vhat.maximum(v)
    step = m * _rate(lr, beta1_power, beta2_power) / (vhat.sqrt() + epsilon)
    return {"var": var - step, "m": m, "v": v, "vhat": vhat}


def _ada_max(
    var: Tensor,
    m: Tensor,
    v: Tensor,
    beta1_power: Tensor,
    lr: Tensor,
    beta1: Tensor,
    beta2: Tensor,
    epsilon: Tensor,
    grad: Tensor,
) -> New:
    m, v = m + (grad - m) * (1 - beta1), (v * beta2).maximum(abs(grad))
    return {"var": var - m / (v + epsilon) * (lr / (1 - beta1_power)), "m": m, "v": v}


def _rms_prop(
    var: Tensor, ms: Tensor, mom: Tensor, lr: Tensor, rho: Tensor, momentum: Tensor, epsilon: Tensor, grad: Tensor
) -> New:
    ms = ms + (grad.square() - ms) * (1 - rho)
    mom = mom * momentum + grad * lr * (ms + epsilon).rsqrt()
    return {"var": var - mom, "ms": ms, "mom": mom}


def _centered_rms_prop(
    var: Tensor,
    mg: Tensor,
    ms: Tensor,
    mom: Tensor,
    lr: Tensor,
    rho: Tensor,
    momentum: Tensor,
    epsilon: Tensor,
    grad: Tensor,
) -> New:
    ms, mg = ms + (grad.square() - ms) * (1 - rho), mg + (grad - mg) * (1 - rho)
    mom = mom * momentum + grad * lr * (ms - mg.square() + epsilon).rsqrt()
    return {"var": var - mom, "mg": mg, "ms": ms, "mom": mom}


def _ftrl(
    var: Tensor,
    accum: Tensor,
    linear: Tensor,
    grad: Tensor,
    lr: Tensor,
    l1: Tensor,
    l2: Tensor,
    lr_power: Tensor,
    l2_shrinkage: Tensor | None = None,
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


def _add_sign(var: Tensor, m: Tensor, lr: Tensor, alpha: Tensor, sign_decay: Tensor, beta: Tensor, grad: Tensor) -> New:
    m = m * beta + grad * (1 - beta)
    return {"var": var - grad * (m.sign() * grad.sign() * sign_decay + alpha) * lr, "m": m}


def _power_sign(
    var: Tensor, m: Tensor, lr: Tensor, logbase: Tensor, sign_decay: Tensor, beta: Tensor, grad: Tensor
) -> New:
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
        name: EmittedTensor(access, access.read(position, element) if is_handle[position] else op.operands[position])
        for position, name in enumerate(names)
    }
    flags: dict[str, Any] = {
        each.name: tf.get(op, each.name, each.default_value.b) for each in definition.attr if each.name in _FLAGS
    }
    for name, term in formula(**terms, **flags).items():
        if isinstance(term, EmittedTensor) and term is not terms[name]:
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
