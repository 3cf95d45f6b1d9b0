"""Saving tensors to checkpoints and restoring them."""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np

from graphcore.brief import brief
from graphcore.dtypes import DType
from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.kernels import invalid, on_host

_NO_GRADIENT: Final = no_registered_gradient("it reads or writes files")
_NAMES: Final = np.array([b"W", b"b"], object)
_WHOLE: Final = np.array([b"", b""], object)
_PREFIX: Final = np.array(b"no such folder/model", object)


def _checkpoints() -> Any:
    """Import the package of checkpoints lazily: it loads protobuf."""
    from graphcore import checkpoints  # noqa: PLC0415 - it loads protobuf, which most sessions never need

    return checkpoints


def _path(k: KernelContext, value: Any) -> str:
    if value.size != 1:
        raise invalid(k, f"required one prefix, got a tensor of shape {list(value.shape)}")
    return os.fsdecode(value.item())


def _names_and_parts(k: KernelContext, names: Any, specs: Any, count: int) -> list[tuple[str, Any]]:
    if names.shape != (count,) or specs.shape != (count,):
        raise invalid(k, f"required {count} names and parts, one for each tensor; got shapes {list(names.shape)} and {list(specs.shape)}")
    parse = _checkpoints().parse_slice_spec
    try:
        return [(name.decode(), parse(spec)) for name, spec in zip(names.tolist(), specs.tolist(), strict=True)]
    except UnicodeDecodeError as error:
        raise invalid(k, f"the name {brief(error.object)} of a tensor is not UTF-8") from None


def _arguments_shape(c: InferenceContext, count: int) -> None:
    c.with_rank(c.input(0), 0)
    for i in (1, 2):
        c.with_value(c.dim(c.with_rank(c.input(i), 1), 0), count)


@op
class SaveV2:
    """Writes tensors to a checkpoint, which TensorFlow reads too.

    prefix: the path of the checkpoint, a scalar
    tensor_names: [n], the names of the tensors
    shape_and_slices: [n], empty for whole tensors, or such as `10 4 0,5:-` for a part of one
    tensors: the tensors
    """

    signature = "SaveV2[dtypes:list(type) >= 1](prefix:string, tensor_names:string, shape_and_slices:string, tensors:dtypes) -> ()"
    stateful = True
    device_types = ("CPU",)
    gradient = _NO_GRADIENT
    examples = (Example([_PREFIX, _NAMES, _WHOLE, [[[1.0, 2.0]], [3.0]]]),)
    failures = (Example([_PREFIX, _NAMES, _WHOLE, [[[1.0, 2.0]], [3.0]]]),)

    def shape(c: InferenceContext) -> None:
        _arguments_shape(c, c.num_inputs - 3)

    def kernel(k: KernelContext) -> Kernel:
        types = [dtype.base for dtype in k.input_types[3:]]

        def save(prefix: Any, names: Any, specs: Any, *tensors: Any) -> None:
            named = _names_and_parts(k, names, specs, len(types))
            values = [(name, spec, dtype, on_host(value)) for (name, spec), dtype, value in zip(named, types, tensors, strict=True)]
            _checkpoints().write_checkpoint(_path(k, prefix), values)

        return save


@op
class RestoreV2:
    """The tensors of a checkpoint with these names.

    prefix: the path of the checkpoint, a scalar
    tensor_names: [n], the names of the tensors
    shape_and_slices: [n], empty for whole tensors, or such as `10 4 0,5:-` for a part of one
    tensors: the tensors
    """

    signature = "RestoreV2[dtypes:list(type) >= 1](prefix:string, tensor_names:string, shape_and_slices:string) -> (tensors:dtypes)"
    stateful = True
    device_types = ("CPU",)
    gradient = _NO_GRADIENT
    examples = (Example([_PREFIX, _NAMES, _WHOLE], {"dtypes": ["float", "float"]}),)
    failures = (Example([_PREFIX, _NAMES, _WHOLE], {"dtypes": ["float", "float"]}),)

    def shape(c: InferenceContext) -> None:
        _arguments_shape(c, c.num_outputs)
        specs = c.input_tensor(2)
        for i in range(c.num_outputs):
            spec = b"" if specs is None or specs.size <= i else specs.reshape(-1)[i]
            part = _checkpoints().parse_slice_spec(spec) if spec else None
            c.set_output(i, c.unknown_shape() if part is None else c.make_shape(part.shape()))

    def kernel(k: KernelContext) -> Kernel:
        types: list[DType] = [dtype.base for dtype in k.output_types]

        def restore(prefix: Any, names: Any, specs: Any) -> Any:
            reader = _checkpoints().CheckpointReader(_path(k, prefix))
            dtypes = reader.get_variable_to_dtype_map()
            tensors = []
            for (name, spec), dtype in zip(_names_and_parts(k, names, specs, len(types)), types, strict=True):
                value = reader.get_part(name, spec)
                if dtypes[name] is not dtype:
                    raise invalid(k, f"tensor '{name}' of checkpoint '{reader.prefix}' is {dtypes[name].text}, required is {dtype.text}")
                tensors.append(k.xp.asarray(value))
            return tuple(tensors) if len(tensors) > 1 else tensors[0]

        return restore


