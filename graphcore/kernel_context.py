"""The interface between kernels and the runtime: context, variables, resources, pending results."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Hashable
from types import ModuleType
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from graphcore.attrs import Array, Attrs, AttrValue
from graphcore.brief import brief
from graphcore.dtypes import DType
from graphcore.errors import FailedPreconditionError, InternalError, InvalidArgumentError, Located
from graphcore.shapes import Shape
from graphcore.shared_resources import SharedResources
from graphcore.source import SourceLocation
from graphcore.support.critical_section import critical_section
from graphcore.support.forking import new_lock

State = TypeVar("State")
_kept: Final[dict[int, weakref.ref[Any]]] = {}
"""The arrays of devices that variables have taken, by identity."""
_OBJECT: Final = np.dtype(np.object_)
_UNINITIALIZED: Final = "Attempting to use uninitialized value "
NOT_INITIALIZED: Final = ": run its initializer (gc.initialize_all_variables()) in this session first"
"""The part of the message about a variable without a value that follows its name."""


class Dead:
    """The type of `DEAD`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<dead>"


DEAD: Final = Dead()
"""The placeholder for a value on a branch that was not taken."""


class RefVariable:
    """The storage of a reference tensor: an array that is replaced as a whole, None if uninitialised.

    Attributes:
        op: the op of the node that the variable belongs to, for errors.
        owner: the node whose declaration is in force; "" after that node is gone, when the next node to look it up may declare it.
        lock: held while a value is read and replaced, so that concurrent updates are not lost.
    """

    __slots__ = ("dtype", "lock", "name", "op", "owner", "shape", "source", "value")

    def __init__(self, name: str, dtype: DType, shape: Shape, source: SourceLocation | None = None, op: str = "VariableV2") -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.source = source
        self.op = op
        self.owner = ""
        self.value: Array | None = None
        self.lock = new_lock()

    def declare(self, dtype: DType, shape: Shape, source: SourceLocation | None, op: str) -> None:
        """Reset the variable to no value, with another declaration."""
        with self.lock, critical_section:
            self.dtype = dtype
            self.shape = shape
            self.source = source
            self.op = op
            self.value = None

    def read(self) -> Array:
        """The current value. Arrays are never changed in place, so a value that was read stays valid.

        Raises:
            FailedPreconditionError: the variable is uninitialised.
        """
        if self.value is None:
            raise uninitialized(self)
        return self.value

    def current(self) -> Array | None:
        """The current value, None if it has none."""
        return self.value

    def assign(self, value: Array) -> None:
        """Replace the value. It stays on its device, is copied if it is shared, and becomes read-only."""
        array: Array = value if is_on_device(value) else np.asarray(value)
        if array.dtype is not self.dtype.as_numpy:
            self._check_dtype(array)
        self.value = owned(array)

    def replace(self, value: Array | None) -> None:
        """Set the value from outside of a run, or take it away."""
        with self.lock:  # without the lock, a concurrent update could overwrite the value with one computed from the old
            if value is None:
                self.value = None
            else:
                self.assign(value)

    def _check_dtype(self, array: Array) -> None:
        wanted = self.dtype.as_numpy
        if wanted is not None and array.dtype != wanted and array.dtype.kind != "O":
            raise InternalError.at(self, f"Variable '{self.name}' is {self.dtype.text}, and was given a value of type {array.dtype}")


def uninitialized(variable: Located) -> FailedPreconditionError:
    """The error for a variable without a value."""
    return FailedPreconditionError.at(
        variable,
        f"{_UNINITIALIZED}{variable.name}{NOT_INITIALIZED}",
    ).advise(
        "Run `session.run(gc.initialize_all_variables())` once, before this line and in the same session.",
        required=f"a value in the variable '{variable.name}'",
        came="none: it was not initialized in this session",
    )


def uninitialized_name(error: FailedPreconditionError) -> str:
    """The name of the variable that an error of `uninitialized` is about; "" for another error."""
    start, separator, _ = error.message.partition(NOT_INITIALIZED)
    return start.removeprefix(_UNINITIALIZED) if separator else ""


def owned(array: Array) -> Array:
    """Return `array`, or a copy if it is shared. It stays on its device, and is kept: a NumPy array becomes read-only."""
    if is_on_device(array):
        own = array if array.flags.owndata else array.copy()
        identity = id(own)
        _kept[identity] = weakref.ref(own, lambda _: _kept.pop(identity, None))
        return own
    kept = array if array.flags.owndata and array.flags.writeable else array.copy()
    kept.setflags(write=False)
    return kept


