"""All ops, one family a file. Importing this makes their names known; a family is imported when one of its ops is first asked for."""

from graphcore.ops.block import NO_GRADIENT, Example, no_registered_gradient, op
from graphcore.ops.families import promise_families

__all__ = ["NO_GRADIENT", "Example", "no_registered_gradient", "op", "promise_families"]