@op
class MergeV2Checkpoints:
    """Makes one checkpoint of several, whose data files become its own.

    checkpoint_prefixes: [n], the paths of the checkpoints
    destination_prefix: the path of the new one, a scalar
    delete_old_dirs: remove the folders of the old ones, if they are empty then.
    allow_missing_files: must be false.
    """

    signature = (
        "MergeV2Checkpoints[delete_old_dirs:bool = true, allow_missing_files:bool = false]"
        "(checkpoint_prefixes:string, destination_prefix:string) -> ()"
    )
    stateful = True
    device_types = ("CPU",)
    gradient = _NO_GRADIENT
    examples = (Example([np.array([b"no such folder/part"], object), _PREFIX]),)
    failures = (Example([np.array([b"no such folder/part"], object), _PREFIX]),)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(0), 1)
        c.with_rank(c.input(1), 0)

    def kernel(k: KernelContext) -> Kernel:
        delete = bool(k.attr("delete_old_dirs"))

        def merge(prefixes: Any, destination: Any) -> None:
            names = [os.fsdecode(prefix) for prefix in prefixes.reshape(-1).tolist()]
            _checkpoints().merge_checkpoints(names, _path(k, destination), delete_old_dirs=delete)

        return merge


def _numbered(k: KernelContext, name: Any, *numbers: Any) -> tuple[bytes, list[int]]:
    sizes = [value.size for value in (name, *numbers)]
    if any(size != 1 for size in sizes):
        raise invalid(k, f"required scalars, got {sizes} elements")
    return name.item(), [int(number.item()) for number in numbers]


def _scalars_to_scalar(c: InferenceContext) -> None:
    for i in range(c.num_inputs):
        c.with_rank(c.input(i), 0)
    c.set_output(0, c.scalar())


def _text(value: bytes) -> Any:
    array = np.empty((), object)
    array[()] = value
    return array


@op
class ShardedFilename:
    """The name of one of several files, such as `model-00000-of-00002`.

    basename: the beginning, a scalar
    shard: its number, a scalar
    num_shards: the number of files, a scalar
    """

    signature = "ShardedFilename(basename:string, shard:int32, num_shards:int32) -> (filename:string)"
    shape = _scalars_to_scalar
    device_types = ("CPU",)
    can_fail = False
    gradient = NO_GRADIENT
    examples = (Example([np.array(b"model", object), 0, 2], outputs=[b"model-00000-of-00002"]),)

    def kernel(k: KernelContext) -> Kernel:
        def name(base: Any, shard: Any, count: Any) -> Any:
            begin, (number, files) = _numbered(k, base, shard, count)
            return _text(begin + f"-{number:05d}-of-{files:05d}".encode())

        return name


@op
class ShardedFilespec:
    """A pattern for the names of several files, such as `model-?????-of-00002`.

    basename: the beginning, a scalar
    num_shards: the number of files, a scalar
    """

    signature = "ShardedFilespec(basename:string, num_shards:int32) -> (filename:string)"
    shape = _scalars_to_scalar
    device_types = ("CPU",)
    can_fail = False
    gradient = NO_GRADIENT
    examples = (Example([np.array(b"model", object), 2], outputs=[b"model-?????-of-00002"]),)

    def kernel(k: KernelContext) -> Kernel:
        def pattern(base: Any, count: Any) -> Any:
            begin, (files,) = _numbered(k, base, count)
            return _text(begin + f"-?????-of-{files:05d}".encode())

        return pattern
