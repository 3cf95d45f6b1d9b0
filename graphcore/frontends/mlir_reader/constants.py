"""Elements of constants of MLIR modules: by the bindings, or from what MLIR writes."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.words import dtype_of
from graphcore.support.memory_limits import check_claim

if TYPE_CHECKING:
    from graphcore.attrs import Array

_DENSE: Final = re.compile(r"values? = dense<(.*)> : tensor<", re.DOTALL)
_RESOURCE: Final = re.compile(r"dense_resource<(.*)> : ", re.DOTALL)
_KEYS: Final = ("value", "values")
_ALIGNMENT: Final = 8
"""The hexadecimal digits before the elements of a resource, which say how these are to be aligned."""
_HEX: Final = '"0x'
_BRACKETS: Final = str.maketrans("", "", "[]() ")


def value_text(operation: Any) -> str:
    """The elements of a constant as MLIR writes them, "" for a constant without dense elements."""
    match = _DENSE.search(operation.get_asm(print_generic_op_form=True))
    return "" if match is None else match[1]


def held_elements(ir: Any, operation: Any) -> Any:
    """The attribute with the elements that an operation without operands gives; None if it has none."""
    if len(operation.operands) or len(operation.results) != 1:
        return None
    kinds = (ir.DenseElementsAttr, ir.DenseResourceElementsAttr)
    casts = [_cast(operation, key, kind) for key in _KEYS for kind in kinds if key in operation.attributes]
    return next((attr for attr in casts if attr is not None), None)


def _cast(operation: Any, key: str, kind: Any) -> Any:
    """An attribute of an operation as one of a kind; None if it is of another one."""
    try:
        return kind(operation.attributes[key])
    except Exception:  # noqa: BLE001 - the bindings raise errors of several classes
        return None


def elements_of(ir: Any, operation: Any, dtype: str, shape: tuple[int, ...], resources: str) -> Array:
    """The elements of a constant.

    Args:
        dtype: their type in MLIR's words.
        shape: their sizes.
        resources: the end of the module's text, with the elements that lie outside of its operations.

    Raises:
        InvalidArgumentError: they cannot be read, such as those that are left out.
        ResourceExhaustedError: they take more memory than there is.
    """
    check_claim(prod(shape), f"a constant of shape {list(shape)}")
    try:
        held = held_elements(ir, operation)
        if isinstance(held, ir.DenseResourceElementsAttr):
            return _of_resource(str(held), resources, dtype, shape)
        array = _by_buffer(ir, held, shape)
        return _by_text(value_text(operation), dtype, shape) if array is None else array
    except Exception as error:  # noqa: BLE001 - the bindings raise errors of several classes
        raise InvalidArgumentError(f"The elements of the constant cannot be read: {str(error)[:200]}") from None


def _of_resource(attr: str, resources: str, dtype: str, shape: tuple[int, ...]) -> Array:
    """The elements of a resource: bytes behind the module, after the alignment that they need."""
    name = _RESOURCE.match(attr)
    digits = name and re.search(rf'(?<![\w.$-]){re.escape(name[1])}\s*:\s*"0x([0-9A-Fa-f]*)"', resources)
    if not digits:
        raise InvalidArgumentError("the module does not hold them")
    return _by_text(f'{_HEX}{digits[1][_ALIGNMENT:]}"', dtype, shape)


def _by_buffer(ir: Any, elements: Any, shape: tuple[int, ...]) -> Array | None:
    """The elements that the bindings give; None for types unknown to them: bfloat16, complex ones."""
    if elements is None:
        return None
    if not elements.is_splat:
        whole = np.array(elements)
        return whole.reshape(shape) if whole.dtype != object else None
    # NumPy would take each element of a splat by itself.
    alone = ir.RankedTensorType.get([1], ir.ShapedType(elements.type).element_type, loc=ir.Location.unknown(elements.context))
    value = np.array(ir.DenseElementsAttr.get_splat(alone, elements.get_splat_value()))
    return np.broadcast_to(value.reshape(1), shape).copy() if value.dtype != object else None


def _by_text(text: str, dtype: str, shape: tuple[int, ...]) -> Array:
    """The elements that MLIR writes: all bytes if they are many, else numbers. `0x7FC0` gives bits."""
    numpy = dtype_of(dtype).as_numpy
    if not text:
        raise InvalidArgumentError("they lie outside of the module")
    if numpy is None:
        raise InvalidArgumentError(f"NumPy has no type for '{dtype}'")
    kind = np.dtype(numpy)
    if text.startswith(_HEX):
        array = np.frombuffer(bytes.fromhex(text[len(_HEX) : -1]), kind)
    else:
        part = np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind
        words = text.translate(_BRACKETS).split(",")
        array = np.array([_number(word, part) for word in words], part).view(kind)
    return np.broadcast_to(array, shape).copy() if array.size == 1 else array.reshape(shape)


def _number(word: str, kind: np.dtype[Any]) -> Any:
    """A number, or one of these bits."""
    if word.startswith("0x"):
        return np.frombuffer(int(word, 16).to_bytes(kind.itemsize, "little"), kind)[0]
    return kind.type(word) if kind.kind == "f" else kind.type(float(word) if "." in word else int(word))
