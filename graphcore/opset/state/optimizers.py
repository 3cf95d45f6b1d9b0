"""Optimizers on reference variables: one op changes a variable and its slots.

The rules themselves are in update_rules.
"""

from __future__ import annotations

from graphcore.opset.framework.block import no_registered_gradient, op
from graphcore.opset.numerics import update_rules as rules

_NO_GRADIENT = no_registered_gradient("it changes variables; differentiate before it")


@op
class ApplyGradientDescent:
    """Gradient descent: `var -= alpha * delta`."""

    signature = rules.DESCENT.signature("ApplyGradientDescent")
    shape = rules.DESCENT.shape
    kernel = rules.DESCENT.kernel
    gradient = _NO_GRADIENT
    examples = rules.DESCENT.examples()


@op
class ApplyProximalGradientDescent:
    """Gradient descent with penalties on the sum of magnitudes and of squares."""

    signature = rules.PROXIMAL.signature("ApplyProximalGradientDescent")
    shape = rules.PROXIMAL.shape
    kernel = rules.PROXIMAL.kernel
    gradient = _NO_GRADIENT
    examples = rules.PROXIMAL.examples()


@op
class ApplyMomentum:
    """Descent with momentum: `accum = accum * momentum + grad`, `var -= lr * accum`.

    use_nesterov: look ahead along the momentum.
    """

    signature = rules.MOMENTUM.signature("ApplyMomentum")
    shape = rules.MOMENTUM.shape
    kernel = rules.MOMENTUM.kernel
    gradient = _NO_GRADIENT
    examples = (*rules.MOMENTUM.examples(), *rules.MOMENTUM.examples({"use_nesterov": True}))


@op
class ApplyAdam:
    """Adam: steps by the running mean of gradients over the root of that of their squares, both corrected for their start at 0.

    use_nesterov: look ahead along the mean.
    """

    signature = rules.ADAM.signature("ApplyAdam")
    shape = rules.ADAM.shape
    kernel = rules.ADAM.kernel
    gradient = _NO_GRADIENT
    examples = (*rules.ADAM.examples(), *rules.ADAM.examples({"use_nesterov": True}))


@op
class ApplyAdaMax:
    """AdaMax: Adam with the running maximum of magnitudes in the place of squares."""

    signature = rules.ADA_MAX.signature("ApplyAdaMax")
    shape = rules.ADA_MAX.shape
    kernel = rules.ADA_MAX.kernel
    gradient = _NO_GRADIENT
    examples = rules.ADA_MAX.examples()


@op
class ApplyAdagrad:
    """Adagrad: steps over the root of the sum of all squared gradients.

    update_slots: if false, the sum stays as it is.
    """

    signature = rules.ADAGRAD.signature("ApplyAdagrad")
    shape = rules.ADAGRAD.shape
    kernel = rules.ADAGRAD.kernel
    gradient = _NO_GRADIENT
    examples = (*rules.ADAGRAD.examples(), *rules.ADAGRAD.examples({"update_slots": False}))


@op
class ApplyAdagradV2:
    """Adagrad with `epsilon` added to the root.

    update_slots: if false, the sum stays as it is.
    """

    signature = rules.ADAGRAD_V2.signature("ApplyAdagradV2")
    shape = rules.ADAGRAD_V2.shape
    kernel = rules.ADAGRAD_V2.kernel
    gradient = _NO_GRADIENT
    examples = (*rules.ADAGRAD_V2.examples(), *rules.ADAGRAD_V2.examples({"update_slots": False}))


@op
class ApplyAdadelta:
    """Adadelta: steps scaled by the running means of squared updates and squared gradients."""

    signature = rules.ADADELTA.signature("ApplyAdadelta")
    shape = rules.ADADELTA.shape
    kernel = rules.ADADELTA.kernel
    gradient = _NO_GRADIENT
    examples = rules.ADADELTA.examples()


@op
class ApplyRMSProp:
    """RMSProp: steps over the root of the running mean of squared gradients, with momentum."""

    signature = rules.RMS_PROP.signature("ApplyRMSProp")
    shape = rules.RMS_PROP.shape
    kernel = rules.RMS_PROP.kernel
    gradient = _NO_GRADIENT
    examples = rules.RMS_PROP.examples()


@op
class ApplyCenteredRMSProp:
    """RMSProp with the variance of the gradients in the place of their mean square."""

    signature = rules.CENTERED_RMS_PROP.signature("ApplyCenteredRMSProp")
    shape = rules.CENTERED_RMS_PROP.shape
    kernel = rules.CENTERED_RMS_PROP.kernel
    gradient = _NO_GRADIENT
    examples = rules.CENTERED_RMS_PROP.examples()


@op
class ApplyFtrl:
    """FTRL-proximal: follow the regularised leader.

    multiply_linear_by_lr: keep the linear part multiplied by lr.
    """

    signature = rules.FTRL.signature("ApplyFtrl")
    shape = rules.FTRL.shape
    kernel = rules.FTRL.kernel
    gradient = _NO_GRADIENT
    examples = (*rules.FTRL.examples(), *rules.FTRL.examples({"multiply_linear_by_lr": True}))


@op
class ApplyFtrlV2:
    """FTRL-proximal with a penalty on magnitudes that does not enter the sums.

    multiply_linear_by_lr: keep the linear part multiplied by lr.
    """

    signature = rules.FTRL_V2.signature("ApplyFtrlV2")
    shape = rules.FTRL_V2.shape
    kernel = rules.FTRL_V2.kernel
    gradient = _NO_GRADIENT
    examples = (*rules.FTRL_V2.examples(), *rules.FTRL_V2.examples({"multiply_linear_by_lr": True}))


@op
class ApplyAddSign:
    """AddSign: steps are larger where gradient and running mean agree in sign."""

    signature = rules.ADD_SIGN.signature("ApplyAddSign")
    shape = rules.ADD_SIGN.shape
    kernel = rules.ADD_SIGN.kernel
    gradient = _NO_GRADIENT
    examples = rules.ADD_SIGN.examples()


@op
class ApplyPowerSign:
    """PowerSign: steps are exponentially larger where gradient and running mean agree in sign."""

    signature = rules.POWER_SIGN.signature("ApplyPowerSign")
    shape = rules.POWER_SIGN.shape
    kernel = rules.POWER_SIGN.kernel
    gradient = _NO_GRADIENT
    examples = rules.POWER_SIGN.examples()
