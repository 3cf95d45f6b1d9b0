"""The update rules of optimizers; each makes ops on references and resources, on all rows or some.

A rule takes the array module, the values of the variables and the other inputs, and returns the new values of the variables.
"""

from __future__ import annotations

from typing import Any

from graphcore.opset.state.optimizer_blocks import DENSE, optimizer

Values = tuple[Any, ...]


@optimizer("GradientDescent", prefixes=DENSE)
def gradient_descent(_xp: Any, var: Any, /, alpha: Any, delta: Any) -> Values:
    """Gradient descent: `var -= alpha * delta`."""
    return (var - alpha * delta,)


@optimizer("ProximalGradientDescent")
def proximal_gradient_descent(xp: Any, var: Any, /, alpha: Any, l1: Any, l2: Any, delta: Any) -> Values:
    """Gradient descent with penalties on the sum of magnitudes and of squares."""
    moved = var - alpha * delta
    shrunk = xp.sign(moved) * xp.maximum(xp.abs(moved) - alpha * l1, 0) if l1 > 0 else moved
    return (shrunk / (1 + l2 * alpha),)


@optimizer("Momentum")
def momentum(_xp: Any, var: Any, accum: Any, /, lr: Any, grad: Any, momentum: Any, *, use_nesterov: bool = False) -> Values:
    """Descent with momentum: `accum = accum * momentum + grad`, `var -= lr * accum`.

    use_nesterov: look ahead along the momentum.
    """
    accum = accum * momentum + grad
    step = grad * lr + accum * momentum * lr if use_nesterov else accum * lr
    return var - step, accum


@optimizer("KerasMomentum", prefixes=("ResourceApply", "ResourceSparseApply"))
def keras_momentum(_xp: Any, var: Any, accum: Any, /, lr: Any, grad: Any, momentum: Any, *, use_nesterov: bool = False) -> Values:
    """Descent with momentum: `accum = accum * momentum - lr * grad`, `var += accum`.

    use_nesterov: look ahead along the momentum.
    """
    accum = accum * momentum - grad * lr
    return var + (accum * momentum - grad * lr if use_nesterov else accum), accum


@optimizer("Adam", prefixes=DENSE)
def adam(
    xp: Any,
    var: Any,
    m: Any,
    v: Any,
    /,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
    *,
    use_nesterov: bool = False,
) -> Values:
    """Adam: steps by the mean of gradients over the root of the mean of their squares.

    Both running means are corrected for their start at 0.

    use_nesterov: look ahead along the mean.
    """
    alpha = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    direction = grad * (1 - beta1) + beta1 * m if use_nesterov else m
    return var - direction * alpha / (xp.sqrt(v) + epsilon), m, v


@optimizer("AdamWithAmsgrad", prefixes=("ResourceApply",))
def adam_with_amsgrad(
    xp: Any,
    var: Any,
    m: Any,
    v: Any,
    vhat: Any,
    /,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
) -> Values:
    """Adam with the largest of all running means of squares instead of the last."""
    alpha = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    vhat = xp.maximum(vhat, v)
    return var - m * alpha / (xp.sqrt(vhat) + epsilon), m, v, vhat


@optimizer("AdaMax", prefixes=DENSE)
def ada_max(xp: Any, var: Any, m: Any, v: Any, /, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, grad: Any) -> Values:
    """AdaMax: Adam with the running maximum of magnitudes instead of squares."""
    m = m + (grad - m) * (1 - beta1)
    v = xp.maximum(beta2 * v, xp.abs(grad))
    return var - lr / (1 - beta1_power) * (m / (v + epsilon)), m, v


@optimizer("Adagrad")
def adagrad(xp: Any, var: Any, accum: Any, /, lr: Any, grad: Any, *, update_slots: bool = True) -> Values:
    """Adagrad: steps over the root of the sum of all squared gradients.

    update_slots: if false, the sum is unchanged.
    """
    accum = accum + grad * grad if update_slots else accum
    return var - grad * lr / xp.sqrt(accum), accum


@optimizer("AdagradV2")
def adagrad_v2(xp: Any, var: Any, accum: Any, /, lr: Any, epsilon: Any, grad: Any, *, update_slots: bool = True) -> Values:
    """Adagrad with `epsilon` added to the root.

    update_slots: if false, the sum is unchanged.
    """
    accum = accum + grad * grad if update_slots else accum
    return var - grad * lr / (xp.sqrt(accum) + epsilon), accum


