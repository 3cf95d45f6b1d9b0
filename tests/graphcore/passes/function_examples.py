"""Functions to call, and graphs as lists of lines in canonical order."""

from __future__ import annotations

import graphcore as gc
from graphcore.text import debug_string

NUMBERS = "{float, double, int32, int64}"
TWO = "Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 2>]()"
X_TIMES_TWO = f"""XTimesTwo[T:{NUMBERS}](x:T) -> (y:T) {{
  two = {TWO}
  scale = Cast[DstT=$T, SrcT=int64](two:output:0)
  y = Mul[T=$T](x, scale:y:0)
  return y = y:z:0
}}"""
X_TIMES_FOUR = f"""XTimesFour[T:{NUMBERS}](x:T) -> (y:T) @stateless {{
  x2 = XTimesTwo[T=$T](x)
  y = XTimesTwo[T=$T](x2:y:0)
  return y = y:y:0
}}"""
X_TIMES_16 = f"""XTimes16[T:{NUMBERS}](x:T) -> (y:T) @stateless {{
  x4 = XTimesFour[T=$T](x)
  y = XTimesFour[T=$T](x4:y:0)
  return y = y:y:0
}}"""
ADD_AND_MUL = """AddAndMul(i:int32) -> (o:int32) {
  add = Add[T=int32](i, i)
  ret = Mul[T=int32](i, i)
  @return must_execute = add
  return o = ret:z:0
}"""


def library(*texts: str) -> gc.FunctionLibraryDefinition:
    """A library of these functions, each of which may call those before it."""
    made = gc.FunctionLibraryDefinition()
    for text in texts:
        made.add_function_def(gc.parse_function(text, made.look_up_op_def))
    return made


def times_library() -> gc.FunctionLibraryDefinition:
    return library(X_TIMES_TWO, X_TIMES_FOUR, X_TIMES_16)


def arg(graph: gc.Graph, name: str, index: int = 0, dtype: gc.DType = gc.float32) -> gc.Tensor:
    return graph.apply_op("_Arg", attrs={"T": dtype, "index": index}, name=name).outputs[0]


def lines(graph: gc.Graph) -> set[str]:
    """One line for each node, including arguments and returns."""
    return {debug_string(node.node_def).replace("[T=float]", "").replace("[T=int32]", "") for node in graph.nodes}
