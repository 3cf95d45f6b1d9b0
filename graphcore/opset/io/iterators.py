"""Iterators over datasets, which a session keeps between its runs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from graphcore.attrs import Func, attr_text
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import no_outputs, scalar_shape
from graphcore.kernel_context import KernelContext
from graphcore.opset.control_flow.function_calls import called, func_attr
from graphcore.opset.framework.block import Example, Kernel, define_op
from graphcore.opset.framework.kernels import invalid, on_host
from graphcore.opset.io.dataset_blocks import NO_GRADIENT_OF_DATASETS, OUTPUTS, RANGE, dataset_of, output_shapes, output_types
from graphcore.opset.numerics.dataset_values import Dataset, IteratorValue, as_array, check_shapes
from graphcore.shapes import Shape

_OF_NUMBERS: Final = {"output_types": ["int64"], "output_shapes": [Shape([])]}
_NAMED: Final = {**_OF_NUMBERS, "shared_name": "", "container": ""}
_OUT: Final = "output_types={int64}, output_shapes=[[]]"
_VARIABLE: Final = "variable = VarHandleOp[dtype=string, shape=[2]]()\n"
_NEW: Final = f'iterator = IteratorV2[shared_name="", container="", {_OUT}]()\n'
_ONCE: Final = (
    "Once() -> (y:variant) {\n"
    "  zero = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 0>]()\n"
    "  one = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 1>]()\n"
    "  y = RangeDataset[output_types={int64}, output_shapes=[[]]](zero, one, one)\n}"
)
CELL_RUN: Final = "_cell_run"
"""The attr with the number of the cell run that made a one-shot iterator, which begins anew in the next one."""
_HANDLES: Final = "iterators by their handles"


def _found(k: KernelContext, kind: object) -> IteratorValue:
    """The iterator of a node: shared by name, otherwise the node's own. It is made anew if its node declares another kind."""
    shared_name, container, node, resources, types, op = (
        attr_text(k.attrs.get("shared_name")), attr_text(k.attrs.get("container")), k.node_name, k.resources, output_types(k), k.op,
    )  # fmt: skip
    key: Hashable = ("iterator", shared_name or (resources, node))

    def make(number: int) -> IteratorValue:
        return IteratorValue(shared_name or f"_{number}_{node}", op, types, kind)

    iterator = resources.shared.find(container, key, node, make, lambda held: held.kind == kind)
    assert isinstance(iterator, IteratorValue)
    if iterator.types != types:
        raise invalid(k, f"the shared iterator '{iterator.name}' has elements of other types")
    return iterator


def _iterator(k: KernelContext) -> Kernel:
    return lambda: _found(k, (output_types(k), output_shapes(k)))


def _one_shot(k: KernelContext) -> Kernel:
    func = func_attr(k.attrs, "dataset_factory")
    make = called(k, func.name, func.attr)
    kind = output_types(k), output_shapes(k), func, k.attrs.get(CELL_RUN)

    def find() -> IteratorValue:
        iterator = _found(k, kind)
        iterator.start_if_new(lambda: dataset_of(k, make()))
        return iterator

    return find


def _iterator_of(k: KernelContext, handle: Any) -> IteratorValue:
    if not isinstance(handle, IteratorValue):
        raise invalid(k, f"required the handle of an iterator, got {type(handle).__name__}")
    return handle


def _make(k: KernelContext) -> Kernel:
    def start(dataset: Any, iterator: Any) -> None:
        source: Dataset = dataset_of(k, dataset)
        _iterator_of(k, iterator).start(source)

    return start


def _next(k: KernelContext) -> Kernel:
    types, shapes = output_types(k), output_shapes(k)

    def get(handle: Any) -> Any:
        iterator = _iterator_of(k, handle)
        if iterator.types != types:
            raise invalid(k, f"the iterator '{iterator.name}' has elements of other types")
        element = iterator.next()
        check_shapes(element, shapes)
        arrays = tuple([as_array(value, dtype) for value, dtype in zip(element, types, strict=True)])
        return arrays if len(arrays) > 1 else arrays[0]

    return get


def _next_shape(c: InferenceContext) -> None:
    shapes = output_shapes(c)
    if len(shapes) != c.num_outputs:
        raise InvalidArgumentError(f"required {c.num_outputs} shapes in attr 'output_shapes', got {len(shapes)}", op=c.op, node=c.node_name)
    for i, shape in enumerate(shapes):
        c.set_output(i, c.make_shape_from_shape(shape))


def _to_handle(k: KernelContext) -> Kernel:
    shared = k.resources.shared

    def convert(handle: Any) -> Any:
        iterator = _iterator_of(k, handle)
        handles = _Handles.of(shared)
        handles.iterators[iterator.name] = iterator
        return as_array(iterator.name.encode(), k.output_types[0])

    return convert


