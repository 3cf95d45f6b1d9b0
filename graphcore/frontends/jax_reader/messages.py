"""JAX's errors in words: the message, the requirement and the actual value, and advice."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

_MAX_CHARACTERS: Final = 2000
_NOISE: Final = re.compile(r"^(See https?://\S+|-{4,}|For simplicity, JAX has removed.*|Set JAX_TRACEBACK_FILTERING.*|\s*)$")

_TRACED: Final = re.compile(r"The error occurred while tracing the function .*? for \w+\. ?")
_IDS: Final = re.compile(r" with object id \d+")
_LINKS: Final = re.compile(r"\s*\(https?://\S+\)")


class _Row(NamedTuple):
    """An error of JAX: a pattern of its message, and words with the pattern's groups.

    `sizes` says which sizes clash: those of the axes that are `contracted`, `broadcast`, `joined`, the `channels`, or all that the message names (`numbers`).
    """

    pattern: str
    required: str
    came: str
    advice: str = ""
    sizes: str = ""


_ROWS: Final = (
    _Row(
        r"dot_general requires contracting dimensions to have the same shape, got \((\d+),?\) and \((\d+),?\)",
        "equal sizes along the axes that are summed over",
        "{0} on the left and {1} on the right",
        sizes="contracted",
    ),
    _Row(
        r"(\w+) got incompatible shapes for broadcasting: (.+?)\.?$",
        "shapes whose sizes, from the last on, are equal or 1",
        "{1}",
        sizes="broadcast",
    ),
    _Row(
        r"Incompatible shapes for broadcasting: (?:shapes=)?\[?(.+?)\]?\.?$",
        "shapes whose sizes, from the last on, are equal or 1",
        "{0}",
        sizes="broadcast",
    ),
    _Row(
        r"Cannot concatenate arrays with shapes that differ.*along dimension (\d+) for shapes (.+?)\.?$",
        "arrays with equal sizes along all axes but axis {0}",
        "{1}",
        sizes="joined",
    ),
    _Row(
        r"Size of label '(\w)' for operand \d+ \((\d+)\) does not match previous terms \((\d+)\)",
        "one size for each letter",
        "{1} and {2} for '{0}'",
        sizes="numbers",
    ),
    _Row(r"scan got values with different leading axis sizes: (.+?)\.?$", "sequences of one length", "lengths {0}", sizes="numbers"),
    _Row(r"Cannot concatenate arrays with different numbers of dimensions: (.+)", "arrays of one rank", "{0}"),
    _Row(
        r"cannot reshape array of shape (\(.*?\)) \(size (\d+)\) into shape (\(.*?\)) \(size (\d+)\)",
        "a new shape of {1} elements",
        "{2}, which has {3}",
    ),
    _Row(
        r"scan body function carry input and carry output must have equal types.*?The input carry (.*?) has type (\S+) but the corresponding output carry "
        r"component has type (\S+),",
        "a carry that leaves the body as it came: {1}",
        "{2}",
        "Convert the new carry: `.astype(carry.dtype)`, or begin with a carry of the other type",
    ),
    _Row(
        r"branches must have equal output types.*?The output of (\S+) has type (\S+) but the corresponding output of (\S+) has type (\S+),",
        "branches with results of equal types and shapes",
        "{1} from {0} and {3} from {2}",
        "Give both branches one type: `.astype(...)`, or `jnp.float32(0)` for `0`",
    ),
    _Row(
        r"Attempted boolean conversion of traced array with shape (\S+?)\.",
        "a bool that Python knows while it traces",
        "a traced array {0}, which has no value yet",
        "For `if`: `jnp.where(c, a, b)` or `jax.lax.cond`; for `while`: `jax.lax.while_loop`; or make the argument static (`static_argnums`)",
    ),
    _Row(
        r"Array boolean indices must be concrete; got (\S+)",
        "a mask with values known while tracing, since the size of the result depends on them",
        "a traced mask {0}",
        "Keep the shape: `jnp.where(mask, x, 0)`, or `jnp.nonzero(mask, size=n)`",
    ),
    _Row(
        r"(?:Abstract tracer value encountered where concrete value is expected|The __(?:int|float|index|complex)__).*?traced array with shape (\S+?)[\.\s]",
        "a number that Python knows while it traces",
        "a traced array {0}, which has no value yet",
        "Make the argument static (`static_argnums`), or stay with arrays: `.astype(int)`",
    ),
    _Row(
        r"Shapes must be 1D sequences of concrete values of integer type, got (.+?)\.",
        "sizes that are numbers while JAX traces",
        "{0}",
        "Take sizes from `x.shape`, or make the argument static (`static_argnums`)",
    ),
    _Row(
        r"The numpy.ndarray conversion method __array__\(\) was called on traced array with shape (\S+)",
        "a value that Python knows while it traces, as functions of NumPy take it",
        "a traced array {0}, which has no value yet",
        "Use the function of `jax.numpy` in place of NumPy's",
    ),
    _Row(
        r"lhs feature dimension size .*but (\d+) // \d+ != (\d+)",
        "equal numbers of channels of input and kernel",
        "{0} and {1}",
        sizes="channels",
    ),
    _Row(r"All input arrays must have the same shape. Got (.+?)\.?$", "arrays of one shape", "{0}"),
    _Row(
        r"Incompatible types for broadcasting: input type=(\S+) and requested type=(\S+)",
        "a value that fits the place: {1}",
        "{0}",
        sizes="numbers",
    ),
    _Row(
        r"(?:Encountered an unexpected tracer|leaked|escaped)",
        "values of the trace that runs now",
        "a tracer that another trace has left behind",
        "Return the value from the function instead of keeping it in a global, an attribute or a list",
    ),
    _Row(
        r"Non-hashable static arguments are",
        "static arguments that can be hashed",
        "one that cannot: a list, a dict or an array",
        "Give a tuple for a list, or pass arrays as arguments that are traced",
    ),
    _Row(
        r"vmap was requested to map its argument along axis (-?\d+), which implies that its rank should be at least (\d+), but is only (\d+)",
        "an argument of rank {1} or more, for axis {0} of `in_axes`",
        "one of rank {2}",
    ),
    _Row(r"vmap got inconsistent sizes for array axes to be mapped:(.*)", "equal sizes of the axes that `in_axes` names", "{0}"),
    _Row(
        r"Input dtypes? (\(?.+?\)?) have no available implicit dtype promotion path",
        "operands of one type, since `jax_numpy_dtype_promotion` is strict",
        "{0}",
        "Convert one of them: `.astype(...)`",
    ),
    _Row(
        r"initializer is expected to generate shape (\(.*?\)), but the existing parameter it received has shape (\(.*?\))",
        "a parameter of shape {0} for this input",
        "one of shape {1}",
        "Initialize the parameters anew with an input of this shape",
        "parameter",
    ),
    _Row(
        r'Could not find parameter named "(\w+)" in scope "(.*?)"',
        "a parameter '{0}' in '{1}'",
        "variables without it",
        "Give the variables that `init` of this module has returned",
    ),
    _Row(r"(\S+\(\)) (missing \d+ required|takes \d+|got an unexpected|got multiple)(.+)", "the arguments of {0}", "others: {1} {2}"),
    _Row(
        r"(?:Python int(?:eger)?|argument to a jitted computation.*with value) (-?\d+)",
        "an int that fits in 32 bits, since `jax_enable_x64` is off",
        "{0}",
    ),
    _Row(
        r"key .*(?:reuse|consumed|used)",
        "a key that nothing has used yet",
        "one that was used",
        "Split it: `key, sub = jax.random.split(key)`",
    ),
    _Row(
        r"pytree structure error: different pytree metadata.*?with metadata\s+(\S.*?)\s+but .*?with metadata\s+(\S.*?)\s+so ",
        "pytrees of one structure",
        "one with the keys {0} and one with {1}",
    ),
    _Row(r"(?:pytree structure error: |Dict key mismatch; |Expected )(.+)", "pytrees of one structure", "others: {0}"),
    _Row(
        r"Gradient only defined for scalar-output functions. Output had shape: (.+?)\.",
        "a function with one number as result",
        "a result of shape {0}",
        "Sum or average: `.sum()`, `.mean()`; or take `jax.jacobian`",
    ),
)


def tidied(error: Exception) -> str:
    """The type and message of an error, without links, rules and hints on tracebacks."""
    text = _IDS.sub("", _LINKS.sub("", _TRACED.sub("", str(error))))
    lines = [line.rstrip() for line in text.splitlines() if not _NOISE.match(line)]
    return f"{type(error).__name__}: {chr(10).join(lines)[:_MAX_CHARACTERS]}".strip().removesuffix(":")


class Explained(NamedTuple):
    """Requirement, actual value and advice for an error, "" for those that are unknown.

    Attributes:
        required, came, advice: in words.
        sizes: which sizes clash, as in the table.
        numbers: the numbers in the message that clash.
    """

    required: str = ""
    came: str = ""
    advice: str = ""
    sizes: str = ""
    numbers: tuple[int, ...] = ()


def explained(error: Exception) -> Explained:
    """The requirement and actual value of an error."""
    text = str(error)
    for row in _ROWS:
        match = re.search(row.pattern, text, re.DOTALL)
        if match is not None:
            groups = [" ".join((group or "").split())[:200] for group in match.groups()]
            counted = Counter([int(number) for group in groups for number in re.findall(r"\d+", group)])
            numbers = tuple([number for number, count in counted.items() if count == 1])  # what occurs twice fits
            return Explained(row.required.format(*groups), row.came.format(*groups), row.advice, row.sizes, numbers)
    return Explained()
