"""FunctionLibraryRuntime: instantiates functions once, under handles, and runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, overload

import msgspec
import numpy as np

from graphcore.attrs import Attrs, Func
from graphcore.definitions import FunctionDef
from graphcore.device_spec import DeviceSpec
from graphcore.dtypes import DType
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError, ResourceExhaustedError
from graphcore.functions import FunctionCallFrame, FunctionLibraryDefinition, InstantiateOptions, canonicalize
from graphcore.functions.canonicalize import DEFAULT_EXECUTORS, EXECUTOR_ATTR
from graphcore.functions.library import FUNC_ATTR, GRADIENT_OP
from graphcore.graph import Graph, Node, Tensor, debug_string
from graphcore.kernel_context import KernelContext, ResourceManager
from graphcore.passes import FunctionBody, InstantiatedFunctions, function_def_to_body
from graphcore.registry import Kernel
from graphcore.runtime.core.kernel_checks import checked, is_built_in
from graphcore.runtime.core.program import Executor, current
from graphcore.runtime.functions.executors import ExecutorParams, get_executor_factory
from graphcore.runtime.functions.function_graph import runnable_body
from graphcore.runtime.functions.function_handles import FunctionHandles
from graphcore.runtime.functions.function_item import FunctionItem, Types
from graphcore.runtime.functions.specialise import Specialised
from graphcore.runtime.plan.plan import Plan, build_plan
from graphcore.support.gc_pause import paused_collector

KernelCreator = Callable[[Node, KernelContext], "Kernel | None"]
"""Makes the kernel of a node in a function's body; None leaves it to the op."""
LOCAL_DEVICE: Final = "/job:localhost/replica:0/task:0/device:CPU:0"
MAX_DEPTH: Final = 100
"""The most recursive calls under way within each other."""
_depth: Final = ContextVar("depth", default=0)
"""Their current number, which calls in other threads inherit."""


