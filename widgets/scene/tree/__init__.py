"""The parts of a scene as a tree: name scopes, things, calls, and groups by dataflow."""

from widgets.scene.tree.folds import FEW_NODES, Group, Thing, nodes_of
from widgets.scene.tree.saved_models import ends_of_signatures
from widgets.scene.tree.scopes import FOLDS, MOST_FRAMES, Call, Part, Scope
from widgets.scene.tree.tree import ScopeTree

__all__ = [
    "FEW_NODES",
    "FOLDS",
    "MOST_FRAMES",
    "Call",
    "Group",
    "Part",
    "Scope",
    "ScopeTree",
    "Thing",
    "ends_of_signatures",
    "nodes_of",
]
