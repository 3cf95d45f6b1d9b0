"""FunctionLibraryRuntime: instantiates functions once, under handles, and runs them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from graphcore.attrs import Attrs, AttrValue
from graphcore.definitions import FunctionDef
from graphcore.dtypes import DType
from graphcore.errors import GraphError, NotFoundError, ResourceExhaustedError
from graphcore.functions import FunctionCallFrame, FunctionLibraryDefinition, InstantiateOptions, canonicalize
from graphcore.functions.canonicalize import EXECUTOR_ATTR
from graphcore.functions.library import GRADIENT_OP
from graphcore.graph import Graph, Node, debug_string
from graphcore.kernel_context import KernelContext, ResourceManager
from graphcore.passes import FunctionBody, InstantiatedFunctions
from graphcore.passes.recursion import calls_itself
from graphcore.registry import Kernel
from graphcore.runtime.engines import build_program
from graphcore.runtime.function_graph import RunnableBody, runnable_body
from graphcore.runtime.plan_checks import checked, is_ours
from graphcore.runtime.program import Program, current

KernelCreator = Callable[[Node, KernelContext], "Kernel | None"]
"""Makes the kernel of a node in a function's body; None leaves it to the op."""
MAX_DEPTH: Final = 100
"""How many calls of functions that call themselves may be under way within each other."""
_EXECUTORS: Final = frozenset({"", "DEFAULT"})


class _Item:
    """One instantiation.

    Attributes:
        plan: what runs; made when it first runs.
        users: how many times it was instantiated and not yet released.
    """

    __slots__ = ("body", "functions", "key", "name", "options", "plan", "recursive", "resources", "runnable", "users")

    def __init__(self, name: str, key: str, body: FunctionBody, functions: InstantiatedFunctions, options: InstantiateOptions) -> None:
        self.name = name
        self.key = key
        self.body = body
        self.functions = functions
        self.options = options
        self.recursive = calls_itself(functions.library, body)
        self.resources = ResourceManager()
        self.runnable: RunnableBody | None = None
        self.plan: Program | None = None
        self.users = 1