class _Handles:
    """The iterators of a session that were asked for their handles as strings."""

    op = owner = ""

    def __init__(self) -> None:
        self.iterators: dict[str, IteratorValue] = {}

    def end(self) -> None:
        """Forget them."""
        self.iterators.clear()

    @classmethod
    def of(cls, shared: Any) -> _Handles:
        """Those of a session."""
        handles = shared.find("", _HANDLES, "", lambda _: cls(), lambda _: True)
        assert isinstance(handles, cls)
        return handles


def _from_handle(k: KernelContext) -> Kernel:
    shared = k.resources.shared

    def convert(text: Any) -> IteratorValue:
        name = on_host(text).item()
        iterator = _Handles.of(shared).iterators.get(name.decode(errors="backslashreplace"))
        if iterator is None:
            raise NotFoundError(f"No iterator of this session has the handle {name!r}: run iterator.string_handle() in it first")
        return iterator

    return convert


def _op(name: str, doc: str, signature: str, shape: Any, kernel: Any, examples: Any, failures: Any, **parts: Any) -> None:
    define_op(
        name,
        doc,
        **{
            "signature": f"{name}{signature}",
            "shape": shape,
            "kernel": kernel,
            "gradient": NO_GRADIENT_OF_DATASETS,
            "examples": examples,
            "failures": failures,
            "device_types": ("CPU",),
            "stateful": True,
            **parts,
        },
    )


for _name in ("Iterator", "IteratorV2"):
    _op(
        _name,
        "An iterator that MakeIterator starts, with the lifetime of the session.\n\n"
        "shared_name: nodes with the same shared name share an iterator; empty for a private one.\n"
        "container: a namespace for `shared_name`.\noutput_types: the types of the components.\noutput_shapes: their shapes.",
        f"[shared_name:string, container:string, {OUTPUTS}]() -> (handle:resource)",
        scalar_shape,
        _iterator,
        (Example([], _NAMED),),
        (),
        can_fail=False,
    )
_op(
    "OneShotIterator",
    "An iterator over the dataset that a function makes once a session.\n\ndataset_factory: the function.\n"
    "output_types: the types of the components.\noutput_shapes: their shapes.\ncontainer: a namespace for `shared_name`.\n"
    "shared_name: nodes with the same shared name share an iterator; empty for a private one.",
    f"[dataset_factory:func, {OUTPUTS}, container:string = '', shared_name:string = '']() -> (handle:resource)",
    scalar_shape,
    _one_shot,
    (Example([], {"dataset_factory": Func("Once"), **_OF_NUMBERS}, functions=(_ONCE,)),),
    (Example([], {"dataset_factory": Func("Once"), "output_types": ["float"], "output_shapes": [Shape([])]}, functions=(_ONCE,)),),
)
_op(
    "MakeIterator",
    "Starts an iterator, from the beginning of a dataset.\n\ndataset: the dataset\niterator: the iterator",
    "(dataset:variant, iterator:resource) -> ()",
    no_outputs,
    _make,
    (Example([[0, 1, 2], [0, 1, 2]]),),
    (
        RANGE
        + 'other = IteratorV2[shared_name="", container="", output_types={float}, output_shapes=[[]]]()\nit = MakeIterator(range, other)',
    ),
)
for _name in ("IteratorGetNext", "IteratorGetNextSync"):
    _op(
        _name,
        "The next element of an iterator; OutOfRangeError after the last one.\n\niterator: the iterator\ncomponents: the element",
        f"[{OUTPUTS}](iterator:resource) -> (components:output_types)",
        _next_shape,
        _next,
        (Example([[0, 1, 2]], _OF_NUMBERS),),
        (_NEW + f"it = {_name}[{_OUT}](iterator)",),
    )
_op(
    "IteratorToStringHandle",
    "A string for an iterator, from which IteratorFromStringHandleV2 finds it.\n\nresource_handle: the iterator",
    "(resource_handle:resource) -> (string_handle:string)",
    scalar_shape,
    _to_handle,
    (Example([[0, 1, 2]]),),
    (_VARIABLE + "it = IteratorToStringHandle(variable)",),
)
for _name in ("IteratorFromStringHandle", "IteratorFromStringHandleV2"):
    _op(
        _name,
        "The iterator that belongs to a string.\n\nstring_handle: what IteratorToStringHandle has given",
        "[output_types:list(type) >= 0 = [], output_shapes:list(shape) >= 0 = []](string_handle:string) -> (resource_handle:resource)",
        scalar_shape,
        _from_handle,
        (Example([np.array(b"_0_iterator", object)]),),
        (Example([np.array(b"_0_iterator", object)]),),
    )
