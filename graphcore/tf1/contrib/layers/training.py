"""`tf.contrib.layers.optimize_loss`: one node for a step of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import identity
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.contrib.framework import assert_scalar
from graphcore.tf1.framework import control_dependencies, convert_to_tensor, get_collection
from graphcore.tf1.indexed_slices import IndexedSlices
from graphcore.tf1.initializers import Constant
from graphcore.tf1.math.clipping import clip_by_global_norm, global_norm
from graphcore.tf1.random import truncated_normal
from graphcore.tf1.summary import histogram, scalar
from graphcore.tf1.train.global_steps import assert_global_step, get_global_step
from graphcore.tf1.train.optimizers import AdamOptimizer, GradientDescentOptimizer, MomentumOptimizer, Optimizer
from graphcore.tf1.train.optimizers.adaptive import AdagradOptimizer, RMSPropOptimizer
from graphcore.tf1.train.optimizers.proximal import FtrlOptimizer
from graphcore.tf1.variable_scopes.getting import get_variable
from graphcore.tf1.variable_scopes.opening import variable_scope
from graphcore.tf1.variables.collections import GraphKeys
from graphcore.tf1.variables.listing import trainable_variables

_BY_NAME: Final[dict[str, Callable[[Any], Optimizer]]] = {
    "Adagrad": AdagradOptimizer,
    "Adam": AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "Momentum": lambda learning_rate: MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}
OPTIMIZER_CLS_NAMES: Final = _BY_NAME
OPTIMIZER_SUMMARIES: Final = ["learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm"]
_USUAL_SUMMARIES: Final = ("loss", "learning_rate", "global_gradient_norm")

Pairs = list[tuple[Any, Any]]


def optimize_loss(
    loss: Any,
    global_step: Any,
    learning_rate: Any,
    optimizer: Any,
    gradient_noise_scale: float | None = None,
    gradient_multipliers: Mapping[Any, Any] | None = None,
    clip_gradients: Any = None,
    learning_rate_decay_fn: Callable[[Any, Any], Any] | None = None,
    update_ops: Sequence[Any] | None = None,
    variables: Sequence[Any] | None = None,
    name: str | None = None,
    summaries: Sequence[str] | None = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Tensor:
    """The loss as a tensor whose computation takes one step of training.

    Args:
        loss: a scalar.
        global_step: a variable that counts the steps; that of the graph if None.
        learning_rate: a float, which becomes a variable, or a scalar tensor; None if the optimizer has its own.
        optimizer: an optimizer, a class of these, a function of the learning rate to one (of nothing without a rate), or one of the names
            Adagrad, Adam, Ftrl, Momentum, RMSProp and SGD.
        gradient_noise_scale: the deviation of noise to add to the gradients.
        gradient_multipliers: factors of gradients, by variables or their names.
        clip_gradients: the greatest norm of all gradients, a float, or a function of pairs of gradients and variables to such pairs.
        learning_rate_decay_fn: a function of learning rate and step to the rate.
        update_ops: nodes to run before the loss; those of the collection UPDATE_OPS if None.
        variables: the variables to train; all trainable ones if None.
        name: the variable scope, "OptimizeLoss" by default.
        summaries: what to summarise of learning_rate, loss, gradients, gradient_norm and global_gradient_norm; without the second and third last
            if None.
        colocate_gradients_with_ops: see `gc.gradients`.
        increment_global_step: count the step.

    Raises:
        InvalidArgumentError: an argument is of another kind, or a learning rate or step is missing.
    """
    loss = assert_scalar(convert_to_tensor(loss))
    if global_step is None:
        global_step = get_global_step()
    else:
        assert_global_step(global_step)
    chosen = _USUAL_SUMMARIES if summaries is None else summaries
    for summary in chosen:
        if summary not in OPTIMIZER_SUMMARIES:
            raise InvalidArgumentError(f"optimize_loss: required summaries of {', '.join(OPTIMIZER_SUMMARIES)}, got {summary!r}")
    with variable_scope(name, "OptimizeLoss"):
        before = get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
        if before:
            loss = _after(before, loss)
        rate = None if learning_rate is None else _rate(learning_rate)
        if rate is not None and learning_rate_decay_fn is not None:
            if global_step is None:
                raise InvalidArgumentError("optimize_loss: a learning_rate_decay_fn requires a global_step")
            rate = learning_rate_decay_fn(rate, global_step)
            if "learning_rate" in chosen:
                scalar("learning_rate", rate)
        resolved = _optimizer(optimizer, rate)
        pairs = resolved.compute_gradients(
            loss,
            list(trainable_variables() if variables is None else variables),
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gradient_noise_scale is not None:
            pairs = [(gradient if gradient is None else _noisy(gradient, gradient_noise_scale), variable) for gradient, variable in pairs]
        if gradient_multipliers is not None:
            pairs = multiply_gradients(pairs, gradient_multipliers)
        norms = "global_gradient_norm" in chosen or "gradient_norm" in chosen
        if norms:
            scalar("global_norm/gradient_norm", global_norm([gradient for gradient, _ in pairs]))
        pairs = _clipped(pairs, clip_gradients)
        if "loss" in chosen:
            scalar("loss", loss)
        _summarize(pairs, chosen)
        if clip_gradients is not None and norms:
            scalar("global_norm/clipped_gradient_norm", global_norm([gradient for gradient, _ in pairs]))
        step = resolved.apply_gradients(pairs, global_step if increment_global_step else None, name="train")
        return _after([step], loss)


def _after(nodes: Sequence[Any], value: Tensor) -> Tensor:
    with control_dependencies(list(nodes)):
        return identity(value)


def _rate(rate: Any) -> Any:
    if isinstance(rate, Tensor) and rate.shape.rank == 0:
        return rate
    if not isinstance(rate, float):
        raise InvalidArgumentError(f"optimize_loss: required a float or a scalar tensor as learning_rate, got {brief(rate)}")
    if rate < 0:
        raise InvalidArgumentError(f"optimize_loss: required a learning_rate of at least 0, got {rate}")
    return get_variable("learning_rate", [], trainable=False, initializer=Constant(rate))


def _optimizer(optimizer: Any, rate: Any) -> Optimizer:
    if isinstance(optimizer, str | type) and rate is None:
        raise InvalidArgumentError(f"optimize_loss: the optimizer {brief(optimizer)} requires a learning_rate")
    if isinstance(optimizer, str):
        if optimizer not in _BY_NAME:
            raise InvalidArgumentError(f"optimize_loss: required an optimizer of {', '.join(_BY_NAME)}, got {optimizer!r}")
        return _BY_NAME[optimizer](rate)
    if isinstance(optimizer, Optimizer):
        return optimizer
    built = (optimizer() if rate is None else optimizer(rate)) if callable(optimizer) else None
    if not isinstance(built, Optimizer):
        raise InvalidArgumentError(f"optimize_loss: required an optimizer, its name, or a function to one, got {brief(optimizer)}")
    return built


def _noisy(gradient: Any, scale: float) -> Any:
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(_noisy(gradient.values, scale), gradient.indices, gradient.dense_shape)
    return gradient + truncated_normal(shape_of(gradient)) * scale


def multiply_gradients(grads_and_vars: Pairs, gradient_multipliers: Mapping[Any, Any]) -> Pairs:
    """Multiply the gradients of some variables, which a mapping has by themselves or by their names.

    Raises:
        InvalidArgumentError: such a variable has no gradient.
    """
    scaled = []
    for gradient, variable in grads_and_vars:
        factor = gradient_multipliers.get(variable, gradient_multipliers.get(variable.op.name))
        if factor is not None and gradient is None:
            raise InvalidArgumentError(f"Requested multiple of None gradient: {variable.name}")
        scaled.append((gradient if factor is None else _times(gradient, factor), variable))
    return scaled


def _times(gradient: Any, factor: Any) -> Any:
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(_times(gradient.values, factor), gradient.indices, gradient.dense_shape)
    return gradient * convert_to_tensor(factor, gradient.dtype.base)


def _clipped(pairs: Pairs, how: Any) -> Pairs:
    if how is None:
        return pairs
    if callable(how):
        return list(how(pairs))
    if not isinstance(how, float):
        raise InvalidArgumentError(f"optimize_loss: required a float or a function as clip_gradients, got {brief(how)}")
    clipped, _ = clip_by_global_norm([gradient for gradient, _ in pairs], how)
    return [(gradient, variable) for gradient, (_, variable) in zip(clipped, pairs, strict=True)]


def _summarize(pairs: Pairs, chosen: Sequence[str]) -> None:
    for gradient, variable in pairs:
        values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
        label = variable.name.replace(":", "_")
        if values is not None and "gradients" in chosen:
            histogram(f"gradients/{label}", values)
        if values is not None and "gradient_norm" in chosen:
            scalar(f"gradient_norm/{label}", global_norm([values]))
