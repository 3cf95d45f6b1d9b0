"""Cells for the rows about traced calls, and about numbers on a graph."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

HAS_TORCH: Final = find_spec("torch") is not None
SHOW: Final = "%graph model(*given)"
MLP: Final = """import torch
from torch import nn
model = nn.Sequential(*[part for _ in range(8) for part in (nn.Linear(64, 64), nn.ReLU())], nn.Linear(64, 10))
given = [torch.ones(8, 64)]
"""
RESNET: Final = """import torch, torchvision
from torch import nn
model, given = torchvision.models.resnet18().eval(), [torch.ones(1, 3, 224, 224)]
"""
LLAMA: Final = """import torch
from torch import nn
from transformers import LlamaConfig, LlamaModel
options = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=4, num_attention_heads=4, vocab_size=100)
model, given = LlamaModel(LlamaConfig(**options)).eval(), [torch.zeros(1, 16, dtype=torch.long)]
"""
COUNT: Final = "runs = globals().get('runs', 0) + 1\n"
MODULES: Final = {
    "MLP": (MLP, f"{COUNT}model[-1] = nn.Linear(64, 10 + runs % 2)", 300),
    "ResNet18": (RESNET, f"{COUNT}model.fc = nn.Linear(512, 10 + runs % 2)", 1_000),
    "Llama of 4 layers": (LLAMA, f"{COUNT}model.layers[3].mlp.act_fn = [nn.SiLU(), nn.ReLU()][runs % 2]", 1_500),
}
"""By title the cell that makes the module, the one that changes it at each run, and the budget in ms."""
LARGE: Final = """
import time
import graphcore as gc
from widgets import GraphView, add_overlay
graph = gc.Graph()
with graph.as_default():
    tensor = gc.placeholder(gc.float32, [8, 8], name="x")
    for scope in range(100):
        with gc.name_scope(f"block{scope // 10}/layer{scope % 10}"):
            for number in range(100):
                tensor = gc.tanh(tensor) if number % 3 else gc.add(tensor, tensor)
names = [node.name for node in graph.op_nodes()]
view = GraphView(graph)
display(view)
"""
NUMBERS: Final = """
runs = globals().get("runs", 0) + 1
start = 1000 * time.time()
overlay = add_overlay(graph, {name: 1.0 + place % (97 + runs) for place, name in enumerate(names)}, title="Latency", unit="µs")
view.choose(lens=overlay.name)
view.refresh(sent_at=start)
"""
"""Puts a number on each of 10,000 nodes. Its time begins before the numbers are put on the graph."""
