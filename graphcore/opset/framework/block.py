"""Op blocks: classes with docstring, signature, shape function, kernel, gradient and examples.

    @op
    class Square:
        \"\"\"`x * x`, element by element.\"\"\"

        signature = "Square[T:{half, float, double}](x:T) -> (y:T)"
        shape = unchanged_shape
        kernel = ufunc("square")
        gradient = unary_grad('''...''')
        examples = (Example([[-2.0, 3.0]]),)

`@op` refuses a block that lacks a part, and otherwise registers it lazily: nothing is parsed before the op is first looked up.

The ops of a family are made by a factory: a plain function that takes the differences and calls `define_op`.

`exact_gradient` is the gradient that is taken where `gradient`, TensorFlow's registered function, is not right at every point; it is what
TensorFlow's Python computes. Three more parts complete a partial gradient: `full_gradient` is used for an output or input that `gradient`
leaves out; `no_gradient_through` maps outputs without a gradient to the reason: one that arrives there is dropped; `no_gradient_by` maps the
numbers of inputs by which there is none to the reason: gradients stop there.

Traits (`graphcore.traits`) are attributes as well, such as `can_fail = False`; most come from a base class or from the kernel.

`failures` shows uses that are errors, though the shape function accepts the shapes: one for each op that can fail. One is an Example, or the
text of several nodes, of which only the last one fails.

`waits = True` declares that the kernel returns a `Pending` instead of its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from graphcore.attrs import Attrs
from graphcore.definitions.types import FunctionDef, OpDef
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.functions import define_function
from graphcore.inference import InferenceContext
from graphcore.kernel_context import KernelContext
from graphcore.registry import GradientCreator, Kernel, OpRegistration, op_registry
from graphcore.text import parse_op_signature
from graphcore.traits import traits_of

__all__ = [
    "NO_GRADIENT",
    "Example",
    "InferenceContext",
    "Kernel",
    "KernelContext",
    "define_op",
    "no_registered_gradient",
    "not_differentiable",
    "op",
]

Block = TypeVar("Block", bound=type)
GradientText = str | Callable[[Attrs], str | FunctionDef]

_PARTS: Final = ("signature", "shape", "kernel", "gradient", "examples")
_FLAGS: Final = {
    "commutative": "is_commutative",
    "stateful": "is_stateful",
    "aggregate": "is_aggregate",
    "allows_uninitialized_input": "allows_uninitialized_input",
    "distributed_communication": "is_distributed_communication",
}


class Example(msgspec.Struct, frozen=True):
    """A use of an op, for its documentation and tests.

    Args:
        inputs: one entry for each input argument: an array (or a value NumPy converts; Python floats become float32, ints int32), a list of these for a list argument, a TensorValue for other types. For a `Ref` argument: the variable's value, None if uninitialised.
        attrs: attrs that are not inferred from the inputs or defaults.
        outputs: the expected outputs, if they are instructive.
        differentiable: False if the gradient does not exist at this point (a kink, a tie).
        functions: definitions of the functions named in attrs, in the form of `define_function`.
    """

    inputs: Sequence[Any] = ()
    attrs: Mapping[str, Any] = {}
    outputs: Sequence[Any] | None = None
    differentiable: bool = True
    functions: Sequence[str] = ()


class NoGradient:
    """Marks an op without a gradient function. `registered`: not differentiable, gradients stop silently."""

    __slots__ = ("reason", "registered")

    def __init__(self, reason: str, *, registered: bool) -> None:
        self.reason = reason
        self.registered = registered


NO_GRADIENT: Final = NoGradient("it is constant almost everywhere, or its output is no number", registered=True)
"""The op is registered as not differentiable (REGISTER_OP_NO_GRADIENT): gradients stop here."""


def not_differentiable(reason: str) -> NoGradient:
    """Mark an op as not differentiable, for a reason: gradients stop here, as at `NO_GRADIENT`."""
    return NoGradient(reason, registered=True)


def no_registered_gradient(reason: str) -> NoGradient:
    """Mark an op without a gradient, for a reason; a gradient through it is an error.

    The error is `No gradient defined for op: ...`.
    """
    return NoGradient(reason, registered=False)


class TextGradient:
    """A gradient creator made from text, parsed on first use."""

    __slots__ = ("_made", "_text")

    def __init__(self, text: GradientText) -> None:
        self._text = text
        self._made: dict[str, FunctionDef] = {}

    def __call__(self, attrs: Attrs) -> FunctionDef:
        """The gradient function for a node with these attrs.

        Raises:
            InvalidArgumentError: the text is no FunctionDef, or the attrs do not fit each other.
        """
        text = self._text if isinstance(self._text, str) else self._written(self._text, attrs)
        if isinstance(text, FunctionDef):
            return text
        function = self._made.get(text)
        if function is None:
            function = self._made[text] = define_function(text)
        return function

    @staticmethod
    def _written(write: Callable[[Attrs], str | FunctionDef], attrs: Attrs) -> str | FunctionDef:
        try:
            return write(attrs)
        except GraphError:
            raise
        except Exception as error:  # the attrs of a file need not fit each other
            raise InvalidArgumentError(f"The gradient cannot be written for these attrs: {type(error).__name__}: {error}") from error


def op(block: Block) -> Block:
    """Register an op block.

    Raises:
        InvalidArgumentError: a part is missing.
        AlreadyExistsError: the op exists.
    """
    missing = [] if (block.__doc__ or "").strip() else ["docstring"]
    missing += [part for part in _PARTS if not hasattr(block, part) or (part == "examples" and not getattr(block, part))]
    if missing:
        raise InvalidArgumentError(
            f"Op block '{block.__name__}' is incomplete: required are a docstring, {', '.join(_PARTS)}; missing: {', '.join(missing)}",
            op=block.__name__,
        )
    op_registry.register_lazy(block.__name__, lambda: make_registration(block))
    return block


def define_op(name: str, doc: str | None, *bases: type, **parts: Any) -> type:
    """Register an op by a block made in code, for factories of op families.

    Args:
        name: the name of the op.
        doc: the docstring of the block.
        bases: the classes that the block inherits parts from.
        parts: the other parts, by the names they have in a block.

    Raises:
        InvalidArgumentError: a part is missing.
        AlreadyExistsError: the op exists.
    """
    return op(type(name, bases, {"__doc__": doc, **parts}))


def make_registration(block: Any) -> OpRegistration:
    """Convert a complete block to a registration.

    Raises:
        InvalidArgumentError: the signature is invalid, or a gradient of the wrong kind.
    """
    entry = OpRegistration(_op_def(block), block.shape)
    entry.kernel = block.kernel
    entry.examples = tuple(block.examples)
    entry.failures = tuple(getattr(block, "failures", ()))
    entry.waits = getattr(block, "waits", False)
    entry.traits = traits_of(block, (block.shape, block.kernel))
    gradient = block.gradient
    if isinstance(gradient, NoGradient):
        entry.has_gradient = gradient.registered
        entry.why_no_gradient = gradient.reason
        return entry
    entry.has_gradient = True
    entry.gradient = _creator(gradient, entry.op_def.name)
    if hasattr(block, "exact_gradient"):
        entry.exact_gradient = _creator(block.exact_gradient, entry.op_def.name)
    if hasattr(block, "full_gradient"):
        entry.full_gradient = _creator(block.full_gradient, entry.op_def.name)
    entry.no_gradient_by = dict(getattr(block, "no_gradient_by", {}))
    entry.no_gradient_through = dict(getattr(block, "no_gradient_through", {}))
    return entry


def _creator(gradient: object, name: str) -> GradientCreator:
    if isinstance(gradient, str) or callable(gradient):
        return TextGradient(gradient)
    raise InvalidArgumentError(
        f"The gradient of op block '{name}' must be text, a function of the attrs, or NO_GRADIENT; got {gradient!r}", op=name
    )


def _op_def(block: Any) -> OpDef:
    op_def = parse_op_signature(block.signature, block.__doc__)
    if op_def.name != block.__name__:
        raise InvalidArgumentError(f"Op block '{block.__name__}' has the signature of '{op_def.name}'", op=block.__name__)
    flags = {field: True for flag, field in _FLAGS.items() if getattr(block, flag, False)}
    return msgspec.structs.replace(op_def, **flags) if flags else op_def
