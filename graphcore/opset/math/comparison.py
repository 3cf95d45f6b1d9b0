"""Comparisons of two values, with broadcasting."""

from __future__ import annotations

from typing import Any, Final

from graphcore.opset.framework.binary import binary
from graphcore.opset.framework.block import Example, Kernel, KernelContext
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.kernels import ufunc
from graphcore.opset.framework.type_sets import REAL
from graphcore.traits import declares_traits

_EXAMPLES: Final = (Example([[[1.0, 2.0], [3.0, 4.0]], [[2.0], [3.0]]]), Example([[1, 2, 3], 2]))


def _equality(name: str, unequal_shapes: bool) -> Any:
    """Equal and NotEqual: an attr decides if incompatible shapes are an error or unequal."""

    @declares_traits(reuses_input=True)
    def kernel(k: KernelContext) -> Kernel:
        compare: Kernel = getattr(k.xp, name)
        if k.attr("incompatible_shape_error"):
            return compare
        answer = k.xp.asarray(unequal_shapes)

        def lenient(x: Any, y: Any) -> Any:
            try:
                return compare(x, y)
            except ValueError:
                return answer

        return lenient

    return kernel


_TYPES: Final = "type, incompatible_shape_error:bool = true"
binary(
    "Equal",
    "True where x and y are equal.",
    _equality("equal", unequal_shapes=False),
    *_EXAMPLES,
    Example([[b"a", b"b"], b"b"], outputs=[[False, True]]),
    types=_TYPES,
    output="bool",
    commutative=True,
    family=Elementwise,
)
binary(
    "NotEqual",
    "True where x and y differ.",
    _equality("not_equal", unequal_shapes=True),
    *_EXAMPLES,
    Example([[b"a", b"b"], b"b"], outputs=[[True, False]]),
    types=_TYPES,
    output="bool",
    commutative=True,
    family=Elementwise,
)
binary("Less", "True where x is less than y.", ufunc("less"), *_EXAMPLES, types=REAL, output="bool")
binary("LessEqual", "True where x is less than y or equal to it.", ufunc("less_equal"), *_EXAMPLES, types=REAL, output="bool")
binary("Greater", "True where x is greater than y.", ufunc("greater"), *_EXAMPLES, types=REAL, output="bool")
binary("GreaterEqual", "True where x is greater than y or equal to it.", ufunc("greater_equal"), *_EXAMPLES, types=REAL, output="bool")
