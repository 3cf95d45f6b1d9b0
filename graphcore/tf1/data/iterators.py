"""Iterators over datasets."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from graphcore.attrs import Func
from graphcore.definitions import GraphDef
from graphcore.dtypes import string
from graphcore.errors import InvalidArgumentError
from graphcore.graph import FunctionGraph, Node, Tensor, get_default_graph, import_graph_def
from graphcore.opset.io.iterators import CELL_RUN
from graphcore.passes.functions.defining import define_body, function_label, sweep
from graphcore.source import current_run
from graphcore.tf1.calls import apply_one
from graphcore.tf1.data.structures import DatasetHandle, Spec, Structured, declared, element_of, spec_of
from graphcore.tf1.framework import convert_to_tensor

_FED: Final = frozenset({"Placeholder", "PlaceholderV2", "_Arg"})


class Iterator(Structured):
    """The place in a dataset, kept by a session.

    Args:
        handle: the tensor with its handle.
        initializer: the node that starts it; None if it starts by itself.
        structure: the nesting of elements.
        spec: their types and shapes, if its node does not declare them.
    """

    def __init__(self, handle: Tensor, initializer: Node | None, structure: Any, spec: Spec | None = None) -> None:
        self._handle = handle
        self._initializer = initializer
        self._spec = spec
        self.structure = structure

    def __repr__(self) -> str:
        return f"<gc.data.Iterator '{self._handle.node.name}' of {self.output_types}>"

    @property
    def spec(self) -> Spec:
        """The types and shapes of the components."""
        return self._spec or spec_of(self._handle.graph, self._handle.node.name)

    @property
    def initializer(self) -> Node:
        """The node that starts it from the beginning.

        Raises:
            InvalidArgumentError: it starts by itself, or has no dataset of its own.
        """
        if self._initializer is None:
            raise InvalidArgumentError(f"Iterator '{self._handle.node.name}' does not have an initializer.", node=self._handle.node.name)
        return self._initializer

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: str | None = None, output_classes: Any = None
    ) -> Iterator:
        """An iterator for datasets of one structure, which `make_initializer` starts.

        Args:
            output_types: nested types.
            output_shapes: nested shapes, unknown by default.
            shared_name: iterators with the same name are one.
            output_classes: must be tensors.
        """
        del output_classes
        structure, spec = declared(output_types, output_shapes)
        return Iterator(_new(spec, shared_name), None, structure)

    @staticmethod
    def from_string_handle(string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None) -> Iterator:
        """The iterator that belongs to a string, which can be fed.

        Args:
            string_handle: a scalar string tensor: the value of an iterator's `string_handle()`.
            output_types: nested types.
            output_shapes: nested shapes, unknown by default.
            output_classes: must be tensors.
        """
        del output_classes
        structure, spec = declared(output_types, output_shapes)
        text = convert_to_tensor(string_handle, string)
        handle = apply_one("IteratorFromStringHandleV2", [text], None, spec.attrs())
        return Iterator(handle, None, structure, spec)

    def get_next(self, name: str | None = None) -> Any:
        """The next element at each run, in the structure of elements; OutOfRangeError after the last one."""
        handle = self._handle
        graph = handle.graph.building()

        def build() -> Node:
            return graph.apply_op("IteratorGetNext", [handle], self.spec.attrs(), name)

        node: Node = graph.derivations.derive(f"the elements of '{handle.node.name}'", build, depends_on=[handle], fingerprint=self._kinds)
        return element_of(self.structure, node.outputs)

    def _kinds(self) -> list[str]:
        return self.spec.kinds()

    def make_initializer(self, dataset: DatasetHandle, name: str | None = None) -> Node:
        """A node that starts the iterator from the beginning of `dataset`.

        Raises:
            InvalidArgumentError: its elements have another structure, or other types or shapes.
        """
        own, other = self.spec, dataset.spec
        if self.structure != dataset.structure or own.types != other.types:
            raise InvalidArgumentError(
                f"Expected output types {self.output_types!r} but got dataset with output types {dataset.output_types!r}."
            )
        if not all(actual.is_compatible_with(wanted) for wanted, actual in zip(own.shapes, other.shapes, strict=True)):
            raise InvalidArgumentError(
                f"Expected output shapes compatible with {self.output_shapes!r} but got dataset with output shapes {dataset.output_shapes!r}."
            )
        return self._handle.graph.building().apply_op("MakeIterator", [dataset.variant, self._handle], None, name)

    def string_handle(self, name: str | None = None) -> Tensor:
        """A scalar string tensor, from whose value `from_string_handle` finds this iterator."""
        return apply_one("IteratorToStringHandle", [self._handle], name)


def _new(spec: Spec, shared_name: str | None) -> Tensor:
    return apply_one("IteratorV2", [], None, {**spec.attrs(), "shared_name": shared_name or "", "container": ""})


def make_initializable_iterator(dataset: DatasetHandle, shared_name: str | None = None) -> Iterator:
    """An iterator over a dataset, which `session.run(iterator.initializer)` starts.

    Placeholders of the dataset are fed there.

    Args:
        dataset: the dataset.
        shared_name: iterators with the same name are one.
    """
    graph = get_default_graph()
    pairs: list[tuple[Tensor, Node]] = []

    def build() -> Node:
        handle = _new(dataset.spec, shared_name)
        pairs[:] = [(handle, graph.apply_op("MakeIterator", [dataset.variant, handle], None, "make_initializer"))]
        return pairs[0][1]

    graph.derivations.derive("an iterator", build, depends_on=[dataset.variant], fingerprint=lambda: [*dataset.spec.kinds()])
    return Iterator(*pairs[0], dataset.structure)


def make_one_shot_iterator(dataset: DatasetHandle) -> Iterator:
    """An iterator over a dataset, which begins by itself in each session, and ends after one pass.

    In a notebook it also begins again when its cell runs again, or when the dataset changes.

    Raises:
        InvalidArgumentError: the dataset depends on a placeholder or a variable; `make_initializable_iterator` allows that.
    """
    graph, run = get_default_graph(), current_run.get()
    again = {} if run is None else {CELL_RUN: run.execution}  # makes the node another one when its cell runs again

    def build() -> Tensor:
        body = FunctionGraph.within(graph, function_label(graph, "one_shot", "dataset"))
        copied = _copied(body, dataset.variant)
        with body.as_default(), body.name_scope(None):
            body.apply_op("_Retval", [copied], {"index": 0}, "output_RetVal")
        fdef = define_body(body, body.label, [])
        node = graph.apply_op("OneShotIterator", [], {"dataset_factory": Func(fdef.name), **dataset.spec.attrs(), **again})
        if not isinstance(graph, FunctionGraph):
            sweep(graph)
        return node.outputs[0]

    handle: Tensor = graph.derivations.derive(
        "a one-shot iterator", build, depends_on=[dataset.variant], fingerprint=lambda: [node.node_def for node in _before(dataset.variant)]
    )
    return Iterator(handle, None, dataset.structure)


def _before(tensor: Tensor) -> list[Node]:
    """The nodes that a tensor is computed from, each after those that it needs."""
    order: dict[Node, None] = {}
    pending = [(tensor.node, False)]
    while pending:
        node, is_done = pending.pop()
        if is_done:
            order[node] = None
        elif node not in order:
            pending.append((node, True))
            pending += [(input_tensor.node, False) for input_tensor in node.inputs if input_tensor.node not in order]
    return list(order)


def _copied(body: FunctionGraph, tensor: Tensor) -> Tensor:
    """A copy of a tensor in the body of a function, with all that it is computed from.

    Raises:
        InvalidArgumentError: it depends on a placeholder or a variable.
    """
    node_defs = []
    for node in _before(tensor):
        if node.op in _FED:
            raise InvalidArgumentError.at(
                node,
                f"A one-shot iterator cannot depend on the placeholder '{node.name}': use make_initializable_iterator, and feed it at "
                "iterator.initializer",
            )
        if any(output.dtype.is_ref or output.dtype.text == "resource" for output in node.outputs):
            raise InvalidArgumentError.at(
                node, f"A one-shot iterator cannot depend on '{node.name}' (op {node.op}), which is state: use make_initializable_iterator"
            )
        node_def = node.node_def
        node_defs.append(msgspec.structs.replace(node_def, input=tuple([name for name in node_def.input if not name.startswith("^")])))
    import_graph_def(GraphDef(node=tuple(node_defs), versions=tensor.graph.versions), body)
    return body.get_tensor_by_name(tensor.name)
