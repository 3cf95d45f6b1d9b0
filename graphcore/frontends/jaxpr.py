"""JAX's traced programs: jaxprs, and the objects of `jax.jit` and `jax.export`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.jax_reader.programs import JaxprReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphcore.frontends.foreign import ForeignGraph
    from graphcore.frontends.frontend import Source

KIND: Final = "JAX program (ClosedJaxpr, Jaxpr, Traced)"
_NAMES: Final = frozenset(["ClosedJaxpr", "Jaxpr", "Traced"])


def sniff(source: Source) -> bool:
    """True iff the source is a jaxpr, or an object that has one."""
    kind = type(source.value)
    return source.path is None and kind.__name__ in _NAMES and kind.__module__.partition(".")[0] == "jax"


def read(source: Source) -> ForeignGraph:
    """Read a jaxpr. Nothing is traced or run.

    Raises:
        GraphError: it is not of a form that is known.
    """
    value: Any = source.value
    name = ""
    if type(value).__name__ == "Traced":
        name = str(getattr(value, "fun_name", ""))
        value = value.jaxpr
    return read_program(value, name, {})


def read_program(value: Any, name: str, arrays: Mapping[int, str], arguments: Sequence[Any] = ()) -> ForeignGraph:
    """Read a jaxpr.

    Args:
        value: the jaxpr.
        name: its name.
        arrays: names for its constants, by the ids of their values.
        arguments: the values of its inputs in the call of which it was traced, if any.

    Raises:
        GraphError: it is not of a form that is known.
    """
    jax = sys.modules.get("jax")
    version = str(getattr(jax, "__version__", ""))
    try:
        return JaxprReader(arrays).read(value, name, f"jax {version}" if version else "jax", arguments)
    except GraphError:
        raise
    except (AttributeError, TypeError, KeyError) as error:
        raise InvalidArgumentError(f"This version of JAX ({version}) has jaxprs of another form: {str(error)[:200]}") from None
