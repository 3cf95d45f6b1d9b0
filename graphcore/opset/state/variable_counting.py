"""Counting with a variable, up to a limit."""

from __future__ import annotations

from typing import Any

from graphcore.errors import OutOfRangeError
from graphcore.inference import InferenceContext
from graphcore.kernel_context import KernelContext, RefVariable
from graphcore.opset.framework.block import Example, Kernel, no_registered_gradient, op
from graphcore.opset.framework.gradient_text import required_int
from graphcore.opset.framework.type_sets import INDEX


@op
class CountUpTo:
    """The value of a variable before it is increased by 1; OutOfRangeError at the limit.

    ref: the variable, a scalar
    limit: the first value that is not returned.
    """

    signature = f"CountUpTo[limit:int, T:{INDEX}](ref:Ref(T)) -> (output:T)"
    device_types = ("CPU",)
    writes_input = True
    gradient = no_registered_gradient("it counts")
    examples = (Example([2], {"limit": 5}, outputs=[2]),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.with_rank(c.input(0), 0))

    def kernel(k: KernelContext) -> Kernel:
        xp, limit = k.xp, required_int(k.attrs, "limit")

        def count(ref: RefVariable) -> Any:
            with ref.lock:
                now = ref.read()
                if now >= limit:
                    raise OutOfRangeError(f"Reached limit of {limit}", op=k.op, node=k.node_name, source=k.source)
                ref.assign(xp.asarray(now + now.dtype.type(1)))
            return now

        return count
