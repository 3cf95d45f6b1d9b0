"""Optional values, by which the branches of a conditional hand intermediate values to its gradient."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext, shape_to_handle
from graphcore.inference.shape_fns.common_shape_fns import scalar_shape
from graphcore.opset.framework.block import Example, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.kernels import invalid
from graphcore.shapes import Shape, as_shape

_NO_GRADIENT: Final = no_registered_gradient("it hands values from a conditional to its gradient, and is not differentiated itself")


class OptionalValue:
    """The value of an optional: the components, None without any.

    Attributes:
        shape: the shape of the handle itself.
    """

    __slots__ = ("components",)

    shape: tuple[int, ...] = ()

    def __init__(self, components: tuple[Any, ...] | None) -> None:
        self.components = components

    def __repr__(self) -> str:
        return "<no value>" if self.components is None else f"<optional of {len(self.components)} values>"


def _optional(k: KernelContext, handle: Any) -> OptionalValue:
    if not isinstance(handle, OptionalValue):
        raise invalid(k, f"required the handle of an optional value, got {type(handle).__name__}")
    return handle


@op
class OptionalFromValue:
    """The optional with these values."""

    signature = "OptionalFromValue[Toutput_types:list(type)](components:Toutput_types) -> (optional:variant)"
    shape = scalar_shape
    can_fail = False
    gradient = _NO_GRADIENT
    examples = (Example([[[1.0, 2.0]]], {"Toutput_types": ["float"]}),)

    def kernel(k: KernelContext) -> Kernel:
        return lambda *components: OptionalValue(components)


@op
class OptionalNone:
    """The optional without a value."""

    signature = "OptionalNone() -> (optional:variant)"
    shape = scalar_shape
    can_fail = False
    gradient = _NO_GRADIENT
    examples = (Example([]),)

    def kernel(k: KernelContext) -> Kernel:
        return lambda: OptionalValue(None)


@op
class OptionalHasValue:
    """True if the optional has values."""

    signature = "OptionalHasValue(optional:variant) -> (has_value:bool)"
    shape = scalar_shape
    gradient = _NO_GRADIENT
    examples = (Example([[1.0]]),)
    failures = (
        """
        one = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: 1>]()
        most = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 1>]()
        list = EmptyTensorList[element_dtype=float, shape_type=int32](one, most)
        it = OptionalHasValue(list)
        """,
    )

    def kernel(k: KernelContext) -> Kernel:
        return lambda handle: np.asarray(_optional(k, handle).components is not None)


@op
class OptionalGetValue:
    """The values of an optional that has some.

    output_types: their types.
    output_shapes: their shapes.
    """

    signature = "OptionalGetValue[output_types:list(type), output_shapes:list(shape) >= 1](optional:variant) -> (components:output_types)"
    gradient = _NO_GRADIENT
    examples = (Example([[1.0]], {"output_types": ["float"], "output_shapes": [Shape([2])]}),)
    failures = ("none = OptionalNone()\nit = OptionalGetValue[output_types={float}, output_shapes=[[2]]](none)",)

    def shape(c: InferenceContext) -> None:
        shapes = c.attr("output_shapes")
        if not isinstance(shapes, tuple) or len(shapes) != c.num_outputs:
            raise InvalidArgumentError(f"attr 'output_shapes' must give {c.num_outputs} shapes", op=c.op, node=c.node_name)
        for i, shape in enumerate(shapes):
            c.set_output(i, shape_to_handle(as_shape(shape)))

    def kernel(k: KernelContext) -> Kernel:
        def get(handle: Any) -> Any:
            components = _optional(k, handle).components
            if components is None:
                raise invalid(k, "The given optional does not have a value.")
            return components if len(components) > 1 else components[0]

        return get
