"""Time training steps on the GPU beside PyTorch, eagerly and compiled, and JAX, compiled by `jit`.

    python -m tests.gpu.benchmark [--device cpu] [--steps N] [--without torch.compile]

Each step trains the same network on the same batch of 128, which stays in the memory of the host in this project and on the device in the others.
What is not installed, or finds no GPU, is left out with the reason. Before timing, the parameters after some steps are compared.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from tests.benchmarks.rows.softmax_regression import STEPS
from tests.benchmarks.rows.training_steps import digits
from tests.benchmarks.work import Float
from tests.gpu.device import find_cupy
from tests.gpu.networks import NETWORKS, Library, Network

TOLERANCE: Final = 5e-3
"""Of parameters after some steps. PyTorch's convolutions and JAX's products round their factors to 10 bits (TF32) by default."""


class Training(NamedTuple):
    """A step that waits for its end, and a function that gives the parameters."""

    step: Callable[[], Any]
    parameters: Callable[[], list[Float]]


def ours(network: Network, device: str, *, capture: bool) -> Training:
    """In a session of this project."""
    import graphcore as gc

    ones = {"strides": [1, 1, 1, 1]}
    library = Library(
        gc.matmul,
        gc.relu,
        gc.sigmoid,
        gc.tanh,
        gc.reshape,
        lambda x, n: gc.split(x, n, 1),
        lambda parts: gc.concat(parts, 1),
        lambda x, w, padding: gc.ops.conv2d(x, w, padding=padding, **ones),
        lambda x: gc.ops.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
        lambda y, t: gc.reduce_mean(gc.softmax_cross_entropy_with_logits(logits=y, labels=t)),
    )
    x, t = digits()
    with gc.Graph().as_default() as graph:
        fed = [gc.placeholder(gc.float32, array.shape) for array in (x, t)]
        variables = [gc.Variable(value) for value in network.start()]
        loss = library.loss(network.logits(library, [each.read_value() for each in variables], fed[0]), fed[1])
        step = gc.GradientDescentOptimizer(network.rate).minimize(loss)
        options = gc.SessionOptions(capture_on_gpu=capture)
        session = gc.Session(graph, devices="gpu" if device == "cuda" else None, options=options)
        session.run(gc.initialize_all_variables())
    feeds = dict(zip(fed, (x, t), strict=True))
    return Training(lambda: session.run(step, feeds), lambda: list(session.run(variables)))


def torch(network: Network, device: str, *, compiled: bool) -> Training:
    """In PyTorch, operation by operation or compiled."""
    import torch
    from torch.nn import functional

    library = Library(
        torch.matmul,
        torch.relu,
        torch.sigmoid,
        torch.tanh,
        torch.reshape,
        lambda x, n: torch.chunk(x, n, 1),
        lambda parts: torch.cat(list(parts), 1),
        lambda x, w, padding: functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=padding.lower()).permute(0, 2, 3, 1),
        lambda x: functional.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1),
        functional.cross_entropy,
    )
    x, t = (torch.tensor(array, device=device) for array in digits())
    parameters = [torch.tensor(array, device=device, requires_grad=True) for array in network.start()]

    def loss(*known: Any) -> Any:
        return library.loss(network.logits(library, known, x), t)

    if compiled:
        loss = torch.compile(loss, mode="reduce-overhead")

    def step() -> None:
        for parameter, slope in zip(parameters, torch.autograd.grad(loss(*parameters), parameters), strict=True):
            parameter.data.sub_(slope, alpha=network.rate)
        if device == "cuda":
            torch.cuda.synchronize()

    return Training(step, lambda: [parameter.detach().cpu().numpy() for parameter in parameters])


def jax(network: Network, device: str) -> Training:
    """In JAX, compiled as a whole."""
    import jax
    from jax import lax
    from jax import numpy as jnp

    library = Library(
        jnp.matmul,
        jax.nn.relu,
        jax.nn.sigmoid,
        jnp.tanh,
        jnp.reshape,
        lambda x, n: jnp.split(x, n, 1),
        lambda parts: jnp.concatenate(parts, 1),
        lambda x, w, padding: lax.conv_general_dilated(x, w, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")),
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        lambda y, t: -jnp.mean(jnp.sum(t * jax.nn.log_softmax(y), 1)),
    )
    place = jax.devices(device)[0]
    x, t = (jax.device_put(array, place) for array in digits())
    parameters = [jax.device_put(value, place) for value in network.start()]

    def loss(known: Sequence[Any]) -> Any:
        return library.loss(network.logits(library, known, x), t)

    update = jax.jit(lambda known: [value - network.rate * slope for value, slope in zip(known, jax.grad(loss)(known), strict=True)])

    def step() -> None:
        parameters[:] = update(parameters)
        jax.block_until_ready(parameters)

    return Training(step, lambda: [np.asarray(parameter) for parameter in parameters])


LIBRARIES: Final[dict[str, Callable[[Network, str], Training]]] = {
    "this project": partial(ours, capture=False),
    "captured": partial(ours, capture=True),
    "PyTorch, eager": partial(torch, compiled=False),
    "JAX, jit": jax,
    "torch.compile": partial(torch, compiled=True),
}


def microseconds(training: Training, steps: int) -> float:
    """The median time of a step."""
    taken = []
    for _ in range(steps):
        begun = time.perf_counter()
        training.step()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken) * 1e6


def timed(name: str, network: str, device: str, steps: int, expected: dict[str, list[Float]]) -> str:
    """The line of a network in a library: a time or a reason."""
    try:
        training = LIBRARIES[name](NETWORKS[network], device)
        for _ in range(STEPS):
            training.step()
    except (ImportError, RuntimeError) as error:  # not installed, or without a GPU or a compiler
        return f"{network:12} {name:16} left out: {type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"
    found = training.parameters()
    wanted = expected.setdefault(network, found)
    same = all(np.allclose(mine, other, rtol=TOLERANCE, atol=TOLERANCE) for mine, other in zip(found, wanted, strict=True))
    return f"{network:12} {name:16} {microseconds(training, steps):10.0f} us{'' if same else '   computes something else'}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--without", action="append", default=[], choices=[*LIBRARIES])
    options = parser.parse_args()
    why_not = find_cupy()[1]
    if options.device == "cuda" and why_not:
        parser.exit(0, f"skipped: {why_not}\n")
    logging.getLogger("graphcore.gpu").setLevel(logging.INFO)  # why a step is not captured
    logging.basicConfig()
    print(f"the median time of a training step, batch 128, on {options.device}")
    expected: dict[str, list[Float]] = {}
    for name in LIBRARIES:
        for network in NETWORKS:
            if name not in options.without:
                print(timed(name, network, options.device, options.steps, expected), flush=True)


if __name__ == "__main__":
    main()
