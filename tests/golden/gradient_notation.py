"""Expands the notation of gradient_bodies.txt to full gradient functions, by op signatures alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import graphcore as gc

FILE: Final = Path(__file__).with_name("gradient_bodies.txt")
TYPES: Final = "[T:{half, float, double}]"
FRAMES: Final = {
    "Unary": f"(x:T, dy:T) -> (dx:T) {TYPES}",
    "Binary": f"(x:T, y:T, dz:T) -> (dx:T, dy:T) {TYPES}",
    "Reduction": f"(x:T, i:int32, dy:T) -> (dx:T, di:int32) {TYPES}",
}
BEFORE: Final = {
    "Binary": "sx=Shape(x); sy=Shape(y); ",
    "Reduction": (
        "x_shape=Shape(x); x_rank=Rank(x); i_shape=Shape{T=int32}(i); C(zero,0); C(one,1); "
        "stitch_val1=Fill{T=int32}(i_shape:output:0,one:output:0); "
        "y_shape=DynamicStitch{N=2,T=int32}(stitch_idx0:output:0,i,x_shape:output:0,stitch_val1:output:0); "
        "tile_scaling=Div{T=int32}(x_shape:output:0,y_shape:merged:0); di=zeros32(i); "
    ),
}
AFTER: Final = {
    "Binary": (
        "; {rx,ry}=BroadcastGradientArgs{}(sx,sy); sum_gx=Sum(gx,rx); dx=Reshape(sum_gx,sx); sum_gy=Sum(gy,ry); dy=Reshape(sum_gy,sy)"
    ),
    "Reduction": "; stitch_idx0=Range{}(zero:output:0,x_rank:output:0,one:output:0)",
}
_SIGNATURE: Final = re.compile(r"(\w*)\((.*)\) -> \((.*)\) \[(.*)\]$")
_NODE: Final = re.compile(r"(?P<rets>\{[^}]*\}|\w+)=(?P<op>\w+)(?P<attrs>\{.*\})?\((?P<inputs>[^()]*)\)(?:@(?P<control>\w+))?$")
_KINDS: Final = {"f": "float", "int64": "int64"}


@dataclass
class Entry:
    """One gradient: the op, the attrs of the forward node, the frame or signature, the body, the returns."""

    op: str
    attrs: dict[str, str]
    frame: str
    body: str = ""
    returns: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return "-".join([self.op, *(f"{key}={value}" for key, value in self.attrs.items())])


def entries() -> list[Entry]:
    """The entries of the file, in order."""
    found: list[Entry] = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith(("#", "~", "None ")):
            continue
        if not line.startswith(" "):
            head, _, frame = line.partition(" | ")
            op, *attrs = head.split(" ")
            found.append(Entry(op, dict(_pair(part) for part in attrs), frame))
        elif line.startswith("  returns "):
            found[-1].returns.update(_pair(part) for part in line.removeprefix("  returns ").split("; "))
        else:
            found[-1].body = line.strip()
    return found


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def without_gradient() -> list[str]:
    """The ops without a gradient according to the file."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return [name for line in lines if line.startswith("None ") for name in line.split()[1:]]


def full_text(entry: Entry) -> str:
    """The printed gradient function."""
    found = _SIGNATURE.match(FRAMES.get(entry.frame, entry.frame))
    assert found is not None, entry.frame
    name, inputs, outputs, attrs = found.groups()
    body = BEFORE.get(entry.frame, "") + entry.body + AFTER.get(entry.frame, "")
    known = {part.partition(":")[0]: part.partition(":")[0] for part in inputs.split(", ")}
    statements = [_spelled_out(text) for text in _split(body, "; ")]
    for match in statements:
        known.update(_outputs(match))
    lines = [f"  {_printed(match, known)}" for match in statements]
    returned = [part.partition(":")[0] for part in outputs.split(", ")]
    lines += [f"  return {ret} = {entry.returns.get(ret, known[ret])}" for ret in returned]
    return "\n".join(["", f"{name or '_'}[{attrs}]({inputs}) -> ({outputs}) {{", *lines, "}", ""])


def _split(text: str, by: str) -> Iterator[str]:
    """Split a text at top level; bracketed parts stay whole."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "{[(") - (letter in "}])")
        if depth == 0 and text.startswith(by, at):
            yield text[start:at]
            start = at + len(by)
    yield text[start:]


def _spelled_out(statement: str) -> re.Match[str]:
    """Expand the abbreviations of a statement."""
    text = "one=Cast{float->$T}(const)" if statement == "one" else statement
    if text.startswith("C("):
        name, _, value = text[2:-1].partition(",")
        text = f"{name}=Const{{{_constant(value)}}}()"
    text = re.sub(r"zeros32\(", "ZerosLike{T=int32}(", text)
    text = re.sub(r"Cast\{(\S+?)->(\S+?)\}", r"Cast{SrcT=\1,DstT=\2}", text)
    found = _NODE.match(text)
    assert found is not None, statement
    return found


def _constant(value: str) -> str:
    if value.startswith("["):
        return f"dtype=int32,value=Tensor<type: int32 shape: [1] values: {value[1:-1]}>"
    if value.endswith("f"):
        number = value[:-1].removesuffix(".0")
        return f"dtype=float,value=Tensor<type: float shape: [] values: {number}>"
    kind, _, number = value.rpartition(" ")
    return f"dtype={kind or 'int32'},value=Tensor<type: {kind or 'int32'} shape: [] values: {number}>"


def _names(match: re.Match[str]) -> list[str]:
    return match["rets"].strip("{}").split(",")


def _outputs(match: re.Match[str]) -> dict[str, str]:
    """The tensor for each name made by a statement: `node:output argument:0`."""
    names, args = _names(match), gc.op_registry.look_up_op_def(match["op"]).output_arg
    return {name: f"{names[0]}:{arg.name}:0" for name, arg in zip(names, args, strict=True)}


def _printed(match: re.Match[str], known: dict[str, str]) -> str:
    given = "T=$T" if match["attrs"] is None and match["op"] != "Const" else (match["attrs"] or "{}")[1:-1]
    attrs = ", ".join(sorted(part for part in _split(given, ",") if part))
    inputs = ", ".join([known.get(part, part) for part in match["inputs"].split(",") if part])
    control = f" @ {match['control']}" if match["control"] else ""
    return f"{_names(match)[0]} = {match['op']}{f'[{attrs}]' if attrs else ''}({inputs}){control}"