def is_on_device(value: Any) -> bool:
    """True iff a value is an array of another backend than NumPy. Those cannot be made read-only."""
    return not isinstance(value, np.ndarray | np.generic) and hasattr(value, "flags")


def is_kept(array: Array) -> bool:
    """True iff a variable, the graph or the caller keeps an array, which is not to be changed."""
    if not is_on_device(array):
        return not array.flags.writeable
    reference = _kept.get(id(array))
    return reference is not None and reference() is array


def on_host(value: Array) -> Array:
    """A value in the memory of the host: an array of a device is copied, any other value is returned."""
    array: Any = value
    kept: Array = array.get() if is_on_device(value) else array
    return kept


class Stored(Protocol):
    """The storage of a variable, in this process or elsewhere."""

    @property
    def dtype(self) -> DType:
        """The type."""

    @property
    def shape(self) -> Shape:
        """The shape, as far as it is declared."""

    @property
    def source(self) -> SourceLocation | None:
        """The line that made the variable."""

    def current(self) -> Array | None:
        """The value, None if it has none."""

    def read(self) -> Array:
        """The value.

        Raises:
            FailedPreconditionError: there is none.
        """

    def replace(self, value: Array | None) -> None:
        """Set the value, or take it away."""


class Channel(Protocol):
    """The rendezvous of sending and receiving kernels."""

    def send(self, key: str, args: None, value: Any, is_dead: bool = False) -> None:
        """Send `value` under `key`. Never blocks."""

    def recv(self, key: str) -> tuple[Any, bool]:
        """Wait for the next value of `key`. Returns the value, and True if it is dead."""


Done = Callable[[Any, Exception | None], None]
"""Takes the outputs of a node, as a kernel gives them, or why there are none."""


class Pending(Protocol):
    """The result of a kernel that waits for an event in another node, run or thread."""

    def begin(self, done: Done) -> None:
        """Call `done` once the result is certain: at once, or from the thread that completes it."""

    def cancel(self) -> None:
        """Cancel the wait: `done` gets CancelledError, unless the result is certain already."""


class Owned(Protocol):
    """A resource that a node may declare: a variable, a queue."""

    @property
    def owner(self) -> str:
        """The node whose declaration is in force, "" after that node is gone."""

    @property
    def op(self) -> str:
        """The op of the node that the resource belongs to."""


class ResourceManager:
    """The state of a session: variables by (container, name), queues and other state of kernels.

    Attributes:
        shared: resources other than variables that are shared by name.
        redeclared: True after a variable was declared again; earlier kernels may hold its former object.
    """

    def __init__(self) -> None:
        self.variables: dict[tuple[str, str], RefVariable] = {}
        self.shared = SharedResources()
        self.channel: Channel | None = None
        self.redeclared = False
        self._states: dict[Hashable, Any] = {}

    def state(self, key: Hashable, make: Callable[[], State]) -> State:
        """The state under `key` (such as a random generator's position), made by `make` on first use."""
        state: State | None = self._states.get(key)
        if state is None:
            state = self._states.setdefault(key, make())
        return state

    def variable(
        self,
        container: str,
        name: str,
        dtype: DType,
        shape: Shape,
        source: SourceLocation | None = None,
        op: str = "VariableV2",
        node: str = "",
    ) -> RefVariable:
        """Find or make a variable.

        A variable whose owner now declares another type or shape is reset. Nodes that share it under a different declaration get it
        unchanged; but an uninitialised variable takes the type of the last handle that looks it up.

        Args:
            node: the node that looks it up.
        """
        variable = self.variables.get((container, name))
        if variable is None:
            variable = self.variables[container, name] = RefVariable(name, dtype, shape, source, op)
            variable.owner = node
            return variable
        is_other = variable.dtype is not dtype
        if variable.owner in ("", node) or (is_other and variable.value is None and op == variable.op == "VarHandleOp"):
            variable.owner = node
            if is_other or not variable.shape.is_identical_to(shape):
                variable.declare(dtype, shape, source, op)
                self.redeclared = True
        return variable

    def stored(
        self,
        container: str,
        name: str,
        dtype: DType,
        shape: Shape,
        source: SourceLocation | None = None,
        op: str = "VariableV2",
        node: str = "",
    ) -> Stored:
        """Find or make the storage of a variable, to be read and set from outside of runs; see `variable`."""
        return self.variable(container, name, dtype, shape, source, op, node)

    def value_of(self, container: str, name: str) -> Array | None:
        """The value of a variable on the host, None if it has none. Makes nothing."""
        variable = self.variables.get((container, name))
        return None if variable is None or variable.value is None else on_host(variable.value)

    def initialised(self) -> list[str]:
        """The owners of the variables that have values."""
        return [variable.owner for variable in list(self.variables.values()) if variable.value is not None]

    def is_declared_otherwise(self, owner: str, dtype: DType, shape: Shape) -> bool:
        """True iff the variable of a node holds a value of another declaration.

        Its next use resets it.
        """
        return any(
            variable.dtype is not dtype or not variable.shape.is_identical_to(shape)
            for variable in list(self.variables.values())
            if variable.owner == owner
        )

    def reset(self, containers: Container[str]) -> None:
        """Clear the variables and end the queues in `containers`."""
        for (container, _name), variable in list(self.variables.items()):
            if container in containers:
                with variable.lock:  # a concurrent update would bring the value back
                    variable.value, variable.owner = None, ""
        self.shared.reset(containers)

    def disown(self, is_gone: Callable[[Owned], bool]) -> None:
        """Clear the owner of variables and queues whose owner is gone; the next node may declare them."""
        self.shared.disown(is_gone)
        for variable in list(self.variables.values()):
            if variable.owner and is_gone(variable):
                variable.owner = ""


