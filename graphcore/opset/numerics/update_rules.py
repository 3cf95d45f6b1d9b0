"""How optimizers change variables: each rule takes the variables' values and the inputs, and gives the new values.

The ops on reference variables and those on resources share a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Any, Final

import msgspec

from graphcore.attrs import Attrs
from graphcore.inference import InferenceContext, ShapeHandle
from graphcore.kernel_context import KernelContext, RefVariable
from graphcore.opset.framework.block import Example, Kernel
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.framework.type_sets import NUMBER
from graphcore.support.critical_section import critical_section

Update = Callable[..., tuple[Any, ...]]

GRADIENTS: Final = frozenset({"grad", "delta"})
"""The inputs that are shaped like the variable; all others are scalars."""


class _Locks:
    """The locks of several variables, taken in the same order by everybody, and once each."""

    __slots__ = ("_locks", "_taken")

    def __init__(self, variables: Iterable[RefVariable]) -> None:
        self._locks = sorted({variable.lock for variable in variables}, key=id)
        self._taken: list[Lock] = []

    @critical_section.cover
    def __enter__(self) -> None:
        critical_section.begin()
        try:
            for lock in self._locks:
                if not lock.acquire(blocking=False):
                    critical_section.acquire(lock)
                self._taken.append(lock)
            if critical_section.deferred is not None:
                critical_section.end()
        except BaseException:  # Ctrl-C while it waits
            self.__exit__()
            raise

    @critical_section.cover
    def __exit__(self, *_error: object) -> None:
        for lock in self._taken:
            lock.release()
        if critical_section.deferred is not None:
            critical_section.end()


@critical_section.cover
def _assign(variables: Iterable[RefVariable], values: Iterable[Any]) -> None:
    """Give several variables new values, all of them or, where Ctrl-C comes before, none; their locks are held."""
    critical_section.begin()
    try:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
    finally:
        if critical_section.deferred is not None:
            critical_section.end()


class Rule(msgspec.Struct, frozen=True):
    """What an optimizer does.

    Attributes:
        variables: the names of the variables, the trained one first; `update` gives new values for all of them.
        inputs: the names of the other inputs, in order.
        attrs: further attrs, as in a signature.
        update: (xp, attrs, values of the variables..., inputs...) -> new values.
    """

    variables: tuple[str, ...]
    inputs: tuple[str, ...]
    update: Update
    attrs: str = ""

    def signature(self, name: str) -> str:
        """The signature of the op on reference variables."""
        args = [f"{arg}:Ref(T)" for arg in self.variables] + [f"{arg}:T" for arg in self.inputs]
        return f"{name}[T:{NUMBER}, use_locking:bool = false{self.attrs and ', ' + self.attrs}]({', '.join(args)}) -> (out:Ref(T))"

    def resource_signature(self, name: str) -> str:
        """The signature of the op on resources."""
        args = [f"{arg}:resource" for arg in self.variables] + [f"{arg}:T" for arg in self.inputs]
        return f"{name}[T:{NUMBER}, use_locking:bool = false{self.attrs and ', ' + self.attrs}]({', '.join(args)}) -> ()"

    def kernel(self, k: KernelContext) -> Kernel:
        """Reads the variables, checks the gradient's shape, and puts the new values in place of the old ones."""
        xp, attrs, count, update = k.xp, k.attrs, len(self.variables), self.update
        gradients = [count + i for i, name in enumerate(self.inputs) if name in GRADIENTS]
        gives_variable = bool(k.output_types)

        def apply(*arguments: Any) -> RefVariable | None:
            variables = arguments[:count]
            with variables[0].lock if count == 1 else _Locks(variables):
                values = [variable.read() for variable in variables]
                for shape in [*[value.shape for value in values[1:]], *[arguments[i].shape for i in gradients]]:
                    if shape != values[0].shape:
                        raise invalid(k, f"var and its gradient and slots must have the same shape: {list(values[0].shape)} {list(shape)}")
                _assign(variables, update(xp, attrs, *values, *arguments[count:]))
            return variables[0] if gives_variable else None

        return apply

    def shape(self, c: InferenceContext) -> None:
        """Variables and gradient agree; the rest are scalars."""
        known = self._variable_shape(c, 0)
        for i in range(1, len(self.variables)):
            known = c.merge(known, self._variable_shape(c, i))
        for i, name in enumerate(self.inputs, len(self.variables)):
            known = c.merge(known, c.input(i)) if name in GRADIENTS else self._after_scalar(c, i, known)
        if c.num_outputs:
            c.set_output(0, known)

    def examples(self, attrs: Mapping[str, Any] | None = None) -> tuple[Example, ...]:
        """One example, with numbers that every rule can do with."""
        scalars = {"lr_power": -0.5, "epsilon": 0.125, "beta1_power": 0.5, "beta2_power": 0.25}
        values = [_GRADIENT if name in GRADIENTS else scalars.get(name, 0.75) for name in self.inputs]
        return (Example([_VARIABLE, *[_SLOT] * (len(self.variables) - 1), *values], attrs or {}),)

    @staticmethod
    def _variable_shape(c: InferenceContext, i: int) -> ShapeHandle:
        data = c.input_handle_shapes_and_types(i)
        if c.op_def.input_arg[i].is_ref:
            return c.input(i)
        return data[0].shape if data else c.unknown_shape()

    @staticmethod
    def _after_scalar(c: InferenceContext, i: int, known: ShapeHandle) -> ShapeHandle:
        c.with_rank(c.input(i), 0)
        return known


