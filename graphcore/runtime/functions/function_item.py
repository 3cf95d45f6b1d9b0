"""An instantiation of a function: its body, executor and state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from graphcore.attrs import Attrs
from graphcore.dtypes import DType
from graphcore.functions import FunctionLibraryDefinition, InstantiateOptions
from graphcore.functions.canonicalize import EXECUTOR_ATTR, named_executor
from graphcore.graph import Graph
from graphcore.kernel_context import ResourceManager
from graphcore.passes import FunctionBody, InstantiatedFunctions
from graphcore.passes.functions.recursion import calls_itself
from graphcore.runtime.core.program import Executor
from graphcore.runtime.functions.function_graph import RunnableBody
from graphcore.runtime.functions.specialise import Specialised

Types = tuple[tuple[DType, ...], tuple[DType, ...]]


class Runtime(Protocol):
    """The runtime of an instantiation."""

    def prepare(self, item: FunctionItem) -> Executor:
        """The executor of an instantiation, made on first use.

        Raises:
            NotFoundError: it calls a function that does not exist.
        """

    def call(self, item: FunctionItem, types: Types, args: Sequence[Any]) -> list[Any]:
        """Run an instantiation after a check that its types are those the caller expects.

        Raises:
            InvalidArgumentError: they are not.
        """


class FunctionItem:
    """An instantiation of a function.

    Attributes:
        name, attrs, options: the arguments of the instantiation.
        runtime: its runtime.
        body: the instantiated function; renewed when a function it depends on is replaced.
        types: its argument and return types; the same object until one changes.
        recursive: True if it is recursive.
        resources: its state.
        runnable: the graph to run, made on the first run.
        executor_type: the type of its executor.
        executor: its executor, made on the first run.
        specialised: the plans for specific shapes of arguments, None if these do not pay.
        users: the number of unreleased handles.
        version: the library's version at the last check of the body.
    """

    __slots__ = (
        "attrs",
        "body",
        "executor",
        "executor_type",
        "functions",
        "key",
        "library",
        "name",
        "options",
        "recursive",
        "resources",
        "runnable",
        "runtime",
        "specialised",
        "types",
        "users",
        "version",
    )

    def __init__(
        self,
        runtime: Runtime,
        name: str,
        attrs: Attrs,
        options: InstantiateOptions,
        key: tuple[str, str],
        functions: InstantiatedFunctions,
    ) -> None:
        self.runtime = runtime
        self.name = name
        self.attrs = {key: value for key, value in attrs.items() if key != EXECUTOR_ATTR}
        self.options = options
        self.key = key
        self.functions = functions
        self.library: FunctionLibraryDefinition = functions.library
        self.resources = ResourceManager()
        self.runnable: RunnableBody | None = None
        self.executor_type = named_executor(attrs, options)
        self.executor: Executor | None = None
        self.specialised: Specialised | None = None
        self.users = 0
        self.version = self.library.version
        self.body: FunctionBody = functions.body_of(name, self.attrs)
        self.types: Types = (self.body.arg_types, self.body.ret_types)
        self.recursive = calls_itself(self.library, self.body)

    @property
    def graph(self) -> Graph:
        """The graph to run: pruned, calls inlined, optimised."""
        assert self.runnable is not None
        return self.runnable.graph

    def renew(self) -> None:
        """Instantiate again if a function it depends on was replaced. The state is kept.

        Raises:
            NotFoundError: the function was removed.
            InvalidArgumentError: it cannot be instantiated any more.
        """
        version = self.library.version
        body = self.functions.body_of(self.name, self.attrs)
        if body is not self.body:
            types = (body.arg_types, body.ret_types)
            self.types = self.types if types == self.types else types
            self.recursive = calls_itself(self.library, body)
            self.body = body
            self.close()
        self.version = version

    def close(self) -> None:
        """Release the executor."""
        executor, self.executor, self.runnable = self.executor, None, None
        specialised, self.specialised = self.specialised, None
        if executor is not None:
            executor.close()
        if specialised is not None:
            specialised.close()

    def __repr__(self) -> str:
        return f"<gc.FunctionItem {self.key[1]} on {self.key[0]}{'' if self.executor is None else ', ready'}>"
