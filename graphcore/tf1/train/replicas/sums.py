"""Sums of gradients over replicas: nodes on the devices of the replicas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.placement.cost_model import CostModel
from graphcore.placement.device import Device
from graphcore.tf1.arrays.layout import concat, identity, reshape
from graphcore.tf1.arrays.slices import split
from graphcore.tf1.framework import device, name_scope
from graphcore.tf1.indexed_slices import IndexedSlices
from graphcore.tf1.math.elementwise import add

Way = Literal["tree", "ring", "rows"]
WAYS: Final = ("auto", "tree", "ring")


class Sum(NamedTuple):
    """The sum of the gradients of one variable.

    Args:
        way: "tree", "ring", or "rows" for slices, whose rows are listed one after the other.
        values: the sum on each of the devices that need it.
        seconds: the predicted seconds of each way alone, from the last gradient to the last sum.
    """

    way: Way
    values: list[Tensor | IndexedSlices]
    seconds: dict[str, float]


def predicted_seconds(size: int, replicas: Sequence[Device], targets: Sequence[Device]) -> dict[str, float]:
    """The predicted seconds of a sum as a tree and as a ring.

    Args:
        size: the bytes of each gradient.
        replicas: the devices of the gradients.
        targets: the devices that need the sum: those of all replicas, or another one.
    """
    model, count = CostModel(), len(replicas)
    levels, hops, part = math.ceil(math.log2(count)), count - 1, math.ceil(size / count)
    copy, copy_part = _slowest_copy(model, replicas, replicas, size), _slowest_copy(model, replicas, replicas, part)
    work, work_part = _slowest_op(model, replicas, size), _slowest_op(model, replicas, part)
    tree, ring = levels * (copy + work), work + hops * (copy_part + work_part)
    if len(targets) == count:
        tree += levels * (copy + work)
        ring += hops * (copy_part + work_part)
    else:
        tree += _slowest_copy(model, replicas[:1], targets, size)
        ring += _slowest_copy(model, replicas, targets, part)
    return {"tree": tree, "ring": ring + _slowest_op(model, targets, size)}


def _slowest_copy(model: CostModel, sources: Sequence[Device], targets: Sequence[Device], size: int) -> float:
    return max([model.copy_seconds(size, one, other) for one in sources for other in targets if one.name != other.name], default=0.0)


def _slowest_op(model: CostModel, devices: Sequence[Device], size: int) -> float:
    return max(model.elementwise_seconds(size, place) for place in devices)


def add_up(
    gradients: Sequence[Tensor | IndexedSlices], replicas: Sequence[Device], targets: Sequence[Device], least_of_rings: float, shape: Any
) -> Sum:
    """Add the nodes that sum gradients.

    Args:
        gradients: the gradient of each replica, on its device.
        replicas: the devices of the gradients.
        targets: the devices that need the sum: those of all replicas, or another one.
        least_of_rings: the bytes of the smallest gradients that go around a ring; 0 requires a ring, infinity a tree.
        shape: the shape of the variable.

    Raises:
        InvalidArgumentError: a ring of gradients of unknown size.
    """
    slices = [gradient for gradient in gradients if isinstance(gradient, IndexedSlices)]
    if len(slices) == len(gradients):
        return Sum("rows", _listed(slices, replicas, targets), {})
    dense = [_whole(gradient, place) for gradient, place in zip(gradients, replicas, strict=True)]
    elements = shape.num_elements if shape.is_fully_defined else -1
    if not least_of_rings and elements < 0:
        raise InvalidArgumentError.at(
            dense[0].node,
            f"reduce='ring': required a gradient of known shape, which a ring divides, got '{dense[0].name}' of shape {shape}",
        )
    divides = len(dense) > 1 and elements >= len(dense)  # else parts of the ring would be empty
    size = max(0, elements) * dense[0].dtype.base.size
    seconds = predicted_seconds(size, replicas, targets) if divides else {}
    if divides and size >= least_of_rings:
        return Sum("ring", list(_ring(dense, replicas, targets, elements, shape)), seconds)
    return Sum("tree", list(_tree(dense, replicas, targets)), seconds)


def _on(place: Device) -> Any:
    return device(place.name)


def _whole(gradient: Tensor | IndexedSlices, place: Device) -> Tensor:
    if isinstance(gradient, Tensor):
        return gradient
    with _on(place):
        return gradient.as_tensor()


def _tree(gradients: Sequence[Tensor], replicas: Sequence[Device], targets: Sequence[Device]) -> list[Tensor]:
    """Add pairs, then pairs of sums; a sum that all replicas need goes back the same way."""
    sums, count, step = list(gradients), len(gradients), 1
    while step < count:
        for place in range(0, count - step, 2 * step):
            with _on(replicas[place]):
                sums[place] = add(sums[place], sums[place + step], name="add")
        step *= 2
    if len(targets) != count:
        return [sums[0]] * len(targets)
    while step > 1:
        step //= 2
        for place in range(0, count - step, 2 * step):
            with _on(replicas[place + step]):
                sums[place + step] = identity(sums[place], name="copy")
    return sums


def _ring(gradients: Sequence[Tensor], replicas: Sequence[Device], targets: Sequence[Device], elements: int, shape: Any) -> list[Tensor]:
    """Send parts around the ring, each device adding its own; then the sums, if all replicas need them."""
    count = len(gradients)
    sizes = [(elements + count - 1 - part) // count for part in range(count)]
    parts = []
    for gradient, place in zip(gradients, replicas, strict=True):
        with _on(place):
            flat = gradient if shape.rank == 1 else reshape(gradient, [elements], name="flat")
            parts.append(split(flat, sizes, 0, name="parts"))
    owned = []
    for part in range(count):
        total = parts[(part + 1) % count][part]
        for hop in range(2, count + 1):
            index = (part + hop) % count
            with _on(replicas[index]):
                total = add(total, parts[index][part], name="add")
        owned.append(total)
    held = [list(owned) for _ in targets]
    if len(targets) == count:
        for part in range(count):
            passed = owned[part]
            for hop in range(1, count):
                index = (part + hop) % count
                with _on(replicas[index]):
                    passed = held[index][part] = identity(passed, name="copy")
    joined = []
    for target, pieces in zip(targets, held, strict=True):
        with _on(target):
            whole = concat(pieces, 0, name="join")
            joined.append(whole if shape.rank == 1 else reshape(whole, shape.as_list(), name="sum"))
    return joined


def _listed(slices: Sequence[IndexedSlices], replicas: Sequence[Device], targets: Sequence[Device]) -> list[Tensor | IndexedSlices]:
    """The rows of all replicas one after the other, on the first device; rows of one index add up."""
    if len(slices) == 1:
        return [slices[0]] * len(targets)
    with _on(replicas[0]):
        values = concat([part.values for part in slices], 0, name="values")
        indices = concat([part.indices for part in slices], 0, name="indices")
    return [IndexedSlices(values, indices, slices[0].dense_shape)] * len(targets)


def scope_of(name: str) -> Any:
    """The name scope of the sum of a variable's gradients."""
    return name_scope(f"sums/{name}")
