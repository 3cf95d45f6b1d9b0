"""The op registry: definition, shape function, kernel and gradient of each op."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from graphcore.absent_ops import why_absent
from graphcore.attrs import Attrs
from graphcore.definitions.op_def_validation import validate_op_def
from graphcore.definitions.types import FunctionDef, OpDef
from graphcore.errors import AlreadyExistsError, GraphError, NotFoundError
from graphcore.support.critical_section import critical_section
from graphcore.support.forking import new_rlock
from graphcore.traits import NO_TRAITS, Traits

ShapeFn = Callable[[Any], None]
"""Takes an InferenceContext and sets its outputs."""
Kernel = Callable[..., Any]
"""Takes the input arrays, gives the output array (or a tuple of them for several outputs, None for none)."""
KernelFactory = Callable[[Any], Kernel]
"""Takes a KernelContext (attrs, dtypes, array module) once a plan, gives the kernel."""
GradientCreator = Callable[[Attrs], FunctionDef]
"""Takes the attrs of a node, gives the FunctionDef of its gradient: inputs and output gradients in, input gradients out."""
GradientKind = Literal["function", "stop", "none"]
"""The gradient of an op: a function, deliberately none ("stop"), or none registered."""
Watcher = Callable[[OpDef, Exception | None], None]


class OpRegistration:
    """The registered properties of one op. `gradient` is None for an op registered as not differentiable.

    `why_no_gradient` explains in words why there is none.
    `exact_gradient` replaces a `gradient` that is not right at every point, unless plain registered bodies are asked for.
    `full_gradient` replaces a `gradient` that omits an output or an input, if that matters.
    `no_gradient_by` maps the numbers of inputs by which the op has no gradient, though they are differentiable, to the reason.
    `no_gradient_through` maps outputs without a gradient to the reason, for ops that have a gradient through other outputs.
    `traits` holds the facts that passes, engines and views rely on.
    `waits` marks an op whose kernel returns a `Pending`: its result may depend on other nodes of the same run.
    `size_step` gives, for an opaque op whose source knows it, the step backwards from a size of a node's output: how, in words, and the inputs
    with their axes that it comes from.
    `is_opaque` marks a stand-in for an unregistered op, so that a graph can hold nodes of foreign graphs.
    """

    __slots__ = (
        "apply_plan",
        "direct_shape",
        "exact_gradient",
        "examples",
        "failures",
        "full_gradient",
        "gradient",
        "has_gradient",
        "is_function",
        "is_opaque",
        "kernel",
        "no_gradient_by",
        "no_gradient_through",
        "op_def",
        "shape_fn",
        "size_step",
        "traits",
        "waits",
        "why_no_gradient",
    )

    def __init__(self, op_def: OpDef, shape_fn: ShapeFn | None = None, *, is_function: bool = False, is_opaque: bool = False) -> None:
        self.op_def = op_def
        self.shape_fn = shape_fn
        self.direct_shape: Callable[..., Any] | None = getattr(shape_fn, "direct", None)
        self.apply_plan: Any = None
        self.is_function = is_function
        self.is_opaque = is_opaque
        self.waits = False
        self.traits: Traits = NO_TRAITS
        self.size_step: Callable[[Any, int, int], tuple[str, str, list[tuple[int, int]]] | None] | None = None
        self.kernel: KernelFactory | None = None
        self.gradient: GradientCreator | None = None
        self.has_gradient = False
        self.why_no_gradient = ""
        self.exact_gradient: GradientCreator | None = None
        self.full_gradient: GradientCreator | None = None
        self.no_gradient_by: Mapping[int, str] = {}
        self.no_gradient_through: Mapping[str, str] = {}
        self.examples: tuple[Any, ...] = ()
        self.failures: tuple[Any, ...] = ()

    @property
    def gradient_kind(self) -> GradientKind:
        """The kind of the declared gradient; "none" makes differentiation fail."""
        if not self.has_gradient:
            return "none"
        return "stop" if self.gradient is None else "function"

    @property
    def colocated_inputs(self) -> list[str]:
        """The input arguments that are references or resources: the op must be on their device."""
        return [arg.name for arg in self.op_def.input_arg if arg.is_handle]

    @property
    def is_alias(self) -> bool:
        """True if the op only passes its one input on."""
        if self.traits.memory != "alias" or not self.op_def.output_arg:  # ops of other frameworks do not declare outputs
            return False
        output = self.op_def.output_arg[0]
        return not output.number_attr and not output.type_list_attr


class OpRegistry:
    """Ops by name. Registrations given as callables are deferred until the first look-up."""

    def __init__(self) -> None:
        self._deferred: list[Callable[[], OpRegistration]] = []
        self._promised: dict[str, Callable[[], object]] = {}
        self._lazy: dict[str, Callable[[], OpRegistration]] = {}
        self._by_name: dict[str, OpRegistration] = {}
        self._watcher: Watcher | None = None
        self._making = new_rlock()

    def register(self, op: OpDef | OpRegistration | Callable[[], OpRegistration], shape_fn: ShapeFn | None = None) -> None:
        """Add an op, now (OpDef, OpRegistration) or at the first look-up (callable).

        Raises:
            AlreadyExistsError: the name is taken.
            InvalidArgumentError: the OpDef is inconsistent.
        """
        if isinstance(op, OpDef):
            self._add(OpRegistration(op, shape_fn))
        elif isinstance(op, OpRegistration):
            self._add(op)
        else:
            self._deferred.append(op)

    def register_lazy(self, name: str, make: Callable[[], OpRegistration]) -> None:
        """Add the op `name` lazily: `make` is called on the first look-up.

        Raises:
            AlreadyExistsError: the name is taken.
        """
        if name in self._lazy or name in self._by_name:
            raise AlreadyExistsError(f"Op with name {name}", op=name)
        self._lazy[name] = make
        self._promised.pop(name, None)

    def promise(self, names: Iterable[str], load: Callable[[], object]) -> None:
        """Declare that `load` registers the ops `names`, each with `register_lazy`.

        `load` is called when one of them is first looked up.

        Raises:
            AlreadyExistsError: a name is taken.
        """
        for name in names:
            if self._is_taken(name):
                raise AlreadyExistsError(f"Op with name {name}", op=name)
            self._promised[name] = load

    def names(self) -> list[str]:
        """The sorted names of all ops. Makes no registration."""
        self._register_deferred()
        return sorted({*self._by_name, *self._lazy, *self._promised})

    def look_up(self, name: str) -> OpRegistration:
        """The registration of op `name`.

        Raises:
            NotFoundError: there is none.
        """
        registration = self._by_name.get(name)
        if registration is not None:
            return registration
        self._make(name)
        registration = self._by_name.get(name)
        if registration is None:
            reason = why_absent(name)
            raise NotFoundError(f"Op type not registered '{name}'" + (f": {reason}" if reason else ""), op=name)
        return registration

    def look_up_op_def(self, name: str) -> OpDef:
        """The OpDef of op `name`.

        Raises:
            NotFoundError: there is none.
        """
        return self.look_up(name).op_def

    def __contains__(self, name: str) -> bool:
        self._register_deferred()
        return self._is_taken(name)

    def __iter__(self) -> Iterator[OpRegistration]:
        for name in self.names():
            self._make(name)
        return iter(sorted(self._by_name.values(), key=lambda entry: entry.op_def.name))

    def export(self, include_internal: bool = False) -> list[OpDef]:
        """All OpDefs sorted by name; internal ops (named `_...`) only if `include_internal` is true."""
        return [entry.op_def for entry in self if include_internal or not entry.op_def.name.startswith("_")]

    def set_watcher(self, watcher: Watcher | None) -> None:
        """Set a callback for every registration (a refused one with its error); None removes it.

        Raises:
            AlreadyExistsError: another callback is set.
        """
        if watcher is not None and self._watcher is not None:
            raise AlreadyExistsError("Cannot over-write a valid watcher with another.")
        self._watcher = watcher

    def _register_deferred(self) -> None:
        while self._deferred:
            self._add(self._deferred.pop(0)())

    def _make(self, name: str) -> None:
        with critical_section:
            load = self._promised.get(name)
            if load is not None:
                load()  # outside the lock, since it imports modules, which takes Python's import lock
            with self._making:
                self._register_deferred()
                make = self._lazy.get(name)
                if make is None:
                    return
                # A registration that fails is kept, so that each look-up raises its error.
                entry = make()
                del self._lazy[name]
                try:
                    self._add(entry)
                except BaseException:  # Ctrl-C too: the op would be gone
                    self._lazy[name] = make
                    raise

    def _is_taken(self, name: str) -> bool:
        return name in self._by_name or name in self._lazy or name in self._promised

    def _add(self, entry: OpRegistration) -> None:
        name = entry.op_def.name
        error = self._reason_to_refuse(entry.op_def)
        if self._watcher is not None:
            self._watcher(entry.op_def, error)
        if error is not None:
            raise error
        self._by_name[name] = entry

    def _reason_to_refuse(self, op_def: OpDef) -> GraphError | None:
        try:
            validate_op_def(op_def)
        except GraphError as error:
            return error
        return AlreadyExistsError(f"Op with name {op_def.name}", op=op_def.name) if self._is_taken(op_def.name) else None


op_registry = OpRegistry()
"""The global registry."""


def register_op(op_def: OpDef, shape_fn: ShapeFn | None = None) -> None:
    """Add an op to the global registry (REGISTER_OP).

    Raises:
        AlreadyExistsError: the name is taken.
    """
    op_registry.register(op_def, shape_fn)


def register_op_gradient(op: str, creator: GradientCreator) -> None:
    """Set the gradient of `op` (REGISTER_OP_GRADIENT).

    Raises:
        NotFoundError: no such op.
        AlreadyExistsError: it has a gradient already.
    """
    _set_gradient(op, creator)


def register_op_no_gradient(op: str) -> None:
    """Mark `op` as not differentiable (REGISTER_OP_NO_GRADIENT).

    Raises:
        NotFoundError: no such op.
        AlreadyExistsError: it has a gradient already.
    """
    _set_gradient(op, None)


def get_op_gradient_creator(op: str) -> GradientCreator | None:
    """The gradient creator of `op`, None if it is registered as not differentiable.

    Raises:
        NotFoundError: nothing is registered.
    """
    if op not in op_registry or op_registry.look_up(op).gradient_kind == "none":
        raise NotFoundError(f"No gradient defined for op: {op}", op=op)
    return op_registry.look_up(op).gradient


def _set_gradient(op: str, creator: GradientCreator | None) -> None:
    entry = op_registry.look_up(op)
    if entry.has_gradient:
        raise AlreadyExistsError(f"Duplicated gradient for {op}", op=op)
    entry.gradient = creator
    entry.has_gradient = True