class FunctionLibraryRuntime:
    """Runs the functions of a library on one device.

    A function that was replaced in the library is instantiated again on its next run, and so are its callers.

    Args:
        library: the functions.
        resources: the variables that functions share with their callers; none by default.
        custom_kernel_creator: tried first for the kernel of each node.
        device: the device that this runtime is for.
        peers: the runtimes of one process by device, this one included; they share their handles.
        handles: the shared table of handles.

    Attributes:
        library, resources, custom_kernel_creator, device, handles: as given.
    """

    def __init__(
        self,
        library: FunctionLibraryDefinition,
        *,
        resources: ResourceManager | None = None,
        custom_kernel_creator: KernelCreator | None = None,
        device: str = LOCAL_DEVICE,
        peers: Mapping[str, FunctionLibraryRuntime] | None = None,
        handles: FunctionHandles | None = None,
    ) -> None:
        self.library = library
        self.resources = resources or ResourceManager()
        self.custom_kernel_creator = custom_kernel_creator
        self.device = device
        self._peers = {device: self} if peers is None else peers
        self.handles = handles or FunctionHandles()
        self._functions = InstantiatedFunctions(library)
        self._overlays: dict[int, InstantiatedFunctions] = {}

    # ---- instantiating ---------------------------------------------------------------------------------------------

    def instantiate(self, name: str, attrs: Mapping[str, object] | None = None, options: InstantiateOptions | None = None) -> int:
        """Instantiate function `name`. Equal name, attrs and options give the same handle.

        Called functions are instantiated when it runs.

        Args:
            name: a function of the library, or SymbolicGradient.
            attrs: a value for each attr without a default.
            options: target device, library for this instantiation only, separate state, executor.

        Raises:
            NotFoundError: no such function, op or device. A missing executor is reported when the function is prepared.
            InvalidArgumentError: the function cannot be instantiated for these attrs.
        """
        handle = self._instantiated(name, attrs or {}, options or InstantiateOptions())
        self.handles.item(handle).users += 1
        return handle

    def body_of(self, name: str, attrs: Attrs) -> FunctionBody:
        """The body of a function; for SymbolicGradient the gradient. See `InstantiatedFunctions.body_of`.

        Raises:
            NotFoundError: no such function, or no gradient for such an op.
            InvalidArgumentError: the function cannot be instantiated for these attrs.
        """
        return self._functions.body_of(name, attrs)

    def instantiate_symbolic_gradient(self, function: Func) -> FunctionBody:
        """The body of the gradient of a function of the library, or of an op.

        Raises:
            NotFoundError, InvalidArgumentError: there is none, or the function cannot be instantiated.
        """
        return self.body_of(GRADIENT_OP, {FUNC_ATTR: function})

    def function_def_to_body(self, fdef: FunctionDef, attrs: Mapping[str, object]) -> FunctionBody:
        """The body of a definition that need not be in the library, with the functions of the library.

        Raises:
            NotFoundError, InvalidArgumentError: it cannot be instantiated for these attrs.
        """
        return function_def_to_body(fdef, attrs, self.library)

    def get_function_body(self, handle: int) -> FunctionBody:
        """The instantiated body behind a handle.

        Raises:
            NotFoundError: there is none, or it was released.
        """
        return self._current_item(handle).body

    def create_item(self, handle: int) -> FunctionItem:
        """Prepare an instantiation again: its optimised graph, and its executor.

        Raises:
            NotFoundError: there is none, or it was released; or the function calls one that does not exist.
        """
        item = self._current_item(handle)
        with self.handles.lock:
            item.close()
            item.runtime.prepare(item)
        return item

    def get_or_create_item(self, handle: int) -> FunctionItem:
        """The prepared instantiation behind a handle.

        Raises:
            NotFoundError: there is none, or it was released; or the function calls one that does not exist.
        """
        item = self._current_item(handle)
        if item.executor is None:
            item.runtime.prepare(item)
        return item

    def get_function_graph(self, handle: int) -> Graph:
        """The graph to run: pruned, calls inlined, optimised.

        Raises:
            NotFoundError: there is none, or it was released; or the function calls one that does not exist.
        """
        return self.get_or_create_item(handle).graph

    def find_node(self, function: str, node: str) -> Node | None:
        """The node of this name in the graph of a function that was run, None if there is none."""
        graphs = [item.graph for item in self.handles.items() if item.name == function and item.runnable is not None]
        return next((node_found for graph in reversed(graphs) if (node_found := graph.find(node)) is not None), None)

    def debug_string(self, handle: int) -> str:
        """The graph to run, as text.

        Raises:
            NotFoundError: there is no such handle, or it was released.
        """
        return debug_string(self.get_function_graph(handle))

    def release_handle(self, handle: int) -> None:
        """Release an instantiation; the last release ends it with its state.

        Raises:
            NotFoundError: there is none, or it was released.
        """
        self.handles.release(handle)

    # ---- running ---------------------------------------------------------------------------------------------------

    @overload
    def run(self, handle: int, args: Sequence[Any] = ()) -> list[Any]: ...

    @overload
    def run(self, handle: int, args: FunctionCallFrame) -> None: ...

    def run(self, handle: int, args: Sequence[Any] | FunctionCallFrame = ()) -> list[Any] | None:
        """Call an instantiated function, on its device.

        Args:
            handle: from `instantiate`, of this runtime or of one of its peers.
            args: one array (or a value NumPy converts) for each argument; or a call frame, which has the arguments and gets the returns.

        Returns:
            One array for each return; None if they are in the call frame.

        Raises:
            NotFoundError: no such handle, or it was released; or a called function or a named executor does not exist.
            InvalidArgumentError: a wrong number of arguments, or one of a wrong type; a call frame for other arguments or returns.
            InternalError: a call frame that has no arguments yet, or has returns already.
        """
        item = self._current_item(handle)
        if isinstance(args, FunctionCallFrame):
            args.check_call(*item.types)
            _run_in_frame(item, args)
            return None
        frame = FunctionCallFrame(*item.types)
        frame.set_args(
            [_as_array(value, dtype) for value, dtype in zip(args, frame.arg_types, strict=False)] + list(args)[frame.num_args :]
        )
        _run_in_frame(item, frame)
        return frame.consume_retvals()

    def is_stateful(self, name: str) -> bool:
        """True iff the op or function `name` is stateful."""
        try:
            return self.library.look_up_op_def(name).is_stateful
        except NotFoundError:
            return False

    def create_kernel(self, node: Node, context: KernelContext) -> Kernel:
        """The kernel of a node: of the custom creator, of its function, or of its op.

        Raises:
            NotFoundError, InvalidArgumentError: it calls a function that cannot be instantiated.
        """
        return self._kernel(node, context, InstantiateOptions())

    def function_kernel(self, name: str, attrs: Attrs, options: InstantiateOptions | None = None) -> Kernel:
        """A callable that runs function `name` on arrays, in the form of a kernel.

        Raises:
            NotFoundError, InvalidArgumentError: as `instantiate`.
        """
        own = {key: value for key, value in attrs.items() if key == EXECUTOR_ATTR or not key.startswith("_")}
        item = self.handles.item(self._instantiated(name, own, options or InstantiateOptions()))
        call, types = item.runtime.call, item.types
        count = len(types[1])
        if count == 1:
            return lambda *args: call(item, types, args)[0]
        if not count:
            return lambda *args: _nothing(call(item, types, args))
        return lambda *args: tuple(call(item, types, args))

    def function_types(self, name: str, attrs: Attrs, options: InstantiateOptions | None = None) -> Types:
        """The argument types and return types of function `name`.

        Raises:
            NotFoundError, InvalidArgumentError: as `instantiate`.
        """
        public = {key: value for key, value in attrs.items() if not key.startswith("_")}
        body = self._functions_of(options or InstantiateOptions()).body_of(name, public)
        return body.arg_types, body.ret_types

    def _instantiated(self, name: str, attrs: Mapping[str, object], options: InstantiateOptions) -> int:
        runtime = self._runtime_on(options.target)
        if runtime is not self:
            return runtime._instantiated(name, attrs, options)
        key = (self.device, canonicalize(name, attrs, options))
        with paused_collector():
            return self.handles.get(key, lambda: self._new_item(name, attrs, options, key))

    def _new_item(self, name: str, attrs: Mapping[str, object], options: InstantiateOptions, key: tuple[str, str]) -> FunctionItem:
        functions = self._functions_of(options)
        if name not in functions.library and name != GRADIENT_OP:
            raise NotFoundError(f"Function {name} is not defined.", op=name)
        chosen: Any = attrs
        item = FunctionItem(self, name, chosen, options, key, functions)
        item.resources.variables, item.resources.shared = self.resources.variables, self.resources.shared
        return item

    def _runtime_on(self, target: str) -> FunctionLibraryRuntime:
        """The runtime of device `target`; this one for ""."""
        if not target or target == self.device:
            return self
        wanted = DeviceSpec.parse(target)
        if wanted.is_specification_of(DeviceSpec.parse(self.device)):
            return self
        target_runtime = next(
            (runtime for device, runtime in self._peers.items() if wanted.is_specification_of(DeviceSpec.parse(device))), None
        )
        if target_runtime is None:
            raise NotFoundError(f"No function runtime for device '{target}'; there is one for {', '.join(sorted(self._peers))}")
        return target_runtime

    def _functions_of(self, options: InstantiateOptions) -> InstantiatedFunctions:
        overlay = options.lib_def
        if not isinstance(overlay, FunctionLibraryDefinition):
            return self._functions
        instantiated = self._overlays.get(id(overlay))
        if instantiated is None or instantiated.library is not overlay:
            instantiated = self._overlays[id(overlay)] = InstantiatedFunctions(overlay)
        return instantiated

    def _current_item(self, handle: int) -> FunctionItem:
        item = self.handles.item(handle)
        if item.version != item.library.version:
            self._renew(item)
        return item

    def _renew(self, item: FunctionItem) -> None:
        with self.handles.lock:
            item.renew()

    def call(self, item: FunctionItem, types: Types, args: Sequence[Any]) -> list[Any]:
        """See `Runtime.call`."""
        if item.version != item.library.version:
            self._renew(item)
        if item.types is not types:
            raise _other_types(item, types)
        executor = item.executor or self.prepare(item)
        specialised = item.specialised
        if specialised is not None:
            executor = specialised.plan_for(args)
            if specialised.is_useless:
                item.specialised = None
        if item.recursive:
            return self._call_recursive(item, executor, args)
        return _run(item, executor, args)

    def _call_recursive(self, item: FunctionItem, executor: Executor, args: Sequence[Any]) -> list[Any]:
        depth = _depth.get()
        if depth >= MAX_DEPTH:
            raise _too_deep(item, MAX_DEPTH)
        before = _depth.set(depth + 1)
        try:
            return _run(item, executor, args)
        except RecursionError:
            raise _too_deep(item, depth) from None
        finally:
            _depth.reset(before)

    def prepare(self, item: FunctionItem) -> Executor:
        """See `Runtime.prepare`."""
        with self.handles.lock, paused_collector():
            if item.executor is None:
                factory = get_executor_factory(item.executor_type)
                ready = runnable_body(item.functions, item.body)
                feeds = [node.outputs[0] for node in ready.args]
                fetches = [node.inputs[0] for node in ready.rets]
                made = factory(ExecutorParams(feeds, fetches, ready.targets, partial(self._item_kernel, item)))
                item.runnable = ready
                usual = item.executor_type in DEFAULT_EXECUTORS and self.custom_kernel_creator is None
                if usual and type(made) is Plan and Specialised.pays_in_function(made, feeds):
                    item.specialised = Specialised(made, fetches, ready.targets, feeds, partial(self._build, item))
                item.executor = made
            return item.executor

    def _build(self, item: FunctionItem, fetches: Sequence[Tensor], targets: Sequence[Node], feeds: Sequence[Tensor]) -> Plan:
        with self.handles.lock, paused_collector():
            return build_plan(fetches, targets, feeds, lambda node, context: self._item_kernel(item, node, context))

    def _item_kernel(self, item: FunctionItem, node: Node, context: KernelContext) -> Kernel:
        context.resources = item.resources
        return self._kernel(node, context, msgspec.structs.replace(item.options, executor_type=""))

    def _kernel(self, node: Node, context: KernelContext, options: InstantiateOptions) -> Kernel:
        context.functions = _Calls(self, options)
        context.device = self.device
        if self.custom_kernel_creator is not None:
            made = self.custom_kernel_creator(node, context)
            if made is not None:
                return made
        if node.registration.is_function:
            return self.function_kernel(node.op, node.node_def.attr, options)
        return kernel_of_op(node, context)


