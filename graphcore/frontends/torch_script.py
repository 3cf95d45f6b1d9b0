"""TorchScript programs: `.pt` files of `torch.jit.save`, whose code is read as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignGraph, WeightRef
from graphcore.frontends.torch_reader.archive import Archive, inner_names
from graphcore.frontends.torch_reader.pickles import StoredTensor, Thing
from graphcore.frontends.torch_reader.placing import placed_states
from graphcore.frontends.torch_reader.script_code import ScriptCode
from graphcore.frontends.torch_reader.script_following import Following
from graphcore.frontends.torch_reader.states import read_pickle, weight_of
from graphcore.frontends.torch_reader.traces import class_name

if TYPE_CHECKING:
    from graphcore.frontends.frontend import Source

KIND: Final = "TorchScript program (.pt of torch.jit.save)"


def sniff(source: Source) -> bool:
    """True iff the source is a TorchScript archive."""
    names = inner_names(source)
    return "data.pkl" in names and ("constants.pkl" in names or any(name.startswith("code/") for name in names))


def read(source: Source) -> ForeignGraph:
    """Read a TorchScript program. Its code is parsed and followed, never run.

    Raises:
        GraphError: it is damaged, or exceeds a limit.
    """
    assert source.path is not None  # files only are sniffed
    archive = Archive(source.path)
    root = read_pickle(archive, "data.pkl", has_things=True)
    if not isinstance(root, Thing):
        raise InvalidArgumentError(f"'{source.path.name}' has no module: required an object of TorchScript, got a {type(root).__name__}")
    constants = read_pickle(archive, "constants.pkl", has_things=True) if "constants.pkl" in archive else ()
    if not isinstance(constants, tuple | list):
        raise InvalidArgumentError(f"'constants.pkl' is damaged: required a list, got a {type(constants).__name__}")
    code = ScriptCode(archive)
    located = code.class_of(root.kind)
    methods = list(located[1].methods) if located is not None else []
    forward = next((name for name in methods if name == "forward"), None) or next(
        (name for name in methods if name.startswith("forward")), methods[0] if methods else ""
    )
    if not forward:
        raise InvalidArgumentError(f"Class '{root.kind}' has no methods: required `forward`")

    def weight(tensor: StoredTensor) -> WeightRef:
        folder = "constants" if any(tensor is constant for constant in constants) else "data"
        return weight_of(archive, tensor, folder)

    following = Following(code, constants, weight)
    main = following.program(root, forward)
    main.nodes = placed_states(main.nodes)
    version = archive.read("version").decode(errors="replace").strip()[:20] if "version" in archive else ""
    facts = {"archive version": version} if version else {}
    notes = ["TorchScript keeps no shapes: the sizes of tensors are not known."]
    if following.has_choices:
        notes.append("Branches on the module's constants, such as `training`, show the side that is taken.")
    if following.has_checks:
        notes.append("Branches that only raise errors are left out.")
    others = [name for name in methods if name != forward and not name.startswith("_")]
    if forward != "forward" or others:
        notes.append(f"This is the method `{forward}`" + (f"; there are also {', '.join(others[:9])}." if others else "."))
    return ForeignGraph("TorchScript program", main, name=class_name(root.kind), functions=following.functions, facts=facts, notes=notes)
