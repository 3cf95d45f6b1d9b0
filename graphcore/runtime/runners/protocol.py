"""The protocols of runs of models in the frameworks that own them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Watch(Protocol):
    """Follows the nodes of a run, by the names that they have in the source (`ForeignNode.name`).

    Values are arrays, or objects that give one: tensors of PyTorch, arrays of JAX, and what has `numpy()` or `__array__`. They are read at
    once and never changed. A value that is None, or no tensor, has no statistics.
    """

    def give(self, node: str, values: Sequence[object], call: str = "") -> None:
        """A node has its values without computing them: an input of the graph, a parameter, a constant.

        Args:
            node: the node.
            values: the values of its outputs.
            call: the surrounding function calls, as `inner_call` writes them; "" outside of functions.
        """

    def begin(self, node: str, call: str = "") -> None:
        """A node begins to run.

        Args:
            node, call: as of `give`.
        """

    def end(self, node: str, outputs: Sequence[object], call: str = "") -> None:
        """The node has run. One that begins and never ends has failed.

        Args:
            node, call: as of `give`.
            outputs: its outputs, in order.
        """


class Runner(Protocol):
    """Runs one model in the framework that owns it."""

    def run(self, feeds: Mapping[str, object], watch: Watch | None = None) -> list[object]:
        """Run the model once.

        Args:
            feeds: values by the names of the graph's input nodes in the source. The runner of a call has the call's own arguments for the
                names that are absent.
            watch: follows the nodes.

        Returns:
            The results as the framework gives them, in the order of the graph's outputs.

        Raises:
            InvalidArgumentError: a feed is missing, or names no input.
            Exception: the framework's own error. The watch knows the node that began and did not end.
        """
