"""Sums of several tensors."""

from __future__ import annotations

from functools import reduce
from typing import Any, Final

from graphcore import dtypes
from graphcore.attrs import Attrs
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import add_n_shape
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import list_to_array, required_int
from graphcore.opset.framework.kernels import invalid, pass_through
from graphcore.opset.framework.type_sets import NUMBER
from graphcore.opset.numerics.tensor_list_values import added_lists
from graphcore.shapes import Shape

_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]]


def _sum_shape(c: InferenceContext) -> None:
    add_n_shape(c)
    if c.attr("T") is dtypes.variant:
        handle_data = [data for data in map(c.input_handle_shapes_and_types, range(c.num_inputs)) if data]
        for data in handle_data[:1]:
            c.set_output_handle_shapes_and_types(0, data)


@op
class AddN:
    """The sum of N tensors of one shape; of lists of tensors, element by element."""

    pure = True
    signature = f"AddN[N:int, T:{NUMBER[:-1]}, variant}}](inputs:N*T) -> (sum:T)"
    layer = "addition"
    commutative = True
    aggregate = True
    shape = _sum_shape
    can_fail = False
    examples = (Example([[_X, _X, _X]]), Example([[_X]]))

    def gradient(attrs: Attrs) -> str:
        """Pass the gradient of the sum to each input."""
        elements = ["dy"] * required_int(attrs, "N")
        return f"""[N:int, T:{{half, float, double}}](x:N*T, dy:T) -> (dx:N*T) {{
          dx = {list_to_array(attrs, elements)}
        }}"""

    def kernel(k: KernelContext) -> Kernel:
        add, count = k.xp.add, k.attr("N")
        if count == 1:
            return pass_through(k)
        if k.attr("T") is dtypes.variant:
            return lambda *lists: reduce(lambda total, other: added_lists(k, total, other), lists)

        def add_n(first: Any, second: Any, *others: Any) -> Any:
            if first.shape != second.shape or any(other.shape != first.shape for other in others):
                shapes = list(dict.fromkeys([str(Shape(term.shape)) for term in (first, second, *others)]))
                raise invalid(k, f"Inputs to operation {k.node_name} of type AddN must have the same size and shape.").advise(
                    "Feed values of one shape: the first dimension is the number of examples.",
                    required="inputs of the same shape",
                    came=" and ".join(shapes[:2]),
                )
            total = add(first, second)
            for other in others:
                total += other
            return total

        return add_n
