"""PyTorch's saved states: tensors without a graph, in the form of zip archives and in the older form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, ModuleCall, Port
from graphcore.frontends.torch_reader.archive import Archive, inner_names
from graphcore.frontends.torch_reader.legacy import BEGINNING, read_legacy
from graphcore.frontends.torch_reader.signature import STATE
from graphcore.frontends.torch_reader.states import Flat, flattened, read_pickle, weight_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphcore.frontends.foreign import WeightRef
    from graphcore.frontends.frontend import Source
    from graphcore.frontends.torch_reader.pickles import StoredTensor

KIND: Final = "PyTorch weights (.pt, .pth: torch.save of a state_dict)"
_SHOWN: Final = 50
_MAX_MODULES: Final = 20


def sniff(source: Source) -> bool:
    """True iff the source is a file of `torch.save`."""
    if source.members:
        return "data.pkl" in inner_names(source)
    return source.path is not None and source.head.startswith(BEGINNING)


def read(source: Source) -> ForeignGraph:
    """Read the tensors of a file. Objects other than tensors and plain containers are refused.

    Raises:
        GraphError: it is damaged, exceeds a limit, or holds other objects.
    """
    assert source.path is not None  # files only are sniffed
    what = f"'{source.path.name}'"
    if not source.members:
        value, weights = read_legacy(source)
        return weights_graph(flattened(value, what), weights)
    archive = Archive(source.path)
    flat = flattened(read_pickle(archive, "data.pkl"), what)
    return weights_graph(flat, lambda tensor: weight_of(archive, tensor))


def weights_graph(flat: Flat, weights: Callable[[StoredTensor], WeightRef]) -> ForeignGraph:
    """Tensors as a graph of nodes without edges."""
    nodes = []
    for path, tensor in flat.tensors.items():
        kind = "parameter" if tensor.is_parameter or not path.endswith(_BUFFERS) else "buffer"
        nodes.append(
            ForeignNode(
                path,
                STATE[kind],
                outputs=(Port(path, tensor.dtype, tensor.shape),),
                weight=weights(tensor),
                kind=kind,
                modules=_modules(path),
            )
        )
    facts = dict(list(flat.values.items())[:_SHOWN])
    notes = ["The file holds tensors and no graph. torch.export.save writes a file with both."]
    if flat.count > len(facts):
        notes.append(f"{flat.count - len(facts):,} further values are not shown.")
    return ForeignGraph("PyTorch weights", ForeignFunction("main", nodes=nodes), facts=facts, notes=notes, has_graph=False)


def _modules(path: str) -> tuple[ModuleCall, ...]:
    """The modules by which a tensor is named."""
    parts = path.split(".")[:-1][:_MAX_MODULES]
    return tuple([ModuleCall(".".join(parts[: count + 1])) for count in range(len(parts))])


_BUFFERS: Final = ("running_mean", "running_var", "num_batches_tracked")
