"""The table of ops in the docs, made from the registry. `python -m tests.support.tools.op_table` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import graphcore as gc
from graphcore.opset.op_modules import OP_MODULES

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = ROOT / "notebooks" / "docs" / "ops.md"
BEGIN: Final = "<!-- ops: made by python -m tests.support.tools.op_table -->"
END: Final = "<!-- end of ops -->"

FAMILIES: Final[dict[str, str]] = {
    "arithmetic, powers, trigonometry, special functions": "binary complex elementwise special trigonometry zero_safe sums casting bitwise incomplete*",
    "comparison and logic": "comparison logical",
    "reductions, scans, sorting, counting": "reductions arg_reductions sorting counting dense_counts scans",
    "matrix products and linear algebra": "matmul* einsum diagonal* linear_algebra*",
    "Fourier transforms": "fourier*",
    "shapes, slicing, joining, rearranging": "array_shapes broadcasting slicing joining rearranging padding shifting data_formats",
    "indexing, scattering, sets, sequences of symbols": "gathering scattering sets edit_distances searching",
    "segments, rows of different lengths": "segments* ragged",
    "recurrent cells and alignments": "alignment recurrent_*",
    "constants and random numbers": "constants random*",
    "activations and losses": "activations nn derivatives losses*",
    "convolution, pooling, normalisation": "convolution depthwise pooling* batch_norm* local_response dilation*",
    "images": "resizing* cropping image_* colours boxes*",
    "variables and optimizers": "state resource_* variable_parts variable_slices variable_counting optimizers*",
    "lists, arrays and stacks of tensors": "tensor_* stacks",
    "queues, readers and accumulators": "queue* reader* accumulators",
    "sparse tensors": "sparse_*",
    "strings": "string_* csv_*",
    "lookup tables": "table*",
    "checkpoints": "checkpoint_files",
    "summaries": "summaries",
    "datasets and iterators": "datasets* iterators",
    "calls of Python": "python_calls",
    "files and serialized examples": "files example_messages",
    "functions and control flow": "control control_flow* function* sending",
    "checks and messages": "checks",
    "quantisation": "fake_quant*",
}


def modules() -> dict[str, list[str]]:
    """The ops of each module, by its name."""
    return {module.rpartition(".")[2]: names.split() for module, names in OP_MODULES.items()}


def family_of(module: str) -> str:
    """The family that a module belongs to.

    Raises:
        LookupError: none or several claim it.
    """
    claims = [family for family, patterns in FAMILIES.items() if any(Path(module).match(pattern) for pattern in patterns.split())]
    if len(claims) != 1:
        raise LookupError(f"module {module}: required one family, got {claims}")
    return claims[0]


def table() -> str:
    """The table with its markers."""
    counts: dict[str, list[int]] = {}
    for module, ops in modules().items():
        count = counts.setdefault(family_of(module), [0, 0])
        count[0] += len(ops)
        count[1] += sum(gc.op_registry.look_up(name).gradient is not None for name in ops)
    rows = [f"| {family} | {counts[family][0]} | {counts[family][1]} |" for family in FAMILIES]
    total = [sum(count[i] for count in counts.values()) for i in (0, 1)]
    head = ["| family | ops | with a gradient |", "|---|--:|--:|"]
    return "\n".join([BEGIN, "", *head, *rows, f"| **all** | **{total[0]}** | **{total[1]}** |", "", END])


def with_table(text: str) -> str:
    """A page's text with the current table between the markers.

    Raises:
        ValueError: the markers are missing.
    """
    start, end = text.index(BEGIN), text.index(END) + len(END)
    return text[:start] + table() + text[end:]


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
