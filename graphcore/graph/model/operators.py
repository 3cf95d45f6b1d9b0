"""The operators of tensors, and of what stands for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcore.graph.model.default_stack import building

if TYPE_CHECKING:
    from graphcore.graph.model.node import Tensor


class Operators:
    """Python's operators, each of which adds a node and gives its tensor.

    `==` stays identity: tensors are keys of feed dictionaries.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def as_tensor(self) -> Tensor:
            """The tensor that stands for it in nodes."""

    def __add__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.add(own, other, "add")

    def __radd__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.add(other, own, "add")

    def __sub__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("Sub", own, other, "sub")

    def __rsub__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("Sub", other, own, "sub")

    def __mul__(self, other: object) -> Tensor:
        if hasattr(other, "with_values"):  # a sparse tensor, which multiplies itself
            return NotImplemented
        return building((own := self.as_tensor()).graph).builder.binary("Mul", own, other, "mul")

    def __rmul__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("Mul", other, own, "mul")

    def __truediv__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.truediv(own, other)

    def __rtruediv__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.truediv(other, own)

    def __floordiv__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("FloorDiv", own, other, "floordiv")

    def __rfloordiv__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("FloorDiv", other, own, "floordiv")

    def __mod__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("FloorMod", own, other, "mod")

    def __rmod__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("FloorMod", other, own, "mod")

    def __pow__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("Pow", own, other, "pow")

    def __rpow__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("Pow", other, own, "pow")

    def __matmul__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.matmul(own, other)

    def __rmatmul__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.matmul(other, own)

    def __lt__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("Less", own, other, "Less")

    def __le__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("LessEqual", own, other, "LessEqual")

    def __gt__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("Greater", own, other, "Greater")

    def __ge__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("GreaterEqual", own, other, "GreaterEqual")

    def __and__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("LogicalAnd", own, other, "and")

    def __or__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("LogicalOr", own, other, "or")

    def __xor__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.logical_xor(own, other)

    def __rand__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("LogicalAnd", other, own, "and")

    def __ror__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.binary("LogicalOr", other, own, "or")

    def __rxor__(self, other: object) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.logical_xor(other, own)

    def __neg__(self) -> Tensor:
        return building((own := self.as_tensor()).graph).apply_op("Neg", [own]).outputs[0]

    def __abs__(self) -> Tensor:
        return building((own := self.as_tensor()).graph).builder.absolute(own)

    def __invert__(self) -> Tensor:
        return building((own := self.as_tensor()).graph).apply_op("LogicalNot", [own]).outputs[0]
