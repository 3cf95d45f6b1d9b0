"""The kernels of a session, and the state that they share."""

from __future__ import annotations

from collections.abc import Container
from functools import partial
from typing import Any

from graphcore.errors import GraphError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph.model.node import Node
from graphcore.kernel_context import KernelContext, ResourceManager
from graphcore.registry import Kernel
from graphcore.runtime.backends.mild_initializers import unless_initialized
from graphcore.runtime.core.kernel_checks import checked, is_built_in
from graphcore.runtime.functions.body_errors import in_body
from graphcore.runtime.functions.function_runtime import FunctionLibraryRuntime
from graphcore.runtime.plan.schedule import MakeKernel
from graphcore.support.forking import new_lock


class Kernels:
    """Makes the kernels of a session's nodes. Thread-safe.

    Args:
        library: the functions that nodes may call.
        resources: the variables, queues and the like.

    Attributes:
        library, resources: as given; `close` replaces the resources by empty ones.
        functions: runs the functions that nodes call.
    """

    def __init__(self, library: FunctionLibraryDefinition, resources: ResourceManager) -> None:
        self.library = library
        self.resources = resources
        self.functions = FunctionLibraryRuntime(library, resources=resources)
        self._stateful: dict[str, tuple[Any, Kernel]] = {}
        self._lock = new_lock()

    def maker(self, mild: Container[str]) -> MakeKernel:
        """`make`, for a run in which the initializers named in `mild` leave values as they are."""
        return partial(self.make, mild=mild)

    def make(
        self, node: Node, context: KernelContext, functions: FunctionLibraryRuntime | None = None, mild: Container[str] = ()
    ) -> Kernel:
        """The kernel of `node`; a stateful one has the lifetime of the session and of its node's definition.

        Args:
            functions: runs the functions that it calls; `self.functions` by default.
            mild: the names of the initializers that leave values as they are in the run that the kernel is for.
        """
        context.resources = self.resources
        context.functions = functions = functions or self.functions
        if node.registration.is_function:
            try:
                return functions.function_kernel(node.op, node.node_def.attr)
            except GraphError as error:
                raise in_body(error, node) from error.__cause__
        factory = node.registration.kernel
        assert factory is not None
        if node.name in mild:
            return unless_initialized(factory(context))
        if is_built_in(node):
            return factory(context)  # the ops of this package keep their state among the resources
        if not node.op_def.is_stateful:
            return checked(node, factory(context))
        with self._lock:  # plans for shapes of feeds are made while other threads run
            made = self._stateful.get(node.name)
            if made is None or made[0] != (node.op, node.node_def.attr):
                made = self._stateful[node.name] = ((node.op, node.node_def.attr), checked(node, factory(context)))
            return made[1]

    def close(self) -> None:
        """Release the resources."""
        self._stateful.clear()
        self.resources.shared.close()
        self.resources = ResourceManager()
        self.functions = FunctionLibraryRuntime(self.library, resources=self.resources)
