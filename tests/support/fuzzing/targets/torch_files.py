"""PyTorch files: exported programs, TorchScript, and saved states, with damage in their members."""

from __future__ import annotations

import copy
import functools
import io
import json
import random
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Final

from tests.support.fuzzing.fuzz_inputs import damaged
from tests.support.fuzzing.opening import open_as_a_viewer
from tests.support.fuzzing.target import Target, maybe_damaged

_FILES: Final = Path(__file__).parents[3] / "data" / "frontends"
_NAMES: Final = (
    *("net.pt2", "branching.pt2", "looping.pt2", "lstm.pt2", "scripted.pt", "scripted.pt", "traced.pt"),
    *("state.pt", "net_state.pt", "state_legacy.pth", "whole_module.pt"),
)
_VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    -1,
    0,
    2**63,
    -(2**70),
    1.5,
    "",
    "x",
    "a.b/c",
    [],
    [None],
    {},
    {"as_tensor": {"name": "x"}},
    [[[]]],
    "é\n" * 50,
)
_MAX_WEIGHTS: Final = 200


@functools.cache
def _members(name: str) -> tuple[tuple[str, bytes], ...]:
    with zipfile.ZipFile(_FILES / name) as archive:
        return tuple([(member, archive.read(member)) for member in archive.namelist()])


def _changed_json(data: bytes, rng: random.Random) -> bytes:
    """JSON with other values at some places."""
    root = json.loads(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place: Any = root
        for _ in range(rng.randrange(2, 12)):
            keys = list(place) if isinstance(place, dict) else list(range(len(place))) if isinstance(place, list) else []
            if not keys:
                break
            key = rng.choice(keys)
            if rng.random() < 0.15 or not isinstance(place[key], dict | list):
                if rng.random() < 0.3 and isinstance(place, dict):
                    place.pop(key)
                else:
                    place[key] = copy.deepcopy(rng.choice(_VALUES))
                break
            place = place[key]
    return json.dumps(root).encode()


def _deep(rng: random.Random) -> bytes:
    """A pickle or JSON with much nesting."""
    depth = rng.choice((100, 5_000, 200_000))
    return rng.choice(
        (b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b".", b"[" * depth + b"]" * depth, b"\x80\x02)" + b"\x85" * depth + b".")
    )


def make(rng: random.Random) -> bytes:
    """A file with damage in one member or in the archive."""
    name = rng.choice(_NAMES)
    if name.endswith(".pth"):
        data = (_FILES / name).read_bytes()
        return damaged(data, data, rng)
    members = list(_members(name))
    told = [number for number, (member, _) in enumerate(members) if member.endswith((".json", ".pkl", ".py"))]
    for number in rng.sample(told, min(len(told), rng.choice((1, 1, 2)))):
        member, data = members[number]
        if rng.random() < 0.03:
            data = _deep(rng)
        elif member.endswith(".json") and rng.random() < 0.8:
            data = _changed_json(data, rng)
        else:
            data = damaged(data, rng.choice(members)[1] or data, rng)
        members[number] = member, data
    if rng.random() < 0.2:
        members.pop(rng.randrange(len(members)))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for member, data in members:
            archive.writestr(zipfile.ZipInfo(member), data, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    return maybe_damaged(file.getvalue(), rng, 0.15)


def check(data: bytes) -> None:
    """Open the file, show it, and read some tensors and bodies. An error of one of them must not hide those of the others."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        open_as_a_viewer(Path(file.name), _MAX_WEIGHTS)


TORCH_FILES: Final = Target(make, check)
