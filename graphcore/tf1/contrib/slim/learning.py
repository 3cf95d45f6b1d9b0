"""`tf.contrib.slim.learning`: a node for a step of training, and the loop that runs it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from graphcore.api.ops import greater_equal
from graphcore.graph import Graph, Tensor, get_default_graph
from graphcore.runtime import Session
from graphcore.tf1 import logging
from graphcore.tf1.arrays.layout import identity
from graphcore.tf1.calls import apply_one
from graphcore.tf1.contrib.layers.training import Pairs, multiply_gradients
from graphcore.tf1.framework import add_to_collection, control_dependencies, get_collection, name_scope
from graphcore.tf1.indexed_slices import IndexedSlices
from graphcore.tf1.math.clipping import clip_by_norm
from graphcore.tf1.math.elementwise import equal, floormod
from graphcore.tf1.summary import histogram
from graphcore.tf1.train.global_steps import get_global_step, get_or_create_global_step
from graphcore.tf1.train.monitored import USE_DEFAULT
from graphcore.tf1.train.optimizers import Optimizer
from graphcore.tf1.train.supervisors import Supervisor
from graphcore.tf1.variables.collections import GraphKeys
from graphcore.tf1.variables.listing import trainable_variables

__all__ = ["add_gradients_summaries", "clip_gradient_norms", "create_train_op", "multiply_gradients", "train", "train_step"]

_OF_GRAPH: Final = object()


def clip_gradient_norms(gradients_to_variables: Pairs, max_norm: float) -> Pairs:
    """Scale each gradient down to a norm of at most `max_norm`."""
    return [(_clipped(gradient, max_norm), variable) for gradient, variable in gradients_to_variables]


def _clipped(gradient: Any, max_norm: float) -> Any:
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(clip_by_norm(gradient.values, max_norm), gradient.indices, gradient.dense_shape)
    return None if gradient is None else clip_by_norm(gradient, max_norm)


def add_gradients_summaries(grads_and_vars: Pairs) -> list[Tensor]:
    """A histogram of each gradient, and its norm."""
    summaries = []
    for gradient, variable in grads_and_vars:
        if gradient is not None:
            values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
            summaries.append(histogram(f"{variable.op.name}/gradient", values))
            summaries.append(histogram(f"{variable.op.name}/gradient_norm", _norm(values)))
    return summaries


def _norm(values: Any) -> Tensor:
    from_squares = apply_one("L2Loss", [values], None)
    return apply_one("Sqrt", [from_squares * 2.0], None)


def create_train_op(
    total_loss: Tensor,
    optimizer: Optimizer,
    global_step: Any = _OF_GRAPH,
    update_ops: Sequence[Any] | None = None,
    variables_to_train: Sequence[Any] | None = None,
    clip_gradient_norm: float = 0,
    summarize_gradients: bool = False,
    gate_gradients: int = Optimizer.GATE_OP,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    gradient_multipliers: Mapping[Any, Any] | None = None,
    check_numerics: bool = True,
) -> Tensor:
    """The loss as a tensor whose computation takes one step of training.

    Args:
        total_loss: a scalar.
        optimizer: computes and applies the gradients.
        global_step: a variable that counts the steps; that of the graph, which is made if need be, by default; None for none.
        update_ops: nodes to run before the loss; those of the collection UPDATE_OPS if None.
        variables_to_train: the variables; all trainable ones if None.
        clip_gradient_norm: the greatest norm of each gradient; 0 for any.
        summarize_gradients: summarise them.
        gate_gradients, aggregation_method, colocate_gradients_with_ops: those of `Optimizer.compute_gradients`.
        gradient_multipliers: factors of gradients, by variables or their names.
        check_numerics: fail where the loss is not finite.
    """
    step = get_or_create_global_step() if global_step is _OF_GRAPH else global_step
    before = get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
    if before:
        with control_dependencies(before):
            total_loss = identity(total_loss)
    pairs: Pairs = optimizer.compute_gradients(
        total_loss,
        trainable_variables() if variables_to_train is None else list(variables_to_train),
        gate_gradients,
        aggregation_method,
        colocate_gradients_with_ops,
    )
    if gradient_multipliers:
        with name_scope("multiply_grads"):
            pairs = multiply_gradients(pairs, gradient_multipliers)
    if clip_gradient_norm > 0:
        with name_scope("clip_grads"):
            pairs = clip_gradient_norms(pairs, clip_gradient_norm)
    if summarize_gradients:
        with name_scope("summarize_grads"):
            add_gradients_summaries(pairs)
    applied = optimizer.apply_gradients(pairs, step)
    with name_scope("train_op"):
        if check_numerics:
            total_loss = apply_one("CheckNumerics", [total_loss], None, {"message": "LossTensor is inf or nan"})
        with control_dependencies([applied]):
            train_op = identity(total_loss)
    add_to_collection(GraphKeys.TRAIN_OP, train_op)
    return train_op


def train_step(sess: Session, train_op: Any, global_step: Any, train_step_kwargs: Mapping[str, Any]) -> tuple[Any, bool]:
    """Run one step.

    Args:
        sess: the session.
        train_op: the node of the step, whose value is the loss.
        global_step: the variable that counts the steps.
        train_step_kwargs: "should_stop" and "should_log", scalar tensors.

    Returns:
        The loss, and whether training is to end.
    """
    began = time.perf_counter()
    loss, number = sess.run([train_op, global_step])
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        logging.info("global step %d: loss = %.4f (%.3f sec/step)", int(number), float(loss), time.perf_counter() - began)
    should_stop = bool(sess.run(train_step_kwargs["should_stop"])) if "should_stop" in train_step_kwargs else False
    return loss, should_stop


def train(
    train_op: Any,
    logdir: str | None,
    train_step_fn: Callable[..., tuple[Any, bool]] = train_step,
    train_step_kwargs: Any = USE_DEFAULT,
    log_every_n_steps: int = 1,
    graph: Graph | None = None,
    master: str = "",
    is_chief: bool = True,
    global_step: Any = None,
    number_of_steps: int | None = None,
    init_op: Any = USE_DEFAULT,
    init_feed_dict: Any = None,
    local_init_op: Any = USE_DEFAULT,
    init_fn: Callable[[Session], object] | None = None,
    ready_op: Any = USE_DEFAULT,
    summary_op: Any = USE_DEFAULT,
    save_summaries_secs: float = 600,
    summary_writer: Any = USE_DEFAULT,
    startup_delay_steps: int = 0,
    saver: Any = None,
    save_interval_secs: float = 600,
    session_config: Any = None,
) -> Any:
    """Train in a loop, with summaries and checkpoints in a folder.

    Args:
        train_op: the node of a step, whose value is the loss.
        logdir: the folder; None for none. Variables of a checkpoint in it are restored first.
        train_step_fn: runs a step; see `train_step`.
        train_step_kwargs: its last argument; the ends of loop and of log intervals by default.
        log_every_n_steps: the number of steps between two lines of the log.
        graph: the graph; the default graph if None.
        master, is_chief, startup_delay_steps: of several processes; their defaults only.
        global_step: the variable that counts the steps; that of the graph, which is made if need be, if None.
        number_of_steps: the number of the last step; None for no end.
        init_op, init_feed_dict, local_init_op, init_fn, ready_op, summary_op, summary_writer: see `gc.train.Supervisor`.
        save_summaries_secs, save_interval_secs: the seconds between two summaries and two checkpoints; 0 for none.
        saver: saves and restores; one of all variables if None.
        session_config: options of the session.

    Returns:
        The loss of the last step, None without a step.
    """
    del startup_delay_steps
    graph = graph or get_default_graph()
    with graph.as_default():
        if global_step is None:
            global_step = get_global_step(graph) or get_or_create_global_step(graph)
        if train_step_kwargs is USE_DEFAULT:
            train_step_kwargs = _usual_arguments(global_step, number_of_steps, log_every_n_steps)
        supervisor = Supervisor(
            graph=graph,
            is_chief=is_chief,
            logdir=logdir,
            init_op=init_op,
            init_feed_dict=init_feed_dict,
            local_init_op=local_init_op,
            init_fn=init_fn,
            ready_op=ready_op,
            summary_op=summary_op,
            summary_writer=summary_writer,
            global_step=global_step,
            saver=USE_DEFAULT if saver is None else saver,
            save_summaries_secs=save_summaries_secs,
            save_model_secs=save_interval_secs,
        )
    with supervisor.managed_session(master, session_config) as session:
        loss = _last_loss(supervisor, lambda: train_step_fn(session, train_op, global_step, train_step_kwargs))
        supervisor.stop(close_summary_writer=False, ignore_live_threads=True)  # so that the last checkpoint is the one below
        if logdir is not None and supervisor.saver is not None:
            supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
    return loss


def _last_loss(supervisor: Supervisor, step: Callable[[], tuple[Any, bool]]) -> Any:
    """Train until a step, or the supervisor, says to stop."""
    loss, stop = None, False
    while not stop and not supervisor.should_stop():
        loss, stop = step()
    return loss


def _usual_arguments(global_step: Any, number_of_steps: int | None, log_every_n_steps: int) -> dict[str, Any]:
    with name_scope("train_step"):
        arguments: dict[str, Any] = {}
        if number_of_steps:
            arguments["should_stop"] = greater_equal(global_step, number_of_steps)
        if log_every_n_steps > 0:
            left = floormod(global_step, log_every_n_steps)
            arguments["should_log"] = equal(left, 0)
        return arguments