class FunctionLibraryRuntime:
    """Runs the functions of a library.

    Args:
        library: the functions.
        resources: the variables that functions share with whoever calls them; none unless given.
        custom_kernel_creator: asked first for the kernel of each node.
    """

    def __init__(
        self,
        library: FunctionLibraryDefinition,
        *,
        resources: ResourceManager | None = None,
        custom_kernel_creator: KernelCreator | None = None,
    ) -> None:
        self.library = library
        self.resources = resources or ResourceManager()
        self.custom_kernel_creator = custom_kernel_creator
        self._functions = InstantiatedFunctions(library)
        self._overlays: dict[int, InstantiatedFunctions] = {}
        self._handles: dict[str, int] = {}
        self._items: dict[int, _Item] = {}
        self._next = 0
        self._lock = threading.RLock()
        self._under_way = threading.local()

    def instantiate(self, name: str, attrs: Mapping[str, object] | None = None, options: InstantiateOptions | None = None) -> int:
        """The handle of function `name` for these attrs; the same one for the same name, attrs and options.

        What the function calls is instantiated when it runs.

        Args:
            name: a function of the library, or SymbolicGradient.
            attrs: a value for each attr without a default.
            options: a library that counts for this instantiation only, a state of its own, an executor.

        Raises:
            NotFoundError: no such function, op or executor.
            InvalidArgumentError: the function cannot be instantiated for these attrs.
        """
        chosen = options or InstantiateOptions()
        given: Any = dict(attrs or {})
        functions = self._functions_of(chosen)
        key = canonicalize(name, given, chosen)
        with self._lock:
            handle = self._handles.get(key)
            if handle is not None:
                self._items[handle].users += 1
                return handle
            definition = functions.library.find(name)
            if definition is None and name != GRADIENT_OP:
                raise NotFoundError(f"Function {name} is not defined.", op=name)
            _check_executor(chosen, given, definition)
            given.pop(EXECUTOR_ATTR, None)
            item = _Item(name, key, functions.body_of(name, given), functions, chosen)
            item.resources.variables = self.resources.variables
            handle = self._handles[key] = self._next
            self._next += 1
            self._items[handle] = item
            return handle

    def get_function_body(self, handle: int) -> FunctionBody:
        """The instantiated body behind a handle.

        Raises:
            NotFoundError: there is none, or it was released.
        """
        return self._item(handle).body

    def get_function_graph(self, handle: int) -> Graph:
        """What runs: the body without what nothing needs, its calls inlined.

        Raises:
            NotFoundError: there is none, or it was released; or the function calls one that does not exist.
        """
        item = self._item(handle)
        self._plan(item)
        assert item.runnable is not None
        return item.runnable.graph

    def debug_string(self, handle: int) -> str:
        """What runs, as text.

        Raises:
            NotFoundError: there is no such handle, or it was released.
        """
        return debug_string(self.get_function_graph(handle))

    def run(self, handle: int, args: Sequence[Any] = ()) -> list[Any]:
        """Call an instantiated function.

        Args:
            handle: what `instantiate` gave.
            args: one array (or what NumPy makes one of) an argument.

        Returns:
            One array a return.

        Raises:
            NotFoundError: no such handle, or it was released; or the function calls one that does not exist.
            InvalidArgumentError: a wrong number of arguments, or one of a wrong type.
        """
        item = self._item(handle)
        frame = FunctionCallFrame(item.body.arg_types, item.body.ret_types)
        frame.set_args(
            [_as_array(value, dtype) for value, dtype in zip(args, item.body.arg_types, strict=False)] + list(args)[frame.num_args :]
        )
        with np.errstate(all="ignore"):
            results = self._call(item, [_read_only(frame.get_arg(index)) for index in range(frame.num_args)])
        for index, value in enumerate(results):
            shared = type(value) is np.ndarray and (value.base is not None or not value.flags.writeable)
            frame.set_retval(index, value.copy() if shared else value)
        return frame.consume_retvals()

    def release_handle(self, handle: int) -> None:
        """Give an instantiation back; the last one to do so ends it, its state with it.

        Raises:
            NotFoundError: there is none, or it was released.
        """
        with self._lock:
            item = self._item(handle)
            item.users -= 1
            if item.users:
                return
            del self._items[handle], self._handles[item.key]
            if item.plan is not None:
                item.plan.close()

    def is_stateful(self, name: str) -> bool:
        """True iff there is an op or function `name` and it has state."""
        try:
            return self.library.look_up_op_def(name).is_stateful
        except NotFoundError:
            return False

    def create_kernel(self, node: Node, context: KernelContext) -> Kernel:
        """The kernel of a node: from the custom creator, of the function it calls, or of its op.

        Raises:
            NotFoundError, InvalidArgumentError: it calls a function that cannot be instantiated.
        """
        return self._kernel(node, context, InstantiateOptions())

    def function_kernel(self, name: str, attrs: Attrs, options: InstantiateOptions | None = None) -> Kernel:
        """What calls function `name`: arrays in, out as kernels give them.

        Raises:
            NotFoundError, InvalidArgumentError: as `instantiate`.
        """
        item = self._item(self.instantiate(name, _public(attrs), options))
        call, count = self._call, len(item.body.ret_types)
        if count == 1:
            return lambda *args: call(item, args)[0]
        if not count:
            return lambda *args: _nothing(call(item, args))
        return lambda *args: tuple(call(item, args))

    def function_types(
        self, name: str, attrs: Attrs, options: InstantiateOptions | None = None
    ) -> tuple[tuple[DType, ...], tuple[DType, ...]]:
        """What function `name` takes and what it returns.

        Raises:
            NotFoundError, InvalidArgumentError: as `instantiate`.
        """
        body = self._functions_of(options or InstantiateOptions()).body_of(name, _public(attrs))
        return body.arg_types, body.ret_types

    def _item(self, handle: int) -> _Item:
        item = self._items.get(handle)
        if item is None:
            raise NotFoundError(f"Handle {handle} not found.")
        return item

    def _functions_of(self, options: InstantiateOptions) -> InstantiatedFunctions:
        overlay = options.lib_def
        if not isinstance(overlay, FunctionLibraryDefinition):
            return self._functions
        known = self._overlays.get(id(overlay))
        if known is None or known.library is not overlay:
            known = self._overlays[id(overlay)] = InstantiatedFunctions(overlay)
        return known

    def _call(self, item: _Item, args: Sequence[Any]) -> list[Any]:
        plan = item.plan or self._plan(item)
        if item.recursive:
            return self._call_recursive(item, plan, args)
        step = current.step
        try:
            return plan.run(*args) if step is None else plan.run_step(step, args)
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises is told with its node
            explained = plan.explain(error)
            raise explained from (None if explained is error else error)

    def _call_recursive(self, item: _Item, plan: Program, args: Sequence[Any]) -> list[Any]:
        depth = getattr(self._under_way, "depth", 0)
        if depth >= MAX_DEPTH:
            raise ResourceExhaustedError(
                f"Function {item.name} calls itself more than {MAX_DEPTH} levels deep: recursion needs a case that ends it", op=item.name
            )
        self._under_way.depth = depth + 1
        step = current.step
        try:
            return plan.run(*args) if step is None else plan.run_step(step, args)
        finally:
            self._under_way.depth = depth

    def _plan(self, item: _Item) -> Program:
        with self._lock:
            if item.plan is None:
                ready = runnable_body(item.functions, item.body)
                feeds = [node.outputs[0] for node in ready.args]
                fetches = [node.inputs[0] for node in ready.rets]
                options = item.options
                item.plan = build_program(
                    fetches, ready.targets, feeds, lambda node, context: self._item_kernel(item, node, context, options)
                )
                item.runnable = ready
            return item.plan

    def _item_kernel(self, item: _Item, node: Node, context: KernelContext, options: InstantiateOptions) -> Kernel:
        context.resources = item.resources
        return self._kernel(node, context, msgspec.structs.replace(options, executor_type=""))

    def _kernel(self, node: Node, context: KernelContext, options: InstantiateOptions) -> Kernel:
        context.functions = _Calls(self, options)
        if self.custom_kernel_creator is not None:
            made = self.custom_kernel_creator(node, context)
            if made is not None:
                return made
        if node.registration.is_function:
            return self.function_kernel(node.op, node.node_def.attr, options)
        factory = node.registration.kernel
        assert factory is not None
        return factory(context) if is_ours(node) else checked(node, factory(context))


