"""The traits of an op as a line of text for users."""

from __future__ import annotations

from typing import Final

from graphcore.registry import OpRegistration
from graphcore.traits import FailsOn

_MEMORY: Final = {
    "view": "gives a view of its input",
    "strided view": "gives a view of its input",
    "broadcast view": "gives a view that repeats its input",
    "reshaped view": "gives a view of its input, or a copy if that has gaps",
    "alias": "passes its inputs on without a copy",
}
_COST: Final = {
    "transcendental": "slower than arithmetic",
    "product": "costs as much as a matrix product",
    "convolution": "costs a window per element",
    "pairs": "compares or combines many pairs of elements",
    "contraction": "costs the product of all its sizes",
    "cubic": "takes cubic time",
    "transform": "costs as much as a Fourier transform",
    "sort": "costs as much as sorting",
}
_GRADIENT: Final = {"stop": "stops gradients", "none": "has no gradient"}
_READS: Final = {"whole": "reads a variable", "rows": "reads rows of a variable"}


def describe_traits(registration: OpRegistration) -> str:
    """The traits of an op, such as "element by element; cannot fail"; "" if nothing is known."""
    if registration.is_function or registration.is_opaque:
        return ""
    traits = registration.traits
    parts = [
        "element by element" if traits.elementwise else "",
        "inputs in any order" if registration.op_def.is_commutative else "",
        _COST.get(traits.cost, ""),
        "needs only shapes" if traits.needs_only_shapes else "",
        _READS.get(traits.reads_variable, ""),
        "changes its variable" if traits.writes_input else "",
        "draws random numbers" if traits.draws else "",
        "keeps or takes values kept by other ops" if traits.stores else "",
        "reads only once" if traits.reads_once else "",
        "returns its input unchanged, or fails" if traits.only_checks else "",
        _GRADIENT.get(registration.gradient_kind, "") if registration.op_def.input_arg else "",
        _memory(registration),
        _failure(traits.can_fail),
    ]
    return "; ".join(filter(None, parts))


def _memory(registration: OpRegistration) -> str:
    inputs, outputs = registration.op_def.input_arg, registration.op_def.output_arg
    if registration.traits.reuses_input and {arg.type_attr or arg.type for arg in inputs} & {outputs[0].type_attr or outputs[0].type}:
        return "may reuse its input's memory"
    return _MEMORY.get(registration.traits.memory, "")


def _failure(can_fail: bool | FailsOn) -> str:
    """The words on failures; "" for an op that can fail on any inputs, the default."""
    if not isinstance(can_fail, FailsOn):
        return "" if can_fail else "cannot fail"
    values = [f"wrong values of {' or '.join(can_fail.values)}"] if can_fail.values else []
    kinds = [
        text for text, holds in (("integers", can_fail.integers), ("empty arrays", can_fail.empty), ("vectors", can_fail.vectors)) if holds
    ]
    return f"can fail only on {' or '.join(values + kinds)}"
