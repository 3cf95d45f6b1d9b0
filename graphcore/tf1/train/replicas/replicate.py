"""Data-parallel training: one model on several devices, each with a share of the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError
from graphcore.graph import get_default_graph
from graphcore.tf1.train.optimizers import Optimizer
from graphcore.tf1.train.replicas.building import Builder
from graphcore.tf1.train.replicas.places import as_devices
from graphcore.tf1.train.replicas.replicated import Replicated
from graphcore.tf1.train.replicas.shares import as_inputs
from graphcore.tf1.train.replicas.sums import WAYS
from graphcore.tf1.variables.choice import VariableChoice
from graphcore.tf1.variables.collections import TRAINABLE_VARIABLES
from graphcore.tf1.variables.variables import Variable

_KINDS: Final = ("ps", "mirrored")


def replicate(
    step: Callable[..., Any],
    devices: Any,
    *,
    optimizer: Optimizer,
    inputs: Sequence[Any] = (),
    variables: str = "ps",
    ps_devices: Any = None,
    reduce: str = "auto",
    synchronous: bool = True,
    global_step: Variable | None = None,
) -> Replicated:
    """Build a model once for each device, and a training step that uses all of them.

        def step(x, y):
            hidden = gc.layers.dense(x, 128, gc.nn.relu, name="hidden")
            logits = gc.layers.dense(hidden, 10, name="logits")
            return gc.losses.sparse_softmax_cross_entropy(y, logits)

        model = gc.train.replicate(step, ["/cpu:0", "/cpu:1"], optimizer=gc.train.AdamOptimizer(), inputs=[x, y])
        session.run([model.train_op, model.loss], {x: images, y: labels})

    All of it is an ordinary graph: replica `i` is the name scope `replica_i` on its device, with the gradients of its loss; the scope `shares` splits
    the batch, and `sums` adds the gradients up on the devices of the replicas, before the optimizer changes the variables. If the loss
    is a mean over the examples, a step gives the variables that one process would give, up to rounding.

    With `variables="ps"` all replicas share the variables, which the step makes by `gc.get_variable` or layers with names, or which were made before
    the call. Those that the step makes go to `ps_devices`, each to the device with the fewest bytes so far. With `variables="mirrored"` the
    step's variables are made on each device, in variable scopes `replica_i`; the copies begin with the value of the first and change alike.
    Variables made before the call stay where they are, and are shared. Copies that are not trained change by the
    updates of their own replica. Moving averages of variables that replicas share, as those of batch normalization, move once in a step, by
    the mean of the replicas.

    With `synchronous=False` replica `i` has a step of its own, `train_ops[i]`, which changes the shared variables by the gradient of its loss without
    waiting for the others: run each in a thread, or all by `run_async(session, steps, feeds)`. Inputs are then not split: each run of a
    replica takes what it is fed. `staleness[i]` is the number of steps that other replicas have completed between its read of `global_step`, which
    comes before that of the variables, and its change of them. Variables must be resources, as those are that the step makes.

    Within the step, the collections of losses and update ops contain those of the replica alone; with copies, so do those of regularization
    losses and trainable variables.

    Args:
        step: builds the model of one replica from its parts of the inputs, and returns the loss, or a tuple of the loss and other results. The
            loss is a scalar, the mean over the examples of the share.
        devices: the devices of the replicas: names, or `gc.Device` objects, whose speeds the choice of tree or ring then considers.
        optimizer: takes the step. A `compute_gradients` of its own changes the gradients of each replica, which are weighted by the shares; an
            `apply_gradients` of its own their sums, once for each variable: mirrored copies then take the values of the first.
        inputs: the tensors to split along dimension 0: [batch, ...]. Shares differ by one example at most. With none, each replica
            gets its data within the step, and all losses have the same weight.
        variables: "ps" or "mirrored".
        ps_devices: the devices for variables, with "ps"; by default the first of `devices`.
        reduce: "tree" adds the gradients of pairs, then pairs of sums; "ring" sends equal parts of them around, so that all links are in
            use; "auto" takes rings for the larger gradients, so that the whole step is predicted to be the fastest. Gradients that are slices are listed
            one after the other.
        synchronous: False for steps of each replica on its own.
        global_step: a variable that counts the steps; an asynchronous training takes or makes that of `gc.train.get_or_create_global_step` if None.

    Raises:
        InvalidArgumentError: an argument of another kind, no device, a batch that cannot be split, a loss that is no scalar, or variables that the
            replicas cannot share.
    """
    if not callable(step):
        raise InvalidArgumentError(f"step: required a function that builds the model of one replica, got {brief(step)}")
    if not isinstance(optimizer, Optimizer):
        raise InvalidArgumentError(f"optimizer: required an optimizer, such as gc.train.AdamOptimizer(), got {brief(optimizer)}")
    if variables not in _KINDS:
        raise InvalidArgumentError(f"variables: required 'ps' or 'mirrored', got {brief(variables)}")
    if reduce not in WAYS:
        raise InvalidArgumentError(f"reduce: required 'auto', 'tree' or 'ring', got {brief(reduce)}")
    if variables == "mirrored" and ps_devices is not None:
        raise InvalidArgumentError("ps_devices: required None with variables='mirrored', since each device has its own copies")
    if variables == "mirrored" and not synchronous:
        raise InvalidArgumentError(
            "variables: required 'ps' with synchronous=False, since copies that change on their own are different models"
        )
    places = as_devices("devices", devices)
    parameters = places[:1] if ps_devices is None else as_devices("ps_devices", ps_devices)
    graph = get_default_graph()
    tensors = as_inputs(inputs)
    builder = Builder(step, places, optimizer, tensors, variables == "mirrored", parameters, reduce, bool(synchronous), global_step)
    builder.outside = VariableChoice(graph, None, TRAINABLE_VARIABLES)
    replicated = Replicated()

    def build() -> Replicated:
        with graph.transaction():
            vars(replicated).update(vars(builder.build()))
        return replicated

    what = f"the replicas of '{getattr(step, '__name__', 'step')}'"
    result: Replicated = graph.derivations.derive(what, build, depends_on=tensors, fingerprint=builder.outside.kinds)
    return result
