"""Ops for the functions of these tests, in a separate registry."""

from __future__ import annotations

from typing import Final

from graphcore.definitions import OpDef
from graphcore.registry import OpRegistry
from graphcore.text import parse_op_signature

NUMBERS: Final = "{float, double, int32, int64}"
SIGNATURES: Final = (
    f"One[T:{NUMBERS}]() -> (y:T)",
    "Map[T:type, U:type, N:int >= 1](x:N*T) -> (y:N*U)",
    f"HasDefaultType[T:{NUMBERS} = float]() -> (out:T)",
    "Cond[Tin:list(type), out_types:list(type), cond:func, then_branch:func, else_branch:func](input:Tin) -> (output:out_types)",
    "NoOp() -> ()",
    "Identity[T:type](input:T) -> (output:T)",
    "IdentityN[T:list(type)](input:T) -> (output:T)",
    "Add[T:{numbertype, string}](x:T, y:T) -> (z:T)",
    "Sub[T:numbertype](x:T, y:T) -> (z:T)",
    "Mul[T:numbertype](x:T, y:T) -> (z:T) @commutative",
    "Div[T:numbertype](x:T, y:T) -> (z:T)",
    "Neg[T:numbertype](x:T) -> (y:T)",
    "Square[T:numbertype](x:T) -> (y:T)",
    "Sign[T:numbertype](x:T) -> (y:T)",
    "AddN[N:int, T:{numbertype, variant}](inputs:N*T) -> (sum:T) @aggregate @commutative",
    "Const[value:tensor, dtype:type]() -> (output:dtype)",
    "Cast[SrcT:type, DstT:type, Truncate:bool = false](x:SrcT) -> (y:DstT)",
    "Split[num_split:int >= 1, T:type](split_dim:int32, value:T) -> (output:num_split*T)",
    "_ListToArray[Tin:list(type), T:type, N:int >= 1](input:Tin) -> (output:N*T)",
    "_ArrayToList[T:type, N:int >= 1, out_types:list(type)](input:N*T) -> (output:out_types)",
    "Shape[T:type, out_type:{int32, int64} = int32](input:T) -> (output:out_type)",
    "Rank[T:type](input:T) -> (output:int32)",
    "Fill[T:type, index_type:{int32, int64} = int32](dims:index_type, value:T) -> (output:T)",
    "Reshape[T:type, Tshape:{int32, int64} = int32](tensor:T, shape:Tshape) -> (output:T)",
    "Sum[keep_dims:bool = false, T:numbertype, Tidx:{int32, int64} = int32](input:T, reduction_indices:Tidx) -> (output:T)",
    "Tile[T:type, Tmultiples:{int32, int64} = int32](input:T, multiples:Tmultiples) -> (output:T)",
    "ZerosLike[T:type](x:T) -> (y:T)",
    "Range[Tidx:realnumbertype = int32](start:Tidx, limit:Tidx, delta:Tidx) -> (output:Tidx)",
    "DynamicStitch[N:int >= 1, T:type](indices:N*int32, data:N*T) -> (merged:T)",
    "BroadcastGradientArgs[T:{int32, int64} = int32](s0:T, s1:T) -> (r0:T, r1:T)",
    "Unpack[num:int >= 0, T:type, axis:int = 0](value:T) -> (output:num*T)",
    "Placeholder[dtype:type, shape:shape = <unknown>]() -> (output:dtype)",
    "Conv2D[T:{half, float, double}, strides:list(int), padding:{'SAME', 'VALID'}](input:T, filter:T) -> (output:T)",
    "Dropout[rate:float = 0.5](x:float) -> (y:float)",
    "Assign[T:type](ref:Ref(T), value:T) -> (output_ref:Ref(T))",
    "RandomUniform[dtype:{half, float, double}, T:{int32, int64}](shape:T) -> (output:dtype) @stateful",
    "ReadVariableOp[dtype:type](resource:resource) -> (value:dtype)",
)
"""They resemble the ops of the same names; One, Map, HasDefaultType and Cond exist only here."""

registry: Final = OpRegistry()
for _signature in SIGNATURES:
    registry.register(parse_op_signature(_signature))


def op_def(name: str) -> OpDef:
    """The OpDef of op `name`."""
    return registry.look_up_op_def(name)
