"""Records of fields with separators (CSV) as tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext
from graphcore.kernel_context import KernelContext
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, op
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.framework.listed_attrs import listed
from graphcore.opset.numerics.string_arrays import strings
from graphcore.opset.strings.string_joining import text_attr
from graphcore.opset.strings.string_numbers import number_in

_RECORDS: Final = np.array([b'1,2.5,"a ""b"", c"', b",-3,d"], object)
_DEFAULTS: Final = [np.array([7], np.int32), np.array([0], np.float32), np.array([b"none"], object)]


def _columns(k: KernelContext) -> list[int]:
    """The attr select_cols, checked."""
    selected = listed(k, "select_cols", int)
    if selected and len(selected) != len(k.output_types):
        raise invalid(k, f"select_cols should match output size: {len(selected)} vs. {len(k.output_types)}")
    if any(column < 0 for column in selected):
        raise invalid(k, f"select_cols should be non-negative indices, got {selected}")
    if selected != sorted(set(selected)):
        raise invalid(k, f"select_cols should be strictly increasing indices, got {selected}")
    return selected


def _splitter(k: KernelContext, columns: Sequence[int]) -> Callable[[bytes], list[bytes]]:
    """A function of a record to its fields, in the given columns or all. Line breaks before a field are ignored."""
    delimiter, has_quotes = text_attr(k, "field_delim"), bool(k.attr("use_quote_delim"))
    if len(delimiter) != 1:
        raise invalid(k, f"field_delim should be only 1 char, got {delimiter!r}")
    if has_quotes and delimiter == b'"':
        raise invalid(k, "field_delim must not be the quote, unless use_quote_delim is False")
    quoted = re.compile(b'"([^"]*(?:""[^"]*)*)"(?=' + re.escape(delimiter) + rb"|\Z)")
    refused = re.compile(b'["\r\n]' if has_quotes else b"[\r\n]")

    def split(record: bytes) -> list[bytes]:
        fields: list[bytes] = []
        at = number = 0
        while at < len(record):
            if record[at] in b"\r\n":
                at += 1
                continue
            if has_quotes and record[at] == ord('"'):
                match = quoted.match(record, at)
                if match is None:
                    text = "Quoted field has to end with quote followed by delim or end; a quote inside has to be escaped by another quote"
                    raise invalid(k, f"{text}, got {record[at : at + 60]!r}")
                field, at = match[1].replace(b'""', b'"'), match.end() + 1
            else:
                end = record.find(delimiter, at)
                field = record[at:] if end < 0 else record[at:end]
                if refused.search(field):
                    raise invalid(k, f"Unquoted fields cannot have quotes/CRLFs inside, got {field[:60]!r}")
                at += len(field) + 1
            if not columns or columns[len(fields)] == number:
                fields.append(field)
                if len(fields) == len(columns):
                    return fields
            number += 1
        if record.endswith(delimiter) and (not columns or columns[len(fields)] == number):
            fields.append(b"")
        return fields

    return split


@op
class DecodeCSV:
    """The fields of records in the form of RFC 4180, each column as a tensor.

    records: any shape, one record a string
    record_defaults: the values of empty fields, each with one element, or without elements where the field is required
    output: the shape of records
    field_delim: the character between fields.
    use_quote_delim: read fields in double quotes, in which the separator, line breaks and doubled quotes may occur.
    na_value: a text that stands for an empty field.
    select_cols: the columns to read, in ascending order; empty for all.
    """

    signature = (
        "DecodeCSV[OUT_TYPE:list({float, double, int32, int64, string}) >= 1, field_delim:string = ',', use_quote_delim:bool = true, "
        "na_value:string = '', select_cols:list(int) = []](records:string, record_defaults:OUT_TYPE) -> (output:OUT_TYPE)"
    )
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example([_RECORDS, _DEFAULTS], outputs=[[1, 7], [2.5, -3.0], [b'a "b", c', b"d"]]),
        Example(
            [np.array(b"1;NA;x", object), [np.array(0, np.int64), np.array([0.5])]],
            {"field_delim": ";", "na_value": "NA", "select_cols": [0, 1]},
            outputs=[1, 0.5],
        ),
        Example([np.array([b"3", b"4"], object), [np.array([7], np.int32)]], outputs=[[3, 4]]),
    )
    failures = (
        Example([_RECORDS, _DEFAULTS[:2]]),
        Example([_RECORDS, [_DEFAULTS[0], _DEFAULTS[1], np.array([0], np.int32)]]),
    )

    def shape(c: InferenceContext) -> None:
        for i in range(1, c.num_inputs):
            default = c.with_rank_at_most(c.input(i), 1)
            if c.rank(default) == 1 and c.dim(default, 0).value > 1:
                raise InvalidArgumentError("Shape of a default must be a length-0 or length-1 vector, or a scalar.")
        for i in range(c.num_outputs):
            c.set_output(i, c.input(0))

    def kernel(k: KernelContext) -> Kernel:
        split, missing, types = _splitter(k, _columns(k)), text_attr(k, "na_value"), k.output_types

        def decode(records: Any, *defaults: Any) -> Any:
            for number, default in enumerate(defaults):
                if default.size > 1:
                    raise invalid(k, f"There should only be 1 default per field but field {number} has {default.size}")
            values_of_columns: list[list[Any]] = [[] for _ in types]
            for row, record in enumerate(records.reshape(-1).tolist()):
                fields = split(record)
                if len(fields) != len(types):
                    raise invalid(k, f"Expect {len(types)} fields but have {len(fields)} in record {row}")
                for number, (field, dtype, default) in enumerate(zip(fields, types, defaults, strict=True)):
                    if not field or field == missing:
                        if not default.size:
                            raise invalid(k, f"Field {number} is required but missing in record {row}!")
                        value = default.item()
                    else:
                        value = field if dtype.as_numpy == np.dtype(object) else number_in(field, np.dtype(dtype.as_numpy))
                    if value is None:
                        text = field[:60].decode(errors="backslashreplace")
                        raise invalid(k, f"Field {number} in record {row} is not a valid {dtype.text}: {text}")
                    values_of_columns[number].append(value)
            columns = [
                _array(values, np.dtype(dtype.as_numpy), records.shape) for values, dtype in zip(values_of_columns, types, strict=True)
            ]
            return columns[0] if len(columns) == 1 else tuple(columns)

        return decode


def _array(values: list[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    if dtype == np.dtype(object):
        return strings(values, shape)
    with np.errstate(over="ignore"):  # larger numbers than a float can hold are infinite
        return np.array(values, np.float64 if dtype.kind == "f" else dtype).astype(dtype).reshape(shape)