@optimizer("AdagradDA")
def adagrad_da(
    xp: Any,
    var: Any,
    gradient_accumulator: Any,
    gradient_squared_accumulator: Any,
    /,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    global_step: Any,
) -> Values:
    """Adagrad by dual averaging: the variable follows from the sums of gradients and of squares.

    global_step: the number of the step, from 1
    """
    total, squares, step = gradient_accumulator + grad, gradient_squared_accumulator + grad * grad, global_step.astype(var.dtype)
    shrunk = xp.sign(total) * xp.maximum(xp.abs(total) - l1 * step, 0) if l1 > 0 else total
    return -lr * shrunk / (l2 * step * lr + xp.sqrt(squares)), total, squares


@optimizer("ProximalAdagrad")
def proximal_adagrad(xp: Any, var: Any, accum: Any, /, lr: Any, l1: Any, l2: Any, grad: Any) -> Values:
    """Adagrad with penalties on the sum of magnitudes and of squares."""
    accum = accum + grad * grad
    rate = lr / xp.sqrt(accum)
    moved = var - grad * rate
    shrunk = xp.sign(moved) * xp.maximum(xp.abs(moved) - rate * l1, 0) if l1 > 0 else moved
    return shrunk / (1 + l2 * rate), accum


@optimizer("Adadelta")
def adadelta(xp: Any, var: Any, accum: Any, accum_update: Any, /, lr: Any, rho: Any, epsilon: Any, grad: Any) -> Values:
    """Adadelta: steps scaled by the running means of squared updates and squared gradients."""
    accum = accum * rho + grad * grad * (1 - rho)
    update = xp.sqrt(accum_update + epsilon) / xp.sqrt(accum + epsilon) * grad
    return var - update * lr, accum, accum_update * rho + update * update * (1 - rho)


@optimizer("RMSProp")
def rms_prop(xp: Any, var: Any, ms: Any, mom: Any, /, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any) -> Values:
    """RMSProp: steps over the root of the running mean of squared gradients, with momentum."""
    ms = ms + (grad * grad - ms) * (1 - rho)
    mom = mom * momentum + grad * lr / xp.sqrt(ms + epsilon)
    return var - mom, ms, mom


@optimizer("CenteredRMSProp")
def centered_rms_prop(
    xp: Any, var: Any, mg: Any, ms: Any, mom: Any, /, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> Values:
    """RMSProp with the variance of the gradients instead of their mean square."""
    ms = ms + (grad * grad - ms) * (1 - rho)
    mg = mg + (grad - mg) * (1 - rho)
    mom = mom * momentum + grad * lr / xp.sqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


@optimizer("Ftrl")
def ftrl(
    xp: Any,
    var: Any,
    accum: Any,
    linear: Any,
    /,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    lr_power: Any,
    *,
    multiply_linear_by_lr: bool = False,
) -> Values:
    """FTRL-proximal: follow the regularised leader.

    multiply_linear_by_lr: keep the linear part multiplied by lr.
    """
    zero = lr.dtype.type(0)
    return ftrl_v2(xp, var, accum, linear, grad, lr, l1, l2, zero, lr_power, multiply_linear_by_lr=multiply_linear_by_lr)


@optimizer("FtrlV2")
def ftrl_v2(
    xp: Any,
    var: Any,
    accum: Any,
    linear: Any,
    /,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    l2_shrinkage: Any,
    lr_power: Any,
    *,
    multiply_linear_by_lr: bool = False,
) -> Values:
    """FTRL-proximal with a penalty on magnitudes that does not enter the sums.

    multiply_linear_by_lr: keep the linear part multiplied by lr.
    """
    scale = lr if multiply_linear_by_lr else lr.dtype.type(1)
    shrunk = grad + 2 * l2_shrinkage * var
    new = accum + grad * grad
    power, old_power = new**-lr_power, accum**-lr_power
    linear = linear + shrunk * scale - (power - old_power) * (scale / lr) * var
    quadratic = power * (scale / lr) + 2 * l2 * scale
    chosen = (l1 * scale * xp.sign(linear) - linear) / quadratic
    return xp.where(xp.abs(linear) > l1 * scale, chosen, chosen.dtype.type(0)), new, linear


@optimizer("AddSign", prefixes=DENSE)
def add_sign(xp: Any, var: Any, m: Any, /, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Any) -> Values:
    """AddSign: larger steps if gradient and running mean agree in sign."""
    m = m * beta + grad * (1 - beta)
    return var - lr * (alpha + sign_decay * xp.sign(grad) * xp.sign(m)) * grad, m


@optimizer("PowerSign", prefixes=DENSE)
def power_sign(xp: Any, var: Any, m: Any, /, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Any) -> Values:
    """PowerSign: exponentially larger steps if gradient and running mean agree in sign."""
    m = m * beta + grad * (1 - beta)
    return var - lr * xp.exp(logbase * sign_decay * xp.sign(grad) * xp.sign(m)) * grad, m
