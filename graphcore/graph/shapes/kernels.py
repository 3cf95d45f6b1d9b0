"""What the kernel of a graph's node is told."""

from __future__ import annotations

import numpy as np

from graphcore.attrs import Array
from graphcore.graph.model.node import Node
from graphcore.kernel_context import KernelContext


def kernel_context(node: Node, constants: tuple[Array | None, ...]) -> KernelContext:
    """What the kernel of `node` is told; `constants` are the inputs that are the same in every run."""
    return KernelContext(
        xp=np,
        attrs=node.attr,
        node_name=node.name,
        op=node.op,
        input_types=node.input_types,
        output_types=node.output_types,
        input_shapes=tuple([tensor.shape for tensor in node.inputs]),
        constants=constants,
        source=node.source,
    )