class FunctionKernels(Protocol):
    """The protocol of function execution for kernels."""

    def function_kernel(self, name: str, attrs: Attrs) -> Callable[..., Any]:
        """A callable that runs function `name` on arrays."""

    def function_types(self, name: str, attrs: Attrs) -> tuple[tuple[DType, ...], tuple[DType, ...]]:
        """The argument types and the return types of function `name`."""


class KernelContext:
    """The argument `k` of `kernel(k)`, one for each node of a plan.

    A kernel that only calls ufuncs, operators, `where` and `astype` on its inputs, and compares their shapes, can be part of a chain that a GPU
    runs as one kernel. Products by `k.xp.dot` and `k.xp.matmul` can be part of a CUDA graph, others cannot.

    Attributes:
        xp: the array module (NumPy, or CuPy on a GPU).
        attrs: the node's attrs.
        node_name, op: for error texts.
        input_types, output_types: dtypes by slot (reference types as such).
        input_shapes: the statically known shapes by slot.
        constants: by slot, the value of an input that is the same in every run, else None.
        resources: the session's state; a private one by default.
        functions: runs functions for kernels that call them; None outside of a runtime.
        device: the device of the kernel; "" if not placed.
    """

    __slots__ = (
        "attrs",
        "constants",
        "device",
        "functions",
        "input_shapes",
        "input_types",
        "node_name",
        "op",
        "output_types",
        "resources",
        "source",
        "xp",
    )

    def __init__(
        self,
        *,
        xp: ModuleType,
        attrs: Attrs,
        node_name: str = "",
        op: str = "",
        input_types: tuple[DType, ...] = (),
        output_types: tuple[DType, ...] = (),
        input_shapes: tuple[Shape, ...] = (),
        constants: tuple[Array | None, ...] = (),
        resources: ResourceManager | None = None,
        source: SourceLocation | None = None,
    ) -> None:
        self.xp: Any = xp
        self.attrs = attrs
        self.node_name = node_name
        self.op = op
        self.input_types = input_types
        self.output_types = output_types
        self.input_shapes = input_shapes
        self.constants = constants
        if resources is not None:
            self.resources = resources
        self.functions: FunctionKernels | None = None
        self.device = ""
        self.source = source

    def __getattr__(self, name: str) -> ResourceManager:
        if name != "resources":
            raise AttributeError(f"'KernelContext' object has no attribute '{name}'")
        self.resources = resources = ResourceManager()  # few kernels have state, so it is made on first use
        return resources

    def attr(self, name: str) -> AttrValue:
        """The value of attr `name`.

        Raises:
            InvalidArgumentError: the node has no such attr.
        """
        try:
            return self.attrs[name]
        except KeyError:
            raise InvalidArgumentError(f"No attr named '{name}' in node '{self.node_name}'", op=self.op, node=self.node_name) from None

    def dtype(self, attr: str) -> np.dtype[Any]:
        """The NumPy dtype of the type attr `attr`; handles are Python objects.

        Raises:
            InvalidArgumentError: the attr is missing or is no type.
        """
        value = self.attr(attr)
        if not isinstance(value, DType):
            raise InvalidArgumentError(
                f"Attr '{attr}' of node '{self.node_name}' is no type: {brief(value)}", op=self.op, node=self.node_name
            )
        return _OBJECT if value.as_numpy is None else value.as_numpy

    def constant(self, index: int) -> Array | None:
        """The value of input `index` if it is the same in every run, else None."""
        return self.constants[index] if index < len(self.constants) else None