_VARIABLE: Final = [[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]]
_GRADIENT: Final = [[0.5, 0.25, -1.0], [2.0, -0.5, 0.125]]
_SLOT: Final = [[2.0, 1.5, 3.0], [4.5, 2.5, 1.75]]


def _descend(_xp: Any, _attrs: Attrs, var: Any, alpha: Any, delta: Any) -> tuple[Any, ...]:
    return (var - alpha * delta,)


def _proximal(xp: Any, _attrs: Attrs, var: Any, alpha: Any, l1: Any, l2: Any, delta: Any) -> tuple[Any, ...]:
    moved = var - alpha * delta
    shrunk = xp.sign(moved) * xp.maximum(xp.abs(moved) - alpha * l1, 0) if l1 > 0 else moved
    return (shrunk / (1 + l2 * alpha),)


def _momentum(_xp: Any, attrs: Attrs, var: Any, accum: Any, lr: Any, grad: Any, momentum: Any) -> tuple[Any, ...]:
    accum = accum * momentum + grad
    step = grad * lr + accum * momentum * lr if attrs.get("use_nesterov") else accum * lr
    return var - step, accum


def _keras_momentum(_xp: Any, attrs: Attrs, var: Any, accum: Any, lr: Any, grad: Any, momentum: Any) -> tuple[Any, ...]:
    accum = accum * momentum - grad * lr
    return var + (accum * momentum - grad * lr if attrs.get("use_nesterov") else accum), accum


def _adam(
    xp: Any,
    attrs: Attrs,
    var: Any,
    m: Any,
    v: Any,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
) -> tuple[Any, ...]:
    alpha = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    direction = grad * (1 - beta1) + beta1 * m if attrs.get("use_nesterov") else m
    return var - direction * alpha / (xp.sqrt(v) + epsilon), m, v


def _ada_max(
    xp: Any, _attrs: Attrs, var: Any, m: Any, v: Any, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, grad: Any
) -> tuple[Any, ...]:
    m = m + (grad - m) * (1 - beta1)
    v = xp.maximum(beta2 * v, xp.abs(grad))
    return var - lr / (1 - beta1_power) * (m / (v + epsilon)), m, v


def _adagrad(xp: Any, attrs: Attrs, var: Any, accum: Any, lr: Any, grad: Any) -> tuple[Any, ...]:
    accum = accum + grad * grad if attrs.get("update_slots") else accum
    return var - grad * lr / xp.sqrt(accum), accum


def _adagrad_v2(xp: Any, attrs: Attrs, var: Any, accum: Any, lr: Any, epsilon: Any, grad: Any) -> tuple[Any, ...]:
    accum = accum + grad * grad if attrs.get("update_slots") else accum
    return var - grad * lr / (xp.sqrt(accum) + epsilon), accum


def _adadelta(
    xp: Any, _attrs: Attrs, var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any
) -> tuple[Any, ...]:
    accum = accum * rho + grad * grad * (1 - rho)
    update = xp.sqrt(accum_update + epsilon) / xp.sqrt(accum + epsilon) * grad
    return var - update * lr, accum, accum_update * rho + update * update * (1 - rho)


