"""The structure of elements: nested tuples and dicts of tensors, with their types and shapes.

Unlike elsewhere, a list is no structure: it is packed to one tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from graphcore import dtypes
from graphcore.dtypes import DType, as_dtype
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph, Tensor
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.framework import convert_to_tensor
from graphcore.tf1.sparse import SparseTensor, SparseTensorValue

_TYPES: Final = ("output_types", "Toutput_types")
_INSTEAD: Final = "batch the records first, and parse them by gc.parse_example"


class Spec(msgspec.Struct, frozen=True):
    """The types and shapes of the components of elements, in the order of the flat structure."""

    types: tuple[DType, ...]
    shapes: tuple[Shape, ...]

    def attrs(self, types: str = "output_types") -> dict[str, Any]:
        """The attrs of a node that declares it."""
        return {types: self.types, "output_shapes": self.shapes}

    def kinds(self) -> list[str]:
        """One text for each component."""
        return [f"{dtype.text} {shape}" for dtype, shape in zip(self.types, self.shapes, strict=True)]


class SparseParts(NamedTuple):
    """The components of a sparse tensor in an element."""

    indices: Any
    values: Any
    dense_shape: Any


_OF_FILES: Final = Spec((dtypes.string,), (Shape([]),))


def spec_of(graph: Graph, name: str) -> Spec:
    """The types and shapes that the node of a dataset or an iterator declares now."""
    node = graph.find(name)
    attrs: Mapping[str, Any] = {} if node is None else node.node_def.attr
    types = next((attrs[key] for key in _TYPES if key in attrs), None)
    return _OF_FILES if types is None else Spec(tuple(types), tuple(attrs["output_shapes"]))


def flatten(value: Any) -> tuple[Any, list[Any]]:
    """A structure with numbers in the place of its leaves, and the leaves.

    Those of a dict come in the order of its sorted keys.
    """
    leaves: list[Any] = []

    def note(leaf: Any) -> int:
        leaves.append(leaf)
        return len(leaves) - 1

    return changed(value, note), leaves


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """A structure with `change` of each leaf in its place."""
    if isinstance(value, SparseTensor | SparseTensorValue):
        parts = value.as_fetches() if isinstance(value, SparseTensor) else value
        return SparseParts(*[change(part) for part in parts])
    if isinstance(value, dict):
        changed_items = {key: changed(value[key], change) for key in sorted(value, key=str)}
        return {key: changed_items[key] for key in value}
    if isinstance(value, tuple):
        items = [changed(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return change(value)


def filled(structure: Any, values: Sequence[Any]) -> Any:
    """A structure made by `flatten`, with values in the place of its numbers."""
    return changed(structure, lambda number: values[number])


def element_of(structure: Any, tensors: Sequence[Tensor]) -> Any:
    """An element of that structure, in which components of sparse tensors are `SparseTensor` objects."""
    return _with_sparse(filled(structure, tensors))


def _with_sparse(value: Any) -> Any:
    if isinstance(value, SparseParts):
        return SparseTensor(*value)
    if isinstance(value, dict):
        return {key: _with_sparse(item) for key, item in value.items()}
    if isinstance(value, tuple):
        items = [_with_sparse(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def refuse_sparse(structure: Any, what: str, instead: str = _INSTEAD) -> None:
    """Refuse elements with sparse tensors, whose indices would be cut or joined like other components.

    Raises:
        InvalidArgumentError: the elements have sparse tensors; the text says what to do `instead`.
    """
    if isinstance(structure, SparseParts):
        raise InvalidArgumentError(f"{what}: required elements of dense tensors, got sparse ones; {instead}")
    for item in structure.values() if isinstance(structure, dict) else structure if isinstance(structure, tuple) else ():
        refuse_sparse(item, what, instead)


def arguments(structure: Any, values: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments of a function of an element: the items of a tuple, otherwise itself."""
    element = element_of(structure, values)
    return tuple(element) if isinstance(element, tuple) else (element,)


