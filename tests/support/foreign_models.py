"""Models of other frameworks, made here as frontends read them."""

from __future__ import annotations

from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, InputRef, ModuleCall, Port, Size, WeightRef

WIDTH = 64
Modules = tuple[ModuleCall, ...]


class Builder:
    """Builds the nodes of one graph."""

    def __init__(self) -> None:
        self.nodes: list[ForeignNode] = []

    def add(
        self, op: str, *inputs: str, modules: Modules = (), shape: tuple[Size, ...] | None = ("batch", 16, WIDTH), name: str = ""
    ) -> str:
        """A node; its name."""
        name = name or f"n{len(self.nodes)}"
        refs: tuple[InputRef, ...] = tuple([(each, 0) for each in inputs])
        kind = "input" if op == "f.Input" else "op"
        self.nodes.append(ForeignNode(name, op, refs, (Port(name, "float32", shape),), modules=modules, kind=kind))
        return name

    def weight(self, name: str, *shape: int) -> str:
        """A parameter."""
        held = WeightRef("float32", shape)
        self.nodes.append(ForeignNode(name, "f.Weight", (), (Port(name, "float32", shape),), kind="parameter", weight=held))
        return name

    def constant(self, *shape: int) -> str:
        """A constant."""
        name = self.weight(f"n{len(self.nodes)}", *shape)
        self.nodes[-1].kind = "constant"
        return name

    def linear(self, x: str, path: str, modules: Modules) -> str:
        """A product with its own weight."""
        inside = (*modules, ModuleCall(path, "Linear"))
        return self.add("f.MatMul", x, self.weight(f"{path}.weight", WIDTH, WIDTH), modules=inside)

    def done(self, output: str, functions: dict[str, ForeignFunction] | None = None) -> ForeignGraph:
        """The graph."""
        main = ForeignFunction("main", outputs=((output, 0),), output_names=("result",), nodes=self.nodes)
        return ForeignGraph("model", main, functions=functions or {})


def stages() -> ForeignGraph:
    """A network of three stages of two blocks each; the first block of a stage has a branch of its own."""
    b = Builder()
    x = b.add("f.Input", name="image", shape=(1, 3, 32, 32))
    for stage in range(3):
        shape = (1, 16 << stage, 64 >> stage, 64 >> stage)
        for block in range(2):
            path = f"stage{stage}.{block}"
            modules = (ModuleCall(f"stage{stage}", "Sequential"), ModuleCall(path, "Block"))
            start = x
            for number in range(3):
                x = b.add("f.Conv", x, b.weight(f"{path}.conv{number}.weight", 16, 16, 3, 3), modules=modules, shape=shape)
                x = b.add("f.BatchNormalization", x, modules=modules, shape=shape)
                x = x if number == 2 else b.add("f.Relu", x, modules=modules, shape=shape)
            if not block:
                start = b.add("f.Conv", start, b.weight(f"{path}.down.weight", 16, 16, 1, 1), modules=modules, shape=shape)
                start = b.add("f.BatchNormalization", start, modules=modules, shape=shape)
            x = b.add("f.Relu", b.add("f.Add", x, start, modules=modules, shape=shape), modules=modules, shape=shape)
    return b.done(x)


def transformer(layers: int = 4, *, named: bool = True) -> ForeignGraph:
    """A decoder whose layers share a mask; its modules have names unless `named` is false."""
    b = Builder()
    x = b.add("f.Input", name="ids")
    scores = b.add("f.Range", shape=(16, 16))
    mask = b.add("f.Where", b.add("f.Less", scores, shape=(16, 16)), shape=(1, 1, 16, 16), name="mask")
    root = (ModuleCall("model", "Decoder"),)
    for layer in range(layers):
        path = f"model.layers.{layer}"
        outer = (*root, ModuleCall(path, "DecoderLayer"))
        attention = (*outer, ModuleCall(f"{path}.self_attn", "Attention"))
        start = len(b.nodes)
        norm = b.add("f.LayerNormalization", x, b.weight(f"{path}.norm.weight", WIDTH), modules=outer)
        q, k, v = (b.linear(norm, f"{path}.self_attn.{name}_proj", attention) for name in "qkv")
        weights = b.add("f.Add", b.add("f.MatMul", q, k, modules=attention), mask, modules=attention)
        mixed = b.add("f.MatMul", b.add("f.Softmax", weights, modules=attention), v, modules=attention)
        x = b.add("f.Add", x, b.linear(mixed, f"{path}.self_attn.o_proj", attention), modules=outer)
        mlp = (*outer, ModuleCall(f"{path}.mlp", "MLP"))
        up = b.add("f.Gelu", b.linear(x, f"{path}.mlp.up", mlp), modules=mlp)
        x = b.add("f.Add", x, b.linear(up, f"{path}.mlp.down", mlp), modules=outer)
        if not named:
            for node in b.nodes[start:]:
                node.modules = ()
    return b.done(x)


def perceptron(layers: int = 5) -> ForeignGraph:
    """A chain of products and activations that ends in probabilities, without names."""
    b = Builder()
    x = b.add("f.Input", name="x", shape=("batch", WIDTH))
    for layer in range(layers):
        x = b.add("f.Relu", b.add("f.Gemm", x, b.weight(f"w{layer}", WIDTH, WIDTH), shape=("batch", WIDTH)), shape=("batch", WIDTH))
    return b.done(b.add("f.Softmax", x, shape=("batch", WIDTH)))


def branch() -> ForeignGraph:
    """A choice between two bodies that take the same tensor."""
    bodies = {}
    for role, op in (("then", "f.Neg"), ("else", "f.Relu")):
        inner = Builder()
        result = inner.add(op, inner.add("f.Input", name="a"))
        bodies[role] = ForeignFunction(f"{role}_body", (Port("a", "float32"),), ((result, 0),), ("r",), inner.nodes)
    b = Builder()
    x, c = b.add("f.Input", name="x"), b.add("f.Input", name="c", shape=())
    choice = b.add("f.If", c, x, name="choice")
    b.nodes[-1].bodies = {"then": "then", "else": "else"}
    return b.done(choice, bodies)


def two_networks() -> ForeignGraph:
    """A choice between two networks of three modules each, which take five weights from outside."""
    bodies = {}
    for role in ("then", "else"):
        inner = Builder()
        x, *weights = [inner.add("f.Input", name=name) for name in "xabcde"]
        for part, size in (("encoder", 5), ("decoder", 8), ("head", 4)):
            for number in range(size):
                x = inner.add(("f.Conv", "f.Relu", "f.Tanh")[number % 3], x, weights[number % 5], modules=(ModuleCall(part, "Part"),))
        ports = tuple([Port(name, "float32") for name in "xabcde"])
        bodies[role] = ForeignFunction(f"{role}_body", ports, ((x, 0),), ("r",), inner.nodes)
    b = Builder()
    x, flag = b.add("f.Input", name="x"), b.add("f.Input", name="flag", shape=())
    weights = [b.weight(name, WIDTH) for name in "abcde"]
    choice = b.add("f.If", flag, x, *weights, name="choice")
    b.nodes[-1].bodies = {"then": "then", "else": "else"}
    return b.done(choice, bodies)
