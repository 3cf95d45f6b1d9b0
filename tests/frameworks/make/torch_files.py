"""Writes the PyTorch files in `tests/data/frontends`: small models in each form.

Run it with the Python of the frameworks' environment: `python tests/frameworks/make/torch_files.py`.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim, export, save

OUT = Path(__file__).parents[2] / "data" / "frontends"
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


class Branching(nn.Module):  # type: ignore[misc]  # torch is absent where types are checked
    """A branch, a part without gradients, lists, several results, buffers, a constant, a free size."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(2))
        self.register_buffer("shift", torch.ones(4), persistent=False)
        self.scale = torch.arange(4.0)

    def forward(self, x: Any) -> Any:
        self.count.add_(1)
        z = torch.cond(x.sum() > 0, lambda x: self.linear(x).relu(), lambda x: x.sin(), (x,))
        left, right = torch.split(z, 2, dim=1)
        with torch.no_grad():
            y = torch.cat([left, right], 1) * self.scale + self.shift
        values, places = torch.topk(y, 2)
        return {"values": values, "places": places, "sum": y + 1.5}, x.shape[0]


class Looping(nn.Module):  # type: ignore[misc]  # as above
    """A loop with a weight in its body."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, i: Any, x: Any) -> Any:
        return while_loop(lambda i, _x: i < 5, lambda i, x: (i + 1, self.linear(x).tanh()), (i, x))


class Scripted(nn.Module):  # type: ignore[misc]  # as above
    """A branch on a value, a loop, and a list."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.second = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor, steps: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
        kept: list[torch.Tensor] = []
        for i in range(steps):
            x = self.first(x) + i
            kept.append(x)
        if bool(x.sum() > 0):  # noqa: SIM108 - a branch of TorchScript
            y = self.second(x)
        else:
            y = x[:, :2]
        return y, kept


def without_paths(data: bytes) -> bytes:
    """The data with other folders, of names as long as before, in the places of this machine's."""
    for path, word in ((Path(torch.__file__).parents[1], "packages"), (Path(__file__).parents[3], "project")):
        old = str(path).encode()
        data = data.replace(old, b"/" + word.encode().ljust(len(old) - 1, b"_")[: len(old) - 1])
    return data


def small(data: bytes, without: tuple[str, ...] = ()) -> bytes:
    """An archive with compressed members, without some of them."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            if not any(part in info.filename for part in (*without, "sample_inputs", "serialization_id")):
                new.writestr(zipfile.ZipInfo(info.filename, ZIP_TIME), without_paths(old.read(info)), zipfile.ZIP_DEFLATED)
    return target.getvalue()


def program(model: nn.Module, arguments: tuple[Any, ...], dynamic: Any = None, without: tuple[str, ...] = ()) -> bytes:
    """An exported program as a small file."""
    target = io.BytesIO()
    save(export(model.eval(), arguments, dynamic_shapes=dynamic), target)
    return small(target.getvalue(), without)


def saved(value: Any, **options: Any) -> bytes:
    """The bytes that torch.save writes."""
    target = io.BytesIO()
    torch.save(value, target, **options)
    return target.getvalue()


def main() -> None:
    """Write all files."""
    torch.manual_seed(0)
    OUT.mkdir(parents=True, exist_ok=True)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)).eval()
    image = torch.randn(1, 3, 8, 8)
    script = io.BytesIO()
    torch.jit.save(torch.jit.script(Scripted().eval()), script)
    traced = io.BytesIO()
    torch.jit.save(torch.jit.trace(net, image), traced)
    files = {
        "branching.pt2": program(Branching(), (torch.randn(3, 4),), ({0: Dim("batch", min=2, max=64)},)),
        "looping.pt2": program(Looping(), (torch.tensor(0), torch.randn(3, 4))),
        "lstm.pt2": program(nn.LSTM(3, 4, 2, batch_first=True), (torch.randn(2, 5, 3),)),
        "net.pt2": program(net, (image,)),
        "scripted.pt": small(script.getvalue()),
        "traced.pt": small(traced.getvalue()),
        "state.pt": small(saved({"epoch": 3, "model": net.state_dict(), "half": torch.arange(6.0).reshape(2, 3).bfloat16().t()})),
        "net_state.pt": small(saved(net.state_dict())),
        "state_legacy.pth": saved(net.state_dict(), _use_new_zipfile_serialization=False),
        "whole_module.pt": small(saved(net)),
    }
    for name, data in files.items():
        (OUT / name).write_bytes(data)


if __name__ == "__main__":
    main()