def declared(output_types: Any, output_shapes: Any = None) -> tuple[Any, Spec]:
    """The structure and the spec of elements from nested types and nested shapes.

    Raises:
        InvalidArgumentError: types and shapes are nested in different ways.
    """
    structure, types = flatten(output_types)
    shapes = [None] * len(types) if output_shapes is None else leaves_of_shapes(structure, output_shapes)
    if len(shapes) != len(types):
        raise InvalidArgumentError(f"output_shapes: required one shape for each of {len(types)} types, got {len(shapes)}")
    return structure, Spec(tuple([as_dtype(dtype).base for dtype in types]), tuple([as_shape(shape) for shape in shapes]))


def leaves_of_shapes(structure: Any, shapes: Any) -> list[Any]:
    """The leaves of nested shapes; a shape may itself be a tuple."""
    if isinstance(structure, dict):
        return [leaf for key in sorted(structure, key=str) for leaf in leaves_of_shapes(structure[key], shapes[key])]
    if isinstance(structure, tuple):
        if not isinstance(shapes, tuple | list) or len(shapes) != len(structure):
            raise InvalidArgumentError(f"output_shapes: required {len(structure)} shapes, as there are types; got {shapes!r}")
        return [leaf for part, shape in zip(structure, shapes, strict=True) for leaf in leaves_of_shapes(part, shape)]
    return [shapes]


def get_output_types(dataset_or_iterator: Any) -> Any:
    """The nested types of the elements of a dataset or an iterator."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """The nested shapes of the elements of a dataset or an iterator."""
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """The nested classes of the elements of a dataset or an iterator: `gc.Tensor` for each component."""
    return dataset_or_iterator.output_classes


class Structured:
    """The base of datasets and iterators, whose elements have a structure.

    Attributes:
        structure: the nesting, with numbers in the place of components.
    """

    structure: Any

    @property
    def spec(self) -> Spec:
        """The types and shapes of the components."""
        raise InvalidArgumentError("required a dataset or an iterator")

    @property
    def output_types(self) -> Any:
        """The nested types of the components."""
        return filled(self.structure, self.spec.types)

    @property
    def output_shapes(self) -> Any:
        """The nested shapes of the components."""
        return filled(self.structure, self.spec.shapes)

    @property
    def output_classes(self) -> Any:
        """`gc.Tensor` for each component."""
        return changed(self.structure, lambda _: Tensor)


class DatasetHandle(Structured):
    """A dataset as iterators take it: the node that makes its elements, and their structure.

    Attributes:
        variant: the tensor with its handle.
    """

    def __init__(self, variant: Tensor, structure: Any) -> None:
        self.variant = variant
        self.structure = structure

    @property
    def spec(self) -> Spec:
        """The types and shapes of the components."""
        return spec_of(self.variant.graph, self.variant.node.name)


def padded_shape(sizes: Any) -> list[int] | Tensor:
    """The sizes of a padded shape, -1 for unknown ones, or a tensor of them."""
    if isinstance(sizes, Tensor):
        return convert_to_tensor(sizes, dtypes.int64, "padded_shape")
    shape = as_shape(sizes)
    if shape.dims is None:
        raise InvalidArgumentError("padded_batch: required padded_shapes of known rank, got an unknown one")
    return [-1 if size is None else size for size in shape.dims]


def shape_of_batch(size: int | None, shape: list[int] | Tensor) -> Shape:
    """The shape of a batch of elements of a padded shape."""
    if isinstance(shape, Tensor):
        return Shape(None) if not shape.shape.dims else Shape([size, *[None] * (shape.shape.dims[0] or 0)])
    return Shape([size, *[None if n < 0 else n for n in shape]])


def common_shape(first: Shape, second: Shape) -> Shape:
    """The most that is known of both shapes."""
    if first.dims is None or second.dims is None or len(first.dims) != len(second.dims):
        return Shape(None)
    return Shape([a if a == b else None for a, b in zip(first.dims, second.dims, strict=True)])