def kernel_of_op(node: Node, context: KernelContext) -> Kernel:
    """The kernel of a node whose op is no function; one of a user's op checks its outputs."""
    factory = node.registration.kernel
    assert factory is not None
    return factory(context) if is_built_in(node) else checked(node, factory(context))


def _run_in_frame(item: FunctionItem, frame: FunctionCallFrame) -> None:
    args = [_read_only(frame.get_arg(index)) for index in range(len(item.types[0]))]
    with np.errstate(all="ignore"):
        results = item.runtime.call(item, item.types, args)
    for index, value in enumerate(results):
        shared = type(value) is np.ndarray and (value.base is not None or not value.flags.writeable)
        frame.set_retval(index, value.copy() if shared else value)


def _run(item: FunctionItem, executor: Executor, args: Sequence[Any]) -> list[Any]:
    step = current.step
    try:
        if step is None:
            return executor.run(*args)
        if step.recorder is not None and item.runnable is not None:
            sizes = [getattr(value, "nbytes", 0) for value in args]
            step.recorder.argument_bytes[item.name] = dict(zip([node.name for node in item.runnable.args], sizes, strict=True))
        with step.calling(item.name):
            return executor.run_step(step, args)
    except RecursionError:
        raise
    except Exception as error:  # noqa: BLE001 - any error of a kernel is reported with its node
        explained = executor.explain(error)
        raise explained from (None if explained is error else error)