def _rms_prop(
    xp: Any, _attrs: Attrs, var: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> tuple[Any, ...]:
    ms = ms + (grad * grad - ms) * (1 - rho)
    mom = mom * momentum + grad * lr / xp.sqrt(ms + epsilon)
    return var - mom, ms, mom


def _centered_rms_prop(
    xp: Any, _attrs: Attrs, var: Any, mg: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> tuple[Any, ...]:
    ms = ms + (grad * grad - ms) * (1 - rho)
    mg = mg + (grad - mg) * (1 - rho)
    mom = mom * momentum + grad * lr / xp.sqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


def _ftrl(xp: Any, attrs: Attrs, var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any) -> tuple[Any, ...]:
    return _ftrl_v2(xp, attrs, var, accum, linear, grad, lr, l1, l2, lr.dtype.type(0), lr_power)


def _ftrl_v2(
    xp: Any, attrs: Attrs, var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, l2_shrinkage: Any, lr_power: Any
) -> tuple[Any, ...]:
    scale = lr if attrs.get("multiply_linear_by_lr") else lr.dtype.type(1)
    shrunk = grad + 2 * l2_shrinkage * var
    new = accum + grad * grad
    power, old_power = new**-lr_power, accum**-lr_power
    linear = linear + shrunk * scale - (power - old_power) * (scale / lr) * var
    quadratic = power * (scale / lr) + 2 * l2 * scale
    chosen = (l1 * scale * xp.sign(linear) - linear) / quadratic
    return xp.where(xp.abs(linear) > l1 * scale, chosen, chosen.dtype.type(0)), new, linear


def _add_sign(xp: Any, _attrs: Attrs, var: Any, m: Any, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Any) -> tuple[Any, ...]:
    m = m * beta + grad * (1 - beta)
    return var - lr * (alpha + sign_decay * xp.sign(grad) * xp.sign(m)) * grad, m


def _power_sign(xp: Any, _attrs: Attrs, var: Any, m: Any, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Any) -> tuple[Any, ...]:
    m = m * beta + grad * (1 - beta)
    return var - lr * xp.exp(logbase * sign_decay * xp.sign(grad) * xp.sign(m)) * grad, m


_NESTEROV: Final = "use_nesterov:bool = false"
_SLOTS: Final = "update_slots:bool = true"
_BY_LR: Final = "multiply_linear_by_lr:bool = false"

DESCENT: Final = Rule(("var",), ("alpha", "delta"), _descend)
PROXIMAL: Final = Rule(("var",), ("alpha", "l1", "l2", "delta"), _proximal)
MOMENTUM: Final = Rule(("var", "accum"), ("lr", "grad", "momentum"), _momentum, _NESTEROV)
KERAS_MOMENTUM: Final = Rule(("var", "accum"), ("lr", "grad", "momentum"), _keras_momentum, _NESTEROV)
ADAM: Final = Rule(("var", "m", "v"), ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"), _adam, _NESTEROV)
ADA_MAX: Final = Rule(("var", "m", "v"), ("beta1_power", "lr", "beta1", "beta2", "epsilon", "grad"), _ada_max)
ADAGRAD: Final = Rule(("var", "accum"), ("lr", "grad"), _adagrad, _SLOTS)
ADAGRAD_V2: Final = Rule(("var", "accum"), ("lr", "epsilon", "grad"), _adagrad_v2, _SLOTS)
ADADELTA: Final = Rule(("var", "accum", "accum_update"), ("lr", "rho", "epsilon", "grad"), _adadelta)
RMS_PROP: Final = Rule(("var", "ms", "mom"), ("lr", "rho", "momentum", "epsilon", "grad"), _rms_prop)
CENTERED_RMS_PROP: Final = Rule(("var", "mg", "ms", "mom"), ("lr", "rho", "momentum", "epsilon", "grad"), _centered_rms_prop)
FTRL: Final = Rule(("var", "accum", "linear"), ("grad", "lr", "l1", "l2", "lr_power"), _ftrl, _BY_LR)
FTRL_V2: Final = Rule(("var", "accum", "linear"), ("grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"), _ftrl_v2, _BY_LR)
ADD_SIGN: Final = Rule(("var", "m"), ("lr", "alpha", "sign_decay", "beta", "grad"), _add_sign)
POWER_SIGN: Final = Rule(("var", "m"), ("lr", "logbase", "sign_decay", "beta", "grad"), _power_sign)
