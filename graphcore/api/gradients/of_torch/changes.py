"""Parameters that a computation of PyTorch changes in place, and tensors that share their memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from graphcore.api.gradients.of_torch.forward import Forward
from graphcore.frontends.torch_calls.backward import storage_of
from graphcore.frontends.torch_calls.copying import Copies
from graphcore.frontends.torch_calls.recording import tensors_of

_MOST: Final = 4
_ALIASES: Final = frozenset({"data", "detach"})


def shared_with(copies: Copies, x: Any) -> str:
    """The parameter that a tensor shares its memory with, by its name in the computation, "" for none."""
    return next((name for name, twin in _parameters(copies) if storage_of(copies.original[id(twin)]) == storage_of(x)), "")


def changed_in_place(forward: Forward, copies: Copies, x: Any, name: str) -> list[str]:
    """Sentences on changes in place of a tensor, and of parameters where autograd does not notice.

    Args:
        forward: the calls of the computation.
        copies: the copies on which it was made.
        x: the copy of the tensor that is asked about.
        name: its name.
    """
    names = {storage_of(twin): path for path, twin in _parameters(copies)} | {storage_of(x): name}
    facts = forward.recorder.facts
    hidden = {id(tensor) for one in facts.values() if one.function == "data" for tensor in one.outputs}
    used: set[int] = set()
    notes: list[str] = []
    for node, one in facts.items():
        memory = 0 if one.changed is None else storage_of(one.changed)
        if memory in names:
            is_silent = id(one.changed) in hidden and memory in used
            if is_silent or memory == storage_of(x):
                notes.append(_note(forward, node, names[memory], is_silent=is_silent))
        if one.function not in _ALIASES:
            used.update(storage_of(tensor) for tensor in tensors_of([*one.args, *one.kwargs.values()]))
    return list(dict.fromkeys(notes))[:_MOST]


def _note(forward: Forward, node: str, parameter: str, *, is_silent: bool) -> str:
    source = forward.source(node)
    at = "" if source is None else f" ({source})"
    more = " after it was used: autograd does not notice that through .data, and takes the new values for the old ones" if is_silent else ""
    return f"'{parameter}' is changed in place by '{forward.shown(node)}'{at}{more}."


def _parameters(copies: Copies) -> Iterator[tuple[str, Any]]:
    for prefix, module in copies.modules:
        for path, twin in module.named_parameters():
            if id(twin) in copies.original:
                yield f"{prefix}.{path}" if prefix else path, twin