def _too_deep(item: FunctionItem, depth: int) -> ResourceExhaustedError:
    return ResourceExhaustedError(
        f"Function {item.name} calls itself more than {depth} levels deep: recursion needs a case that ends it", op=item.name
    )


def _other_types(item: FunctionItem, types: Types) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Function {item.name} was called as one that takes {_names(types[0])} and gives {_names(types[1])}, but has been replaced: "
        f"it now takes {_names(item.types[0])} and gives {_names(item.types[1])}; make the call again",
        op=item.name,
    )


def _names(types: Sequence[DType]) -> str:
    return f"({', '.join([dtype.text for dtype in types])})"


class _Calls:
    """Function calls of kernels, within the library and state of the surrounding instantiation."""

    __slots__ = ("_options", "_runtime")

    def __init__(self, runtime: FunctionLibraryRuntime, options: InstantiateOptions) -> None:
        self._runtime = runtime
        self._options = options

    def function_kernel(self, name: str, attrs: Attrs) -> Kernel:
        """See `FunctionLibraryRuntime.function_kernel`."""
        return self._runtime.function_kernel(name, attrs, self._options)

    def function_types(self, name: str, attrs: Attrs) -> Types:
        """See `FunctionLibraryRuntime.function_types`."""
        return self._runtime.function_types(name, attrs, self._options)


def _read_only(value: Any) -> Any:
    """A read-only view of the caller's array."""
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
