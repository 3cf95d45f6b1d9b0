"""Time training steps on the GPU beside PyTorch, eagerly, and JAX, compiled by `jit`.

    python -m tests.gpu.benchmark [--device cpu] [--steps N]

Each step trains the same network on the same batch, which stays in the memory of the host in this project and on the device in the others. What is
not installed, or finds no GPU, is left out with the reason. Before timing, the parameters after some steps are compared.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tests.benchmarks.rows import images, perceptron
from tests.benchmarks.rows.softmax_regression import CLASSES, RATE, STEPS, batch
from tests.benchmarks.work import Float
from tests.gpu.device import find_cupy

LENET_RATE: Final = 1e-3
TOLERANCE: Final = 2e-3


class Training(NamedTuple):
    """A step that waits for its end, and a function that gives the parameters."""

    step: Callable[[], Any]
    parameters: Callable[[], list[Float]]


def ours(network: str, device: str) -> Training:
    """In a session of this project."""
    import graphcore as gc

    devices = "gpu" if device == "cuda" else None
    if network == "perceptron":
        session, _, step, variables, feeds = perceptron.our_training(devices)
    else:
        with gc.Graph().as_default() as graph:
            x = gc.placeholder(gc.float32, [images.BATCH, 28, 28, 1])
            variables = [gc.Variable(value) for value in images.weights()]
            y = images.layers(
                x,
                variables,
                lambda x, w, padding: gc.ops.conv2d(x, w, padding=padding, strides=[1, 1, 1, 1]),
                lambda x: gc.ops.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
                gc.relu,
                lambda x, w: x @ w,
                lambda x: gc.reshape(x, [images.BATCH, 400]),
            )
            step = gc.GradientDescentOptimizer(LENET_RATE).minimize(gc.reduce_sum(y * y))
            session = gc.Session(graph, devices=devices)
            session.run(gc.initialize_all_variables())
        feeds = {x: images.pictures()}
    return Training(lambda: session.run(step, feeds), lambda: list(session.run(variables)))


def torch(network: str, device: str) -> Training:
    """In PyTorch, operation by operation."""
    import torch
    from torch.nn import functional

    def placed(array: Float, *, trained: bool = False) -> Any:
        return torch.tensor(array, device=device, requires_grad=trained)

    if network == "perceptron":
        x, t = (placed(array) for array in batch(perceptron.SIZES[0], perceptron.BATCH))
        weights, biases = ([placed(array, trained=True) for array in arrays] for arrays in perceptron.start())
        parameters, rate = [*weights, *biases], RATE

        def loss() -> Any:
            h = x
            for w, b in zip(weights[:-1], biases[:-1], strict=True):
                h = torch.relu(h @ w + b)
            y = torch.softmax(h @ weights[-1] + biases[-1], 1)
            return -(t * torch.log(y)).sum(1).mean()

    else:
        pictures = placed(images.pictures()).permute(0, 3, 1, 2)
        parameters, rate = [placed(array, trained=True) for array in images.weights()], LENET_RATE

        def loss() -> Any:
            y = images.layers(
                pictures,
                parameters,
                lambda x, w, padding: functional.conv2d(x, w.permute(3, 2, 0, 1), padding=padding.lower()),
                lambda x: functional.max_pool2d(x, 2),
                torch.relu,
                torch.matmul,
                lambda x: x.permute(0, 2, 3, 1).reshape(images.BATCH, 400),
            )
            return (y * y).sum()

    def step() -> None:
        for parameter, slope in zip(parameters, torch.autograd.grad(loss(), parameters), strict=True):
            parameter.data -= rate * slope
        if device == "cuda":
            torch.cuda.synchronize()

    return Training(step, lambda: [parameter.detach().cpu().numpy() for parameter in parameters])


def jax(network: str, device: str) -> Training:
    """In JAX, compiled as a whole."""
    import jax
    from jax import lax
    from jax import numpy as jnp

    place = jax.devices(device)[0]
    if network == "perceptron":
        x, t = (jax.device_put(array, place) for array in batch(perceptron.SIZES[0], perceptron.BATCH))
        weights, biases = perceptron.start()
        values, rate = [*weights, *biases], RATE

        def loss(parameters: Sequence[Any]) -> Any:
            half = len(parameters) // 2
            h = x
            for w, b in zip(parameters[: half - 1], parameters[half:-1], strict=True):
                h = jax.nn.relu(h @ w + b)
            y = jax.nn.softmax(h @ parameters[half - 1] + parameters[-1])
            return -jnp.mean(jnp.sum(t * jnp.log(y), 1))

    else:
        pictures = jax.device_put(images.pictures(), place)
        values, rate = images.weights(), LENET_RATE

        def loss(parameters: Sequence[Any]) -> Any:
            y = images.layers(
                pictures,
                parameters,
                lambda x, w, padding: lax.conv_general_dilated(x, w, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")),
                lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
                jax.nn.relu,
                jnp.matmul,
                lambda x: x.reshape(images.BATCH, 400),
            )
            return jnp.sum(y * y)

    parameters = [jax.device_put(value, place) for value in values]
    update = jax.jit(lambda known: [value - rate * slope for value, slope in zip(known, jax.grad(loss)(known), strict=True)])

    def step() -> None:
        parameters[:] = update(parameters)
        jax.block_until_ready(parameters)

    return Training(step, lambda: [np.asarray(parameter) for parameter in parameters])


def microseconds(training: Training, steps: int) -> float:
    """The median time of a step."""
    taken = []
    for _ in range(steps):
        begun = time.perf_counter()
        training.step()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken) * 1e6


def compare(network: str, device: str, steps: int) -> list[str]:
    """The lines of one network: a time or a reason for each library."""
    lines: list[str] = []
    expected: list[Float] | None = None
    for name, make in (("this project", ours), ("PyTorch, eager", torch), ("JAX, jit", jax)):
        try:
            training = make(network, device)
        except (ImportError, RuntimeError) as error:
            lines.append(f"{network:12} {name:16} left out: {str(error).splitlines()[0]}")
            continue
        for _ in range(STEPS):
            training.step()
        found = training.parameters()
        expected = found if expected is None else expected
        same = all(np.allclose(mine, other, rtol=TOLERANCE, atol=TOLERANCE) for mine, other in zip(found, expected, strict=True))
        lines.append(f"{network:12} {name:16} {microseconds(training, steps):10.0f} us{'' if same else '   computes something else'}")
    return lines


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    why_not = find_cupy()[1]
    if options.device == "cuda" and why_not:
        parser.exit(0, f"skipped: {why_not}\n")
    print(f"a training step of {'-'.join(map(str, perceptron.SIZES))} and of LeNet-5, {CLASSES} classes, on {options.device}")
    for network in ("perceptron", "LeNet-5"):
        print("\n".join(compare(network, options.device, options.steps)))


if __name__ == "__main__":
    main()
