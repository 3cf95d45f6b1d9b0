"""The shares of a batch: one for each replica."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from graphcore.brief import brief
from graphcore.dtypes import DType, float32, int32
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import shape
from graphcore.tf1.arrays.slices import split, unstack
from graphcore.tf1.checks import assert_equal, assert_greater_equal
from graphcore.tf1.framework import constant, control_dependencies, convert_to_tensor, device, name_scope
from graphcore.tf1.math.elementwise import cast


class Shares(NamedTuple):
    """The shares of the inputs of a step.

    Args:
        parts: the parts of all inputs for each replica.
        sizes: the number of examples of each part, a scalar tensor each; None if nothing is split.
        total: the number of examples of the batch.
    """

    parts: list[list[Tensor]]
    sizes: list[Tensor] | None
    total: Tensor | None

    def weight(self, replica: int, dtype: DType) -> Tensor:
        """The weight of a replica in the batch. -> weight: a scalar of `dtype`."""
        if self.sizes is None or self.total is None:
            return constant(1.0 / len(self.parts), dtype, name="weight")
        exact = dtype if dtype.size >= float32.size else float32  # half precision ends at 65,504 examples
        return cast(cast(self.sizes[replica], exact) / cast(self.total, exact), dtype)


def as_inputs(inputs: Any) -> list[Tensor]:
    """The inputs of a step as tensors.

    Raises:
        InvalidArgumentError: something else than a list of tensors or arrays, or a scalar.
    """
    if not isinstance(inputs, list | tuple):
        raise InvalidArgumentError(f"inputs: required a list of tensors, such as inputs=[x, y], got {brief(inputs)}")
    tensors = []
    for number, value in enumerate(inputs):
        try:
            tensor = convert_to_tensor(value)
        except GraphError as error:
            raise InvalidArgumentError(f"inputs[{number}]: required a tensor or an array, got {brief(value)}: {error.message}") from None
        if tensor.shape.rank == 0:
            raise InvalidArgumentError.at(
                tensor.node, f"inputs[{number}]: '{tensor.name}' is a scalar, which cannot be split along dimension 0"
            ).advise(
                "List in `inputs` only what has one row for each example; the step can use everything else directly.",
                required="a dimension of examples",
                came=f"'{tensor.name}', a scalar",
            )
        tensors.append(tensor)
    return tensors


def split_batch(inputs: Sequence[Tensor], replicas: int, place: str) -> Shares:
    """Split inputs along dimension 0 into shares that differ by one example at most, larger ones first.

    Args:
        inputs: the tensors: [batch, ...].
        replicas: the number of shares.
        place: the device for inputs that request none.

    Raises:
        InvalidArgumentError: the batch is known to be smaller than the number of replicas, or inputs are known to differ in size.
    """
    if not inputs:
        return Shares([[] for _ in range(replicas)], None, None)
    batch_size = _known_size(inputs, replicas)
    parts = []
    with name_scope("shares"):
        with device(inputs[0].device or place):
            if batch_size is None:
                total = _checked_size(inputs, replicas)
                sizes = (total + constant(list(reversed(range(replicas))), int32)) // replicas
            else:
                total = constant(batch_size, int32, name="total")
                sizes = constant([(batch_size + replicas - 1 - replica) // replicas for replica in range(replicas)], int32, name="sizes")
            share_sizes = unstack(sizes, replicas, name="size")
        for tensor in inputs:
            with device(tensor.device or place):
                parts.append(split(tensor, sizes, 0, replicas, name=tensor.node.name.rpartition("/")[2]))
    return Shares([list(share) for share in zip(*parts, strict=True)], share_sizes, total)


def _known_size(inputs: Sequence[Tensor], replicas: int) -> int | None:
    """The size of the batch if the shapes of all inputs have it, None if it is known in a run only."""
    sizes = {tensor.name: tensor.shape[0].value for tensor in inputs if tensor.shape.rank is not None}
    known_sizes = {name: size for name, size in sizes.items() if size is not None}
    if len(set(known_sizes.values())) > 1:
        texts = ", ".join(f"'{name}' has {size}" for name, size in known_sizes.items())
        raise InvalidArgumentError.at(inputs[0].node, f"inputs: required the same number of examples in dimension 0 of each: {texts}")
    if known_sizes and min(known_sizes.values()) < replicas:
        name, size = next(iter(known_sizes.items()))
        node = next(tensor.node for tensor in inputs if tensor.name == name)
        raise InvalidArgumentError.at(
            node, f"inputs: required at least {replicas} examples, one for each replica, got {size} in '{name}'"
        ).advise(
            "Take a larger batch or fewer devices: a mean of no examples is not a number.",
            required=f"{replicas} examples or more",
            came=f"{size} in '{name}'",
        )
    return next(iter(known_sizes.values())) if len(known_sizes) == len(inputs) else None


def _checked_size(inputs: Sequence[Tensor], replicas: int) -> Tensor:
    """The size of the batch, checked in each run. -> total: int32, a scalar."""
    first, *others = [shape(tensor)[0] for tensor in inputs]
    least = f"replicate: required at least {replicas} examples, one for each replica; the batch '{inputs[0].name}' has"
    checks = [assert_greater_equal(first, replicas, data=[least, first])]
    for tensor, size in zip(inputs[1:], others, strict=True):
        text = f"replicate: required as many examples in '{tensor.name}' as in '{inputs[0].name}', got"
        checks.append(assert_equal(size, first, data=[text, size, "and", first]))
    with control_dependencies(checks):
        return first + 0