class _Calls:
    """How kernels call functions: within the library and the state of the instantiation that they are in."""

    __slots__ = ("_options", "_runtime")

    def __init__(self, runtime: FunctionLibraryRuntime, options: InstantiateOptions) -> None:
        self._runtime = runtime
        self._options = options

    def function_kernel(self, name: str, attrs: Attrs) -> Kernel:
        """See `FunctionLibraryRuntime.function_kernel`."""
        return self._runtime.function_kernel(name, attrs, self._options)

    def function_types(self, name: str, attrs: Attrs) -> tuple[tuple[DType, ...], tuple[DType, ...]]:
        """See `FunctionLibraryRuntime.function_types`."""
        return self._runtime.function_types(name, attrs, self._options)


def _public(attrs: Attrs) -> Attrs:
    return {key: value for key, value in attrs.items() if not key.startswith("_")}


def _check_executor(options: InstantiateOptions, attrs: Mapping[str, AttrValue], definition: FunctionDef | None) -> None:
    named = attrs.get(EXECUTOR_ATTR) or (definition.attr.get(EXECUTOR_ATTR) if definition is not None else None) or b""
    executor = options.executor_type or (named.decode(errors="replace") if isinstance(named, bytes) else str(named))
    if executor not in _EXECUTORS:
        raise NotFoundError(f"No executor factory registered for the given executor type: {executor}")


def _read_only(value: Any) -> Any:
    """A view that nothing can change the caller's array through."""
    if not isinstance(value, np.ndarray):
        return value
    view: Any = value.view()
    view.flags.writeable = False
    return view


def _nothing(_results: list[Any]) -> None:
    return None


def _as_array(value: Any, dtype: DType) -> Any:
    if hasattr(value, "dtype") or dtype.as_numpy is None:
        return value
    try:
        return np.asarray(value, dtype.as_numpy)
    except (TypeError, ValueError, OverflowError, GraphError):
        return np.asarray(value)
